//! The words of JSON: strings, numbers, literals and the space between them.
//!
//! Every function takes the whole document and a position, and gives the position behind what it read. None
//! reads past the end: there stands a NUL, which has no place in any rule. Strings are checked for escapes
//! and control characters, not for UTF-8.

use std::borrow::Cow;

use super::fault::{Fail, Scan, Why};

/// A number of no more bytes than this, without an exponent, is below the largest double.
const SURELY_FINITE: usize = 300;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = ONES << 7;

/// Which bytes make up an escape together with a backslash.
const SINGLE: [bool; 256] = {
    let mut single = [false; 256];
    let mut rest: &[u8] = b"\"\\/bfnrt";
    while let Some((byte, others)) = rest.split_first() {
        single[*byte as usize] = true;
        rest = others;
    }
    single
};

/// The byte at a position, NUL at the end.
#[inline(always)]
pub(super) fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// The position of the first byte that is not space.
#[inline(always)]
pub(super) fn space(bytes: &[u8], mut at: usize) -> usize {
    // The server writes none: one comparison rules all four out.
    while byte(bytes, at) <= b' ' && matches!(byte(bytes, at), b' ' | b'\t' | b'\n' | b'\r') {
        at += 1;
    }
    at
}

/// Reads a string whose opening quote stands before `at`. Gives the position of its closing quote, and
/// whether there are escapes in it.
#[inline(always)]
pub(super) fn string(bytes: &[u8], at: usize) -> Scan<(usize, bool)> {
    let end = plain(bytes, at);
    if byte(bytes, end) == b'"' { Ok((end, false)) } else { escaped_string(bytes, end) }
}

/// The position of the first byte that is a quote, a backslash or a control character.
#[inline(always)]
fn plain(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let word = u64::from_le_bytes(*chunk);
        // Flipping the second bit puts the quote (0x22) next to the control characters (below 0x20) and
        // the space (0x20) out of their way, so that one comparison with 0x21 finds both. Of the bytes
        // that are found, only the lowest is sure: its borrow may mark those above it. It is all we want.
        let low = word ^ (ONES * 0x02);
        let backslash = word ^ (ONES * 0x5c);
        let found = ((low.wrapping_sub(ONES * 0x21) & !low) | (backslash.wrapping_sub(ONES) & !backslash))
            & HIGH_BITS;
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while !matches!(byte(bytes, at), 0..0x20 | b'"' | b'\\') {
        at += 1;
    }
    at
}

/// The rest of a string that is not plain to its end.
fn escaped_string(bytes: &[u8], mut at: usize) -> Scan<(usize, bool)> {
    while byte(bytes, at) == b'\\' {
        at = if SINGLE[usize::from(byte(bytes, at + 1))] { at + 2 } else { escape(bytes, at)? };
        at = plain(bytes, at);
    }
    if byte(bytes, at) == b'"' {
        return Ok((at, true));
    }
    Err(Fail::syntax(at, "a character of a string, or its end"))
}

/// Reads an escape of more than one character, or the two that make up one. `at` is its backslash.
#[cold]
fn escape(bytes: &[u8], at: usize) -> Scan<usize> {
    match byte(bytes, at + 1) {
        b'u' => match hex(bytes, at + 2)? {
            0xD800..0xDC00 => {
                let second = at + 6;
                for (offset, wanted) in [(0, b'\\'), (1, b'u')] {
                    if byte(bytes, second + offset) != wanted {
                        return Err(Fail::syntax(second + offset, "the second half of a surrogate pair"));
                    }
                }
                match hex(bytes, second + 2)? {
                    0xDC00..0xE000 => Ok(second + 6),
                    _ => Err(Fail::syntax(second, "the second half of a surrogate pair")),
                }
            }
            0xDC00..0xE000 => Err(Fail::syntax(at, "the first half of a surrogate pair")),
            _ => Ok(at + 6),
        },
        _ => Err(Fail::syntax(at + 1, "one of the escapes of JSON")),
    }
}

fn hex(bytes: &[u8], at: usize) -> Scan<u32> {
    (at..at + 4).try_fold(0, |value, at| {
        let digit = char::from(byte(bytes, at)).to_digit(16);
        digit.map(|digit| value << 4 | digit).ok_or(Fail::syntax(at, "a hexadecimal digit"))
    })
}

/// The text of a string that was read before, given what stands between its quotes. `None` if it is not
/// UTF-8, or was not read before.
pub(super) fn unquoted(raw: &[u8], escaped: bool) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(raw).ok()?;
    if escaped { unescaped(text).map(Cow::Owned) } else { Some(Cow::Borrowed(text)) }
}

/// The same for what is known to be UTF-8, and to have escapes.
pub(super) fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut length = 1;
        out.push(match after.chars().next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let unit = |at| hex(after.as_bytes(), at).ok();
                let first = unit(1)?;
                length = 5;
                if let Some(character) = char::from_u32(first) {
                    character
                } else {
                    length = 11;
                    let second = unit(7)?.checked_sub(0xDC00)?;
                    char::from_u32(0x10000 + ((first & 0x3FF) << 10) + second)?
                }
            }
            other @ ('"' | '\\' | '/') => other,
            _ => return None,
        });
        rest = after.get(length..)?;
    }
    out.push_str(rest);
    Some(out)
}

/// Reads a number. One that no double can hold is a fault, for no view could be made of it.
pub(super) fn number(bytes: &[u8], start: usize) -> Scan<usize> {
    let mut at = start;
    if byte(bytes, at) == b'-' {
        at += 1;
    }
    at = if byte(bytes, at) == b'0' { at + 1 } else { digits(bytes, at)? };
    if byte(bytes, at) == b'.' {
        at = digits(bytes, at + 1)?;
    }
    let mut large = at - start > SURELY_FINITE;
    if matches!(byte(bytes, at), b'e' | b'E') {
        at += 1;
        if matches!(byte(bytes, at), b'+' | b'-') {
            at += 1;
        }
        at = digits(bytes, at)?;
        large = true;
    }
    // The views are serde_json's, so it has the last word.
    if large && serde_json::from_slice::<f64>(bytes.get(start..at).unwrap_or_default()).is_err() {
        return Err(Fail { at: start, why: Why::Infinite });
    }
    Ok(at)
}

/// One digit or more.
fn digits(bytes: &[u8], start: usize) -> Scan<usize> {
    let mut at = start;
    while byte(bytes, at).is_ascii_digit() {
        at += 1;
    }
    if at == start { Err(Fail::syntax(at, "a digit")) } else { Ok(at) }
}

/// Reads `true`, `false` or `null`: whichever begins with the byte at `at`.
pub(super) fn literal(bytes: &[u8], mut at: usize) -> Scan<usize> {
    let word: &[u8] = match byte(bytes, at) {
        b't' => b"true",
        b'f' => b"false",
        b'n' => b"null",
        _ => return Err(Fail::syntax(at, "a value")),
    };
    for wanted in word {
        if byte(bytes, at) != *wanted {
            return Err(Fail::syntax(at, "true, false or null"));
        }
        at += 1;
    }
    Ok(at)
}
