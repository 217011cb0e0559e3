//! Whether a custom object is what its definition says.
//!
//! The object's own metadata and the match of its kind are checked elsewhere, as for every kind.

mod correlate;
pub(super) mod embedded;
mod number;
mod value;

use serde_json::Value;

use super::{ScalePaths, lists, scale};
use crate::kinds::Resource;
use crate::schema::Schema;
use crate::status::{FieldError, FieldErrorKind};
use correlate::Correlation;
use value::Validator;

/// Errors of a whole object. With `old`, what was wrong before and is unchanged is forgiven.
pub(crate) fn validate(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let custom = resource.custom.as_deref();
    if let Some(schema) = &resource.schema {
        errors.extend(validate_value(schema, object, old, ""));
    }
    if let Some(paths) = custom.and_then(|custom| custom.scale.as_ref()) {
        errors.extend(validate_spec_replicas(paths, object));
        errors.extend(validate_status_replicas(paths, object));
    }
    if let Some(schema) = &resource.schema {
        embedded::check(&schema.set, schema.node, object, "", true, &mut errors);
        errors.extend(new_duplicates(schema, object, old));
        errors.extend(unchecked_expressions(schema, &errors));
    }
    errors
}

/// Errors of a write through the status subresource: only the status is looked at.
pub(crate) fn validate_status(resource: &Resource, object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let status_schema = resource.schema.as_ref().and_then(|schema| schema.field("status"));
    if let (Some(schema), Some(status)) = (status_schema, object.get("status")) {
        errors.extend(validate_value(&schema, status, old.get("status"), "status"));
    }
    if let Some(paths) = resource.custom.as_deref().and_then(|custom| custom.scale.as_ref()) {
        errors.extend(validate_status_replicas(paths, object));
    }
    if let Some(schema) = &resource.schema {
        errors.extend(new_duplicates(schema, object, Some(old)));
        errors.extend(unchecked_expressions(schema, &errors));
    }
    errors
}

/// Errors of one value against one schema; `prefix` is where the value stands.
pub(super) fn validate_value(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    prefix: &str,
) -> Vec<FieldError> {
    let correlation = old.map(|old| Correlation { set: &schema.set, node: schema.node, new: value, old });
    let validator = Validator { set: &schema.set };
    let outcome = validator.check_ratcheting(schema.node, value, "", correlation.as_ref());
    outcome.failures.iter().map(|failure| failure.to_field_error(prefix)).collect()
}

/// Duplicates count only where the old object had none.
fn new_duplicates(schema: &Schema, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    match old {
        Some(old) if !lists::duplicates(schema, old).is_empty() => Vec::new(),
        _ => lists::duplicates(schema, object),
    }
}

/// An object too wrong for CEL rules to run is told so, where there are any.
fn unchecked_expressions(schema: &Schema, errors: &[FieldError]) -> Option<FieldError> {
    use FieldErrorKind::{NotSupported, Required, TooLong, TooMany, TypeInvalid};
    let blocking = [NotSupported, Required, TooLong, TooMany, TypeInvalid];
    let mut rules = schema.set.nodes.iter().filter_map(|node| node.rules.as_ref());
    let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    (errors.iter().any(|error| blocking.contains(&error.kind))
        && rules.any(|rules| !rules.expressions.is_empty()))
    .then(|| FieldError::invalid("<nil>", Value::Null, why))
}

fn validate_spec_replicas(paths: &ScalePaths, object: &Value) -> Option<FieldError> {
    validate_replicas(&paths.spec_replicas, object)
}

fn validate_status_replicas(paths: &ScalePaths, object: &Value) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = validate_replicas(&paths.status_replicas, object).into_iter().collect();
    if let Some(path) = &paths.label_selector
        && let Err(why) = scale::text_at(object, path)
    {
        errors.push(FieldError::invalid(path, "", why));
    }
    errors
}

fn validate_replicas(path: &str, object: &Value) -> Option<FieldError> {
    match scale::number_at(object, path) {
        Err(why) => Some(FieldError::invalid(path, 0, why)),
        Ok(Some(count)) if count < 0 => {
            Some(FieldError::invalid(path, count, "should be a non-negative integer"))
        }
        Ok(Some(count)) if count > i64::from(i32::MAX) => {
            Some(FieldError::invalid(path, count, format!("should be less than or equal to {}", i32::MAX)))
        }
        Ok(_) => None,
    }
}
