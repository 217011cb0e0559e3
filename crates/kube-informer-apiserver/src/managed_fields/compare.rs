//! What differs between two versions of an object, as sets of places.
//!
//! The schema decides what a place is: items of keyed lists and of sets are places, an atomic list or map
//! is one place as a whole. Where there is no schema, objects are taken apart and lists are not.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::set::{Set, key_step, value_step};
use crate::schema::{ListType, NodeKind, Schema};

/// The objects cannot be compared place by place: a keyed list has items without keys.
#[derive(Debug)]
pub(super) struct Unfit;

/// The outcome.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) added: Set,
    pub(super) modified: Set,
    pub(super) removed: Set,
}

pub(super) fn compare(before: &Value, after: &Value, schema: Option<&Schema>) -> Result<Changes, Unfit> {
    let mut walker = Walker { changes: Changes::default(), path: Vec::new() };
    let at = schema.map_or(At::Deduced, |schema| At::Node(schema.clone()));
    walker.visit(Some(before), Some(after), &At::Root(Box::new(at)))?;
    Ok(walker.changes)
}

/// What is known about a place.
#[derive(Debug, Clone)]
enum At {
    /// The object itself, whose `metadata` is known whatever its schema says.
    Root(Box<Self>),
    Node(Schema),
    /// By the value: objects are taken apart, lists are atomic.
    Deduced,
    /// One place, whatever it holds.
    Atomic,
    /// Object metadata, where the schema leaves it open.
    Metadata,
    OwnerReferences,
    Finalizers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Map,
    List,
    Scalar,
    /// A null where the type is open.
    Any,
}

struct Walker {
    changes: Changes,
    path: Vec<String>,
}

impl Walker {
    fn visit(&mut self, before: Option<&Value>, after: Option<&Value>, at: &At) -> Result<(), Unfit> {
        let shape_of = |value: &Value| at.shape(value);
        let (old, new) = (before.map(shape_of), after.map(shape_of));
        let leaf = match (old, new) {
            (None, None) => return Ok(()),
            (Some(one), None) | (None, Some(one)) => self.visit_as(one, before, after, at)?,
            (Some(old), Some(new)) if old == new => self.visit_as(new, before, after, at)?,
            (Some(old), Some(new)) => {
                self.visit_as(old, before, after, at)?;
                self.visit_as(new, before, after, at)?
            }
        };
        if !leaf {
            if before.is_none() {
                self.changes.added.insert(&self.path);
            } else if after.is_none() {
                self.changes.removed.insert(&self.path);
            }
        }
        Ok(())
    }

    /// True when the place was compared as a whole.
    fn visit_as(
        &mut self,
        shape: Shape,
        before: Option<&Value>,
        after: Option<&Value>,
        at: &At,
    ) -> Result<bool, Unfit> {
        match shape {
            Shape::Scalar => self.leaf(before, after),
            Shape::Map | Shape::Any => {
                let (old, new) = (before.and_then(Value::as_object), after.and_then(Value::as_object));
                // Two empties are compared as they are: absent, null and {} are three things.
                let nothing = old.is_none_or(Map::is_empty) && new.is_none_or(Map::is_empty);
                if at.is_atomic_map() || nothing {
                    self.leaf(before, after);
                    return Ok(true);
                }
                self.objects(old, new, at)?;
                return Ok(false);
            }
            Shape::List => {
                let (old, new) = (before.and_then(Value::as_array), after.and_then(Value::as_array));
                let nothing = old.is_none_or(Vec::is_empty) && new.is_none_or(Vec::is_empty);
                if at.list_type() == ListType::Atomic || nothing {
                    self.leaf(before, after);
                    return Ok(true);
                }
                self.lists(old, new, at)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn leaf(&mut self, before: Option<&Value>, after: Option<&Value>) {
        match (before, after) {
            (None, _) => self.changes.added.insert(&self.path),
            (_, None) => self.changes.removed.insert(&self.path),
            (Some(old), Some(new)) if !equal(old, new) => self.changes.modified.insert(&self.path),
            _ => {}
        }
    }

    fn objects(
        &mut self,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
        at: &At,
    ) -> Result<(), Unfit> {
        let gone = old.into_iter().flatten().filter(|(name, _)| !new.is_some_and(|n| n.contains_key(*name)));
        for (name, value) in gone {
            self.below(format!("f:{name}"), Some(value), None, &at.field(name))?;
        }
        for (name, value) in new.into_iter().flatten() {
            let before = old.and_then(|old| old.get(name));
            self.below(format!("f:{name}"), before, Some(value), &at.field(name))?;
        }
        Ok(())
    }

    fn lists(&mut self, old: Option<&Vec<Value>>, new: Option<&Vec<Value>>, at: &At) -> Result<(), Unfit> {
        let (old, new) = (at.by_step(old)?, at.by_step(new)?);
        let item = at.item();
        let none = Vec::new();
        for step in old.keys().chain(new.keys().filter(|step| !old.contains_key(*step))) {
            let (before, after) = (old.get(step).unwrap_or(&none), new.get(step).unwrap_or(&none));
            match (before.as_slice(), after.as_slice()) {
                ([] | [_], [] | [_]) => {
                    self.below(step.clone(), before.first().copied(), after.first().copied(), &item)?;
                }
                // Items that share their key are one place, which nothing below is known of.
                ([_, _, ..], [_, _, ..]) => {
                    let same =
                        before.len() == after.len() && before.iter().zip(after).all(|(a, b)| equal(a, b));
                    if !same {
                        self.mark(step, |changes| &mut changes.modified);
                    }
                }
                ([_, _, ..], rest) => {
                    if let Some(one) = rest.first() {
                        self.below(step.clone(), None, Some(one), &item)?;
                    }
                    self.mark(step, |changes| &mut changes.removed);
                }
                (rest, _) => {
                    if let Some(one) = rest.first() {
                        self.below(step.clone(), Some(one), None, &item)?;
                    }
                    self.mark(step, |changes| &mut changes.added);
                }
            }
        }
        Ok(())
    }

    fn mark(&mut self, step: &str, which: impl Fn(&mut Changes) -> &mut Set) {
        self.path.push(step.to_owned());
        which(&mut self.changes).insert(&self.path);
        self.path.pop();
    }

    fn below(
        &mut self,
        step: String,
        before: Option<&Value>,
        after: Option<&Value>,
        at: &At,
    ) -> Result<(), Unfit> {
        self.path.push(step);
        let result = self.visit(before, after, at);
        self.path.pop();
        result
    }
}

impl At {
    fn shape(&self, value: &Value) -> Shape {
        let fixed = match self {
            Self::Root(_) | Self::Metadata => Some(Shape::Map),
            Self::OwnerReferences | Self::Finalizers => Some(Shape::List),
            Self::Node(schema) => match schema.get().kind {
                NodeKind::Object => Some(Shape::Map),
                NodeKind::Array => Some(Shape::List),
                NodeKind::Any => None,
                _ => Some(Shape::Scalar),
            },
            Self::Deduced | Self::Atomic => None,
        };
        fixed.unwrap_or(match value {
            Value::Object(_) => Shape::Map,
            Value::Array(_) => Shape::List,
            Value::Null => Shape::Any,
            _ => Shape::Scalar,
        })
    }

    fn is_atomic_map(&self) -> bool {
        match self {
            Self::Node(schema) => schema.get().atomic_map,
            Self::Atomic => true,
            _ => false,
        }
    }

    fn list_type(&self) -> ListType {
        match self {
            Self::Node(schema) => schema.get().list.clone(),
            Self::OwnerReferences => ListType::Map(vec!["uid".to_owned()]),
            Self::Finalizers => ListType::Set,
            _ => ListType::Atomic,
        }
    }

    fn field(&self, name: &str) -> Self {
        match self {
            Self::Root(inner) => {
                let field = inner.field(name);
                let open = match &field {
                    Self::Node(schema) => !schema.get().properties.contains_key("ownerReferences"),
                    _ => true,
                };
                if name == "metadata" && open { Self::Metadata } else { field }
            }
            Self::Node(schema) => schema.field(name).map_or(Self::Deduced, Self::Node),
            Self::Metadata => match name {
                "ownerReferences" => Self::OwnerReferences,
                "finalizers" => Self::Finalizers,
                _ => Self::Deduced,
            },
            _ => Self::Deduced,
        }
    }

    fn item(&self) -> Self {
        match self {
            Self::Node(schema) => schema.items().map_or(Self::Atomic, Self::Node),
            Self::OwnerReferences => Self::Atomic,
            _ => Self::Deduced,
        }
    }

    /// The items of a list by the step that leads to them.
    fn by_step<'v>(&self, items: Option<&'v Vec<Value>>) -> Result<BTreeMap<String, Vec<&'v Value>>, Unfit> {
        let mut out: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
        let keys = match self.list_type() {
            ListType::Map(keys) => Some(keys),
            _ => None,
        };
        let item_type = self.item();
        for item in items.into_iter().flatten() {
            let step = match &keys {
                None if item.is_object() || item.is_array() || item.is_null() => return Err(Unfit),
                None => value_step(item),
                Some(keys) => {
                    let fields = item.as_object().ok_or(Unfit)?;
                    let mut found = BTreeMap::new();
                    for key in keys {
                        let default = || match &item_type {
                            Self::Node(schema) => schema.field(key).and_then(|f| f.get().default.clone()),
                            _ => None,
                        };
                        if let Some(value) = fields.get(key).cloned().or_else(default) {
                            found.insert(key.clone(), value);
                        }
                    }
                    if found.is_empty() {
                        return Err(Unfit);
                    }
                    key_step(&found)
                }
            };
            out.entry(step).or_default().push(item);
        }
        Ok(out)
    }
}

/// Numbers are equal by value, however they are written.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| equal(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| equal(x, y)))
        }
        _ => a == b,
    }
}
