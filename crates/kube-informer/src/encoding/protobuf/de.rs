//! A `serde::Deserializer` over the wire bytes of a message and the schema table.
//!
//! What it shows is the server's JSON of the object, value for value: JSON names, Go's rules for what is
//! left out, special types as text. Nothing is built in between: the target's visitors are called with
//! what stands in the bytes, strings are lent, and what the target ignores is never looked into.
//!
//! Everything that does not depend on the target stands in functions that are not generic
//! ([`Value::plain`], [`Entries::step`], [`Items::step`]): the compiler sees them once, not once per type.
//!
//! Entries must stand in ascending order of their numbers, as Go writes them; [`super::canonical`] brings
//! others into that order. Recursion is bounded by [`MAX_DEPTH`].

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::{self, DeserializeSeed, Deserializer, Unexpected, Visitor};

use super::plan::Node;
use super::reader::{Entry, Reader, Value as Wire};
use super::{MAX_DEPTH, document, text};
use crate::encoding::schema::{self, Absent, Field, Kind, Message, Root, Shape};
use crate::encoding::view_error::{Cause, ViewError};
use crate::encoding::{DecodeError, Fault};

/// What holds for one whole document.
pub(super) struct Context {
    /// The address of the document's first byte: offsets of errors count from there.
    origin: usize,
}

impl Context {
    pub(super) fn new(document: &[u8]) -> Self {
        Self { origin: document.as_ptr() as usize }
    }

    /// An error in a part of the document, with its offset from the document's start.
    #[cold]
    fn locate(&self, part: &[u8], mut error: DecodeError) -> ViewError {
        error.offset += (part.as_ptr() as usize).saturating_sub(self.origin);
        error.into()
    }
}

/// One value, before it is known what the target makes of it.
pub(super) struct Value<'de, 'c> {
    pub(super) context: &'c Context,
    pub(super) kind: Kind,
    pub(super) data: Data<'de>,
    /// What was dropped below it.
    pub(super) plan: Option<&'c Node>,
    pub(super) depth: usize,
}

pub(super) enum Data<'de> {
    Null,
    EmptyList,
    /// A document: the message, and the type that JSON shows with it.
    Root(&'static Root, &'de [u8]),
    One(Wire<'de>),
    /// All entries of one repeated field, with their tags.
    List(&'de [u8]),
    Map(&'de [u8]),
    /// From embedded JSON.
    Json(serde_json::Value),
}

/// One value, as JSON has it.
enum Plain<'de, 'c> {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(Cow<'de, str>),
    Object(Object<'de, 'c>),
    Array(Items<'de, 'c>),
}

/// A JSON object that has not been begun.
enum Object<'de, 'c> {
    Message {
        context: &'c Context,
        message: &'static Message,
        bytes: &'de [u8],
        head: Option<&'static Root>,
        plan: Option<&'c Node>,
        depth: usize,
    },
    Map {
        context: &'c Context,
        kind: Kind,
        bytes: &'de [u8],
        depth: usize,
    },
    Json {
        context: &'c Context,
        map: serde_json::Map<String, serde_json::Value>,
    },
}

impl<'de, 'c> Value<'de, 'c> {
    fn plain(self) -> Result<Plain<'de, 'c>, ViewError> {
        let Self { context, kind, data, plan, depth } = self;
        let object = |message, bytes, head| {
            if depth >= MAX_DEPTH {
                let fault = Fault::TooDeep { limit: MAX_DEPTH };
                return Err(context.locate(bytes, DecodeError::new(fault, 0, "fewer levels")));
            }
            let message = schema::message(message);
            Ok(Plain::Object(Object::Message { context, message, bytes, head, plan, depth: depth + 1 }))
        };
        let list = |kind, bytes| {
            Ok(Plain::Array(Items::Entries { context, kind, reader: Reader::new(bytes), packed: None, plan, depth, index: 0 }))
        };
        let wire = match data {
            Data::Null => return Ok(Plain::Null),
            Data::EmptyList => return list(kind, &[]),
            Data::Root(root, bytes) => return object(root.message, bytes, Some(root)),
            Data::List(bytes) => return list(kind, bytes),
            Data::Map(bytes) => return Ok(Plain::Object(Object::Map { context, kind, bytes, depth })),
            Data::Json(value) => return Ok(Plain::from_json(context, value)),
            Data::One(wire) => wire,
        };
        Ok(match (kind, wire) {
            (Kind::String, Wire::Bytes(bytes)) => Plain::Text(text::string(bytes)),
            (Kind::Message(id), Wire::Bytes(bytes)) => return object(id, bytes, None),
            (Kind::Bool, Wire::Varint(value)) => Plain::Bool(value != 0),
            // Go keeps the low 32 bits.
            (Kind::Int32, Wire::Varint(value)) => Plain::Signed(i64::from(value as i32)),
            (Kind::Int64, Wire::Varint(value)) => Plain::Signed(value as i64),
            (Kind::Uint32, Wire::Varint(value)) => Plain::Unsigned(u64::from(value as u32)),
            (Kind::Uint64, Wire::Varint(value)) => Plain::Unsigned(value),
            (Kind::Double, Wire::Fixed64(bits)) => double(f64::from_bits(bits)),
            (Kind::Bytes, Wire::Bytes(bytes)) => Plain::Text(Cow::Owned(BASE64_STANDARD.encode(bytes))),
            (_, Wire::Bytes(bytes)) => {
                let special = special(context, kind, bytes);
                match special.map_err(|error| context.locate(bytes, error))? {
                    Special::Plain(plain) => plain,
                    Special::Message(id, bytes) => return object(id, bytes, None),
                    Special::List(kind, bytes) => return list(kind, bytes),
                    Special::Document(bytes) => {
                        let (root, body) = document(bytes).map_err(|error| context.locate(bytes, error))?;
                        return object(root.message, body, Some(root));
                    }
                    Special::Json(bytes) => Plain::from_json(context, serde_json::from_slice(bytes)?),
                }
            }
            (kind, wire) => {
                let fault = Fault::Unexpected { found: format!("{wire:?}") };
                return Err(DecodeError::new(fault, 0, format!("a value of kind {kind:?}")).into());
            }
        })
    }

    fn is_null(&self) -> Result<bool, ViewError> {
        Ok(match (&self.data, self.kind) {
            (Data::Null | Data::Json(serde_json::Value::Null), _) => true,
            // Special types may be null though they are there.
            (
                Data::One(wire),
                Kind::Time
                | Kind::MicroTime
                | Kind::Raw
                | Kind::SchemaOrArray(_)
                | Kind::SchemaOrStringArray(_),
            ) => {
                let Self { context, kind, plan, depth, .. } = *self;
                let same = Value { context, kind, data: Data::One(*wire), plan, depth };
                matches!(same.plain()?, Plain::Null)
            }
            _ => false,
        })
    }
}

/// What a message with rules of its own is in JSON.
enum Special<'de, 'c> {
    Plain(Plain<'de, 'c>),
    Message(schema::MessageId, &'de [u8]),
    List(Kind, &'de [u8]),
    Document(&'de [u8]),
    Json(&'de [u8]),
}

fn special<'de, 'c>(_: &'c Context, kind: Kind, bytes: &'de [u8]) -> Result<Special<'de, 'c>, DecodeError> {
    let null_or_text = |text: Option<String>| {
        Special::Plain(text.map_or(Plain::Null, |text| Plain::Text(Cow::Owned(text))))
    };
    Ok(match kind {
        Kind::Time => null_or_text(text::time(bytes)?),
        Kind::MicroTime => null_or_text(text::micro_time(bytes)?),
        Kind::Duration => {
            let nanos = Fields::read(bytes)?.number(1);
            null_or_text(Some(text::duration(nanos as i64)))
        }
        Kind::Quantity => match Fields::read(bytes)?.bytes(1) {
            None | Some([]) => Special::Plain(Plain::Text(Cow::Borrowed("0"))),
            Some(bytes) => Special::Plain(Plain::Text(text::string(bytes))),
        },
        Kind::IntOrString => {
            let fields = Fields::read(bytes)?;
            Special::Plain(match fields.number(1) {
                0 => Plain::Signed(i64::from(fields.number(2) as i32)),
                1 => Plain::Text(text::string(fields.bytes(3).unwrap_or_default())),
                other => {
                    let fault = Fault::Unexpected { found: format!("type {other}") };
                    return Err(DecodeError::new(fault, 0, "an IntOrString of type 0 or 1"));
                }
            })
        }
        Kind::Raw => match Fields::read(bytes)?.bytes(1) {
            None | Some([]) => Special::Plain(Plain::Null),
            Some(raw) if raw.starts_with(super::MAGIC) => Special::Document(raw),
            Some(raw) => Special::Json(raw),
        },
        Kind::SchemaOrBool(id) => {
            let fields = Fields::read(bytes)?;
            match fields.bytes(2) {
                Some(schema) => Special::Message(id, schema),
                None => Special::Plain(Plain::Bool(fields.number(1) != 0)),
            }
        }
        Kind::SchemaOrArray(id) => either(bytes, id, Kind::Message(id))?,
        Kind::SchemaOrStringArray(id) => either(bytes, id, Kind::String)?,
        Kind::Strings => Special::List(Kind::String, bytes),
        kind => {
            let fault = Fault::Unexpected { found: format!("{} bytes", bytes.len()) };
            return Err(DecodeError::new(fault, 0, format!("a value of kind {kind:?}")));
        }
    })
}

/// `{1 schema, 2 list}`: the list where it has items, else the schema, else null.
fn either<'de, 'c>(bytes: &'de [u8], id: schema::MessageId, kind: Kind) -> Result<Special<'de, 'c>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let mut schema = None;
    while let Some(entry) = reader.next()? {
        match (entry.number, entry.value) {
            (1, Wire::Bytes(value)) => schema = Some(value),
            // The list is the last field: the rest of the bytes.
            (2, _) => return Ok(Special::List(kind, bytes.get(entry.start..).unwrap_or_default())),
            _ => {}
        }
    }
    Ok(match schema {
        Some(schema) => Special::Message(id, schema),
        None => Special::Plain(Plain::Null),
    })
}

/// The first three fields of a small message; the last of each wins.
#[derive(Default)]
struct Fields<'a>([Option<Wire<'a>>; 3]);

impl<'a> Fields<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut fields = Self::default();
        let mut reader = Reader::new(bytes);
        while let Some(entry) = reader.next()? {
            if let Some(field) = fields.0.get_mut(entry.number as usize - 1) {
                *field = Some(entry.value);
            }
        }
        Ok(fields)
    }

    fn number(&self, number: usize) -> u64 {
        match self.0[number - 1] {
            Some(Wire::Varint(value)) => value,
            _ => 0,
        }
    }

    fn bytes(&self, number: usize) -> Option<&'a [u8]> {
        match self.0[number - 1] {
            Some(Wire::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }
}

/// A float as Go prints it and JSON parsers read it back: whole values are whole numbers.
fn double<'de, 'c>(value: f64) -> Plain<'de, 'c> {
    let whole = value.fract() == 0.0 && !(value == 0.0 && value.is_sign_negative());
    if whole && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        Plain::Signed(value as i64)
    } else if whole && (0.0..18_446_744_073_709_551_616.0).contains(&value) {
        Plain::Unsigned(value as u64)
    } else {
        Plain::Float(value)
    }
}

impl<'de, 'c> Plain<'de, 'c> {
    fn from_json(context: &'c Context, value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(value),
            serde_json::Value::String(text) => Self::Text(Cow::Owned(text)),
            serde_json::Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => Self::Unsigned(value),
                (None, Some(value)) => Self::Signed(value),
                (None, None) => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::Array(items) => Self::Array(Items::Json { context, items: items.into_iter(), index: 0 }),
            serde_json::Value::Object(map) => Self::Object(Object::Json { context, map }),
        }
    }

    #[cold]
    fn mismatch(&self, expected: &dyn de::Expected) -> ViewError {
        let found = match self {
            Self::Null => Unexpected::Unit,
            Self::Bool(value) => Unexpected::Bool(*value),
            Self::Signed(value) => Unexpected::Signed(*value),
            Self::Unsigned(value) => Unexpected::Unsigned(*value),
            Self::Float(value) => Unexpected::Float(*value),
            Self::Text(text) => Unexpected::Str(text),
            Self::Object(_) => Unexpected::Map,
            Self::Array(_) => Unexpected::Seq,
        };
        de::Error::invalid_type(found, expected)
    }
}

// === The fields of a JSON object ===

/// The fields of a JSON object, one by one: of a message, of a map, or of embedded JSON.
struct Entries<'de, 'c> {
    source: Source<'de, 'c>,
    /// The value of the key that was given last.
    value: Option<Value<'de, 'c>>,
    /// That key, for errors.
    name: Cow<'static, str>,
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
    fn new(object: Object<'de, 'c>) -> Result<Self, ViewError> {
        let source = match object {
            Object::Message { context, message, bytes, head, plan, depth } => Source::Message(Walk {
                context,
                head,
                head_keys: 0,
                current: Level::new(context, message, bytes, plan)?,
                outer: Vec::new(),
                depth,
            }),
            Object::Map { context, kind, bytes, depth } => {
                Source::Map { context, kind, reader: Reader::new(bytes), depth }
            }
            Object::Json { context, map } => Source::Json { context, fields: map.into_iter() },
        };
        Ok(Self { source, value: None, name: Cow::Borrowed("") })
    }

    /// The next key; its value is put aside.
    fn step(&mut self) -> Result<Option<Cow<'de, str>>, ViewError> {
        match &mut self.source {
            Source::Message(walk) => {
                let Some((name, value)) = walk.step()? else { return Ok(None) };
                self.name = Cow::Borrowed(name);
                self.value = Some(value);
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
                    return Err(context.locate(bytes, DecodeError::new(fault, entry.start, "an entry of a map")));
                };
                let pair_fields = Fields::read(pair).map_err(|error| context.locate(pair, error))?;
                let key = text::string(pair_fields.bytes(1).unwrap_or_default());
                let data = Data::One(pair_fields.0[1].unwrap_or(zero(*kind)));
                self.value = Some(Value { context, kind: *kind, data, plan: None, depth: *depth });
                self.name = Cow::Owned(key.clone().into_owned());
                Ok(Some(key))
            }
            Source::Json { context, fields } => {
                let Some((key, value)) = fields.next() else { return Ok(None) };
                let (kind, data) = (Kind::Raw, Data::Json(value));
                self.value = Some(Value { context, kind, data, plan: None, depth: 0 });
                self.name = Cow::Owned(key.clone());
                Ok(Some(Cow::Owned(key)))
            }
        }
    }
}

impl<'de, 'c> Level<'de, 'c> {
    fn new(
        context: &'c Context,
        message: &'static Message,
        bytes: &'de [u8],
        plan: Option<&'c Node>,
    ) -> Result<Self, ViewError> {
        let reader = Reader::new(bytes);
        let mut level = Self { message, fields: message.fields, reader, entry: None, last: 0, plan };
        level.read(context)?;
        Ok(level)
    }

    fn read(&mut self, context: &'c Context) -> Result<(), ViewError> {
        self.entry = self.reader.next().map_err(|error| context.locate(self.reader.bytes(), error))?;
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
        let fault = Fault::UnknownField { message: self.message.name, number: entry.number };
        context.locate(self.reader.bytes(), DecodeError::new(fault, entry.start, "a field of the schema table"))
    }
}

impl<'de, 'c> Walk<'de, 'c> {
    /// The next field that JSON shows.
    fn step(&mut self) -> Result<Option<(&'static str, Value<'de, 'c>)>, ViewError> {
        let (context, depth) = (self.context, self.depth);
        if let Some(root) = self.head {
            let (name, text) = match self.head_keys {
                0 => ("apiVersion", root.api_version),
                _ => ("kind", root.kind),
            };
            self.head_keys += 1;
            if self.head_keys == 2 {
                self.head = None;
            }
            let data = Data::One(Wire::Bytes(text.as_bytes()));
            return Ok(Some((name, Value { context, kind: Kind::String, data, plan: None, depth })));
        }
        loop {
            let level = &mut self.current;
            let Some((field, rest)) = level.fields.split_first() else {
                if let Some(entry) = &level.entry {
                    return Err(level.out_of_place(context, entry));
                }
                let Some(outer) = self.outer.pop() else { return Ok(None) };
                self.current = outer;
                continue;
            };
            let number = u32::from(field.number);
            let present = match level.entry {
                Some(entry) if entry.number < number => return Err(level.out_of_place(context, &entry)),
                Some(entry) if entry.number == number => Some(entry),
                _ => None,
            };
            level.fields = rest;
            let plan = level.plan.and_then(|plan| plan.below(number));
            let value = |data| Value { context, kind: field.kind, data, plan, depth };
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
                return Ok(Some((field.name, value(data))));
            };
            level.last = number;
            match field.shape {
                Shape::List => return Ok(Some((field.name, value(Data::List(level.span(context, &entry)?))))),
                Shape::Map => return Ok(Some((field.name, value(Data::Map(level.span(context, &entry)?))))),
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
            return Ok(Some((field.name, value(Data::One(entry.value)))));
        }
    }

    /// Goes on with the fields of a message that is nested on the wire and flat in JSON.
    fn embed(&mut self, field: &Field, bytes: &'de [u8], plan: Option<&'c Node>) -> Result<(), ViewError> {
        let Kind::Message(id) = field.kind else { return Ok(()) };
        let inner = Level::new(self.context, schema::message(id), bytes, plan)?;
        self.outer.push(std::mem::replace(&mut self.current, inner));
        Ok(())
    }
}

/// What stands on the wire for a kind's zero value.
pub(super) fn zero(kind: Kind) -> Wire<'static> {
    match kind {
        Kind::Bool | Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64 => Wire::Varint(0),
        Kind::Double => Wire::Fixed64(0),
        _ => Wire::Bytes(&[]),
    }
}

/// Whether a value is what Go's `omitempty` and `omitzero` leave out.
fn is_zero(kind: Kind, value: Wire<'_>) -> bool {
    match (kind, value) {
        (Kind::Time, Wire::Bytes(bytes)) => matches!(text::time(bytes), Ok(None)),
        (Kind::MicroTime, Wire::Bytes(bytes)) => matches!(text::micro_time(bytes), Ok(None)),
        // -0.0 is zero to Go's omitempty.
        (Kind::Double, Wire::Fixed64(bits)) => f64::from_bits(bits) == 0.0,
        (Kind::Int32 | Kind::Uint32, Wire::Varint(value)) => value as u32 == 0,
        (_, Wire::Varint(value)) => value == 0,
        (_, Wire::Bytes(bytes)) => bytes.is_empty(),
        (_, Wire::Fixed64(bits)) => bits == 0,
        (_, Wire::Fixed32(bits)) => bits == 0,
    }
}

impl<'de> de::MapAccess<'de> for Entries<'de, '_> {
    type Error = ViewError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ViewError> {
        match self.step()? {
            Some(key) => seed.deserialize(Key(key)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ViewError> {
        match self.value.take() {
            Some(value) => {
                seed.deserialize(value).map_err(|error| error.within(std::mem::take(&mut self.name)))
            }
            None => Err(de::Error::custom("a value was asked for before its key")),
        }
    }
}

// === The items of a JSON array ===

/// The items of a JSON array, one by one: entries of a repeated field, or of embedded JSON.
enum Items<'de, 'c> {
    Entries {
        context: &'c Context,
        kind: Kind,
        reader: Reader<'de>,
        /// What is left of numbers that stand in one entry.
        packed: Option<Reader<'de>>,
        plan: Option<&'c Node>,
        depth: usize,
        index: usize,
    },
    Json {
        context: &'c Context,
        items: std::vec::IntoIter<serde_json::Value>,
        index: usize,
    },
}

impl<'de, 'c> Items<'de, 'c> {
    /// The next item.
    fn step(&mut self) -> Result<Option<Value<'de, 'c>>, ViewError> {
        match self {
            Self::Entries { context, kind, reader, packed, plan, depth, index } => {
                let (context, kind, plan, depth) = (*context, *kind, *plan, *depth);
                loop {
                    if let Some(numbers) = packed {
                        let bytes = numbers.bytes();
                        match packed_number(kind, numbers).map_err(|error| context.locate(bytes, error))? {
                            Some(wire) => {
                                *index += 1;
                                return Ok(Some(Value { context, kind, data: Data::One(wire), plan, depth }));
                            }
                            None => *packed = None,
                        }
                    }
                    let bytes = reader.bytes();
                    let Some(entry) = reader.next().map_err(|error| context.locate(bytes, error))? else {
                        return Ok(None);
                    };
                    if let (true, Wire::Bytes(numbers)) = (is_number(kind), entry.value) {
                        *packed = Some(Reader::new(numbers));
                        continue;
                    }
                    *index += 1;
                    let data = match (kind, entry.value) {
                        (Kind::Message(id), Wire::Bytes(bytes)) if Some(id) == super::partial_metadata() => {
                            match schema::root("meta.k8s.io/v1", "PartialObjectMetadata") {
                                Some(root) => Data::Root(root, bytes),
                                None => Data::One(entry.value),
                            }
                        }
                        (_, value) => Data::One(value),
                    };
                    return Ok(Some(Value { context, kind, data, plan, depth }));
                }
            }
            Self::Json { context, items, index } => {
                *index += 1;
                let value = |value| Value { context, kind: Kind::Raw, data: Data::Json(value), plan: None, depth: 0 };
                Ok(items.next().map(value))
            }
        }
    }

    fn index(&self) -> usize {
        match self {
            Self::Entries { index, .. } | Self::Json { index, .. } => index.saturating_sub(1),
        }
    }
}

pub(super) fn is_number(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Bool | Kind::Int32 | Kind::Int64 | Kind::Uint32 | Kind::Uint64 | Kind::Double
    )
}

/// The next of several numbers in one entry.
pub(super) fn packed_number<'de>(
    kind: Kind,
    numbers: &mut Reader<'de>,
) -> Result<Option<Wire<'de>>, DecodeError> {
    if numbers.is_empty() {
        Ok(None)
    } else if kind == Kind::Double {
        numbers.fixed64().map(|bits| Some(Wire::Fixed64(bits)))
    } else {
        numbers.varint().map(|value| Some(Wire::Varint(value)))
    }
}

impl<'de> de::SeqAccess<'de> for Items<'de, '_> {
    type Error = ViewError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ViewError> {
        match self.step()? {
            Some(value) => {
                seed.deserialize(value).map(Some).map_err(|error| error.within(self.index().to_string()))
            }
            None => Ok(None),
        }
    }
}

// === What the target asks for ===

fn visit_text<'de, V: Visitor<'de>>(text: Cow<'de, str>, visitor: V) -> Result<V::Value, ViewError> {
    match text {
        Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
        Cow::Owned(text) => visitor.visit_string(text),
    }
}

impl<'de> Deserializer<'de> for Value<'de, '_> {
    type Error = ViewError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        match self.plain()? {
            Plain::Null => visitor.visit_unit(),
            Plain::Bool(value) => visitor.visit_bool(value),
            Plain::Signed(value) => visitor.visit_i64(value),
            Plain::Unsigned(value) => visitor.visit_u64(value),
            Plain::Float(value) => visitor.visit_f64(value),
            Plain::Text(text) => visit_text(text, visitor),
            Plain::Object(object) => visitor.visit_map(Entries::new(object)?),
            Plain::Array(items) => visitor.visit_seq(items),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        match self.plain()? {
            Plain::Bool(value) => visitor.visit_bool(value),
            other => Err(other.mismatch(&visitor)),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        match self.plain()? {
            Plain::Signed(value) => visitor.visit_i64(value),
            Plain::Unsigned(value) => visitor.visit_u64(value),
            Plain::Float(value) => visitor.visit_f64(value),
            other => Err(other.mismatch(&visitor)),
        }
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        match self.plain()? {
            Plain::Text(text) => visit_text(text, visitor),
            other => Err(other.mismatch(&visitor)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_str(visitor)
    }
    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_str(visitor)
    }
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_str(visitor)
    }

    /// Bytes are text here, as they are in JSON: a type reads the same from both encodings.
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        match self.plain()? {
            Plain::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_bytes(text.as_bytes()),
            Plain::Text(Cow::Owned(text)) => visitor.visit_byte_buf(text.into_bytes()),
            Plain::Array(items) => visitor.visit_seq(items),
            other => Err(other.mismatch(&visitor)),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        if self.is_null()? { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        match self.plain()? {
            Plain::Null => visitor.visit_unit(),
            other => Err(other.mismatch(&visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ViewError> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ViewError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        match self.plain()? {
            Plain::Array(items) => visitor.visit_seq(items),
            other => Err(other.mismatch(&visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, ViewError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        match self.plain()? {
            Plain::Object(object) => visitor.visit_map(Entries::new(object)?),
            other => Err(other.mismatch(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ViewError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ViewError> {
        match self.plain()? {
            Plain::Text(text) => visitor.visit_enum(de::value::CowStrDeserializer::new(text)),
            Plain::Object(object) => {
                visitor.visit_enum(de::value::MapAccessDeserializer::new(Entries::new(object)?))
            }
            other => Err(other.mismatch(&visitor)),
        }
    }

    /// Costs nothing: the reader has already jumped over it by its length.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        visitor.visit_unit()
    }
}

/// A key of a JSON object.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = ViewError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        visit_text(self.0, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ViewError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ViewError> {
        visitor.visit_enum(de::value::CowStrDeserializer::new(self.0))
    }

    /// Keys that are numbers, as `serde_json` reads them.
    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        match (self.0.parse::<u64>(), self.0.parse::<i64>()) {
            (Ok(value), _) => visitor.visit_u64(value),
            (_, Ok(value)) => visitor.visit_i64(value),
            _ => Err(de::Error::invalid_type(Unexpected::Str(&self.0), &visitor)),
        }
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_i16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_i32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }
    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        self.deserialize_i64(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}
