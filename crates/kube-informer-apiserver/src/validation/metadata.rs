//! `metadata`, of any kind.

use serde_json::Value;

use super::at::{At, Errors};
use super::formats::{self, Complaints};
use crate::fields;
use crate::kinds::Resource;
use crate::status::FieldError;

/// What the names of a kind may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Subdomain,
    Label,
    PathSegment,
}

fn names(resource: &Resource) -> Names {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces" | "services") | ("apps", "statefulsets") => Names::Label,
        ("", "events")
        | ("policy", "poddisruptionbudgets")
        | ("networking.k8s.io", "ipaddresses")
        | ("rbac.authorization.k8s.io", _)
        | ("apiregistration.k8s.io", _) => Names::PathSegment,
        _ => Names::Subdomain,
    }
}

fn check_name(names: Names, name: &str, prefix: bool) -> Complaints {
    // The random end of a generated name follows the dash.
    let masked = |check: fn(&str) -> Complaints| match name.strip_suffix('-') {
        Some(start) if prefix && !start.is_empty() => check(&format!("{start}a")),
        _ => check(name),
    };
    match names {
        Names::Subdomain => masked(formats::dns_subdomain),
        Names::Label => masked(formats::dns_label),
        Names::PathSegment if prefix => formats::path_segment_prefix(name),
        Names::PathSegment => formats::path_segment(name),
    }
}

/// Everything that can be said about the metadata of one object.
pub(super) fn check(resource: &Resource, object: &Value, errors: &mut Errors) {
    let metadata = At::root(object).get("metadata");
    check_names(names(resource), &metadata, errors);
    check_namespace(resource, &metadata, errors);
    check_content(&metadata, errors);
    check_finalizers(&metadata.get("finalizers"), errors);
    if qualifies_finalizers(resource) {
        for finalizer in metadata.get("finalizers").items() {
            standard_finalizer(&finalizer, errors);
        }
    }
}

fn check_names(names: Names, metadata: &At<'_>, errors: &mut Errors) {
    let generate = metadata.get("generateName");
    if !generate.text().is_empty() {
        errors.invalid_each(&generate, check_name(names, generate.text(), true));
    }
    let name = metadata.get("name");
    if name.text().is_empty() {
        errors.required(&name, "name or generateName is required");
    } else {
        errors.invalid_each(&name, check_name(names, name.text(), false));
    }
}

fn check_namespace(resource: &Resource, metadata: &At<'_>, errors: &mut Errors) {
    let namespace = metadata.get("namespace");
    match (resource.namespaced, namespace.text()) {
        (true, "") => errors.required(&namespace, ""),
        (true, text) => errors.invalid_each(&namespace, formats::dns_label(text)),
        (false, "") => {}
        (false, _) => errors.forbidden(&namespace, "not allowed on this type"),
    }
}

fn check_content(metadata: &At<'_>, errors: &mut Errors) {
    labels(&metadata.get("labels"), errors);
    annotations(&metadata.get("annotations"), errors);
    owners(&metadata.get("ownerReferences"), errors);
}

/// Labels, and maps like them. Errors name the map, not the key.
pub(super) fn labels(labels: &At<'_>, errors: &mut Errors) {
    for (key, value) in labels.entries() {
        let shown = Value::from(key);
        let key_at = At { value: &shown, path: labels.path.clone() };
        errors.invalid_each(&key_at, formats::qualified_name(key));
        errors.invalid_each(&value.named(&labels.path), formats::label_value(value.text()));
    }
}

/// All annotations together, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

pub(super) fn annotations(annotations: &At<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in annotations.entries() {
        let shown = Value::from(key);
        let key_at = At { value: &shown, path: annotations.path.clone() };
        // Keys may have capitals in their prefix.
        errors.invalid_each(&key_at, formats::qualified_name(&key.to_lowercase()));
        size += key.len() + value.text().len();
    }
    if size > ANNOTATIONS_LIMIT {
        let why = format!("may not be more than {ANNOTATIONS_LIMIT} bytes");
        errors.push(FieldError::too_long(&annotations.path, why));
    }
}

fn owners(owners: &At<'_>, errors: &mut Errors) {
    let mut controller: Option<String> = None;
    for owner in owners.items() {
        let version = owner.get("apiVersion");
        let parts = version.text().split('/').count();
        if !version.text().is_empty() && (parts > 2 || version.text().ends_with('/')) {
            errors.invalid(&version, "must be <group>/<version> or <version>");
        }
        for field in ["apiVersion", "kind", "name", "uid"] {
            let field = owner.get(field);
            if field.text().is_empty() {
                errors.declare(FieldError::required(&field.path, "must not be empty"));
            }
        }
        if version.text() == "v1" && owner.get("kind").text() == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.invalid_shown(&owner.path, &show_owner(owner.value), why);
        }
        if fields::is_true(owner.value, &["controller"]) {
            let this = format!("{}/{}", owner.get("kind").text(), owner.get("name").text());
            if let Some(first) = &controller {
                let all: Vec<String> = fields::list(owners.value, &[]).iter().map(show_owner).collect();
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} \
                     and {this}"
                );
                errors.invalid_shown(&owners.path, &format!("[{}]", all.join(",")), &why);
            } else {
                controller = Some(this);
            }
        }
    }
}

/// An owner reference with its fields in the order of the Go type.
fn show_owner(owner: &Value) -> String {
    let mut shown = Vec::new();
    for field in ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"] {
        match owner.get(field) {
            Some(value) if !value.is_null() => shown.push(format!("{field:?}:{value}")),
            None if shown.len() < 4 => shown.push(format!("{field:?}:\"\"")),
            _ => {}
        }
    }
    format!("{{{}}}", shown.join(","))
}

fn check_finalizers(finalizers: &At<'_>, errors: &mut Errors) {
    for finalizer in finalizers.items() {
        let at = finalizer.named(&finalizers.path);
        errors.invalid_each(&at, formats::qualified_name(finalizer.text()));
    }
    let has = |name: &str| finalizers.items().any(|finalizer| finalizer.text() == name);
    if has("orphan") && has("foregroundDeletion") {
        errors.invalid(finalizers, "finalizer orphan and foregroundDeletion cannot be both set");
    }
}

/// Kinds for which a finalizer must say whose it is.
fn qualifies_finalizers(resource: &Resource) -> bool {
    resource.custom.is_none()
        && !matches!(
            (resource.group.as_str(), resource.plural.as_str()),
            ("coordination.k8s.io", _)
                | ("policy", "poddisruptionbudgets")
                | ("", "events")
                | ("apiextensions.k8s.io" | "apiregistration.k8s.io", _)
        )
}

/// `example.com/name`, or one of those that Kubernetes itself uses.
pub(super) fn standard_finalizer(finalizer: &At<'_>, errors: &mut Errors) {
    let name = finalizer.text();
    if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
        errors.invalid(finalizer, "name is neither a standard finalizer name nor is it fully qualified");
    }
}

/// What an update must not change.
pub(super) fn check_update(resource: &Resource, old: &Value, new: &Value, errors: &mut Errors) {
    let (old, metadata) = (At::root(old).get("metadata"), At::root(new).get("metadata"));
    check_names(Names::PathSegment, &metadata, errors);
    check_namespace(resource, &metadata, errors);
    check_content(&metadata, errors);
    check_finalizers(&metadata.get("finalizers"), errors);
    if old.get("deletionTimestamp").is_set() {
        new_finalizers(&old.get("finalizers"), &metadata.get("finalizers"), errors);
    }
    for field in ["name", "namespace"] {
        errors.immutable(&metadata.get(field), &old.get(field));
    }
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        errors.declared_immutable(&metadata.get(field), &old.get(field));
    }
    if qualifies_finalizers(resource) {
        for finalizer in metadata.get("finalizers").items() {
            standard_finalizer(&finalizer, errors);
        }
    }
}

fn new_finalizers(old: &At<'_>, new: &At<'_>, errors: &mut Errors) {
    let known = fields::list(old.value, &[]);
    let mut added: Vec<&str> = fields::list(new.value, &[])
        .iter()
        .filter(|f| !known.contains(f))
        .filter_map(Value::as_str)
        .collect();
    added.sort_unstable();
    added.dedup();
    if !added.is_empty() {
        let added: Vec<String> = added.iter().map(|name| format!("{name:?}")).collect();
        let why = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        errors.forbidden(new, why);
    }
}
