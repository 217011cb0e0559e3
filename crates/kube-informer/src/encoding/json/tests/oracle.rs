//! What serde_json says of a document, and what the rules make of that: the other opinion.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::*;
use crate::encoding::metadata::{Owner, Writer};

/// What [`ingest`] should give.
#[derive(Debug)]
pub(super) struct Verdict {
    /// Its maps sorted by key.
    pub(super) metadata: Metadata<'static>,
    /// The document without what is cut.
    pub(super) kept: Value,
}

/// What [`ingest`] should say of a document; `None` where it should be refused.
pub(super) fn judge(bytes: &[u8], rules: &Rules) -> Option<Verdict> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Strict { rules, path: Some(Vec::new()), unique: true };
    let whole = seed.deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    let kept = minus(whole.clone(), rules);
    let mut metadata = read(&kept)?;
    if rules.managed_fields == ManagedFields::Writers {
        metadata.writers = list(whole.pointer("/metadata/managedFields"), writer)?;
    }
    Some(Verdict { metadata, kept })
}

/// A document without what the rules cut.
fn minus(mut value: Value, rules: &Rules) -> Value {
    let managed_fields = Pointer::parse("/metadata/managedFields").unwrap();
    let cut = (rules.managed_fields != ManagedFields::Keep).then_some(&managed_fields);
    for pointer in rules.dropped().iter().chain(cut) {
        let tokens: Vec<&str> = pointer.tokens().collect();
        let (last, way) = tokens.split_last().unwrap();
        let parent = way.iter().try_fold(&mut value, |value, token| value.as_object_mut()?.get_mut(*token));
        if let Some(Value::Object(parent)) = parent {
            parent.remove(*last);
        }
    }
    value
}

/// The metadata of an object; `None` where it is no object, or not one with a name.
fn read(value: &Value) -> Option<Metadata<'static>> {
    let root = value.as_object()?;
    let (api_version, kind) = (text(root.get("apiVersion"))?, text(root.get("kind"))?);
    if api_version == "v1" && kind == "Status" {
        return None;
    }
    let of = root.get("metadata")?.as_object()?;
    let metadata = Metadata {
        api_version,
        kind,
        name: text(of.get("name"))?,
        namespace: text(of.get("namespace"))?,
        uid: text(of.get("uid"))?,
        resource_version: text(of.get("resourceVersion"))?,
        generation: given(of.get("generation")).map_or(Some(0), Value::as_i64)?,
        created: time(of.get("creationTimestamp"))?,
        deleted: time(of.get("deletionTimestamp"))?,
        labels: map(of.get("labels"))?,
        annotations: map(of.get("annotations"))?,
        owners: list(of.get("ownerReferences"), owner)?,
        finalizers: list(of.get("finalizers"), |value| text(Some(value)))?,
        writers: Vec::new(),
    };
    (!metadata.name.is_empty()).then_some(metadata)
}

/// A value that is there and not null.
fn given(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

fn text(value: Option<&Value>) -> Option<Cow<'static, str>> {
    given(value).map_or(Some(""), Value::as_str).map(|text| Cow::Owned(text.to_owned()))
}

fn flag(value: Option<&Value>) -> Option<bool> {
    given(value).map_or(Some(false), Value::as_bool)
}

fn time(value: Option<&Value>) -> Option<Option<jiff::Timestamp>> {
    given(value).map(|value| value.as_str()?.parse().ok()).map_or(Some(None), |time| time.map(Some))
}

fn list<T>(value: Option<&Value>, item: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    given(value).map_or(Some(Vec::new()), |value| value.as_array()?.iter().map(item).collect())
}

fn map(value: Option<&Value>) -> Option<Vec<(Cow<'static, str>, Cow<'static, str>)>> {
    let pair = |(key, value): (&String, &Value)| Some((key.clone().into(), text(Some(value))?));
    let mut pairs: Vec<_> =
        given(value).map_or(Some(Vec::new()), |value| value.as_object()?.iter().map(pair).collect())?;
    pairs.sort();
    Some(pairs)
}

/// The members of an object; `null` has none.
fn members(value: &Value) -> Option<Map<String, Value>> {
    given(Some(value)).map_or(Some(Map::new()), |value| value.as_object().cloned())
}

fn owner(value: &Value) -> Option<Owner<'static>> {
    let of = members(value)?;
    Some(Owner {
        api_version: text(of.get("apiVersion"))?,
        kind: text(of.get("kind"))?,
        name: text(of.get("name"))?,
        uid: text(of.get("uid"))?,
        controller: flag(of.get("controller"))?,
        block_owner_deletion: flag(of.get("blockOwnerDeletion"))?,
    })
}

fn writer(value: &Value) -> Option<Writer<'static>> {
    let of = members(value)?;
    Some(Writer {
        manager: text(of.get("manager"))?,
        operation: text(of.get("operation"))?,
        subresource: text(of.get("subresource"))?,
        time: time(of.get("time"))?,
    })
}

/// Reads a [`Value`], and refuses a key that stands twice, but for what the rules cut.
#[derive(Clone)]
struct Strict<'r> {
    rules: &'r Rules,
    /// The keys that lead here; `None` behind an array.
    path: Option<Vec<String>>,
    unique: bool,
}

impl Strict<'_> {
    fn under(&self, key: &str) -> Self {
        let mut path = self.path.clone();
        if let Some(path) = &mut path {
            path.push(key.to_owned());
        }
        let here = |pointer: &Pointer| path.as_ref().is_some_and(|path| pointer.tokens().eq(path.iter()));
        let managed_fields = self.rules.managed_fields != ManagedFields::Keep
            && here(&Pointer::parse("/metadata/managedFields").unwrap());
        let cut = managed_fields || self.rules.dropped().iter().any(here);
        Self { unique: self.unique && !cut, path, ..*self }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        let seed = Self { path: None, ..self };
        while let Some(item) = access.next_element_seed(seed.clone())? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(self.under(&key))?;
            if members.insert(key, value).is_some() && self.unique {
                return Err(A::Error::custom("a key stands twice"));
            }
        }
        Ok(members.into())
    }
}

/// What [`ingest`] says is what it should say. Gives whether it accepts the document.
#[track_caller]
pub(super) fn compare(bytes: &[u8], rules: &Rules) -> bool {
    let mut out = Vec::new();
    let shown = || String::from_utf8_lossy(bytes).into_owned();
    match (ingest(bytes, None, rules, &mut out), judge(bytes, rules)) {
        (Err(error), None) => {
            assert!(out.is_empty() && error.offset <= bytes.len(), "{error}: {}", shown());
            false
        }
        (Ok(mut metadata), Some(verdict)) => {
            metadata.labels.sort();
            metadata.annotations.sort();
            assert_eq!(metadata, verdict.metadata, "{}", shown());
            let kept: Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(kept, verdict.kept, "{}", shown());
            let mut again = super::super::metadata(&out).unwrap();
            again.labels.sort();
            again.annotations.sort();
            again.writers = metadata.writers.clone();
            assert_eq!(again, metadata, "{}", shown());
            true
        }
        (ours, theirs) => panic!("{ours:?} instead of {theirs:?}: {}", shown()),
    }
}
