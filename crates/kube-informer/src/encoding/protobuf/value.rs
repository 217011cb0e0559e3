//! One value of a message, and what it is in JSON.
//!
//! Nothing here depends on the type that a view decodes to: the compiler sees it once, not once per type.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::{self, Unexpected};

use super::plan::Node;
use super::reader::{Reader, Value as Wire};
use super::walk::{Entries, Items};
use super::{MAGIC, MAX_DEPTH, document, text};
use crate::encoding::schema::{Kind, MessageId, Root, Shape};
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
///
/// An object's fields, and an array's items, take turns in one `Value`: what they have in common is written once.
pub(super) struct Value<'de, 'c> {
    pub(super) context: &'c Context,
    pub(super) kind: Kind,
    pub(super) data: Data<'de>,
    /// The type that JSON shows with it, if it is a document.
    pub(super) head: Option<&'static Root>,
    /// What was dropped below it.
    pub(super) plan: Option<&'c Node>,
    /// How many objects and arrays stand around it.
    pub(super) depth: usize,
    /// What [`Data::Json`] stands for.
    pub(super) json: Option<Box<serde_json::Value>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Data<'de> {
    Null,
    EmptyList,
    // What stands on the wire: not as one variant, which were larger, and dearer to write.
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'de [u8]),
    /// All entries of one repeated field, with their tags, and how many they are.
    List(&'de [u8], u32),
    Map(&'de [u8]),
    /// From embedded JSON.
    Json,
}

impl<'de> From<Wire<'de>> for Data<'de> {
    #[inline]
    fn from(wire: Wire<'de>) -> Self {
        match wire {
            Wire::Varint(value) => Self::Varint(value),
            Wire::Fixed64(bits) => Self::Fixed64(bits),
            Wire::Fixed32(_) => Self::Fixed32,
            Wire::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

/// One value, as JSON has it.
pub(super) enum Plain<'de> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'de, str>),
    Object(Object<'de>),
    Array(Array<'de>),
}

/// A JSON number.
pub(super) enum Number {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

/// A JSON string.
pub(super) enum Text<'de> {
    Lent(&'de str),
    Owned(String),
    Time(text::Time),
}

/// A JSON object that has not been begun.
pub(super) enum Object<'de> {
    Message(MessageId, &'de [u8], Option<&'static Root>),
    Map(&'de [u8]),
    Json(serde_json::Map<String, serde_json::Value>),
}

/// A JSON array that has not been begun.
pub(super) enum Array<'de> {
    /// Entries of one number, and how many they are, if that is known.
    Entries(Kind, &'de [u8], Option<u32>),
    Json(Vec<serde_json::Value>),
}

impl<'de, 'c> Value<'de, 'c> {
    pub(super) fn new(context: &'c Context, depth: usize) -> Self {
        Self { context, kind: Kind::Raw, data: Data::Null, head: None, plan: None, depth, json: None }
    }

    /// To be asked once: embedded JSON is given away.
    pub(super) fn plain(&mut self) -> Result<Plain<'de>, ViewError> {
        let Self { context, kind, data, head, .. } = *self;
        if self.depth >= VIEW_DEPTH
            && let Data::List(bytes, _) | Data::Map(bytes) | Data::Bytes(bytes) = data
        {
            let fault = Fault::TooDeep { limit: MAX_DEPTH };
            return Err(context.locate(bytes, DecodeError::new(fault, 0, "fewer levels")));
        }
        Ok(match (kind, data) {
            (_, Data::Null) => Plain::Null,
            (_, Data::EmptyList) => Plain::Array(Array::Entries(kind, &[], None)),
            (_, Data::List(bytes, count)) => Plain::Array(Array::Entries(kind, bytes, Some(count))),
            (_, Data::Map(bytes)) => Plain::Object(Object::Map(bytes)),
            (_, Data::Json) => self.json.take().map_or(Plain::Null, |value| Plain::from_json(*value)),
            (Kind::String, Data::Bytes(bytes)) => Plain::Text(text::string(bytes)),
            (Kind::Message(id), Data::Bytes(bytes)) => Plain::Object(Object::Message(id, bytes, head)),
            (Kind::Bool, Data::Varint(value)) => Plain::Bool(value != 0),
            (Kind::Int32 | Kind::Int64, Data::Varint(value)) => Plain::Number(integer(kind, value)),
            (Kind::Double, Data::Fixed64(bits)) => Plain::Number(double(f64::from_bits(bits))),
            (Kind::Bytes, Data::Bytes(bytes)) => Plain::Text(Cow::Owned(BASE64_STANDARD.encode(bytes))),
            (_, Data::Bytes(bytes)) => {
                match special(kind, bytes).map_err(|error| context.locate(bytes, error))? {
                    Special::Plain(plain) => plain,
                    Special::Document(bytes) => {
                        let (root, body) = document(bytes).map_err(|error| context.locate(bytes, error))?;
                        Plain::Object(Object::Message(root.message, body, Some(root)))
                    }
                    Special::Json(bytes) => Plain::from_json(serde_json::from_slice(bytes)?),
                }
            }
            (kind, data) => {
                let fault = Fault::Unexpected { found: format!("{data:?}") };
                return Err(DecodeError::new(fault, 0, format!("a value of kind {kind:?}")).into());
            }
        })
    }

    /// The fields of an object. This and the next four: what most targets ask for, without a detour.
    pub(super) fn object(&mut self, expected: &dyn de::Expected) -> Result<Entries<'de, 'c>, ViewError> {
        if let (Kind::Message(id), Data::Bytes(bytes)) = (self.kind, self.data)
            && self.depth < VIEW_DEPTH
        {
            return Ok(Entries::message(self, id, bytes, self.head));
        }
        match self.plain()? {
            Plain::Object(object) => Ok(Entries::new(self, object)),
            other => Err(other.mismatch(expected)),
        }
    }

    pub(super) fn array(&mut self, expected: &dyn de::Expected) -> Result<Items<'de, 'c>, ViewError> {
        let array = match self.data {
            Data::List(bytes, count) if self.depth < VIEW_DEPTH => {
                Array::Entries(self.kind, bytes, Some(count))
            }
            _ => match self.plain()? {
                Plain::Array(array) => array,
                other => return Err(other.mismatch(expected)),
            },
        };
        Ok(Items::new(self, array))
    }

    pub(super) fn text(&mut self, expected: &dyn de::Expected) -> Result<Text<'de>, ViewError> {
        if let (Kind::Time, Data::Bytes(bytes)) = (self.kind, self.data)
            && let Some(time) = text::time(bytes).map_err(|error| self.context.locate(bytes, error))?
        {
            return Ok(Text::Time(time));
        }
        match self.plain()? {
            Plain::Text(Cow::Borrowed(text)) => Ok(Text::Lent(text)),
            Plain::Text(Cow::Owned(text)) => Ok(Text::Owned(text)),
            other => Err(other.mismatch(expected)),
        }
    }

    pub(super) fn number(&mut self, expected: &dyn de::Expected) -> Result<Number, ViewError> {
        if let (Kind::Int32 | Kind::Int64, Data::Varint(value)) = (self.kind, self.data) {
            return Ok(integer(self.kind, value));
        }
        match self.plain()? {
            Plain::Number(number) => Ok(number),
            other => Err(other.mismatch(expected)),
        }
    }

    pub(super) fn bool(&mut self, expected: &dyn de::Expected) -> Result<bool, ViewError> {
        if let (Kind::Bool, Data::Varint(value)) = (self.kind, self.data) {
            return Ok(value != 0);
        }
        match self.plain()? {
            Plain::Bool(value) => Ok(value),
            other => Err(other.mismatch(expected)),
        }
    }

    #[inline]
    pub(super) fn is_null(&self) -> Result<bool, ViewError> {
        match self.kind {
            Kind::Time
            | Kind::MicroTime
            | Kind::Raw
            | Kind::SchemaOrArray(_)
            | Kind::SchemaOrStringArray(_) => self.is_special_null(),
            _ => Ok(matches!(self.data, Data::Null)),
        }
    }

    /// Special types may be null though they are there.
    fn is_special_null(&self) -> Result<bool, ViewError> {
        let bytes = match self.data {
            Data::Bytes(bytes) => bytes,
            Data::Json => return Ok(self.json.as_ref().is_none_or(|value| value.is_null())),
            data => return Ok(matches!(data, Data::Null)),
        };
        let null = match self.kind {
            Kind::Time => Ok(text::is_zero_time(bytes)),
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
enum Special<'de> {
    Plain(Plain<'de>),
    Document(&'de [u8]),
    Json(&'de [u8]),
}

fn special(kind: Kind, bytes: &[u8]) -> Result<Special<'_>, DecodeError> {
    let text = |text| Plain::Text(Cow::Owned(text));
    Ok(Special::Plain(match kind {
        Kind::Time => text::time(bytes)?.map_or(Plain::Null, |time| text(time.as_str().to_owned())),
        Kind::MicroTime => text::micro_time(bytes)?.map_or(Plain::Null, text),
        Kind::Quantity => match Fields::read(bytes)?.bytes(1) {
            None | Some([]) => Plain::Text(Cow::Borrowed("0")),
            Some(bytes) => Plain::Text(text::string(bytes)),
        },
        Kind::IntOrString => {
            let fields = Fields::read(bytes)?;
            match fields.number(1) {
                0 => Plain::Number(integer(Kind::Int32, fields.number(2))),
                1 => Plain::Text(text::string(fields.bytes(3).unwrap_or_default())),
                other => {
                    let fault = Fault::Unexpected { found: format!("type {other}") };
                    return Err(DecodeError::new(fault, 0, "an IntOrString of type 0 or 1"));
                }
            }
        }
        Kind::Raw => match Fields::read(bytes)?.bytes(1) {
            None | Some([]) => Plain::Null,
            Some(raw) if raw.starts_with(MAGIC) => return Ok(Special::Document(raw)),
            Some(raw) => return Ok(Special::Json(raw)),
        },
        Kind::SchemaOrBool(id) => {
            let fields = Fields::read(bytes)?;
            match fields.bytes(2) {
                Some(schema) => Plain::Object(Object::Message(id, schema, None)),
                None => Plain::Bool(fields.number(1) != 0),
            }
        }
        Kind::SchemaOrArray(id) => either(bytes, id, Kind::Message(id))?,
        Kind::SchemaOrStringArray(id) => either(bytes, id, Kind::String)?,
        Kind::Strings => Plain::Array(Array::Entries(Kind::String, bytes, None)),
        kind => {
            let fault = Fault::Unexpected { found: format!("{} bytes", bytes.len()) };
            return Err(DecodeError::new(fault, 0, format!("a value of kind {kind:?}")));
        }
    }))
}

/// `{1 schema, 2 list}`: the list where it has items, else the schema, else null.
fn either(bytes: &[u8], id: MessageId, kind: Kind) -> Result<Plain<'_>, DecodeError> {
    let mut reader = Reader::new(bytes);
    let mut schema = None;
    while let Some(entry) = reader.next()? {
        match (entry.number, entry.value) {
            (1, Wire::Bytes(value)) => schema = Some(value),
            // The list is the last field: the rest of the bytes.
            (2, _) => {
                let list = bytes.get(entry.start..).unwrap_or_default();
                return Ok(Plain::Array(Array::Entries(kind, list, None)));
            }
            _ => {}
        }
    }
    Ok(schema.map_or(Plain::Null, |schema| Plain::Object(Object::Message(id, schema, None))))
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

/// Go keeps the low 32 bits of a number that should have no more.
fn integer(kind: Kind, value: u64) -> Number {
    Number::Signed(if kind == Kind::Int32 { i64::from(value as i32) } else { value as i64 })
}

/// A float as Go prints it and JSON parsers read it back: whole values are whole numbers.
fn double(value: f64) -> Number {
    /// Up to here, every whole number is a double of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() != 0.0 || (value == 0.0 && value.is_sign_negative()) {
        Number::Float(value)
    } else if value.abs() <= EXACT {
        Number::Signed(value as i64)
    } else {
        // Go prints no more digits than tell it from its neighbours, and zeros behind them.
        let digits = value.to_string();
        match (digits.parse(), digits.parse()) {
            (Ok(value), _) => Number::Signed(value),
            (_, Ok(value)) => Number::Unsigned(value),
            _ => Number::Float(value),
        }
    }
}

impl Plain<'_> {
    fn from_json(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(value),
            serde_json::Value::String(text) => Self::Text(Cow::Owned(text)),
            serde_json::Value::Number(number) => Self::Number(match (number.as_u64(), number.as_i64()) {
                (Some(value), _) => Number::Unsigned(value),
                (None, Some(value)) => Number::Signed(value),
                (None, None) => Number::Float(number.as_f64().unwrap_or(f64::NAN)),
            }),
            serde_json::Value::Array(items) => Self::Array(Array::Json(items)),
            serde_json::Value::Object(map) => Self::Object(Object::Json(map)),
        }
    }

    #[cold]
    pub(super) fn mismatch(&self, expected: &dyn de::Expected) -> ViewError {
        let found = match self {
            Self::Null => Unexpected::Unit,
            Self::Bool(value) => Unexpected::Bool(*value),
            Self::Number(Number::Signed(value)) => Unexpected::Signed(*value),
            Self::Number(Number::Unsigned(value)) => Unexpected::Unsigned(*value),
            Self::Number(Number::Float(value)) => Unexpected::Float(*value),
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
    match value {
        // By far the most.
        Wire::Bytes(bytes) => bytes.is_empty() || is_zero_time(kind, bytes),
        Wire::Varint(value) => value == 0 || (kind == Kind::Int32 && value as u32 == 0),
        // -0.0 is zero to Go's omitempty.
        Wire::Fixed64(bits) if kind == Kind::Double => f64::from_bits(bits) == 0.0,
        Wire::Fixed64(bits) => bits == 0,
        Wire::Fixed32(bits) => bits == 0,
    }
}

#[inline]
fn is_zero_time(kind: Kind, bytes: &[u8]) -> bool {
    match kind {
        Kind::Time => text::is_zero_time(bytes),
        Kind::MicroTime => matches!(text::micro_time(bytes), Ok(None)),
        _ => false,
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
