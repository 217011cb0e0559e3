//! One value of a message, and what it is in JSON.
//!
//! Nothing here depends on the type that a view decodes to: the compiler sees it once, not once per type.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::{self, Unexpected};

use super::plan::Node;
use super::reader::{Reader, Value as Wire};
use super::walk::Items;
use super::{MAGIC, MAX_DEPTH, document, text};
use crate::encoding::schema::{self, Kind, Message, MessageId, Root, Shape};
use crate::encoding::{DecodeError, Fault, ViewError};

/// How deep views go. Bytes that were checked are not nested deeper than [`MAX_DEPTH`]; what Go shows of a
/// struct that is not there is a few levels more.
const VIEW_DEPTH: usize = MAX_DEPTH + 8;

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
    pub(super) fn locate(&self, part: &[u8], mut error: DecodeError) -> ViewError {
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
    /// How many objects and arrays stand around it.
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
    /// Boxed: it is rare, and all others are smaller.
    Json(Box<serde_json::Value>),
}

/// One value, as JSON has it.
pub(super) enum Plain<'de, 'c> {
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
pub(super) enum Object<'de, 'c> {
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
    /// To be asked once: embedded JSON is given away.
    pub(super) fn plain(&mut self) -> Result<Plain<'de, 'c>, ViewError> {
        let Self { context, kind, plan, depth, .. } = *self;
        if depth >= VIEW_DEPTH
            && let Data::Root(_, bytes) | Data::List(bytes) | Data::Map(bytes) | Data::One(Wire::Bytes(bytes)) =
                self.data
        {
            let fault = Fault::TooDeep { limit: MAX_DEPTH };
            return Err(context.locate(bytes, DecodeError::new(fault, 0, "fewer levels")));
        }
        let depth = depth + 1;
        let object = |message, bytes, head| {
            let message = schema::message(message);
            Ok(Plain::Object(Object::Message { context, message, bytes, head, plan, depth }))
        };
        let list = |kind, bytes: &'de [u8]| Ok(Plain::Array(Items::new(context, kind, bytes, depth)));
        let wire = match &mut self.data {
            Data::Null => return Ok(Plain::Null),
            Data::EmptyList => return list(kind, &[]),
            Data::Root(root, bytes) => return object(root.message, bytes, Some(root)),
            Data::List(bytes) => return list(kind, bytes),
            Data::Map(bytes) => return Ok(Plain::Object(Object::Map { context, kind, bytes, depth })),
            Data::Json(value) => return Ok(Plain::from_json(context, std::mem::take(&mut **value))),
            Data::One(wire) => *wire,
        };
        Ok(match (kind, wire) {
            (Kind::String, Wire::Bytes(bytes)) => Plain::Text(text::string(bytes)),
            (Kind::Message(id), Wire::Bytes(bytes)) => return object(id, bytes, None),
            (Kind::Bool, Wire::Varint(value)) => Plain::Bool(value != 0),
            // Go keeps the low 32 bits.
            (Kind::Int32, Wire::Varint(value)) => Plain::Signed(i64::from(value as i32)),
            (Kind::Int64, Wire::Varint(value)) => Plain::Signed(value as i64),
            (Kind::Double, Wire::Fixed64(bits)) => double(f64::from_bits(bits)),
            (Kind::Bytes, Wire::Bytes(bytes)) => Plain::Text(Cow::Owned(BASE64_STANDARD.encode(bytes))),
            (_, Wire::Bytes(bytes)) => {
                match special(kind, bytes).map_err(|error| context.locate(bytes, error))? {
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

    #[inline]
    pub(super) fn is_null(&self) -> Result<bool, ViewError> {
        match (&self.data, self.kind) {
            (
                Data::One(Wire::Bytes(bytes)),
                Kind::Time
                | Kind::MicroTime
                | Kind::Raw
                | Kind::SchemaOrArray(_)
                | Kind::SchemaOrStringArray(_),
            ) => self.is_special_null(bytes),
            (Data::Null, _) => Ok(true),
            (Data::Json(value), _) => Ok(value.is_null()),
            _ => Ok(false),
        }
    }

    /// Special types may be null though they are there.
    fn is_special_null(&self, bytes: &'de [u8]) -> Result<bool, ViewError> {
        let null = match self.kind {
            Kind::Time => text::seconds(bytes).map(|seconds| seconds.is_none()),
            Kind::MicroTime => text::micro_time(bytes).map(|text| text.is_none()),
            Kind::Raw => {
                // JSON may have space around it.
                let raw = |fields: Fields<'de>| fields.bytes(1).map_or(&[][..], <[u8]>::trim_ascii);
                Fields::read(bytes).map(|fields| matches!(raw(fields), [] | b"null"))
            }
            _ => Ok(bytes.is_empty()),
        };
        null.map_err(|error| self.context.locate(bytes, error))
    }
}

/// What a message with rules of its own is in JSON.
enum Special<'de, 'c> {
    Plain(Plain<'de, 'c>),
    Message(MessageId, &'de [u8]),
    List(Kind, &'de [u8]),
    Document(&'de [u8]),
    Json(&'de [u8]),
}

fn special<'de, 'c>(kind: Kind, bytes: &'de [u8]) -> Result<Special<'de, 'c>, DecodeError> {
    let null_or_text =
        |text: Option<String>| Special::Plain(text.map_or(Plain::Null, |text| Plain::Text(Cow::Owned(text))));
    Ok(match kind {
        Kind::Time => null_or_text(text::time(bytes)?),
        Kind::MicroTime => null_or_text(text::micro_time(bytes)?),
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
            Some(raw) if raw.starts_with(MAGIC) => Special::Document(raw),
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
fn either<'de, 'c>(bytes: &'de [u8], id: MessageId, kind: Kind) -> Result<Special<'de, 'c>, DecodeError> {
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

/// The fields of a message with rules of its own.
pub(super) fn part(kind: Kind, number: u32) -> Option<(Kind, Shape)> {
    Some(match (kind, number) {
        (Kind::Time | Kind::MicroTime | Kind::IntOrString, 1) => (Kind::Int64, Shape::One),
        (Kind::Time | Kind::MicroTime | Kind::IntOrString, 2) => (Kind::Int32, Shape::One),
        (Kind::Quantity, 1) | (Kind::IntOrString, 3) => (Kind::String, Shape::One),
        (Kind::Raw, 1) => (Kind::Bytes, Shape::One),
        (Kind::SchemaOrBool(_), 1) => (Kind::Bool, Shape::One),
        (Kind::SchemaOrBool(id), 2) | (Kind::SchemaOrArray(id) | Kind::SchemaOrStringArray(id), 1) => {
            (Kind::Message(id), Shape::Pointer)
        }
        (Kind::SchemaOrArray(id), 2) => (Kind::Message(id), Shape::List),
        (Kind::SchemaOrStringArray(_), 2) | (Kind::Strings, 1) => (Kind::String, Shape::List),
        _ => return None,
    })
}

/// The first three fields of a small message; the last of each wins.
#[derive(Default)]
pub(super) struct Fields<'a>(pub(super) [Option<Wire<'a>>; 3]);

impl<'a> Fields<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
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

    pub(super) fn bytes(&self, number: usize) -> Option<&'a [u8]> {
        match self.0[number - 1] {
            Some(Wire::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }
}

/// A float as Go prints it and JSON parsers read it back: whole values are whole numbers.
fn double<'de, 'c>(value: f64) -> Plain<'de, 'c> {
    /// Up to here, every whole number is a double of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() != 0.0 || (value == 0.0 && value.is_sign_negative()) {
        Plain::Float(value)
    } else if value.abs() <= EXACT {
        Plain::Signed(value as i64)
    } else {
        // Go prints no more digits than tell it from its neighbours, and zeros behind them.
        let digits = value.to_string();
        match (digits.parse(), digits.parse()) {
            (Ok(value), _) => Plain::Signed(value),
            (_, Ok(value)) => Plain::Unsigned(value),
            _ => Plain::Float(value),
        }
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
            serde_json::Value::Array(items) => Self::Array(Items::from_json(context, items)),
            serde_json::Value::Object(map) => Self::Object(Object::Json { context, map }),
        }
    }

    #[cold]
    pub(super) fn mismatch(&self, expected: &dyn de::Expected) -> ViewError {
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

/// What stands on the wire for a kind's zero value.
pub(super) fn zero(kind: Kind) -> Wire<'static> {
    match kind {
        Kind::Bool | Kind::Int32 | Kind::Int64 => Wire::Varint(0),
        Kind::Double => Wire::Fixed64(0),
        _ => Wire::Bytes(&[]),
    }
}

/// Whether a value is what Go's `omitempty` and `omitzero` leave out.
#[inline]
pub(super) fn is_zero(kind: Kind, value: Wire<'_>) -> bool {
    match (kind, value) {
        // By far the most.
        (Kind::String, Wire::Bytes(bytes)) => bytes.is_empty(),
        (Kind::Time, Wire::Bytes(bytes)) => matches!(text::seconds(bytes), Ok(None)),
        (Kind::MicroTime, Wire::Bytes(bytes)) => matches!(text::micro_time(bytes), Ok(None)),
        // -0.0 is zero to Go's omitempty.
        (Kind::Double, Wire::Fixed64(bits)) => f64::from_bits(bits) == 0.0,
        (Kind::Int32, Wire::Varint(value)) => value as u32 == 0,
        (_, Wire::Varint(value)) => value == 0,
        (_, Wire::Bytes(bytes)) => bytes.is_empty(),
        (_, Wire::Fixed64(bits)) => bits == 0,
        (_, Wire::Fixed32(bits)) => bits == 0,
    }
}

pub(super) fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Bool | Kind::Int32 | Kind::Int64 | Kind::Double)
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
