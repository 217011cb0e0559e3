//! Whether a version's schema is one that the server can work with.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{defaults, field_path, internal};
use crate::crd::{flag, formats, items, present, structural, text};
use crate::status::{FieldError, FieldErrorKind};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Errors of a version's `schema`; `path` is where that stands.
pub(super) fn check(schema: Option<&Value>, status: bool, path: &str, errors: &mut Vec<FieldError>) {
    let Some(schema) = schema.and_then(|schema| present(schema, "openAPIV3Schema")) else { return };
    let path = format!("{path}.openAPIV3Schema");
    let before = errors.len();
    if status {
        check_root_beside_status(schema, &path, errors);
    }
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    let unreadable = structural::unreadable(schema);
    if unreadable.is_none() {
        let mut found = structural::check(schema, &path);
        if found.is_empty() {
            found = defaults::check(schema, &path);
        }
        errors.extend(found);
    }
    let context = Context { forbidden_defaults: None, inside_metadata: false };
    check_node(schema, &path, &context, true, errors);
    if errors.len() == before {
        errors.extend(unreadable.map(|why| FieldError::invalid(path, "", why)));
    }
}

/// Warnings for the schemas of all versions.
pub(super) fn warnings(crd: &Value) -> Vec<String> {
    let mut schemas: Vec<&Value> = Vec::new();
    for version in items(&crd["spec"], "versions") {
        let schema = version["schema"].get("openAPIV3Schema");
        // Versions with the same schema are warned about once.
        schemas.extend(schema.filter(|schema| !schemas.contains(schema)));
    }
    let mut unknown_formats = Vec::new();
    let mut sets = BTreeSet::new();
    schemas.into_iter().for_each(|schema| warn(schema, &mut unknown_formats, &mut sets));
    unknown_formats.into_iter().chain(sets).collect()
}

fn warn(schema: &Value, unknown_formats: &mut Vec<String>, sets: &mut BTreeSet<String>) {
    let format = text(schema, "format");
    if !format.is_empty() && !formats::is_checked(text(schema, "type"), format) {
        unknown_formats.push(format!("unrecognized format {format:?}"));
    }
    let kind = schema.get("items").map(|items| text(items, "type")).unwrap_or_default();
    if text(schema, "x-kubernetes-list-type") == "set" && ["object", "array"].contains(&kind) {
        sets.insert(format!(
            "x-kubernetes-list-type: set for items of type {kind:?} is not supported by server-side apply or CEL validation rules"
        ));
    }
    structural::children(schema).into_iter().for_each(|child| warn(child, unknown_formats, sets));
}

/// With a status subresource, the root holds only what does not concern the status.
fn check_root_beside_status(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    if !kind.is_empty() && kind != "object" {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        errors.push(FieldError::invalid(format!("{path}.type"), kind, why));
        return;
    }
    let allowed = internal::ALLOWED_BESIDE_STATUS;
    let forbidden = internal::FIELDS.iter().any(|(name, key)| {
        let set = schema.get(*key).is_some_and(|value| {
            if internal::is_pointer(key) { !value.is_null() } else { !structural::is_zero(value) }
        });
        set && !allowed.contains(name)
    });
    if forbidden {
        errors.push(FieldError {
            kind: FieldErrorKind::Invalid,
            field: path.to_owned(),
            value: None,
            detail: format!(
                "{}: only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                internal::schema(schema),
                allowed.join(" ")
            ),
        });
    }
}

#[derive(Clone)]
struct Context {
    /// Why defaults may not be set here.
    forbidden_defaults: Option<String>,
    inside_metadata: bool,
}

fn check_node(schema: &Value, path: &str, context: &Context, root: bool, errors: &mut Vec<FieldError>) {
    check_constructs(schema, path, context, errors);
    if flag(schema, "uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(format!("{path}.uniqueItems"), why));
    }
    let declared = schema.get("properties").and_then(Value::as_object).filter(|p| !p.is_empty());
    if let Some(additional) = present(schema, "additionalProperties") {
        let at = format!("{path}.additionalProperties");
        if declared.is_some() && *additional != Value::Bool(true) {
            let why = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(&at, why));
        }
        let mut inner = context.clone();
        if context.inside_metadata {
            let why = "inside additionalProperties applying to object metadata";
            inner.forbidden_defaults = Some(why.to_owned());
        }
        if additional.is_object() {
            check_node(additional, &at, &inner, false, errors);
        }
    }
    for (name, property) in declared.into_iter().flatten() {
        let mut inner = context.clone();
        let of_metadata = ["metadata", "kind", "apiVersion"].contains(&name.as_str());
        if of_metadata && (root || flag(schema, "x-kubernetes-embedded-resource")) {
            inner.inside_metadata = true;
            if root {
                inner.forbidden_defaults = Some(format!("in top-level {name}"));
            }
        }
        check_node(property, &format!("{path}.properties[{name}]"), &inner, false, errors);
    }
    if let Some(not) = schema.get("not").filter(|value| value.is_object()) {
        check_node(not, &format!("{path}.not"), context, false, errors);
    }
    for key in ["allOf", "oneOf", "anyOf"] {
        for (index, branch) in items(schema, key).iter().enumerate() {
            check_node(branch, &format!("{path}.{key}[{index}]"), context, false, errors);
        }
    }
    for (name, definition) in schema.get("definitions").and_then(Value::as_object).into_iter().flatten() {
        check_node(definition, &format!("{path}.definitions[{name}]"), context, false, errors);
    }
    if let Some(inner) = schema.get("items").filter(|value| value.is_object()) {
        check_node(inner, &format!("{path}.items"), context, false, errors);
    }
    for (index, inner) in items(schema, "items").iter().enumerate() {
        check_node(inner, &format!("{path}.items[{index}]"), context, false, errors);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let at = format!("{path}.x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(at, false, "must be true or undefined"));
    }
    check_map_type(schema, path, errors);
    check_list_type(schema, path, errors);
    check_list_keys(schema, path, errors);
    check_expressions(schema, path, errors);
}

/// What the OpenAPI of definitions leaves out of OpenAPI.
fn check_constructs(schema: &Value, path: &str, context: &Context, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(format!("{path}.type"), kind, &TYPES));
    }
    if let (Some(reason), Some(_)) = (&context.forbidden_defaults, present(schema, "default")) {
        let why = format!("must not be set {reason}");
        errors.push(FieldError::forbidden(format!("{path}.default"), why));
    }
    for key in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        let set = match key {
            "additionalItems" | "$ref" | "dependencies" => present(schema, key).is_some(),
            _ => schema.get(key).is_some_and(|value| !structural::is_zero(value)),
        };
        if set {
            errors.push(FieldError::forbidden(format!("{path}.{key}"), format!("{key} is not supported")));
        }
    }
    if kind == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(format!("{path}.type"), why));
    }
    if !items(schema, "items").is_empty() {
        let why = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(format!("{path}.items"), why));
    }
    if context.inside_metadata && flag(schema, "x-kubernetes-embedded-resource") {
        let why = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(format!("{path}.x-kubernetes-embedded-resource"), why));
    }
}

fn check_map_type(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(map_type) = present(schema, "x-kubernetes-map-type").and_then(Value::as_str) else { return };
    check_kind(schema, "object", "x-kubernetes-map-type", path, errors);
    if !["atomic", "granular"].contains(&map_type) {
        let at = format!("{path}.x-kubernetes-map-type");
        errors.push(FieldError::not_supported(at, map_type, &["atomic", "granular"]));
    }
}

fn check_kind(schema: &Value, wanted: &str, because: &str, path: &str, errors: &mut Vec<FieldError>) -> bool {
    let kind = text(schema, "type");
    if kind == wanted {
        return true;
    }
    let (at, why) = (format!("{path}.type"), format!("must be {wanted} if {because} is specified"));
    errors.push(if kind.is_empty() {
        FieldError::required(at, why)
    } else {
        FieldError::invalid(at, kind, why)
    });
    false
}

fn check_list_type(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(list_type) = present(schema, "x-kubernetes-list-type").and_then(Value::as_str) else { return };
    let is_list = check_kind(schema, "array", "x-kubernetes-list-type", path, errors);
    let inner = schema.get("items").filter(|value| value.is_object());
    if let (true, "set", Some(inner)) = (is_list, list_type, inner) {
        let of_item = |key: &str| present(inner, key).cloned().unwrap_or_default();
        let (item_list, item_map) = (of_item("x-kubernetes-list-type"), of_item("x-kubernetes-map-type"));
        let bad = match text(inner, "type") {
            "array" if !item_list.is_null() && item_list != "atomic" => Some("x-kubernetes-list-type"),
            "object" if item_map != "atomic" => Some("x-kubernetes-map-type"),
            _ => None,
        };
        if let Some(bad) = bad {
            let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
            errors.push(FieldError::invalid(format!("{path}.items.{bad}"), item_list, why));
        }
    }
    if !["atomic", "set", "map"].contains(&list_type) {
        let at = format!("{path}.x-kubernetes-list-type");
        errors.push(FieldError::not_supported(at, list_type, &["atomic", "set", "map"]));
    }
}

fn check_list_keys(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let keys = items(schema, "x-kubernetes-list-map-keys");
    let keys_at = format!("{path}.x-kubernetes-list-map-keys");
    let list_type = present(schema, "x-kubernetes-list-type").and_then(Value::as_str);
    if !keys.is_empty() && list_type != Some("map") {
        let (at, why) = (
            format!("{path}.x-kubernetes-list-type"),
            "must be map if x-kubernetes-list-map-keys is non-empty",
        );
        errors.push(match list_type {
            None => FieldError::required(at, why),
            Some(other) => FieldError::invalid(at, other, why),
        });
    }
    let inner = schema.get("items").filter(|value| value.is_object());
    if list_type == Some("map") {
        if keys.is_empty() {
            errors.push(FieldError::required(&keys_at, "must not be empty if x-kubernetes-list-type is map"));
        }
        match inner {
            None => {
                let why = "must have a schema if x-kubernetes-list-type is map";
                errors.push(FieldError::required(format!("{path}.items"), why));
            }
            Some(inner) if text(inner, "type") != "object" => {
                let why = "must be object if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(format!("{path}.items.type"), text(inner, "type"), why));
            }
            Some(inner) => check_keys(keys, inner, path, &keys_at, errors),
        }
    }
    let (Some(inner), Some(list_type @ ("set" | "map"))) = (inner, list_type) else { return };
    if flag(inner, "nullable") {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(format!("{path}.items.nullable"), why));
    }
    if list_type != "map" {
        return;
    }
    let required = items(inner, "required");
    for key in keys {
        let name = key.as_str().unwrap_or_default();
        let Some(property) = inner.get("properties").and_then(|properties| properties.get(name)) else {
            continue;
        };
        let at = format!("{path}.items.properties[{name}]");
        if !required.contains(key) && present(property, "default").is_none() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(format!("{at}.default"), why));
        }
        if flag(property, "nullable") {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{at}.nullable"), why));
        }
    }
}

fn check_keys(keys: &[Value], inner: &Value, path: &str, keys_at: &str, errors: &mut Vec<FieldError>) {
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        match inner.get("properties").and_then(|properties| properties.get(name)) {
            Some(property) if ["array", "object"].contains(&text(property, "type")) => {
                let at = format!("{path}.items.properties[{name}].type");
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(at, text(inner, "type"), why));
            }
            Some(_) => {}
            None => {
                let why = "entries must all be names of item properties";
                errors.push(FieldError::invalid(keys_at, keys.to_vec(), why));
            }
        }
        if keys[..index].contains(key) {
            errors.push(FieldError::invalid(keys_at, keys.to_vec(), "must not contain duplicate entries"));
        }
    }
}

/// The form of CEL rules; what they say is not looked at.
fn check_expressions(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let broken = |text: &str| text.contains(['\n', '\r']);
    for (index, rule) in items(schema, "x-kubernetes-validations").iter().enumerate() {
        let at = |field: &str| format!("{path}.x-kubernetes-validations[{index}].{field}");
        let (expression, message) = (text(rule, "rule").trim(), text(rule, "message"));
        if expression.is_empty() {
            errors.push(FieldError::required(at("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(at("message"), message, "must be non-empty if specified"));
        } else if broken(message.trim()) {
            errors.push(FieldError::invalid(at("message"), message, "must not contain line breaks"));
        } else if broken(expression) && message.trim().is_empty() {
            let why = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(at("message"), why));
        }
        let message_expression = text(rule, "messageExpression");
        if !message_expression.is_empty() && message_expression.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(at("messageExpression"), why));
        }
        let reason = present(rule, "reason").and_then(Value::as_str);
        if let Some(reason) = reason.filter(|reason| !REASONS.contains(reason)) {
            errors.push(FieldError::not_supported(at("reason"), reason, &REASONS));
        }
        let field = text(rule, "fieldPath");
        if field.is_empty() {
            continue;
        }
        if field.trim().is_empty() {
            errors.push(FieldError::invalid(at("fieldPath"), field, "must be non-empty if specified"));
        }
        if broken(field) {
            errors.push(FieldError::invalid(at("fieldPath"), field, "must not contain line breaks"));
        }
        if structural::unreadable(schema).is_none() && field_path::resolve(field, schema, true).is_err() {
            errors.push(FieldError::invalid(at("fieldPath"), field, "must be a valid path"));
        }
    }
}
