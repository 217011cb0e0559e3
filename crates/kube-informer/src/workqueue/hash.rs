//! Hashes of keys: of names, mostly, a few dozen bytes long.
//!
//! The standard library's hash withstands whoever sees hashes and chooses keys, and was half of the instructions that it
//! takes to add a key. foldhash's is seeded for each table. It is no cryptographic hash, but neither hashes nor the order of
//! a table are ever shown: who names objects cannot tell which names collide.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;

/// The hash of a key in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hashed(pub(super) u32);

/// Makes the hashes of one table. A clone makes the same: hashing needs no table.
#[derive(Clone, Default)]
pub(super) struct Hasher(RandomState);

impl Hasher {
    #[inline]
    pub(super) fn hash<K: Hash>(&self, key: &K) -> Hashed {
        // Half of it is enough for four billion places.
        Hashed(self.0.hash_one(key) as u32)
    }
}
