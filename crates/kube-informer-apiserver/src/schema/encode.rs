//! The form that the real server stores and answers with.
//!
//! Go writes a struct by its fields: what is empty is dropped where the field says `omitempty`, written
//! as `null`, `0` or `""` where it does not, and a struct that is no pointer is written even when nothing
//! is in it (`status: {}`). The real server stores protobuf, which knows no empty list: `[]` and `{}` of
//! lists and maps are absence.

use serde_json::{Map, Value};

use super::{Codec, Node, NodeKind, Schema, SchemaSet};

impl Schema {
    /// Brings a decoded object into its stored form. Does nothing twice. Places without Go types (custom
    /// resources) are left as they are.
    ///
    /// It fills in what Go writes for absent fields, so defaults have to take zero values for absent
    /// ones, as they do in Go.
    pub(crate) fn normalise(&self, value: &mut Value) {
        present(&self.set, self.get(), value);
    }
}

/// Normalises a value that is there.
fn present(set: &SchemaSet, node: &Node, value: &mut Value) {
    let Some(go) = &node.go else { return };
    match (go.codec, node.kind, value) {
        (Codec::Plain, NodeKind::Array, Value::Array(items)) => {
            let Some(element) = node.items.and_then(|id| set.nodes.get(id as usize)) else { return };
            items.iter_mut().for_each(|item| present(set, element, item));
        }
        (Codec::Plain, NodeKind::Object, Value::Object(map)) => {
            if let Some(element) = node.additional.and_then(|id| set.nodes.get(id as usize)) {
                map.values_mut().for_each(|item| present(set, element, item));
            } else {
                structure(set, node, map);
            }
        }
        (Codec::SchemaOrBool | Codec::SchemaOrArray | Codec::SchemaOrStrings, _, value) => {
            let Some(inner) = go.inner.and_then(|id| set.nodes.get(id as usize)) else { return };
            match value {
                Value::Object(map) => structure(set, inner, map),
                Value::Array(items) => items.iter_mut().for_each(|item| present(set, inner, item)),
                _ => {}
            }
        }
        _ => {}
    }
}

fn structure(set: &SchemaSet, node: &Node, map: &mut Map<String, Value>) {
    for (name, &id) in &node.properties {
        let Some(place) = set.nodes.get(id as usize) else { continue };
        match field(set, place, map.remove(name)) {
            Some(value) => {
                map.insert(name.clone(), value);
            }
            None => continue,
        }
    }
}

/// What Go writes for a struct field. `None`: nothing.
fn field(set: &SchemaSet, node: &Node, value: Option<Value>) -> Option<Value> {
    let Some(go) = &node.go else { return value };
    let mut value = value.filter(|v| !v.is_null());
    if let Some(value) = &mut value {
        present(set, node, value);
    }
    if go.pointer {
        return value.or_else(|| (!go.omit_empty && !go.omit_zero).then_some(Value::Null));
    }
    let omitted = go.omit_empty || go.omit_zero;
    match (go.codec, node.kind) {
        (Codec::Time | Codec::MicroTime, _) => value.or_else(|| (!go.omit_zero).then_some(Value::Null)),
        (Codec::Quantity, _) => Some(value.unwrap_or_else(|| "0".into())),
        (Codec::IntOrString, _) => Some(value.unwrap_or_else(|| 0.into())),
        (Codec::SchemaOrBool, _) => Some(value.unwrap_or_else(|| false.into())),
        (Codec::Raw | Codec::SchemaOrArray | Codec::SchemaOrStrings, _) => {
            Some(value.unwrap_or_default()).filter(|v| !v.is_null() || !go.omit_zero)
        }
        (Codec::Bytes, _) | (Codec::Plain, NodeKind::Array) => {
            value.filter(|v| !is_zero(v)).or_else(|| (!omitted).then_some(Value::Null))
        }
        (Codec::Plain, NodeKind::Object) if node.additional.is_some() => {
            value.filter(|v| !is_zero(v)).or_else(|| (!omitted).then_some(Value::Null))
        }
        (Codec::Plain, NodeKind::Object) => {
            let mut empty = Value::Object(Map::new());
            if go.omit_zero {
                present(set, node, &mut empty);
                return value.filter(|v| *v != empty);
            }
            Some(value.unwrap_or_else(|| {
                present(set, node, &mut empty);
                empty
            }))
        }
        (Codec::Plain, kind) => {
            let zero = || match kind {
                NodeKind::String => "".into(),
                NodeKind::Boolean => false.into(),
                NodeKind::Integer | NodeKind::Number => 0.into(),
                _ => Value::Null,
            };
            let value = value.unwrap_or_else(zero);
            if is_zero(&value) && omitted { None } else { Some(value) }
        }
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}
