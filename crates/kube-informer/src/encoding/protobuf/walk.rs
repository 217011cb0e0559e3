//! The fields of a JSON object and the items of a JSON array, out of the bytes of a message.
//!
//! Nothing here depends on the type that a view decodes to, but for the last few lines.

use std::borrow::Cow;

use serde::de::{self, DeserializeSeed};

use super::plan::Node;
use super::reader::{Entry, Reader, Value as Wire};
use super::text;
use super::value::{Context, Data, Fields, Object, Value, is_number, is_zero, packed_number, zero};
use crate::encoding::schema::{self, Absent, Field, Kind, Message, Root, Shape};
use crate::encoding::view_error::Cause;
use crate::encoding::{DecodeError, Fault, ViewError};

/// The fields of a JSON object, one by one: of a message, of a map, or of embedded JSON.
pub(super) struct Entries<'de, 'c> {
    source: Source<'de, 'c>,
    /// The value of the key that was given last.
    value: Option<Value<'de, 'c>>,
    /// That key, for errors.
    name: Cow<'de, str>,
}

enum Source<'de, 'c> {
    Message(Walk<'de, 'c>),
    Map { context: &'c Context, kind: Kind, reader: Reader<'de>, depth: usize },
    Json { context: &'c Context, fields: serde_json::map::IntoIter },
}

/// A walk over a message and its table at once: both ascend, so one cursor each finds what is there and
/// what is missing.
struct Walk<'de, 'c> {
    context: &'c Context,
    /// `apiVersion` and `kind`, which are not in the message but in JSON.
    head: Option<&'static Root>,
    head_keys: u8,
    current: Level<'de, 'c>,
    /// Whether the first entry has been read.
    begun: bool,
    /// Messages that are nested on the wire and flat in JSON, around the current one.
    outer: Vec<Level<'de, 'c>>,
    depth: usize,
}

struct Level<'de, 'c> {
    message: &'static Message,
    /// The table's fields that are still to come.
    fields: &'static [Field],
    reader: Reader<'de>,
    /// The entry that was read and not used yet.
    entry: Option<Entry<'de>>,
    /// The number of the last field that was used.
    last: u32,
    plan: Option<&'c Node>,
}

impl<'de, 'c> Entries<'de, 'c> {
    pub(super) fn new(object: Object<'de, 'c>) -> Self {
        let source = match object {
            Object::Message { context, message, bytes, head, plan, depth } => Source::Message(Walk {
                context,
                head,
                head_keys: 0,
                current: Level::new(message, bytes, plan),
                begun: false,
                outer: Vec::new(),
                depth,
            }),
            Object::Map { context, kind, bytes, depth } => {
                Source::Map { context, kind, reader: Reader::new(bytes), depth }
            }
            Object::Json { context, map } => Source::Json { context, fields: map.into_iter() },
        };
        Self { source, value: None, name: Cow::Borrowed("") }
    }

    /// The next key; its value is put aside.
    fn step(&mut self) -> Result<Option<Cow<'de, str>>, ViewError> {
        match &mut self.source {
            Source::Message(walk) => {
                let Some(name) = walk.step(&mut self.value)? else { return Ok(None) };
                self.name = Cow::Borrowed(name);
                Ok(Some(Cow::Borrowed(name)))
            }
            Source::Map { context, kind, reader, depth } => {
                let context = *context;
                let bytes = reader.bytes();
                let Some(entry) = reader.next().map_err(|error| context.locate(bytes, error))? else {
                    return Ok(None);
                };
                let Wire::Bytes(pair) = entry.value else {
                    let fault = Fault::Unexpected { found: format!("{:?}", entry.value) };
                    return Err(
                        context.locate(bytes, DecodeError::new(fault, entry.start, "an entry of a map"))
                    );
                };
                let pair_fields = Fields::read(pair).map_err(|error| context.locate(pair, error))?;
                let key = text::string(pair_fields.bytes(1).unwrap_or_default());
                let data = Data::One(pair_fields.0[1].unwrap_or(zero(*kind)));
                self.value = Some(Value { context, kind: *kind, data, plan: None, depth: *depth });
                self.name = key.clone();
                Ok(Some(key))
            }
            Source::Json { context, fields } => {
                let Some((key, value)) = fields.next() else { return Ok(None) };
                let (kind, data) = (Kind::Raw, Data::Json(Box::new(value)));
                self.value = Some(Value { context, kind, data, plan: None, depth: 0 });
                self.name = Cow::Owned(key.clone());
                Ok(Some(Cow::Owned(key)))
            }
        }
    }
}

impl<'de, 'c> Level<'de, 'c> {
    /// Before its first entry is read.
    fn new(message: &'static Message, bytes: &'de [u8], plan: Option<&'c Node>) -> Self {
        let reader = Reader::new(bytes);
        Self { message, fields: message.fields(), reader, entry: None, last: 0, plan }
    }

    #[inline(always)]
    fn read(&mut self, context: &'c Context) -> Result<(), ViewError> {
        // `Reader::next`, taken apart: the usual entry goes straight to its place.
        let usual = self.reader.usual();
        if usual.is_some() {
            self.entry = usual;
            return Ok(());
        }
        self.read_any(context)
    }

    #[inline(never)]
    fn read_any(&mut self, context: &'c Context) -> Result<(), ViewError> {
        self.entry = self.reader.any().map_err(|error| context.locate(self.reader.bytes(), error))?;
        Ok(())
    }

    /// Takes all entries of one repeated field, of which the first has been read.
    fn span(&mut self, context: &'c Context, first: &Entry<'de>) -> Result<&'de [u8], ViewError> {
        let mut end = first.end;
        self.read(context)?;
        while let Some(entry) = self.entry.filter(|entry| entry.number == first.number) {
            end = entry.end;
            self.read(context)?;
        }
        Ok(self.reader.bytes().get(first.start..end).unwrap_or_default())
    }

    #[cold]
    fn out_of_place(&self, context: &'c Context, entry: &Entry<'de>) -> ViewError {
        if entry.number <= self.last {
            return ViewError::new(Cause::Disorder);
        }
        let fault = Fault::UnknownField { message: self.message.to_string(), number: entry.number };
        context
            .locate(self.reader.bytes(), DecodeError::new(fault, entry.start, "a field of the schema table"))
    }
}

impl<'de, 'c> Walk<'de, 'c> {
    /// The next field that JSON shows; its value goes straight to its place.
    fn step(&mut self, to: &mut Option<Value<'de, 'c>>) -> Result<Option<&'static str>, ViewError> {
        let (context, depth) = (self.context, self.depth);
        if let Some(root) = self.head {
            let (name, text) = match self.head_keys {
                0 => ("apiVersion", root.api_version()),
                _ => ("kind", root.kind()),
            };
            self.head_keys += 1;
            if self.head_keys == 2 {
                self.head = None;
            }
            let data = Data::One(Wire::Bytes(text.as_bytes()));
            *to = Some(Value { context, kind: Kind::String, data, plan: None, depth });
            return Ok(Some(name));
        }
        if !self.begun {
            self.current.read(context)?;
            self.begun = true;
        }
        loop {
            let level = &mut self.current;
            // Most fields of most messages are not there, and JSON does not show them.
            let next = level.entry.map_or(u32::MAX, |entry| entry.number);
            let omitted = |field: &Field| {
                u32::from(field.number) < next
                    && field.absent == Absent::Omit
                    && field.shape != Shape::Embedded
            };
            let passed = level.fields.iter().take_while(|field| omitted(field)).count();
            level.fields = level.fields.get(passed..).unwrap_or_default();
            let Some((field, rest)) = level.fields.split_first() else {
                if let Some(entry) = &level.entry {
                    return Err(level.out_of_place(context, entry));
                }
                let Some(outer) = self.outer.pop() else { return Ok(None) };
                self.current = outer;
                continue;
            };
            let number = u32::from(field.number);
            if let Some(entry) = &level.entry
                && next < number
            {
                return Err(level.out_of_place(context, entry));
            }
            let present = level.entry.filter(|_| next == number);
            level.fields = rest;
            let plan = level.plan.and_then(|plan| plan.below(number));
            let kind = field.kind;
            let Some(entry) = present else {
                // What was dropped is not shown as if it were empty.
                if level.plan.is_some_and(|plan| plan.drops(number)) {
                    continue;
                }
                if field.shape == Shape::Embedded {
                    self.embed(field, &[], plan)?;
                    continue;
                }
                let data = match field.absent {
                    Absent::Omit => continue,
                    Absent::Null => Data::Null,
                    Absent::EmptyList => Data::EmptyList,
                    Absent::Zero => Data::One(zero(field.kind)),
                };
                *to = Some(Value { context, kind, data, plan, depth });
                return Ok(Some(field.name()));
            };
            level.last = number;
            match field.shape {
                Shape::List | Shape::Map => {
                    let span = level.span(context, &entry)?;
                    let data = if field.shape == Shape::List { Data::List(span) } else { Data::Map(span) };
                    *to = Some(Value { context, kind, data, plan, depth });
                    return Ok(Some(field.name()));
                }
                Shape::One | Shape::Pointer | Shape::Embedded => {
                    level.read(context)?;
                    if level.entry.is_some_and(|next| next.number <= number) {
                        return Err(ViewError::new(Cause::Disorder));
                    }
                }
            }
            if field.shape == Shape::Embedded {
                let Wire::Bytes(bytes) = entry.value else {
                    let fault = Fault::Unexpected { found: format!("{:?}", entry.value) };
                    return Err(context.locate(&[], DecodeError::new(fault, 0, "a message")));
                };
                self.embed(field, bytes, plan)?;
                continue;
            }
            if field.drop_zero && is_zero(field.kind, entry.value) {
                continue;
            }
            *to = Some(Value { context, kind, data: Data::One(entry.value), plan, depth });
            return Ok(Some(field.name()));
        }
    }

    /// Goes on with the fields of a message that is nested on the wire and flat in JSON.
    fn embed(&mut self, field: &Field, bytes: &'de [u8], plan: Option<&'c Node>) -> Result<(), ViewError> {
        let Kind::Message(id) = field.kind else { return Ok(()) };
        let mut inner = Level::new(schema::message(id), bytes, plan);
        inner.read(self.context)?;
        self.outer.push(std::mem::replace(&mut self.current, inner));
        Ok(())
    }
}

impl<'de> de::MapAccess<'de> for Entries<'de, '_> {
    type Error = ViewError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ViewError> {
        match self.step()? {
            Some(key) => seed.deserialize(super::de::Key(key)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ViewError> {
        match &mut self.value {
            Some(value) => seed
                .deserialize(value)
                .map_err(|error| error.within(std::mem::take(&mut self.name).into_owned())),
            None => Err(de::Error::custom("a value was asked for before its key")),
        }
    }
}

/// The items of a JSON array, one by one: entries of a repeated field, or of embedded JSON.
pub(super) struct Items<'de, 'c> {
    context: &'c Context,
    source: ItemSource<'de>,
    depth: usize,
    /// How many have been given.
    given: usize,
}

enum ItemSource<'de> {
    Entries {
        kind: Kind,
        reader: Reader<'de>,
        /// The number of the first entry: all have the same.
        number: Option<u32>,
        /// What is left of numbers that stand in one entry.
        packed: Option<Reader<'de>>,
    },
    Json(std::vec::IntoIter<serde_json::Value>),
}

impl<'de, 'c> Items<'de, 'c> {
    /// The entries of one repeated field.
    pub(super) fn new(context: &'c Context, kind: Kind, entries: &'de [u8], depth: usize) -> Self {
        let source = ItemSource::Entries { kind, reader: Reader::new(entries), number: None, packed: None };
        Self { context, source, depth, given: 0 }
    }

    /// The items of an array in embedded JSON.
    pub(super) fn from_json(context: &'c Context, items: Vec<serde_json::Value>) -> Self {
        Self { context, source: ItemSource::Json(items.into_iter()), depth: 0, given: 0 }
    }

    /// The next item.
    fn step(&mut self) -> Result<Option<Value<'de, 'c>>, ViewError> {
        let (context, depth) = (self.context, self.depth);
        let value = |kind, data| Some(Value { context, kind, data, plan: None, depth });
        self.given += 1;
        let (kind, reader, number, packed) = match &mut self.source {
            ItemSource::Json(items) => {
                return Ok(items.next().and_then(|item| value(Kind::Raw, Data::Json(Box::new(item)))));
            }
            ItemSource::Entries { kind, reader, number, packed } => (*kind, reader, number, packed),
        };
        loop {
            if let Some(numbers) = packed {
                let bytes = numbers.bytes();
                match packed_number(kind, numbers).map_err(|error| context.locate(bytes, error))? {
                    Some(wire) => return Ok(value(kind, Data::One(wire))),
                    None => *packed = None,
                }
            }
            let bytes = reader.bytes();
            let Some(entry) = reader.next().map_err(|error| context.locate(bytes, error))? else {
                return Ok(None);
            };
            if *number.get_or_insert(entry.number) != entry.number {
                return Err(ViewError::new(Cause::Disorder));
            }
            let data = match (kind, entry.value) {
                (kind, Wire::Bytes(numbers)) if is_number(kind) => {
                    *packed = Some(Reader::new(numbers));
                    continue;
                }
                (Kind::Message(id), Wire::Bytes(bytes)) => match super::partial_metadata() {
                    Some(root) if root.message == id => Data::Root(root, bytes),
                    _ => Data::One(entry.value),
                },
                (_, wire) => Data::One(wire),
            };
            return Ok(value(kind, data));
        }
    }
}

impl<'de> de::SeqAccess<'de> for Items<'de, '_> {
    type Error = ViewError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ViewError> {
        match self.step()? {
            Some(mut value) => {
                let index = self.given - 1;
                seed.deserialize(&mut value).map(Some).map_err(|error| error.within(index.to_string()))
            }
            None => Ok(None),
        }
    }
}
