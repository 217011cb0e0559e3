//! One value against one node: kube-openapi's validator, with its words and its habits.
//!
//! Its habits show in messages and in what passes, so they are kept: failures with the same message
//! are reported once; of the branches of anyOf and oneOf the one with the most passed checks gives its
//! failures; numbers written as integers are compared as integers, also with a bound that is none.

use std::collections::HashSet;

use serde_json::Value;

use super::correlate::Correlation;
use super::number::{GoNumber, check_number, go_number, is_json_integer, shown};
use crate::crd::{Rules, formats};
use crate::schema::{Node, NodeId, NodeKind, SchemaSet};
use crate::status::{FieldError, FieldErrorKind};

/// What came out of checking one value.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) failures: Vec<Failure>,
    messages: HashSet<String>,
    /// How many checks ran: chooses between the branches of anyOf and oneOf.
    pub(super) matches: u64,
}

/// One failed check.
#[derive(Clone)]
pub(super) struct Failure {
    kind: FieldErrorKind,
    /// Where; nothing for failures that the real server reports without a place.
    at: Option<String>,
    value: Option<Value>,
    /// The whole sentence, also the identity of the failure.
    message: String,
    /// What is shown instead of the sentence, for kinds that have words of their own.
    detail: Option<String>,
}

impl Failure {
    pub(super) fn new(kind: FieldErrorKind, at: &str, value: impl Into<Value>, message: String) -> Self {
        Self { kind, at: Some(at.to_owned()), value: Some(value.into()), message, detail: None }
    }

    pub(super) fn placeless(message: String) -> Self {
        let value = Some(Value::String(String::new()));
        Self { kind: FieldErrorKind::Invalid, at: None, value, message, detail: None }
    }

    /// As the field error that a client sees; `prefix` is where the checked value stands in the object.
    pub(super) fn to_field_error(&self, prefix: &str) -> FieldError {
        let name = self.at.as_deref().unwrap_or_default();
        let name = name.strip_prefix('.').unwrap_or(name);
        let field = match (prefix, name) {
            ("", "") => "<nil>".to_owned(),
            (prefix, "") => prefix.to_owned(),
            ("", name) => name.to_owned(),
            (prefix, name) => format!("{prefix}.{name}"),
        };
        let detail = self.detail.clone().unwrap_or_else(|| self.message.clone());
        FieldError { kind: self.kind, field, value: self.value.clone(), detail }
    }
}

impl Outcome {
    pub(super) fn is_valid(&self) -> bool {
        self.failures.is_empty()
    }

    pub(super) fn forget_failures(&mut self) {
        self.failures.clear();
        self.messages.clear();
    }

    pub(super) fn fail(&mut self, failure: Failure) {
        if self.messages.insert(failure.message.clone()) {
            self.failures.push(failure);
        }
    }

    fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        other.failures.into_iter().for_each(|failure| self.fail(failure));
    }
}

/// Checks values against the nodes of one set.
pub(super) struct Validator<'s> {
    pub(super) set: &'s SchemaSet,
}

impl Validator<'_> {
    /// `path` is the place of the value, empty for a whole object.
    pub(super) fn check(
        &self,
        id: NodeId,
        value: &Value,
        path: &str,
        correlation: Option<&Correlation<'_>>,
    ) -> Outcome {
        let node = &self.set.nodes[id as usize];
        let empty = Rules::default();
        let rules = node.rules.as_deref().unwrap_or(&empty);
        let mut out = Outcome::default();
        if value.is_null() {
            match check_null(node, path) {
                Some(failure) => out.fail(failure),
                None => out.matches += 1,
            }
            if let Some(failure) = check_enum(rules, value, path) {
                out.fail(failure);
            }
            return out;
        }
        let types = type_names(node.kind);
        if !types.is_empty() || rules.format.is_some() {
            match check_type(types, rules, value, path) {
                Some(failure) => out.fail(failure),
                None => out.matches += 1,
            }
            out.matches += 1;
        }
        let branches = self.check_branches(rules, value, path);
        out.merge(branches);
        out.matches += 1;
        match value {
            Value::String(text) => {
                if let Some(failure) = check_string(rules, text, path) {
                    out.fail(failure);
                }
                out.matches += 1;
                if let Some(format) = rules.format.as_deref().filter(|format| formats::is_known(format)) {
                    if !formats::matches(format, text) {
                        let message = format!("{path} in body must be of type {format}: {text:?}");
                        out.fail(Failure::new(FieldErrorKind::TypeInvalid, path, text.as_str(), message));
                    }
                    out.matches += 1;
                }
            }
            Value::Number(number) => {
                check_number(node.kind, rules, number, path, &mut out);
                out.matches += 1;
            }
            Value::Array(list) => {
                self.check_items(node, rules, list, path, correlation, &mut out);
                out.matches += 2;
            }
            _ => {}
        }
        if let Some(failure) = check_enum(rules, value, path) {
            out.fail(failure);
        }
        out.matches += 1;
        if let Value::Object(_) = value {
            self.check_fields(node, rules, value, path, correlation, &mut out);
            out.matches += 1;
        }
        out.matches += 1;
        out
    }

    /// allOf, anyOf, oneOf and not.
    fn check_branches(&self, rules: &Rules, value: &Value, path: &str) -> Outcome {
        let mut out = Outcome::default();
        let run = |id: &NodeId| self.check(*id, value, path, None);
        if !rules.any_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut passed = false;
            for outcome in rules.any_of.iter().map(run) {
                passed = outcome.is_valid();
                if passed || best.as_ref().is_none_or(|best| outcome.matches > best.matches) {
                    best = Some(outcome);
                }
                if passed {
                    break;
                }
            }
            if !passed {
                let message = format!("{path:?} must validate at least one schema (anyOf)");
                out.fail(Failure::placeless(message));
            }
            best.into_iter().for_each(|best| out.merge(best));
        }
        if !rules.one_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut first_passed: Option<Outcome> = None;
            let mut passed = 0;
            for outcome in rules.one_of.iter().map(run) {
                if outcome.is_valid() {
                    passed += 1;
                    first_passed.get_or_insert(outcome);
                } else if best.as_ref().is_none_or(|best| outcome.matches > best.matches) {
                    best = Some(outcome);
                }
            }
            match passed {
                1 => first_passed.into_iter().for_each(|first| out.merge(first)),
                0 => {
                    let what = "must validate one and only one schema (oneOf). Found none valid";
                    out.fail(Failure::placeless(format!("{path:?} {what}")));
                    best.into_iter().for_each(|best| out.merge(best));
                }
                many => {
                    let what = "must validate one and only one schema (oneOf)";
                    let message = format!("{path:?} {what}. Found {many} valid alternatives");
                    out.fail(Failure::placeless(message));
                }
            }
        }
        if !rules.all_of.is_empty() {
            let mut passed = 0;
            for outcome in rules.all_of.iter().map(run) {
                passed += usize::from(outcome.is_valid());
                out.merge(outcome);
            }
            if passed != rules.all_of.len() {
                let more = if passed == 0 { ". None validated" } else { "" };
                let message = format!("{path:?} must validate all the schemas (allOf){more}");
                out.fail(Failure::placeless(message));
            }
        }
        if rules.not.iter().map(run).any(|outcome| outcome.is_valid()) {
            out.fail(Failure::placeless(format!("{path:?} must not validate the schema (not)")));
        }
        out.matches += 1;
        out
    }

    fn check_items(
        &self,
        node: &Node,
        rules: &Rules,
        list: &[Value],
        path: &str,
        correlation: Option<&Correlation<'_>>,
        out: &mut Outcome,
    ) {
        if let Some(items) = node.items {
            for (index, item) in list.iter().enumerate() {
                let at = format!("{path}[{index}]");
                let old = correlation.and_then(|c| c.index(index));
                out.merge(self.check_ratcheting(items, item, &at, old.as_ref()));
            }
        }
        let size = list.len() as i64;
        if let Some(least) = rules.min_items.filter(|least| size < *least) {
            let message = format!("{path} in body should have at least {least} items");
            out.fail(Failure::new(FieldErrorKind::Invalid, path, size, message));
        }
        if let Some(most) = rules.max_items.filter(|most| size > *most) {
            let message = format!("{path} in body should have at most {most} items");
            out.fail(too_many(path, size, most, message));
        }
        if rules.unique_items {
            let mut seen = HashSet::new();
            if !list.iter().all(|item| seen.insert(item.to_string())) {
                let message = format!("{path} in body shouldn't contain duplicates");
                out.fail(Failure::new(FieldErrorKind::Invalid, path, "", message));
            }
        }
    }

    fn check_fields(
        &self,
        node: &Node,
        rules: &Rules,
        value: &Value,
        path: &str,
        correlation: Option<&Correlation<'_>>,
        out: &mut Outcome,
    ) {
        let Value::Object(fields) = value else { return };
        let size = fields.len() as i64;
        if let Some(least) = rules.min_properties.filter(|least| size < *least) {
            let message = format!("{path} in body should have at least {least} properties");
            out.fail(Failure::new(FieldErrorKind::Invalid, path, size, message));
        }
        if let Some(most) = rules.max_properties.filter(|most| size > *most) {
            let message = format!("{path} in body should have at most {most} properties");
            out.fail(too_many(path, size, most, message));
        }
        for (name, field) in fields.iter().filter(|(name, _)| !node.properties.contains_key(*name)) {
            if rules.closed {
                let message = format!("{path}.{name} in body is a forbidden property");
                out.fail(Failure::new(FieldErrorKind::Invalid, path, name.as_str(), message));
            } else if let Some(additional) = node.additional {
                let old = correlation.and_then(|c| c.key(name));
                let at = format!("{path}.{name}");
                out.merge(self.check_ratcheting(additional, field, &at, old.as_ref()));
            }
        }
        for (name, id) in &node.properties {
            let Some(field) = fields.get(name) else { continue };
            let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            // Both versions carry the same apiVersion here, so its errors are never old ones.
            let type_meta = path.is_empty() && (name == "apiVersion" || name == "kind");
            let old = correlation.filter(|_| !type_meta).and_then(|c| c.key(name));
            out.merge(self.check_ratcheting(*id, field, &at, old.as_ref()));
        }
        for name in node.required.iter().filter(|name| !fields.contains_key(*name)) {
            let at = format!("{path}.{name}");
            let message = format!("{at} in body is required");
            let detail = Some(String::new());
            let kind = FieldErrorKind::Required;
            out.fail(Failure { kind, at: Some(at), value: None, message, detail });
        }
    }

    /// Checks a value, and forgives it what was wrong before and has not changed.
    pub(super) fn check_ratcheting(
        &self,
        id: NodeId,
        value: &Value,
        path: &str,
        correlation: Option<&Correlation<'_>>,
    ) -> Outcome {
        let mut out = self.check(id, value, path, correlation);
        if !out.is_valid() && correlation.is_some_and(Correlation::is_unchanged) {
            out.forget_failures();
        }
        out
    }
}

fn too_many(path: &str, size: i64, most: i64, message: String) -> Failure {
    let items = if most == 1 { "item" } else { "items" };
    let detail =
        if most >= 0 { format!("must have at most {most} {items}") } else { "has too many items".into() };
    Failure { detail: Some(detail), ..Failure::new(FieldErrorKind::TooMany, path, size, message) }
}

fn type_names(kind: NodeKind) -> &'static [&'static str] {
    match kind {
        NodeKind::Any => &[],
        NodeKind::Object => &["object"],
        NodeKind::Array => &["array"],
        NodeKind::String | NodeKind::Quantity => &["string"],
        NodeKind::Integer => &["integer"],
        NodeKind::Number => &["number"],
        NodeKind::Boolean => &["boolean"],
        NodeKind::IntOrString => &["integer", "string"],
    }
}

fn check_null(node: &Node, path: &str) -> Option<Failure> {
    let types = type_names(node.kind);
    (!types.is_empty() && !node.nullable).then(|| wrong_type(path, &types.join(","), "null"))
}

fn wrong_type(path: &str, wanted: &str, found: &str) -> Failure {
    let message = format!("{path} in body must be of type {wanted}: {found:?}");
    Failure::new(FieldErrorKind::TypeInvalid, path, found, message)
}

fn check_type(types: &[&str], rules: &Rules, value: &Value, path: &str) -> Option<Failure> {
    let (found, found_format) = match value {
        Value::Null => return None,
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(number) => match go_number(number) {
            GoNumber::Int(_) => ("integer", "int64"),
            GoNumber::Float(_) => ("number", "float64"),
        },
    };
    let whole_float = match value {
        Value::Number(number) => match go_number(number) {
            GoNumber::Float(float) => types.contains(&"integer") && is_json_integer(float),
            GoNumber::Int(_) => false,
        },
        _ => false,
    };
    let int_as_float = found == "integer" && types.contains(&"number");
    let fits = types.contains(&found) || whole_float || int_as_float;
    let format = rules.format.as_deref().unwrap_or_default();
    let text_or_list = value.is_string() || value.is_array();
    if !text_or_list && !format.is_empty() && !fits && found_format != format {
        return Some(wrong_type(path, format, found_format));
    }
    let numeric = types.contains(&"number") || types.contains(&"integer");
    if !numeric && !format.is_empty() && text_or_list {
        return None;
    }
    (!fits).then(|| wrong_type(path, &types.join(","), found))
}

/// The first of the string rules that fails: the others are not looked at.
fn check_string(rules: &Rules, text: &str, path: &str) -> Option<Failure> {
    let length = text.chars().count() as i64;
    if let Some(most) = rules.max_length.filter(|most| length > *most) {
        let message = format!("{path} in body should be at most {most} chars long");
        let bytes = if most == 1 { "byte" } else { "bytes" };
        let detail = if most >= 0 {
            format!("may not be more than {most} {bytes}")
        } else {
            "value is too long".into()
        };
        let (kind, at) = (FieldErrorKind::TooLong, Some(path.to_owned()));
        return Some(Failure { kind, at, value: None, message, detail: Some(detail) });
    }
    if let Some(least) = rules.min_length.filter(|least| length < *least) {
        let message = format!("{path} in body should be at least {least} chars long");
        return Some(Failure::new(FieldErrorKind::Invalid, path, text, message));
    }
    let pattern = rules.pattern.as_ref().filter(|pattern| !pattern.matches(text))?;
    let message = match pattern.error() {
        None => format!("{path} in body should match '{}'", pattern.source),
        Some(error) => {
            format!("{path} in body should match '{}, but pattern is invalid: {error}'", pattern.source)
        }
    };
    Some(Failure::new(FieldErrorKind::Invalid, path, text, message))
}

fn check_enum(rules: &Rules, value: &Value, path: &str) -> Option<Failure> {
    let allowed = &rules.one_of_values;
    if allowed.is_empty() || allowed.iter().any(|one| enum_matches(value, one)) {
        return None;
    }
    let quoted: Vec<String> = allowed
        .iter()
        .map(|one| match one {
            Value::String(text) => format!("{text:?}"),
            other => format!("{:?}", other.to_string()),
        })
        .collect();
    let value_shown = match value {
        Value::Number(number) => match go_number(number) {
            GoNumber::Int(int) => int.into(),
            GoNumber::Float(float) => shown(float),
        },
        other => other.clone(),
    };
    let values: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    let message = format!("{path} in body should be one of [{}]", values.join(" "));
    let detail = Some(format!("supported values: {}", quoted.join(", ")));
    Some(Failure { detail, ..Failure::new(FieldErrorKind::NotSupported, path, value_shown, message) })
}

/// Go converts the value to the type of the wanted one before it compares.
fn enum_matches(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (_, Value::Null) | (Value::Null, _) => false,
        (Value::Number(value), Value::Number(wanted)) => match (go_number(value), go_number(wanted)) {
            (GoNumber::Int(a), GoNumber::Int(b)) => a == b,
            (GoNumber::Int(a), GoNumber::Float(b)) => a as f64 == b,
            (GoNumber::Float(a), GoNumber::Int(b)) => a as i64 == b,
            (GoNumber::Float(a), GoNumber::Float(b)) => a == b,
        },
        (value, wanted) => value == wanted,
    }
}
