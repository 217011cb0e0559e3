//! A list in protobuf: an envelope, in it the list, in that the items.
//!
//! The list may be as long as it says: its fields are given as they come. Where Go writes it, the envelope's
//! type comes before the list; where it does not, it is checked at the end.

use bytes::Bytes;

use super::{ListEnd, MAX_HEAD, truncated};
use crate::encoding::protobuf::key_of;
use crate::encoding::protobuf::reader::Value as Wire;
use crate::encoding::{DecodeError, Fault};
use crate::wire::input::Input;
use crate::wire::protobuf::{BEGINNING, MAGIC, Shape, TypeMeta, Varint, readable, tag, text};
use crate::wire::text::Text;
use crate::wire::{Status, WireError};

#[derive(Debug)]
pub(super) struct List {
    limit: usize,
    state: State,
    /// In the list: how many bytes of it are to come. `None` in the envelope.
    left: Option<u64>,
    /// Whether the list has begun.
    begun: bool,
    end: ListEnd,
}

#[derive(Debug)]
enum State {
    /// So many bytes of the magic were seen.
    Magic(usize),
    /// Something else than an envelope.
    Text(Text),
    /// In a field's tag.
    Tag(Varint),
    /// In a number, which no field that is needed here has.
    Number(Varint),
    /// In the length of a field.
    Length(u64, Varint),
    /// In a field that is not needed, of which so many bytes are to come.
    Skip(u64),
    /// In a field that is kept, of which so many bytes are to come.
    Take(Part, u64),
}

/// What is kept.
#[derive(Debug, Clone, Copy)]
enum Part {
    TypeMeta,
    ListMeta,
    Item,
    /// A `Status` where the list should be.
    Status,
    /// The beginning of an item that is too large, and how many bytes of it follow.
    Beginning(u64),
}

const NEXT_FIELD: State = State::Tag(Varint::NEW);

impl List {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, state: State::Magic(0), left: None, begun: false, end: ListEnd::default() }
    }

    /// What is held beyond the input. The strings of the end are parts of what was kept.
    pub(super) fn head(&self) -> usize {
        let end = &self.end;
        [&end.api_version, &end.kind, &end.resource_version, &end.continue_token]
            .map(String::len)
            .iter()
            .sum()
    }

    pub(super) fn next(&mut self, input: &mut Input) -> Option<Result<Bytes, WireError>> {
        loop {
            match self.step(input)? {
                Ok(None) => {}
                Ok(Some(item)) => return Some(Ok(item)),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    pub(super) fn finish(self, input: &mut Input) -> Result<ListEnd, WireError> {
        let offset = input.offset();
        match self.state {
            State::Text(text) => Err(text.error()),
            State::Magic(_) => Err(truncated(offset, "a list")),
            State::Tag(tag) if tag.is_new() && self.left.is_none() && self.begun => {
                if !is_list(&self.end.kind) {
                    return Err(wrong_kind(&self.end.kind, offset));
                }
                Ok(self.end)
            }
            State::Take(Part::Status, _) => Err(status(&input.take())),
            State::Take(Part::Item, _) => Err(truncated(offset, "the rest of an item")),
            State::Take(Part::Beginning(_), _) => {
                Err(WireError::Broken(too_large(self.limit, input.kept_from())))
            }
            _ => Err(truncated(offset, "the rest of the list")),
        }
    }

    /// One step; `None` until more is pushed.
    fn step(&mut self, input: &mut Input) -> Option<Result<Option<Bytes>, WireError>> {
        let offset = input.offset();
        match &mut self.state {
            State::Text(text) => return text.collect(input).map(Err),
            // Skip => Tag
            State::Skip(0) => self.state = NEXT_FIELD,
            // Take => (Tag | Skip)
            State::Take(part, 0) => {
                let part = *part;
                self.state = NEXT_FIELD;
                let start = input.kept_from();
                return Some(self.taken(part, input.take(), start));
            }
            State::Skip(left) | State::Take(_, left) => {
                let step = input.rest()?.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= step as u64;
                input.advance(step);
            }
            State::Tag(tag) if self.left == Some(0) && tag.is_new() => self.left = None,
            State::Tag(_) | State::Number(_) | State::Length(..) if self.left == Some(0) => {
                let fault = Fault::Unexpected { found: "a field that goes beyond the list".to_owned() };
                return Some(Err(WireError::Broken(DecodeError::new(fault, offset, "the end of the list"))));
            }
            _ => {
                let byte = input.rest()?.first().copied()?;
                input.advance(1);
                if let Some(left) = &mut self.left {
                    *left -= 1;
                }
                if let Err(error) = self.byte(byte, offset, input) {
                    return Some(Err(error));
                }
            }
        }
        Some(Ok(None))
    }

    /// One byte of what has no length of its own.
    fn byte(&mut self, byte: u8, offset: usize, input: &mut Input) -> Result<(), WireError> {
        match &mut self.state {
            // Magic => (Magic | Tag | Text)
            State::Magic(seen) if MAGIC.get(*seen) == Some(&byte) => {
                *seen += 1;
                if *seen == MAGIC.len() {
                    self.state = NEXT_FIELD;
                }
            }
            State::Magic(seen) => {
                let mut beginning = MAGIC.get(..*seen).unwrap_or_default().to_vec();
                beginning.push(byte);
                let otherwise = DecodeError::new(Fault::WrongEnvelope, 0, "a list in its envelope");
                self.state = State::Text(Text::new(&beginning, otherwise));
            }
            // Tag => (Number | Length | Skip)
            State::Tag(varint) => {
                if let Some(value) = varint.push(byte, offset).map_err(WireError::Broken)? {
                    let (number, shape) = tag(value, offset).map_err(WireError::Broken)?;
                    match shape {
                        Shape::Number => self.state = State::Number(Varint::NEW),
                        Shape::Bytes => self.state = State::Length(number, Varint::NEW),
                        Shape::Fixed(length) => {
                            self.spend(length, offset)?;
                            self.state = State::Skip(length);
                        }
                    }
                }
            }
            // Number => Tag
            State::Number(varint) => {
                if varint.push(byte, offset).map_err(WireError::Broken)?.is_some() {
                    self.state = NEXT_FIELD;
                }
            }
            State::Length(number, varint) => {
                let number = *number;
                if let Some(length) = varint.push(byte, offset).map_err(WireError::Broken)? {
                    return self.field(number, length, input);
                }
            }
            State::Text(_) | State::Skip(_) | State::Take(..) => {}
        }
        Ok(())
    }

    /// The content of a field begins here.
    fn field(&mut self, number: u64, length: u64, input: &mut Input) -> Result<(), WireError> {
        let offset = input.offset();
        self.spend(length, offset)?;
        // Length => (Take | Skip | Tag, in the list)
        let (part, limit) = match (self.left, number) {
            (Some(_), 1) => (Part::ListMeta, MAX_HEAD),
            (Some(_), 2) => (Part::Item, self.limit),
            (None, 1) => (Part::TypeMeta, MAX_HEAD),
            (None, 2) => return self.raw(length, input),
            (None, 3) if length > 0 => {
                let expected = "a list that is not encoded once more";
                return Err(WireError::Broken(DecodeError::new(Fault::WrongEnvelope, offset, expected)));
            }
            _ => {
                self.state = State::Skip(length);
                return Ok(());
            }
        };
        if length > limit as u64 {
            if !matches!(part, Part::Item) {
                let fault = Fault::TooLarge { limit };
                return Err(WireError::Broken(DecodeError::new(fault, offset, "the list's own fields")));
            }
            // Of one that is too large, the beginning says whose it is.
            let beginning = length.min(limit.min(BEGINNING) as u64);
            input.keep();
            self.state = State::Take(Part::Beginning(length - beginning), beginning);
            return Ok(());
        }
        input.keep();
        self.state = State::Take(part, length);
        Ok(())
    }

    /// The document in the envelope begins here.
    fn raw(&mut self, length: u64, input: &mut Input) -> Result<(), WireError> {
        let offset = input.offset();
        if std::mem::replace(&mut self.begun, true) {
            let fault = Fault::DuplicateKey { key: "raw".to_owned() };
            return Err(WireError::Broken(DecodeError::new(fault, offset, "one document")));
        }
        match self.end.kind.as_str() {
            "Status" => {
                input.keep();
                // Of one that is too long, the beginning says enough.
                self.state = State::Take(Part::Status, length.min(MAX_HEAD as u64));
            }
            kind if kind.is_empty() || is_list(kind) => {
                self.left = Some(length);
                self.state = NEXT_FIELD;
            }
            kind => return Err(wrong_kind(kind, offset)),
        }
        Ok(())
    }

    fn taken(&mut self, part: Part, bytes: Bytes, start: usize) -> Result<Option<Bytes>, WireError> {
        match part {
            Part::Item => return Ok(Some(bytes)),
            Part::Beginning(left) => {
                self.state = State::Skip(left);
                let key = key_of(&bytes).map(Box::new);
                return Err(WireError::Skipped(DecodeError { key, ..too_large(self.limit, start) }));
            }
            Part::Status => return Err(status(&bytes)),
            Part::TypeMeta => {
                let meta = TypeMeta::read(&bytes);
                self.end.api_version = meta.api_version;
                self.end.kind = meta.kind;
            }
            Part::ListMeta => {
                for field in readable(&bytes) {
                    match field {
                        (2, Wire::Bytes(value)) => self.end.resource_version = text(value),
                        (3, Wire::Bytes(value)) => self.end.continue_token = text(value),
                        // Two's complement, as protobuf writes an int64.
                        (4, Wire::Varint(value)) => self.end.remaining_item_count = Some(value as i64),
                        _ => {}
                    }
                }
            }
        }
        Ok(None)
    }

    /// Content of so many bytes begins: the list must have them.
    fn spend(&mut self, length: u64, offset: usize) -> Result<(), WireError> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(length).ok_or_else(|| {
                let found = format!("a field of {length} bytes");
                let expected = format!("at most the {left} bytes that are left of the list");
                WireError::Broken(DecodeError::new(Fault::Unexpected { found }, offset, expected))
            })?;
        }
        Ok(())
    }
}

fn too_large(limit: usize, start: usize) -> DecodeError {
    DecodeError::new(Fault::TooLarge { limit }, start, "an item")
}

fn status(message: &[u8]) -> WireError {
    WireError::Status(Box::new(Status::from_protobuf(message)))
}

/// Every list that is written in protobuf is called so. In JSON a custom resource's need not be.
fn is_list(kind: &str) -> bool {
    kind.ends_with("List")
}

fn wrong_kind(kind: &str, offset: usize) -> WireError {
    let expected =
        if kind.is_empty() { "a kind".to_owned() } else { format!("a list, not the kind {kind:?}") };
    WireError::Broken(DecodeError::new(Fault::WrongEnvelope, offset, expected))
}
