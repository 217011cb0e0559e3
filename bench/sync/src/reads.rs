//! How long it takes to read a cache: one object by its key, those of one value of an index, those with a label, all.
//!
//! What is read is hot: the same few keys and values again and again, as a controller does it that works on some
//! objects at a time. Every read looks at each object that it finds, and returns the sum of what it saw, so that it can be
//! told whether all contestants read the same.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::usage::cpu_ns;

/// How long each kind of read is repeated.
const TURN: Duration = Duration::from_secs(1);

/// So many objects are hot.
const HOT_OBJECTS: usize = 64;

/// So many values of the index are.
const HOT_VALUES: usize = 8;

/// One way to read.
pub type Read<T> = Box<dyn Fn(&T) -> usize + Send + Sync>;

/// The ways to read a cache, by key and by value.
pub struct Reads {
    /// All `namespace/name`, in their order.
    pub keys: Vec<String>,
    /// All values of the index, in their order.
    pub values: Vec<String>,
    /// All values of the label, in their order.
    pub labels: Vec<String>,
    /// One object by its key: looks into the typed object.
    pub get: Read<str>,
    /// Those of one value: looks into each typed object.
    pub indexed: Read<str>,
    /// All of them: looks into each typed object.
    pub list: Read<()>,
    /// Those with a value of the label, which has no index: looks at the name of each.
    pub labelled: Read<str>,
    /// All of them, as they are at one time: looks at how many there are.
    pub snapshot: Read<()>,
    /// The same objects without the cache, where it is asked what memory alone costs.
    pub plain: Option<Plain>,
}

/// The same objects in a hash map and in vectors, which are looked at in the same way.
pub struct Plain {
    /// One object by its key.
    pub get: Read<str>,
    /// Those of one value.
    pub indexed: Read<str>,
    /// All of them.
    pub list: Read<()>,
}

/// What was measured with one reader.
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
    /// The same, without the cache.
    pub plain: Option<Box<ReadTimes>>,
}

/// What was measured with many readers at once. Times are those of the wall, and what the whole process used of the
/// processor, divided by the reads of all.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReaderTimes {
    /// How many read.
    pub readers: usize,
    /// Nanoseconds to read an object.
    pub get_ns: f64,
    /// The same, of the processor.
    pub get_cpu_ns: f64,
    /// Nanoseconds to read those of one value.
    pub indexed_ns: f64,
    /// The same, of the processor.
    pub indexed_cpu_ns: f64,
    /// Nanoseconds to read those with a label.
    pub labelled_ns: f64,
    /// The same, of the processor.
    pub labelled_cpu_ns: f64,
    /// Nanoseconds to have all of them.
    pub snapshot_ns: f64,
    /// The same, of the processor.
    pub snapshot_cpu_ns: f64,
    /// What one pass over all that is hot has seen, of each kind: the same for all contestants.
    pub found: [usize; 4],
}

/// What a first pass saw, and the nanoseconds per read of all that followed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Timed {
    found: usize,
    wall_ns: f64,
    cpu_ns: f64,
}

impl Reads {
    /// One reader, for a second each.
    #[must_use]
    pub fn measure(&self) -> ReadTimes {
        let plain = self.plain.as_ref();
        let plain = plain.map(|plain| Box::new(self.of(&plain.get, &plain.indexed, &plain.list)));
        ReadTimes { plain, ..self.of(&self.get, &self.indexed, &self.list) }
    }

    fn of(&self, get: &Read<str>, indexed: &Read<str>, list: &Read<()>) -> ReadTimes {
        let get = timed(&spread(&self.keys, HOT_OBJECTS), get, 1);
        let indexed = timed(&spread(&self.values, HOT_VALUES), indexed, 1);
        let list = timed(&[&()], list, 1);
        ReadTimes {
            get_ns: get.wall_ns,
            indexed_ns: indexed.wall_ns,
            list_ns: list.wall_ns,
            found: [get.found, indexed.found, list.found],
            plain: None,
        }
    }

    /// So many readers at once, for a second each.
    #[must_use]
    pub fn measure_with(&self, readers: usize) -> ReaderTimes {
        let get = timed(&spread(&self.keys, HOT_OBJECTS), &self.get, readers);
        let indexed = timed(&spread(&self.values, HOT_VALUES), &self.indexed, readers);
        let labelled = timed(&spread(&self.labels, HOT_VALUES), &self.labelled, readers);
        let snapshot = timed(&[&()], &self.snapshot, readers);
        ReaderTimes {
            readers,
            get_ns: get.wall_ns,
            get_cpu_ns: get.cpu_ns,
            indexed_ns: indexed.wall_ns,
            indexed_cpu_ns: indexed.cpu_ns,
            labelled_ns: labelled.wall_ns,
            labelled_cpu_ns: labelled.cpu_ns,
            snapshot_ns: snapshot.wall_ns,
            snapshot_cpu_ns: snapshot.cpu_ns,
            found: [get.found, indexed.found, labelled.found, snapshot.found],
        }
    }
}

/// Reads by so many threads, for a turn.
fn timed<T: ?Sized + Sync>(items: &[&T], read: &Read<T>, readers: usize) -> Timed {
    let found = items.iter().map(|item| read(item)).sum();
    let (passes, together) = (AtomicUsize::new(0), Barrier::new(readers.max(1)));
    let reader = || {
        together.wait();
        let start = Instant::now();
        while start.elapsed() < TURN {
            for item in items {
                black_box(read(item));
            }
            passes.fetch_add(1, Ordering::Relaxed);
        }
        start.elapsed()
    };
    let cpu = cpu_ns();
    let took = std::thread::scope(|scope| {
        let others: Vec<_> = (1..readers).map(|_| scope.spawn(reader)).collect();
        let first = reader();
        others.into_iter().filter_map(|other| other.join().ok()).fold(first, Duration::max)
    });
    let cpu = (cpu_ns() - cpu) as f64;
    let reads = (passes.into_inner().max(1) * items.len().max(1)) as f64;
    Timed { found, wall_ns: took.as_nanos() as f64 / reads, cpu_ns: cpu / reads }
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

    #[test]
    fn what_is_found_does_not_depend_on_how_many_read() {
        let read: Read<str> = Box::new(str::len);
        let (one, eight) = (timed(&["a", "bc"], &read, 1), timed(&["a", "bc"], &read, 8));
        assert_eq!((one.found, eight.found), (3, 3));
        assert!(one.wall_ns > 0.0 && eight.wall_ns > 0.0);
        // Eight threads get no more of the processors than there are.
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        assert!(eight.cpu_ns > 0.0 && eight.cpu_ns <= eight.wall_ns * (processors + 1.0), "{eight:?}");
    }
}
