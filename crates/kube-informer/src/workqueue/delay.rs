//! Keys that wait for their time.
//!
//! Deadlines in order: those that are due are found at once, and a key that gets an earlier one or none leaves nothing
//! behind. Of equal deadlines, the one that was set first is due first.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::table::Slot;

#[derive(Default)]
pub(super) struct Delays {
    /// The slot is the last of it, so that all of it is one key of the set.
    deadlines: BTreeSet<(Deadline, Slot)>,
    /// How many were set.
    set: u64,
}

/// When a key is due. No two are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    order: u64,
}

impl Delays {
    pub(super) fn is_empty(&self) -> bool {
        self.deadlines.is_empty()
    }

    /// The first deadline.
    pub(super) fn earliest(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| deadline.at)
    }

    /// What the slot's owner keeps, to take it back.
    pub(super) fn insert(&mut self, at: Instant, slot: Slot) -> Deadline {
        self.set += 1;
        let deadline = Deadline { at, order: self.set };
        self.deadlines.insert((deadline, slot));
        deadline
    }

    pub(super) fn remove(&mut self, deadline: Deadline, slot: Slot) {
        self.deadlines.remove(&(deadline, slot));
    }

    /// Takes out the first one, if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Deadline, Slot)> {
        self.earliest().filter(|at| *at <= now)?;
        self.deadlines.pop_first()
    }

    /// Takes out the first one, due or not.
    pub(super) fn pop(&mut self) -> Option<Slot> {
        self.deadlines.pop_first().map(|(_, slot)| slot)
    }
}
