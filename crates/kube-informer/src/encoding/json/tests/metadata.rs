//! What is read of the metadata.

use std::borrow::Cow;

use super::*;
use crate::encoding::metadata::{Owner, Writer};

#[test]
fn all_fields_of_the_metadata_are_read() {
    let mut out = Vec::new();
    let metadata = ingest(POD, None, &Rules::default(), &mut out).unwrap();
    let value: serde_json::Value = serde_json::from_slice(POD).unwrap();
    let value = &value["metadata"];
    assert_eq!((&*metadata.api_version, &*metadata.kind), ("v1", "Pod"));
    assert_eq!((&*metadata.name, &*metadata.namespace), ("checkout-6d4cf56db6-x7k2p", "shop"));
    assert_eq!(metadata.uid, value["uid"].as_str().unwrap());
    assert_eq!((&*metadata.resource_version, metadata.generation), ("184467", 1));
    assert_eq!(metadata.created, Some("2026-03-01T09:15:00Z".parse().unwrap()));
    assert_eq!(metadata.deleted, None);
    for (read, expected) in
        [(&metadata.labels, &value["labels"]), (&metadata.annotations, &value["annotations"])]
    {
        let read: serde_json::Map<_, _> =
            read.iter().map(|(key, value)| (key.clone().into_owned(), value.as_ref().into())).collect();
        assert_eq!(&serde_json::Value::from(read), expected);
    }
    let owner = Owner {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        name: "checkout-6d4cf56db6".into(),
        uid: "1b4e28ba-2fa1-41d2-883f-0016d3cca427".into(),
        controller: true,
        block_owner_deletion: true,
    };
    assert_eq!(metadata.owners, [owner]);
    assert_eq!(metadata.finalizers, ["example.com/drain"]);
    assert_eq!(metadata.writers, []);
}

#[test]
fn the_writers_are_kept_where_they_are_wanted() {
    let rules = rules(ManagedFields::Writers, &[]);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let metadata = ingest(POD, None, &rules, &mut with).unwrap();
    let writer =
        |manager: &'static str, operation: &'static str, subresource: &'static str, time: &str| Writer {
            manager: manager.into(),
            operation: operation.into(),
            subresource: subresource.into(),
            time: Some(time.parse().unwrap()),
        };
    let expected = [
        writer("kube-controller-manager", "Update", "", "2026-03-01T09:15:00Z"),
        writer("kube-scheduler", "Update", "status", "2026-03-01T09:15:01Z"),
        writer("kubelet", "Update", "status", "2026-03-01T09:15:09Z"),
        writer("drain-controller", "Apply", "", "2026-03-02T17:40:00Z"),
    ];
    assert_eq!(metadata.writers, expected);
    ingest(POD, None, &Rules::default(), &mut without).unwrap();
    assert_eq!(with, without);
}

#[test]
fn strings_are_lent_unless_they_have_escapes() {
    let document =
        r#"{"metadata":{"name":"a","namespace":"\u0062\n\ud83d\ude00","labels":{"k":"v","\/":"\\"}}}"#;
    let mut out = Vec::new();
    let metadata = ingest(document.as_bytes(), None, &Rules::default(), &mut out).unwrap();
    assert!(matches!(metadata.name, Cow::Borrowed("a")));
    assert!(matches!(&metadata.namespace, Cow::Owned(text) if text == "b\n😀"));
    assert!(matches!(metadata.labels[0], (Cow::Borrowed("k"), Cow::Borrowed("v"))));
    assert_eq!(metadata.labels[1], ("/".into(), "\\".into()));
}

#[test]
fn null_is_as_absent() {
    let fields = [
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ];
    let nulls: String = fields.iter().map(|field| format!(r#","{field}":null"#)).collect();
    let document = format!(r#"{{"metadata":{{"name":"a"{nulls}}}}}"#);
    for managed_fields in [ManagedFields::Cut, ManagedFields::Writers, ManagedFields::Keep] {
        let rules = rules(managed_fields, &[]);
        let metadata = ingest(document.as_bytes(), None, &rules, &mut Vec::new()).unwrap();
        assert_eq!(metadata, Metadata { name: "a".into(), ..Metadata::default() });
    }
}

#[test]
fn metadata_read_again_is_what_was_read_first() {
    let rules = rules(ManagedFields::Cut, &["/metadata/labels/team", "/metadata/finalizers", "/spec"]);
    let mut out = Vec::new();
    let first = ingest(POD, None, &rules, &mut out).unwrap();
    assert_eq!(metadata(&out).unwrap(), first);
    assert!(first.finalizers.is_empty());
}

#[test]
fn metadata_read_again_stands_anywhere() {
    let document = r#"{"spec":{"a":[{}]},"metadata":{"name":"a"},"kind":"K","status":1,"apiVersion":"v1"}"#;
    let again = metadata(document.as_bytes()).unwrap();
    assert_eq!((&*again.api_version, &*again.kind, &*again.name), ("v1", "K", "a"));
}

#[test]
fn metadata_of_bytes_that_were_never_checked_is_an_error_or_a_guess() {
    for bytes in [&b""[..], b"{", b"[]", b"\xff", b"{\"metadata\":{\"name\":\"\xff\"}}"] {
        assert!(metadata(bytes).is_err(), "{bytes:?}");
    }
}
