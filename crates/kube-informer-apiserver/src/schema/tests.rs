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
