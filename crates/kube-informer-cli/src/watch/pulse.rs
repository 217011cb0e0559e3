//! Whether what is shown is what the server has: said when it changes, not each time that something is tried.

use std::fmt;

use jiff::Timestamp;
use kube_informer::informer::{Cause, State};

use crate::reading::{Reading, is_hopeless, reason};

/// Something that is to be known about one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Beat {
    /// What is shown may be old.
    Stale { resource: String, since: Timestamp, cause: Cause, message: String },
    /// It is not any more; what was missed comes.
    Live { resource: String },
}

impl fmt::Display for Beat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { resource, since, message, .. } => {
                let since = since.strftime("%H:%M:%SZ");
                write!(
                    f,
                    "stale since {since}: {resource} may have changed unseen: {message}; tried again for ever"
                )
            }
            Self::Live { resource } => write!(f, "live again: {resource}"),
        }
    }
}

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Of each informer of each reading: why it was stale, if that was said.
    said: Vec<Option<Cause>>,
}

impl Pulse {
    pub(super) fn new(readings: &[Reading]) -> Self {
        let count = readings.iter().map(|reading| reading.informers.len()).sum();
        Self { said: vec![None; count] }
    }

    /// What is to be said now.
    pub(super) fn take(&mut self, readings: &[Reading]) -> Vec<Beat> {
        let informers = readings.iter().flat_map(|reading| &reading.informers);
        let states = informers.map(|informer| {
            // One of many objects, or all of them.
            let resource = match informer.scope() {
                kube_informer::informer::Scope::Object { name, .. } => {
                    format!("{}/{name}", informer.resource())
                }
                _ => informer.resource().to_string(),
            };
            (resource, informer.health().state, informer.is_synced())
        });
        self.hear(states)
    }

    /// Of each informer: what it is called, how it is, and whether it has read everything once.
    fn hear(&mut self, states: impl Iterator<Item = (String, State, bool)>) -> Vec<Beat> {
        let mut beats = Vec::new();
        for (said, (resource, state, is_synced)) in self.said.iter_mut().zip(states) {
            match state {
                // It ends the command, and that is said.
                State::Stale { why, .. } if !is_synced && is_hopeless(why.cause) => {}
                // After each interruption, everything is read again; that is no news.
                State::Stale { why, .. } if why.cause == Cause::Relisting => {}
                State::Stale { why, .. } if *said == Some(why.cause) => {}
                State::Stale { since, why } => {
                    *said = Some(why.cause);
                    beats.push(Beat::Stale { resource, since, cause: why.cause, message: reason(&why) });
                }
                State::Live if said.take().is_some() => beats.push(Beat::Live { resource }),
                _ => {}
            }
        }
        beats
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kube_informer::informer::Why;

    use super::*;

    fn stale(cause: Cause) -> State {
        let why = Why {
            cause,
            request: "LIST /api/v1/pods".to_owned(),
            message: "nobody listens".to_owned(),
            again: Duration::from_secs(1),
        };
        State::Stale { since: Timestamp::UNIX_EPOCH, why }
    }

    #[test]
    fn it_is_said_when_it_changes_and_not_each_time() {
        let mut pulse = Pulse { said: vec![None] };
        let mut hear = |state| {
            let beats = pulse.hear(std::iter::once(("pods".to_owned(), state, true)));
            beats.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(hear(State::Syncing).is_empty());
        assert!(hear(State::Live).is_empty(), "nobody thought otherwise");
        assert!(hear(stale(Cause::Relisting)).is_empty());
        let said = hear(stale(Cause::Refused));
        assert!(
            said[0].contains("stale since 00:00:00Z: pods") && said[0].contains("nobody listens"),
            "{said:?}"
        );
        assert!(hear(stale(Cause::Refused)).is_empty());
        assert_eq!(hear(stale(Cause::Stalled)).len(), 1, "another reason is news");
        assert!(hear(stale(Cause::Relisting)).is_empty());
        assert_eq!(hear(State::Live), ["live again: pods"]);
        assert!(hear(State::Live).is_empty());
    }

    #[test]
    fn what_ends_it_at_the_beginning_is_not_said_twice() {
        let mut pulse = Pulse { said: vec![None] };
        let mut hear = |cause, is_synced| {
            pulse.hear(std::iter::once(("pods".to_owned(), stale(cause), is_synced))).len()
        };
        assert_eq!(hear(Cause::Forbidden, false), 0);
        assert_eq!(hear(Cause::Refused, false), 1, "that may pass");
        assert_eq!(hear(Cause::Forbidden, true), 1);
    }
}
