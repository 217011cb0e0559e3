use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Any JSON, some levels deep.
pub(crate) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[ -~]{0,8}".prop_map(Value::from),
        "(1|2|1000m|1Gi|1024Mi|-1|25%|a|A_)".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn null_reads_as_absent() {
    let value = json!({ "a": null, "b": { "c": "d" } });
    assert_eq!(at(&value, &["a"]), None);
    assert_eq!(text(&value, &["b", "c"]), "d");
    assert_eq!(text(&value, &["b", "c", "d"]), "");
}

#[test]
fn what_is_in_the_way_stays() {
    let mut value = json!({ "a": "text" });
    set(&mut value, &["a", "b"], 1);
    assert_eq!(value, json!({ "a": "text" }));
    set(&mut value, &["c", "b"], 1);
    assert_eq!(value, json!({ "a": "text", "c": { "b": 1 } }));
}

#[test]
fn amounts_and_empty_things_are_compared_by_meaning() {
    let a = json!({ "cpu": "1000m", "labels": {}, "list": [] });
    let b = json!({ "cpu": "1", "nothing": null });
    assert!(same(Some(&a), Some(&b)));
    assert!(!same(Some(&json!({ "replicas": 0 })), Some(&json!({}))));
    assert!(!same(Some(&json!("a")), Some(&json!("b"))));
}

proptest! {
    #[test]
    fn everything_is_the_same_as_itself(value in any_json()) {
        prop_assert!(same(Some(&value), Some(&value)));
    }

    #[test]
    fn sameness_has_no_direction(a in any_json(), b in any_json()) {
        prop_assert_eq!(same(Some(&a), Some(&b)), same(Some(&b), Some(&a)));
    }

    #[test]
    fn what_was_set_is_read(value in any_json(), new in any_json()) {
        let mut changed = value;
        set(&mut changed, &["some", "place"], new.clone());
        if changed.is_object() && !new.is_null() && changed["some"].is_object() {
            prop_assert_eq!(at(&changed, &["some", "place"]), Some(&new));
        }
    }
}
