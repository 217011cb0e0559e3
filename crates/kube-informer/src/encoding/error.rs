//! What can be wrong with bytes from outside: where, what was expected there, and of which object.

use std::borrow::Cow;
use std::fmt;

/// Namespace and name. Cluster-scoped objects have an empty namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// Bytes that are not what they should be.
///
/// Carries the object's key where it could be read, so that a caller can keep what it has of that object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// What is wrong.
    pub fault: Fault,
    /// Where, in bytes from the start of the object (or of the frame, or of the body: as the function says).
    pub offset: usize,
    /// What was expected there.
    pub expected: Cow<'static, str>,
    /// Whose bytes they are, as far as they could be read.
    pub key: Option<Box<ObjectKey>>,
}

/// What is wrong with bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// They end too early.
    Truncated,
    /// There are more of them than the limit allows.
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// Values are nested deeper than the limit.
    TooDeep {
        /// The limit, in levels.
        limit: usize,
    },
    /// A byte that has no place there.
    Unexpected {
        /// What was found.
        found: String,
    },
    /// A string is not UTF-8.
    InvalidUtf8,
    /// A key stands twice in one object.
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A number does not fit into 64 bits where a whole number is wanted.
    NumberOutOfRange,
    /// There is no `metadata`.
    NoMetadata,
    /// There is no name in the metadata.
    NoName,
    /// A `Status` stands where an object was expected.
    StatusInstead {
        /// Its message.
        message: String,
    },
    /// The envelope is not that of Kubernetes' protobuf, or names another type.
    WrongEnvelope,
    /// A web page, or other text that is neither encoding: a proxy answered instead of the server.
    NotAnApi,
    /// A protobuf field that the schema table does not know: the server is newer than the table.
    UnknownField {
        /// The message that holds it.
        message: String,
        /// Its number.
        number: u32,
    },
    /// A kind that the schema table does not know.
    UnknownKind {
        /// `apps/v1/Deployment`.
        kind: String,
    },
}

impl DecodeError {
    /// An error at an offset.
    pub(crate) fn new(fault: Fault, offset: usize, expected: impl Into<Cow<'static, str>>) -> Self {
        Self { fault, offset, expected: expected.into(), key: None }
    }
}

impl DecodeError {
    /// Whether the object can be had in JSON all the same: protobuf held what the schema table does not know.
    #[must_use]
    pub fn wants_json(&self) -> bool {
        matches!(self.fault, Fault::UnknownField { .. } | Fault::UnknownKind { .. })
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        write!(f, "{} at byte {}: expected {}", self.fault, self.offset, self.expected)
    }
}

impl std::error::Error for DecodeError {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the data ends"),
            Self::TooLarge { limit } => write!(f, "more than the limit of {limit} bytes"),
            Self::TooDeep { limit } => write!(f, "nested deeper than {limit} levels"),
            Self::Unexpected { found } => write!(f, "found {found}"),
            Self::InvalidUtf8 => f.write_str("invalid UTF-8"),
            Self::DuplicateKey { key } => write!(f, "the key {key:?} stands twice"),
            Self::NumberOutOfRange => f.write_str("a number beyond 64 bits"),
            Self::NoMetadata => f.write_str("no metadata"),
            Self::NoName => f.write_str("no name"),
            Self::StatusInstead { message } => write!(f, "a Status instead of an object ({message})"),
            Self::WrongEnvelope => f.write_str("a wrong envelope"),
            Self::NotAnApi => f.write_str("an answer that is not the API server's"),
            Self::UnknownField { message, number } => {
                write!(f, "unknown field {number} of {message}")
            }
            Self::UnknownKind { kind } => write!(f, "unknown kind {kind}"),
        }
    }
}
