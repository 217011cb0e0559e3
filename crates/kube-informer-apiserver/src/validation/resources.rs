//! What a container asks for and is limited to.

use std::cmp::Ordering;

use serde_json::Value;

use super::at::{At, Errors};
use super::formats;
use crate::fields;
use crate::schema::Quantity;
use crate::status::FieldError;

/// Requests and limits, each and against each other.
pub(super) fn check(resources: &At<'_>, errors: &mut Errors) {
    let (limits, requests) = (resources.get("limits"), resources.get("requests"));
    for (name, amount) in limits.entries() {
        resource_name(name, &amount, errors);
        resource_amount(name, &amount, errors);
    }
    for (name, amount) in requests.entries() {
        resource_name(name, &amount, errors);
        resource_amount(name, &amount, errors);
        let limit = Quantity::parse(fields::text(limits.value, &[name])).ok();
        let Some(request) = Quantity::parse(amount.text()).ok() else { continue };
        let why = match &limit {
            Some(limit) if !can_overcommit(name) && request != *limit => "must be equal to",
            Some(limit) if request > *limit => "must be less than or equal to",
            None if !can_overcommit(name) => {
                errors.required(&limits, "Limit must be set for non overcommitable resources");
                continue;
            }
            _ => continue,
        };
        let limit = limit.as_ref().map(ToString::to_string).unwrap_or_default();
        let why = format!("{why} {name} limit of {limit}");
        errors.push(FieldError::invalid(&requests.path, request.to_string(), why));
    }
}

const STANDARD: &[&str] = &["cpu", "memory", "ephemeral-storage", "storage", "pods", "services"];

fn resource_name(name: &str, amount: &At<'_>, errors: &mut Errors) {
    let shown = Value::from(name);
    let at = At { value: &shown, path: amount.path.clone() };
    let complaints = formats::qualified_name(name);
    if !complaints.is_empty() {
        errors.invalid_each(&at, complaints);
        return;
    }
    if !name.contains('/') && !name.starts_with("hugepages-") {
        if !STANDARD.contains(&name) {
            errors.invalid(&at, "must be a standard resource type or fully qualified");
        }
        if !matches!(name, "cpu" | "memory" | "ephemeral-storage") {
            errors.invalid(&at, "must be a standard resource for containers");
        }
    }
}

fn resource_amount(name: &str, amount: &At<'_>, errors: &mut Errors) {
    let Some(quantity) = Quantity::parse(amount.text()).ok() else { return };
    let shown = Value::from(quantity.to_string());
    let at = At { value: &shown, path: amount.path.clone() };
    if quantity.sign() == Ordering::Less {
        errors.invalid(&at, "must be greater than or equal to 0");
    }
    if is_extended(name) && !quantity.is_whole() {
        errors.invalid(&at, "must be an integer");
    }
}

fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/")
}

fn can_overcommit(name: &str) -> bool {
    !is_extended(name) && !name.starts_with("hugepages-")
}
