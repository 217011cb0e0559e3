//! A `serde::Deserializer` over the wire bytes of a message and the schema table.
//!
//! What it shows is the server's JSON of the object, value for value: JSON names, Go's rules for what is
//! left out, special types as text. Nothing is built in between: the target's visitors are called with
//! what stands in the bytes, strings are lent, and what the target ignores is never looked into.
//!
//! What does not depend on the target stands in [`super::value`] and [`super::walk`]; here is only what
//! the compiler must make anew for each type.
//!
//! Entries must stand in ascending order of their numbers, as Go writes them; [`super::canonical`] brings
//! others into that order. Recursion is bounded: see [`MAX_DEPTH`](super::MAX_DEPTH).

use std::borrow::Cow;

use serde::de::{self, DeserializeSeed, Deserializer, Unexpected, Visitor};

use super::plan::Node;
use super::value::{Context, Data, Number, Plain, Text, Value};
use super::walk::{Entries, Items};
use crate::encoding::ViewError;
use crate::encoding::schema::{Kind, Root};

/// Reads the message of a document.
pub(super) fn document<'de, S: DeserializeSeed<'de>>(
    root: &'static Root,
    bytes: &'de [u8],
    plan: Option<&Node>,
    seed: S,
) -> Result<S::Value, ViewError> {
    let context = Context::new(bytes);
    let mut value = Value::new(&context, 0);
    value.kind = Kind::Message(root.message);
    value.data = Data::Bytes(bytes);
    value.head = Some(root);
    value.plan = plan;
    seed.deserialize(&mut value)
}

/// Methods that do what `deserialize_i64` does: a number is a number, and the visitor checks its range.
macro_rules! like_i64 {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
            self.deserialize_i64(visitor)
        })*
    };
}

fn visit_number<'de, V: Visitor<'de>>(number: Number, visitor: V) -> Result<V::Value, ViewError> {
    match number {
        Number::Signed(value) => visitor.visit_i64(value),
        Number::Unsigned(value) => visitor.visit_u64(value),
        Number::Float(value) => visitor.visit_f64(value),
    }
}

/// By reference: a value is larger than what is read of it, and goes through many hands.
impl<'de> Deserializer<'de> for &mut Value<'de, '_> {
    type Error = ViewError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        match self.plain()? {
            Plain::Null => visitor.visit_unit(),
            Plain::Bool(value) => visitor.visit_bool(value),
            Plain::Number(number) => visit_number(number, visitor),
            Plain::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Plain::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Plain::Object(object) => visitor.visit_map(&mut Entries::new(self, object)),
            Plain::Array(array) => visitor.visit_seq(&mut Items::new(self, array)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        let value = self.bool(&visitor)?;
        visitor.visit_bool(value)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        let number = self.number(&visitor)?;
        visit_number(number, visitor)
    }

    like_i64! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        // Most of what is read is text, and needs nothing else to be looked at.
        if let (Kind::String, Data::Bytes(bytes)) = (self.kind, self.data)
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return visitor.visit_borrowed_str(text);
        }
        match self.text(&visitor)? {
            Text::Lent(text) => visitor.visit_borrowed_str(text),
            Text::Owned(text) => visitor.visit_string(text),
            Text::Time(time) => visitor.visit_str(time.as_str()),
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
            Plain::Array(array) => visitor.visit_seq(&mut Items::new(self, array)),
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
        // Matched in its place: it is large.
        match self.array(&visitor) {
            Ok(ref mut items) => visitor.visit_seq(items),
            Err(error) => Err(error),
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
        // Matched in its place: it is large.
        match self.object(&visitor) {
            Ok(ref mut entries) => visitor.visit_map(entries),
            Err(error) => Err(error),
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
                visitor.visit_enum(de::value::MapAccessDeserializer::new(&mut Entries::new(self, object)))
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
pub(super) enum Key<'de, 'k> {
    Lent(&'de str),
    Kept(&'k str),
}

impl Key<'_, '_> {
    fn text(&self) -> &str {
        match *self {
            Self::Lent(text) => text,
            Self::Kept(text) => text,
        }
    }
}

impl<'de> Deserializer<'de> for Key<'de, '_> {
    type Error = ViewError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        match self {
            Self::Lent(text) => visitor.visit_borrowed_str(text),
            Self::Kept(text) => visitor.visit_str(text),
        }
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
        visitor.visit_enum(de::value::StrDeserializer::new(self.text()))
    }

    /// Keys that are numbers, as `serde_json` reads them.
    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        let text = self.text();
        match (text.parse::<u64>(), text.parse::<i64>()) {
            (Ok(value), _) => visitor.visit_u64(value),
            (_, Ok(value)) => visitor.visit_i64(value),
            _ => Err(de::Error::invalid_type(Unexpected::Str(text), &visitor)),
        }
    }

    like_i64! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }

    serde::forward_to_deserialize_any! {
        bool f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}
