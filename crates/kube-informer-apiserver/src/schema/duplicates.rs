//! Repeated keys of a JSON document that has no schema, for strict field validation of custom resources.

use std::collections::HashSet;
use std::fmt::Write;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::scalars::quote;

/// `duplicate field "spec.foo"` for each key that an object holds more than once, in the document's
/// order, each told once. Nothing for a document that does not parse.
pub(crate) fn duplicate_fields(bytes: &[u8]) -> Vec<String> {
    let mut walk = Walk::default();
    let mut source = serde_json::Deserializer::from_slice(bytes);
    if Place(&mut walk).deserialize(&mut source).is_err() {
        return Vec::new();
    }
    walk.found
}

#[derive(Default)]
struct Walk {
    path: String,
    found: Vec<String>,
    seen: HashSet<String>,
}

struct Place<'w>(&'w mut Walk);

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Place<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<(), A::Error> {
        let before = self.0.path.len();
        for index in 0_usize.. {
            // Writing to a string cannot fail.
            let _ = write!(self.0.path, "[{index}]");
            let next = source.next_element_seed(Place(self.0))?;
            self.0.path.truncate(before);
            if next.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<(), A::Error> {
        let before = self.0.path.len();
        let mut keys = HashSet::new();
        while let Some(key) = source.next_key::<String>()? {
            let dot = if before > 0 { "." } else { "" };
            let _ = write!(self.0.path, "{dot}{key}");
            if keys.insert(key) {
                source.next_value_seed(Place(self.0))?;
            } else {
                let message = format!("duplicate field {}", quote(&self.0.path));
                if self.0.seen.insert(message.clone()) {
                    self.0.found.push(message);
                }
                source.next_value::<IgnoredAny>()?;
            }
            self.0.path.truncate(before);
        }
        Ok(())
    }
}
