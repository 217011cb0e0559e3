//! ObjectMeta of custom objects: its shape as nodes, and reading it as strictly as Go does.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::schema::{self, ListType, Node, NodeId, NodeKind};

/// What the age column says of itself.
pub(super) const CREATION_TIMESTAMP_DOC: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The Go types that ObjectMeta is made of.
#[derive(Clone, Copy)]
enum GoType {
    String,
    Bool,
    Int64,
    Time,
    /// `FieldsV1`: any JSON.
    Raw,
    StringMap,
    Strings,
    OwnerReferences,
    ManagedFields,
}

use GoType::{Bool, Int64, ManagedFields, OwnerReferences, Raw, StringMap, Strings, Time};

const OBJECT_META: [(&str, GoType); 15] = [
    ("annotations", StringMap),
    ("creationTimestamp", Time),
    ("deletionGracePeriodSeconds", Int64),
    ("deletionTimestamp", Time),
    ("finalizers", Strings),
    ("generateName", GoType::String),
    ("generation", Int64),
    ("labels", StringMap),
    ("managedFields", ManagedFields),
    ("name", GoType::String),
    ("namespace", GoType::String),
    ("ownerReferences", OwnerReferences),
    ("resourceVersion", GoType::String),
    ("selfLink", GoType::String),
    ("uid", GoType::String),
];

const OWNER_REFERENCE: [(&str, GoType); 6] = [
    ("apiVersion", GoType::String),
    ("blockOwnerDeletion", Bool),
    ("controller", Bool),
    ("kind", GoType::String),
    ("name", GoType::String),
    ("uid", GoType::String),
];

const MANAGED_FIELDS_ENTRY: [(&str, GoType); 7] = [
    ("apiVersion", GoType::String),
    ("fieldsType", GoType::String),
    ("fieldsV1", Raw),
    ("manager", GoType::String),
    ("operation", GoType::String),
    ("subresource", GoType::String),
    ("time", Time),
];

/// Adds the nodes of ObjectMeta and returns their root.
pub(super) fn object_meta(nodes: &mut Vec<Node>) -> NodeId {
    structure(nodes, &OBJECT_META)
}

fn structure(nodes: &mut Vec<Node>, fields: &[(&str, GoType)]) -> NodeId {
    let properties: BTreeMap<String, NodeId> =
        fields.iter().map(|(name, kind)| ((*name).to_owned(), field_node(nodes, *kind))).collect();
    push(nodes, Node { kind: NodeKind::Object, properties, ..Node::default() })
}

fn push(nodes: &mut Vec<Node>, node: Node) -> NodeId {
    nodes.push(node);
    (nodes.len() - 1) as NodeId
}

fn field_node(nodes: &mut Vec<Node>, kind: GoType) -> NodeId {
    let named = |kind, format: &str| Node { kind, format: Some(format.to_owned()), ..Node::default() };
    let node = match kind {
        GoType::String => named(NodeKind::String, "string"),
        Bool => named(NodeKind::Boolean, "bool"),
        Int64 => named(NodeKind::Integer, "int64"),
        Time => Node { nullable: true, ..named(NodeKind::String, "date-time") },
        Raw => Node { kind: NodeKind::Object, preserve_unknown: true, ..Node::default() },
        StringMap => {
            let value = field_node(nodes, GoType::String);
            Node { kind: NodeKind::Object, additional: Some(value), ..Node::default() }
        }
        Strings => {
            let item = field_node(nodes, GoType::String);
            Node { kind: NodeKind::Array, items: Some(item), list: ListType::Set, ..Node::default() }
        }
        OwnerReferences => {
            let item = structure(nodes, &OWNER_REFERENCE);
            let list = ListType::Map(vec!["uid".to_owned()]);
            let merge_key = Some("uid".to_owned());
            Node { kind: NodeKind::Array, items: Some(item), list, merge_key, merge: true, ..Node::default() }
        }
        ManagedFields => {
            let item = structure(nodes, &MANAGED_FIELDS_ENTRY);
            Node { kind: NodeKind::Array, items: Some(item), ..Node::default() }
        }
    };
    push(nodes, node)
}

/// Reads metadata as Go reads ObjectMeta and writes it back: unknown fields are dropped (their paths,
/// relative to the metadata, go to `unknown`), nulls and empty values disappear, a wrong type is an
/// error in the words of Go's decoder.
pub(super) fn read_object_meta(metadata: &Value, unknown: &mut Vec<String>) -> Result<Value, String> {
    match metadata {
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Object(fields) => {
            read_struct(fields, "ObjectMeta", "", &OBJECT_META, "", unknown).map(Value::Object)
        }
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
            schema::type_name(other)
        )),
    }
}

/// `prefix` is the dotted way to this struct inside ObjectMeta, as Go's errors show it.
fn read_struct(
    fields: &Map<String, Value>,
    type_name: &str,
    prefix: &str,
    known: &[(&str, GoType)],
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<Map<String, Value>, String> {
    let mut out = Map::new();
    for (name, value) in fields {
        let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let Some((_, kind)) = known.iter().find(|(known, _)| known == name) else {
            unknown.push(at);
            continue;
        };
        let place = Place { type_name, field: format!("{prefix}{name}") };
        if let Some(read) = read_field(value, *kind, &place, &at, unknown)? {
            out.insert(name.clone(), read);
        }
    }
    Ok(out)
}

/// Where a decode error says that it happened.
struct Place<'a> {
    type_name: &'a str,
    field: String,
}

impl Place<'_> {
    fn error(&self, value: &Value, wanted: &str) -> String {
        let Self { type_name, field } = self;
        format!(
            "json: cannot unmarshal {} into Go struct field {type_name}.{field} of type {wanted}",
            schema::type_name(value)
        )
    }
}

fn read_field(
    value: &Value,
    kind: GoType,
    place: &Place<'_>,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<Option<Value>, String> {
    Ok(match (kind, value) {
        (_, Value::Null) => None,
        (GoType::String, Value::String(text)) => (!text.is_empty()).then(|| value.clone()),
        (GoType::String, other) => return Err(place.error(other, "string")),
        (Bool, Value::Bool(_)) => Some(value.clone()),
        (Bool, other) => return Err(place.error(other, "bool")),
        (Int64, Value::Number(number)) => match number.as_i64() {
            Some(0) => None,
            Some(_) => Some(value.clone()),
            None => {
                let Place { type_name, field } = place;
                return Err(format!(
                    "json: cannot unmarshal number {number} into Go struct field {type_name}.{field} of type int64"
                ));
            }
        },
        (Int64, other) => return Err(place.error(other, "int64")),
        (Time, Value::String(text)) => Some(read_time(text)?),
        (Time, other) => return Err(place.error(other, "string")),
        (Raw, value) => Some(value.clone()),
        (StringMap, Value::Object(entries)) => {
            let mut out = Map::new();
            for (key, entry) in entries {
                let entry = match entry {
                    Value::Null => Value::String(String::new()),
                    Value::String(_) => entry.clone(),
                    other => return Err(place.error(other, "string")),
                };
                out.insert(key.clone(), entry);
            }
            (!out.is_empty()).then_some(Value::Object(out))
        }
        (StringMap, other) => return Err(place.error(other, "map[string]string")),
        (Strings, Value::Array(list)) => {
            let mut out = Vec::with_capacity(list.len());
            for item in list {
                match item {
                    Value::Null => out.push(Value::String(String::new())),
                    Value::String(_) => out.push(item.clone()),
                    other => return Err(place.error(other, "string")),
                }
            }
            (!out.is_empty()).then_some(Value::Array(out))
        }
        (Strings, other) => return Err(place.error(other, "[]string")),
        (OwnerReferences, value) => {
            read_list(value, place, path, unknown, "OwnerReference", &OWNER_REFERENCE)?.map(|mut list| {
                // These four are written even when empty.
                for reference in list.iter_mut().filter_map(Value::as_object_mut) {
                    for always in ["apiVersion", "kind", "name", "uid"] {
                        reference.entry(always).or_insert_with(|| Value::String(String::new()));
                    }
                }
                Value::Array(list)
            })
        }
        (ManagedFields, value) => {
            read_list(value, place, path, unknown, "ManagedFieldsEntry", &MANAGED_FIELDS_ENTRY)?
                .map(Value::Array)
        }
    })
}

fn read_list(
    value: &Value,
    place: &Place<'_>,
    path: &str,
    unknown: &mut Vec<String>,
    type_name: &str,
    known: &[(&str, GoType)],
) -> Result<Option<Vec<Value>>, String> {
    let Value::Array(list) = value else {
        return Err(place.error(value, &format!("[]v1.{type_name}")));
    };
    let mut out = Vec::with_capacity(list.len());
    for (index, item) in list.iter().enumerate() {
        let at = format!("{path}[{index}]");
        match item {
            Value::Null => out.push(Value::Object(Map::new())),
            Value::Object(fields) => {
                let prefix = format!("{}.", place.field);
                let read = read_struct(fields, type_name, &prefix, known, &at, unknown)?;
                out.push(Value::Object(read));
            }
            other => return Err(place.error(other, &format!("v1.{type_name}"))),
        }
    }
    Ok((!out.is_empty()).then_some(out))
}

/// Times are kept to the second, in UTC.
fn read_time(text: &str) -> Result<Value, String> {
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => Ok(Value::String(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())),
        Err(_) => {
            let (rest, wanted) = unparsed_time(text);
            Err(format!(
                "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {rest:?} as {wanted:?}"
            ))
        }
    }
}

/// Which part of a time Go stumbles over, and what it expected there.
fn unparsed_time(text: &str) -> (&str, &'static str) {
    let parts = [("2006", 4), ("-", 0), ("01", 2), ("-", 0), ("02", 2), ("T", 0), ("15", 2), (":", 0)];
    let mut rest = text;
    for (wanted, digits) in parts.iter().chain(&[("04", 2), (":", 0), ("05", 2), ("Z07:00", 0)]) {
        let length = if *digits == 0 { 1 } else { *digits };
        let fits = match rest.get(..length) {
            Some(part) if *digits > 0 => part.bytes().all(|b| b.is_ascii_digit()),
            Some(part) => *wanted == part,
            None => false,
        };
        if !fits {
            return (rest, wanted);
        }
        rest = &rest[length..];
    }
    (rest, "Z07:00")
}
