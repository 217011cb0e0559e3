//! What the server fills in where a client said nothing.
//!
//! [`apply`] is the defaulting of the built-in kinds as kube-apiserver does it when it decodes an
//! object. Most of it is data: a [`Rule`] names a place, a field and a value. What depends on other
//! fields is a function per kind, run after its rules.
//!
//! Covered: pods and pod templates wherever they are, the workloads, services, endpoints and slices,
//! config maps and secrets, volumes, claims and storage classes, ingresses and their classes, network
//! policies, autoscalers, RBAC bindings, namespaces, nodes, limit ranges, priority classes, CSI drivers,
//! webhook configurations, flow control and CustomResourceDefinitions. Other kinds have no defaults
//! or are left as they are. The defaults of custom resources come from their schemas.
//!
//! Applying defaults twice gives what applying them once gave. Fields that only the server can know
//! (addresses, node ports) are allocated by the core.

mod kinds;
mod pod;

use serde_json::{Value, json};

use crate::fields;
use crate::kinds::Resource;

/// Fills in the defaults of a built-in kind.
pub(crate) fn apply(resource: &Resource, object: &mut Value) {
    if resource.custom.is_some() || !object.is_object() {
        return;
    }
    kinds::apply(resource, object);
}

/// One default: a field, somewhere.
struct Rule {
    /// The way to the objects that have the field; each step is a choice of names. A name that ends
    /// in `[]` leads to every item of a list, one that ends in `!` is made if it is absent.
    at: &'static [&'static [&'static str]],
    field: &'static str,
    value: Default,
    /// For fields where zero and absent are the same: anything but a Go pointer.
    zero: bool,
}

enum Default {
    Text(&'static str),
    Int(i64),
    Bool(bool),
    /// `{}`
    Empty,
    /// A list of one string.
    One(&'static str),
}

/// A field whose zero value means "not set".
const fn zero(at: &'static [&'static [&'static str]], field: &'static str, value: Default) -> Rule {
    Rule { at, field, value, zero: true }
}

/// A field that may be set to zero.
const fn unset(at: &'static [&'static [&'static str]], field: &'static str, value: Default) -> Rule {
    Rule { at, field, value, zero: false }
}

impl Default {
    fn value(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(*text),
            Self::Int(number) => Value::from(*number),
            Self::Bool(flag) => Value::from(*flag),
            Self::Empty => json!({}),
            Self::One(item) => json!([item]),
        }
    }
}

fn apply_rules(rules: &[Rule], value: &mut Value) {
    for rule in rules {
        each(value, rule.at, &mut |object| fill(object, rule));
    }
}

fn fill(object: &mut Value, rule: &Rule) {
    let Some(object) = object.as_object_mut() else { return };
    let present = object.get(rule.field);
    let missing = match present {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => rule.zero && items.is_empty(),
        present => rule.zero && fields::is_zero(present),
    };
    if missing {
        object.insert(rule.field.to_owned(), rule.value.value());
    }
}

/// Calls `visit` with every object that the steps lead to.
fn each(value: &mut Value, steps: &[&[&str]], visit: &mut dyn FnMut(&mut Value)) {
    let Some((choices, rest)) = steps.split_first() else {
        visit(value);
        return;
    };
    for choice in *choices {
        if let Some(name) = choice.strip_suffix("[]") {
            for item in value.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
                each(item, rest, visit);
            }
        } else if let Some(name) = choice.strip_suffix('!') {
            if let Some(place) = fields::place(value, &[name]) {
                if place.is_null() {
                    *place = json!({});
                }
                each(place, rest, visit);
            }
        } else if let Some(place) = value.get_mut(*choice).filter(|place| !place.is_null()) {
            each(place, rest, visit);
        }
    }
}

#[cfg(test)]
mod tests;
