//! Kubernetes' protobuf: objects of built-in kinds as the server sends them, without generated types.
//!
//! A message is read with the schema table. What arrives is checked once, all the way down
//! ([`check`]), brought into Go's order where it is not ([`canonical`]), and cut ([`plan`]); what is
//! stored is a bare message, whose kind is known from elsewhere. Views ([`de`]) show the server's JSON of
//! the object, value for value.

mod canonical;
mod check;
mod de;
mod envelope;
mod metadata;
mod plan;
pub(crate) mod reader;
mod seek;
mod text;
mod value;
mod walk;

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::LazyLock;

use serde::de::{Deserialize, DeserializeOwned};

pub(crate) use self::envelope::{Envelope, MAGIC};
pub(crate) use self::plan::Node;
use self::reader::Reader;
use super::codec::INITIAL_EVENTS_END;
use super::schema::{self, Root};
use super::{Bookmark, DecodeError, Fault, ManagedFields, Metadata, ObjectKey, ViewError};

/// How deep objects and arrays may be nested in an object's JSON: the same as in JSON itself, so that both
/// encodings take the same objects, and any reader of JSON can read what views show.
pub(crate) const MAX_DEPTH: usize = super::json::LIMIT;

/// How the objects of one kind are read: its table and what is dropped, worked out once.
#[derive(Debug, Clone)]
pub(crate) struct Protobuf {
    root: &'static Root,
    plan: Node,
    writers: bool,
}

impl Protobuf {
    pub(crate) fn new(root: &'static Root, rules: &super::Rules) -> Result<Self, super::rules::PointerError> {
        let plan = Node::compile(root.message, rules)?;
        Ok(Self { root, plan, writers: rules.managed_fields == ManagedFields::Writers })
    }

    /// Checks one object, in its envelope or bare, and writes what is kept of it to `out`.
    pub(crate) fn ingest<'a>(&self, bytes: &'a [u8], out: &mut Vec<u8>) -> Result<Metadata<'a>, DecodeError> {
        out.clear();
        let body = self.open(bytes)?;
        let offset = body.as_ptr() as usize - bytes.as_ptr() as usize;
        self.keep(body, out).map_err(|mut error| {
            error.offset += offset;
            error.key = metadata::key(body).map(Box::new);
            error
        })
    }

    fn keep<'a>(&self, body: &'a [u8], out: &mut Vec<u8>) -> Result<Metadata<'a>, DecodeError> {
        let mut metadata = match ordered(self.root, body, Some(&self.plan))? {
            Cow::Borrowed(body) => {
                self.plan.cut(body, out)?;
                metadata::metadata(body, &self.plan, self.writers)?
            }
            Cow::Owned(body) => {
                self.plan.cut(&body, out)?;
                metadata::metadata(&body, &self.plan, self.writers)?.into_owned()
            }
        };
        metadata.api_version = Cow::Borrowed(self.root.api_version());
        metadata.kind = Cow::Borrowed(self.root.kind());
        Ok(metadata)
    }

    /// Takes the envelope off, if there is one.
    fn open<'a>(&self, bytes: &'a [u8]) -> Result<&'a [u8], DecodeError> {
        if !bytes.starts_with(MAGIC) {
            // Items of a list have no envelope.
            return match bytes.first() {
                Some(b'<' | b'{') => {
                    let found = String::from_utf8_lossy(bytes.get(..40).unwrap_or(bytes)).into_owned();
                    Err(DecodeError::new(Fault::NotAnApi, 0, format!("protobuf, not {found:?}")))
                }
                _ => Ok(bytes),
            };
        }
        let envelope = Envelope::parse(bytes)?;
        if (envelope.api_version, envelope.kind) == (self.root.api_version(), self.root.kind()) {
            return Ok(envelope.body);
        }
        let expected = format!("{} {}", self.root.api_version(), self.root.kind());
        Err(match envelope.status_message() {
            Some(message) => DecodeError::new(Fault::StatusInstead { message }, 0, expected),
            None => {
                let found = format!("{} {}", envelope.api_version, envelope.kind);
                DecodeError::new(Fault::WrongEnvelope, MAGIC.len(), format!("{expected}, not {found}"))
            }
        })
    }

    /// Reads a bookmark of a watch.
    pub(crate) fn bookmark(&self, bytes: &[u8]) -> Result<Bookmark, DecodeError> {
        let body = self.open(bytes)?;
        let metadata = metadata::without_name(body)?;
        if metadata.resource_version.is_empty() {
            let fault = Fault::Unexpected { found: "a bookmark without a version".to_owned() };
            return Err(DecodeError::new(
                fault,
                0,
                format!("a bookmark of {} with a version", self.root.kind()),
            ));
        }
        let ends = |(key, value): &(Cow<'_, str>, Cow<'_, str>)| key == INITIAL_EVENTS_END && value == "true";
        let ends_initial_events = metadata.annotations.iter().any(ends);
        Ok(Bookmark { version: metadata.resource_version.as_ref().into(), ends_initial_events })
    }

    /// The metadata of stored bytes.
    pub(crate) fn metadata<'a>(&self, stored: &'a [u8]) -> Result<Metadata<'a>, DecodeError> {
        let mut metadata = metadata::metadata(stored, &self.plan, self.writers)?;
        metadata.api_version = Cow::Borrowed(self.root.api_version());
        metadata.kind = Cow::Borrowed(self.root.kind());
        Ok(metadata)
    }

    /// Stored bytes as any type.
    pub(crate) fn view<'de, T: Deserialize<'de>>(&self, stored: &'de [u8]) -> Result<T, ViewError> {
        de::document(self.root, stored, Some(&self.plan), PhantomData)
    }

    /// What a pointer names in stored bytes.
    pub(crate) fn pointer<T: DeserializeOwned>(
        &self,
        stored: &[u8],
        pointer: &super::Pointer,
    ) -> Result<Option<T>, ViewError> {
        de::document(self.root, stored, Some(&self.plan), seek::Seek::new(pointer.as_tokens()))
    }
}

/// Any document of a built-in kind, in its envelope, as any type that its JSON can be read as.
///
/// For what is not an object of a watched resource: a `Status`, a list as a whole, a review.
///
/// # Errors
///
/// Where the bytes are not such a document, hold what the schema table does not know, or do not fit the
/// type.
pub fn decode_protobuf<T: DeserializeOwned>(document: &[u8]) -> Result<T, ViewError> {
    let (root, body) = self::document(document)?;
    let shift = |mut error: DecodeError| {
        error.offset += body.as_ptr() as usize - document.as_ptr() as usize;
        error
    };
    let body = ordered(root, body, None).map_err(shift)?;
    de::document(root, &body, None, PhantomData)
}

/// The key of an object, in its envelope or bare, whose bytes are broken or of which only the beginning is at hand. `None`
/// where it could be wrong.
pub(crate) fn key_of(bytes: &[u8]) -> Option<ObjectKey> {
    let Some(envelope) = bytes.strip_prefix(MAGIC) else { return metadata::key(bytes) };
    let mut fields = Reader::lenient(envelope);
    while let Ok(Some(field)) = fields.next() {
        if let (2, reader::Value::Bytes(body)) = (field.number, field.value) {
            return metadata::key(body);
        }
    }
    None
}

/// A message that has been checked, in Go's order.
fn ordered<'a>(
    root: &'static Root,
    body: &'a [u8],
    plan: Option<&Node>,
) -> Result<Cow<'a, [u8]>, DecodeError> {
    if check::check(root.message, body, plan)? == check::Order::Canonical {
        return Ok(Cow::Borrowed(body));
    }
    let body = canonical::canonical(root.message, body)?;
    match check::check(root.message, &body, plan)? {
        check::Order::Canonical => Ok(Cow::Owned(body)),
        check::Order::Other => {
            let fault = Fault::Unexpected { found: "fields in no order".to_owned() };
            Err(DecodeError::new(fault, 0, "fields that can be put in order"))
        }
    }
}

/// A document inside of a document: its kind and its message.
fn document(bytes: &[u8]) -> Result<(&'static Root, &[u8]), DecodeError> {
    let envelope = Envelope::parse(bytes)?;
    match schema::root(envelope.api_version, envelope.kind) {
        Some(root) => Ok((root, envelope.body)),
        None => {
            let kind = format!("{}/{}", envelope.api_version, envelope.kind);
            Err(DecodeError::new(Fault::UnknownKind { kind }, 0, "a kind of the schema table"))
        }
    }
}

/// Metadata without the rest: as an item of a list, JSON shows its type with it.
fn partial_metadata() -> Option<&'static Root> {
    static ROOT: LazyLock<Option<&'static Root>> =
        LazyLock::new(|| schema::root("meta.k8s.io/v1", "PartialObjectMetadata"));
    *ROOT
}

#[cfg(test)]
mod tests;
