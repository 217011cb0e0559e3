//! Keys that wait for their time.
//!
//! Deadlines in order: those that are due are found at once, and a key that gets an earlier one or none leaves nothing
//! behind. Of equal deadlines, the one that was set first is due first.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::table::{BySlot, Slot};

#[derive(Default)]
pub(super) struct Delays {
    /// The slot is the last of it, so that all of it is one key of the set.
    deadlines: BTreeSet<(Deadline, Slot)>,
    /// The same, by slot, to take them back. What was popped is still there, and nobody asks for it.
    of: BySlot<Deadline>,
    /// How many were set.
    set: u64,
}

/// When a key is due. No two are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Deadline {
    at: Instant,
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

    /// For a slot that has none.
    pub(super) fn insert(&mut self, at: Instant, slot: Slot) {
        self.set += 1;
        let deadline = Deadline { at, order: self.set };
        self.deadlines.insert((deadline, slot));
        self.of.set(slot, deadline);
    }

    /// The deadline of a slot that has one.
    pub(super) fn of(&self, slot: Slot) -> Option<Instant> {
        self.of.get(slot).map(|deadline| deadline.at)
    }

    /// Takes back that of a slot that has one.
    pub(super) fn remove(&mut self, slot: Slot) {
        if let Some(deadline) = self.of.get(slot) {
            self.deadlines.remove(&(deadline, slot));
        }
    }

    /// Takes out the first one, if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, Slot)> {
        self.earliest().filter(|at| *at <= now)?;
        self.deadlines.pop_first().map(|(deadline, slot)| (deadline.at, slot))
    }

    /// Takes out the first one, due or not.
    pub(super) fn pop(&mut self) -> Option<Slot> {
        self.deadlines.pop_first().map(|(_, slot)| slot)
    }

    /// Gives back the room, when there are no slots.
    pub(super) fn clear(&mut self) {
        self.of.clear();
    }
}
