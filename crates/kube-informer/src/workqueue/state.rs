//! What the queue knows of each key, and what becomes of it. No waiting, no clock: the time is told.
//!
//! A key is known while it is *pending* (it shall run, at once or at a deadline), or *running* (a worker has it), or both.
//! It is pending once at most, whatever was added how often: the earliest time and the highest priority win.
//!
//! ```text
//!               add                        take
//!   unknown ──────────▶ ready ─────────────────────────▶ running ──done──▶ unknown
//!      │                  ▲ ▲                            │ add, add after
//!      │ add after   due, │ │                            ▼
//!      └──────▶ delayed ──┘ └──────────done──── running and ready
//!                 ▲        add                            ▲ due, add
//!                 └────────────────────done──── running and delayed
//! ```
//!
//! Only a key that is ready and not running is in line, so that no other can be taken.

use std::hash::Hash;

use tokio::time::Instant;

use super::delay::Delays;
use super::hash::{Hashed, Hasher};
use super::priority::{Priority, Ready};
use super::table::{BySlot, Slot, Table};

/// So many delayed keys become ready while the lock is held. The rest are due the next time.
const DUE_AT_ONCE: usize = 1024;

/// Room for so many keys is kept when the queue is empty.
const ROOM_KEPT: usize = 4096;

pub(super) struct State<K> {
    /// The keys that are known.
    entries: Table<K, Entry>,
    ready: Ready,
    delays: Delays,
    /// Since when keys are ready, where that is known.
    since: BySlot<Instant>,
    /// How many keys are ready, in line or running. A worker may leave a closed queue when there are none.
    depth: usize,
    /// How many of these are kept by someone who does nothing with them.
    resting: usize,
    running: usize,
    closed: bool,
}

struct Entry {
    pending: Pending,
    running: bool,
    /// Whoever has it only keeps it.
    rests: bool,
    /// The highest that it was added with since it was taken.
    priority: Priority,
}

/// Times are kept apart: what is looked at each time that a key is added again should be small.
#[derive(Clone, Copy)]
enum Pending {
    /// Not to run again.
    No,
    /// To run as soon as it can; whether it is known since when.
    Ready { timed: bool },
    /// To run at its deadline.
    Delayed,
}

/// When a key shall run.
#[derive(Debug, Clone, Copy)]
pub(super) enum When {
    /// As soon as it can; what the time is, if someone wants to know.
    Now(Option<Instant>),
    At(Instant),
}

/// What changed, for those who wait.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Changed {
    /// The key became ready, and was not.
    pub(super) added: bool,
    /// There is one more key in line.
    pub(super) in_line: bool,
    /// There is an earlier deadline than before.
    pub(super) earliest: bool,
}

/// A key for a worker.
pub(super) struct Taken<K> {
    pub(super) slot: Slot,
    pub(super) key: K,
    pub(super) priority: Priority,
    /// Since when it was ready.
    pub(super) since: Option<Instant>,
}

/// What became of a key that a worker had.
pub(super) enum Done<K> {
    /// It is not known any more. Here it is, to be dropped without the lock.
    Forgotten(K),
    InLine,
    Delayed,
}

impl<K: Hash + Eq + Clone> State<K> {
    pub(super) fn new(patience: u32) -> Self {
        Self {
            entries: Table::new(),
            ready: Ready::new(patience),
            delays: Delays::default(),
            since: BySlot::default(),
            depth: 0,
            resting: 0,
            running: 0,
            closed: false,
        }
    }

    /// How many keys a worker could take now.
    pub(super) fn in_line(&self) -> usize {
        self.ready.len()
    }

    pub(super) fn has_in_line(&self) -> bool {
        !self.ready.is_empty()
    }

    #[cfg(test)]
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// How many keys wait for workers: those that are ready, and that nobody keeps without working.
    pub(super) fn awaited(&self) -> usize {
        self.depth - self.resting
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Nothing is left for workers, and nothing comes: what they have runs no more after that.
    pub(super) fn is_over(&self) -> bool {
        self.closed && self.depth == 0
    }

    /// Nothing is left to do now.
    pub(super) fn is_idle(&self) -> bool {
        self.depth == 0 && self.running == 0
    }

    pub(super) fn earliest(&self) -> Option<Instant> {
        self.delays.earliest()
    }

    pub(super) fn has_delayed(&self) -> bool {
        !self.delays.is_empty()
    }

    /// For how many keys there is room.
    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.entries.room()
    }

    /// What [`add`](Self::add) wants the keys' hashes from.
    pub(super) fn hasher(&self) -> &Hasher {
        self.entries.hasher()
    }

    pub(super) fn add(&mut self, hash: Hashed, key: K, priority: Priority, when: When) -> Changed {
        if self.closed {
            return Changed::default();
        }
        match self.entries.find(hash, &key) {
            Some(slot) => self.add_known(slot, priority, when),
            None => {
                let entry = Entry { pending: Pending::No, running: false, rests: false, priority };
                let slot = self.entries.insert(hash, key, entry);
                self.schedule(slot, when)
            }
        }
    }

    fn add_known(&mut self, slot: Slot, priority: Priority, when: When) -> Changed {
        let entry = self.entries.get_mut(slot);
        match entry.pending {
            // ## Running => running and ready, or running and delayed
            Pending::No => {
                entry.priority = priority;
                self.schedule(slot, when)
            }
            // ## Ready => ready; at the end of the line of a higher priority
            Pending::Ready { .. } => {
                if priority > entry.priority {
                    let (before, in_line) = (entry.priority, !entry.running);
                    entry.priority = priority;
                    if in_line {
                        self.ready.remove(&mut self.entries, slot, before);
                        self.ready.push(&mut self.entries, slot, priority);
                    }
                }
                Changed::default()
            }
            Pending::Delayed => {
                entry.priority = entry.priority.max(priority);
                match (self.delays.of(slot), when) {
                    // ## Delayed => delayed: not before what was asked for first
                    (Some(before), When::At(at)) if before <= at => Changed::default(),
                    // ## Delayed => ready, or delayed until an earlier time
                    _ => {
                        self.delays.remove(slot);
                        self.schedule(slot, when)
                    }
                }
            }
        }
    }

    /// Makes an entry pending that is in no line and has no deadline.
    fn schedule(&mut self, slot: Slot, when: When) -> Changed {
        let entry = self.entries.get_mut(slot);
        match when {
            When::Now(now) => {
                entry.pending = Pending::Ready { timed: now.is_some() };
                if let Some(now) = now {
                    self.since.set(slot, now);
                }
                self.depth += 1;
                self.resting += usize::from(entry.rests);
                let in_line = !entry.running;
                if in_line {
                    let priority = entry.priority;
                    self.ready.push(&mut self.entries, slot, priority);
                }
                Changed { added: true, in_line, earliest: false }
            }
            When::At(at) => {
                let earliest = self.delays.earliest().is_none_or(|earliest| at < earliest);
                entry.pending = Pending::Delayed;
                self.delays.insert(at, slot);
                Changed { added: false, in_line: false, earliest }
            }
        }
    }

    /// Makes keys ready that are due, but not too many at once. Returns how many it were.
    pub(super) fn make_due_ready(&mut self, now: Instant) -> usize {
        let mut count = 0;
        while count < DUE_AT_ONCE
            && let Some((at, slot)) = self.delays.pop_due(now)
        {
            // It waited for a worker since it was due, not since someone looked.
            self.schedule(slot, When::Now(Some(at)));
            count += 1;
        }
        count
    }

    /// The next key. It is the worker's until `done`.
    pub(super) fn take(&mut self) -> Option<Taken<K>> {
        let key = self.entries.key(self.ready.first()?).clone();
        let slot = self.ready.pop(&mut self.entries)?;
        let entry = self.entries.get_mut(slot);
        let since = match entry.pending {
            Pending::Ready { timed: true } => self.since.get(slot),
            Pending::Ready { timed: false } | Pending::No | Pending::Delayed => None,
        };
        entry.pending = Pending::No;
        entry.running = true;
        self.depth -= 1;
        self.running += 1;
        Some(Taken { slot, key, priority: entry.priority, since })
    }

    /// The worker has done its work, and keeps the key.
    pub(super) fn rest(&mut self, slot: Slot) {
        let entry = self.entries.get_mut(slot);
        if !std::mem::replace(&mut entry.rests, true) {
            self.resting += usize::from(matches!(entry.pending, Pending::Ready { .. }));
        }
    }

    /// The worker is done with it.
    pub(super) fn done(&mut self, slot: Slot) -> Done<K> {
        self.running -= 1;
        let entry = self.entries.get_mut(slot);
        entry.running = false;
        let rested = std::mem::take(&mut entry.rests);
        match entry.pending {
            Pending::No => Done::Forgotten(self.forget(slot)),
            Pending::Ready { .. } => {
                let priority = entry.priority;
                self.resting -= usize::from(rested);
                self.ready.push(&mut self.entries, slot, priority);
                Done::InLine
            }
            Pending::Delayed => Done::Delayed,
        }
    }

    /// Takes no more keys, and lets go of those that are not due yet. What is ready stays.
    pub(super) fn close(&mut self, now: Instant) -> usize {
        self.closed = true;
        let mut count = 0;
        loop {
            match self.make_due_ready(now) {
                0 => break,
                due => count += due,
            }
        }
        while let Some(slot) = self.delays.pop() {
            let entry = self.entries.get_mut(slot);
            entry.pending = Pending::No;
            if !entry.running {
                self.forget(slot);
            }
        }
        count
    }

    /// Lets go of a key that is neither pending nor running.
    fn forget(&mut self, slot: Slot) -> K {
        let key = self.entries.remove(slot);
        // An initial list of a million keys happens once; its room is not held ever after.
        if self.entries.shrink(ROOM_KEPT) {
            self.delays.clear();
            self.since.clear();
        }
        key
    }
}
