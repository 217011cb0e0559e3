//! What is to be looked at later: at most one time per item, so as bounded as the items are.

use std::collections::{BTreeMap, HashMap};

use tokio::time::Instant;

use super::Item;

/// Items by the time at which they are due; those of one time in the order in which they were set.
#[derive(Default)]
pub(super) struct Timers {
    by_time: BTreeMap<(Instant, u64), Item>,
    by_item: HashMap<Item, (Instant, u64)>,
    sequence: u64,
}

impl Timers {
    /// Looks at `item` at `due`, or earlier if it is already due earlier.
    pub(super) fn at(&mut self, item: Item, due: Instant) {
        if let Some(set) = self.by_item.get(&item) {
            if set.0 <= due {
                return;
            }
            self.by_time.remove(set);
        }
        self.sequence += 1;
        let slot = (due, self.sequence);
        self.by_time.insert(slot, item.clone());
        self.by_item.insert(item, slot);
    }

    pub(super) fn forget(&mut self, item: &Item) {
        if let Some(slot) = self.by_item.remove(item) {
            self.by_time.remove(&slot);
        }
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.by_time.keys().next().map(|(due, _)| *due)
    }

    /// Takes out what is due.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Item> {
        let mut items = Vec::new();
        while let Some(entry) = self.by_time.first_entry().filter(|e| e.key().0 <= now) {
            let item = entry.remove();
            self.by_item.remove(&item);
            items.push(item);
        }
        items
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Kind;
    use super::*;

    fn pod(name: &str) -> Item {
        Item::Object(Kind::Pod, name.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_has_one_time_the_earliest() {
        let (mut timers, now) = (Timers::default(), Instant::now());
        timers.at(pod("a"), now + Duration::from_secs(5));
        timers.at(pod("a"), now + Duration::from_secs(2));
        timers.at(pod("a"), now + Duration::from_secs(9));
        assert_eq!(timers.next(), Some(now + Duration::from_secs(2)));
        assert_eq!(timers.due(now + Duration::from_secs(60)), [pod("a")]);
        assert_eq!(timers.next(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn items_of_one_time_come_in_the_order_they_were_set() {
        let (mut timers, now) = (Timers::default(), Instant::now());
        for name in ["b", "a", "c"] {
            timers.at(pod(name), now);
        }
        timers.forget(&pod("a"));
        assert_eq!(timers.due(now), [pod("b"), pod("c")]);
    }
}
