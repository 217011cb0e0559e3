use bytes::Bytes;
use kube_informer::encoding::Encoding::{Json, Protobuf};
use kube_informer::encoding::{DecodeError, Fault};
use kube_informer::wire::{ListItems, MAX_DEPTH, MAX_HEAD, Status, WireError};

use crate::bodies::{
    Items, JSON_STATUS, cut, envelope, field, list, number, protobuf_list, protobuf_status, varint, whole,
};

fn json(body: &str) -> Items {
    list(Json, 1000, whole(body.as_bytes()))
}

fn protobuf(body: &[u8]) -> Items {
    list(Protobuf, 1000, whole(body))
}

/// The items as text, where all are good.
fn texts(items: &Items) -> Vec<String> {
    items.0.iter().map(|item| String::from_utf8_lossy(item.as_ref().unwrap()).into_owned()).collect()
}

fn broken(items: &Items) -> &DecodeError {
    match &items.1 {
        Err(WireError::Broken(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_list_is_its_items_and_then_its_own_fields() {
    let body = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42","continue":"next","remainingItemCount":7},"items":[{"a":1},{"b":[{}]}]}"#;
    let found = json(body);
    assert_eq!(texts(&found), [r#"{"a":1}"#, r#"{"b":[{}]}"#]);
    let in_protobuf = protobuf(&protobuf_list(&[r#"{"a":1}"#, r#"{"b":[{}]}"#]));
    assert_eq!(found, in_protobuf);
    let end = found.1.unwrap();
    assert_eq!((end.api_version.as_str(), end.kind.as_str()), ("v1", "PodList"));
    assert_eq!((end.resource_version.as_str(), end.continue_token.as_str()), ("42", "next"));
    assert_eq!(end.remaining_item_count, Some(7));
}

#[test]
fn an_item_within_one_chunk_is_not_copied() {
    let json = Bytes::from_static(br#"{"items":[{"a":1}]}"#);
    for (encoding, chunk) in [(Json, json), (Protobuf, Bytes::from(protobuf_list(&["bytes"])))] {
        let mut items = ListItems::new(encoding, 1000);
        items.push(chunk.clone());
        let item = items.next_item().unwrap().unwrap();
        assert!(chunk.as_ptr_range().contains(&item.as_ptr()));
    }
}

#[test]
fn keys_come_in_any_order_and_blanks_anywhere() {
    let nested = r#"{"items":[{"items":[1]}],"metadata":{"resourceVersion":"1"},"s":"],\"items\":[{}]"}"#;
    for body in [
        format!(r#"{{"items":[{nested}],"metadata":{{"resourceVersion":"7"}}}}"#),
        format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{nested}]}}"#),
        format!(
            "\r\n{{ \"x\" : {nested} , \"items\"\t:\n[ {nested} ] , \"metadata\" : {{ \"resourceVersion\" : \"7\" }} }}\r\n\n"
        ),
        format!(r#"{{"\u0069tems":[{nested}],"m\u0065tadata":{{"resource\u0056ersion":"\u0037"}}}}"#),
        format!(
            r#"{{"x":-1.5e+3,"y":"items","items":[{nested}],"metadata":{{"resourceVersion":"7","z":[]}}}}"#
        ),
        format!(r#"{{"{}":1,"items":[{nested}],"metadata":{{"resourceVersion":"7"}}}}"#, "items".repeat(99)),
    ] {
        let found = json(&body);
        assert_eq!(texts(&found), [nested], "{body}");
        assert_eq!(found.1.unwrap().resource_version, "7", "{body}");
    }
}

#[test]
fn a_list_can_be_empty() {
    for body in [r#"{"items":[],"metadata":{}}"#, r#"{"items":null}"#, r#"{"items" : [ ] , "metadata":null}"#]
    {
        let found = json(body);
        assert!(found.0.is_empty() && found.1.is_ok(), "{found:?}");
    }
    let found = protobuf(&protobuf_list::<&str>(&[]));
    assert_eq!((found.0.len(), found.1.unwrap().resource_version.as_str()), (0, "42"));
    let found = protobuf(&envelope("v1", "PodList", ""));
    assert!(found.0.is_empty() && found.1.is_ok(), "{found:?}");
    let found = protobuf(&protobuf_list(&["", ""]));
    assert_eq!(texts(&found), ["", ""], "an item can be empty, too");
}

#[test]
fn what_is_no_list_is_not_taken_for_an_empty_one() {
    for (body, offset, message) in [
        ("{}", 1, r#"found the end of a document without a kind at byte 1: expected items before"#),
        (
            r#"{"error":"x"}"#,
            12,
            "found the end of a document without a kind at byte 12: expected items before",
        ),
        (
            r#"{"kind":"Pod"}"#,
            13,
            r#"found the end of a document of the kind "Pod" at byte 13: expected items before"#,
        ),
        (r#"{"items":{}}"#, 9, "found '{' at byte 9: expected a list of items"),
        (r#"{"metadata":[]}"#, 12, "found '[' at byte 12: expected an object"),
        (r#"{"items":nul}"#, 9, "found nul at byte 9: expected a list of items"),
        (r#"{"items":"[]"}"#, 9, "found '\"' at byte 9: expected a list of items"),
        ("{,}", 1, "found ',' at byte 1: expected a key or }"),
        ("{1:2}", 1, "found '1' at byte 1: expected a key or }"),
        (r#"{"items"[]}"#, 8, "found '[' at byte 8: expected :"),
        (r#"{"items":[] "a":1}"#, 12, "found '\"' at byte 12: expected , or }"),
        (r#"{"items":[],}"#, 12, "found '}' at byte 12: expected a key"),
        (r#"{"items":[{} {}]}"#, 13, "found '{' at byte 13: expected , or ]"),
        (r#"{"items":[{},]}"#, 13, "found ']' at byte 13: expected an item"),
        (r#"{"items":[]}}"#, 12, "found '}' at byte 12: expected the end"),
        ("{\"items\":[]}\0", 12, "found the byte 0x00 at byte 12: expected the end"),
        (r#"{"items":[],"\q":1}"#, 12, "found a malformed string at byte 12: expected a key"),
        (
            r#"{"items":[],"items":[]}"#,
            12,
            r#"the key "items" stands twice at byte 12: expected each key once"#,
        ),
        (
            r#"{"kind":"L","items":[],"kind":"L"}"#,
            23,
            r#"the key "kind" stands twice at byte 23: expected each key once"#,
        ),
    ] {
        let found = json(body);
        let error = broken(&found);
        assert_eq!((error.offset, error.to_string().as_str()), (offset, message), "{body}");
    }
    for body in [
        r#"{"items":[],"kind":7}"#,
        r#"{"items":[],"metadata":nil}"#,
        r#"{"items":[],"metadata":{"resourceVersion":7}}"#,
        r#"{"items":[],"metadata":{"resourceVersion":"7",}}"#,
    ] {
        assert!(broken(&json(body)).to_string().contains("malformed fields"), "{body}");
    }
}

#[test]
fn what_is_no_protobuf_list_is_not_taken_for_one() {
    let meta = field(1, [field(1, "v1"), field(2, "PodList")].concat());
    let after_magic = |parts: &[&[u8]]| [b"k8s\0", &parts.concat()[..]].concat();
    for (body, expected) in [
        (envelope("v1", "Pod", field(2, "spec")), "a list, not the kind \"Pod\""),
        (after_magic(&[&field(2, field(2, "item"))]), "a kind"),
        (
            after_magic(&[&field(2, field(2, "item")), &field(1, field(2, "Pod"))]),
            "a list, not the kind \"Pod\"",
        ),
        (after_magic(&[&meta, &field(2, ""), &field(2, "")]), "one document"),
        (after_magic(&[&meta, &field(2, ""), &field(3, "gzip")]), "a list that is not encoded once more"),
        (after_magic(&[&meta, &field(2, b"\x12\x05item")]), "at most the 4 bytes that are left of the list"),
        (after_magic(&[&meta, &field(2, b"\x1d\0\0")]), "at most the 2 bytes that are left of the list"),
        (after_magic(&[&meta, &field(2, b"\x12")]), "the end of the list"),
        (after_magic(&[&meta, &field(2, b"\x08")]), "the end of the list"),
        (after_magic(&[&meta, &field(2, b"\x92")]), "the end of the list"),
        (after_magic(&[&meta, &field(2, b"\x13")]), "a field"),
        (after_magic(&[&meta, b"\x02"]), "a field"),
        (after_magic(&[&meta, &[0xff; 11]]), "at most 64 bits"),
        (after_magic(&[&meta, b"\x12", &varint(u64::MAX)]), "the rest of the list"),
        (after_magic(&[&meta, b"\x12", &varint(u64::MAX), b"\x12", &varint(u64::MAX - 99)]), "an item"),
        (after_magic(&[&meta]), "the rest of the list"),
        (after_magic(&[]), "the rest of the list"),
        (b"k8s".to_vec(), "a list"),
        (b"k8s\x01rest".to_vec(), "a list in its envelope"),
        (vec![], "a list"),
    ] {
        let found = protobuf(&body);
        assert_eq!(broken(&found).expected, expected, "{body:x?}");
    }
}

#[test]
fn protobuf_fields_come_in_any_order() {
    let message = [
        number(9, 1),
        field(2, "a"),
        field(7, "x"),
        b"\x1d\0\0\0\0".to_vec(),
        field(1, field(2, "42")),
        field(2, "b"),
    ]
    .concat();
    let meta = [field(2, "PodList"), field(1, "v1")].concat();
    let body = [b"k8s\0".to_vec(), number(8, 300), field(2, message), field(4, "x"), field(1, meta)].concat();
    let found = protobuf(&body);
    assert_eq!(texts(&found), ["a", "b"]);
    let end = found.1.unwrap();
    assert_eq!((end.kind.as_str(), end.resource_version.as_str()), ("PodList", "42"));
}

#[test]
fn an_item_above_the_limit_is_skipped_and_the_next_one_comes() {
    let large = format!("{{\"a\":[\"]}}{}\"]}}", "x".repeat(200));
    let items = ["{}", large.as_str(), "{}"];
    let in_json = format!("{{\"items\":[{}]}}", items.join(","));
    let in_protobuf = protobuf_list(&items);
    let start = in_protobuf.windows(large.len()).position(|window| window == large.as_bytes()).unwrap();
    for (encoding, body, offset) in [(Json, in_json.as_bytes(), 13), (Protobuf, &in_protobuf, start)] {
        for size in [1, 7, usize::MAX] {
            let (found, end) = list(encoding, 100, cut(body, &[size]));
            assert!(end.is_ok());
            assert_eq!((found.len(), &found[0], &found[2]), (3, &Ok("{}".into()), &Ok("{}".into())));
            let Err(WireError::Skipped(error)) = &found[1] else { panic!("{found:?}") };
            assert_eq!((&error.fault, error.offset), (&Fault::TooLarge { limit: 100 }, offset));
        }
        // What has as many bytes as the limit is within it.
        assert!(list(encoding, large.len(), whole(body)).0.iter().all(Result::is_ok));
        assert!(list(encoding, large.len() - 1, whole(body)).0[1].is_err());
    }
}

#[test]
fn an_item_that_is_skipped_says_whose_it_is() {
    let x = "x".repeat(200);
    let deep = "[".repeat(MAX_DEPTH);
    let in_json = [
        format!(r#"{{"metadata":{{"name":"a","namespace":"b"}},"x":"{x}"}}"#),
        format!(r#"{{"metadata":{{"name":"a","uid":"{x}"}}}}"#),
        format!(r#"{{"metadata":{{"name":"c","namespace":"d"}},"x":{deep}{}}}"#, deep.replace('[', "]")),
    ];
    let message = |metadata: &[Vec<u8>]| [field(1, metadata.concat()), field(2, &x)].concat();
    let in_protobuf = [
        message(&[field(1, "a"), field(3, "b")]),
        message(&[field(1, "a"), field(5, &x)]),
        message(&[field(1, "c"), field(3, "d"), field(5, &x)]),
    ];
    let in_json = format!(r#"{{"items":[{}]}}"#, in_json.join(","));
    for (encoding, limit, body) in [
        (Json, 600, in_json.as_bytes()),
        (Json, 100, in_json.as_bytes()),
        (Protobuf, 100, &protobuf_list(&in_protobuf)),
    ] {
        for size in [1, 7, usize::MAX] {
            let (found, end) = list(encoding, limit, cut(body, &[size]));
            assert!(end.is_ok());
            let keys: Vec<_> = found
                .iter()
                .filter_map(|item| match item {
                    Err(WireError::Skipped(error)) => Some(error.key.as_ref().map(ToString::to_string)),
                    _ => None,
                })
                .collect();
            let expected = [Some("b/a".to_owned()), None, Some("d/c".to_owned())];
            // Within the larger limit, only the last one is nested too deep.
            assert_eq!(keys, if limit == 600 { &expected[2..] } else { &expected[..] }, "{encoding:?}");
        }
    }
}

#[test]
fn an_item_that_is_nested_too_deep_is_skipped_and_the_next_one_comes() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    let body = format!("{{\"items\":[{deep},{{}}]}}");
    let (found, end) = list(Json, 10_000, whole(body.as_bytes()));
    assert!(end.is_ok());
    assert_eq!(found[1], Ok("{}".into()));
    let Err(WireError::Skipped(error)) = &found[0] else { panic!("{found:?}") };
    assert_eq!((&error.fault, error.offset), (&Fault::TooDeep { limit: MAX_DEPTH }, 10 + 5 + MAX_DEPTH - 1));
}

#[test]
fn an_item_that_is_no_object_is_skipped_and_the_next_one_comes() {
    for item in ["null", "7", "\"{}\"", "[{}]", "[[\"]\"]]", "true"] {
        let (found, end) = json(&format!("{{\"items\":[{item},{{}} , {item}]}}"));
        assert!(end.is_ok(), "{item}: {end:?}");
        assert!(
            matches!(&found[..], [Err(WireError::Skipped(_)), Ok(_), Err(WireError::Skipped(_))]),
            "{found:?}"
        );
    }
}

#[test]
fn a_body_that_ends_anywhere_is_truncated() {
    let body = br#"{"kind":"L","items":[{"a":1},{"b":"c"}],"metadata":{"resourceVersion":"7"}}"#;
    for end in 0..body.len() {
        let found = list(Json, 1000, whole(&body[..end]));
        assert_eq!(broken(&found).fault, Fault::Truncated, "{end}");
        assert_eq!(broken(&found).offset, end);
    }
    let body = protobuf_list(&["item", "another"]);
    let complete = protobuf(&body);
    for end in 0..body.len() {
        let found = protobuf(&body[..end]);
        // The last two fields of the envelope are empty: a body may end between them.
        if end == body.len() - 4 || end == body.len() - 2 {
            assert_eq!(found, complete);
        } else {
            assert_eq!((&broken(&found).fault, broken(&found).offset), (&Fault::Truncated, end));
        }
    }
}

#[test]
fn text_in_place_of_a_list_is_named_as_such() {
    let page = format!("<!DOCTYPE html>\n<html>{}", "<p>gateway</p>\n".repeat(100));
    for encoding in [Json, Protobuf] {
        for size in [1, 3, usize::MAX] {
            let (found, _) = list(encoding, 1000, cut(page.as_bytes(), &[size]));
            let [Err(WireError::NotAnApi { beginning })] = &found[..] else { panic!("{found:?}") };
            assert!(beginning.starts_with("<!DOCTYPE html> <html><p>gateway</p>") && beginning.len() <= 256);
        }
        let (_, end) = list(encoding, 1000, whole("\u{feff}[]".as_bytes()));
        assert_eq!(end, Err(WireError::NotAnApi { beginning: "\u{feff}[]".to_owned() }));
    }
}

#[test]
fn a_status_in_place_of_a_list_is_the_error() {
    let expected = WireError::Status(Box::new(Status::read(Json, JSON_STATUS.as_bytes())));
    let sorted = serde_json::from_str::<serde_json::Value>(JSON_STATUS).unwrap();
    let sorted = serde_json::to_string_pretty(&sorted).unwrap();
    let in_protobuf = envelope("v1", "Status", protobuf_status());
    for (encoding, body) in
        [(Json, JSON_STATUS.as_bytes()), (Json, sorted.as_bytes()), (Protobuf, &in_protobuf[..])]
    {
        let (found, end) = list(encoding, 10, whole(body));
        assert_eq!((&found[..], end), (&[Err(expected.clone())][..], Err(expected.clone())));
    }
}

#[test]
fn a_status_that_is_cut_or_too_long_is_still_one() {
    let cut = &JSON_STATUS[..JSON_STATUS.len() - 20];
    let Err(WireError::Status(status)) = json(cut).1 else { panic!("{cut}") };
    assert_eq!((status.reason.as_str(), status.code), ("Timeout", 0));
    let body = envelope("v1", "Status", protobuf_status());
    let Err(WireError::Status(status)) = protobuf(&body[..body.len() - 20]).1 else { panic!("{body:x?}") };
    assert_eq!(status.reason, "Timeout");

    let long = "x".repeat(2 * MAX_HEAD);
    let json_long = JSON_STATUS.replace("Timeout: Too", &long);
    let protobuf_long = [field(4, "Timeout"), field(3, &long)].concat();
    for (encoding, body) in
        [(Json, json_long.into_bytes()), (Protobuf, envelope("v1", "Status", protobuf_long))]
    {
        for size in [1000, usize::MAX] {
            let (_, end) = list(encoding, 1000, crate::bodies::cut(&body, &[size]));
            let Err(WireError::Status(status)) = end else { panic!("{end:?}") };
            assert_eq!(status.reason, "Timeout");
        }
    }
}

#[test]
fn the_fields_of_a_list_have_a_limit() {
    let long = "x".repeat(2 * MAX_HEAD);
    let json = format!("{{\"items\":[],\"metadata\":{{\"continue\":\"{long}\"}}}}");
    let in_meta = envelope("v1", "PodList", field(1, field(3, &long)));
    let in_kind = envelope("v1", &format!("{long}List"), "");
    for (encoding, body) in [(Json, json.into_bytes()), (Protobuf, in_meta), (Protobuf, in_kind)] {
        for size in [1000, usize::MAX] {
            let found = list(encoding, 1000, cut(&body, &[size]));
            assert_eq!(broken(&found).fault, Fault::TooLarge { limit: MAX_HEAD });
        }
    }
}

#[test]
fn items_that_were_not_taken_are_not_lost_in_silence() {
    let mut items = ListItems::new(Json, 1000);
    items.push(Bytes::from_static(br#"{"items":[{}]}"#));
    assert!(items.finish().unwrap_err().to_string().contains("not taken"));
}
