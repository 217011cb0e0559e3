use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::schema::{ListType, Node, NodeKind, SchemaSet};

const NOW: &str = "2030-01-01T00:00:00Z";

fn by(manager: &str) -> Write<'_> {
    Write { manager, api_version: "v1", subresource: "", now: NOW }
}

/// The object after a write, in front of the object before it.
fn write(old: Option<&Value>, mut new: Value, by: Write<'_>) -> Value {
    // A server keeps what a client cannot set.
    if old.is_some() {
        new["metadata"]["uid"] = json!("u");
    }
    update(old, &mut new, by, &[], Some(&schema()));
    new["metadata"]["uid"] = json!("u");
    new
}

fn fields(object: &Value, manager: &str) -> Option<Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries.iter().find(|e| e["manager"] == manager).map(|e| e["fieldsV1"].clone())
}

fn managers(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().map(|e| e["manager"].as_str().unwrap()).collect()
}

/// `{data: map, ports: list by port and protocol (TCP by default), tags: set, rules: atomic list,
/// selector: atomic map, spec: {size}, a struct by value}`
fn schema() -> Schema {
    let object = |fields: &[(&str, u32)]| Node {
        kind: NodeKind::Object,
        properties: fields.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect(),
        ..Node::default()
    };
    let list = |items, list| Node { kind: NodeKind::Array, items: Some(items), list, ..Node::default() };
    let leaf = |kind| Node { kind, ..Node::default() };
    let root = Node {
        go: Some(Arc::default()),
        ..object(&[("data", 2), ("ports", 3), ("tags", 5), ("rules", 6), ("selector", 7), ("spec", 8)])
    };
    let nodes = vec![
        root,
        leaf(NodeKind::String),
        Node { kind: NodeKind::Object, additional: Some(1), ..Node::default() },
        list(4, ListType::Map(vec!["port".to_owned(), "protocol".to_owned()])),
        object(&[("port", 9), ("protocol", 10), ("name", 1)]),
        list(1, ListType::Set),
        list(1, ListType::Atomic),
        Node { kind: NodeKind::Object, additional: Some(1), atomic_map: true, ..Node::default() },
        Node { go: Some(Arc::default()), ..object(&[("size", 9)]) },
        leaf(NodeKind::Integer),
        Node { default: Some(json!("TCP")), ..leaf(NodeKind::String) },
    ];
    Schema { set: Arc::new(SchemaSet { nodes }), node: 0 }
}

#[test]
fn a_create_owns_what_it_set_and_nothing_of_the_objects_identity() {
    let object = json!({
        "apiVersion": "v1", "kind": "Test",
        "metadata": {"name": "n", "namespace": "ns", "generation": 1, "labels": {"a": "b"}},
        "data": {"k": "v"},
        "ports": [{"port": 80}, {"port": 81, "protocol": "UDP", "name": "x"}],
        "tags": ["t<1"],
        "rules": ["r"],
        "selector": {"s": "1"},
        "spec": {"size": 1},
    });
    let want = json!([{
        "manager": "a", "operation": "Update", "apiVersion": "v1", "time": NOW, "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:data": {".": {}, "f:k": {}},
            "f:ports": {
                ".": {},
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
                "k:{\"port\":81,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}, "f:name": {}},
            },
            "f:tags": {".": {}, "v:\"t\\u003c1\"": {}},
            "f:rules": {},
            "f:selector": {},
            // The struct is always there: a create owns its fields, not itself.
            "f:spec": {"f:size": {}},
        },
    }]);
    assert_eq!(write(None, object, by("a"))["metadata"]["managedFields"], want);
}

#[test]
fn a_custom_resource_owns_its_objects_as_well() {
    let mut object = json!({
        "metadata": {"finalizers": ["f"], "ownerReferences": [{"uid": "u", "name": "x"}]},
        "spec": {"list": [{"a": 1}], "deep": {"empty": {}}},
    });
    update(None, &mut object, by("a"), &[], None);
    let want = json!({
        "f:metadata": {
            "f:finalizers": {".": {}, "v:\"f\"": {}},
            "f:ownerReferences": {".": {}, "k:{\"uid\":\"u\"}": {}},
        },
        "f:spec": {".": {}, "f:list": {}, "f:deep": {".": {}, "f:empty": {}}},
    });
    assert_eq!(fields(&object, "a"), Some(want));
}

#[test]
fn changed_fields_change_hands_and_removed_ones_have_no_owner() {
    let one = write(None, json!({"data": {"k": "1", "l": "1", "m": "1"}}), by("a"));
    let two = write(Some(&one), json!({"data": {"k": "2", "l": "1"}}), by("b"));
    assert_eq!(fields(&two, "a"), Some(json!({"f:data": {".": {}, "f:l": {}}})));
    assert_eq!(fields(&two, "b"), Some(json!({"f:data": {"f:k": {}}})));
    let three = write(Some(&two), json!({"data": {"k": "2", "l": "2"}}), by("b"));
    assert_eq!(fields(&three, "a"), Some(json!({"f:data": {}})));
    assert_eq!(fields(&three, "b"), Some(json!({"f:data": {"f:k": {}, "f:l": {}}})));
}

#[test]
fn an_entry_that_owns_nothing_disappears() {
    let one = write(None, json!({"spec": {"size": 1}}), by("a"));
    let two = write(Some(&one), json!({"spec": {"size": 2}}), by("b"));
    assert_eq!(managers(&two), ["b"]);
}

#[test]
fn a_write_that_changes_nothing_touches_no_time() {
    let mut one = write(None, json!({"data": {"k": "1"}}), by("a"));
    one["metadata"]["managedFields"][0]["time"] = json!("2020-01-01T00:00:00Z");
    let two = write(Some(&one), json!({"data": {"k": "1"}}), by("b"));
    assert_eq!(two["metadata"]["managedFields"], one["metadata"]["managedFields"]);
}

#[test]
fn operations_on_subresources_have_entries_of_their_own() {
    let one = write(None, json!({"spec": {"size": 1}}), by("a"));
    let status = Write { subresource: "status", ..by("a") };
    let two = write(Some(&one), json!({"spec": {"size": 1}, "data": {"k": "1"}}), status);
    let entries = two["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!((&entries[1]["subresource"], &entries[1]["time"]), (&json!("status"), &json!(NOW)));
    let scale = Write { subresource: "scale", ..by("s") };
    let three = write(Some(&two), json!({"spec": {"size": 2}, "data": {"k": "1"}}), scale);
    // Entries without a time come first.
    assert_eq!(managers(&three), ["s", "a"]);
    assert_eq!(three["metadata"]["managedFields"][0].get("time"), None);
}

#[test]
fn fields_that_an_endpoint_resets_are_not_owned() {
    let mut object = json!({"spec": {"size": 1}, "status": {"x": 1}});
    update(None, &mut object, by("a"), &[&["status"]], Some(&schema()));
    assert_eq!(fields(&object, "a"), Some(json!({"f:spec": {"f:size": {}}})));
}

#[test]
fn an_empty_list_forgets_all_managers_for_good() {
    let one = write(None, json!({"data": {"k": "1"}}), by("a"));
    for reset in [json!([]), json!([{}])] {
        let two =
            write(Some(&one), json!({"metadata": {"managedFields": reset}, "data": {"k": "2"}}), by("b"));
        assert_eq!(two["metadata"].get("managedFields"), None);
        let three = write(Some(&two), json!({"data": {"k": "3"}}), by("c"));
        assert_eq!(three["metadata"].get("managedFields"), None);
    }
}

#[test]
fn entries_that_make_no_sense_are_ignored() {
    let one = write(None, json!({"data": {"k": "1"}}), by("a"));
    for odd in [
        json!([{"manager": "x"}]),
        json!([{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "V9", "fieldsV1": {}}]),
        json!([{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f": {}}}]),
        json!([{"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": [1]}]),
        json!("text"),
        json!(null),
    ] {
        let two = write(Some(&one), json!({"metadata": {"managedFields": odd}, "data": {"k": "1"}}), by("b"));
        assert_eq!(managers(&two), ["a"]);
    }
}

#[test]
fn a_client_may_edit_the_entries() {
    let one = write(None, json!({"data": {"k": "1", "l": "1"}}), by("a"));
    let edited = json!([{
        "manager": "z", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "time": "2020-01-01T01:00:00+01:00",
        "fieldsV1": {"f:data": {"f:k": {}}, "x:unknown": {}, "f:ports": {"k:{ \"port\" : 80 }": {"f:name": {}}}},
    }]);
    let two = write(
        Some(&one),
        json!({"metadata": {"managedFields": edited}, "data": {"k": "1", "l": "2"}}),
        by("b"),
    );
    assert_eq!(managers(&two), ["z", "b"]);
    let want = json!({"f:data": {"f:k": {}}, "f:ports": {"k:{\"port\":80}": {"f:name": {}}}});
    assert_eq!(fields(&two, "z"), Some(want));
    assert_eq!(two["metadata"]["managedFields"][0]["time"], "2020-01-01T00:00:00Z");
}

#[test]
fn the_oldest_of_many_updates_are_joined() {
    let mut object = json!({});
    let mut old = None;
    for i in 0..14 {
        let mut data = object.get("data").cloned().unwrap_or_else(|| json!({}));
        data[format!("k{i}")] = json!("v");
        let (manager, now) = (format!("m{i:02}"), format!("2030-01-01T00:00:{i:02}Z"));
        let write_now = Write { now: &now, ..by(&manager) };
        object = write(old.as_ref(), json!({ "data": data }), write_now);
        old = Some(object.clone());
    }
    let names = managers(&object);
    assert_eq!(names.len(), 10);
    assert_eq!((names[0], names[1], names[9]), ("ancient-changes", "m05", "m13"));
    let joined = fields(&object, "ancient-changes").unwrap();
    assert_eq!(joined["f:data"].as_object().unwrap().len(), 6);
}

#[test]
fn lists_whose_items_have_no_key_leave_ownership_as_it_was() {
    let one = write(None, json!({"data": {"k": "1"}}), by("a"));
    let two = write(Some(&one), json!({"data": {"k": "2"}, "tags": [{}]}), by("b"));
    assert_eq!(two["metadata"]["managedFields"], one["metadata"]["managedFields"]);
}

#[test]
fn items_that_share_a_key_are_one_place() {
    let twice = json!({"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]});
    let one = write(None, twice, by("a"));
    let port = "k:{\"port\":1,\"protocol\":\"TCP\"}";
    assert_eq!(fields(&one, "a"), Some(json!({"f:ports": {".": {}, port: {}}})));
    let two = write(Some(&one), json!({"ports": [{"port": 1, "name": "a"}]}), by("b"));
    assert_eq!(fields(&two, "b"), Some(json!({"f:ports": {port: {".": {}, "f:port": {}, "f:name": {}}}})));
}

fn any_object() -> impl Strategy<Value = Value> {
    let ports = prop::collection::btree_map(1..4u32, "[a-b]", 0..3).prop_map(|ports| {
        ports.into_iter().map(|(port, name)| json!({ "port": port, "name": name })).collect()
    });
    (
        prop::collection::btree_map("[k-n]", "[x-z]", 0..4),
        ports,
        prop::collection::btree_set("[p-s]", 0..3),
        prop::collection::vec("[r-t]", 0..3),
        0..3i64,
    )
        .prop_map(|(data, ports, tags, rules, size): (_, Vec<Value>, _, _, _)| {
            json!({ "data": data, "ports": ports, "tags": tags, "rules": rules, "spec": { "size": size } })
        })
}

/// Every place that some manager owns, with its manager.
fn owned(object: &Value) -> Vec<(String, String)> {
    fn walk(fields: &Value, path: &str, out: &mut Vec<String>) {
        let map = fields.as_object().unwrap();
        if map.is_empty() || map.contains_key(".") {
            out.push(path.to_owned());
        }
        for (step, below) in map.iter().filter(|(step, _)| *step != ".") {
            walk(below, &format!("{path}/{step}"), out);
        }
    }
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut out = Vec::new();
    for entry in entries {
        let mut paths = Vec::new();
        walk(&entry["fieldsV1"], "", &mut paths);
        out.extend(paths.into_iter().map(|path| (path, entry["manager"].as_str().unwrap().to_owned())));
    }
    out.sort();
    out
}

proptest! {
    #[test]
    fn every_place_has_one_owner_and_the_whole_object_is_owned(
        versions in prop::collection::vec((any_object(), "[a-c]"), 1..6),
    ) {
        let mut old: Option<Value> = None;
        for (object, manager) in versions {
            old = Some(write(old.as_ref(), object, by(&manager)));
        }
        let last = old.unwrap();
        let places: Vec<String> = owned(&last).into_iter().map(|(place, _)| place).collect();
        let mut once = places.clone();
        once.dedup();
        prop_assert_eq!(&places, &once);
        // The same places as if the last version had been written at once.
        let mut bare = last.clone();
        bare["metadata"] = json!({});
        let fresh = write(None, bare, by("one"));
        let want: Vec<String> = owned(&fresh).into_iter().map(|(place, _)| place).collect();
        prop_assert_eq!(places, want);
    }

    #[test]
    fn fields_v1_survives_a_round_trip(object in any_object()) {
        let object = write(None, object, by("a"));
        let fields = fields(&object, "a").unwrap();
        prop_assert_eq!(Set::from_json(&fields).unwrap().to_json(), fields);
    }
}
