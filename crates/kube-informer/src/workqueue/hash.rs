//! Hashes of keys: of names, mostly, a few dozen bytes long.
//!
//! The standard library's hash withstands whoever sees hashes and chooses keys, and was half of the instructions that it
//! takes to add a key. This one multiplies two words at a time by what only the process knows, and folds
//! the product. It is no cryptographic hash, but who names objects cannot tell which names collide: the secret is drawn for
//! each table, and neither hashes nor the order of a table are ever shown.

use std::hash::{BuildHasher as _, Hash, Hasher as _, RandomState};

/// The hash of a key in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hashed(pub(super) u32);

/// Makes the hashes of one table. A clone makes the same: hashing needs no table.
#[derive(Clone, Copy)]
pub(super) struct Hasher {
    begin: u64,
    secret: u64,
}

/// A hash on its way.
struct Folding {
    state: u64,
    secret: u64,
}

impl Hasher {
    #[inline]
    pub(super) fn hash<K: Hash>(&self, key: &K) -> Hashed {
        let mut folding = Folding { state: self.begin, secret: self.secret };
        key.hash(&mut folding);
        // Half of it is enough for four billion places.
        Hashed(folding.finish() as u32)
    }
}

impl Default for Hasher {
    fn default() -> Self {
        let random = RandomState::new();
        // Odd, so that it is not zero, which would fold everything to nothing.
        Self { begin: random.hash_one(0), secret: random.hash_one(1) | 1 }
    }
}

impl Folding {
    /// Takes in two words. A product has its best bits in the middle: its halves laid over each other have them everywhere.
    #[inline]
    fn take(&mut self, one: u64, other: u64) {
        let product = u128::from(one ^ self.state) * u128::from(other ^ self.secret);
        self.state = product as u64 ^ (product >> 64) as u64;
    }
}

impl std::hash::Hasher for Folding {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk::<16>() {
            let (chunks, rest) = bytes.as_chunks::<16>();
            for chunk in chunks {
                self.take(word(chunk.first_chunk()), word(chunk.last_chunk()));
            }
            // The last ones, with some that were there already.
            if !rest.is_empty() {
                self.take(word(last.first_chunk()), word(last.last_chunk()));
            }
        } else if bytes.len() >= 8 {
            self.take(word(bytes.first_chunk()), word(bytes.last_chunk()));
        } else {
            let mut padded = [0; 8];
            padded.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            self.take(u64::from_le_bytes(padded), 0);
        }
        // Bytes that overlap, or are zero, look the same in texts of other lengths.
        self.state = self.state.wrapping_add(bytes.len() as u64);
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.take(number.into(), 0);
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.take(number.into(), 0);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.take(number, 0);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.take(number as u64, 0);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let mut last = Self { state: self.state, secret: self.secret };
        last.take(0, 0);
        last.state
    }
}

fn word(bytes: Option<&[u8; 8]>) -> u64 {
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_clone_makes_the_same_hashes_and_another_one_does_not() {
        let (one, other) = (Hasher::default(), Hasher::default());
        let hashes = |hasher: Hasher| (0..10).map(|key| hasher.hash(&key).0).collect::<Vec<u32>>();
        assert_eq!(hashes(one), hashes(one));
        assert_ne!(hashes(one), hashes(other));
    }

    /// Of so many random numbers, few are equal, and the places of a table are taken as often as by chance.
    fn looks_random(hashes: &[u32]) {
        let different: HashSet<u32> = hashes.iter().copied().collect();
        assert!(hashes.len() - different.len() < 20, "{} of {}", different.len(), hashes.len());
        let places = hashes.len().next_power_of_two();
        for shift in [0, 8] {
            let taken: HashSet<usize> =
                hashes.iter().map(|hash| (hash >> shift) as usize & (places - 1)).collect();
            let expected = places as f64 * (1.0 - (-(hashes.len() as f64) / places as f64).exp());
            assert!((taken.len() as f64 / expected - 1.0).abs() < 0.02, "{} of {expected}", taken.len());
        }
    }

    #[test]
    fn names_that_differ_in_a_little_are_spread_over_a_table() {
        let hasher = Hasher::default();
        let names = (0..100_000).map(|at| hasher.hash(&format!("namespace-{}/web-{at:07}", at / 1000)).0);
        looks_random(&names.collect::<Vec<_>>());
        let pairs = (0..100_000).map(|at| hasher.hash(&(format!("n{}", at / 300), at % 300)).0);
        looks_random(&pairs.collect::<Vec<_>>());
        looks_random(&(0..100_000_u64).map(|at| hasher.hash(&at).0).collect::<Vec<_>>());
        looks_random(&(0..100_000_u64).map(|at| hasher.hash(&(at << 40)).0).collect::<Vec<_>>());
    }

    #[test]
    fn a_text_is_not_a_longer_one_of_the_same_letters() {
        let hasher = Hasher::default();
        for letter in ["a", "\0"] {
            let hashes: HashSet<u32> = (0..300).map(|length| hasher.hash(&letter.repeat(length)).0).collect();
            assert_eq!(hashes.len(), 300);
        }
    }

    #[test]
    fn every_byte_of_a_text_counts() {
        let hasher = Hasher::default();
        for length in 1..70 {
            let text = vec![b'a'; length];
            let whole = hasher.hash(&text);
            for at in 0..length {
                let mut other = text.clone();
                other[at] = b'b';
                assert_ne!(hasher.hash(&other), whole, "{at} of {length}");
            }
        }
    }
}
