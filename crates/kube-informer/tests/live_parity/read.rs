//! The three ways in which objects arrive, in either encoding: alone, in a list, in a watch.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use kube_informer::encoding::{Encoding, decode_protobuf};
use kube_informer::wire::{Change, ListEnd, ListItems, WatchFrame, WatchFrames};
use kube_informer_testbed::http::{Endpoint, Response};
use serde_json::Value;

/// Nothing here is larger.
const LIMIT: usize = 8 << 20;

/// Whether to show metadata only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Objects as they are.
    Whole,
    /// `PartialObjectMetadata` and its list.
    Metadata,
}

impl Form {
    fn parameters(self, list: bool) -> &'static str {
        match (self, list) {
            (Self::Whole, _) => "",
            (Self::Metadata, false) => ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            (Self::Metadata, true) => ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        }
    }
}

/// What to ask for one encoding with, and nothing else.
pub(crate) fn media_type(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Protobuf => "application/vnd.kubernetes.protobuf",
        _ => "application/json",
    }
}

pub(crate) fn accepting(media_type: &str) -> HeaderMap {
    HeaderMap::from_iter([(ACCEPT, HeaderValue::try_from(media_type).unwrap())])
}

/// GET in one encoding, whatever the status.
pub(crate) async fn ask(endpoint: &Endpoint, path: &str, accept: &str) -> Response {
    endpoint.request(Method::GET, path, accepting(accept), Bytes::new()).await.unwrap()
}

pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap()).unwrap_or_default()
}

/// One object.
pub(crate) async fn get(endpoint: &Endpoint, encoding: Encoding, path: &str, form: Form) -> Bytes {
    get_lasting(endpoint, encoding, path, form).await.unwrap()
}

/// One object; `None` where the server itself has collected it.
pub(crate) async fn get_lasting(
    endpoint: &Endpoint,
    encoding: Encoding,
    path: &str,
    form: Form,
) -> Option<Bytes> {
    let accept = format!("{}{}", media_type(encoding), form.parameters(false));
    let response = lasting(path, ask(endpoint, path, &accept).await)?.success().unwrap();
    assert_eq!(content_type(&response.headers), media_type(encoding), "{path}");
    Some(response.body)
}

/// The answer, but where it says that the server itself has collected the object.
pub(crate) fn lasting(path: &str, answer: Response) -> Option<Response> {
    (answer.status != StatusCode::NOT_FOUND || lasts(path)).then_some(answer)
}

/// Whether the server lets an object be: it collects candidates that do not renew.
pub(crate) fn lasts(path: &str) -> bool {
    !path.contains("/leasecandidates/")
}

/// A list: the whole document, its items and its own fields.
pub(crate) async fn list(
    endpoint: &Endpoint,
    encoding: Encoding,
    path_and_query: &str,
    form: Form,
) -> (Bytes, Vec<Bytes>, ListEnd) {
    let accept = format!("{}{}", media_type(encoding), form.parameters(true));
    let response = ask(endpoint, path_and_query, &accept).await.success().unwrap();
    assert_eq!(content_type(&response.headers), media_type(encoding), "{path_and_query}");
    let mut list = ListItems::new(encoding, LIMIT);
    let mut items = Vec::new();
    // Chunks that end anywhere, as those of the network do.
    for chunk in response.body.chunks(7919) {
        list.push(response.body.slice_ref(chunk));
        while let Some(item) = list.next_item() {
            items.push(item.unwrap());
        }
    }
    (response.body, items, list.finish().unwrap())
}

/// A watch that has begun.
#[derive(Debug)]
pub(crate) struct Watch {
    stream: kube_informer_testbed::http::Streaming,
    frames: WatchFrames,
}

impl Watch {
    pub(crate) async fn begin(
        endpoint: &Endpoint,
        encoding: Encoding,
        path: &str,
        query: &str,
        form: Form,
    ) -> Self {
        // A watch names the form of its objects, not of a list.
        let accept = format!("{};stream=watch{}", media_type(encoding), form.parameters(false));
        // `stream=watch` is how the server names what it sends; JSON watches are asked for plainly.
        let accept = if encoding == Encoding::Json { accept.replace(";stream=watch", "") } else { accept };
        let path = format!("{path}?watch=true&{query}");
        let stream = endpoint.stream(Method::GET, &path, accepting(&accept), Bytes::new()).await.unwrap();
        assert_eq!(stream.status, 200, "{path}");
        let expected = match encoding {
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            _ => "application/json",
        };
        assert_eq!(content_type(&stream.headers), expected, "{path}");
        Self { stream, frames: WatchFrames::new(encoding, LIMIT) }
    }

    /// The next frame; the server must not end the watch.
    pub(crate) async fn next(&mut self) -> WatchFrame {
        loop {
            if let Some(frame) = self.frames.next_frame() {
                return frame.unwrap();
            }
            let chunk = self.stream.chunk().await.unwrap().expect("the watch goes on");
            self.frames.push(chunk);
        }
    }
}

/// What a watch shows of what there is: the objects by their paths and versions, and the bookmark after them.
pub(crate) async fn initial_events(
    endpoint: &Endpoint,
    encoding: Encoding,
    path: &str,
    form: Form,
) -> (BTreeMap<String, Bytes>, Bytes) {
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = Watch::begin(endpoint, encoding, path, query, form).await;
    let mut objects = BTreeMap::new();
    loop {
        match watch.next().await {
            WatchFrame::Object { change: Change::Added, object } => {
                objects.insert(version(&value(encoding, &object)), object);
            }
            WatchFrame::Bookmark { object } => return (objects, object),
            other => panic!("{path}: {other:?}"),
        }
    }
}

/// A document as it is, read by other means than a codec where it is JSON.
pub(crate) fn value(encoding: Encoding, document: &[u8]) -> Value {
    match encoding {
        Encoding::Protobuf => decode_protobuf(document).unwrap(),
        _ => serde_json::from_slice(document).unwrap(),
    }
}

/// What tells one version of one object from all others.
pub(crate) fn version(object: &Value) -> String {
    let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    format!("{}/{}@{}", field("namespace"), field("name"), field("resourceVersion"))
}
