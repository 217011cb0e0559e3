//! What a write keeps, resets and counts, kind by kind.
//!
//! These are the registry strategies of kube-apiserver as data and pure functions. The core calls, in
//! this order: [`crate::defaults::apply`], [`admission`], for services [`service::normalise`], then
//! `prepare_*`, then [`crate::validation`], and for services [`service::allocate`].
//!
//! Before [`prepare_create`] the core has set `metadata.uid`, `name` and `namespace`: a Job's selector is
//! made of its uid. [`prepare_update`] and [`prepare_status_update`] get the stored object as `old` and
//! leave in `new` what is to be validated and stored, but for `resourceVersion` and `managedFields`,
//! which are the core's.
//!
//! Custom resources: with a status subresource, status is dropped on create, kept on update and the
//! only thing taken by a status update; the generation counts changes outside of `metadata`.
//!
//! Not done, because it needs features that tests rarely touch: pod-level resources, `matchLabelKeys`
//! merged into selectors, AppArmor annotations.

pub(crate) mod admission;
pub(crate) mod deletion;
mod pod;
pub(crate) mod service;
mod traits;

use jiff::Timestamp;
use serde_json::{Value, json};

use self::traits::{Generation, StatusUpdate, Traits};
use crate::fields;
use crate::kinds::Resource;

/// Whether a PUT to a name that does not exist creates the object.
pub(crate) fn allows_create_on_update(resource: &Resource) -> bool {
    Traits::of(resource).create_on_update
}

/// Whether a PUT may leave `resourceVersion` out.
pub(crate) fn allows_unconditional_update(resource: &Resource) -> bool {
    Traits::of(resource).unconditional_update
}

/// Resets what a client cannot set on create, and writes the initial status.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Value, now: Timestamp) {
    let traits = Traits::of(resource);
    if traits.resets_status {
        fields::remove(object, &["status"]);
    }
    match traits.generation {
        // Nobody looks at it.
        Generation::None => {}
        Generation::Late(_) => {
            fields::remove(object, &["metadata", "generation"]);
        }
        Generation::Once | Generation::Counts(_) | Generation::Everything => {
            fields::set(object, &["metadata", "generation"], 1);
        }
    }
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        fields::remove(object, &["metadata", field]);
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod::prepare_create(object, now),
        ("", "namespaces") => {
            fields::set(object, &["status"], json!({ "phase": "Active" }));
            namespace_finalizers(object);
        }
        ("", "persistentvolumeclaims") => fields::set(object, &["status"], json!({ "phase": "Pending" })),
        ("", "persistentvolumes") => {
            let status = json!({ "phase": "Pending", "lastPhaseTransitionTime": deletion::seconds(now) });
            fields::set(object, &["status"], status);
        }
        ("", "services") | ("networking.k8s.io", "ingresses") => {
            fields::set(object, &["status"], json!({ "loadBalancer": {} }));
        }
        ("", "nodes") => {
            fields::remove(object, &["spec", "configSource"]);
            fields::remove(object, &["status", "config"]);
        }
        ("", "serviceaccounts") => secret_names(object),
        ("apps", "daemonsets") => template_generation(object, 1),
        ("batch", "jobs") => job_selector(object),
        ("coordination.k8s.io", "leases") => drop_election(&Value::Null, object),
        ("certificates.k8s.io", "certificatesigningrequests") => {
            // Who asks is written by the core, which knows.
            for field in ["username", "uid", "groups", "extra"] {
                fields::remove(object, &["spec", field]);
            }
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition_status(object),
        _ => {}
    }
    if traits.resets_status && resource.custom.is_none() {
        fields::set_if_absent(object, &["status"], json!({}));
    }
}

/// Restores what an update cannot change, and counts the generation.
pub(crate) fn prepare_update(resource: &Resource, old: &Value, new: &mut Value) {
    let traits = Traits::of(resource);
    fields::copy(old, new, &["metadata", "generation"]);
    if traits.resets_status || resource.is("", "nodes") {
        fields::copy(old, new, &["status"]);
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "namespaces") => fields::copy(old, new, &["spec", "finalizers"]),
        ("", "services") => service::drop_unneeded(old, new),
        ("", "serviceaccounts") => secret_names(new),
        ("", "nodes") if fields::at(old, &["spec", "configSource"]).is_none() => {
            fields::remove(new, &["spec", "configSource"]);
        }
        ("", "secrets") if fields::text(new, &["type"]).is_empty() => fields::copy(old, new, &["type"]),
        ("apps", "daemonsets") => {
            let path: &[&str] = &["spec", "template"];
            let changed = !fields::same(fields::at(old, path), fields::at(new, path));
            template_generation(new, stored_template_generation(old) + i64::from(changed));
        }
        ("coordination.k8s.io", "leases") => drop_election(old, new),
        ("certificates.k8s.io", "certificatesigningrequests") => fields::copy(old, new, &["spec"]),
        ("apiextensions.k8s.io", "customresourcedefinitions") => definition_status(new),
        _ => {}
    }
    if counts(&traits, old, new) {
        let generation = fields::int(old, &["metadata", "generation"]).unwrap_or_default();
        fields::set(new, &["metadata", "generation"], generation.saturating_add(1));
    }
    restore_system_fields(old, new);
}

/// Takes the status, and of the rest what the real server lets through.
pub(crate) fn prepare_status_update(resource: &Resource, old: &Value, new: &mut Value, now: Timestamp) {
    match Traits::of(resource).status_update {
        StatusUpdate::Only => {
            let status = new.get("status").cloned();
            let managed = fields::at(new, &["metadata", "managedFields"]).cloned();
            let version = fields::at(new, &["metadata", "resourceVersion"]).cloned();
            let uid = fields::at(new, &["metadata", "uid"]).cloned();
            *new = old.clone();
            fields::remove(new, &["status"]);
            for (field, value) in [("managedFields", managed), ("resourceVersion", version), ("uid", uid)] {
                fields::remove(new, &["metadata", field]);
                if let Some(value) = value {
                    fields::set(new, &["metadata", field], value);
                }
            }
            if let Some(status) = status {
                fields::set(new, &["status"], status);
            }
        }
        kept => {
            keep_all_but_status(old, new);
            let metadata: &[&str] = match kept {
                StatusUpdate::KeepLabels => &["labels"],
                StatusUpdate::KeepOwners => &["ownerReferences"],
                StatusUpdate::KeepMetadata => {
                    &["deletionTimestamp", "labels", "annotations", "finalizers", "ownerReferences"]
                }
                StatusUpdate::Free | StatusUpdate::Only => &[],
            };
            for field in metadata {
                fields::copy(old, new, &["metadata", field]);
            }
        }
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod::prepare_status_update(old, new),
        ("", "persistentvolumes") => volume_transition(old, new, now),
        ("apps", "daemonsets") => template_generation(new, stored_template_generation(old)),
        _ => {}
    }
    fields::copy(old, new, &["metadata", "generation"]);
    restore_system_fields(old, new);
}

/// The namespace's `finalize` subresource: only here `spec.finalizers` may change.
pub(crate) fn prepare_finalize(old: &Value, new: &mut Value) {
    fields::copy(old, new, &["status"]);
    fields::copy(old, new, &["metadata", "generation"]);
    restore_system_fields(old, new);
}

/// Everything at the top but `metadata` and `status` is what it was.
fn keep_all_but_status(old: &Value, new: &mut Value) {
    let Some(fields) = new.as_object_mut() else { return };
    let own = |name: &str| matches!(name, "metadata" | "status" | "apiVersion" | "kind");
    fields.retain(|name, _| own(name));
    for (name, value) in old.as_object().into_iter().flatten() {
        if !own(name) {
            fields.insert(name.clone(), value.clone());
        }
    }
}

/// No client can change these; a deletion that was not begun cannot be made up either, but that is
/// an error and not a silent correction.
fn restore_system_fields(old: &Value, new: &mut Value) {
    if fields::text(new, &["metadata", "uid"]).is_empty() {
        fields::copy(old, new, &["metadata", "uid"]);
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if fields::at(old, &["metadata", field]).is_some() {
            fields::copy(old, new, &["metadata", field]);
        }
    }
    if fields::at(new, &["metadata", "deletionGracePeriodSeconds"]).is_none() {
        fields::copy(old, new, &["metadata", "deletionGracePeriodSeconds"]);
    }
    fields::remove(new, &["metadata", "selfLink"]);
}

fn counts(traits: &Traits, old: &Value, new: &Value) -> bool {
    match traits.generation {
        Generation::None | Generation::Once => false,
        Generation::Late(parts) | Generation::Counts(parts) => {
            parts.iter().any(|part| !fields::same(fields::at(old, part), fields::at(new, part)))
        }
        Generation::Everything => {
            let content = |object: &Value| -> Option<Value> {
                let mut content = object.as_object()?.clone();
                content.remove("metadata");
                // Objects are stored in one version and asked for in another.
                content.remove("apiVersion");
                Some(Value::Object(content))
            };
            content(old) != content(new)
        }
    }
}

fn namespace_finalizers(object: &mut Value) {
    let Some(finalizers) = fields::place(object, &["spec", "finalizers"]) else { return };
    if finalizers.is_null() {
        *finalizers = json!([]);
    }
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|name| name == "kubernetes")
    {
        finalizers.push("kubernetes".into());
    }
}

/// References to secrets are names in the account's own namespace.
fn secret_names(object: &mut Value) {
    for secret in fields::list_mut(object, &["secrets"]).into_iter().flatten() {
        if let Some(secret) = secret.as_object_mut() {
            secret.retain(|field, _| field == "name");
        }
    }
}

/// Coordinated leader election is a feature that is off by default.
fn drop_election(old: &Value, new: &mut Value) {
    for field in ["strategy", "preferredHolder"] {
        if fields::at(old, &["spec", field]).is_none() {
            fields::remove(new, &["spec", field]);
        }
    }
}

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn template_generation(object: &mut Value, generation: i64) {
    fields::set(object, &["metadata", "annotations", TEMPLATE_GENERATION], generation.to_string());
}

fn stored_template_generation(object: &Value) -> i64 {
    fields::text(object, &["metadata", "annotations", TEMPLATE_GENERATION]).parse().unwrap_or_default()
}

/// A Job finds its pods by its own uid, unless a selector is given by hand.
fn job_selector(object: &mut Value) {
    // Labels that are the template's become what the template's become.
    let of_template =
        |object: &Value| fields::at(object, &["spec", "template", "metadata", "labels"]).cloned();
    let own = fields::at(object, &["metadata", "labels"]).cloned();
    let follows = own.is_none() || own == of_template(object);
    if !fields::is_true(object, &["spec", "manualSelector"]) {
        let name = fields::text(object, &["metadata", "name"]).to_owned();
        let uid = fields::text(object, &["metadata", "uid"]).to_owned();
        let labels = [
            ("job-name", &name),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &uid),
            ("batch.kubernetes.io/controller-uid", &uid),
        ];
        for (label, value) in labels {
            let path = ["spec", "template", "metadata", "labels", label];
            fields::set_if_absent(object, &path, value.as_str());
        }
        let selector = ["spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"];
        fields::set_if_absent(object, &selector, uid);
    }
    if let Some(labels) = of_template(object).filter(|_| follows) {
        fields::set(object, &["metadata", "labels"], labels);
    }
}

/// Every version that objects were ever stored in is remembered.
fn definition_status(object: &mut Value) {
    let stored = fields::list(object, &["spec", "versions"])
        .iter()
        .find(|version| fields::is_true(version, &["storage"]))
        .map(|version| fields::text(version, &["name"]).to_owned());
    let Some(stored) = stored else { return };
    fields::set_if_absent(object, &["status", "storedVersions"], json!([]));
    if let Some(versions) = fields::list_mut(object, &["status", "storedVersions"])
        && !versions.iter().any(|version| *version == stored)
    {
        versions.push(stored.into());
    }
}

/// The time of a phase change is written by whoever writes the phase, or else by the server.
fn volume_transition(old: &Value, new: &mut Value, now: Timestamp) {
    let time: &[&str] = &["status", "lastPhaseTransitionTime"];
    let changed = fields::text(old, &["status", "phase"]) != fields::text(new, &["status", "phase"]);
    if !changed {
        if fields::at(new, time).is_none() {
            fields::copy(old, new, time);
        }
    } else if fields::at(new, time).is_none() || fields::at(new, time) == fields::at(old, time) {
        fields::set(new, time, deletion::seconds(now));
    }
}

#[cfg(test)]
pub(crate) mod tests;
