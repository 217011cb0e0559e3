//! Watches whose connection is driven by who reads them.
//!
//! hyper drives a connection in a task of its own, which hands every piece over to the task that reads: the two wake each
//! other for each of them, and on a runtime with several threads its threads do. A watch has its connection for itself,
//! and nothing is to be done on it while nobody reads. So its reader drives it, and one task is woken for what comes. All
//! other requests share connections as usual.
//!
//! A connection of a watch ends with the watch.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http::header::HOST;
use http::{Extensions, HeaderValue, Request, Response, Uri};
use http_body::{Frame, SizeHint};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connect, Connection};
use kube_client::client::Body;
use tower_service::Service;

use super::pulse::Allowed;
use crate::sync::AtomicU8;

/// A watch is read by one who has nothing else to do, and reads on. More would only be memory that every watch keeps.
const READ_AHEAD: usize = 64 * 1024;

pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Sends watches straight over connections of their own, and all other requests as a client with a pool does.
#[derive(Clone)]
pub(super) struct Straight<C> {
    pooled: legacy::Client<C, Body>,
    connector: C,
}

/// The body of a watch, and what it comes over.
pub(super) struct Watch {
    body: Incoming,
    line: Driven,
    /// A connection whose requests have all been dropped would end.
    _requests: http1::SendRequest<Body>,
}

/// Where a connection could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("client error (Connect)")]
struct NotConnected(#[source] BoxError);

impl<C: Clone> Straight<C> {
    /// Over connections of one connector.
    pub(super) fn new(pooled: legacy::Client<C, Body>, connector: C) -> Self {
        Self { pooled, connector }
    }
}

impl<C> Service<Request<Body>> for Straight<C>
where
    C: Connect + Service<Uri, Error: Into<BoxError>, Future: Send> + Clone + Send + Sync + 'static,
    <C as Service<Uri>>::Response: Connection + hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    type Response = Response<Either<Incoming, Watch>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if is_watch(request.uri()) {
            let connector = self.connector.clone();
            Box::pin(async move { Ok(open(connector, request).await?.map(Either::Right)) })
        } else {
            let response = self.pooled.request(request);
            Box::pin(async move {
                let mut response = response.await?;
                // Others share its connection, and do not want to wait.
                response.extensions_mut().remove::<Allowed>();
                Ok(response.map(Either::Left))
            })
        }
    }
}

fn is_watch(uri: &Uri) -> bool {
    let mut parameters = uri.query().unwrap_or_default().split('&');
    parameters.any(|parameter| matches!(parameter, "watch=1" | "watch=true"))
}

/// Sends a request over a new connection.
async fn open<C>(mut connector: C, request: Request<Body>) -> Result<Response<Watch>, BoxError>
where
    C: Service<Uri, Error: Into<BoxError>>,
    C::Response: Connection + hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let not_connected = |error: C::Error| NotConnected(error.into());
    poll_fn(|cx| connector.poll_ready(cx)).await.map_err(not_connected)?;
    let stream = connector.call(request.uri().clone()).await.map_err(not_connected)?;
    let allowed = allowed(&stream);
    let mut response = speak(stream, request).await?;
    if let Some(allowed) = allowed {
        response.extensions_mut().insert(allowed);
    }
    Ok(response)
}

/// Sends a request over a connection, which is its own.
async fn speak<S>(stream: S, mut request: Request<Body>) -> Result<Response<Watch>, BoxError>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    address(&mut request)?;
    let mut http = http1::Builder::new();
    let (mut requests, line) = http.max_buf_size(READ_AHEAD).handshake(stream).await?;
    let mut line = Driven::new(line);
    let response = {
        let mut response = pin!(requests.send_request(request));
        poll_fn(|cx| line.poll(cx, |cx| response.as_mut().poll(cx))).await?
    };
    Ok(response.map(|body| Watch { body, line, _requests: requests }))
}

/// Where it can be said that what comes over a connection may wait. It goes with the response, to who reads that.
fn allowed(stream: &impl Connection) -> Option<Allowed> {
    let mut extras = Extensions::new();
    stream.connected().get_extras(&mut extras);
    extras.remove()
}

/// The host goes into its header, and only the rest into the first line.
fn address(request: &mut Request<Body>) -> Result<(), BoxError> {
    let uri = request.uri();
    if !request.headers().contains_key(HOST)
        && let Some(host) = uri.host()
    {
        let host = match uri.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let host = HeaderValue::try_from(host)?;
        request.headers_mut().insert(HOST, host);
    }
    if let Some(path) = request.uri().path_and_query().cloned() {
        *request.uri_mut() = Uri::from(path);
    }
    Ok(())
}

impl http_body::Body for Watch {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { body, line, .. } = self.get_mut();
        line.poll(cx, |cx| Pin::new(&mut *body).poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that goes on while something is awaited that comes over it.
///
/// The two wake each other whenever one of them has done something. While both are looked at anyway, that is no reason to
/// wake the task.
struct Driven {
    /// None when it has ended.
    line: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    bell: Arc<Bell>,
    /// Rings it.
    waker: Waker,
}

/// So often the two are looked at in a row before others have their turn.
const TURNS: u32 = 16;

impl Driven {
    fn new<S>(line: http1::Connection<S, Body>) -> Self
    where
        S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
    {
        let bell = Arc::<Bell>::default();
        let waker = Waker::from(bell.clone());
        // What it ends with is told to who awaits something of it.
        let line = Box::pin(async move { drop(line.await) });
        Self { line: Some(line), bell, waker }
    }

    /// What is awaited, as far as the connection brings it.
    fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        mut awaited: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.bell.outside.register(cx.waker());
        let mut inside = Context::from_waker(&self.waker);
        for _ in 0..TURNS {
            self.bell.attend();
            if let Some(line) = &mut self.line
                && line.as_mut().poll(&mut inside).is_ready()
            {
                self.line = None;
            }
            if let Poll::Ready(found) = awaited(&mut inside) {
                // The next one who asks looks at both, whatever was rung meanwhile.
                self.bell.leave();
                return Poll::Ready(found);
            }
            if !self.bell.leave() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Wakes a task, unless it is at work already: then it is noted.
#[derive(Debug, Default)]
struct Bell {
    state: AtomicU8,
    outside: AtomicWaker,
}

/// Nobody is there: who rings wakes the task.
const AWAY: u8 = 0;
/// The task is looking.
const THERE: u8 = 1;
/// The same, and it was rung since it began to.
const RUNG: u8 = 2;

impl Bell {
    fn attend(&self) {
        self.state.store(THERE, Ordering::SeqCst);
    }

    /// Whether it was rung since.
    fn leave(&self) -> bool {
        self.state.swap(AWAY, Ordering::SeqCst) == RUNG
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let there = self.state.compare_exchange(THERE, RUNG, Ordering::SeqCst, Ordering::SeqCst);
        if there == Err(AWAY) {
            self.outside.wake();
        }
    }
}

#[cfg(test)]
mod schedules;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use http_body_util::BodyExt as _;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    /// Connects to nobody.
    struct Nobody;

    impl Service<Uri> for Nobody {
        type Response = TokioIo<tokio::net::TcpStream>;
        type Error = BoxError;
        type Future = std::future::Ready<Result<Self::Response, BoxError>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Uri) -> Self::Future {
            std::future::ready(Err("nobody is there".into()))
        }
    }

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

    /// A watch that was opened, the server's end of it, and what the server was asked.
    async fn opened() -> (Watch, DuplexStream, String) {
        let (near, mut far) = duplex(1 << 16);
        let request = Request::get("https://example.com:6443/api/v1/pods?watch=1").body(Body::empty());
        let served = async {
            let mut asked = Vec::new();
            while !asked.ends_with(b"\r\n\r\n") {
                asked.push(far.read_u8().await.unwrap());
            }
            far.write_all(HEAD).await.unwrap();
            String::from_utf8(asked).unwrap()
        };
        let (response, asked) = tokio::join!(speak(TokioIo::new(near), request.unwrap()), served);
        (response.unwrap().into_body(), far, asked)
    }

    #[tokio::test]
    async fn a_server_is_asked_for_a_path_and_told_its_name() {
        let (_, _, asked) = opened().await;
        assert!(asked.starts_with("GET /api/v1/pods?watch=1 HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("host: example.com:6443\r\n"), "{asked}");
    }

    #[tokio::test]
    async fn what_comes_is_read_to_its_end() {
        let (mut watch, mut server, _) = opened().await;
        server.write_all(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n").await.unwrap();
        let mut read = Vec::new();
        while let Some(frame) = watch.frame().await {
            read.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        assert_eq!(read, b"onetwo");
    }

    #[tokio::test]
    async fn what_is_cut_is_an_error() {
        let (mut watch, mut server, _) = opened().await;
        server.write_all(b"30\r\na part").await.unwrap();
        drop(server);
        assert!(watch.frame().await.unwrap().is_ok());
        assert!(watch.frame().await.unwrap().is_err());
    }

    #[tokio::test]
    async fn a_reader_is_woken_by_what_comes_and_not_by_itself() {
        let (mut watch, mut server, _) = opened().await;
        let counted = Arc::<Counted>::default();
        let waker = Waker::from(counted.clone());
        let mut cx = Context::from_waker(&waker);
        let mut look = |watch: &mut Watch| http_body::Body::poll_frame(Pin::new(watch), &mut cx);
        assert!(look(&mut watch).is_pending());
        for each in 1..=5 {
            server.write_all(b"3\r\none\r\n3\r\ntwo\r\n").await.unwrap();
            assert_eq!(counted.0.load(Ordering::SeqCst), each, "once for what came");
            let mut frames = 0;
            while let Poll::Ready(frame) = look(&mut watch) {
                frame.unwrap().unwrap();
                frames += 1;
            }
            assert!(frames > 0);
            assert_eq!(counted.0.load(Ordering::SeqCst), each, "and for nothing else");
        }
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_an_error_that_says_so() {
        let request = Request::get("https://example.com/api/v1/pods?watch=1").body(Body::empty()).unwrap();
        let Err(error) = open(Nobody, request).await else { panic!("nobody was there") };
        assert_eq!(crate::connect::cause::chain(&*error), "nobody is there");
    }

    #[test]
    fn who_is_at_work_is_not_woken_and_looks_again() {
        let (bell, counted) = (Arc::<Bell>::default(), Arc::<Counted>::default());
        bell.outside.register(&Waker::from(counted.clone()));
        bell.attend();
        bell.wake_by_ref();
        assert!(bell.leave());
        assert_eq!(counted.0.load(Ordering::SeqCst), 0);
        bell.attend();
        assert!(!bell.leave());
        bell.wake_by_ref();
        assert_eq!(counted.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn only_watches_go_straight() {
        let is = |uri: &str| is_watch(&uri.parse().unwrap());
        assert!(is("https://h/api/v1/pods?watch=1&timeoutSeconds=5"));
        assert!(is("https://h/api/v1/pods?labelSelector=a&watch=true"));
        assert!(!is("https://h/api/v1/pods"));
        assert!(!is("https://h/api/v1/pods?labelSelector=watch=1"));
        assert!(!is("https://h/api/v1/watch?watch=0"));
    }
}
