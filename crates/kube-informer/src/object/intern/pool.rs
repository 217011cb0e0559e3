//! Shared values, found by the hash of what they are made from.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use foldhash::fast::RandomState;

/// Below so many values no sweep is worth it.
const FEW: usize = 64;

/// Values by hash. A candidate need not be a value: it must hash as the values equal to it do, in this pool.
pub(super) struct Pool<T: ?Sized> {
    /// From outside come keys that somebody may choose: the hash is seeded, and never shown.
    hasher: RandomState,
    values: HashMap<u64, Arc<T>, RandomState>,
    /// Nearly always none: those whose hash of 64 bits another value had before them.
    more: Vec<(u64, Arc<T>)>,
    sweep_at: usize,
}

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Self { hasher: RandomState::default(), values: HashMap::default(), more: Vec::new(), sweep_at: FEW }
    }
}

impl<T: ?Sized> Pool<T> {
    /// The value that `is` the candidate, or what `make` makes of it.
    pub(super) fn get<C: Hash + ?Sized>(
        &mut self,
        candidate: &C,
        is: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Arc<T>,
    ) -> Arc<T> {
        let hash = self.hasher.hash_one(candidate);
        self.get_hashed(hash, is, make)
    }

    /// How many values are held, alive or not yet swept.
    pub(super) fn len(&self) -> usize {
        self.values.len() + self.more.len()
    }

    fn get_hashed(&mut self, hash: u64, is: impl Fn(&T) -> bool, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let more = self.more.iter().filter(|(other, _)| *other == hash).map(|(_, value)| value);
        if let Some(known) = self.values.get(&hash).into_iter().chain(more).find(|known| is(known)) {
            return Arc::clone(known);
        }
        if self.len() >= self.sweep_at {
            self.sweep();
        }
        let value = make();
        match self.values.entry(hash) {
            Entry::Vacant(place) => {
                place.insert(Arc::clone(&value));
            }
            Entry::Occupied(_) => self.more.push((hash, Arc::clone(&value))),
        }
        value
    }

    /// Lets go what only the pool holds. No other thread can begin to hold such a value meanwhile: it would have to
    /// come through the pool, and that is lent to us alone.
    fn sweep(&mut self) {
        self.values.retain(|_, value| Arc::strong_count(value) > 1);
        self.more.retain(|(_, value)| Arc::strong_count(value) > 1);
        self.sweep_at = (self.len() * 2).max(FEW);
        self.values.shrink_to(self.sweep_at);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{FEW, Pool};

    fn get(pool: &mut Pool<str>, hash: u64, value: &str) -> Arc<str> {
        pool.get_hashed(hash, |known| known == value, || Arc::from(value))
    }

    #[test]
    fn values_with_one_hash_are_told_apart() {
        let mut pool = Pool::default();
        let (a, b) = (get(&mut pool, 1, "a"), get(&mut pool, 1, "b"));
        assert_eq!((&*a, &*b), ("a", "b"));
        assert!(Arc::ptr_eq(&a, &get(&mut pool, 1, "a")));
        assert!(Arc::ptr_eq(&b, &get(&mut pool, 1, "b")));
        assert_eq!(pool.len(), 2);
    }

    #[test]
    fn of_values_with_one_hash_those_that_are_held_survive_a_sweep() {
        let mut pool = Pool::default();
        let held: Vec<_> = ["a", "b", "c"].map(|value| get(&mut pool, 1, value)).into();
        drop(get(&mut pool, 1, "d"));
        drop(get(&mut pool, 2, "e"));
        let [a, b, c] = held.try_into().unwrap();
        drop((a, b));
        pool.sweep();
        assert_eq!(pool.len(), 1);
        assert!(Arc::ptr_eq(&c, &get(&mut pool, 1, "c")));
    }

    #[test]
    fn the_pool_never_holds_more_than_twice_what_was_alive_at_the_last_sweep() {
        let mut pool = Pool::default();
        let held: Vec<_> = (0..1000_u64).map(|at| get(&mut pool, at, "held")).collect();
        for at in 1000..50_000 {
            get(&mut pool, at, "dropped");
            assert!(pool.len() <= 2 * (held.len() + FEW), "{}", pool.len());
        }
        drop(held);
        for at in 50_000..60_000 {
            get(&mut pool, at, "dropped");
        }
        assert!(pool.len() <= FEW, "{}", pool.len());
        assert!(pool.values.capacity() <= 8 * FEW, "{}", pool.values.capacity());
    }
}
