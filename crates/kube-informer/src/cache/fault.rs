//! Index functions that failed: all are counted, the last ones are kept to be read, the first of each index is logged.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::encoding::ObjectKey;
use crate::object::{Object, Version};

/// An index function that failed. The object is kept, and found by everything but that index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "index {index:?} cannot place {kind} {key} of {api_version} at version {version}: {message}; the object is kept, and found by \
     everything but this index until it changes: mend the function, or the object"
)]
#[non_exhaustive]
pub struct IndexFault {
    /// The name of the index.
    pub index: Arc<str>,
    /// Group and version of the object: `apps/v1`.
    pub api_version: String,
    /// Its kind: `Deployment`.
    pub kind: String,
    /// Its namespace and name.
    pub key: ObjectKey,
    /// Its version.
    pub version: Version,
    /// What the function said, cut if it is long.
    pub message: String,
}

/// How many are kept.
const MOST: usize = 32;
/// How much of a message is kept.
const LONGEST: usize = 512;

/// Says the first of each index, once: a function that fails mostly fails for every object.
pub(super) fn say(first: Vec<IndexFault>) {
    for fault in first {
        tracing::warn!("{fault}; further failures of this index are counted, and not logged");
    }
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    total: u64,
    last: VecDeque<IndexFault>,
    /// The first of each index, where it has not been told.
    first: Vec<IndexFault>,
    /// Indexes that have one.
    failing: BTreeSet<Arc<str>>,
}

impl Faults {
    pub(super) fn record(&mut self, index: &Arc<str>, object: &Object, mut message: String) {
        if message.len() > LONGEST {
            let cut = (0..=LONGEST).rev().find(|&at| message.is_char_boundary(at));
            message.truncate(cut.unwrap_or(0));
            message.shrink_to_fit();
        }
        self.total += 1;
        let fault = IndexFault {
            index: Arc::clone(index),
            api_version: object.api_version().to_owned(),
            kind: object.kind().to_owned(),
            key: object.key().to_key(),
            version: object.version().clone(),
            message,
        };
        if self.failing.insert(Arc::clone(index)) {
            self.first.push(fault.clone());
        }
        self.push(fault);
    }

    /// Adds those of a change. The first of each index that had none so far are given back, to be told.
    #[must_use]
    pub(super) fn append(&mut self, later: Self) -> Vec<IndexFault> {
        self.total += later.total;
        later.last.into_iter().for_each(|fault| self.push(fault));
        let is_new = |fault: &IndexFault| self.failing.insert(Arc::clone(&fault.index));
        later.first.into_iter().filter(is_new).collect()
    }

    /// An index is gone. Another one may come with its name.
    pub(super) fn forget(&mut self, index: &str) {
        self.failing.remove(index);
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Oldest first.
    pub(super) fn last(&self) -> Vec<IndexFault> {
        self.last.iter().cloned().collect()
    }

    fn push(&mut self, fault: IndexFault) {
        if self.last.len() == MOST {
            self.last.pop_front();
        }
        self.last.push_back(fault);
    }
}
