//! Why a target cannot be followed, and what to do about it.

use std::time::Duration;

use kube_informer::informer::Cause;
use kube_informer::manager::{AddError, WatchState};

/// The target of an ElastiService cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// The spec does not name a target.
    #[error("spec.scaleTargetRef names no target: {why}")]
    Reference {
        /// What is wrong with it.
        why: String,
    },
    /// The server has no such kind.
    #[error(
        "spec.scaleTargetRef names {reference}: {why}; install what defines it, or correct apiVersion and kind"
    )]
    UnknownKind {
        /// The target, as it was named.
        reference: String,
        /// What the server has instead.
        why: String,
    },
    /// The kind cannot be scaled.
    #[error(
        "spec.scaleTargetRef names {reference}: {resource} cannot be scaled: {why}; name a workload that has a scale subresource"
    )]
    NotScalable {
        /// The target, as it was named.
        reference: String,
        /// What it is for the server.
        resource: String,
        /// Why not.
        why: String,
    },
    /// Something may not be read.
    #[error("{tried}: {why}; {advice}")]
    Forbidden {
        /// What was asked.
        tried: String,
        /// What the server said.
        why: String,
        /// What to allow.
        advice: String,
    },
    /// The server cannot be asked.
    #[error("{tried}: {why}; it is tried again")]
    Unreachable {
        /// What was asked.
        tried: String,
        /// What went wrong.
        why: String,
    },
    /// The target cannot be watched.
    #[error("the target cannot be watched: {source}")]
    Watch {
        /// Why not.
        #[source]
        source: AddError,
    },
    /// It is not known whether the target is there.
    #[error("{target} is not known: {state}")]
    Target {
        /// The target.
        target: String,
        /// What stands in the way, and what to do.
        state: Box<WatchState>,
    },
    /// The pods of the namespace are not known.
    #[error("the pods of {namespace} are not known (waited {deadline:?} at most): {why}")]
    Pods {
        /// The namespace.
        namespace: String,
        /// How long it was waited for.
        deadline: Duration,
        /// What stands in the way, and what to do.
        why: String,
    },
    /// It was shut down.
    #[error("nothing is followed any more: it was shut down")]
    Stopped,
}

impl FollowError {
    /// In one word, as conditions and metrics have it.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Reference { .. } => "InvalidTargetRef",
            Self::UnknownKind { .. } => "UnknownKind",
            Self::NotScalable { .. } => "NotScalable",
            Self::Forbidden { .. } => "Forbidden",
            Self::Unreachable { .. } => "ServerUnreachable",
            Self::Watch { source } => match source {
                AddError::NotFound { .. } => "TargetNotFound",
                AddError::UnknownResource { .. } => "UnknownKind",
                AddError::Forbidden { .. } => "Forbidden",
                AddError::Invalid { .. } => "InvalidTargetRef",
                _ => "TargetNotWatched",
            },
            Self::Target { state, .. } => match &**state {
                WatchState::Stale { why, .. } if why.cause == Cause::Forbidden => "Forbidden",
                WatchState::Stale { why, .. } if why.cause == Cause::NotServed => "UnknownKind",
                _ => "TargetNotWatched",
            },
            Self::Pods { .. } => "PodsNotWatched",
            Self::Stopped => "Stopped",
        }
    }

    /// Whether only a change of the spec can help: nothing comes of trying the same again.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::Reference { .. } | Self::Watch { source: AddError::Invalid { .. } })
    }
}
