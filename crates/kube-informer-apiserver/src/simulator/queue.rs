//! What is to be looked at now: first noted, first looked at, nothing twice.

use std::collections::{HashSet, VecDeque};

use super::Item;

#[derive(Default)]
pub(super) struct Queue {
    order: VecDeque<Item>,
    noted: HashSet<Item>,
}

impl Queue {
    pub(super) fn note(&mut self, item: Item) {
        if self.noted.insert(item.clone()) {
            self.order.push_back(item);
        }
    }

    pub(super) fn take(&mut self) -> Option<Item> {
        let item = self.order.pop_front()?;
        self.noted.remove(&item);
        Some(item)
    }
}
