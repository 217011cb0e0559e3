//! Takes out of a transcript what differs between two servers by nature, and nothing else.
//!
//! - The scenario's unique word becomes `UNIQUE`.
//! - UIDs become `uid-1`, `uid-2`, … in the order in which they appear: who is who stays visible.
//! - Versions of objects become `v1`, `v2`, … in their numeric order: what is newer than what stays visible.
//!   Versions of lists and bookmarks become `list@N`: not older than `vN`, older than the next. Inside texts
//!   both become `vN`.
//! - Times of this run, random suffixes of generated names, continue tokens, issued tokens, ages in tables,
//!   allocated addresses and ports and the servers' own addresses become words.
//! - The whole object that a message about a patch quotes becomes a word; it shows the order of Go's fields.
//! - The difference between two Go structs that some messages end with goes.
//! - Descriptions of a table's columns go.
//! - `managedFields` are sorted: their order depends on the clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

/// The normalised transcript: one entry per step, each under a name of its own.
pub(crate) fn normal(entries: Vec<Value>, unique: &str) -> BTreeMap<String, Value> {
    let mut entries: Value = entries.into();
    let mut words = Words { unique, ..Words::default() };
    words.collect(&entries);
    words.replace(&mut entries, Place::default());
    let mut steps = BTreeMap::new();
    for (number, mut entry) in array(entries).into_iter().enumerate() {
        let step = entry.as_object_mut().and_then(|o| o.remove("step")).unwrap_or_default();
        let mut parts = Vec::new();
        for (key, value) in object(entry) {
            parts.push((key, value));
        }
        let step = step.as_str().unwrap_or_default();
        // What is no answer has a name of its own.
        let key = match parts.iter().any(|(key, _)| key == "value") {
            true => step.to_owned(),
            false => format!("{:02} {step}", number + 1),
        };
        steps.insert(key, parts.into_iter().collect());
    }
    steps
}

fn array(value: Value) -> Vec<Value> {
    match value {
        Value::Array(all) => all,
        _ => Vec::new(),
    }
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => serde_json::Map::new(),
    }
}

/// Where in a transcript a value stands.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Inside the metadata of a list, a table or a bookmark.
    list: bool,
    /// Inside the cells of a table's row.
    cells: bool,
    /// Inside a bookmark: there, even the object in a table's row has a version of the collection.
    bookmark: bool,
}

#[derive(Default)]
struct Words<'a> {
    unique: &'a str,
    uids: Vec<String>,
    versions: BTreeSet<u64>,
    /// Random suffixes by full name.
    generated: Vec<String>,
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
/// Times of this run; scenarios themselves write times of 2001.
static TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| regex(r"\b10\.\d+\.\d+\.\d+(/\d+)?\b"));
static OWN_ADDRESS: LazyLock<Regex> = LazyLock::new(|| regex(r"^\d+\.\d+\.\d+\.\d+:\d+$"));
static AGE: LazyLock<Regex> = LazyLock::new(|| regex(r"^\d+(ms|s|m)$"));
/// What differs, as Go prints its own structs.
static GO_DIFF: LazyLock<Regex> = LazyLock::new(|| regex(r"(?s)\n@@ .*"));
/// An object as Go prints it: its fields in the order of the struct.
static PATCHED: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"(?s)(patch: Invalid value: |^Invalid value: )"(?:\\?\{\\?"|map\[).*"(: )"#));
static OLDEST: LazyLock<Regex> = LazyLock::new(|| regex(r"(too old resource version: \S+ )\(\d+\)"));
static CONTINUE: LazyLock<Regex> = LazyLock::new(|| regex("continue=[A-Za-z0-9_%-]{40,}"));
/// Versions inside messages and queries.
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(ResourceVersion in (?:precondition|object meta): |resource version: |current: |resource version: \d+ \(|resourceVersion=|ResourceVersion in (?:the precondition|record) \()(\d+)",
    )
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant")
}

/// Lists, tables and bookmarks have versions of the whole collection.
fn is_collection(object: &serde_json::Map<String, Value>) -> bool {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    kind == "Table" || kind.ends_with("List") && object.contains_key("items")
}

impl Words<'_> {
    /// First pass: what there is.
    fn collect(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                for uid in UID.find_iter(text) {
                    if !self.uids.iter().any(|known| known == uid.as_str()) {
                        self.uids.push(uid.as_str().to_owned());
                    }
                }
            }
            Value::Array(all) => all.iter().for_each(|value| self.collect(value)),
            Value::Object(map) => {
                if map.get("type").is_some_and(|t| t == "BOOKMARK") && map.contains_key("object") {
                    return;
                }
                if let Some(meta) = map.get("metadata").and_then(Value::as_object) {
                    let text = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or_default();
                    if !is_collection(map) {
                        self.versions.extend(text("resourceVersion").parse::<u64>());
                    }
                    let (base, name) = (text("generateName"), text("name"));
                    // Long bases are cut, so that the random part fits into the 63 characters of a label.
                    let base = base.get(..58).unwrap_or(base);
                    if !base.is_empty() && name.len() == base.len() + 5 && name.starts_with(base) {
                        self.generated.push(name.to_owned());
                    }
                }
                map.values().for_each(|value| self.collect(value));
            }
            _ => {}
        }
    }

    /// Second pass: words instead.
    fn replace(&self, value: &mut Value, place: Place) {
        match value {
            Value::String(text) => *text = self.words(text, place),
            Value::Array(all) => all.iter_mut().for_each(|value| self.replace(value, place)),
            Value::Object(map) => self.replace_in(map, place),
            _ => {}
        }
    }

    fn replace_in(&self, map: &mut serde_json::Map<String, Value>, place: Place) {
        let bookmark = place.bookmark || map.get("type").is_some_and(|t| t == "BOOKMARK");
        let collection = is_collection(map);
        // Keys may hold the scenario's unique word, too.
        let entries: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
        for (key, mut value) in entries {
            match key.as_str() {
                "resourceVersion" | "observedVersion" => {
                    if let Some(number) = value.as_str().and_then(|text| text.parse::<u64>().ok()) {
                        value = self.version(number, place.list).into();
                    }
                }
                "continue" if value.as_str().is_some_and(|text| !text.is_empty()) => {
                    value = "CONTINUE".into();
                }
                // Prose: one scenario tells whether there is any.
                "columnDefinitions" => {
                    for column in value.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut)
                    {
                        column.remove("description");
                    }
                }
                "token" if value.is_string() => value = "TOKEN".into(),
                "nodePort" | "healthCheckNodePort" if value.as_u64().is_some_and(|port| port >= 30000) => {
                    value = "NODE-PORT".into();
                }
                "managedFields" => {
                    self.replace(&mut value, place);
                    if let Some(all) = value.as_array_mut() {
                        all.sort_by_key(Value::to_string);
                    }
                }
                "metadata" => self.replace(&mut value, Place { list: collection || place.list, ..place }),
                "items" => self.replace(&mut value, Place::default()),
                // A row of a table holds an object, not a collection.
                "object" => self.replace(&mut value, Place { list: bookmark, cells: false, bookmark }),
                "cells" => self.replace(&mut value, Place { cells: true, ..place }),
                _ => self.replace(&mut value, place),
            }
            map.insert(self.words(&key, Place::default()), value);
        }
    }

    fn version(&self, number: u64, list: bool) -> String {
        let known = self.versions.range(..=number).count();
        match self.versions.contains(&number) && !list {
            true => format!("v{known}"),
            false => format!("list@{known}"),
        }
    }

    fn words(&self, text: &str, place: Place) -> String {
        if place.cells && AGE.is_match(text) {
            return "AGE".to_owned();
        }
        let mut text = text.replace(self.unique, "UNIQUE");
        for (number, name) in self.generated.iter().enumerate() {
            let name = name.replace(self.unique, "UNIQUE");
            let stem = &name[..name.len() - 5];
            text = text.replace(&name, &format!("{stem}RANDOM-{}", number + 1));
        }
        let text = UID.replace_all(&text, |found: &Captures<'_>| {
            match self.uids.iter().position(|known| *known == found[0]) {
                Some(number) => format!("uid-{}", number + 1),
                None => found[0].to_owned(),
            }
        });
        let text = TIME.replace_all(&text, |found: &Captures<'_>| match found.get(1) {
            Some(fraction) => format!("TIME.{}", "n".repeat(fraction.len() - 1)),
            None => "TIME".to_owned(),
        });
        let text = OLDEST.replace_all(&text, "$1(OLDEST)");
        let text = PATCHED.replace_all(&text, "${1}OBJECT$2");
        let text = GO_DIFF.replace(&text, "");
        let text = CONTINUE.replace_all(&text, "continue=CONTINUE");
        let text = ADDRESS.replace_all(&text, "ADDRESS");
        let text = OWN_ADDRESS.replace_all(&text, "SERVER");
        let text = VERSION.replace_all(&text, |found: &Captures<'_>| {
            let number: u64 = found[2].parse().unwrap_or_default();
            // Whose version it is cannot be seen here, and that of a list may happen to be that of an object:
            // only its place in the order is told.
            format!("{}v{}", &found[1], self.versions.range(..=number).count())
        });
        text.into_owned()
    }
}
