//! Strategic merge: a merge patch that knows which lists are keyed.
//!
//! The schema says how a field merges: a list with a merge key joins by that key, a merging list of
//! scalars is a set, any other list is replaced whole. Directives in the patch (`$patch`,
//! `$retainKeys`, `$deleteFromPrimitiveList/…`, `$setElementOrder/…`) do the rest. The order of a merged
//! list is that of the patch, with the items that only the server has kept where they stood relative to
//! the others.

mod list;
mod order;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use self::list::{ElementKind, List, element_kind};
use self::order::{Keyed, arrange};
use super::PatchError;
use super::go::{Shown, go_type, go_value};
use crate::schema::{self, Schema};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// Merges a strategic merge patch into the object. Without a schema every list is replaced whole.
pub(crate) fn strategic_merge(
    doc: &mut Value,
    patch: &Value,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    let patch = match patch {
        Value::Object(patch) => patch.clone(),
        Value::Null => Object::new(),
        other => {
            return Err(PatchError::Malformed(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                schema::type_name(other)
            )));
        }
    };
    let original = std::mem::take(doc);
    let original = if let Value::Object(original) = original { original } else { Object::new() };
    *doc = Value::Object(merge_maps(original, patch, schema)?);
    Ok(())
}

fn merge_maps(
    mut original: Object,
    mut patch: Object,
    schema: Option<&Schema>,
) -> Result<Object, PatchError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    merge_ordered_lists(&mut original, &mut patch, schema)?;

    for (name, change) in patch {
        let (key, deletes) = match name.strip_prefix(DELETE_FROM) {
            None => (name.as_str(), false),
            Some(rest) => {
                let key = rest
                    .strip_prefix('/')
                    .ok_or_else(|| malformed("invalid patch format of primitive list"))?;
                (key, true)
            }
        };
        if change.is_null() {
            original.remove(key);
            continue;
        }
        let Some(current) = original.get_mut(key) else {
            if !deletes {
                take_whole(&mut original, key, change);
            }
            continue;
        };
        match (std::mem::take(current), change) {
            (Value::Object(old), Value::Object(change)) => {
                let field = struct_field(schema, key)?;
                *current = Value::Object(merge_maps(old, change, field.as_ref())?);
            }
            (Value::Array(old), Value::Array(change)) => {
                let list = List::of(schema, key)?;
                *current = Value::Array(list.merge(old, change, deletes)?);
            }
            (old, _) if deletes => *current = old,
            (_, change) => take_whole(&mut original, key, change),
        }
    }
    Ok(original)
}

/// Nothing to merge with: the patch's value is taken, without its nulls and directives.
fn take_whole(into: &mut Object, key: &str, value: Value) {
    match without_directives(super::without_nulls(&value)) {
        Some(value) => {
            into.insert(key.to_owned(), value);
        }
        None => {
            into.remove(key);
        }
    }
}

/// `None`: the value was itself a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(k, v)| without_directives(v).map(|v| (k, v)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}

/// `$retainKeys` names every key that may remain; the patch must not set others.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let bad = || malformed("invalid patch format of retainKeys");
    let keys: BTreeSet<&str> = keys.as_array().ok_or_else(bad)?.iter().filter_map(Value::as_str).collect();
    let allowed = patch.iter().all(|(key, value)| {
        value.is_null()
            || key.starts_with(DELETE_FROM)
            || key.starts_with(SET_ORDER)
            || keys.contains(key.as_str())
    });
    if !allowed {
        return Err(bad());
    }
    original.retain(|key, _| keys.contains(key.as_str()));
    Ok(())
}

/// Lists that come with a `$setElementOrder/…`: merged, then put into that order.
fn merge_ordered_lists(
    original: &mut Object,
    patch: &mut Object,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    let directives: Vec<String> = patch.keys().filter(|k| k.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else {
            continue;
        };
        let Value::Array(order) = order else {
            return Err(bad_type("[]interface {}", &order));
        };
        let Some(key) = directive.strip_prefix(SET_ORDER).and_then(|rest| rest.strip_prefix('/')) else {
            return Err(malformed("invalid patch format of setElementOrder list"));
        };
        let as_list = |value: Option<Value>| match value {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(bad_type("[]interface {}", &other)),
        };
        let change = as_list(patch.remove(key))?;
        let current = as_list(original.get(key).cloned())?;
        let list = List::of(schema, key)?;
        list.check_order(change.as_deref().unwrap_or_default(), &order)?;
        let changed = change.clone().unwrap_or_default();
        let server_order = list.order_after(current.clone().unwrap_or_default(), &changed);
        let merged = match (current, change) {
            (None, None) => continue,
            (Some(current), None) => current,
            (None, Some(change)) => change.into_iter().filter_map(without_directives).collect(),
            (Some(current), Some(change)) => list.merge(current, change, false)?,
        };
        let kind = element_kind(&[&server_order, &changed])?;
        let keyed = if kind == ElementKind::Object { list.keyed() } else { Keyed::Scalars };
        if keyed == Keyed::Scalars && kind == ElementKind::Object {
            return Err(PatchError::Failed(no_merge_key(&merged, "")));
        }
        let arranged = arrange(merged, &order, &server_order, keyed).map_err(PatchError::Failed)?;
        original.insert(key.to_owned(), Value::Array(arranged));
    }
    Ok(())
}

/// The schema of a field that is being merged. Go's maps have no fields to look up, so an object inside
/// a map cannot be merged, only a scalar.
fn struct_field(schema: Option<&Schema>, name: &str) -> Result<Option<Schema>, PatchError> {
    let Some(schema) = schema else { return Ok(None) };
    let node = schema.get();
    if node.properties.is_empty() && node.additional.is_some() {
        let why = "merging an object in json but data type is not struct, instead is: map";
        return Err(PatchError::Failed(why.to_owned()));
    }
    Ok(schema.field(name))
}

fn malformed(why: &str) -> PatchError {
    PatchError::Malformed(why.to_owned())
}

fn bad_type(expected: &str, got: &Value) -> PatchError {
    PatchError::Failed(format!("expected a {expected}, but received a {}", go_type(got)))
}

fn unknown_directive(directive: &Value, map: &Object) -> PatchError {
    let (directive, map) = (go_value(directive), go_value(map));
    PatchError::Failed(format!("unknown patch type: {directive} in map: {map}"))
}

fn no_merge_key<T>(item: &T, key: &str) -> String
where
    for<'a> &'a T: Into<Shown<'a>>,
{
    format!("map: {} does not contain declared merge key: {key}", go_value(item))
}
