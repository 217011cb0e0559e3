//! Objects as JSON.
//!
//! [`ingest`] takes one complete document and, in one pass, checks all of it, reads its metadata, and copies
//! what the rules keep. No tree is built and nothing is decoded.
//!
//! It promises:
//! - What it accepts, serde_json can make a view of: the grammar of RFC 8259, UTF-8, whole surrogate pairs,
//!   numbers within a double, no more than 127 levels. Beyond that, no key stands twice in one object, but
//!   for what is cut.
//! - What it writes is what it read, byte for byte, without what was cut and the commas that belonged to it.
//!   Only a missing `apiVersion` or `kind` is put in front.
//! - Metadata is what the written bytes say: a dropped label is in neither. Only the writers are more, which
//!   come from `managedFields`, and a type that was put in front is not among it.
//! - Its time grows with the document's length (n log n for the keys of one large object), whatever the
//!   document says. It does not panic.
//!
//! An error says what is wrong, where, what was expected there, and whose object it is if that can be found
//! out; the buffer is empty then.
//!
//! Not promised: that the object is what its schema wants, apart from the metadata that is read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::str::Utf8Error;

use self::fault::{Fail, Scan, Why};
use self::object::Object;
use self::reader::{Next, Reader};
use super::codec::INITIAL_EVENTS_END;
use super::{Bookmark, DecodeError, Fault, Metadata, ObjectKey, Pointer, Rules};

// From the document inwards.
mod object;

mod reader;

pub(crate) use self::reader::LIMIT;

mod cut;

mod keys;

mod text;

mod fault;

/// Checks one object and writes what is kept of it to `out`, which is cleared first.
///
/// `fallback` is the `apiVersion` and `kind` of a document that has none, as items of lists do not. They go
/// to `out`; the metadata has only what the bytes say.
///
/// # Errors
///
/// Where the bytes are not one JSON document, or it is not an object with a name. Offsets count from the
/// start of the bytes.
pub(crate) fn ingest<'a>(
    bytes: &'a [u8],
    fallback: Option<(&str, &str)>,
    rules: &Rules,
    out: &mut Vec<u8>,
) -> Result<Metadata<'a>, DecodeError> {
    out.clear();
    let (object, cuts) = check(bytes, rules).map_err(|fail| fault::error(bytes, fail))?;
    out.reserve(bytes.len() + 64);
    let mut start = 0;
    if let Some((api_version, kind)) = fallback {
        // Behind the brace. There is a member to come, or there would be no metadata.
        start = text::space(bytes, 0) + 1;
        out.extend_from_slice(bytes.get(..start).unwrap_or_default());
        if !object.has_api_version {
            put(out, b"\"apiVersion\":", api_version);
        }
        if !object.has_kind {
            put(out, b"\"kind\":", kind);
        }
    }
    cut::splice(bytes, start, &cuts, out);
    Ok(object.metadata)
}

/// Checks one value of any type, with `depth` objects and arrays around it, as strictly as [`ingest`] does: what passes,
/// serde_json can make a view of.
///
/// # Errors
///
/// Where the bytes are not one JSON value. Offsets count from the start of the bytes.
pub(crate) fn check_value(bytes: &[u8], depth: usize) -> Result<(), DecodeError> {
    let scan = || {
        let utf8 = |error: Utf8Error| Fail { at: error.valid_up_to(), why: Why::Utf8 };
        let mut reader = Reader::new(std::str::from_utf8(bytes).map_err(utf8)?).within(depth);
        reader.skip()?;
        reader.end()
    };
    scan().map_err(|fail| fault::explain(bytes, fail))
}

/// The key of the object that a document is, or that its member of that name holds, of a document that is broken or of
/// which only the beginning is at hand. `None` where it could be wrong.
pub(crate) fn key_of(bytes: &[u8], member: Option<&str>) -> Option<ObjectKey> {
    fault::whose(bytes, member)
}

/// The extent of what a pointer names, in a document that was checked before.
///
/// In one that was not, what is found may be anything.
pub(crate) fn seek<'a>(bytes: &'a [u8], pointer: &Pointer) -> Option<&'a [u8]> {
    let mut reader = Reader::again(bytes);
    for token in pointer.tokens() {
        if !enter(&mut reader, token).ok()? {
            return None;
        }
    }
    let start = reader.at();
    reader.skip().ok()?;
    Some(reader.since(start))
}

/// The metadata again, from bytes that were checked before. Writers are not among it.
///
/// # Errors
///
/// Where the bytes were not checked before, and are not an object with a name.
pub(crate) fn metadata(bytes: &[u8]) -> Result<Metadata<'_>, DecodeError> {
    let object = object::read_again(&mut Reader::again(bytes));
    object.map(|object| object.metadata).map_err(|fail| fault::error(bytes, fail))
}

/// Reads a bookmark of a watch.
///
/// # Errors
///
/// Where the bytes are not an object of the kind, or it has no version.
pub(crate) fn bookmark(bytes: &[u8], kind: &str) -> Result<Bookmark, DecodeError> {
    #[derive(serde::Deserialize)]
    struct Document {
        #[serde(default)]
        kind: String,
        #[serde(default)]
        metadata: Fields,
    }
    #[derive(Default, serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Fields {
        resource_version: String,
        annotations: Option<BTreeMap<String, String>>,
    }
    let wrong = |found: String| {
        DecodeError::new(Fault::Unexpected { found }, 0, format!("a bookmark of {kind} with a version"))
    };
    let document: Document = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
    if document.kind != kind {
        return Err(wrong(format!("an object of the kind {:?}", document.kind)));
    }
    let Fields { resource_version, annotations } = document.metadata;
    if resource_version.is_empty() {
        return Err(wrong("a bookmark without a version".to_owned()));
    }
    let end = annotations.and_then(|mut annotations| annotations.remove(INITIAL_EVENTS_END));
    let ends_initial_events = end.is_some_and(|value| value == "true");
    Ok(Bookmark { version: resource_version.as_str().into(), ends_initial_events })
}

/// Reads a document, and notes what is to be cut of it.
fn check<'a>(bytes: &'a [u8], rules: &Rules) -> Scan<(Object<'a>, Vec<Range<usize>>)> {
    match std::str::from_utf8(bytes) {
        Ok(text) => {
            let mut reader = Reader::new(text);
            let object = object::read(&mut reader, rules)?;
            Ok((object, reader.into_cuts()))
        }
        Err(error) => Err(not_utf8(bytes, error, rules)),
    }
}

/// The first fault of a document that is not UTF-8.
#[cold]
fn not_utf8(bytes: &[u8], error: Utf8Error, rules: &Rules) -> Fail {
    let at = error.valid_up_to();
    let before = bytes.get(..at).and_then(|before| std::str::from_utf8(before).ok()).unwrap_or_default();
    match object::read(&mut Reader::new(before), rules) {
        Err(fail) if fail.at < at && !fail.is_about_the_whole() => fail,
        // A character that the end cuts is missing bytes, as everything else that it cuts.
        _ if error.error_len().is_none() => Fail::syntax(bytes.len(), "the rest of a character"),
        _ => Fail { at, why: Why::Utf8 },
    }
}

/// Goes to a member or an item, if there is one.
fn enter(reader: &mut Reader<'_>, token: &str) -> Scan<bool> {
    let mut found = false;
    match reader.peek() {
        b'{' => reader.members(|reader, key| {
            found = key == token;
            if found { Ok(Next::Done) } else { reader.skip().map(|()| Next::Keep) }
        })?,
        b'[' => {
            let Some(mut index) = index(token) else { return Ok(false) };
            reader.items(|reader| {
                found = index == 0;
                index = index.saturating_sub(1);
                if found { Ok(Next::Done) } else { reader.skip().map(|()| Next::Keep) }
            })?;
        }
        _ => {}
    }
    Ok(found)
}

/// The index that a token of a pointer names: digits without leading zeros.
fn index(token: &str) -> Option<usize> {
    let plain = token.bytes().all(|byte| byte.is_ascii_digit()) && (token == "0" || !token.starts_with('0'));
    if plain { token.parse().ok() } else { None }
}

/// Appends a member and a comma.
fn put(out: &mut Vec<u8>, key: &[u8], value: &str) {
    out.extend_from_slice(key);
    // As the text that a `Value` prints: nothing can fail on that way.
    out.extend_from_slice(serde_json::Value::from(value).to_string().as_bytes());
    out.push(b',');
}

#[cfg(test)]
mod tests;
