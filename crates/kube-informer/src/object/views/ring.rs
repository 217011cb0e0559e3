//! Which views go when there is no room.
//!
//! Most views are read once, by who is told of an object. To keep each of them would drive out one that others read again, and
//! the memory that it gives back has not been touched for long: to let it go takes as long as to decode a view. So where there
//! is no room, a view that is decoded for the first time stays only until a few others were, and leaves warm memory behind.
//! One that is decoded again stays, and others go for it: second chance, oldest first.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::cell::{Cell, Counters, Released};

/// Below so many cells nothing is swept.
const FEW: usize = 64;

/// So many views that were decoded once stay where there is no room: those who are told of an object look at it one after the
/// other. And not more than one for so many others.
const ONCE: usize = 16;
const PART: usize = 4;

/// The cells that may keep a view, oldest first; and those whose view others hold.
pub(super) struct Ring {
    /// Each cell at most once; some may be empty, because their slot is gone.
    kept: VecDeque<Arc<Cell>>,
    sweep_kept_at: usize,
    /// Those that were decoded once when there was no room: not more than [`ONCE`], oldest first.
    once: VecDeque<Arc<Cell>>,
    lent: Vec<Arc<Cell>>,
    sweep_lent_at: usize,
}

impl Default for Ring {
    fn default() -> Self {
        Self {
            kept: VecDeque::new(),
            sweep_kept_at: FEW,
            once: VecDeque::new(),
            lent: Vec::new(),
            sweep_lent_at: FEW,
        }
    }
}

impl Ring {
    /// A cell that is about to keep a view of this weight. What has to go for it goes.
    pub(super) fn admit(
        &mut self,
        cell: Arc<Cell>,
        weight: usize,
        limit: usize,
        counters: &Counters,
        gone: &mut Vec<Arc<dyn Any + Send + Sync>>,
    ) {
        let limit = limit.saturating_sub(weight);
        if cell.is_decoded_again() || counters.kept_bytes() <= limit {
            self.make_room(limit, counters, gone);
            self.push(cell);
            return;
        }
        // Where few views fit, few of them are those.
        while counters.kept_bytes() > limit
            && self.once.len() >= ONCE.min(1 + self.kept.len() / PART)
            && let Some(oldest) = self.once.pop_front()
        {
            self.release(oldest, gone);
        }
        self.make_room(limit, counters, gone);
        self.once.push_back(cell);
    }

    /// Lets views go until those that are kept weigh no more than `limit`.
    fn make_room(&mut self, limit: usize, counters: &Counters, gone: &mut Vec<Arc<dyn Any + Send + Sync>>) {
        // Once around: readers that are faster than this loop cannot make it run for ever.
        let mut chances = self.kept.len();
        while counters.kept_bytes() > limit {
            let Some(cell) = self.kept.pop_front().or_else(|| self.once.pop_front()) else { return };
            if chances > 0 && cell.take_used() && cell.keeps() {
                chances -= 1;
                self.kept.push_back(cell);
                continue;
            }
            self.release(cell, gone);
        }
    }

    fn release(&mut self, cell: Arc<Cell>, gone: &mut Vec<Arc<dyn Any + Send + Sync>>) {
        match cell.release() {
            Released::Nothing => {}
            Released::Gone(view) => gone.push(view),
            Released::Lent(view) => {
                gone.push(view);
                self.lent(cell);
            }
        }
    }

    fn push(&mut self, cell: Arc<Cell>) {
        if self.kept.len() >= self.sweep_kept_at {
            self.kept.retain(|cell| cell.keeps());
            self.sweep_kept_at = (2 * self.kept.len()).max(FEW);
            self.kept.shrink_to(self.sweep_kept_at);
        }
        self.kept.push_back(cell);
    }

    /// A cell whose view others hold. A cell may stand here more than once, but not for longer than until the next
    /// sweep.
    pub(super) fn lent(&mut self, cell: Arc<Cell>) {
        if self.lent.len() >= self.sweep_lent_at {
            self.lent.sort_unstable_by_key(|cell| Arc::as_ptr(cell).addr());
            self.lent.dedup_by(|a, b| Arc::ptr_eq(a, b));
            self.lent.retain(|cell| cell.is_lent());
            self.sweep_lent_at = (2 * self.lent.len()).max(FEW);
            self.lent.shrink_to(self.sweep_lent_at);
        }
        self.lent.push(cell);
    }
}

#[cfg(test)]
impl Ring {
    /// How many cells it refers to.
    pub(super) fn places(&self) -> usize {
        self.kept.len() + self.once.len() + self.lent.len()
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring")
            .field("kept", &self.kept.len())
            .field("once", &self.once.len())
            .field("lent", &self.lent.len())
            .finish()
    }
}
