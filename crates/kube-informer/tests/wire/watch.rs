use bytes::Bytes;
use kube_informer::encoding::Encoding::{Json, Protobuf};
use kube_informer::encoding::{DecodeError, Fault};
use kube_informer::wire::{Change, MAX_DEPTH, Status, WatchFrame, WatchFrames, WireError};

use crate::bodies::{
    Frames, JSON_STATUS, cut, envelope, event, field, framed, number, protobuf_status, watch, whole,
};

fn json(body: &str) -> Frames {
    watch(Json, 1000, whole(body.as_bytes()))
}

fn protobuf(body: &[u8]) -> Frames {
    watch(Protobuf, 1000, whole(body))
}

fn object(change: Change, object: impl AsRef<[u8]>) -> Result<WatchFrame, WireError> {
    Ok(WatchFrame::Object { change, object: Bytes::copy_from_slice(object.as_ref()) })
}

fn skipped(frame: &Result<WatchFrame, WireError>) -> &DecodeError {
    match frame {
        Err(WireError::Skipped(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn truncated(end: &Result<(), WireError>) -> bool {
    matches!(end, Err(WireError::Broken(DecodeError { fault: Fault::Truncated, .. })))
}

#[test]
fn events_of_every_type_are_told_apart() {
    let document = envelope("v1", "Pod", "bytes");
    let (mut lines, mut messages) = (String::new(), Vec::new());
    for kind in ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"] {
        let object = if kind == "ERROR" { JSON_STATUS } else { r#"{"a":1}"# };
        lines.push_str(&format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"));
        let status = envelope("v1", "Status", protobuf_status());
        messages.extend(event(kind, if kind == "ERROR" { &status } else { &document }));
    }
    for (found, document) in [(json(&lines), &br#"{"a":1}"#[..]), (protobuf(&messages), &document[..])] {
        assert_eq!(
            found.0,
            [
                object(Change::Added, document),
                object(Change::Modified, document),
                object(Change::Deleted, document),
                Ok(WatchFrame::Bookmark { object: Bytes::copy_from_slice(document) }),
                Ok(WatchFrame::Error(Status::read(Json, JSON_STATUS.as_bytes()))),
            ]
        );
        assert_eq!(found.1, Ok(()));
    }
}

#[test]
fn a_frame_within_one_chunk_is_not_copied() {
    let document = envelope("v1", "Pod", "bytes");
    let line = b"{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n".to_vec();
    for (encoding, body) in [(Json, line), (Protobuf, event("ADDED", document))] {
        let chunk = Bytes::from(body);
        let mut frames = WatchFrames::new(encoding, 1000);
        frames.push(chunk.clone());
        let Some(Ok(WatchFrame::Object { object, .. })) = frames.next_frame() else { panic!("no frame") };
        assert!(chunk.as_ptr_range().contains(&object.as_ptr()));
    }
}

#[test]
fn keys_come_in_any_order_and_others_are_ignored() {
    for line in [
        r#"{"object":{"a":1},"type":"ADDED"}"#,
        r#" { "x" : [ 1.5e-3, {"type":"DELETED"} ] , "type" : "ADDED" , "object" : {"a":1} } "#,
        r#"{"\u0074ype":"\u0041DDED","obj\u0065ct":{"a":1},"":null}"#,
        "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\r",
    ] {
        assert_eq!(json(&format!("{line}\n")), (vec![object(Change::Added, r#"{"a":1}"#)], Ok(())), "{line}");
    }
}

#[test]
fn blank_lines_are_skipped() {
    let body =
        "\n\r\n  \n{\"type\":\"ADDED\",\"object\":{}}\n\n\r\n{\"type\":\"DELETED\",\"object\":{}}\n \t\n  ";
    assert_eq!(json(body), (vec![object(Change::Added, "{}"), object(Change::Deleted, "{}")], Ok(())));
    assert_eq!(json(""), (vec![], Ok(())));
    assert_eq!(json("\r\n"), (vec![], Ok(())));
    assert_eq!(protobuf(b""), (vec![], Ok(())));
}

#[test]
fn an_unusable_frame_is_an_error_and_the_next_one_comes() {
    let deep = format!(r#"{{"type":"ADDED","object":{{"a":{}"#, "[".repeat(MAX_DEPTH));
    for (line, offset, message) in [
        ("{", 1, "the data ends at byte 31: expected a key or }"),
        ("[]", 0, "found '[' at byte 30: expected {"),
        ("\u{feff}{}", 0, "found the byte 0xef at byte 30: expected {"),
        ("\0", 0, "found the byte 0x00 at byte 30: expected {"),
        (
            r#"{"type":"ADDED"}"#,
            16,
            "found a watch event without object at byte 46: expected a type and an object",
        ),
        (
            r#"{"object":{}}"#,
            13,
            "found a watch event without type at byte 43: expected a type and an object",
        ),
        (r#"{"type":7,"object":{}}"#, 8, "found '7' at byte 38: expected the event type, a string"),
        (r#"{"type":"ADDED","object":null}"#, 25, "found 'n' at byte 55: expected an object"),
        (r#"{"type":"ADDED","object":[]}"#, 25, "found '[' at byte 55: expected an object"),
        (
            r#"{"type":"A\nB","object":{}}"#,
            8,
            r#"found the event type "A B" at byte 38: expected ADDED, MODIFIED, DELETED, BOOKMARK or ERROR"#,
        ),
        (r#"{"type":"ADDED","object":{}}}"#, 28, "found '}' at byte 58: expected the end"),
        (r#"{"type":"ADDED","object":{}} {}"#, 29, "found '{' at byte 59: expected the end"),
        (r#"{"type":"ADDED","object":{}"#, 27, "the data ends at byte 57: expected , or }"),
        (r#"{"type":"ADDED","object":{"a":"}"#, 32, "the data ends at byte 62: expected the end of a value"),
        (r#"{"type":"ADDED","object":{},"x":tru}"#, 32, "found 't' at byte 62: expected a value"),
        (r#"{"type":"ADDED","object":{},"x":[1,]}"#, 32, "found '[' at byte 62: expected a value"),
        (
            r#"{"type":"ADDED","type":"ADDED","object":{}}"#,
            23,
            "the key \"type\" stands twice at byte 53: expected each key once",
        ),
        (
            r#"{"type":"ADDED","object":{},"object":{}}"#,
            37,
            "the key \"object\" stands twice at byte 67: expected each key once",
        ),
        (&deep, 541, "nested deeper than 512 levels at byte 571: expected fewer levels"),
    ] {
        // 30 bytes before it.
        let first = "{\"type\":\"ADDED\",\"object\":{ }}\n";
        let (found, end) = json(&format!("{first}{line}\n{first}"));
        assert_eq!(end, Ok(()), "{line}");
        assert_eq!((&found[0], &found[2]), (&object(Change::Added, "{ }"), &found[0]), "{line}");
        assert_eq!(found.len(), 3);
        assert_eq!(skipped(&found[1]).offset, 30 + offset, "{line}");
        assert_eq!(found[1].as_ref().unwrap_err().to_string(), message, "{line}");
    }
}

#[test]
fn an_unusable_protobuf_frame_is_an_error_and_the_next_one_comes() {
    let document = envelope("v1", "Pod", "bytes");
    let good = event("ADDED", &document);
    let object_field = field(2, field(1, &document));
    for (message, expected) in [
        (vec![], "found a watch event without type"),
        (field(1, "ADDED"), "found a watch event without object"),
        (object_field.clone(), "found a watch event without type"),
        ([field(1, "ADDED"), field(2, "")].concat(), "found a watch event without object"),
        ([field(1, "MOVED"), object_field.clone()].concat(), "found the event type \"MOVED\""),
        ([field(1, "ADDED"), field(2, field(1, "{}"))].concat(), "a wrong envelope"),
        ([number(1, 1), object_field.clone()].concat(), "found a watch event without type"),
        ([field(1, "ADDED"), object_field.clone(), object_field.clone()].concat(), "the key \"object\""),
        ([field(1, "ADDED"), field(2, field(1, &document).repeat(2))].concat(), "the key \"object\""),
        ([field(1, "ADDED"), b"\x12\x7f".to_vec()].concat(), "the data ends"),
        ([field(1, "ADDED"), field(2, b"\x0a\x7f")].concat(), "the data ends"),
        (b"\x0b".to_vec(), "found wire type 3"),
    ] {
        let (found, end) = protobuf(&[&good[..], &framed(&message), &good].concat());
        assert_eq!((found.len(), &end, &found[2]), (3, &Ok(()), &found[0]), "{message:x?}");
        let error = skipped(&found[1]);
        assert!(error.to_string().starts_with(expected), "{error} is not {expected}");
        let start = good.len() + 4;
        assert!((start..=start + message.len()).contains(&error.offset), "{error}");
    }
}

#[test]
fn fields_that_are_not_known_in_a_protobuf_event_are_ignored() {
    let document = envelope("v1", "Pod", "bytes");
    let message = [number(9, 1), field(2, [field(7, "x"), field(1, &document)].concat()), field(1, "ADDED")];
    assert_eq!(protobuf(&framed(message.concat())).0, [object(Change::Added, &document)]);
}

#[test]
fn an_error_event_is_one_even_where_its_object_cannot_be_read() {
    for line in [
        r#"{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"m","details":"x"}}"#,
        r#"{"type":"ERROR","object":{"code":410,"reason":"Expired","message":"m","details":{,}}}"#,
    ] {
        let (found, _) = json(&format!("{line}\n"));
        let Ok(WatchFrame::Error(status)) = &found[0] else { panic!("{found:?}") };
        assert!(status.is_expired());
        assert_eq!(status.message, "m");
    }
    let nothing = [Ok(WatchFrame::Error(Status::default()))];
    assert_eq!(json("{\"type\":\"ERROR\"}\n").0, nothing);
    assert_eq!(json("{\"type\":\"ERROR\",\"object\":null}\n").0, nothing);
    assert_eq!(protobuf(&framed(field(1, "ERROR"))).0, nothing);
    assert_eq!(protobuf(&event("ERROR", b"\xff")).0, nothing);
}

#[test]
fn a_frame_above_the_limit_is_skipped_and_the_next_one_comes() {
    let line = "{\"type\":\"ADDED\",\"object\":{}}";
    let document = envelope("v1", "Pod", "bytes");
    let large = envelope("v1", "Pod", "x".repeat(900));
    let lines = format!("{line}\n{}\n{line}\n", line.replace("{}", &format!("{{}}{}", " ".repeat(900))));
    let messages = [event("ADDED", &document), event("ADDED", large), event("ADDED", &document)].concat();
    let start = event("ADDED", &document).len() + 4;
    for (encoding, body, offset) in [(Json, lines.as_bytes(), line.len() + 1), (Protobuf, &messages, start)] {
        for size in [1, 7, usize::MAX] {
            let (found, end) = watch(encoding, 100, cut(body, &[size]));
            assert_eq!(end, Ok(()));
            assert_eq!((found.len(), &found[2]), (3, &found[0]));
            assert!(found[0].is_ok());
            let error = skipped(&found[1]);
            assert_eq!((&error.fault, error.offset), (&Fault::TooLarge { limit: 100 }, offset));
        }
    }
    // What has as many bytes as the limit is within it.
    assert!(watch(Json, line.len(), whole(lines.as_bytes())).0[0].is_ok());
    assert!(watch(Json, line.len() - 1, whole(lines.as_bytes())).0[0].is_err());
    assert!(watch(Protobuf, start - 8, whole(&messages)).0[0].is_ok());
    assert!(watch(Protobuf, start - 9, whole(&messages)).0[0].is_err());
}

#[test]
fn a_length_beyond_the_limit_is_an_error_long_before_the_bytes_come() {
    let mut frames = WatchFrames::new(Protobuf, 1 << 20);
    frames.push(Bytes::from_static(&[0xff; 4]));
    assert!(frames.next_frame().is_none());
    frames.push(Bytes::from_static(&[1; 1024]));
    assert!(!frames.next_frame().unwrap().unwrap_err().is_fatal());
    assert!(frames.next_frame().is_none());
    assert_eq!(frames.buffered(), 0);
    assert!(truncated(&frames.finish()));

    let (found, end) = watch(Protobuf, 1000, whole(&[0xff, 0xff, 0xff, 0xff, 1, 2, 3]));
    assert!(found.is_empty());
    let Err(WireError::Broken(error)) = end else { panic!("{end:?}") };
    assert_eq!((error.fault, error.offset), (Fault::TooLarge { limit: 1000 }, 4));
}

/// A pod's message, with so many bytes behind its key.
fn pod(metadata: &[Vec<u8>], rest: usize) -> Vec<u8> {
    envelope("v1", "Pod", [field(1, metadata.concat()), field(2, "x".repeat(rest))].concat())
}

#[test]
fn an_unusable_frame_says_whose_it_is() {
    let (name, namespace) = (field(1, "a"), field(3, "b"));
    let whose = |encoding, body: &[u8]| {
        for size in [1, 7] {
            assert_eq!(watch(encoding, 100, cut(body, &[size])), watch(encoding, 100, whole(body)));
        }
        let (found, _) = watch(encoding, 100, whole(body));
        skipped(&found[0]).key.as_ref().map(ToString::to_string)
    };
    let x = "x".repeat(200);
    for (line, key) in [
        // Above the limit.
        (
            format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"a","namespace":"b"}},"x":"{x}"}}}}"#),
            Some("b/a"),
        ),
        (format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"a"}},"x":"{x}"}}}}"#), Some("a")),
        (format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"a","uid":"{x}"}}}}}}"#), None),
        (
            format!(r#"{{"type":"ADDED","object":{{"x":"{x}","metadata":{{"name":"a","namespace":"b"}}}}}}"#),
            None,
        ),
        (format!(r#"{{"metadata":{{"name":"a"}},"x":{{"metadata":{{"name":"a"}}}},"type":"{x}"}}"#), None),
        // Of no known type, and with two objects.
        (r#"{"type":"MOVED","object":{"metadata":{"name":"a","namespace":"b"}}}"#.to_owned(), Some("b/a")),
        (r#"{"object":{"metadata":{"name":"a"}},"object":{"metadata":{"name":"b"}}}"#.to_owned(), None),
        (r#"{"object":{},"metadata":{"name":"a"}}"#.to_owned(), None),
    ] {
        assert_eq!(whose(Json, format!("{line}\n").as_bytes()).as_deref(), key, "{line}");
    }
    for (message, key) in [
        (event("ADDED", pod(&[name.clone(), namespace.clone()], 200)), Some("b/a")),
        (event("ADDED", pod(std::slice::from_ref(&name), 200)), Some("a")),
        (event("ADDED", pod(&[name.clone(), namespace.clone(), field(5, &x)], 0)), Some("b/a")),
        // The namespace may come behind what is looked at.
        (event("ADDED", pod(&[name.clone(), field(5, &x), namespace.clone()], 0)), None),
        (event("ADDED", pod(&[field(1, &x), namespace.clone()], 0)), None),
        (event("MOVED", pod(&[name.clone(), namespace.clone()], 1)), Some("b/a")),
    ] {
        assert_eq!(whose(Protobuf, &message).as_deref(), key, "{message:x?}");
    }
}

#[test]
fn only_at_the_beginning_is_a_wrong_length_taken_for_something_else() {
    let good = event("ADDED", envelope("v1", "Pod", "bytes"));
    for wrong in ["k8s\0", "<htm"] {
        let (found, end) = protobuf(&[&good, wrong.as_bytes(), b"rest"].concat());
        assert_eq!(found.len(), 1);
        let Err(WireError::Broken(error)) = end else { panic!("{end:?}") };
        assert_eq!(error.fault, Fault::TooLarge { limit: 1000 });
    }
}

#[test]
fn a_body_that_ends_anywhere_within_a_frame_is_truncated() {
    let line = b"{\"type\":\"ADDED\",\"object\":{}}\n".to_vec();
    for (encoding, frame) in [(Json, line), (Protobuf, event("ADDED", envelope("v1", "Pod", "bytes")))] {
        let body = frame.repeat(2);
        for end in 0..=body.len() {
            let (found, result) = watch(encoding, 1000, whole(&body[..end]));
            assert_eq!(found.len(), end / frame.len());
            assert!(found.iter().all(Result::is_ok));
            let whole = end % frame.len() == 0;
            assert!(if whole { result.is_ok() } else { truncated(&result) }, "{end}: {result:?}");
        }
    }
}

#[test]
fn text_in_place_of_a_watch_is_named_as_such() {
    let page = format!("\r\n<html>\n  <body>502 Bad\tGateway \u{1f600}</body>\n{}", "</html>\n".repeat(100));
    for encoding in [Json, Protobuf] {
        for size in [1, 3, usize::MAX] {
            let (found, end) = watch(encoding, 1000, cut(page.as_bytes(), &[size]));
            let [Err(WireError::NotAnApi { beginning })] = &found[..] else { panic!("{found:?}") };
            assert!(
                beginning.starts_with("<html> <body>502 Bad Gateway \u{1f600}</body> </html>"),
                "{beginning}"
            );
            assert!(beginning.len() <= 256);
            assert!(end.is_err());
        }
        let (found, end) = watch(encoding, 1000, whole(b"no healthy upstream"));
        assert!(found.is_empty());
        assert_eq!(end, Err(WireError::NotAnApi { beginning: "no healthy upstream".to_owned() }));
        assert_eq!(
            end.unwrap_err().to_string(),
            "an answer that is not the API server's: \"no healthy upstream\""
        );
    }
}

#[test]
fn bytes_that_are_no_text_either_are_not_called_so() {
    let (_, end) = json("\0\0\0\x10");
    assert_eq!(end.unwrap_err().to_string(), "found the byte 0x00 at byte 0: expected a watch event");
}

#[test]
fn a_bare_status_in_place_of_a_watch_is_the_error() {
    let expected = WireError::Status(Box::new(Status::read(Json, JSON_STATUS.as_bytes())));
    let (found, end) = json(&format!("{JSON_STATUS}\n"));
    assert_eq!((&found[..], end), (&[Err(expected.clone())][..], Err(expected.clone())));
    assert_eq!(json(JSON_STATUS), (vec![], Err(expected.clone())));
    let (found, end) = protobuf(&envelope("v1", "Status", protobuf_status()));
    assert_eq!((&found[..], end), (&[][..], Err(expected)));
    let (_, end) = protobuf(&envelope("v1", "Pod", "bytes"));
    assert!(matches!(end, Err(WireError::Broken(DecodeError { fault: Fault::WrongEnvelope, .. }))));
    let endless = [envelope("v1", "Status", protobuf_status()), vec![0; 1 << 20]].concat();
    assert!(matches!(protobuf(&endless).0[..], [Err(WireError::Status(_))]));
}

#[test]
fn frames_that_were_not_taken_are_not_lost_in_silence() {
    let mut frames = WatchFrames::new(Json, 1000);
    frames.push(Bytes::from_static(b"{\"type\":\"ADDED\",\"object\":{}}\n"));
    assert!(frames.finish().unwrap_err().to_string().contains("not taken"));
}
