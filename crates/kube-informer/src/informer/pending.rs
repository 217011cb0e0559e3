//! What one registration has not been told yet, one entry per object.
//!
//! Of several changes of an object, one is left that leads from what was told last to what there is now: the oldest old,
//! the newest new. An object that came and went unseen leaves nothing. One that went and came again stays two events,
//! first the end of the old one.
//!
//! So there are never more entries than objects that were told and are not told to be gone, plus objects that there are.
//! Entries come out in the order in which their objects first changed.

use std::collections::{HashMap, VecDeque};

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
        let key = ByKey(object.clone());
        // Taken out first: the map would hold on to the version that it knows the object by.
        match self.places.remove(&key) {
            None => {
                self.places.insert(key, self.first + self.entries.len() as u64);
                self.initial += usize::from(initial && matches!(applied, Applied::Added { .. }));
                self.entries.push_back(Some(Entry::of(applied, initial)));
            }
            Some(number) => {
                let place = usize::try_from(number - self.first).unwrap_or(usize::MAX);
                let Some(slot) = self.entries.get_mut(place) else { return };
                let was_initial = slot.as_ref().is_some_and(Entry::is_initial);
                *slot = slot.take().and_then(|entry| entry.then(applied));
                if slot.is_some() {
                    self.places.insert(key, number);
                } else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Codec, Encoding, Rules};
    use crate::object::Intake;

    #[test]
    fn of_an_object_that_changes_again_and_again_the_oldest_and_the_newest_are_held_and_no_other() {
        let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap();
        let mut intake = Intake::new(codec);
        let mut versions: Vec<Object> = (0..4)
            .map(|version| {
                let text = format!(r#"{{"metadata":{{"name":"a","resourceVersion":"{version}"}}}}"#);
                intake.object(text.as_bytes()).unwrap()
            })
            .collect();
        let weak: Vec<_> = versions.iter().map(Object::downgrade).collect();
        let mut pending = Pending::default();
        for pair in versions.windows(2) {
            let (old, new) = (pair[0].clone(), pair[1].clone());
            pending.add(&Applied::Updated { old, new }, false);
        }
        versions.clear();
        let held: Vec<bool> = weak.iter().map(|object| object.upgrade().is_some()).collect();
        assert_eq!(held, [true, false, false, true]);
        let Some(Event::Updated { old, new, .. }) = pending.next() else { panic!("an update") };
        assert_eq!((&*old.version().to_string(), &*new.version().to_string()), ("0", "3"));
        assert!(pending.next().is_none() && pending.len() == 0);
    }
}
