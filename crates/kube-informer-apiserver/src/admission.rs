//! What every write goes through between the client and the store.
//!
//! In this order, as on the real server: decode (types, unknown fields), default, what the kind's strategy
//! keeps and resets, validate, ownership of fields. The steps are pure functions over JSON; built-in and
//! custom kinds differ only inside them. After [`admit`] an object is fit to be stored; if it returns an
//! error, nothing has happened.

use serde_json::Value;

use crate::api::{Part, text};
use crate::kinds::Resource;
use crate::managed_fields::{self, Write};
use crate::object::metadata_mut;
use crate::status::ApiError;
use crate::{crd, defaults, schema, strategy, validation};

/// The manager of fields that the server itself writes.
pub(crate) const OWN_MANAGER: &str = "kube-controller-manager";

/// What to do about fields that the kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// What was there before a write.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Before<'a> {
    Nothing,
    Was(&'a Value),
}

/// Who writes what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    pub(crate) part: Part,
    pub(crate) now: &'a str,
}

/// Reads an object that a client sent: JSON, of the right kind, with the types of its schema, unknown
/// fields removed. Returns it with the warnings to send back.
pub(crate) fn read(
    resource: &Resource,
    body: &[u8],
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), ApiError> {
    let mut object = parse(&resource.kind, body)?;
    check_kind(resource, &mut object)?;
    let mut complaints = if validation == FieldValidation::Ignore { Vec::new() } else { schema::duplicate_fields(body) };
    complaints.extend(conform(resource, &mut object)?);
    complain(complaints, validation).map(|warnings| (object, warnings))
}

/// What `validation` makes of unknown and duplicate fields.
pub(crate) fn complain(complaints: Vec<String>, validation: FieldValidation) -> Result<Vec<String>, ApiError> {
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(complaints),
        FieldValidation::Strict if complaints.is_empty() => Ok(complaints),
        FieldValidation::Strict => {
            Err(ApiError::bad_request(format!("strict decoding error: {}", complaints.join(", "))))
        }
    }
}

/// JSON that must be an object.
pub(crate) fn parse(kind: &str, body: &[u8]) -> Result<Value, ApiError> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: {error}"
        ))
    })?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: the body is no JSON object"
        )))
    }
}

fn check_kind(resource: &Resource, object: &mut Value) -> Result<(), ApiError> {
    let expected = resource.api_version();
    let (kind, version) = (text(object, "/kind").to_owned(), text(object, "/apiVersion").to_owned());
    if resource.custom.is_some() && (kind.is_empty() || version.is_empty()) {
        let what = if kind.is_empty() { "Kind" } else { "apiVersion" };
        return Err(ApiError::bad_request(format!("Object '{what}' is missing in '{object}'")));
    }
    if !version.is_empty() && version != expected {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        )));
    }
    if !kind.is_empty() && kind != resource.kind {
        return Err(ApiError::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}",
            resource.version, resource.kind
        )));
    }
    if let Some(map) = object.as_object_mut() {
        map.insert("kind".into(), resource.kind.clone().into());
        map.insert("apiVersion".into(), expected.into());
    }
    Ok(())
}

/// Makes an object fit its schema; returns the fields that it does not have.
pub(crate) fn conform(resource: &Resource, object: &mut Value) -> Result<Vec<String>, ApiError> {
    let Some(schema) = &resource.schema else { return Ok(Vec::new()) };
    if resource.custom.is_some() {
        return crd::conform(resource, object);
    }
    let decoded = schema.decode(object).map_err(|message| {
        ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {message}",
            kind = resource.kind,
            version = resource.version,
        ))
    })?;
    Ok(decoded.unknown)
}

/// The rest of the way, for an object that has been [`read`] or patched.
pub(crate) fn admit(
    resource: &Resource,
    before: Before<'_>,
    object: &mut Value,
    writer: &Writer<'_>,
) -> Result<(), ApiError> {
    default(resource, object);
    match before {
        Before::Nothing => strategy::prepare_create(resource, object),
        Before::Was(old) => match writer.part {
            Part::Whole | Part::Scale => strategy::prepare_update(resource, old, object),
            Part::Status => strategy::prepare_status_update(resource, old, object),
            Part::Finalize => strategy::prepare_finalize(old, object),
        },
    }
    normalise(resource, object);
    let mut errors = match before {
        Before::Nothing => validation::create(resource, object),
        Before::Was(old) if writer.part == Part::Status => validation::status_update(resource, old, object),
        Before::Was(old) => validation::update(resource, old, object),
    };
    if resource.custom.is_some() {
        let old = match before {
            Before::Nothing => None,
            Before::Was(old) => Some(old),
        };
        errors.extend(crd::validate(resource, object, old));
    } else if crd::is_definition(resource) {
        errors.extend(match before {
            Before::Nothing => crd::validate_definition(object, None),
            Before::Was(old) => crd::validate_definition(object, Some(old)),
        });
    }
    if !errors.is_empty() {
        let name = text(object, "/metadata/name");
        return Err(ApiError::invalid(&resource.group, &resource.kind, name, &errors));
    }
    let old = match before {
        Before::Nothing => None,
        Before::Was(old) => Some(old),
    };
    let write = Write {
        manager: writer.manager,
        api_version: &resource.api_version(),
        subresource: writer.part.name(),
        now: writer.now,
    };
    let resets = managed_fields::reset_fields(resource, write.subresource);
    managed_fields::update(old, object, write, resets, resource.schema.as_ref());
    Ok(())
}

fn default(resource: &Resource, object: &mut Value) {
    if resource.custom.is_some() {
        crd::apply_defaults(resource, object);
    } else {
        if crd::is_definition(resource) {
            crd::default_definition(object);
        }
        defaults::apply(resource, object);
    }
}

fn normalise(resource: &Resource, object: &mut Value) {
    let meta = metadata_mut(object);
    for empty in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let is_empty = match meta.get(empty) {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        };
        if is_empty {
            meta.remove(empty);
        }
    }
    if resource.custom.is_none() && let Some(schema) = &resource.schema {
        schema.normalise(object);
    }
}
