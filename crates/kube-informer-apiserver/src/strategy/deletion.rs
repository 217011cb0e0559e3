//! What a delete does to an object before the object is gone.
//!
//! [`begin`] decides: remove it now, write it once more (with a deletion time, finalizers, a shorter grace
//! period) or leave it as it is. Pods are deleted gracefully: one that runs on a node waits for the
//! kubelet's second delete with grace 0. Namespaces wait until their content and `spec.finalizers` are
//! gone. Whatever has finalizers waits for them; [`ends_with_update`] tells when an update took the last.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::traits::{Dependents, Traits};
use crate::fields;
use crate::kinds::Resource;

/// What a client asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_period_seconds: Option<i64>,
    /// `Orphan`, `Background` or `Foreground`.
    pub(crate) propagation_policy: Option<String>,
    /// The older way to say it.
    pub(crate) orphan_dependents: Option<bool>,
}

/// What is to be done with the object, which may have been changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// Take it away.
    Remove,
    /// Store the changed object; watchers see it as modified. Then, if `remove`, take it away as well:
    /// a pod with no grace period left goes both ways, so its watchers see two events.
    Update { remove: bool },
    /// It is on its way already.
    Unchanged,
}

/// How long a gracefully deleted object may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GraceDecision {
    /// The kind knows no grace, or there is none left.
    Now,
    /// Mark it as deleted, to be gone after this long.
    Mark { seconds: i64 },
    /// Marked before; nothing changes.
    Pending,
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The grace period that a delete gives an object.
pub(crate) fn grace_period(resource: &Resource, object: &Value, requested: Option<i64>) -> GraceDecision {
    if !resource.is("", "pods") {
        return GraceDecision::Now;
    }
    let requested = requested.map(|seconds| if seconds < 0 { 1 } else { seconds });
    if fields::at(object, &["metadata", "deletionTimestamp"]).is_some() {
        let left = fields::int(object, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or_default();
        return match requested {
            _ if left == 0 => GraceDecision::Now,
            // Deletion can be hurried, never put off.
            Some(seconds) if seconds < left => GraceDecision::Mark { seconds },
            _ => GraceDecision::Pending,
        };
    }
    let own = fields::int(object, &["spec", "terminationGracePeriodSeconds"]).unwrap_or_default();
    let phase = fields::text(object, &["status", "phase"]);
    let seconds = match requested.unwrap_or(own) {
        // Nobody would report the end of a pod that runs nowhere.
        _ if fields::text(object, &["spec", "nodeName"]).is_empty() => 0,
        _ if matches!(phase, "Failed" | "Succeeded") => 0,
        seconds if seconds < 0 => 1,
        seconds => seconds,
    };
    GraceDecision::Mark { seconds }
}

/// Begins, hurries or ends the deletion of a stored object.
pub(crate) fn begin(
    resource: &Resource,
    object: &mut Value,
    options: &DeleteOptions,
    now: Timestamp,
) -> Deletion {
    if resource.is("", "namespaces")
        && let Some(deletion) = begin_namespace(object, options, now)
    {
        return deletion;
    }
    let decision = grace_period(resource, object, options.grace_period_seconds);
    if decision == GraceDecision::Pending {
        return Deletion::Unchanged;
    }
    let finalizers_changed = set_finalizers(resource, object, options);
    let waits = !fields::list(object, &["metadata", "finalizers"]).is_empty();
    match decision {
        GraceDecision::Mark { seconds } => {
            mark_gracefully(object, seconds, now);
            let left = fields::int(object, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or_default();
            Deletion::Update { remove: !waits && left == 0 }
        }
        _ if waits => {
            let marked = mark(object, now);
            if marked || finalizers_changed {
                Deletion::Update { remove: false }
            } else {
                Deletion::Unchanged
            }
        }
        _ => Deletion::Remove,
    }
}

/// Whether an update that leaves `new` ends the deletion that was begun on `old`.
pub(crate) fn ends_with_update(resource: &Resource, old: &Value, new: &Value) -> bool {
    let finalizers = fields::list(new, &["metadata", "finalizers"]).is_empty();
    let content = !resource.is("", "namespaces") || fields::list(new, &["spec", "finalizers"]).is_empty();
    let begun = fields::at(old, &["metadata", "deletionTimestamp"]).is_some();
    let grace = fields::int(old, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or_default();
    finalizers && content && begun && grace == 0
}

/// A time as objects carry it: UTC, whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// The first delete of a namespace only marks it; the second does what it does to any object, once the
/// namespace is empty.
fn begin_namespace(object: &mut Value, options: &DeleteOptions, now: Timestamp) -> Option<Deletion> {
    if fields::at(object, &["metadata", "deletionTimestamp"]).is_some() {
        let waits = !fields::list(object, &["spec", "finalizers"]).is_empty();
        return waits.then_some(Deletion::Unchanged);
    }
    fields::set(object, &["metadata", "deletionTimestamp"], seconds(now));
    fields::set(object, &["status", "phase"], "Terminating");
    let had = |name: &str| fields::list(object, &["metadata", "finalizers"]).iter().any(|f| f == name);
    let (had_orphan, had_foreground) = (had(ORPHAN), had(FOREGROUND));
    let asked = |policy: &str| options.propagation_policy.as_deref().map(|asked| asked == policy);
    let orphan = options.orphan_dependents.or_else(|| asked("Orphan")).unwrap_or(had_orphan);
    let foreground = match options.orphan_dependents {
        Some(_) => false,
        None => asked("Foreground").unwrap_or(had_foreground),
    };
    replace_finalizers(object, orphan, foreground);
    Some(Deletion::Update { remove: false })
}

/// Adds and removes the two finalizers of the garbage collector. Whether anything changed.
fn set_finalizers(resource: &Resource, object: &mut Value, options: &DeleteOptions) -> bool {
    let default = Traits::of(resource).dependents;
    if default == Dependents::Unsupported {
        return false;
    }
    let present = fields::list(object, &["metadata", "finalizers"]).iter().filter_map(Value::as_str);
    let present = present.into_iter().find(|name| matches!(*name, ORPHAN | FOREGROUND));
    let (orphan, foreground) = match (options.orphan_dependents, options.propagation_policy.as_deref()) {
        (Some(orphan), _) => (orphan, false),
        (None, Some("Orphan")) => (true, false),
        (None, Some("Foreground")) => (false, true),
        (None, Some("Background")) => (false, false),
        (None, _) => match present {
            Some(name) => (name == ORPHAN, name == FOREGROUND),
            None => (default == Dependents::Orphan, false),
        },
    };
    replace_finalizers(object, orphan, foreground)
}

fn replace_finalizers(object: &mut Value, orphan: bool, foreground: bool) -> bool {
    let before = fields::list(object, &["metadata", "finalizers"]).to_vec();
    let mut after: Vec<Value> =
        before.iter().filter(|name| **name != ORPHAN && **name != FOREGROUND).cloned().collect();
    for (wanted, name) in [(orphan, ORPHAN), (foreground, FOREGROUND)] {
        if wanted {
            after.push(name.into());
        }
    }
    let same = before.len() == after.len() && after.iter().all(|name| before.contains(name));
    if same {
        return false;
    }
    if after.is_empty() {
        fields::remove(object, &["metadata", "finalizers"]);
    } else {
        fields::set(object, &["metadata", "finalizers"], json!(after));
    }
    true
}

/// Objects without grace: deleted at once but for their finalizers. Whether anything changed.
fn mark(object: &mut Value, now: Timestamp) -> bool {
    let before = object.get("metadata").cloned();
    count_generation(object);
    let begun: Option<Timestamp> = fields::text(object, &["metadata", "deletionTimestamp"]).parse().ok();
    if begun.is_none_or(|begun| begun > now) {
        fields::set(object, &["metadata", "deletionTimestamp"], seconds(now));
    }
    fields::set(object, &["metadata", "deletionGracePeriodSeconds"], 0);
    before.as_ref() != object.get("metadata")
}

fn mark_gracefully(object: &mut Value, grace: i64, now: Timestamp) {
    let mut grace = grace;
    let begun: Option<Timestamp> = fields::text(object, &["metadata", "deletionTimestamp"]).parse().ok();
    let from = match begun {
        // A shorter period counts from when the longer one began.
        Some(end) => {
            let left = fields::int(object, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or_default();
            end.checked_sub(SignedDuration::from_secs(left)).unwrap_or(end)
        }
        None => now,
    };
    count_generation(object);
    let mut end = from.checked_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
    if begun.is_some() && end < now {
        end = now;
        // Time is up, but somebody else has to say so.
        grace = grace.min(1);
    }
    fields::set(object, &["metadata", "deletionTimestamp"], seconds(end));
    fields::set(object, &["metadata", "deletionGracePeriodSeconds"], grace);
}

/// The beginning of a deletion is a change like one of the spec.
fn count_generation(object: &mut Value) {
    let generation = fields::int(object, &["metadata", "generation"]).unwrap_or_default();
    if fields::at(object, &["metadata", "deletionTimestamp"]).is_none() && generation > 0 {
        fields::set(object, &["metadata", "generation"], generation.saturating_add(1));
    }
}
