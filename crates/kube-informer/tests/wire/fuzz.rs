//! Bodies with bytes changed, at random but always the same: nothing panics, nothing is held that should not be,
//! results do not depend on chunks, and what is given is what a reader of the whole body sees.
//!
//! The bodies that are changed are those in `tests/corpus/wire`; a file's name begins with what it is the body
//! of. A body that once led to a failure belongs there.

use std::path::Path;

use kube_informer::encoding::Encoding::{self, Json, Protobuf};
use kube_informer::encoding::{DecodeError, Fault};
use kube_informer::wire::{WatchFrame, WireError};
use serde_json::Value;

use crate::bodies::{Items, cut, list, watch, whole};

const LIMIT: usize = 400;

/// SplitMix64: a body's number gives the same changes on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// What is put in: what means something in either encoding.
const PIECES: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"\\\"",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\n",
    b"\r\n",
    b" ",
    b"\0",
    b"\x80",
    b"\xff",
    b"\x12",
    b"\x0a",
    b"\x12\x00",
    b"null",
    b"1",
    b"\"items\":[{}],",
    b"\"metadata\":{},",
    b"\"kind\":\"Status\",",
    b"{},",
    b"[[[",
    b"\"type\":\"ADDED\",",
    b"k8s\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\xef\xbb\xbf",
    b"<html>",
];

fn change(body: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let at = random.below(body.len() + 1);
        let to = (at + random.below(12)).min(body.len());
        match random.below(7) {
            0 if at < body.len() => body[at] = random.next() as u8,
            1 if at < body.len() => body[at] ^= 1 << random.below(8),
            2 => drop(body.drain(at..to)),
            3 => body.truncate(at),
            4 => {
                let copy = body[at..to].to_vec();
                let target = random.below(body.len() + 1);
                body.splice(target..target, copy);
            }
            5 => {
                let piece = random.pick(PIECES).to_vec();
                body.splice(at..at, piece);
            }
            _ => {
                let piece = random.pick(PIECES).to_vec();
                body.splice(at..to, piece);
            }
        }
    }
}

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/wire");
    let mut bodies: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .filter(|(name, _)| !name.starts_with('.'))
        .collect();
    bodies.sort();
    assert!(bodies.len() >= 20, "the corpus is not where it should be");
    bodies
}

/// Everything that is promised of any body.
fn check(body: &[u8], random: &mut Random) {
    let sizes = [random.below(30), random.below(4), 1 + random.below(100)];
    for encoding in [Json, Protobuf] {
        let frames = watch(encoding, LIMIT, whole(body));
        assert_eq!(watch(encoding, LIMIT, cut(body, &sizes)), frames, "chunks of {sizes:?}");
        let items = list(encoding, LIMIT, whole(body));
        assert_eq!(list(encoding, LIMIT, cut(body, &sizes)), items, "chunks of {sizes:?}");
        match encoding {
            Json => {
                check_lines(body, &frames.0);
                check_json_items(body, &items);
            }
            _ => {
                check_messages(body, &frames.0);
                check_protobuf_items(body, &items);
            }
        }
    }
}

/// Each line that is not blank gives one frame, up to a fatal error; a line that a parser takes for an event
/// gives that event.
fn check_lines(body: &[u8], frames: &[Result<WatchFrame, WireError>]) {
    let is_blank = |byte: &u8| b" \t\r\n".contains(byte);
    let not_blank = |line: &&[u8]| !line.iter().all(is_blank);
    let end = body.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let lines: Vec<&[u8]> = body[..end].split(|byte| *byte == b'\n').filter(not_blank).collect();
    match frames.iter().rposition(|frame| frame.as_ref().is_err_and(WireError::is_fatal)) {
        Some(at) => assert_eq!(at + 1, frames.len()),
        None if matches!(body.iter().find(|byte| !is_blank(byte)), Some(b'{') | None) => {
            // The last line may be given up before it ends.
            assert!((lines.len()..=lines.len() + 1).contains(&frames.len()), "{frames:?}");
        }
        None => {}
    }
    for (line, frame) in lines.iter().zip(frames) {
        let Ok(Value::Object(event)) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        match frame {
            Ok(WatchFrame::Object { object, .. } | WatchFrame::Bookmark { object }) => {
                assert_eq!(serde_json::from_slice::<Value>(object).unwrap(), event["object"]);
            }
            Ok(_) => assert_eq!(event["type"], "ERROR"),
            Err(WireError::Skipped(DecodeError { fault: Fault::DuplicateKey { .. }, .. })) => {}
            Err(_) => {
                let known = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
                    .iter()
                    .any(|kind| event.get("type") == Some(&Value::from(*kind)));
                let good = known && event.get("object").is_some_and(Value::is_object);
                assert!(!good || line.len() > LIMIT, "{} is {frame:?}", String::from_utf8_lossy(line));
            }
        }
    }
}

/// What a parser takes for a list has the items that it sees; of what it does not, nothing is known.
fn check_json_items(body: &[u8], items: &Items) {
    let Ok(Value::Object(document)) = serde_json::from_slice::<Value>(body) else { return };
    let expected = document.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |key: &str| document.get(key).is_none_or(|value| value.is_string() || value.is_null());
    let meta_text =
        |key: &str| document["metadata"].get(key).is_none_or(|value| value.is_string() || value.is_null());
    match &items.1 {
        Err(WireError::Broken(DecodeError { fault: Fault::DuplicateKey { .. }, .. })) => return,
        Ok(_) => assert_eq!(items.0.len(), expected.len()),
        Err(WireError::Status(_)) => assert_eq!(document["kind"], "Status"),
        Err(error) => {
            let good = document.get("items").is_some_and(|items| items.is_array() || items.is_null())
                && text("kind")
                && text("apiVersion")
                && document.get("metadata").is_none_or(|value| value.is_null() || value.is_object())
                && (document.get("metadata").is_none()
                    || (meta_text("resourceVersion") && meta_text("continue")));
            // A count that is no number, and what is nested too deep, are not worth a rule here.
            assert!(!good || error.to_string().contains("malformed fields"), "{error}");
        }
    }
    for (item, expected) in items.0.iter().zip(&expected) {
        match item {
            Ok(item) => assert_eq!(&serde_json::from_slice::<Value>(item).unwrap(), expected),
            Err(WireError::Skipped(DecodeError { fault: Fault::TooLarge { .. }, .. })) => {}
            Err(WireError::Skipped(_)) => assert!(!expected.is_object(), "{item:?}"),
            Err(_) => {}
        }
    }
}

/// Each message gives one frame, and an object lies in its message.
fn check_messages(mut body: &[u8], frames: &[Result<WatchFrame, WireError>]) {
    for frame in frames {
        if frame.as_ref().is_err_and(WireError::is_fatal) {
            return;
        }
        let (length, rest) = body.split_first_chunk::<4>().expect("a frame has a length");
        let length = u32::from_be_bytes(*length) as usize;
        if length > LIMIT {
            assert!(matches!(
                frame,
                Err(WireError::Skipped(DecodeError { fault: Fault::TooLarge { .. }, .. }))
            ));
        }
        let message = &rest[..length.min(rest.len())];
        if let Ok(WatchFrame::Object { object, .. } | WatchFrame::Bookmark { object }) = frame {
            assert!(object.starts_with(b"k8s\0"));
            assert!(message.windows(object.len()).any(|window| window == object));
        }
        body = &rest[message.len()..];
    }
}

/// What a reader of the whole body takes for a list has the items that it sees.
fn check_protobuf_items(body: &[u8], items: &Items) {
    if items.1.is_err() {
        return;
    }
    let envelope = fields(body.strip_prefix(b"k8s\0").expect("a list has an envelope"));
    let lists: Vec<&[u8]> = envelope.iter().filter(|(number, _)| *number == 2).map(|(_, raw)| *raw).collect();
    assert_eq!(lists.len(), 1);
    let expected: Vec<(u64, &[u8])> =
        fields(lists[0]).into_iter().filter(|(number, _)| *number == 2).collect();
    assert_eq!(items.0.len(), expected.len());
    for (item, (_, expected)) in items.0.iter().zip(expected) {
        match item {
            Ok(item) => assert_eq!(item, expected),
            Err(_) => assert!(expected.len() > LIMIT),
        }
    }
}

/// The length-delimited fields of a message that is known to be good.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (byte, rest) = bytes.split_first().expect("a number is complete");
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let length = match tag & 7 {
            0 => {
                varint(&mut bytes);
                continue;
            }
            1 => 8,
            5 => 4,
            _ => varint(&mut bytes) as usize,
        };
        let (content, rest) = bytes.split_at(length);
        if tag & 7 == 2 {
            found.push((tag >> 3, content));
        }
        bytes = rest;
    }
    found
}

#[test]
fn changed_bodies_keep_every_promise() {
    let rounds: u64 =
        if std::env::var_os("KUBE_INFORMER_FULL").is_some_and(|value| value == "1") { 5_000 } else { 150 };
    for (number, (name, body)) in corpus().into_iter().enumerate() {
        for round in 0..rounds {
            let mut random = Random((number as u64) << 32 | round);
            let mut changed = body.clone();
            change(&mut changed, &mut random);
            let checked = std::panic::catch_unwind(move || check(&changed, &mut random));
            assert!(checked.is_ok(), "{name}, round {round}");
        }
    }
}

#[test]
fn every_body_of_the_corpus_keeps_every_promise() {
    for (_, body) in corpus() {
        for seed in 0..20 {
            check(&body, &mut Random(seed));
        }
    }
}

#[test]
fn the_bodies_of_the_corpus_are_what_their_names_say() {
    for (name, body) in corpus() {
        let encoding: Encoding = if name.contains("protobuf") { Protobuf } else { Json };
        let (good, bad, end) = if name.starts_with("watch") {
            let (found, end) = watch(encoding, LIMIT, whole(&body));
            (
                found.iter().filter(|frame| frame.is_ok()).count(),
                found.iter().filter(|frame| frame.is_err()).count(),
                end.is_ok(),
            )
        } else {
            let (found, end) = list(encoding, LIMIT, whole(&body));
            (
                found.iter().filter(|item| item.is_ok()).count(),
                found.iter().filter(|item| item.is_err()).count(),
                end.is_ok(),
            )
        };
        let outcome = match (good, bad, end) {
            (_, 0, true) => "good",
            (_, _, true) => "some",
            _ => "fatal",
        };
        assert!(name.contains(&format!("-{outcome}-")), "{name}: {good} good, {bad} bad, complete: {end}");
    }
}
