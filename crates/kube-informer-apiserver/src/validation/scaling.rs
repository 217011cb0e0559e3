//! Autoscalers and disruption budgets.

use serde_json::Value;

use super::at::{At, Errors};
use super::{formats, selector, workloads};
use crate::status::FieldError;

pub(super) fn autoscaler(object: &Value, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    let (min, max) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    let most = max.int().unwrap_or_default();
    if let Some(least) = min.int() {
        if least < 0 {
            let why = "must be greater than or equal to 0";
            errors.declare(FieldError::invalid(&min.path, least, why));
        }
        if most < least {
            let why = "must be greater than or equal to `minReplicas`";
            errors.push(FieldError::invalid(&max.path, most, why));
        }
    }
    if most == 0 {
        errors.declare(FieldError::required(&max.path, ""));
    } else if most < 0 {
        errors.declare(FieldError::invalid(&max.path, most, "must be greater than or equal to 1"));
    }
    target(&spec.get("scaleTargetRef"), errors);
    for metric in spec.get("metrics").items() {
        check_metric(&metric, errors);
    }
    let outside =
        spec.get("metrics").items().any(|metric| matches!(metric.get("type").text(), "Object" | "External"));
    if min.int() == Some(0) && !outside && spec.get("metrics").is_set() {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.forbidden(&spec.get("metrics"), why);
    }
    for direction in ["scaleUp", "scaleDown"] {
        check_rules(&spec.get("behavior").get(direction), errors);
    }
}

fn target(target: &At<'_>, errors: &mut Errors) {
    for field in ["kind", "name"] {
        let field = target.get(field);
        if field.text().is_empty() {
            errors.required(&field, "");
        } else {
            errors.invalid_each(&field, formats::path_segment(field.text()));
        }
    }
    let version = target.get("apiVersion");
    if !version.text().contains('/') && version.text() != "v1" {
        let why = "apiVersion must specify API group";
        errors.push(FieldError::invalid(&version.path, version.text(), why));
    }
}

/// Kinds of metrics and the fields that describe them.
const METRICS: &[(&str, &str)] = &[
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

fn check_metric(metric: &At<'_>, errors: &mut Errors) {
    let kind = metric.get("type");
    let kinds: Vec<&str> = METRICS.iter().map(|(kind, _)| *kind).collect();
    let known = METRICS.iter().find(|(name, _)| *name == kind.text());
    if known.is_none() {
        errors.unsupported(&kind, &kinds);
    }
    for source in ["resource", "containerResource"] {
        let resource = metric.get(source);
        if !resource.is_set() {
            continue;
        }
        if resource.get("name").text().is_empty() {
            errors.required(&resource.get("name"), "must specify a resource name");
        }
        check_target(&resource.get("target"), errors);
    }
    if let Some((_, field)) = known
        && !metric.get(field).is_set()
    {
        errors.required(&metric.get(field), "must populate information for the given metric source");
    }
}

fn check_target(target: &At<'_>, errors: &mut Errors) {
    let kind = target.get("type");
    if kind.text().is_empty() {
        errors.required(&kind, "must specify a metric target type");
    } else if !matches!(kind.text(), "Utilization" | "Value" | "AverageValue") {
        errors.invalid(&kind, "must be either Utilization, Value, or AverageValue");
    }
    let utilization = target.get("averageUtilization");
    if utilization.int().is_some_and(|percent| percent < 1) {
        errors.invalid(&utilization, "must be greater than 0");
    }
    if !utilization.is_set() && !target.get("averageValue").is_set() {
        errors.required(&utilization, "must set either a target raw value or a target utilization");
    }
}

fn check_rules(rules: &At<'_>, errors: &mut Errors) {
    let window = rules.get("stabilizationWindowSeconds");
    match window.int() {
        Some(seconds) if seconds < 0 => errors.invalid(&window, "must be greater than or equal to zero"),
        Some(seconds) if seconds > 3600 => errors.invalid(&window, "must be less than or equal to 3600"),
        _ => {}
    }
    errors.one_of_if_set(&rules.get("selectPolicy"), &["Disabled", "Max", "Min"]);
    for policy in rules.get("policies").items() {
        let kind = policy.get("type");
        if !matches!(kind.text(), "Percent" | "Pods") {
            errors.unsupported(&kind, &["Percent", "Pods"]);
        }
        for field in ["value", "periodSeconds"] {
            let field = policy.get(field);
            if field.int().unwrap_or_default() <= 0 {
                errors.push(FieldError::invalid(
                    &field.path,
                    field.int().unwrap_or_default(),
                    "must be greater than zero",
                ));
            }
        }
        let period = policy.get("periodSeconds");
        if period.int().is_some_and(|seconds| seconds > 1800) {
            errors.invalid(&period, "must be less than or equal to 1800");
        }
    }
}

pub(super) fn disruption_budget(object: &Value, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    let (min, max) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if min.is_set() && max.is_set() {
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            min.value,
            spec.get("selector").value,
            max.value,
            spec.get("unhealthyPodEvictionPolicy").value
        );
        errors.invalid_shown(&spec.path, &shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for amount in [&min, &max] {
        workloads::count_or_percent(amount, errors);
        workloads::at_most_all(amount, errors);
    }
    selector::check(&spec.get("selector"), errors);
    errors.one_of_if_set(&spec.get("unhealthyPodEvictionPolicy"), &["AlwaysAllow", "IfHealthyBudget"]);
}
