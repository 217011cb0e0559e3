//! A message in the order in which Go writes it: ascending, what is repeated together, what is not
//! repeated once.
//!
//! Servers send nothing else; whatever stands between may. This is the slow path, taken for bytes that
//! [`super::check`] found in another order, so that everything behind it sees only one order.

use std::collections::BTreeMap;

use super::MAX_DEPTH;
use super::reader::{self, Entry, Reader, Value as Wire};
use crate::encoding::schema::{self, Kind, Message, MessageId, Shape};
use crate::encoding::{DecodeError, Fault};

/// The message with all its entries in order, and those of all messages below it.
pub(crate) fn canonical(kind: MessageId, bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    message(schema::message(kind), bytes, 0)
}

fn message(table: &'static Message, bytes: &[u8], depth: usize) -> Result<Vec<u8>, DecodeError> {
    let slot = |number: u32| {
        let field = table.field_by_number(number);
        field.map(|field| (field.kind, field.shape))
    };
    rewrite(bytes, depth, slot)
}

/// Sorts the entries of a message, of which `slot` tells what the fields are.
fn rewrite(
    bytes: &[u8],
    depth: usize,
    slot: impl Fn(u32) -> Option<(Kind, Shape)>,
) -> Result<Vec<u8>, DecodeError> {
    if depth >= MAX_DEPTH {
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
        if matches!(shape, Shape::List | Shape::Map) {
            for entry in &entries {
                put(&mut out, bytes, entry, kind, shape, depth)?;
            }
            continue;
        }
        let Some(last) = entries.last() else { continue };
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
            put(&mut out, bytes, &joined, kind, shape, depth)?;
        } else {
            put(&mut out, bytes, last, kind, shape, depth)?;
        }
    }
    Ok(out)
}

/// Whether Go reads a second occurrence into what the first one left.
fn merges(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Message(_)
            | Kind::SchemaOrBool(_)
            | Kind::SchemaOrArray(_)
            | Kind::SchemaOrStringArray(_)
            | Kind::IntOrString
            | Kind::Strings
            | Kind::Raw
    )
}

/// Appends one entry, with what is inside of it in order.
fn put(
    out: &mut Vec<u8>,
    whole: &[u8],
    entry: &Entry<'_>,
    kind: Kind,
    shape: Shape,
    depth: usize,
) -> Result<(), DecodeError> {
    let Wire::Bytes(inner) = entry.value else {
        out.extend_from_slice(whole.get(entry.start..entry.end).unwrap_or_default());
        return Ok(());
    };
    let inner = match (shape, kind) {
        (Shape::Map, kind) => rewrite(inner, depth + 1, |number| match number {
            1 => Some((Kind::String, Shape::One)),
            2 => Some((kind, Shape::One)),
            _ => None,
        })?,
        (_, Kind::Message(id)) => message(schema::message(id), inner, depth + 1)?,
        (_, Kind::SchemaOrBool(id)) => rewrite(inner, depth + 1, |number| match number {
            1 => Some((Kind::Bool, Shape::One)),
            2 => Some((Kind::Message(id), Shape::Pointer)),
            _ => None,
        })?,
        (_, Kind::SchemaOrArray(id) | Kind::SchemaOrStringArray(id)) => {
            let item = if matches!(kind, Kind::SchemaOrArray(_)) { Kind::Message(id) } else { Kind::String };
            rewrite(inner, depth + 1, |number| match number {
                1 => Some((Kind::Message(id), Shape::Pointer)),
                2 => Some((item, Shape::List)),
                _ => None,
            })?
        }
        _ => inner.to_vec(),
    };
    reader::put_bytes(out, entry.number, &inner);
    Ok(())
}
