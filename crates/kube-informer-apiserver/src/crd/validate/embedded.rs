//! Objects inside of objects (`x-kubernetes-embedded-resource`): they need a type, and metadata as
//! good as anybody's.

use serde_json::Value;

use crate::crd::names;
use crate::crd::prune::join;
use crate::schema::{NodeId, SchemaSet};
use crate::status::FieldError;

/// Errors of the embedded objects below a value.
pub(crate) fn check(
    set: &SchemaSet,
    id: NodeId,
    value: &Value,
    path: &str,
    root: bool,
    errors: &mut Vec<FieldError>,
) {
    let node = &set.nodes[id as usize];
    match value {
        Value::Object(fields) => {
            if node.embedded_resource {
                check_embedded(value, path, errors);
            }
            for (name, field) in fields {
                if (root || node.embedded_resource) && name == "metadata" {
                    continue;
                }
                if let Some(next) = node.properties.get(name) {
                    check(set, *next, field, &join(path, name), false, errors);
                } else if let Some(next) = node.additional {
                    check(set, next, field, &format!("{path}[{name}]"), false, errors);
                }
            }
        }
        Value::Array(list) => {
            let Some(items) = node.items else { return };
            for (index, item) in list.iter().enumerate() {
                check(set, items, item, &format!("{path}[{index}]"), false, errors);
            }
        }
        _ => {}
    }
}

fn check_embedded(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        if value.get(name).is_none() {
            errors.push(FieldError::required(join(path, name), ""));
        }
    }
    if let Some(found) = value.get("apiVersion") {
        let at = join(path, "apiVersion");
        match found.as_str() {
            None => errors.push(FieldError::invalid(at, found.clone(), "must be a string")),
            Some("") => errors.push(FieldError::invalid(at, "", "must not be empty")),
            Some(text) if text.matches('/').count() > 1 => {
                let why = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(at, text, why));
            }
            Some(_) => {}
        }
    }
    if let Some(found) = value.get("kind") {
        let at = join(path, "kind");
        match found.as_str() {
            None => errors.push(FieldError::invalid(at, found.clone(), "must be a string")),
            Some("") => errors.push(FieldError::invalid(at, "", "must not be empty")),
            Some(text) => {
                let complaints = names::dns_label(&text.to_lowercase());
                if !complaints.is_empty() {
                    let why =
                        format!("may have mixed case, but should otherwise match: {}", complaints.join(","));
                    errors.push(FieldError::invalid(at, text, why));
                }
            }
        }
    }
    if let Some(metadata) = value.get("metadata") {
        check_metadata(metadata, &join(path, "metadata"), errors);
    }
}

fn check_metadata(metadata: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for field in ["generateName", "name"] {
        let Some(name) = metadata.get(field).and_then(Value::as_str) else { continue };
        for why in names::path_segment(name) {
            errors.push(FieldError::invalid(join(path, field), name, why));
        }
    }
    let entries = |field: &str| metadata.get(field).and_then(Value::as_object).into_iter().flatten();
    for (key, value) in entries("labels") {
        let at = join(path, "labels");
        for why in names::qualified_name(key) {
            errors.push(FieldError::invalid(&at, key.as_str(), why));
        }
        for why in value.as_str().map(names::label_value).unwrap_or_default() {
            errors.push(FieldError::invalid(&at, value.clone(), why));
        }
    }
    for (key, _) in entries("annotations") {
        for why in names::qualified_name(&key.to_lowercase()) {
            errors.push(FieldError::invalid(join(path, "annotations"), key.as_str(), why));
        }
    }
}
