//! Messages written by hand, entry by entry.

use serde_json::Value;

use crate::encoding::protobuf::reader::{put_bytes, put_varint};
use crate::encoding::{Codec, DecodeError, Encoding, Pointer, Rules};

/// A message under construction: what is put into it stands in that order.
#[derive(Debug, Clone, Default)]
pub(super) struct Message(Vec<u8>);

pub(super) fn message() -> Message {
    Message::default()
}

impl Message {
    pub(super) fn bytes(mut self, number: u32, bytes: impl AsRef<[u8]>) -> Self {
        put_bytes(&mut self.0, number, bytes.as_ref());
        self
    }

    pub(super) fn message(self, number: u32, inner: Self) -> Self {
        self.bytes(number, inner.0)
    }

    pub(super) fn varint(mut self, number: u32, value: i64) -> Self {
        put_varint(&mut self.0, u64::from(number) << 3);
        put_varint(&mut self.0, value as u64);
        self
    }

    pub(super) fn double(mut self, number: u32, value: f64) -> Self {
        put_varint(&mut self.0, u64::from(number) << 3 | 1);
        self.0.extend_from_slice(&value.to_bits().to_le_bytes());
        self
    }

    /// An entry of a map with text.
    pub(super) fn pair(self, number: u32, key: &str, value: &str) -> Self {
        self.message(number, message().bytes(1, key).bytes(2, value))
    }

    /// Whatever bytes.
    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// An object `b/a`, to which more can be put.
pub(super) fn object() -> Message {
    message().message(1, message().bytes(1, "a").bytes(3, "b"))
}

/// A message in an envelope.
pub(super) fn envelope(api_version: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let type_meta = message().bytes(1, api_version).bytes(2, kind);
    [b"k8s\0".as_slice(), &message().message(1, type_meta).bytes(2, body).done()].concat()
}

pub(super) fn codec(api_version: &str, kind: &str) -> Codec {
    with_rules(api_version, kind, Rules::default())
}

pub(super) fn with_rules(api_version: &str, kind: &str, rules: Rules) -> Codec {
    Codec::new(Encoding::Protobuf, api_version, kind, rules).unwrap()
}

/// Rules that drop these pointers.
pub(super) fn drops(pointers: &[&str]) -> Rules {
    pointers.iter().fold(Rules::default(), |rules, text| rules.drop(Pointer::parse(text).unwrap()).unwrap())
}

impl Codec {
    /// What is stored of an object.
    pub(super) fn store(&self, object: impl AsRef<[u8]>) -> Result<Vec<u8>, DecodeError> {
        let mut stored = Vec::new();
        self.ingest(object.as_ref(), &mut stored)?;
        Ok(stored)
    }

    /// What an object shows, once it is stored.
    pub(super) fn show(&self, object: Message) -> Value {
        self.view(&self.store(object.done()).unwrap()).unwrap()
    }

    /// Why an object is refused.
    pub(super) fn refuse(&self, object: Message) -> DecodeError {
        self.store(object.done()).unwrap_err()
    }
}
