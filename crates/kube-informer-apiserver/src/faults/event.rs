//! One event of a watch, as faults see it.
//!
//! An event that nobody changed is written back byte for byte as it came.

use std::borrow::Cow;

use bytes::{Buf, Bytes};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::frames::{Format, PREFIX};
use super::protobuf;

/// One event of a watch: its type and the object's bytes in the stream's format.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    format: Format,
    kind: String,
    object: Bytes,
    /// The frame as it came; gone once the event is changed.
    wire: Option<Bytes>,
}

#[derive(Deserialize)]
struct JsonEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl WatchEvent {
    /// An event made by a test: a type (`ADDED`, `BOOKMARK`, …) and an object,
    /// written in the given format (in protobuf with its envelope).
    pub fn new(format: Format, kind: impl Into<String>, object: impl Into<Bytes>) -> Self {
        Self { format, kind: kind.into(), object: object.into(), wire: None }
    }

    /// Reads a whole frame; `None` if it is no event.
    pub fn parse(format: Format, frame: Bytes) -> Option<Self> {
        let (kind, object) = match format {
            Format::Json => {
                let event: JsonEvent<'_> = serde_json::from_slice(&frame).ok()?;
                (event.kind.into_owned(), frame.slice_ref(event.object.get().as_bytes()))
            }
            Format::Protobuf => {
                let message = frame.get(PREFIX..)?;
                if (&frame[..PREFIX]).get_u32() as usize != message.len() {
                    return None;
                }
                let kind = String::from_utf8(protobuf::find(message, 1)?.to_vec()).ok()?;
                (kind, frame.slice_ref(protobuf::descend(message, &[2, 1])?))
            }
        };
        Some(Self { format, kind, object, wire: Some(frame) })
    }

    /// The frame to send.
    pub fn encode(&self) -> Bytes {
        if let Some(wire) = &self.wire {
            return wire.clone();
        }
        match self.format {
            Format::Json => {
                let mut line =
                    format!("{{\"type\":{},\"object\":", Value::from(self.kind.as_str())).into_bytes();
                line.extend_from_slice(&self.object);
                line.extend_from_slice(b"}\n");
                line.into()
            }
            Format::Protobuf => {
                let mut extension = Vec::with_capacity(self.object.len() + 8);
                protobuf::put_bytes(&mut extension, 1, &self.object);
                let mut frame = vec![0; PREFIX];
                protobuf::put_bytes(&mut frame, 1, self.kind.as_bytes());
                protobuf::put_bytes(&mut frame, 2, &extension);
                let length = (frame.len() - PREFIX) as u32;
                frame[..PREFIX].copy_from_slice(&length.to_be_bytes());
                frame.into()
            }
        }
    }

    /// The format of the stream.
    pub fn format(&self) -> Format {
        self.format
    }

    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The object's bytes: JSON, or protobuf with its envelope.
    pub fn object(&self) -> &Bytes {
        &self.object
    }

    /// Makes it an event of another type.
    pub fn set_kind(&mut self, kind: impl Into<String>) {
        self.kind = kind.into();
        self.wire = None;
    }

    /// Puts other bytes in the object's place. Nothing checks them.
    pub fn set_object(&mut self, object: impl Into<Bytes>) {
        self.object = object.into();
        self.wire = None;
    }

    /// Replaces a text by another of the same length wherever it stands in the
    /// object, which keeps both formats well-formed; returns how often it did.
    ///
    /// # Panics
    ///
    /// If the two differ in length, or are empty.
    pub fn overwrite(&mut self, from: &str, to: &str) -> usize {
        assert!(from.len() == to.len() && !from.is_empty(), "{from:?} and {to:?} must be of one length");
        let mut object = self.object.to_vec();
        let (mut at, mut count) = (0, 0);
        while at + from.len() <= object.len() {
            if &object[at..at + from.len()] == from.as_bytes() {
                object[at..at + to.len()].copy_from_slice(to.as_bytes());
                count += 1;
                at += from.len();
            } else {
                at += 1;
            }
        }
        if count > 0 {
            self.set_object(object);
        }
        count
    }

    /// Changes the object as a JSON value; false, and no change, where the
    /// object is no JSON.
    pub fn edit_json(&mut self, change: impl FnOnce(&mut Value)) -> bool {
        let Ok(mut value) = serde_json::from_slice(&self.object) else { return false };
        change(&mut value);
        self.set_object(value.to_string());
        true
    }

    /// The object's `metadata.name`; empty if it has none.
    pub fn name(&self) -> String {
        self.meta("name", 1)
    }

    /// The object's `metadata.namespace`; empty if it has none.
    pub fn namespace(&self) -> String {
        self.meta("namespace", 3)
    }

    /// The object's `metadata.resourceVersion`; empty if it has none.
    pub fn resource_version(&self) -> String {
        self.meta("resourceVersion", 6)
    }

    /// True for any bookmark.
    pub fn is_bookmark(&self) -> bool {
        self.kind == "BOOKMARK"
    }

    /// True for the bookmark that ends the initial events.
    pub fn is_initial_events_end(&self) -> bool {
        const ANNOTATION: &[u8] = b"k8s.io/initial-events-end";
        self.is_bookmark() && self.object.windows(ANNOTATION.len()).any(|window| window == ANNOTATION)
    }

    fn meta(&self, name: &str, number: u64) -> String {
        match self.format {
            Format::Json => serde_json::from_slice::<Value>(&self.object)
                .ok()
                .and_then(|object| Some(object.get("metadata")?.get(name)?.as_str()?.to_owned())),
            Format::Protobuf => protobuf::unwrap(&self.object)
                .and_then(|message| protobuf::descend(message, &[1, number]))
                .map(|text| String::from_utf8_lossy(text).into_owned()),
        }
        .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str) -> Vec<u8> {
        let mut meta = Vec::new();
        protobuf::put_bytes(&mut meta, 1, name.as_bytes());
        protobuf::put_bytes(&mut meta, 3, b"default");
        protobuf::put_bytes(&mut meta, 6, b"42");
        let mut pod = Vec::new();
        protobuf::put_bytes(&mut pod, 1, &meta);
        protobuf::envelope("v1", "Pod", &pod)
    }

    #[test]
    fn a_protobuf_event_reads_back_as_it_was_made() {
        let made = WatchEvent::new(Format::Protobuf, "ADDED", pod("a"));
        let read = WatchEvent::parse(Format::Protobuf, made.encode()).unwrap();
        assert_eq!((read.kind(), read.object()), ("ADDED", made.object()));
        assert_eq!(
            (read.name(), read.namespace(), read.resource_version()),
            ("a".into(), "default".into(), "42".into())
        );
    }

    #[test]
    fn an_unchanged_json_event_keeps_its_bytes_and_a_changed_one_its_object() {
        let line = Bytes::from_static(b"{ \"object\": {\"z\":1.0,\"a\":{}}, \"type\": \"ADDED\" }\n");
        let mut event = WatchEvent::parse(Format::Json, line.clone()).unwrap();
        assert_eq!(event.encode(), line);
        event.set_kind("DELETED");
        assert_eq!(event.encode(), "{\"type\":\"DELETED\",\"object\":{\"z\":1.0,\"a\":{}}}\n");
    }

    #[test]
    fn overwriting_works_in_both_formats() {
        let json = br#"{"metadata":{"name":"one","namespace":"default"}}"#.to_vec();
        for (format, object) in [(Format::Json, json), (Format::Protobuf, pod("one"))] {
            let mut event = WatchEvent::new(format, "ADDED", object);
            assert_eq!(event.overwrite("one", "two"), 1);
            let read = WatchEvent::parse(format, event.encode()).unwrap();
            assert_eq!((read.name(), read.namespace()), ("two".into(), "default".into()));
        }
    }

    #[test]
    fn what_is_no_event_is_not_taken_for_one() {
        assert!(WatchEvent::parse(Format::Json, Bytes::from_static(b"\n")).is_none());
        assert!(WatchEvent::parse(Format::Json, Bytes::from_static(b"{\"kind\":\"PodList\"}\n")).is_none());
        assert!(WatchEvent::parse(Format::Protobuf, Bytes::from_static(b"\0\0\0\x02\x12\x34")).is_none());
        assert!(WatchEvent::parse(Format::Protobuf, Bytes::from_static(b"\0")).is_none());
    }
}
