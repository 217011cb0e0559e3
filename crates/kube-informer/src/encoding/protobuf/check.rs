//! Whether a message is what the schema table says, all the way down: checked once, when it arrives.
//!
//! What passes is shown by every view without an error of the bytes' making; what was dropped is not
//! looked into. Nothing is decoded: strings are not read, only jumped over.

use super::plan::Node;
use super::reader::{Entry, Reader, Value as Wire};
use super::value::{is_number, packed_number, part};
use super::{MAGIC, MAX_DEPTH, document};
use crate::encoding::schema::{self, Kind, MessageId, Outline, Shape};
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
    message(kind, bytes, plan, 1)
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
fn message(kind: MessageId, bytes: &[u8], plan: Option<&Node>, depth: usize) -> Result<Order, DecodeError> {
    if depth > MAX_DEPTH {
        return Err(too_deep(0));
    }
    let mut walk = Walk::new(kind, bytes, plan, depth);
    loop {
        walk.pass_plain();
        if let Some(order) = walk.step()? {
            return Ok(order);
        }
    }
}

/// How far a message was checked.
struct Walk<'a, 'p> {
    kind: MessageId,
    plan: Option<&'p Node>,
    depth: usize,
    reader: Reader<'a>,
    fields: &'static [Outline],
    /// The field of the last entry.
    at: usize,
    /// The number of the last entry.
    last: u32,
    /// Its key, if it was one of a map.
    last_key: Option<&'a [u8]>,
}

impl<'a, 'p> Walk<'a, 'p> {
    #[inline(always)]
    fn new(kind: MessageId, bytes: &'a [u8], plan: Option<&'p Node>, depth: usize) -> Self {
        let (reader, fields) = (Reader::new(bytes), schema::outlines(kind));
        Self { kind, plan, depth, reader, fields, at: 0, last: 0, last_key: None }
    }

    /// The next entry. Gives the order, when that is known.
    #[inline(always)]
    fn step(&mut self) -> Result<Option<Order>, DecodeError> {
        // The usual entry stays in registers: where it could come from either, it would go through memory, and wait there.
        let order = match self.reader.usual() {
            Some(entry) => self.entry(entry)?,
            None if self.reader.is_empty() => return Ok(Some(Order::Canonical)),
            None => self.any()?,
        };
        Ok((order == Order::Other).then_some(order))
    }

    /// Goes past entries that have nothing to be looked into: single texts and numbers, in order. Most are such, and to see that
    /// takes little. Whatever else comes next, and if it is wrong, is left to who looks at any entry.
    #[inline(always)]
    fn pass_plain(&mut self) {
        // Where something is dropped, each entry is asked for.
        if self.plan.is_some() {
            return;
        }
        while let Some((tag, content)) = self.reader.peek_short() {
            let number = tag >> 3;
            // Zero is no number of a field.
            if number <= self.last {
                return;
            }
            let Some((at, field)) = self.guess(number) else { return };
            let (Shape::One | Shape::Pointer) = field.shape else { return };
            let passed = match (tag & 7, field.kind) {
                (2, Kind::String | Kind::Bytes) => self.reader.pass_bytes(content),
                (0, Kind::Bool | Kind::Int32 | Kind::Int64) => self.reader.pass_short(content),
                _ => return,
            };
            if !passed {
                return;
            }
            (self.at, self.last) = (at, number);
        }
    }

    /// The next entry, whatever it is.
    #[inline(never)]
    fn any(&mut self) -> Result<Order, DecodeError> {
        match self.reader.any()? {
            Some(entry) => self.entry(entry),
            None => Ok(Order::Canonical),
        }
    }

    #[inline(always)]
    fn entry(&mut self, entry: Entry<'a>) -> Result<Order, DecodeError> {
        if entry.number < self.last {
            return Ok(Order::Other);
        }
        let Some(field) = self.field(entry.number) else {
            return Err(self.unknown(entry.number, entry.start));
        };
        let repeated = matches!(field.shape, Shape::List | Shape::Map);
        let first = entry.number != self.last;
        if !first && !repeated {
            return Ok(Order::Other);
        }
        self.last = entry.number;
        if self.plan.is_some_and(|plan| plan.drops(entry.number)) {
            return Ok(Order::Canonical);
        }
        // By far the most, and nothing to look into.
        if let (Shape::One | Shape::Pointer, Kind::String | Kind::Bytes, Wire::Bytes(_)) =
            (field.shape, field.kind, entry.value)
        {
            return Ok(Order::Canonical);
        }
        let bytes = self.reader.bytes();
        // Where the values stand that are objects or arrays.
        let depth = match field.shape {
            Shape::One | Shape::Pointer => self.depth + 1,
            Shape::List | Shape::Map => self.depth + 2,
            Shape::Embedded => self.depth,
        };
        if repeated && depth - 1 > MAX_DEPTH {
            return Err(too_deep(entry.start));
        }
        match (field.shape, entry.value) {
            (Shape::Map, Wire::Bytes(pair)) => {
                let (key, order) = map_entry(field.kind, pair, depth).map_err(within(bytes, pair))?;
                if !first && self.last_key >= Some(key) {
                    return Ok(Order::Other);
                }
                self.last_key = Some(key);
                Ok(order)
            }
            (Shape::Map, other) => {
                let fault = Fault::Unexpected { found: format!("{other:?}") };
                Err(DecodeError::new(fault, entry.start, "an entry of a map"))
            }
            // Several numbers in one entry. To Go, none of them is no list at all.
            (Shape::List, Wire::Bytes([])) if is_number(field.kind) => Ok(Order::Other),
            (Shape::List, Wire::Bytes(numbers)) if is_number(field.kind) => {
                let mut packed = Reader::new(numbers);
                while packed_number(field.kind, &mut packed).map_err(within(bytes, numbers))?.is_some() {}
                Ok(Order::Canonical)
            }
            (_, wire) => match (field.kind, wire) {
                (Kind::Message(id), Wire::Bytes(inner)) => {
                    let below = self.plan.and_then(|plan| plan.below(entry.number));
                    message(id, inner, below, depth).map_err(within(bytes, inner))
                }
                (kind, _) => value(kind, &entry, bytes, depth),
            },
        }
    }

    /// The field with a number that is not less than the last one's.
    #[inline(always)]
    fn field(&mut self, number: u32) -> Option<&'static Outline> {
        if let Some((at, field)) = self.guess(number) {
            self.at = at;
            return Some(field);
        }
        let behind = self.fields.get(self.at..)?;
        self.at += behind.iter().take_while(|field| u32::from(field.number) < number).count();
        self.fields.get(self.at).filter(|field| u32::from(field.number) == number)
    }

    /// Mostly the numbers between two fields are those of the fields between them.
    #[inline(always)]
    fn guess(&self, number: u32) -> Option<(usize, &'static Outline)> {
        let last = u32::from(self.fields.get(self.at)?.number);
        let at = self.at + number.saturating_sub(last) as usize;
        self.fields.get(at).filter(|field| u32::from(field.number) == number).map(|field| (at, field))
    }

    #[cold]
    fn unknown(&self, number: u32, offset: usize) -> DecodeError {
        let fault = Fault::UnknownField { message: schema::message(self.kind).to_string(), number };
        DecodeError::new(fault, offset, "a field of the schema table")
    }
}

#[cold]
fn too_deep(offset: usize) -> DecodeError {
    DecodeError::new(Fault::TooDeep { limit: MAX_DEPTH }, offset, "fewer levels")
}

/// A short text or message in field 1, and what follows it: nearly all of them are short.
#[inline]
fn short_first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    match bytes {
        [0x0a, length @ 0..=0x7f, rest @ ..] => rest.split_at_checked(usize::from(*length)),
        _ => None,
    }
}

/// Whether it is a quantity or a time as nearly all of them are: a short text; seconds of our days, and no fraction.
#[inline]
fn is_usual(kind: Kind, bytes: &[u8]) -> bool {
    match kind {
        Kind::Quantity => matches!(short_first(bytes), Some((_, []))),
        Kind::Time => {
            matches!(bytes, [0x08, 0x80..=0xff, 0x80..=0xff, 0x80..=0xff, 0x80..=0xff, 0..=0x7f, 0x10, 0])
        }
        _ => false,
    }
}

/// Its key, too.
fn map_entry(kind: Kind, pair: &[u8], depth: usize) -> Result<(&[u8], Order), DecodeError> {
    if let Some((key, [0x12, length @ 0..=0x7f, value @ ..])) = short_first(pair)
        && value.len() == usize::from(*length)
        && (matches!(kind, Kind::String | Kind::Bytes) || is_usual(kind, value))
    {
        return Ok((key, Order::Canonical));
    }
    any_map_entry(kind, pair, depth)
}

fn any_map_entry(kind: Kind, pair: &[u8], depth: usize) -> Result<(&[u8], Order), DecodeError> {
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
            (1, _) => value(Kind::String, &entry, pair, depth)?,
            (2, _) => value(kind, &entry, pair, depth)?,
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
fn value(kind: Kind, entry: &Entry<'_>, whole: &[u8], depth: usize) -> Result<Order, DecodeError> {
    let fits = match (kind, entry.value) {
        (Kind::String | Kind::Bytes, Wire::Bytes(_)) => true,
        (Kind::Message(id), Wire::Bytes(bytes)) => {
            return message(id, bytes, None, depth).map_err(within(whole, bytes));
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
    if is_usual(kind, bytes) { Ok(Order::Canonical) } else { any_special(kind, bytes, depth) }
}

fn any_special(kind: Kind, bytes: &[u8], depth: usize) -> Result<Order, DecodeError> {
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
            _ => value(part, &entry, bytes, depth)?,
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
        return match message(root.message, body, None, depth).map_err(within(raw, body))? {
            Order::Canonical => Ok(()),
            Order::Other => {
                let fault = Fault::Unexpected { found: "fields out of order".to_owned() };
                Err(DecodeError::new(fault, 0, "an embedded document as Go writes it"))
            }
        };
    }
    json::check_value(raw, depth - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encoding::protobuf::reader::{put_bytes, put_varint};

    /// A message as it is mostly, or nearly so.
    fn nearly(usual: Vec<u8>, changed: Option<(usize, u8)>, cut: usize) -> Vec<u8> {
        let mut bytes = usual;
        if let Some((at, byte)) = changed
            && !bytes.is_empty()
        {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        bytes
    }

    fn quantity(text: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, 1, text);
        bytes
    }

    fn time(seconds: u64, nanos: u64) -> Vec<u8> {
        let mut bytes = vec![0x08];
        put_varint(&mut bytes, seconds);
        bytes.push(0x10);
        put_varint(&mut bytes, nanos);
        bytes
    }

    /// Looks at each entry of a message.
    fn one_by_one(kind: MessageId, bytes: &[u8]) -> Result<Order, DecodeError> {
        let mut walk = Walk::new(kind, bytes, None, 1);
        loop {
            if let Some(order) = walk.step()? {
                return Ok(order);
            }
        }
    }

    fn in_a_pod(path: &[&str]) -> MessageId {
        let pod = schema::root("v1", "Pod").unwrap().message;
        path.iter().fold(pod, |kind, name| match schema::message(kind).field_by_name(name).unwrap().kind {
            Kind::Message(id) => id,
            other => panic!("{name} is {other:?}"),
        })
    }

    /// An entry of a container or a pod, or of neither: its number, whether it is a number, and of how many bytes.
    fn put_entry(out: &mut Vec<u8>, (number, is_number, content): (u32, bool, u64)) {
        if is_number {
            put_varint(out, u64::from(number) << 3);
            put_varint(out, content * content);
        } else {
            put_bytes(out, number, &vec![b'a'; content as usize]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1024, ..ProptestConfig::default() })]

        #[test]
        fn what_is_passed_is_what_would_have_been_found_right(
            mut entries in prop::collection::vec((0_u32..40, any::<bool>(), 0_u64..200), 0..12),
            is_sorted in prop::bool::weighted(0.8),
            changed in prop::option::of((any::<usize>(), any::<u8>())),
            cut in prop_oneof![4 => Just(0_usize), 1 => 1_usize..4],
        ) {
            if is_sorted {
                entries.sort_unstable();
                entries.dedup_by_key(|(number, ..)| *number);
            }
            let mut bytes = Vec::new();
            entries.into_iter().for_each(|entry| put_entry(&mut bytes, entry));
            let bytes = nearly(bytes, changed, cut);
            for path in [&["spec"][..], &["spec", "containers"], &["spec", "containers", "ports"], &["status"]] {
                let kind = in_a_pod(path);
                prop_assert_eq!(format!("{:?}", check(kind, &bytes, None)), format!("{:?}", one_by_one(kind, &bytes)));
            }
        }

        #[test]
        fn the_short_way_says_what_the_long_way_says(
            key in prop::collection::vec(any::<u8>(), 0..140),
            text in prop::collection::vec(any::<u8>(), 0..140),
            (seconds, nanos) in (prop_oneof![1_u64 << 28..1 << 35, any::<u64>()], prop_oneof![Just(0), any::<u64>()]),
            changed in prop::option::of((any::<usize>(), any::<u8>())),
            cut in prop_oneof![4 => Just(0_usize), 1 => 1_usize..4],
        ) {
            for (kind, value) in [
                (Kind::String, text.clone()),
                (Kind::Bytes, text.clone()),
                (Kind::Quantity, quantity(&text)),
                (Kind::Time, time(seconds, nanos)),
                // These have no short way.
                (Kind::MicroTime, time(seconds, nanos)),
                (Kind::Raw, quantity(&text)),
            ] {
                let mut pair = Vec::new();
                put_bytes(&mut pair, 1, &key);
                put_bytes(&mut pair, 2, &value);
                let pair = nearly(pair, changed, cut);
                prop_assert_eq!(format!("{:?}", map_entry(kind, &pair, 3)), format!("{:?}", any_map_entry(kind, &pair, 3)));
                if !matches!(kind, Kind::String | Kind::Bytes) {
                    let value = nearly(value, changed, cut);
                    prop_assert_eq!(format!("{:?}", special(kind, &value, 3)), format!("{:?}", any_special(kind, &value, 3)));
                }
            }
        }
    }

    #[test]
    fn what_servers_send_goes_the_short_way() {
        assert!(is_usual(Kind::Quantity, &quantity(b"100m")));
        assert!(is_usual(Kind::Time, &time(1_700_000_000, 0)));
        assert!(!is_usual(Kind::Time, &time(1_700_000_000, 5)));
        assert!(!is_usual(Kind::Quantity, b"\x0a\x03ab"));
    }
}
