//! Who set which field: `metadata.managedFields` for writes that are not applies.
//!
//! [`update`] compares the object before and after a write. What the write set or changed belongs to its
//! manager from then on, and to nobody else; what it removed belongs to nobody. Entries that own nothing
//! disappear, and a write that changes nothing changes no entry and no time.
//!
//! The caller passes `new` as the client's object reads after decoding and defaulting, before anything
//! that the server itself fills in (a strategy's resets, allocated addresses): those fields have no owner.
//! Both objects must be in the same form, so that an absent field and an empty one are not mistaken for
//! a change.
//!
//! Not done: entries of other API versions are compared as if conversion changed nothing, and sets that
//! a changed schema has made coarser are not rewritten.

mod compare;
mod empty;
mod reset;
mod set;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use self::compare::compare;
use self::set::Set;
use crate::schema::Schema;

use self::empty::empty_object;
pub(crate) use reset::reset_fields;

/// More entries of updates than this, and the oldest are joined.
const MAX_UPDATE_MANAGERS: usize = 10;
const JOINED: &str = "ancient-changes";

/// One write, as an entry names it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'a> {
    /// The `fieldManager` parameter, or what stands before the slash in the user agent.
    pub(crate) manager: &'a str,
    pub(crate) api_version: &'a str,
    /// Empty for the object itself.
    pub(crate) subresource: &'a str,
    /// RFC 3339, whole seconds, UTC.
    pub(crate) now: &'a str,
}

/// Sets `new`'s managedFields from `old`'s, what `new` says itself, and the difference between the two.
///
/// `old` is `None` for a create, which is then compared with [`empty_object`]; a caller that knows the
/// kind's empty form better passes that (an object without a uid is a create too). `resets` are the fields that this endpoint never writes
/// ([`reset_fields`]).
pub(crate) fn update(
    old: Option<&Value>,
    new: &mut Value,
    write: Write<'_>,
    resets: &[&[&str]],
    schema: Option<&Schema>,
) {
    let sent = new.get_mut("metadata").and_then(Value::as_object_mut).and_then(|m| m.remove("managedFields"));
    let live = old.and_then(|old| old.pointer("/metadata/managedFields"));
    let mut entries = starting_entries(sent.as_ref(), live, write.subresource);
    let created = old.is_none_or(|old| old.pointer("/metadata/uid").is_none());
    if entries.is_empty() && !created {
        // Nobody tracks this object any more; an update does not start again.
        return;
    }
    let empty;
    let before = match old {
        Some(old) => old,
        None => {
            empty = empty_object(schema, new);
            &empty
        }
    };
    let encoded = match take_over(&mut entries, before, new, write, resets, schema) {
        Ok(()) => {
            cap(&mut entries);
            encode(entries)
        }
        // The objects do not fit their schema: ownership stays as it was.
        Err(_) => live.and_then(Value::as_array).cloned().unwrap_or_default(),
    };
    if encoded.is_empty() {
        return;
    }
    if let Some(object) = new.as_object_mut() {
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".to_owned(), Value::Array(encoded));
        }
    }
}

/// Entries by who made them.
type Entries = BTreeMap<Id, Entry>;

/// What tells entries apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    manager: String,
    /// `Apply` or `Update`.
    operation: String,
    /// Empty for `Apply`: one applier has one entry, whatever version it speaks.
    api_version: String,
    subresource: String,
}

#[derive(Debug, Clone)]
struct Entry {
    api_version: String,
    time: Option<String>,
    set: Set,
}

impl Id {
    fn update(manager: &str, api_version: &str, subresource: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            operation: "Update".to_owned(),
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    /// The order that the real server breaks ties in is that of this text.
    fn text(&self) -> String {
        let mut out = Map::new();
        let fields = [
            ("1manager", &self.manager),
            ("2operation", &self.operation),
            ("3apiVersion", &self.api_version),
            ("4subresource", &self.subresource),
        ];
        for (name, value) in fields {
            if !value.is_empty() {
                out.insert(name.to_owned(), value.as_str().into());
            }
        }
        Value::Object(out).to_string()
    }
}

/// Where the write starts from: what the client sent, where it makes sense, else what is stored. An
/// explicitly empty list forgets everything. Subresources cannot change the list directly.
fn starting_entries(sent: Option<&Value>, live: Option<&Value>, subresource: &str) -> Entries {
    let live = || decode(live).unwrap_or_default();
    if !subresource.is_empty() {
        return live();
    }
    match sent.and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => Entries::new(),
        Some([Value::Object(only)]) if only.is_empty() => Entries::new(),
        _ => decode(sent).filter(|entries| !entries.is_empty()).unwrap_or_else(live),
    }
}

/// `None`: something in the list is not valid, so none of it is used.
fn decode(list: Option<&Value>) -> Option<Entries> {
    let mut entries = Entries::new();
    for entry in list.and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (operation, api_version) = (text("operation"), text("apiVersion"));
        if !matches!(operation.as_str(), "Apply" | "Update") || api_version.is_empty() {
            return None;
        }
        if text("fieldsType") != "FieldsV1" {
            return None;
        }
        let set = match entry.get("fieldsV1") {
            None | Some(Value::Null) => Set::default(),
            Some(fields) => Set::from_json(fields)?,
        };
        let id = Id {
            manager: text("manager"),
            api_version: if operation == "Apply" { String::new() } else { api_version.clone() },
            operation,
            subresource: text("subresource"),
        };
        let time = entry.get("time").and_then(Value::as_str).map(in_utc);
        entries.insert(id, Entry { api_version, time, set });
    }
    Some(entries)
}

/// Times are shown in UTC, whatever zone they came in.
fn in_utc(time: &str) -> String {
    let parsed = time.parse::<jiff::Timestamp>();
    parsed.map_or_else(|_| time.to_owned(), |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Moves what the write touched to its manager.
fn take_over(
    entries: &mut Entries,
    before: &Value,
    after: &Value,
    write: Write<'_>,
    resets: &[&[&str]],
    schema: Option<&Schema>,
) -> Result<(), compare::Unfit> {
    let mut changes = compare(before, after, schema)?;
    let resets = Set::of_fields(resets);
    changes.added = changes.added.without_below(&resets);
    changes.modified = changes.modified.without_below(&resets);
    changes.removed = changes.removed.without_below(&resets);
    let touched = changes.modified.union(&changes.added);

    for entry in entries.values_mut() {
        entry.set = entry.set.without(&touched).without(&changes.removed);
    }
    entries.retain(|_, entry| !entry.set.is_empty());

    let own = touched.without(&Set::of_fields(NEVER_OWNED));
    if own.is_empty() {
        return Ok(());
    }
    let manager = if write.manager.is_empty() { "unknown" } else { write.manager };
    let id = Id::update(manager, write.api_version, write.subresource);
    let previous = entries.remove(&id).map(|entry| entry.set).unwrap_or_default();
    let set = own.union(&previous);
    // The real server loses the time on the way through a Scale object.
    let time = (write.subresource != "scale").then(|| write.now.to_owned());
    entries.insert(id, Entry { api_version: write.api_version.to_owned(), time, set });
    Ok(())
}

/// These belong to the server or to the object's identity.
const NEVER_OWNED: &[&[&str]] = &[
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

/// Joins the oldest updates, per API version, until there are few enough.
fn cap(entries: &mut Entries) {
    let mut updates: Vec<(Option<String>, String, Id)> = entries
        .iter()
        .filter(|(id, _)| id.operation == "Update")
        .map(|(id, entry)| (entry.time.clone(), id.text(), id.clone()))
        .collect();
    updates.sort();
    let mut count = updates.len();
    let mut first_of_version: BTreeMap<String, Id> = BTreeMap::new();
    for (time, _, id) in updates {
        if count <= MAX_UPDATE_MANAGERS {
            break;
        }
        let Some(version) = entries.get(&id).map(|entry| entry.api_version.clone()) else {
            continue;
        };
        let Some(first) = first_of_version.get(&version) else {
            first_of_version.insert(version, id);
            continue;
        };
        let bucket = Id::update(JOINED, &version, "");
        if !entries.contains_key(&bucket)
            && let Some(entry) = entries.remove(first)
        {
            entries.insert(bucket.clone(), entry);
        }
        let Some(set) = entries.get(&id).map(|entry| entry.set.clone()) else {
            continue;
        };
        if let Some(joined) = entries.get_mut(&bucket) {
            joined.set = joined.set.union(&set);
            joined.time = time;
        }
        if id != bucket {
            entries.remove(&id);
        }
        count -= 1;
    }
}

fn encode(entries: Entries) -> Vec<Value> {
    let mut entries: Vec<(Id, Entry)> = entries.into_iter().collect();
    entries.sort_by(|(a, x), (b, y)| {
        let left = (&a.operation, &x.time, &a.manager, &x.api_version, &a.subresource);
        left.cmp(&(&b.operation, &y.time, &b.manager, &y.api_version, &b.subresource))
    });
    let encoded = entries.into_iter().map(|(id, entry)| {
        let mut out = Map::new();
        let fields = [
            ("manager", id.manager),
            ("operation", id.operation),
            ("apiVersion", entry.api_version),
            ("time", entry.time.unwrap_or_default()),
            ("fieldsType", "FieldsV1".to_owned()),
            ("subresource", id.subresource),
        ];
        for (name, value) in fields {
            if !value.is_empty() {
                out.insert(name.to_owned(), value.into());
            }
        }
        out.insert("fieldsV1".to_owned(), entry.set.to_json());
        Value::Object(out)
    });
    encoded.collect()
}
