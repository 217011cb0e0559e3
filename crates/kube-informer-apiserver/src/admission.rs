//! What every write goes through between the client and the store.
//!
//! In this order, as on the real server: decode (types, unknown fields), default, admission plugins, what
//! the kind's strategy keeps and resets, validate, allocate, ownership of fields. The steps are functions
//! over JSON; built-in and custom kinds differ only inside them. After [`admit`] an object is fit to be
//! stored; if it returns an error, nothing has happened.

use jiff::Timestamp;
use serde_json::Value;

use crate::api::{Part, text};
use crate::kinds::Resource;
use crate::managed_fields::{self, Write};
use crate::object::{DEEPEST, depth};
use crate::schema::{self, Expected};
use crate::status::{ApiError, FieldError};
use crate::strategy::admission::Objects;
use crate::strategy::service::{self, Allocator};
use crate::{crd, defaults, kinds, strategy, validation};

/// The manager of fields that the server itself writes.
pub(crate) const OWN_MANAGER: &str = "kube-controller-manager";

/// What to do about fields that the kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// Who writes what, when, and over what.
#[derive(Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    pub(crate) part: Part,
    pub(crate) now: Timestamp,
    /// The object before the write; `None` for a create.
    pub(crate) old: Option<&'a Value>,
}

/// What of the server an object may depend on.
pub(crate) struct Surroundings<'a> {
    pub(crate) objects: Objects<'a>,
    pub(crate) allocator: &'a mut dyn Allocator,
    /// The other definitions.
    pub(crate) definitions: &'a dyn Fn() -> Vec<Value>,
}

/// Reads an object that a client sent: JSON, of the right kind, with the types of its schema, unknown
/// fields removed. Returns it with the warnings to send back.
pub(crate) fn read(
    resource: &Resource,
    body: &[u8],
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), ApiError> {
    // Go reads text that is none as replacement characters.
    let lossy = String::from_utf8_lossy(body);
    let body = lossy.as_bytes();
    let (object, complaints) = match (&resource.schema, &resource.custom) {
        (Some(schema), None) => {
            let expected =
                Expected { group: &resource.group, version: &resource.version, kind: &resource.kind };
            let (object, decoded) = schema::read_body(schema, expected, body)?;
            if validation == FieldValidation::Strict
                && let Some(error) = schema::strict_error(&decoded, expected)
            {
                return Err(error);
            }
            (object, decoded.strict)
        }
        _ => {
            let mut object = parse(&resource.kind, body)?;
            check_kind(resource, &object, body)?;
            let mut complaints = schema::duplicate_fields(body);
            complaints.extend(conform(resource, &mut object)?);
            (object, complaints)
        }
    };
    complain(resource, complaints, validation).map(|warnings| (object, warnings))
}

/// What `validation` makes of unknown and duplicate fields.
pub(crate) fn complain(
    resource: &Resource,
    complaints: Vec<String>,
    validation: FieldValidation,
) -> Result<Vec<String>, ApiError> {
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Strict if !complaints.is_empty() => {
            let why = format!("strict decoding error: {}", complaints.join(", "));
            Err(cannot_handle(resource, &resource.kind, &why))
        }
        FieldValidation::Warn | FieldValidation::Strict => Ok(complaints),
    }
}

fn cannot_handle(resource: &Resource, kind: &str, why: &str) -> ApiError {
    let (version, expected) = (&resource.version, &resource.kind);
    ApiError::bad_request(format!("{kind} in version {version:?} cannot be handled as a {expected}: {why}"))
}

/// Removes owners that are named twice; returns the warning about it.
pub(crate) fn deduplicate_owners(object: &mut Value) -> Option<String> {
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut)?;
    let (mut kept, mut twice): (Vec<Value>, Vec<String>) = (Vec::new(), Vec::new());
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            let uid = text(&owner, "/uid").to_owned();
            if !twice.contains(&uid) {
                twice.push(uid);
            }
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    twice.sort();
    (!twice.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        )
    })
}

/// A patched built-in object must still be what it was.
pub(crate) fn check_type(resource: &Resource, object: &Value) -> Result<(), ApiError> {
    let Some(schema) = resource.schema.as_ref().filter(|_| resource.custom.is_none()) else { return Ok(()) };
    let (kind, version) = (text(object, "/kind"), text(object, "/apiVersion"));
    if matches!(kind, "") || kind == resource.kind && version == resource.api_version() {
        return Ok(());
    }
    let expected = Expected { group: &resource.group, version: &resource.version, kind: &resource.kind };
    schema::read_body(schema, expected, object.to_string().as_bytes()).map(|_| ())
}

/// What is wrong, without the words that say with what.
pub(crate) fn why_not(message: &str) -> &str {
    message
        .split_once(" cannot be handled as a ")
        .and_then(|(_, rest)| rest.split_once(": "))
        .map_or(message, |(_, why)| why)
}

/// Reads an object of a kind that is only ever posted.
pub(crate) fn read_kind(group: &str, version: &str, kind: &str, body: &[u8]) -> Result<Value, ApiError> {
    match kinds::kind(group, version, kind) {
        Some(schema) => Ok(schema::read_body(&schema, Expected { group, version, kind }, body)?.0),
        None => parse(kind, body),
    }
}

/// Reads the options of a deletion, whichever version they say they are of.
pub(crate) fn read_delete_options(body: &[u8]) -> Result<Value, ApiError> {
    let meta = schema::type_meta(body).map_err(ApiError::bad_request)?;
    if !matches!(meta.kind.as_str(), "" | "DeleteOptions") {
        return Err(ApiError::bad_request(format!(
            "no kind {:?} is registered for version {:?} in scheme \"pkg/runtime/scheme.go:111\"",
            meta.kind, meta.api_version
        )));
    }
    match kinds::definition("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions") {
        Some(schema) => Ok(schema.decode_slice(body).map_err(ApiError::bad_request)?.0),
        None => parse("DeleteOptions", body),
    }
}

/// JSON that must be an object.
pub(crate) fn parse(kind: &str, body: &[u8]) -> Result<Value, ApiError> {
    let unrecognized = |why: &str| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; \
             json parse error: {why}"
        ))
    };
    let value: Value = serde_json::from_slice(body).map_err(|error| unrecognized(&error.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(unrecognized("the body is no JSON object")) }
}

/// Custom objects must say what they are.
fn check_kind(resource: &Resource, object: &Value, body: &[u8]) -> Result<(), ApiError> {
    let expected = resource.api_version();
    let (kind, version) = (text(object, "/kind"), text(object, "/apiVersion"));
    if kind.is_empty() {
        let (expected, summary) = (&resource.kind, schema::summary(body));
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {expected}): \
             Object 'Kind' is missing in '{object}' ({summary})"
        )));
    }
    if version != expected {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        )));
    }
    Ok(())
}

/// Makes an object fit its schema; returns what strict decoding says of it.
pub(crate) fn conform(resource: &Resource, object: &mut Value) -> Result<Vec<String>, ApiError> {
    if resource.custom.is_some() {
        let unknown = crd::decode(resource, object)?;
        return Ok(unknown.into_iter().map(|path| format!("unknown field {path:?}")).collect());
    }
    let Some(schema) = &resource.schema else { return Ok(Vec::new()) };
    let decoded = schema.decode(object).map_err(|why| cannot_handle(resource, &resource.kind, &why))?;
    if let Some(map) = object.as_object_mut() {
        map.insert("kind".into(), resource.kind.clone().into());
        map.insert("apiVersion".into(), resource.api_version().into());
    }
    Ok(decoded.strict)
}

/// The rest of the way, for an object that has been [`read`] or patched and [conformed](conform).
pub(crate) fn admit(
    resource: &Resource,
    object: &mut Value,
    writer: &Writer<'_>,
    around: &mut Surroundings<'_>,
) -> Result<(), ApiError> {
    default(resource, object);
    // Empty fields are absent ones, to the owners of fields too.
    let sent = object.clone();
    normalise(resource, object);
    keep_empty(&sent, object);
    // Ownership is about what the client sent and the defaults, not about what the server adds below.
    if writer.part != Part::Binding {
        own(resource, object, writer);
    }
    match writer.old {
        None => strategy::admission::create(resource, object, around.objects)?,
        Some(old) if writer.part == Part::Whole => strategy::admission::update(resource, old, object),
        Some(_) => {}
    }
    let is_service = resource.is("", "services") && writer.part != Part::Status;
    if is_service {
        let errors = service::normalise(writer.old, object);
        refuse(resource, object, &errors)?;
    }
    prepare(resource, object, writer);
    normalise(resource, object);
    let errors = validate(resource, object, writer);
    refuse(resource, object, &errors)?;
    if is_service {
        let errors = service::allocate(object, around.allocator);
        refuse(resource, object, &errors)?;
    }
    if resource.custom.is_some() {
        crd::normalize_numbers(object);
    }
    if is_definition(resource) && writer.part == Part::Whole {
        match writer.old {
            // Their names are accepted in a second write, as by the real server's controllers.
            None => {
                object["status"]["acceptedNames"] = serde_json::json!({ "plural": "", "kind": "" });
                object["status"]["conditions"] = Value::Null;
            }
            Some(_) => accept_names(object, &(around.definitions)(), writer.now),
        }
    }
    // With the record of who owns its fields, which is as deep as the object itself.
    if depth(object) > DEEPEST {
        return Err(ApiError::bad_request(format!("the object has more than {DEEPEST} levels")));
    }
    Ok(())
}

/// Settles the names of a definition; what that changes belongs to the server.
pub(crate) fn accept_names(definition: &mut Value, others: &[Value], now: Timestamp) {
    let now = crate::api::seconds(now);
    let before = definition.clone();
    definition["status"] = crd::status(definition, others, &now);
    if definition["status"] != before["status"] {
        let api_version = "apiextensions.k8s.io/v1";
        let write = Write { manager: "kube-apiserver", api_version, subresource: "status", now: &now };
        let schema = kinds::kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        managed_fields::update(Some(&before), definition, write, &[], schema.as_ref());
    }
}

/// Sets `managedFields`.
pub(crate) fn own(resource: &Resource, object: &mut Value, writer: &Writer<'_>) {
    let now = crate::api::seconds(writer.now);
    let api_version = resource.api_version();
    let subresource = writer.part.name();
    let write = Write { manager: writer.manager, api_version: &api_version, subresource, now: &now };
    let resets = managed_fields::reset_fields(resource, subresource);
    managed_fields::update(writer.old, object, write, resets, resource.schema.as_ref());
}

fn default(resource: &Resource, object: &mut Value) {
    match (&resource.custom, &resource.schema) {
        (Some(_), Some(schema)) => crd::apply_defaults(schema, object),
        (Some(_), None) => {}
        (None, _) => {
            if is_definition(resource) {
                crd::default_definition(object);
            }
            defaults::apply(resource, object);
        }
    }
}

fn prepare(resource: &Resource, object: &mut Value, writer: &Writer<'_>) {
    match (writer.old, writer.part) {
        (None, _) => strategy::prepare_create(resource, object, writer.now),
        (Some(old), Part::Whole | Part::Scale) => strategy::prepare_update(resource, old, object),
        (Some(old), Part::Status) => strategy::prepare_status_update(resource, old, object, writer.now),
        (Some(old), Part::Finalize) => strategy::prepare_finalize(old, object),
        // The server makes the change itself: there is nothing of the client's to put right.
        (Some(_), Part::Binding) => {}
    }
    if is_definition(resource) && writer.part == Part::Whole {
        crd::prepare_definition(object, writer.old);
    }
}

fn validate(resource: &Resource, object: &Value, writer: &Writer<'_>) -> Vec<FieldError> {
    let of_status = matches!(writer.part, Part::Status | Part::Binding);
    let mut errors = match writer.old {
        None => validation::create(resource, object),
        Some(old) if of_status => validation::update_status(resource, old, object),
        Some(old) => validation::update(resource, old, object),
    };
    if resource.custom.is_some() && text(object, "/kind") != resource.kind {
        let why = format!("must be {}", resource.kind);
        errors.push(FieldError::invalid("kind", text(object, "/kind"), why));
        return errors;
    }
    if resource.custom.is_some() {
        errors.extend(match writer.old {
            Some(old) if of_status => crd::validate_status(resource, object, old),
            old => crd::validate(resource, object, old),
        });
    } else if is_definition(resource) && !of_status {
        errors.extend(crd::validate_definition(object, writer.old));
    }
    errors
}

fn refuse(resource: &Resource, object: &Value, errors: &[FieldError]) -> Result<(), ApiError> {
    if errors.is_empty() {
        return Ok(());
    }
    // Events have one internal group.
    let group = crate::convert::storage_group(resource);
    let kind = if resource.custom.is_some() { text(object, "/kind") } else { &resource.kind };
    Err(ApiError::invalid(group, kind, text(object, "/metadata/name"), errors))
}

/// Puts back empty lists and maps where Go writes null for absent ones: whoever sends them owns them.
fn keep_empty(sent: &Value, object: &mut Value) {
    match (sent, object) {
        (Value::Object(sent), Value::Object(map)) => {
            for (key, value) in map.iter_mut() {
                if let Some(sent) = sent.get(key) {
                    keep_empty(sent, value);
                }
            }
        }
        (Value::Array(sent), null @ Value::Null) if sent.is_empty() => *null = Value::Array(Vec::new()),
        (Value::Object(sent), null @ Value::Null) if sent.is_empty() => {
            *null = Value::Object(Default::default());
        }
        _ => {}
    }
}

/// What Go leaves out when it writes.
fn normalise(resource: &Resource, object: &mut Value) {
    if resource.custom.is_none() {
        if let Some(schema) = &resource.schema {
            schema.normalise(object);
        }
        return;
    }
    let meta = crate::object::metadata_mut(object);
    for name in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let empty = match meta.get(name) {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        };
        if empty {
            meta.remove(name);
        }
    }
}

/// CustomResourceDefinitions.
pub(crate) fn is_definition(resource: &Resource) -> bool {
    resource.is("apiextensions.k8s.io", "customresourcedefinitions")
}
