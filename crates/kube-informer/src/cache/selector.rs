//! Label selectors: which objects are meant, by their labels.
//!
//! What Kubernetes accepts is accepted here, and means the same: `app`, `!app`, `app=web`, `app==web`, `app!=web`,
//! `app in (web,api)`, `app notin (web,api)`, `cores>4`, `cores<4`, joined by commas; the empty selector means everything.
//! What Kubernetes refuses is refused here, with the place and what was expected there; so is a NUL byte, at which
//! Kubernetes silently stops reading.

use std::fmt;
use std::str::FromStr;

use crate::object::Labels;

mod parse;
mod syntax;

pub use syntax::LabelSyntaxError;

/// Requirements on labels, all of which must be met.
///
/// ```
/// use kube_informer::cache::Selector;
///
/// let selector: Selector = "tier in (front, back), app==web,!canary".parse()?;
/// assert_eq!(selector.to_string(), "app=web,!canary,tier in (back,front)");
/// assert!("app in web".parse::<Selector>().is_err());
/// # Ok::<(), kube_informer::cache::ParseSelectorError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    /// Sorted by key; of equal keys, in the order in which they were given.
    requirements: Vec<Requirement>,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    /// Sorted, each once.
    values: Vec<Box<str>>,
}

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operator {
    /// The label is there: `key`.
    Exists,
    /// The label is not there: `!key`.
    DoesNotExist,
    /// The label has the value: `key=value`.
    Equals,
    /// The label is not there, or has another value: `key!=value`.
    NotEquals,
    /// The label has one of the values: `key in (a,b)`.
    In,
    /// The label is not there, or has none of the values: `key notin (a,b)`.
    NotIn,
    /// The label is a whole number above the value: `key>4`.
    GreaterThan,
    /// The label is a whole number below the value: `key<4`.
    LessThan,
}

/// A text that is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("label selector {selector:?}, at byte {at}: {why}")]
#[non_exhaustive]
pub struct ParseSelectorError {
    /// The text.
    pub selector: String,
    /// Where in the text, in bytes.
    pub at: usize,
    /// What is wrong there.
    #[source]
    pub why: SelectorFault,
}

/// What is wrong with a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectorFault {
    /// Something else belongs here.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What belongs here.
        expected: &'static str,
        /// What is here.
        found: String,
    },
    /// This is no key, or no value, that a label could have.
    #[error(transparent)]
    Label(#[from] LabelSyntaxError),
    /// The operator wants other values.
    #[error("{operator:?} wants {wanted}, and got {got}")]
    Values {
        /// The operator.
        operator: Operator,
        /// What it wants.
        wanted: &'static str,
        /// What there was.
        got: String,
    },
}

impl Selector {
    /// The selector that every object meets.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// What must be met, sorted by key.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether every object meets it.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether these labels meet all requirements.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    /// A requirement, if Kubernetes would take it: the key and the values are what labels can have, and the operator has as
    /// many values as it needs.
    ///
    /// # Errors
    ///
    /// Where it would not.
    pub fn new<V: Into<Box<str>>>(
        key: &str,
        operator: Operator,
        values: impl IntoIterator<Item = V>,
    ) -> Result<Self, SelectorFault> {
        syntax::check_key(key)?;
        let mut values: Vec<Box<str>> = values.into_iter().map(Into::into).collect();
        values.sort_unstable();
        values.dedup();
        let wrong = |wanted| SelectorFault::Values { operator, wanted, got: got(&values) };
        match (operator, values.as_slice()) {
            (Operator::Exists | Operator::DoesNotExist, [_, ..]) => return Err(wrong("no value")),
            (Operator::In | Operator::NotIn, []) => return Err(wrong("at least one value")),
            (Operator::Equals | Operator::NotEquals, [] | [_, _, ..]) => return Err(wrong("one value")),
            (Operator::GreaterThan | Operator::LessThan, values) => match values {
                [value] if value.parse::<i64>().is_ok() => {}
                _ => return Err(wrong("one whole number of 64 bits")),
            },
            _ => {}
        }
        values.iter().try_for_each(|value| syntax::check_value(value))?;
        Ok(Self { key: key.into(), operator, values })
    }

    /// The label's key.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label is compared.
    #[must_use]
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// What it is compared with, sorted, each once.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.iter().map(AsRef::as_ref)
    }

    /// The one value that the label must have, if it is one.
    #[must_use]
    pub fn exact(&self) -> Option<&str> {
        match (self.operator, self.values.as_slice()) {
            (Operator::Equals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }

    /// Whether these labels meet it.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.is_met(labels.get(&self.key))
    }

    fn is_met(&self, label: Option<&str>) -> bool {
        let has = |label: &str| self.values.iter().any(|value| **value == *label);
        match self.operator {
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::Equals | Operator::In => label.is_some_and(has),
            Operator::NotEquals | Operator::NotIn => !label.is_some_and(has),
            Operator::GreaterThan => self.numbers(label).is_some_and(|(label, bound)| label > bound),
            Operator::LessThan => self.numbers(label).is_some_and(|(label, bound)| label < bound),
        }
    }

    fn numbers(&self, label: Option<&str>) -> Option<(i64, i64)> {
        Some((label?.parse().ok()?, self.values.first()?.parse().ok()?))
    }
}

fn got(values: &[Box<str>]) -> String {
    if values.is_empty() { "none".to_owned() } else { values.join(",") }
}

impl FromStr for Selector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<Self, ParseSelectorError> {
        parse::parse(text)
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        let mut requirements: Vec<_> = requirements.into_iter().collect();
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements }
    }
}

/// The form in which it is sent to a server. Selectors that differ only in spaces, in the order of keys or values, or in
/// `=` and `==` have the same one.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}
#[cfg(test)]
mod tests;
