//! Index functions that failed: all are counted, the last ones are kept to be read.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::encoding::ObjectKey;
use crate::object::{Object, Version};

/// An index function that failed. The object is kept, and found by everything but that index.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexFault {
    /// The name of the index.
    pub index: Arc<str>,
    /// The object.
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

#[derive(Debug, Default)]
pub(super) struct Faults {
    total: u64,
    last: VecDeque<IndexFault>,
}

impl Faults {
    pub(super) fn record(&mut self, index: &Arc<str>, object: &Object, mut message: String) {
        if message.len() > LONGEST {
            let cut = (0..=LONGEST).rev().find(|&at| message.is_char_boundary(at));
            message.truncate(cut.unwrap_or(0));
            message.shrink_to_fit();
        }
        self.total += 1;
        self.push(IndexFault {
            index: Arc::clone(index),
            key: object.key().to_key(),
            version: object.version().clone(),
            message,
        });
    }

    pub(super) fn append(&mut self, later: Self) {
        self.total += later.total;
        later.last.into_iter().for_each(|fault| self.push(fault));
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
