//! The keys of the objects that are open, to find those that stand twice.
//!
//! Keys are compared as they read without escapes. The cost is bounded whatever the keys are: up to
//! [`FEW`] of one object are compared with each other, and only where a filter of 64 bits cannot rule the
//! comparison out; more than that are sorted when the object ends. So an object of n keys costs at most
//! n log n comparisons, however well its keys were chosen to collide. Nothing is allocated per object.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::fault::{Fail, Scan, Why};
use super::text;

/// Up to so many keys of one object are compared as they come.
const FEW: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Keys {
    /// The keys of all open objects, outermost first.
    keys: Vec<Key>,
    /// The object that began last.
    inner: Object,
    /// The objects around it, outermost first.
    outer: Vec<Object>,
}

#[derive(Debug, Clone, Copy)]
struct Key {
    /// Of the text, without escapes.
    hash: u64,
    /// Where its opening quote stands in the document.
    quote: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Object {
    /// Where its keys begin.
    first: usize,
    /// A bit for the hash of each of its keys.
    filter: u64,
}

impl Keys {
    /// With room for the keys of a usual document.
    pub(super) fn new() -> Self {
        Self { keys: Vec::with_capacity(64), inner: Object::default(), outer: Vec::with_capacity(16) }
    }

    /// An object begins.
    #[inline(always)]
    pub(super) fn open(&mut self) {
        self.outer.push(self.inner);
        self.inner = Object { first: self.keys.len(), filter: 0 };
    }

    /// The object that began last has a key: `quote` is its opening quote, `end` its closing one.
    #[inline(always)]
    pub(super) fn add(&mut self, bytes: &[u8], quote: usize, end: usize, escaped: bool) -> Scan<()> {
        let hash = if escaped {
            hash(&text_at(bytes, quote))
        } else {
            hash(bytes.get(quote + 1..end).unwrap_or_default())
        };
        let bit = 1 << (hash >> 58);
        let maybe_known = self.inner.filter & bit != 0;
        self.inner.filter |= bit;
        let key = Key { hash, quote };
        if maybe_known && self.stands_before(bytes, key) {
            return Err(Fail { at: quote, why: Why::Duplicate });
        }
        self.keys.push(key);
        Ok(())
    }

    /// The object that began last ends.
    #[inline(always)]
    pub(super) fn close(&mut self, bytes: &[u8]) -> Scan<()> {
        let first = self.inner.first;
        if self.keys.len() - first > FEW {
            self.sort(bytes)?;
        }
        self.keys.truncate(first);
        self.inner = self.outer.pop().unwrap_or_default();
        Ok(())
    }

    fn stands_before(&self, bytes: &[u8], key: Key) -> bool {
        let before = self.keys.get(self.inner.first..).unwrap_or_default();
        before.len() <= FEW && before.iter().any(|other| order(bytes, *other, key).is_eq())
    }

    /// Sorts the keys of an object, so that equal ones stand side by side.
    #[cold]
    fn sort(&mut self, bytes: &[u8]) -> Scan<()> {
        let keys = self.keys.get_mut(self.inner.first..).unwrap_or_default();
        keys.sort_unstable_by(|a, b| order(bytes, *a, *b));
        // Of all that stand twice, the one that comes first in the document.
        let twice = keys.windows(2).filter_map(|pair| match *pair {
            [a, b] if order(bytes, a, b).is_eq() => Some(a.quote.max(b.quote)),
            _ => None,
        });
        twice.min().map_or(Ok(()), |at| Err(Fail { at, why: Why::Duplicate }))
    }
}

fn order(bytes: &[u8], a: Key, b: Key) -> Ordering {
    a.hash.cmp(&b.hash).then_with(|| text_at(bytes, a.quote).cmp(&text_at(bytes, b.quote)))
}

/// The text of a key that was read before.
#[cold]
fn text_at(bytes: &[u8], quote: usize) -> Cow<'_, [u8]> {
    let Ok((end, escaped)) = text::string(bytes, quote + 1) else { return Cow::default() };
    let raw = bytes.get(quote + 1..end).unwrap_or_default();
    match text::unquoted(raw, escaped) {
        Some(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
        // What is not UTF-8 is no document, and was refused before.
        _ => Cow::Borrowed(raw),
    }
}

/// Cheap, and easily made to collide: it only ever saves comparisons. The first eight bytes, the last
/// eight and the length count.
#[inline(always)]
fn hash(text: &[u8]) -> u64 {
    let (head, tail) = match (text.first_chunk(), text.last_chunk()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => short(text),
    };
    let mixed = head ^ tail.rotate_left(29) ^ ((text.len() as u64) << 56);
    // The odd constant spreads every bit upwards, where the filter looks.
    mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// All of a text of less than eight bytes.
#[inline(always)]
fn short(text: &[u8]) -> (u64, u64) {
    match (text.first_chunk(), text.last_chunk()) {
        (Some(head), Some(tail)) => (u32::from_le_bytes(*head).into(), u32::from_le_bytes(*tail).into()),
        _ => match *text {
            [a, b, c] => (u32::from_le_bytes([a, b, c, 0]).into(), 0),
            [a, b] => (u16::from_le_bytes([a, b]).into(), 0),
            [a] => (a.into(), 0),
            _ => (0, 0),
        },
    }
}
