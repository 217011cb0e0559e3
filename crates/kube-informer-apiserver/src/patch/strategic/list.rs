//! Lists in a strategic merge: by key, as sets, or whole.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::order::{Keyed, arrange};
use super::{Object, PATCH, SET_ORDER, bad_type, merge_maps, no_merge_key, struct_field, unknown_directive};
use crate::patch::PatchError;
use crate::patch::go::{go_type, go_value};
use crate::schema::Schema;

/// How one list field merges.
pub(super) struct List {
    item: Option<Schema>,
    merges: bool,
    /// Empty for scalars.
    key: String,
}

impl List {
    pub(super) fn of(schema: Option<&Schema>, name: &str) -> Result<Self, PatchError> {
        let Some(field) = struct_field(schema, name)? else {
            return Ok(Self { item: None, merges: false, key: String::new() });
        };
        let node = field.get();
        Ok(Self { item: field.items(), merges: node.merge, key: node.merge_key.clone().unwrap_or_default() })
    }

    pub(super) fn keyed(&self) -> Keyed<'_> {
        if self.key.is_empty() { Keyed::Scalars } else { Keyed::By(&self.key) }
    }

    pub(super) fn merge(
        &self,
        old: Vec<Value>,
        change: Vec<Value>,
        deletes: bool,
    ) -> Result<Vec<Value>, PatchError> {
        if !self.merges && !deletes {
            return Ok(change);
        }
        if old.is_empty() && change.is_empty() {
            return Ok(old);
        }
        if element_kind(&[&old, &change])? == ElementKind::Object {
            return self.merge_objects(old, change);
        }
        if deletes {
            let gone: BTreeSet<String> = change.iter().map(Value::to_string).collect();
            return Ok(old.into_iter().filter(|item| !gone.contains(&item.to_string())).collect());
        }
        let mut seen = BTreeSet::new();
        let both = old.iter().chain(&change).filter(|item| seen.insert(item.to_string())).cloned().collect();
        arrange(both, &change, &old, Keyed::Scalars).map_err(PatchError::Failed)
    }

    fn merge_objects(&self, mut old: Vec<Value>, change: Vec<Value>) -> Result<Vec<Value>, PatchError> {
        if self.key.is_empty() {
            return Err(PatchError::Failed("cannot merge lists without merge key for struct".to_owned()));
        }
        let mut plain = Vec::with_capacity(change.len());
        let mut replace = false;
        let mut gone = BTreeSet::new();
        for item in change {
            match item.get(PATCH).map(|d| (d, d.as_str())) {
                None => plain.push(item),
                Some((_, Some("delete"))) => {
                    gone.insert(self.key_of(&item)?);
                }
                Some((_, Some("replace"))) => replace = true,
                Some((_, Some("merge"))) => {
                    let why = "merging lists cannot yet be specified in the patch";
                    return Err(PatchError::Failed(why.to_owned()));
                }
                Some((other, _)) => {
                    let empty = Object::new();
                    return Err(unknown_directive(other, item.as_object().unwrap_or(&empty)));
                }
            }
        }
        if replace {
            (old, plain) = (plain, Vec::new());
        } else {
            old.retain(|item| !matches!(item.get(&self.key), Some(key) if gone.contains(&key.to_string())));
        }
        let server_order = old.clone();
        let mut places: HashMap<String, usize> = HashMap::new();
        for (at, item) in old.iter().enumerate() {
            if let Some(key) = item.get(&self.key) {
                // The first of several with one key is the one that is merged into.
                places.entry(key.to_string()).or_insert(at);
            }
        }
        for item in &plain {
            let key = self.key_of(item)?;
            match places.get(&key).and_then(|at| old.get_mut(*at)) {
                Some(slot) => {
                    if let (Value::Object(current), Value::Object(item)) =
                        (std::mem::take(slot), item.clone())
                    {
                        *slot = Value::Object(merge_maps(current, item, self.item.as_ref())?);
                    }
                }
                None => {
                    places.insert(key, old.len());
                    old.push(item.clone());
                }
            }
        }
        arrange(old, &plain, &server_order, self.keyed()).map_err(PatchError::Failed)
    }

    /// The order that counts as the server's after a merge that also has a `$setElementOrder` list.
    ///
    /// The real server merges inside the list it later takes the order from: a deletion closes the gap
    /// and leaves the last item standing twice, and added items overwrite what was left behind. Clients
    /// see the outcome, so it is the same here.
    pub(super) fn order_after(&self, mut order: Vec<Value>, change: &[Value]) -> Vec<Value> {
        if !self.merges || self.key.is_empty() {
            return order;
        }
        let mut length = order.len();
        let directive = |item: &Value| item.get(PATCH).is_some();
        for gone in change.iter().filter(|item| item.get(PATCH).is_some_and(|d| d == "delete")) {
            let Some(key) = gone.get(&self.key) else { continue };
            while let Some(at) = order[..length].iter().position(|item| item.get(&self.key) == Some(key)) {
                order[at..length].rotate_left(1);
                length -= 1;
                if let Some(last) = length.checked_sub(1).filter(|last| *last >= at) {
                    order[length] = order[last].clone();
                }
            }
        }
        if change.iter().any(|item| item.get(PATCH).is_some_and(|d| d == "replace")) {
            return order;
        }
        for item in change.iter().filter(|item| !directive(item)) {
            let key = item.get(&self.key);
            let known = order[..length].iter().any(|other| other.get(&self.key) == key);
            if !known && length < order.len() {
                order[length] = item.clone();
                length += 1;
            }
        }
        order
    }

    fn key_of(&self, item: &Value) -> Result<String, PatchError> {
        let key = item.get(&self.key).map(Value::to_string);
        key.ok_or_else(|| PatchError::Failed(no_merge_key(item, &self.key)))
    }

    /// The patch must name its items in the order of the `$setElementOrder` list, and no others.
    pub(super) fn check_order(&self, change: &[Value], order: &[Value]) -> Result<(), PatchError> {
        if change.is_empty() || order.is_empty() {
            return Ok(());
        }
        let mut wanted = order.iter();
        for item in change {
            if !self.key.is_empty() {
                let Value::Object(map) = item else {
                    return Err(bad_type("map[string]interface {}", item));
                };
                if map.contains_key(PATCH) {
                    continue;
                }
            }
            loop {
                let Some(next) = wanted.next() else {
                    let (change, order) = (go_value(change), go_value(order));
                    return Err(PatchError::Failed(format!(
                        "The order in patch list:\n{change}\n doesn't match {SET_ORDER} list:\n{order}\n"
                    )));
                };
                let same = if self.key.is_empty() {
                    item == next
                } else {
                    self.key_of(item)? == self.key_of(next)?
                };
                if same {
                    break;
                }
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    Object,
    Scalar,
}

/// All items of the lists must be of one type.
pub(super) fn element_kind(lists: &[&[Value]]) -> Result<ElementKind, PatchError> {
    let mut first: Option<&Value> = None;
    for item in lists.iter().copied().flatten() {
        match first {
            None if item.is_array() => {
                return Err(PatchError::DoesNotApply("lists of lists are not supported".to_owned()));
            }
            None => first = Some(item),
            Some(one) if go_type(one) == go_type(item) => {}
            Some(_) => {
                let all: Vec<String> = lists.iter().map(|list| go_value(*list)).collect();
                let why = format!("list element types are not identical: [{}]", all.join(" "));
                return Err(PatchError::Failed(why));
            }
        }
    }
    match first {
        Some(Value::Object(_)) => Ok(ElementKind::Object),
        Some(_) => Ok(ElementKind::Scalar),
        None => Err(PatchError::Failed("no elements in any of the given slices".to_owned())),
    }
}
