//! What is known of a workload: how many replicas it is to have and has, and which pods are its own.

use std::collections::BTreeMap;

use kube_informer::cache::Selector;
use kube_informer::cache::selector::{Operator, Requirement};
use kube_informer::encoding::{Pointer, ViewError};
use kube_informer::object::{Object, Stored, Uid};
use serde::Deserialize;
use serde_json::Value;

use super::paths::Shape;
use crate::api::ScaleTargetRef;

/// A workload that can be scaled, whatever kind it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScaleTarget {
    /// How many replicas it is to have. Nothing is one.
    pub spec_replicas: i64,
    /// How many it has. Nothing is none.
    pub status_replicas: i64,
    /// Which pods are its own; `None` where it does not say so. The empty selector, which would be all, counts as none.
    pub selector: Option<Selector>,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The UID: one that was deleted and made again is another one.
    pub uid: Uid,
}

/// What an object says, where its shape says to look.
#[derive(Debug, PartialEq)]
pub(super) struct Reading {
    pub(super) target: ScaleTarget,
    /// Another object that has the selector.
    pub(super) reference: Option<ScaleTargetRef>,
}

/// A label selector as workloads have it, or, of the oldest kind, as a map of labels.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LabelSelector {
    #[serde(default)]
    match_labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    match_expressions: Option<Vec<Expression>>,
}

#[derive(Debug, Deserialize)]
struct Expression {
    key: String,
    operator: String,
    #[serde(default)]
    values: Option<Vec<String>>,
}

impl ScaleTarget {
    /// Reads an object. Nothing but what the shape names is decoded.
    ///
    /// # Errors
    ///
    /// Where something else stands there than numbers and a selector: says where, and what.
    pub fn read<K>(object: &Object<K>, shape: &Shape) -> Result<Self, String> {
        Reading::of(object, shape).map(|reading| reading.target)
    }
}

impl Reading {
    pub(super) fn of<K>(object: &Object<K>, shape: &Shape) -> Result<Self, String> {
        object.read(|stored| read(&stored, object, shape)).map_err(|error| error.to_string())?
    }
}

fn read<K>(stored: &Stored<'_>, object: &Object<K>, shape: &Shape) -> Result<Reading, String> {
    let number = |at: &Pointer| {
        let found = stored.pointer::<Option<i64>>(at).map(Option::flatten);
        found.map_err(|error| wrong(at, &error))
    };
    let reference = match &shape.reference {
        Some(at) => {
            stored.pointer::<Option<ScaleTargetRef>>(at).map_err(|error| wrong(at, &error))?.flatten()
        }
        None => None,
    };
    let target = ScaleTarget {
        spec_replicas: number(&shape.spec_replicas)?.unwrap_or(1),
        status_replicas: number(&shape.status_replicas)?.unwrap_or(0),
        selector: selector_in(stored, &shape.selectors)?,
        namespace: object.namespace().to_owned(),
        name: object.name().to_owned(),
        uid: object.uid().clone(),
    };
    Ok(Reading { target, reference })
}

/// The selector of an object that another one names.
pub(super) fn referenced_selector<K>(object: &Object<K>) -> Result<Option<Selector>, String> {
    let at = Pointer::parse("/spec/selector").map_err(|error| error.to_string())?;
    let read = object.read(|stored| selector_in(&stored, std::slice::from_ref(&at)));
    read.map_err(|error| error.to_string())?
}

/// The first that is there, and is not empty.
fn selector_in(stored: &Stored<'_>, places: &[Pointer]) -> Result<Option<Selector>, String> {
    for at in places {
        let found = stored.pointer::<Value>(at).map_err(|error| wrong(at, &error))?;
        let Some(found) = found else { continue };
        let selector = selector(found).map_err(|why| format!("{at} is no selector: {why}"))?;
        if !selector.is_everything() {
            return Ok(Some(selector));
        }
    }
    Ok(None)
}

fn selector(found: Value) -> Result<Selector, String> {
    match found {
        Value::Null => Ok(Selector::everything()),
        Value::String(text) => {
            text.parse().map_err(|error: kube_informer::cache::ParseSelectorError| error.to_string())
        }
        Value::Object(fields)
            if fields.contains_key("matchLabels") || fields.contains_key("matchExpressions") =>
        {
            let parsed =
                LabelSelector::deserialize(Value::Object(fields)).map_err(|error| error.to_string())?;
            let labels = parsed.match_labels.unwrap_or_default();
            let expressions = parsed.match_expressions.unwrap_or_default();
            equal(labels).chain(expressions.into_iter().map(requirement)).collect()
        }
        Value::Object(fields) => {
            let labels = BTreeMap::<String, String>::deserialize(Value::Object(fields));
            equal(labels.map_err(|error| error.to_string())?).collect()
        }
        other => Err(format!("{other} is neither a text nor labels")),
    }
}

fn equal(labels: BTreeMap<String, String>) -> impl Iterator<Item = Result<Requirement, String>> {
    labels.into_iter().map(|(key, value)| {
        Requirement::new(&key, Operator::Equals, [value]).map_err(|fault| fault.to_string())
    })
}

fn requirement(Expression { key, operator, values }: Expression) -> Result<Requirement, String> {
    let operator = match operator.as_str() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => return Err(format!("{other:?} is no operator of a selector")),
    };
    Requirement::new(&key, operator, values.unwrap_or_default()).map_err(|fault| fault.to_string())
}

fn wrong(at: &Pointer, error: &ViewError) -> String {
    format!("{at} cannot be read: {error}")
}

#[cfg(test)]
mod tests;
