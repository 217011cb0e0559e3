use serde_json::{Value, json};

use super::{definition, served, shown, with_version};
use crate::crd::{apply_defaults, convert, decode, normalize_numbers, validate, validate_status};
use crate::kinds::Resource;

fn foo(spec: Value) -> Value {
    json!({ "apiVersion": "ex.com/v1", "kind": "Foo", "metadata": { "name": "a" }, "spec": spec })
}

/// A resource whose spec has the given properties.
fn resource(properties: Value) -> Resource {
    served(definition(json!({
        "type": "object",
        "properties": { "spec": { "type": "object", "properties": properties } },
    })))
}

/// What becomes of `spec.a` and what is wrong with it.
fn write(schema: Value, value: Value) -> (Option<Value>, Vec<String>) {
    let resource = resource(json!({ "a": schema }));
    let mut object = foo(json!({ "a": value }));
    decode(&resource, &mut object).unwrap();
    apply_defaults(resource.schema.as_ref().unwrap(), &mut object);
    (object["spec"].get("a").cloned(), shown(&validate(&resource, &object, None)))
}

fn errors(schema: Value, value: Value) -> Vec<String> {
    write(schema, value).1
}

#[test]
fn a_wrong_type_is_named_twice() {
    for (schema, value, expected) in [
        (
            json!({ "type": "integer" }),
            json!("x"),
            r#""string": spec.a in body must be of type integer: "string""#,
        ),
        (
            json!({ "type": "string" }),
            json!(5),
            r#""integer": spec.a in body must be of type string: "integer""#,
        ),
        (
            json!({ "type": "array", "items": { "type": "string" } }),
            json!({}),
            r#""object": spec.a in body must be of type array: "object""#,
        ),
        (
            json!({ "x-kubernetes-int-or-string": true }),
            json!(true),
            r#""boolean": spec.a in body must be of type integer,string: "boolean""#,
        ),
        (
            json!({ "type": "string", "format": "date-time" }),
            json!(5),
            r#""int64": spec.a in body must be of type date-time: "int64""#,
        ),
    ] {
        assert_eq!(errors(schema, value), [format!("spec.a: Invalid value: {expected}")]);
    }
}

#[test]
fn a_fraction_is_no_integer() {
    assert_eq!(
        errors(json!({ "type": "integer", "format": "int32" }), json!(1.5)),
        [
            r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.a"#,
            r#"spec.a: Invalid value: "float64": spec.a in body must be of type int32: "float64""#,
        ]
    );
    assert_eq!(errors(json!({ "type": "integer" }), json!(2.0)), [""; 0]);
}

#[test]
fn numbers_are_bounded() {
    let schema = json!({ "type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 3 });
    assert_eq!(errors(schema.clone(), json!(9)), [""; 0]);
    assert_eq!(
        errors(schema.clone(), json!(12)),
        ["spec.a: Invalid value: 12: spec.a in body should be less than or equal to 10"]
    );
    assert_eq!(
        errors(schema, json!(0)),
        ["spec.a: Invalid value: 0: spec.a in body should be greater than or equal to 1"]
    );
    let exclusive = json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true, "multipleOf": 0.5 });
    assert_eq!(
        errors(exclusive, json!(0.7)),
        ["spec.a: Invalid value: 0.7: spec.a in body should be a multiple of 0.5"]
    );
}

#[test]
fn strings_are_measured_matched_and_chosen() {
    let schema = json!({ "type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$" });
    assert_eq!(
        errors(schema.clone(), json!("a")),
        [r#"spec.a: Invalid value: "a": spec.a in body should be at least 2 chars long"#]
    );
    assert_eq!(errors(schema.clone(), json!("aaaaaa")), ["spec.a: Too long: may not be more than 5 bytes"]);
    assert_eq!(
        errors(schema, json!("AAA")),
        [r#"spec.a: Invalid value: "AAA": spec.a in body should match '^[a-z]+$'"#]
    );
    assert_eq!(
        errors(json!({ "type": "string", "enum": ["x", "y"] }), json!("z")),
        [r#"spec.a: Unsupported value: "z": supported values: "x", "y""#]
    );
    assert_eq!(
        errors(json!({ "type": "integer", "enum": [1, 2] }), json!(3)),
        [r#"spec.a: Unsupported value: 3: supported values: "1", "2""#]
    );
}

#[test]
fn formats_are_checked_and_a_list_slips_through() {
    let schema = json!({ "type": "string", "format": "date-time" });
    assert_eq!(
        errors(schema.clone(), json!("x")),
        [r#"spec.a: Invalid value: "x": spec.a in body must be of type date-time: "x""#]
    );
    assert_eq!(errors(schema.clone(), json!("2020-01-01T00:00:00Z")), [""; 0]);
    assert_eq!(errors(schema, json!(["x"])), [""; 0]);
}

#[test]
fn known_formats_know_their_texts() {
    use crate::crd::formats::matches;
    for (format, good, bad) in [
        ("date", "2020-01-31", "2020-02-30"),
        ("date-time", "2020-01-01t00:00:00.5+01:00", "2020-01-01T24:00:00Z"),
        ("duration", "1h30m", "x"),
        ("duration", "2 days", "5"),
        ("ipv4", "010.000.0.1", "256.0.0.1"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("mac", "aa:bb:cc:dd:ee:ff", "aa:bb"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        ("uuid4", "123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-52d3-a456-426614174000"),
        ("email", "A <a@b.c>", "a@"),
        ("hostname", "example.com", "a_b.com"),
        ("uri", "http://x/y?z=1", "a/b"),
        ("byte", "aGk=", "aGk"),
        ("isbn10", "0321751043", "0321751044"),
        ("isbn13", "978-0321751041", "9780321751042"),
        ("creditcard", "4111 1111-1111 1111", "4111111111111112"),
        ("ssn", "123-45-6789", "123456789"),
        ("hexcolor", "#fff", "#ffff"),
        ("rgbcolor", "rgb(1, 2, 3)", "rgb(1, 2, 256)"),
        ("k8s-short-name", "a-b", "a.b"),
        ("k8s-long-name", "a.b-c", "a..b"),
        ("bsonobjectid", "507f1f77bcf86cd799439011", "507f1f77"),
    ] {
        assert!(matches(format, good), "{format} {good}");
        assert!(!matches(format, bad), "{format} {bad}");
    }
}

#[test]
fn lists_and_maps_are_counted() {
    let list = json!({ "type": "array", "minItems": 1, "maxItems": 2, "items": { "type": "string" } });
    assert_eq!(
        errors(list.clone(), json!([])),
        ["spec.a: Invalid value: 0: spec.a in body should have at least 1 items"]
    );
    assert_eq!(errors(list, json!(["a", "b", "c"])), ["spec.a: Too many: 3: must have at most 2 items"]);
    let map = json!({ "type": "object", "maxProperties": 1, "additionalProperties": { "type": "integer" } });
    assert_eq!(
        errors(map, json!({ "a": 1, "b": "x" })),
        [
            r#"spec.a.b: Invalid value: "string": spec.a.b in body must be of type integer: "string""#,
            "spec.a: Too many: 2: must have at most 1 item",
        ]
    );
}

#[test]
fn sets_and_maps_hold_nothing_twice() {
    let set = json!({ "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } });
    assert_eq!(errors(set, json!(["a", "b", "a", "a"])), [r#"spec.a[2]: Duplicate value: "a""#]);
    let map = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
        "items": { "type": "object", "required": ["name"],
                   "properties": { "name": { "type": "string" }, "port": { "type": "integer", "default": 80 } } },
    });
    assert_eq!(
        errors(map, json!([{ "name": "a" }, { "name": "a", "port": 80 }, {}])),
        [r#"spec.a[1]: Duplicate value: {"name":"a","port":80}"#, "spec.a[2].name: Required value"]
    );
}

#[test]
fn alternatives_report_the_closest_one() {
    let of = |key: &str| {
        json!({ "type": "object", "properties": { "x": { "type": "integer" }, "y": { "type": "integer" } },
                key: [{ "required": ["x"] }, { "required": ["y"] }] })
    };
    assert_eq!(
        errors(of("anyOf"), json!({})),
        [
            r#"<nil>: Invalid value: "": "spec.a" must validate at least one schema (anyOf)"#,
            "spec.a.x: Required value",
        ]
    );
    assert_eq!(
        errors(of("oneOf"), json!({ "x": 1, "y": 2 })),
        [
            r#"<nil>: Invalid value: "": "spec.a" must validate one and only one schema (oneOf). Found 2 valid alternatives"#
        ]
    );
    let both =
        json!({ "type": "integer", "allOf": [{ "minimum": 3 }, { "maximum": 5 }], "not": { "enum": [4] } });
    assert_eq!(
        errors(both.clone(), json!(7)),
        [
            r#"<nil>: Invalid value: "": "spec.a" must validate all the schemas (allOf)"#,
            "spec.a: Invalid value: 7: spec.a in body should be less than or equal to 5",
        ]
    );
    assert_eq!(
        errors(both, json!(4)),
        [r#"<nil>: Invalid value: "": "spec.a" must not validate the schema (not)"#]
    );
}

#[test]
fn unknown_fields_are_dropped_and_named() {
    let resource = resource(json!({
        "nested": { "type": "object", "properties": { "x": { "type": "integer" } } },
        "raw": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
        "open": { "type": "object", "additionalProperties": true },
        "list": { "type": "array", "items": { "type": "object" } },
    }));
    let mut object = foo(json!({
        "nested": { "x": 1, "q": 1 }, "raw": { "q": { "z": 1 } }, "open": { "a": 1, "b": { "c": 1 } },
        "list": [{ "u": 1 }], "zzz": 1,
    }));
    object["metadata"]["foo"] = json!(1);
    object["metadata"]["ownerReferences"] = json!([{ "zz": 1 }]);
    object["extra"] = json!(5);
    let unknown = decode(&resource, &mut object).unwrap();
    assert_eq!(
        unknown,
        [
            "metadata.foo",
            "metadata.ownerReferences[0].zz",
            "extra",
            "spec.list[0].u",
            "spec.nested.q",
            "spec.open.b.c",
            "spec.zzz"
        ]
    );
    assert_eq!(
        object["spec"],
        json!({ "nested": { "x": 1 }, "raw": { "q": { "z": 1 } }, "open": { "a": 1, "b": {} }, "list": [{}] })
    );
}

#[test]
fn metadata_is_read_as_strictly_as_object_meta() {
    let resource = resource(json!({}));
    for (metadata, why) in [
        (
            json!({ "labels": { "a": 5 } }),
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        ),
        (
            json!({ "labels": ["a"] }),
            "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string",
        ),
        (
            json!({ "ownerReferences": [{ "controller": "x" }] }),
            "json: cannot unmarshal string into Go struct field OwnerReference.ownerReferences.controller of type bool",
        ),
        (
            json!({ "creationTimestamp": "x" }),
            r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
        ),
        (json!("x"), "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
    ] {
        let mut object = foo(json!({}));
        object["metadata"] = metadata;
        let error = decode(&resource, &mut object).unwrap_err();
        assert_eq!((error.code, error.reason), (400, "BadRequest"));
        assert_eq!(error.message, format!(r#"Foo in version "v1" cannot be handled as a Foo: {why}"#));
    }
    let mut object = foo(json!({}));
    object["metadata"] = json!({ "name": "a", "labels": {}, "creationTimestamp": null, "generation": 0 });
    decode(&resource, &mut object).unwrap();
    assert_eq!(object["metadata"], json!({ "name": "a" }));
}

#[test]
fn embedded_objects_have_a_type_and_metadata() {
    let embedded = json!({ "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true });
    assert_eq!(
        errors(embedded.clone(), json!({ "x": 1 })),
        ["spec.a.apiVersion: Required value", "spec.a.kind: Required value"]
    );
    let resource = resource(json!({ "a": embedded }));
    let mut object =
        foo(json!({ "a": { "apiVersion": "v1", "kind": "Pod", "metadata": { "labels": {}, "zz": 1 } } }));
    assert_eq!(decode(&resource, &mut object).unwrap(), ["spec.a.metadata.zz"]);
    assert_eq!(object["spec"]["a"]["metadata"], json!({}));
    let mut object = foo(json!({ "a": { "apiVersion": "v1", "kind": "Pod", "metadata": { "labels": 5 } } }));
    assert_eq!(
        decode(&resource, &mut object).unwrap_err().message,
        r#"Foo in version "v1" cannot be handled as a Foo: spec.a.metadata: Invalid value: {"labels":5}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string"#
    );
}

#[test]
fn defaults_fill_what_is_missing_down_to_the_bottom() {
    let inner = json!({ "x": { "type": "integer", "default": 7 } });
    let nested = json!({ "type": "object", "properties": inner });
    let with_default = json!({ "type": "object", "default": {}, "properties": inner });
    assert_eq!(write(json!({ "type": "string", "default": "d" }), json!(null)).0, Some(json!("d")));
    assert_eq!(write(nested, json!({})).0, Some(json!({ "x": 7 })));
    assert_eq!(write(with_default, json!(null)).0, Some(json!({ "x": 7 })));
}

#[test]
fn nulls_stay_only_where_they_mean_something() {
    assert_eq!(write(json!({ "type": "string", "nullable": true }), json!(null)).0, Some(json!(null)));
    assert_eq!(write(json!({ "type": "string" }), json!(null)).0, None);
    assert_eq!(
        errors(json!({ "type": "array", "items": { "type": "string" } }), json!([null])),
        [r#"spec.a[0]: Invalid value: "null": spec.a[0] in body must be of type string: "null""#]
    );
}

#[test]
fn whole_numbers_are_stored_without_a_fraction() {
    let mut value = json!({ "a": 3.0, "b": [1.5, 2.0], "c": 4 });
    normalize_numbers(&mut value);
    assert_eq!(value.to_string(), r#"{"a":3,"b":[1.5,2],"c":4}"#);
}

#[test]
fn what_was_wrong_before_is_forgiven_while_it_is_unchanged() {
    let resource = resource(json!({
        "n": { "type": "integer", "maximum": 10 },
        "o": { "type": "object", "required": ["z"],
               "properties": { "x": { "type": "string", "maxLength": 2 }, "y": { "type": "string" }, "z": { "type": "string" } } },
        "list": { "type": "array", "items": { "type": "string", "maxLength": 2 } },
        "map": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                 "items": { "type": "object", "required": ["k"],
                            "properties": { "k": { "type": "string" }, "v": { "type": "integer", "maximum": 5 } } } },
        "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
    }));
    let old = foo(json!({
        "n": 20, "o": { "x": "long", "y": "y" }, "list": ["long", "b"],
        "map": [{ "k": "one", "v": 9 }, { "k": "two", "v": 1 }], "set": ["a", "a"],
    }));
    let change = |change: &dyn Fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new["spec"]);
        shown(&validate(&resource, &new, Some(&old)))
    };
    assert_eq!(change(&|_| {}), [""; 0]);
    assert_eq!(
        change(&|spec| spec["n"] = json!(21)),
        ["spec.n: Invalid value: 21: spec.n in body should be less than or equal to 10"]
    );
    assert_eq!(change(&|spec| spec["o"]["y"] = json!("z")), ["spec.o.z: Required value"]);
    let longer = change(&|spec| spec["list"] = json!(["long", "b", "c"]));
    assert_eq!(longer, ["spec.list[0]: Too long: may not be more than 2 bytes"]);
    assert_eq!(change(&|spec| spec["map"][1]["v"] = json!(2)), [""; 0]);
    let swapped = change(&|spec| spec["map"] = json!([{ "k": "two", "v": 1 }, { "k": "one", "v": 9 }]));
    assert_eq!(swapped, [""; 0]);
    assert_eq!(change(&|spec| spec["set"] = json!(["a", "a", "b", "b"])), [""; 0]);
}

#[test]
fn a_write_of_the_status_is_checked_from_the_status_down() {
    let resource = served(with_version(json!({
        "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": { "type": "object", "properties": {
            "spec": { "type": "object", "required": ["x"] },
            "status": { "type": "object", "properties": { "n": { "type": "integer" } } },
        } } },
    })));
    let old = foo(json!({}));
    let mut new = old.clone();
    new["status"] = json!({ "n": "x" });
    assert_eq!(
        shown(&validate_status(&resource, &new, &old)),
        [r#"status.n: Invalid value: "string": n in body must be of type integer: "string""#]
    );
}

#[test]
fn expressions_are_kept_and_mentioned_only_where_they_could_not_run() {
    let rule = json!([{ "rule": "self.x > 3" }]);
    let schema = json!({ "type": "object", "properties": { "x": { "type": "integer", "maximum": 9 } },
                         "x-kubernetes-validations": rule });
    assert_eq!(errors(schema.clone(), json!({ "x": 1 })), [""; 0], "not evaluated");
    assert_eq!(
        errors(schema, json!({ "x": "y" })),
        [
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
            r#"spec.a.x: Invalid value: "string": spec.a.x in body must be of type integer: "string""#,
        ]
    );
}

#[test]
fn conversion_only_renames_the_version() {
    let resource = resource(json!({}));
    let mut object = foo(json!({ "x": 1 }));
    object["apiVersion"] = "ex.com/v2".into();
    convert(&mut object, &resource);
    assert_eq!(object, foo(json!({ "x": 1 })));
}
