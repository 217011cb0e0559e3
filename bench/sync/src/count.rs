//! A number that grows, and those who wait for it to be reached.
//!
//! Who waits is woken at that number and at no other: to be woken at each would be measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Beyond this, what is awaited does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Shared by those who count and by who asks.
#[derive(Debug, Default)]
pub struct Count {
    reached: AtomicU64,
    awaited: AtomicU64,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Count {
    /// How far it has come.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.reached.load(Ordering::SeqCst)
    }

    /// One more.
    pub fn add(&self) {
        // In one order with those of `wait`: one of the two sees what the other has written.
        let reached = self.reached.fetch_add(1, Ordering::SeqCst) + 1;
        if reached == self.awaited.load(Ordering::SeqCst) {
            // Who waits holds the lock from its look at the number until it sleeps.
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.woken.notify_all();
        }
    }

    /// Begins anew.
    pub fn clear(&self) {
        self.reached.store(0, Ordering::SeqCst);
    }

    /// Returns when it has come so far, or patience has ended.
    pub fn wait(&self, wanted: u64) {
        let end = Instant::now() + PATIENCE;
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.awaited.store(wanted, Ordering::SeqCst);
        while self.get() < wanted {
            let Some(rest) = end.checked_duration_since(Instant::now()) else { return };
            guard = self.woken.wait_timeout(guard, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn who_waits_is_woken_at_the_number() {
        let count = Arc::new(Count::default());
        let counting = std::thread::spawn({
            let count = count.clone();
            move || (0..10_000).for_each(|_| count.add())
        });
        for wanted in (0..=10_000).step_by(100) {
            count.wait(wanted);
            assert!(count.get() >= wanted);
        }
        counting.join().unwrap();
    }
}
