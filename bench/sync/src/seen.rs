//! What a contestant's handlers have seen, and how they are to look.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::count::Count;
use crate::stamps::Stamps;

/// Shared by the handlers and by who asks.
#[derive(Debug, Default)]
pub struct Seen {
    whole: AtomicBool,
    /// The updates that the first handler was told of.
    pub updates: Count,
    /// The stamps that it found in them.
    pub stamps: Stamps,
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
}
