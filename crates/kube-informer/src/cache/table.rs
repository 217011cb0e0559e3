//! Numbers of objects, found by the hashes of their keys: a hash table that costs nothing to copy.
//!
//! - A clone is O(1), and stays as it is whatever becomes of the original.
//! - A number is found by looking at one part, whose place the first bits of the hash say, and there at the place that the
//!   next bits say, or shortly behind it: nothing is compared on the way there.
//! - A change copies one part, if a clone has it, in which nothing is counted, and the short way to it.
//! - There are as many parts as keep them small, and they become more or fewer as a whole. That costs what the table has
//!   in it, and comes only after as many changes.

use std::sync::Arc;

use super::vector::Vector;

/// A persistent set of numbers with hashes. Several numbers may have the same hash.
#[derive(Clone, Default)]
pub(super) struct Table {
    /// A part that would be empty is not there.
    parts: Vector<Part>,
    /// So many of the first bits of a hash are the number of its part.
    bits: u32,
    len: usize,
}

/// Entries are a hash, and a number below it. They stand where the hash says, or behind, with nothing free in between;
/// the first place comes after the last.
type Part = Arc<[u64]>;

/// A place of a part that holds nothing. The highest number is never given.
const FREE: u64 = u64::MAX;

/// With more entries per part than this, on average, there are twice as many parts.
const MOST: usize = 160;
/// With fewer, there are half as many. Much less than half of `MOST`, or they would go to and fro.
const LEAST: usize = 24;
/// No part has fewer places.
const SMALL: usize = 4;

impl Table {
    /// What is made of the number with this hash, where that is the right one.
    #[inline]
    pub(super) fn find<T>(&self, hash: u32, right: impl Fn(u32) -> Option<T>) -> Option<T> {
        let part = self.parts.get(place(hash, self.bits))?;
        let from = start(hash, self.bits, part.len());
        for step in 0..part.len() {
            let &entry = part.get(step_on(from, step, part)).filter(|&&entry| entry != FREE)?;
            if hash_of(entry) == hash
                && let Some(found) = right(number_of(entry))
            {
                return Some(found);
            }
        }
        None
    }

    /// Adds a number that is not there.
    pub(super) fn insert(&mut self, hash: u32, number: u32) {
        let at = place(hash, self.bits);
        match self.parts.get_mut(at) {
            Some(part) => {
                if room(entries(part).count() + 1) > part.len() {
                    *part = filled(self.bits, 2 * part.len(), entries(part));
                }
                put(Arc::make_mut(part), self.bits, entry(hash, number));
            }
            None => {
                self.parts.set(at, filled(self.bits, SMALL, [entry(hash, number)]));
            }
        }
        self.len += 1;
        if self.len > MOST << self.bits {
            self.resize(self.bits + 1);
        }
    }

    /// Takes a number.
    pub(super) fn remove(&mut self, hash: u32, number: u32) {
        let at = place(hash, self.bits);
        // Nothing is copied for what is not there.
        if self.find(hash, |each| (each == number).then_some(())).is_none() {
            return;
        }
        let Some(part) = self.parts.get_mut(at) else { return };
        clear(Arc::make_mut(part), self.bits, entry(hash, number));
        let left = entries(part).count();
        if left == 0 {
            self.parts.take(at);
        } else if part.len() > SMALL && 4 * room(left) < part.len() {
            *part = filled(self.bits, part.len() / 2, entries(part));
        }
        self.len -= 1;
        if self.bits > 0 && self.len < LEAST << self.bits {
            self.resize(self.bits - 1);
        }
    }

    fn resize(&mut self, bits: u32) {
        let mut all: Vec<u64> = Vec::with_capacity(self.len);
        for at in 0..1 << self.bits {
            all.extend(self.parts.get(at).into_iter().flat_map(entries));
        }
        let mut parts = Vector::default();
        all.sort_unstable();
        for part in all.chunk_by(|a, b| place(hash_of(*a), bits) == place(hash_of(*b), bits)) {
            if let Some(&first) = part.first() {
                let places = room(part.len()).next_power_of_two().max(SMALL);
                parts.set(place(hash_of(first), bits), filled(bits, places, part.iter().copied()));
            }
        }
        (self.parts, self.bits) = (parts, bits);
    }
}

/// So many entries have so many places, or more: with fewer, the way to them would be long, and one is always free.
fn room(entries: usize) -> usize {
    entries + entries.div_ceil(3)
}

fn entries(part: &Part) -> impl Iterator<Item = u64> {
    part.iter().copied().filter(|&entry| entry != FREE)
}

/// A part with so many places, a power of two and [enough](room).
fn filled(bits: u32, places: usize, entries: impl IntoIterator<Item = u64>) -> Part {
    let mut part = vec![FREE; places];
    entries.into_iter().for_each(|entry| put(&mut part, bits, entry));
    part.into()
}

fn put(part: &mut [u64], bits: u32, entry: u64) {
    let from = start(hash_of(entry), bits, part.len());
    for step in 0..part.len() {
        if let Some(place) = part.get_mut(step_on(from, step, part))
            && *place == FREE
        {
            *place = entry;
            return;
        }
    }
}

/// Takes an entry. Those behind it may stand where they do because it was there.
fn clear(part: &mut [u64], bits: u32, gone: u64) {
    let from = start(hash_of(gone), bits, part.len());
    let mut is_gone = false;
    for step in 0..part.len() {
        let Some(place) = part.get_mut(step_on(from, step, part)) else { return };
        let entry = *place;
        if entry == FREE {
            return;
        }
        if is_gone || entry == gone {
            *place = FREE;
        }
        if is_gone {
            put(part, bits, entry);
        }
        is_gone |= entry == gone;
    }
}

/// Where to look first for a hash, in a part with so many places.
fn start(hash: u32, bits: u32, places: usize) -> usize {
    let rest = (u64::from(hash) << bits) as u32;
    ((u64::from(rest) * places as u64) >> 32) as usize
}

fn step_on(from: usize, step: usize, part: &[u64]) -> usize {
    (from + step) & (part.len() - 1)
}

fn entry(hash: u32, number: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(number)
}

fn hash_of(entry: u64) -> u32 {
    (entry >> 32) as u32
}

fn number_of(entry: u64) -> u32 {
    entry as u32
}

/// In which part the entries with a hash are.
fn place(hash: u32, bits: u32) -> u32 {
    (u64::from(hash) << bits >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_table_is_a_set_and_its_copies_do_not_change(
            steps in proptest::collection::vec((0_u32..40, any::<u32>(), any::<u8>()), 1..600),
        ) {
            // Few different hashes at the ends and in the middle, and many that are different.
            let hash = |few: u32, any: u32| if few < 20 { any } else { u32::MAX / 7 * (few % 8) };
            let (mut model, mut table, mut copies) = (BTreeSet::new(), Table::default(), Vec::new());
            for (at, (few, any, what)) in steps.iter().enumerate() {
                let taken = model.iter().nth(*any as usize % (model.len() + 1)).copied();
                if let (0..90, Some((hash, number))) = (*what, taken) {
                    model.remove(&(hash, number));
                    table.remove(hash, number);
                } else {
                    let number = at as u32;
                    model.insert((hash(*few, *any), number));
                    table.insert(hash(*few, *any), number);
                }
                if at % 100 == 0 {
                    copies.push((table.clone(), model.clone()));
                }
            }
            copies.push((table, model));
            for (copy, old) in &copies {
                prop_assert_eq!(copy.len, old.len());
                for at in 0..steps.len() as u32 {
                    for (few, any, _) in &steps {
                        let hash = hash(*few, *any);
                        let found = copy.find(hash, |number| (number == at).then_some(()));
                        prop_assert_eq!(found.is_some(), old.contains(&(hash, at)));
                    }
                }
            }
        }
    }

    #[test]
    fn copies_stay_as_they_are_while_parts_become_more_and_fewer() {
        let spread = |number: u32| number.wrapping_mul(0x9E37_79B1);
        let (mut table, mut copies) = (Table::default(), Vec::new());
        let all: Vec<u32> = (0..3_000).collect();
        for number in &all {
            table.insert(spread(*number), *number);
            if number % 500 == 0 {
                copies.push((table.clone(), 0..number + 1));
            }
        }
        let most = table.bits;
        for number in &all {
            if number % 500 == 0 {
                copies.push((table.clone(), *number..3_000));
            }
            table.remove(spread(*number), *number);
        }
        assert!(most > 2 && table.bits == 0, "there were resizes both ways");
        for (copy, there) in &copies {
            assert_eq!(copy.len, there.len());
            for number in &all {
                let found = copy.find(spread(*number), |found| (found == *number).then_some(()));
                assert_eq!(found.is_some(), there.contains(number), "{number} in {there:?}");
            }
        }
    }

    #[test]
    fn parts_stay_small_and_go_with_what_was_in_them() {
        let spread = |number: u32| number.wrapping_mul(0x9E37_79B1);
        let mut table = Table::default();
        for number in 0..10_000 {
            table.insert(spread(number), number);
        }
        let largest = (0..1 << table.bits).filter_map(|at| table.parts.get(at)).map(|part| part.len()).max();
        assert!(largest <= Some(4 * MOST), "{largest:?}");
        for number in 0..10_000 {
            assert_eq!(table.find(spread(number), Some), Some(number));
            table.remove(spread(number), number);
        }
        assert_eq!((table.len, table.bits), (0, 0));
        assert!(table.parts.get(0).is_none());
    }

    #[test]
    fn a_part_grows_with_those_of_one_hash_and_shrinks_again() {
        for hash in [0, 1 << 31, u32::MAX] {
            let mut table = Table::default();
            assert_eq!(table.find(hash, Some), None);
            for number in 0..100 {
                table.insert(hash, number);
            }
            let places = |table: &Table| table.parts.get(place(hash, table.bits)).map(|part| part.len());
            assert_eq!(places(&table), Some(256));
            // Those that are left are found, whichever stood before them.
            for number in (0..100).step_by(2).chain((1..99).step_by(2)) {
                table.remove(hash, number);
                let found = |number| table.find(hash, |each| (each == number).then_some(()));
                assert_eq!((found(number), found(99)), (None, Some(())));
            }
            assert!(places(&table) <= Some(2 * SMALL));
        }
    }

    #[test]
    fn what_is_not_there_is_not_taken() {
        let mut table = Table::default();
        table.insert(7, 1);
        table.remove(7, 2);
        table.remove(8, 1);
        assert_eq!((table.len, table.find(7, Some)), (1, Some(1)));
    }
}
