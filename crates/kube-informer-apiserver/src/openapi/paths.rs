//! The operations of one resource.

use serde_json::{Map, Value, json};

use super::{META, component, reference};
use crate::kinds::{self, Resource};

/// Kinds of patches, by content type.
const PATCHES: [&str; 4] = [
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// Query parameters: name and type.
type Parameters = &'static [(&'static str, &'static str)];

const LIST: Parameters = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const WRITE: Parameters = &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const PATCH: Parameters =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"), ("force", "boolean")];
const DELETE: Parameters = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

struct Target<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// Adds the paths of a resource and its subresources.
pub(super) fn add(resource: &Resource, out: &mut Map<String, Value>) {
    let root = format!("/{}", super::path(&resource.group, &resource.version));
    let plural = &resource.plural;
    let inner = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let own = Target { group: &resource.group, version: &resource.version, kind: &resource.kind };
    let has = |verb: &str| resource.verbs.iter().any(|v| v == verb);

    let mut collection = Map::new();
    let list_kind = component(&resource.group, &resource.version, &resource.list_kind);
    let list = || operation("list", &own, LIST, None, &list_kind);
    if has("list") {
        collection.insert("get".into(), list());
    }
    let body = own.component();
    if has("create") {
        collection.insert("post".into(), operation("post", &own, WRITE, Some(json_body(&body)), &body));
    }
    if has("deletecollection") {
        let action = operation("deletecollection", &own, DELETE, Some(delete_body()), &status());
        collection.insert("delete".into(), action);
    }
    insert(out, format!("{root}{inner}/{plural}"), collection, resource.namespaced, false);
    if resource.namespaced && has("list") {
        let everywhere = Map::from_iter([("get".to_owned(), list())]);
        insert(out, format!("{root}/{plural}"), everywhere, false, false);
    }

    let item = format!("{root}{inner}/{plural}/{{name}}");
    insert(out, item.clone(), one(&own, &resource.verbs), resource.namespaced, true);
    for subresource in &resource.subresources {
        // Connections (exec, port-forward, proxy) have options, but no schema.
        if kinds::kind(&subresource.group, &subresource.version, &subresource.kind).is_none()
            && subresource.kind != resource.kind
        {
            continue;
        }
        let target =
            Target { group: &subresource.group, version: &subresource.version, kind: &subresource.kind };
        let mut actions = one(&target, &subresource.verbs);
        if subresource.verbs.iter().any(|v| v == "create") {
            let body = target.component();
            actions.insert("post".into(), operation("post", &target, WRITE, Some(json_body(&body)), &body));
        }
        insert(out, format!("{item}/{}", subresource.name), actions, resource.namespaced, true);
    }
}

/// Operations on one object.
fn one(target: &Target<'_>, verbs: &[String]) -> Map<String, Value> {
    let has = |verb: &str| verbs.iter().any(|v| v == verb);
    let body = target.component();
    let mut out = Map::new();
    if has("get") {
        out.insert("get".into(), operation("get", target, &[], None, &body));
    }
    if has("update") {
        out.insert("put".into(), operation("put", target, WRITE, Some(json_body(&body)), &body));
    }
    if has("patch") {
        let schema = json!({ "schema": reference(&format!("{META}.Patch")) });
        let content: Map<String, Value> =
            PATCHES.map(|t| (t.to_owned(), schema.clone())).into_iter().collect();
        let request = json!({ "content": content, "required": true });
        out.insert("patch".into(), operation("patch", target, PATCH, Some(request), &body));
    }
    if has("delete") {
        out.insert("delete".into(), operation("delete", target, DELETE, Some(delete_body()), &status()));
    }
    out
}

impl Target<'_> {
    fn component(&self) -> String {
        component(self.group, self.version, self.kind)
    }
}

fn status() -> String {
    format!("{META}.Status")
}

fn json_body(name: &str) -> Value {
    json!({ "content": { "*/*": { "schema": reference(name) } }, "required": true })
}

fn delete_body() -> Value {
    json!({ "content": { "*/*": { "schema": reference(&format!("{META}.DeleteOptions")) } } })
}

fn operation(
    action: &str,
    target: &Target<'_>,
    parameters: Parameters,
    request: Option<Value>,
    answer: &str,
) -> Value {
    let mut out = json!({
        "responses": {
            "200": {
                "description": "OK",
                "content": { "application/json": { "schema": reference(answer) } },
            },
            "401": { "description": "Unauthorized" },
        },
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": target.group, "version": target.version, "kind": target.kind,
        },
    });
    if !parameters.is_empty() {
        let list: Vec<Value> = parameters.iter().map(|(name, kind)| parameter(name, "query", kind)).collect();
        out["parameters"] = list.into();
    }
    if let Some(request) = request {
        out["requestBody"] = request;
    }
    out
}

fn parameter(name: &str, place: &str, kind: &str) -> Value {
    let mut out = json!({ "name": name, "in": place, "schema": { "type": kind, "uniqueItems": true } });
    if place == "path" {
        out["required"] = true.into();
    }
    out
}

fn insert(
    out: &mut Map<String, Value>,
    path: String,
    mut actions: Map<String, Value>,
    namespaced: bool,
    named: bool,
) {
    if actions.is_empty() {
        return;
    }
    let mut parameters = Vec::new();
    if named {
        parameters.push(parameter("name", "path", "string"));
    }
    if namespaced {
        parameters.push(parameter("namespace", "path", "string"));
    }
    if !parameters.is_empty() {
        actions.insert("parameters".into(), parameters.into());
    }
    out.insert(path, Value::Object(actions));
}
