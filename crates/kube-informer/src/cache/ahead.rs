//! Objects by their numbers, some at a time: the processor waits for several of them at once, not for one after the other.
//!
//! Where there are more objects than its caches hold, to read one is to wait for memory. Those that are read together are
//! looked at before the first of them is handed out, so that these waits overlap.

use super::store::Store;
use super::tree;
use super::vector::Reader;
use crate::object::Object;

/// So many are read together.
const MOST: usize = 16;

/// How many are read next: whoever wants one does not wait for many.
#[derive(Clone, Copy)]
pub(super) struct Pace(usize);

impl Default for Pace {
    fn default() -> Self {
        Self(1)
    }
}

impl Pace {
    fn next(&mut self) -> usize {
        let now = self.0;
        self.0 = (now * 2).min(MOST);
        now
    }
}

/// Objects that are lent, in order.
pub(super) struct Ahead<'a> {
    ids: tree::Iter<u32>,
    objects: Reader<'a, Object>,
    pace: Pace,
    /// Those that were read, and the next of them.
    read: [Option<&'a Object>; MOST],
    next: usize,
}

impl<'a> Ahead<'a> {
    pub(super) fn new(ids: tree::Iter<u32>, store: &'a Store) -> Self {
        Self { ids, objects: store.reader(), pace: Pace::default(), read: [None; MOST], next: MOST }
    }
}

impl<'a> Iterator for Ahead<'a> {
    type Item = &'a Object;

    fn next(&mut self) -> Option<&'a Object> {
        loop {
            if let Some(object) = self.read.get_mut(self.next).and_then(Option::take) {
                self.next += 1;
                return Some(object);
            }
            if self.ids.len() == 0 {
                return None;
            }
            let Self { ids, objects, pace, read, next } = self;
            *next = 0;
            fill(ids, objects, pace, read);
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let read = self.read.iter().flatten().count();
        // A number whose object is gone leads to none.
        (read, Some(read + self.ids.len()))
    }
}

/// Reads some objects, the first one last.
pub(super) fn read_some<'a>(
    ids: &mut tree::Iter<u32>,
    store: &'a Store,
    pace: &mut Pace,
) -> impl Iterator<Item = &'a Object> + use<'a> {
    let mut read = [None; MOST];
    fill(ids, &mut store.reader(), pace, &mut read);
    read.into_iter().rev().flatten()
}

fn fill<'a>(
    ids: &mut tree::Iter<u32>,
    objects: &mut Reader<'a, Object>,
    pace: &mut Pace,
    read: &mut [Option<&'a Object>; MOST],
) {
    let found = ids.take(pace.next()).filter_map(|(id, ())| objects.get(id));
    read.iter_mut().zip(found).for_each(|(place, object)| *place = Some(object));
    for object in read.iter().flatten() {
        // Nothing depends on it: the next one is looked at before this one has come.
        object.touch();
    }
}
