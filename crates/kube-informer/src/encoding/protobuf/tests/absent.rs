//! What is not on the wire, or zero there.

use serde_json::{Value, json};

use super::build::{codec, drops, message, object, with_rules};

#[test]
fn a_value_that_go_holds_directly_is_shown_though_it_is_absent() {
    // Structs decoded from nothing, numbers and text that are never left out.
    assert_eq!(
        codec("apps/v1", "Deployment").show(object()),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a", "namespace": "b" },
            "spec": {
                "selector": null,
                "strategy": {},
                "template": { "metadata": {}, "spec": { "containers": null } },
            },
            "status": {},
        })
    );
    let revision = codec("apps/v1", "ControllerRevision").show(object());
    assert_eq!((&revision["data"], &revision["revision"]), (&Value::Null, &json!(0)));
    let service = codec("v1", "Service").show(object().message(2, message().message(1, message())));
    assert_eq!(service["spec"]["ports"], json!([{ "port": 0, "targetPort": 0 }]));
}

#[test]
fn zero_is_left_out_only_where_go_leaves_it_out() {
    let spec = message().varint(1, 0).varint(5, 0).varint(7, 0).varint(9, 0);
    let shown = codec("apps/v1", "Deployment").show(object().message(2, spec));
    // Behind pointers, zero is a value.
    assert_eq!(shown["spec"]["replicas"], 0);
    assert_eq!(shown["spec"]["progressDeadlineSeconds"], 0);
    assert_eq!(shown["spec"].get("minReadySeconds"), None);
    assert_eq!(shown["spec"].get("paused"), None);
    let shown = codec("v1", "Secret").show(object().bytes(3, "").varint(5, 0));
    assert_eq!(shown.get("type"), None);
    assert_eq!(shown["immutable"], false);
}

#[test]
fn a_list_or_map_that_is_absent_is_null_or_left_out() {
    let shown = codec("v1", "Pod").show(object().message(2, message()));
    assert_eq!(shown["spec"], json!({ "containers": null }));
    let shown = codec("v1", "ConfigMap").show(object());
    assert_eq!((shown.get("data"), shown.get("binaryData")), (None, None));
}

#[test]
fn the_items_of_a_list_are_a_list_though_there_are_none() {
    let list = super::build::envelope("v1", "PodList", &[]);
    let shown: Value = super::super::decode_protobuf(&list).unwrap();
    assert_eq!(shown, json!({ "apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [] }));
}

#[test]
fn embedded_messages_are_flat_and_show_what_they_require() {
    let source = message().message(3, message().bytes(1, "/data"));
    let volume = object().message(2, message().message(2, source).bytes(6, "fast"));
    let shown = codec("v1", "PersistentVolume").show(volume);
    assert_eq!(shown["spec"], json!({ "hostPath": { "path": "/data" }, "storageClassName": "fast" }));

    // Absent, and two levels deep: the required name stands in a message that is not there.
    let ephemeral = message().message(34, message().bytes(2, "target"));
    let shown = codec("v1", "Pod").show(object().message(2, ephemeral));
    assert_eq!(
        shown["spec"]["ephemeralContainers"],
        json!([{ "name": "", "resources": {}, "targetContainerName": "target" }])
    );

    // One in another, and back.
    let rule = message().bytes(1, "CREATE").message(2, message().bytes(3, "pods"));
    let named = message().bytes(1, "a").message(2, rule);
    let policy = message().message(2, message().message(3, named).bytes(7, "Exact"));
    let shown = codec("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")
        .show(object().message(2, policy.bytes(4, "Fail")));
    let rules = json!([{ "resourceNames": ["a"], "operations": ["CREATE"], "resources": ["pods"] }]);
    let constraints = json!({ "resourceRules": rules, "matchPolicy": "Exact" });
    assert_eq!(shown["spec"], json!({ "matchConstraints": constraints, "failurePolicy": "Fail" }));
}

#[test]
fn what_was_dropped_is_not_shown_as_if_it_were_empty() {
    let pointers = ["/spec/template", "/spec/selector", "/status", "/metadata/creationTimestamp"];
    let codec = with_rules("apps/v1", "Deployment", drops(&pointers));
    // Neither where it was on the wire, nor where it was not.
    let there = object()
        .message(2, message().varint(1, 3).message(2, message()).message(3, message()))
        .message(3, message().varint(2, 1));
    let spec = json!({ "replicas": 3, "strategy": {} });
    let shown = codec.show(there);
    assert_eq!((&shown["spec"], shown.get("status")), (&spec, None));
    let shown = codec.show(object());
    assert_eq!((&shown["spec"], shown.get("status")), (&json!({ "strategy": {} }), None));
    // Other types see the same.
    let stored = codec.store(object().done()).unwrap();
    let pointer = crate::encoding::Pointer::parse("/spec/selector").unwrap();
    assert_eq!(codec.pointer::<Value>(&stored, &pointer).unwrap(), None);
}
