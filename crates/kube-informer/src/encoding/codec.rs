//! How the objects of one resource are read: one small interface, two encodings behind it.

use serde::de::{Deserialize, DeserializeOwned};

use super::protobuf::Protobuf;
use super::rules::PointerError;
use super::tree::Tree;
use super::{DecodeError, Encoding, Metadata, Pointer, Rules, ViewError, json, schema};
use crate::object::Version;

/// How the objects of one resource are read and what of them is kept, worked out once per resource.
///
/// What arrives is [ingested](Self::ingest): checked, cut, and written as *stored bytes*. All else is
/// asked of stored bytes, at any later time, of a codec with the same settings.
///
/// ```
/// use kube_informer::encoding::{Codec, Encoding, Rules};
///
/// let codec = Codec::new(Encoding::Json, "v1", "ConfigMap", Rules::default())?;
/// let mut stored = Vec::new();
/// let arrived = br#"{"metadata":{"name":"a","namespace":"b","managedFields":[]},"data":{"k":"v"}}"#;
/// let metadata = codec.ingest(arrived, &mut stored)?;
/// assert_eq!((&*metadata.namespace, &*metadata.name), ("b", "a"));
///
/// #[derive(serde::Deserialize)]
/// struct Narrow<'a> {
///     #[serde(borrow)]
///     data: std::collections::BTreeMap<&'a str, &'a str>,
/// }
/// let view: Narrow = codec.view(&stored)?;
/// assert_eq!(view.data["k"], "v");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Codec {
    api_version: Box<str>,
    kind: Box<str>,
    rules: Rules,
    inner: Inner,
}

#[derive(Debug, Clone)]
enum Inner {
    Json,
    Protobuf(Protobuf),
}

/// How far a watch has come.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bookmark {
    /// Everything up to this version has been sent.
    pub version: Version,
    /// Whether everything that there was at the beginning has been sent, of a watch that was asked for that.
    pub ends_initial_events: bool,
}

/// The annotation that says so.
pub(super) const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Settings that do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The kind cannot be had in protobuf.
    #[error("{api_version} {kind} is not in the table of built-in kinds; use JSON")]
    UnknownKind {
        /// As in the object.
        api_version: String,
        /// As in the object.
        kind: String,
    },
    /// A field cannot be dropped.
    #[error(transparent)]
    Pointer(#[from] PointerError),
}

impl Codec {
    /// A codec for one kind.
    ///
    /// # Errors
    ///
    /// In protobuf: where the kind is not in the schema table, or a field cannot be dropped because the
    /// pointer leads through a list or into a value without a schema.
    pub fn new(encoding: Encoding, api_version: &str, kind: &str, rules: Rules) -> Result<Self, CodecError> {
        let inner = match encoding {
            Encoding::Json => Inner::Json,
            Encoding::Protobuf => {
                let root = schema::root(api_version, kind).filter(|root| schema::is_object(root));
                let Some(root) = root else {
                    let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
                    return Err(CodecError::UnknownKind { api_version, kind });
                };
                Inner::Protobuf(Protobuf::new(root, &rules)?)
            }
        };
        Ok(Self { api_version: api_version.into(), kind: kind.into(), rules, inner })
    }

    /// The encoding that it reads.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        match self.inner {
            Inner::Json => Encoding::Json,
            Inner::Protobuf(_) => Encoding::Protobuf,
        }
    }

    /// The API version of its objects.
    #[must_use]
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// The kind of its objects.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What of the objects is kept.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Checks one object as it arrived: a whole document, or an item of a list, which may lack its type.
    /// Writes what is kept of it to `stored` (which is cleared first), and returns its metadata.
    ///
    /// A JSON document that names another type is taken as it is: some aggregated APIs are not exact about it.
    ///
    /// Everything that is kept is checked here, once: no later call on the stored bytes fails because of
    /// them.
    ///
    /// # Errors
    ///
    /// Where the bytes are not such an object. The error says where and what was expected, and carries the
    /// object's key where it could be read. Then `stored` is of no use.
    pub fn ingest<'a>(&self, bytes: &'a [u8], stored: &mut Vec<u8>) -> Result<Metadata<'a>, DecodeError> {
        match &self.inner {
            Inner::Json => json::ingest(bytes, Some((&self.api_version, &self.kind)), &self.rules, stored),
            Inner::Protobuf(protobuf) => protobuf.ingest(bytes, stored),
        }
    }

    /// Reads a bookmark of a watch: an object of the kind with a version and no name.
    ///
    /// # Errors
    ///
    /// Where the bytes are not such an object, or have no version.
    pub fn bookmark(&self, bytes: &[u8]) -> Result<Bookmark, DecodeError> {
        match &self.inner {
            Inner::Json => json::bookmark(bytes, &self.kind),
            Inner::Protobuf(protobuf) => protobuf.bookmark(bytes),
        }
    }

    /// The metadata of stored bytes.
    ///
    /// # Errors
    ///
    /// Only where the bytes are not what [`ingest`](Self::ingest) wrote.
    pub fn metadata<'a>(&self, stored: &'a [u8]) -> Result<Metadata<'a>, DecodeError> {
        match &self.inner {
            Inner::Json => json::metadata(stored),
            Inner::Protobuf(protobuf) => protobuf.metadata(stored),
        }
    }

    /// Stored bytes as any type that JSON of the object can be read as. What the type does not name is
    /// skipped, not decoded; strings are lent to types that borrow.
    ///
    /// # Errors
    ///
    /// Where the object does not fit the type.
    pub fn view<'de, T: Deserialize<'de>>(&self, stored: &'de [u8]) -> Result<T, ViewError> {
        match &self.inner {
            Inner::Json => Ok(serde_json::from_slice(stored)?),
            Inner::Protobuf(protobuf) => protobuf.view(stored),
        }
    }

    /// What a JSON pointer names in stored bytes; `None` where it names nothing. Nothing else is decoded.
    ///
    /// # Errors
    ///
    /// Where what it names does not fit the type.
    pub fn pointer<T: DeserializeOwned>(
        &self,
        stored: &[u8],
        pointer: &Pointer,
    ) -> Result<Option<T>, ViewError> {
        match &self.inner {
            Inner::Json => match json::seek(stored, pointer) {
                Some(value) => Ok(Some(serde_json::from_slice(value)?)),
                None => Ok(None),
            },
            Inner::Protobuf(protobuf) => protobuf.pointer(stored, pointer),
        }
    }

    /// Stored bytes as JSON, in one line, keys sorted: the same for equal objects, whatever encoding they
    /// came in.
    ///
    /// # Errors
    ///
    /// Only where the bytes are not what [`ingest`](Self::ingest) wrote.
    pub fn json(&self, stored: &[u8]) -> Result<String, ViewError> {
        let tree: Tree<'_> = self.view(stored)?;
        Ok(serde_json::to_string(&tree)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_beyond_all_timestamps_is_none() {
        let codec = Codec::new(Encoding::Json, "v1", "ConfigMap", Rules::default()).unwrap();
        for (time, read) in [
            ("9999-12-30T00:00:00Z", Some(true)),
            ("9999-12-31T23:59:59Z", Some(false)),
            ("9999-12-32T23:59:59Z", None),
        ] {
            let text = format!(r#"{{"metadata":{{"name":"a","creationTimestamp":"{time}"}}}}"#);
            let metadata = codec.ingest(text.as_bytes(), &mut Vec::new()).ok().map(Metadata::into_owned);
            assert_eq!(metadata.map(|metadata| metadata.created.is_some()), read, "{time}");
        }
    }

    #[test]
    fn a_float_keeps_its_last_digit() {
        let codec = Codec::new(Encoding::Json, "v1", "ConfigMap", Rules::default()).unwrap();
        let text = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"n":123456789.12345679}"#;
        let mut stored = Vec::new();
        codec.ingest(text.as_bytes(), &mut stored).unwrap();
        assert_eq!(codec.json(&stored).unwrap(), text);
    }
}
