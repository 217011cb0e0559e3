//! What one version of a definition says beside its schema: deprecation, scale, columns, selectable
//! fields.

use std::collections::BTreeSet;

use serde_json::Value;

use super::field_path;
use crate::crd::{flag, present, structural, text};
use crate::status::{FieldError, FieldErrorKind};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const MAX_SELECTABLE_FIELDS: usize = 8;

pub(super) fn check_deprecation(version: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else { return };
    let mut complaints = Vec::new();
    if !flag(version, "deprecated") {
        complaints.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > 256 {
            complaints.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            complaints.push("must not be an empty string".to_owned());
        }
        let unprintable =
            warning.char_indices().find(|(_, c)| c.is_control() || (c.is_whitespace() && *c != ' '));
        if let Some((index, _)) = unprintable {
            complaints.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {index}"
            ));
        }
    }
    let at = format!("{path}.deprecationWarning");
    errors.extend(complaints.into_iter().map(|why| FieldError::invalid(&at, warning, why)));
}

pub(super) fn check_scale(subresources: Option<&Value>, path: &str, errors: &mut Vec<FieldError>) {
    let Some(scale) = subresources.and_then(|subresources| present(subresources, "scale")) else { return };
    for (field, roots, required, hint) in [
        ("specReplicasPath", [".spec.", ".spec."], true, "should be a json path under .spec"),
        ("statusReplicasPath", [".status.", ".status."], true, "should be a json path under .status"),
        (
            "labelSelectorPath",
            [".spec.", ".status."],
            false,
            "should be a json path under either .spec or .status",
        ),
    ] {
        let (value, at) = (text(scale, field), format!("{path}.scale.{field}"));
        if value.is_empty() {
            if required {
                errors.push(FieldError::required(at, ""));
            }
        } else if !value.starts_with('.') {
            errors.push(FieldError::invalid(at, value, "must be a simple json path starting with ."));
        } else if !roots.iter().any(|root| value.starts_with(root)) {
            errors.push(FieldError::invalid(at, value, hint));
        }
    }
}

pub(super) fn check_columns(columns: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    for (index, column) in columns.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        let (kind, types) = (text(column, "type"), format!("must be one of {}", COLUMN_TYPES.join(",")));
        if kind.is_empty() {
            errors.push(FieldError::required(format!("{path}.type"), types));
        } else if !COLUMN_TYPES.contains(&kind) {
            errors.push(FieldError::invalid(format!("{path}.type"), kind, types));
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let why = format!("must be one of {}", COLUMN_FORMATS.join(","));
            errors.push(FieldError::invalid(format!("{path}.format"), format, why));
        }
        let json_path = text(column, "jsonPath");
        let at = format!("{path}.JSONPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if !json_path.starts_with('.') {
            errors.push(FieldError::invalid(at, json_path, "must be a simple json path starting with ."));
        }
    }
}

pub(super) fn check_selectable(
    fields: &[Value],
    schema: Option<&Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if fields.is_empty() {
        return;
    }
    let Some(schema) = schema else {
        let why = "may only be set when `version.schema.openAPIV3Schema` is not included";
        errors.push(FieldError::invalid(path, "", why));
        return;
    };
    if structural::unreadable(schema).is_some() {
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, field) in fields.iter().enumerate() {
        let at = format!("{path}[{index}].jsonPath");
        let json_path = text(field, "jsonPath");
        if json_path.is_empty() {
            errors.push(FieldError::required(at, ""));
            continue;
        }
        let found = match field_path::resolve(json_path, schema, false) {
            Ok(found) => found,
            Err(why) => {
                errors.push(FieldError::invalid(at, json_path, format!("is an invalid path: {why}")));
                continue;
            }
        };
        if json_path == ".metadata" || json_path.starts_with(".metadata.") {
            errors.push(FieldError::invalid(&at, json_path, "must not point to fields in metadata"));
        }
        if !["string", "boolean", "integer"].contains(&text(found, "type")) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&at, json_path, why));
        }
        if !seen.insert(json_path) {
            errors.push(FieldError::duplicate(at, json_path));
        }
    }
    if seen.len() > MAX_SELECTABLE_FIELDS {
        errors.push(FieldError {
            kind: FieldErrorKind::TooMany,
            field: path.to_owned(),
            value: Some(seen.len().into()),
            detail: format!("must have at most {MAX_SELECTABLE_FIELDS} items"),
        });
    }
}
