//! From a definition to what is served: one [`Resource`] per served version, with its schema.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::json_path::JsonPath;
use super::pattern::Pattern;
use super::{
    CustomResource, PrinterColumn, Rules, ScalePaths, SelectableField, flag, formats, items, meta, present,
    strings, text,
};
use crate::kinds::{Resource, Subresource};
use crate::schema::{ListType, Node, NodeId, NodeKind, Schema, SchemaSet};

const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
/// What may still be done to the objects of a definition that is being deleted.
const VERBS_WHILE_TERMINATING: [&str; 5] = ["delete", "deletecollection", "get", "list", "watch"];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// The resources that an accepted definition serves, in the order of its versions.
///
/// Names are those that were accepted (`status.acceptedNames`), or the wanted ones while there is no
/// status yet. Whether the definition may be served at all is [`super::is_served`]'s to say.
pub(crate) fn resources(crd: &Value) -> Result<Vec<Resource>, String> {
    let spec = &crd["spec"];
    let accepted = &crd["status"]["acceptedNames"];
    let names = if text(accepted, "plural").is_empty() { &spec["names"] } else { accepted };
    let versions = items(spec, "versions");
    let storage = versions.iter().find(|v| flag(v, "storage")).ok_or("no storage version")?;
    versions
        .iter()
        .filter(|version| flag(version, "served"))
        .map(|version| resource(crd, names, version, text(storage, "name")))
        .collect()
}

/// Conversion between versions of one custom resource: strategy `None` only renames the version.
pub(crate) fn convert(value: &mut Value, to: &Resource) {
    if let Some(object) = value.as_object_mut() {
        object.insert("apiVersion".to_owned(), to.api_version().into());
    }
}

fn resource(crd: &Value, names: &Value, version: &Value, storage: &str) -> Result<Resource, String> {
    let spec = &crd["spec"];
    for required in ["plural", "singular", "kind", "listKind"] {
        if text(names, required).is_empty() {
            return Err(format!("the definition has no accepted {required} name"));
        }
    }
    let (group, name) = (text(spec, "group"), text(version, "name"));
    let open_api = version["schema"]["openAPIV3Schema"].clone();
    let custom = custom_resource(crd, version, open_api)?;
    let owned = |verbs: &[&str]| verbs.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
    let mut subresources = Vec::new();
    if custom.status {
        subresources.push(Subresource {
            name: "status".to_owned(),
            group: group.to_owned(),
            version: name.to_owned(),
            kind: text(names, "kind").to_owned(),
            verbs: owned(&SUBRESOURCE_VERBS),
        });
    }
    if custom.scale.is_some() {
        subresources.push(Subresource {
            name: "scale".to_owned(),
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            kind: "Scale".to_owned(),
            verbs: owned(&SUBRESOURCE_VERBS),
        });
    }
    Ok(Resource {
        group: group.to_owned(),
        version: name.to_owned(),
        kind: text(names, "kind").to_owned(),
        plural: text(names, "plural").to_owned(),
        singular: text(names, "singular").to_owned(),
        short_names: strings(names, "shortNames"),
        categories: strings(names, "categories"),
        namespaced: text(spec, "scope") == "Namespaced",
        list_kind: text(names, "listKind").to_owned(),
        verbs: if super::is_terminating(crd) { owned(&VERBS_WHILE_TERMINATING) } else { owned(&VERBS) },
        subresources,
        schema: Some(root_schema(&custom.open_api)),
        storage_version: storage.to_owned(),
        custom: Some(Arc::new(custom)),
    })
}

fn custom_resource(crd: &Value, version: &Value, open_api: Value) -> Result<CustomResource, String> {
    let subresources = &version["subresources"];
    let scale = present(subresources, "scale").map(|scale| ScalePaths {
        spec_replicas: text(scale, "specReplicasPath").to_owned(),
        status_replicas: text(scale, "statusReplicasPath").to_owned(),
        label_selector: Some(text(scale, "labelSelectorPath").to_owned()).filter(|path| !path.is_empty()),
    });
    let mut selectable_fields = Vec::new();
    for field in items(version, "selectableFields") {
        let path = text(field, "jsonPath");
        let name = path.strip_prefix('.').unwrap_or(path).to_owned();
        selectable_fields.push(SelectableField { name, json_path: JsonPath::parse(path)? });
    }
    Ok(CustomResource {
        status: present(subresources, "status").is_some(),
        scale,
        columns: printer_columns(version),
        selectable_fields,
        warnings: deprecation(&crd["spec"], version),
        open_api,
    })
}

/// Columns, as the real server falls back: age where none is given, none where one cannot be read.
pub(crate) fn printer_columns(version: &Value) -> Vec<PrinterColumn> {
    let columns = items(version, "additionalPrinterColumns");
    if columns.is_empty() {
        return age_column().into_iter().collect();
    }
    let parsed: Result<Vec<_>, String> = columns
        .iter()
        .map(|column| {
            let path = text(column, "jsonPath");
            let described = text(column, "description");
            Ok(PrinterColumn {
                name: text(column, "name").to_owned(),
                kind: text(column, "type").to_owned(),
                format: text(column, "format").to_owned(),
                description: if described.is_empty() {
                    format!("Custom resource definition column (in JSONPath format): {path}")
                } else {
                    described.to_owned()
                },
                priority: column.get("priority").and_then(Value::as_i64).unwrap_or_default(),
                json_path: JsonPath::parse(path)?,
            })
        })
        .collect();
    parsed.unwrap_or_default()
}

fn age_column() -> Option<PrinterColumn> {
    Some(PrinterColumn {
        name: "Age".to_owned(),
        kind: "date".to_owned(),
        format: String::new(),
        description: meta::CREATION_TIMESTAMP_DOC.to_owned(),
        priority: 0,
        json_path: JsonPath::parse(".metadata.creationTimestamp").ok()?,
    })
}

fn deprecation(spec: &Value, version: &Value) -> Vec<String> {
    if !flag(version, "deprecated") {
        return Vec::new();
    }
    if let Some(given) = version.get("deprecationWarning").and_then(Value::as_str) {
        return vec![given.to_owned()];
    }
    let (group, kind) = (text(spec, "group"), text(&spec["names"], "kind"));
    let own = text(version, "name");
    let mut warning = format!("{group}/{own} {kind} is deprecated");
    let better = items(spec, "versions")
        .iter()
        .filter(|v| flag(v, "served") && !flag(v, "deprecated"))
        .map(|v| text(v, "name"))
        .filter(|name| compare_versions(own, name) == Ordering::Less)
        .max_by(|a, b| compare_versions(a, b));
    if let Some(better) = better {
        warning.push_str(&format!("; use {group}/{better} {kind}"));
    }
    vec![warning]
}

/// How Kubernetes orders versions: `v2` over `v1` over `v2beta1` over `v1alpha1` over anything else.
pub(super) fn compare_versions(a: &str, b: &str) -> Ordering {
    match (version_parts(a), version_parts(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        // Among the rest, the one that sorts first is preferred.
        (None, None) => b.cmp(a),
    }
}

/// Stability, major, minor of `v1`, `v1beta2`, `v1alpha3`.
fn version_parts(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(digits);
    let number = |s: &str| {
        let plain = !s.is_empty() && !s.starts_with('0') && s.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| s.parse::<u64>().ok()).flatten()
    };
    let major = number(major)?;
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    if let Some(minor) = rest.strip_prefix("beta") {
        return Some((1, major, number(minor)?));
    }
    Some((0, major, number(rest.strip_prefix("alpha")?)?))
}

/// The schema of whole objects: the declared one and the metadata that every object has.
pub(super) fn root_schema(open_api: &Value) -> Schema {
    let mut builder = Builder::default();
    let root = builder.node(open_api, &Context { resource: true, ..Context::default() });
    Schema { set: Arc::new(SchemaSet { nodes: builder.nodes }), node: root }
}

/// The schema of one place, for values that are not whole objects (defaults).
///
/// The real server converts schemas of defaults another way, which loses the types of
/// `x-kubernetes-int-or-string` and keeps every format; what a default may be depends on it.
pub(super) fn default_schema(open_api: &Value) -> Schema {
    let mut builder = Builder::default();
    let context = Context { untyped_int_or_string: true, ..Context::default() };
    let root = builder.node(open_api, &context);
    Schema { set: Arc::new(SchemaSet { nodes: builder.nodes }), node: root }
}

#[derive(Default, Clone)]
struct Context {
    /// A whole object: metadata is implied.
    resource: bool,
    untyped_int_or_string: bool,
}

#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
    object_meta: Option<NodeId>,
}

impl Builder {
    fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        (self.nodes.len() - 1) as NodeId
    }

    fn node(&mut self, schema: &Value, context: &Context) -> NodeId {
        let inner = Context { resource: false, ..context.clone() };
        let embedded = flag(schema, "x-kubernetes-embedded-resource");
        let mut properties = BTreeMap::new();
        if let Some(declared) = schema.get("properties").and_then(Value::as_object) {
            for (name, property) in declared {
                properties.insert(name.clone(), self.node(property, &inner));
            }
        }
        if context.resource || embedded {
            self.imply_metadata(&mut properties);
        }
        let additional = match schema.get("additionalProperties") {
            Some(Value::Bool(_)) => Some(self.add(Node { nullable: true, ..Node::default() })),
            Some(value @ Value::Object(_)) => Some(self.node(value, &inner)),
            _ => None,
        };
        let items_schema = schema.get("items").filter(|v| v.is_object()).map(|v| self.node(v, &inner));
        let rules = self.rules(schema, &inner);
        self.add(Node {
            kind: kind(schema, context.untyped_int_or_string),
            properties,
            items: items_schema,
            additional,
            list: list_type(schema),
            format: present(schema, "format").and_then(Value::as_str).map(str::to_owned),
            atomic_map: text(schema, "x-kubernetes-map-type") == "atomic",
            preserve_unknown: flag(schema, "x-kubernetes-preserve-unknown-fields"),
            embedded_resource: embedded,
            nullable: flag(schema, "nullable"),
            required: strings(schema, "required"),
            default: present(schema, "default").cloned(),
            rules: Some(Box::new(rules)),
            ..Node::default()
        })
    }

    /// Adds apiVersion, kind and metadata; what the definition says about their values stays.
    fn imply_metadata(&mut self, properties: &mut BTreeMap<String, NodeId>) {
        for name in ["apiVersion", "kind"] {
            let string = Node { kind: NodeKind::String, ..Node::default() };
            properties.entry(name.to_owned()).or_insert_with(|| {
                self.nodes.push(string);
                (self.nodes.len() - 1) as NodeId
            });
        }
        let shared = match self.object_meta {
            Some(id) => id,
            None => {
                let id = meta::object_meta(&mut self.nodes);
                self.object_meta = Some(id);
                id
            }
        };
        let Some(declared) = properties.insert("metadata".to_owned(), shared) else { return };
        let declared = self.nodes[declared as usize].clone();
        let mut merged = self.nodes[shared as usize].clone();
        merged.rules = declared.rules;
        merged.required = declared.required;
        merged.properties.extend(declared.properties);
        let merged = self.add(merged);
        properties.insert("metadata".to_owned(), merged);
    }

    fn rules(&mut self, schema: &Value, context: &Context) -> Rules {
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        let count = |key: &str| schema.get(key).and_then(Value::as_i64);
        let mut branches = |key: &str| -> Vec<NodeId> {
            items(schema, key).iter().map(|branch| self.node(branch, context)).collect()
        };
        let (all_of, any_of, one_of) = (branches("allOf"), branches("anyOf"), branches("oneOf"));
        let not = schema.get("not").filter(|v| v.is_object()).map(|v| self.node(v, context));
        Rules {
            format: checked_format(schema),
            one_of_values: items(schema, "enum").to_vec(),
            pattern: Some(text(schema, "pattern")).filter(|p| !p.is_empty()).map(Pattern::new),
            minimum: number("minimum"),
            exclusive_minimum: flag(schema, "exclusiveMinimum"),
            maximum: number("maximum"),
            exclusive_maximum: flag(schema, "exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag(schema, "uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            closed: schema.get("additionalProperties") == Some(&Value::Bool(false)),
            all_of,
            any_of,
            one_of,
            not,
            expressions: items(schema, "x-kubernetes-validations").to_vec(),
        }
    }
}

fn kind(schema: &Value, untyped_int_or_string: bool) -> NodeKind {
    if flag(schema, "x-kubernetes-int-or-string") {
        return if untyped_int_or_string { NodeKind::Any } else { NodeKind::IntOrString };
    }
    match text(schema, "type") {
        "object" => NodeKind::Object,
        "array" => NodeKind::Array,
        "string" => NodeKind::String,
        "integer" => NodeKind::Integer,
        "number" => NodeKind::Number,
        "boolean" => NodeKind::Boolean,
        _ => NodeKind::Any,
    }
}

fn list_type(schema: &Value) -> ListType {
    match text(schema, "x-kubernetes-list-type") {
        "set" => ListType::Set,
        "map" => ListType::Map(strings(schema, "x-kubernetes-list-map-keys")),
        _ => ListType::Atomic,
    }
}

/// The format, where the server checks it for this type.
fn checked_format(schema: &Value) -> Option<String> {
    let format = text(schema, "format");
    (!format.is_empty() && formats::is_checked(checked_type(schema), format)).then(|| format.to_owned())
}

/// The type that decides about formats: none for `x-kubernetes-int-or-string`, which has two.
fn checked_type(schema: &Value) -> &str {
    if flag(schema, "x-kubernetes-int-or-string") { "" } else { text(schema, "type") }
}
