//! What is wrong with an object, in the words of the real server.
//!
//! [`create`], [`update`] and [`update_status`] get an object after defaulting and after
//! [`crate::strategy`] has prepared it, and return its errors in the order in which kube-apiserver reports
//! them; no errors means that it can be stored. Types and unknown fields are checked before, by the
//! schema. Custom resources get only the checks of `metadata` here; the rest is in their schemas.
//!
//! Covered, each with the messages of the common mistakes: `metadata` of every kind; pods and pod templates
//! (containers, ports, environment, mounts, the usual volumes, resources, probes, tolerations, selectors);
//! Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers, Jobs, CronJobs; Services,
//! Endpoints, EndpointSlices; ConfigMaps, Secrets; claims, volumes, storage classes; Ingresses, ingress
//! classes, NetworkPolicies; autoscalers, disruption budgets; RBAC; namespaces, nodes, leases, events,
//! priority classes, runtime classes.
//!
//! Known differences. Where the real server shows a Go value (a whole spec, a diff of two specs), the
//! field and the reason are the same and the value is shown as JSON or not at all. Errors about several
//! keys of one map come in the order of the keys; the real server's order is random. Not checked: rare
//! volume sources, security contexts of containers, node affinity terms, DNS settings, resource claims,
//! pod-level resources, pod failure and success policies, quota and limit values, webhook configurations,
//! flow control, CSI drivers, whether a time zone exists.

mod at;
mod batch;
mod cluster;
mod config;
mod container;
mod cron;
mod formats;
mod metadata;
mod network;
mod pod;
mod rbac;
mod resources;
mod scaling;
mod selector;
mod service;
mod storage;
mod volumes;
mod workloads;

use serde_json::Value;

use self::at::{At, Errors, IMMUTABLE};
pub(crate) use self::service::cluster_ips;
use crate::fields;
use crate::kinds::Resource;
use crate::status::FieldError;
use crate::strategy;

/// Errors of an object that is to be created.
pub(crate) fn create(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Errors::default();
    metadata::check(resource, object, &mut errors);
    content(resource, None, object, &mut errors);
    errors.finish()
}

/// Errors of an object that is to take the place of `old`.
pub(crate) fn update(resource: &Resource, old: &Value, new: &Value) -> Vec<FieldError> {
    if let Some(error) = missing_version(resource, new) {
        return vec![error];
    }
    let mut errors = Errors::default();
    metadata::check_update(resource, old, new, &mut errors);
    if resource.custom.is_some() {
        return errors.finish();
    }
    // Some kinds are held against their old selves first.
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => {
            pod::update(old, new, &mut errors);
            return errors.finish();
        }
        ("batch", "jobs") => {
            batch::update_job(old, new, &mut errors);
            return errors.finish();
        }
        ("apps", "daemonsets") => workloads::update_selector(old, new, &mut errors),
        ("", "services") => service::update(old, new, &mut errors),
        ("", "secrets") => config::update_secret(old, new, &mut errors),
        ("", "configmaps") => config::update_config_map(old, new, &mut errors),
        _ => {}
    }
    content(resource, Some(old), new, &mut errors);
    against_old(resource, old, new, &mut errors);
    errors.finish()
}

/// Errors of a status that is to take the place of the one in `old`.
pub(crate) fn update_status(resource: &Resource, old: &Value, new: &Value) -> Vec<FieldError> {
    if let Some(error) = missing_version(resource, new) {
        return vec![error];
    }
    let mut errors = Errors::default();
    metadata::check_update(resource, old, new, &mut errors);
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("apps", kind) => {
            workloads::status(new, &mut errors);
            workloads::status_fits(kind, new, &mut errors);
        }
        ("", "replicationcontrollers") => workloads::status(new, &mut errors),
        ("", "namespaces") => cluster::namespace_status(new, &mut errors),
        ("", "pods") => pod::status(new, &mut errors),
        ("policy", "poddisruptionbudgets") => workloads::status(new, &mut errors),
        ("", "services") => service::status(new, &mut errors),
        _ => {}
    }
    errors.finish()
}

/// Names that pods are named after should be labels.
pub(crate) fn name_warning(resource: &Resource, object: &Value) -> Option<String> {
    let named_after = matches!(
        (resource.group.as_str(), resource.plural.as_str()),
        ("apps", "deployments" | "replicasets")
            | ("batch", "jobs" | "cronjobs")
            | ("", "replicationcontrollers")
    );
    let name = fields::text(object, &["metadata", "name"]);
    let complaints = if named_after && !name.is_empty() { formats::dns_label(name) } else { Vec::new() };
    (!complaints.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; \
             a DNS label is recommended: [{}]",
            complaints.join(" ")
        )
    })
}

/// Some kinds are only updated from a version that is named.
fn missing_version(resource: &Resource, new: &Value) -> Option<FieldError> {
    let named = !fields::text(new, &["metadata", "resourceVersion"]).is_empty();
    if named || strategy::allows_unconditional_update(resource) {
        return None;
    }
    Some(FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update"))
}

/// What a kind demands of an object, new or not.
fn content(resource: &Resource, old: Option<&Value>, object: &Value, errors: &mut Errors) {
    if resource.custom.is_some() {
        return;
    }
    let is_new = old.is_none();
    // Addresses that were accepted once stay acceptable.
    let unchanged = |field: &str| old.is_some_and(|old| fields::same(old.get(field), object.get(field)));
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pod::create(object, errors),
        ("", "podtemplates") => workloads::pod_template(object, errors),
        ("", "replicationcontrollers") => workloads::replication_controller(object, errors),
        ("", "services") => service::service(object, errors),
        ("", "endpoints") if !unchanged("subsets") => service::endpoints(object, errors),
        ("", "configmaps") => config::config_map(object, errors),
        ("", "secrets") => config::secret(object, errors),
        ("", "persistentvolumes") => storage::volume(object, errors),
        ("", "persistentvolumeclaims") => storage::claim(object, errors),
        ("", "namespaces") => cluster::namespace(object, errors),
        ("", "nodes") => cluster::node(object, errors),
        ("", "events") => cluster::event(object, true, is_new, errors),
        ("events.k8s.io", "events") => cluster::event(object, false, is_new, errors),
        ("apps", "deployments") => workloads::deployment(object, errors),
        ("apps", "replicasets") => workloads::replica_set(object, errors),
        ("apps", "statefulsets") => workloads::stateful_set(object, is_new, errors),
        ("apps", "daemonsets") => workloads::daemon_set(object, errors),
        ("batch", "jobs") => batch::create_job(object, errors),
        ("batch", "cronjobs") => batch::cron_job(object, is_new, errors),
        ("discovery.k8s.io", "endpointslices") => {
            service::endpoint_slice(object, unchanged("endpoints"), errors);
        }
        ("networking.k8s.io", "ingresses") => network::ingress(object, errors),
        ("networking.k8s.io", "ingressclasses") => network::ingress_class(object, errors),
        ("networking.k8s.io", "networkpolicies") => network::policy(object, errors),
        ("autoscaling", "horizontalpodautoscalers") => scaling::autoscaler(object, errors),
        ("policy", "poddisruptionbudgets") => scaling::disruption_budget(object, errors),
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => {
            rbac::role(object, resource.namespaced, errors);
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            rbac::binding(object, resource.namespaced, errors);
        }
        ("coordination.k8s.io", "leases") => cluster::lease(object, errors),
        ("scheduling.k8s.io", "priorityclasses") if is_new => cluster::priority_class(object, errors),
        ("storage.k8s.io", "storageclasses") => storage::class(object, errors),
        ("node.k8s.io", "runtimeclasses") => cluster::runtime_class(object, errors),
        _ => {}
    }
}

/// What must stay as it is.
fn against_old(resource: &Resource, old: &Value, new: &Value, errors: &mut Errors) {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("apps", "deployments" | "replicasets") => workloads::update_selector(old, new, errors),
        ("apps", "statefulsets") => workloads::update_stateful_set(old, new, errors),
        ("apps", "controllerrevisions") => cluster::update_revision(old, new, errors),
        ("discovery.k8s.io", "endpointslices") => declared_frozen(old, new, "addressType", errors),
        ("", "persistentvolumes") => storage::update_volume(old, new, errors),
        ("", "persistentvolumeclaims") => storage::update_claim(old, new, errors),
        ("", "nodes") => cluster::update_node(old, new, errors),
        ("events.k8s.io", "events") => cluster::update_event(old, new, errors),
        ("storage.k8s.io", "storageclasses") => storage::update_class(old, new, errors),
        ("storage.k8s.io", "csidrivers") => cluster::update_driver(old, new, errors),
        ("networking.k8s.io", "ingressclasses") => network::update_ingress_class(old, new, errors),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            rbac::update_binding(old, new, errors);
        }
        ("scheduling.k8s.io", "priorityclasses") => cluster::update_priority_class(old, new, errors),
        ("node.k8s.io", "runtimeclasses") => declared_frozen(old, new, "handler", errors),
        _ => {}
    }
}

/// A field that is declared to be immutable; the declaration does not say what the value was.
fn declared_frozen(old: &Value, new: &Value, field: &str, errors: &mut Errors) {
    if !fields::same(old.get(field), new.get(field)) {
        errors.declare(FieldError::invalid(At::root(new).get(field).path, Value::Null, IMMUTABLE));
    }
}
