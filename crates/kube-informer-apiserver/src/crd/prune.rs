//! From what a client sent to what is kept: metadata read strictly, unknown fields and meaningless
//! nulls dropped, defaults filled in.

use serde_json::Value;

use super::meta;
use crate::kinds::Resource;
use crate::schema::{Node, NodeId, Schema, SchemaSet};
use crate::status::{ApiError, FieldError};

const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Reads a custom object: what decoding into a Go struct does for built-in kinds.
///
/// Returns the paths of the fields that were dropped because nobody knows them, in the order in which
/// the real server names them: of the metadata, of the object, of embedded objects. The error is the
/// 400 for metadata (also of embedded objects) that is not ObjectMeta.
pub(crate) fn decode(resource: &Resource, object: &mut Value) -> Result<Vec<String>, ApiError> {
    let mut unknown = Vec::new();
    let refuse = |why: String| {
        let (kind, version) = (&resource.kind, &resource.version);
        ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}"))
    };
    let mut read = None;
    if let Some(metadata) = object.get("metadata") {
        let mut fields = Vec::new();
        read = Some(meta::read_object_meta(metadata, &mut fields).map_err(refuse)?);
        unknown.extend(fields.into_iter().map(|field| format!("metadata.{field}")));
    }
    if let Some(schema) = &resource.schema {
        unknown.extend(prune(schema, object));
        drop_nulls(&schema.set, Some(schema.node), object);
        let mut embedded = Vec::new();
        coerce(&schema.set, Some(schema.node), object, "", true, &mut embedded)
            .map_err(|error| refuse(error.to_string()))?;
        embedded.sort();
        unknown.extend(embedded);
    }
    if let (Some(read), Some(fields)) = (read, object.as_object_mut()) {
        fields.insert("metadata".to_owned(), read);
    }
    Ok(unknown)
}

/// Removes the fields that the schema does not know and returns their paths, sorted. The metadata of
/// the object and of embedded objects is left to [`decode`].
pub(crate) fn prune(schema: &Schema, object: &mut Value) -> Vec<String> {
    let mut pruner = Pruner { set: &schema.set, path: String::new(), unknown: Vec::new() };
    pruner.prune(Some(schema.node), object, true);
    pruner.unknown.sort();
    pruner.unknown
}

/// Whether a default holds nothing but what its own schema knows.
pub(super) fn is_pruned(schema: &Schema, value: &Value) -> bool {
    let mut copy = value.clone();
    let mut pruner = Pruner { set: &schema.set, path: String::new(), unknown: Vec::new() };
    pruner.prune(Some(schema.node), &mut copy, false);
    pruner.unknown.is_empty()
}

struct Pruner<'s> {
    set: &'s SchemaSet,
    path: String,
    unknown: Vec<String>,
}

impl Pruner<'_> {
    fn prune(&mut self, id: Option<NodeId>, value: &mut Value, root: bool) {
        let Some(node) = id.map(|id| &self.set.nodes[id as usize]) else {
            return self.prune_all(value);
        };
        let length = self.path.len();
        match value {
            Value::Object(fields) => {
                let mut dropped = Vec::new();
                for (name, child) in fields.iter_mut() {
                    if (root || node.embedded_resource) && META_FIELDS.contains(&name.as_str()) {
                        continue;
                    }
                    let Some(next) = node.properties.get(name).copied().or(node.additional) else {
                        if !node.preserve_unknown {
                            dropped.push(name.clone());
                        }
                        continue;
                    };
                    self.enter(name);
                    self.prune(Some(next), child, false);
                    self.path.truncate(length);
                }
                for name in dropped {
                    fields.remove(&name);
                    self.record(&name);
                }
            }
            Value::Array(list) => {
                if node.items.is_none() && node.preserve_unknown {
                    return;
                }
                for (index, item) in list.iter_mut().enumerate() {
                    self.path.push_str(&format!("[{index}]"));
                    if node.preserve_unknown {
                        self.keep_unknown(node.items, item);
                    } else {
                        self.prune(node.items, item, false);
                    }
                    self.path.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// Items of a list that keeps what it does not know keep it too; what they do know is pruned.
    fn keep_unknown(&mut self, id: Option<NodeId>, value: &mut Value) {
        let Some(node) = id.map(|id| &self.set.nodes[id as usize]) else { return };
        let length = self.path.len();
        match value {
            Value::Object(fields) => {
                for (name, child) in fields.iter_mut() {
                    if node.embedded_resource && META_FIELDS.contains(&name.as_str()) {
                        continue;
                    }
                    if let Some(next) = node.properties.get(name).copied().or(node.additional) {
                        self.enter(name);
                        self.prune(Some(next), child, false);
                        self.path.truncate(length);
                    }
                }
            }
            Value::Array(list) => {
                for (index, item) in list.iter_mut().enumerate() {
                    self.path.push_str(&format!("[{index}]"));
                    self.keep_unknown(node.items, item);
                    self.path.truncate(length);
                }
            }
            _ => {}
        }
    }

    /// Below a place without a schema, no field is known.
    fn prune_all(&mut self, value: &mut Value) {
        let length = self.path.len();
        match value {
            Value::Object(fields) => {
                for name in std::mem::take(fields).keys() {
                    self.record(name);
                }
            }
            Value::Array(list) => {
                for (index, item) in list.iter_mut().enumerate() {
                    self.path.push_str(&format!("[{index}]"));
                    self.prune_all(item);
                    self.path.truncate(length);
                }
            }
            _ => {}
        }
    }

    fn enter(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }

    fn record(&mut self, name: &str) {
        let length = self.path.len();
        self.enter(name);
        self.unknown.push(self.path.clone());
        self.path.truncate(length);
    }
}

fn child(set: &SchemaSet, id: Option<NodeId>, name: &str) -> Option<NodeId> {
    let node = &set.nodes[id? as usize];
    node.properties.get(name).copied().or(node.additional)
}

/// Removes nulls that mean nothing: fields that are neither nullable nor have a default.
fn drop_nulls(set: &SchemaSet, id: Option<NodeId>, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let next = child(set, id, name);
            let meaningless = field.is_null()
                && next.is_some_and(|next| {
                    let node = &set.nodes[next as usize];
                    !node.nullable && node.default.is_none()
                });
            if !meaningless {
                drop_nulls(set, next, field);
            }
            !meaningless
        }),
        Value::Array(list) => {
            let next = id.and_then(|id| set.nodes[id as usize].items);
            list.iter_mut().for_each(|item| drop_nulls(set, next, item));
        }
        _ => {}
    }
}

/// Reads the metadata of embedded objects as ObjectMeta.
pub(super) fn coerce(
    set: &SchemaSet,
    id: Option<NodeId>,
    value: &mut Value,
    path: &str,
    root: bool,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    let Some(node) = id.map(|id| &set.nodes[id as usize]) else { return Ok(()) };
    match value {
        Value::Object(fields) => {
            if node.embedded_resource {
                for name in ["apiVersion", "kind"] {
                    if let Some(field) = fields.get(name).filter(|field| !field.is_string()) {
                        return Err(FieldError::invalid(join(path, name), field.clone(), "must be a string"));
                    }
                }
                if let Some(metadata) = fields.get("metadata") {
                    let at = join(path, "metadata");
                    let mut inner = Vec::new();
                    let read = meta::read_object_meta(metadata, &mut inner)
                        .map_err(|why| FieldError::invalid(&at, metadata.clone(), why))?;
                    unknown.extend(inner.into_iter().map(|field| format!("{at}.{field}")));
                    fields.insert("metadata".to_owned(), read);
                }
            }
            for (name, field) in fields.iter_mut() {
                if (root || node.embedded_resource) && name == "metadata" {
                    continue;
                }
                match node.properties.get(name) {
                    Some(next) => coerce(set, Some(*next), field, &join(path, name), false, unknown)?,
                    None => {
                        let at = format!("{path}[{name}]");
                        coerce(set, node.additional, field, &at, false, unknown)?;
                    }
                }
            }
        }
        Value::Array(list) => {
            for (index, item) in list.iter_mut().enumerate() {
                coerce(set, node.items, item, &format!("{path}[{index}]"), false, unknown)?;
            }
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Fills in defaults, also inside values that are defaults themselves. A null where null is not
/// allowed counts as missing.
pub(crate) fn apply_defaults(schema: &Schema, object: &mut Value) {
    fill(&schema.set, Some(schema.node), object);
}

fn fill(set: &SchemaSet, id: Option<NodeId>, value: &mut Value) {
    let Some(node) = id.map(|id| &set.nodes[id as usize]) else { return };
    let get = |id: NodeId| -> &Node { &set.nodes[id as usize] };
    match value {
        Value::Object(fields) => {
            for (name, id) in &node.properties {
                let property = get(*id);
                let Some(default) = &property.default else { continue };
                let missing = fields.get(name).is_none_or(|v| v.is_null() && !property.nullable);
                if missing {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, field) in fields.iter_mut() {
                if let Some(next) = node.properties.get(name) {
                    fill(set, Some(*next), field);
                } else if let Some(next) = node.additional {
                    fill_null(get(next), field);
                    fill(set, Some(next), field);
                }
            }
        }
        Value::Array(list) => {
            for item in list {
                if let Some(next) = node.items {
                    fill_null(get(next), item);
                }
                fill(set, node.items, item);
            }
        }
        _ => {}
    }
}

fn fill_null(node: &Node, value: &mut Value) {
    if value.is_null() && !node.nullable {
        *value = node.default.clone().unwrap_or(Value::Null);
    }
}

/// Writes whole numbers without a fraction, as the real server does when it stores an object: `3.0`
/// counts as a float while it is checked, and is `3` ever after.
pub(crate) fn normalize_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if !number.is_i64() && !number.is_u64() => {
            let float = number.as_f64().unwrap_or_default();
            if float.fract() == 0.0 && float.abs() < 9.0e15 {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(normalize_numbers),
        Value::Object(fields) => fields.values_mut().for_each(normalize_numbers),
        _ => {}
    }
}
