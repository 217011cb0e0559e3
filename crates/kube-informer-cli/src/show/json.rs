//! JSON as Go writes it, and so `kubectl`: keys sorted, four spaces, `<`, `>` and `&` escaped.

use serde_json::{Map, Number, Value};

/// Many lines, without the last line's end.
pub(crate) fn pretty(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), indent: Some(0) };
    writer.value(value);
    writer.out
}

/// One line.
pub(crate) fn compact(value: &Value) -> String {
    let mut writer = Writer { out: String::new(), indent: None };
    writer.value(value);
    writer.out
}

/// Many lines, as they stand within a document at this depth.
pub(super) fn nested(value: &Value, depth: usize) -> String {
    let mut writer = Writer { out: String::new(), indent: Some(depth) };
    writer.value(value);
    writer.out
}

/// A number as Go's `encoding/json` writes it: what has no fraction has no point, and what is very small or large an
/// exponent.
pub(crate) fn number(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => {
            let size = float.abs();
            if size != 0.0 && !(1e-6..1e21).contains(&size) { exponent(float) } else { float.to_string() }
        }
        _ => number.to_string(),
    }
}

/// `1e+21`, `1e-7`.
fn exponent(float: f64) -> String {
    let text = format!("{float:e}");
    match text.split_once('e') {
        Some((digits, power)) if !power.starts_with('-') => format!("{digits}e+{power}"),
        _ => text,
    }
}

/// The members of an object in the order of their keys.
pub(super) fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut members: Vec<_> = map.iter().collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    members
}

struct Writer {
    out: String,
    /// How deep, where there are lines at all.
    indent: Option<usize>,
}

impl Writer {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(flag) => self.out.push_str(if *flag { "true" } else { "false" }),
            Value::Number(value) => self.out.push_str(&number(value)),
            Value::String(text) => self.text(text),
            Value::Array(items) if items.is_empty() => self.out.push_str("[]"),
            Value::Object(map) if map.is_empty() => self.out.push_str("{}"),
            Value::Array(items) => self.all('[', ']', items.iter(), Self::value),
            Value::Object(map) => self.all('{', '}', sorted(map).into_iter(), |writer, (key, value)| {
                writer.text(key);
                writer.out.push_str(if writer.indent.is_some() { ": " } else { ":" });
                writer.value(value);
            }),
        }
    }

    fn all<T>(
        &mut self,
        open: char,
        close: char,
        items: impl Iterator<Item = T>,
        write: impl Fn(&mut Self, T),
    ) {
        self.out.push(open);
        self.indent = self.indent.map(|depth| depth + 1);
        for (at, item) in items.enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            self.line();
            write(self, item);
        }
        self.indent = self.indent.map(|depth| depth.saturating_sub(1));
        self.line();
        self.out.push(close);
    }

    fn line(&mut self) {
        if let Some(depth) = self.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n("    ", depth));
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..'\u{20}' => {
                    self.out.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_written_as_go_writes_it() {
        let value = json!({ "b": [1, { "x": null }], "a": {}, "c": "<a&b>\u{1}\t\"\\\u{2028}é", "d": [] });
        let expected = "{\n    \"a\": {},\n    \"b\": [\n        1,\n        {\n            \"x\": null\n        }\n    ],\n    \
            \"c\": \"\\u003ca\\u0026b\\u003e\\u0001\\t\\\"\\\\\\u2028é\",\n    \"d\": []\n}";
        assert_eq!(pretty(&value), expected);
        assert_eq!(compact(&json!({ "b": [1, 2], "a": true })), r#"{"a":true,"b":[1,2]}"#);
    }

    #[test]
    fn numbers_have_no_needless_point_and_few_an_exponent() {
        for (value, expected) in [
            (json!(1.0), "1"),
            (json!(0.25), "0.25"),
            (json!(-3), "-3"),
            (json!(u64::MAX), "18446744073709551615"),
            (json!(1e21), "1e+21"),
            (json!(1.5e-7), "1.5e-7"),
            (json!(0.0), "0"),
        ] {
            assert_eq!(compact(&value), expected);
        }
    }
}
