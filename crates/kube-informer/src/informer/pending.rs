//! What one registration has not been told yet, one entry per object.
//!
//! Of several changes of an object, one is left that leads from what was told last to what there is now: the oldest old,
//! the newest new. An object that came and went unseen leaves nothing. One that went and came again stays two events,
//! first the end of the old one.
//!
//! So there are never more entries than objects that were told and are not told to be gone, plus objects that there are.
//! Entries come out in the order in which their objects first changed.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry as MapEntry, HashMap};

use super::event::Event;
use crate::cache::Applied;
use crate::object::{ByKey, Object};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Where each object's entry is: counted from the first that there ever was.
    places: HashMap<ByKey, u64>,
    /// `None` where an object came and went.
    entries: VecDeque<Option<Entry>>,
    /// The number of the first of them.
    first: u64,
    /// How many are objects of the beginning.
    initial: usize,
}

#[derive(Debug)]
enum Entry {
    Added { new: Object, initial: bool },
    Updated { old: Object, new: Object },
    Deleted { last: Object, certain: bool },
    Recreated { last: Object, certain: bool, new: Object },
}

impl Pending {
    /// How many objects there is something to tell of.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is an object of the beginning that was not told yet.
    pub(super) fn has_initial(&self) -> bool {
        self.initial > 0
    }

    /// Adds a change.
    pub(super) fn add(&mut self, applied: &Applied, initial: bool) {
        let object = match applied {
            Applied::Added { new } | Applied::Updated { new, .. } => new,
            Applied::Deleted { last, .. } => last,
        };
        match self.places.entry(ByKey(object.clone())) {
            MapEntry::Vacant(vacant) => {
                vacant.insert(self.first + self.entries.len() as u64);
                self.initial += usize::from(initial && matches!(applied, Applied::Added { .. }));
                self.entries.push_back(Some(Entry::of(applied, initial)));
            }
            MapEntry::Occupied(occupied) => {
                let place = usize::try_from(occupied.get() - self.first).unwrap_or(usize::MAX);
                let Some(slot) = self.entries.get_mut(place) else { return };
                let was_initial = slot.as_ref().is_some_and(Entry::is_initial);
                *slot = slot.take().and_then(|entry| entry.then(applied));
                if slot.is_none() {
                    occupied.remove();
                    self.initial -= usize::from(was_initial);
                }
            }
        }
        self.sweep();
    }

    /// The next event.
    pub(super) fn next(&mut self) -> Option<Event> {
        loop {
            let entry = match self.entries.front_mut()? {
                // Two events: the second one is still pending.
                Some(Entry::Recreated { .. }) => {
                    let Some(Some(Entry::Recreated { last, certain, new })) = self.entries.pop_front() else {
                        return None;
                    };
                    self.entries.push_front(Some(Entry::Added { new, initial: false }));
                    return Some(Event::Deleted { last, certain });
                }
                _ => self.entries.pop_front()?,
            };
            self.first += 1;
            let Some(entry) = entry else { continue };
            self.initial -= usize::from(entry.is_initial());
            let (object, event) = match entry {
                Entry::Added { new, initial } => (new.clone(), Event::Added { new, initial }),
                Entry::Updated { old, new } => (new.clone(), Event::Updated { old, new, resync: false }),
                Entry::Deleted { last, certain } | Entry::Recreated { last, certain, .. } => {
                    (last.clone(), Event::Deleted { last, certain })
                }
            };
            self.places.remove(&ByKey(object));
            return Some(event);
        }
    }

    /// Places of objects that came and went are given back before they are the most.
    fn sweep(&mut self) {
        if self.entries.len() < 64 || self.entries.len() < 2 * self.places.len() {
            return;
        }
        self.entries.retain(Option::is_some);
        for (place, entry) in self.entries.iter().enumerate() {
            let Some(entry) = entry else { continue };
            if let Some(at) = self.places.get_mut(&ByKey(entry.object().clone())) {
                *at = self.first + place as u64;
            }
        }
    }
}

impl Entry {
    fn of(applied: &Applied, initial: bool) -> Self {
        match applied.clone() {
            Applied::Added { new } => Self::Added { new, initial },
            Applied::Updated { old, new } => Self::Updated { old, new },
            Applied::Deleted { last, certain } => Self::Deleted { last, certain },
        }
    }

    fn is_initial(&self) -> bool {
        matches!(self, Self::Added { initial: true, .. })
    }

    fn object(&self) -> &Object {
        match self {
            Self::Added { new, .. } | Self::Updated { new, .. } | Self::Recreated { new, .. } => new,
            Self::Deleted { last, .. } => last,
        }
    }

    /// What both make together; `None` if that is nothing.
    fn then(self, next: &Applied) -> Option<Self> {
        Some(match (self, next.clone()) {
            (Self::Added { initial, .. }, Applied::Added { new } | Applied::Updated { new, .. }) => {
                Self::Added { new, initial }
            }
            (Self::Added { .. }, Applied::Deleted { .. }) => return None,
            (Self::Updated { old, .. }, Applied::Added { new } | Applied::Updated { new, .. }) => {
                Self::Updated { old, new }
            }
            (Self::Updated { .. } | Self::Deleted { .. }, Applied::Deleted { last, certain }) => {
                Self::Deleted { last, certain }
            }
            (
                Self::Deleted { last, certain } | Self::Recreated { last, certain, .. },
                Applied::Added { new } | Applied::Updated { new, .. },
            ) => Self::Recreated { last, certain, new },
            (Self::Recreated { last, certain, .. }, Applied::Deleted { .. }) => {
                Self::Deleted { last, certain }
            }
        })
    }
}
