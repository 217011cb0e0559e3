//! What both encodings can do with the bytes of one object.
//!
//! [`Codec`] is the interface. `json` and `protobuf` implement it; `schema` is the table of the built-in
//! kinds that protobuf is read with.

mod choice;
mod codec;
mod error;
pub(crate) mod json;
pub mod metadata;
pub(crate) mod protobuf;
pub mod rules;
pub(crate) mod schema;
mod tree;
mod view_error;

pub use choice::ServerVersion;
pub use codec::{Bookmark, Codec, CodecError};
pub use error::{DecodeError, Fault, ObjectKey};
pub use metadata::Metadata;
pub use protobuf::decode_protobuf;
pub use rules::{ManagedFields, Pointer, PointerError, Rules};
pub use view_error::ViewError;

/// How the bytes of an object are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// JSON, as every kind can be had.
    Json,
    /// Kubernetes' protobuf, as built-in kinds can be had.
    Protobuf,
}
