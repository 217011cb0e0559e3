//! OpenAPI v3: the index and one document per group version.
//!
//! What kubectl reads from them: which parameters a patch takes (`fieldValidation`), how lists are merged
//! by a client-side apply, and the fields that `kubectl explain` prints. Schemas come from the same arena
//! that decoding uses. Descriptions are left out, for size. OpenAPI v2 is there and empty: kubectl asks it
//! about kinds that v3 does not have, and takes any failure for an answer.

mod paths;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::discovery::priority;
use crate::kinds::{self, Resource};
use crate::schema::{ListType, Node, NodeKind, Schema};

const TITLE: &str = "Kubernetes";
const VERSION: &str = "1.37";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// `/openapi/v3`.
///
/// Built-in documents never change within a release of this crate, so their hash is that of its version;
/// a custom group's document is hashed itself.
pub(crate) fn index(resources: &[Arc<Resource>]) -> Value {
    let mut paths = Map::new();
    for (group, version) in group_versions(resources) {
        let path = path(&group, &version);
        let mut of_version = resources.iter().filter(|r| r.group == group && r.version == version);
        let content = if of_version.any(|r| r.custom.is_some()) {
            document(resources, &group, &version).unwrap_or_default().to_string()
        } else {
            format!("{} {path}", env!("CARGO_PKG_VERSION"))
        };
        let url = format!("/openapi/v3/{path}?hash={}", hash(&content));
        paths.insert(path, json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

/// `/openapi/v2`, without paths and definitions.
pub(crate) fn v2() -> Value {
    json!({ "swagger": "2.0", "info": { "title": TITLE, "version": VERSION }, "paths": {} })
}

/// The same as a message: field 1 is `swagger`, field 2 `info` with `title` and `version`.
pub(crate) fn v2_protobuf() -> Vec<u8> {
    fn field(number: u8, value: &[u8]) -> Vec<u8> {
        // All lengths here fit one byte.
        [&[number << 3 | 2, value.len() as u8], value].concat()
    }
    let info = [field(1, TITLE.as_bytes()), field(2, VERSION.as_bytes())].concat();
    [field(1, b"2.0"), field(2, &info)].concat()
}

/// The document of one group version, without the `/openapi/v3` around it.
pub(crate) fn document(resources: &[Arc<Resource>], group: &str, version: &str) -> Option<Value> {
    let served: Vec<&Arc<Resource>> =
        resources.iter().filter(|r| r.group == group && r.version == version).collect();
    if served.is_empty() {
        return None;
    }
    let mut components =
        Components { done: BTreeMap::new(), waiting: Vec::new(), kinds: kinds_by_definition() };
    let mut all_paths = Map::new();
    for resource in served {
        components.resource(resource);
        paths::add(resource, &mut all_paths);
    }
    for kind in ["DeleteOptions", "Status"] {
        components.kind("", "v1", kind);
    }
    components.finish();
    components.done.insert(format!("{META}.Patch"), json!({ "type": "object" }));
    Some(json!({
        "openapi": "3.0.0",
        "info": { "title": TITLE, "version": VERSION },
        "paths": all_paths,
        "components": { "schemas": components.done },
    }))
}

/// `api/v1`, `apis/apps/v1`: where a group version's document is, below `/openapi/v3/`.
pub(crate) fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn group_versions(resources: &[Arc<Resource>]) -> Vec<(String, String)> {
    let set: BTreeSet<(&str, &str)> =
        resources.iter().map(|r| (r.group.as_str(), r.version.as_str())).collect();
    let mut list: Vec<_> = set.into_iter().map(|(g, v)| (g.to_owned(), v.to_owned())).collect();
    list.sort_by_key(|(group, version)| (group.clone(), priority(version)));
    list
}

fn hash(content: &str) -> String {
    Sha256::digest(content).iter().fold(String::new(), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02X}");
        out
    })
}

/// The component name of a resource's kind.
pub(crate) fn component(group: &str, version: &str, kind: &str) -> String {
    let known = kinds::kind(group, version, kind).and_then(|s| s.get().definition.clone());
    known.unwrap_or_else(|| {
        let mut parts: Vec<&str> = group.split('.').rev().filter(|p| !p.is_empty()).collect();
        parts.extend([version, kind]);
        parts.join(".")
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Group, version and kind of each definition that is a kind.
type Kinds = BTreeMap<String, Vec<Value>>;

fn kinds_by_definition() -> Kinds {
    let mut out = Kinds::new();
    for ((group, version, kind), schema) in kinds::kinds() {
        if let Some(name) = &schema.get().definition {
            let gvk = json!({ "group": group, "version": version, "kind": kind });
            out.entry(name.clone()).or_default().push(gvk);
        }
    }
    out
}

/// Component schemas in the making. Types refer to each other and to themselves, so they are taken from
/// a list of names, each once.
struct Components {
    done: BTreeMap<String, Value>,
    waiting: Vec<Schema>,
    kinds: Kinds,
}

impl Components {
    fn resource(&mut self, resource: &Resource) {
        if resource.custom.is_some() {
            self.custom(resource);
        } else {
            self.kind(&resource.group, &resource.version, &resource.kind);
            self.kind(&resource.group, &resource.version, &resource.list_kind);
        }
        for subresource in &resource.subresources {
            self.kind(&subresource.group, &subresource.version, &subresource.kind);
        }
    }

    fn kind(&mut self, group: &str, version: &str, kind: &str) {
        self.waiting.extend(kinds::kind(group, version, kind));
    }

    fn finish(&mut self) {
        while let Some(schema) = self.waiting.pop() {
            let Some(name) = schema.get().definition.clone() else { continue };
            if self.done.contains_key(&name) {
                continue;
            }
            self.done.insert(name.clone(), Value::Null);
            let mut body = self.body(&schema);
            if let (Some(kinds), Some(body)) = (self.kinds.get(&name), body.as_object_mut()) {
                body.insert("x-kubernetes-group-version-kind".into(), kinds.clone().into());
            }
            self.done.insert(name, body);
        }
    }

    /// A custom resource and its list. Its schema has no names, so it stands there whole: as its
    /// definition wrote it, or else as the server understands it.
    fn custom(&mut self, resource: &Resource) {
        let (group, version) = (&resource.group, &resource.version);
        let name = component(group, version, &resource.kind);
        let written = resource.custom.as_ref().map(|c| &c.open_api).filter(|schema| schema.is_object());
        let mut body = match (written, &resource.schema) {
            (Some(written), _) => written.clone(),
            (None, Some(schema)) => self.body(schema),
            (None, None) => json!({}),
        };
        body["type"] = "object".into();
        let properties = &mut body["properties"];
        if !properties.is_object() {
            *properties = json!({});
        }
        properties["apiVersion"] = json!({ "type": "string" });
        properties["kind"] = json!({ "type": "string" });
        properties["metadata"] = json!({ "allOf": [reference(&format!("{META}.ObjectMeta"))] });
        let gvk = |kind: &str| json!([{ "group": group, "version": version, "kind": kind }]);
        body["x-kubernetes-group-version-kind"] = gvk(&resource.kind);
        let list = json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "apiVersion": { "type": "string" },
                "kind": { "type": "string" },
                "metadata": reference(&format!("{META}.ListMeta")),
                "items": { "type": "array", "items": reference(&name) },
            },
            "x-kubernetes-group-version-kind": gvk(&resource.list_kind),
        });
        self.done.insert(component(group, version, &resource.list_kind), list);
        self.done.insert(name, body);
        for name in ["ObjectMeta", "ListMeta"] {
            self.waiting.extend(kinds::definition(&format!("{META}.{name}")));
        }
    }

    /// The schema of a place inside another schema.
    fn place(&mut self, schema: &Schema) -> Value {
        let node = schema.get();
        let Some(name) = &node.definition else { return self.body(schema) };
        self.waiting.extend(kinds::definition(name));
        let mut out = Map::new();
        extensions(node, &mut out);
        let by_value = node.go.as_ref().is_some_and(|go| !go.pointer) && node.kind == NodeKind::Object;
        if by_value {
            out.insert("default".into(), json!({}));
        }
        if out.is_empty() {
            return reference(name);
        }
        out.insert("allOf".into(), json!([reference(name)]));
        Value::Object(out)
    }

    fn body(&mut self, schema: &Schema) -> Value {
        let node = schema.get();
        let mut out = Map::new();
        let simple = match node.kind {
            NodeKind::Any => None,
            NodeKind::Object => Some("object"),
            NodeKind::Array => Some("array"),
            NodeKind::String => Some("string"),
            NodeKind::Integer => Some("integer"),
            NodeKind::Number => Some("number"),
            NodeKind::Boolean => Some("boolean"),
            NodeKind::IntOrString if node.go.is_some() => {
                out.insert("oneOf".into(), json!([{ "type": "integer" }, { "type": "string" }]));
                None
            }
            NodeKind::IntOrString => {
                out.insert("anyOf".into(), json!([{ "type": "integer" }, { "type": "string" }]));
                out.insert("x-kubernetes-int-or-string".into(), true.into());
                None
            }
            NodeKind::Quantity => {
                out.insert("oneOf".into(), json!([{ "type": "string" }, { "type": "number" }]));
                None
            }
        };
        if let Some(simple) = simple {
            out.insert("type".into(), simple.into());
        }
        if let Some(format) = &node.format {
            out.insert("format".into(), format.clone().into());
        }
        if let Some(default) = &node.default {
            out.insert("default".into(), default.clone());
        }
        if let Some(description) = &node.description {
            out.insert("description".into(), description.clone().into());
        }
        if !node.properties.is_empty() {
            let properties: Map<String, Value> = node
                .properties
                .iter()
                .map(|(name, &id)| (name.clone(), self.place(&schema.at(id))))
                .collect();
            out.insert("properties".into(), Value::Object(properties));
        }
        if let Some(id) = node.additional {
            out.insert("additionalProperties".into(), self.place(&schema.at(id)));
        }
        if let Some(id) = node.items {
            out.insert("items".into(), self.place(&schema.at(id)));
        }
        if !node.required.is_empty() {
            out.insert("required".into(), node.required.clone().into());
        }
        if node.go.is_none() {
            for (set, key) in [
                (node.nullable, "nullable"),
                (node.preserve_unknown, "x-kubernetes-preserve-unknown-fields"),
                (node.embedded_resource, "x-kubernetes-embedded-resource"),
            ] {
                if set {
                    out.insert(key.into(), true.into());
                }
            }
        }
        extensions(node, &mut out);
        Value::Object(out)
    }
}

/// How a place is merged.
fn extensions(node: &Node, out: &mut Map<String, Value>) {
    match &node.list {
        ListType::Atomic => {}
        ListType::Set => {
            out.insert("x-kubernetes-list-type".into(), "set".into());
        }
        ListType::Map(keys) => {
            out.insert("x-kubernetes-list-type".into(), "map".into());
            out.insert("x-kubernetes-list-map-keys".into(), keys.clone().into());
        }
    }
    if let Some(key) = &node.merge_key {
        out.insert("x-kubernetes-patch-merge-key".into(), key.clone().into());
    }
    let strategy = match (node.merge, node.retain_keys) {
        (true, true) => "merge,retainKeys",
        (true, false) => "merge",
        (false, true) => "retainKeys",
        (false, false) => "",
    };
    if !strategy.is_empty() {
        out.insert("x-kubernetes-patch-strategy".into(), strategy.into());
    }
    if node.atomic_map {
        out.insert("x-kubernetes-map-type".into(), "atomic".into());
    }
}
