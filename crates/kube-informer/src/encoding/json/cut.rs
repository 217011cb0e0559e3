//! What is cut: the dropped fields under the value that is being read, and the bytes between the cuts.

use std::ops::Range;

use crate::encoding::Pointer;

/// The dropped fields that lead through the value that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drops<'r> {
    /// Sorted. All begin with the keys that lead to the value.
    pointers: &'r [Pointer],
    /// How many keys that are.
    depth: usize,
}

impl<'r> Drops<'r> {
    pub(super) fn new(pointers: &'r [Pointer]) -> Self {
        Self { pointers, depth: 0 }
    }

    /// Whether nothing is dropped here or below.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.pointers.is_empty()
    }

    /// Whether the value itself is dropped.
    #[inline]
    pub(super) fn here(self) -> bool {
        // The shortest of those with a common beginning is sorted first.
        self.pointers.first().is_some_and(|pointer| pointer.tokens().len() == self.depth)
    }

    /// Those that lead through a member of the value.
    #[inline]
    pub(super) fn under(self, key: &str) -> Self {
        if self.is_empty() {
            return self;
        }
        let token = |pointer: &Pointer| pointer.tokens().nth(self.depth).unwrap_or_default().cmp(key);
        let start = self.pointers.partition_point(|pointer| token(pointer).is_lt());
        let rest = self.pointers.get(start..).unwrap_or_default();
        let end = rest.partition_point(|pointer| token(pointer).is_eq());
        Self { pointers: rest.get(..end).unwrap_or_default(), depth: self.depth + 1 }
    }
}

/// Appends what the cuts leave of a document from `start` on. They are in order and do not overlap.
pub(super) fn splice(bytes: &[u8], start: usize, cuts: &[Range<usize>], out: &mut Vec<u8>) {
    let mut from = start;
    for cut in cuts {
        out.extend_from_slice(bytes.get(from..cut.start).unwrap_or_default());
        from = cut.end;
    }
    out.extend_from_slice(bytes.get(from..).unwrap_or_default());
}
