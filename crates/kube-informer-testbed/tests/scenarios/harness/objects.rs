//! Objects that scenarios send.

use anyhow::Result;
use serde_json::{Value, json};

use super::Api;

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

/// Posts variants of an object: each sets one field to one value.
pub(crate) async fn variants(api: &Api, path: &str, base: &Value, changes: &[(&str, Value)]) -> Result<()> {
    for (pointer, value) in changes {
        let mut object = base.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let place = if parent.is_empty() { Some(&mut object) } else { object.pointer_mut(parent) };
        let place = place.unwrap_or_else(|| panic!("no {parent}"));
        match key.parse::<usize>() {
            Ok(number) if place.is_array() => place[number] = value.clone(),
            _ => place[key] = value.clone(),
        }
        let before = format!("{path}?dryRun=All&fieldManager={}", key.to_lowercase());
        api.post(&before, &object).await?;
    }
    Ok(())
}
