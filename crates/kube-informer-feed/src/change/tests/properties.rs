//! Of any documents: differences lead from one to the other, chains of them are the difference of their ends, and nothing
//! panics.

use proptest::prelude::*;
use serde_json::Map;

use super::*;
use crate::change::diff::{diff, without_nulls};
use crate::change::{merge, patch, path};

/// Names that mean something, some that are in the way, and few of them, so that they meet.
fn token() -> impl Strategy<Value = String> {
    let tokens = [
        "name",
        "type",
        "uid",
        "mountPath",
        "spec",
        "status",
        "metadata",
        "containers",
        "env",
        "conditions",
        "ports",
        "image",
        "replicas",
        "a",
        "b",
        "0",
        "1",
        "a/b",
        "~",
        "",
    ];
    proptest::sample::select(tokens.map(str::to_owned).to_vec())
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4u32).prop_map(Value::from),
        token().prop_map(Value::from),
        Just(Value::from("web:1")),
        Just(Value::from("web:2@sha256:00")),
    ]
}

fn document() -> impl Strategy<Value = Value> {
    let value = scalar().prop_recursive(5, 40, 5, |inner| {
        let named = (token(), proptest::collection::btree_map(token(), inner.clone(), 0..3)).prop_map(
            |(name, map)| {
                let mut map: Map<String, Value> = map.into_iter().collect();
                map.insert("name".to_owned(), name.clone().into());
                map.insert("type".to_owned(), name.into());
                Value::Object(map)
            },
        );
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec(named, 0..4).prop_map(Value::from),
            proptest::collection::btree_map(token(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    proptest::collection::btree_map(token(), value, 0..5).prop_map(|map| {
        let mut document = Value::Object(map.into_iter().collect());
        without_nulls(&mut document);
        document
    })
}

/// Elements that have names in order of them: where they stand says nothing.
fn canonical(field: &str, value: &Value) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), canonical(key, value))).collect(),
        Value::Array(list) => {
            let mut list: Vec<&Value> = list.iter().collect();
            let all: Vec<Value> = list.iter().map(|value| (*value).clone()).collect();
            if path::keys(field, &all).is_some() {
                list.sort_by_key(|element| path::key(field, element));
            }
            // Of a list in a list, the number is the field.
            let each = list.into_iter().enumerate();
            let each = each.map(|(at, value)| {
                let called = path::key(field, value).unwrap_or_else(|| at.to_string());
                canonical(&called, value)
            });
            Value::Array(each.collect())
        }
        other => other.clone(),
    }
}

fn canonical_deltas(deltas: Vec<Delta>) -> Vec<(String, Option<Value>, Option<Value>)> {
    let one = |delta: Delta| {
        let field = delta.path.last().cloned().unwrap_or_default();
        let value = |value: Option<Value>| value.map(|value| canonical(&field, &value));
        (path::write(&delta.path), value(delta.old), value(delta.new))
    };
    let mut all: Vec<_> = deltas.into_iter().map(one).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn modified(old: &Value, new: &Value) -> Change {
    let of = |document: &Value| {
        let mut document = document.clone();
        let map = document.as_object_mut().unwrap();
        map.insert("metadata".to_owned(), json!({ "name": "x", "uid": "u" }));
        object("v1", "Secret", &document)
    };
    Change::modified(&of(old), &of(new)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_different_done_to_the_old_document_is_the_new_one(old in document(), new in document()) {
        let deltas = diff(&old, &new);
        let all: Vec<&Delta> = deltas.iter().collect();
        let done = patch::apply(&old, 0, &all).unwrap();
        prop_assert_eq!(canonical("", &done), canonical("", &new), "{:?}", deltas);
        let undone = patch::undo(&new, 0, &all).unwrap();
        prop_assert_eq!(canonical("", &undone), canonical("", &old), "{:?}", deltas);
        prop_assert!(diff(&old, &old).is_empty());
    }

    #[test]
    fn a_chain_of_differences_is_the_difference_of_its_ends(a in document(), b in document(), c in document()) {
        let merged = merge::merge(diff(&a, &b), diff(&b, &c));
        prop_assert_eq!(merged.lost, 0);
        prop_assert_eq!(canonical_deltas(merged.deltas), canonical_deltas(diff(&a, &c)));
    }

    #[test]
    fn no_path_leads_on_from_another(old in document(), new in document()) {
        let deltas = diff(&old, &new);
        for (at, one) in deltas.iter().enumerate() {
            for (other_at, other) in deltas.iter().enumerate() {
                prop_assert!(at == other_at || !other.path.starts_with(&one.path), "{:?} {:?}", one, other);
            }
        }
    }

    #[test]
    fn whatever_changes_is_one_line_and_can_be_sent(old in document(), new in document(), last in document()) {
        for kind in ["Deployment", "ConfigMap"] {
            let of = |document: &Value| {
                let mut document = document.clone();
                document.as_object_mut().unwrap().insert("metadata".to_owned(), json!({ "name": "x", "uid": "u" }));
                object("v1", kind, &document)
            };
            let changes = [
                Change::modified(&of(&old), &of(&new)).unwrap(),
                Change::added(&of(&new)).unwrap(),
                Change::deleted(&of(&new), false).unwrap(),
            ];
            for change in &changes {
                prop_assert!(!change.summary.is_empty() && change.summary.len() < 300);
                let read: Change = serde_json::from_str(&serde_json::to_string(change).unwrap()).unwrap();
                prop_assert_eq!(&read, change);
            }
            let then = Change::modified(&of(&new), &of(&last)).unwrap();
            let both = Change::merge(&changes[0], &then).unwrap();
            let at_once = Change::modified(&of(&old), &of(&last)).unwrap();
            prop_assert_eq!((&both.classes, &both.summary), (&at_once.classes, &at_once.summary));
            let came = Change::merge(&changes[1], &then).unwrap();
            prop_assert_eq!(came.changes.len(), Change::added(&of(&last)).unwrap().changes.len());
        }
        // Nothing of a secret's data is in what is said of it, but for its keys.
        let change = modified(&json!({ "data": old }), &json!({ "data": new }));
        for change in &change.changes {
            for value in [&change.old, &change.new].into_iter().flatten() {
                let hidden = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("hidden:"));
                let map = value.as_object().is_some_and(|map| map.values().all(hidden));
                prop_assert!(map || hidden(value), "{}", value);
            }
        }
    }
}
