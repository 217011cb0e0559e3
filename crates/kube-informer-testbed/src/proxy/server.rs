//! The door and the way of one request through the proxy.
//!
//! One task accepts and owns the tasks of the connections: when it ends, all
//! end. A connection is cut by dropping it, so a cut works in every state.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::answer::accepted;
use super::body::{HangUp, Made};
use super::fault::{Action, Point, Rule};
use super::frames::{Format, Tracker};
use super::list::Scanner;
use super::lock;
use super::matcher::Match;
use super::relay::{Objects, Relay};
use super::script::{Exchange, Script};
use super::transcript::{End, Recorder, Request, Requests};
use super::upstream::Upstream;

/// What all connections share.
pub(crate) struct Server {
    pub(crate) script: Arc<Script>,
    pub(crate) requests: Requests,
    upstream: Upstream,
    frame_limit: usize,
    connections: Mutex<HashMap<u64, Arc<Connection>>>,
    count: watch::Sender<usize>,
    last_connection: AtomicU64,
}

/// One connection of a client.
struct Connection {
    id: u64,
    /// Closes it at once.
    kill: Arc<Notify>,
    /// Closes it after the request in flight.
    drain: Notify,
    busy: AtomicUsize,
}

/// What the door is told; answered when it is done.
pub(crate) enum Command {
    Shut(oneshot::Sender<()>),
    Open(oneshot::Sender<()>),
}

/// Takes a connection off the books when its task ends, however it ends.
struct Registered {
    server: Arc<Server>,
    connection: Arc<Connection>,
}

/// Counts a request as long as its exchange goes on.
struct Busy(Arc<Connection>);

/// A listening port of its own.
pub(crate) fn listen() -> io::Result<TcpListener> {
    reserve(0)?.listen(1024)
}

/// Binds a port without listening: connections to it are refused, and nobody
/// else gets it. Several such sockets can hold one port, so that it is never
/// free between a listener and the next.
fn reserve(port: u16) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    Ok(socket)
}

enum Door {
    Open(TcpListener),
    Shut(TcpSocket),
}

/// Accepts connections until aborted.
pub(crate) async fn door(server: Arc<Server>, listener: TcpListener, mut commands: mpsc::Receiver<Command>) {
    let mut door = Door::Open(listener);
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            accepted = async {
                match &door {
                    Door::Open(listener) => listener.accept().await,
                    Door::Shut(_) => std::future::pending().await,
                }
            } => match accepted {
                Ok((stream, _)) => {
                    let registered = server.register();
                    tasks.spawn(connection(registered, stream));
                }
                Err(error) => tracing::warn!(%error, "the proxy cannot accept a connection"),
            },
            Some(command) = commands.recv() => {
                let (turned, done) = match command {
                    Command::Shut(done) => (door.shut(), done),
                    Command::Open(done) => (door.open(), done),
                };
                door = turned;
                // The one who asked may have been cancelled.
                let _ = done.send(());
            }
            Some(_) = tasks.join_next() => {}
        }
    }
}

impl Door {
    // Open => Shut
    fn shut(self) -> Self {
        match self {
            Self::Open(listener) => {
                let port = listener.local_addr().map(|address| address.port());
                Self::Shut(port.and_then(reserve).expect("a port that is held can be held twice"))
            }
            shut @ Self::Shut(_) => shut,
        }
    }

    // Shut => Open
    fn open(self) -> Self {
        match self {
            Self::Shut(socket) => {
                Self::Open(socket.listen(1024).expect("a port that is held can be listened on"))
            }
            open @ Self::Open(_) => open,
        }
    }
}

async fn connection(registered: Registered, stream: TcpStream) {
    // Frames are small and wanted at once; failing only makes tests slower.
    let _ = stream.set_nodelay(true);
    let (server, connection) = (registered.server.clone(), registered.connection.clone());
    let Connection { kill, drain, .. } = &*registered.connection;
    let service = service_fn(move |request| serve(server.clone(), connection.clone(), request));
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    let mut serving = std::pin::pin!(serving);
    loop {
        tokio::select! {
            // An error is a client that left or a fault: both are in the transcript.
            _ = &mut serving => return,
            () = kill.notified() => return,
            () = drain.notified() => serving.as_mut().graceful_shutdown(),
        }
    }
}

async fn serve(
    server: Arc<Server>,
    connection: Arc<Connection>,
    request: http::Request<Incoming>,
) -> Result<Response<Made>, HangUp> {
    let arrived = arrived(&connection, &request);
    let accept = arrived.accept.clone();
    let is_watch = arrived.is_watch();
    let is_head = arrived.method == http::Method::HEAD;
    let recorder = Arc::new(server.requests.begin(arrived.clone()));
    let arrived = Request { id: recorder.id(), ..arrived };
    let (rules, exchange) = server.script.arrive(arrived, connection.kill.clone());
    let busy = Busy::new(connection);

    for rule in &rules {
        match &rule.action {
            Action::Delay(delay) => {
                acted(rule, &recorder);
                tokio::time::sleep(*delay).await;
            }
            Action::Stall(Point::Before) => {
                acted(rule, &recorder);
                rule.freed().await;
            }
            Action::Cut(Point::Before) => {
                acted(rule, &recorder);
                recorder.end(End::Cut);
                return Err(HangUp);
            }
            Action::Answer(answer) => {
                acted(rule, &recorder);
                return Ok(whole(recorder, answer.response(&accept), busy, exchange));
            }
            Action::ErrorEvent(answer) if is_watch => {
                acted(rule, &recorder);
                let format = accepted(&accept);
                let mut response = Response::new(answer.error_event(format).encode());
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(watch_type(format)));
                recorder.events(1);
                return Ok(whole(recorder, response, busy, exchange));
            }
            _ => {}
        }
    }

    let plain = rules.iter().any(|rule| rule.needs_objects());
    let response = match server.upstream.forward(request, plain).await {
        Ok(response) => response,
        Err(error) => {
            let message = format!("{error:#}");
            recorder.end(End::Upstream(message.clone()));
            let mut response =
                Response::new(Bytes::from(format!("the upstream server cannot be reached: {message}\n")));
            *response.status_mut() = http::StatusCode::BAD_GATEWAY;
            response
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
            return Ok(whole(recorder, response, busy, exchange));
        }
    };

    let (mut head, body) = response.into_parts();
    let objects = objects(&head.headers, is_watch);
    for rule in &rules {
        if let Action::ContentType(value) = &rule.action {
            acted(rule, &recorder);
            head.headers.insert(CONTENT_TYPE, value.clone());
        }
    }
    let bodiless = is_head || matches!(head.status.as_u16(), 204 | 304);
    let length = if bodiless { Some(0) } else { header(&head.headers, &CONTENT_LENGTH).parse().ok() };
    recorder.answered(head.status.as_u16(), &header(&head.headers, &CONTENT_TYPE), length);
    let rules = rules.into_iter().filter(|rule| !rule.is_early()).collect();
    let limit = server.frame_limit;
    let made = Made::new(recorder.clone(), |out| async move {
        let _busy = busy;
        Relay::new(body, out, recorder, exchange, objects, limit).run(rules).await
    });
    Ok(Response::from_parts(head, made))
}

/// An answer of the proxy's own.
fn whole(
    recorder: Arc<Recorder>,
    response: Response<Bytes>,
    busy: Busy,
    exchange: Exchange,
) -> Response<Made> {
    let (mut head, body) = response.into_parts();
    recorder.answered(head.status.as_u16(), &header(&head.headers, &CONTENT_TYPE), Some(body.len() as u64));
    head.headers.insert(CONTENT_LENGTH, body.len().into());
    let counter = recorder.clone();
    let made = Made::new(recorder, |out| async move {
        let (_busy, _exchange) = (busy, exchange);
        let length = body.len();
        if length > 0 && out.send(body).await.is_ok() {
            counter.passed(length);
        }
        Ok(())
    });
    Response::from_parts(head, made)
}

fn acted(rule: &Rule, recorder: &Recorder) {
    recorder.note(&rule.label());
    rule.act();
}

fn arrived(connection: &Connection, request: &http::Request<Incoming>) -> Request {
    let headers = request.headers();
    Request {
        connection: connection.id,
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        accept: header(headers, &ACCEPT),
        authorization: headers.contains_key(AUTHORIZATION).then(|| header(headers, &AUTHORIZATION)),
        ..Request::arriving(request.method().clone())
    }
}

fn header(headers: &HeaderMap, name: &http::HeaderName) -> String {
    let values = headers.get_all(name).into_iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.collect::<Vec<_>>().join(",")
}

fn objects(headers: &HeaderMap, is_watch: bool) -> Objects {
    let encoding = header(headers, &CONTENT_ENCODING);
    if !(encoding.is_empty() || encoding == "identity") {
        return Objects::Opaque;
    }
    match Format::of(&header(headers, &CONTENT_TYPE)) {
        None => Objects::Opaque,
        Some(format) if is_watch => Objects::Followed(format, Tracker::new(format)),
        Some(format) => Objects::List(Scanner::new(format)),
    }
}

fn watch_type(format: Format) -> &'static str {
    match format {
        Format::Json => "application/json",
        Format::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
    }
}

impl Server {
    pub(crate) fn new(upstream: Upstream, requests: Requests, frame_limit: usize) -> Self {
        Self {
            script: Arc::default(),
            requests,
            upstream,
            frame_limit,
            connections: Mutex::default(),
            count: watch::Sender::new(0),
            last_connection: AtomicU64::new(0),
        }
    }

    pub(crate) fn connection_count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Cuts the matching exchanges in flight and awaits that their connections
    /// are gone.
    pub(crate) async fn cut_open(&self, matcher: &Match) -> usize {
        let mut cut = Vec::new();
        self.script.each_open(matcher, |request, kill| {
            self.requests.note(request.id, "cut now");
            self.requests.end(request.id, End::Cut);
            kill.notify_one();
            cut.push(request.connection);
        });
        self.wait_gone(&cut).await;
        cut.len()
    }

    /// Closes the connections on which nothing is in flight, and lets the
    /// others take no further request.
    pub(crate) async fn close_idle(&self) {
        let mut closed = Vec::new();
        for connection in lock(&self.connections).values() {
            if connection.busy.load(Ordering::Acquire) == 0 {
                connection.kill.notify_one();
                closed.push(connection.id);
            } else {
                connection.drain.notify_one();
            }
        }
        self.wait_gone(&closed).await;
    }

    async fn wait_gone(&self, connections: &[u64]) {
        let gone = || {
            let open = lock(&self.connections);
            connections.iter().all(|id| !open.contains_key(id))
        };
        // The sender is in `self`: this never fails.
        let _ = self.count.subscribe().wait_for(|_| gone()).await;
    }

    fn register(self: &Arc<Self>) -> Registered {
        let id = self.last_connection.fetch_add(1, Ordering::Relaxed) + 1;
        let connection = Arc::new(Connection {
            id,
            kill: Arc::default(),
            drain: Notify::new(),
            busy: AtomicUsize::new(0),
        });
        let mut open = lock(&self.connections);
        open.insert(id, connection.clone());
        self.count.send_replace(open.len());
        Registered { server: self.clone(), connection }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut open = lock(&self.server.connections);
        open.remove(&self.connection.id);
        let count = open.len();
        drop(open);
        self.server.count.send_replace(count);
    }
}

impl Busy {
    fn new(connection: Arc<Connection>) -> Self {
        connection.busy.fetch_add(1, Ordering::AcqRel);
        Self(connection)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
    }
}
