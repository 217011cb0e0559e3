//! Whatever bytes arrive as protobuf: an error or an object, never a panic; and an object that is accepted
//! can be read in every way, at any later time.
//!
//! A fixed seed mutates real documents: those of `k8s.io/api` where Go is there, and always the committed
//! ones. `KUBE_INFORMER_FULL=1` makes the run fifty times as long.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_informer::encoding::{Codec, Encoding, ManagedFields, Pointer, Rules, decode_protobuf};
use kube_informer_testbed::binaries::go_module;
use serde::de::IgnoredAny;
use serde_json::Value;

/// One object: its kind, its bytes, and what Go shows of them, where that was recorded.
struct Document {
    api_version: String,
    kind: String,
    bytes: Vec<u8>,
    shown: Option<Value>,
}

/// Objects out of order: fields changed places, messages stand in parts, values that do not count stand
/// before those that do. With what Go's types show of them.
fn committed() -> Vec<Document> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/protobuf/disordered.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    text.lines()
        .map(|line| {
            let [api_version, kind, hex, shown] = line.splitn(4, ' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let bytes = hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect();
            let shown = Some(serde_json::from_str(shown).unwrap());
            Document { api_version: api_version.to_owned(), kind: kind.to_owned(), bytes, shown }
        })
        .collect()
}

/// Every built-in kind with every field filled, if the Go module can be had.
fn published() -> Vec<Document> {
    let Ok(module) = go_module("k8s.io/api") else { return Vec::new() };
    let mut files: Vec<_> =
        std::fs::read_dir(module.join("testdata/HEAD")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let protobuf = files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "pb"));
    protobuf
        .filter_map(|path| {
            let bytes = std::fs::read(path).unwrap();
            let json = std::fs::read(path.with_extension("json")).unwrap();
            let shown: Value = serde_json::from_slice(&json).unwrap();
            let text = |field: &str| shown[field].as_str().map(ToOwned::to_owned);
            let (api_version, kind) = (text("apiVersion")?, text("kind")?);
            // Lists and options are no objects.
            shown["metadata"]["name"].as_str()?;
            Some(Document { api_version, kind, bytes, shown: Some(shown) })
        })
        .collect()
}

fn codec(document: &Document, rules: Rules) -> Codec {
    Codec::new(Encoding::Protobuf, &document.api_version, &document.kind, rules).unwrap()
}

fn keep() -> Rules {
    Rules::default().managed_fields(ManagedFields::Keep)
}

#[test]
fn objects_out_of_order_are_what_go_makes_of_them() {
    let documents = committed();
    assert!(documents.len() >= 40);
    for document in documents {
        let codec = codec(&document, keep());
        let mut stored = Vec::new();
        codec.ingest(&document.bytes, &mut stored).unwrap();
        let shown: Value = codec.view(&stored).unwrap();
        assert_eq!(Some(&shown), document.shown.as_ref(), "{} {}", document.api_version, document.kind);
        // In order now: nothing is left to do.
        let mut again = Vec::new();
        codec.ingest(&stored, &mut again).unwrap();
        assert_eq!(again, stored);
    }
}

#[test]
fn what_is_accepted_can_be_read_in_every_way() {
    let rounds = if std::env::var_os("KUBE_INFORMER_FULL").is_some() { 200_000 } else { 4_000 };
    let mut documents = committed();
    documents.extend(published());
    let rules = |document: &Document| {
        let drop = |pointer| keep().drop(Pointer::parse(pointer).unwrap()).unwrap();
        [
            keep(),
            Rules::default(),
            Rules::default().managed_fields(ManagedFields::Writers),
            drop("/status"),
            drop("/metadata/labels"),
        ]
        .map(|rules| codec(document, rules))
    };
    let codecs: Vec<_> = documents.iter().map(rules).collect();
    let mut random = Random(0x5eed);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..rounds {
        let at = random.below(documents.len());
        let mut bytes = documents[at].bytes.clone();
        for _ in 0..random.below(4) {
            random.mutate(&mut bytes);
        }
        let codec = &codecs[at][random.below(5)];
        let result = catch_unwind(AssertUnwindSafe(|| read_every_way(codec, &bytes)));
        match result {
            Ok(true) => accepted += 1,
            Ok(false) => refused += 1,
            Err(_) => {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                panic!("round {round}: {} {} {hex}", codec.api_version(), codec.kind());
            }
        }
    }
    println!("{} documents: {accepted} accepted, {refused} refused", documents.len());
    assert!(accepted > rounds / 10 && refused > rounds / 10, "{accepted} {refused}");
}

/// Whether the bytes are an object; then all that can be asked of it must be answered.
fn read_every_way(codec: &Codec, bytes: &[u8]) -> bool {
    // Whatever the bytes are: no panic.
    let _ = decode_protobuf::<Value>(bytes);
    let _ = codec.view::<Value>(bytes);
    let _ = codec.metadata(bytes);
    let mut stored = Vec::new();
    let metadata = match codec.ingest(bytes, &mut stored) {
        Ok(metadata) => metadata,
        Err(error) => {
            assert!(error.offset <= 2 * bytes.len(), "{error}");
            return false;
        }
    };
    let mut read = codec.metadata(&stored).unwrap();
    assert!(!read.name.is_empty());
    // They are not in the stored bytes.
    read.writers.clone_from(&metadata.writers);
    assert_eq!(read, metadata);
    let value: Value = codec.view(&stored).unwrap();
    let json = codec.json(&stored).unwrap();
    // Both read from text, because serde_json does not read every float to its last bit.
    let [json, printed] = [json, value.to_string()].map(|text| serde_json::from_str::<Value>(&text).unwrap());
    assert_eq!(json, printed);
    assert_eq!(value["metadata"]["name"], *metadata.name);
    codec.view::<IgnoredAny>(&stored).unwrap();
    for (field, shown) in value.as_object().unwrap() {
        let pointer = Pointer::parse(&format!("/{field}")).unwrap();
        assert_eq!(codec.pointer::<Value>(&stored, &pointer).unwrap().as_ref(), Some(shown));
    }
    // What is stored is in its final form.
    let mut again = Vec::new();
    codec.ingest(&stored, &mut again).unwrap();
    assert_eq!(again, stored);
    true
}

/// A generator with a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len());
        let length = self.below(20).min(bytes.len().saturating_sub(at));
        match self.below(8) {
            _ if bytes.is_empty() => bytes.push(self.next() as u8),
            // A bit, a byte, a byte that is large or small.
            0 => bytes[at] ^= 1 << self.below(8),
            1 => bytes[at] = self.next() as u8,
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..at + length)),
            5 => {
                // The same again, somewhere else.
                let part = bytes[at..at + length].to_vec();
                let to = self.below(bytes.len());
                bytes.splice(to..to, part);
            }
            6 => bytes.insert(at, self.next() as u8),
            _ => self.swap_entries(bytes),
        }
    }

    /// Changes the order of what stands in one message, without breaking it.
    fn swap_entries(&mut self, bytes: &mut Vec<u8>) {
        let start = if bytes.starts_with(b"k8s\0") { 4 } else { 0 };
        let (mut from, mut to) = (start, bytes.len());
        loop {
            let Some(entries) = entries(&bytes[from..to]).filter(|entries| !entries.is_empty()) else {
                return;
            };
            let inner = &entries[self.below(entries.len())];
            if let Some(body) = inner.body.clone().filter(|body| body.len() > 1)
                && self.below(3) > 0
                && self::entries(&bytes[from + body.start..from + body.end]).is_some()
            {
                (from, to) = (from + body.start, from + body.end);
                continue;
            }
            let other = &entries[self.below(entries.len())];
            let (first, second) = if inner.start < other.start { (inner, other) } else { (other, inner) };
            if first.start == second.start {
                return;
            }
            let message = &bytes[from..to];
            let swapped = [
                &message[..first.start],
                &message[second.start..second.end],
                &message[first.end..second.start],
                &message[first.start..first.end],
                &message[second.end..],
            ]
            .concat();
            bytes.splice(from..to, swapped);
            return;
        }
    }
}

struct Entry {
    start: usize,
    end: usize,
    /// What stands behind the length, if it has one.
    body: Option<std::ops::Range<usize>>,
}

/// The entries of a message, if it is one.
fn entries(message: &[u8]) -> Option<Vec<Entry>> {
    fn varint(message: &[u8], at: &mut usize) -> Option<u64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = *message.get(*at)?;
            *at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
    let mut all = Vec::new();
    let mut at = 0;
    while at < message.len() {
        let start = at;
        let tag = varint(message, &mut at)?;
        let mut body = None;
        match tag & 7 {
            0 => drop(varint(message, &mut at)?),
            1 => at += 8,
            2 => {
                let length = usize::try_from(varint(message, &mut at)?).ok()?;
                let end = at.checked_add(length)?;
                body = Some(at..end);
                at = end;
            }
            _ => return None,
        }
        if at > message.len() || tag < 8 {
            return None;
        }
        all.push(Entry { start, end: at, body });
    }
    Some(all)
}
