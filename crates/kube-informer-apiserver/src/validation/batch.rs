//! Jobs and CronJobs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::at::{At, Errors};
use super::{cron, pod, selector, workloads};
use crate::fields;
use crate::status::FieldError;

pub(super) fn create_job(object: &Value, errors: &mut Errors) {
    let job = At::root(object);
    generated_selector(&job, errors);
    job_with_selector(&job.get("spec"), errors);
}

pub(super) fn update_job(old: &Value, new: &Value, errors: &mut Errors) {
    let (old_spec, spec) = (At::root(old).get("spec"), At::root(new).get("spec"));
    job_with_selector(&spec, errors);
    // An indexed job grows and shrinks with its parallelism.
    let elastic = spec.get("completionMode").text() == "Indexed"
        && spec.get("completions").value == spec.get("parallelism").value;
    if !elastic {
        errors.immutable(&spec.get("completions"), &old_spec.get("completions"));
    }
    errors.immutable(&spec.get("selector"), &old_spec.get("selector"));
    let suspended = fields::is_true(old, &["spec", "suspend"]);
    if !suspended && !workloads::same_template(old, new) {
        errors.invalid(&spec.get("template"), super::at::IMMUTABLE);
    }
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        errors.immutable(&spec.get(field), &old_spec.get(field));
    }
}

/// A selector that the server makes is not for the client to add to.
fn generated_selector(job: &At<'_>, errors: &mut Errors) {
    if fields::is_true(job.value, &["spec", "manualSelector"]) {
        return;
    }
    let uid = job.walk(&["metadata", "uid"]).text();
    let name = job.walk(&["metadata", "name"]).text();
    let labels = job.walk(&["spec", "template", "metadata", "labels"]);
    for (label, expected) in [
        ("controller-uid", uid),
        ("batch.kubernetes.io/controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/job-name", name),
    ] {
        if fields::text(labels.value, &[label]) != expected {
            let why = format!("must be '{expected}'");
            let shown = Value::from(fields::text(labels.value, &[label]));
            errors.push(FieldError::invalid(labels.key(label), shown, why));
        }
    }
    let selector = job.walk(&["spec", "selector"]);
    let generated = serde_json::json!({ "matchLabels": { "batch.kubernetes.io/controller-uid": uid } });
    let older = serde_json::json!({ "matchLabels": { "controller-uid": uid } });
    if !uid.is_empty() && *selector.value != generated && *selector.value != older {
        errors.invalid(&selector, "`selector` not auto-generated");
    }
}

fn job_with_selector(spec: &At<'_>, errors: &mut Errors) {
    job_spec(spec, errors);
    let selector = spec.get("selector");
    if selector.is_set() {
        if !selector::check(&selector, errors) {
            return;
        }
    } else {
        errors.required(&selector, "");
    }
    selector::check_match(&selector, &spec.get("template"), errors);
}

fn job_spec(spec: &At<'_>, errors: &mut Errors) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        errors.non_negative(&spec.get(field));
    }
    let mode = spec.get("completionMode");
    errors.one_of_if_set(&mode, &["NonIndexed", "Indexed"]);
    if mode.text() == "Indexed" {
        if !spec.get("completions").is_set() {
            errors.required(&spec.get("completions"), "when completion mode is Indexed");
        }
    } else if matches!(mode.text(), "" | "NonIndexed") {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if spec.get(field).is_set() {
                errors.invalid(&spec.get(field), "requires indexed completion mode");
            }
        }
    }
    errors.one_of_if_set(&spec.get("podReplacementPolicy"), &["Failed", "TerminatingOrFailed"]);
    pod::template(&spec.get("template"), &BTreeSet::new(), errors);
    let restart = spec.walk(&["template", "spec", "restartPolicy"]);
    match restart.text() {
        "Always" | "" => errors.required(&restart, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" | "Never" => {}
        _ => errors.unsupported(&restart, &["OnFailure", "Never"]),
    }
}

pub(super) fn cron_job(object: &Value, is_new: bool, errors: &mut Errors) {
    let spec = At::root(object).get("spec");
    let schedule = spec.get("schedule");
    if schedule.text().is_empty() {
        errors.declare(FieldError::required(&schedule.path, ""));
    } else {
        if let Err(why) = cron::parse(schedule.text()) {
            errors.invalid(&schedule, why);
        }
        if schedule.text().contains("TZ") {
            errors.invalid(&schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
        }
    }
    errors.non_negative(&spec.get("startingDeadlineSeconds"));
    time_zone(&spec.get("timeZone"), errors);
    errors.one_of(&spec.get("concurrencyPolicy"), &["Allow", "Forbid", "Replace"]);
    let job = spec.walk(&["jobTemplate", "spec"]);
    job_spec(&job, errors);
    if job.get("selector").is_set() {
        errors.invalid(&job.get("selector"), "`selector` will be auto-generated");
    }
    if fields::is_true(job.value, &["manualSelector"]) {
        errors.unsupported(&job.get("manualSelector"), &["nil", "false"]);
    }
    errors.non_negative(&spec.get("successfulJobsHistoryLimit"));
    errors.non_negative(&spec.get("failedJobsHistoryLimit"));
    // The jobs get eleven characters more.
    let name = At::root(object).walk(&["metadata", "name"]);
    if is_new && name.text().len() > 52 {
        errors.invalid(&name, "must be no more than 52 characters");
    }
}

/// Whether a zone exists is only asked of its form: there is no zone database here.
fn time_zone(zone: &At<'_>, errors: &mut Errors) {
    if !zone.is_set() {
        return;
    }
    let part = |part: &str| {
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-' | b'+'))
    };
    if zone.text().is_empty() {
        errors.invalid(zone, "timeZone must be nil or non-empty string");
    } else if !zone.text().split('/').all(part) {
        errors.invalid(zone, format!("unknown time zone {}", zone.text()));
    } else if zone.text().eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.invalid(zone, why);
    }
}
