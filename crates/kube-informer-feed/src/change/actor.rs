//! Whose change it is, as far as an object tells.
//!
//! Each writer of an object has an entry with the time of its last write, in whole seconds, and whether that was the status. What
//! it wrote is not kept. So where several have written since, because they are told as one change or wrote within a second,
//! it is the one who may have written what has changed, and of those the last.
//!
//! Not every change leaves an entry. What is deleted and is there for a while still, and a pod that is given its node, the
//! server changes by itself; and whoever only takes something away is not noted. Nobody knows whose such a change is, and so
//! nobody is named, least of all whoever wrote something else some time before.

use jiff::Timestamp;
use kube_informer::object::{Object, WriterRef};

use super::{Actor, Change, Class, What};

/// Its own writes to objects that others have made are notes about them, such as the revision of a Deployment.
const NOTES: &str = "kube-controller-manager";

/// Who has made an object: who wrote it in the second of its creation. Whoever did may have written it again since; then it is
/// the last who has.
pub(super) fn of_new<K>(object: &Object<K>) -> Option<Actor> {
    let writers = object.writers();
    let at_first = writers.iter().filter(|writer| writer.time.is_some() && writer.time == object.created());
    latest(object, at_first, false).or_else(|| latest(object, writers, false))
}

/// Who has changed it: one of those whose entries are others now. Without such an entry, who wrote for a second time within the
/// same second.
pub(super) fn of_change<K, T>(old: &Object<K>, new: &Object<T>, change: &Change) -> Option<Actor> {
    if is_unsigned(change) {
        return None;
    }
    let (writers, only_status) = (new.writers(), is_only_status(&change.classes));
    let fresh = writers.iter().filter(|writer| !old.writers().contains(writer));
    latest(new, fresh, only_status).or_else(|| {
        // A write that sets something has an entry with its second, and nobody can have written after that.
        let last = writers.iter().map(|writer| writer.time).max().filter(|_| sets_something(change))?;
        let again =
            writers.iter().filter(|writer| writer.time == last && (only_status || !is_of_status(writer)));
        latest(new, again, only_status)
    })
}

/// Who has made two changes that are told as one: who has made the object, or who has changed more than its status, or who
/// was the last.
pub(super) fn of_both(earlier: &Change, later: &Change) -> Option<Actor> {
    if earlier.what == What::Added {
        return earlier.actor.clone();
    }
    let both = [later, earlier];
    let only_status = both.iter().all(|change| is_only_status(&change.classes));
    let mut did_it = both.into_iter().filter(|change| only_status || !is_only_status(&change.classes));
    did_it.find_map(|change| change.actor.clone())
}

/// Whether it is, or holds, what the server does by itself: that a deletion begins, or that a pod has a node. Whatever else was
/// written meanwhile, whoever did is not who did this.
pub(super) fn is_unsigned(change: &Change) -> bool {
    let is_pod = (change.obj.api_version.as_str(), change.obj.kind.as_str()) == ("v1", "Pod");
    let is_bound = || change.changes.iter().any(|each| each.path == "/spec/nodeName");
    change.classes.contains(&Class::Delete) || is_pod && is_bound()
}

/// Whether something has a value that it did not have. Of finalizers, which are told by their place, one that moves up has a
/// new place only.
fn sets_something(change: &Change) -> bool {
    let is_moved = |path: &str| path.starts_with("/metadata/finalizers/");
    change.changes.iter().any(|each| each.new.is_some() && !is_moved(&each.path))
}

/// Whether nothing but the status has changed, which few write.
fn is_only_status(classes: &[Class]) -> bool {
    classes.iter().all(|class| matches!(class, Class::Rollout | Class::Condition | Class::Status))
}

fn is_of_status(writer: &WriterRef) -> bool {
    &*writer.subresource == "status"
}

/// The last one, of those that are most likely.
fn latest<'a, K>(
    object: &Object<K>,
    writers: impl IntoIterator<Item = &'a WriterRef>,
    only_status: bool,
) -> Option<Actor> {
    let rank = |writer: &&WriterRef| -> (bool, bool, Option<Timestamp>) {
        let suits = is_of_status(writer) == only_status;
        let is_note =
            &*writer.manager == NOTES && writer.subresource.is_empty() && object.controller().is_none();
        (suits, !is_note, writer.time)
    };
    let writer = writers.into_iter().max_by_key(rank)?.clone();
    Some(Actor { manager: writer.manager.into(), op: writer.operation.into() })
}
