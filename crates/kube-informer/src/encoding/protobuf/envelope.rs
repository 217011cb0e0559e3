//! The envelope of a document: four magic bytes, then its type and its bytes.

use super::reader::{Reader, Value as Wire};
use super::text;
use crate::encoding::{DecodeError, Fault};

/// What every document begins with.
pub(crate) const MAGIC: &[u8] = b"k8s\0";

/// A document: its type, and its message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Envelope<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) body: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Offsets of errors count from the magic bytes on.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let Some(unknown) = bytes.strip_prefix(MAGIC) else {
            return Err(DecodeError::new(Fault::WrongEnvelope, 0, "k8s\\0"));
        };
        let wrong = |offset, expected: &'static str| {
            DecodeError::new(Fault::WrongEnvelope, MAGIC.len() + offset, expected)
        };
        let shift = |mut error: DecodeError| {
            error.offset += MAGIC.len();
            error
        };
        // Where there is no body, it is empty, and at a place in these bytes all the same: offsets of errors
        // are worked out from it.
        let end = unknown.get(unknown.len()..).unwrap_or_default();
        let mut out = Self { api_version: "", kind: "", body: end };
        let mut reader = Reader::new(unknown);
        while let Some(entry) = reader.next().map_err(shift)? {
            match (entry.number, entry.value) {
                (1, Wire::Bytes(bytes)) => {
                    let text =
                        |bytes| std::str::from_utf8(bytes).map_err(|_| wrong(entry.start, "a type in UTF-8"));
                    let mut reader = Reader::new(bytes);
                    while let Some(field) = reader.next().map_err(shift)? {
                        match (field.number, field.value) {
                            (1, Wire::Bytes(bytes)) => out.api_version = text(bytes)?,
                            (2, Wire::Bytes(bytes)) => out.kind = text(bytes)?,
                            _ => {}
                        }
                    }
                }
                (2, Wire::Bytes(bytes)) => out.body = bytes,
                (3, Wire::Bytes([])) => {}
                (3, _) => return Err(wrong(entry.start, "a message that is not compressed")),
                (4, Wire::Bytes([] | b"application/vnd.kubernetes.protobuf")) => {}
                (4, _) => return Err(wrong(entry.start, "a message in protobuf")),
                _ => return Err(wrong(entry.start, "fields 1 to 4")),
            }
        }
        if out.kind.is_empty() || out.api_version.is_empty() {
            return Err(wrong(0, "a type in field 1"));
        }
        Ok(out)
    }

    /// What the `Status` in it says, if it is one.
    pub(crate) fn status_message(&self) -> Option<String> {
        if (self.api_version, self.kind) != ("v1", "Status") {
            return None;
        }
        let mut message = String::new();
        let mut reader = Reader::new(self.body);
        while let Ok(Some(entry)) = reader.next() {
            if let (3, Wire::Bytes(bytes)) = (entry.number, entry.value) {
                message = text::string(bytes).into_owned();
            }
        }
        Some(message)
    }
}
