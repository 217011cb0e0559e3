//! Why an object is not watched.

use std::time::Duration;

/// Why an object could not be watched. Nothing of the watch is left, and it can be tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// There can be no such object.
    #[error("{target} cannot be watched: {problem}")]
    Invalid {
        /// What was to be watched.
        target: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The object is not there.
    #[error("{target} is not there: create it, or use `wait_for_target` to be told when it comes")]
    NotFound {
        /// What was to be watched.
        target: String,
    },
    /// The server does not serve the resource.
    #[error("{target} cannot be watched, its resource is not served: {why}")]
    UnknownResource {
        /// What was to be watched.
        target: String,
        /// What the server said.
        why: String,
    },
    /// Watching the object is not allowed, not even alone.
    #[error("{target} cannot be watched, it is forbidden: {why}")]
    Forbidden {
        /// What was to be watched.
        target: String,
        /// What the server said.
        why: String,
    },
    /// It was not known in time whether the object is there.
    #[error("{target} was not synced within {deadline:?}: {why}")]
    NotSynced {
        /// What was to be watched.
        target: String,
        /// How long it was waited for.
        deadline: Duration,
        /// What stood in the way.
        why: String,
    },
    /// The watch was stopped before it was there, or the manager has been shut down.
    #[error("{target} is not watched: it was stopped meanwhile, or the manager was shut down")]
    Stopped {
        /// What was to be watched.
        target: String,
    },
}

impl AddError {
    /// The name that metrics use.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Invalid { .. } => "invalid",
            Self::NotFound { .. } => "not_found",
            Self::UnknownResource { .. } => "unknown_resource",
            Self::Forbidden { .. } => "forbidden",
            Self::NotSynced { .. } => "not_synced",
            Self::Stopped { .. } => "stopped",
        }
    }
}
