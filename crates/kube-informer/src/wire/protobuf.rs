//! The little of the protobuf wire format that envelopes need.
//!
//! No schema: whoever calls knows the numbers. Never reads past the end.

use crate::encoding::{DecodeError, Fault};

/// What a document in the Kubernetes envelope begins with.
pub(super) const MAGIC: &[u8] = b"k8s\0";

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

/// One field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field<'a> {
    pub(super) number: u64,
    pub(super) content: Content<'a>,
    /// Where in the message the content begins.
    pub(super) at: usize,
}

/// A field's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content<'a> {
    Number(u64),
    /// Strings, nested messages.
    Bytes(&'a [u8]),
    /// A fixed-width number, which no envelope has.
    Fixed,
}

/// The fields of a message that is the whole slice, in the order of the bytes. Ends after the first error.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether content that is cut off is given as far as it goes.
    lenient: bool,
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, lenient: false }
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut varint = Varint::NEW;
        loop {
            let Some(byte) = self.bytes.get(self.at) else {
                return Err(DecodeError::new(Fault::Truncated, self.at, "the rest of a number"));
            };
            let number = varint.push(*byte, self.at)?;
            self.at += 1;
            if let Some(number) = number {
                return Ok(number);
            }
        }
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], DecodeError> {
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        let content = match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(content) => content,
            None if self.lenient => self.bytes.get(self.at..).unwrap_or_default(),
            None => {
                let expected = format!("{length} bytes of a field");
                return Err(DecodeError::new(Fault::Truncated, self.bytes.len(), expected));
            }
        };
        self.at += content.len();
        Ok(content)
    }

    fn field(&mut self) -> Result<Field<'a>, DecodeError> {
        let start = self.at;
        let (number, shape) = tag(self.varint()?, start)?;
        let length = match shape {
            Shape::Number => 0,
            Shape::Fixed(length) => length,
            Shape::Bytes => self.varint()?,
        };
        let at = self.at;
        let content = match shape {
            Shape::Number => Content::Number(self.varint()?),
            Shape::Fixed(_) => self.take(length).map(|_| Content::Fixed)?,
            Shape::Bytes => Content::Bytes(self.take(length)?),
        };
        Ok(Field { number, content, at })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.bytes.len();
        }
        Some(field)
    }
}

/// The fields of a message, as far as they can be read; of one that is cut off, what there is.
pub(super) fn readable(bytes: &[u8]) -> impl Iterator<Item = (u64, Content<'_>)> {
    let fields = Fields { lenient: true, ..Fields::new(bytes) };
    fields.map_while(Result::ok).map(|field| (field.number, field.content))
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
                (1, Content::Bytes(value)) => meta.api_version = text(value),
                (2, Content::Bytes(value)) => meta.kind = text(value),
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
mod tests;
