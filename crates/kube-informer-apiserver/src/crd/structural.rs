//! Structural schemas: every place has a type, and value validations only narrow what is there.

use serde_json::Value;

use super::pattern::Pattern;
use super::{flag, items, present, text};
use crate::status::FieldError;

/// Errors of a schema that is not structural, sorted by their text.
pub(super) fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(schema, Level::Root, path, &mut errors);
    completeness(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

/// Why a schema cannot be read as a structural one at all.
pub(super) fn unreadable(schema: &Value) -> Option<String> {
    let unsupported = |what: &str| Some(format!("OpenAPIV3Schema '{what}' is not supported"));
    let full = |key: &str| schema.get(key).is_some_and(|value| !is_zero(value));
    for (key, name) in [
        ("id", "id"),
        ("$schema", "schema"),
        ("$ref", "$ref"),
        ("patternProperties", "patternProperties"),
        ("dependencies", "dependencies"),
        ("definitions", "definitions"),
    ] {
        if full(key) {
            return unsupported(name);
        }
    }
    if present(schema, "additionalItems").is_some() {
        return unsupported("additionalItems");
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let why = "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
        return Some(why.to_owned());
    }
    if schema.get("items").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    children(schema).into_iter().find_map(unreadable)
}

/// Every schema right inside of a schema.
pub(super) fn children(schema: &Value) -> Vec<&Value> {
    let mut out: Vec<&Value> = Vec::new();
    for key in ["items", "not", "additionalProperties", "additionalItems"] {
        out.extend(schema.get(key).filter(|value| value.is_object()));
    }
    for key in ["items", "allOf", "anyOf", "oneOf"] {
        out.extend(items(schema, key));
    }
    for key in ["properties", "patternProperties", "definitions", "dependencies"] {
        let inner = schema.get(key).and_then(Value::as_object);
        out.extend(inner.into_iter().flat_map(serde_json::Map::values).filter(|value| value.is_object()));
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What Go would call the zero value: leaving a field out or writing this is the same.
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn invariants(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    let item_schema = schema.get("items").filter(|value| value.is_object());
    match item_schema {
        Some(inner) => invariants(inner, Level::Item, &format!("{path}.items"), errors),
        None if kind == "array" => {
            errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
        }
        None => {}
    }
    for (name, property) in properties(schema) {
        invariants(property, Level::Field, &format!("{path}.properties[{name}]"), errors);
    }
    let additional = present(schema, "additionalProperties");
    if let Some(additional) = additional {
        let at = format!("{path}.additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&at, "must not be used at the root"));
        }
        if additional.is_object() {
            invariants(additional, Level::Field, &at, errors);
        }
    }
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
    for (name, set) in
        [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && set {
            let why = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(format!("{path}.{name}"), true, why));
        }
    }

    let any_of_types = is_int_or_string_pattern(schema);
    let all_of_types = items(schema, "allOf").first().is_some_and(is_int_or_string_pattern);
    value_validation(schema, any_of_types, all_of_types, path, errors);

    let at = format!("{path}.type");
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(&at, why)
        } else {
            FieldError::invalid(&at, kind, why)
        });
    } else if kind.is_empty() && !int_or_string && !preserve {
        let why = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&at, why));
    }
    if embedded && additional.is_some() {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), why));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&at, kind, "must be object at the root"));
    }
    check_metadata(schema, level, level == Level::Root || embedded, path, errors);
    if embedded && !preserve && properties(schema).next().is_none() {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), why));
    }
}

/// What a schema may say about the parts that every object has.
fn check_metadata(schema: &Value, level: Level, whole: bool, path: &str, errors: &mut Vec<FieldError>) {
    for (name, property) in properties(schema) {
        let at = format!("{path}.properties[{name}]");
        let kind = text(property, "type");
        match name.as_str() {
            "kind" | "apiVersion" if whole && kind != "string" => {
                errors.push(FieldError::invalid(format!("{at}.type"), kind, "must be string"));
            }
            "metadata" => {
                if whole && kind != "object" {
                    errors.push(FieldError::invalid(format!("{at}.type"), kind, "must be object"));
                }
                if level == Level::Root && !is_plain_metadata(property) {
                    let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
                    errors.push(FieldError::forbidden(at, why));
                }
            }
            _ => {}
        }
    }
}

fn is_plain_metadata(metadata: &Value) -> bool {
    metadata.as_object().into_iter().flatten().all(|(key, value)| match key.as_str() {
        "type" | "default" => true,
        "properties" => {
            value.as_object().is_none_or(|p| p.keys().all(|name| name == "name" || name == "generateName"))
        }
        _ => is_zero(value),
    })
}

/// `anyOf: [{type: integer}, {type: string}]`, the one place where types may be repeated.
fn is_int_or_string_pattern(schema: &Value) -> bool {
    let only_type = |branch: &Value, kind: &str| {
        let others = branch.as_object().into_iter().flatten().filter(|(key, _)| *key != "type");
        text(branch, "type") == kind && others.map(|(_, value)| value).all(is_zero)
    };
    match items(schema, "anyOf") {
        [first, second] => only_type(first, "integer") && only_type(second, "string"),
        _ => false,
    }
}

fn value_validation(
    schema: &Value,
    skip_any_of: bool,
    skip_first_all_of: bool,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if !skip_any_of {
        for (index, branch) in items(schema, "anyOf").iter().enumerate() {
            nested(branch, false, &format!("{path}.anyOf[{index}]"), errors);
        }
    }
    for (index, branch) in items(schema, "allOf").iter().enumerate() {
        nested(branch, skip_first_all_of && index == 0, &format!("{path}.allOf[{index}]"), errors);
    }
    for (index, branch) in items(schema, "oneOf").iter().enumerate() {
        nested(branch, false, &format!("{path}.oneOf[{index}]"), errors);
    }
    if let Some(not) = schema.get("not").filter(|value| value.is_object()) {
        nested(not, false, &format!("{path}.not"), errors);
    }
    let pattern = text(schema, "pattern");
    if let Some(error) = Pattern::new(pattern).error() {
        let why = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(format!("{path}.pattern"), pattern, why));
    }
}

/// Inside of allOf, anyOf, oneOf and not: validations, and nothing that gives structure.
fn nested(schema: &Value, skip_any_of: bool, path: &str, errors: &mut Vec<FieldError>) {
    value_validation(schema, skip_any_of, false, path, errors);
    if let Some(inner) = schema.get("items").filter(|value| value.is_object()) {
        nested(inner, false, &format!("{path}.items"), errors);
    }
    for (name, property) in properties(schema) {
        nested(property, false, &format!("{path}.properties[{name}]"), errors);
    }
    let additional = present(schema, "additionalProperties");
    if additional.is_some_and(|value| *value != Value::Bool(false)) {
        let why = "must be undefined to be structural";
        errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), why));
    }
    for (key, must) in [
        ("type", "empty"),
        ("default", "undefined"),
        ("title", "empty"),
        ("description", "empty"),
        ("nullable", "false"),
        ("x-kubernetes-preserve-unknown-fields", "false"),
        ("x-kubernetes-embedded-resource", "false"),
        ("x-kubernetes-int-or-string", "false"),
        ("x-kubernetes-list-map-keys", "empty"),
        ("x-kubernetes-list-type", "undefined"),
        ("x-kubernetes-map-type", "undefined"),
        ("x-kubernetes-validations", "empty"),
    ] {
        // A pointer counts as set as soon as it is there, other fields when they say something.
        let set = match must {
            "undefined" => present(schema, key).is_some(),
            _ => schema.get(key).is_some_and(|value| !is_zero(value)),
        };
        if set {
            let why = format!("must be {must} to be structural");
            errors.push(FieldError::forbidden(format!("{path}.{key}"), why));
        }
    }
    if schema.get("properties").and_then(|p| p.get("metadata")).is_some() {
        let at = format!("{path}.properties[metadata]");
        errors.push(FieldError::forbidden(at, "must not be specified in a nested context"));
    }
}

/// What is validated in a branch must be declared outside of it.
fn completeness(branch: &Value, main: Option<&Value>, path: &str, at: &str, errors: &mut Vec<FieldError>) {
    if let Some(not) = branch.get("not").filter(|value| value.is_object()) {
        nested_completeness(not, main, path, &format!("{at}.not"), errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, inner) in items(branch, key).iter().enumerate() {
            nested_completeness(inner, main, path, &format!("{at}.{key}[{index}]"), errors);
        }
    }
}

fn nested_completeness(
    branch: &Value,
    main: Option<&Value>,
    path: &str,
    at: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(declared) = main else {
        errors.push(FieldError::required(path, format!("because it is defined in {at}")));
        return;
    };
    completeness(branch, main, path, at, errors);
    if let Some(inner) = branch.get("items").filter(|value| value.is_object()) {
        let outer = declared.get("items").filter(|value| value.is_object());
        nested_completeness(inner, outer, &format!("{path}.items"), &format!("{at}.items"), errors);
    }
    for (name, inner) in properties(branch) {
        let outer = declared.get("properties").and_then(|p| p.get(name));
        let (path, at) = (format!("{path}.properties[{name}]"), format!("{at}.properties[{name}]"));
        nested_completeness(inner, outer, &path, &at, errors);
    }
}
