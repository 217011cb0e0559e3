//! How often keys failed: a bounded number of keys.

use std::fmt;
use std::hash::Hash;

use super::Remembered;
use crate::workqueue::table::{List, Slot, Table};

/// Counts failures of single keys. When there is no more room, the key that failed longest ago makes some.
pub(crate) struct Failures<K> {
    counts: Table<K, u32>,
    /// The one that failed longest ago comes first.
    order: List,
    limit: usize,
    let_go: u64,
}

impl<K: Hash + Eq + Clone> Failures<K> {
    /// Of `limit` keys, at least of one.
    pub(crate) fn new(limit: usize) -> Self {
        Self { counts: Table::new(), order: List::new(), limit: limit.max(1), let_go: 0 }
    }

    /// One more. Returns how many there were before.
    pub(crate) fn failed(&mut self, key: &K) -> u32 {
        let hash = self.counts.hasher().hash(key);
        if let Some(slot) = self.counts.find(hash, key) {
            self.counts.unlink(&mut self.order, slot);
            self.counts.push_back(&mut self.order, slot);
            let count = self.counts.get_mut(slot);
            let before = *count;
            *count = before.saturating_add(1);
            return before;
        }
        if self.order.len() >= self.limit
            && let Some(slot) = self.order.first()
        {
            self.remove(slot);
            self.let_go += 1;
        }
        let slot = self.counts.insert(hash, key.clone(), 1);
        self.counts.push_back(&mut self.order, slot);
        0
    }

    pub(crate) fn forget(&mut self, key: &K) {
        if let Some(slot) = self.find(key) {
            self.remove(slot);
        }
    }

    pub(crate) fn count(&self, key: &K) -> u32 {
        self.find(key).map_or(0, |slot| *self.counts.get(slot))
    }

    pub(crate) fn remembered(&self) -> Remembered {
        Remembered { keys: self.order.len(), let_go: self.let_go }
    }

    fn find(&self, key: &K) -> Option<Slot> {
        self.counts.find(self.counts.hasher().hash(key), key)
    }

    fn remove(&mut self, slot: Slot) {
        self.counts.unlink(&mut self.order, slot);
        self.counts.remove(slot);
    }
}

impl<K> fmt::Debug for Failures<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failures")
            .field("keys", &self.order.len())
            .field("limit", &self.limit)
            .field("let_go", &self.let_go)
            .finish_non_exhaustive()
    }
}
