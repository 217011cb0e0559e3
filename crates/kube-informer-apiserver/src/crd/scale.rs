//! The scale subresource: one small face for everything that has replicas.

use serde_json::{Map, Value, json};

use super::{ScalePaths, text};
use crate::kinds::Resource;
use crate::status::{ApiError, FieldError};

/// Stands in a Scale for replicas that the object does not say.
const UNSET: i64 = i32::MIN as i64;

/// The `autoscaling/v1` Scale of an object.
pub(crate) fn scale_get(resource: &Resource, object: &Value) -> Result<Value, ApiError> {
    let scale = scale_to_patch(resource, object)?;
    match paths(resource) {
        Some(paths) if scale["spec"]["replicas"] == UNSET => {
            let path = &paths.spec_replicas;
            Err(ApiError::internal(format!("the spec replicas field {path:?} does not exist")))
        }
        _ => Ok(scale),
    }
}

/// The Scale that a patch of the subresource starts from: as [`scale_get`], but an object without
/// replicas has one too, which [`scale_set`] refuses unless the patch gives it replicas.
pub(crate) fn scale_to_patch(resource: &Resource, object: &Value) -> Result<Value, ApiError> {
    let Some(paths) = paths(resource) else {
        let number = |part: &str, default: i64| object[part]["replicas"].as_i64().unwrap_or(default);
        let selector = selector_text(resource, &object["spec"]["selector"]);
        return Ok(scale(object, number("spec", 1), number("status", 0), &selector));
    };
    let plain = |why: String| ApiError::new(500, "", why);
    let wanted = number_at(object, &paths.spec_replicas).map_err(plain)?;
    let actual = number_at(object, &paths.status_replicas).map_err(plain)?;
    let selector = match &paths.label_selector {
        Some(path) => text_at(object, path).map_err(plain)?.unwrap_or_default(),
        None => "",
    };
    Ok(scale(object, wanted.unwrap_or(UNSET), actual.unwrap_or_default(), selector))
}

/// Writes a Scale into the object that it is of. The caller then updates that object as if a client
/// had sent it, which also checks the resource version.
pub(crate) fn scale_set(resource: &Resource, object: &mut Value, scale: &Value) -> Result<(), ApiError> {
    let wanted = scale["spec"]["replicas"].as_i64().unwrap_or_default();
    let version = text(&scale["metadata"], "resourceVersion");
    check_uid(resource, object, scale)?;
    match paths(resource) {
        Some(paths) => {
            if wanted == UNSET {
                let path = &paths.spec_replicas;
                return Err(ApiError::bad_request(format!(
                    "the spec replicas field {path:?} cannot be empty"
                )));
            }
            set_number(object, &paths.spec_replicas, wanted)?;
        }
        None => {
            if wanted < 0 {
                let name = text(&object["metadata"], "name");
                let error =
                    FieldError::invalid("spec.replicas", wanted, "must be greater than or equal to 0");
                return Err(ApiError::invalid("autoscaling", "Scale", name, &[error]));
            }
            set_number(object, ".spec.replicas", wanted)?;
        }
    }
    if !version.is_empty()
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("resourceVersion".to_owned(), version.into());
    }
    Ok(())
}

/// A Scale with a uid is meant for one object, not for another one of the same name.
fn check_uid(resource: &Resource, object: &Value, scale: &Value) -> Result<(), ApiError> {
    let (asked, uid) = (text(&scale["metadata"], "uid"), text(&object["metadata"], "uid"));
    if asked.is_empty() || asked == uid {
        return Ok(());
    }
    let (name, namespace) = (text(&object["metadata"], "name"), text(&object["metadata"], "namespace"));
    let stored = match (&resource.custom, resource.plural.as_str()) {
        (Some(_), plural) => format!("{}/{plural}", resource.group),
        (None, "replicationcontrollers") => "controllers".to_owned(),
        (None, plural) => plural.to_owned(),
    };
    let key = [stored.as_str(), namespace, name].map(|part| format!("/{part}")).concat().replace("//", "/");
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry{key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {asked}, UID in object meta: {uid}"
    );
    Err(ApiError::conflict(&resource.group, &resource.plural, name, &why))
}

fn paths(resource: &Resource) -> Option<&ScalePaths> {
    resource.custom.as_deref()?.scale.as_ref()
}

fn scale(object: &Value, wanted: i64, actual: i64, selector: &str) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {},
        "status": { "replicas": actual as i32 },
    });
    if wanted as i32 != 0 {
        scale["spec"]["replicas"] = (wanted as i32).into();
    }
    if !selector.is_empty() {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

/// A label selector written as the string that `kubectl -l` takes.
fn selector_text(resource: &Resource, selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    // A ReplicationController's selector is just the labels.
    let labels = if resource.is("", "replicationcontrollers") { selector } else { &selector["matchLabels"] };
    for (key, value) in labels.as_object().into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in super::items(selector, "matchExpressions") {
        let key = text(expression, "key");
        let mut values = super::strings(expression, "values");
        values.sort();
        let values = values.join(",");
        let written = match text(expression, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => continue,
        };
        parts.push((key.to_owned(), written));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    parts.into_iter().map(|(_, written)| written).collect::<Vec<_>>().join(",")
}

fn steps(path: &str) -> std::str::Split<'_, char> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

/// The value at a dotted path; an error if the way leads through something that is no object.
fn value_at<'v>(object: &'v Value, path: &str) -> Result<Option<&'v Value>, String> {
    let mut value = object;
    let mut walked = String::new();
    for step in steps(path) {
        walked.push('.');
        walked.push_str(step);
        match value {
            Value::Null => return Ok(None),
            Value::Object(fields) => match fields.get(step) {
                Some(next) => value = next,
                None => return Ok(None),
            },
            other => return Err(wrong(&walked, other, "map[string]interface{}")),
        }
    }
    Ok(Some(value))
}

/// The integer at a dotted path.
pub(super) fn number_at(object: &Value, path: &str) -> Result<Option<i64>, String> {
    match value_at(object, path)? {
        None => Ok(None),
        Some(value) => match value.as_i64() {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(&full(path), value, "int64")),
        },
    }
}

/// The text at a dotted path.
pub(super) fn text_at<'v>(object: &'v Value, path: &str) -> Result<Option<&'v str>, String> {
    match value_at(object, path)? {
        None => Ok(None),
        Some(Value::String(found)) => Ok(Some(found)),
        Some(value) => Err(wrong(&full(path), value, "string")),
    }
}

fn full(path: &str) -> String {
    if path.starts_with('.') { path.to_owned() } else { format!(".{path}") }
}

fn wrong(path: &str, value: &Value, wanted: &str) -> String {
    format!("{path} accessor error: {} is of the type {}, expected {wanted}", go_text(value), go_type(value))
}

fn set_number(object: &mut Value, path: &str, number: i64) -> Result<(), ApiError> {
    let steps: Vec<&str> = steps(path).collect();
    let Some((last, way)) = steps.split_last() else { return Ok(()) };
    let mut value = object;
    for (at, step) in way.iter().enumerate() {
        let next = value
            .as_object_mut()
            .map(|fields| fields.entry((*step).to_owned()).or_insert_with(|| Value::Object(Map::new())));
        match next {
            Some(next) if next.is_object() => value = next,
            _ => {
                let walked = way[..=at].join(".");
                let why = format!("value cannot be set because .{walked} is not a map[string]interface{{}}");
                return Err(ApiError::new(500, "", why));
            }
        }
    }
    if let Some(fields) = value.as_object_mut() {
        fields.insert((*last).to_owned(), number.into());
    }
    Ok(())
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go's `%v` prints it.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if !number.is_i64() && float.fract() == 0.0 && float.abs() < 1e21 => {
                format!("{float:.0}")
            }
            _ => number.to_string(),
        },
        Value::Array(list) => format!("[{}]", list.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(k, v)| format!("{k}:{}", go_text(v))).collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}
