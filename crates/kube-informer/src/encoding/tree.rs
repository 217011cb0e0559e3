//! A document with its keys in order: the form in which equal objects are equal bytes.
//!
//! Both encodings pass through it on the way to JSON, so that an object's JSON does not depend on how
//! the server sent it, nor on the features that other crates switch on in `serde_json`.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

/// Any JSON value. Strings are lent where the input has them as they are.
pub(super) enum Tree<'de> {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(Cow<'de, str>),
    Array(Vec<Tree<'de>>),
    /// Sorted by key, each key once.
    Object(Vec<(Cow<'de, str>, Tree<'de>)>),
}

/// With its feature `arbitrary_precision`, `serde_json` lends numbers as maps with this one key.
const NUMBER: &str = "$serde_json::private::Number";

/// Whether some crate of this program has switched that on.
static NUMBERS_ARE_MAPS: LazyLock<bool> = LazyLock::new(|| {
    struct Probe;
    impl<'de> Visitor<'de> for Probe {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }

        fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
            Ok(false)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            map.next_entry::<String, String>().map(|_| true)
        }
    }
    serde_json::Deserializer::from_str("0.5").deserialize_any(Probe).unwrap_or(false)
});

impl<'de> Tree<'de> {
    /// A number, given by its digits: what it is without that feature.
    fn from_number(digits: String) -> Self {
        match (digits.parse(), digits.parse::<i64>()) {
            (Ok(value), _) => Self::Unsigned(value),
            // -0 is a float.
            (_, Ok(value)) if value != 0 => Self::Signed(value),
            _ => digits.parse().map_or(Self::Null, Self::Float),
        }
    }
}

impl<'de> Deserialize<'de> for Tree<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Build)
    }
}

struct Build;

impl<'de> Visitor<'de> for Build {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::Signed(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree<'de>, E> {
        Ok(Tree::Unsigned(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree<'de>, E> {
        Ok(Tree::Float(value))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Tree<'de>, E> {
        Ok(Tree::Text(Cow::Owned(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Tree::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree<'de>, A::Error> {
        let mut fields: Vec<(Cow<'de, str>, Tree<'de>)> = Vec::new();
        while let Some(Name(key)) = map.next_key()? {
            if key == NUMBER && *NUMBERS_ARE_MAPS {
                return map.next_value().map(Tree::from_number);
            }
            fields.push((key, map.next_value()?));
        }
        // Of equal keys the last one wins, as for every reader of JSON.
        fields.reverse();
        fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        fields.dedup_by(|(a, _), (b, _)| a == b);
        Ok(Tree::Object(fields))
    }
}

/// A key, lent where possible.
struct Name<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Lend;
        impl<'de> Visitor<'de> for Lend {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Lend)
    }
}

impl Serialize for Tree<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Signed(value) => serializer.serialize_i64(*value),
            Self::Unsigned(value) => serializer.serialize_u64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Array(items) => serializer.collect_seq(items),
            Self::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (key, value) in fields {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(tree: &Tree<'_>) -> String {
        serde_json::to_string(tree).unwrap()
    }

    #[test]
    fn a_number_that_is_lent_as_digits_is_the_number() {
        for digits in [
            "0",
            "-0",
            "7",
            "-7",
            "18446744073709551615",
            "18446744073709551616",
            "1.50",
            "1e2",
            "-0.0",
            "1E-7",
        ] {
            let read: Tree<'_> = serde_json::from_str(digits).unwrap();
            assert_eq!(text(&Tree::from_number(digits.to_owned())), text(&read), "{digits}");
        }
    }

    #[test]
    fn a_map_that_looks_like_a_number_is_a_map() {
        let map = format!(r#"{{"{NUMBER}":"1"}}"#);
        assert!(!*NUMBERS_ARE_MAPS);
        assert_eq!(text(&serde_json::from_str(&map).unwrap()), map);
    }
}
