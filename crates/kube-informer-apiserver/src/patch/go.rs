//! JSON values as Go's `%v` and `%T` show them: errors of a strategic merge and printer columns of
//! custom resources quote them so.

use std::fmt::Write;

use serde_json::{Map, Value};

/// A value, a list or an object.
pub(crate) enum Shown<'a> {
    Value(&'a Value),
    List(&'a [Value]),
    Object(&'a Map<String, Value>),
}

impl<'a> From<&'a Value> for Shown<'a> {
    fn from(value: &'a Value) -> Self {
        Self::Value(value)
    }
}

impl<'a> From<&'a [Value]> for Shown<'a> {
    fn from(list: &'a [Value]) -> Self {
        Self::List(list)
    }
}

impl<'a> From<&'a Vec<Value>> for Shown<'a> {
    fn from(list: &'a Vec<Value>) -> Self {
        Self::List(list)
    }
}

impl<'a> From<&'a Map<String, Value>> for Shown<'a> {
    fn from(map: &'a Map<String, Value>) -> Self {
        Self::Object(map)
    }
}

/// `map[name:x ports:[80 81]]`
pub(crate) fn go_value<'a>(value: impl Into<Shown<'a>>) -> String {
    let mut out = String::new();
    write(&mut out, value.into());
    out
}

fn write(out: &mut String, value: Shown<'_>) {
    match value {
        Shown::Value(Value::Null) => out.push_str("<nil>"),
        Shown::Value(Value::String(text)) => out.push_str(text),
        Shown::Value(Value::Array(items)) => write(out, Shown::List(items)),
        Shown::Value(Value::Object(map)) => write(out, Shown::Object(map)),
        Shown::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { " " });
                write(out, Shown::Value(item));
            }
            out.push(']');
        }
        Shown::Object(map) => {
            out.push_str("map[");
            for (i, (key, item)) in map.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { " " });
                out.push_str(key);
                out.push(':');
                write(out, Shown::Value(item));
            }
            out.push(']');
        }
        // Go writes a float without a fraction as if it were whole.
        Shown::Value(Value::Number(n)) if n.is_f64() => {
            let _ = write!(out, "{}", n.as_f64().unwrap_or_default());
        }
        Shown::Value(scalar) => {
            let _ = write!(out, "{scalar}");
        }
    }
}

/// The Go type that a JSON value decodes to.
pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
