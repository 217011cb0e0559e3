//! The keys of the objects that are open, to find those that stand twice.
//!
//! Keys are compared as they read without escapes. The cost is bounded whatever the keys are: up to
//! [`FEW`] of one object are compared with each other, and only where a filter of 64 bits cannot rule the
//! comparison out; more than that are sorted when the object ends. So an object of n keys costs at most
//! n log n comparisons, however well its keys were chosen to collide. Nothing is allocated per object.

use std::cmp::Ordering;

use super::fault::{Fail, Scan, Why};
use super::text;

/// Up to so many keys of one object are compared as they come.
const FEW: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The keys of all open objects, outermost first.
    keys: Vec<Key>,
    /// The open objects, outermost first.
    objects: Vec<Object>,
    /// The keys that were written with escapes, without them, one after another.
    unescaped: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Key {
    hash: u64,
    /// Where its opening quote stands in the document.
    quote: usize,
    /// Where its text begins: in the document, or in `unescaped`.
    start: usize,
    /// Where its text ends.
    end: usize,
    escaped: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Object {
    /// Where its keys begin in `keys`.
    first: usize,
    /// Where its keys begin in `unescaped`.
    first_unescaped: usize,
    /// A bit for the hash of each of its keys.
    filter: u64,
}

impl Keys {
    pub(super) fn new() -> Self {
        Self { keys: Vec::with_capacity(64), objects: Vec::with_capacity(16), unescaped: Vec::new() }
    }

    /// An object begins.
    #[inline]
    pub(super) fn open(&mut self) {
        self.objects.push(Object {
            first: self.keys.len(),
            first_unescaped: self.unescaped.len(),
            filter: 0,
        });
    }

    /// The object that began last has a key: `quote` is its opening quote, `end` its closing one.
    #[inline]
    pub(super) fn add(&mut self, bytes: &[u8], quote: usize, end: usize, escaped: bool) -> Scan<()> {
        let mut key = Key { hash: 0, quote, start: quote + 1, end, escaped };
        if escaped {
            (key.start, key.end) = self.unescape(bytes, quote + 1, end);
        }
        key.hash = hash(key.text(bytes, &self.unescaped));
        let Some(object) = self.objects.last_mut() else { return Ok(()) };
        let bit = 1 << (key.hash >> 58);
        let known = object.filter & bit != 0;
        object.filter |= bit;
        if known && self.stands_before(bytes, &key) {
            return Err(Fail { at: quote, why: Why::Duplicate });
        }
        self.keys.push(key);
        Ok(())
    }

    /// The object that began last ends.
    #[inline]
    pub(super) fn close(&mut self, bytes: &[u8]) -> Scan<()> {
        let Some(object) = self.objects.pop() else { return Ok(()) };
        if self.keys.len() - object.first > FEW {
            self.sort(bytes, object.first)?;
        }
        self.keys.truncate(object.first);
        self.unescaped.truncate(object.first_unescaped);
        Ok(())
    }

    #[cold]
    fn unescape(&mut self, bytes: &[u8], start: usize, end: usize) -> (usize, usize) {
        let raw = bytes.get(start..end).unwrap_or_default();
        let start = self.unescaped.len();
        match text::unquoted(raw, true) {
            Some(text) => self.unescaped.extend_from_slice(text.as_bytes()),
            // The document is refused for it anyway.
            None => self.unescaped.extend_from_slice(raw),
        }
        (start, self.unescaped.len())
    }

    #[cold]
    fn stands_before(&self, bytes: &[u8], key: &Key) -> bool {
        let first = self.objects.last().map_or(0, |object| object.first);
        let before = self.keys.get(first..).unwrap_or_default();
        before.len() <= FEW && before.iter().any(|other| self.order(bytes, other, key).is_eq())
    }

    /// Sorts the keys of an object, so that equal ones stand side by side.
    #[cold]
    fn sort(&mut self, bytes: &[u8], first: usize) -> Scan<()> {
        let mut keys = self.keys.split_off(first);
        keys.sort_unstable_by(|a, b| self.order(bytes, a, b));
        // Of all that stand twice, the one that comes first in the document.
        let twice = keys.windows(2).filter_map(|pair| match pair {
            [a, b] if self.order(bytes, a, b).is_eq() => Some(a.quote.max(b.quote)),
            _ => None,
        });
        twice.min().map_or(Ok(()), |at| Err(Fail { at, why: Why::Duplicate }))
    }

    fn order(&self, bytes: &[u8], a: &Key, b: &Key) -> Ordering {
        let text = |key: &Key| key.text(bytes, &self.unescaped);
        a.hash.cmp(&b.hash).then_with(|| text(a).cmp(text(b)))
    }
}

impl Key {
    #[inline]
    fn text<'t>(&self, bytes: &'t [u8], unescaped: &'t [u8]) -> &'t [u8] {
        let source = if self.escaped { unescaped } else { bytes };
        source.get(self.start..self.end).unwrap_or_default()
    }
}

/// Cheap, and easily made to collide: it only ever saves comparisons.
#[inline]
fn hash(text: &[u8]) -> u64 {
    let (head, tail) = if let (Some(head), Some(tail)) = (text.first_chunk(), text.last_chunk()) {
        (u64::from_le_bytes(*head), u64::from_le_bytes(*tail))
    } else if let (Some(head), Some(tail)) = (text.first_chunk(), text.last_chunk()) {
        (u64::from(u32::from_le_bytes(*head)), u64::from(u32::from_le_bytes(*tail)))
    } else {
        (text.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0)
    };
    let mixed = head ^ tail.rotate_left(29) ^ ((text.len() as u64) << 56);
    // The odd constant spreads every bit upwards, where the filter looks.
    mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
