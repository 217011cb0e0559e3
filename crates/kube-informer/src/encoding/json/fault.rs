//! What is wrong with a document, in two steps: a small [`Fail`] where it is found, and the full
//! [`DecodeError`] at the edge, off the fast path.

use std::borrow::Cow;

use memchr::memchr2;

use super::reader::LIMIT;
use super::{seek, text};
use crate::encoding::{DecodeError, Fault, ObjectKey, Pointer};

/// The result of reading a part of a document.
pub(super) type Scan<T> = Result<T, Fail>;

/// Where reading stopped, and why.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fail {
    pub(super) at: usize,
    pub(super) why: Why,
}

/// Why reading stopped. At the end of the bytes, the first two mean that they are cut.
#[derive(Debug, Clone, Copy)]
pub(super) enum Why {
    /// The grammar wants something else here.
    Syntax(&'static str),
    /// A field of the metadata wants something else here.
    Field {
        name: &'static str,
        wanted: &'static str,
    },
    TooDeep,
    Infinite,
    /// A whole number does not fit.
    Range(&'static str),
    /// A string that is not a time.
    Time(&'static str),
    Utf8,
    Duplicate,
    NoMetadata,
    NoName,
    Status,
}

impl Fail {
    pub(super) fn syntax(at: usize, expected: &'static str) -> Self {
        Self { at, why: Why::Syntax(expected) }
    }

    /// Whether the document as a whole lacks something, and no place in it is at fault.
    pub(super) fn is_about_the_whole(&self) -> bool {
        matches!(self.why, Why::NoMetadata | Why::NoName | Why::Status)
    }

    /// Whether it is the end of the bytes, and nothing else, that stopped the reading.
    pub(super) fn is_the_end(&self, bytes: &[u8]) -> bool {
        self.at >= bytes.len() && matches!(self.why, Why::Syntax(_) | Why::Field { .. })
    }
}

/// The error for a document, with the object's key if it can be found.
#[cold]
pub(super) fn error(bytes: &[u8], fail: Fail) -> DecodeError {
    if let Some(error) = foreign(bytes, fail) {
        return error;
    }
    DecodeError { key: whose(bytes).map(Box::new), ..explain(bytes, fail) }
}

/// What is wrong, and where.
pub(super) fn explain(bytes: &[u8], fail: Fail) -> DecodeError {
    let unexpected = || match fail.is_the_end(bytes) {
        true => Fault::Truncated,
        false => Fault::Unexpected { found: describe(bytes, fail.at) },
    };
    let (fault, expected): (Fault, Cow<'static, str>) = match fail.why {
        Why::Syntax(wanted) => (unexpected(), wanted.into()),
        Why::Field { name, wanted } => (unexpected(), format!("{wanted} in {name}").into()),
        Why::TooDeep => (Fault::TooDeep { limit: LIMIT }, "a value that is not nested so deep".into()),
        Why::Infinite => (Fault::NumberOutOfRange, "a number that a double can hold".into()),
        Why::Range(name) => (Fault::NumberOutOfRange, format!("a whole number of 64 bits in {name}").into()),
        Why::Time(name) => {
            let found =
                string_at(bytes, fail.at).map_or_else(|| describe(bytes, fail.at), |text| excerpt(&text));
            (Fault::Unexpected { found }, format!("a time as RFC 3339 writes it in {name}").into())
        }
        Why::Utf8 => (Fault::InvalidUtf8, "UTF-8".into()),
        Why::Duplicate => {
            let key = string_at(bytes, fail.at).unwrap_or_default().into_owned();
            (Fault::DuplicateKey { key }, "each key once".into())
        }
        Why::NoMetadata => (Fault::NoMetadata, "an object with metadata".into()),
        Why::NoName => (Fault::NoName, "a name in metadata.name".into()),
        Why::Status => {
            let message = Pointer::parse("/message").ok().and_then(|pointer| seek(bytes, &pointer));
            let message = message.and_then(|value| string_at(value, 0)).unwrap_or_default().into_owned();
            (Fault::StatusInstead { message }, "an object".into())
        }
    };
    DecodeError::new(fault, fail.at, expected)
}

/// What is no JSON at all, judged by how it begins.
fn foreign(bytes: &[u8], fail: Fail) -> Option<DecodeError> {
    const EXPECTED: &str = "a JSON object";
    let at = text::space(bytes, 0);
    let fault = match text::byte(bytes, at) {
        b'{' => return None,
        _ if at >= bytes.len() => Fault::Truncated,
        b'[' | b'"' => return None,
        _ if bytes.starts_with(b"k8s\0") => Fault::Unexpected { found: "Kubernetes' protobuf".to_owned() },
        // A single word or number of JSON is read to its end before it is found to be no object.
        _ if matches!(fail.why, Why::Field { .. }) => return None,
        _ => Fault::NotAnApi,
    };
    Some(DecodeError::new(fault, at, EXPECTED))
}

/// The byte at a position, in words.
fn describe(bytes: &[u8], at: usize) -> String {
    match text::byte(bytes, at) {
        b'"' => "a string".to_owned(),
        b'{' => "an object".to_owned(),
        b'[' => "an array".to_owned(),
        b'-' | b'0'..=b'9' => "a number".to_owned(),
        control @ (0..0x20 | 0x7f) => format!("the control character {control:#04x}"),
        _ => {
            let rest = bytes.get(at..bytes.len().min(at + 4)).unwrap_or_default();
            match rest.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next()) {
                Some(character) => format!("'{character}'"),
                None => format!("the byte {:#04x}", text::byte(bytes, at)),
            }
        }
    }
}

/// Text from outside, quoted, and not all of it if it is long.
fn excerpt(text: &str) -> String {
    const LONGEST: usize = 64;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

/// The string whose opening quote stands at a position.
fn string_at(bytes: &[u8], at: usize) -> Option<Cow<'_, str>> {
    if text::byte(bytes, at) != b'"' {
        return None;
    }
    let (end, escaped) = text::string(bytes, at + 1).ok()?;
    text::unquoted(bytes.get(at + 1..end)?, escaped)
}

/// Whose bytes these are, as far as a look can tell that minds only quotes and brackets.
///
/// It must not be wrong: a name alone counts only where the metadata ends without a namespace, and none
/// counts where there are two.
fn whose(bytes: &[u8]) -> Option<ObjectKey> {
    let mut name = None;
    let mut namespace = None;
    let mut depth = 0_usize;
    // The key of the member that is being read, in the root and in the metadata.
    let mut key: &[u8] = b"";
    let mut inside = false;
    let mut complete = false;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                depth += 1;
                inside |= depth == 2 && *byte == b'{' && key == b"metadata";
                key = b"";
            }
            b'}' | b']' => {
                if depth == 2 && inside {
                    (inside, complete) = (false, true);
                }
                depth = depth.saturating_sub(1);
                key = b"";
            }
            b'"' => {
                let Some((end, escaped)) = closing_quote(bytes, at) else { break };
                let raw = bytes.get(at..end).unwrap_or_default();
                at = end + 1;
                if text::byte(bytes, text::space(bytes, at)) == b':' {
                    key = raw;
                    continue;
                }
                let field = match std::mem::take(&mut key) {
                    b"name" if inside && depth == 2 => &mut name,
                    b"namespace" if inside && depth == 2 => &mut namespace,
                    _ => continue,
                };
                let value = text::unquoted(raw, escaped)?;
                if field.replace(value.clone()).is_some_and(|before| before != value) {
                    return None;
                }
            }
            b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
            _ => key = b"",
        }
        if depth == 0 && complete {
            break;
        }
    }
    let name = name.filter(|name| !name.is_empty())?;
    if namespace.is_none() && !complete {
        return None;
    }
    Some(ObjectKey { namespace: namespace.unwrap_or_default().into_owned(), name: name.into_owned() })
}

/// The end of a string of which nothing is known.
fn closing_quote(bytes: &[u8], mut at: usize) -> Option<(usize, bool)> {
    let mut escaped = false;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if text::byte(bytes, at) == b'"' {
            return Some((at, escaped));
        }
        escaped = true;
        at += 2;
    }
}
