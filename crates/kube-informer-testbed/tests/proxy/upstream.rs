//! A scripted API server: three pods to list, watches that the test feeds.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::{Config, Format, Proxy, WatchEvent};
use tokio::sync::{mpsc, watch};

pub(crate) const PODS: &str = "/api/v1/pods";
pub(crate) const WATCH: &str = "/api/v1/pods?watch=1";
pub(crate) const FORMATS: [Format; 2] = [Format::Json, Format::Protobuf];

pub(crate) struct Upstream {
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
    pub(crate) access: Access,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Seen>>,
    watches: Mutex<HashMap<u64, (Format, mpsc::UnboundedSender<Bytes>)>>,
    /// How many watches were ever opened, and how many bodies were given up.
    opened: watch::Sender<u64>,
    dropped: watch::Sender<u64>,
}

#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) uri: String,
    pub(crate) headers: HeaderMap,
}

struct Feed {
    shared: Arc<Shared>,
    events: mpsc::UnboundedReceiver<Bytes>,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.shared.dropped.send_modify(|count| *count += 1);
    }
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let access = Access::anonymous(format!("http://{}", listener.local_addr().unwrap()));
        let shared: Arc<Shared> = Arc::default();
        let server = shared.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let server = server.clone();
                connections.spawn(async move {
                    let service = service_fn(move |request| answer(server.clone(), request));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
            }
        });
        Self { shared, task, access }
    }

    /// This server, a proxy before it and a client of the proxy.
    pub(crate) async fn proxied() -> (Self, Proxy, Endpoint) {
        let upstream = Self::start().await;
        let proxy = Proxy::start(&upstream.access).await.unwrap();
        let client = proxy.endpoint("secret").unwrap();
        (upstream, proxy, client)
    }

    pub(crate) async fn proxied_with(configure: impl FnOnce(Config) -> Config) -> (Self, Proxy, Endpoint) {
        let upstream = Self::start().await;
        let proxy = configure(Config::new(&upstream.access)).start().await.unwrap();
        let client = Endpoint::new(Access::anonymous(proxy.url())).unwrap();
        (upstream, proxy, client)
    }

    /// What arrived here.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Sends an event on every watch.
    pub(crate) fn send(&self, kind: &str, name: &str) {
        for (format, feed) in self.shared.watches.lock().unwrap().values() {
            let _ = feed.send(event(*format, kind, name).encode());
        }
    }

    /// Sends bytes on every watch.
    pub(crate) fn send_raw(&self, bytes: &[u8]) {
        for (_, feed) in self.shared.watches.lock().unwrap().values() {
            let _ = feed.send(Bytes::copy_from_slice(bytes));
        }
    }

    /// Ends every watch cleanly.
    pub(crate) fn end_watches(&self) {
        self.shared.watches.lock().unwrap().clear();
    }

    /// Awaits that so many watches were given up or have ended.
    pub(crate) async fn wait_watches_gone(&self, count: u64) {
        super::watching::soon(self.shared.dropped.subscribe().wait_for(|gone| *gone >= count)).await.unwrap();
    }

    /// Goes away with all its connections.
    pub(crate) async fn stop(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An event whose object is some kilobytes long.
pub(crate) fn event(format: Format, kind: &str, name: &str) -> WatchEvent {
    WatchEvent::new(format, kind, object(format, name, kind == "BOOKMARK"))
}

fn object(format: Format, name: &str, bookmark: bool) -> Vec<u8> {
    let end = bookmark && name == "end";
    let padding = if bookmark { String::new() } else { "x".repeat(2000) };
    match format {
        Format::Json => {
            let mut pod = serde_json::json!({
                "kind": "Pod", "apiVersion": "v1",
                "metadata": { "name": name, "namespace": "default", "resourceVersion": "7" },
                "spec": { "padding": padding },
            });
            if end {
                pod["metadata"]["annotations"] = serde_json::json!({ "k8s.io/initial-events-end": "true" });
            }
            pod.to_string().into_bytes()
        }
        Format::Protobuf => {
            let mut meta = [field(1, name.as_bytes()), field(3, b"default"), field(6, b"7")].concat();
            if end {
                let entry = [field(1, b"k8s.io/initial-events-end"), field(2, b"true")].concat();
                meta.extend(field(12, &entry));
            }
            let pod = [field(1, &meta), field(2, &field(5, padding.as_bytes()))].concat();
            let about = [field(1, b"v1"), field(2, b"Pod")].concat();
            [&b"k8s\0"[..], &field(1, &about), &field(2, &pod)].concat()
        }
    }
}

/// A length-delimited protobuf field.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        out.push(length as u8 & 0x7f | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(content);
    out
}

/// The list that this server gives: three pods of some kilobytes.
pub(crate) fn list(format: Format) -> Vec<u8> {
    let names = ["one", "two", "three"];
    match format {
        Format::Json => {
            let items: Vec<String> =
                names.iter().map(|name| String::from_utf8(object(format, name, false)).unwrap()).collect();
            let items = items.join(",");
            format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"7"}},"items":[{items}]}}"#)
                .into_bytes()
        }
        Format::Protobuf => {
            let mut list = field(1, &field(2, b"7"));
            for name in names {
                let meta = [field(1, name.as_bytes()), field(3, b"default")].concat();
                list.extend(field(2, &[field(1, &meta), field(2, &field(5, &[b'x'; 2000]))].concat()));
            }
            let about = [field(1, b"v1"), field(2, b"PodList")].concat();
            [&b"k8s\0"[..], &field(1, &about), &field(2, &list)].concat()
        }
    }
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let accept = request.headers().get(ACCEPT).map_or("", |value| value.to_str().unwrap()).to_owned();
    let format = if accept.contains("protobuf") { Format::Protobuf } else { Format::Json };
    let uri = request.uri().to_string();
    let seen = Seen { method: request.method().clone(), uri, headers: request.headers().clone() };
    shared.seen.lock().unwrap().push(seen);
    let (path, query) =
        (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
    let media = match format {
        Format::Json => "application/json",
        Format::Protobuf => "application/vnd.kubernetes.protobuf",
    };
    let answer = if query.contains("watch=") {
        let (sender, events) = mpsc::unbounded_channel();
        let mut id = 0;
        let mut watches = shared.watches.lock().unwrap();
        shared.opened.send_modify(|opened| {
            *opened += 1;
            id = *opened;
        });
        watches.insert(id, (format, sender));
        drop(watches);
        let feed = Feed { shared: shared.clone(), events };
        let frames = stream::unfold(feed, |mut feed| async move {
            let bytes = feed.events.recv().await?;
            Some((Ok(Frame::data(bytes)), feed))
        });
        let media = if query.contains("gzip") { "application/gzip" } else { media };
        let body = BodyExt::boxed(StreamBody::new(SyncStream(Mutex::new(Box::pin(frames)))));
        Response::builder().header(CONTENT_TYPE, media).header("x-of-upstream", "yes").body(body)
    } else if path == PODS && request.method() == Method::GET {
        Response::builder().header(CONTENT_TYPE, media).body(whole(list(format)))
    } else if path == "/version" {
        let version = r#"{"major":"1","minor":"37"}"#;
        Response::builder().header(CONTENT_TYPE, "application/json").body(whole(version))
    } else if path == "/echo" {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        Response::builder().status(201).body(whole(body))
    } else {
        Response::builder().status(404).body(whole("404 page not found\n"))
    };
    Ok(answer.unwrap())
}

fn whole(body: impl Into<Bytes>) -> BoxBody<Bytes, Infallible> {
    Full::new(body.into()).boxed()
}

type Frames = std::pin::Pin<Box<dyn futures_util::Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>;

/// A boxed body must be `Sync`; only one task ever polls this one.
struct SyncStream(Mutex<Frames>);

impl futures_util::Stream for SyncStream {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.lock().unwrap().as_mut().poll_next(cx)
    }
}
