//! Differences done to a document, or undone.

use std::cmp::Ordering;

use serde_json::Value;

use super::diff::Delta;
use super::path;

/// The document after the differences, whose paths begin with `skip` tokens that lead to it, the last of which is the field
/// that it is in. `None` where they do not fit.
pub(super) fn apply(document: &Value, skip: usize, deltas: &[&Delta]) -> Option<Value> {
    changed(document, skip, deltas, |delta| delta.new.as_ref())
}

/// The document before them.
pub(super) fn undo(document: &Value, skip: usize, deltas: &[&Delta]) -> Option<Value> {
    changed(document, skip, deltas, |delta| delta.old.as_ref())
}

fn changed(
    document: &Value,
    skip: usize,
    deltas: &[&Delta],
    wanted: impl Fn(&Delta) -> Option<&Value>,
) -> Option<Value> {
    let mut document = document.clone();
    let mut order: Vec<&Delta> = deltas.to_vec();
    order.sort_by(|a, b| by_place(&a.path, &b.path));
    // Elements of lists without names are appended in order, and taken from the end.
    let (sets, removals): (Vec<&Delta>, Vec<&Delta>) =
        order.into_iter().partition(|delta| wanted(delta).is_some());
    for delta in sets.into_iter().chain(removals.into_iter().rev()) {
        let field = skip.checked_sub(1).and_then(|last| delta.path.get(last)).map_or("", String::as_str);
        set(&mut document, field, delta.path.get(skip..)?, wanted(delta))?;
    }
    Some(document)
}

/// Sets what a path names, or removes it.
fn set(node: &mut Value, field: &str, path: &[String], value: Option<&Value>) -> Option<()> {
    let Some((token, rest)) = path.split_first() else {
        *node = value?.clone();
        return Some(());
    };
    match node {
        Value::Object(map) if rest.is_empty() => {
            match value {
                Some(value) => drop(map.insert(token.clone(), value.clone())),
                None => drop(map.remove(token)?),
            }
            Some(())
        }
        Value::Object(map) => set(map.get_mut(token)?, token, rest, value),
        Value::Array(list) => {
            let place = match path::index(token) {
                Some(index) => index,
                None => {
                    let called = |element: &Value| path::key(field, element).as_ref() == Some(token);
                    list.iter().position(called).unwrap_or(list.len())
                }
            };
            if let Some(element) = list.get_mut(place).filter(|_| !rest.is_empty() || value.is_some()) {
                return set(element, token, rest, value);
            }
            match value {
                Some(value) if rest.is_empty() && place == list.len() => list.push(value.clone()),
                // Of those with numbers, only the last can go: the others would be called otherwise.
                None if rest.is_empty() && place < list.len() => drop(list.remove(place)),
                _ => return None,
            }
            Some(())
        }
        _ => None,
    }
}

/// The order of paths in which numbers are numbers.
pub(super) fn by_place(a: &[String], b: &[String]) -> Ordering {
    let tokens = a.iter().zip(b).map(|(a, b)| match (path::index(a), path::index(b)) {
        (Some(x), Some(y)) => x.cmp(&y),
        _ => a.cmp(b),
    });
    tokens.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
}
