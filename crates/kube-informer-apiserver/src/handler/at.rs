//! A request as the verbs see it: what it is about, who asks, in which form, and with which options.

use std::sync::Arc;

use http::header::USER_AGENT;
use serde_json::{Value, json};

use super::{Asked, Reply, content_type};
use crate::admission::{self, FieldValidation};
use crate::api::{DeleteOptions, WriteOptions};
use crate::kinds::Resource;
use crate::negotiate::{self, Answer, MetaVersion, Offers};
use crate::object::{Stored, partial_metadata};
use crate::patch;
use crate::protobuf;
use crate::render::{self, TableForm};
use crate::request::Target;
use crate::schema::{self, Schema};
use crate::status::{ApiError, FieldError};
use crate::table::IncludeObject;

/// What an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Object,
    List,
    /// A watch.
    Events,
    /// What is posted and not stored.
    Posted,
}

/// A request and the resource that it is about.
pub(super) struct At<'a> {
    pub(super) asked: &'a Asked<'a>,
    pub(super) target: &'a Target,
    pub(super) resource: Arc<Resource>,
}

/// A patch in one of its formats.
pub(super) enum Patch {
    Json(Value),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    /// What strict validation has to say of the patch itself.
    pub(super) fn unknown_fields(&self) -> Vec<String> {
        match self {
            Self::Json(operations) => patch::unknown_op_fields(operations),
            Self::Merge(_) | Self::Strategic(_) => Vec::new(),
        }
    }

    pub(super) fn apply(&self, object: &Value, schema: Option<&Schema>) -> Result<Value, ApiError> {
        let mut new = object.clone();
        let result = match self {
            Self::Json(operations) => patch::json_patch(&mut new, operations),
            Self::Merge(patch) => patch::merge_patch(&mut new, patch),
            Self::Strategic(patch) => patch::strategic_merge(&mut new, patch, schema),
        };
        result?;
        if !new.is_object() {
            return Err(ApiError::bad_request("the patched object is no JSON object"));
        }
        Ok(new)
    }
}

impl At<'_> {
    pub(super) fn answer(&self) -> Result<Answer, ApiError> {
        negotiate::answer(self.asked.headers, Offers::Objects)
    }

    /// Whether the answer can have the form that was asked for. Looked at before anything is done: what is
    /// refused changes nothing.
    pub(super) fn check_form(&self, shape: Shape) -> Result<(), ApiError> {
        negotiate::takes_json(self.asked.headers)?;
        let offers = if shape == Shape::Posted { Offers::Metadata } else { Offers::Objects };
        let not_so = |asked: &str, what: &str, kind: &str| {
            let kind = self.go_type(kind);
            let message = format!("you requested {asked}, but the requested object is {what} (*{kind})");
            Err(ApiError::not_acceptable(message))
        };
        let (kind, list_kind) = (&self.resource.kind, &self.resource.list_kind);
        match (negotiate::answer(self.asked.headers, offers)?, shape) {
            (Answer::Table(_), _) => self.table_form().map(drop),
            (Answer::Metadata { list: false, .. }, Shape::List) => {
                not_so("PartialObjectMetadata", "a list", list_kind)
            }
            (Answer::Metadata { list: true, .. }, Shape::Object | Shape::Posted) => {
                not_so("PartialObjectMetadataList", "not a list", kind)
            }
            _ => Ok(()),
        }
    }

    /// How Go calls the type of this resource's objects or lists: messages of the real server say it.
    fn go_type(&self, kind: &str) -> String {
        let package = match (&self.resource.custom, self.resource.group.as_str()) {
            (Some(_), _) if kind == self.resource.list_kind => {
                return "unstructured.UnstructuredList".to_owned();
            }
            (Some(_), _) => return "unstructured.Unstructured".to_owned(),
            _ if self.target.subresource == "scale" => return "autoscaling.Scale".to_owned(),
            (None, group) => schema::package(group),
        };
        format!("{package}.{kind}")
    }

    /// A path may leave its namespace without a name. All namespaces can be listed so, but an object is in one.
    pub(super) fn check_namespace(&self) -> Result<(), ApiError> {
        match self.target.nameless_namespace {
            true => Err(ApiError::bad_request("Namespace parameter required.")),
            false => Ok(()),
        }
    }

    pub(super) fn table_form(&self) -> Result<TableForm, ApiError> {
        let (include, version) = match self.answer()? {
            Answer::Table(version) => (IncludeObject::parse(self.asked.query.get("includeObject")), version),
            // Nobody looks at the parameter then.
            _ => (Ok(IncludeObject::default()), MetaVersion::V1),
        };
        Ok(TableForm { include: include.map_err(ApiError::bad_request)?, headers: true, version })
    }

    /// Something that is not stored in this form.
    pub(super) fn reply_value(&self, status: u16, value: Value) -> Result<Reply, ApiError> {
        Ok(Reply::value(
            status,
            &match self.answer()? {
                Answer::Metadata { version, .. } => partial_metadata(&value, version),
                _ => value,
            },
        ))
    }

    pub(super) fn reply(&self, status: u16, stored: &Stored) -> Result<Reply, ApiError> {
        let bytes = render::object(&self.resource, stored, self.answer()?, self.table_form()?);
        Ok(Reply::json(status, bytes))
    }

    /// Bodies are JSON.
    pub(super) fn check_media(&self) -> Result<(), ApiError> {
        match content_type(self.asked.headers).as_str() {
            "" | "application/json" | protobuf::MEDIA_TYPE => Ok(()),
            _ => Err(unknown_format(&["application/json", protobuf::MEDIA_TYPE])),
        }
    }

    pub(super) fn read_patch(&self) -> Result<Patch, ApiError> {
        let json = || Ok::<_, ApiError>(patch::parse(self.asked.body)?);
        let custom = self.resource.custom.is_some();
        match content_type(self.asked.headers).as_str() {
            "application/json-patch+json" => Ok(Patch::Json(json()?)),
            "application/merge-patch+json" => Ok(Patch::Merge(json()?)),
            "application/strategic-merge-patch+json" if !custom => {
                let mut patch: Value = json()?;
                // Which type it is, the path says: nobody looks at what the patch says.
                if let Some(fields) = patch.as_object_mut() {
                    fields.retain(|key, _| key != "kind" && key != "apiVersion");
                }
                Ok(Patch::Strategic(patch))
            }
            "application/apply-patch+yaml" => Err(ApiError::unsupported_media_type(
                "server-side apply is not supported by this embedded server: use a merge, strategic merge or JSON patch",
            )),
            _ if custom => {
                Err(unknown_format(&["application/json-patch+json", "application/merge-patch+json"]))
            }
            _ => Err(ApiError::unroutable_media_type()),
        }
    }

    /// Who writes, and whether for real.
    pub(super) fn write_options(&self, kind: &str) -> Result<WriteOptions, ApiError> {
        let query = &self.asked.query;
        let dry_run = query.all("dryRun");
        if dry_run.iter().any(|value| value != "All") {
            let error = FieldError::not_supported("dryRun", json!(dry_run), &["All"]);
            return Err(ApiError::invalid("meta.k8s.io", kind, "", &[error]));
        }
        let manager = match query.get("fieldManager") {
            "" => {
                let agent =
                    self.asked.headers.get(USER_AGENT).and_then(|h| h.to_str().ok()).unwrap_or_default();
                let first = agent.split('/').next().unwrap_or_default();
                if first.is_empty() { "unknown".to_owned() } else { first.chars().take(128).collect() }
            }
            given if given.chars().count() > 128 => {
                let error = FieldError::too_long("fieldManager", "may not be more than 128 bytes");
                return Err(ApiError::invalid("meta.k8s.io", kind, "", &[error]));
            }
            given => {
                if let Some((at, c)) = given.chars().enumerate().find(|(_, c)| c.is_control()) {
                    let why = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
                    let error = FieldError::invalid("fieldManager", given, why);
                    return Err(ApiError::invalid("meta.k8s.io", kind, "", &[error]));
                }
                given.to_owned()
            }
        };
        Ok(WriteOptions { dry_run: !dry_run.is_empty(), manager, patch: false })
    }

    pub(super) fn field_validation(&self, kind: &str) -> Result<FieldValidation, ApiError> {
        match self.asked.query.get("fieldValidation") {
            "" | "Warn" => Ok(FieldValidation::Warn),
            "Ignore" => Ok(FieldValidation::Ignore),
            "Strict" => Ok(FieldValidation::Strict),
            other => {
                let valid = ["", "Ignore", "Strict", "Warn"];
                let error = FieldError::not_supported("fieldValidation", other, &valid);
                Err(ApiError::invalid("meta.k8s.io", kind, "", &[error]))
            }
        }
    }

    /// From the body, or from the query where there is none.
    pub(super) fn delete_options(&self) -> Result<DeleteOptions, ApiError> {
        let query = &self.asked.query;
        if self.asked.body.is_empty() {
            let mut body = json!({ "dryRun": query.all("dryRun") });
            if let Some(grace) = query.number("gracePeriodSeconds")? {
                body["gracePeriodSeconds"] = grace.into();
            }
            if query.has("propagationPolicy") {
                body["propagationPolicy"] = query.get("propagationPolicy").into();
            }
            if query.has("orphanDependents") {
                body["orphanDependents"] = query.flag("orphanDependents").into();
            }
            // A condition, though elsewhere it is the version that a read is to have.
            for condition in ["uid", "resourceVersion"] {
                if query.has(condition) {
                    body["preconditions"][condition] = query.get(condition).into();
                }
            }
            DeleteOptions::read(Some(&body))
        } else {
            self.check_media()?;
            DeleteOptions::read(Some(&admission::read_delete_options(self.asked.body)?))
        }
    }
}

fn unknown_format(accepted: &[&str]) -> ApiError {
    ApiError::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        accepted.join(", ")
    ))
}
