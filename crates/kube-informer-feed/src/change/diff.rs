//! What is different between two documents, value by value.
//!
//! Maps are compared by their keys, and lists by what their elements are [called](super::path::keys), in whatever order
//! they stand; lists whose elements are called nothing, by their place. A list that can be compared by name on one side only is
//! one value. So how a list is compared follows from the two lists, and differences that follow each other can be put
//! together to what they are as a whole (`merge`).
//!
//! `null` is the same as absent, as for Kubernetes.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::path;

/// Deeper than any document that can be read is.
const DEEPEST: usize = 200;

/// One value that is another, or came, or went.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Delta {
    pub(super) path: Vec<String>,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
}

/// What is different in two documents, in order of their paths.
pub(super) fn diff(old: &Value, new: &Value) -> Vec<Delta> {
    let mut out = Vec::new();
    at(&mut Vec::new(), Some(old), Some(new), &mut out);
    out
}

/// What is different at one place.
pub(super) fn at(place: &mut Vec<String>, old: Option<&Value>, new: Option<&Value>, out: &mut Vec<Delta>) {
    let (old, new) = (old.filter(|value| !value.is_null()), new.filter(|value| !value.is_null()));
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) if place.len() < DEEPEST => {
            maps(place, old, new, out);
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if place.len() < DEEPEST => {
            lists(place, old, new, out);
        }
        (old, new) if old != new => {
            out.push(Delta { path: place.clone(), old: old.cloned(), new: new.cloned() });
        }
        _ => {}
    }
}

fn maps(place: &mut Vec<String>, old: &Map<String, Value>, new: &Map<String, Value>, out: &mut Vec<Delta>) {
    for (key, value) in old {
        step(place, key, Some(value), new.get(key), out);
    }
    for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
        step(place, key, None, Some(value), out);
    }
}

fn lists(place: &mut Vec<String>, old: &[Value], new: &[Value], out: &mut Vec<Delta>) {
    let field = place.last().map_or("", String::as_str);
    let has_null = || old.iter().chain(new).any(Value::is_null);
    match (path::keys(field, old), path::keys(field, new)) {
        (Some(old_keys), Some(new_keys)) => {
            let mut rest: HashMap<&String, &Value> = new_keys.iter().zip(new).collect();
            for (key, value) in old_keys.iter().zip(old) {
                step(place, key, Some(value), rest.remove(key), out);
            }
            for (key, value) in new_keys.iter().zip(new).filter(|(key, _)| rest.contains_key(key)) {
                step(place, key, None, Some(value), out);
            }
        }
        (None, None) if !has_null() => {
            for index in 0..old.len().max(new.len()) {
                step(place, &index.to_string(), old.get(index), new.get(index), out);
            }
        }
        _ if old != new => {
            let list = |values: &[Value]| Some(Value::Array(values.to_vec()));
            out.push(Delta { path: place.clone(), old: list(old), new: list(new) });
        }
        _ => {}
    }
}

fn step(
    place: &mut Vec<String>,
    token: &str,
    old: Option<&Value>,
    new: Option<&Value>,
    out: &mut Vec<Delta>,
) {
    place.push(token.to_owned());
    at(place, old, new, out);
    place.pop();
}

/// Takes `null`s out of maps: absent and `null` are the same.
pub(super) fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
