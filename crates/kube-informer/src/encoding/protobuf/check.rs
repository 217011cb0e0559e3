//! Whether a message is what the schema table says, all the way down: checked once, when it arrives.
//!
//! What passes is shown by every view without an error of the bytes' making; what was dropped is not
//! looked into. Nothing is decoded: strings are not read, only jumped over.

use serde::de::IgnoredAny;

use super::plan::Node;
use super::reader::{Entry, Reader, Value as Wire};
use super::value::{is_number, packed_number};
use super::{MAGIC, MAX_DEPTH, document, text};
use crate::encoding::schema::{self, Kind, Message, MessageId, Shape};
use crate::encoding::{DecodeError, Fault};

/// In which order the entries of a message and of all below it stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Order {
    /// As Go writes them: ascending, what is repeated together, what is not repeated once.
    Canonical,
    /// Otherwise. The rest of the bytes has not been checked.
    Other,
}

/// Checks one message of a kind. Offsets of errors count from the start of `bytes`.
pub(crate) fn check(kind: MessageId, bytes: &[u8], plan: Option<&Node>) -> Result<Order, DecodeError> {
    message(schema::message(kind), bytes, plan, 0)
}

/// Puts an error of a part at its place in the whole.
fn within(whole: &[u8], part: &[u8]) -> impl FnOnce(DecodeError) -> DecodeError {
    let offset = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    move |mut error| {
        error.offset += offset;
        error
    }
}

fn message(
    table: &'static Message,
    bytes: &[u8],
    plan: Option<&Node>,
    depth: usize,
) -> Result<Order, DecodeError> {
    if depth >= MAX_DEPTH {
        return Err(DecodeError::new(Fault::TooDeep { limit: MAX_DEPTH }, 0, "fewer levels"));
    }
    let mut reader = Reader::new(bytes);
    let mut fields = table.fields().iter();
    let mut current = fields.next();
    let mut last = 0;
    while let Some(entry) = reader.next()? {
        if entry.number < last {
            return Ok(Order::Other);
        }
        while current.is_some_and(|field| u32::from(field.number) < entry.number) {
            current = fields.next();
        }
        let Some(field) = current.filter(|field| u32::from(field.number) == entry.number) else {
            let fault = Fault::UnknownField { message: table.to_string(), number: entry.number };
            return Err(DecodeError::new(fault, entry.start, "a field of the schema table"));
        };
        let repeated = matches!(field.shape, Shape::List | Shape::Map);
        if entry.number == last && !repeated {
            return Ok(Order::Other);
        }
        last = entry.number;
        if plan.is_some_and(|plan| plan.drops(entry.number)) {
            continue;
        }
        let below = plan.and_then(|plan| plan.below(entry.number));
        let order = match (field.shape, entry.value) {
            (Shape::Map, Wire::Bytes(pair)) => {
                map_entry(field.kind, pair, depth).map_err(within(bytes, pair))?
            }
            (Shape::List, Wire::Bytes(numbers)) if is_number(field.kind) => {
                let mut packed = Reader::new(numbers);
                while packed_number(field.kind, &mut packed).map_err(within(bytes, numbers))?.is_some() {}
                Order::Canonical
            }
            // By far the most, and nothing to look into.
            (_, Wire::Bytes(_)) if matches!(field.kind, Kind::String | Kind::Bytes) => Order::Canonical,
            _ => value(field.kind, &entry, bytes, below, depth)?,
        };
        if order == Order::Other {
            return Ok(order);
        }
    }
    Ok(Order::Canonical)
}

fn map_entry(kind: Kind, pair: &[u8], depth: usize) -> Result<Order, DecodeError> {
    let mut reader = Reader::new(pair);
    let mut last = 0;
    while let Some(entry) = reader.next()? {
        if entry.number <= last {
            return Ok(Order::Other);
        }
        last = entry.number;
        let order = match entry.number {
            1 => value(Kind::String, &entry, pair, None, depth)?,
            2 => value(kind, &entry, pair, None, depth)?,
            number => {
                let fault = Fault::UnknownField { message: "an entry of a map".to_owned(), number };
                return Err(DecodeError::new(fault, entry.start, "field 1 or 2"));
            }
        };
        if order == Order::Other {
            return Ok(order);
        }
    }
    Ok(Order::Canonical)
}

fn value(
    kind: Kind,
    entry: &Entry<'_>,
    whole: &[u8],
    plan: Option<&Node>,
    depth: usize,
) -> Result<Order, DecodeError> {
    let fits = match (kind, entry.value) {
        (Kind::String | Kind::Bytes, Wire::Bytes(_)) => true,
        (Kind::Message(id), Wire::Bytes(bytes)) => {
            return message(schema::message(id), bytes, plan, depth + 1).map_err(within(whole, bytes));
        }
        (Kind::Double, Wire::Fixed64(bits)) => f64::from_bits(bits).is_finite(),
        (Kind::Double, _) => false,
        (kind, Wire::Varint(_)) => is_number(kind),
        (kind, Wire::Bytes(bytes)) if !is_number(kind) => {
            return special(kind, bytes, depth).map_err(within(whole, bytes));
        }
        _ => false,
    };
    if fits {
        return Ok(Order::Canonical);
    }
    let fault = Fault::Unexpected { found: format!("{:?}", entry.value) };
    Err(DecodeError::new(fault, entry.start, format!("a value of kind {kind:?}")))
}

/// Messages with rules of their own.
fn special(kind: Kind, bytes: &[u8], depth: usize) -> Result<Order, DecodeError> {
    match kind {
        Kind::Time | Kind::MicroTime => {
            text::timestamp(bytes)?;
            return Ok(Order::Canonical);
        }
        Kind::SchemaOrBool(id) => return parts(bytes, depth, &[Kind::Bool, Kind::Message(id)]),
        Kind::SchemaOrArray(id) => return parts(bytes, depth, &[Kind::Message(id), Kind::Message(id)]),
        Kind::SchemaOrStringArray(id) => return parts(bytes, depth, &[Kind::Message(id), Kind::String]),
        Kind::Strings | Kind::Quantity => return parts(bytes, depth, &[Kind::String]),
        Kind::IntOrString => {}
        Kind::Raw => {}
        _ => return Ok(Order::Canonical),
    }
    let mut reader = Reader::new(bytes);
    while let Some(entry) = reader.next()? {
        match (kind, entry.number, entry.value) {
            (Kind::IntOrString, 1, Wire::Varint(0 | 1)) | (Kind::IntOrString, 2, Wire::Varint(_)) => {}
            (Kind::IntOrString, 3, Wire::Bytes(_)) | (Kind::Raw, 1, Wire::Bytes([])) => {}
            (Kind::Raw, 1, Wire::Bytes(raw)) => raw_document(raw, depth).map_err(within(bytes, raw))?,
            (kind, number, value) => {
                let fault = Fault::Unexpected { found: format!("field {number}: {value:?}") };
                return Err(DecodeError::new(fault, entry.start, format!("a {kind:?}")));
            }
        }
    }
    Ok(Order::Canonical)
}

/// A message of few fields, of which the last may be repeated.
fn parts(bytes: &[u8], depth: usize, kinds: &[Kind]) -> Result<Order, DecodeError> {
    let mut reader = Reader::new(bytes);
    let mut last = 0;
    while let Some(entry) = reader.next()? {
        let Some(&kind) = kinds.get(entry.number as usize - 1) else {
            let fault = Fault::UnknownField { message: "a special type".to_owned(), number: entry.number };
            return Err(DecodeError::new(fault, entry.start, format!("at most field {}", kinds.len())));
        };
        if entry.number < last || (entry.number == last && entry.number as usize != kinds.len()) {
            return Ok(Order::Other);
        }
        last = entry.number;
        let order = value(kind, &entry, bytes, None, depth)?;
        if order == Order::Other {
            return Ok(order);
        }
    }
    Ok(Order::Canonical)
}

/// A document inside of a document: JSON as it is, or protobuf in an envelope of its own.
fn raw_document(raw: &[u8], depth: usize) -> Result<(), DecodeError> {
    if raw.starts_with(MAGIC) {
        let (root, body) = document(raw)?;
        return match message(schema::message(root.message), body, None, depth + 1)
            .map_err(within(raw, body))?
        {
            Order::Canonical => Ok(()),
            Order::Other => {
                let fault = Fault::Unexpected { found: "fields out of order".to_owned() };
                Err(DecodeError::new(fault, 0, "an embedded document as Go writes it"))
            }
        };
    }
    match serde_json::from_slice::<IgnoredAny>(raw) {
        Ok(_) => Ok(()),
        Err(error) => {
            // Embedded JSON of the server stands in one line.
            let offset = if error.line() == 1 { error.column().saturating_sub(1) } else { 0 };
            let fault = Fault::Unexpected { found: error.to_string() };
            Err(DecodeError::new(fault, offset, "embedded JSON"))
        }
    }
}
