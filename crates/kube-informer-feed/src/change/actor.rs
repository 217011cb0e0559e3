//! Whose change it is, as far as an object tells.
//!
//! Each writer of an object has an entry with the time of its last write, in whole seconds, and whether that was the status. What
//! it wrote is not kept. So where several have written since, because they are told as one change or wrote within a second,
//! it is the one who may have written what has changed, and of those the last.

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

/// Who has changed it: one of those whose entries are others now.
pub(super) fn of_change<K, T>(old: &Object<K>, new: &Object<T>, classes: &[Class]) -> Option<Actor> {
    let only_status = is_only_status(classes);
    let fresh = new.writers().iter().filter(|writer| !old.writers().contains(writer));
    latest(new, fresh, only_status).or_else(|| latest(new, new.writers(), only_status))
}

/// Who has made two changes that are told as one: who has made the object, or who has changed more than its status, or who
/// was the last.
pub(super) fn of_both(earlier: &Change, later: &Change) -> Option<Actor> {
    let is_answer = is_only_status(&later.classes) && !is_only_status(&earlier.classes);
    let is_of_first = is_answer || earlier.what == What::Added;
    let (this, or_else) = if is_of_first { (earlier, later) } else { (later, earlier) };
    this.actor.clone().or_else(|| or_else.actor.clone())
}

/// Whether nothing but the status has changed, which few write.
fn is_only_status(classes: &[Class]) -> bool {
    let of_status = |class: &Class| matches!(class, Class::Rollout | Class::Condition | Class::Status);
    !classes.is_empty() && classes.iter().all(of_status)
}

/// The last one, of those that are most likely.
fn latest<'a, K>(
    object: &Object<K>,
    writers: impl IntoIterator<Item = &'a WriterRef>,
    only_status: bool,
) -> Option<Actor> {
    let rank = |writer: &&WriterRef| -> (bool, bool, Option<Timestamp>) {
        let suits = (&*writer.subresource == "status") == only_status;
        let is_note =
            &*writer.manager == NOTES && writer.subresource.is_empty() && object.controller().is_none();
        (suits, !is_note, writer.time)
    };
    let writer = writers.into_iter().max_by_key(rank)?.clone();
    Some(Actor { manager: writer.manager.into(), op: writer.operation.into() })
}
