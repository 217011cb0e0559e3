//! Forms that were read off `kubectl`'s output; the tests of the binary compare many more with it.

use serde_json::json;

use super::*;

#[track_caller]
fn becomes(value: &Value, expected: &str) {
    assert_eq!(document(value), expected);
}

#[test]
fn lists_stand_where_their_mapping_does() {
    becomes(
        &json!({ "a": [1, { "c": [], "b": {} }, [2, 3]], "m": { "x": null } }),
        "a:\n- 1\n- b: {}\n  c: []\n- - 2\n  - 3\nm:\n  x: null\n",
    );
    becomes(&json!({}), "{}\n");
}

#[test]
fn what_would_be_something_else_is_quoted() {
    for text in [
        "true",
        "no",
        "y",
        "null",
        "~",
        "",
        "1",
        "-1",
        "0x1f",
        "1_000",
        "1.5",
        ".5",
        "1e3",
        "012",
        "08",
        "0b11",
        "2024-01-02",
        "2024-01-02T03:04:05Z",
        "1:30",
        ".inf",
        "+.inf",
        "0o17",
    ] {
        becomes(&json!({ "k": text }), &format!("k: \"{text}\"\n"));
    }
    for text in [
        "yess",
        "1.2.3",
        "10.0.0.1",
        "1a",
        "0x",
        "-",
        "--",
        "a:b",
        "a#b",
        "1e999",
        "::1",
        "v1",
        "1.5Gi",
        "100m",
        "a b",
        "é",
        "<<",
        "2024-13-02",
        "=",
        "1:90",
    ] {
        let expected = match text {
            "-" => "k: '-'\n".to_owned(),
            text => format!("k: {text}\n"),
        };
        becomes(&json!({ "k": text }), &expected);
    }
}

#[test]
fn what_cannot_stand_without_quotes_has_the_simplest_that_do() {
    for (text, expected) in [
        ("a: b", "'a: b'"),
        ("a #b", "'a #b'"),
        ("it's: so", "'it''s: so'"),
        ("[a]", "'[a]'"),
        ("*", "'*'"),
        (" a", "' a'"),
        ("a ", "'a '"),
        ("- a", "'- a'"),
        ("a:", "'a:'"),
        ("a\tb", "\"a\\tb\""),
        ("a\u{1}", "\"a\\x01\""),
        ("😀", "\"\\U0001F600\""),
        ("\u{feff}", "\"\\uFEFF\""),
        ("@a", "'@a'"),
        ("%", "'%'"),
        ("?", "'?'"),
        ("---", "'---'"),
    ] {
        becomes(&json!({ "k": text }), &format!("k: {expected}\n"));
    }
}

#[test]
fn lines_stand_as_lines() {
    becomes(&json!({ "k": "a\nb\n" }), "k: |\n  a\n  b\n");
    becomes(&json!({ "k": "a\nb" }), "k: |-\n  a\n  b\n");
    becomes(&json!({ "k": "a\n\n" }), "k: |+\n  a\n\n");
    becomes(&json!({ "k": " a\nb" }), "k: |2-\n   a\n  b\n");
    becomes(&json!({ "k": ["a\n\nb\n", 1] }), "k:\n- |\n  a\n\n  b\n- 1\n");
    becomes(&json!({ "k": "a \nb" }), "k: \"a \\nb\"\n");
    becomes(&json!({ "k": "a\n\tb\n" }), "k: \"a\\n\\tb\\n\"\n");
}

#[test]
fn long_lines_are_folded_at_spaces() {
    let long = "word ".repeat(30).trim().to_owned();
    let text = document(&json!({ "key": long, "n": { "key": format!("{long}: x") } }));
    assert!(text.lines().all(|line| line.len() <= 90), "{text}");
    assert!(text.starts_with("key: word word") && text.contains("\n  word"), "{text}");
    assert!(text.contains("\n  key: 'word") && text.contains("\n    word"), "{text}");
    becomes(&json!({ "k": "x".repeat(200) }), &format!("k: {}\n", "x".repeat(200)));
}

#[test]
fn long_keys_are_marked() {
    let key = "k".repeat(130);
    becomes(&json!({ key.clone(): "v" }), &format!("? {key}\n: v\n"));
}
