//! A rate of all keys together.

use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;

/// A bucket of tokens that fills up steadily. Each retry takes one; if there is none, it takes one that is to come, and
/// waits for it. It knows no single keys, and has nothing to forget.
#[derive(Debug, Clone)]
pub struct TokenBucket {
    every: Duration,
    /// How long an empty bucket takes to be full.
    whole: Duration,
    /// When it is full again, if nothing is taken until then. `None`: it was never touched.
    full: Option<Instant>,
}

/// Nobody waits longer than that. Without an end, times could not be added.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl TokenBucket {
    /// One token each `every`, and never more than `burst`, at least one. It is full at the beginning.
    #[must_use]
    pub fn new(every: Duration, burst: u32) -> Self {
        let every = every.min(LONGEST);
        Self { every, whole: every.saturating_mul(burst.max(1)).min(LONGEST), full: None }
    }
}

impl<K> RateLimiter<K> for TokenBucket {
    fn delay(&mut self, _key: &K, now: Instant) -> Duration {
        let empty_for = self.full.map_or(Duration::ZERO, |full| full.saturating_duration_since(now));
        let after = empty_for.saturating_add(self.every).min(self.whole.saturating_add(LONGEST));
        self.full = Some(now + after);
        after.saturating_sub(self.whole)
    }

    fn forget(&mut self, _key: &K) {}

    fn failures(&self, _key: &K) -> u32 {
        0
    }
}
