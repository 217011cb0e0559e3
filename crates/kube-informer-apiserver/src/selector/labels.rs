//! Label selectors: requirements that are all to be met.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::status::FieldError;

/// What labels must look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    /// `None`: nothing matches (a null selector in an object).
    requirements: Option<Vec<Requirement>>,
}

/// One condition on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    GreaterThan,
    LessThan,
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    /// The form of query parameters: `app=web,tier in (a,b),!legacy`. Empty matches everything.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut requirements = super::syntax::parse(text)?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { requirements: Some(requirements) })
    }

    /// The form inside objects: `matchLabels` and `matchExpressions`. Null matches nothing, empty
    /// everything.
    pub(crate) fn from_json(selector: &Value) -> Result<Self, String> {
        if selector.is_null() {
            return Ok(Self { requirements: None });
        }
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement::new(key, Operator::Equals, vec![value])?);
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
            let operator = match text("operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(format!("{other:?} is not a valid label selector operator")),
            };
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values = values.map(|v| v.as_str().unwrap_or_default().to_owned()).collect();
            requirements.push(Requirement::new(text("key"), operator, values)?);
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Self { requirements: Some(requirements) })
    }

    pub(crate) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_with(|key| labels.get(key).map(String::as_str))
    }

    fn matches_with<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        self.requirements.as_ref().is_some_and(|all| all.iter().all(|r| r.matches(label(&r.key))))
    }
}

impl Default for LabelSelector {
    /// Everything.
    fn default() -> Self {
        Self { requirements: Some(Vec::new()) }
    }
}

impl std::fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Vec<String> = self.requirements.iter().flatten().map(Requirement::text).collect();
        f.write_str(&all.join(","))
    }
}

impl Requirement {
    pub(super) fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Self, String> {
        let mut errors: Vec<String> = Vec::new();
        let mut refuse = |field: String, value: Value, detail: &str| {
            errors.push(FieldError::invalid(field, value, detail).to_string());
        };
        let wrong = label_key_errors(key);
        if !wrong.is_empty() {
            refuse("key".to_owned(), key.into(), &wrong.join("; "));
        }
        let count = values.len();
        let all = || Value::from(values.clone());
        match operator {
            Operator::In | Operator::NotIn if count == 0 => {
                refuse("values".to_owned(), all(), "for 'in', 'notin' operators, values set can't be empty");
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if count != 1 => {
                refuse("values".to_owned(), all(), "exact-match compatibility requires one single value");
            }
            Operator::Exists | Operator::DoesNotExist if count != 0 => {
                refuse("values".to_owned(), all(), "values set must be empty for exists and does not exist");
            }
            Operator::GreaterThan | Operator::LessThan => {
                if count != 1 {
                    let why = "for 'Gt', 'Lt' operators, exactly one value is required";
                    refuse("values".to_owned(), all(), why);
                }
                for (i, value) in values.iter().enumerate() {
                    if value.parse::<i64>().is_err() {
                        let why = "for 'Gt', 'Lt' operators, the value must be an integer";
                        refuse(format!("values[{i}]"), value.as_str().into(), why);
                    }
                }
            }
            _ => {}
        }
        for (i, value) in values.iter().enumerate() {
            let wrong = label_value_errors(value);
            if !wrong.is_empty() {
                refuse(format!("values[{i}][{key}]"), value.as_str().into(), &wrong.join("; "));
            }
        }
        match errors.as_slice() {
            [] => Ok(Self { key: key.to_owned(), operator, values }),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }

    fn matches(&self, label: Option<&str>) -> bool {
        let listed = |label: &str| self.values.iter().any(|v| v == label);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => label.is_some_and(listed),
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let wanted = self.values.first().and_then(|v| v.parse::<i64>().ok());
                let got = label.and_then(|l| l.parse::<i64>().ok());
                match (got, wanted) {
                    (Some(got), Some(wanted)) if self.operator == Operator::GreaterThan => got > wanted,
                    (Some(got), Some(wanted)) => got < wanted,
                    _ => false,
                }
            }
        }
    }

    fn text(&self) -> String {
        let key = &self.key;
        let mut values = self.values.clone();
        values.sort();
        let values = values.join(",");
        match self.operator {
            Operator::In => format!("{key} in ({values})"),
            Operator::NotIn => format!("{key} notin ({values})"),
            Operator::Equals => format!("{key}={values}"),
            Operator::DoubleEquals => format!("{key}=={values}"),
            Operator::NotEquals => format!("{key}!={values}"),
            Operator::GreaterThan => format!("{key}>{values}"),
            Operator::LessThan => format!("{key}<{values}"),
            Operator::Exists => key.clone(),
            Operator::DoesNotExist => format!("!{key}"),
        }
    }
}

const NAME_FORMAT: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// What is wrong with a label or annotation key; empty when nothing is.
pub(super) fn label_key_errors(key: &str) -> Vec<String> {
    let rule = format!(
        "{NAME_RULE} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{NAME_FORMAT}')"
    );
    let mut errors = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => *name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(subdomain_errors(prefix).into_iter().map(|e| format!("prefix part {e}")));
            }
            *name
        }
        _ => {
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name(name) {
        errors.push(format!("name part {rule}"));
    }
    errors
}

/// What is wrong with a label value; empty when nothing is.
fn label_value_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_name(value) {
        let rule = NAME_RULE.trim_start_matches("must ");
        errors.push(format!(
            "a valid label must be an empty string or {rule} (e.g. 'MyValue',  or 'my_value',  or '12345', \
             regex used for validation is '({NAME_FORMAT})?')"
        ));
    }
    errors
}

fn is_name(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn subdomain_errors(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > 253 {
        errors.push("must be no more than 253 bytes".to_owned());
    }
    let label = |label: &str| {
        let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let bytes = label.as_bytes();
        edge(bytes.first())
            && edge(bytes.last())
            && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
    };
    if !text.split('.').all(label) {
        errors.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    errors
}
