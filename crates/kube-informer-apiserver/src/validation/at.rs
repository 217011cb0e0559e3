//! A place in an object, and the errors found so far.

use serde_json::Value;

use crate::fields;
use crate::status::{FieldError, FieldErrorKind};

/// A value together with its path, which is what an error names. Absent values read as null.
#[derive(Clone)]
pub(super) struct At<'a> {
    pub(super) value: &'a Value,
    pub(super) path: String,
}

impl<'a> At<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    pub(super) fn get(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { value: self.value.get(name).unwrap_or(&Value::Null), path }
    }

    pub(super) fn walk(&self, names: &[&str]) -> Self {
        names.iter().fold(self.clone(), |at, name| at.get(name))
    }

    /// The same value under another name: some errors of the real server point elsewhere.
    pub(super) fn named(&self, path: impl Into<String>) -> Self {
        Self { value: self.value, path: path.into() }
    }

    pub(super) fn items(&self) -> impl Iterator<Item = Self> + use<'a, '_> {
        fields::list(self.value, &[])
            .iter()
            .enumerate()
            .map(|(index, value)| Self { value, path: self.index(index) })
    }

    /// Keys and values of a map, by key.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a, '_> {
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(|(key, value)| (key.as_str(), Self { value, path: self.key(key) }))
    }

    pub(super) fn index(&self, index: usize) -> String {
        format!("{}[{index}]", self.path)
    }

    pub(super) fn key(&self, key: &str) -> String {
        format!("{}[{key}]", self.path)
    }

    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub(super) fn int(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// A list or map with nothing in it, or none at all.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            value => value.is_null(),
        }
    }
}

/// Errors in the order in which the real server reports them.
#[derive(Default)]
pub(super) struct Errors {
    found: Vec<FieldError>,
    /// What the real server checks by declarations on its types is reported after everything else.
    declared: Vec<FieldError>,
}

impl Errors {
    pub(super) fn len(&self) -> usize {
        self.found.len() + self.declared.len()
    }

    /// All of them, each once.
    pub(super) fn finish(self) -> Vec<FieldError> {
        let mut all: Vec<FieldError> = Vec::with_capacity(self.found.len());
        for error in self.found.into_iter().chain(self.declared) {
            if !all.contains(&error) {
                all.push(error);
            }
        }
        all
    }

    pub(super) fn push(&mut self, error: FieldError) {
        self.found.push(error);
    }

    /// Reports an error after all others.
    pub(super) fn declare(&mut self, error: FieldError) {
        self.declared.push(error);
    }

    pub(super) fn required(&mut self, at: &At<'_>, detail: &str) {
        self.push(FieldError::required(&at.path, detail));
    }

    pub(super) fn invalid(&mut self, at: &At<'_>, detail: impl Into<String>) {
        self.push(FieldError::invalid(&at.path, at.value.clone(), detail));
    }

    /// One error for each message.
    pub(super) fn invalid_each(&mut self, at: &At<'_>, messages: Vec<String>) {
        for message in messages {
            self.invalid(at, message);
        }
    }

    /// An invalid value that is shown in another way than as JSON.
    pub(super) fn invalid_shown(&mut self, path: &str, shown: &str, detail: &str) {
        let detail = if detail.is_empty() { shown.to_owned() } else { format!("{shown}: {detail}") };
        self.push(FieldError { kind: FieldErrorKind::Invalid, field: path.to_owned(), value: None, detail });
    }

    pub(super) fn forbidden(&mut self, at: &At<'_>, detail: impl Into<String>) {
        self.push(FieldError::forbidden(&at.path, detail));
    }

    pub(super) fn duplicate(&mut self, at: &At<'_>) {
        self.push(FieldError::duplicate(&at.path, at.value.clone()));
    }

    pub(super) fn unsupported(&mut self, at: &At<'_>, supported: &[&str]) {
        self.push(FieldError::not_supported(&at.path, at.value.clone(), supported));
    }

    pub(super) fn not_found(&mut self, at: &At<'_>) {
        let value = Some(Value::from(at.text()));
        let (kind, detail) = (FieldErrorKind::NotFound, String::new());
        self.push(FieldError { kind, field: at.path.clone(), value, detail });
    }

    /// A number, where there is one, that must not be negative.
    pub(super) fn non_negative(&mut self, at: &At<'_>) {
        if at.int().is_some_and(|number| number < 0) {
            self.invalid(at, "must be greater than or equal to 0");
        }
    }

    /// A string that must be one of these. Empty means that it is missing.
    pub(super) fn one_of(&mut self, at: &At<'_>, supported: &[&str]) {
        match at.text() {
            "" => self.required(at, ""),
            text if supported.contains(&text) => {}
            _ => self.unsupported(at, supported),
        }
    }

    /// The same, where it may be left out.
    pub(super) fn one_of_if_set(&mut self, at: &At<'_>, supported: &[&str]) {
        if !at.text().is_empty() && !supported.contains(&at.text()) {
            self.unsupported(at, supported);
        }
    }

    /// A field that an update must not change.
    pub(super) fn immutable(&mut self, new: &At<'_>, old: &At<'_>) {
        if !fields::same(Some(new.value), Some(old.value)) {
            self.invalid(new, IMMUTABLE);
        }
    }

    /// The same, checked by declaration.
    pub(super) fn declared_immutable(&mut self, new: &At<'_>, old: &At<'_>) {
        if !fields::same(Some(new.value), Some(old.value)) {
            self.declare(FieldError::invalid(&new.path, new.value.clone(), IMMUTABLE));
        }
    }
}

pub(super) const IMMUTABLE: &str = "field is immutable";
