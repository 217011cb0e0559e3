//! Twice as long after each failure.

use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::failures::Failures;
use super::{FAILING_KEYS, RateLimiter, Remembered};

/// After each failure, a key waits twice as long as after the one before, up to a longest wait.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::workqueue::rate_limit::{Exponential, RateLimiter};
/// use tokio::time::Instant;
///
/// let mut limiter = Exponential::default();
/// let waits: Vec<_> = (0..4).map(|_| limiter.delay(&"pod", Instant::now()).as_millis()).collect();
/// assert_eq!(waits, [5, 10, 20, 40]);
/// assert_eq!(limiter.failures(&"pod"), 4);
///
/// limiter.forget(&"pod");
/// assert_eq!(limiter.delay(&"pod", Instant::now()), Duration::from_millis(5));
/// ```
#[derive(Debug)]
pub struct Exponential<K> {
    first: Duration,
    longest: Duration,
    failures: Failures<K>,
}

impl<K: Hash + Eq + Clone> Exponential<K> {
    /// From the first wait to the longest.
    #[must_use]
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: Failures::new(FAILING_KEYS) }
    }

    /// How many failing keys are remembered, at least one. To be called before the first failure.
    #[must_use]
    pub fn failing_keys(mut self, limit: usize) -> Self {
        self.failures = Failures::new(limit);
        self
    }
}

/// From 5 ms to 1000 s, as client-go.
impl<K: Hash + Eq + Clone> Default for Exponential<K> {
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl<K: Hash + Eq + Clone + Send> RateLimiter<K> for Exponential<K> {
    fn delay(&mut self, key: &K, _now: Instant) -> Duration {
        let before = self.failures.failed(key);
        let times = 1_u32.checked_shl(before);
        times
            .and_then(|times| self.first.checked_mul(times))
            .map_or(self.longest, |wait| wait.min(self.longest))
    }

    fn forget(&mut self, key: &K) {
        self.failures.forget(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.failures.count(key)
    }

    fn remembered(&self) -> Remembered {
        self.failures.remembered()
    }
}
