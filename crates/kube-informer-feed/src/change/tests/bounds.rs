//! However large: what is listed is bounded, and says what is not. What is secret stays so.

use super::*;

#[test]
fn more_values_than_there_is_room_for_are_counted_and_the_most_telling_are_listed() {
    let document = |value: u32| {
        let annotations: serde_json::Map<_, _> =
            (0..500).map(|key| (format!("a{key:03}"), value.to_string().into())).collect();
        json!({ "metadata": { "annotations": annotations }, "spec": { "replicas": value } })
    };
    let change = change(document(1), document(2));
    assert_eq!((change.changes.len(), change.truncated), (MOST_CHANGES, 401));
    assert_eq!(paths(&change)[0], "/spec/replicas");
    assert_eq!(change.summary, "replicas 1→2; annotation 500 changes");
    assert_eq!(serde_json::to_value(&change).unwrap()["truncated"], 401);
}

#[test]
fn a_long_text_is_cut_and_its_length_said() {
    let document = |text: &str| object("v1", "ConfigMap", &named(json!({ "data": { "key": text } })));
    let long = "日".repeat(2000);
    let (a, b) = (document(&format!("{long}a")), document(&format!("{long}b")));
    let change = Change::modified(&a, &b).unwrap();
    let FieldChange { old, new, .. } = change.changes[0].clone();
    let (old, new) = (old.unwrap(), new.unwrap());
    assert!(old.as_str().unwrap().contains("… (6001 bytes, #"), "{old}");
    assert!(old.as_str().unwrap().len() < 256);
    assert_ne!(old, new, "they begin alike, and are told apart");
    // And back: nothing has changed.
    let back = Change::modified(&b, &a).unwrap();
    let both = Change::merge(&change, &back).unwrap();
    assert_eq!((both.changes.len(), both.summary.as_str()), (0, "no visible change"));
}

#[test]
fn a_large_value_is_named_and_not_shown() {
    let parts: Vec<Value> = (0..1000).map(|part| json!({ "name": format!("n{part}"), "x": part })).collect();
    let change = change(json!({ "spec": {} }), json!({ "spec": { "large": parts } }));
    let shown = change.changes[0].new.as_ref().unwrap().as_str().unwrap();
    assert!(shown.starts_with("[…] (") && shown.contains(" bytes, #"), "{shown}");
    // What changes within it later is counted, and not made up.
    let one = super::change(
        json!({ "spec": { "large": [{ "name": "n1", "x": 1 }] } }),
        json!({ "spec": { "large": [{ "name": "n1", "x": 2 }] } }),
    );
    let both = Change::merge(&change, &one).unwrap();
    assert_eq!((both.changes.len(), both.truncated), (1, 1));
    assert!(both.summary.ends_with("and 1 more"), "{}", both.summary);
}

#[test]
fn all_values_together_are_bounded() {
    let document = |value: &str| {
        let text = |key: u32| (format!("{key:02}{}", "k".repeat(1000)), Value::from(value.repeat(200)));
        json!({ "spec": (0..90).map(text).collect::<serde_json::Map<_, _>>() })
    };
    let change = change(document("a"), document("b"));
    let length = serde_json::to_string(&change).unwrap().len();
    assert!(length < MOST_BYTES + 8192, "{length}");
    assert_eq!(change.changes.len() + change.truncated as usize, 90);
    assert!(!change.changes.is_empty());
}

#[test]
fn the_line_is_one_line_and_not_long() {
    let spec: serde_json::Map<_, _> =
        (0..50).map(|field| (format!("field{field}"), Value::from("value ".repeat(30)))).collect();
    let told = change(json!({}), json!({ "spec": spec }));
    assert!(told.summary.len() < 300, "{}", told.summary);
    assert!(told.summary.ends_with(" more"), "{}", told.summary);
    let told = change(json!({}), json!({ "spec": { "a\n\u{1b}[31m": "b\r\nc" } }));
    assert!(!told.summary.chars().any(char::is_control), "{:?}", told.summary);
    let name = "x".repeat(5000);
    let told = change(json!({}), json!({ "metadata": { "labels": { name.as_str(): name.as_str() } } }));
    assert!(told.summary.len() < 300, "{}", told.summary);
}

#[test]
fn values_of_secrets_are_never_shown() {
    let secret = |password: &str| {
        let applied = json!({ "data": { "password": password } }).to_string();
        object(
            "v1",
            "Secret",
            &named(json!({
                "metadata": { "annotations": { "kubectl.kubernetes.io/last-applied-configuration": applied } },
                "data": { "password": password, "same": "c2FtZQ==" },
                "stringData": { "plain": password },
            })),
        )
    };
    let (old, new) = (secret("aHVudGVyMg=="), secret("aHVudGVyMw=="));
    let change = Change::modified(&old, &new).unwrap();
    assert_eq!(change.summary, "data password changed; data plain changed");
    assert_eq!(change.classes, [Class::Config, Class::Metadata]);
    let changed = change.changes.iter().find(|change| change.path == "/data/password").unwrap();
    assert_ne!(changed.old, changed.new, "that it changed can be seen");
    let came = Change::modified(&object("v1", "Secret", &named(json!({}))), &new).unwrap();
    for change in [&change, &came, &Change::added(&new).unwrap(), &Change::deleted(&old, true).unwrap()] {
        let text = serde_json::to_string(change).unwrap() + &change.to_string();
        assert!(!text.contains("aHVudGVy") && !text.contains("c2FtZQ"), "{text}");
    }
    // Nor of those whose data are no data.
    for data in [json!("aHVudGVyMg"), json!(["aHVudGVyMg"]), json!({ "a": { "b": "aHVudGVyMg" } })] {
        let odd = object("v1", "Secret", &named(json!({ "data": data })));
        let change = Change::modified(&object("v1", "Secret", &named(json!({}))), &odd).unwrap();
        let text = serde_json::to_string(&change).unwrap();
        assert!(!text.contains("aHVudGVy"), "{text}");
    }
}
