//! The events of a watch.
//!
//! In JSON an event is a line; in protobuf it is four bytes of big-endian length and as many bytes. So an event
//! that is malformed or above the limit never hides the next one. Blank lines are skipped, and a line may end
//! in CR LF. A body that ends within an event is truncated, and so is one whose last line has no end: the
//! server ends every line, and a watch that is resumed sees that event again.

use bytes::Bytes;

use super::input::Input;
use super::json::{is_space, spaces};
use super::protobuf::BEGINNING;
use super::protobuf::MAGIC;
use super::text::{Text, unexpected};
use super::{MAX_HEAD, Status, WireError};
use crate::encoding::{DecodeError, Encoding, Fault};

mod event;

/// Splits the body of a watch into its events.
///
/// ```
/// use bytes::Bytes;
/// use kube_informer::encoding::Encoding;
/// use kube_informer::wire::{Change, WatchFrame, WatchFrames};
///
/// let mut frames = WatchFrames::new(Encoding::Json, 3 << 20);
/// frames.push(Bytes::from_static(b"{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\""));
/// assert!(frames.next_frame().is_none(), "the event is not complete");
/// frames.push(Bytes::from_static(b"}}\n"));
/// let Some(Ok(WatchFrame::Object { change, object })) = frames.next_frame() else { panic!("a frame") };
/// assert_eq!(change, Change::Added);
/// assert_eq!(&object[..], br#"{"kind":"Pod"}"#);
/// assert!(frames.next_frame().is_none());
/// assert!(frames.finish().is_ok());
/// ```
#[derive(Debug)]
pub struct WatchFrames {
    encoding: Encoding,
    limit: usize,
    input: Input,
    state: State,
    failed: Option<WireError>,
    /// How the object of the last event changed that was unusable.
    skipped: Option<Change>,
    /// JSON: where in the body the last line begins.
    line: usize,
    /// Whether lines are taken for what they seem to be.
    presumes: bool,
    /// The line of the last event, where it was taken for what it seems to be.
    presumed: Option<Bytes>,
    /// Whether that line is to be read.
    doubted: bool,
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchFrame {
    /// An object changed.
    Object {
        /// How.
        change: Change,
        /// The object: its JSON document, or its protobuf document in the envelope.
        object: Bytes,
    },
    /// How far the watch has come.
    Bookmark {
        /// An object that has little but a version and perhaps annotations, written as other objects are.
        object: Bytes,
    },
    /// The watch failed.
    Error(Status),
}

/// How an object changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// It is new to this watch.
    Added,
    /// It was there, and is different.
    Modified,
    /// It is gone, or no longer selected; the object is its last state.
    Deleted,
}

#[derive(Debug)]
enum State {
    /// Before the first event.
    Begin,
    /// Something else than events.
    Text(Text),
    /// A protobuf document instead of events, kept up to [`MAX_HEAD`].
    Document,
    /// JSON: in a line that is kept.
    Line,
    /// JSON: in a line that is skipped.
    SkipLine,
    /// Protobuf: so many bytes of a length were read.
    Length { read: usize, length: u32 },
    /// Protobuf: in an event that is kept, of which so many bytes are to come.
    Message { left: usize },
    /// Protobuf: in the beginning of an event that is too large, and how many bytes of it follow.
    Beginning { left: usize, after: usize },
    /// Protobuf: in an event that is skipped.
    SkipMessage { left: usize },
}

impl WatchFrames {
    /// Splits a body in this encoding; an event may have `limit` bytes.
    #[must_use]
    pub fn new(encoding: Encoding, limit: usize) -> Self {
        Self {
            encoding,
            limit,
            input: Input::default(),
            state: State::Begin,
            failed: None,
            skipped: None,
            line: 0,
            presumes: false,
            presumed: None,
            doubted: false,
        }
    }

    /// Takes lines that begin and end as events of objects do for such events, and does not look for the object's end: who
    /// makes something of the object looks at each of its bytes anyway. Where it is no JSON document, the line may be another
    /// event than it seemed, which is to be [doubted](Self::doubt) then.
    pub(crate) fn presuming(mut self) -> Self {
        self.presumes = true;
        self
    }

    /// The object of the last event is no JSON document. Whether that event was only presumed; it comes next then, read.
    pub(crate) fn doubt(&mut self) -> bool {
        self.doubted = self.presumed.is_some();
        self.doubted
    }

    /// Gives the next chunk of the body. Take every frame that there is before the next: chunks wait here.
    pub fn push(&mut self, chunk: Bytes) {
        if self.failed.is_none() {
            self.input.push(chunk);
        }
    }

    /// The next event; `None` until more is pushed.
    pub fn next_frame(&mut self) -> Option<Result<WatchFrame, WireError>> {
        if self.failed.is_some() {
            return None;
        }
        if let Some(line) = self.presumed.take()
            && std::mem::take(&mut self.doubted)
        {
            return Some(self.event(&line));
        }
        let next = match self.encoding {
            Encoding::Json => self.next_line(),
            Encoding::Protobuf => self.next_message(),
        };
        if let Some(Err(error)) = &next
            && error.is_fatal()
        {
            self.input.clear();
            self.failed = Some(error.clone());
        }
        next
    }

    /// How an object changed by the last event that was unusable, [`WireError::Skipped`], where the event says that.
    #[must_use]
    pub fn skipped_change(&self) -> Option<Change> {
        self.skipped
    }

    /// The body has ended.
    ///
    /// # Errors
    ///
    /// The fatal error, if there was one; that the body ended within an event; that events were not taken.
    pub fn finish(mut self) -> Result<(), WireError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let start = self.input.offset();
        match self.next_frame() {
            Some(Err(error)) => return Err(error),
            Some(Ok(_)) => {
                let fault = Fault::Unexpected { found: "an event that was not taken".to_owned() };
                return Err(WireError::Broken(DecodeError::new(fault, start, "all events to be taken")));
            }
            None => {}
        }
        let expected = match self.state {
            State::Begin => return Ok(()),
            State::Line => {
                let rest = self.input.take();
                if rest.iter().all(|byte| is_space(*byte)) {
                    return Ok(());
                }
                if let Err(status @ WireError::Status(_)) = event::from_json(&rest) {
                    return Err(status);
                }
                "the end of a line"
            }
            State::Length { read: 0, .. } => return Ok(()),
            State::Text(text) => return Err(text.error()),
            State::Document => return Err(self.document()),
            State::SkipLine => "the end of a line",
            State::Length { .. } => "the length of an event",
            State::Beginning { .. } => return Err(WireError::Broken(self.too_large())),
            State::Message { .. } | State::SkipMessage { .. } => "the rest of an event",
        };
        Err(WireError::Broken(DecodeError::new(Fault::Truncated, self.input.offset(), expected)))
    }

    /// How many bytes are held: those of an unfinished event, and the chunks that are not used up.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.input.buffered()
    }

    fn next_line(&mut self) -> Option<Result<WatchFrame, WireError>> {
        loop {
            if let State::Text(text) = &mut self.state {
                return text.collect(&mut self.input).map(Err);
            }
            let offset = self.input.offset();
            let rest = self.input.rest()?;
            match self.state {
                // SkipLine => Line
                State::SkipLine => match memchr::memchr(b'\n', rest) {
                    None => {
                        let all = rest.len();
                        self.input.advance(all);
                    }
                    Some(end) => {
                        self.input.advance(end + 1);
                        self.input.keep();
                        self.state = State::Line;
                    }
                },
                // Line => (Line | SkipLine)
                State::Line => {
                    let end = memchr::memchr(b'\n', rest);
                    let length = end.unwrap_or(rest.len());
                    self.input.advance(length);
                    if self.input.kept() > self.limit {
                        let error = self.too_large();
                        self.state = State::SkipLine;
                        // What is held beyond the limit depends on the chunks; the key must not.
                        let line = self.input.take();
                        let beginning = line.get(..self.limit).unwrap_or(&line);
                        return Some(Err(self.skip(beginning, WireError::Skipped(error))));
                    }
                    if end.is_none() {
                        continue;
                    }
                    self.line = self.input.kept_from();
                    let line = self.input.take();
                    self.input.advance(1);
                    self.input.keep();
                    if self.presumes
                        && let Some(frame) = event::presumed(&line)
                    {
                        self.presumed = Some(line);
                        return Some(Ok(frame));
                    }
                    if !line.iter().all(|byte| is_space(*byte)) {
                        return Some(self.event(&line));
                    }
                }
                // Begin => (Begin | Line | Text)
                _ => {
                    let blank = spaces(rest);
                    let first = rest.get(blank).copied();
                    self.input.advance(blank);
                    match first {
                        None => {}
                        Some(b'{') => {
                            self.input.keep();
                            self.state = State::Line;
                        }
                        Some(found) => {
                            let otherwise = unexpected(found, offset.saturating_add(blank), "a watch event");
                            self.state = State::Text(Text::new(&[], otherwise));
                        }
                    }
                }
            }
        }
    }

    fn next_message(&mut self) -> Option<Result<WatchFrame, WireError>> {
        const BETWEEN: State = State::Length { read: 0, length: 0 };
        loop {
            let first = self.input.offset() <= 4;
            match &mut self.state {
                // Begin => Length
                State::Begin => {
                    self.input.rest()?;
                    self.state = BETWEEN;
                }
                // Length => (Length | Message | Beginning | Text | Document)
                State::Length { read: 4, length } => {
                    let prefix = length.to_be_bytes();
                    let left = usize::try_from(*length).unwrap_or(usize::MAX);
                    self.input.keep();
                    if left <= self.limit {
                        self.state = State::Message { left };
                        continue;
                    }
                    let error = self.too_large();
                    self.input.drop_kept();
                    let is_text = prefix.iter().all(|byte| is_space(*byte) || byte.is_ascii_graphic());
                    if first && prefix == MAGIC {
                        self.input.keep();
                        self.state = State::Document;
                    } else if first && is_text {
                        self.state = State::Text(Text::new(&prefix, error));
                    } else {
                        // The beginning says whose it is.
                        let beginning = left.min(self.limit).min(BEGINNING);
                        self.input.keep();
                        self.state = State::Beginning { left: beginning, after: left - beginning };
                    }
                }
                State::Length { read, length } => {
                    let byte = self.input.rest()?.first().copied()?;
                    *length = *length << 8 | u32::from(byte);
                    *read += 1;
                    self.input.advance(1);
                }
                // Message => Length
                State::Message { left: 0 } => {
                    self.state = BETWEEN;
                    let start = self.input.kept_from();
                    let message = self.input.take();
                    return Some(
                        event::from_protobuf(&message).map_err(|error| at(start, self.skip(&message, error))),
                    );
                }
                // Beginning => SkipMessage
                State::Beginning { left: 0, after } => {
                    self.state = State::SkipMessage { left: *after };
                    let error = self.too_large();
                    let beginning = self.input.take();
                    let error = WireError::Skipped(error);
                    return Some(Err(self.skip(&beginning, error)));
                }
                // SkipMessage => Length
                State::SkipMessage { left: 0 } => self.state = BETWEEN,
                State::Message { left } | State::Beginning { left, .. } | State::SkipMessage { left } => {
                    let step = self.input.rest()?.len().min(*left);
                    *left -= step;
                    self.input.advance(step);
                }
                State::Document => {
                    let all = self.input.rest()?.len();
                    if self.input.kept() >= MAX_HEAD {
                        return Some(Err(self.document()));
                    }
                    self.input.advance(all.min(MAX_HEAD - self.input.kept()));
                }
                State::Text(text) => return text.collect(&mut self.input).map(Err),
                State::Line | State::SkipLine => return None,
            }
        }
    }

    /// What is kept is one protobuf document, without its magic, in place of events.
    fn document(&mut self) -> WireError {
        let document = self.input.take();
        match Status::in_envelope(&document) {
            Some(status) => WireError::Status(Box::new(status)),
            None => {
                WireError::Broken(DecodeError::new(Fault::WrongEnvelope, 0, "watch events or a v1 Status"))
            }
        }
    }

    /// The event that is the last line.
    fn event(&mut self, line: &Bytes) -> Result<WatchFrame, WireError> {
        event::from_json(line).map_err(|error| at(self.line, self.skip(line, error)))
    }

    /// The error of one event, of which the beginning suffices.
    fn skip(&mut self, event: &[u8], error: WireError) -> WireError {
        self.skipped = event::change(self.encoding, event);
        event::whose(self.encoding, event, error)
    }

    fn too_large(&self) -> DecodeError {
        let fault = Fault::TooLarge { limit: self.limit };
        DecodeError::new(fault, self.input.kept_from(), "a watch event")
    }
}

/// An error in an event, with its place in the body instead of in the event.
fn at(start: usize, mut error: WireError) -> WireError {
    if let WireError::Skipped(error) | WireError::Broken(error) = &mut error {
        error.offset = error.offset.saturating_add(start);
    }
    error
}

#[cfg(test)]
mod tests;
