//! One pass over a document: values are skipped or read, and what is cut is noted.
//!
//! Whatever is passed is checked to the last byte, whether it is read or not. Recursion happens only where
//! the caller descends; values that are skipped cost a bit per level, and no level is deeper than [`LIMIT`].

use std::borrow::Cow;
use std::ops::Range;

use super::fault::{Fail, Scan, Why};
use super::keys::Keys;
use super::text::{self, byte, space};

/// How deep values may be nested: as deep as serde_json makes views of them.
pub(crate) const LIMIT: usize = 127;

#[derive(Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// The same bytes, where all of them are known to be UTF-8.
    text: Option<&'a str>,
    at: usize,
    /// How many objects and arrays are open around `at`, not counting those that are being skipped.
    depth: usize,
    /// Whether a key that stands twice is a fault.
    unique: bool,
    /// The keys of the objects that are open, where they must be unique.
    keys: Keys,
    /// What is cut, in order.
    cuts: Vec<Range<usize>>,
}

/// What becomes of a member or an item that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It is kept.
    Keep,
    /// It is cut. Only members can be.
    Cut,
    /// The rest of the document does not matter: the reader is left where it stands.
    Done,
}

impl<'a> Reader<'a> {
    /// A reader of a document that was not checked before: a key that stands twice is a fault.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text: Some(text), unique: true, keys: Keys::new(), ..Self::again(text.as_bytes()) }
    }

    /// A reader of a document that was checked before.
    pub(super) fn again(bytes: &'a [u8]) -> Self {
        let (keys, cuts) = (Keys::default(), Vec::new());
        Self { bytes, text: None, at: space(bytes, 0), depth: 0, unique: false, keys, cuts }
    }

    /// The same reader, for a value that stands inside of `depth` others.
    pub(super) fn within(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// The first byte of the value that comes next.
    pub(super) fn peek(&self) -> u8 {
        byte(self.bytes, self.at)
    }

    /// The bytes between a position and the current one.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn into_cuts(self) -> Vec<Range<usize>> {
        self.cuts
    }

    /// Nothing but space may follow.
    pub(super) fn end(&mut self) -> Scan<()> {
        self.at = space(self.bytes, self.at);
        if self.at < self.bytes.len() {
            return Err(Fail::syntax(self.at, "the end of the document"));
        }
        Ok(())
    }

    /// Passes one value.
    pub(super) fn skip(&mut self) -> Scan<()> {
        if self.unique { self.pass::<true>() } else { self.pass::<false>() }
    }

    /// Reads what is cut: there, keys may stand twice.
    pub(super) fn aside<T>(&mut self, read: impl FnOnce(&mut Self) -> Scan<T>) -> Scan<T> {
        let unique = std::mem::take(&mut self.unique);
        let result = read(self);
        self.unique = unique;
        result
    }

    /// Reads an object, a member at a time: `each` finds the reader at the member's value and passes it.
    pub(super) fn members(
        &mut self,
        mut each: impl FnMut(&mut Self, Cow<'a, str>) -> Scan<Next>,
    ) -> Scan<()> {
        self.enter()?;
        if self.unique {
            self.keys.open();
        }
        let mut kept = false;
        let mut comma = self.at;
        let mut more = self.peek() != b'}';
        while more {
            let start = self.at;
            let key = self.key()?;
            let next = each(self, key)?;
            if next == Next::Done {
                return Ok(());
            }
            let end = self.at;
            self.at = space(self.bytes, end);
            more = match self.peek() {
                b',' => true,
                b'}' => false,
                _ => return Err(Fail::syntax(self.at, "',' or '}'")),
            };
            if next == Next::Keep {
                kept = true;
            } else if kept {
                self.cuts.push(comma..end);
            } else {
                // No comma stands before it that could go with it, so the one behind it goes.
                self.cuts.push(start..if more { self.at + 1 } else { end });
            }
            comma = self.at;
            if more {
                self.at = space(self.bytes, self.at + 1);
            }
        }
        if self.unique {
            self.keys.close(self.bytes)?;
        }
        self.leave();
        Ok(())
    }

    /// Reads an array, an item at a time: `each` finds the reader at the item and passes it.
    pub(super) fn items(&mut self, mut each: impl FnMut(&mut Self) -> Scan<Next>) -> Scan<()> {
        self.enter()?;
        let mut more = self.peek() != b']';
        while more {
            if each(self)? == Next::Done {
                return Ok(());
            }
            self.at = space(self.bytes, self.at);
            more = match self.peek() {
                b',' => true,
                b']' => false,
                _ => return Err(Fail::syntax(self.at, "',' or ']'")),
            };
            if more {
                self.at = space(self.bytes, self.at + 1);
            }
        }
        self.leave();
        Ok(())
    }

    /// Reads a string; `null` is an empty one.
    pub(super) fn string(&mut self, field: &'static str) -> Scan<Cow<'a, str>> {
        match self.peek() {
            b'"' => {
                let start = self.at + 1;
                let (end, escaped) = text::string(self.bytes, start)?;
                self.at = end + 1;
                self.lend(start, end, escaped)
            }
            b'n' => self.null().map(|()| Cow::default()),
            _ => Err(self.wrong(field, "a string")),
        }
    }

    /// Passes `null`.
    pub(super) fn null(&mut self) -> Scan<()> {
        self.at = text::literal(self.bytes, self.at)?;
        Ok(())
    }

    /// A value of another type than the field wants.
    pub(super) fn wrong(&self, name: &'static str, wanted: &'static str) -> Fail {
        Fail { at: self.at, why: Why::Field { name, wanted } }
    }

    /// Reads a key and the colon behind it.
    fn key(&mut self) -> Scan<Cow<'a, str>> {
        let quote = self.at;
        let (end, escaped, value) = key(self.bytes, quote)?;
        if self.unique {
            self.keys.add(self.bytes, quote, end, escaped)?;
        }
        self.at = value;
        self.lend(quote + 1, end, escaped)
    }

    /// What stands between the quotes of a string, without escapes.
    fn lend(&self, start: usize, end: usize, escaped: bool) -> Scan<Cow<'a, str>> {
        let lent = match self.text {
            Some(text) if escaped => text.get(start..end).and_then(text::unescaped).map(Cow::Owned),
            Some(text) => text.get(start..end).map(Cow::Borrowed),
            None => self.bytes.get(start..end).and_then(|raw| text::unquoted(raw, escaped)),
        };
        lent.ok_or(Fail { at: start, why: Why::Utf8 })
    }

    /// Passes a key that is not read.
    #[inline(always)]
    fn pass_key<const KEYS: bool>(&mut self, at: usize) -> Scan<usize> {
        let (end, escaped, value) = key(self.bytes, at)?;
        if KEYS {
            self.keys.add(self.bytes, at, end, escaped)?;
        }
        Ok(value)
    }

    /// An object or an array begins.
    fn enter(&mut self) -> Scan<()> {
        self.depth += 1;
        if self.depth > LIMIT {
            return Err(Fail { at: self.at, why: Why::TooDeep });
        }
        self.at = space(self.bytes, self.at + 1);
        Ok(())
    }

    /// An object or an array ends.
    fn leave(&mut self) {
        self.depth -= 1;
        self.at += 1;
    }

    /// Passes one value, with all that is under it. `KEYS`: a key that stands twice is a fault.
    fn pass<const KEYS: bool>(&mut self) -> Scan<()> {
        let bytes = self.bytes;
        let mut at = self.at;
        let mut depth = self.depth;
        // A bit for each value that is open, the innermost lowest: whether it is an object.
        let mut objects = 0_u128;
        loop {
            // A value begins here, in an object with its key.
            if objects & 1 == 1 {
                at = self.pass_key::<KEYS>(at)?;
            }
            match byte(bytes, at) {
                b'"' => at = text::string(bytes, at + 1)?.0 + 1,
                open @ (b'{' | b'[') => {
                    if depth == LIMIT {
                        return Err(Fail { at, why: Why::TooDeep });
                    }
                    at = space(bytes, at + 1);
                    // In ASCII, a closing bracket comes two after its opening one.
                    if byte(bytes, at) != open + 2 {
                        depth += 1;
                        let object = open == b'{';
                        objects = objects << 1 | u128::from(object);
                        if KEYS && object {
                            self.keys.open();
                        }
                        continue;
                    }
                    at += 1;
                }
                b'-' | b'0'..=b'9' => at = text::number(bytes, at)?,
                _ => at = text::literal(bytes, at)?,
            }
            // A value ends here, and with it maybe those that it is the last of.
            loop {
                if depth == self.depth {
                    self.at = at;
                    return Ok(());
                }
                at = space(bytes, at);
                let object = objects & 1 == 1;
                match byte(bytes, at) {
                    b',' => {
                        at = space(bytes, at + 1);
                        break;
                    }
                    b'}' if object => {
                        if KEYS {
                            self.keys.close(bytes)?;
                        }
                    }
                    b']' if !object => {}
                    _ if object => return Err(Fail::syntax(at, "',' or '}'")),
                    _ => return Err(Fail::syntax(at, "',' or ']'")),
                }
                objects >>= 1;
                depth -= 1;
                at += 1;
            }
        }
    }
}

/// Reads a key and the colon behind it. Gives the position of the closing quote, whether there are escapes
/// before it, and where the value begins.
#[inline(always)]
fn key(bytes: &[u8], at: usize) -> Scan<(usize, bool, usize)> {
    if byte(bytes, at) != b'"' {
        return Err(Fail::syntax(at, "a key"));
    }
    let (end, escaped) = text::string(bytes, at + 1)?;
    let colon = space(bytes, end + 1);
    if byte(bytes, colon) != b':' {
        return Err(Fail::syntax(colon, "':'"));
    }
    Ok((end, escaped, space(bytes, colon + 1)))
}
