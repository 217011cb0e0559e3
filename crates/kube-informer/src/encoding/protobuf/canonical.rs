//! A message in the order in which Go writes it: ascending, what is repeated together, what is not
//! repeated once, maps by key and each key once.
//!
//! Servers send nothing else; whatever stands between may. This is the slow path, taken for bytes that
//! [`super::check`] found in another order, so that everything behind it sees only one order.

use std::collections::BTreeMap;

use super::MAX_DEPTH;
use super::reader::{self, Entry, Reader, Value as Wire};
use super::value::{is_number, part};
use crate::encoding::schema::{self, Kind, Message, MessageId, Shape};
use crate::encoding::{DecodeError, Fault};

/// The message with all its entries in order, and those of all messages below it.
pub(crate) fn canonical(kind: MessageId, bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    message(schema::message(kind), bytes, 1)
}

fn message(table: &'static Message, bytes: &[u8], depth: usize) -> Result<Vec<u8>, DecodeError> {
    let slot = |number: u32| {
        let field = table.field_by_number(number);
        field.map(|field| (field.kind, field.shape))
    };
    rewrite(bytes, depth, slot)
}

/// Sorts the entries of a message, of which `slot` tells what the fields are.
///
/// `depth` counts messages alone, but for those that are flat in JSON: never more than `check` counts.
fn rewrite(
    bytes: &[u8],
    depth: usize,
    slot: impl Fn(u32) -> Option<(Kind, Shape)>,
) -> Result<Vec<u8>, DecodeError> {
    if depth > MAX_DEPTH {
        return Err(DecodeError::new(Fault::TooDeep { limit: MAX_DEPTH }, 0, "fewer levels"));
    }
    let mut by_number: BTreeMap<u32, Vec<Entry<'_>>> = BTreeMap::new();
    let mut reader = Reader::new(bytes);
    while let Some(entry) = reader.next()? {
        by_number.entry(entry.number).or_default().push(entry);
    }
    let mut out = Vec::with_capacity(bytes.len());
    for (number, entries) in by_number {
        let Some((kind, shape)) = slot(number) else {
            // Left for `check` to report.
            for entry in &entries {
                out.extend_from_slice(bytes.get(entry.start..entry.end).unwrap_or_default());
            }
            continue;
        };
        if shape == Shape::Map {
            put_map(&mut out, bytes, &entries, kind, depth)?;
            continue;
        }
        if shape == Shape::List {
            // An entry for several numbers that holds none is nothing to Go.
            let empty = |entry: &Entry<'_>| is_number(kind) && entry.value == Wire::Bytes(&[]);
            for entry in entries.iter().filter(|entry| !empty(entry)) {
                put(&mut out, bytes, entry, kind, depth)?;
            }
            continue;
        }
        let Some(last) = entries.last() else { continue };
        let depth = if shape == Shape::Embedded { depth - 1 } else { depth };
        if entries.len() > 1 && merges(kind) {
            // Of a message that stands several times, later fields win over earlier ones: exactly what
            // its parts say when they are read one after the other.
            let mut joined = Vec::new();
            for entry in &entries {
                if let Wire::Bytes(part) = entry.value {
                    joined.extend_from_slice(part);
                }
            }
            let joined = Entry { value: Wire::Bytes(&joined), ..*last };
            put(&mut out, bytes, &joined, kind, depth)?;
        } else {
            put(&mut out, bytes, last, kind, depth)?;
        }
    }
    Ok(out)
}

/// Whether Go reads a second occurrence into what the first one left.
fn merges(kind: Kind) -> bool {
    match kind {
        // Times are read into a new one.
        Kind::Time | Kind::MicroTime => false,
        Kind::Bool | Kind::Int32 | Kind::Int64 | Kind::Double | Kind::String | Kind::Bytes => false,
        _ => true,
    }
}

/// Appends one entry, with what is inside of it in order.
fn put(
    out: &mut Vec<u8>,
    whole: &[u8],
    entry: &Entry<'_>,
    kind: Kind,
    depth: usize,
) -> Result<(), DecodeError> {
    let inner = match (kind, entry.value) {
        (Kind::Message(id), Wire::Bytes(inner)) => message(schema::message(id), inner, depth + 1)?,
        (kind, Wire::Bytes(inner)) if merges(kind) || matches!(kind, Kind::Time | Kind::MicroTime) => {
            rewrite(inner, depth, |number| part(kind, number))?
        }
        _ => {
            out.extend_from_slice(whole.get(entry.start..entry.end).unwrap_or_default());
            return Ok(());
        }
    };
    reader::put_bytes(out, entry.number, &inner);
    Ok(())
}

/// Appends the entries of a map by key; of those with one key, the last.
fn put_map(
    out: &mut Vec<u8>,
    whole: &[u8],
    entries: &[Entry<'_>],
    kind: Kind,
    depth: usize,
) -> Result<(), DecodeError> {
    let mut by_key: BTreeMap<&[u8], (u32, Vec<u8>)> = BTreeMap::new();
    for entry in entries {
        match entry.value {
            Wire::Bytes(bytes) => {
                let (key, pair) = pair(bytes, kind, depth)?;
                by_key.insert(key, (entry.number, pair));
            }
            // Left for `check` to report.
            _ => out.extend_from_slice(whole.get(entry.start..entry.end).unwrap_or_default()),
        }
    }
    for (number, pair) in by_key.values() {
        reader::put_bytes(out, *number, pair);
    }
    Ok(())
}

/// An entry of a map, and its key. Of several values Go takes the last, and merges none of them.
fn pair(bytes: &[u8], kind: Kind, depth: usize) -> Result<(&[u8], Vec<u8>), DecodeError> {
    let (mut key, mut value) = (None, None);
    let mut unknown = Vec::new();
    let mut reader = Reader::new(bytes);
    while let Some(entry) = reader.next()? {
        match entry.number {
            1 => key = Some(entry),
            2 => value = Some(entry),
            _ => unknown.extend_from_slice(bytes.get(entry.start..entry.end).unwrap_or_default()),
        }
    }
    let mut out = Vec::with_capacity(bytes.len());
    if let Some(key) = key {
        put(&mut out, bytes, &key, Kind::String, depth)?;
    }
    if let Some(value) = value {
        put(&mut out, bytes, &value, kind, depth)?;
    }
    out.extend_from_slice(&unknown);
    let key = match key.map(|key| key.value) {
        Some(Wire::Bytes(key)) => key,
        _ => &[],
    };
    Ok((key, out))
}
