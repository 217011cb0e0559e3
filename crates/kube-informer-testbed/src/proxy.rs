//! The fault proxy: stands between a client and an API server, and lies.
//!
//! It takes plain HTTP/1.1 on a loopback port and passes requests on to the
//! server over TLS or plain HTTP. A test scripts it while it runs:
//!
//! ```no_run
//! # use kube_informer_testbed::{kubeconfig::Access, proxy::{Answer, Events, Match, Proxy}};
//! # async fn example(server: &Access) -> Result<(), Box<dyn std::error::Error>> {
//! let proxy = Proxy::start(server).await?;
//! proxy.on(Match::watch().path("/api/v1/pods")).times(2).answer(Answer::gone());
//! proxy.on(Match::any_watch()).drop_events(Events::deleted().named("web"));
//! let stalled = proxy.on_open(Match::watch()).stall();
//! proxy.requests().wait_for(|request| request.is_watch() && request.status == Some(410)).await?;
//! stalled.release();
//! proxy.cut_open(Match::watch()).await;
//! # Ok(())
//! # }
//! ```
//!
//! What it promises:
//! - Without a fault nothing is changed: status, headers and body are the
//!   server's, byte by byte, as they come. The client's Authorization is passed
//!   on; only a proxy told to does add the upstream credentials where a request
//!   has none.
//! - A fault acts on requests that arrive after it was installed (`on`), on
//!   those in flight (`on_open`), or on both (`on_all`). None is missed between.
//! - Bodies are never held whole. Only while a fault looks at events, one event
//!   at a time is, up to a limit; a larger one cuts the connection, and the
//!   transcript says so. Frames are looked at where the answer is an
//!   uncompressed watch in JSON or protobuf; the server is asked for that when
//!   such a fault is there as the request arrives.
//! - A server that cannot be reached is answered for with 502 and plain text.
//! - Every request is in the transcript, bounded, with how it ended.
//! - When the proxy is dropped, its port and all its connections are closed.
//!
//! What it does not: HTTP/2, upgrades (exec, port-forward), trailers. What a
//! fault lets through before a cut reaches a client that reads; of one that does
//! not, what the socket cannot take is lost with the connection.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::http::Endpoint;
use crate::kubeconfig::Access;

// The way of a request: the door, the faults, the server.
mod server;
mod upstream;

pub use kube_informer_apiserver::faults::{
    Answer, End, Events, Fault, Format, Match, NotSeen, On, Request, Requests, Verb, WatchEvent,
};
use kube_informer_apiserver::faults::{CAPACITY, FRAME_LIMIT, Faults};

use server::{Command, Server};

/// How a proxy is to be started.
#[derive(Debug, Clone)]
pub struct Config {
    server: Access,
    add_credentials: bool,
    frame_limit: usize,
    transcript: usize,
}

/// A running fault proxy. Dropping it ends it.
pub struct Proxy {
    server: Arc<Server>,
    commands: mpsc::Sender<Command>,
    door: JoinHandle<()>,
    address: SocketAddr,
}

impl Config {
    /// A proxy before this server.
    #[must_use]
    pub fn new(server: &Access) -> Self {
        Self {
            server: server.clone(),
            add_credentials: false,
            frame_limit: FRAME_LIMIT,
            transcript: CAPACITY,
        }
    }

    /// Passes requests that come without Authorization on with the server's
    /// credentials.
    #[must_use]
    pub fn add_credentials(mut self) -> Self {
        self.add_credentials = true;
        self
    }

    /// The largest watch event that is looked at; 64 MiB unless told otherwise.
    #[must_use]
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes;
        self
    }

    /// How many requests the transcript keeps; 10,000 unless told otherwise.
    #[must_use]
    pub fn transcript(mut self, records: usize) -> Self {
        self.transcript = records;
        self
    }

    /// Starts it.
    pub async fn start(self) -> Result<Proxy> {
        let upstream = upstream::Upstream::new(&self.server, self.add_credentials)?;
        let faults = Faults::new(self.transcript, self.frame_limit);
        let server = Arc::new(Server::new(upstream, faults));
        let listener = server::listen().context("cannot open a port on the loopback")?;
        let address = listener.local_addr()?;
        let (commands, receiver) = mpsc::channel(1);
        let door = tokio::spawn(server::door(server.clone(), listener, receiver));
        Ok(Proxy { server, commands, door, address })
    }
}

impl Proxy {
    /// Starts a proxy before a server, which passes credentials through.
    pub async fn start(server: &Access) -> Result<Self> {
        Config::new(server).start().await
    }

    /// Where it listens.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// What a client needs to come here with a token.
    #[must_use]
    pub fn access(&self, token: &str) -> Access {
        Access::anonymous(self.url()).with_token(token)
    }

    /// A client that comes here with a token.
    pub fn endpoint(&self, token: &str) -> Result<Endpoint> {
        Endpoint::new(self.access(token))
    }

    /// The text of a kubeconfig that leads here with a token.
    #[must_use]
    pub fn kubeconfig(&self, token: &str) -> String {
        serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "proxy", "cluster": { "server": self.url() } }],
            "users": [{ "name": "proxy", "user": { "token": token } }],
            "contexts": [{ "name": "proxy", "context": { "cluster": "proxy", "user": "proxy" } }],
            "current-context": "proxy",
        })
        .to_string()
    }

    /// Begins a fault for requests that arrive from now on.
    pub fn on(&self, requests: Match) -> On {
        self.server.faults.on(requests)
    }

    /// Begins a fault for requests in flight now, and no others. Faults that
    /// act before or instead of an answer have nothing to do here, except that
    /// `cut` and `stall` act at once.
    pub fn on_open(&self, requests: Match) -> On {
        self.server.faults.on_open(requests)
    }

    /// Begins a fault for requests in flight and those that arrive.
    pub fn on_all(&self, requests: Match) -> On {
        self.server.faults.on_all(requests)
    }

    /// Closes the connections of the matching requests in flight, now, in
    /// whatever state they are; returns how many requests that were, once they
    /// are closed.
    pub async fn cut_open(&self, requests: Match) -> usize {
        self.server.cut_open(&requests).await
    }

    /// Removes every fault. Refused connections stay refused.
    pub fn heal(&self) {
        self.server.faults.heal();
    }

    /// Closes the port, so that new connections are refused, and the
    /// connections that are idle. Requests in flight go on, each as the last on
    /// its connection. The port stays reserved.
    pub async fn refuse_connections(&self) {
        self.command(Command::Shut).await;
        self.server.close_idle().await;
    }

    /// Refuses connections and cuts everything in flight, as a server that is
    /// gone; returns how many requests were cut.
    pub async fn go_down(&self) -> usize {
        self.command(Command::Shut).await;
        let cut = self.server.cut_open(&Match::any()).await;
        self.server.close_idle().await;
        cut
    }

    /// Opens the same port again.
    pub async fn accept_connections(&self) {
        self.command(Command::Open).await;
    }

    /// The transcript.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.server.faults.requests()
    }

    /// How many connections clients have open.
    #[must_use]
    pub fn connections(&self) -> usize {
        *self.server.connection_count().borrow()
    }

    /// Awaits that so many connections, no more and no fewer, are open; false
    /// if that is not so within the deadline.
    pub async fn wait_connections(&self, count: usize, deadline: Duration) -> bool {
        let mut counts = self.server.connection_count();
        tokio::time::timeout(deadline, counts.wait_for(|open| *open == count))
            .await
            .is_ok_and(|seen| seen.is_ok())
    }

    /// Closes everything and awaits that it is closed.
    pub async fn shut_down(mut self) {
        self.door.abort();
        // Cancelled, as asked; a panic in it would have shown in the test's output.
        let _ = (&mut self.door).await;
    }

    async fn command(&self, command: fn(oneshot::Sender<()>) -> Command) {
        let (done, wait) = oneshot::channel();
        if self.commands.send(command(done)).await.is_ok() {
            // Fails only if the runtime is being shut down.
            let _ = wait.await;
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.door.abort();
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({}, {} requests in flight)", self.url(), self.requests().open().len())
    }
}

/// A lock is poisoned by a test's closure that panicked; what it guards is
/// changed in single steps and stays usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
