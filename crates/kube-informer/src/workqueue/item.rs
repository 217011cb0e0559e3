//! A key in the hands of a worker.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Key;
use super::priority::Priority;
use super::shared::Shared;
use super::state::Taken;
use super::table::Slot;

/// A key that nobody else has, until this is dropped. Then it is done: if it was added meanwhile, it is for the next worker.
#[must_use = "dropped, it is done"]
pub struct Item<K: Key> {
    shared: Arc<Shared<K>>,
    slot: Slot,
    key: K,
    priority: Priority,
    /// Set if someone measures.
    started: Option<Instant>,
}

impl<K: Key> Item<K> {
    pub(super) fn new(shared: Arc<Shared<K>>, taken: Taken<K>, started: Option<Instant>) -> Self {
        let Taken { slot, key, priority, since: _ } = taken;
        Self { shared, slot, key, priority, started }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The priority with which it ran.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// It succeeded, or is gone: the limiter forgets its failures.
    pub fn forget(&self) {
        self.shared.limiter().forget(&self.key);
    }

    /// It failed, and is done: it runs again after the time that the limiter says, which is returned, with the same
    /// priority.
    pub fn retry(self) -> Duration {
        self.shared.add_rate_limited(self.key.clone(), self.priority)
    }

    /// It is done, and runs again after that time with the same priority.
    pub fn retry_after(self, delay: Duration) {
        self.shared.add_after(self.key.clone(), self.priority, delay);
    }
}

impl<K: Key> Item<K> {
    /// The work is done, and the key is kept all the same, so that nobody gets it: from now on until this is dropped, it
    /// counts neither as work nor, where it was added, as a key that is ready.
    pub(crate) fn rest(&mut self) {
        self.shared.rest(self.slot, self.started.take());
    }
}

impl<K: Key> Drop for Item<K> {
    fn drop(&mut self) {
        self.shared.done(self.slot, self.started);
    }
}

impl<K: Key + fmt::Debug> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", &self.key)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}
