//! What both encodings can do with the bytes of one object.

mod error;
#[cfg_attr(not(test), expect(dead_code, reason = "the stages that store objects call it"))]
pub(crate) mod json;
pub mod metadata;
pub mod rules;

pub use error::{DecodeError, Fault, ObjectKey};
pub use metadata::Metadata;
pub use rules::{ManagedFields, Pointer, Rules};

/// How the bytes of an object are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// JSON, as every kind can be had.
    Json,
    /// Kubernetes' protobuf, as built-in kinds can be had.
    Protobuf,
}
