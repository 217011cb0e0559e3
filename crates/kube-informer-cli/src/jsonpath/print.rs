//! What results look like: texts and numbers as Go prints them, objects and lists as Go writes JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Number, Value};

use super::Item;

/// Writes one result.
pub(super) fn item(out: &mut String, item: Item<'_>) {
    // Writing to a string cannot fail.
    let _ = match item {
        Item::Json(Value::String(text)) => out.write_str(text),
        Item::Json(Value::Number(number)) => match number.as_i64() {
            Some(int) => write!(out, "{int}"),
            None => out.write_str(&plain(number)),
        },
        Item::Json(value) => {
            json(out, value);
            Ok(())
        }
        Item::Text(text) => out.write_str(text),
        Item::Int(number) => write!(out, "{number}"),
        Item::Float(number) => out.write_str(&float(number, -4, 6)),
        Item::Bool(value) => write!(out, "{value}"),
        Item::Byte(byte) => write!(out, "{byte}"),
        Item::Nothing => out.write_str("<no value>"),
    };
}

fn plain(number: &Number) -> String {
    float(number.as_f64().unwrap_or(f64::NAN), -4, 6)
}

/// JSON in one line, keys sorted.
fn json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => match number.as_i64() {
            Some(int) => {
                let _ = write!(out, "{int}");
            }
            None => out.push_str(&float(number.as_f64().unwrap_or(f64::NAN), -6, 21)),
        },
        Value::String(text) => quoted(out, text),
        Value::Array(array) => {
            out.push('[');
            for (index, value) in array.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                json(out, value);
            }
            out.push(']');
        }
        Value::Object(object) => {
            let sorted: BTreeMap<&String, &Value> = object.iter().collect();
            out.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                quoted(out, key);
                out.push(':');
                json(out, value);
            }
            out.push('}');
        }
    }
}

/// Go escapes what could be taken for HTML, or ends a line in JavaScript.
fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// The shortest digits that mean the number; with an exponent if that is below `low`, or not below `high`.
fn float(number: f64, low: i32, high: i32) -> String {
    let shortest = format!("{number:e}");
    let Some((digits, exponent)) = shortest.split_once('e') else { return shortest };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number == 0.0 || (low..high).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    // Go's JSON has no leading zero in small exponents, where its other texts have one.
    if low == -6 && exponent < 0 {
        return format!("{digits}e-{}", exponent.unsigned_abs());
    }
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_go_prints_them() {
        for (number, text, json) in [
            (0.5, "0.5", "0.5"),
            (1.0, "1", "1"),
            (100_000.0, "100000", "100000"),
            (1_000_000.0, "1e+06", "1000000"),
            (123_456_789.5, "1.234567895e+08", "123456789.5"),
            (1e21, "1e+21", "1e+21"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "1e-05", "0.00001"),
            (0.000_000_1, "1e-07", "1e-7"),
            (-2.5e-10, "-2.5e-10", "-2.5e-10"),
            (0.0, "0", "0"),
        ] {
            assert_eq!(float(number, -4, 6), text);
            assert_eq!(float(number, -6, 21), json);
        }
    }
}
