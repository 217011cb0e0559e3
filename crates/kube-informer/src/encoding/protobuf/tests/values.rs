//! Special types, as Go's JSON has them.

use serde_json::{Value, json};

use super::build::{Message, codec, message, object};

/// `creationTimestamp` of an object, which is left out where it is zero.
fn created(time: Message) -> Value {
    let metadata = message().bytes(1, "a").message(8, time);
    let shown = codec("v1", "ConfigMap").show(message().message(1, metadata));
    shown["metadata"]["creationTimestamp"].clone()
}

/// `deletionTimestamp` of an object, which is there where it is on the wire.
fn deleted(time: Message) -> Value {
    let metadata = message().bytes(1, "a").message(9, time);
    let shown = codec("v1", "ConfigMap").show(message().message(1, metadata));
    shown["metadata"].get("deletionTimestamp").unwrap().clone()
}

fn stamp(seconds: i64, nanos: i64) -> Message {
    message().varint(1, seconds).varint(2, nanos)
}

#[test]
fn a_time_is_in_whole_seconds_of_utc_whatever_its_year() {
    for (seconds, shown) in [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (-62_135_596_799, "0001-01-01T00:00:01Z"),
        (-62_135_596_801, "0000-12-31T23:59:59Z"),
        (-62_167_219_201, "-0001-12-31T23:59:59Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
        (253_402_300_800, "10000-01-01T00:00:00Z"),
        (-100_000_000_000_000, "-3166904-02-24T14:13:20Z"),
    ] {
        assert_eq!(created(stamp(seconds, 999_999_999)), shown, "{seconds}");
    }
    // A field that is not there is zero.
    assert_eq!(created(message().varint(2, 5)), "1970-01-01T00:00:00Z");
    assert_eq!(created(message().varint(1, 5)), "1970-01-01T00:00:05Z");
}

#[test]
fn the_zero_time_is_null_or_left_out() {
    for zero in [message(), stamp(-62_135_596_800, 0), stamp(-62_135_596_800, 7)] {
        assert_eq!(created(zero.clone()), Value::Null);
        let metadata = message().bytes(1, "a").message(8, zero.clone());
        let shown = codec("v1", "ConfigMap").show(message().message(1, metadata));
        assert_eq!(shown["metadata"], json!({ "name": "a" }));
        assert_eq!(deleted(zero), Value::Null);
    }
}

#[test]
fn a_time_that_is_null_is_none_to_types() {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Narrow {
        metadata: Times,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Times {
        deletion_timestamp: Option<String>,
    }
    let metadata = |time| message().message(1, message().bytes(1, "a").message(9, time)).done();
    let codec = codec("v1", "ConfigMap");
    let stored = codec.store(metadata(message())).unwrap();
    assert_eq!(codec.view::<Narrow>(&stored).unwrap().metadata.deletion_timestamp, None);
    let stored = codec.store(metadata(stamp(1, 0))).unwrap();
    let view: Narrow = codec.view(&stored).unwrap();
    assert_eq!(view.metadata.deletion_timestamp.unwrap(), "1970-01-01T00:00:01Z");
}

#[test]
fn a_micro_time_has_six_digits() {
    let renewed = |time| {
        let lease = object().message(2, message().message(4, time));
        codec("coordination.k8s.io/v1", "Lease").show(lease)["spec"]["renewTime"].clone()
    };
    assert_eq!(renewed(stamp(1, 0)), "1970-01-01T00:00:01.000000Z");
    assert_eq!(renewed(stamp(1, 123_456_999)), "1970-01-01T00:00:01.123456Z");
    assert_eq!(renewed(stamp(0, -1_000)), "1969-12-31T23:59:59.999999Z");
    assert_eq!(renewed(stamp(-62_135_596_800, 1_000)), "0001-01-01T00:00:00.000001Z");
    assert_eq!(renewed(stamp(-62_135_596_800, 999)), Value::Null);
    assert_eq!(renewed(message()), Value::Null);
}

#[test]
fn an_absent_quantity_is_zero() {
    let hard = |pair: Message| {
        let quota = object().message(2, message().message(1, pair));
        codec("v1", "ResourceQuota").show(quota)["spec"]["hard"].clone()
    };
    assert_eq!(hard(message().bytes(1, "cpu")), json!({ "cpu": "0" }));
    assert_eq!(hard(message().bytes(1, "cpu").message(2, message())), json!({ "cpu": "0" }));
    let quantity = message().bytes(1, "100m");
    assert_eq!(hard(message().bytes(1, "cpu").message(2, quantity.clone())), json!({ "cpu": "100m" }));
    assert_eq!(hard(message().message(2, quantity)), json!({ "": "100m" }));
    assert_eq!(hard(message()), json!({ "": "0" }));
}

#[test]
fn int_or_string_is_the_one_or_the_other() {
    let target = |port: Message| {
        let service = object().message(2, message().message(1, message().varint(3, 80).message(4, port)));
        codec("v1", "Service").show(service)["spec"]["ports"][0]["targetPort"].clone()
    };
    assert_eq!(target(message().varint(1, 0).varint(2, 8080).bytes(3, "")), 8080);
    assert_eq!(target(message().varint(1, 1).varint(2, 0).bytes(3, "http")), "http");
    assert_eq!(target(message().varint(1, 0).varint(2, 5).bytes(3, "http")), 5);
    assert_eq!(target(message().varint(1, 1).varint(2, 5)), "");
    assert_eq!(target(message()), 0);
    assert_eq!(target(message().varint(2, -1)), -1);
}

#[test]
fn bytes_are_base64() {
    let secret = object()
        .message(2, message().bytes(1, "a").bytes(2, [0xff, 0, 0xfe]))
        .message(2, message().bytes(1, "b").bytes(2, ""))
        .message(2, message().bytes(1, "c"));
    let shown = codec("v1", "Secret").show(secret);
    assert_eq!(shown["data"], json!({ "a": "/wD+", "b": "", "c": "" }));
    let request = |spec: Message| {
        let object = object().message(2, spec);
        codec("certificates.k8s.io/v1", "CertificateSigningRequest").show(object)["spec"]["request"].clone()
    };
    assert_eq!(request(message()), Value::Null);
    assert_eq!(request(message().bytes(1, "")), "");
    assert_eq!(request(message().bytes(1, "x")), "eA==");
}

#[test]
fn a_list_of_strings_that_is_a_message_is_a_list() {
    let extra = |value: Message| {
        let spec = message().message(6, message().bytes(1, "k").message(2, value));
        let object = object().message(2, spec);
        codec("certificates.k8s.io/v1", "CertificateSigningRequest").show(object)["spec"]["extra"].clone()
    };
    assert_eq!(extra(message().bytes(1, "x").bytes(1, "y")), json!({ "k": ["x", "y"] }));
    assert_eq!(extra(message()), json!({ "k": [] }));
}

fn definition(schema: Message) -> Message {
    let validation = message().message(1, schema);
    object().message(2, message().message(7, message().bytes(1, "v1").message(4, validation)))
}

/// What a schema shows.
fn schema(schema: Message) -> Value {
    let shown = codec("apiextensions.k8s.io/v1", "CustomResourceDefinition").show(definition(schema));
    shown["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
}

#[test]
fn a_double_is_the_number_that_go_prints() {
    let maximum = |value: f64| schema(message().double(9, value))["maximum"].to_string();
    for (value, shown) in [
        (0.0, "0"),
        (-0.0, "-0.0"),
        (3.0, "3"),
        (-3.0, "-3"),
        (0.5, "0.5"),
        (1e-7, "1e-7"),
        (9_007_199_254_740_992.0, "9007199254740992"),
        // More digits than tell it from its neighbours are zeros.
        (144_115_188_075_855_872.0, "144115188075855870"),
        (1_152_921_504_606_846_976.0, "1152921504606847000"),
        (9_223_372_036_854_775_808.0, "9223372036854776000"),
        (18_446_744_073_709_549_568.0, "18446744073709550000"),
        // Whole, and beyond 64 bits.
        (-9_223_372_036_854_775_808.0, "-9.223372036854776e18"),
        (1e20, "1e20"),
        (1e21, "1e21"),
        (f64::MAX, "1.7976931348623157e308"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
    ] {
        // As serde_json reads what Go prints: compared as it is shown, so that 3 and 3.0 differ.
        let expected: Value = serde_json::from_str(shown).unwrap();
        assert_eq!(maximum(value), expected.to_string(), "{value}");
    }
}

#[test]
fn a_double_that_json_cannot_show_is_refused() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let codec = codec("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let error = codec.refuse(definition(message().double(9, value))).to_string();
        assert!(error.contains("Double"), "{error}");
    }
}

#[test]
fn schema_or_bool_shows_the_schema_if_there_is_one() {
    let additional = |value: Message| schema(message().message(30, value))["additionalProperties"].clone();
    assert_eq!(additional(message()), false);
    assert_eq!(additional(message().varint(1, 1)), true);
    assert_eq!(additional(message().varint(1, 1).message(2, message())), json!({}));
    assert_eq!(
        additional(message().varint(1, 0).message(2, message().bytes(5, "string"))),
        json!({ "type": "string" })
    );
}

#[test]
fn schema_or_array_shows_the_list_if_it_has_items() {
    let items = |value: Message| schema(message().message(24, value))["items"].clone();
    let (text, number) = (message().bytes(5, "string"), message().bytes(5, "number"));
    assert_eq!(items(message()), Value::Null);
    assert_eq!(items(message().message(1, text.clone())), json!({ "type": "string" }));
    assert_eq!(
        items(message().message(1, text.clone()).message(2, number.clone()).message(2, message())),
        json!([{ "type": "number" }, {}])
    );
    let dependencies = |value: Message| {
        let pair = message().bytes(1, "a").message(2, value);
        schema(message().message(32, pair))["dependencies"]["a"].clone()
    };
    assert_eq!(dependencies(message()), Value::Null);
    assert_eq!(dependencies(message().message(1, text.clone())), json!({ "type": "string" }));
    assert_eq!(dependencies(message().message(1, text).bytes(2, "x").bytes(2, "")), json!(["x", ""]));
}

/// What `data` of a ControllerRevision shows.
fn data(raw: Message) -> Value {
    codec("apps/v1", "ControllerRevision").show(object().message(2, raw).varint(3, 1))["data"].clone()
}

#[test]
fn raw_json_stands_as_it_is() {
    assert_eq!(data(message()), Value::Null);
    for text in
        ["null", " null\n", "{}", "[1, 2.5, -3, 1e300]", r#""\ud83e\udd80\u0000""#, " {\"a\" : [null]} "]
    {
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(data(message().bytes(1, text)), expected, "{text}");
    }
    // Empty bytes are no JSON to Go, which fails; here they are nothing.
    assert_eq!(data(message().bytes(1, "")), Value::Null);
}

#[test]
fn raw_json_that_is_null_is_none_to_types() {
    #[derive(serde::Deserialize)]
    struct Narrow {
        data: Option<String>,
    }
    let codec = codec("apps/v1", "ControllerRevision");
    for raw in [message(), message().bytes(1, ""), message().bytes(1, "null"), message().bytes(1, "\n null ")]
    {
        let stored = codec.store(object().message(2, raw.clone()).done()).unwrap();
        assert_eq!(codec.view::<Narrow>(&stored).unwrap().data, None, "{raw:?}");
    }
    let stored = codec.store(object().message(2, message().bytes(1, r#""x""#)).done()).unwrap();
    assert_eq!(codec.view::<Narrow>(&stored).unwrap().data.unwrap(), "x");
}

#[test]
fn a_raw_document_in_protobuf_shows_its_type_and_its_fields() {
    let inner = super::build::envelope("v1", "ConfigMap", &object().pair(2, "k", "v").done());
    let shown = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "b" },
        "data": { "k": "v" },
    });
    assert_eq!(data(message().bytes(1, &inner)), shown);
    // And one in that one.
    let outer = object().message(2, message().bytes(1, inner)).varint(3, 1).done();
    let outer = super::build::envelope("apps/v1", "ControllerRevision", &outer);
    assert_eq!(data(message().bytes(1, outer))["data"], shown);
}

#[test]
fn a_raw_value_that_is_no_document_is_refused() {
    let codec = codec("apps/v1", "ControllerRevision");
    let deep = [b"[".repeat(200), b"]".repeat(200)].concat();
    for (raw, says) in [
        (&b"{"[..], "the data ends"),
        (b"{}{}", "the end of the document"),
        (b"abc", "expected a value"),
        (b"\"\xff\"", "invalid UTF-8"),
        // What no view could be made of.
        (b"1e999", "a number beyond"),
        (br#""\ud800""#, "surrogate"),
        (&deep, "nested deeper than"),
        (b"k8s\0", "a type in field 1"),
        (b"k8s\0\x0a\x0a\x0a\x02v1\x12\x04Nope", "unknown kind v1/Nope"),
        (b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x02\x7a\x00", "unknown field 15 of core/v1.Pod"),
    ] {
        let error = codec.refuse(object().message(2, message().bytes(1, raw)));
        assert!(error.to_string().contains(says), "{:?}: {error}", String::from_utf8_lossy(raw));
        assert_eq!(error.key.unwrap().to_string(), "b/a");
    }
}

#[test]
fn what_is_no_utf_8_shows_a_replacement_for_each_byte() {
    let object = object().message(2, message().bytes(1, b"\xffk").bytes(2, b"\xe2\x82\xff\0x"));
    let shown = codec("v1", "ConfigMap").show(object);
    assert_eq!(shown["data"], json!({ "\u{fffd}k": "\u{fffd}\u{fffd}\u{fffd}\0x" }));
}

#[test]
fn nul_bytes_are_text_like_any_other() {
    let metadata = message().bytes(1, "a\0b").pair(11, "k\0", "\0");
    let codec = codec("v1", "ConfigMap");
    let stored = codec.store(message().message(1, metadata).done()).unwrap();
    let metadata = codec.metadata(&stored).unwrap();
    assert_eq!((&*metadata.name, &*metadata.labels[0].0, &*metadata.labels[0].1), ("a\0b", "k\0", "\0"));
    let json = codec.json(&stored).unwrap();
    assert!(json.contains(r#"{"labels":{"k\u0000":"\u0000"},"name":"a\u0000b"}"#), "{json}");
}

#[test]
fn numbers_are_cut_to_their_size_as_go_cuts_them() {
    let deployment = |spec: Message| codec("apps/v1", "Deployment").show(object().message(2, spec));
    assert_eq!(deployment(message().varint(1, (1 << 32) + 7))["spec"]["replicas"], 7);
    assert_eq!(deployment(message().varint(1, -1))["spec"]["replicas"], -1);
    // What is zero after that is left out where zero is.
    assert_eq!(deployment(message().varint(5, 1 << 32))["spec"].get("minReadySeconds"), None);
    assert_eq!(deployment(message().varint(7, 1 << 40))["spec"]["paused"], true);
}
