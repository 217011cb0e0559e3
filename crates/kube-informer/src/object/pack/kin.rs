//! Objects that came from one template, one after the other: the first is a base, the others keep what differs.
//!
//! Servers list objects by name, so the pods of one owner stand together. A dictionary cannot know what only those have
//! in common; measured on pods, the difference takes half of what the dictionary leaves.
//!
//! A base is never itself a difference, so that reading takes two steps at most. It lives for as long as something
//! refers to it. Where objects turn out to have no kin, few of them are tried.

use std::sync::Arc;

use super::delta::{self, Index};
use super::dictionary::{Dictionary, Frame};
use super::scratch::with_buffer;

/// A difference must be smaller, by a third, than what the object would probably be packed to.
const PART: (usize, usize) = (2, 3);

/// After so many objects in a row that are no kin of the one before, only one of so many is tried.
const STRANGERS: u32 = 64;
const TRY_EVERY: u32 = 16;

/// What tells an object from a base.
pub(super) struct Difference<'a> {
    pub(super) delta: &'a [u8],
    pub(super) base: Arc<Frame>,
    /// What the object would probably have been packed to otherwise.
    pub(super) otherwise: usize,
}

/// The last base, and how often there is kin.
pub(super) struct Kin {
    /// The base's bytes; empty if there is none.
    plain: Vec<u8>,
    packed: Vec<u8>,
    /// The base as objects refer to it, as soon as one does.
    frame: Option<Arc<Frame>>,
    index: Index,
    strangers: u32,
    delta: Vec<u8>,
}

impl Kin {
    pub(super) fn new() -> Self {
        Self {
            plain: Vec::new(),
            packed: Vec::new(),
            frame: None,
            index: Index::new(),
            strangers: 0,
            delta: Vec::new(),
        }
    }

    /// What tells the object from the last base, if they are kin.
    pub(super) fn difference(
        &mut self,
        object: &[u8],
        dictionary: &Arc<Dictionary>,
    ) -> Option<Difference<'_>> {
        if object.len() > delta::LARGEST {
            return None;
        }
        let otherwise = (self.packed.len() * object.len()).checked_div(self.plain.len())?;
        self.delta.clear();
        let limit = otherwise * PART.0 / PART.1;
        if !delta::encode(&self.plain, &mut self.index, object, limit, &mut self.delta) {
            self.strangers = self.strangers.saturating_add(1);
            return None;
        }
        self.strangers = 0;
        let base = match &self.frame {
            Some(frame) => Arc::clone(frame),
            None => {
                let frame = Frame::new(&self.packed, self.plain.len(), dictionary)?;
                Arc::clone(self.frame.insert(Arc::new(frame)))
            }
        };
        Some(Difference { delta: &self.delta, base, otherwise })
    }

    /// An object that is no kin of the last base may be the next one. Gives the frame that it is to share with its
    /// kin, where there will probably be some.
    pub(super) fn next(
        &mut self,
        object: &[u8],
        packed: &[u8],
        dictionary: &Arc<Dictionary>,
    ) -> Option<Arc<Frame>> {
        self.forget();
        if self.strangers >= STRANGERS {
            self.strangers = self.strangers.saturating_add(1);
            if !self.strangers.is_multiple_of(TRY_EVERY) {
                return None;
            }
        }
        if object.len() > delta::LARGEST {
            return None;
        }
        self.plain.extend_from_slice(object);
        self.packed.extend_from_slice(packed);
        // One in eight has kin: then sharing costs less than a second copy now and then.
        if self.strangers < 8 {
            self.frame = Frame::new(packed, object.len(), dictionary).map(Arc::new);
        }
        self.frame.clone()
    }

    /// Takes up a base that objects refer to already. If that cannot be read, there is none.
    pub(super) fn resume(&mut self, frame: &Arc<Frame>) {
        if self.holds(frame) {
            return;
        }
        self.forget();
        with_buffer(|buffer| {
            if frame.decode(buffer).is_ok() {
                self.plain.extend_from_slice(buffer);
                self.packed.extend_from_slice(frame.bytes());
                self.frame = Some(Arc::clone(frame));
            }
        });
    }

    /// Whether this is the frame of the last base.
    pub(super) fn holds(&self, frame: &Arc<Frame>) -> bool {
        self.frame.as_ref().is_some_and(|current| Arc::ptr_eq(current, frame))
    }

    /// Whether the last base was packed to these bytes.
    pub(super) fn is_packed_as(&self, bytes: &[u8]) -> bool {
        self.packed == bytes
    }

    /// There is no base any more.
    pub(super) fn forget(&mut self) {
        self.plain.clear();
        self.packed.clear();
        self.frame = None;
        self.index.forget();
    }
}
