//! How a controller ends.

use std::fmt;
use std::time::Duration;

use super::request::Request;

/// What a controller has left when it ended as it was asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The controller.
    pub controller: String,
    /// Reconciles that were still busy at the deadline, and were cut off.
    pub busy: Vec<Request>,
}

/// Why a controller ended without being asked to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// Something that it needs was not listed and handled in time, or never can be.
    NotSynced {
        /// The controller.
        controller: String,
        /// How long it was waited for; `None` where waiting would have been in vain.
        deadline: Option<Duration>,
        /// What is missing, and why.
        missing: Vec<String>,
    },
    /// Another one leads, or may.
    LeadershipLost {
        /// The controller.
        controller: String,
    },
    /// The informer of a required source was stopped.
    SourceStopped {
        /// The controller.
        controller: String,
        /// The source.
        source: String,
    },
    /// The controller itself failed.
    Broken {
        /// The controller.
        controller: String,
    },
    /// Two controllers of a runner have the same name: their metrics and logs could not be told apart.
    SameName {
        /// The name.
        controller: String,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSynced { controller, deadline, missing } => {
                write!(f, "controller {controller:?} cannot start")?;
                if let Some(deadline) = deadline {
                    write!(f, " (waited {deadline:?})")?;
                }
                missing.iter().try_for_each(|missing| write!(f, "; {missing}"))
            }
            Self::LeadershipLost { controller } => {
                write!(f, "controller {controller:?}: leadership lost; start anew to run for it again")
            }
            Self::SourceStopped { controller, source } => {
                write!(f, "controller {controller:?}: the informer of {source} was stopped")
            }
            Self::Broken { controller } => {
                write!(
                    f,
                    "controller {controller:?}: one of its tasks panicked: this is a bug, please report it"
                )
            }
            Self::SameName { controller } => {
                write!(f, "two controllers have the name {controller:?}: give one of them another name")
            }
        }
    }
}

impl std::error::Error for RunError {}
