//! Custom resources that scenarios define: `widgets` in a group of the scenario's own.

use anyhow::Result;
use serde_json::{Value, json};

use super::Api;

/// A definition of `widgets` in the scenario's group.
pub(crate) fn definition(api: &Api, schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("widgets.{}", api.group()) },
        "spec": {
            "group": api.group(), "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wd"] },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    })
}

pub(crate) fn simple() -> Value {
    json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "size": { "type": "integer", "default": 1, "minimum": 0 }, "color": { "type": "string" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "nested": { "type": "object", "default": {}, "properties": { "deep": { "type": "string", "default": "x" } } } } },
        "status": { "type": "object", "properties": { "phase": { "type": "string" }, "replicas": { "type": "integer" }, "selector": { "type": "string" } } } } })
}

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Posts a definition and waits until it is served.
pub(crate) async fn serve(api: &Api, definition: &Value) -> Result<()> {
    api.prepare(DEFINITIONS, definition).await?;
    settle(api, definition).await
}

pub(crate) async fn settle(api: &Api, definition: &Value) -> Result<()> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let established = |body: &Value| {
        let conditions = body["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True")
    };
    api.until(&format!("{DEFINITIONS}/{name}"), |answer| established(&answer.body)).await?;
    let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
    for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
        let served = version["served"] == true;
        let path = format!("/apis/{}/{}/{plural}", api.group(), version["name"].as_str().unwrap_or_default());
        api.until(&path, |answer| (answer.code == 200) == served).await?;
    }
    Ok(())
}

pub(crate) fn widget(api: &Api, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": format!("{}/v1", api.group()), "kind": "Widget", "metadata": { "name": name }, "spec": spec })
}

pub(crate) fn widgets(api: &Api) -> String {
    format!("{}/v1:widgets", api.group())
}
