//! What is wrong with a document: which fault, where, and whose.

use super::*;

/// Documents that are refused with a byte that has no place there.
#[track_caller]
fn unexpected(document: impl AsRef<[u8]>, offset: usize, found: &str, expected: &str) {
    let error = error(document);
    let fault = Fault::Unexpected { found: found.to_owned() };
    assert_eq!((error.fault, error.offset, &*error.expected), (fault, offset, expected));
}

#[test]
fn a_pod_that_is_cut_anywhere_is_cut() {
    // Every place in a smaller one is tried with the other documents.
    let step = if full() { 1 } else { 17 };
    for length in (0..POD.len()).step_by(step) {
        let error = error(&POD[..length]);
        assert_eq!((&error.fault, error.offset), (&Fault::Truncated, length), "{error}");
    }
}

#[test]
fn bytes_that_hold_nothing_are_cut() {
    for document in ["", " \n"] {
        let error = error(document);
        assert_eq!((error.fault, &*error.expected), (Fault::Truncated, "a JSON object"));
    }
}

#[test]
fn the_grammar_is_checked_everywhere() {
    let wrong = [
        "{,}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{\"a\":}",
        "{a:1}",
        "{'a':1}",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1}",
        "{\"a\":1]",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x1",
        "1.e1",
        "--1",
        "-a",
        "NaN",
        "Infinity",
        "tru",
        "trux",
        "nul",
        "True",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\u\"",
        "\"\\ud800\"",
        "\"\\ud800\\n\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "\"\\ud800\\ud800\"",
        "\"\t\"",
        "\"\n\"",
        "\"\0\"",
        "\u{a0}1",
        "1 /* */",
        "\u{feff}1",
        "}",
        ":",
    ];
    for value in wrong {
        for document in [
            named(&format!(r#","spec":{value}"#)),
            named(&format!(r#","spec":[{{"a":[{value}]}}]"#)),
            with_fields(&format!(r#","other":{value}"#)),
            with_fields(&format!(r#","managedFields":{value}"#)),
        ] {
            assert!(serde_json::from_str::<serde_json::Value>(&document).is_err(), "{document}");
            let error = error(&document);
            assert!(matches!(error.fault, Fault::Unexpected { .. }), "{error}: {document}");
        }
    }
}

#[test]
fn a_byte_without_a_place_is_named_with_what_was_expected() {
    let start = named("").len() - 1;
    unexpected(named(",@"), start + 1, "'@'", "a key");
    unexpected(named(",é"), start + 1, "'é'", "a key");
    unexpected(named(",\"a\"{}"), start + 4, "an object", "':'");
    unexpected(named(",\"a\":[1 2]"), start + 8, "a number", "',' or ']'");
    unexpected(named(",\"a\":{\"b\":1]"), start + 11, "']'", "',' or '}'");
    unexpected(named(",\"a\":?"), start + 5, "'?'", "a value");
    unexpected(
        named(",\"a\":\"\u{1}\""),
        start + 6,
        "the control character 0x01",
        "a character of a string, or its end",
    );
    unexpected(named(",\"a\":\0"), start + 5, "the control character 0x00", "a value");
    unexpected(named(",\"a\":\"\\q\""), start + 7, "'q'", "one of the escapes of JSON");
}

#[test]
fn bytes_behind_the_document_are_refused() {
    let document = named("");
    unexpected(format!("{document}\n{{"), document.len() + 1, "an object", "the end of the document");
    unexpected(
        format!("{document}\0"),
        document.len(),
        "the control character 0x00",
        "the end of the document",
    );
    assert_eq!(kept(&format!("{document} \r\n\t"), &Rules::default()), format!("{document} \r\n\t"));
}

#[test]
fn values_are_nested_as_deep_as_serde_json_makes_views_of_them() {
    let nested = |depth: usize, open: &str, close: &str| {
        named(&format!(r#","a":{}1{}"#, open.repeat(depth), close.repeat(depth)))
    };
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        // The root is one level.
        for depth in [126, 127] {
            let document = nested(depth, open, close);
            let view = serde_json::from_str::<serde_json::Value>(&document);
            let mut out = Vec::new();
            let result = ingest(document.as_bytes(), None, &Rules::default(), &mut out);
            assert_eq!(result.is_ok(), view.is_ok(), "{depth}");
            // The same on the way that looks for fields to drop.
            let rules = dropping(&[&"/a".repeat(200)]);
            assert_eq!(ingest(document.as_bytes(), None, &rules, &mut out).is_ok(), view.is_ok(), "{depth}");
        }
        let error = error(nested(100_000, open, close));
        assert_eq!(error.fault, Fault::TooDeep { limit: 127 });
        assert_eq!(error.key.unwrap().to_string(), "shop/web");
    }
}

#[test]
fn what_is_not_utf8_is_refused_where_it_begins() {
    let mut document = named(r#","a":"éX""#).into_bytes();
    let at = document.iter().position(|byte| *byte == b'X').unwrap();
    for byte in [0xff, 0x80, 0xc0] {
        document[at] = byte;
        let error = error(&document);
        assert_eq!((error.fault, error.offset), (Fault::InvalidUtf8, at));
        assert_eq!(error.key.unwrap().to_string(), "shop/web");
    }
    // Even where it is cut.
    let document = [&b"{\"metadata\":{\"name\":\"a\",\"managedFields\":\"\xed\xa0\x80\"}}"[..]].concat();
    assert_eq!(error(document).fault, Fault::InvalidUtf8);
}

#[test]
fn the_first_of_two_faults_counts() {
    let mut document = named(r#","a":?,"b":"X""#).into_bytes();
    let at = document.iter().position(|byte| *byte == b'X').unwrap();
    document[at] = 0xff;
    assert!(matches!(error(document).fault, Fault::Unexpected { .. }));
}

#[test]
fn a_key_that_stands_twice_is_refused_in_every_object() {
    for (document, key) in [
        (named(r#","spec":1,"spec":1"#), "spec"),
        (named(r#","kind":"Thing""#), "kind"),
        (with_fields(r#","name":"other""#), "name"),
        (with_fields(r#","labels":{"a":"1","a":"2"}"#), "a"),
        (with_fields(r#","ownerReferences":[{"uid":"1","uid":"2"}]"#), "uid"),
        (with_fields(r#","managedFields":[],"managedFields":[]"#), "managedFields"),
        (with_fields(r#","other":{"":1,"":2}"#), ""),
        (
            named(r#","spec":[{"x":{"long enough for two words":1,"b":{},"long enough for two words":2}}]"#),
            "long enough for two words",
        ),
        (named(r#","spec":{"abc":1,"\u0061bc":2}"#), "abc"),
        (named(r#","spec":{"\u0061bc":1,"a\u0062c":2}"#), "abc"),
        (named(r#","spec":{"é\n":1,"\u00e9\u000a":2}"#), "é\n"),
    ] {
        let error = error(&document);
        assert_eq!(error.fault, Fault::DuplicateKey { key: key.to_owned() }, "{document}");
        // The second one, not the first.
        assert!(document[error.offset..].starts_with('"') && document[..error.offset].contains(":"));
        assert!(serde_json::from_str::<serde_json::Value>(&document).is_ok());
    }
}

#[test]
fn a_key_that_stands_twice_is_found_among_many() {
    let document = |count: usize, last: &str| {
        let keys: String = (0..count).map(|index| format!(r#""key-{index}":{{"same":1}},"#)).collect();
        named(&format!(r#","data":{{{keys}"{last}":1}}"#))
    };
    for count in [31, 32, 33, 34, 100] {
        let fine = document(count, "other");
        assert_eq!(kept(&fine, &Rules::default()), fine);
        for twice in [0, count / 2, count - 1] {
            for key in [format!("key-{twice}"), format!("\\u006bey-{twice}")] {
                let document = document(count, &key);
                let error = error(&document);
                assert_eq!(error.fault, Fault::DuplicateKey { key: format!("key-{twice}") });
                assert_eq!(error.offset, document.rfind(&format!("\"{key}\"")).unwrap());
            }
        }
    }
    let many = document(100_000, "other");
    assert_eq!(kept(&many, &Rules::default()), many);
    let error = error(document(100_000, "key-50000"));
    assert_eq!(error.fault, Fault::DuplicateKey { key: "key-50000".to_owned() });
}

#[test]
fn keys_that_collide_are_not_the_same() {
    // Of a long key, only both ends and the length are hashed.
    let keys: String = (0..1000).map(|index| format!(r#""the same {index:05} ends here":1,"#)).collect();
    let document = named(&format!(
        r#","few":{{"the same 1 ends here":1,"the same 2 ends here":2}},"data":{{{keys}"a":1}}"#
    ));
    assert_eq!(kept(&document, &Rules::default()), document);
}

#[test]
fn in_what_is_cut_keys_may_stand_twice() {
    let document = with_fields(r#","managedFields":[{"manager":"a","manager":"b","x":{"y":1,"y":2}}]"#);
    for managed_fields in [ManagedFields::Cut, ManagedFields::Writers] {
        let rules = rules(managed_fields, &[]);
        assert_eq!(kept(&document, &rules), with_fields(""));
    }
    assert!(ingest(document.as_bytes(), None, &dropping(&[]), &mut Vec::new()).is_err());
    let dropped = named(r#","spec":{"a":{"x":1,"x":2}}"#);
    assert_eq!(kept(&dropped, &dropping(&["/spec/a"])), named(r#","spec":{}"#));
}

#[test]
fn a_number_that_no_view_could_hold_is_refused() {
    let digits = "9".repeat(400);
    for number in
        ["1e999", "-1E+400", "123456789e305", &digits, &format!("{digits}.5"), &format!("-{digits}")]
    {
        let document = named(&format!(r#","spec":{{"a":{number}}}"#));
        assert!(serde_json::from_str::<serde_json::Value>(&document).is_err(), "{number}");
        let error = error(&document);
        assert_eq!((error.fault, error.offset), (Fault::NumberOutOfRange, document.find(number).unwrap()));
    }
    for number in ["1e308", "0e999", "1e-999", "123456789012345678901234567890", &format!("0.{digits}")] {
        let document = named(&format!(r#","spec":{number}"#));
        assert_eq!(kept(&document, &Rules::default()), document);
    }
}

#[test]
fn a_generation_is_a_whole_number_of_64_bits() {
    let read = |number: &str| {
        let document = with_fields(&format!(r#","generation":{number}"#));
        ingest(document.as_bytes(), None, &Rules::default(), &mut Vec::new())
            .map(|metadata| metadata.generation)
    };
    assert_eq!(read("9223372036854775807").unwrap(), i64::MAX);
    assert_eq!(read("-9223372036854775808").unwrap(), i64::MIN);
    for number in ["9223372036854775808", "-9223372036854775809", "18446744073709551616"] {
        let error = read(number).unwrap_err();
        assert_eq!(error.fault, Fault::NumberOutOfRange);
        assert_eq!(error.expected, "a whole number of 64 bits in metadata.generation");
    }
    for number in ["1.0", "1e2", "\"1\"", "true"] {
        assert_eq!(read(number).unwrap_err().expected, "a whole number in metadata.generation");
    }
}

#[test]
fn metadata_of_a_wrong_type_names_the_field() {
    for (fields, found, expected) in [
        (r#","uid":1"#, "a number", "a string in metadata.uid"),
        (r#","resourceVersion":{}"#, "an object", "a string in metadata.resourceVersion"),
        (r#","labels":[]"#, "an array", "an object in metadata.labels"),
        (r#","labels":{"a":true}"#, "'t'", "a string in metadata.labels"),
        (r#","annotations":{"a":1}"#, "a number", "a string in metadata.annotations"),
        (r#","finalizers":{}"#, "an object", "an array in metadata.finalizers"),
        (r#","finalizers":[1]"#, "a number", "a string in metadata.finalizers"),
        (r#","ownerReferences":[[]]"#, "an array", "an object in metadata.ownerReferences"),
        (r#","ownerReferences":[{"uid":1}]"#, "a number", "a string in metadata.ownerReferences.uid"),
        (
            r#","ownerReferences":[{"controller":"yes"}]"#,
            "a string",
            "true or false in metadata.ownerReferences.controller",
        ),
        (r#","creationTimestamp":5"#, "a number", "a string in metadata.creationTimestamp"),
        (
            r#","creationTimestamp":"soon""#,
            "\"soon\"",
            "a time as RFC 3339 writes it in metadata.creationTimestamp",
        ),
        (r#","deletionTimestamp":"""#, "\"\"", "a time as RFC 3339 writes it in metadata.deletionTimestamp"),
    ] {
        let document = with_fields(fields);
        let error = error(&document);
        assert_eq!(error.fault, Fault::Unexpected { found: found.to_owned() }, "{document}");
        assert_eq!(error.expected, expected);
        assert_eq!(error.key.unwrap().to_string(), "shop/web");
    }
    for (document, expected) in [
        (r#"{"metadata":{"name":5}}"#, "a string in metadata.name"),
        (r#"{"metadata":{"name":"a","namespace":[]}}"#, "a string in metadata.namespace"),
        (r#"{"metadata":5}"#, "an object in metadata"),
        (r#"{"kind":5,"metadata":{"name":"a"}}"#, "a string in kind"),
        (r#"{"apiVersion":{},"metadata":{"name":"a"}}"#, "a string in apiVersion"),
        (r#"[{"metadata":{"name":"a"}}]"#, "an object in the document"),
        (r#" "text""#, "an object in the document"),
        ("5", "an object in the document"),
        ("null", "an object in the document"),
    ] {
        assert_eq!(error(document).expected, expected);
    }
}

#[test]
fn an_object_without_metadata_or_name_says_so() {
    for document in ["{}", r#"{"kind":"Thing","spec":{}}"#, r#"{"metadata":null}"#] {
        assert_eq!(error(document).fault, Fault::NoMetadata);
    }
    for document in
        [r#"{"metadata":{}}"#, r#"{"metadata":{"name":""}}"#, r#"{"metadata":{"name":null,"uid":"a"}}"#]
    {
        let error = error(document);
        assert_eq!((error.fault, error.offset, error.key), (Fault::NoName, 12, None));
    }
}

#[test]
fn a_status_instead_of_an_object_gives_its_message() {
    let status = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too \"old\"","code":410}"#;
    assert_eq!(error(status).fault, Fault::StatusInstead { message: "too \"old\"".to_owned() });
    let without = r#"{"message":null,"apiVersion":"v1","kind":"Status"}"#;
    assert_eq!(error(without).fault, Fault::StatusInstead { message: String::new() });
    // Another API may have a kind of that name.
    let other = r#"{"kind":"Status","apiVersion":"example.com/v1","metadata":{"name":"a"}}"#;
    assert_eq!(kept(other, &Rules::default()), other);
}

#[test]
fn a_page_or_other_text_is_no_answer_of_an_api() {
    for text in [
        &b"<html><body>502 Bad Gateway</body></html>"[..],
        b"\r\n<!DOCTYPE html>",
        b"<p>caf\xe9</p>",
        b"upstream connect error or disconnect/reset before headers",
        b"no healthy upstream",
        b"404 page not found\n",
        b"true story",
        b"\x1f\x8b\x08\x00\x00",
        b"\xff\xfe",
    ] {
        let error = error(text);
        assert_eq!((&error.fault, error.key), (&Fault::NotAnApi, None), "{text:?}");
    }
}

#[test]
fn protobuf_is_named_as_such() {
    unexpected(b"k8s\0\x0a\x0c", 0, "Kubernetes' protobuf", "a JSON object");
}

#[test]
fn an_error_says_whose_the_bytes_are_wherever_the_fault_is() {
    for document in [
        r#"{"spec":tru,"metadata":{"name":"web","namespace":"shop"}}"#,
        r#"{"spec":[1,],"kind":5,"metadata":{"labels":{"name":"no"},"namespace":"shop","name":"w\u0065b"}}"#,
        r#"{"metadata":{"name":"web","namespace":"shop","labels":{"a"#,
        r#"{"metadata":{"name":"web","namespace":"shop"},"spec":"tab	tab"}"#,
        r#"{"spec":{"metadata":{"name":"no","namespace":"no"}},"metadata":{"ownerReferences":[{"name":"no"}],"name":"web","uid":1,"namespace":"shop"}}"#,
        r#"{ "metadata" : { "name" : "web" , "namespace" : "shop" } , } "#,
    ] {
        let error = error(document);
        assert_eq!(
            error.key.as_ref().map(ToString::to_string).as_deref(),
            Some("shop/web"),
            "{error}: {document}"
        );
    }
    // A key that names nobody's namespace is sure only where the metadata ended without one.
    let cluster = error(r#"{"metadata":{"name":"node"},"spec":?}"#);
    assert_eq!(cluster.key.unwrap().to_string(), "node");
}

#[test]
fn an_error_names_nobody_rather_than_another() {
    for document in [
        r#"{"metadata":{"name":"web""#,
        r#"{"metadata":{"name":"web","uid":"x"#,
        r#"{"metadata":{"name":"web","name":"other","namespace":"shop"}}"#,
        r#"{"metadata":{"name":"web"},"metadata":{"name":"other"}}"#,
        r#"{"metadata":{"name":5 "web"}}"#,
        r#"{"metadata":["name","web"],"spec":?}"#,
        r#"{"spec":{"name":"web"},"x":?}"#,
        r#"{"metadata":{"name":"web","namespace":"sh"#,
    ] {
        let error = error(document);
        assert_eq!(error.key, None, "{error}: {document}");
    }
}

#[test]
fn an_error_reads_as_a_sentence() {
    let error = error(r#"{"metadata":{"name":"web","namespace":"shop","uid":5}}"#);
    assert_eq!(error.to_string(), "shop/web: found a number at byte 51: expected a string in metadata.uid");
}
