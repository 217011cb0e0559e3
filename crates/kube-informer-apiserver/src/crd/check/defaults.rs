//! Defaults must be values that their own schema would accept, and keep.

use serde_json::Value;

use crate::crd::validate::{embedded, validate_value};
use crate::crd::{flag, meta, present, prune, read, text};
use crate::status::FieldError;

/// Errors of the defaults of a structural schema.
pub(super) fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, path, Place::Resource, &mut errors);
    errors
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The schema of a whole object.
    Resource,
    /// Inside of metadata, apiVersion or kind.
    Metadata,
    Elsewhere,
}

fn walk(schema: &Value, path: &str, place: Place, errors: &mut Vec<FieldError>) {
    let resource = place == Place::Resource || flag(schema, "x-kubernetes-embedded-resource");
    let place = if resource { Place::Resource } else { place };
    if let Some(default) = present(schema, "default") {
        check_one(schema, default, &format!("{path}.default"), place, errors);
    }
    // Below additionalProperties, the real server does not look.
    if let Some(items) = schema.get("items").filter(|value| value.is_object()) {
        walk(items, &format!("{path}.items"), inside(place), errors);
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let of_metadata = resource && ["metadata", "apiVersion", "kind"].contains(&name.as_str());
        let next = if of_metadata { Place::Metadata } else { inside(place) };
        walk(property, &format!("{path}.properties[{name}]"), next, errors);
    }
}

fn inside(place: Place) -> Place {
    if place == Place::Metadata { Place::Metadata } else { Place::Elsewhere }
}

fn check_one(schema: &Value, default: &Value, path: &str, place: Place, errors: &mut Vec<FieldError>) {
    let compiled = read::default_schema(schema);
    if place == Place::Metadata {
        // Only whole metadata can be read as such; single fields of it are left to their schema.
        let whole = default.is_object() && text(schema, "type") == "object";
        if whole && let Err(why) = meta::read_object_meta(default, &mut Vec::new()) {
            let why = format!("must result in valid metadata: {why}");
            errors.push(FieldError::invalid(path, default.clone(), why));
            return;
        }
        errors.extend(validate_value(&compiled, default, None, path));
        return;
    }
    if !prune::is_pruned(&compiled, default) {
        errors.push(FieldError::invalid(path, default.clone(), "must not have unknown fields"));
    }
    let mut copy = default.clone();
    let set = &compiled.set;
    if let Err(error) = prune::coerce(set, Some(compiled.node), &mut copy, path, false, &mut Vec::new()) {
        errors.push(error);
        return;
    }
    let mut of_embedded = Vec::new();
    embedded::check(set, compiled.node, &copy, path, false, &mut of_embedded);
    if of_embedded.is_empty() {
        errors.extend(validate_value(&compiled, &copy, None, path));
    } else {
        errors.extend(of_embedded);
    }
}
