//! Errors as the real server words them.
//!
//! An [`ApiError`] is a Kubernetes `Status` in the making: code, reason, message, details and causes.
//! Every refusal in this crate is one, so a client meets the same codes, reasons and messages as on
//! kube-apiserver.

use crate::kinds::Resource;
use crate::schema::quote;
use serde_json::{Map, Value, json};

/// A refused request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    /// `NotFound`, `Conflict`, …; empty where the real server leaves it out.
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Box<Details>>,
    /// Sent as a `Retry-After` header as well.
    pub(crate) retry_after: Option<u32>,
    /// A `continue` token that goes on without consistency.
    pub(crate) next_page: Option<String>,
    /// Sent as text, not as a `Status`.
    pub(crate) plain: bool,
}

/// What the error is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Details {
    pub(crate) name: String,
    pub(crate) group: String,
    /// The plural resource name, or the kind for `Invalid`.
    pub(crate) kind: String,
    pub(crate) uid: String,
    pub(crate) causes: Vec<Cause>,
}

/// One field that is wrong.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cause {
    /// `FieldValueRequired`, `FieldValueInvalid`, …
    pub(crate) reason: &'static str,
    pub(crate) field: String,
    pub(crate) message: String,
}

/// A wrong field, in the vocabulary of apimachinery's `field.Error`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldError {
    pub(crate) kind: FieldErrorKind,
    /// `spec.containers[0].name`
    pub(crate) field: String,
    /// Shown for `Invalid`, `NotSupported`, `Duplicate`, `NotFound`.
    pub(crate) value: Option<Value>,
    pub(crate) detail: String,
}

/// What is wrong with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldErrorKind {
    Required,
    Invalid,
    NotSupported,
    Duplicate,
    Forbidden,
    TooLong,
    TooMany,
    TypeInvalid,
    NotFound,
    Internal,
}

impl FieldError {
    pub(crate) fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: FieldErrorKind::Required, field: field.into(), value: None, detail: detail.into() }
    }

    pub(crate) fn invalid(
        field: impl Into<String>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        let (field, detail) = (field.into(), detail.into());
        Self { kind: FieldErrorKind::Invalid, field, value: Some(value.into()), detail }
    }

    pub(crate) fn not_supported(field: impl Into<String>, value: impl Into<Value>, valid: &[&str]) -> Self {
        let quoted: Vec<String> = valid.iter().map(|v| format!("{v:?}")).collect();
        Self {
            kind: FieldErrorKind::NotSupported,
            field: field.into(),
            value: Some(value.into()),
            detail: format!("supported values: {}", quoted.join(", ")),
        }
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            kind: FieldErrorKind::Duplicate,
            field: field.into(),
            value: Some(value.into()),
            detail: String::new(),
        }
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: FieldErrorKind::Forbidden, field: field.into(), value: None, detail: detail.into() }
    }

    pub(crate) fn too_long(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind: FieldErrorKind::TooLong, field: field.into(), value: None, detail: detail.into() }
    }

    fn cause_reason(&self) -> &'static str {
        match self.kind {
            FieldErrorKind::Required => "FieldValueRequired",
            FieldErrorKind::Invalid => "FieldValueInvalid",
            FieldErrorKind::NotSupported => "FieldValueNotSupported",
            FieldErrorKind::Duplicate => "FieldValueDuplicate",
            FieldErrorKind::Forbidden => "FieldValueForbidden",
            FieldErrorKind::TooLong => "FieldValueTooLong",
            FieldErrorKind::TooMany => "FieldValueTooMany",
            FieldErrorKind::TypeInvalid => "FieldValueTypeInvalid",
            FieldErrorKind::NotFound => "FieldValueNotFound",
            FieldErrorKind::Internal => "InternalError",
        }
    }

    /// The error without its field, as in a `Cause`.
    pub(crate) fn body(&self) -> String {
        let title = match self.kind {
            FieldErrorKind::Required => "Required value",
            FieldErrorKind::Invalid | FieldErrorKind::TypeInvalid => "Invalid value",
            FieldErrorKind::NotSupported => "Unsupported value",
            FieldErrorKind::Duplicate => "Duplicate value",
            FieldErrorKind::Forbidden => "Forbidden",
            FieldErrorKind::TooLong => "Too long",
            FieldErrorKind::TooMany => "Too many",
            FieldErrorKind::NotFound => "Not found",
            FieldErrorKind::Internal => "Internal error",
        };
        let mut text = title.to_owned();
        if let Some(value) = &self.value {
            text.push_str(": ");
            match value {
                Value::String(text_value) => text.push_str(&quote(text_value)),
                value => text.push_str(&value.to_string()),
            }
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// `deployments.apps`, or `pods` in the core group: how messages name a resource.
pub(crate) fn qualified(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

impl ApiError {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            retry_after: None,
            next_page: None,
            plain: false,
        }
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        self.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..Details::default()
        }));
        self
    }

    pub(crate) fn not_found(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} {} not found", qualified(group, plural), quote(name));
        Self::new(404, "NotFound", message).about(group, plural, name)
    }

    pub(crate) fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} {} already exists", qualified(group, plural), quote(name));
        Self::new(409, "AlreadyExists", message).about(group, plural, name)
    }

    /// The same, of an object that asked for a generated name.
    pub(crate) fn generated_name_exists(group: &str, plural: &str, name: &str) -> Self {
        let mut error = Self::already_exists(group, plural, name);
        error.message.push_str(", the server was not able to generate a unique name for the object");
        error.retry_after = Some(1);
        error
    }

    pub(crate) fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {}: {why}", qualified(group, plural), quote(name));
        Self::new(409, "Conflict", message).about(group, plural, name)
    }

    /// A deletion that asked for another object.
    pub(crate) fn precondition(
        resource: &Resource,
        name: &str,
        what: &str,
        wanted: &str,
        found: &str,
    ) -> Self {
        let hint = if what == "UID" { "deleted and then recreated" } else { "modified" };
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). \
             The object might have been {hint}"
        );
        Self::conflict(&resource.group, &resource.kind, name, &why)
    }

    /// A conflict that the storage found, which names where it keeps the object.
    pub(crate) fn storage_conflict(resource: &Resource, namespace: &str, name: &str, why: &str) -> Self {
        let key = storage_key(resource, namespace, name);
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
        );
        Self::conflict(&resource.group, &resource.plural, name, &why)
    }

    /// 422: what a patch made of an object cannot be read as one.
    pub(crate) fn unreadable_patch(patched: &Value, why: &str) -> Self {
        let error = FieldError::invalid("patch", patched.to_string(), why);
        Self::invalid("", "", "", &[error])
    }

    /// 415 as the router says it, before anybody has looked at the resource.
    pub(crate) fn unroutable_media_type() -> Self {
        let mut error = Self::unsupported_media_type("415: Unsupported Media Type");
        error.details = Some(Box::default());
        error
    }

    /// 500 without a reason: what an error becomes that nobody made for clients.
    pub(crate) fn unforeseen(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub(crate) fn forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = match (plural, name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{} is forbidden: {why}", qualified(group, plural)),
            _ => format!("{} {} is forbidden: {why}", qualified(group, plural), quote(name)),
        };
        Self::new(403, "Forbidden", message).about(group, plural, name)
    }

    /// 422: the object is well formed but wrong.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        // The message names each error once; the causes name all of them.
        let mut all: Vec<String> = Vec::new();
        for error in errors.iter().map(ToString::to_string) {
            if !all.contains(&error) {
                all.push(error);
            }
        }
        let what = match all.as_slice() {
            [] => "[]".to_owned(),
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {} is invalid: {what}", qualified(group, kind), quote(name));
        let mut error = Self::new(422, "Invalid", message).about(group, kind, name);
        if let Some(details) = &mut error.details {
            details.causes = errors
                .iter()
                .map(|e| Cause { reason: e.cause_reason(), field: e.field.clone(), message: e.body() })
                .collect();
        }
        error
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// The path leads nowhere.
    pub(crate) fn unknown_path() -> Self {
        let mut error = Self::new(404, "NotFound", "the server could not find the requested resource");
        error.details = Some(Box::default());
        error
    }

    /// The path belongs to no group of this server: what Go's router says.
    pub(crate) fn page_not_found() -> Self {
        Self::plain(404, "404 page not found\n")
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut error = Self::new(405, "MethodNotAllowed", message);
        error.details = Some(Box::default());
        error
    }

    /// A part of no object, which the real server takes for a list of parts.
    pub(crate) fn not_listed(resource: &Resource) -> Self {
        let (group, plural) = (&resource.group, &resource.plural);
        let message =
            format!("list is not supported on resources of kind {}", quote(&qualified(group, plural)));
        Self::new(405, "MethodNotAllowed", message).about(group, plural, "")
    }

    pub(crate) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// The same as the router says it, before anybody has looked at the resource.
    pub(crate) fn not_routable(message: impl Into<String>) -> Self {
        let mut error = Self::not_acceptable(message);
        error.details = Some(Box::default());
        error
    }

    /// A text that no API made, but what is in front of it.
    pub(crate) fn plain(code: u16, message: impl Into<String>) -> Self {
        Self { plain: true, ..Self::new(code, "", message) }
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// The asked-for version has left the window (410).
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        let mut error = Self::new(500, "InternalError", format!("Internal error occurred: {message}"));
        error.details = Some(Box::new(Details {
            causes: vec![Cause { reason: "", field: String::new(), message: message.to_string() }],
            ..Details::default()
        }));
        error
    }

    /// The `Status` object that goes on the wire.
    pub(crate) fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(next) = &self.next_page {
            status["metadata"]["continue"] = next.clone().into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_json(self.retry_after);
        } else if let Some(seconds) = self.retry_after {
            status["details"] = json!({ "retryAfterSeconds": seconds });
        }
        status
    }
}

/// Where etcd has an object.
fn storage_key(resource: &Resource, namespace: &str, name: &str) -> String {
    let folder = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "nodes") => "minions".to_owned(),
        ("", "services") => "services/specs".to_owned(),
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("", "replicationcontrollers") => "controllers".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        (group, plural) if resource.custom.is_some() || group == "apiextensions.k8s.io" => {
            format!("{group}/{plural}")
        }
        (_, plural) => plural.to_owned(),
    };
    match namespace {
        "" => format!("/registry/{folder}/{name}"),
        namespace => format!("/registry/{folder}/{namespace}/{name}"),
    }
}

impl Details {
    fn to_json(&self, retry_after: Option<u32>) -> Value {
        let mut out = Map::new();
        for (key, value) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !value.is_empty() {
                out.insert(key.to_owned(), value.clone().into());
            }
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::to_json).collect();
            out.insert("causes".to_owned(), Value::Array(causes));
        }
        if let Some(seconds) = retry_after {
            out.insert("retryAfterSeconds".to_owned(), seconds.into());
        }
        Value::Object(out)
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let mut out = Map::new();
        for (key, value) in [("reason", self.reason), ("message", &self.message), ("field", &self.field)] {
            if !value.is_empty() {
                out.insert(key.to_owned(), value.into());
            }
        }
        Value::Object(out)
    }
}
