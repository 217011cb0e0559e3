//! What is cut, and what stays as it is.

use super::*;

#[test]
fn managed_fields_are_cut_wherever_they_stand() {
    for (document, expected) in [
        (
            r#"{"metadata":{"managedFields":[{}],"name":"a","uid":"b"}}"#,
            r#"{"metadata":{"name":"a","uid":"b"}}"#,
        ),
        (
            r#"{"metadata":{"name":"a","managedFields":[{}],"uid":"b"}}"#,
            r#"{"metadata":{"name":"a","uid":"b"}}"#,
        ),
        (
            r#"{"metadata":{"name":"a","uid":"b","managedFields":[{}]}}"#,
            r#"{"metadata":{"name":"a","uid":"b"}}"#,
        ),
        (r#"{"metadata":{"name":"a","managedFields":null}}"#, r#"{"metadata":{"name":"a"}}"#),
        (r#"{"metadata":{"name":"a","managed\u0046ields":"x"}}"#, r#"{"metadata":{"name":"a"}}"#),
    ] {
        assert_eq!(kept(document, &Rules::default()), expected);
    }
}

#[test]
fn managed_fields_elsewhere_are_no_managed_fields() {
    let document = named(r#","managedFields":[1],"spec":{"metadata":{"managedFields":[2]}}"#);
    assert_eq!(kept(&document, &Rules::default()), document);
}

#[test]
fn managed_fields_stay_where_they_are_wanted() {
    let document = with_fields(r#","managedFields":[{"manager":"kubelet"}]"#);
    assert_eq!(kept(&document, &dropping(&[])), document);
}

#[test]
fn a_dropped_field_goes_with_all_that_is_under_it_and_with_one_comma() {
    for (members, expected) in [
        (r#","spec":{"a":{"x":[1,{}]},"b":2,"c":3}"#, r#","spec":{"b":2,"c":3}"#),
        (r#","spec":{"b":2,"a":{"x":[1,{}]},"c":3}"#, r#","spec":{"b":2,"c":3}"#),
        (r#","spec":{"b":2,"c":3,"a":{"x":[1,{}]}}"#, r#","spec":{"b":2,"c":3}"#),
    ] {
        assert_eq!(kept(&named(members), &dropping(&["/spec/a"])), named(expected));
    }
}

#[test]
fn several_dropped_fields_of_one_object_leave_its_commas_right() {
    let rules = dropping(&["/spec/a", "/spec/b"]);
    for (spec, expected) in [
        (r#"{"a":1,"b":2,"c":3,"d":4}"#, r#"{"c":3,"d":4}"#),
        (r#"{"c":3,"a":1,"b":2,"d":4}"#, r#"{"c":3,"d":4}"#),
        (r#"{"c":3,"d":4,"a":1,"b":2}"#, r#"{"c":3,"d":4}"#),
        (r#"{"a":1,"c":3,"b":2}"#, r#"{"c":3}"#),
        (r#"{"a":1,"c":3,"b":2,"d":4}"#, r#"{"c":3,"d":4}"#),
    ] {
        let named = |spec| named(&format!(r#","spec":{spec}"#));
        assert_eq!(kept(&named(spec), &rules), named(expected));
    }
}

#[test]
fn an_emptied_object_stays() {
    let rules = dropping(&["/spec/a", "/spec/b"]);
    assert_eq!(kept(&named(r#","spec":{"a":1,"b":2}"#), &rules), named(r#","spec":{}"#));
    assert_eq!(kept(&named(r#","spec":{"b":1}"#), &rules), named(r#","spec":{}"#));
}

#[test]
fn members_of_the_root_are_dropped() {
    let rules = dropping(&["/status", "/data"]);
    assert_eq!(kept(&named(r#","data":{"k":"v"},"status":{}"#), &rules), named(""));
    let document = r#"{"data":1,"status":2,"metadata":{"name":"a"}}"#;
    assert_eq!(kept(document, &rules), r#"{"metadata":{"name":"a"}}"#);
}

#[test]
fn a_dropped_field_below_another_changes_nothing() {
    let rules = dropping(&["/spec", "/spec/a", "/spec/a/b"]);
    assert_eq!(kept(&named(r#","spec":{"a":{"b":1}}"#), &rules), named(""));
}

#[test]
fn a_pointer_that_meets_an_array_or_a_scalar_matches_nothing() {
    let rules = dropping(&["/spec/0", "/spec/-", "/data/x", "/list/0/a"]);
    let document = named(r#","spec":[1,2],"data":"x","list":[{"a":1}]"#);
    assert_eq!(kept(&document, &rules), document);
}

#[test]
fn keys_are_compared_without_their_escapes() {
    let rules = dropping(&["/status", "/spec/a~1b", "/spec/é"]);
    let document = named(r#","\u0073tat\u0075s":1,"spec":{"a\/b":1,"\u00e9":2,"status":3}"#);
    assert_eq!(kept(&document, &rules), named(r#","spec":{"status":3}"#));
}

#[test]
fn one_annotation_can_be_dropped_and_is_in_the_metadata_no_more() {
    let rules = dropping(&["/metadata/annotations/example.com~1applied", "/metadata/labels/x"]);
    let document = with_fields(
        r#","annotations":{"example.com/applied":"{\"a\":1}","b":"c"},"labels":{"x":"1","y":"2"}"#,
    );
    let mut out = Vec::new();
    let metadata = ingest(document.as_bytes(), None, &rules, &mut out).unwrap();
    assert_eq!(metadata.annotations, [("b".into(), "c".into())]);
    assert_eq!(metadata.labels, [("y".into(), "2".into())]);
    assert_eq!(out, with_fields(r#","annotations":{"b":"c"},"labels":{"y":"2"}"#).as_bytes());
}

#[test]
fn everything_else_stays_byte_for_byte() {
    let document = concat!(
        " {\r\n\t\"z\" : [ 1.0 , 1E+2,-0, 0.10, 12345678901234567890123 ] , \"\\u0061\":\"\\u00e9é\\/\",\n",
        "\"metadata\": { \"name\" :\"a\"}, \"a\\u0062\": { } ,\"b\":[ ],\"t\": true ,\"n\":null}\n ",
    );
    assert_eq!(kept(document, &dropping(&["/nothing"])), document);
}

#[test]
fn space_around_what_is_cut_leaves_a_document() {
    let rules = dropping(&["/spec/a", "/status"]);
    let document =
        "{ \"status\" : 1 , \"metadata\" : { \"name\" : \"a\" } , \"spec\" : { \"a\" : 1 } , \"x\" : 1 }";
    let out = kept(document, &rules);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value, serde_json::json!({ "metadata": { "name": "a" }, "spec": {}, "x": 1 }));
}

#[test]
fn a_missing_type_is_put_in_front() {
    let with = |document: &str| {
        let mut out = Vec::new();
        let metadata = ingest(document.as_bytes(), Some(("apps/v1", "Thing")), &Rules::default(), &mut out);
        assert!(metadata.is_ok());
        String::from_utf8(out).unwrap()
    };
    let cases = [
        (
            r#"{"metadata":{"name":"a"}}"#,
            r#"{"apiVersion":"apps/v1","kind":"Thing","metadata":{"name":"a"}}"#,
        ),
        (
            r#"{"metadata":{"name":"a"},"kind":"Other"}"#,
            r#"{"apiVersion":"apps/v1","metadata":{"name":"a"},"kind":"Other"}"#,
        ),
        (
            r#"{"apiVersion":"v2","metadata":{"name":"a"}}"#,
            r#"{"kind":"Thing","apiVersion":"v2","metadata":{"name":"a"}}"#,
        ),
        (
            r#"{"kind":"Other","apiVersion":"v2","metadata":{"name":"a"}}"#,
            r#"{"kind":"Other","apiVersion":"v2","metadata":{"name":"a"}}"#,
        ),
        (
            r#" { "metadata":{"managedFields":[],"name":"a"}}"#,
            r#" {"apiVersion":"apps/v1","kind":"Thing", "metadata":{"name":"a"}}"#,
        ),
    ];
    for (document, expected) in cases {
        assert_eq!(with(document), expected);
    }
}

#[test]
fn a_type_that_is_put_in_front_is_escaped() {
    let mut out = Vec::new();
    ingest(br#"{"metadata":{"name":"a"}}"#, Some(("\"", "\\\n")), &Rules::default(), &mut out).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!((value["apiVersion"].as_str(), value["kind"].as_str()), (Some("\""), Some("\\\n")));
}

#[test]
fn a_pod_loses_its_managed_fields_and_nothing_else() {
    let mut out = Vec::new();
    ingest(POD, None, &Rules::default(), &mut out).unwrap();
    let mut expected: serde_json::Value = serde_json::from_slice(POD).unwrap();
    expected["metadata"].as_object_mut().unwrap().remove("managedFields").unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&out).unwrap(), expected);
}
