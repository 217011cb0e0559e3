//! How long a key waits before it is tried again.
//!
//! | limiter | waits |
//! |---|---|
//! | [`Exponential`] | twice as long after each failure of the key, up to a longest wait |
//! | [`FastSlow`] | a short time for the first few failures of the key, a long time after that |
//! | [`TokenBucket`] | until the rate of all keys together allows it |
//! | [`MaxOf`] | as long as the most patient of several |
//! | [`AtMost`] | as long as another one says, but not longer than that |
//!
//! [`standard`] is what a queue has unless told otherwise: client-go's choice for controllers.
//!
//! Limiters of single keys remember failures until the key is forgotten. Keys that nobody forgets do not add up: so many
//! are remembered ([`FAILING_KEYS`] unless told otherwise), and then, for each new one, the key that failed longest ago is
//! let go. If that one fails again, its waits begin anew. Both numbers are in [`Remembered`], and in the metrics.

use std::time::Duration;

use tokio::time::Instant;

mod bucket;
mod exponential;
pub(crate) mod failures;
mod fast_slow;

pub use bucket::TokenBucket;
pub use exponential::Exponential;
pub use fast_slow::FastSlow;

/// How many failing keys a limiter remembers unless told otherwise.
pub const FAILING_KEYS: usize = 100_000;

/// Says how long keys wait. A queue asks its limiter for one key at a time; nothing else waits for the answer but those
/// who ask too.
pub trait RateLimiter<K>: Send {
    /// The key failed, again or for the first time: how long it shall wait, from now on.
    fn delay(&mut self, key: &K, now: Instant) -> Duration;

    /// The key succeeded, or nobody tries it any more.
    fn forget(&mut self, key: &K);

    /// How often the key failed since it was last forgotten.
    fn failures(&self, key: &K) -> u32;

    /// What is remembered of all keys.
    fn remembered(&self) -> Remembered {
        Remembered::default()
    }
}

/// What a limiter remembers of single keys.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// So many keys have failures that count.
    pub keys: usize,
    /// So often a key was let go for want of room, since the beginning.
    pub let_go: u64,
}

/// What client-go's controllers use: [`Exponential`] from 5 ms to 1000 s, and never more than 10 retries per second of all
/// keys together, after the first 100.
pub fn standard<K>() -> MaxOf<K>
where
    K: std::hash::Hash + Eq + Clone + Send + 'static,
{
    MaxOf::new().and(Exponential::default()).and(TokenBucket::new(Duration::from_millis(100), 100))
}

/// Waits as long as the limiter that wants to wait longest. All are asked, so that all know. Of none, it does not wait.
pub struct MaxOf<K> {
    limiters: Vec<Box<dyn RateLimiter<K>>>,
}

impl<K> MaxOf<K> {
    /// Of none so far.
    #[must_use]
    pub fn new() -> Self {
        Self { limiters: Vec::new() }
    }

    /// One more.
    #[must_use]
    pub fn and(mut self, limiter: impl RateLimiter<K> + 'static) -> Self {
        self.limiters.push(Box::new(limiter));
        self
    }
}

impl<K> RateLimiter<K> for MaxOf<K> {
    fn delay(&mut self, key: &K, now: Instant) -> Duration {
        self.limiters.iter_mut().map(|limiter| limiter.delay(key, now)).max().unwrap_or_default()
    }

    fn forget(&mut self, key: &K) {
        self.limiters.iter_mut().for_each(|limiter| limiter.forget(key));
    }

    fn failures(&self, key: &K) -> u32 {
        self.limiters.iter().map(|limiter| limiter.failures(key)).max().unwrap_or_default()
    }

    fn remembered(&self) -> Remembered {
        self.limiters.iter().map(|limiter| limiter.remembered()).fold(Remembered::default(), |sum, one| {
            Remembered { keys: sum.keys.max(one.keys), let_go: sum.let_go.saturating_add(one.let_go) }
        })
    }
}

impl<K> Default for MaxOf<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> std::fmt::Debug for MaxOf<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MaxOf").field("limiters", &self.limiters.len()).finish()
    }
}

/// Waits as long as another limiter says, but not longer than that.
#[derive(Debug, Clone)]
pub struct AtMost<L> {
    longest: Duration,
    limiter: L,
}

impl<L> AtMost<L> {
    /// Not longer than `longest`.
    #[must_use]
    pub fn new(longest: Duration, limiter: L) -> Self {
        Self { longest, limiter }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for AtMost<L> {
    fn delay(&mut self, key: &K, now: Instant) -> Duration {
        self.limiter.delay(key, now).min(self.longest)
    }

    fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
    }

    fn failures(&self, key: &K) -> u32 {
        self.limiter.failures(key)
    }

    fn remembered(&self) -> Remembered {
        self.limiter.remembered()
    }
}

#[cfg(test)]
mod tests;
