//! No JSON makes these functions panic, and what they settle stays settled.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{NOW, definition};
use crate::crd::pattern::Pattern;
use crate::crd::{
    apply_defaults, decode, default_definition, mark_deleted, mark_instances_deleted, prepare_definition,
    prune, resources, scale_get, scale_set, status, validate, validate_definition, validate_status,
    warnings_of_definition,
};

/// Keys that mean something somewhere, so that chance finds the way in.
const KEYS: [&str; 44] = [
    "a",
    "b",
    "spec",
    "status",
    "metadata",
    "name",
    "names",
    "plural",
    "kind",
    "group",
    "versions",
    "schema",
    "openAPIV3Schema",
    "type",
    "properties",
    "items",
    "additionalProperties",
    "required",
    "default",
    "enum",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "pattern",
    "format",
    "nullable",
    "maximum",
    "minLength",
    "served",
    "storage",
    "subresources",
    "scale",
    "specReplicasPath",
    "conversion",
    "strategy",
    "labels",
    "ownerReferences",
    "acceptedNames",
    "conditions",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
];

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(KEYS.to_vec()).prop_map(str::to_owned)
}

pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[a-z(\\[.*]{0,6}".prop_map(Value::from),
        prop::sample::select(vec![
            "object",
            "array",
            "string",
            "integer",
            "map",
            "set",
            "date-time",
            ".spec.a"
        ])
        .prop_map(Value::from),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e3..1e3_f64).prop_map(Value::from),
        text,
    ];
    leaf.prop_recursive(5, 48, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(key(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

#[test]
fn schemas_and_objects_as_deep_as_the_parser_allows_fit_on_the_stack() {
    for (open, close) in [
        (r#"{"type":"object","properties":{"a":"#, "}}"),
        (r#"{"type":"object","additionalProperties":"#, "}"),
        (r#"{"type":"object","allOf":["#, "]}"),
        (r#"{"type":"array","items":"#, "}"),
        (r#"{"type":"object","default":{"a":{"a":{}}},"not":"#, "}"),
    ] {
        let levels = 118 / (open.matches(['{', '[']).count().min(2));
        let schema = format!("{}{{}}{}", open.repeat(levels), close.repeat(levels));
        let Ok(schema) = serde_json::from_str::<Value>(&schema) else {
            panic!("deeper than the parser: {open}")
        };
        let mut crd = definition(schema);
        default_definition(&mut crd);
        prepare_definition(&mut crd, None);
        validate_definition(&crd, None);
        let resource = resources(&crd).unwrap().remove(0);
        for nested in [(r#"{"a":"#, "}"), ("[", "]")] {
            let text = format!("{}{{}}{}", nested.0.repeat(120), nested.1.repeat(120));
            let mut object: Value = serde_json::from_str(&text).unwrap();
            let old = object.clone();
            let _ = decode(&resource, &mut object);
            apply_defaults(resource.schema.as_ref().unwrap(), &mut object);
            validate(&resource, &old, Some(&old));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn any_definition_is_answered(crd in any_json(), old in any_json()) {
        let mut crd = crd;
        default_definition(&mut crd);
        prepare_definition(&mut crd, Some(&old));
        validate_definition(&crd, None);
        validate_definition(&crd, Some(&old));
        warnings_of_definition(&crd, Some(&old));
        status(&crd, &[old], NOW);
        let _ = resources(&crd);
        mark_deleted(&mut crd, NOW);
        mark_instances_deleted(&mut crd, NOW);
    }

    #[test]
    fn any_object_of_any_schema_is_answered(schema in any_json(), object in any_json(), old in any_json()) {
        let mut crd = definition(schema);
        default_definition(&mut crd);
        validate_definition(&crd, None);
        let paths = json!({ "specReplicasPath": ".spec.a", "statusReplicasPath": ".status.a" });
        crd["spec"]["versions"][0]["subresources"] = json!({ "status": {}, "scale": paths });
        let resource = resources(&crd).unwrap().remove(0);
        let mut object = object;
        let _ = decode(&resource, &mut object);
        apply_defaults(resource.schema.as_ref().unwrap(), &mut object);
        validate(&resource, &object, Some(&old));
        validate_status(&resource, &object, &old);
        let _ = scale_get(&resource, &object);
        let _ = scale_set(&resource, &mut object, &old);
    }

    #[test]
    fn what_is_pruned_and_defaulted_stays_so(schema in any_json(), object in any_json()) {
        let mut crd = definition(schema);
        default_definition(&mut crd);
        let schema = resources(&crd).unwrap().remove(0).schema.unwrap();
        let mut once = object;
        prune(&schema, &mut once);
        let mut twice = once.clone();
        prop_assert!(prune(&schema, &mut twice).is_empty());
        prop_assert_eq!(&once, &twice);
        apply_defaults(&schema, &mut once);
        let mut twice = once.clone();
        apply_defaults(&schema, &mut twice);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn any_text_is_a_pattern_or_an_error(source in r"[a-z0-9\[\](){}*+?|^$.\\:<>=!,&~é-]{0,16}", text in "[a-z0-9]{0,8}") {
        let pattern = Pattern::new(&source);
        prop_assert!(pattern.error().is_none() || !pattern.matches(&text));
    }

    #[test]
    fn a_quoted_text_matches_itself(text in "\\PC{0,12}") {
        let quoted = format!("^{}$", regex::escape(&text));
        prop_assert!(Pattern::new(&quoted).matches(&text), "{}", quoted);
    }
}
