//! The answers in `tests/refused.txt` are those of kube-apiserver 1.37.1.

use serde_json::{Value, json};

use super::{Expected, Schema, duplicate_fields, read_body, strict_error};
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
