//! Whether a message is what the schema table says, all the way down: checked once, when it arrives.
//!
//! What passes is shown by every view without an error of the bytes' making; what was dropped is not
//! looked into. Nothing is decoded: strings are not read, only jumped over.

use super::plan::Node;
use super::reader::{Entry, Reader, Value as Wire};
use super::value::{is_number, packed_number, part};
use super::{MAGIC, MAX_DEPTH, document};
use crate::encoding::schema::{self, Kind, Message, MessageId, Shape};
use crate::encoding::{DecodeError, Fault, json};

/// In which order the entries of a message and of all below it stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Order {
    /// As Go writes them: ascending, what is repeated together, what is not repeated once, maps by key.
    Canonical,
    /// Otherwise. The rest of the bytes has not been checked.
    Other,
}

/// Checks one message of a kind. Offsets of errors count from the start of `bytes`.
pub(crate) fn check(kind: MessageId, bytes: &[u8], plan: Option<&Node>) -> Result<Order, DecodeError> {
    message(schema::message(kind), bytes, plan, 1)
}

/// Puts an error of a part at its place in the whole.
fn within(whole: &[u8], part: &[u8]) -> impl FnOnce(DecodeError) -> DecodeError {
    let offset = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    move |mut error| {
        error.offset += offset;
        error
    }
}

/// `depth` counts this message, and all objects and arrays that stand around it in JSON.
fn message(
    table: &'static Message,
    bytes: &[u8],
    plan: Option<&Node>,
    depth: usize,
) -> Result<Order, DecodeError> {
    if depth > MAX_DEPTH {
        return Err(too_deep(0));
    }
    let mut reader = Reader::new(bytes);
    let mut fields = table.fields().iter();
    let mut current = fields.next();
    let mut last = 0;
    // The key of the last entry, if it was one of a map.
    let mut last_key = None;
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
        let first = entry.number != last;
        last = entry.number;
        if plan.is_some_and(|plan| plan.drops(entry.number)) {
            continue;
        }
        // By far the most, and nothing to look into.
        if let (Shape::One | Shape::Pointer, Kind::String | Kind::Bytes, Wire::Bytes(_)) =
            (field.shape, field.kind, entry.value)
        {
            continue;
        }
        let below = plan.and_then(|plan| plan.below(entry.number));
        // Where the values stand that are objects or arrays.
        let depth = match field.shape {
            Shape::One | Shape::Pointer => depth + 1,
            Shape::List | Shape::Map => depth + 2,
            Shape::Embedded => depth,
        };
        if repeated && depth - 1 > MAX_DEPTH {
            return Err(too_deep(entry.start));
        }
        let order = match (field.shape, entry.value) {
            (Shape::Map, Wire::Bytes(pair)) => {
                let (key, order) = map_entry(field.kind, pair, depth).map_err(within(bytes, pair))?;
                if !first && last_key >= Some(key) {
                    return Ok(Order::Other);
                }
                last_key = Some(key);
                order
            }
            (Shape::Map, other) => {
                let fault = Fault::Unexpected { found: format!("{other:?}") };
                return Err(DecodeError::new(fault, entry.start, "an entry of a map"));
            }
            // Several numbers in one entry. To Go, none of them is no list at all.
            (Shape::List, Wire::Bytes([])) if is_number(field.kind) => Order::Other,
            (Shape::List, Wire::Bytes(numbers)) if is_number(field.kind) => {
                let mut packed = Reader::new(numbers);
                while packed_number(field.kind, &mut packed).map_err(within(bytes, numbers))?.is_some() {}
                Order::Canonical
            }
            _ => value(field.kind, &entry, bytes, below, depth)?,
        };
        if order == Order::Other {
            return Ok(order);
        }
    }
    Ok(Order::Canonical)
}

#[cold]
fn too_deep(offset: usize) -> DecodeError {
    DecodeError::new(Fault::TooDeep { limit: MAX_DEPTH }, offset, "fewer levels")
}

/// Its key, too.
fn map_entry(kind: Kind, pair: &[u8], depth: usize) -> Result<(&[u8], Order), DecodeError> {
    let mut reader = Reader::new(pair);
    let mut last = 0;
    let mut key: &[u8] = &[];
    while let Some(entry) = reader.next()? {
        if entry.number <= last {
            return Ok((key, Order::Other));
        }
        last = entry.number;
        let order = match (entry.number, entry.value) {
            (1, Wire::Bytes(bytes)) => {
                key = bytes;
                Order::Canonical
            }
            (1, _) => value(Kind::String, &entry, pair, None, depth)?,
            (2, _) => value(kind, &entry, pair, None, depth)?,
            (number, _) => {
                let fault = Fault::UnknownField { message: "an entry of a map".to_owned(), number };
                return Err(DecodeError::new(fault, entry.start, "field 1 or 2"));
            }
        };
        if order == Order::Other {
            return Ok((key, order));
        }
    }
    Ok((key, Order::Canonical))
}

/// `depth` counts the value, if it is an object or an array.
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
            return message(schema::message(id), bytes, plan, depth).map_err(within(whole, bytes));
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
    let mut reader = Reader::new(bytes);
    let mut last = 0;
    while let Some(entry) = reader.next()? {
        let Some((part, shape)) = part(kind, entry.number) else {
            let fault = Fault::UnknownField { message: name(kind).to_owned(), number: entry.number };
            return Err(DecodeError::new(fault, entry.start, "a field of the schema table"));
        };
        if entry.number < last || (entry.number == last && shape != Shape::List) {
            return Ok(Order::Other);
        }
        last = entry.number;
        let depth = if shape == Shape::List { depth + 1 } else { depth };
        if shape == Shape::List && depth - 1 > MAX_DEPTH {
            return Err(too_deep(entry.start));
        }
        let order = match (kind, entry.number, entry.value) {
            (Kind::IntOrString, 1, Wire::Varint(other)) if other > 1 => {
                let fault = Fault::Unexpected { found: format!("type {other}") };
                return Err(DecodeError::new(fault, entry.start, "an IntOrString of type 0 or 1"));
            }
            (Kind::Raw, _, Wire::Bytes(raw)) if !raw.is_empty() => {
                raw_document(raw, depth).map_err(within(bytes, raw))?;
                Order::Canonical
            }
            _ => value(part, &entry, bytes, None, depth)?,
        };
        if order == Order::Other {
            return Ok(order);
        }
    }
    Ok(Order::Canonical)
}

/// What such a message is called.
fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Time => "Time",
        Kind::MicroTime => "MicroTime",
        Kind::Quantity => "Quantity",
        Kind::IntOrString => "IntOrString",
        Kind::Raw => "RawExtension",
        Kind::SchemaOrBool(_) => "JSONSchemaPropsOrBool",
        Kind::SchemaOrArray(_) => "JSONSchemaPropsOrArray",
        Kind::SchemaOrStringArray(_) => "JSONSchemaPropsOrStringArray",
        _ => "a list of strings",
    }
}

/// A document inside of a document: JSON as it is, or protobuf in an envelope of its own.
fn raw_document(raw: &[u8], depth: usize) -> Result<(), DecodeError> {
    if raw.starts_with(MAGIC) {
        let (root, body) = document(raw)?;
        return match message(schema::message(root.message), body, None, depth).map_err(within(raw, body))? {
            Order::Canonical => Ok(()),
            Order::Other => {
                let fault = Fault::Unexpected { found: "fields out of order".to_owned() };
                Err(DecodeError::new(fault, 0, "an embedded document as Go writes it"))
            }
        };
    }
    json::check_value(raw, depth - 1)
}
