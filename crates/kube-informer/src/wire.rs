//! Frames of a watch and items of a list, split out of a streaming body without holding the body.
//!
//! [`WatchFrames`] and [`ListItems`] are pushed the chunks of a response's body as they come, cut anywhere, and
//! give what is complete: no I/O, no tasks, no clock. [`Status`] is what the server says where it cannot give
//! what was asked for.
//!
//! Promised:
//!
//! - The results are the same wherever the body is cut into chunks, errors included.
//! - What lies within one chunk is lent from it ([`Bytes::slice`](bytes::Bytes::slice)), not copied. What does
//!   not is copied once.
//! - Every byte is looked at a fixed number of times, however small the chunks are.
//! - Where the caller takes everything before it pushes the next chunk, no more is held than the limit, that
//!   chunk, and [`MAX_HEAD`] bytes of a list's own fields.
//! - An unusable frame or item is an error of its own ([`WireError::Skipped`]), and the next one follows it, as
//!   long as its extent is known. What is above the limit is skipped while it streams by. The error carries the
//!   object's key where that stands within the limit (in protobuf: within its first kilobyte) and can be read.
//! - After an error that is [fatal](WireError::is_fatal) nothing more is given, and `finish` repeats that error.
//!   `finish` is `Ok` only for a body that was complete.
//! - A web page or other text in place of the API is recognised ([`WireError::NotAnApi`]), and so is a bare
//!   `Status` ([`WireError::Status`]).
//!
//! Not promised: that an object's bytes are valid. Here only as much is read as shows where they begin and end
//! (brackets and strings in JSON, lengths in protobuf) and that they are not nested deeper than [`MAX_DEPTH`].
//! Whether they are JSON, or UTF-8, or an object at all, the scan of the metadata finds out. What surrounds
//! the objects is checked in full where it is looked at: watch events down to the last byte of their line, and
//! of a list the fields that [`ListEnd`] has.

// What comes in.
mod input;
mod text;

// Where things begin and end.
mod json;
mod protobuf;

// What comes out.
mod error;
mod list;
mod status;
mod watch;

pub use error::WireError;
pub use json::MAX_DEPTH;
pub use list::{ListEnd, ListItems, MAX_HEAD};
pub use status::{Status, StatusCause, StatusDetails};
pub use watch::{Change, WatchFrame, WatchFrames};
