//! Roles and bindings.

use serde_json::Value;

use super::at::{At, Errors};
use super::{formats, selector};
use crate::fields;
use crate::status::FieldError;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(object: &Value, namespaced: bool, errors: &mut Errors) {
    for rule in At::root(object).get("rules").items() {
        if rule.get("verbs").is_empty() {
            errors.declare(FieldError::required(rule.get("verbs").path, ""));
        }
        let urls = rule.get("nonResourceURLs");
        if !urls.is_empty() {
            if namespaced {
                errors.invalid(&urls, "namespaced rules cannot apply to non-resource URLs");
            }
            if ["apiGroups", "resources", "resourceNames"].iter().any(|field| !rule.get(field).is_empty()) {
                errors.invalid(&urls, "rules cannot apply to both regular resources and non-resource URLs");
            }
            continue;
        }
        if rule.get("apiGroups").is_empty() {
            errors.required(&rule.get("apiGroups"), "resource rules must supply at least one api group");
        }
        if rule.get("resources").is_empty() {
            errors.required(&rule.get("resources"), "resource rules must supply at least one resource");
        }
    }
    let aggregation = At::root(object).get("aggregationRule");
    let selectors = aggregation.get("clusterRoleSelectors");
    if !namespaced && aggregation.is_set() && selectors.is_empty() {
        let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.required(&selectors, why);
    }
    for selector in selectors.items() {
        selector::check(&selector, errors);
    }
}

pub(super) fn binding(object: &Value, namespaced: bool, errors: &mut Errors) {
    let role = At::root(object).get("roleRef");
    if role.get("apiGroup").text() != GROUP {
        errors.unsupported(&role.get("apiGroup"), &[GROUP]);
    }
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    let kind = role.get("kind");
    if !kinds.contains(&kind.text()) {
        errors.push(FieldError::not_supported(&kind.path, kind.text(), kinds));
    }
    let name = role.get("name");
    if name.text().is_empty() {
        errors.declare(FieldError::required(&name.path, ""));
    } else {
        errors.invalid_each(&name, formats::path_segment(name.text()));
    }
    for subject in At::root(object).get("subjects").items() {
        check_subject(&subject, namespaced, errors);
    }
}

fn check_subject(subject: &At<'_>, namespaced: bool, errors: &mut Errors) {
    let (kind, name, group) = (subject.get("kind"), subject.get("name"), subject.get("apiGroup"));
    if name.text().is_empty() {
        errors.declare(FieldError::required(&name.path, ""));
    }
    match kind.text() {
        "ServiceAccount" => {
            if !name.text().is_empty() {
                errors.invalid_each(&name, formats::dns_subdomain(name.text()));
            }
            if !group.text().is_empty() {
                errors.unsupported(&group, &[""]);
            }
            if !namespaced && subject.get("namespace").text().is_empty() {
                errors.required(&subject.get("namespace"), "");
            }
        }
        "User" | "Group" => {
            if group.text() != GROUP {
                errors.unsupported(&group, &[GROUP]);
            }
        }
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&kind.path, other, &kinds));
        }
    }
}

/// Another role is another binding.
pub(super) fn update_binding(old: &Value, new: &Value, errors: &mut Errors) {
    if fields::same(old.get("roleRef"), new.get("roleRef")) {
        return;
    }
    let role = At::root(new).get("roleRef");
    let shown = format!(
        "{{\"APIGroup\":{:?},\"Kind\":{:?},\"Name\":{:?}}}",
        role.get("apiGroup").text(),
        role.get("kind").text(),
        role.get("name").text()
    );
    let mut error = FieldError::invalid(&role.path, Value::Null, super::at::IMMUTABLE);
    error.value = None;
    error.detail = format!("{shown}: {}", super::at::IMMUTABLE);
    errors.declare(error);
}
