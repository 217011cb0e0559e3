//! What is said about changes, case by case.

use kube_informer::encoding::{Codec, Encoding, ManagedFields, Rules};
use kube_informer::object::{Intake, Object};
use serde_json::{Value, json};

use super::*;

mod actors;
mod bounds;
mod merging;
mod properties;
mod words;

/// An object of a kind.
fn object(api_version: &str, kind: &str, document: &Value) -> Object {
    let rules = Rules::default().managed_fields(ManagedFields::Writers);
    let codec = Codec::new(Encoding::Json, api_version, kind, rules).unwrap();
    Intake::new(codec).object(document.to_string().as_bytes()).unwrap()
}

/// A document with a name, a UID and a version.
fn named(mut document: Value) -> Value {
    for (field, value) in [("name", "web"), ("namespace", "shop"), ("uid", "u1"), ("resourceVersion", "7")] {
        if document["metadata"][field].is_null() {
            document["metadata"][field] = value.into();
        }
    }
    document
}

fn deployment(document: Value) -> Object {
    object("apps/v1", "Deployment", &named(document))
}

/// A change of a deployment.
fn change(old: Value, new: Value) -> Change {
    Change::modified(&deployment(old), &deployment(new)).unwrap()
}

/// A deployment's specification with these containers.
fn containers(containers: Value) -> Value {
    json!({ "spec": { "template": { "spec": { "containers": containers } } } })
}

fn paths(change: &Change) -> Vec<&str> {
    change.changes.iter().map(|change| change.path.as_str()).collect()
}

#[test]
fn a_change_has_what_the_protocol_shows() {
    let manager = |name: &str, time: &str, subresource: &str| json!({ "manager": name, "operation": "Apply", "time": time, "subresource": subresource });
    let document = |version: &str, replicas: u32, image: &str, managers: Value| {
        json!({
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": version, "generation": replicas,
                "managedFields": managers,
            },
            "spec": {
                "replicas": replicas,
                "template": { "spec": { "containers": [{ "name": "web", "image": image }] } },
            },
        })
    };
    let status = manager("kube-controller-manager", "2026-01-01T00:00:09Z", "status");
    let old = json!([manager("argocd-controller", "2026-01-01T00:00:01Z", ""), status]);
    let new = json!([manager("argocd-controller", "2026-01-01T00:00:05Z", ""), status]);
    let old = deployment(document("7", 3, "shop/web:1.4", old));
    let new = deployment(document("9", 5, "shop/web:1.5", new));
    let change = Change::modified(&old, &new).unwrap();
    let mut shown = serde_json::to_value(&change).unwrap();
    assert!(shown["time"].take().is_string());
    let image = "/spec/template/spec/containers/web/image";
    assert_eq!(
        shown,
        json!({
            "type": "MODIFIED",
            "time": null,
            "obj": {
                "apiVersion": "apps/v1", "kind": "Deployment", "ns": "shop", "name": "web", "uid": "u1", "rv": "9",
                "generation": 5, "root": "Deployment/web",
            },
            "class": ["scale", "image"],
            "summary": "replicas 3→5; image web 1.4→1.5",
            "changes": [
                { "path": "/spec/replicas", "old": 3, "new": 5 },
                { "path": image, "old": "shop/web:1.4", "new": "shop/web:1.5" },
            ],
            "actor": { "manager": "argocd-controller", "op": "Apply" },
            "coalesced": 1,
        })
    );
    let read: Change = serde_json::from_value(serde_json::to_value(&change).unwrap()).unwrap();
    assert_eq!(read, change);
    assert_eq!(change.to_string(), "~ Deployment shop/web replicas 3→5; image web 1.4→1.5");
}

#[test]
fn an_object_that_comes_or_goes_is_told_with_its_state() {
    let document = json!({
        "spec": {
            "replicas": 3,
            "template": { "spec": {
                "initContainers": [{ "name": "migrate", "image": "shop/migrate:1" }],
                "containers": [
                    { "name": "web", "image": "shop/web:1.4", "env": [{ "name": "A", "value": "b" }] },
                    { "name": "proxy", "image": "envoy:1.2" },
                ],
            } },
        },
        "status": { "readyReplicas": 2 },
    });
    let all = deployment(document);
    let added = Change::added(&all).unwrap();
    assert_eq!((added.what, &*added.classes, added.reason), (What::Added, &[Class::Create][..], None));
    let state = "replicas 3; image proxy envoy:1.2; image web shop/web:1.4; image migrate shop/migrate:1";
    assert_eq!(added.summary, format!("created; {state}"));
    assert!(added.changes.iter().all(|change| change.old.is_none()));

    let deleted = Change::deleted(&all, true).unwrap();
    assert_eq!(
        (deleted.what, &*deleted.classes, deleted.reason),
        (What::Deleted, &[Class::Delete][..], None)
    );
    assert!(deleted.summary.starts_with("deleted; replicas 3; "), "{}", deleted.summary);
    assert!(deleted.changes.iter().all(|change| change.new.is_none()));
    let missed = Change::deleted(&all, false).unwrap();
    assert_eq!(missed.reason, Some(Reason::FoundMissing));
    assert!(missed.summary.starts_with("deleted, found missing; "), "{}", missed.summary);

    let bare = object("v1", "ConfigMap", &named(json!({ "data": { "a": "b" } })));
    assert_eq!(Change::added(&bare).unwrap().summary, "created");
    assert_eq!(Change::deleted(&bare, true).unwrap().summary, "deleted");
}

#[test]
fn who_controls_it_is_its_root() {
    let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5c9", "uid": "u", "controller": true });
    let pod = object("v1", "Pod", &named(json!({ "metadata": { "ownerReferences": [owner] } })));
    assert_eq!(Subject::of(&pod).root, "ReplicaSet/web-5c9");
    assert_eq!(Subject::of(&deployment(json!({}))).root, "Deployment/web");
}

#[test]
fn what_every_write_changes_is_no_change() {
    let document = |version: &str, generation: u32| {
        json!({ "metadata": { "resourceVersion": version, "generation": generation, "managedFields": [
            { "manager": version, "operation": "Update", "time": "2026-01-01T00:00:01Z" }
        ] } })
    };
    let change = change(document("1", 1), document("2", 2));
    assert_eq!(
        (change.summary.as_str(), paths(&change), &*change.classes),
        ("no visible change", vec![], &[][..])
    );
}

#[test]
fn a_change_of_the_status_alone_is_found_without_the_specification() {
    let document = |generation: u32, replicas: u32, ready: u32| {
        json!({
            "metadata": { "generation": generation },
            "spec": { "replicas": replicas }, "status": { "readyReplicas": ready },
        })
    };
    assert_eq!(change(document(1, 3, 2), document(1, 3, 3)).summary, "ready 2→3");
    assert_eq!(change(document(1, 3, 2), document(2, 4, 3)).summary, "replicas 3→4; ready 2→3");
    // Other servers may count generations as they like.
    let other = |replicas| object("x.io/v1", "Deployment", &named(document(1, replicas, 1)));
    assert_eq!(Change::modified(&other(1), &other(2)).unwrap().summary, "replicas 1→2");
}

#[test]
fn the_page_of_the_crate_shows_a_change_as_it_is_sent() {
    let page = include_str!("../../README.md");
    let block = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let shown: Value = serde_json::from_str(block).unwrap();
    let message: crate::message::Message = serde_json::from_value(shown.clone()).unwrap();
    assert_eq!(serde_json::to_value(&message).unwrap(), shown);
}
