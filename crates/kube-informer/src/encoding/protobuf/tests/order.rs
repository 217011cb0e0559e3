//! Bytes that stand in another order than Go's: they are read as Go reads them, and stored in its order.

use serde_json::{Value, json};

use super::build::{Message, codec, message, object};

#[test]
fn fields_may_stand_in_any_order() {
    let codec = codec("apps/v1", "Deployment");
    let metadata = message().bytes(1, "a").bytes(3, "b").varint(7, 4);
    let spec = message().varint(1, 3).varint(5, 9).varint(7, 1);
    let status = message().varint(1, 8);
    let in_order = message().message(1, metadata).message(2, spec).message(3, status.clone());
    let metadata = message().varint(7, 4).bytes(3, "b").bytes(1, "a");
    let spec = message().varint(7, 1).varint(1, 3).varint(5, 9);
    let disordered = message().message(3, status).message(2, spec).message(1, metadata).done();
    let mut stored = Vec::new();
    let read = codec.ingest(&disordered, &mut stored).unwrap();
    assert_eq!((&*read.name, &*read.namespace, read.generation), ("a", "b", 4));
    assert_eq!(stored, in_order.done());
}

#[test]
fn items_of_a_list_may_stand_apart() {
    let pod = |spec: Message| codec("v1", "Pod").show(object().message(2, spec));
    let spec = message()
        .message(2, message().bytes(1, "one"))
        .bytes(10, "node")
        .message(2, message().bytes(1, "two"))
        .bytes(3, "Always")
        .message(2, message().bytes(1, "three"));
    let shown = pod(spec);
    let names: Vec<&Value> =
        shown["spec"]["containers"].as_array().unwrap().iter().map(|c| &c["name"]).collect();
    assert_eq!(names, ["one", "two", "three"]);
    assert_eq!(
        (&shown["spec"]["nodeName"], &shown["spec"]["restartPolicy"]),
        (&json!("node"), &json!("Always"))
    );
}

#[test]
fn of_values_that_stand_twice_the_last_counts() {
    let spec = message().varint(1, 1).varint(1, 2).varint(7, 1).varint(7, 0);
    let shown = codec("apps/v1", "Deployment").show(object().message(2, spec));
    assert_eq!((&shown["spec"]["replicas"], shown["spec"].get("paused")), (&json!(2), None));
    let shown = codec("v1", "Secret").show(object().bytes(3, "one").bytes(3, "two"));
    assert_eq!(shown["type"], "two");
    // A time that is there is replaced by one that says nothing.
    let metadata = message().bytes(1, "a").message(9, message().varint(1, 5)).message(9, message());
    let shown = codec("v1", "ConfigMap").show(message().message(1, metadata));
    assert_eq!(shown["metadata"]["deletionTimestamp"], Value::Null);
    // The same inside of a time.
    let metadata = message().bytes(1, "a").message(9, message().varint(2, 1).varint(1, 5).varint(1, 6));
    let shown = codec("v1", "ConfigMap").show(message().message(1, metadata));
    assert_eq!(shown["metadata"]["deletionTimestamp"], "1970-01-01T00:00:06Z");
}

#[test]
fn messages_that_stand_twice_are_merged() {
    let object = message()
        .message(1, message().bytes(1, "x").bytes(3, "b").pair(11, "k", "1").bytes(14, "one"))
        .message(
            2,
            message().varint(1, 1).varint(5, 7).message(3, message().message(2, message().bytes(10, "n"))),
        )
        .message(1, message().bytes(1, "a").pair(11, "k", "2").pair(11, "j", "3").bytes(14, "two"))
        .message(2, message().varint(1, 2).message(3, message().message(2, message().bytes(3, "Never"))));
    let codec = codec("apps/v1", "Deployment");
    let stored = codec.store(object.done()).unwrap();
    let shown: Value = codec.view(&stored).unwrap();
    assert_eq!(
        shown["metadata"],
        json!({ "name": "a", "namespace": "b", "labels": { "j": "3", "k": "2" }, "finalizers": ["one", "two"] })
    );
    assert_eq!((&shown["spec"]["replicas"], &shown["spec"]["minReadySeconds"]), (&json!(2), &json!(7)));
    let pod = &shown["spec"]["template"]["spec"];
    assert_eq!(*pod, json!({ "containers": null, "nodeName": "n", "restartPolicy": "Never" }));
}

#[test]
fn special_types_that_stand_twice_are_merged() {
    let port = message()
        .varint(3, 80)
        .message(4, message().varint(1, 1).bytes(3, "http"))
        .message(4, message().varint(2, 7));
    let shown = codec("v1", "Service").show(object().message(2, message().message(1, port)));
    assert_eq!(shown["spec"]["ports"][0]["targetPort"], "http");
    let revision = object().message(2, message().bytes(1, "1")).message(2, message()).varint(3, 1);
    assert_eq!(codec("apps/v1", "ControllerRevision").show(revision)["data"], 1);
    let revision = object().message(2, message().bytes(1, "1").bytes(1, "2")).varint(3, 1);
    assert_eq!(codec("apps/v1", "ControllerRevision").show(revision)["data"], 2);
    // The size limit of an empty directory, a quantity behind a pointer.
    let directory = message().message(2, message().bytes(1, "1Gi")).message(2, message());
    let volume = message().bytes(1, "v").message(2, message().message(2, directory));
    let shown = codec("v1", "Pod").show(object().message(2, message().message(1, volume)));
    assert_eq!(shown["spec"]["volumes"][0]["emptyDir"], json!({ "sizeLimit": "1Gi" }));
}

#[test]
fn of_entries_of_a_map_with_one_key_the_last_counts() {
    let codec = codec("v1", "ConfigMap");
    let labels = |pairs: &[(&str, &str)]| {
        let metadata = message().bytes(1, "a");
        let metadata = pairs.iter().fold(metadata, |metadata, (key, value)| metadata.pair(11, key, value));
        message().message(1, metadata).done()
    };
    let stored = codec.store(labels(&[("k", "1"), ("j", "2"), ("k", "3")])).unwrap();
    assert_eq!(stored, labels(&[("j", "2"), ("k", "3")]));
    let bytes = labels(&[("k", "1"), ("k", "3")]);
    let mut stored = Vec::new();
    let metadata = codec.ingest(&bytes, &mut stored).unwrap();
    assert_eq!(metadata.labels, [("k".into(), "3".into())]);
}

#[test]
fn an_entry_of_a_map_is_read_in_any_order_and_never_merged() {
    let quota = |pair: Message| {
        let shown = codec("v1", "ResourceQuota").show(object().message(2, message().message(1, pair)));
        shown["spec"]["hard"].clone()
    };
    let (one, two) = (message().bytes(1, "1"), message().bytes(1, "2"));
    assert_eq!(quota(message().message(2, one.clone()).bytes(1, "cpu")), json!({ "cpu": "1" }));
    let twice = message().bytes(1, "x").message(2, one.clone()).bytes(1, "cpu").message(2, two);
    assert_eq!(quota(twice), json!({ "cpu": "2" }));
    assert_eq!(quota(message().bytes(1, "cpu").message(2, one).message(2, message())), json!({ "cpu": "0" }));
}

#[test]
fn maps_are_stored_by_key() {
    let codec = codec("v1", "ConfigMap");
    let sorted = object().pair(2, "a", "1").pair(2, "b", "2").pair(2, "c", "3").done();
    let unsorted = object().pair(2, "c", "3").pair(2, "a", "1").pair(2, "b", "2").done();
    assert_eq!(codec.store(&sorted).unwrap(), sorted);
    assert_eq!(codec.store(unsorted).unwrap(), sorted);
}

#[test]
fn numbers_may_be_packed() {
    let groups = |context: Message| {
        let shown = codec("v1", "Pod").show(object().message(2, message().message(14, context)));
        shown["spec"]["securityContext"]["supplementalGroups"].clone()
    };
    assert_eq!(groups(message().varint(4, 1).varint(4, -2)), json!([1, -2]));
    assert_eq!(groups(message().bytes(4, [1, 0xac, 0x02])), json!([1, 300]));
    assert_eq!(
        groups(message().varint(4, 1).bytes(4, [2, 3]).varint(5, 9).varint(4, 4)),
        json!([1, 2, 3, 4])
    );
    // None of them is no list.
    assert_eq!(groups(message().bytes(4, "")), Value::Null);
    assert_eq!(groups(message().varint(4, 7).bytes(4, "")), json!([7]));
}
