//! What was told about each object, and what is to be told.
//!
//! Whoever hears of objects puts in what is now; whoever tells takes out the steps that lead there from what was told last:
//! however much was heard in between, one update, or an end, a beginning, or both. An object of which the end was told, or
//! whose beginning never was, is forgotten. So there is one entry per object that there is, or was told to be.

use std::collections::hash_map::Entry as Place;
use std::collections::{HashMap, HashSet};

use kube_informer::object::{Object, ObjectKey, Uid};

/// What is told apart by key, UID and version: objects, and in tests anything that has these.
pub(super) trait Tracked: Clone {
    fn key(&self) -> ObjectKey;
    fn uid(&self) -> Uid;
    /// Whether it is the same version.
    fn is_same(&self, other: &Self) -> bool;
}

impl<K> Tracked for Object<K> {
    fn key(&self) -> ObjectKey {
        Object::key(self).to_key()
    }

    fn uid(&self) -> Uid {
        Object::uid(self).clone()
    }

    fn is_same(&self, other: &Self) -> bool {
        Object::is_same(self, other)
            || (Object::uid(self) == Object::uid(other) && self.version() == other.version())
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Tracker<T> {
    entries: HashMap<ObjectKey, Entry<T>>,
    /// Those that are being told of.
    in_hand: HashSet<ObjectKey>,
}

#[derive(Debug)]
struct Entry<T> {
    /// What was told.
    told: Option<T>,
    /// What is now.
    now: Option<T>,
    /// The end of what was told, and whether the server said so.
    end: Option<(T, bool)>,
    /// What was heard since something was told.
    heard: u32,
}

/// What is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step<T> {
    Add { new: T },
    Update { old: T, new: T },
    Delete { last: T, certain: bool },
}

impl<T: Tracked> Tracker<T> {
    /// An object is there at the beginning: that needs not be told.
    pub(super) fn begin(&mut self, new: T) {
        match self.entries.entry(new.key()) {
            Place::Vacant(vacant) => {
                vacant.insert(Entry { told: Some(new.clone()), now: Some(new), end: None, heard: 0 });
            }
            // It was heard of before: then it is told like anything else, with the next step.
            Place::Occupied(mut occupied) => occupied.get_mut().now = Some(new),
        }
    }

    /// An object is new, or another.
    pub(super) fn is(&mut self, new: T) {
        let entry = self.entries.entry(new.key()).or_default();
        entry.heard = entry.heard.saturating_add(1);
        entry.now = Some(new);
    }

    /// An object is gone.
    pub(super) fn was(&mut self, last: T, certain: bool) {
        let Place::Occupied(mut occupied) = self.entries.entry(last.key()) else { return };
        let entry = occupied.get_mut();
        entry.heard = entry.heard.saturating_add(1);
        entry.now = None;
        match &entry.told {
            None => drop(occupied.remove()),
            Some(told) if told.uid() == last.uid() => entry.end = Some((last, certain)),
            // The end of one whose beginning was not told.
            Some(_) => {}
        }
    }

    /// What is to be told about an object, in order, and of how many changes that is the sum. It counts as told from now on,
    /// and as in hand until it is [done](Self::done).
    pub(super) fn take(&mut self, key: &ObjectKey) -> (Vec<Step<T>>, u32) {
        let Some(entry) = self.entries.get_mut(key) else { return (Vec::new(), 0) };
        let mut steps = Vec::new();
        if let Some(old) = entry.told.take() {
            let end = entry.end.take();
            match &entry.now {
                Some(new) if end.is_none() && new.uid() == old.uid() => {
                    if !new.is_same(&old) {
                        steps.push(Step::Update { old, new: new.clone() });
                    }
                    entry.told = Some(new.clone());
                }
                _ => {
                    // Where nobody said that it ended, something else has its name by now.
                    let (last, certain) = end.unwrap_or((old, false));
                    steps.push(Step::Delete { last, certain });
                }
            }
        }
        if entry.told.is_none() {
            if let Some(new) = &entry.now {
                steps.push(Step::Add { new: new.clone() });
            }
            entry.told = entry.now.clone();
        }
        let heard = std::mem::take(&mut entry.heard);
        if entry.told.is_none() {
            self.entries.remove(key);
        }
        if !steps.is_empty() {
            self.in_hand.insert(key.clone());
        }
        (steps, heard)
    }

    /// What was taken is told.
    pub(super) fn done(&mut self, key: &ObjectKey) {
        self.in_hand.remove(key);
    }

    /// How many objects there is something to tell of, or being told.
    pub(super) fn pending(&self) -> usize {
        let waits = |(key, entry): &(&ObjectKey, &Entry<T>)| entry.heard > 0 && !self.in_hand.contains(*key);
        self.entries.iter().filter(waits).count() + self.in_hand.len()
    }
}

impl<T> Default for Tracker<T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), in_hand: HashSet::new() }
    }
}

impl<T> Default for Entry<T> {
    fn default() -> Self {
        Self { told: None, now: None, end: None, heard: 0 }
    }
}

#[cfg(test)]
mod tests;
