//! The object that a create is compared with.
//!
//! For built-in kinds it is not `{}`: a struct that is not behind a pointer is always there, and so are
//! fields that encoding never leaves out. A create does not own what was there before it.

use serde_json::{Map, Value, json};

use crate::schema::{NodeKind, Schema};

/// Go's structs by value cannot nest in themselves; this only guards against a schema that says so.
const MAX_DEPTH: usize = 16;

/// The zero value of the kind: its always-present fields. A custom resource has only its type.
pub(crate) fn empty_object(schema: Option<&Schema>, like: &Value) -> Value {
    let mut out = match schema.filter(|schema| schema.get().definition.is_some()) {
        Some(schema) => zero(schema, 0),
        None => json!({}),
    };
    if let Some(out) = out.as_object_mut() {
        for name in ["apiVersion", "kind"] {
            if let Some(value) = like.get(name) {
                out.insert(name.to_owned(), value.clone());
            }
        }
    }
    out
}

fn zero(schema: &Schema, depth: usize) -> Value {
    let node = schema.get();
    match node.kind {
        NodeKind::Object if !node.properties.is_empty() && depth < MAX_DEPTH => {
            let mut out = Map::new();
            for (name, id) in &node.properties {
                let field = schema.at(*id);
                let inner = field.get();
                // OpenAPI gives a struct by value the default {}.
                let by_value = inner.default == Some(json!({})) && !inner.properties.is_empty();
                if by_value {
                    out.insert(name.clone(), zero(&field, depth + 1));
                } else if node.required.contains(name) {
                    out.insert(name.clone(), zero_scalar(inner.kind));
                }
            }
            Value::Object(out)
        }
        kind => zero_scalar(kind),
    }
}

fn zero_scalar(kind: NodeKind) -> Value {
    match kind {
        NodeKind::String | NodeKind::Quantity => json!(""),
        NodeKind::Integer | NodeKind::Number | NodeKind::IntOrString => json!(0),
        NodeKind::Boolean => json!(false),
        NodeKind::Any | NodeKind::Object | NodeKind::Array => Value::Null,
    }
}
