//! Pods: their first status and what a status update keeps.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::fields;
use crate::schema::Quantity;

pub(super) fn prepare_create(object: &mut Value, now: Timestamp) {
    let mut status = json!({ "phase": "Pending", "qosClass": qos_class(object) });
    if !fields::list(object, &["spec", "schedulingGates"]).is_empty() {
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastProbeTime": null,
            "lastTransitionTime": super::deletion::seconds(now),
        });
        fields::set(&mut status, &["conditions"], json!([condition]));
    }
    fields::set(object, &["status"], status);
}

pub(super) fn prepare_status_update(old: &Value, new: &mut Value) {
    if fields::text(new, &["status", "qosClass"]).is_empty() {
        fields::copy(old, new, &["status", "qosClass"]);
    }
    for field in
        ["resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses"]
    {
        if fields::at(new, &["status", field]).is_none() {
            fields::copy(old, new, &["status", field]);
        }
    }
    if fields::is_zero(fields::at(new, &["status", "observedGeneration"])) {
        fields::copy(old, new, &["status", "observedGeneration"]);
    }
    let conditions = fields::list(old, &["status", "conditions"]);
    for condition in fields::list_mut(new, &["status", "conditions"]).into_iter().flatten() {
        if !fields::is_zero(condition.get("observedGeneration")) {
            continue;
        }
        let kind = fields::text(condition, &["type"]);
        if let Some(stored) = conditions.iter().find(|stored| fields::text(stored, &["type"]) == kind) {
            fields::copy(stored, condition, &["observedGeneration"]);
        }
    }
}

/// How easily a pod is evicted: by what its containers ask for and are limited to.
fn qos_class(object: &Value) -> &'static str {
    let own = fields::at(object, &["spec", "resources"]);
    if let Some(resources) = own.filter(|r| !fields::same(Some(r), None)) {
        return requirements_class(resources);
    }
    let containers = fields::list(object, &["spec", "initContainers"])
        .iter()
        .chain(fields::list(object, &["spec", "containers"]));
    let mut class = None;
    for container in containers {
        let own = container.get("resources").map_or("BestEffort", requirements_class);
        if own == "Burstable" || class.is_some_and(|class| class != own) {
            return "Burstable";
        }
        class = Some(own);
    }
    class.unwrap_or("BestEffort")
}

fn requirements_class(resources: &Value) -> &'static str {
    let amount = |side: &str, name: &str| {
        let amount = Quantity::parse(fields::text(resources, &[side, name])).ok()?;
        (amount.sign() == Ordering::Greater).then_some(amount)
    };
    let names = ["cpu", "memory"];
    let nothing = names.iter().all(|n| amount("requests", n).is_none() && amount("limits", n).is_none());
    if nothing {
        return "BestEffort";
    }
    let guaranteed = names.iter().all(|name| {
        let limit = amount("limits", name);
        limit.is_some() && amount("requests", name) == limit
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}
