//! Which of the keys that are ready comes next.
//!
//! One list for each priority, in the order in which keys came. The highest goes first, but a lower one that has keys is
//! passed over only so many times in a row: then one of its keys goes, and counting starts anew. This depends on how often
//! was chosen, not on how long was waited: with a backlog of hours, keys that grow older would overtake new ones of a
//! higher priority, and there would be no priority when it is needed most.

use std::hash::Hash;

use super::table::{List, Slot, Table};

/// How urgent a key is. Of keys with the same priority, the one that came first goes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Nothing happened: objects of an initial list, resyncs.
    Low,
    /// Something changed.
    #[default]
    Normal,
    /// Someone waits for it.
    High,
}

const CLASSES: usize = 3;

/// The keys that are ready.
pub(super) struct Ready {
    classes: [Class; CLASSES],
    patience: u32,
}

struct Class {
    list: List,
    /// How many keys of higher classes went since the last of this one did. Zero while the list is empty.
    passed: u32,
}

impl Ready {
    /// A class is passed over `patience` times, at least once.
    pub(super) fn new(patience: u32) -> Self {
        let class = || Class { list: List::new(), passed: 0 };
        Self { classes: [class(), class(), class()], patience: patience.max(1) }
    }

    pub(super) fn len(&self) -> usize {
        self.classes.iter().map(|class| class.list.len()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.classes.iter().all(|class| class.list.is_empty())
    }

    /// To the end of the line.
    pub(super) fn push<K: Hash + Eq, V>(&mut self, table: &mut Table<K, V>, slot: Slot, priority: Priority) {
        table.push_back(&mut self.classes[priority as usize].list, slot);
    }

    /// Out of the line, from wherever it is in it.
    pub(super) fn remove<K: Hash + Eq, V>(
        &mut self,
        table: &mut Table<K, V>,
        slot: Slot,
        priority: Priority,
    ) {
        let class = &mut self.classes[priority as usize];
        table.unlink(&mut class.list, slot);
        if class.list.is_empty() {
            class.passed = 0;
        }
    }

    /// The next one, which stays where it is.
    pub(super) fn first(&self) -> Option<Slot> {
        self.classes[self.turn()?].list.first()
    }

    /// Takes out the next one.
    pub(super) fn pop<K: Hash + Eq, V>(&mut self, table: &mut Table<K, V>) -> Option<Slot> {
        let turn = self.turn()?;
        let slot = self.classes[turn].list.first()?;
        table.unlink(&mut self.classes[turn].list, slot);
        self.classes[turn].passed = 0;
        for below in &mut self.classes[..turn] {
            if !below.list.is_empty() {
                below.passed += 1;
            }
        }
        Some(slot)
    }

    /// Whose turn it is: the lowest class of those that lost their patience, else the highest.
    fn turn(&self) -> Option<usize> {
        let impatient = |class: &Class| !class.list.is_empty() && class.passed >= self.patience;
        self.classes
            .iter()
            .position(impatient)
            .or_else(|| self.classes.iter().rposition(|class| !class.list.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two thousand keys of each priority, and the order in which they go.
    fn order(patience: u32, priorities: &[Priority]) -> Vec<Priority> {
        let (mut table, mut ready) = (Table::new(), Ready::new(patience));
        for (key, priority) in priorities.iter().cycle().take(2000 * priorities.len()).enumerate() {
            let hash = table.hasher().hash(&key);
            let slot = table.insert(hash, key, *priority);
            ready.push(&mut table, slot, *priority);
        }
        let mut order = Vec::new();
        while let Some(slot) = ready.pop(&mut table) {
            order.push(*table.get(slot));
            table.remove(slot);
        }
        assert_eq!(order.len(), 2000 * priorities.len());
        order
    }

    #[test]
    fn a_lower_priority_is_passed_over_so_many_times_and_no_more() {
        for patience in [1, 4, 9] {
            let order = order(patience, &[Priority::Low, Priority::Normal]);
            let window = patience as usize + 1;
            // While there are both.
            for picks in order[..2000].chunks_exact(window) {
                assert_eq!(picks.iter().filter(|pick| **pick == Priority::Low).count(), 1, "{patience}");
                assert_eq!(picks.last(), Some(&Priority::Low));
            }
        }
    }

    #[test]
    fn none_of_three_priorities_starves_and_the_highest_goes_most_often() {
        let order = order(9, &[Priority::Low, Priority::Normal, Priority::High]);
        for picks in order[..2000].windows(12) {
            for priority in [Priority::Low, Priority::Normal, Priority::High] {
                assert!(picks.contains(&priority), "{priority:?} in {picks:?}");
            }
        }
        let high = order[..2000].iter().filter(|pick| **pick == Priority::High).count();
        assert!(high > 1500, "{high} of 2000");
    }

    #[test]
    fn no_patience_at_all_is_taken_as_once() {
        assert_eq!(
            order(0, &[Priority::Low, Priority::High])[..100],
            order(1, &[Priority::Low, Priority::High])[..100]
        );
    }
}
