//! What a reconcile writes: finalizers, status with its conditions, events about objects.
//!
//! | | |
//! |---|---|
//! | [`Finalizer`] | puts one on an object, runs the cleanup of one that goes, takes it off again |
//! | [`Status`] | patches the status, unless nothing would change |
//! | [`conditions`] | sets and finds conditions as Kubernetes' own controllers have them |
//! | [`Recorder`] | events about objects, for people; never waited for |
//!
//! They stand by themselves: they take a client and what an informer has, and need no controller. Those that write to the
//! object return a [`Written`] token, with which a cache can be
//! [waited for](crate::informer::Informer::caught_up).
//!
//! - What they do is idempotent: done again after a failure, after a lost answer, or from an old cache, it ends the same.
//! - No request takes longer than half a minute, and nothing is tried for ever: a controller tries again.
//! - Errors say what was tried, on which object, and what the server said.

use std::fmt;
use std::time::Duration;

pub use crate::informer::Written;

// One request.
mod target;

// To the object.
pub mod conditions;
mod finalizer;
mod status;

// About the object.
mod recorder;

pub use finalizer::{Finalized, Finalizer, FinalizerError};
pub use recorder::{About, Recorder, RecorderStats};
pub use status::Status;

/// Something could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The server refused, or could not be reached.
    #[error("{tried}: {why}")]
    Failed {
        /// What was to be done, on which object.
        tried: String,
        /// What the server said, or why nothing was heard.
        why: String,
        /// The same as the client has it.
        #[source]
        source: Box<kube_client::Error>,
    },
    /// The server did not answer.
    #[error("{tried}: no answer within {patience:?}; whether it was done is unknown")]
    Silent {
        /// What was to be done, on which object.
        tried: String,
        /// How long it was waited.
        patience: Duration,
    },
    /// The object changed whenever it was to be written.
    #[error("{tried}: the object was changed by others in the meantime, {times} times; try again")]
    Contended {
        /// What was to be done, on which object.
        tried: String,
        /// How often it was tried.
        times: u32,
    },
    /// There is no such object, or another one of that name.
    #[error("{tried}: it is gone{hint}")]
    Gone {
        /// What was to be done, on which object.
        tried: String,
        /// What else it may be.
        hint: &'static str,
    },
    /// What is to be written cannot be: it is no JSON object, or a name is none.
    #[error("{tried}: {why}")]
    Unfit {
        /// What was to be done, on which object.
        tried: String,
        /// Why not.
        why: String,
    },
    /// The cached object cannot be read.
    #[error("{tried}: the cached object cannot be read")]
    View {
        /// What was to be done, on which object.
        tried: String,
        /// Why not.
        #[source]
        source: Box<crate::encoding::ViewError>,
    },
}

impl WriteError {
    /// Whether the object is gone: nothing is left to be done for it.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone { .. })
    }

    fn view(tried: impl fmt::Display) -> impl FnOnce(crate::encoding::ViewError) -> Self {
        let tried = tried.to_string();
        move |source| Self::View { tried, source: Box::new(source) }
    }
}

#[cfg(test)]
mod tests;
