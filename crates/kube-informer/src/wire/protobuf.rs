//! Protobuf that is read while it streams by, and the little of it that envelopes need.
//!
//! No schema: whoever calls knows the numbers.

use crate::encoding::protobuf::reader::{Reader, Value};
use crate::encoding::{DecodeError, Fault};

pub(super) use crate::encoding::protobuf::MAGIC;

/// How much is looked at of an object that is too large. Its name and namespace stand in front, and are short.
pub(super) const BEGINNING: usize = 1024;

/// A number that is read byte by byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Varint {
    value: u64,
    shift: u32,
}

impl Varint {
    pub(super) const NEW: Self = Self { value: 0, shift: 0 };

    /// Whether it has no byte yet.
    pub(super) fn is_new(self) -> bool {
        self == Self::NEW
    }

    /// Takes the next byte; the number once it is complete.
    pub(super) fn push(&mut self, byte: u8, offset: usize) -> Result<Option<u64>, DecodeError> {
        // The tenth byte has room for one bit.
        if self.shift == 63 && byte > 1 {
            return Err(DecodeError::new(Fault::NumberOutOfRange, offset, "at most 64 bits"));
        }
        self.value |= u64::from(byte & 0x7f) << self.shift;
        self.shift += 7;
        Ok((byte & 0x80 == 0).then_some(self.value))
    }
}

/// How a field's content is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Number,
    Bytes,
    /// So many bytes.
    Fixed(u64),
}

/// The number of a field and the shape of its content.
pub(super) fn tag(value: u64, offset: usize) -> Result<(u64, Shape), DecodeError> {
    let shape = match value & 7 {
        _ if value >> 3 == 0 || value >> 3 >= 1 << 29 => None,
        0 => Some(Shape::Number),
        1 => Some(Shape::Fixed(8)),
        2 => Some(Shape::Bytes),
        5 => Some(Shape::Fixed(4)),
        _ => None,
    };
    let wrong = || {
        let found = format!("the field {} of wire type {}", value >> 3, value & 7);
        DecodeError::new(Fault::Unexpected { found }, offset, "a field")
    };
    Ok((value >> 3, shape.ok_or_else(wrong)?))
}

/// The fields of a message, as far as they can be read; of one that is cut off, what there is.
pub(super) fn readable(bytes: &[u8]) -> impl Iterator<Item = (u32, Value<'_>)> {
    let mut reader = Reader::lenient(bytes);
    std::iter::from_fn(move || reader.next().ok().flatten().map(|entry| (entry.number, entry.value)))
}

/// What an envelope says of its document's type.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TypeMeta {
    pub(super) api_version: String,
    pub(super) kind: String,
}

impl TypeMeta {
    /// Reads what can be read.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut meta = Self::default();
        for field in readable(bytes) {
            match field {
                (1, Value::Bytes(value)) => meta.api_version = text(value),
                (2, Value::Bytes(value)) => meta.kind = text(value),
                _ => {}
            }
        }
        meta
    }
}

/// Text; what is not UTF-8 in it is shown as such.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_more_than_64_bits_is_refused() {
        let read = |bytes: &[u8]| {
            let mut varint = Varint::NEW;
            bytes.iter().find_map(|byte| varint.push(*byte, 0).transpose())
        };
        assert_eq!(read(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), Some(Ok(u64::MAX)));
        assert!(read(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02").is_some_and(|number| number.is_err()));
        assert_eq!(read(b"\xff\xff"), None);
    }

    #[test]
    fn a_tag_that_no_message_has_is_refused() {
        assert_eq!(tag(0x12, 0), Ok((2, Shape::Bytes)));
        for value in [0x0b, 0x0c, 0x0e, 0x02, 1 << 32] {
            assert!(tag(value, 7).is_err_and(|error| error.offset == 7), "{value:x}");
        }
    }
}
