//! How far it is: everything that is to happen "later" happens after so many more operations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

/// Counts operations. A clone is the same.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    operations: u64,
    claimed: Arc<AtomicU64>,
    state: watch::Sender<State>,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    done: u64,
    is_over: bool,
}

impl Progress {
    pub(crate) fn new(operations: u64) -> Self {
        Self { operations, claimed: Arc::default(), state: watch::Sender::default() }
    }

    /// Whether there is one more operation to do.
    pub(crate) fn claim(&self) -> bool {
        !self.is_over() && self.claimed.fetch_add(1, Ordering::Relaxed) < self.operations
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        self.state.send_modify(|state| state.done += 1);
    }

    /// Nothing is waited for any more.
    pub(crate) fn finish(&self) {
        self.state.send_modify(|state| state.is_over = true);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state.borrow().is_over
    }

    pub(crate) fn done(&self) -> u64 {
        self.state.borrow().done
    }

    /// Whether most is done.
    pub(crate) fn is_late(&self) -> bool {
        self.done() > self.operations / 4 * 3
    }

    /// Waits for so many more operations, or until it is over; whether it goes on.
    pub(crate) async fn after(&self, more: u64) -> bool {
        let until = self.done() + more;
        // The sender is in `self`: this never fails.
        let state = self
            .state
            .subscribe()
            .wait_for(|state| state.is_over || state.done >= until)
            .await
            .map(|state| *state);
        state.is_ok_and(|state| !state.is_over)
    }
}
