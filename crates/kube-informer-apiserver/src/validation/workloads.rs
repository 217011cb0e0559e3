//! Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::at::{At, Errors};
use super::{formats, pod, selector};
use crate::fields;
use crate::status::FieldError;

/// The messages that differ between the kinds.
struct Words {
    empty_selector: &'static str,
    bad_selector: &'static str,
    deadline: &'static str,
}

const REPLICA_SET: Words = Words {
    empty_selector: "empty selector is invalid for deployment",
    bad_selector: "invalid label selector",
    deadline: "activeDeadlineSeconds in ReplicaSet is not Supported",
};
const STATEFUL_SET: Words = Words {
    empty_selector: "empty selector is invalid for statefulset",
    bad_selector: "",
    deadline: "activeDeadlineSeconds in StatefulSet is not Supported",
};

pub(super) fn deployment(object: &Value, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    errors.non_negative(&spec.get("replicas"));
    if selected(&spec, &REPLICA_SET, errors) {
        template(&spec, &BTreeSet::new(), &REPLICA_SET, errors);
    }
    deployment_strategy(&spec.get("strategy"), errors);
    for field in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        errors.non_negative(&spec.get(field));
    }
    let deadline = spec.get("progressDeadlineSeconds");
    if deadline.int().is_some_and(|d| d <= spec.get("minReadySeconds").int().unwrap_or_default()) {
        errors.invalid(&deadline, "must be greater than minReadySeconds");
    }
}

pub(super) fn replica_set(object: &Value, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    errors.non_negative(&spec.get("replicas"));
    errors.non_negative(&spec.get("minReadySeconds"));
    if selected(&spec, &REPLICA_SET, errors) {
        template(&spec, &BTreeSet::new(), &REPLICA_SET, errors);
    }
}

pub(super) fn stateful_set(object: &Value, is_new: bool, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    let management = spec.get("podManagementPolicy");
    if !matches!(management.text(), "OrderedReady" | "Parallel") {
        errors.invalid(&management, "must be 'OrderedReady' or 'Parallel'");
    }
    stateful_set_strategy(&spec.get("updateStrategy"), errors);
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    for when in ["whenDeleted", "whenScaled"] {
        errors.one_of_if_set(&retention.get(when), &["Retain", "Delete"]);
    }
    errors.non_negative(&spec.get("replicas"));
    errors.non_negative(&spec.get("minReadySeconds"));
    let service = spec.get("serviceName");
    if is_new && !service.text().is_empty() {
        errors.invalid_each(&service, formats::dns_label(service.text()));
    }
    if selected(&spec, &STATEFUL_SET, errors) {
        let claims = spec.get("volumeClaimTemplates");
        let claims: BTreeSet<&str> =
            claims.items().map(|claim| claim.walk(&["metadata", "name"]).text()).collect();
        template(&spec, &claims, &STATEFUL_SET, errors);
    }
}

pub(super) fn daemon_set(object: &Value, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    let selector = spec.get("selector");
    if selector::check(&selector, errors) {
        selector::check_match(&selector, &spec.get("template"), errors);
    }
    if selector.is_set() && is_empty(&selector) {
        errors.invalid(&selector, "empty selector is invalid for daemonset");
    }
    pod::template(&spec.get("template"), &BTreeSet::new(), errors);
    always(&spec, "activeDeadlineSeconds in DaemonSet is not Supported", errors);
    errors.non_negative(&spec.get("minReadySeconds"));
    daemon_set_strategy(&spec.get("updateStrategy"), errors);
    errors.non_negative(&spec.get("revisionHistoryLimit"));
}

pub(super) fn replication_controller(object: &Value, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    for field in ["minReadySeconds", "replicas"] {
        let field = spec.get(field);
        if field.int().is_some_and(|number| number < 0) {
            let why = "must be greater than or equal to 0";
            errors.declare(FieldError::invalid(&field.path, field.value.clone(), why));
        }
    }
    let selector = spec.get("selector");
    if selector.is_empty() {
        errors.required(&selector, "");
    }
    let template = spec.get("template");
    if !template.is_set() {
        errors.required(&template, "");
        return;
    }
    if !selector.is_empty() {
        let by_labels = serde_json::json!({ "matchLabels": selector.value });
        selector::check_match(&At::root(&by_labels).named(&selector.path), &template, errors);
    }
    pod::template(&template, &BTreeSet::new(), errors);
    always(&spec, "activeDeadlineSeconds in ReplicationController is not Supported", errors);
}

pub(super) fn pod_template(object: &Value, errors: &mut Errors) {
    pod::template(&At::root(object).get("template"), &BTreeSet::new(), errors);
}

pub(super) fn update_selector(old: &Value, new: &Value, errors: &mut Errors) {
    let path = ["spec", "selector"];
    errors.immutable(&At::root(new).walk(&path), &At::root(old).walk(&path));
}

pub(super) fn update_stateful_set(old: &Value, new: &Value, errors: &mut Errors) {
    let (old, new) = (At::root(old).get("spec"), At::root(new).get("spec"));
    for field in ["selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"] {
        errors.declared_immutable(&new.get(field), &old.get(field));
    }
}

/// Numbers of a status are counts.
pub(super) fn status(object: &Value, errors: &mut Errors) {
    let status = At::root(object).get("status");
    for (name, value) in status.value.as_object().into_iter().flatten() {
        if value.is_number() {
            errors.non_negative(&status.get(name));
        }
    }
}

/// Parts of a status are not more than the whole.
pub(super) fn status_fits(kind: &str, object: &Value, errors: &mut Errors) {
    let parts: &[&str] = match kind {
        "deployments" => &["updatedReplicas", "readyReplicas", "availableReplicas"],
        "replicasets" => &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        "statefulsets" => &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        _ => return,
    };
    let status = At::root(object).get("status");
    let count = |name: &str| status.get(name).int().unwrap_or_default();
    let mut more = |name: &str, than: i64, what: &str| {
        if count(name) > than {
            let why = format!("cannot be greater than {what}");
            errors.push(FieldError::invalid(status.get(name).path, count(name), why));
        }
    };
    for part in parts {
        more(part, count("replicas"), "status.replicas");
    }
    let ready = if kind == "statefulsets" { "status.readyReplicas" } else { "readyReplicas" };
    more("availableReplicas", count("readyReplicas"), ready);
}

fn is_empty(selector: &At<'_>) -> bool {
    selector.get("matchLabels").is_empty() && selector.get("matchExpressions").is_empty()
}

/// Checks the selector; whether the template can be held against it.
fn selected(spec: &At<'_>, words: &Words, errors: &mut Errors) -> bool {
    let selector = spec.get("selector");
    if !selector.is_set() {
        errors.required(&selector, "");
        return true;
    }
    let usable = selector::check(&selector, errors);
    if is_empty(&selector) {
        errors.invalid(&selector, words.empty_selector);
    }
    if !usable {
        errors.invalid(&selector, words.bad_selector);
    }
    usable
}

fn template(spec: &At<'_>, claims: &BTreeSet<&str>, words: &Words, errors: &mut Errors) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    selector::check_match(&selector, &template, errors);
    pod::template(&template, claims, errors);
    always(spec, words.deadline, errors);
}

/// Pods that are kept running are restarted whenever they end.
fn always(spec: &At<'_>, deadline: &str, errors: &mut Errors) {
    let spec = spec.walk(&["template", "spec"]);
    if spec.get("restartPolicy").text() != "Always" {
        errors.unsupported(&spec.get("restartPolicy"), &["Always"]);
    }
    if spec.get("activeDeadlineSeconds").is_set() {
        errors.forbidden(&spec.get("activeDeadlineSeconds"), deadline);
    }
}

/// A strategy as the Go type shows itself: capitals, and nothing left out.
fn show_strategy(strategy: &At<'_>) -> String {
    format!("{{\"Type\":{:?},\"RollingUpdate\":null}}", strategy.get("type").text())
}

fn deployment_strategy(strategy: &At<'_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "Recreate" => {
            if rolling.is_set() {
                errors.forbidden(&rolling, "may not be specified when strategy `type` is 'Recreate'");
            }
        }
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            count_or_percent(&unavailable, errors);
            count_or_percent(&surge, errors);
            if amount(&unavailable) == 0 && amount(&surge) == 0 {
                errors.invalid(&unavailable, "may not be 0 when `maxSurge` is 0");
            }
            at_most_all(&unavailable, errors);
        }
        _ => unsupported_strategy(strategy, &["Recreate", "RollingUpdate"], errors),
    }
}

fn unsupported_strategy(strategy: &At<'_>, supported: &[&str], errors: &mut Errors) {
    let mut error = FieldError::not_supported(&strategy.path, Value::Null, supported);
    error.value = None;
    error.detail = format!("{}: {}", show_strategy(strategy), error.detail);
    errors.push(error);
}

fn daemon_set_strategy(strategy: &At<'_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            for setting in [&unavailable, &surge] {
                count_or_percent(setting, errors);
            }
            for setting in [&unavailable, &surge] {
                at_most_all(setting, errors);
            }
            match (amount(&unavailable) != 0, amount(&surge) != 0) {
                (true, true) => errors.invalid(&surge, "may not be set when maxUnavailable is non-zero"),
                (false, false) => errors.required(&unavailable, "cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => unsupported_strategy(strategy, &["RollingUpdate", "OnDelete"], errors),
    }
}

fn stateful_set_strategy(strategy: &At<'_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" => {
            if rolling.is_set() {
                errors.invalid(&rolling, "only allowed for updateStrategy 'RollingUpdate'");
            }
        }
        "RollingUpdate" => {
            errors.non_negative(&rolling.get("partition"));
            let unavailable = rolling.get("maxUnavailable");
            if unavailable.is_set() {
                count_or_percent(&unavailable, errors);
                if amount(&unavailable) == 0 {
                    errors.invalid(&unavailable, "cannot be 0");
                }
                at_most_all(&unavailable, errors);
            }
        }
        _ => {
            let shown = show_strategy(strategy);
            errors.invalid_shown(&strategy.path, &shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

/// `3` or `25%`.
pub(super) fn count_or_percent(at: &At<'_>, errors: &mut Errors) {
    match at.value {
        Value::String(text) => errors.invalid_each(at, formats::percent(text)),
        _ => errors.non_negative(at),
    }
}

pub(super) fn at_most_all(at: &At<'_>, errors: &mut Errors) {
    let percent = at.text().strip_suffix('%').and_then(|digits| digits.parse::<i64>().ok());
    if percent.is_some_and(|percent| percent > 100) {
        errors.invalid(at, "must not be greater than 100%");
    }
}

/// The number in either form; what cannot be read counts as none.
fn amount(at: &At<'_>) -> i64 {
    let percent = at.text().strip_suffix('%').and_then(|digits| digits.parse().ok());
    at.int().or(percent).unwrap_or_default()
}

pub(super) fn same_template(old: &Value, new: &Value) -> bool {
    let path: &[&str] = &["spec", "template"];
    fields::same(fields::at(old, path), fields::at(new, path))
}
