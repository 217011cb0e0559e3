//! The answers in `tests/refused.txt` are those of kube-apiserver 1.37.1.

use serde_json::{Value, json};

use super::{Expected, Quantity, Schema, duplicate_fields, read_body, strict_error};
use crate::kinds;

fn schema(group: &str, version: &str, kind: &str) -> Schema {
    kinds::kind(group, version, kind).unwrap()
}

/// Posts a body to a collection's path with `fieldValidation=Strict`.
fn post(path: &str, body: &[u8]) -> Result<Value, String> {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, version, plural) = match parts.as_slice() {
        ["api", version, .., plural] => ("", *version, *plural),
        ["apis", group, version, .., plural] => (*group, *version, *plural),
        _ => panic!("{path}"),
    };
    let resource = kinds::builtin()
        .iter()
        .find(|r| r.is(group, plural) && r.version == version)
        .unwrap_or_else(|| panic!("{path}"));
    let expected = Expected { group, version, kind: &resource.kind };
    let (value, decoded) =
        read_body(resource.schema.as_ref().unwrap(), expected, body).map_err(|e| e.message)?;
    strict_error(&decoded, expected).map_or(Ok(value), |e| Err(e.message))
}

#[test]
fn refuses_bodies_in_the_real_servers_words() {
    let mut wrong = Vec::new();
    for line in include_str!("tests/refused.txt").lines() {
        let (path, rest) = line.split_once('|').unwrap();
        let (body, message) = rest.split_once('|').unwrap();
        let got = post(path, body.as_bytes());
        if got.as_ref().err().map(String::as_str) != Some(message) {
            wrong.push(format!("{body}\n  want {message}\n  got  {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `tests/stored.txt`: what was sent, and what the real server stored (without what it puts into the
/// metadata). `=` marks kinds and objects without defaults, where the one follows from the other.
#[test]
fn gives_objects_the_real_servers_stored_form() {
    let mut wrong = Vec::new();
    for line in include_str!("tests/stored.txt").lines() {
        let [exact, path, sent, stored] = line.splitn(4, '|').collect::<Vec<_>>().try_into().unwrap();
        let stored: Value = serde_json::from_str(stored).unwrap();
        let kind = (stored["apiVersion"].as_str().unwrap(), stored["kind"].as_str().unwrap());
        let (group, version) = kind.0.split_once('/').unwrap_or(("", kind.0));
        let schema = schema(group, version, kind.1);

        let mut same = stored.clone();
        assert_eq!(schema.decode(&mut same).unwrap().strict, Vec::<String>::new(), "{path}");
        schema.normalise(&mut same);
        if same != stored {
            wrong.push(format!("{path}\n  want {stored}\n  same {same}"));
        }
        if exact == "=" {
            let mut got = post(path, sent.as_bytes()).unwrap();
            schema.normalise(&mut got);
            if got != stored {
                wrong.push(format!("{path} {sent}\n  want {stored}\n  got  {got}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `tests/quantities.txt`: a quantity and what apimachinery makes of it.
#[test]
fn quantities_are_written_as_apimachinery_writes_them() {
    let mut wrong = Vec::new();
    for line in include_str!("tests/quantities.txt").lines() {
        let (text, want) = line.split_once('|').unwrap();
        let got = Quantity::parse(text).map_or_else(|e| format!("!{e}"), |q| q.to_string());
        if got != want {
            wrong.push(format!("{text}: want {want}, got {got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn decode(kind: &str, value: Value) -> Result<(Value, Vec<String>), String> {
    let mut value = value;
    let decoded = schema("", "v1", kind).decode(&mut value)?;
    Ok((value, decoded.strict))
}

#[test]
fn null_is_absence_in_a_struct_and_zero_in_a_list_or_a_map() {
    let (value, strict) = decode(
        "Pod",
        json!({
            "metadata": { "labels": { "a": null }, "annotations": null, "creationTimestamp": null },
            "spec": { "containers": [null], "hostNetwork": null, "imagePullSecrets": null },
        }),
    )
    .unwrap();
    assert_eq!(value, json!({ "metadata": { "labels": { "a": "" } }, "spec": { "containers": [{}] } }));
    assert!(strict.is_empty());
}

#[test]
fn unknown_fields_are_left_out_and_told() {
    let (value, strict) =
        decode("ConfigMap", json!({ "data": { "a": "b" }, "dat": 1, "metadata": { "nam": "x" } })).unwrap();
    assert_eq!(value, json!({ "data": { "a": "b" }, "metadata": {} }));
    assert_eq!(strict, [r#"unknown field "dat""#, r#"unknown field "metadata.nam""#]);
}

#[test]
fn raw_parts_are_kept_as_they_are() {
    let data = json!({ "x": [1.5, null, { "y": {} }] });
    let mut value = json!({ "data": data, "revision": 1 });
    schema("apps", "v1", "ControllerRevision").decode(&mut value).unwrap();
    assert_eq!(value["data"], data);
    let entry = json!({ "manager": "m", "fieldsV1": { "f:spec": { ".": {} } } });
    let (value, strict) = decode("Pod", json!({ "metadata": { "managedFields": [entry] } })).unwrap();
    assert_eq!(value["metadata"]["managedFields"][0], entry);
    assert!(strict.is_empty());
}

#[test]
fn schemas_of_custom_resources_are_read_through_their_alternatives() {
    let crd = schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let sent = json!({ "spec": { "versions": [{ "schema": { "openAPIV3Schema": {
        "additionalProperties": { "type": "string", "unknown": 1, "maximum": 2.0 },
        "items": [{ "type": "object" }],
        "dependencies": { "a": ["b"], "c": { "type": "string" } },
        "default": { "any": null },
        "not": { "additionalProperties": false },
    } } }] } });
    let mut value = sent.clone();
    assert!(crd.decode(&mut value).unwrap().strict.is_empty());
    let mut want = sent;
    let schema = &mut want["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["additionalProperties"] = json!({ "type": "string", "maximum": 2 });
    assert_eq!(value, want);
}

#[test]
fn repeated_keys_are_told_with_their_paths() {
    let text = br#"{"a":1,"b":{"c":1,"c":2,"c":3},"a":{"x":1,"x":2},"l":[{"k":1,"k":1},{"k":1,"k":1}]}"#;
    assert_eq!(
        duplicate_fields(text),
        [
            r#"duplicate field "b.c""#,
            r#"duplicate field "a""#,
            r#"duplicate field "l[0].k""#,
            r#"duplicate field "l[1].k""#,
        ]
    );
    assert!(duplicate_fields(br#"{"a":1,"a""#).is_empty());
}

mod properties {
    use proptest::prelude::*;

    use super::super::scalars::{TimeForm, base64, time};
    use super::super::syntax::check;
    use super::*;

    /// JSON made of names that the kinds know, so that it reaches deep.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            prop_oneof!["[a-z0-9]{0,4}", Just("100m".to_owned()), Just("2026-01-01T00:00:00Z".to_owned())]
                .prop_map(Value::from),
        ];
        let key = prop::sample::select(vec![
            "metadata",
            "spec",
            "status",
            "name",
            "labels",
            "annotations",
            "containers",
            "template",
            "volumes",
            "emptyDir",
            "sizeLimit",
            "ports",
            "targetPort",
            "port",
            "data",
            "rules",
            "resources",
            "limits",
            "cpu",
            "creationTimestamp",
            "ownerReferences",
            "managedFields",
            "fieldsV1",
            "versions",
            "schema",
            "openAPIV3Schema",
            "items",
            "properties",
            "additionalProperties",
            "dependencies",
            "foo",
        ]);
        leaf.prop_recursive(8, 128, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key.clone().prop_map(str::to_owned), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn any_kind() -> impl Strategy<Value = Schema> {
        prop::sample::select(vec![
            ("", "v1", "Pod"),
            ("", "v1", "Service"),
            ("", "v1", "Secret"),
            ("apps", "v1", "Deployment"),
            ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
            ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        ])
        .prop_map(|(group, version, kind)| schema(group, version, kind))
    }

    proptest! {
        #[test]
        fn what_was_decoded_decodes_to_itself(schema in any_kind(), value in any_json()) {
            let mut once = value.clone();
            let bytes = value.to_string();
            match schema.decode(&mut once) {
                Ok(decoded) => {
                    prop_assert_eq!(schema.decode_slice(bytes.as_bytes()), Ok((once.clone(), decoded)));
                    let mut twice = once.clone();
                    prop_assert_eq!(schema.decode(&mut twice).map(|d| d.strict), Ok(Vec::new()));
                    prop_assert_eq!(twice, once);
                }
                Err(error) => prop_assert_eq!(schema.decode_slice(bytes.as_bytes()), Err(error)),
            }
        }

        #[test]
        fn the_stored_form_is_stored_as_it_is(schema in any_kind(), value in any_json()) {
            let mut once = value;
            if schema.decode(&mut once).is_ok() {
                schema.normalise(&mut once);
                let mut twice = once.clone();
                schema.normalise(&mut twice);
                prop_assert_eq!(&twice, &once);
                prop_assert_eq!(schema.decode(&mut twice).map(|d| d.strict), Ok(Vec::new()));
                schema.normalise(&mut twice);
                prop_assert_eq!(twice, once);
            }
        }

        #[test]
        fn normalising_takes_anything(schema in any_kind(), value in any_json()) {
            let mut value = value;
            schema.normalise(&mut value);
        }

        #[test]
        fn syntax_is_checked_as_serde_checks_it(text in r#"[\[\]{}:,"a0-9.eE+\- tfn]{0,12}|\{("[ab]":(1|"x"|\[\]|null),?){0,3}\}"#) {
            let valid = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(check(text.as_bytes()).is_ok(), valid, "{}", text);
        }

        #[test]
        fn bodies_are_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = post("/api/v1/namespaces/default/pods", &bytes);
            let _ = duplicate_fields(&bytes);
        }

        #[test]
        fn quantities_keep_their_value(text in "[+-]?[0-9]{1,12}(\\.[0-9]{0,6})?(n|u|m|k|M|G|T|Ki|Mi|Gi|e[0-9]|E-[0-9])?") {
            let once = Quantity::parse(&text).unwrap();
            let twice = Quantity::parse(&once.to_string()).unwrap();
            prop_assert_eq!(&once, &twice, "{} {}", text, once);
        }

        #[test]
        fn no_text_breaks_a_quantity_or_a_time(text in "\\PC{0,24}") {
            let _ = Quantity::parse(&text);
            let _ = time(&text, TimeForm::Seconds);
            let _ = time(&text, TimeForm::Micros);
            let _ = base64(&text);
        }

        #[test]
        fn base64_comes_back_as_it_went(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            use ::base64::Engine;
            let text = ::base64::engine::general_purpose::STANDARD.encode(&bytes);
            prop_assert_eq!(base64(&text), Ok(text));
        }

        #[test]
        fn times_are_written_in_utc(second in 0_i64..253_402_300_799, hours in -12_i32..=14) {
            let stamp = jiff::Timestamp::from_second(second).unwrap();
            let local = jiff::tz::Offset::from_hours(hours as i8).unwrap().to_datetime(stamp);
            let sign = if hours < 0 { '-' } else { '+' };
            let text = format!("{}{sign}{:02}:00", local.strftime("%Y-%m-%dT%H:%M:%S"), hours.abs());
            let want = jiff::tz::Offset::UTC.to_datetime(stamp).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            if local.year() <= 9999 {
                prop_assert_eq!(time(&text, TimeForm::Seconds), Ok(Some(Value::from(want))));
            }
        }
    }
}
