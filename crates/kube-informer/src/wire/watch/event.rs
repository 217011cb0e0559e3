//! One event: its type, and where in it the object is.

use bytes::Bytes;
use serde::de::IgnoredAny;

use super::{Change, WatchFrame};
use crate::encoding::protobuf::MAGIC;
use crate::encoding::protobuf::reader::{Reader, Value as Wire};
use crate::encoding::{DecodeError, Encoding, Fault, json, protobuf};
use crate::wire::json::{Members, string};
use crate::wire::protobuf::{readable, text};
use crate::wire::text::{beginning, byte};
use crate::wire::{Status, WireError};

/// The event that is this line. Offsets in errors count from the line's start.
pub(super) fn from_json(line: &Bytes) -> Result<WatchFrame, WireError> {
    let mut kind: Option<(Kind, usize)> = None;
    let mut object: Option<Result<Bytes, WireError>> = None;
    let mut is_status = false;
    for member in Members::new(line) {
        let member = member.map_err(WireError::Skipped)?;
        let value = line.get(member.value.clone()).unwrap_or_default();
        let place = member.value.start;
        let malformed = |expected| skipped(found(value), place, expected);
        match &*member.key {
            "type" if kind.is_some() => return Err(twice("type", place)),
            "object" if object.is_some() => return Err(twice("object", place)),
            "type" => {
                let name = string(value).ok_or_else(|| malformed("the event type, a string"))?;
                kind = Some((Kind::of(&name), place));
            }
            "object" if value.first() == Some(&b'{') => object = Some(Ok(line.slice(member.value))),
            "object" => object = Some(Err(malformed("an object"))),
            // What is not needed is still JSON: it may be a sign that the line is not what it seems.
            key => match serde_json::from_slice::<IgnoredAny>(value) {
                Ok(_) => is_status |= key == "kind" && string(value).is_some_and(|kind| kind == "Status"),
                Err(_) => return Err(malformed("a value")),
            },
        }
    }
    if is_status && kind.is_none() && object.is_none() {
        return Err(WireError::Status(Box::new(Status::read(Encoding::Json, line))));
    }
    let (kind, place) = kind.ok_or_else(|| missing("type", line.len()))?;
    let object = object.unwrap_or_else(|| Err(missing("object", line.len())));
    kind.frame(Encoding::Json, object, place)
}

/// The event that this line seems to be, if that is written as servers write it: `{"type":"ADDED","object":{…}}`, and the
/// object of an object's change. What lies between the braces is not looked at: if it is one JSON document, then the line is
/// this event, and nothing else.
pub(super) fn presumed(line: &Bytes) -> Option<WatchFrame> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let (name, rest) = rest.split_at_checked(memchr::memchr(b'"', rest)?)?;
    let document = rest.strip_prefix(b"\",\"object\":")?.strip_suffix(b"}")?;
    if !document.starts_with(b"{") || !document.ends_with(b"}") {
        return None;
    }
    match Kind::of(std::str::from_utf8(name).ok()?) {
        Kind::Object(change) => Some(WatchFrame::Object { change, object: line.slice_ref(document) }),
        Kind::Bookmark | Kind::Error | Kind::Unknown(_) => None,
    }
}

/// The event that is this message. Offsets in errors count from the message's start.
pub(super) fn from_protobuf(message: &Bytes) -> Result<WatchFrame, WireError> {
    let mut kind: Option<(Kind, usize)> = None;
    let mut object: Option<(&[u8], usize)> = None;
    let mut fields = Reader::new(message);
    while let Some(field) = fields.next().map_err(WireError::Skipped)? {
        match (field.number, field.value) {
            (1, _) if kind.is_some() => return Err(twice("type", field.start)),
            (2, _) if object.is_some() => return Err(twice("object", field.start)),
            (1, Wire::Bytes(name)) => {
                kind = Some((Kind::of(&String::from_utf8_lossy(name)), field.start));
            }
            (2, Wire::Bytes(extension)) => object = Some((extension, field.end - extension.len())),
            _ => {}
        }
    }
    let (kind, place) = kind.ok_or_else(|| missing("type", message.len()))?;
    let object = match object {
        None => Err(missing("object", message.len())),
        Some((extension, start)) => enveloped(message, extension, start),
    };
    kind.frame(Encoding::Protobuf, object, place)
}

/// How an object changed by an event that is unusable, or of which only the beginning is at hand. `None` where it could be
/// wrong.
pub(super) fn change(encoding: Encoding, event: &[u8]) -> Option<Change> {
    let names: Vec<String> = match encoding {
        Encoding::Json => {
            let members = Members::new(event).map_while(Result::ok);
            let types = members.filter(|member| &*member.key == "type");
            types.map(|member| event.get(member.value).and_then(string).unwrap_or_default().into()).collect()
        }
        Encoding::Protobuf => {
            let types = readable(event).filter(|(number, _)| *number == 1);
            types
                .filter_map(|(_, value)| if let Wire::Bytes(name) = value { Some(text(name)) } else { None })
                .collect()
        }
    };
    match &names[..] {
        [name] => match Kind::of(name) {
            Kind::Object(change) => Some(change),
            Kind::Bookmark | Kind::Error | Kind::Unknown(_) => None,
        },
        _ => None,
    }
}

/// The error of one event, with the key of its object where that can be read. Of the event, the beginning suffices.
pub(super) fn whose(encoding: Encoding, event: &[u8], error: WireError) -> WireError {
    let WireError::Skipped(error) = error else { return error };
    let inside = |bytes, number| {
        let mut fields = readable(bytes).filter(|(found, _)| *found == number);
        match (fields.next(), fields.next()) {
            (Some((_, Wire::Bytes(bytes))), None) => Some(bytes),
            _ => None,
        }
    };
    let key = match encoding {
        Encoding::Json => json::key_of(event, Some("object")),
        Encoding::Protobuf => {
            inside(event, 2).and_then(|object| inside(object, 1)).and_then(protobuf::key_of)
        }
    };
    WireError::Skipped(DecodeError { key: key.map(Box::new), ..error })
}

/// The document that is the `raw` of a RawExtension.
fn enveloped(message: &Bytes, extension: &[u8], start: usize) -> Result<Bytes, WireError> {
    let mut raw: Option<&[u8]> = None;
    let mut fields = Reader::new(extension);
    let shifted = |error: DecodeError| {
        WireError::Skipped(DecodeError { offset: start.saturating_add(error.offset), ..error })
    };
    while let Some(field) = fields.next().map_err(shifted)? {
        match (field.number, field.value) {
            (1, _) if raw.is_some() => return Err(twice("object", start.saturating_add(field.start))),
            (1, Wire::Bytes(document)) => raw = Some(document),
            _ => {}
        }
    }
    let document = raw.ok_or_else(|| missing("object", start))?;
    if !document.starts_with(MAGIC) {
        return Err(WireError::Skipped(DecodeError::new(
            Fault::WrongEnvelope,
            start,
            "an object in an envelope",
        )));
    }
    Ok(message.slice_ref(document))
}

/// What an event's type says.
enum Kind {
    Object(Change),
    Bookmark,
    Error,
    /// The name, as an error shows it.
    Unknown(String),
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "ADDED" => Self::Object(Change::Added),
            "MODIFIED" => Self::Object(Change::Modified),
            "DELETED" => Self::Object(Change::Deleted),
            "BOOKMARK" => Self::Bookmark,
            "ERROR" => Self::Error,
            other => Self::Unknown(beginning(other.as_bytes())),
        }
    }

    fn frame(
        self,
        encoding: Encoding,
        object: Result<Bytes, WireError>,
        place: usize,
    ) -> Result<WatchFrame, WireError> {
        match self {
            Self::Object(change) => Ok(WatchFrame::Object { change, object: object? }),
            Self::Bookmark => Ok(WatchFrame::Bookmark { object: object? }),
            // That it is an error is what matters, even where nothing can be read of it.
            Self::Error => Ok(WatchFrame::Error(
                object.map(|object| Status::read(encoding, &object)).unwrap_or_default(),
            )),
            Self::Unknown(name) => Err(skipped(
                format!("the event type {name:?}"),
                place,
                "ADDED, MODIFIED, DELETED, BOOKMARK or ERROR",
            )),
        }
    }
}

/// How a value begins.
fn found(value: &[u8]) -> String {
    value.first().map_or_else(|| "nothing".to_owned(), |first| byte(*first))
}

fn skipped(found: String, offset: usize, expected: &'static str) -> WireError {
    WireError::Skipped(DecodeError::new(Fault::Unexpected { found }, offset, expected))
}

fn twice(key: &str, offset: usize) -> WireError {
    let fault = Fault::DuplicateKey { key: key.to_owned() };
    WireError::Skipped(DecodeError::new(fault, offset, "each key once"))
}

fn missing(key: &str, offset: usize) -> WireError {
    let found = format!("a watch event without {key}");
    skipped(found, offset, "a type and an object")
}
