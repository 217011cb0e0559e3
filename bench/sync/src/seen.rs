//! What a contestant's handlers have seen, and how they are to look.
//!
//! Whoever waits for a number of updates is woken at that number and at no other: to be woken at each would be measured.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Beyond this, what is awaited does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Shared by the handlers and by who asks.
#[derive(Debug, Default)]
pub struct Seen {
    whole: AtomicBool,
    updates: AtomicU64,
    awaited: AtomicU64,
    lock: Mutex<()>,
    reached: Condvar,
}

impl Seen {
    /// Whether handlers read whole objects, and not their metadata alone.
    #[must_use]
    pub fn whole(&self) -> bool {
        self.whole.load(Ordering::Relaxed)
    }

    /// From now on they do.
    pub fn read_whole_objects(&self) {
        self.whole.store(true, Ordering::Relaxed);
    }

    /// How many updates were seen.
    #[must_use]
    pub fn updates(&self) -> u64 {
        self.updates.load(Ordering::SeqCst)
    }

    /// One more was seen.
    pub fn update(&self) {
        // In one order with those of `wait`: one of the two sees what the other has written.
        let seen = self.updates.fetch_add(1, Ordering::SeqCst) + 1;
        if seen == self.awaited.load(Ordering::SeqCst) {
            // Who waits holds the lock from its look at the number until it sleeps.
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.reached.notify_all();
        }
    }

    /// Returns when so many were seen in all, or patience has ended.
    pub fn wait(&self, updates: u64) {
        let end = Instant::now() + PATIENCE;
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.awaited.store(updates, Ordering::SeqCst);
        while self.updates() < updates {
            let Some(rest) = end.checked_duration_since(Instant::now()) else { return };
            guard = self.reached.wait_timeout(guard, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn who_waits_is_woken_at_the_number() {
        let seen = Arc::new(Seen::default());
        let handler = std::thread::spawn({
            let seen = seen.clone();
            move || (0..10_000).for_each(|_| seen.update())
        });
        for updates in (0..=10_000).step_by(100) {
            seen.wait(updates);
            assert!(seen.updates() >= updates);
        }
        handler.join().unwrap();
    }
}
