//! A few times fast, then slow.

use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::failures::Failures;
use super::{FAILING_KEYS, RateLimiter, Remembered};

/// After the first few failures, a key waits a short time; after all others, a long one.
#[derive(Debug)]
pub struct FastSlow<K> {
    fast: Duration,
    slow: Duration,
    fast_tries: u32,
    failures: Failures<K>,
}

impl<K: Hash + Eq + Clone> FastSlow<K> {
    /// `fast` for the first `fast_tries` failures, then `slow`.
    #[must_use]
    pub fn new(fast: Duration, slow: Duration, fast_tries: u32) -> Self {
        Self { fast, slow, fast_tries, failures: Failures::new(FAILING_KEYS) }
    }

    /// How many failing keys are remembered, at least one. To be called before the first failure.
    #[must_use]
    pub fn failing_keys(mut self, limit: usize) -> Self {
        self.failures = Failures::new(limit);
        self
    }
}

impl<K: Hash + Eq + Clone + Send> RateLimiter<K> for FastSlow<K> {
    fn delay(&mut self, key: &K, _now: Instant) -> Duration {
        if self.failures.failed(key) < self.fast_tries { self.fast } else { self.slow }
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
