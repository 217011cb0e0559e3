//! What a source was told, in case that it misses something.
//!
//! A source that falls too far behind is told of a gap, and then of everything that there is. What it cannot be told is
//! what went away or was someone else's before: those keys must be queued, too. To remember every object would double the
//! cache. Instead, a snapshot of it is kept from a moment when everything in it had been told, which costs nothing as long
//! as little has changed since; and the objects that were told after it.

use std::collections::HashSet;

use crate::cache::Snapshot;
use crate::informer::Event;
use crate::object::{ByKey, Object};

/// See the module.
#[derive(Default)]
pub(super) struct Memory {
    /// All of it has been told, but for what is about to be, at the beginning.
    told: Option<Snapshot>,
    /// What was told beyond it, each object as it was told last.
    since: HashSet<ByKey>,
    /// A newer state, and after how many more events all of it has been told.
    ahead: Option<(Snapshot, usize)>,
}

/// A newer state is looked for when so many objects were told beyond the one that there is.
const ENOUGH: usize = 1024;

impl Memory {
    /// It begins with this state, or a little before it.
    pub(super) fn begin(&mut self, now: Snapshot) {
        *self = Self { told: Some(now), ..Self::default() };
    }

    /// Everything was told up to this state.
    pub(super) fn quiet(&mut self, now: Snapshot) {
        self.begin(now);
    }

    /// An event was told. `look` gives the newest state, and how many events lead to it.
    pub(super) fn saw(&mut self, event: &Event, look: impl FnOnce() -> (Snapshot, usize)) {
        match event {
            Event::Updated { resync: true, .. } | Event::Gap { .. } => return,
            Event::Added { new, .. } | Event::Updated { new, .. } => {
                if !self.told.as_ref().is_some_and(|told| has(told, new)) {
                    self.since.replace(ByKey(new.clone()));
                }
            }
            Event::Deleted { last, .. } => {
                self.since.remove(&ByKey(last.clone()));
            }
        }
        match &mut self.ahead {
            Some((_, left @ 1..)) => *left -= 1,
            Some(_) => {
                self.told = self.ahead.take().map(|(state, _)| state);
                if let Some(told) = &self.told {
                    self.since.retain(|ByKey(object)| !has(told, object));
                }
            }
            None if self.since.len() >= ENOUGH => self.ahead = Some(look()),
            None => {}
        }
    }

    /// What is known: each object as it was told last, some also as they were before, and some that are gone.
    pub(super) fn known(&self) -> impl Iterator<Item = Object> + use<> {
        let since: Vec<Object> = self.since.iter().map(|ByKey(object)| object.clone()).collect();
        self.told.clone().into_iter().flat_map(|told| told.list().iter()).chain(since)
    }

    /// Something was missed; what there is `now` is told next. What was known before, in versions of which each may have
    /// been followed by something that was missed.
    pub(super) fn missed(&mut self, now: Snapshot) -> impl Iterator<Item = Object> + use<> {
        let Self { told, since, .. } = std::mem::take(self);
        self.begin(now);
        let since = since.into_iter().map(|ByKey(object)| object);
        told.into_iter().flat_map(|told| told.list().iter()).chain(since)
    }
}

/// Whether a state has this version of the object.
fn has(state: &Snapshot, object: &Object) -> bool {
    let found = state.get(object.namespace(), object.name());
    found.is_some_and(|found| found.version() == object.version() && found.uid() == object.uid())
}
