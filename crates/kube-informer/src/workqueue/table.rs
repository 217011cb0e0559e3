//! Keys and what is known of them, each in a place with a number, found by key or by number; and lists through them.
//! Whatever is done to one place takes the same time, however many there are.
//!
//! A [`Slot`] is the number of a place. It is used by its owner alone, from `insert` to `remove`; using it later is a
//! mistake of the owner, and a panic.
//!
//! This is not a map of the standard library and numbers in it, for the sake of memory: a key is stored once, and what is
//! searched are eight bytes for each key. With a million keys, time is what the memory takes to answer.

use std::hash::Hash;

use super::hash::{Hashed, Hasher};

pub(super) type Slot = u32;

/// No place.
const NONE: Slot = Slot::MAX;

/// A slot is held by whoever put the key there.
const TAKEN: &str = "a slot is not used after its key was removed";

pub(super) struct Table<K, V> {
    nodes: Vec<Node<K, V>>,
    /// The first free place; the free ones are linked by `next`.
    free: Slot,
    cells: Cells,
    hasher: Hasher,
}

struct Node<K, V> {
    /// `None` in a free place.
    entry: Option<(K, V)>,
    hash: Hashed,
    previous: Slot,
    next: Slot,
}

/// A list of slots in the order in which they came. A slot is in one list at most; the owner knows in which.
pub(super) struct List {
    first: Slot,
    last: Slot,
    len: usize,
}

/// What is known of some slots, and seldom needed: apart from the table, which is the smaller for it.
pub(super) struct BySlot<T> {
    values: Vec<Option<T>>,
}

impl<K: Hash + Eq, V> Table<K, V> {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), free: NONE, cells: Cells::new(), hasher: Hasher::default() }
    }

    pub(super) fn hasher(&self) -> &Hasher {
        &self.hasher
    }

    /// Where a key is.
    pub(super) fn find(&self, hash: Hashed, key: &K) -> Option<Slot> {
        let is_key =
            |slot: Slot| self.nodes[slot as usize].entry.as_ref().is_some_and(|(other, _)| other == key);
        self.cells.find(hash, is_key)
    }

    /// Puts in a key that was not found.
    pub(super) fn insert(&mut self, hash: Hashed, key: K, value: V) -> Slot {
        let node = Node { entry: Some((key, value)), hash, previous: NONE, next: NONE };
        let slot = match self.free {
            NONE => {
                self.nodes.push(node);
                let slot = Slot::try_from(self.nodes.len() - 1).ok().filter(|slot| *slot != NONE);
                slot.expect("memory ends before four billion keys")
            }
            slot => {
                let place = &mut self.nodes[slot as usize];
                self.free = place.next;
                *place = node;
                slot
            }
        };
        self.cells.insert(hash, slot);
        slot
    }

    /// Takes a key out. The slot is in no list.
    pub(super) fn remove(&mut self, slot: Slot) -> K {
        let node = &mut self.nodes[slot as usize];
        let (key, _) = node.entry.take().expect(TAKEN);
        node.next = self.free;
        self.free = slot;
        self.cells.remove(node.hash, slot);
        key
    }

    /// Gives back the room of an empty table, if it is more than for so many keys. Returns whether it did.
    pub(super) fn shrink(&mut self, kept: usize) -> bool {
        let much = self.cells.len == 0 && self.nodes.capacity() > kept;
        if much {
            (self.nodes, self.free, self.cells) = (Vec::new(), NONE, Cells::new());
        }
        much
    }

    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.nodes.capacity().max(self.cells.cells.capacity())
    }

    pub(super) fn key(&self, slot: Slot) -> &K {
        &self.nodes[slot as usize].entry.as_ref().expect(TAKEN).0
    }

    pub(super) fn get(&self, slot: Slot) -> &V {
        &self.nodes[slot as usize].entry.as_ref().expect(TAKEN).1
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> &mut V {
        &mut self.nodes[slot as usize].entry.as_mut().expect(TAKEN).1
    }

    /// Appends a slot that is in no list.
    pub(super) fn push_back(&mut self, list: &mut List, slot: Slot) {
        let node = &mut self.nodes[slot as usize];
        node.previous = list.last;
        node.next = NONE;
        match list.last {
            NONE => list.first = slot,
            last => self.nodes[last as usize].next = slot,
        }
        list.last = slot;
        list.len += 1;
    }

    /// Takes a slot out of the list that it is in.
    pub(super) fn unlink(&mut self, list: &mut List, slot: Slot) {
        let (previous, next) = (self.nodes[slot as usize].previous, self.nodes[slot as usize].next);
        match previous {
            NONE => list.first = next,
            previous => self.nodes[previous as usize].next = next,
        }
        match next {
            NONE => list.last = previous,
            next => self.nodes[next as usize].previous = previous,
        }
        list.len -= 1;
    }
}

impl List {
    pub(super) fn new() -> Self {
        Self { first: NONE, last: NONE, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn first(&self) -> Option<Slot> {
        (self.first != NONE).then_some(self.first)
    }
}

impl<T: Copy> BySlot<T> {
    pub(super) fn set(&mut self, slot: Slot, value: T) {
        let at = slot as usize;
        if at >= self.values.len() {
            self.values.resize(at + 1, None);
        }
        self.values[at] = Some(value);
    }

    /// What was set last, for whichever owner of the slot.
    pub(super) fn get(&self, slot: Slot) -> Option<T> {
        self.values.get(slot as usize).copied().flatten()
    }

    pub(super) fn clear(&mut self) {
        self.values = Vec::new();
    }
}

impl<T> Default for BySlot<T> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

/// Slots by hash: open addressing, one step at a time. A slot lies at its hash or after it, without an empty cell between.
struct Cells {
    /// A power of two of them, or none.
    cells: Vec<Cell>,
    len: usize,
}

#[derive(Clone, Copy)]
struct Cell {
    hash: Hashed,
    /// `NONE` if it is empty.
    slot: Slot,
}

const EMPTY: Cell = Cell { hash: Hashed(0), slot: NONE };

impl Cells {
    fn new() -> Self {
        Self { cells: Vec::new(), len: 0 }
    }

    fn find(&self, hash: Hashed, is_it: impl Fn(Slot) -> bool) -> Option<Slot> {
        let mut at = self.home(hash);
        // There is always an empty one, unless there are none at all.
        loop {
            let cell = self.cells.get(at)?;
            if cell.slot == NONE {
                return None;
            }
            if cell.hash == hash && is_it(cell.slot) {
                return Some(cell.slot);
            }
            at = self.after(at);
        }
    }

    fn insert(&mut self, hash: Hashed, slot: Slot) {
        // At most three in four are taken.
        if (self.len + 1) * 4 > self.cells.len() * 3 {
            let larger = vec![EMPTY; (self.cells.len() * 2).max(16)];
            let old = std::mem::replace(&mut self.cells, larger);
            old.into_iter().filter(|cell| cell.slot != NONE).for_each(|cell| self.put(cell));
        }
        self.put(Cell { hash, slot });
        self.len += 1;
    }

    fn put(&mut self, cell: Cell) {
        let mut at = self.home(cell.hash);
        while self.cells[at].slot != NONE {
            at = self.after(at);
        }
        self.cells[at] = cell;
    }

    fn remove(&mut self, hash: Hashed, slot: Slot) {
        let mut hole = self.home(hash);
        while self.cells[hole].slot != slot {
            hole = self.after(hole);
        }
        // What lies behind the hole moves into it, unless it would lie before its hash.
        let mut at = self.after(hole);
        while self.cells[at].slot != NONE {
            let home = self.home(self.cells[at].hash);
            if self.distance(home, at) >= self.distance(hole, at) {
                self.cells[hole] = self.cells[at];
                hole = at;
            }
            at = self.after(at);
        }
        self.cells[hole] = EMPTY;
        self.len -= 1;
    }

    fn home(&self, hash: Hashed) -> usize {
        hash.0 as usize & self.mask()
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & self.mask()
    }

    /// How many steps it is from one cell to another.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & self.mask()
    }

    fn mask(&self) -> usize {
        self.cells.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn put(table: &mut Table<u32, char>, key: u32, value: char) -> Slot {
        let hash = table.hasher().hash(&key);
        assert_eq!(table.find(hash, &key), None);
        table.insert(hash, key, value)
    }

    fn listed(table: &Table<u32, char>, list: &List) -> String {
        let mut text = String::new();
        let mut slot = list.first;
        while slot != NONE {
            text.push(*table.get(slot));
            slot = table.nodes[slot as usize].next;
        }
        assert_eq!(list.len(), text.len());
        text
    }

    #[test]
    fn a_list_keeps_its_order_when_any_of_it_is_taken_out() {
        for (gone, left) in [('a', "bcd"), ('b', "acd"), ('d', "abc")] {
            let (mut table, mut list) = (Table::new(), List::new());
            let slots: Vec<_> =
                (0..).zip("abcd".chars()).map(|(key, value)| put(&mut table, key, value)).collect();
            slots.iter().for_each(|slot| table.push_back(&mut list, *slot));
            let slot = slots["abcd".find(gone).unwrap()];
            table.unlink(&mut list, slot);
            assert_eq!(*table.get(slot), gone);
            table.remove(slot);
            assert_eq!(listed(&table, &list), left);
            let slot = put(&mut table, 9, 'e');
            table.push_back(&mut list, slot);
            assert_eq!(listed(&table, &list), format!("{left}e"));
        }
    }

    #[test]
    fn free_places_are_used_again() {
        let mut table = Table::new();
        for round in 0..10 {
            let slots: Vec<_> = (0..10).map(|key| put(&mut table, round * 10 + key, 'x')).collect();
            for (slot, key) in slots.into_iter().zip(round * 10..) {
                assert_eq!(table.remove(slot), key);
            }
        }
        assert_eq!((table.cells.len, table.nodes.len(), table.cells.cells.len()), (0, 10, 16));
    }

    proptest! {
        /// Hashes are taken from a few values, so that cells are crowded, and the last of them wrap around.
        #[test]
        fn slots_are_found_by_hash_until_they_are_removed(
            steps in prop::collection::vec((any::<bool>(), prop::sample::select(vec![0_u32, 1, 2, 15, 30, 31, 63])), 0..200)
        ) {
            let mut cells = Cells::new();
            let mut known: HashMap<Slot, Hashed> = HashMap::new();
            for (slot, (put, hash)) in (0..).zip(steps) {
                let hash = Hashed(hash);
                match known.iter().find(|(_, other)| **other == hash).map(|(slot, _)| *slot) {
                    Some(slot) if !put => {
                        cells.remove(hash, slot);
                        known.remove(&slot);
                        prop_assert_eq!(cells.find(hash, |found| found == slot), None);
                    }
                    _ => {
                        cells.insert(hash, slot);
                        known.insert(slot, hash);
                    }
                }
                prop_assert_eq!(cells.len, known.len());
                for (slot, hash) in &known {
                    prop_assert_eq!(cells.find(*hash, |found| found == *slot), Some(*slot));
                }
            }
        }
    }
}
