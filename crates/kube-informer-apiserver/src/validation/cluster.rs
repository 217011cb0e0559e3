//! Namespaces, nodes, leases, events, priority classes and other small kinds.

use std::cmp::Ordering;

use serde_json::Value;

use super::at::{At, Errors};
use super::{formats, metadata, pod};
use crate::fields;
use crate::schema::Quantity;
use crate::status::FieldError;

pub(super) fn namespace(object: &Value, errors: &mut Errors) {
    let finalizers = At::root(object).walk(&["spec", "finalizers"]);
    for finalizer in finalizers.items() {
        let at = finalizer.named(&finalizers.path);
        errors.invalid_each(&at, formats::qualified_name(finalizer.text()));
        metadata::standard_finalizer(&at, errors);
    }
}

pub(super) fn namespace_status(object: &Value, errors: &mut Errors) {
    let phase = fields::text(object, &["status", "phase"]);
    let (expected, not) = match fields::at(object, &["metadata", "deletionTimestamp"]) {
        None => ("Active", ""),
        Some(_) => ("Terminating", "not "),
    };
    if phase != expected {
        let why = format!("may only be '{expected}' if `deletionTimestamp` is {not}empty");
        errors.push(FieldError::invalid("status.Phase", phase, why));
    }
}

pub(super) fn node(object: &Value, errors: &mut Errors) {
    let node = At::root(object);
    pod::taints(&node.walk(&["spec", "taints"]).named("metadata.taints"), errors);
    for list in ["capacity", "allocatable"] {
        let list = node.walk(&["status", list]);
        for (name, amount) in list.entries() {
            let Some(quantity) = Quantity::parse(amount.text()).ok() else { continue };
            if quantity.sign() == Ordering::Less {
                let why = "must be greater than or equal to 0";
                errors.push(FieldError::invalid(list.get(name).path, quantity.to_string(), why));
            }
        }
    }
    for cidr in node.walk(&["spec", "podCIDRs"]).items() {
        errors.invalid_each(&cidr, formats::cidr(cidr.text()));
    }
}

pub(super) fn update_node(old: &Value, new: &Value, errors: &mut Errors) {
    let path: &[&str] = &["spec", "podCIDRs"];
    if !fields::list(old, path).is_empty() && fields::list(old, path) != fields::list(new, path) {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.forbidden(&At::root(new).walk(path), why);
    }
    let provider: &[&str] = &["spec", "providerID"];
    let (before, after) = (fields::text(old, provider), fields::text(new, provider));
    if !before.is_empty() && before != after {
        let what = if after.is_empty() { "cleared" } else { "modified" };
        let why = format!("field cannot be {what} once set");
        errors.declare(FieldError::invalid("spec.providerID", Value::Null, why));
    }
}

pub(super) fn lease(object: &Value, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    let duration = spec.get("leaseDurationSeconds");
    if duration.int().is_some_and(|seconds| seconds <= 0) {
        errors.invalid(&duration, "must be greater than 0");
    }
    errors.non_negative(&spec.get("leaseTransitions"));
}

/// Events of the core group are checked more leniently than those of `events.k8s.io`.
pub(super) fn event(object: &Value, core: bool, is_new: bool, errors: &mut Errors) {
    let event = At::root(object);
    let own = event.walk(&["metadata", "namespace"]).text();
    let about = event.get(if core { "involvedObject" } else { "regarding" }).get("namespace");
    let about = about.named("involvedObject.namespace");
    let controller = event.get(if core { "reportingComponent" } else { "reportingController" });
    let mismatch = |errors: &mut Errors| {
        errors.push(FieldError::invalid(&about.path, about.text(), "does not match event.namespace"));
    };
    if !event.get("eventTime").is_set() {
        let matches = match about.text() {
            "" => matches!(own, "" | "default"),
            about => about == own,
        };
        if !matches {
            mismatch(errors);
        }
    } else {
        if about.text().is_empty() && !matches!(own, "default" | "kube-system") {
            mismatch(errors);
        }
        if controller.text().is_empty() {
            errors.required(&controller, "");
        }
        for why in formats::qualified_name(controller.text()) {
            errors.push(FieldError::invalid(&controller.path, controller.text(), why));
        }
        for field in ["reportingInstance", "action", "reason"] {
            if event.get(field).text().is_empty() {
                errors.required(&event.get(field), "");
            }
            if event.get(field).text().len() > 128 {
                let why = "can have at most 128 characters";
                errors.push(FieldError::invalid(event.get(field).path, "", why));
            }
        }
        if event.get(if core { "message" } else { "note" }).text().len() > 1024 {
            errors.push(FieldError::invalid("message", "", "can have at most 1024 characters"));
        }
    }
    if !core && is_new {
        if !event.get("eventTime").is_set() {
            errors.required(&event.get("eventTime"), "");
        }
        let kind = event.get("type");
        if !matches!(kind.text(), "Normal" | "Warning") {
            errors.push(FieldError::invalid(&kind.path, "", format!("has invalid value: {}", kind.text())));
        }
    }
}

/// Only the series of an event goes on. Its fields are named as the server names them inside.
pub(super) fn update_event(old: &Value, new: &Value, errors: &mut Errors) {
    if !At::root(old).get("eventTime").is_set() {
        return;
    }
    for (field, name) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        if !fields::same(old.get(field), new.get(field)) {
            let value = new.get(field).cloned().unwrap_or_default();
            errors.push(FieldError::invalid(name, value, "field is immutable"));
        }
    }
}

const HIGHEST: i64 = 1_000_000_000;

pub(super) fn priority_class(object: &Value, errors: &mut Errors) {
    let class = At::root(object);
    let (name, value) = (class.walk(&["metadata", "name"]), class.get("value"));
    if name.text().starts_with("system-") {
        if !matches!(name.text(), "system-node-critical" | "system-cluster-critical") {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {} is not a \
                 known system priority class",
                name.text()
            );
            errors.forbidden(&name, why);
        }
    } else if value.int().is_some_and(|value| value > HIGHEST) {
        errors.forbidden(&value, format!("maximum allowed value of a user defined priority is {HIGHEST}"));
    }
    errors.one_of_if_set(&class.get("preemptionPolicy"), &["PreemptLowerPriority", "Never"]);
}

pub(super) fn update_priority_class(old: &Value, new: &Value, errors: &mut Errors) {
    let (old, new) = (At::root(old), At::root(new));
    if old.get("value").int().unwrap_or_default() != new.get("value").int().unwrap_or_default() {
        errors.forbidden(&new.get("value"), "may not be changed in an update.");
    }
    errors.immutable(&new.get("preemptionPolicy"), &old.get("preemptionPolicy"));
}

pub(super) fn update_revision(old: &Value, new: &Value, errors: &mut Errors) {
    errors.immutable(&At::root(new).get("data"), &At::root(old).get("data"));
}

pub(super) fn runtime_class(object: &Value, errors: &mut Errors) {
    let handler = At::root(object).get("handler");
    for why in formats::dns_label(handler.text()) {
        errors.push(FieldError::invalid(&handler.path, handler.text(), why));
    }
}

pub(super) fn update_driver(old: &Value, new: &Value, errors: &mut Errors) {
    // The real server's name for it.
    let path = ["spec", "attachRequired"];
    let at = At::root(new).walk(&path).named("spec.attachedRequired");
    errors.immutable(&at, &At::root(old).walk(&path));
}
