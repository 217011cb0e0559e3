use super::*;
use crate::encoding::{Codec, Rules};

/// The frames of a body that comes byte by byte, and how much work that was per byte.
fn one_by_one(encoding: Encoding, limit: usize, body: &[u8]) -> (usize, usize) {
    let mut frames = WatchFrames::new(encoding, limit);
    let mut found = 0;
    for byte in body {
        frames.push(Bytes::copy_from_slice(&[*byte]));
        while frames.next_frame().is_some() {
            found += 1;
        }
    }
    (found, frames.input.work / body.len())
}

#[test]
fn a_large_event_in_tiny_chunks_is_looked_at_a_fixed_number_of_times() {
    for length in [1_000, 100_000] {
        let object = format!("{{\"a\":\"{}\"}}", "x".repeat(length));
        let json = format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n");
        let (found, work) = one_by_one(Encoding::Json, 1 << 20, json.as_bytes());
        assert_eq!(found, 1);
        assert!(work <= 3, "{work} looks at each of {length} bytes");

        let mut protobuf = u32::try_from(length).unwrap().to_be_bytes().to_vec();
        protobuf.resize(length + 4, 0);
        let (found, work) = one_by_one(Encoding::Protobuf, 1 << 20, &protobuf);
        assert_eq!(found, 1);
        assert!(work <= 3, "{work} looks at each of {length} bytes");
    }
}

#[test]
fn an_event_above_the_limit_is_skipped_in_the_same_way() {
    let json = format!("{}\n", "{".repeat(100_000));
    assert!(matches!(one_by_one(Encoding::Json, 1_000, json.as_bytes()), (1, ..=3)));
    let protobuf = [&100_000u32.to_be_bytes()[..], &[0; 100_000]].concat();
    assert!(matches!(one_by_one(Encoding::Protobuf, 1_000, &protobuf), (1, ..=3)));
}

/// What becomes of a body: each change with its object, each event that is something else, each error.
fn told(mut frames: WatchFrames, body: &[u8]) -> Vec<String> {
    let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap();
    let mut told = Vec::new();
    frames.push(Bytes::copy_from_slice(body));
    while let Some(frame) = frames.next_frame() {
        let made = match &frame {
            Ok(WatchFrame::Object { object, .. }) => codec.ingest(object, &mut Vec::new()).err(),
            _ => None,
        };
        if made.is_some() && frames.doubt() {
            continue;
        }
        told.push(format!("{frame:?} {made:?} {:?}", frames.skipped_change()));
    }
    told.push(format!("{:?}", frames.finish()));
    told
}

#[test]
fn what_is_presumed_of_an_event_is_what_is_read_of_it() {
    let pod = r#"{"metadata":{"name":"a","labels":{"b":"}}"}}}"#;
    let line = format!(r#"{{"type":"ADDED","object":{pod}}}"#);
    let before = format!(r#"{{"type":"DELETED","object":{pod}}}"#);
    let same = |line: &[u8]| {
        let body = [before.as_bytes(), line, before.as_bytes(), b""].join(&b'\n');
        let read = told(WatchFrames::new(Encoding::Json, 1_000), &body);
        let presumed = told(WatchFrames::new(Encoding::Json, 1_000).presuming(), &body);
        assert_eq!(presumed, read, "{}", String::from_utf8_lossy(line));
    };
    for kind in ["ADDED", "MODIFIED", "BOOKMARK", "ERROR", "added", "A\\u0044DED", ""] {
        same(format!(r#"{{"type":"{kind}","object":{pod}}}"#).as_bytes());
        // The last brace is that of something else.
        same(format!(r#"{{"type":"{kind}","object":{pod},"other":{{}}}}"#).as_bytes());
        same(format!(r#"{{"type":"{kind}","object":{pod},"type":"DELETED","object":{{}}}}"#).as_bytes());
        same(format!(r#"{{"type":"{kind}","object":{pod},"object":{pod}}}"#).as_bytes());
        same(format!(r#"{{"type":"{kind}","object":{pod}}}{{"type":"ADDED","object":{pod}}}"#).as_bytes());
    }
    for at in 0..line.len() {
        for byte in b"{}[]\",:\\ x7\0\r" {
            let mut changed = line.clone().into_bytes();
            changed[at] = *byte;
            same(&changed);
            changed = line.clone().into_bytes();
            changed.insert(at, *byte);
            same(&changed);
        }
        let mut changed = line.clone().into_bytes();
        changed.remove(at);
        same(&changed);
        same(&line.as_bytes()[..at]);
    }
}

#[test]
fn an_event_as_servers_write_it_is_presumed() {
    let mut frames = WatchFrames::new(Encoding::Json, 1_000).presuming();
    frames.push(Bytes::from_static(b"{\"type\":\"ADDED\",\"object\":{nonsense}}\n"));
    let Some(Ok(WatchFrame::Object { object, .. })) = frames.next_frame() else { panic!("a frame") };
    assert_eq!(&object[..], b"{nonsense}");
    assert!(frames.next_frame().is_none());
    assert!(!frames.doubt(), "what is past can no longer be doubted");
}
