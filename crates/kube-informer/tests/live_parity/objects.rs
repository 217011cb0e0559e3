//! The objects that are put on the server: a table of JSON documents, several for every kind that can be
//! created.
//!
//! What they hold is as odd as validation lets it be: empty, zero, null, negative, largest, Unicode of all
//! sorts. A `status` is written through the subresource. Names are given where the kind wants a certain one;
//! everything else is named after its resource. Of every kind there is one more object, whose metadata is full.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// Where namespaced objects go that do not say otherwise.
pub(crate) const NAMESPACE: &str = "parity";

/// Where quotas and limits go, so that they limit nothing.
pub(crate) const LIMITS: &str = "limits";

const TABLES: [&str; 6] = [
    include_str!("objects/core.json"),
    include_str!("objects/workloads.json"),
    include_str!("objects/cluster.json"),
    include_str!("objects/admission.json"),
    include_str!("objects/resource.json"),
    include_str!("objects/crds.json"),
];

/// A certificate, for kinds that check it.
const AUTHORITY: &str = include_str!("objects/authority.pem");

/// A request for a certificate.
const REQUEST: &str = include_str!("objects/request.pem");

/// A request for a certificate that names nobody, in base64.
const STUB: &str = "MH8wMwIBADAAMCowBQYDK2VwAyEAJu6byAMklBiej+3ncZ0ErpDmmp0UCH1rSRCCL0T5G8qgADAFBgMrZXADQQACVOvmloPED4J9samcGbR4KdYpcIhDUqQBX/LnIIfJ5MTXSsWV78V0DO7yrfWsvulYgNaiErD01Gc751QMb4EM";

/// One object to create.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) object: Value,
    /// Whether it is deleted after it was created. A finalizer keeps it.
    pub(crate) deleted: bool,
}

/// All objects, in the order in which they are created.
pub(crate) fn planned() -> Vec<Planned> {
    let mut planned: Vec<Planned> = Vec::new();
    let mut kinds = BTreeSet::new();
    for mut object in table().into_iter().chain(large()) {
        let named = object["metadata"]["name"].is_string();
        let first = kinds.insert(kind_of(&object));
        if first && !named {
            planned.push(Planned { object: with_full_metadata(object.clone()), deleted: true });
        }
        if named {
            object = with_full_metadata(object);
        }
        planned.push(Planned { object, deleted: false });
    }
    planned
}

/// API version and kind of an object.
pub(crate) fn kind_of(object: &Value) -> (String, String) {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    (text("apiVersion"), text("kind"))
}

fn table() -> Vec<Value> {
    let quoted = |text: &str| Value::from(text).to_string().trim_matches('"').to_owned();
    let places = [
        ("@ca@", STANDARD.encode(AUTHORITY)),
        ("@request@", STANDARD.encode(REQUEST)),
        ("@stub@", STUB.to_owned()),
        ("@pem@", quoted(AUTHORITY)),
    ];
    let tables = TABLES.into_iter().flat_map(|table| {
        let table = places.iter().fold(table.to_owned(), |table, (place, value)| table.replace(place, value));
        serde_json::from_str::<Vec<Value>>(&table).unwrap()
    });
    tables.collect()
}

/// What would fill a page of the table: long strings, many entries, deep nesting.
fn large() -> Vec<Value> {
    let many: Map<String, Value> =
        (0..1000).map(|n| (format!("key-{n}"), Value::from(format!("{n}: ü<&>\u{2028}🚀\u{0}")))).collect();
    let binary: Map<String, Value> = (0..100).map(|n| (format!("bin-{n}"), json!("/wD+AAE="))).collect();
    let long = "a\"\\\u{7}é\u{2029}👩‍👩‍👧‍👦".repeat(10_000);
    let nested = |levels: usize| (0..levels).fold(json!({}), |inside, _| json!({ "a": [inside] }));
    vec![
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": many, "binaryData": binary }),
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "long": long } }),
        json!({ "apiVersion": "v1", "kind": "Secret", "stringData": { "long": long } }),
        json!({ "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": nested(60) }),
    ]
}

/// The object with everything in its metadata that a client can write, and a lot of it.
fn with_full_metadata(mut object: Value) -> Value {
    let metadata = &mut object["metadata"];
    let labels: Map<String, Value> =
        (0..30).map(|n| (format!("example.com/label-{n}"), Value::from("v".repeat(n)))).collect();
    let mut annotations: Map<String, Value> =
        (0..30).map(|n| (format!("example.com/annotation-{n}"), Value::from("<&>".repeat(n)))).collect();
    annotations.extend(Map::from_iter([
        ("empty".to_owned(), json!("")),
        ("unicode".to_owned(), json!("é🚀\u{2028}\u{2029}\u{feff}\u{ffff}\u{10ffff}")),
        ("control".to_owned(), json!((0..=0x9f_u8).map(char::from).collect::<String>())),
        ("long".to_owned(), json!("0123456789abcdé".repeat(500))),
    ]));
    metadata["labels"] = Value::Object(labels);
    metadata["annotations"] = Value::Object(annotations);
    metadata["finalizers"] = json!(["example.com/first", "example.com/second"]);
    if !metadata["name"].is_string() {
        metadata["generateName"] = json!("ignored-");
    }
    metadata["ownerReferences"] = json!([
        { "apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "1", "controller": true, "blockOwnerDeletion": false },
        { "apiVersion": "example.com/v1", "kind": "Owner", "name": "<none>", "uid": "ü", "controller": false },
        { "apiVersion": "apps/v1", "kind": "Deployment", "name": "none", "uid": "2", "controller": null, "blockOwnerDeletion": true },
    ]);
    object
}
