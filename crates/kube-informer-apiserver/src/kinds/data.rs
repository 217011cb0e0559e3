//! Reads the committed data of the built-in kinds (written by `cargo xtask kinds`).
//!
//! The data has one row per Go type. A node of the arena is a *place*: a type together with what the
//! struct field around it says (pointer, `omitempty`, merge key, list type). Equal places share a node,
//! so node `i` is row `i` as such, and the places follow.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{Resource, Subresource};
use crate::schema::{Codec, Go, ListType, Node, NodeId, NodeKind, Schema, SchemaSet};

static PACKED: &[u8] = include_bytes!("../../data/kinds.json.zz");

/// Everything that is built in.
#[derive(Debug)]
pub(super) struct Builtin {
    pub(super) resources: Vec<Arc<Resource>>,
    /// `(group, version, kind)` to its schema.
    pub(super) kinds: BTreeMap<(String, String, String), Schema>,
    /// Definition name to schema.
    pub(super) definitions: BTreeMap<String, Schema>,
    /// `(group, plural)` to the hash that discovery shows.
    pub(super) hashes: BTreeMap<(String, String), String>,
}

#[derive(Deserialize)]
struct Document {
    groups: Vec<GroupRow>,
    types: Vec<TypeRow>,
}

#[derive(Deserialize)]
struct GroupRow {
    group: String,
    version: String,
    resources: Vec<ResourceRow>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ResourceRow {
    name: String,
    singular_name: String,
    kind: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    verbs: Vec<String>,
    namespaced: bool,
    storage_version_hash: String,
    subresources: Vec<SubresourceRow>,
}

#[derive(Deserialize)]
struct SubresourceRow {
    name: String,
    #[serde(default)]
    group: String,
    #[serde(default)]
    version: String,
    kind: String,
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct TypeRow {
    name: String,
    go: String,
    #[serde(default)]
    custom: bool,
    #[serde(default)]
    atomic: bool,
    #[serde(default)]
    required: Vec<String>,
    #[serde(default)]
    fields: Vec<FieldRow>,
    #[serde(default)]
    kinds: Vec<(String, String, String)>,
}

#[derive(Deserialize)]
struct FieldRow {
    n: String,
    t: Value,
    /// The number in protobuf, or the way to it through embedded structs.
    #[serde(default)]
    p: Value,
    /// 1 pointer, 2 omitempty, 4 omitzero.
    #[serde(default = "omit_empty")]
    o: u8,
    #[serde(default)]
    via: String,
    key: Option<String>,
    #[serde(default)]
    patch: String,
    #[serde(default)]
    list: String,
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    map: String,
    d: Option<Value>,
}

/// The most common field.
fn omit_empty() -> u8 {
    2
}

/// Unpacks and links the data. The data is part of the program, so a fault in it is a bug that every
/// test meets, not an error that a caller could handle.
pub(super) fn load() -> Builtin {
    let mut text = String::new();
    flate2::read::ZlibDecoder::new(PACKED)
        .read_to_string(&mut text)
        .expect("the committed data of the built-in kinds unpacks");
    let document: Document =
        serde_json::from_str(&text).expect("the committed data of the built-in kinds parses");
    let mut arena = Arena { types: &document.types, nodes: Vec::new(), places: HashMap::new() };
    arena.build();
    let set = Arc::new(SchemaSet { nodes: arena.nodes });
    let schema = |index: usize| Schema { set: Arc::clone(&set), node: index as NodeId };
    let mut kinds = BTreeMap::new();
    let mut definitions = BTreeMap::new();
    for (index, row) in document.types.iter().enumerate() {
        definitions.insert(row.name.clone(), schema(index));
        for kind in &row.kinds {
            kinds.insert(kind.clone(), schema(index));
        }
    }
    let mut resources = Vec::new();
    let mut hashes = BTreeMap::new();
    for group in document.groups {
        for row in group.resources {
            if !row.storage_version_hash.is_empty() {
                let key = (group.group.clone(), row.name.clone());
                hashes.insert(key, row.storage_version_hash.clone());
            }
            resources.push(Arc::new(resource(&group.group, &group.version, row, &kinds)));
        }
    }
    Builtin { resources, kinds, definitions, hashes }
}

fn resource(
    group: &str,
    version: &str,
    row: ResourceRow,
    kinds: &BTreeMap<(String, String, String), Schema>,
) -> Resource {
    let key = (group.to_owned(), version.to_owned(), row.kind.clone());
    let subresources = row.subresources.into_iter().map(|s| {
        let own = s.version.is_empty();
        Subresource {
            name: s.name,
            group: if own { group.to_owned() } else { s.group },
            version: if own { version.to_owned() } else { s.version },
            kind: s.kind,
            verbs: s.verbs,
        }
    });
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        list_kind: format!("{}List", row.kind),
        schema: kinds.get(&key).cloned(),
        kind: row.kind,
        plural: row.name,
        singular: row.singular_name,
        short_names: row.short_names,
        categories: row.categories,
        namespaced: row.namespaced,
        verbs: row.verbs,
        subresources: subresources.collect(),
        storage_version: version.to_owned(),
        custom: None,
    }
}

struct Arena<'a> {
    types: &'a [TypeRow],
    nodes: Vec<Node>,
    /// What makes a place, as text, to its node.
    places: HashMap<String, NodeId>,
}

impl Arena<'_> {
    fn build(&mut self) {
        let types = self.types;
        self.nodes = types.iter().map(|row| self.bare(row)).collect();
        // Places that are a type with something on top: filled in once every type has its fields.
        let mut wrapped: Vec<(NodeId, usize, &FieldRow)> = Vec::new();
        for (index, row) in types.iter().enumerate() {
            for field in &row.fields {
                let id = self.field(field, &mut wrapped);
                self.nodes[index].properties.insert(field.n.clone(), id);
                if let Some(way) = wire_numbers(&field.p) {
                    self.nodes[index].wire.push((way, field.n.clone()));
                }
            }
        }
        for (id, row, field) in wrapped {
            let mut node = self.nodes[row].clone();
            decorate(&mut node, field);
            self.nodes[id as usize] = node;
        }
    }

    /// A type as such, without its fields.
    fn bare(&self, row: &TypeRow) -> Node {
        let mut node = Node {
            kind: NodeKind::Object,
            atomic_map: row.atomic,
            required: row.required.clone(),
            definition: Some(row.name.clone()),
            ..Node::default()
        };
        let mut go = Go { name: row.go.clone(), ..Go::default() };
        if row.custom {
            let short = row.name.rsplit('.').next().unwrap_or_default();
            let (kind, codec, format) = match short {
                "Time" => (NodeKind::String, Codec::Time, Some("date-time")),
                "MicroTime" => (NodeKind::String, Codec::MicroTime, Some("date-time")),
                "Quantity" => (NodeKind::Quantity, Codec::Quantity, None),
                "IntOrString" => (NodeKind::IntOrString, Codec::IntOrString, Some("int-or-string")),
                "JSONSchemaPropsOrBool" => (NodeKind::Any, Codec::SchemaOrBool, None),
                "JSONSchemaPropsOrArray" => (NodeKind::Any, Codec::SchemaOrArray, None),
                "JSONSchemaPropsOrStringArray" => (NodeKind::Any, Codec::SchemaOrStrings, None),
                "RawExtension" | "FieldsV1" => (NodeKind::Object, Codec::Raw, None),
                _ => (NodeKind::Any, Codec::Raw, None),
            };
            (node.kind, go.codec, node.format) = (kind, codec, format.map(str::to_owned));
            node.preserve_unknown = go.codec == Codec::Raw;
            if row.name.contains("JSONSchemaPropsOr") {
                let inner = self.types.iter().position(|t| t.go == "v1.JSONSchemaProps");
                go.inner = inner.map(|i| i as NodeId);
            }
        }
        node.go = Some(Arc::new(go));
        node
    }

    fn field<'f>(&mut self, field: &'f FieldRow, wrapped: &mut Vec<(NodeId, usize, &'f FieldRow)>) -> NodeId {
        let FieldRow { n: _, p: _, t, o, via, key, patch, list, keys, map, d } = field;
        let place = format!("{t} {o} {via} {key:?} {patch} {list} {keys:?} {map} {d:?}");
        if let Some(&id) = self.places.get(&place) {
            return id;
        }
        let id = if let Some(row) = t.as_u64() {
            let id = self.push(Node::default());
            wrapped.push((id, row as usize, field));
            id
        } else {
            let mut node = self.unnamed(t);
            decorate(&mut node, field);
            self.push(node)
        };
        self.places.insert(place, id);
        id
    }

    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        (self.nodes.len() - 1) as NodeId
    }

    /// An element of a list or a map.
    fn element(&mut self, t: &Value) -> NodeId {
        if let Some(row) = t.as_u64() {
            return row as NodeId;
        }
        let place = t.to_string();
        if let Some(&id) = self.places.get(&place) {
            return id;
        }
        let node = self.unnamed(t);
        let id = self.push(node);
        self.places.insert(place, id);
        id
    }

    /// A scalar, a list or a map.
    fn unnamed(&mut self, t: &Value) -> Node {
        let mut node = Node::default();
        let mut go = Go::default();
        match t {
            Value::Array(parts) => {
                let element = parts.get(1).map(|e| self.element(e));
                let inner = element.and_then(|id| self.nodes[id as usize].go.as_ref());
                let inner = inner.map(|go| go.name.as_str()).unwrap_or_default();
                if parts.first().is_some_and(|kind| kind == "list") {
                    go.name = format!("[]{inner}");
                    node.kind = NodeKind::Array;
                    node.items = element;
                } else {
                    go.name = format!("map[string]{inner}");
                    node.kind = NodeKind::Object;
                    node.additional = element;
                }
                if let Some(name) = parts.get(2).and_then(Value::as_str) {
                    go.name = name.to_owned();
                }
                go.wrapped = parts.last() == Some(&Value::Bool(true));
            }
            other => {
                let text = other.as_str().unwrap_or_default();
                let (kind, name) = text.split_once(':').unwrap_or((text, text));
                go.name = name.to_owned();
                let (shape, codec, format) = match kind {
                    "string" => (NodeKind::String, Codec::Plain, None),
                    "bool" => (NodeKind::Boolean, Codec::Plain, None),
                    "float64" => (NodeKind::Number, Codec::Plain, Some("double")),
                    "int64" => (NodeKind::Integer, Codec::Plain, Some("int64")),
                    "bytes" => (NodeKind::String, Codec::Bytes, Some("byte")),
                    "any" => (NodeKind::Any, Codec::Raw, None),
                    _ => (NodeKind::Integer, Codec::Plain, Some("int32")),
                };
                (node.kind, go.codec, node.format) = (shape, codec, format.map(str::to_owned));
                if kind == "bytes" && name == kind {
                    go.name = "[]uint8".to_owned();
                }
            }
        }
        node.go = Some(Arc::new(go));
        node
    }
}

fn wire_numbers(numbers: &Value) -> Option<Vec<u32>> {
    let one = |n: &Value| n.as_u64().and_then(|n| u32::try_from(n).ok());
    match numbers {
        Value::Array(way) => way.iter().map(one).collect(),
        number => one(number).map(|n| vec![n]),
    }
}

/// Puts on a node what the field around it says.
fn decorate(node: &mut Node, field: &FieldRow) {
    node.merge_key.clone_from(&field.key);
    node.merge = field.patch.split(',').any(|s| s == "merge");
    node.retain_keys = field.patch.split(',').any(|s| s == "retainKeys");
    node.list = match field.list.as_str() {
        "map" => ListType::Map(field.keys.clone()),
        "set" => ListType::Set,
        _ => ListType::Atomic,
    };
    match field.map.as_str() {
        "atomic" => node.atomic_map = true,
        "granular" => node.atomic_map = false,
        _ => {}
    }
    node.default.clone_from(&field.d);
    if let Some(go) = &mut node.go {
        let go = Arc::make_mut(go);
        go.pointer = field.o & 1 != 0;
        go.omit_empty = field.o & 2 != 0;
        go.omit_zero = field.o & 4 != 0;
        go.via.clone_from(&field.via);
    }
}
