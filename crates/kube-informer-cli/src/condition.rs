//! What can be waited for, written as for `kubectl wait`.
//!
//! | written | is met when |
//! |---|---|
//! | `condition=NAME[=VALUE]` | the object's condition has that status; without a value: True |
//! | `jsonpath=PATH[=VALUE]` | the path has that value; without one: it finds something |
//! | `create` | the object is there |
//! | `delete` | the object is gone |
//!
//! - Names and statuses of conditions are compared without regard to case.
//! - A condition that was found out about an older generation of the object does not count.
//! - What was seen is said either way, in words for the one who waits.

use std::fmt;
use std::str::FromStr;

use kube_informer::encoding::ManagedFields;
use serde_json::Value;

use crate::jsonpath::{Item, Template, relaxed};

/// What is waited for.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    kind: Kind,
    /// As it was written.
    text: String,
}

#[derive(Debug, Clone)]
enum Kind {
    Status { name: String, value: String },
    JsonPath { path: String, template: Template, value: Option<String> },
    Create,
    Delete,
}

/// What came of looking at an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) outcome: Outcome,
    /// In words, without the object's name.
    pub(crate) seen: String,
}

/// Whether a condition is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is.
    Met,
    /// Not now.
    NotYet,
    /// It never can be, as it is written.
    Never,
}

/// A value is shown up to here.
const SHOWN: usize = 200;

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = if text.eq_ignore_ascii_case("create") {
            Kind::Create
        } else if text.eq_ignore_ascii_case("delete") {
            Kind::Delete
        } else if let Some(condition) = text.strip_prefix("condition=") {
            status(condition)?
        } else if let Some(path) = text.strip_prefix("jsonpath=") {
            json_path(path)?
        } else {
            return Err(
                "is nothing to wait for: write condition=NAME[=VALUE], jsonpath=PATH[=VALUE], create or delete"
                    .to_owned(),
            );
        };
        Ok(Self { kind, text: text.to_owned() })
    }
}

fn status(text: &str) -> Result<Kind, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, value),
        None => (text, "True"),
    };
    if name.is_empty() || value.is_empty() {
        return Err("lacks a name or a value: write condition=Ready or condition=Ready=False".to_owned());
    }
    Ok(Kind::Status { name: name.to_owned(), value: value.to_owned() })
}

fn json_path(text: &str) -> Result<Kind, String> {
    const FORM: &str =
        "write jsonpath='{.status.phase}'=Running, or jsonpath='{.status.phase}' for any value";
    let (path, value) = match &split(text)[..] {
        [path] => (path.clone(), None),
        [path, value] => {
            let value = value.trim_matches(['\'', '"']);
            if value.is_empty() {
                return Err(format!("has no value after its equals sign: {FORM}"));
            }
            (path.clone(), Some(value.to_owned()))
        }
        _ => return Err(format!("has more than one equals sign: {FORM}")),
    };
    if path.is_empty() {
        return Err(format!("has no path: {FORM}"));
    }
    let path = relaxed(&path).map_err(|error| error.to_string())?;
    let template = Template::parse(&path).map_err(|error| error.explain(&path))?;
    Ok(Kind::JsonPath { path, template, value })
}

/// Path and value. In braces, a path may hold any sign; without them, equals signs that stand alone are between path and
/// value, and two are an operator of a filter.
fn split(text: &str) -> Vec<String> {
    if text.starts_with('{')
        && let Some((path, value)) = text.split_once('}')
        && let Some(value) = value.strip_prefix('=')
    {
        return vec![format!("{path}}}"), value.to_owned()];
    }
    if text.starts_with('{') {
        return vec![text.to_owned()];
    }
    let mut parts = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '=' && chars.peek() != Some(&'=') {
            parts.push(String::new());
            continue;
        }
        let Some(part) = parts.last_mut() else { continue };
        part.push(c);
        if c == '=' {
            part.extend(chars.next());
        }
    }
    parts
}

impl Condition {
    pub(crate) fn is_create(&self) -> bool {
        matches!(self.kind, Kind::Create)
    }

    pub(crate) fn is_delete(&self) -> bool {
        matches!(self.kind, Kind::Delete)
    }

    /// Whether it is met by an object as it is; `None` where it is not there, or another one has its name.
    pub(crate) fn check(&self, object: Option<&Value>) -> Verdict {
        let Some(object) = object else {
            let outcome = if self.is_delete() { Outcome::Met } else { Outcome::NotYet };
            return Verdict { outcome, seen: "is not there".to_owned() };
        };
        match &self.kind {
            Kind::Create => Verdict::of(true, "is there".to_owned()),
            Kind::Delete => Verdict::of(false, lasts(object)),
            Kind::Status { name, value } => check_status(object, name, value),
            Kind::JsonPath { path, template, value } => check_path(object, path, template, value.as_deref()),
        }
    }
}

/// Conditions are told apart by how they are written.
impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// What has to be kept of managed fields, so that what is waited for can be seen.
pub(crate) fn fields<'c>(conditions: impl IntoIterator<Item = &'c Condition>) -> ManagedFields {
    let is_asked_for = conditions.into_iter().any(|condition| condition.text.contains("managedFields"));
    if is_asked_for { ManagedFields::Keep } else { ManagedFields::Cut }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Verdict {
    fn of(is_met: bool, seen: String) -> Self {
        Self { outcome: if is_met { Outcome::Met } else { Outcome::NotYet }, seen }
    }

    fn never(seen: String) -> Self {
        Self { outcome: Outcome::Never, seen }
    }

    pub(crate) fn is_met(&self) -> bool {
        self.outcome == Outcome::Met
    }
}

fn check_status(object: &Value, name: &str, value: &str) -> Verdict {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let conditions = conditions.map(Vec::as_slice).unwrap_or_default();
    let text =
        |condition: &Value, field: &str| condition.get(field).and_then(Value::as_str).map(str::to_owned);
    let found = conditions.iter().find_map(|condition| {
        let is_it = equal_fold(&text(condition, "type")?, name);
        is_it.then_some(())?;
        Some((condition, text(condition, "status")?))
    });
    let Some((condition, status)) = found else {
        let known: Vec<String> = conditions.iter().filter_map(|each| text(each, "type")).collect();
        let known = match &known[..] {
            [] => "it has none".to_owned(),
            known => format!("it has {}", known.join(", ")),
        };
        return Verdict::of(false, short(&format!("has no condition {name}; {known}")));
    };
    let reason = text(condition, "reason").filter(|text| !text.is_empty());
    let message = text(condition, "message").filter(|text| !text.is_empty());
    let why = match (reason, message) {
        (Some(reason), Some(message)) => format!(" ({reason}: {message})"),
        (Some(only), None) | (None, Some(only)) => format!(" ({only})"),
        (None, None) => String::new(),
    };
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let observed = condition.get("observedGeneration").and_then(Value::as_i64);
    let observed = observed.or_else(|| object.pointer("/status/observedGeneration").and_then(Value::as_i64));
    if let (Some(generation), Some(observed)) = (generation, observed)
        && observed < generation
    {
        let seen = format!(
            "{name} is {status}{why}, but that is about generation {observed}, and the object is at {generation}"
        );
        return Verdict::of(false, short(&seen));
    }
    Verdict::of(equal_fold(&status, value), short(&format!("{name} is {status}{why}")))
}

fn check_path(object: &Value, path: &str, template: &Template, value: Option<&str>) -> Verdict {
    let results = match template.results(object) {
        Ok(results) => results,
        // What is not there today may be tomorrow, as the first element of a list.
        Err(error) => return Verdict::of(false, short(&format!("{path}: {error}"))),
    };
    let item = match results.first().map(Vec::as_slice) {
        _ if results.len() > 1 => {
            return Verdict::never(format!("{path} is more than one list: name one value"));
        }
        None | Some([]) => return Verdict::of(false, format!("{path} finds nothing")),
        Some([item]) => *item,
        Some(items) => {
            let why = format!("{path} is more than one value ({}): name one of them", items.len());
            return Verdict::never(why);
        }
    };
    let text = item.text();
    let is_nested = matches!(item, Item::Json(Value::Object(_) | Value::Array(_)));
    let seen = short(&format!("{path} is {text}"));
    match value {
        None => Verdict::of(true, seen),
        Some(_) if is_nested => {
            Verdict::never(short(&format!("{path} is an object or a list, which is not compared: {text}")))
        }
        Some(value) => Verdict::of(text.trim() == value.trim(), seen),
    }
}

/// Why an object is still there.
fn lasts(object: &Value) -> String {
    let asked = object.pointer("/metadata/deletionTimestamp").and_then(Value::as_str);
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    let finalizers: Vec<&str> =
        finalizers.map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default();
    let waits = match &finalizers[..] {
        [] => String::new(),
        list => format!(", its finalizers are {}", list.join(", ")),
    };
    match asked {
        Some(since) => short(&format!("is there, its deletion was asked for at {since}{waits}")),
        None => short(&format!("is there, and nobody has asked for its deletion{waits}")),
    }
}

/// One line of bounded length.
fn short(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

/// Equal but for case, character by character.
fn equal_fold(one: &str, two: &str) -> bool {
    /// Characters of which each is the other's capital are one.
    fn fold(c: char) -> char {
        fn only(mut chars: impl Iterator<Item = char>, c: char) -> char {
            match (chars.next(), chars.next()) {
                (Some(one), None) => one,
                _ => c,
            }
        }
        let upper = only(c.to_uppercase(), c);
        only(upper.to_lowercase(), upper)
    }
    one.chars().map(fold).eq(two.chars().map(fold))
}

#[cfg(test)]
mod tests;
