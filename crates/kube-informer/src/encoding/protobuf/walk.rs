//! The fields of a JSON object and the items of a JSON array, out of the bytes of a message.
//!
//! Nothing here depends on the type that a view decodes to, but for the last few lines.

use std::borrow::Cow;

use serde::de::{self, DeserializeSeed};

use super::de::Key;
use super::plan::Node;
use super::reader::{Entry, Reader, Value as Wire};
use super::text;
use super::value::{Array, Data, Object, Value, is_number, is_zero, packed_number, zero};
use crate::encoding::schema::{self, Absent, Field, Kind, Message, MessageId, NO_FIELD, Root, Shape};
use crate::encoding::view_error::Cause;
use crate::encoding::{DecodeError, Fault, ViewError};

/// The fields of a JSON object, one by one: of a message, of a map, or of embedded JSON.
pub(super) struct Entries<'de, 'c> {
    source: Source<'de, 'c>,
    /// The value of the key that was given last.
    value: Value<'de, 'c>,
    /// That key; `None` behind the last.
    name: Option<&'de str>,
    /// That key, if it cannot be lent; otherwise empty.
    kept: String,
}

enum Source<'de, 'c> {
    Message(Walk<'de, 'c>),
    Map(Reader<'de>),
    Json(Box<serde_json::map::IntoIter>),
}

/// A walk over a message and its table at once: both ascend, so one cursor each finds what is there and
/// what is missing.
struct Walk<'de, 'c> {
    /// `apiVersion` and `kind`, which are not in the message but in JSON.
    head: Head,
    current: Level<'de, 'c>,
    outer: Option<Outer<'de, 'c>>,
}

enum Head {
    /// Both are to come.
    Both(&'static Root),
    /// => after `apiVersion`
    Kind(&'static Root),
    /// => after `kind`, and where there is neither
    Done,
}

struct Level<'de, 'c> {
    message: &'static Message,
    /// The table's fields that are still to come.
    fields: &'static [Field],
    /// The entries that are still to come.
    reader: Reader<'de>,
    plan: Option<&'c Node>,
}

/// A message that is nested on the wire and flat in JSON goes on where it was left for the one inside.
struct Outer<'de, 'c> {
    level: Level<'de, 'c>,
    /// Hardly ever is there another around it.
    outer: Option<Box<Self>>,
}

impl<'de, 'c> Entries<'de, 'c> {
    /// The fields of an object that a value is.
    pub(super) fn new(of: &Value<'de, 'c>, object: Object<'de>) -> Self {
        match object {
            Object::Message(id, bytes, head) => Self::message(of, id, bytes, head),
            Object::Map(bytes) => {
                let mut entries = Self::of(of, Source::Map(Reader::new(bytes)));
                entries.value.kind = of.kind;
                entries
            }
            Object::Json(map) => Self::of(of, Source::Json(Box::new(map.into_iter()))),
        }
    }

    /// The fields of a message.
    #[inline]
    pub(super) fn message(
        of: &Value<'de, 'c>,
        id: MessageId,
        bytes: &'de [u8],
        head: Option<&'static Root>,
    ) -> Self {
        let current = Level::new(schema::message(id), bytes, of.plan);
        let head = head.map_or(Head::Done, Head::Both);
        Self::of(of, Source::Message(Walk { head, current, outer: None }))
    }

    #[inline]
    fn of(of: &Value<'de, 'c>, source: Source<'de, 'c>) -> Self {
        Self { source, value: Value::new(of.context, of.depth + 1), name: None, kept: String::new() }
    }

    /// Goes on to the next key and its value.
    fn step(&mut self) -> Result<(), ViewError> {
        match &mut self.source {
            Source::Message(walk @ Walk { head: Head::Done, .. }) => {
                self.name = walk.step(&mut self.value)?;
                Ok(())
            }
            _ => self.step_otherwise(),
        }
    }

    #[inline(never)]
    fn step_otherwise(&mut self) -> Result<(), ViewError> {
        match &mut self.source {
            Source::Message(walk) => {
                self.name = walk.step_head(&mut self.value);
                Ok(())
            }
            Source::Map(_) => self.step_map(),
            Source::Json(fields) => {
                let next = fields.next();
                self.name = next.is_some().then_some("");
                let (key, value) = next.unwrap_or_default();
                self.value.data = Data::Json;
                self.value.json = Some(Box::new(value));
                self.kept = key;
                Ok(())
            }
        }
    }

    fn step_map(&mut self) -> Result<(), ViewError> {
        let Source::Map(reader) = &mut self.source else { return Ok(()) };
        let context = self.value.context;
        let bytes = reader.bytes();
        let Some(entry) = reader.next().map_err(|error| context.locate(bytes, error))? else {
            self.name = None;
            return Ok(());
        };
        let Wire::Bytes(pair) = entry.value else {
            let fault = Fault::Unexpected { found: format!("{:?}", entry.value) };
            return Err(context.locate(bytes, DecodeError::new(fault, entry.start, "an entry of a map")));
        };
        let (mut key, mut value) = (&[][..], None);
        let mut fields = Reader::new(pair);
        while let Some(field) = fields.next().map_err(|error| context.locate(pair, error))? {
            match (field.number, field.value) {
                (1, Wire::Bytes(bytes)) => key = bytes,
                (2, wire) => value = Some(wire),
                _ => {}
            }
        }
        self.value.data = value.unwrap_or(zero(self.value.kind)).into();
        (self.name, self.kept) = match text::string(key) {
            Cow::Borrowed(key) => (Some(key), String::new()),
            Cow::Owned(key) => (Some(""), key),
        };
        Ok(())
    }

    /// An error in the value, seen from the object.
    #[cold]
    fn within(&mut self, error: ViewError) -> ViewError {
        let kept = std::mem::take(&mut self.kept);
        error.within(if kept.is_empty() { self.name.unwrap_or_default().to_owned() } else { kept })
    }
}

impl<'de, 'c> Level<'de, 'c> {
    fn new(message: &'static Message, bytes: &'de [u8], plan: Option<&'c Node>) -> Self {
        Self { message, fields: message.fields(), reader: Reader::new(bytes), plan }
    }

    /// Takes all entries of one repeated field, of which the first has been read, from where it begins to
    /// where it ends; and counts them.
    fn span(
        &mut self,
        of: &Value<'de, 'c>,
        number: u32,
        start: usize,
        mut end: usize,
    ) -> Result<(&'de [u8], u32), ViewError> {
        let mut count = 1;
        let bytes = self.reader.bytes();
        while self.reader.continues(number)
            && let Some(entry) = self.reader.next().map_err(|error| of.context.locate(bytes, error))?
        {
            (end, count) = (entry.end, count + 1);
        }
        Ok((bytes.get(start..end).unwrap_or_default(), count))
    }

    #[cold]
    #[inline(never)]
    fn out_of_place(&self, of: &Value<'de, 'c>, number: u32, start: usize) -> ViewError {
        if self.message.field_by_number(number).is_some() {
            return ViewError::new(Cause::Disorder);
        }
        let fault = Fault::UnknownField { message: self.message.to_string(), number };
        let error = DecodeError::new(fault, start, "a field of the schema table");
        of.context.locate(self.reader.bytes(), error)
    }
}

impl<'de, 'c> Walk<'de, 'c> {
    /// The name of the next field that JSON shows, behind the head; its value goes straight to its place.
    #[inline(always)]
    fn step(&mut self, to: &mut Value<'de, 'c>) -> Result<Option<&'static str>, ViewError> {
        loop {
            let level = &mut self.current;
            // `Reader::next`, taken apart: the usual entry does not go through memory.
            let (entry, sought) = match level.reader.usual() {
                // Two bytes hold no larger number.
                Some(entry) => (Some(entry), entry.number as u16),
                None if level.reader.is_empty() => (None, NO_FIELD),
                None => {
                    let bytes = level.reader.bytes();
                    let entry = level.reader.any().map_err(|error| to.context.locate(bytes, error))?;
                    (entry, entry.map_or(NO_FIELD, |entry| u16::try_from(entry.number).unwrap_or(NO_FIELD)))
                }
            };
            // Most fields of most messages are not there, and JSON does not show them.
            let mut fields = level.fields;
            let found = loop {
                let [field, rest @ ..] = fields else { break None };
                fields = rest;
                if field.silent_number >= sought {
                    break Some(field);
                }
            };
            level.fields = fields;
            let Some(field) = found else {
                if let Some(entry) = entry {
                    return Err(level.out_of_place(to, entry.number, entry.start));
                }
                if self.outer.is_some() {
                    self.leave();
                    continue;
                }
                return Ok(None);
            };
            let number = u32::from(field.number);
            to.kind = field.kind;
            to.plan = level.plan.and_then(|plan| plan.below(number));
            let Some(Entry { value, start, end, .. }) = entry.filter(|entry| entry.number == number) else {
                if let Some(entry) = entry {
                    if entry.number < number {
                        return Err(level.out_of_place(to, entry.number, entry.start));
                    }
                    level.reader.back_to(entry.start);
                }
                if self.absent(field, to) {
                    return Ok(Some(field.name()));
                }
                continue;
            };
            if field.shape == Shape::One || field.shape == Shape::Pointer {
                if field.drop_zero && is_zero(field.kind, value) {
                    continue;
                }
                to.data = value.into();
            } else if field.shape == Shape::Embedded {
                let Wire::Bytes(bytes) = value else {
                    let fault = Fault::Unexpected { found: format!("{value:?}") };
                    return Err(to.context.locate(&[], DecodeError::new(fault, 0, "a message")));
                };
                self.embed(field, bytes, to.plan);
                continue;
            } else {
                let (span, count) = level.span(to, number, start, end)?;
                to.data = if field.shape == Shape::List { Data::List(span, count) } else { Data::Map(span) };
            }
            return Ok(Some(field.name()));
        }
    }

    fn step_head(&mut self, to: &mut Value<'de, 'c>) -> Option<&'static str> {
        let (name, text, next) = match self.head {
            Head::Both(root) => ("apiVersion", root.api_version(), Head::Kind(root)),
            Head::Kind(root) => ("kind", root.kind(), Head::Done),
            Head::Done => return None,
        };
        self.head = next;
        to.kind = Kind::String;
        to.data = Data::Bytes(text.as_bytes());
        Some(name)
    }

    /// Whether JSON shows a field that is not there; what it shows goes to its place.
    #[inline(never)]
    fn absent(&mut self, field: &Field, to: &mut Value<'de, 'c>) -> bool {
        // What was dropped is not shown as if it were empty.
        if self.current.plan.is_some_and(|plan| plan.drops(u32::from(field.number))) {
            return false;
        }
        if field.shape == Shape::Embedded {
            self.embed(field, &[], to.plan);
            return false;
        }
        to.data = match field.absent {
            Absent::Omit => return false,
            Absent::Null => Data::Null,
            Absent::EmptyList => Data::EmptyList,
            Absent::Zero => zero(field.kind).into(),
        };
        true
    }

    /// Goes on with the fields of a message that is nested on the wire and flat in JSON.
    #[inline(never)]
    fn embed(&mut self, field: &Field, bytes: &'de [u8], plan: Option<&'c Node>) {
        let Kind::Message(id) = field.kind else { return };
        let inner = Level::new(schema::message(id), bytes, plan);
        let level = std::mem::replace(&mut self.current, inner);
        self.outer = Some(Outer { level, outer: self.outer.take().map(Box::new) });
    }

    /// Goes on with the message around one that has come to its end.
    #[inline(never)]
    fn leave(&mut self) {
        if let Some(outer) = self.outer.take() {
            self.current = outer.level;
            self.outer = outer.outer.map(|outer| *outer);
        }
    }
}

impl<'de> de::MapAccess<'de> for Entries<'de, '_> {
    type Error = ViewError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ViewError> {
        self.step()?;
        let Some(name) = self.name else { return Ok(None) };
        let key = if self.kept.is_empty() { Key::Lent(name) } else { Key::Kept(&self.kept) };
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ViewError> {
        if self.name.is_none() {
            return Err(out_of_turn());
        }
        match seed.deserialize(&mut self.value) {
            Ok(value) => Ok(value),
            Err(error) => Err(self.within(error)),
        }
    }
}

#[cold]
fn out_of_turn() -> ViewError {
    de::Error::custom("a value was asked for before its key")
}

/// The items of a JSON array, one by one: entries of a repeated field, or of embedded JSON.
pub(super) struct Items<'de, 'c> {
    source: ItemSource<'de>,
    /// The item that was given last.
    value: Value<'de, 'c>,
    /// How many have been given.
    given: usize,
    /// How many there are, if that is known.
    count: Option<u32>,
}

enum ItemSource<'de> {
    Entries {
        reader: Reader<'de>,
        /// The number of the first entry: all have the same. 0 before it was read.
        number: u32,
        /// What is left of numbers that stand in one entry.
        packed: Reader<'de>,
    },
    Json(std::vec::IntoIter<serde_json::Value>),
}

impl<'de, 'c> Items<'de, 'c> {
    /// The items of an array that a value is.
    #[inline]
    pub(super) fn new(of: &Value<'de, 'c>, array: Array<'de>) -> Self {
        let mut value = Value::new(of.context, of.depth + 1);
        let (source, count) = match array {
            Array::Entries(kind, entries, count) => {
                value.kind = kind;
                let (reader, packed) = (Reader::new(entries), Reader::new(&[]));
                // Several numbers may stand in one entry.
                (ItemSource::Entries { reader, number: 0, packed }, count.filter(|_| !is_number(kind)))
            }
            Array::Json(items) => {
                value.data = Data::Json;
                (ItemSource::Json(items.into_iter()), None)
            }
        };
        Self { source, value, given: 0, count }
    }

    /// Goes on to the next item, if there is one.
    fn step(&mut self) -> Result<bool, ViewError> {
        let Self { source, value, .. } = self;
        self.given += 1;
        let (reader, first, packed) = match source {
            ItemSource::Json(items) => {
                value.json = items.next().map(Box::new);
                return Ok(value.json.is_some());
            }
            ItemSource::Entries { reader, number, packed } => (reader, number, packed),
        };
        let context = value.context;
        loop {
            if !packed.is_empty() {
                let bytes = packed.bytes();
                let number =
                    packed_number(value.kind, packed).map_err(|error| context.locate(bytes, error))?;
                if let Some(wire) = number {
                    value.data = wire.into();
                    return Ok(true);
                }
            }
            let bytes = reader.bytes();
            let Some(entry) = reader.next().map_err(|error| context.locate(bytes, error))? else {
                return Ok(false);
            };
            if *first != entry.number && std::mem::replace(first, entry.number) != 0 {
                return Err(ViewError::new(Cause::Disorder));
            }
            match (value.kind, entry.value) {
                (kind, Wire::Bytes(numbers)) if is_number(kind) => {
                    *packed = Reader::new(numbers);
                    continue;
                }
                (Kind::Message(schema::PARTIAL_METADATA), _) => value.head = super::partial_metadata(),
                _ => {}
            }
            value.data = entry.value.into();
            return Ok(true);
        }
    }

    /// An error in the last item, seen from the array.
    #[cold]
    fn within(&self, error: ViewError) -> ViewError {
        error.within((self.given - 1).to_string())
    }
}

impl<'de> de::SeqAccess<'de> for Items<'de, '_> {
    type Error = ViewError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ViewError> {
        if !self.step()? {
            return Ok(None);
        }
        match seed.deserialize(&mut self.value) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(self.within(error)),
        }
    }

    /// Lists take the room that they need, not more: this is a hint to whoever allocates.
    fn size_hint(&self) -> Option<usize> {
        Some((self.count? as usize).saturating_sub(self.given))
    }
}
