//! Reading an object for its cells: whatever is missing or of another type is a zero value.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::human_duration;
use crate::selector::LabelSelector;

/// An object, and the time that ages are measured at.
#[derive(Clone, Copy)]
pub(super) struct View<'v> {
    pub(super) object: &'v Value,
    pub(super) now: Timestamp,
}

impl<'v> View<'v> {
    pub(super) fn new(object: &'v Value, now: Timestamp) -> Self {
        Self { object, now }
    }

    pub(super) fn at(&self, pointer: &str) -> Option<&'v Value> {
        self.object.pointer(pointer).filter(|v| !v.is_null())
    }

    pub(super) fn has(&self, pointer: &str) -> bool {
        self.at(pointer).is_some()
    }

    pub(super) fn text(&self, pointer: &str) -> &'v str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text, or a stand-in where there is none.
    pub(super) fn text_or(&self, pointer: &str, missing: &'v str) -> &'v str {
        let text = self.text(pointer);
        if text.is_empty() { missing } else { text }
    }

    pub(super) fn int(&self, pointer: &str) -> i64 {
        self.at(pointer).and_then(Value::as_i64).unwrap_or_default()
    }

    pub(super) fn flag(&self, pointer: &str) -> bool {
        self.at(pointer).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(super) fn list(&self, pointer: &str) -> &'v [Value] {
        self.at(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn each(&self, pointer: &str) -> impl DoubleEndedIterator<Item = View<'v>> + use<'v> {
        let now = self.now;
        self.list(pointer).iter().map(move |object| View { object, now })
    }

    pub(super) fn map(&self, pointer: &str) -> Option<&'v Map<String, Value>> {
        self.at(pointer).and_then(Value::as_object)
    }

    /// Number of members or items.
    pub(super) fn count(&self, pointer: &str) -> usize {
        self.map(pointer).map_or_else(|| self.list(pointer).len(), Map::len)
    }

    /// A number or a string, as it is written without quotes.
    pub(super) fn scalar(&self, pointer: &str) -> Option<String> {
        match self.at(pointer)? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// A quantity that is not there is zero.
    pub(super) fn quantity(&self, pointer: &str) -> String {
        self.scalar(pointer).unwrap_or_else(|| "0".to_owned())
    }

    pub(super) fn name(&self) -> &'v str {
        self.text("/metadata/name")
    }

    pub(super) fn age(&self) -> String {
        self.since("/metadata/creationTimestamp")
    }

    pub(super) fn time(&self, pointer: &str) -> Option<Timestamp> {
        self.text(pointer).parse().ok()
    }

    pub(super) fn since(&self, pointer: &str) -> String {
        self.time(pointer).map_or_else(|| "<unknown>".to_owned(), |time| self.since_time(time))
    }

    pub(super) fn since_time(&self, time: Timestamp) -> String {
        human_duration(self.now.duration_since(time))
    }

    pub(super) fn deleting(&self) -> bool {
        self.has("/metadata/deletionTimestamp")
    }

    /// The condition of a type in `/status/conditions`.
    pub(super) fn condition(&self, kind: &str) -> Option<View<'v>> {
        self.each("/status/conditions").find(|c| c.text("/type") == kind)
    }

    pub(super) fn condition_true(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|c| c.text("/status") == "True")
    }

    /// Names and images of a pod template's containers.
    pub(super) fn containers(&self, pointer: &str) -> (String, String) {
        let (mut names, mut images) = (Vec::new(), Vec::new());
        for container in self.each(pointer) {
            names.push(container.text("/name"));
            images.push(container.text("/image"));
        }
        (names.join(","), images.join(","))
    }

    /// `a=b,c=d`
    pub(super) fn labels(&self, pointer: &str) -> String {
        let pairs = self.map(pointer).into_iter().flatten();
        let pairs: Vec<String> =
            pairs.map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default())).collect();
        if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
    }

    /// A label selector in its text form; `None` when it is not valid.
    pub(super) fn selector(&self, pointer: &str) -> Option<String> {
        let selector = LabelSelector::from_json(self.at(pointer).unwrap_or(&Value::Null)).ok()?;
        Some(selector.to_string())
    }

    pub(super) fn selector_or_none(&self, pointer: &str) -> String {
        match self.selector(pointer) {
            None => "<error>".to_owned(),
            Some(text) if text.is_empty() => "<none>".to_owned(),
            Some(text) => text,
        }
    }

    pub(super) fn strings(&self, pointer: &str) -> Vec<&'v str> {
        self.list(pointer).iter().filter_map(Value::as_str).collect()
    }
}

/// The first three, and how many there are beyond them.
pub(super) fn first_three(all: &[String]) -> String {
    match all {
        [] => "<unset>".to_owned(),
        [a, b, c, rest @ ..] if !rest.is_empty() => format!("{a},{b},{c} + {} more...", rest.len()),
        few => {
            let joined = few.join(",");
            if joined.is_empty() { "<unset>".to_owned() } else { joined }
        }
    }
}
