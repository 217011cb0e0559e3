//! Numbers of objects, found by the hashes of their keys: a hash table that costs nothing to copy.
//!
//! - A clone is O(1), and stays as it is whatever becomes of the original.
//! - A number is found by looking at one bucket, whose place the hash says: nothing is compared on the way there.
//! - There are as many buckets as keep them small, and they become more or fewer as a whole. That costs what the table has
//!   in it, and comes only after as many changes.

use std::sync::Arc;

use super::vector::Vector;

/// A persistent set of numbers with hashes. Several numbers may have the same hash.
#[derive(Clone, Default)]
pub(super) struct Table {
    /// Entries are a hash, and a number below it. A bucket that would be empty is not there.
    buckets: Vector<Arc<[u64]>>,
    /// So many of the first bits of a hash are the number of its bucket.
    bits: u32,
    len: usize,
}

/// With more entries per bucket than this, on average, there are twice as many buckets.
const MOST: usize = 12;
/// With fewer, there are half as many. Much less than half of `MOST`, or they would go to and fro.
const LEAST: usize = 2;

impl Table {
    /// What is made of the number with this hash, where that is the right one.
    pub(super) fn find<T>(&self, hash: u32, right: impl Fn(u32) -> Option<T>) -> Option<T> {
        let bucket = self.buckets.get(place(hash, self.bits))?;
        let same = bucket.iter().filter(|&&entry| hash_of(entry) == hash);
        same.map(|&entry| number_of(entry)).find_map(right)
    }

    /// Adds a number that is not there.
    pub(super) fn insert(&mut self, hash: u32, number: u32) {
        let at = place(hash, self.bits);
        let others = self.buckets.get(at).map_or(&[][..], |bucket| bucket);
        let bucket = others.iter().copied().chain([entry(hash, number)]).collect();
        self.buckets.set(at, bucket);
        self.len += 1;
        if self.len > MOST << self.bits {
            self.resize(self.bits + 1);
        }
    }

    /// Takes a number.
    pub(super) fn remove(&mut self, hash: u32, number: u32) {
        let (at, gone) = (place(hash, self.bits), entry(hash, number));
        let Some(bucket) = self.buckets.get(at).filter(|bucket| bucket.contains(&gone)) else { return };
        let others: Arc<[u64]> = bucket.iter().copied().filter(|&each| each != gone).collect();
        if others.is_empty() {
            self.buckets.take(at);
        } else {
            self.buckets.set(at, others);
        }
        self.len -= 1;
        if self.bits > 0 && self.len < LEAST << self.bits {
            self.resize(self.bits - 1);
        }
    }

    fn resize(&mut self, bits: u32) {
        let mut entries: Vec<u64> = Vec::with_capacity(self.len);
        for at in 0..1 << self.bits {
            entries.extend(self.buckets.get(at).into_iter().flat_map(|bucket| bucket.iter()));
        }
        // Buckets are ranges of hashes: what will be in one stands together already, or in two that are neighbours.
        let mut buckets = Vector::default();
        entries.sort_unstable();
        for bucket in entries.chunk_by(|a, b| place(hash_of(*a), bits) == place(hash_of(*b), bits)) {
            if let Some(&first) = bucket.first() {
                buckets.set(place(hash_of(first), bits), bucket.into());
            }
        }
        (self.buckets, self.bits) = (buckets, bits);
    }
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

/// Where the entries with a hash are.
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
    fn buckets_stay_small_and_go_with_what_was_in_them() {
        let spread = |number: u32| number.wrapping_mul(0x9E37_79B1);
        let mut table = Table::default();
        for number in 0..10_000 {
            table.insert(spread(number), number);
        }
        let largest =
            (0..1 << table.bits).filter_map(|at| table.buckets.get(at)).map(|bucket| bucket.len()).max();
        assert!(largest <= Some(4 * MOST), "{largest:?}");
        for number in 0..10_000 {
            assert_eq!(table.find(spread(number), Some), Some(number));
            table.remove(spread(number), number);
        }
        assert_eq!((table.len, table.bits), (0, 0));
        assert!(table.buckets.get(0).is_none());
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
