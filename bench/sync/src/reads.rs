//! How long it takes to read a cache: one object by its key, those of one value of an index, all of them.
//!
//! What is read is hot: the same few keys and values again and again, as a controller does it that works on some
//! objects at a time. Every read looks into each typed object that it finds, and returns the sum of what it saw, so that
//! it can be told whether all contestants read the same.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::Serialize;

/// How long each kind of read is repeated.
const TURN: Duration = Duration::from_secs(1);

/// So many objects are hot.
const HOT_OBJECTS: usize = 64;

/// So many values of the index are.
const HOT_VALUES: usize = 8;

/// One way to read.
pub type Read<T> = Box<dyn Fn(&T) -> usize>;

/// The three ways to read a cache, by key and by value of the index.
pub struct Reads {
    /// All `namespace/name`, in their order.
    pub keys: Vec<String>,
    /// All values of the index, in their order.
    pub values: Vec<String>,
    /// One object by its key.
    pub get: Read<str>,
    /// Those of one value.
    pub indexed: Read<str>,
    /// All of them.
    pub list: Read<()>,
}

/// What was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadTimes {
    /// Nanoseconds to read an object.
    pub get_ns: f64,
    /// Nanoseconds to read those of one value.
    pub indexed_ns: f64,
    /// Nanoseconds to read all of them.
    pub list_ns: f64,
    /// What one pass over all that is hot has seen, of each kind: the same for all contestants.
    pub found: [usize; 3],
}

impl Reads {
    /// Reads, for a second each.
    #[must_use]
    pub fn measure(&self) -> ReadTimes {
        let (got, get_ns) = timed(&spread(&self.keys, HOT_OBJECTS), &self.get);
        let (indexed, indexed_ns) = timed(&spread(&self.values, HOT_VALUES), &self.indexed);
        let (listed, list_ns) = timed(&[&()], &self.list);
        ReadTimes { get_ns, indexed_ns, list_ns, found: [got, indexed, listed] }
    }
}

/// What the first pass saw, and the nanoseconds per read of all that follow.
fn timed<T: ?Sized>(items: &[&T], read: &Read<T>) -> (usize, f64) {
    let found = items.iter().map(|item| read(item)).sum();
    let (mut passes, start) = (0, Instant::now());
    while start.elapsed() < TURN {
        for item in items {
            black_box(read(item));
        }
        passes += 1;
    }
    (found, start.elapsed().as_nanos() as f64 / (passes * items.len().max(1)) as f64)
}

/// So many of the items, from everywhere.
fn spread(items: &[String], count: usize) -> Vec<&str> {
    let count = count.min(items.len());
    (0..count).filter_map(|at| items.get(at * items.len() / count)).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hot_items_are_from_everywhere() {
        let items: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        assert_eq!(spread(&items, 4), ["0", "2", "5", "7"]);
        assert_eq!(spread(&items, 20).len(), 10);
        assert!(spread(&[], 4).is_empty());
    }
}
