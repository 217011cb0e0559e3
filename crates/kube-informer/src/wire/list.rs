//! The items of a list, one by one, and then the list's own fields.
//!
//! In JSON the fields come in any order, the items first or last; what is not a list's is skipped. In protobuf
//! the items have no envelope of their own. A document that has no items, and is no `Status` either, is an
//! error and not an empty list: an empty list would mean that everything is gone.

use bytes::Bytes;

use super::WireError;
use super::input::Input;
use crate::encoding::{DecodeError, Encoding, Fault};

mod json;
mod protobuf;

/// How many bytes of a list's own fields, or of a `Status` in place of the list, are held.
pub const MAX_HEAD: usize = 64 << 10;

/// Splits the body of a list into its items.
///
/// ```
/// use bytes::Bytes;
/// use kube_informer::encoding::Encoding;
/// use kube_informer::wire::ListItems;
///
/// let mut list = ListItems::new(Encoding::Json, 3 << 20);
/// let mut items = Vec::new();
/// for chunk in [r#"{"items":[{"a":1},{"a""#, r#":2}],"metadata":{"resourceVersion":"7"}}"#] {
///     list.push(Bytes::from_static(chunk.as_bytes()));
///     while let Some(item) = list.next_item() {
///         items.push(item?);
///     }
/// }
/// assert_eq!(items, [r#"{"a":1}"#, r#"{"a":2}"#]);
/// assert_eq!(list.finish()?.resource_version, "7");
/// # Ok::<(), kube_informer::wire::WireError>(())
/// ```
#[derive(Debug)]
pub struct ListItems {
    input: Input,
    machine: Machine,
    failed: Option<WireError>,
}

/// A list's own fields. Absent strings are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListEnd {
    /// `v1`.
    pub api_version: String,
    /// `PodList`.
    pub kind: String,
    /// The version of the whole list: a watch goes on from here.
    pub resource_version: String,
    /// What to ask for the next page with; empty on the last.
    pub continue_token: String,
    /// How many items come after this page, where the server says so.
    pub remaining_item_count: Option<i64>,
}

#[derive(Debug)]
enum Machine {
    Json(json::List),
    Protobuf(protobuf::List),
}

impl ListItems {
    /// Splits a body in this encoding; an item may have `limit` bytes.
    #[must_use]
    pub fn new(encoding: Encoding, limit: usize) -> Self {
        let machine = match encoding {
            Encoding::Json => Machine::Json(json::List::new(limit)),
            Encoding::Protobuf => Machine::Protobuf(protobuf::List::new(limit)),
        };
        Self { input: Input::default(), machine, failed: None }
    }

    /// Gives the next chunk of the body. Take every item that there is before the next: chunks wait here.
    pub fn push(&mut self, chunk: Bytes) {
        if self.failed.is_none() {
            self.input.push(chunk);
        }
    }

    /// The next item: its JSON document, or its bare protobuf message. `None` until more is pushed.
    pub fn next_item(&mut self) -> Option<Result<Bytes, WireError>> {
        if self.failed.is_some() {
            return None;
        }
        let next = match &mut self.machine {
            Machine::Json(list) => list.next(&mut self.input),
            Machine::Protobuf(list) => list.next(&mut self.input),
        };
        if let Some(Err(error)) = &next
            && error.is_fatal()
        {
            self.input.clear();
            self.failed = Some(error.clone());
        }
        next
    }

    /// The body has ended: the list's own fields. Only now is it certain that there are no more items.
    ///
    /// # Errors
    ///
    /// The fatal error, if there was one; that the body ended too early; that items were not taken.
    pub fn finish(mut self) -> Result<ListEnd, WireError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let start = self.input.offset();
        match self.next_item() {
            Some(Err(error)) => Err(error),
            Some(Ok(_)) => {
                let fault = Fault::Unexpected { found: "an item that was not taken".to_owned() };
                Err(WireError::Broken(DecodeError::new(fault, start, "all items to be taken")))
            }
            None => match self.machine {
                Machine::Json(list) => list.finish(self.input.offset()),
                Machine::Protobuf(list) => list.finish(&mut self.input),
            },
        }
    }

    /// How many bytes are held: those of an unfinished item, the list's own fields, and the chunks that are not
    /// used up.
    #[must_use]
    pub fn buffered(&self) -> usize {
        let head = match &self.machine {
            Machine::Json(list) => list.head(),
            Machine::Protobuf(list) => list.head(),
        };
        self.input.buffered().saturating_add(head)
    }
}

fn truncated(offset: usize, expected: &'static str) -> WireError {
    WireError::Broken(DecodeError::new(Fault::Truncated, offset, expected))
}

#[cfg(test)]
mod tests;
