//! Reading and writing fields of objects that may not be there.
//!
//! A field that is `null` counts as absent, as it does for the Go types behind the real server. A
//! field of a surprising type reads as absent and is never overwritten, so that these functions are
//! total over any JSON.

use serde_json::{Map, Value};

use crate::schema::Quantity;

/// The value at `path`, unless it is absent or null.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, name| value.get(name)).filter(|v| !v.is_null())
}

/// The string at `path`, or an empty one.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at `path`.
pub(crate) fn int(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path).and_then(Value::as_i64)
}

/// Whether the field at `path` is `true`.
pub(crate) fn is_true(value: &Value, path: &[&str]) -> bool {
    at(value, path).and_then(Value::as_bool).unwrap_or_default()
}

/// The items of the list at `path`.
pub(crate) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The map at `path`.
pub(crate) fn map<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Map<String, Value>> {
    at(value, path).and_then(Value::as_object)
}

/// Absent, null or the Go zero value: what `omitempty` would leave out of a plain field.
pub(crate) fn is_zero(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_f64() == Some(0.0),
        Some(_) => false,
    }
}

/// The place at `path`, made on the way there. `None` if something that is not an object is in the way.
pub(crate) fn place<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    let mut value = value;
    for name in path {
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        value = value.as_object_mut()?.entry(*name).or_insert(Value::Null);
    }
    Some(value)
}

/// The list at `path`, if it is there.
pub(crate) fn list_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Vec<Value>> {
    path.iter().try_fold(value, |value, name| value.get_mut(name)).and_then(Value::as_array_mut)
}

/// Sets the field at `path`, making the objects on the way.
pub(crate) fn set(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if let Some(place) = place(value, path) {
        *place = new.into();
    }
}

/// Sets the field at `path` if it is absent or null.
pub(crate) fn set_if_absent(value: &mut Value, path: &[&str], new: impl Into<Value>) {
    if at(value, path).is_none() {
        set(value, path, new);
    }
}

/// Takes the field at `path` away.
pub(crate) fn remove(value: &mut Value, path: &[&str]) -> Option<Value> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(value, |value, name| value.get_mut(name))?;
    parent.as_object_mut()?.remove(*last)
}

/// Makes the field at `path` of `to` what it is in `from`: there or not.
pub(crate) fn copy(from: &Value, to: &mut Value, path: &[&str]) {
    match at(from, path) {
        Some(value) => set(to, path, value.clone()),
        None => {
            remove(to, path);
        }
    }
}

/// Copies one field of an object to another.
pub(crate) fn copy_within(value: &mut Value, from: &str, to: &str) {
    if let Some(found) = at(value, &[from]).cloned() {
        set(value, &[to], found);
    }
}

/// Equality as the real server sees it: absent, null and empty are the same, and a quantity is the
/// amount that it says.
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(key, value)| same(Some(value), b.get(key)))
                && b.iter().all(|(key, value)| a.contains_key(key) || is_empty(Some(value)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (Some(Value::String(x)), Some(Value::String(y))) if x != y => {
            // Only amounts are written in more than one way: "1" is "1000m".
            match (Quantity::parse(x).ok(), Quantity::parse(y).ok()) {
                (Some(x), Some(y)) => x == y,
                _ => false,
            }
        }
        (a, b) => a == b || (is_empty(a) && is_empty(b)),
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Object(map)) => map.values().all(|value| is_empty(Some(value))),
        Some(Value::Array(items)) => items.is_empty(),
        value => is_zero(value) && !matches!(value, Some(Value::Number(_))),
    }
}

#[cfg(test)]
pub(crate) mod tests;
