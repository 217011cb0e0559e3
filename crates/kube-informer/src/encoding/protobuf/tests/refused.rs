//! Bad input: each a typed error, with the place, and with the object's key where it can be read.

use super::build::{codec, envelope, message, object};
use crate::encoding::{Codec, CodecError, DecodeError, Encoding, Fault, Rules, decode_protobuf};

fn refuse(codec: &Codec, bytes: &[u8]) -> DecodeError {
    codec.store(bytes).unwrap_err()
}

fn key(error: &DecodeError) -> Option<String> {
    error.key.as_ref().map(ToString::to_string)
}

#[test]
fn an_envelope_is_taken_off_or_not_there() {
    let codec = codec("v1", "ConfigMap");
    let bare = object().pair(2, "k", "v").done();
    assert_eq!(codec.store(&bare).unwrap(), bare);
    assert_eq!(codec.store(envelope("v1", "ConfigMap", &bare)).unwrap(), bare);
    let mut said = envelope("v1", "ConfigMap", &bare);
    said.extend_from_slice(&message().bytes(3, "").bytes(4, "application/vnd.kubernetes.protobuf").done());
    assert_eq!(codec.store(said).unwrap(), bare);
}

#[test]
fn another_kind_is_refused_and_named() {
    let error = refuse(&codec("v1", "ConfigMap"), &envelope("v1", "Secret", &object().done()));
    assert_eq!(error.fault, Fault::WrongEnvelope);
    assert_eq!(error.expected, "v1 ConfigMap, not v1 Secret");
    let error = refuse(&codec("apps/v1", "Deployment"), &envelope("apps/v1beta1", "Deployment", &[]));
    assert_eq!(error.expected, "apps/v1 Deployment, not apps/v1beta1 Deployment");
}

#[test]
fn a_status_is_refused_with_its_message() {
    let status = message().bytes(2, "Failure").bytes(3, "too old resource version").varint(6, 410).done();
    let error = refuse(&codec("v1", "Pod"), &envelope("v1", "Status", &status));
    assert_eq!(error.fault, Fault::StatusInstead { message: "too old resource version".to_owned() });
    assert_eq!(error.expected, "v1 Pod");
    // Even a broken one.
    let error = refuse(&codec("v1", "Pod"), &envelope("v1", "Status", b"\x1a\x02no\xff"));
    assert_eq!(error.fault, Fault::StatusInstead { message: "no".to_owned() });
}

#[test]
fn an_envelope_with_anything_else_in_it_is_refused() {
    let body = object().done();
    for (more, says) in [
        (message().bytes(3, "gzip"), "a message that is not compressed"),
        (message().varint(3, 1), "a message that is not compressed"),
        (message().bytes(4, "application/json"), "a message in protobuf"),
        (message().bytes(5, "new"), "fields 1 to 4"),
        (message().varint(2, 1), "fields 1 to 4"),
        (message().bytes(1, [0x0a, 1, 0xff]), "a type in UTF-8"),
    ] {
        let mut bytes = envelope("v1", "ConfigMap", &body);
        let at = bytes.len();
        bytes.extend_from_slice(&more.done());
        let error = refuse(&codec("v1", "ConfigMap"), &bytes);
        assert_eq!((&error.fault, error.offset, &*error.expected), (&Fault::WrongEnvelope, at, says));
    }
    let error = refuse(&codec("v1", "ConfigMap"), b"k8s\0");
    assert_eq!((error.fault, &*error.expected), (Fault::WrongEnvelope, "a type in field 1"));
    let error = refuse(&codec("v1", "ConfigMap"), b"k8s\0\x0a\x7f");
    assert_eq!((error.fault, error.offset), (Fault::Truncated, 5));
    let error = refuse(&codec("v1", "ConfigMap"), b"k8s\x01\x0a\x00");
    assert!(error.to_string().contains("wire type 3"), "{error}");
}

#[test]
fn text_is_refused_as_what_it_is() {
    for text in ["<html><body>502 Bad Gateway</body></html>", r#"{"kind":"Pod","apiVersion":"v1"}"#] {
        let error = refuse(&codec("v1", "Pod"), text.as_bytes());
        assert_eq!(error.fault, Fault::NotAnApi);
        assert!(error.expected.contains(&text[1..5]), "{error}");
    }
    for text in
        ["upstream connect error", "no healthy upstream", "[]", "null", "404 page not found\n", "\n<html>"]
    {
        refuse(&codec("v1", "Pod"), text.as_bytes());
    }
}

#[test]
fn a_document_of_an_unknown_kind_is_refused() {
    let error = decode_protobuf::<serde_json::Value>(&envelope("v9", "Pod", &[])).unwrap_err();
    assert!(error.to_string().contains("unknown kind v9/Pod"), "{error}");
    for (api_version, kind) in [("example.com/v1", "Foo"), ("v1", "PodList"), ("v1", "Status")] {
        let error = Codec::new(Encoding::Protobuf, api_version, kind, Rules::default()).unwrap_err();
        assert!(matches!(error, CodecError::UnknownKind { .. }), "{error}");
        assert!(error.to_string().contains(&format!("{api_version} {kind}")), "{error}");
    }
}

#[test]
fn an_object_without_metadata_or_name_is_refused() {
    let codec = codec("v1", "ConfigMap");
    assert_eq!(refuse(&codec, &[]).fault, Fault::NoMetadata);
    assert_eq!(codec.refuse(message().pair(2, "k", "v")).fault, Fault::NoMetadata);
    assert_eq!(codec.refuse(message().message(1, message())).fault, Fault::NoName);
    let error = codec.refuse(message().message(1, message().bytes(1, "").bytes(3, "b")));
    assert_eq!((&error.fault, key(&error)), (&Fault::NoName, None));
}

#[test]
fn an_unknown_field_is_reported_with_its_message_and_its_object() {
    let unknown = |message: &str, number| Fault::UnknownField { message: message.to_owned(), number };
    let codec = codec("apps/v1", "Deployment");
    for (deployment, fault) in [
        (object().varint(4, 1), unknown("apps/v1.Deployment", 4)),
        (object().bytes(1000, "x"), unknown("apps/v1.Deployment", 1000)),
        (object().message(2, message().varint(8, 1)), unknown("apps/v1.DeploymentSpec", 8)),
        (object().message(2, message().varint(10, 1)), unknown("apps/v1.DeploymentSpec", 10)),
        (
            object().message(2, message().message(2, message().bytes(3, "x"))),
            unknown("meta/v1.LabelSelector", 3),
        ),
        (
            object().message(2, message().message(2, message().message(1, message().bytes(3, "x")))),
            unknown("an entry of a map", 3),
        ),
    ] {
        let error = codec.refuse(deployment);
        assert_eq!((&error.fault, key(&error).as_deref()), (&fault, Some("b/a")));
    }
    // Special types are messages, too.
    let time = message().varint(1, 1).bytes(3, "x");
    let error = codec.refuse(message().message(1, message().bytes(1, "a").message(8, time)));
    assert_eq!((&error.fault, key(&error).as_deref()), (&unknown("Time", 3), Some("a")));
}

#[test]
fn an_unknown_field_is_reported_wherever_it_stands() {
    let codec = codec("apps/v1", "Deployment");
    let metadata = message().bytes(3, "b").bytes(1, "a");
    // Before its object's metadata, and behind what is out of order.
    for deployment in [
        message().message(2, message().varint(8, 1)).message(1, metadata.clone()),
        message().message(1, metadata.clone()).varint(4, 1),
        message().varint(99, 1).message(1, metadata),
    ] {
        let error = codec.refuse(deployment);
        assert!(matches!(error.fault, Fault::UnknownField { .. }), "{error}");
        assert_eq!(key(&error).as_deref(), Some("b/a"));
    }
}

#[test]
fn an_unknown_field_in_what_is_dropped_does_not_matter() {
    let rules = super::build::drops(&["/status", "/spec/template"]);
    let codec = super::build::with_rules("apps/v1", "Deployment", rules);
    let garbage = object().message(2, message().varint(1, 3).bytes(3, [0xff])).bytes(3, [0xff; 3]);
    assert_eq!(codec.store(garbage.done()).unwrap(), object().message(2, message().varint(1, 3)).done());
}

#[test]
fn an_error_tells_the_byte() {
    let codec = codec("apps/v1", "Deployment");
    let before = object().done();
    // 12 04 40 01 0b 00: a spec with an unknown field and a group.
    let bad = codec.refuse(message().raw(&before).raw(&[0x12, 4, 0x08, 0x01, 0x0b, 0x00]));
    assert_eq!(bad.offset, before.len() + 4);
    assert!(bad.to_string().contains("found wire type 3"), "{bad}");
    // The same in an envelope: counted from its start.
    let body = [&before[..], &[0x12, 4, 0x08, 0x01, 0x0b, 0x00]].concat();
    let whole = envelope("apps/v1", "Deployment", &body);
    let error = refuse(&codec, &whole);
    assert_eq!(error.offset, whole.len() - body.len() + before.len() + 4);
    assert_eq!(key(&error).as_deref(), Some("b/a"));
}

#[test]
fn groups_and_other_wire_types_are_refused() {
    let codec = codec("apps/v1", "Deployment");
    for (spec, says) in [
        // A group, closed; only its end; and what is no wire type.
        (&[0x0b, 0x0c][..], "wire type 3"),
        (&[0x0c], "wire type 4"),
        (&[0x0e], "wire type 6"),
        (&[0x0f], "wire type 7"),
        // Replicas as bytes, as eight and as four bytes; the template as a number.
        (&[0x0a, 0x00], "a value of kind Int32"),
        (&[0x09, 0, 0, 0, 0, 0, 0, 0, 0], "a value of kind Int32"),
        (&[0x0d, 0, 0, 0, 0], "a value of kind Int32"),
        (&[0x18, 0x01], "a value of kind Message"),
        (&[0x00], "field number 0"),
        (&[0x08], "the data ends"),
        (&[0x1a, 0x05, 0x00], "5 bytes, and there are 1"),
        (&[0x1a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], "the data ends"),
    ] {
        let error = codec.refuse(object().bytes(2, spec));
        assert!(error.to_string().contains(says), "{spec:x?}: {error}");
        assert_eq!(key(&error).as_deref(), Some("b/a"));
    }
    // An entry of a map that is no message.
    let error = super::build::codec("v1", "ConfigMap").refuse(object().varint(2, 1));
    assert!(error.to_string().contains("an entry of a map"), "{error}");
}

#[test]
fn special_types_of_other_wire_types_are_refused() {
    let deleted = |time: super::build::Message| {
        codec("v1", "ConfigMap").refuse(message().message(1, message().bytes(1, "a").message(9, time)))
    };
    for time in [message().bytes(1, "x"), message().bytes(2, "x"), message().double(1, 1.0)] {
        assert!(matches!(deleted(time).fault, Fault::Unexpected { .. }));
    }
    let port = |port| {
        let service = object().message(2, message().message(1, message().message(4, port)));
        codec("v1", "Service").refuse(service)
    };
    for target in
        [message().varint(1, 2), message().varint(1, -1), message().varint(3, 1), message().bytes(2, "")]
    {
        assert!(matches!(port(target).fault, Fault::Unexpected { .. }));
    }
    assert!(
        matches!(port(message().varint(4, 1)).fault, Fault::UnknownField { ref message, .. } if message == "IntOrString")
    );
}

#[test]
fn packed_numbers_that_are_cut_short_are_refused() {
    let context = message().bytes(4, [1, 0x80]);
    let error = codec("v1", "Pod").refuse(object().message(2, message().message(14, context)));
    assert_eq!(error.fault, Fault::Truncated);
}

#[test]
fn an_object_cut_anywhere_is_refused_or_whole_as_it_is() {
    let codec = codec("v1", "ConfigMap");
    let metadata = message().bytes(1, "a").bytes(3, "b");
    let whole = message().message(1, metadata).pair(2, "k", "v").pair(2, "l", "w").done();
    let enveloped = envelope("v1", "ConfigMap", &whole);
    for end in 0..enveloped.len() {
        let error = refuse(&codec, &enveloped[..end]);
        assert!(error.offset <= end, "{end}: {error}");
    }
    // A bare message has no length: between two fields it may end.
    let accepted: Vec<usize> = (0..=whole.len()).filter(|&end| codec.store(&whole[..end]).is_ok()).collect();
    assert_eq!(accepted, [8, 16, 24]);
}

#[test]
fn a_key_that_may_be_wrong_is_not_told() {
    let codec = codec("v1", "ConfigMap");
    // The namespace may stand behind what cannot be read.
    let broken = message().message(1, message().bytes(1, "a").raw(&[0x0b]).bytes(3, "b"));
    assert_eq!(key(&codec.refuse(broken)), None);
    let broken = message().message(1, message().bytes(1, "a").bytes(3, "b").raw(&[0x0b]));
    assert_eq!(key(&codec.refuse(broken)).as_deref(), Some("b/a"));
    let broken = message().message(1, message().bytes(3, "b").bytes(1, "a").raw(&[0x0b]));
    assert_eq!(key(&codec.refuse(broken)).as_deref(), Some("b/a"));
}

#[test]
fn an_error_leaves_nothing_in_the_buffer_of_the_object_before() {
    let codec = codec("v1", "ConfigMap");
    let mut stored = b"before".to_vec();
    codec.ingest(&message().done(), &mut stored).unwrap_err();
    assert!(!stored.starts_with(b"before"));
}
