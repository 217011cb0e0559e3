//! The door, and the connections behind it.
//!
//! One task accepts and owns the tasks of the connections: when it ends, all
//! end. A connection is cut by dropping it, so a cut works in every state.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use kube_informer_apiserver::faults::{Faults, HangUp, Line, Made, Match};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::lock;
use super::upstream::Upstream;

/// What all connections share.
pub(crate) struct Server {
    pub(crate) faults: Faults,
    upstream: Upstream,
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
    let line = Line::of_connection(connection.id, connection.kill.clone(), Busy::new(connection));
    let forward =
        async |request| server.upstream.forward(request).await.map_err(|error| format!("{error:#}"));
    server.faults.pass(line, request, forward).await
}

impl Server {
    pub(crate) fn new(upstream: Upstream, faults: Faults) -> Self {
        Self {
            faults,
            upstream,
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
        let cut = self.faults.cut_open(matcher);
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
        let mut counts = self.count.subscribe();
        // Not `wait_for`: it asks while it holds the count, which is set by those who hold the connections.
        while !gone() {
            // The sender is in `self`: this never fails.
            let _ = counts.changed().await;
        }
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
        // While it is locked: of two that go, the later one says how many are left.
        self.server.count.send_replace(open.len());
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
