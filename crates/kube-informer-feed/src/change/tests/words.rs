//! The line, case by case.

use super::*;
use crate::change::{image, path};

#[test]
fn each_kind_of_change_has_its_words() {
    use Class::{Condition, Delete, Env, Image, Metadata, Resources, Rollout, Scale, Spec, Status};
    let web = |rest: Value| {
        let mut container = json!({ "name": "web", "image": "shop/web:1" });
        container.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        containers(json!([container]))
    };
    let spec = |spec: Value| json!({ "spec": spec });
    let status = |status: Value| json!({ "status": status });
    let metadata = |metadata: Value| json!({ "metadata": metadata });
    let pod_spec = |rest: Value| spec(json!({ "template": { "spec": rest } }));
    let table: Vec<(Value, Value, &[Class], &str)> = vec![
        (spec(json!({ "replicas": 3 })), spec(json!({ "replicas": 5 })), &[Scale], "replicas 3→5"),
        // Absent is one.
        (json!({}), spec(json!({ "replicas": 3 })), &[Scale], "replicas 1→3"),
        (spec(json!({ "replicas": 3 })), spec(json!({})), &[Scale], "replicas 3→1"),
        (spec(json!({})), spec(json!({ "replicas": 1 })), &[Spec], "replicas written out"),
        (spec(json!({ "replicas": 3 })), spec(json!({ "replicas": 0 })), &[Scale], "replicas 3→0"),
        (web(json!({})), web(json!({ "image": "shop/web:2" })), &[Image], "image web 1→2"),
        (
            pod_spec(json!({ "initContainers": [{ "name": "migrate", "image": "m:1" }] })),
            pod_spec(json!({ "initContainers": [{ "name": "migrate", "image": "m:2" }] })),
            &[Image],
            "image migrate (init) 1→2",
        ),
        (
            containers(json!([{ "name": "web", "image": "w:1" }])),
            containers(
                json!([{ "name": "sidecar", "image": "envoy:1.2" }, { "name": "web", "image": "w:1" }]),
            ),
            &[Image],
            "container sidecar added (envoy:1.2)",
        ),
        (
            containers(
                json!([{ "name": "sidecar", "image": "envoy:1.2" }, { "name": "web", "image": "w:1" }]),
            ),
            containers(json!([{ "name": "web", "image": "w:1" }])),
            &[Image],
            "container sidecar removed (envoy:1.2)",
        ),
        // The whole list comes at once.
        (
            pod_spec(json!({})),
            pod_spec(
                json!({ "initContainers": [{ "name": "a", "image": "a:1" }, { "name": "b", "image": "b:1" }] }),
            ),
            &[Image],
            "init container a added (a:1); init container b added (b:1)",
        ),
        (
            web(json!({ "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "1" }] })),
            web(json!({ "env": [{ "name": "B", "value": "2" }, { "name": "C", "value": "1" }] })),
            &[Env],
            "env web A removed; env web B changed; env web C added",
        ),
        (web(json!({})), web(json!({ "env": [{ "name": "A", "value": "1" }] })), &[Env], "env web A added"),
        (
            web(json!({ "resources": { "limits": { "cpu": "500m" } } })),
            web(json!({ "resources": { "limits": { "cpu": "1" }, "requests": { "memory": "1Gi" } } })),
            &[Resources],
            "limits web cpu 500m→1; requests web memory none→1Gi",
        ),
        (web(json!({ "args": ["a", "b"] })), web(json!({ "args": ["a", "c"] })), &[Spec], "web args.1 b→c"),
        (spec(json!({})), spec(json!({ "paused": true })), &[Spec], "paused"),
        (
            spec(json!({ "template": { "metadata": { "labels": { "a": "b" } } } })),
            spec(json!({ "template": { "metadata": {
                "labels": { "a": "b" }, "annotations": { "kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z" },
            } } })),
            &[Spec],
            "restarted",
        ),
        (spec(json!({ "paused": true })), spec(json!({})), &[Spec], "resumed"),
        (
            spec(json!({ "strategy": { "type": "RollingUpdate" } })),
            spec(json!({ "strategy": { "type": "Recreate" } })),
            &[Spec],
            "spec.strategy.type RollingUpdate→Recreate",
        ),
        (json!({}), spec(json!({ "strategy": { "type": "Recreate" } })), &[Spec], "spec.strategy added"),
        (
            status(json!({ "readyReplicas": 2, "updatedReplicas": 1 })),
            status(json!({ "readyReplicas": 3, "updatedReplicas": 1 })),
            &[Rollout],
            "ready 2→3",
        ),
        (
            status(json!({})),
            status(json!({ "readyReplicas": 1, "observedGeneration": 1 })),
            &[Rollout],
            "ready 0→1",
        ),
        // A counter that is not there is zero: that it is written out changes nothing, and is said only where nothing else is.
        (status(json!({})), status(json!({ "terminatingReplicas": 0 })), &[Status], "stopping still 0"),
        (status(json!({ "failed": 0 })), status(json!({})), &[Status], "failed still 0"),
        (
            status(json!({ "readyReplicas": 1 })),
            status(json!({ "readyReplicas": 2, "terminatingReplicas": 0 })),
            &[Rollout, Status],
            "ready 1→2",
        ),
        (
            status(json!({ "containerStatuses": [{ "name": "web", "ready": false }] })),
            status(json!({ "containerStatuses": [{ "name": "web", "ready": false, "restartCount": 0 }] })),
            &[Status],
            "restarts web still 0",
        ),
        (
            status(json!({ "observedGeneration": 1 })),
            status(json!({ "observedGeneration": 2 })),
            &[Rollout],
            "observed generation 1→2",
        ),
        (
            status(json!({ "conditions": [{ "type": "Available", "status": "False", "message": "a" }] })),
            status(json!({ "conditions": [{ "type": "Available", "status": "True", "message": "b" }] })),
            &[Condition],
            "condition Available False→True",
        ),
        (
            status(json!({})),
            status(json!({ "conditions": [{ "type": "Available", "status": "True" }] })),
            &[Condition],
            "condition Available True",
        ),
        (
            status(json!({ "conditions": [{ "type": "Progressing", "status": "True", "message": "a" }] })),
            status(json!({ "conditions": [{ "type": "Progressing", "status": "True", "message": "b" }] })),
            &[Condition],
            "condition Progressing updated",
        ),
        (
            status(json!({ "conditions": [{ "type": "Progressing", "reason": "A", "message": "a" }] })),
            status(json!({ "conditions": [{ "type": "Progressing", "reason": "B", "message": "b" }] })),
            &[Condition],
            "condition Progressing A→B",
        ),
        (
            status(json!({ "phase": "Pending" })),
            status(json!({ "phase": "Running" })),
            &[Status],
            "phase Pending→Running",
        ),
        (
            metadata(json!({ "labels": { "tier": "a" } })),
            metadata(json!({ "labels": { "tier": "b" } })),
            &[Metadata],
            "label tier a→b",
        ),
        (
            metadata(json!({ "annotations": { "deployment.kubernetes.io/revision": "1" } })),
            metadata(json!({ "annotations": { "deployment.kubernetes.io/revision": "2" } })),
            &[Rollout],
            "revision 1→2",
        ),
        (
            json!({ "spec": { "replicas": 1 } }),
            json!({ "metadata": { "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}" } }, "spec": { "replicas": 2 } }),
            &[Scale, Metadata],
            "replicas 1→2",
        ),
        (
            json!({ "spec": { "replicas": 1 } }),
            json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" }, "spec": { "replicas": 0 } }),
            &[Scale, Delete],
            "terminating; replicas 1→0",
        ),
        // Moved elements are no change.
        (
            containers(json!([{ "name": "a", "image": "a:1" }, { "name": "b", "image": "b:1" }])),
            containers(json!([{ "name": "b", "image": "b:1" }, { "name": "a", "image": "a:1" }])),
            &[],
            "no visible change",
        ),
    ];
    for (old, new, classes, summary) in table {
        let change = change(old.clone(), new.clone());
        assert_eq!((change.summary.as_str(), &*change.classes), (summary, classes), "{old} → {new}");
    }
}

#[test]
fn data_of_config_maps_is_told_by_its_keys() {
    let map = |data: Value| object("v1", "ConfigMap", &named(json!({ "data": data })));
    let change =
        Change::modified(&map(json!({ "a": "1", "b": "1" })), &map(json!({ "b": "2", "c": "1" }))).unwrap();
    assert_eq!(change.summary, "data a removed; data b changed; data c added");
    assert_eq!(change.classes, [Class::Config]);
    let change =
        Change::modified(&map(json!({})), &map(json!({ "a": "", "b": "", "c": "", "d": "" }))).unwrap();
    assert_eq!(change.summary, "data 4 changes");
}

#[test]
fn elements_are_called_by_what_tells_them_apart() {
    let ports = |ports: Value| containers(json!([{ "name": "web", "ports": ports }]));
    let cases = [
        (
            ports(json!([{ "name": "http", "containerPort": 80 }, { "containerPort": 9090 }])),
            ports(json!([{ "containerPort": 9090, "hostPort": 1 }, { "name": "http", "containerPort": 81 }])),
            vec!["web/ports/9090~1TCP/hostPort", "web/ports/http/containerPort"],
        ),
        (
            containers(
                json!([{ "name": "web", "volumeMounts": [{ "mountPath": "/a", "name": "v" }, { "mountPath": "/b", "name": "v" }] }]),
            ),
            containers(
                json!([{ "name": "web", "volumeMounts": [{ "mountPath": "/b", "name": "w" }, { "mountPath": "/a", "name": "v" }] }]),
            ),
            vec!["web/volumeMounts/~1b/name"],
        ),
        // Two of the same name: by their place.
        (
            containers(json!([{ "name": "web", "x": [{ "name": "a", "v": 1 }, { "name": "a", "v": 1 }] }])),
            containers(json!([{ "name": "web", "x": [{ "name": "a", "v": 1 }, { "name": "a", "v": 2 }] }])),
            vec!["web/x/1/v"],
        ),
        // A number is no name: it would be taken for a place.
        (
            containers(json!([{ "name": "web", "x": [{ "name": "1", "v": 1 }, { "name": "0", "v": 1 }] }])),
            containers(json!([{ "name": "web", "x": [{ "name": "1", "v": 2 }, { "name": "0", "v": 1 }] }])),
            vec!["web/x/0/v"],
        ),
    ];
    for (old, new, expected) in cases {
        let change = change(old, new);
        let found: Vec<&str> = paths(&change);
        let expected: Vec<String> =
            expected.iter().map(|path| format!("/spec/template/spec/containers/{path}")).collect();
        assert_eq!(found, expected);
    }
    let owners = |owners: Value| json!({ "metadata": { "ownerReferences": owners } });
    let owner =
        |uid: &str, name: &str| json!({ "apiVersion": "v1", "kind": "Node", "uid": uid, "name": name });
    let told = change(
        owners(json!([owner("1-a", "x"), owner("2-b", "x")])),
        owners(json!([owner("2-b", "x"), owner("3-c", "y")])),
    );
    assert_eq!(paths(&told), ["/metadata/ownerReferences/1-a", "/metadata/ownerReferences/3-c"]);
    assert_eq!(told.summary, "owner Node/x removed; owner Node/y added");
}

#[test]
fn a_path_is_a_json_pointer() {
    let tokens = ["a/b", "~", "~1", "", "日本"].map(str::to_owned);
    assert_eq!(path::write(&tokens), "/a~1b/~0/~01//日本");
    assert_eq!(path::read(&path::write(&tokens)), tokens);
    assert_eq!(path::read(""), [""; 0]);
}

#[test]
fn images_are_as_short_as_they_can_be_told_apart() {
    let digest = |digit: &str| format!("sha256:{}", digit.repeat(64));
    let (a, b) = (digest("a"), digest("b"));
    for (old, new, expected) in [
        ("web:1.4", "web:1.5", "1.4→1.5"),
        ("r.io:5000/shop/web:1.4", "r.io:5000/shop/web:1.5", "1.4→1.5"),
        ("r.io:5000/web", "r.io:5000/web:1", "latest→1"),
        ("a/web:1", "b/web:1", "a/web:1→b/web:1"),
        (&format!("web@{a}"), &format!("web@{b}"), "sha256:aaaaaaaaaaaa→sha256:bbbbbbbbbbbb"),
        (&format!("web:1@{a}"), &format!("web:1@{b}"), "sha256:aaaaaaaaaaaa→sha256:bbbbbbbbbbbb"),
        ("web:1", &format!("web:1@{b}"), "1→1@sha256:bbbbbbbbbbbb"),
        (&format!("web:1@{a}"), &format!("web:2@{b}"), "1@sha256:aaaaaaaaaaaa→2@sha256:bbbbbbbbbbbb"),
        ("web", "web:latest", "web→web:latest"),
    ] {
        assert_eq!(image::change(old, new), expected, "{old} {new}");
    }
    assert_eq!(image::whole(&format!("r.io/web:1@{a}")), "r.io/web:1@sha256:aaaaaaaaaaaa");
    assert!(image::whole(&"日".repeat(1000)).len() < 110);
    // What is no name of an image is something to show all the same.
    for odd in ["", ":", "@", "a@", "/:", "a:b:c", "日@日:日"] {
        assert!(image::change("web:1", odd).starts_with("web:1→"), "{odd}");
        image::change(odd, odd);
    }
}
