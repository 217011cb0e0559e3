//! Generated bodies: what comes out does not depend on chunks, and is what a parser of the whole body sees.

use kube_informer::encoding::Encoding::{self, Json, Protobuf};
use kube_informer::wire::WatchFrame;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bodies::{cut, envelope, event, framed, list, protobuf_list, watch, whole};

const LIMIT: usize = 300;

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z\\\\\"{}\\[\\],:é\n]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z\\\\\"{}\\[\\]]{0,8}",
        prop::sample::select(vec!["items", "metadata", "kind", "type", "object"]).prop_map(str::to_owned),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map(key(), value(), 0..5).prop_map(Value::from_iter)
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(vec![1]),
        prop::collection::vec(0usize..20, 1..6),
        prop::collection::vec(0usize..400, 1..4),
    ]
}

/// A list's body, its members in any order, and the document that it is.
fn json_list() -> impl Strategy<Value = (String, Vec<Value>)> {
    (prop::collection::vec(object(), 0..6), value(), any::<bool>(), any::<prop::sample::Index>()).prop_map(
        |(items, other, pretty, rotation)| {
            let mut members = [
                ("kind", json!("PodList")),
                ("apiVersion", json!("v1")),
                ("metadata", json!({ "resourceVersion": "42", "other": other })),
                ("other", other),
                ("items", json!(items)),
            ];
            members.rotate_left(rotation.index(5));
            let write = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("\"{key}\": {}", write(value).unwrap())).collect();
            (format!("{{{}}}\n", members.join(" ,\n")), items)
        },
    )
}

/// A line of a watch: good, unusable, too large or blank.
fn line() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec!["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "MOVED", ""]);
    prop_oneof![
        6 => (kind, object(), any::<bool>()).prop_map(|(kind, object, swapped)| {
            if swapped {
                format!("{{\"object\":{object} , \"type\": \"{kind}\"}}")
            } else {
                json!({ "type": kind, "object": object, "other": [kind] }).to_string()
            }
        }),
        1 => "[ \r]{0,3}",
        1 => "\\{[a-z\\\\\"{}\\[\\]:,]{0,30}",
        1 => Just(format!("{{\"type\":\"ADDED\",\"object\":{{\"a\":\"{}\"}}}}", "x".repeat(LIMIT))),
    ]
}

/// A frame of a watch: good, unusable or too large.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(vec!["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "MOVED", ""]);
    let bytes = || prop::collection::vec(any::<u8>(), 0..100);
    prop_oneof![
        6 => (kind, bytes()).prop_map(|(kind, raw)| event(kind, envelope("v1", "Pod", raw))),
        1 => bytes().prop_map(framed),
        1 => Just(event("ADDED", envelope("v1", "Pod", "x".repeat(LIMIT)))),
    ]
}

fn same_in_any_chunks(encoding: Encoding, body: &[u8], sizes: &[usize]) -> Result<(), TestCaseError> {
    let chunks = || cut(body, sizes);
    prop_assert_eq!(watch(encoding, LIMIT, chunks()), watch(encoding, LIMIT, whole(body)));
    prop_assert_eq!(list(encoding, LIMIT, chunks()), list(encoding, LIMIT, whole(body)));
    Ok(())
}

proptest! {
    #[test]
    fn the_items_of_a_json_list_are_those_that_a_parser_sees((body, items) in json_list(), sizes in sizes()) {
        let document: Value = serde_json::from_str(&body).unwrap();
        prop_assert_eq!(&document["items"], &json!(items));
        let (found, end) = list(Json, 1 << 20, cut(body.as_bytes(), &sizes));
        let found: Vec<Value> = found.iter().map(|item| serde_json::from_slice(item.as_ref().unwrap()).unwrap()).collect();
        prop_assert_eq!(found, items);
        prop_assert_eq!(end.unwrap().resource_version, "42");
        same_in_any_chunks(Json, body.as_bytes(), &sizes)?;
    }

    #[test]
    fn the_objects_of_a_json_watch_are_those_that_a_parser_sees(
        objects in prop::collection::vec(object(), 0..6),
        sizes in sizes(),
    ) {
        let body: String = objects.iter().map(|object| format!("{}\n", json!({ "type": "MODIFIED", "object": object }))).collect();
        let (found, end) = watch(Json, 1 << 20, cut(body.as_bytes(), &sizes));
        prop_assert_eq!(end, Ok(()));
        let found: Vec<Value> = found
            .iter()
            .map(|frame| match frame {
                Ok(WatchFrame::Object { object, .. }) => serde_json::from_slice(object).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        prop_assert_eq!(found, objects);
    }

    #[test]
    fn a_json_watch_is_the_same_in_any_chunks(lines in prop::collection::vec(line(), 0..8), sizes in sizes()) {
        same_in_any_chunks(Json, format!("{}\n", lines.join("\n")).as_bytes(), &sizes)?;
        same_in_any_chunks(Json, lines.join("\r\n").as_bytes(), &sizes)?;
    }

    #[test]
    fn a_protobuf_watch_is_the_same_in_any_chunks(frames in prop::collection::vec(frame(), 0..8), sizes in sizes()) {
        let body = frames.concat();
        prop_assert_eq!(watch(Protobuf, LIMIT, whole(&body)).0.len(), frames.len());
        same_in_any_chunks(Protobuf, &body, &sizes)?;
    }

    #[test]
    fn the_items_of_a_protobuf_list_are_what_was_written(
        items in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..400), 0..6),
        sizes in sizes(),
    ) {
        let body = protobuf_list(&items);
        let (found, end) = list(Protobuf, LIMIT, cut(&body, &sizes));
        prop_assert_eq!(end.unwrap().resource_version, "42");
        prop_assert_eq!(found.len(), items.len());
        for (found, item) in found.iter().zip(&items) {
            match found {
                Ok(found) => prop_assert_eq!(found, item),
                Err(_) => prop_assert!(item.len() > LIMIT),
            }
        }
        same_in_any_chunks(Protobuf, &body, &sizes)?;
    }

    #[test]
    fn any_bytes_are_the_same_in_any_chunks(bytes in prop::collection::vec(any::<u8>(), 0..300), sizes in sizes()) {
        for encoding in [Json, Protobuf] {
            same_in_any_chunks(encoding, &bytes, &sizes)?;
            same_in_any_chunks(encoding, &[b"k8s\0", &bytes[..]].concat(), &sizes)?;
        }
    }

    #[test]
    fn an_object_of_a_list_and_of_a_watch_is_given_byte_for_byte(members in prop::collection::vec((key(), value()), 0..4)) {
        // Keys that stand twice are not ours to judge.
        let members: Vec<String> = members.iter().map(|(key, value)| format!(" {} :{value}", json!(key))).collect();
        let object = format!("{{{} }}", members.join(","));
        let (found, _) = list(Json, 1 << 20, whole(format!("{{\"items\":[ {object} ]}}").as_bytes()));
        prop_assert_eq!(found[0].as_ref().unwrap(), object.as_bytes());
        let line = format!("{{\"type\":\"BOOKMARK\",\"object\": {object} }}\n");
        let (found, _) = watch(Json, 1 << 20, whole(line.as_bytes()));
        prop_assert_eq!(found[0].as_ref().unwrap(), &WatchFrame::Bookmark { object: object.into() });
    }
}
