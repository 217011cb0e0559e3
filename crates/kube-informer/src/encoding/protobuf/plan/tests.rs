//! What is dropped, and what cannot be.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::super::reader::{put_bytes, put_varint};
use super::*;
use crate::encoding::{Codec, CodecError, Encoding, Pointer};

/// A plan for a kind that drops these pointers, and keeps `managedFields`.
fn plan(api_version: &str, kind: &str, pointers: &[&str]) -> Result<Node, String> {
    let rules = Rules::default().managed_fields(ManagedFields::Keep);
    let drop = |rules: Rules, text: &&str| rules.drop(Pointer::parse(text).unwrap()).unwrap();
    let rules = pointers.iter().fold(rules, drop);
    let root = schema::root(api_version, kind).unwrap();
    Node::compile(root.message, &rules).map_err(|error| error.to_string())
}

fn cut(plan: &Node, bytes: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    plan.cut(bytes, &mut out).unwrap();
    out.split_off(6)
}

/// Length-delimited entries.
fn entries(all: &[(u32, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    all.iter().for_each(|(number, bytes)| put_bytes(&mut out, *number, bytes));
    out
}

#[test]
fn a_field_is_cut_and_the_rest_stays_byte_for_byte() {
    let plan = plan("v1", "Pod", &["/status"]).unwrap();
    let (metadata, spec) = (entries(&[(1, b"a")]), entries(&[(10, b"node")]));
    let whole = entries(&[(1, &metadata), (2, &spec), (3, b"garbage")]);
    assert_eq!(cut(&plan, &whole), entries(&[(1, &metadata), (2, &spec)]));
    assert_eq!(cut(&plan, &entries(&[(3, b""), (3, b"again")])), b"");
    assert_eq!(cut(&plan, &[]), b"");
}

#[test]
fn a_field_inside_is_cut_and_lengths_around_it_fit() {
    let plan = plan("v1", "Pod", &["/spec/nodeName", "/metadata/generateName"]).unwrap();
    // Lengths of one, two and three bytes, before and after.
    for kept in [0, 1, 100, 126, 127, 128, 200, 16_383, 16_384, 20_000] {
        for dropped in [0, 1, 127, 128, 20_000] {
            let (kept, dropped) = (vec![b'k'; kept], vec![b'd'; dropped]);
            let metadata = entries(&[(1, b"a"), (2, &dropped)]);
            let spec = entries(&[(3, &kept), (10, &dropped)]);
            let expected = entries(&[(1, &entries(&[(1, b"a")])), (2, &entries(&[(3, &kept)]))]);
            assert_eq!(cut(&plan, &entries(&[(1, &metadata), (2, &spec)])), expected);
        }
    }
}

#[test]
fn an_entry_of_a_map_is_cut_by_its_key() {
    let plan = plan("v1", "ConfigMap", &["/data/b", "/data/a~1b", "/metadata/labels/x"]).unwrap();
    let pair = |key: &[u8]| entries(&[(1, key), (2, b"value")]);
    let labels = |keys: &[&[u8]]| {
        let pairs: Vec<Vec<u8>> = keys.iter().map(|key| pair(key)).collect();
        entries(&pairs.iter().map(|pair| (11, &**pair)).collect::<Vec<_>>())
    };
    let whole = entries(&[
        (1, &labels(&[b"w", b"x", b"xx"])),
        (2, &pair(b"a")),
        (2, &pair(b"a/b")),
        (2, &pair(b"b")),
        (2, &pair(b"bb")),
    ]);
    let kept = entries(&[(1, &labels(&[b"w", b"xx"])), (2, &pair(b"a")), (2, &pair(b"bb"))]);
    assert_eq!(cut(&plan, &whole), kept);
    // A key that is not there is empty.
    let plan = self::plan("v1", "ConfigMap", &["/data/"]).unwrap();
    let no_key = entries(&[(2, b"value")]);
    assert_eq!(cut(&plan, &entries(&[(2, &no_key), (2, &pair(b"a"))])), entries(&[(2, &pair(b"a"))]));
}

#[test]
fn a_field_that_is_flat_in_json_is_cut_from_the_message_that_holds_it() {
    let plan = plan("v1", "PersistentVolume", &["/spec/nfs", "/spec/capacity"]).unwrap();
    let source = entries(&[(3, b"host"), (5, b"nfs")]);
    let spec = entries(&[(1, b"capacity"), (2, &source), (6, b"class")]);
    let kept = entries(&[(2, &entries(&[(3, b"host")])), (6, b"class")]);
    assert_eq!(cut(&plan, &entries(&[(2, &spec)])), entries(&[(2, &kept)]));
}

#[test]
fn numbers_are_cut_like_everything_else() {
    let plan = plan("apps/v1", "Deployment", &["/spec/replicas"]).unwrap();
    let mut spec = Vec::new();
    put_varint(&mut spec, 1 << 3);
    put_varint(&mut spec, 300);
    let kept = entries(&[(2, b"")]);
    spec.extend_from_slice(&kept);
    assert_eq!(cut(&plan, &entries(&[(2, &spec)])), entries(&[(2, &kept)]));
}

#[test]
fn what_the_kind_does_not_have_drops_nothing() {
    let nothing = Node::default();
    for pointer in ["/no", "/no/such/field", "/spec/no", "/spec/replicas/below", "/metadata/no"] {
        let plan = plan("apps/v1", "Deployment", &[pointer]).unwrap();
        let whole = entries(&[(1, b""), (2, b"")]);
        assert_eq!(cut(&plan, &whole), whole, "{pointer}");
        assert!(!plan.drops(2), "{pointer}");
    }
    assert_eq!(plan("apps/v1", "Deployment", &["/no"]).unwrap(), nothing);
}

#[test]
fn what_is_dropped_with_all_below_it_swallows_what_is_below() {
    let whole = plan("apps/v1", "Deployment", &["/spec"]).unwrap();
    assert_eq!(plan("apps/v1", "Deployment", &["/spec/template", "/spec", "/spec/replicas"]).unwrap(), whole);
    let labels = plan("v1", "ConfigMap", &["/metadata/labels"]).unwrap();
    assert_eq!(plan("v1", "ConfigMap", &["/metadata/labels/a", "/metadata/labels"]).unwrap(), labels);
    assert!(whole.drops(2) && whole.below(2).is_none());
}

#[test]
fn a_pointer_through_a_list_or_without_a_schema_is_refused_with_its_reason() {
    for (api_version, kind, pointer, why) in [
        ("v1", "Pod", "/spec/containers/0", "it leads through a list"),
        ("v1", "Pod", "/spec/containers/0/image", "it leads through a list"),
        ("v1", "Pod", "/metadata/finalizers/0", "it leads through a list"),
        ("v1", "Pod", "/metadata/managedFields/0/fieldsV1", "it leads through a list"),
        ("apps/v1", "ControllerRevision", "/data/spec", "it leads into a value without a schema"),
        ("v1", "ConfigMap", "/data/key/below", "it leads through a map"),
        ("v1", "ConfigMap", "/metadata/labels/a/b", "it leads through a map"),
    ] {
        let error = plan(api_version, kind, &[pointer]).unwrap_err();
        assert_eq!(error, format!("{pointer} cannot be dropped: {why}"));
        let rules = Rules::default().drop(Pointer::parse(pointer).unwrap()).unwrap();
        let error = Codec::new(Encoding::Protobuf, api_version, kind, rules).unwrap_err();
        assert!(matches!(error, CodecError::Pointer(_)), "{error}");
    }
    // The list as a whole can be.
    assert!(plan("v1", "Pod", &["/spec/containers", "/metadata/finalizers"]).is_ok());
    assert!(plan("apps/v1", "ControllerRevision", &["/data"]).is_ok());
}

#[test]
fn managed_fields_are_cut_unless_they_are_kept() {
    let root = schema::root("v1", "Pod").unwrap();
    let metadata = entries(&[(1, b"a"), (17, b"garbage"), (17, b"more")]);
    let whole = entries(&[(1, &metadata)]);
    for (managed_fields, kept) in [
        (ManagedFields::Keep, whole.clone()),
        (ManagedFields::Cut, entries(&[(1, &entries(&[(1, b"a")]))])),
        (ManagedFields::Writers, entries(&[(1, &entries(&[(1, b"a")]))])),
    ] {
        let rules = Rules::default().managed_fields(managed_fields);
        let plan = Node::compile(root.message, &rules).unwrap();
        assert_eq!(cut(&plan, &whole), kept, "{managed_fields:?}");
    }
}

/// The wire has no empty map. JSON would show `{}` here: it cannot tell a map from a struct.
#[test]
fn a_map_that_loses_all_its_entries_is_gone() {
    let plan = plan("v1", "ConfigMap", &["/data/a"]).unwrap();
    let pair = entries(&[(1, b"a"), (2, b"v")]);
    assert_eq!(cut(&plan, &entries(&[(1, b""), (2, &pair)])), entries(&[(1, b"")]));
}

/// The same object in both encodings, with the same fields dropped.
#[test]
fn both_encodings_show_the_same_without_what_was_dropped() {
    let rules = |pointers: &[&str]| {
        let drop = |rules: Rules, text: &&str| rules.drop(Pointer::parse(text).unwrap()).unwrap();
        pointers.iter().fold(Rules::default(), drop)
    };
    let pair = |key: &[u8]| entries(&[(1, key), (2, b"v")]);
    let metadata = entries(&[(1, b"a"), (11, &pair(b"k")), (11, &pair(b"l"))]);
    let protobuf = entries(&[(1, &metadata), (2, &pair(b"x")), (2, &pair(b"y"))]);
    let json = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"k":"v","l":"v"}},
        "data":{"x":"v","y":"v"}}"#;
    for pointers in [
        &["/data/x"][..],
        &["/data"],
        &["/metadata/labels/k", "/data/y"],
        &["/metadata/labels", "/metadata/labels/k"],
        &["/metadata/creationTimestamp", "/metadata/annotations/no", "/data/no"],
    ] {
        let shown = |encoding, bytes: &[u8]| {
            let codec = Codec::new(encoding, "v1", "ConfigMap", rules(pointers)).unwrap();
            let mut stored = Vec::new();
            let metadata = codec.ingest(bytes, &mut stored).unwrap().into_owned();
            (codec.json(&stored).unwrap(), metadata)
        };
        assert_eq!(shown(Encoding::Protobuf, &protobuf), shown(Encoding::Json, json), "{pointers:?}");
    }
}
