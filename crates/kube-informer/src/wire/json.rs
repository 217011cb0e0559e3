//! Where JSON values begin and end.
//!
//! [`Extent`] finds the end of one value in a stream, [`Members`] the members of one object in a slice. Both
//! look at brackets, strings and separators only; neither recurses, and neither goes back.

use std::borrow::Cow;
use std::ops::Range;

use super::text::unexpected;
use crate::encoding::{DecodeError, Fault};

/// How deep objects and lists may be nested in each other, counted from an object's own braces.
pub const MAX_DEPTH: usize = 512;

/// Follows one value to its end.
///
/// Brackets are counted, not paired: a value with a wrong one is malformed, and its extent a guess.
#[derive(Debug, Clone)]
pub(super) struct Extent {
    depth: usize,
    place: Place,
}

/// Where in a value the last byte left us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between the brackets and strings of a container.
    Between,
    /// In a string.
    String,
    /// In a string, right after a backslash.
    Escaped,
    /// In a number or a literal, which only ends where something else begins.
    Scalar,
}

/// How far a slice brought us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// The value ends before this index.
    End(usize),
    /// One level more than [`MAX_DEPTH`] was opened before this index; go on from there.
    TooDeep(usize),
    /// The slice is used up.
    More,
}

impl Extent {
    /// The value that begins with this byte, which is not consumed; `None` where none does.
    pub(super) fn begin(byte: u8) -> Option<Self> {
        match byte {
            b'{' | b'[' | b'"' => Some(Self { depth: 0, place: Place::Between }),
            _ if is_scalar(byte) => Some(Self { depth: 0, place: Place::Scalar }),
            _ => None,
        }
    }

    /// Follows the value through the next bytes.
    pub(super) fn follow(&mut self, bytes: &[u8]) -> Reached {
        if self.place == Place::Scalar {
            let end = bytes.iter().position(|byte| !is_scalar(*byte));
            return end.map_or(Reached::More, Reached::End);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = self.follow_words(rest);
            // What a word is too coarse for: the end, an escape, what is left of the slice.
            let (near, far) = rest.split_at(rest.len().min(WORD));
            for (at, byte) in near.iter().enumerate() {
                let reached = bytes.len() - rest.len() + at + 1;
                match self.follow_byte(*byte) {
                    Turn::None => {}
                    Turn::End => return Reached::End(reached),
                    Turn::TooDeep => return Reached::TooDeep(reached),
                }
            }
            rest = far;
        }
        Reached::More
    }

    fn follow_byte(&mut self, byte: u8) -> Turn {
        self.place = match (self.place, byte) {
            // Between => (Between | String)
            (Place::Between, b'{' | b'[') => {
                self.depth += 1;
                if self.depth == MAX_DEPTH + 1 {
                    return Turn::TooDeep;
                }
                Place::Between
            }
            (Place::Between, b'}' | b']') => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return Turn::End;
                }
                Place::Between
            }
            (Place::Between, b'"') => Place::String,
            // String => (String | Escaped | Between)
            (Place::String, b'\\') => Place::Escaped,
            (Place::String, b'"') if self.depth == 0 => return Turn::End,
            (Place::String, b'"') => Place::Between,
            // Escaped => String
            (Place::Escaped, _) => Place::String,
            (place, _) => place,
        };
        Turn::None
    }

    /// Follows the value eight bytes at a time as long as they can neither end it nor lead too deep, and their
    /// escapes are plain to see; gives the rest. Most of an object goes by here.
    fn follow_words<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        // Numbers instead of places: whether a word begins in a string cannot be predicted, so nothing here
        // branches on it.
        let (mut string, mut escape) = match self.place {
            Place::Between => (0, 0),
            Place::String => (LANES, 0),
            Place::Escaped => (LANES, 1),
            Place::Scalar => return bytes,
        };
        let mut depth = self.depth;
        let mut without_quotes = 0;
        while let Some(word) = bytes.first_chunk::<WORD>() {
            let word = u64::from_le_bytes(*word);
            let backslashes = equal(word, b'\\');
            let quotes = equal(word, b'"');
            let escaped = backslashes << 8 | escape;
            // Each lane counts the quotes up to it; where that is odd, it is on the other side of a quote than
            // what comes before the word.
            let in_string = ((quotes & !escaped).wrapping_mul(LANES) & LANES) ^ string;
            // The brackets differ from the braces in one bit.
            let folded = word | LANES << 5;
            let opened = count(equal(folded, b'{') & !in_string);
            let closed = count(equal(folded, b'}') & !in_string);
            // A backslash after a backslash, or outside of a string, where it escapes nothing.
            let odd = backslashes & (escaped | !in_string);
            // Outside of all brackets there is the first byte, or a string that ends with its quote.
            let ends = closed >= depth && (opened | closed) != 0 || (depth == 0 && quotes != 0);
            if odd != 0 || ends || depth + opened > MAX_DEPTH {
                break;
            }
            depth = depth + opened - closed;
            string = if last(in_string) { LANES } else { 0 };
            escape = u64::from(last(backslashes));
            bytes = bytes.get(WORD..).unwrap_or_default();
            without_quotes = if quotes | backslashes == 0 { without_quotes + 1 } else { 0 };
            if without_quotes == LONG {
                without_quotes = 0;
                if string != 0 {
                    let end = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
                    bytes = bytes.get(end..).unwrap_or_default();
                }
            }
        }
        self.depth = depth;
        self.place = match (string, escape) {
            (0, _) => Place::Between,
            (_, 0) => Place::String,
            _ => Place::Escaped,
        };
        bytes
    }
}

/// What a byte leads to.
enum Turn {
    None,
    End,
    TooDeep,
}

/// How many lanes are one.
fn count(lanes: u64) -> usize {
    (lanes.wrapping_mul(LANES) >> (8 * (WORD - 1))) as usize
}

/// Whether the last lane is one.
fn last(lanes: u64) -> bool {
    lanes >> (8 * (WORD - 1)) != 0
}

/// How many bytes are looked at together.
const WORD: usize = 8;

/// After how many words without a quote a string is worth a call that jumps over the rest of it.
const LONG: usize = 4;

/// A one in each byte of a word.
const LANES: u64 = 0x0101_0101_0101_0101;

/// A one in each byte of the word that is this byte, zeros elsewhere.
fn equal(word: u64, byte: u8) -> u64 {
    const LOW: u64 = LANES * 0x7f;
    let different = word ^ (LANES * u64::from(byte));
    // The top bit of each byte is set unless all its bits are zero; no carry leaves a byte.
    let nonzero = ((different & LOW) + LOW) | different;
    (!nonzero >> 7) & LANES
}

/// What numbers, `true`, `false` and `null` are made of.
fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// How many blanks the bytes begin with.
pub(super) fn spaces(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !is_space(*byte)).unwrap_or(bytes.len())
}

/// The text of a JSON string, given with its quotes; `None` where it is malformed.
pub(super) fn string(quoted: &[u8]) -> Option<Cow<'_, str>> {
    match serde_json::from_slice::<&str>(quoted) {
        Ok(plain) => Some(Cow::Borrowed(plain)),
        // An escape, or an error.
        Err(_) => serde_json::from_slice::<String>(quoted).ok().map(Cow::Owned),
    }
}

/// The members of an object that is the whole slice, blanks around it aside.
///
/// Ends after the first error, and otherwise after the last byte: what follows the object is an error.
#[derive(Debug)]
pub(super) struct Members<'a> {
    bytes: &'a [u8],
    at: usize,
    next: Next,
}

/// One member.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) key: Cow<'a, str>,
    /// Where the value is in the slice.
    pub(super) value: Range<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Next {
    Open,
    FirstKey,
    CommaOrClose,
    Nothing,
}

impl<'a> Members<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, next: Next::Open }
    }

    /// The next byte that is no blank.
    fn token(&mut self, expected: &'static str) -> Result<u8, DecodeError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let blank = spaces(rest);
        self.at += blank;
        let truncated = || DecodeError::new(Fault::Truncated, self.at, expected);
        rest.get(blank).copied().ok_or_else(truncated)
    }

    fn value(&mut self, first: u8) -> Result<Range<usize>, DecodeError> {
        let start = self.at;
        let rest = self.bytes.get(start..).unwrap_or_default();
        let mut extent = Extent::begin(first).ok_or_else(|| unexpected(first, start, "a value"))?;
        match extent.follow(rest) {
            Reached::End(length) => {
                self.at += length;
                Ok(start..self.at)
            }
            Reached::TooDeep(length) => {
                let fault = Fault::TooDeep { limit: MAX_DEPTH };
                Err(DecodeError::new(fault, start + length - 1, "fewer levels"))
            }
            Reached::More => Err(DecodeError::new(Fault::Truncated, self.bytes.len(), "the end of a value")),
        }
    }

    fn member(&mut self) -> Result<Option<Member<'a>>, DecodeError> {
        loop {
            self.next = match self.next {
                // Open => FirstKey
                Next::Open => match self.token("{")? {
                    b'{' => {
                        self.at += 1;
                        Next::FirstKey
                    }
                    found => return Err(unexpected(found, self.at, "{")),
                },
                // FirstKey => (CommaOrClose | Nothing)
                Next::FirstKey => match self.token("a key or }")? {
                    b'}' => {
                        self.at += 1;
                        Next::Nothing
                    }
                    found => return self.key_and_value(found).map(Some),
                },
                // CommaOrClose => (CommaOrClose | Nothing)
                Next::CommaOrClose => match self.token(", or }")? {
                    b'}' => {
                        self.at += 1;
                        Next::Nothing
                    }
                    b',' => {
                        self.at += 1;
                        let found = self.token("a key")?;
                        return self.key_and_value(found).map(Some);
                    }
                    found => return Err(unexpected(found, self.at, ", or }")),
                },
                Next::Nothing => {
                    let rest = self.bytes.get(self.at..).unwrap_or_default();
                    self.at += spaces(rest);
                    return match self.bytes.get(self.at) {
                        None => Ok(None),
                        Some(found) => Err(unexpected(*found, self.at, "the end")),
                    };
                }
            };
        }
    }

    fn key_and_value(&mut self, first: u8) -> Result<Member<'a>, DecodeError> {
        if first != b'"' {
            return Err(unexpected(first, self.at, "a key"));
        }
        let key = self.value(first)?;
        let key = string(self.bytes.get(key.clone()).unwrap_or_default()).ok_or_else(|| {
            DecodeError::new(Fault::Unexpected { found: "a malformed string".to_owned() }, key.start, "a key")
        })?;
        match self.token(":")? {
            b':' => self.at += 1,
            found => return Err(unexpected(found, self.at, ":")),
        }
        let first = self.token("a value")?;
        let value = self.value(first)?;
        self.next = Next::CommaOrClose;
        Ok(Member { key, value })
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<Member<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.member().transpose();
        if !matches!(member, Some(Ok(_))) {
            // Fused: from the end there is nothing more to be wrong.
            self.at = self.bytes.len();
            self.next = Next::Nothing;
        }
        member
    }
}

#[cfg(test)]
mod tests;
