//! Decoded views of objects, shared, and kept for as long as the budget says.
//!
//! Whoever asks for a view of an object gets an `Arc`. As long as anyone holds it, or the budget keeps it, everyone
//! who asks gets the same one. Otherwise it is decoded again. This holds for every type by itself; one object may have
//! views of several types.
//!
//! - [`ViewBudget::None`] keeps nothing: a view lives as long as its holders.
//! - [`ViewBudget::Recent`] keeps views up to a number of bytes, by their weights, never more. Where there is no room, one that
//!   is decoded for the first time is kept for a moment; for one that is decoded again, those go that were not read since they
//!   were last looked at, oldest first. A view heavier than the whole budget is handed out and not kept. One that had to go
//!   while it was held is shared as long as it is held, and not kept again. One that is looked at again and again is pinned: it
//!   does not go before its slot does, also when nobody looks at it any more. What is pinned counts as kept, and is never more
//!   than half of the budget; where that is full, the others that are looked at are kept as all are. A view that is heavier than
//!   what is not pinned is not kept.
//! - [`ViewBudget::All`] keeps a view as long as its slot.
//!
//! A dropped [`Slot`] (its version of the object is gone, or was packed anew) lets go of its views at once. What holders have stays
//! theirs. A view that nobody has any more may leave its outermost allocation behind for a while: there are never more
//! of those than views that are held, or a small constant.
//!
//! Decoding takes place outside of all locks: it may panic, fail, take its time, or read other views. If two threads
//! decode the same view at once, the first to finish gives the view to both. A hit on what is kept takes no lock. What is
//! kept can be lent, too: nothing is counted then that others read. Of what is pinned, and with [`ViewBudget::All`], nothing is
//! written at all to lend it. To pin a view takes the lock, where nobody has it: who looks at a view waits for nobody.

use std::sync::{Arc, PoisonError, TryLockError};

mod cell;
mod ring;

use cell::{Counters, Place};
use ring::Ring;

pub(crate) use cell::{Held, Slot};

use crate::sync::Mutex;

/// Which decoded views of an informer's objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViewBudget {
    /// None: a view lives as long as someone holds it. For those who look at each object once.
    None,
    /// Recently read ones, up to about so many bytes. The default is 16 MiB: some thousand objects of a usual size, no
    /// matter how many there are. Where there is no room, one that is decoded for the first time is kept for a moment, and stays
    /// when it is decoded again: what is read once drives nothing out. Those that are [looked](crate::object::Object::look) at
    /// again and again stay until their objects change or are packed anew, up to half of the bytes: they are the cheapest to
    /// read. The other half goes to what is read now; a view that does not fit into it may not be kept.
    Recent(usize),
    /// All that were ever read, until their objects change or are packed anew. For those who read everything all the time.
    All,
}

impl Default for ViewBudget {
    fn default() -> Self {
        Self::Recent(16 * 1024 * 1024)
    }
}

/// Keeps the views of one informer's objects.
#[derive(Debug)]
pub(crate) struct Views {
    budget: ViewBudget,
    counters: Arc<Counters>,
    /// Taken after a decode, and when a view is pinned; nobody waits for it on a hit. May be held while a view's own lock is
    /// taken; not the other way round.
    ring: Mutex<Ring>,
}

/// What [`Views`] has done, and what it keeps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ViewStats {
    /// Views that did not need to be decoded.
    pub(crate) hits: u64,
    /// Views that were decoded, with success.
    pub(crate) decodes: u64,
    /// Views that are kept.
    pub(crate) kept_views: usize,
    /// What they weigh.
    pub(crate) kept_bytes: usize,
}

impl Views {
    pub(crate) fn new(budget: ViewBudget) -> Self {
        Self { budget, counters: Arc::default(), ring: Mutex::default() }
    }

    /// The view of the object that the slot belongs to, if it is kept for a while. It is not counted as one that was handed
    /// out: to count is to write, with every read.
    pub(crate) fn lend<T: 'static>(&self, slot: &Slot) -> Option<Held<T>> {
        let place = slot.find::<T>()?;
        let held = place.held::<T>()?;
        if place.is_looked_at_often() && held.weight() <= self.room_to_pin() {
            self.promote(slot, place);
        }
        Some(held)
    }

    /// What a view may weigh to be pinned. It grows at any time, and shrinks under the ring's lock.
    fn room_to_pin(&self) -> usize {
        match self.budget {
            ViewBudget::Recent(limit) => (limit / 2).saturating_sub(self.counters.pinned_bytes()),
            ViewBudget::None | ViewBudget::All => 0,
        }
    }

    /// Pins a view that is kept. If someone has the lock, it is left to the next who looks.
    #[cold]
    fn promote(&self, slot: &Slot, place: &Place) {
        let _ring = match self.ring.try_lock() {
            Ok(ring) => ring,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        place.promote(self.room_to_pin());
        slot.bring_near(place);
    }

    /// The view of the object that the slot belongs to; decoded if need be. All calls with one slot must be with the
    /// same `Views`.
    ///
    /// # Errors
    ///
    /// What `decode` gives. Nothing is remembered of it.
    pub(crate) fn get_or_decode<T: Send + Sync + 'static, E>(
        &self,
        slot: &Slot,
        weight: impl FnOnce(&T) -> usize,
        decode: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let place = slot.place::<T>(&self.counters);
        if let Some(view) = place.get() {
            self.counters.hit();
            return Ok(view);
        }
        let view = Arc::new(decode()?);
        let weight = cell::whole_weight(weight(&view));
        self.counters.decoded();

        let limit = match self.budget {
            ViewBudget::All => {
                let view = place.pin(view, weight);
                slot.bring_near(place);
                return Ok(view);
            }
            ViewBudget::Recent(limit) => limit,
            ViewBudget::None => 0,
        };
        // What has to go is dropped after the lock: dropping may take its time, or read views.
        let mut gone = Vec::new();
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        // Views are filled in only under this lock: if there is none now, there is none until it is released.
        if let Some(first) = place.get() {
            return Ok(first);
        }
        let cell = place.cell();
        // All but what is pinned can be made to go, and nothing is pinned meanwhile.
        if weight <= limit.saturating_sub(self.counters.pinned_bytes()) {
            ring.admit(Arc::clone(cell), weight, limit, &self.counters, &mut gone);
            cell.keep_or_get(Arc::clone(&view), weight);
        } else {
            cell.lend(&view);
            ring.lent(Arc::clone(cell));
        }
        drop(ring);
        Ok(view)
    }

    pub(crate) fn stats(&self) -> ViewStats {
        self.counters.stats()
    }
}

#[cfg(test)]
mod tests;
