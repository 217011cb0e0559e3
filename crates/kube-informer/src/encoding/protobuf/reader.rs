//! Protobuf's wire format: tags, varints, lengths.
//!
//! Reads one message's entries in the order of the bytes. Never reads past the end, never panics; an
//! entry that is skipped costs its length prefix.

use crate::encoding::{DecodeError, Fault};

/// What stands on the wire behind a tag.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

/// One tag with its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) number: u32,
    pub(crate) value: Value<'a>,
    /// Where its tag begins, in the bytes of its message.
    pub(crate) start: usize,
    /// Where the next entry begins.
    pub(crate) end: usize,
}

/// A cursor over the bytes of one message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether content that is cut off is given as far as it goes.
    lenient: bool,
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, lenient: false }
    }

    /// For what is better read in part than not at all: content that is cut off is given as far as it goes.
    pub(crate) fn lenient(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, lenient: true }
    }

    /// The bytes that it reads.
    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether everything has been read.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// A number of eight bytes.
    pub(crate) fn fixed64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next entry; `None` at the end. Offsets of errors count from the start of this message.
    // Where it is inlined, the usual entry never passes through memory as a `Result` with room for an error.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'a>>, DecodeError> {
        match self.usual() {
            Some(entry) => Ok(Some(entry)),
            None if self.is_empty() => Ok(None),
            None => self.any(),
        }
    }

    /// Goes back to where an entry begins that was read: it is the next again.
    #[inline]
    pub(super) fn back_to(&mut self, start: usize) {
        self.at = start;
    }

    /// Whether there is another entry, and it has this number. Where that cannot be read, there is none.
    #[inline]
    pub(super) fn continues(&self, number: u32) -> bool {
        match self.short(self.at) {
            Some((tag, _)) => tag >> 3 == number,
            None => matches!({ *self }.any(), Ok(Some(entry)) if entry.number == number),
        }
    }

    /// The next entry, if its tag and length are one or two bytes each; otherwise nothing is read.
    #[inline(always)]
    pub(super) fn usual(&mut self) -> Option<Entry<'a>> {
        let start = self.at;
        let (tag, at) = self.short(start)?;
        let number = tag >> 3;
        if number == 0 {
            return None;
        }
        let (value, end) = match tag & 7 {
            0 => match self.short(at) {
                Some((value, end)) => (Value::Varint(u64::from(value)), end),
                None => {
                    let (value, end) = self.long(at)?;
                    (Value::Varint(value), end)
                }
            },
            2 => {
                let (length, content) = self.short(at)?;
                let bytes = self.bytes.get(content..)?.get(..length as usize)?;
                (Value::Bytes(bytes), content + bytes.len())
            }
            _ => return None,
        };
        self.at = end;
        Some(Entry { number, value, start, end })
    }

    /// The next tag, if it is one or two bytes, and where its content begins. Nothing is read.
    #[inline(always)]
    pub(super) fn peek_short(&self) -> Option<(u32, usize)> {
        self.short(self.at)
    }

    /// Reads up to the end of content with a length of one or two bytes, which begins at a place. If there is none, nothing is
    /// read, and it says so.
    #[inline(always)]
    pub(super) fn pass_bytes(&mut self, at: usize) -> bool {
        let Some((length, content)) = self.short(at) else { return false };
        let end = content + length as usize;
        let is_there = end <= self.bytes.len();
        self.at = if is_there { end } else { self.at };
        is_there
    }

    /// The same of a number of one or two bytes.
    #[inline(always)]
    pub(super) fn pass_short(&mut self, at: usize) -> bool {
        let Some((_, end)) = self.short(at) else { return false };
        self.at = end;
        true
    }

    /// A number of one or two bytes at a place, and what comes after it.
    #[inline(always)]
    fn short(&self, at: usize) -> Option<(u32, usize)> {
        let low = u32::from(*self.bytes.get(at)?);
        if low < 0x80 {
            return Some((low, at + 1));
        }
        let high = u32::from(*self.bytes.get(at + 1)?);
        (high < 0x80).then_some((low & 0x7f | high << 7, at + 2))
    }

    /// The next entry, whatever it is.
    #[inline(never)]
    pub(super) fn any(&mut self) -> Result<Option<Entry<'a>>, DecodeError> {
        if self.is_empty() {
            return Ok(None);
        }
        let start = self.at;
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).unwrap_or(u32::MAX);
        if number == 0 || number > MAX_NUMBER {
            return Err(unexpected(start, format!("field number {}", tag >> 3), "a field number"));
        }
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(self.fixed64()?),
            2 => {
                let at = self.at;
                let length = self.varint()?;
                Value::Bytes(self.take(length, at)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            // Groups are not in Kubernetes' messages; 6 and 7 are not in protobuf.
            other => return Err(unexpected(start, format!("wire type {other}"), "wire type 0, 1, 2 or 5")),
        };
        Ok(Some(Entry { number, value, start, end: self.at }))
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, DecodeError> {
        // Most tags, lengths and numbers are one byte.
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, DecodeError> {
        if let Some((value, end)) = self.long(self.at) {
            self.at = end;
            return Ok(value);
        }
        if self.bytes.len() - self.at < 10 {
            return Err(DecodeError::new(Fault::Truncated, self.bytes.len(), "the rest of a number"));
        }
        Err(unexpected(self.at, "a number of more than 64 bits".to_owned(), "a varint"))
    }

    /// A number at a place, and what comes after it.
    #[inline(never)]
    fn long(&self, at: usize) -> Option<(u64, usize)> {
        let mut value = 0;
        for (index, &byte) in self.bytes.get(at..)?.iter().take(10).enumerate() {
            // The tenth byte holds the 64th bit and nothing else.
            if index == 9 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                return Some((value, at + index + 1));
            }
        }
        None
    }

    #[inline]
    fn take(&mut self, length: u64, at: usize) -> Result<&'a [u8], DecodeError> {
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        match end.and_then(|end| Some((end, self.bytes.get(self.at..end)?))) {
            Some((end, bytes)) => {
                self.at = end;
                Ok(bytes)
            }
            None if self.lenient => {
                let rest = self.bytes.get(self.at..).unwrap_or_default();
                self.at = self.bytes.len();
                Ok(rest)
            }
            None => {
                let left = self.bytes.len() - self.at;
                let expected = format!("{length} bytes, and there are {left}");
                Err(DecodeError::new(Fault::Truncated, at, expected))
            }
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let at = self.at;
        let bytes = self.take(N as u64, at)?;
        bytes.try_into().map_err(|_| DecodeError::new(Fault::Truncated, at, "a fixed-size number"))
    }
}

/// Protobuf's own limit.
const MAX_NUMBER: u32 = (1 << 29) - 1;

fn unexpected(offset: usize, found: String, expected: &'static str) -> DecodeError {
    DecodeError::new(Fault::Unexpected { found }, offset, expected)
}

/// Appends a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes a varint takes.
pub(crate) fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Appends a length-delimited entry.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<(u32, Value<'_>)>, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut out = Vec::new();
        while let Some(entry) = reader.next()? {
            out.push((entry.number, entry.value));
        }
        Ok(out)
    }

    #[test]
    fn each_wire_type_is_read() {
        let mut bytes = vec![0x08, 0x96, 0x01, 0x11];
        bytes.extend(7u64.to_le_bytes());
        bytes.push(0x1d);
        bytes.extend(9u32.to_le_bytes());
        put_bytes(&mut bytes, 4, b"abc");
        let expected = vec![
            (1, Value::Varint(150)),
            (2, Value::Fixed64(7)),
            (3, Value::Fixed32(9)),
            (4, Value::Bytes(b"abc")),
        ];
        assert_eq!(all(&bytes).unwrap(), expected);
    }

    #[test]
    fn what_is_cut_short_is_an_error_at_every_byte() {
        let mut bytes = vec![0x08, 0x96, 0x01];
        put_bytes(&mut bytes, 4000, b"abc");
        for end in 1..bytes.len() {
            // Three bytes are a whole entry.
            assert_eq!(all(&bytes[..end]).is_ok(), end == 3, "{end}");
        }
    }

    #[test]
    fn of_content_that_is_cut_the_lenient_reader_gives_what_there_is() {
        let mut reader = Reader::lenient(b"\x08\x01\x12\x09hi");
        assert_eq!(reader.next().unwrap().unwrap().value, Value::Varint(1));
        assert_eq!(reader.next().unwrap().unwrap().value, Value::Bytes(b"hi"));
        assert!(reader.next().unwrap().is_none());
        assert!(Reader::lenient(b"\x1d\0\0").next().is_err());
    }

    proptest! {
        #[test]
        fn the_short_way_reads_what_the_long_way_reads(
            parts in vec(
                prop_oneof![
                    vec(any::<u8>(), 1..4),
                    (1u32..3_000, vec(any::<u8>(), 0..300)).prop_map(|(number, content)| {
                        let mut bytes = Vec::new();
                        put_bytes(&mut bytes, number, &content);
                        bytes
                    }),
                    (1u32..3_000, any::<u64>(), 0..64u32).prop_map(|(number, value, shift)| {
                        let mut bytes = Vec::new();
                        put_varint(&mut bytes, u64::from(number) << 3);
                        put_varint(&mut bytes, value >> shift);
                        bytes
                    }),
                ],
                0..6,
            ),
            cut in 0..8usize,
        ) {
            let mut bytes = parts.concat();
            bytes.truncate(bytes.len().saturating_sub(cut));
            let (mut one, mut two) = (Reader::new(&bytes), Reader::new(&bytes));
            loop {
                let (short, long) = (one.next(), two.any());
                prop_assert_eq!(format!("{short:?}"), format!("{long:?}"));
                prop_assert_eq!(one.at, two.at);
                if !matches!(short, Ok(Some(_))) {
                    break;
                }
            }
        }
    }

    #[test]
    fn garbage_is_an_error() {
        for (bytes, says) in [
            (&[0x0b][..], "wire type 3"),
            (&[0x0c], "wire type 4"),
            (&[0x0f], "wire type 7"),
            (&[0x00, 0x00], "field number 0"),
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], "more than 64 bits"),
            (&[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01], "more than 64 bits"),
            (&[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], "the data ends"),
        ] {
            let error = all(bytes).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn varints_are_written_as_they_are_read() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value));
            assert_eq!(Reader::new(&out).varint().unwrap(), value);
        }
    }
}
