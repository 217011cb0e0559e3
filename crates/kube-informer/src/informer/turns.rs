//! Whose turn it is: the state of something that is driven by whoever comes; and how long its calls take.
//!
//! However many wake it, it is among those that are ready at most once; it is never with two at once; and if it is woken
//! during a turn, another turn follows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::sync::AtomicU8;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// One of those below.
    state: AtomicU8,
}

/// How long something takes, as a mean in which the last times count most.
#[derive(Debug, Default)]
pub(super) struct Mean {
    /// In nanoseconds.
    nanos: AtomicU64,
}

// ## WAITS => READY
/// Nothing to do.
const WAITS: u8 = 0;
// ## READY => CALLED
/// Among those that are ready.
const READY: u8 = 1;
// ## CALLED => (WAITS | READY | AGAIN), or stays at its end
/// With somebody.
const CALLED: u8 = 2;
// ## AGAIN => (CALLED | READY)
/// With somebody, and woken since.
const AGAIN: u8 = 3;

/// What takes longer than this, as a mean, is slow: others do not wait for it.
pub(super) const SLOW: Duration = Duration::from_micros(100);

impl Turns {
    /// There is something to do. Whether it is to be put among those that are ready.
    pub(super) fn wake(&self) -> bool {
        // Written also where it stays the same: whoever begins a turn after it sees what was done before it.
        let next = |state| match state {
            WAITS => Some(READY),
            CALLED => Some(AGAIN),
            other => Some(other),
        };
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, next) == Ok(WAITS)
    }

    /// It was taken from among those that are ready.
    pub(super) fn begin(&self) {
        self.state.swap(CALLED, Ordering::AcqRel);
    }

    /// Takes it from among those that are ready, where more than one may come for it; whether it is with the one that calls now.
    pub(super) fn claim(&self) -> bool {
        self.state.compare_exchange(READY, CALLED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// There is nothing left to do. Where that is not true any more, the turn goes on.
    pub(super) fn rest(&self) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let rests = self.state.compare_exchange(CALLED, WAITS, success, failure).is_ok();
        if !rests {
            self.state.swap(CALLED, Ordering::AcqRel);
        }
        rests
    }

    /// Whether there is nothing to do, at this moment.
    #[cfg(test)]
    pub(super) fn is_waiting(&self) -> bool {
        self.state.load(Ordering::Acquire) == WAITS
    }

    /// The turn is over, and there is something left: it is to be put among those that are ready.
    pub(super) fn again(&self) {
        self.state.swap(READY, Ordering::AcqRel);
    }
}

impl Mean {
    /// Notes how long it took.
    pub(super) fn add(&self, time: Duration) {
        let (mean, time) =
            (self.nanos.load(Ordering::Relaxed), u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.nanos.store(mean - mean / 8 + time / 8, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}
