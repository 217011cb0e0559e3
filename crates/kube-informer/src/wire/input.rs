//! The bytes of a body that have come and are not used up.
//!
//! A cursor that only moves forward. From [`Input::keep`] on, what it passes is kept until it is
//! [taken](Input::take) or [dropped](Input::drop_kept): lent from the chunk while that suffices, copied together
//! when the next chunk is needed.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Chunks of a body, read through a cursor.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// The chunk that is being read.
    chunk: Bytes,
    /// How much of it has been read.
    at: usize,
    /// Where in it that which is kept begins. Never beyond `at`.
    mark: Option<usize>,
    /// What is kept of earlier chunks. Empty where nothing is kept.
    held: BytesMut,
    /// Pushed, and not begun.
    waiting: VecDeque<Bytes>,
    /// Where in the body the chunk begins.
    base: usize,
    /// Where in the body that which is kept begins.
    kept_from: usize,
    /// How many bytes were handed out to be looked at, or were copied.
    #[cfg(test)]
    pub(super) work: usize,
}

impl Input {
    pub(super) fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.waiting.push_back(chunk);
        }
    }

    /// What is at hand from the cursor on: never empty; `None` until more is pushed.
    pub(super) fn rest(&mut self) -> Option<&[u8]> {
        if self.at == self.chunk.len() {
            if let Some(mark) = self.mark {
                self.held.extend_from_slice(&self.chunk[mark..]);
                #[cfg(test)]
                (self.work += self.chunk.len() - mark);
                self.mark = Some(0);
            }
            self.base = self.base.saturating_add(self.chunk.len());
            self.at = 0;
            // An idle watch does not hold on to a chunk that is used up.
            self.chunk = self.waiting.pop_front().unwrap_or_default();
        }
        let rest = &self.chunk[self.at..];
        #[cfg(test)]
        (self.work += rest.len());
        if rest.is_empty() { None } else { Some(rest) }
    }

    /// Moves the cursor, at most to the end of what is at hand.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes).min(self.chunk.len());
    }

    /// The cursor's place in the body.
    pub(super) fn offset(&self) -> usize {
        self.base.saturating_add(self.at)
    }

    /// From here on, what the cursor passes is kept.
    pub(super) fn keep(&mut self) {
        self.held = BytesMut::new();
        self.mark = Some(self.at);
        self.kept_from = self.offset();
    }

    /// How much is kept.
    pub(super) fn kept(&self) -> usize {
        self.mark.map_or(0, |mark| self.held.len() + self.at - mark)
    }

    /// Where in the body that which is kept, or was last kept, begins.
    pub(super) fn kept_from(&self) -> usize {
        self.kept_from
    }

    /// What was kept; from here on nothing is.
    pub(super) fn take(&mut self) -> Bytes {
        let mark = self.mark.take().unwrap_or(self.at);
        if self.held.is_empty() {
            return self.chunk.slice(mark..self.at);
        }
        self.held.extend_from_slice(&self.chunk[mark..self.at]);
        #[cfg(test)]
        (self.work += self.at - mark);
        // Not `split`: what is left of the capacity would hold on to the whole allocation.
        std::mem::take(&mut self.held).freeze()
    }

    /// What was kept is not needed; from here on nothing is kept.
    pub(super) fn drop_kept(&mut self) {
        self.mark = None;
        self.held = BytesMut::new();
    }

    /// Drops everything that has come.
    pub(super) fn clear(&mut self) {
        self.drop_kept();
        self.base = self.offset();
        self.at = 0;
        self.chunk = Bytes::new();
        self.waiting = VecDeque::new();
    }

    /// How many bytes are held, in whatever form.
    pub(super) fn buffered(&self) -> usize {
        self.held.len() + self.chunk.len() + self.waiting.iter().map(Bytes::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_one_chunk_is_lent_from_it() {
        let chunk = Bytes::from_static(b"abcdef");
        let mut input = Input::default();
        input.push(chunk.clone());
        input.rest();
        input.advance(1);
        input.keep();
        input.advance(3);
        assert_eq!(input.kept(), 3);
        let taken = input.take();
        assert_eq!(&taken[..], b"bcd");
        assert_eq!(taken.as_ptr(), chunk[1..].as_ptr());
    }

    #[test]
    fn what_spans_chunks_is_put_together() {
        let mut input = Input::default();
        for chunk in ["abc", "", "de", "f"] {
            input.push(Bytes::from_static(chunk.as_bytes()));
        }
        input.rest();
        input.advance(2);
        input.keep();
        while let Some(rest) = input.rest() {
            let length = rest.len();
            input.advance(length);
        }
        assert_eq!((input.kept(), input.kept_from(), input.offset()), (4, 2, 6));
        assert_eq!(&input.take()[..], b"cdef");
        assert_eq!(input.buffered(), 0);
    }

    #[test]
    fn a_chunk_that_is_used_up_is_let_go() {
        let mut input = Input::default();
        input.push(Bytes::from(vec![0; 100]));
        input.rest();
        input.advance(100);
        assert_eq!(input.rest(), None);
        assert_eq!((input.buffered(), input.offset()), (0, 100));
    }
}
