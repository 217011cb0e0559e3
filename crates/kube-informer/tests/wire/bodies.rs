//! Bodies, how to write them, and how to split them with every promise checked that can be checked of any body.

use bytes::Bytes;
use kube_informer::encoding::Encoding;
use kube_informer::wire::{ListEnd, ListItems, MAX_HEAD, WatchFrame, WatchFrames, WireError};

pub(crate) type Frames = (Vec<Result<WatchFrame, WireError>>, Result<(), WireError>);
pub(crate) type Items = (Vec<Result<Bytes, WireError>>, Result<ListEnd, WireError>);

/// Pushes these chunks of a watch and takes what comes.
pub(crate) fn watch(encoding: Encoding, limit: usize, chunks: impl IntoIterator<Item = Bytes>) -> Frames {
    let mut frames = WatchFrames::new(encoding, limit);
    let mut found: Vec<Result<WatchFrame, WireError>> = Vec::new();
    for chunk in chunks {
        let allowed = limit.max(MAX_HEAD) + chunk.len();
        frames.push(chunk);
        assert!(frames.buffered() <= allowed, "{} bytes are held", frames.buffered());
        while let Some(frame) = frames.next_frame() {
            let failed = found.iter().any(|frame| frame.as_ref().is_err_and(WireError::is_fatal));
            assert!(!failed, "{frame:?} comes after a fatal error");
            found.push(frame);
        }
        assert!(frames.buffered() <= allowed, "{} bytes are held", frames.buffered());
    }
    let end = frames.finish();
    if let Some(Err(error)) = found.last()
        && error.is_fatal()
    {
        assert_eq!(end.as_ref(), Err(error), "a fatal error is repeated");
    }
    (found, end)
}

/// Pushes these chunks of a list and takes what comes.
pub(crate) fn list(encoding: Encoding, limit: usize, chunks: impl IntoIterator<Item = Bytes>) -> Items {
    let mut items = ListItems::new(encoding, limit);
    let mut found: Vec<Result<Bytes, WireError>> = Vec::new();
    for chunk in chunks {
        // What is kept of an unfinished item or field, what is kept of finished fields, and the chunk.
        let allowed = limit.max(MAX_HEAD) + MAX_HEAD + chunk.len();
        items.push(chunk);
        while let Some(item) = items.next_item() {
            let failed = found.iter().any(|item| item.as_ref().is_err_and(WireError::is_fatal));
            assert!(!failed, "{item:?} comes after a fatal error");
            found.push(item);
        }
        assert!(items.buffered() <= allowed, "{} bytes are held", items.buffered());
    }
    let end = items.finish();
    if let Some(Err(error)) = found.last()
        && error.is_fatal()
    {
        assert_eq!(end.as_ref(), Err(error), "a fatal error is repeated");
    }
    (found, end)
}

/// The body in one chunk.
pub(crate) fn whole(body: &[u8]) -> [Bytes; 1] {
    [Bytes::copy_from_slice(body)]
}

/// The body in chunks of these sizes, again and again; one of size 0 is empty.
pub(crate) fn cut(body: &[u8], sizes: &[usize]) -> Vec<Bytes> {
    let mut chunks = Vec::new();
    let mut rest = Bytes::copy_from_slice(body);
    let sizes = if sizes.iter().any(|size| *size > 0) { sizes } else { &[1] };
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        chunks.push(rest.split_to((*size).min(rest.len())));
    }
    chunks
}

pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// A length-delimited field.
pub(crate) fn field(number: u64, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

/// A number field.
pub(crate) fn number(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

/// The document as Go writes it.
pub(crate) fn envelope(api_version: &str, kind: &str, message: impl AsRef<[u8]>) -> Vec<u8> {
    let meta = [field(1, api_version), field(2, kind)].concat();
    [b"k8s\0".to_vec(), field(1, meta), field(2, message), field(3, ""), field(4, "")].concat()
}

/// A watch event with its length.
pub(crate) fn event(kind: &str, document: impl AsRef<[u8]>) -> Vec<u8> {
    framed([field(1, kind), field(2, field(1, document))].concat())
}

pub(crate) fn framed(message: impl AsRef<[u8]>) -> Vec<u8> {
    let message = message.as_ref();
    [&u32::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat()
}

/// The list as Go writes it: version 42, continue `next`, 7 remaining.
pub(crate) fn protobuf_list<T: AsRef<[u8]>>(items: &[T]) -> Vec<u8> {
    let meta = [field(1, ""), field(2, "42"), field(3, "next"), number(4, 7)].concat();
    let items: Vec<u8> = items.iter().flat_map(|item| field(2, item)).collect();
    envelope("v1", "PodList", [field(1, meta), items].concat())
}

/// A status in protobuf, without the envelope.
pub(crate) fn protobuf_status() -> Vec<u8> {
    let cause = [field(1, "ResourceVersionTooLarge"), field(2, "Too large resource version"), field(3, "x")];
    let details = [
        field(1, "web"),
        field(2, "apps"),
        field(3, "deployments"),
        field(4, cause.concat()),
        number(5, 3),
        field(6, "u-1"),
    ];
    [
        field(1, ""),
        field(2, "Failure"),
        field(3, "Timeout: Too large resource version: 9, current: 5"),
        field(4, "Timeout"),
        field(5, details.concat()),
        number(6, 504),
    ]
    .concat()
}

pub(crate) const JSON_STATUS: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 9, current: 5","reason":"Timeout","details":{"name":"web","group":"apps","kind":"deployments","uid":"u-1","causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version","field":"x"}],"retryAfterSeconds":3},"code":504}"#;
