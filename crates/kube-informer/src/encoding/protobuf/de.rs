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
use super::reader::Value as Wire;
use super::text;
use super::value::{Context, Data, Plain, Value};
use super::walk::Entries;
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
    let (kind, data) = (Kind::Message(root.message), Data::Root(root, bytes));
    seed.deserialize(&mut Value { context: &context, kind, data, plan, depth: 0 })
}

/// Methods that do what `deserialize_i64` does: a number is a number, and the visitor checks its range.
macro_rules! like_i64 {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
            self.deserialize_i64(visitor)
        })*
    };
}

fn visit_text<'de, V: Visitor<'de>>(text: Cow<'de, str>, visitor: V) -> Result<V::Value, ViewError> {
    match text {
        Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
        Cow::Owned(text) => visitor.visit_string(text),
    }
}

/// By reference: a value is larger than what is read of it, and goes through many hands.
impl<'de> Deserializer<'de> for &mut Value<'de, '_> {
    type Error = ViewError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        match self.plain()? {
            Plain::Null => visitor.visit_unit(),
            Plain::Bool(value) => visitor.visit_bool(value),
            Plain::Signed(value) => visitor.visit_i64(value),
            Plain::Unsigned(value) => visitor.visit_u64(value),
            Plain::Float(value) => visitor.visit_f64(value),
            Plain::Text(text) => visit_text(text, visitor),
            Plain::Object(object) => visitor.visit_map(&mut Entries::new(object)),
            Plain::Array(mut items) => visitor.visit_seq(&mut items),
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

    like_i64! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ViewError> {
        // Most of what is read is text, and needs nothing else to be looked at.
        if let (Kind::String, Data::One(Wire::Bytes(bytes))) = (self.kind, &self.data) {
            return visit_text(text::string(bytes), visitor);
        }
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
            Plain::Array(mut items) => visitor.visit_seq(&mut items),
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
            Plain::Array(mut items) => visitor.visit_seq(&mut items),
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
            Plain::Object(object) => visitor.visit_map(&mut Entries::new(object)),
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
                visitor.visit_enum(de::value::MapAccessDeserializer::new(Entries::new(object)))
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
pub(super) struct Key<'de>(pub(super) Cow<'de, str>);

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

    like_i64! { deserialize_i8 deserialize_i16 deserialize_i32 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 }

    serde::forward_to_deserialize_any! {
        bool f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}
