//! What people apply.

use serde_json::{Value, json};

/// A Deployment whose pods have the label `app` with its name.
pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": pod_spec() },
        },
    })
}

/// A StatefulSet whose pods have the label `app` with its name.
pub(crate) fn stateful_set(name: &str, replicas: u32) -> Value {
    let mut set = deployment(name, replicas);
    set["kind"] = json!("StatefulSet");
    set["spec"]["serviceName"] = json!(name);
    set["spec"]["podManagementPolicy"] = json!("Parallel");
    set
}

/// A pod with the label `app`, which nobody else has made.
pub(crate) fn pod(name: &str, app: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": app } },
        "spec": pod_spec(),
    })
}

fn pod_spec() -> Value {
    json!({ "containers": [{ "name": "main", "image": "example.com/main:1" }] })
}

/// A Service for it.
pub(crate) fn service(name: &str, app: &str, port: u16) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": name },
        "spec": { "selector": { "app": app }, "ports": [{ "name": "http", "port": port, "targetPort": port }] },
    })
}

/// An ElastiService for both, as people have them.
pub(crate) fn elasti(name: &str) -> Value {
    elasti_of(name, ("apps/v1", "deployments"))
}

/// The same for a target of another kind.
pub(crate) fn elasti_of(name: &str, (version, kind): (&str, &str)) -> Value {
    json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1",
        "kind": "ElastiService",
        "metadata": { "name": name },
        "spec": {
            "service": name,
            "minTargetReplicas": 1,
            "cooldownPeriod": 300,
            "scaleTargetRef": { "apiVersion": version, "kind": kind, "name": name },
        },
    })
}

/// A definition of something that can be scaled, with the paths of its scale subresource.
pub(crate) fn scalable(group: &str, plural: &str, kind: &str, scale: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": { "status": {}, "scale": scale },
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}

/// A definition of ElastiServices, without the rules of the real one.
pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "elastiservices.elasti.truefoundry.com" },
        "spec": {
            "group": "elasti.truefoundry.com",
            "scope": "Namespaced",
            "names": {
                "kind": "ElastiService",
                "listKind": "ElastiServiceList",
                "plural": "elastiservices",
                "singular": "elastiservice",
            },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    })
}
