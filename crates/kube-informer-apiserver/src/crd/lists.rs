//! Lists that are sets or maps hold nothing twice.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::prune::join;
use crate::schema::{ListType, Node, NodeId, Schema, SchemaSet};
use crate::status::FieldError;

/// Duplicates in the sets and maps of a custom object.
pub(super) fn duplicates(schema: &Schema, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(&schema.set, schema.node, object, "", true, &mut errors);
    errors
}

fn walk(set: &SchemaSet, id: NodeId, value: &Value, path: &str, root: bool, errors: &mut Vec<FieldError>) {
    let node = &set.nodes[id as usize];
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                // Metadata is ObjectMeta's own business.
                if (root || node.embedded_resource) && name == "metadata" {
                    continue;
                }
                if let Some(next) = node.properties.get(name) {
                    walk(set, *next, field, &join(path, name), false, errors);
                } else if let Some(next) = node.additional {
                    walk(set, next, field, &format!("{path}[{name}]"), false, errors);
                }
            }
        }
        Value::Array(list) => {
            check(node, list, path, errors);
            if let Some(next) = node.items {
                for (index, item) in list.iter().enumerate() {
                    walk(set, next, item, &format!("{path}[{index}]"), false, errors);
                }
            }
        }
        _ => {}
    }
}

fn check(node: &Node, list: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    match &node.list {
        ListType::Atomic => {}
        ListType::Set => report(list.iter().cloned(), path, errors),
        ListType::Map(keys) => {
            for (index, item) in list.iter().enumerate() {
                if !item.is_object() && !item.is_null() {
                    let why = "must be an object for an array of list-type map";
                    errors.push(FieldError::invalid(format!("{path}[{index}]"), item.clone(), why));
                    return;
                }
            }
            report(list.iter().map(|item| key(keys, item)), path, errors);
        }
    }
}

/// The part of an item that identifies it.
fn key(keys: &[String], item: &Value) -> Value {
    let mut out = Map::new();
    for name in keys {
        if let Some(value) = item.get(name) {
            out.insert(name.clone(), value.clone());
        }
    }
    Value::Object(out)
}

/// Each value that comes more than once is reported at its second place.
fn report(values: impl Iterator<Item = Value>, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeMap::new();
    for (index, value) in values.enumerate() {
        let times: &mut u32 = seen.entry(value.to_string()).or_default();
        *times = times.saturating_add(1);
        if *times == 2 {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), value));
        }
    }
}
