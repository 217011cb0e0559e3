//! A label set in two allocations: one text, and where its parts end.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The labels of an object, sorted by key; no key stands twice.
///
/// Cheap to share and to compare, and compact: seven labels of a usual pod take about 300 bytes.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels {
    /// Keys and values, one after the other.
    text: Box<str>,
    /// Where each key and each value ends in the text: two for each label.
    ends: Box<[u32]>,
}

/// A label set that is not one yet: borrowed pairs, in order.
pub(super) struct Sorted<'a> {
    pairs: &'a [(Cow<'a, str>, Cow<'a, str>)],
    /// Which pairs count, by key.
    order: &'a [u32],
}

impl Labels {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        // Label sets are small, and a binary search jumps: nearly the same, but this has no worst case.
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from + (to - from) / 2;
            let (found, value) = self.at(middle);
            match found.cmp(key) {
                std::cmp::Ordering::Equal => return Some(value),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }

    /// Whether there is such a key.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Keys and values, sorted by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> + DoubleEndedIterator + Clone {
        (0..self.len()).map(|at| self.at(at))
    }

    /// How many labels there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len() / 2
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The key and the value at a place below `len()`.
    fn at(&self, at: usize) -> (&str, &str) {
        (self.part(2 * at), self.part(2 * at + 1))
    }

    fn part(&self, at: usize) -> &str {
        let end = |at: usize| self.ends.get(at).map_or(0, |&end| end as usize);
        let start = at.checked_sub(1).map_or(0, end);
        self.text.get(start..end(at)).unwrap_or_default()
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a> Sorted<'a> {
    /// Puts pairs in order. `order` is only memory that the caller keeps from one time to the next.
    pub(super) fn new(pairs: &'a [(Cow<'a, str>, Cow<'a, str>)], order: &'a mut Vec<u32>) -> Self {
        order.clear();
        order.extend((0_u32..).zip(pairs).map(|(at, _)| at));
        let key = |at: u32| pairs.get(at as usize).map(|(key, _)| &**key);
        // Servers send them sorted; that is found out in one pass.
        if !order.is_sorted_by(|&a, &b| key(a) < key(b)) {
            // Of equal keys the later one comes first, and stays.
            order.sort_unstable_by(|&a, &b| key(a).cmp(&key(b)).then(b.cmp(&a)));
            order.dedup_by(|b, a| key(*a) == key(*b));
        }
        Self { pairs, order }
    }

    /// Whether this is that label set.
    pub(super) fn is(&self, labels: &Labels) -> bool {
        self.order.len() == labels.len() && self.iter().eq(labels.iter())
    }

    pub(super) fn to_labels(&self) -> Labels {
        let size = self.iter().map(|(key, value)| key.len() + value.len()).sum();
        let mut text = String::with_capacity(size);
        let mut ends = Vec::with_capacity(2 * self.order.len());
        for (key, value) in self.iter() {
            // Beyond 4 GiB, which no server sends, labels are left out rather than cut.
            let Ok(end) = u32::try_from(text.len() + key.len() + value.len()) else { break };
            text.push_str(key);
            text.push_str(value);
            ends.extend([end - value.len() as u32, end]);
        }
        Labels { text: text.into(), ends: ends.into() }
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.order.iter().filter_map(|&at| self.pairs.get(at as usize)).map(|(key, value)| (&**key, &**value))
    }
}

impl Hash for Sorted<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for pair in self.iter() {
            pair.hash(state);
        }
    }
}
