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
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            self.place = match self.place {
                // Between => (Between | String)
                Place::Between => {
                    let Some(found) = rest.iter().position(|byte| is_structural(*byte)) else {
                        return Reached::More;
                    };
                    at += found + 1;
                    match rest[found] {
                        b'"' => Place::String,
                        b'{' | b'[' => {
                            self.depth += 1;
                            if self.depth == MAX_DEPTH + 1 {
                                return Reached::TooDeep(at);
                            }
                            Place::Between
                        }
                        _ => {
                            self.depth = self.depth.saturating_sub(1);
                            if self.depth == 0 {
                                return Reached::End(at);
                            }
                            Place::Between
                        }
                    }
                }
                // String => (Escaped | Between)
                Place::String => {
                    let Some(found) = string_end(rest) else {
                        return Reached::More;
                    };
                    at += found + 1;
                    if rest[found] == b'\\' {
                        Place::Escaped
                    } else if self.depth == 0 {
                        return Reached::End(at);
                    } else {
                        Place::Between
                    }
                }
                // Escaped => String
                Place::Escaped => {
                    if rest.is_empty() {
                        return Reached::More;
                    }
                    at += 1;
                    Place::String
                }
                Place::Scalar => {
                    return match rest.iter().position(|byte| !is_scalar(*byte)) {
                        Some(end) => Reached::End(end),
                        None => Reached::More,
                    };
                }
            };
        }
    }
}

/// The next quote or backslash. Most strings are short: a call costs more than looking at their bytes does.
fn string_end(bytes: &[u8]) -> Option<usize> {
    const NEAR: usize = 16;
    let (near, far) = bytes.split_at(bytes.len().min(NEAR));
    match near.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        Some(found) => Some(found),
        None => memchr::memchr2(b'"', b'\\', far).map(|found| NEAR + found),
    }
}

fn is_structural(byte: u8) -> bool {
    matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')
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
