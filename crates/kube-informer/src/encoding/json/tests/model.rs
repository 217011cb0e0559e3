//! Documents of all kinds, written in all ways: serde_json finds the same in them.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};

use super::*;

/// Keys that the rules know, and some that need care.
const KEYS: &[&str] =
    &["spec", "status", "a", "b", "é", "a/b", "a~b", "", "0", "managedFields", "metadata", "\"\\\n"];

/// Every case is the same on every run.
fn check<S: Strategy>(strategy: S, test: impl Fn(S::Value)) {
    let cases = if full() { 4_000 } else { 150 };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&strategy, |value| {
        test(value);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,12}", any::<String>(), "[\\x00-\\x7f]{0,20}", "[é😀\"\\\\/]{0,9}"]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![3 => proptest::sample::select(KEYS).prop_map(str::to_owned), 1 => text()]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(key(), inner, 0..6)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

fn strings() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map(key(), text(), 0..5).prop_map(|map| json!(map))
}

/// Values for the fields of the metadata, mostly of the right type.
fn fields() -> impl Strategy<Value = Map<String, Value>> {
    let field = prop_oneof![
        text().prop_map(|text| ("name", json!(text))),
        text().prop_map(|text| ("namespace", json!(text))),
        text().prop_map(|text| ("uid", json!(text))),
        text().prop_map(|text| ("resourceVersion", json!(text))),
        any::<i64>().prop_map(|number| ("generation", json!(number))),
        Just(("creationTimestamp", json!("2026-03-01T09:15:00Z"))),
        Just(("deletionTimestamp", json!("2026-03-01T09:15:00.123456+01:00"))),
        strings().prop_map(|map| ("labels", map)),
        strings().prop_map(|map| ("annotations", map)),
        proptest::collection::vec(text(), 0..3).prop_map(|list| ("finalizers", json!(list))),
        (text(), any::<bool>()).prop_map(|(uid, flag)| {
            ("ownerReferences", json!([{ "uid": uid, "name": "a", "controller": flag, "x": {} }, null]))
        }),
        (text(), value()).prop_map(|(manager, fields)| {
            (
                "managedFields",
                json!([{ "manager": manager, "time": null, "fieldsV1": fields, "operation": "Apply" }]),
            )
        }),
        (proptest::sample::select(&["labels", "uid", "managedFields", "generation"][..]), value()),
        value().prop_map(|value| ("other", value)),
    ];
    proptest::collection::vec(field, 0..10).prop_map(|fields| {
        let named = std::iter::once(("name", json!("web")));
        named.chain(fields).map(|(key, value)| (key.to_owned(), value)).collect()
    })
}

fn object() -> impl Strategy<Value = Value> {
    let members = proptest::collection::btree_map(key(), value(), 0..6);
    (members, fields(), any::<[bool; 2]>()).prop_map(|(members, fields, typed)| {
        let mut root: Map<String, Value> = members.into_iter().collect();
        root.insert("metadata".to_owned(), fields.into());
        if typed[0] {
            root.insert("apiVersion".to_owned(), json!("v1"));
        }
        if typed[1] {
            root.insert("kind".to_owned(), json!("Thing"));
        }
        root.into()
    })
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let managed_fields = vec![ManagedFields::Cut, ManagedFields::Writers, ManagedFields::Keep];
    let pointer = proptest::collection::vec(key(), 1..4);
    let fields = &["labels", "annotations", "finalizers", "other", "generation"][..];
    let of_metadata = (proptest::sample::select(fields), proptest::option::of(key()))
        .prop_map(|(field, key)| ["metadata".to_owned(), field.to_owned()].into_iter().chain(key).collect());
    let pointers = proptest::collection::vec(prop_oneof![pointer, of_metadata], 0..4);
    (proptest::sample::select(managed_fields), pointers).prop_map(|(managed_fields, pointers)| {
        let mut rules = rules(managed_fields, &[]);
        for tokens in pointers {
            // Some are refused: what identifies an object stays.
            rules = rules.clone().drop(pointer_of(&tokens)).unwrap_or(rules);
        }
        rules
    })
}

fn pointer_of(tokens: &[String]) -> Pointer {
    let escaped = |token: &String| format!("/{}", token.replace('~', "~0").replace('/', "~1"));
    Pointer::parse(&tokens.iter().map(escaped).collect::<String>()).unwrap()
}

/// Writes a value with the freedom that JSON leaves: the order of keys, space, escapes.
fn write(value: &Value, dice: &mut Dice, out: &mut String) {
    space(dice, out);
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            for index in 1..members.len() {
                members.swap(index, dice.below(index + 1));
            }
            out.push('{');
            for (index, (key, value)) in members.into_iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                space(dice, out);
                write_string(key, dice, out);
                space(dice, out);
                out.push(':');
                write(value, dice, out);
            }
            space(dice, out);
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                write(item, dice, out);
            }
            space(dice, out);
            out.push(']');
        }
        Value::String(text) => write_string(text, dice, out),
        other => out.push_str(&other.to_string()),
    }
    space(dice, out);
}

fn space(dice: &mut Dice, out: &mut String) {
    if dice.below(6) == 0 {
        out.push_str([" ", "\t", "\r\n", "  "][dice.below(4)]);
    }
}

fn write_string(text: &str, dice: &mut Dice, out: &mut String) {
    if dice.below(2) == 0 {
        out.push_str(&Value::from(text).to_string());
        return;
    }
    out.push('"');
    for character in text.chars() {
        if character < ' ' || matches!(character, '"' | '\\') || dice.below(4) == 0 {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let escape = format!("\\u{unit:04x}");
                out.push_str(&if dice.below(2) == 0 { escape } else { format!("\\u{unit:04X}") });
            }
        } else {
            out.push(character);
        }
    }
    out.push('"');
}

fn written(value: &Value, seed: u64) -> String {
    let mut out = String::new();
    write(value, &mut Dice::new(seed), &mut out);
    out
}

#[test]
fn what_is_kept_and_read_is_what_serde_json_finds() {
    let accepted = std::cell::Cell::new(0);
    check((object(), any_rules(), any::<u64>()), |(object, rules, seed)| {
        if oracle::compare(written(&object, seed).as_bytes(), &rules) {
            accepted.set(accepted.get() + 1);
        }
    });
    // Most documents have metadata of the right types, or the test would show little.
    assert!(accepted.get() > 75, "{}", accepted.get());
}

#[test]
fn what_is_cut_of_a_document_leaves_the_rest_in_its_order() {
    check((object(), any_rules(), any::<u64>()), |(object, rules, seed)| {
        let document = written(&object, seed);
        let mut out = Vec::new();
        if ingest(document.as_bytes(), None, &rules, &mut out).is_ok() {
            // What is left is what was there, with holes.
            let mut rest = document.bytes();
            assert!(out.iter().all(|byte| rest.any(|other| other == *byte)));
            if rules == dropping(&[]) {
                assert_eq!(out, document.as_bytes());
            }
        }
    });
}

#[test]
fn a_type_from_outside_changes_nothing_but_the_type() {
    check((object(), any::<u64>()), |(object, seed)| {
        let document = written(&object, seed);
        let (mut with, mut without) = (Vec::new(), Vec::new());
        let rules = dropping(&[]);
        let first = ingest(document.as_bytes(), None, &rules, &mut without);
        let second = ingest(document.as_bytes(), Some(("g/v1", "K")), &rules, &mut with);
        assert_eq!(first, second);
        if first.is_ok() {
            let mut expected: Value = serde_json::from_str(&document).unwrap();
            let root = expected.as_object_mut().unwrap();
            root.entry("apiVersion").or_insert_with(|| json!("g/v1"));
            root.entry("kind").or_insert_with(|| json!("K"));
            assert_eq!(serde_json::from_slice::<Value>(&with).unwrap(), expected);
        }
    });
}

#[test]
fn a_pointer_finds_what_serde_json_finds() {
    let token =
        prop_oneof![4 => key(), 1 => "[0-9]{1,2}", 1 => Just("-".to_owned()), 1 => Just("+1".to_owned())];
    let tokens = proptest::collection::vec(token, 0..5);
    check((object(), tokens, any::<u64>()), |(object, tokens, seed)| {
        let document = written(&object, seed);
        // serde_json does not read every fraction as it wrote it.
        let object: Value = serde_json::from_str(&document).unwrap();
        // What is not there is easily not found: the way is also followed as far as it leads.
        let mut here = &object;
        let mut way = Vec::new();
        let mut dice = Dice::new(seed);
        loop {
            compare(&document, &object, &way);
            let step = match here {
                Value::Object(members) if !members.is_empty() => {
                    members.keys().nth(dice.below(members.len())).cloned()
                }
                Value::Array(items) if !items.is_empty() => Some(dice.below(items.len()).to_string()),
                _ => None,
            };
            let Some(step) = step else { break };
            here = here.pointer(&pointer_of(std::slice::from_ref(&step)).to_string()).unwrap();
            way.push(step);
        }
        compare(&document, &object, &tokens);
    });

    fn compare(document: &str, object: &Value, tokens: &[String]) {
        let pointer = pointer_of(tokens);
        let found = seek(document.as_bytes(), &pointer);
        let found: Option<Value> = found.map(|bytes| serde_json::from_slice(bytes).unwrap());
        assert_eq!(found.as_ref(), object.pointer(&pointer.to_string()), "{pointer} in {document}");
    }
}
