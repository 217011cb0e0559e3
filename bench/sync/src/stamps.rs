//! When an update was sent, written into the object, and how old that is when a handler is called.
//!
//! Who writes and who is told run on one machine and look at the same clock, the one of the wall: no other is the same in
//! every language. A run in which somebody sets it is worth nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::count::Count;

/// The annotation that holds the nanoseconds since 1970 at which the update was sent.
pub const SENT: &str = "load.kube-informer.dev/sent";

/// No more than so many ages are kept.
const KEPT: usize = 1_000_000;

/// What was seen of them.
#[derive(Debug, Default)]
pub struct Stamps {
    wanted: AtomicBool,
    since: AtomicU64,
    ages: Mutex<Vec<u64>>,
    /// The stamps of the time that is asked for, or later.
    pub fresh: Count,
}

impl Stamps {
    /// Whether handlers are to look for stamps.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// From now on they are, and those of that time and later count; what was seen before is forgotten.
    pub fn want_since(&self, nanos: u64) {
        self.since.store(nanos, Ordering::SeqCst);
        self.take_ages();
        self.fresh.clear();
        self.wanted.store(true, Ordering::SeqCst);
    }

    /// An object came with this stamp, or without one.
    pub fn saw(&self, stamp: Option<&str>) {
        let arrived = now();
        let Some(sent) = stamp.and_then(|text| text.parse::<u64>().ok()) else { return };
        if sent < self.since.load(Ordering::SeqCst) {
            return;
        }
        let mut ages = self.ages.lock().unwrap_or_else(PoisonError::into_inner);
        if ages.len() < KEPT {
            ages.push(arrived.saturating_sub(sent));
        }
        drop(ages);
        self.fresh.add();
    }

    /// The nanoseconds from the write to the handler, of all that were seen since the last call.
    pub fn take_ages(&self) -> Vec<u64> {
        std::mem::take(&mut *self.ages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Nanoseconds since 1970.
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_the_time_that_is_asked_for_are_counted_with_their_age() {
        let (stamps, sent) = (Stamps::default(), now());
        assert!(!stamps.wanted());
        stamps.want_since(sent);
        for stamp in [Some(sent), Some(sent - 1), None] {
            stamps.saw(stamp.map(|nanos| nanos.to_string()).as_deref());
        }
        stamps.saw(Some("yesterday"));
        assert!(stamps.wanted());
        assert_eq!((stamps.fresh.get(), stamps.take_ages().len(), stamps.take_ages().len()), (1, 1, 0));
    }

    #[test]
    fn who_asks_anew_hears_nothing_of_before() {
        let stamps = Stamps::default();
        stamps.want_since(0);
        stamps.saw(Some("1"));
        stamps.want_since(0);
        assert_eq!((stamps.fresh.get(), stamps.take_ages().len()), (0, 0));
    }
}
