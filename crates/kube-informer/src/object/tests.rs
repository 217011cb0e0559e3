//! Objects of both encodings, seen from outside.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::encoding::{ManagedFields, Rules};

const UID: &str = "7b1f0c3e-5a1d-4f0e-9d0a-0123456789ab";

fn intake(encoding: Encoding, rules: Rules) -> Intake {
    Intake::new(Codec::new(encoding, "v1", "ConfigMap", rules).unwrap())
}

/// A ConfigMap as JSON.
fn document(name: &str, version: &str, data: &[(&str, &str)]) -> Vec<u8> {
    let data: BTreeMap<_, _> = data.iter().copied().collect();
    let mut document = json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": UID, "resourceVersion": version, "generation": 3,
            "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:04:06Z",
            "labels": {"app": "web", "tier": "front"}, "annotations": {"note": "n", "other": "o"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u1"},
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "u2", "controller": true},
            ],
            "finalizers": ["a/b"],
            "managedFields": [{
                "manager": "kubectl", "operation": "Update", "time": "2026-01-02T03:04:05Z",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}},
            }],
        },
        "data": data,
    });
    if version.is_empty() {
        document["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    }
    document.to_string().into_bytes()
}

/// The same ConfigMap as protobuf, as an item of a list.
fn message(name: &str, version: &str, data: &[(&str, &str)]) -> Vec<u8> {
    fn put(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
        out.push(number << 3 | 2);
        if bytes.len() >= 128 {
            out.push((bytes.len() & 127) as u8 | 128);
        }
        out.push((bytes.len() >> if bytes.len() >= 128 { 7 } else { 0 }) as u8);
        out.extend_from_slice(bytes);
    }
    fn entry(fields: &[(u8, &[u8])]) -> Vec<u8> {
        let mut out = Vec::new();
        for (number, bytes) in fields {
            put(&mut out, *number, bytes);
        }
        out
    }
    fn time(seconds: i64) -> Vec<u8> {
        let mut out = vec![0x08];
        let mut rest = seconds as u64;
        while rest >= 128 {
            out.push(rest as u8 | 128);
            rest >>= 7;
        }
        out.push(rest as u8);
        out
    }
    let pair = |key: &str, value: &str| entry(&[(1, key.as_bytes()), (2, value.as_bytes())]);
    let mut metadata =
        entry(&[(1, name.as_bytes()), (3, b"default"), (5, UID.as_bytes()), (6, version.as_bytes())]);
    metadata.extend([7 << 3, 3]);
    let owner = [entry(&[(1, b"Node"), (3, b"n"), (4, b"u1"), (5, b"v1")]), {
        let mut owner = entry(&[(1, b"Deployment"), (3, b"d"), (4, b"u2"), (5, b"apps/v1")]);
        owner.extend([6 << 3, 1]);
        owner
    }];
    let writer = entry(&[
        (1, b"kubectl"),
        (2, b"Update"),
        (4, &time(1_767_323_045)),
        (6, b"FieldsV1"),
        (7, &entry(&[(1, br#"{"f:data":{}}"#)])),
    ]);
    for (number, bytes) in [
        (8, time(1_767_323_045)),
        (9, time(1_767_323_046)),
        (11, pair("app", "web")),
        (11, pair("tier", "front")),
        (12, pair("note", "n")),
        (12, pair("other", "o")),
        (13, owner[0].clone()),
        (13, owner[1].clone()),
        (14, b"a/b".to_vec()),
    ] {
        put(&mut metadata, number, &bytes);
    }
    metadata.extend([0x8a, 0x01, writer.len() as u8]);
    metadata.extend(writer);
    let mut out = Vec::new();
    put(&mut out, 1, &metadata);
    for (key, value) in data {
        put(&mut out, 2, &pair(key, value));
    }
    out
}

/// The same object in both encodings.
fn both(name: &str, version: &str, data: &[(&str, &str)]) -> [Object; 2] {
    [
        intake(Encoding::Json, Rules::default()).object(&document(name, version, data)).unwrap(),
        intake(Encoding::Protobuf, Rules::default()).object(&message(name, version, data)).unwrap(),
    ]
}

#[test]
fn what_an_object_is_found_by_needs_no_decoding() {
    for object in both("web", "7", &[("k", "v")]) {
        assert_eq!(object.key().to_string(), "default/web");
        assert_eq!((object.namespace(), object.name()), ("default", "web"));
        assert_eq!(object.uid(), UID);
        assert_eq!(object.version().number(), Some(7));
        assert_eq!(object.generation(), 3);
        assert_eq!(object.created().unwrap().to_string(), "2026-01-02T03:04:05Z");
        assert_eq!(object.deletion().unwrap().to_string(), "2026-01-02T03:04:06Z");
        assert_eq!(object.labels().get("app"), Some("web"));
        assert_eq!(object.owners().len(), 2);
        assert_eq!(&*object.controller().unwrap().name, "d");
        assert_eq!((object.api_version(), object.kind()), ("v1", "ConfigMap"));
        assert!(object.writers().is_empty());
        assert_eq!(object.inner.shared.views.stats().decodes, 0);
    }
}

#[test]
fn what_is_seldom_looked_at_is_read_from_the_bytes() {
    for object in both("web", "7", &[]) {
        assert_eq!(object.annotation("note").unwrap().as_deref(), Some("n"));
        assert_eq!(object.annotation("no").unwrap(), None);
        assert_eq!(object.annotations().unwrap().len(), 2);
        assert_eq!(object.finalizers().unwrap(), ["a/b"]);
    }
}

#[test]
fn writers_are_kept_where_that_is_asked_for() {
    let rules = Rules::default().managed_fields(ManagedFields::Writers);
    let json = intake(Encoding::Json, rules.clone()).object(&document("web", "7", &[])).unwrap();
    let protobuf = intake(Encoding::Protobuf, rules).object(&message("web", "7", &[])).unwrap();
    for object in [json, protobuf] {
        let [writer] = object.writers() else { panic!("{:?}", object.writers()) };
        assert_eq!((&*writer.manager, &*writer.operation, &*writer.subresource), ("kubectl", "Update", ""));
        assert_eq!(writer.time.unwrap().to_string(), "2026-01-02T03:04:05Z");
        assert!(!object.json().unwrap().contains("managedFields"));
    }
}

#[test]
fn a_view_is_shared_by_all_who_hold_it() {
    for object in both("web", "7", &[("k", "v")]) {
        let typed: Object<ConfigMap> = object.cast();
        let view = typed.view().unwrap();
        assert_eq!(view.data.as_ref().unwrap()["k"], "v");
        assert!(Arc::ptr_eq(&view, &typed.clone().view().unwrap()));
        assert!(Arc::ptr_eq(&object.view().unwrap(), &object.cast::<Value>().view().unwrap()));
        assert_eq!(object.inner.shared.views.stats().decodes, 2);
    }
}

#[test]
fn whoever_only_looks_sees_the_same_view_whatever_is_kept() {
    for budget in [ViewBudget::None, ViewBudget::default(), ViewBudget::All] {
        let mut intake = intake(Encoding::Json, Rules::default()).views(budget);
        let object = intake.object(&document("web", "7", &[("k", "v")])).unwrap();
        let typed: Object<ConfigMap> = object.cast();
        for _ in 0..2 {
            assert_eq!(typed.look().unwrap().data.as_ref().unwrap()["k"], "v");
        }
        let borrowed = Borrowed::<ConfigMap>::new(&object);
        assert_eq!((borrowed.name(), borrowed.look().unwrap().data.as_ref().unwrap().len()), ("web", 1));
        assert!(borrowed.to_object().is_same(&object));
        let decodes = object.inner.shared.views.stats().decodes;
        assert_eq!(decodes, if budget == ViewBudget::None { 3 } else { 1 });
        assert!(object.cast::<Vec<u8>>().look().is_err());
    }
}

#[test]
fn what_is_looked_at_again_and_again_is_pinned_and_decoded_once() {
    for borrowed in [false, true] {
        let mut intake = intake(Encoding::Json, Rules::default());
        let object = intake.object(&document("web", "7", &[("k", "v")])).unwrap();
        let typed: Object<ConfigMap> = object.cast();
        let look = || if borrowed { Borrowed::new(&object).look() } else { typed.look() };
        let is_pinned = || object.inner.slot.pinned::<ConfigMap>().is_some();
        assert_eq!(look().unwrap().data.as_ref().unwrap().len(), 1);
        assert!(!is_pinned());
        for _ in 0..100 {
            assert_eq!(look().unwrap().data.as_ref().unwrap().len(), 1);
        }
        assert!(is_pinned());
        assert_eq!(object.inner.shared.views.stats().decodes, 1);
    }
}

#[test]
fn an_object_that_does_not_fit_a_type_is_an_object_all_the_same() {
    #[derive(Debug, Deserialize)]
    struct Wrong {
        #[serde(rename = "data")]
        _data: BTreeMap<String, u64>,
    }
    let [json, protobuf] = both("web", "7", &[("k", "v")]);
    for object in [&json, &protobuf] {
        let error = object.cast::<Wrong>().view().unwrap_err();
        assert!(error.to_string().contains("invalid type: string \"v\", expected u64"), "{error}");
        assert!(object.cast::<Pod>().view().is_err());
        assert_eq!(object.view().unwrap()["data"]["k"], "v");
    }
    let error = protobuf.cast::<Wrong>().view().unwrap_err();
    assert_eq!(error.pointer(), "/data/k");
}

#[test]
fn a_pointer_is_read_as_any_type() {
    for object in both("web", "7", &[("k", "v")]) {
        assert_eq!(object.pointer::<String>("/data/k").unwrap().as_deref(), Some("v"));
        assert_eq!(object.pointer::<i64>("/metadata/generation").unwrap(), Some(3));
        assert_eq!(object.pointer::<String>("/data/no").unwrap(), None);
        assert!(object.pointer::<i64>("/data/k").is_err());
        let error = object.pointer::<String>("data/k").unwrap_err();
        assert!(error.to_string().contains("not a JSON pointer"), "{error}");
    }
}

#[test]
fn json_is_the_same_whatever_the_encoding_and_the_order() {
    let [json, protobuf] = both("web", "7", &[("b", "<&>"), ("a", "\u{2028}")]);
    assert_eq!(json.json().unwrap(), protobuf.json().unwrap());
    assert!(json.json().unwrap().starts_with(r#"{"apiVersion":"v1","data":{"a":"#));
    let mut intake = intake(Encoding::Json, Rules::default());
    let one = intake.object(br#"{"metadata":{"name":"a"},"data":{"x":"1","y":"2"}}"#).unwrap();
    let two = intake.object(br#"{"data":{"y":"2","x":"1"}, "metadata":{"name":"a"}}"#).unwrap();
    assert_eq!(one.json().unwrap(), two.json().unwrap());
}

#[test]
fn equal_objects_are_equal_however_they_are_kept() {
    let data = [("k", "a value of some length, so that there is something to pack")];
    let [json, protobuf] = both("web", "7", &data);
    assert_eq!(json, json.clone());
    assert_eq!(json, both("web", "7", &data)[0]);
    assert_eq!(protobuf, both("web", "7", &data)[1].cast::<ConfigMap>());
    assert_eq!(json, protobuf);

    // Packed with a dictionary, and plain.
    let mut packing = intake(Encoding::Json, Rules::default());
    for number in 0..2_000 {
        packing.object(&document(&format!("web-{number}"), "1", &data)).unwrap();
    }
    let packed = packing.object(&document("web", "7", &data)).unwrap();
    let (kept, plain) = packed.size();
    assert!(kept < plain / 2, "{kept} of {plain}");
    assert_eq!(packed, json);
    assert_eq!(packed, protobuf);

    for other in [both("web", "8", &data), both("bew", "7", &data), both("web", "7", &[("k", "w")])] {
        assert_ne!(json, other[0]);
        assert_ne!(protobuf, other[1]);
        assert_ne!(packed, other[0]);
    }
    // Without a version, only the content tells.
    let [json, protobuf] = both("web", "", &data);
    assert_eq!(json, protobuf);
    assert_ne!(json, both("web", "", &[("k", "w")])[1]);
    // Under other rules they show other things.
    let rules = Rules::default().drop(Pointer::parse("/data").unwrap()).unwrap();
    assert_ne!(json, intake(Encoding::Json, rules).object(&document("web", "", &data)).unwrap());
}

#[test]
fn an_object_of_a_list_equals_itself_from_a_watch() {
    let mut intake = intake(Encoding::Json, Rules::default());
    // Go writes the kind before the version; items of lists have neither, and both are put in front.
    let metadata = r#""metadata":{"name":"a","uid":"u","resourceVersion":"7"}"#;
    let mut object = |text: String| intake.object(text.as_bytes()).unwrap();
    let listed = object(format!(r#"{{{metadata},"data":{{"k":"v","l":"w"}}}}"#));
    let watched =
        object(format!(r#"{{"kind":"ConfigMap","apiVersion":"v1",{metadata},"data":{{"l":"w", "k":"v"}}}}"#));
    assert_ne!(listed.read(|x| x.bytes().to_vec()).unwrap(), watched.read(|x| x.bytes().to_vec()).unwrap());
    assert_eq!(listed, watched);
    assert_ne!(listed, object(format!(r#"{{{metadata},"data":{{"k":"v","l":"x"}}}}"#)));
}

#[test]
fn a_repacked_object_is_the_same_object() {
    let data = [("k", "a value of some length, so that there is something to pack")];
    let mut intake = intake(Encoding::Protobuf, Rules::default());
    let early = intake.object(&message("web", "7", &data)).unwrap();
    for number in 0..2_000 {
        intake.object(&message(&format!("web-{number}"), "1", &data)).unwrap();
    }
    assert!(intake.stats().dictionary > 0);
    let again = intake.repack(&early).unwrap();
    assert!(again.size().0 < early.size().0);
    assert_eq!(again, early);
    assert_eq!(
        (again.created(), again.deletion(), again.labels()),
        (early.created(), early.deletion(), early.labels())
    );
    assert_eq!((again.owners(), again.generation()), (early.owners(), early.generation()));
    assert!(intake.repack(&again).is_none());
}

#[test]
fn a_new_version_is_an_object_of_its_own() {
    let data = [("k", "a value of some length, so that there is something to pack")];
    let mut intake = intake(Encoding::Protobuf, Rules::default());
    let mut object = intake.object(&message("web", "1", &data)).unwrap();
    let first = object.clone();
    for version in 2..2_000 {
        let bytes = message("web", &version.to_string(), &data);
        object = intake.update(&bytes, |key| (key == object.key()).then(|| object.clone())).unwrap();
    }
    assert_eq!(object.version().number(), Some(1_999));
    assert_eq!(object.pointer::<String>("/metadata/resourceVersion").unwrap().as_deref(), Some("1999"));
    assert_eq!(first.pointer::<String>("/metadata/resourceVersion").unwrap().as_deref(), Some("1"));
    assert_ne!(object, first);
}

#[test]
fn what_is_equal_is_stored_once() {
    let mut intake = intake(Encoding::Json, Rules::default());
    let one = intake.object(&document("a", "1", &[])).unwrap();
    let two = intake.object(&document("b", "2", &[])).unwrap();
    assert!(std::ptr::eq(one.labels(), two.labels()));
    assert!(std::ptr::eq(one.owners(), two.owners()));
    assert!(std::ptr::eq(one.namespace(), two.namespace()));
    let stats = intake.stats();
    assert_eq!((stats.objects, stats.label_sets, stats.owner_lists, stats.namespaces), (2, 1, 1, 1));
}

#[test]
fn a_broken_object_says_whose_it_is_and_harms_no_other() {
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        let mut intake = intake(encoding, Rules::default());
        let whole = match encoding {
            Encoding::Json => document("web", "7", &[("k", "v")]),
            Encoding::Protobuf => message("web", "7", &[("k", "v")]),
        };
        let error = intake.object(&whole[..whole.len() - 2]).unwrap_err();
        assert_eq!(error.key.as_ref().unwrap().to_string(), "default/web", "{error}");
        assert_eq!(intake.object(&whole).unwrap().name(), "web");
    }
}

#[test]
fn bytes_can_be_read_while_others_are_read() {
    let [one, two] = both("web", "7", &[("k", "v")]);
    let lengths =
        one.read(|a| two.read(|b| one.read(|c| (a.bytes().len(), b.bytes().len(), c.bytes().len()))));
    let (a, b, c) = lengths.unwrap().unwrap().unwrap();
    assert!(a == c && a != b);
}
