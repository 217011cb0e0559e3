//! Whether a definition is one.
//!
//! Errors are placed as the real server places them, which reads definitions into an older shape
//! first: schemas, subresources, columns and selectable fields that all versions share stand at
//! `spec.validation`, `spec.subresources`, `spec.additionalPrinterColumns` and `spec.selectableFields`.

mod defaults;
mod field_path;
mod internal;
mod schema;
mod version;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{flag, items, names, present, text};
use crate::status::{FieldError, FieldErrorKind};
use version::{check_columns, check_deprecation, check_scale, check_selectable};

const APPROVAL: &str = "api-approved.kubernetes.io";

/// Whether a schema of these versions has a default anywhere.
fn has_default(versions: &Value) -> bool {
    match versions {
        Value::Object(map) => {
            map.get("default").is_some_and(|default| !default.is_null()) || map.values().any(has_default)
        }
        Value::Array(all) => all.iter().any(has_default),
        _ => false,
    }
}

/// Errors of a definition that was defaulted and prepared; with `old`, of a change to it.
///
/// Covers the rule for the definition's name; the rest of its metadata is checked elsewhere, as for
/// every kind.
pub(crate) fn validate_definition(crd: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &crd["spec"];
    if old.is_none() {
        check_name(crd, &mut errors);
    }
    check_spec(spec, &mut errors);
    if let Some(old) = old {
        let established = super::is_established(old);
        for (field, fixed) in
            [("scope", established), ("names.kind", established), ("group", true), ("names.plural", true)]
        {
            let at = |crd: &Value| {
                let value = field.split('.').fold(&crd["spec"], |value, step| &value[step]);
                value.as_str().unwrap_or_default().to_owned()
            };
            let value = at(crd);
            if fixed && value != at(old) {
                errors.push(FieldError::invalid(format!("spec.{field}"), value, "field is immutable"));
            }
        }
    }
    let accepted = &crd["status"]["acceptedNames"];
    check_names(accepted, "status.acceptedNames", &mut errors);
    check_stored_versions(crd, &mut errors);
    check_approval(crd, old, &mut errors);
    let preserved_before = old.is_some_and(|old| flag(&old["spec"], "preserveUnknownFields"));
    if flag(spec, "preserveUnknownFields") && !preserved_before {
        if has_default(&spec["versions"]) {
            let why = "must be false in order to use defaults in the schema";
            errors.push(FieldError::invalid("spec.preserveUnknownFields", true, why));
        }
        let why = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, why));
    }
    errors
}

/// Warnings for what is allowed and probably not meant; those that `old` had are not repeated.
pub(crate) fn warnings_of_definition(crd: &Value, old: Option<&Value>) -> Vec<String> {
    let before = old.map(schema::warnings).unwrap_or_default();
    schema::warnings(crd).into_iter().filter(|warning| !before.contains(warning)).collect()
}

fn check_name(crd: &Value, errors: &mut Vec<FieldError>) {
    let name = text(&crd["metadata"], "name");
    if name.is_empty() {
        return;
    }
    let spec = &crd["spec"];
    let mut complaints = names::dns_subdomain(name);
    if name != format!("{}.{}", text(&spec["names"], "plural"), text(spec, "group")) {
        complaints.push(r#"must be spec.names.plural+"."+spec.group"#.to_owned());
    }
    errors.extend(complaints.into_iter().map(|why| FieldError::invalid("metadata.name", name, why)));
}

/// One part of the versions, moved to the top where all versions have the same.
struct Shared<'v> {
    top: Option<&'v Value>,
    own: Vec<Option<&'v Value>>,
}

impl<'v> Shared<'v> {
    fn of(versions: &'v [Value], key: &str) -> Self {
        let own: Vec<Option<&Value>> = versions.iter().map(|version| present(version, key)).collect();
        match own.first() {
            Some(first) if own.iter().all(|other| other == first) => {
                Self { top: *first, own: vec![None; versions.len()] }
            }
            _ => Self { top: None, own },
        }
    }

    fn at(&self, index: usize) -> Option<&'v Value> {
        self.own.get(index).copied().flatten()
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn has_status(subresources: Option<&Value>) -> bool {
    subresources.is_some_and(|subresources| present(subresources, "status").is_some())
}

fn open_api(schema: Option<&Value>) -> Option<&Value> {
    schema.and_then(|schema| present(schema, "openAPIV3Schema"))
}

fn check_spec(spec: &Value, errors: &mut Vec<FieldError>) {
    let group = text(spec, "group");
    let complaints = names::dns_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !complaints.is_empty() {
        errors.push(FieldError::invalid("spec.group", group, complaints.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid("spec.group", group, "should be a domain with at least one dot"));
    }
    one_of("spec.scope", text(spec, "scope"), &["Cluster", "Namespaced"], errors);

    let versions = items(spec, "versions");
    let schemas = Shared::of(versions, "schema");
    let subresources = Shared::of(versions, "subresources");
    let columns = Shared::of(versions, "additionalPrinterColumns");
    let selectable = Shared::of(versions, "selectableFields");
    if open_api(schemas.top).is_none() {
        for index in 0..versions.len() {
            if open_api(schemas.at(index)).is_none() {
                let at = format!("spec.versions[{index}].schema.openAPIV3Schema");
                errors.push(FieldError::required(at, ""));
            }
        }
    }
    let mut seen = BTreeSet::new();
    let mut unique = true;
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let name = text(version, "name");
        unique &= seen.insert(name);
        let complaints = names::dns_label(name);
        if !complaints.is_empty() {
            errors.push(FieldError::invalid(format!("{path}.name"), name, complaints.join(",")));
        }
        check_deprecation(version, &path, errors);
        let status = has_status(subresources.at(index).or(subresources.top));
        schema::check(schemas.at(index), status, &format!("{path}.schema"), errors);
        check_scale(subresources.at(index), &format!("{path}.subresources"), errors);
        check_columns(list(columns.at(index)), &format!("{path}.additionalPrinterColumns"), errors);
        let fields = list(selectable.at(index));
        let schema = open_api(schemas.at(index).or(schemas.top));
        check_selectable(fields, schema, &format!("{path}.selectableFields"), errors);
    }
    let invalid_versions = |why: &str| FieldError {
        kind: FieldErrorKind::Invalid,
        field: "spec.versions".to_owned(),
        value: None,
        detail: format!(
            "{}: {why}",
            internal::versions(versions, &schemas, &subresources, &columns, &selectable)
        ),
    };
    if !unique {
        errors.push(invalid_versions("must contain unique version names"));
    }
    if versions.iter().filter(|version| flag(version, "storage")).count() != 1 {
        errors.push(invalid_versions("must have exactly one version marked as storage version"));
    }
    if let Some(first) = versions.first().map(|version| text(version, "name")).filter(|name| !name.is_empty())
    {
        let complaints = names::dns_label(first);
        if !complaints.is_empty() {
            errors.push(FieldError::invalid("spec.version", first, complaints.join(",")));
        }
    }
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(&spec["names"], field).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{field}"), ""));
        }
    }
    check_names(&spec["names"], "spec.names", errors);
    let any_status = has_status(subresources.top) || subresources.own.iter().any(|s| has_status(*s));
    schema::check(schemas.top, any_status, "spec.validation", errors);
    check_scale(subresources.top, "spec.subresources", errors);
    check_columns(list(columns.top), "spec.additionalPrinterColumns", errors);
    let fields = list(selectable.top);
    if !fields.is_empty() && schemas.top.is_none() {
        let why = "may only be set when validations.schema is included";
        errors.push(FieldError::invalid("spec.selectableFields", "", why));
    } else {
        check_selectable(fields, open_api(schemas.top), "spec.selectableFields", errors);
    }
    check_conversion(&spec["conversion"], errors);
}

fn one_of(field: &str, value: &str, allowed: &[&str], errors: &mut Vec<FieldError>) {
    if value.is_empty() {
        errors.push(FieldError::required(field, ""));
    } else if !allowed.contains(&value) {
        errors.push(FieldError::not_supported(field, value, allowed));
    }
}

fn check_names(names: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut label = |field: String, value: &str, shown: &str, prefix: &str| {
        let complaints = names::dns_label(value);
        if !complaints.is_empty() {
            errors.push(FieldError::invalid(field, shown, format!("{prefix}{}", complaints.join(","))));
        }
    };
    for field in ["plural", "singular"] {
        let name = text(names, field);
        if !name.is_empty() {
            label(format!("{path}.{field}"), name, name, "");
        }
    }
    for field in ["kind", "listKind"] {
        let name = text(names, field);
        if !name.is_empty() {
            let prefix = "may have mixed case, but should otherwise match: ";
            label(format!("{path}.{field}"), &name.to_lowercase(), name, prefix);
        }
    }
    let each = |field: &str, errors: &mut Vec<FieldError>| {
        for (index, name) in items(names, field).iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            let complaints = names::dns_label(name);
            if !complaints.is_empty() {
                let at = format!("{path}.{field}[{index}]");
                errors.push(FieldError::invalid(at, name, complaints.join(",")));
            }
        }
    };
    each("shortNames", errors);
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(format!("{path}.listKind"), list_kind, why));
    }
    each("categories", errors);
}

fn check_conversion(conversion: &Value, errors: &mut Vec<FieldError>) {
    if conversion.is_null() {
        return;
    }
    let strategy = text(conversion, "strategy");
    one_of("spec.conversion.strategy", strategy, &["None", "Webhook"], errors);
    let webhook = &conversion["webhook"];
    let config = present(webhook, "clientConfig");
    let reviews = items(webhook, "conversionReviewVersions");
    let (config_at, reviews_at) =
        ("spec.conversion.webhookClientConfig", "spec.conversion.conversionReviewVersions");
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            errors.push(FieldError::forbidden(config_at, why));
        }
        if !reviews.is_empty() {
            errors.push(FieldError::forbidden(reviews_at, why));
        }
        return;
    }
    let before = errors.len();
    match config {
        None => errors.push(FieldError::required(config_at, "required when strategy is set to Webhook")),
        Some(config) if present(config, "url").is_some() == present(config, "service").is_some() => {
            errors.push(FieldError::required(config_at, "exactly one of url or service is required"));
        }
        Some(_) => {}
    }
    if reviews.is_empty() {
        errors.push(FieldError::required(reviews_at, ""));
    }
    if errors.len() == before {
        let why = "this server calls no conversion webhooks; use None";
        errors.push(FieldError::forbidden("spec.conversion.strategy", why));
    }
}

fn check_stored_versions(crd: &Value, errors: &mut Vec<FieldError>) {
    let path = "status.storedVersions";
    let stored = super::strings(&crd["status"], "storedVersions");
    if stored.is_empty() {
        errors.push(FieldError::invalid(path, Value::Null, "must have at least one stored version"));
        return;
    }
    let mut missing: Vec<(usize, &String)> = stored.iter().enumerate().collect();
    for version in items(&crd["spec"], "versions") {
        let name = text(version, "name");
        let known = missing.iter().any(|(_, stored)| *stored == name);
        if flag(version, "storage") && !known {
            let why = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(path, stored.clone(), why));
        }
        missing.retain(|(_, stored)| *stored != name);
    }
    for (index, name) in missing {
        let why = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        );
        errors.push(FieldError::invalid(format!("{path}[{index}]"), name.as_str(), why));
    }
}

#[derive(PartialEq, Eq)]
enum Approval {
    Invalid,
    Given,
    Bypassed,
    Missing,
}

fn approval(crd: &Value) -> Approval {
    let annotation = text(&crd["metadata"]["annotations"], APPROVAL);
    let is_url = annotation.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
    });
    match annotation {
        "" => Approval::Missing,
        _ if annotation.starts_with("unapproved") => Approval::Bypassed,
        _ if is_url => Approval::Given,
        _ => Approval::Invalid,
    }
}

/// Groups of the Kubernetes project are not for everybody.
fn check_approval(crd: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let group = text(&crd["spec"], "group");
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    let state = approval(crd);
    if !protected || old.is_some_and(|old| approval(old) == state) {
        return;
    }
    let at = format!("metadata.annotations[{APPROVAL}]");
    let (must, see) = (
        format!("protected groups must have approval annotation {APPROVAL:?}"),
        "see https://github.com/kubernetes/enhancements/pull/1111",
    );
    match state {
        Approval::Missing => errors.push(FieldError::required(at, format!("{must}, {see}"))),
        Approval::Invalid => {
            let why = format!("{must} with either a URL or a reason starting with \"unapproved\", {see}");
            errors.push(FieldError::invalid(at, text(&crd["metadata"]["annotations"], APPROVAL), why));
        }
        Approval::Given | Approval::Bypassed => {}
    }
}
