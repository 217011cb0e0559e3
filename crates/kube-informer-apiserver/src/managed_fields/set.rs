//! Sets of places in an object, and their `FieldsV1` form.
//!
//! A place is a path of steps, and a step is kept as it is written: `f:name` into an object,
//! `k:{"name":"x"}` or `v:"x"` into a list. A place can be in the set with or without the places below
//! it; with some below it, its own membership is written as `"."`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// A set of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Set {
    members: BTreeSet<String>,
    children: BTreeMap<String, Self>,
}

impl Set {
    /// Paths of field names.
    pub(super) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<String> = path.iter().map(|name| format!("f:{name}")).collect();
            set.insert(&path);
        }
        set
    }

    /// The whole object has no place of its own: the empty path is ignored.
    pub(super) fn insert(&mut self, path: &[String]) {
        let Some((last, above)) = path.split_last() else {
            return;
        };
        let mut here = self;
        for step in above {
            here = here.children.entry(step.clone()).or_default();
        }
        here.members.insert(last.clone());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.members.extend(other.members.iter().cloned());
        for (step, set) in &other.children {
            let joined = out.children.get(step).map_or_else(|| set.clone(), |mine| mine.union(set));
            out.children.insert(step.clone(), joined);
        }
        out
    }

    /// The paths that are not in `other`.
    pub(super) fn without(&self, other: &Self) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self.children.iter().filter_map(|(step, set)| {
            let left = other.children.get(step).map_or_else(|| set.clone(), |theirs| set.without(theirs));
            (!left.is_empty()).then(|| (step.clone(), left))
        });
        Self { members, children: children.collect() }
    }

    /// The paths that are not in `other`, nor below one that is.
    pub(super) fn without_below(&self, other: &Self) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self.children.iter().filter_map(|(step, set)| {
            if other.members.contains(step) {
                return None;
            }
            let left =
                other.children.get(step).map_or_else(|| set.clone(), |theirs| set.without_below(theirs));
            (!left.is_empty()).then(|| (step.clone(), left))
        });
        Self { members, children: children.collect() }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut out = Map::new();
        for step in &self.members {
            out.insert(step.clone(), json!({}));
        }
        for (step, set) in &self.children {
            let mut below = set.to_json();
            if self.members.contains(step)
                && let Some(below) = below.as_object_mut()
            {
                below.insert(".".to_owned(), json!({}));
            }
            out.insert(step.clone(), below);
        }
        Value::Object(out)
    }

    /// `None`: not in the form of `FieldsV1`.
    pub(super) fn from_json(fields: &Value) -> Option<Self> {
        read(fields).map(|(set, _)| set.unwrap_or_default())
    }
}

/// The places below this one, where there are any, and whether this one is a member itself.
fn read(fields: &Value) -> Option<(Option<Set>, bool)> {
    let empty = Map::new();
    let fields = match fields {
        Value::Null => &empty,
        other => other.as_object()?,
    };
    let mut set: Option<Set> = None;
    let mut member = false;
    for (key, below) in fields {
        if key == "." {
            member = true;
            continue;
        }
        let Some(step) = step(key)? else { continue };
        let (grandchildren, child_is_member) = read(below)?;
        let set = set.get_or_insert_default();
        if child_is_member {
            set.members.insert(step.clone());
        }
        if let Some(grandchildren) = grandchildren {
            set.children.insert(step, grandchildren);
        }
    }
    let member = member || set.is_none();
    Some((set, member))
}

/// One step in its one spelling. Outer `None`: malformed; inner `None`: of a kind that is not known, and
/// left out.
fn step(text: &str) -> Option<Option<String>> {
    let (kind, rest) = (text.get(..2)?, text.get(2..)?);
    match kind {
        "f:" => Some(Some(text.to_owned())),
        "v:" => serde_json::from_str(rest).ok().map(|value| Some(value_step(&value))),
        "k:" => {
            let keys: BTreeMap<String, Value> = serde_json::from_str(rest).ok()?;
            Some(Some(key_step(&keys)))
        }
        "i:" => rest.parse::<i64>().ok().map(|at| Some(format!("i:{at}"))),
        _ => kind.ends_with(':').then_some(None),
    }
}

/// `v:"x"`
pub(super) fn value_step(value: &Value) -> String {
    format!("v:{}", escaped(&value.to_string()))
}

/// `k:{"name":"x"}`
pub(super) fn key_step(keys: &BTreeMap<String, Value>) -> String {
    let mut out = String::from("k:{");
    for (i, (name, value)) in keys.iter().enumerate() {
        out.push_str(if i == 0 { "" } else { "," });
        out.push_str(&Value::from(name.as_str()).to_string());
        out.push(':');
        out.push_str(&escaped(&value.to_string()));
    }
    out.push('}');
    out
}

/// Go's encoder escapes what HTML would trip over.
fn escaped(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}
