//! Which views go when there is no room: second chance, oldest first.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use super::cell::{Cell, Counters, Released};

/// Below so many cells nothing is swept.
const FEW: usize = 64;

/// The cells that may keep a view, oldest first; and those whose view others hold.
pub(super) struct Ring {
    /// Each cell at most once; some may be empty, because their slot is gone.
    kept: VecDeque<Arc<Cell>>,
    sweep_kept_at: usize,
    lent: Vec<Arc<Cell>>,
    sweep_lent_at: usize,
}

impl Default for Ring {
    fn default() -> Self {
        Self { kept: VecDeque::new(), sweep_kept_at: FEW, lent: Vec::new(), sweep_lent_at: FEW }
    }
}

impl Ring {
    /// Lets views go until those that are kept weigh no more than `limit`.
    pub(super) fn make_room(
        &mut self,
        limit: usize,
        counters: &Counters,
        gone: &mut Vec<Arc<dyn Any + Send + Sync>>,
    ) {
        // Once around: readers that are faster than this loop cannot make it run for ever.
        let mut chances = self.kept.len();
        while counters.kept_bytes() > limit {
            let Some(cell) = self.kept.pop_front() else { return };
            if chances > 0 && cell.take_used() && cell.keeps() {
                chances -= 1;
                self.kept.push_back(cell);
                continue;
            }
            match cell.release() {
                Released::Nothing => {}
                Released::Gone(view) => gone.push(view),
                Released::Lent(view) => {
                    gone.push(view);
                    self.lent(cell);
                }
            }
        }
    }

    /// A cell that keeps a view since now.
    pub(super) fn push(&mut self, cell: Arc<Cell>) {
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
        self.kept.len() + self.lent.len()
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("kept", &self.kept.len()).field("lent", &self.lent.len()).finish()
    }
}
