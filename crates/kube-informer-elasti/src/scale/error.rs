//! Why a target could not be scaled, and what to do about it.

use std::time::Duration;

use kube_informer::resource::Resource;

/// A target could not be scaled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleError {
    /// Waking is never to less than one replica.
    #[error("{tried}: waking is to one replica at least; set spec.minTargetReplicas to 1 or more")]
    Refused {
        /// What was to be done, on which object.
        tried: String,
        /// How many replicas were asked for.
        to: i32,
    },
    /// There is no such target.
    #[error("{tried}: it is not there ({why}); create it, or correct spec.scaleTargetRef")]
    NotFound {
        /// What was to be done, on which object.
        tried: String,
        /// What the server said.
        why: String,
    },
    /// The target has no scale subresource.
    #[error(
        "{tried}: {resource} have no scale subresource; name a kind that has one, or add it to the definition of this one"
    )]
    Unsupported {
        /// What was to be done, on which object.
        tried: String,
        /// What it is.
        resource: String,
    },
    /// The target does not say how many replicas it is to have, and its scale cannot be used because of that.
    #[error("{tried}: {why}; write a number of replicas into the target once")]
    Unset {
        /// What was to be done, on which object.
        tried: String,
        /// What the server said.
        why: String,
    },
    /// The operator may not do that.
    #[error("{tried}: {why}; allow the operator to get and update {}/scale in the group {:?}", resource.plural, resource.group)]
    Forbidden {
        /// What was to be done, on which object.
        tried: String,
        /// What the server said.
        why: String,
        /// What it may not scale.
        resource: Box<Resource>,
    },
    /// The server does not accept the number, or somebody who checks writes does not.
    #[error("{tried}: {why}; look at what checks writes to it: limits in its definition, quotas, webhooks")]
    Rejected {
        /// What was to be done, on which object.
        tried: String,
        /// What the server said.
        why: String,
    },
    /// Others changed the target whenever it was to be written.
    #[error(
        "{tried}: it was changed by others in the meantime, {times} times; look who else scales it, and try again"
    )]
    Contended {
        /// What was to be done, on which object.
        tried: String,
        /// How often it was tried.
        times: u32,
    },
    /// The server did not answer.
    #[error(
        "{tried}: no answer within {patience:?}; whether it was done is unknown; check the API server, and try again"
    )]
    Silent {
        /// What was to be done, on which object.
        tried: String,
        /// How long it was waited.
        patience: Duration,
    },
    /// The server failed, or could not be reached.
    #[error("{tried}: {why}; check the API server, and try again")]
    Failed {
        /// What was to be done, on which object.
        tried: String,
        /// What the server said, or why nothing was heard.
        why: String,
        /// The same as the client has it.
        #[source]
        source: Option<Box<kube_client::Error>>,
    },
}

impl ScaleError {
    /// In one word, as conditions and metrics have it.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "Refused",
            Self::NotFound { .. } => "TargetNotFound",
            Self::Unsupported { .. } => "NotScalable",
            Self::Unset { .. } => "ReplicasUnset",
            Self::Forbidden { .. } => "Forbidden",
            Self::Rejected { .. } => "Rejected",
            Self::Contended { .. } => "Contended",
            Self::Silent { .. } => "NoAnswer",
            Self::Failed { .. } => "Failed",
        }
    }

    /// Whether the same may succeed when it is tried again, without anybody changing anything.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Contended { .. } | Self::Silent { .. } | Self::Failed { .. })
    }
}
