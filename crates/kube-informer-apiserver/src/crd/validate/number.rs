//! Numbers: Go's two kinds of them, and the rules that bound them.

use serde_json::{Number, Value};

use super::value::{Failure, Outcome};
use crate::crd::Rules;
use crate::schema::NodeKind;
use crate::status::FieldErrorKind;

/// A JSON number as Go holds it: an int64 where it was written as one and fits.
pub(super) enum GoNumber {
    Int(i64),
    Float(f64),
}

pub(super) fn go_number(number: &Number) -> GoNumber {
    match number.as_i64() {
        Some(int) => GoNumber::Int(int),
        None => GoNumber::Float(number.as_f64().unwrap_or_default()),
    }
}

/// Numbers as Go prints them: no fraction where there is none.
pub(super) fn shown(number: f64) -> Value {
    let whole = number.fract() == 0.0 && number.abs() < 9.0e15;
    if whole { Value::from(number as i64) } else { Value::from(number) }
}

fn shown_text(number: f64) -> String {
    match shown(number) {
        Value::Number(n) if n.is_i64() => n.to_string(),
        _ if number.abs() >= 1e21 || (number != 0.0 && number.abs() < 1e-4) => {
            // Go writes the sign and at least two digits of an exponent.
            let text = format!("{number:e}");
            match text.split_once('e') {
                Some((digits, exponent)) => {
                    let (sign, size) = match exponent.strip_prefix('-') {
                        Some(size) => ('-', size),
                        None => ('+', exponent),
                    };
                    format!("{digits}e{sign}{size:0>2}")
                }
                None => text,
            }
        }
        _ => number.to_string(),
    }
}

/// Close enough to an integer that JSON can hold exactly.
pub(super) fn is_json_integer(number: f64) -> bool {
    const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
    if !number.is_finite() || number.abs() > MAX_SAFE {
        return false;
    }
    let whole = number.trunc();
    number == whole || (whole != 0.0 && (number - whole).abs() / (number.abs() + whole.abs()) < 1e-9)
}

pub(super) fn check_number(kind: NodeKind, rules: &Rules, number: &Number, path: &str, out: &mut Outcome) {
    let value = go_number(number);
    let range = Range { kind, format: rules.format.as_deref().unwrap_or_default(), path };
    let as_float = match value {
        GoNumber::Int(int) => int as f64,
        GoNumber::Float(float) => float,
    };
    let bounded = match value {
        GoNumber::Int(int) => range.holds_int(int),
        GoNumber::Float(float) => range.holds(float),
    };
    if !bounded {
        out.fail(range.failure("Checked"));
    }
    // A bound that its own type cannot hold is reported, and still compared as a plain number.
    let mut native = |bound: f64, name: &str| -> Option<i64> {
        if !range.holds(bound) {
            out.fail(range.failure(name));
            return None;
        }
        match value {
            GoNumber::Int(int) => Some(int),
            GoNumber::Float(_) => None,
        }
    };
    let fail = |shown_value: Value, message: String| {
        Failure::new(FieldErrorKind::Invalid, path, shown_value, message)
    };
    let mut failures = Vec::new();
    if let Some(factor) = rules.multiple_of {
        let (positive, multiple, factor_text) = match native(factor, "MultipleOf") {
            Some(int) => {
                let factor = factor as i64;
                (factor > 0, factor > 0 && int % factor == 0, factor.to_string())
            }
            None => {
                let ratio = if factor < 1.0 { 1.0 / factor * as_float } else { as_float / factor };
                (factor > 0.0, is_json_integer(ratio), shown_text(factor))
            }
        };
        if !positive {
            let message = format!("factor MultipleOf declared for {path} must be positive: {factor_text}");
            let value = factor_text.parse::<i64>().map_or_else(|_| shown(factor), Value::from);
            failures.push(fail(value, message));
        } else if !multiple {
            let message = format!("{path} in body should be a multiple of {factor_text}");
            failures.push(fail(shown_go(&value), message));
        }
    }
    if let Some(least) = rules.minimum {
        let (below, equal, text) = match native(least, "Minimum boundary") {
            Some(int) => (int < least as i64, int == least as i64, (least as i64).to_string()),
            None => (as_float < least, as_float == least, shown_text(least)),
        };
        if below || (rules.exclusive_minimum && equal) {
            let or_equal = if rules.exclusive_minimum { "" } else { " or equal to" };
            failures.push(fail(
                shown_go(&value),
                format!("{path} in body should be greater than{or_equal} {text}"),
            ));
        }
    }
    if let Some(most) = rules.maximum {
        let (above, equal, text) = match native(most, "Maximum boundary") {
            Some(int) => (int > most as i64, int == most as i64, (most as i64).to_string()),
            None => (as_float > most, as_float == most, shown_text(most)),
        };
        if above || (rules.exclusive_maximum && equal) {
            let or_equal = if rules.exclusive_maximum { "" } else { " or equal to" };
            failures
                .push(fail(shown_go(&value), format!("{path} in body should be less than{or_equal} {text}")));
        }
    }
    failures.into_iter().for_each(|failure| out.fail(failure));
    out.matches += 1;
}

fn shown_go(value: &GoNumber) -> Value {
    match value {
        GoNumber::Int(int) => (*int).into(),
        GoNumber::Float(float) => shown(*float),
    }
}

/// What a number's type and format can hold.
struct Range<'a> {
    kind: NodeKind,
    format: &'a str,
    path: &'a str,
}

impl Range<'_> {
    fn holds_int(&self, int: i64) -> bool {
        match (self.kind, self.format) {
            (NodeKind::Integer, "int32") => i32::try_from(int).is_ok(),
            _ => true,
        }
    }

    fn holds(&self, float: f64) -> bool {
        match (self.kind, self.format) {
            (NodeKind::Integer, format) => {
                let fits = float.fract() == 0.0 && float.abs() < 9.223_372_036_854_775e18;
                fits && (format != "int32" || (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&float))
            }
            (NodeKind::Number, "float") => float.abs() <= f64::from(f32::MAX),
            _ => true,
        }
    }

    fn failure(&self, what: &str) -> Failure {
        let Self { kind, format, path } = self;
        let kind = if *kind == NodeKind::Integer { "integer" } else { "number" };
        Failure::placeless(if format.is_empty() {
            format!("{what} value must be of type {kind} (default format) in {path}")
        } else {
            format!("{what} value must be of type {kind} with format {format} in {path}")
        })
    }
}
