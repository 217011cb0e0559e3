//! What is too large, or not needed, is not held while it streams by.

use bytes::Bytes;
use kube_informer::encoding::Encoding::{self, Json, Protobuf};
use kube_informer::wire::{ListItems, MAX_HEAD, WatchFrames};

use crate::bodies::{JSON_STATUS, envelope, field, protobuf_list, varint};

const LIMIT: usize = 1000;
const CHUNK: usize = 500;

/// The most that is held, chunk included, of a body that begins so and goes on with many of these bytes.
fn most_of_watch(encoding: Encoding, beginning: &[u8], filler: u8) -> usize {
    let mut frames = WatchFrames::new(encoding, LIMIT);
    let chunks = chunks(beginning, filler).map(|chunk| {
        frames.push(chunk);
        let before = frames.buffered();
        while frames.next_frame().is_some() {}
        before.max(frames.buffered())
    });
    chunks.max().unwrap()
}

fn most_of_list(encoding: Encoding, beginning: &[u8], filler: u8) -> usize {
    let mut list = ListItems::new(encoding, LIMIT);
    let chunks = chunks(beginning, filler).map(|chunk| {
        list.push(chunk);
        let before = list.buffered();
        while list.next_item().is_some() {}
        before.max(list.buffered())
    });
    chunks.max().unwrap()
}

fn chunks(beginning: &[u8], filler: u8) -> impl Iterator<Item = Bytes> {
    let beginning: Vec<Bytes> = beginning.chunks(CHUNK).map(Bytes::copy_from_slice).collect();
    beginning.into_iter().chain((0..1000).map(move |_| Bytes::from(vec![filler; CHUNK])))
}

#[test]
fn of_an_event_no_more_is_held_than_the_limit_and_a_chunk() {
    for (encoding, beginning, filler) in [
        (Json, &b"{\"type\":\"ADDED\",\"object\":{\"a\":\""[..], b'x'),
        (Json, b"{", b' '),
        (Json, b"", b'\n'),
        (Json, b"<html>", b'x'),
        (Json, b"{}\n", b' '),
        (Protobuf, &[0, 0, 3, 0xe8], 0),
        (Protobuf, &[0, 0xff, 0, 0], 0),
        (Protobuf, &[0xff; 4], 0xff),
        (Protobuf, b"<html>", b'x'),
        (Protobuf, b"", 0),
    ] {
        let most = most_of_watch(encoding, beginning, filler);
        assert!(most <= LIMIT + CHUNK, "{most} bytes of {beginning:x?}");
    }
    let most = most_of_watch(Protobuf, &envelope("v1", "Status", ""), 0);
    assert!(most <= MAX_HEAD + CHUNK, "{most} bytes of a status");
}

#[test]
fn of_an_item_no_more_is_held_than_the_limit_and_a_chunk() {
    let meta = [b"k8s\0".to_vec(), field(1, field(2, "PodList"))].concat();
    let item = [&meta[..], b"\x12", &varint(1 << 30), b"\x12", &varint(1 << 20)].concat();
    let other = [&meta[..], b"\x12", &varint(1 << 30), b"\x4a", &varint(1 << 20)].concat();
    for (encoding, beginning, filler) in [
        (Json, &b"{\"items\":[{\"a\":\""[..], b'x'),
        (Json, b"{\"items\":[{\"a\":", b'['),
        (Json, b"{\"items\":[\"", b'x'),
        (Json, b"{\"items\":[", b'7'),
        (Json, b"{\"", b'x'),
        (Json, b"{\"other\":\"", b'x'),
        (Json, b"{\"other\":", b'['),
        (Json, b"{", b' '),
        (Json, b"<html>", b'x'),
        (Json, b"{\"items\":[]}", b'x'),
        (Protobuf, &item, 0),
        (Protobuf, &other, 0),
        (Protobuf, &protobuf_list(&["item"]), 0xff),
        (Protobuf, b"<html>", b'x'),
    ] {
        let most = most_of_list(encoding, beginning, filler);
        // Some bytes are the list's own fields.
        assert!(most <= LIMIT + CHUNK + 100, "{most} bytes of {beginning:x?}");
    }
}

#[test]
fn of_a_lists_own_fields_no_more_is_held_than_their_limit() {
    let status = JSON_STATUS.trim_end_matches('}');
    let kept = [b"k8s\0".to_vec(), field(1, field(2, "Status")), b"\x12".to_vec(), varint(1 << 30)].concat();
    for (encoding, beginning, filler) in [
        (Json, &b"{\"metadata\":{\"continue\":\""[..], b'x'),
        (Json, b"{\"message\":\"", b'x'),
        (Json, b"{\"code\":", b'7'),
        (Json, format!("{status}}},\"message\":\"").as_bytes(), b'x'),
        (Protobuf, &kept, 0),
    ] {
        let most = most_of_list(encoding, beginning, filler);
        assert!(most <= MAX_HEAD + CHUNK, "{most} bytes of {beginning:x?}");
    }
}

#[test]
fn after_a_fatal_error_nothing_is_held() {
    let mut frames = WatchFrames::new(Json, LIMIT);
    let mut list = ListItems::new(Json, LIMIT);
    let page = Bytes::from("<html>".repeat(100));
    for _ in 0..3 {
        frames.push(page.clone());
        list.push(page.clone());
    }
    assert!(frames.next_frame().unwrap().unwrap_err().is_fatal());
    assert!(list.next_item().unwrap().unwrap_err().is_fatal());
    for _ in 0..2 {
        assert_eq!((frames.buffered(), list.buffered()), (0, 0));
        assert!(frames.next_frame().is_none() && list.next_item().is_none());
        frames.push(page.clone());
        list.push(page.clone());
    }
}
