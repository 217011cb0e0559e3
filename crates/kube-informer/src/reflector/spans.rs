//! In which span something is said.
//!
//! Each list and each watch has a span of its own, with the version at which it begins: what happens in it is said there, in
//! the span of its informer. What is between them is in that one alone. Versions of what follows are in what is said of
//! them.

use tracing::{Instrument, Span, field};

use super::transport::Transport;
use super::{Gone, Reflector, Sink, State};

/// What a state belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chapter {
    List,
    Watch,
    /// Waiting, and looking around.
    Between,
}

impl State {
    fn chapter(&self) -> Chapter {
        match self {
            Self::Begin { .. } | Self::Streaming { .. } | Self::Listing { .. } => Chapter::List,
            Self::Connect | Self::Watching { .. } => Chapter::Watch,
            Self::Probe | Self::NotServed { .. } | Self::Pause { .. } => Chapter::Between,
        }
    }

    /// Whether it is the first state of a chapter.
    fn begins(&self) -> bool {
        matches!(self, Self::Begin { .. } | Self::Connect)
    }
}

impl<T: Transport, S: Sink> Reflector<T, S> {
    /// All steps of one list, of one watch, or of what is between them.
    pub(super) async fn chapter(&mut self) -> Result<(), Gone> {
        let (chapter, span) = (self.state.chapter(), self.span());
        let steps = async {
            loop {
                self.step().await?;
                if self.state.begins() || self.state.chapter() != chapter {
                    return Ok(());
                }
            }
        };
        steps.instrument(span).await
    }

    fn span(&self) -> Span {
        match &self.state {
            State::Begin { freshness, .. }
            | State::Streaming { freshness, .. }
            | State::Listing { freshness, .. } => tracing::error_span!("list", version = %freshness),
            State::Connect | State::Watching { .. } => {
                tracing::error_span!("watch", version = self.version.as_ref().map(field::display))
            }
            State::Probe | State::NotServed { .. } | State::Pause { .. } => Span::none(),
        }
    }
}
