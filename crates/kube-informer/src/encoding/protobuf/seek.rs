//! What a JSON pointer names in a message: everything beside the way there is jumped over.

use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Reads what the tokens lead to as a `T`; `None` where they lead to nothing.
pub(super) struct Seek<'t, T> {
    tokens: &'t [Box<str>],
    target: PhantomData<T>,
}

impl<'t, T> Seek<'t, T> {
    pub(super) fn new(tokens: &'t [Box<str>]) -> Self {
        Self { tokens, target: PhantomData }
    }
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Seek<'_, T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        match self.tokens.split_first() {
            None => T::deserialize(deserializer).map(Some),
            Some((token, rest)) => deserializer.deserialize_any(Step { token, rest: Self::new(rest) }),
        }
    }
}

/// One token, and those after it.
struct Step<'t, T> {
    token: &'t str,
    rest: Seek<'t, T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Step<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        // Fields behind the one that was found are not even jumped over.
        while let Some(found) = map.next_key_seed(Is(self.token))? {
            if found {
                return map.next_value_seed(self.rest);
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<T>, A::Error> {
        // RFC 6901: digits, and no leading zero.
        let plain = self.token == "0" || !self.token.starts_with(['0', '+']);
        let Some(index) = self.token.parse::<usize>().ok().filter(|_| plain) else { return Ok(None) };
        for _ in 0..index {
            if seq.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        seq.next_element_seed(self.rest).map(Option::flatten)
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Option<T>, E> {
        Ok(None)
    }
}

/// Whether a key is this one.
struct Is<'t>(&'t str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<bool, E> {
        Ok(key == self.0)
    }
}
