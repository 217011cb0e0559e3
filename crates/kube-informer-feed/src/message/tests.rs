use super::*;

fn refused(text: &str) -> ErrMessage {
    Request::read(text).unwrap_err()
}

#[test]
fn what_is_not_understood_says_what_was_expected() {
    for (text, said) in [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("\u{0}\u{1}", "not JSON"),
        ("[]", "a request is an object"),
        ("7", "a request is an object"),
        ("{}", "there is no op"),
        (r#"{"op":1}"#, "op is to be a string, and is a number"),
        (r#"{"op":"subscribe","id":"a"}"#, r#"unknown op "subscribe""#),
        (r#"{"op":"sub"}"#, "missing field `id`"),
        (r#"{"op":"sub","id":"a"}"#, "missing field `gvr`"),
        (r#"{"op":"sub","id":"","gvr":"pods"}"#, "id is empty"),
        (r#"{"op":"sub","id":"a","gvr":"pods","mode":"all"}"#, "unknown variant `all`"),
        (r#"{"op":"sub","id":"a","gvr":"pods","ns":"prod"}"#, "invalid type"),
        (r#"{"op":"sub","id":"a","gvr":"pods","since":"yesterday"}"#, "no cursor"),
        (r#"{"op":"sub","id":"a","gvr":"pods","where":"true"}"#, "unknown field `where`"),
        (r#"{"op":"unsub","id":"a","gvr":"pods"}"#, "unknown field `gvr`"),
    ] {
        let error = refused(text);
        assert_eq!(error.code, 400, "{text}");
        assert!(error.message.contains(said), "{text}: {}", error.message);
    }
}

#[test]
fn a_refusal_names_the_subscription_and_is_short() {
    assert_eq!(refused(r#"{"op":"sub","id":"mine"}"#).sub.as_deref(), Some("mine"));
    let long = "x".repeat(10_000);
    for text in [
        format!(r#"{{"op":"{long}"}}"#),
        format!(r#"{{"op":"sub","id":"{long}","gvr":"pods"}}"#),
        format!(r#"{{"op":"sub","id":"a","gvr":"pods","{long}":1}}"#),
    ] {
        let error = refused(&text);
        assert!(error.message.len() < 1_000 && error.sub.is_none_or(|sub| sub.len() < 1_000));
    }
}

#[test]
fn nesting_without_end_is_refused() {
    assert!(refused(&"[".repeat(60_000)).message.contains("not JSON"));
}

#[test]
fn the_examples_of_the_document_are_what_is_spoken() {
    let (_, document) = include_str!("../../README.md").split_once("\n## Protocol\n").unwrap();
    let mut is_example = false;
    let mut ops = std::collections::BTreeSet::new();
    for line in document.lines() {
        match line {
            "```json" => is_example = true,
            "```" => is_example = false,
            line if is_example => {
                let value: Value = serde_json::from_str(line).unwrap();
                let op = value["op"].as_str().unwrap().to_owned();
                let again = match op.as_str() {
                    "sub" | "unsub" => serde_json::to_string(&Request::read(line).unwrap()).unwrap(),
                    _ => serde_json::to_string(&serde_json::from_str::<Message>(line).unwrap()).unwrap(),
                };
                assert_eq!(again, line);
                ops.insert(op);
            }
            _ => {}
        }
    }
    let all = [
        "bookmark",
        "bye",
        "change",
        "err",
        "gap",
        "hello",
        "snap.begin",
        "snap.end",
        "snap.item",
        "status",
        "sub",
        "unsub",
    ];
    assert_eq!(ops.iter().map(String::as_str).collect::<Vec<_>>(), all);
}

#[test]
fn a_subscription_names_so_many_namespaces_and_not_more() {
    let request = |count: usize| {
        let ns: Vec<String> = (0..count).map(|at| format!("n{at}")).collect();
        Request::read(&serde_json::json!({ "op": "sub", "id": "s", "gvr": "pods", "ns": ns }).to_string())
    };
    assert!(request(1_000).is_ok());
    let error = request(1_001).unwrap_err();
    assert_eq!((error.code, error.sub.as_deref()), (400, Some("s")));
    assert!(error.message.contains("1001 namespaces; 1000 are allowed"), "{error}");
}
