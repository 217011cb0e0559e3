//! The little of the protobuf wire format that faults need.
//!
//! Reads tag, varint and length-delimited fields and writes the latter two.
//! It knows no schema; whoever calls knows the field numbers. Malformed input
//! ends the iteration: it never panics and never reads past the end.

/// What the kubernetes envelope of a protobuf document starts with.
pub(crate) const MAGIC: &[u8] = b"k8s\0";

/// One field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    /// A number: integers, booleans, enumerations.
    Number(u64),
    /// Bytes: strings, nested messages, packed numbers.
    Bytes(&'a [u8]),
    /// A fixed-width number, which no fault looks at.
    Fixed,
}

/// Reads a varint: its value and how many bytes it took; `None` while it is
/// incomplete.
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// The fields of a message, in the order of the bytes.
pub(crate) fn fields(mut bytes: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        let (tag, used) = varint(bytes)?;
        bytes = &bytes[used..];
        let field = match tag & 7 {
            0 => {
                let (value, used) = varint(bytes)?;
                bytes = &bytes[used..];
                Field::Number(value)
            }
            1 | 5 => {
                bytes = bytes.get(if tag & 7 == 1 { 8 } else { 4 }..)?;
                Field::Fixed
            }
            2 => {
                let (length, used) = varint(bytes)?;
                let end = usize::try_from(length).ok()?.checked_add(used)?;
                let content = bytes.get(used..end)?;
                bytes = &bytes[end..];
                Field::Bytes(content)
            }
            _ => return None,
        };
        Some((tag >> 3, field))
    })
}

/// The content of the first length-delimited field with this number.
pub(crate) fn find(message: &[u8], number: u64) -> Option<&[u8]> {
    fields(message).find_map(|field| match field {
        (found, Field::Bytes(content)) if found == number => Some(content),
        _ => None,
    })
}

/// Follows length-delimited fields down into nested messages.
pub(crate) fn descend<'a>(message: &'a [u8], path: &[u64]) -> Option<&'a [u8]> {
    path.iter().try_fold(message, |message, number| find(message, *number))
}

/// Appends a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number field.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(out, number << 3);
    put_varint(out, value);
}

/// Appends a length-delimited field.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u64, content: &[u8]) {
    put_varint(out, number << 3 | 2);
    put_varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// Puts a message into the kubernetes envelope.
pub(crate) fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut meta = Vec::new();
    put_bytes(&mut meta, 1, api_version.as_bytes());
    put_bytes(&mut meta, 2, kind.as_bytes());
    let mut out = MAGIC.to_vec();
    put_bytes(&mut out, 1, &meta);
    put_bytes(&mut out, 2, message);
    put_bytes(&mut out, 3, b"");
    put_bytes(&mut out, 4, b"");
    out
}

/// The message inside a kubernetes envelope.
pub(crate) fn unwrap(document: &[u8]) -> Option<&[u8]> {
    find(document.strip_prefix(MAGIC)?, 2)
}
