//! Objects that scenarios send.

use serde_json::{Value, json};

pub(crate) fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "key": "value" } })
}

pub(crate) fn labelled(name: &str, labels: Value) -> Value {
    let mut object = config_map(name);
    object["metadata"]["labels"] = labels;
    object
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": { "containers": [{ "name": "main", "image": "nginx:1" }] },
    })
}

pub(crate) fn pod_on(name: &str, node: &str) -> Value {
    let mut object = pod(name);
    object["spec"]["nodeName"] = node.into();
    object
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name },
        "spec": { "selector": { "matchLabels": { "app": name } }, "template": template(name) },
    })
}

pub(crate) fn template(app: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": app } },
        "spec": { "containers": [{ "name": "main", "image": "nginx:1" }] },
    })
}

pub(crate) fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": name },
        "spec": { "selector": { "app": name }, "ports": [{ "port": 80 }] },
    })
}
