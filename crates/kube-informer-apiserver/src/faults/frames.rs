//! Where the frames of a watch begin and end.
//!
//! In JSON a frame is a line, in protobuf four bytes of big-endian length and
//! as many bytes. [`Splitter`] gives whole frames, exactly as they came on the
//! wire, delimiter included; [`Tracker`] only follows along, so that a stream
//! that is passed through can be split from its next boundary on.
//!
//! Both give the same result wherever the stream happens to be cut into
//! chunks. A splitter holds at most one frame and the chunk that was pushed
//! last; a frame above the limit is an error, as soon as that can be known.

use bytes::{Buf, Bytes, BytesMut};

/// How the events of a watch are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// One JSON document per line.
    Json,
    /// Length-prefixed protobuf messages.
    Protobuf,
}

/// The number of bytes before a protobuf frame that tell its length.
pub(crate) const PREFIX: usize = 4;

/// A frame is larger than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge {
    pub(crate) limit: usize,
}

/// Cuts a stream into frames.
#[derive(Debug)]
pub(crate) struct Splitter {
    format: Format,
    limit: usize,
    buffer: BytesMut,
    /// JSON: so many bytes of the buffer are known to hold no newline, so that
    /// a frame that arrives in many chunks is not searched again and again.
    searched: usize,
}

/// Follows a stream without holding any of it.
#[derive(Debug)]
pub(crate) struct Tracker {
    format: Format,
    state: Position,
}

#[derive(Debug)]
enum Position {
    Boundary,
    /// Protobuf: some bytes of the length prefix were seen.
    Prefix {
        seen: usize,
        length: u32,
    },
    /// Inside a frame. Protobuf: so many bytes are left of it; JSON: unknown.
    Inside {
        left: usize,
    },
}

impl Format {
    /// Tells the format from a Content-Type; `None` if it is neither.
    pub fn of(content_type: &str) -> Option<Self> {
        let media = content_type.split(';').next()?.trim();
        if media.eq_ignore_ascii_case("application/vnd.kubernetes.protobuf") {
            Some(Self::Protobuf)
        } else if media.eq_ignore_ascii_case("application/json") {
            Some(Self::Json)
        } else {
            None
        }
    }
}

impl Splitter {
    pub(crate) fn new(format: Format, limit: usize) -> Self {
        Self { format, limit, buffer: BytesMut::new(), searched: 0 }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next whole frame, if there is one.
    pub(crate) fn next_frame(&mut self) -> Result<Option<Bytes>, TooLarge> {
        let end = match self.format {
            Format::Json => match self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                Some(at) => self.searched + at + 1,
                None => {
                    self.searched = self.buffer.len();
                    return self.within(self.buffer.len()).map(|()| None);
                }
            },
            Format::Protobuf => {
                if self.buffer.len() < PREFIX {
                    return Ok(None);
                }
                let end = PREFIX.saturating_add((&self.buffer[..PREFIX]).get_u32() as usize);
                self.within(end)?;
                if self.buffer.len() < end {
                    return Ok(None);
                }
                end
            }
        };
        self.within(end)?;
        self.searched = 0;
        Ok(Some(self.buffer.split_to(end).freeze()))
    }

    /// What is left of an unfinished frame.
    pub(crate) fn take_rest(&mut self) -> Bytes {
        self.searched = 0;
        self.buffer.split().freeze()
    }

    fn within(&self, length: usize) -> Result<(), TooLarge> {
        if length > self.limit { Err(TooLarge { limit: self.limit }) } else { Ok(()) }
    }
}

impl Tracker {
    pub(crate) fn new(format: Format) -> Self {
        Self { format, state: Position::Boundary }
    }

    /// True between two frames, and before the first.
    pub(crate) fn at_boundary(&self) -> bool {
        matches!(self.state, Position::Boundary)
    }

    /// Follows a chunk; returns how many frames ended in it.
    pub(crate) fn feed(&mut self, mut chunk: &[u8]) -> u64 {
        let mut ended = 0;
        while !chunk.is_empty() {
            let used = self.feed_to_boundary(chunk);
            ended += u64::from(self.at_boundary());
            chunk = &chunk[used..];
        }
        ended
    }

    /// Follows a chunk up to the end of the frame that it begins in or goes on
    /// with; returns how many bytes that were.
    pub(crate) fn feed_to_boundary(&mut self, chunk: &[u8]) -> usize {
        match self.format {
            Format::Json => {
                if chunk.is_empty() {
                    return 0;
                }
                let end = chunk.iter().position(|byte| *byte == b'\n');
                self.state = if end.is_some() { Position::Boundary } else { Position::Inside { left: 0 } };
                end.map_or(chunk.len(), |at| at + 1)
            }
            Format::Protobuf => self.feed_protobuf(chunk),
        }
    }

    fn feed_protobuf(&mut self, chunk: &[u8]) -> usize {
        let mut used = 0;
        while used < chunk.len() {
            self.state = match self.state {
                // Boundary => Prefix
                Position::Boundary => Position::Prefix { seen: 0, length: 0 },
                // Prefix => (Prefix | Inside | Boundary, for an empty frame)
                Position::Prefix { seen, length } => {
                    let length = length << 8 | u32::from(chunk[used]);
                    used += 1;
                    match (seen + 1, length) {
                        (PREFIX, 0) => Position::Boundary,
                        (PREFIX, length) => Position::Inside { left: length as usize },
                        (seen, length) => Position::Prefix { seen, length },
                    }
                }
                // Inside => (Inside | Boundary)
                Position::Inside { left } => {
                    let step = left.min(chunk.len() - used);
                    used += step;
                    if step == left { Position::Boundary } else { Position::Inside { left: left - step } }
                }
            };
            if self.at_boundary() {
                break;
            }
        }
        used
    }
}

#[cfg(test)]
mod tests;
