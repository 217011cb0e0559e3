//! Starting, reaching and stopping the server.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch as channel;
use tokio::task::JoinHandle;

use crate::accept::{self, Patience};
use crate::api::{Api, WriteOptions};
use crate::auth::{Tokens, User};
use crate::faults::Faults;
use crate::handler::{Handler, Settings};
use crate::service::Service;
use crate::simulator::{self, Simulation};
use crate::tls::Tls;
use crate::{housekeeping, kubeconfig};

/// How long open requests get to end at shutdown.
const GRACE: Duration = Duration::from_secs(2);
/// Namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Why a server did not start, or could not write its kubeconfig. The cause is its `source`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// No certificate could be made.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    /// The kubeconfig could not be written.
    #[error("cannot write the kubeconfig {path}", path = path.display())]
    Kubeconfig {
        /// Where to.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

/// How a server is to be; [`Builder::start`] makes it one.
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    listen: SocketAddr,
    tls: bool,
    tokens: Vec<(String, String, Vec<String>)>,
    window: usize,
    bookmark_interval: Duration,
    body_limit: usize,
    header_timeout: Duration,
    seed: Option<u64>,
    simulation: Option<Simulation>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            tls: false,
            tokens: Vec::new(),
            window: 10_000,
            bookmark_interval: Duration::from_secs(60),
            body_limit: 3 * 1024 * 1024,
            header_timeout: Duration::from_secs(60),
            seed: None,
            simulation: None,
        }
    }
}

impl Builder {
    /// The address to listen on. Default: a free port on 127.0.0.1.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// HTTPS with a generated certificate, which the kubeconfig trusts. Default: plain HTTP.
    pub fn tls(mut self, on: bool) -> Self {
        self.tls = on;
        self
    }

    /// Takes only requests with a known bearer token; may be called several times. The first token is the
    /// kubeconfig's.
    pub fn token(mut self, token: &str, user: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|g| (*g).to_owned()).collect();
        self.tokens.push((token.to_owned(), user.to_owned(), groups));
        self
    }

    /// How many changes per resource can be resumed from; older versions are answered with 410. Default:
    /// 10,000.
    pub fn watch_window(mut self, changes: usize) -> Self {
        self.window = changes;
        self
    }

    /// How often a watch that asked for bookmarks gets one. Default: a minute, as the real server.
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.bookmark_interval = interval;
        self
    }

    /// The largest body that is read. Default: 3 MiB, as the real server.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// How long a client may take to send the head of a request, or leave an HTTP/1.1 connection without
    /// one, before the connection is closed. Default: a minute.
    pub fn header_timeout(mut self, timeout: Duration) -> Self {
        self.header_timeout = timeout;
        self
    }

    /// Makes generated names and UIDs repeatable. Default: from the clock.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Plays controllers, scheduler and kubelets, so that what is created comes to life. Default: nobody
    /// does; only deletion is followed up.
    pub fn simulate(mut self, simulation: Simulation) -> Self {
        self.simulation = Some(simulation);
        self
    }

    /// Starts the server. Must be called inside a tokio runtime, which it then runs on.
    pub async fn start(self) -> Result<Server, ServerError> {
        let refused = |source| ServerError::Listen { address: self.listen, source };
        let listener = TcpListener::bind(self.listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let tls = match self.tls {
            true => Some(Tls::generate(address.ip()).map_err(|error| ServerError::Tls(error.to_string()))?),
            false => None,
        };
        let seed = self.seed.or(self.simulation.as_ref().map(|s| s.seed)).unwrap_or_else(|| {
            // Truncation is fine: any number will do.
            jiff::Timestamp::now().as_nanosecond() as u64
        });
        let api = Arc::new(Api::new(self.window, seed));
        furnish(&api);
        let users: HashMap<String, User> = self
            .tokens
            .iter()
            .map(|(token, name, groups)| {
                let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
                (token.clone(), User::named(name, &groups))
            })
            .collect();
        let settings = Settings {
            address: address.to_string(),
            bookmark_interval: self.bookmark_interval,
            body_limit: self.body_limit,
        };
        let handler = Handler { api: Arc::clone(&api), tokens: Tokens::new(users), settings };
        let service = Service::new(handler);
        let (open, gate) = channel::channel(true);
        let (opened, is_open) = channel::channel(true);
        let acceptor = tls.as_ref().map(|tls| tokio_rustls::TlsAcceptor::from(Arc::clone(&tls.config)));
        let tasks = vec![
            tokio::spawn(accept::run(
                listener,
                acceptor,
                service.clone(),
                gate,
                opened,
                api.stopping(),
                Patience { head: self.header_timeout, grace: GRACE },
            )),
            tokio::spawn(controllers(Arc::clone(&api), self.simulation)),
        ];
        Ok(Server {
            address,
            ca_pem: tls.map(|tls| tls.ca_pem),
            token: self.tokens.first().map(|(token, ..)| token.clone()),
            service,
            api,
            open,
            is_open,
            tasks,
        })
    }
}

/// A running API server; stops when dropped.
pub struct Server {
    address: SocketAddr,
    ca_pem: Option<String>,
    token: Option<String>,
    service: Service,
    api: Arc<Api>,
    /// False: connections are refused.
    open: channel::Sender<bool>,
    /// Whether that has happened.
    is_open: channel::Receiver<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// How much a server holds and has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Objects in the store.
    pub objects: usize,
    /// The newest version.
    pub version: u64,
    /// How often an object was serialised.
    pub serialised_objects: u64,
    /// How many bytes that gave; does not depend on the number of watchers.
    pub serialised_bytes: u64,
}

impl Server {
    /// A server with the defaults, once [started](Builder::start).
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// `http://127.0.0.1:PORT`, or `https://…`.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.ca_pem.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate to trust, where TLS is on.
    #[must_use]
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// A kubeconfig that reaches the server (JSON, which is YAML too).
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        let value = kubeconfig::kubeconfig(&self.url(), self.ca_pem.as_deref(), self.token.as_deref());
        format!("{value:#}\n")
    }

    /// Writes the kubeconfig to a file that only its owner can read: it may hold a token. A file that is there is
    /// replaced in one step, permissions and all; a directory is refused.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>) -> Result<(), ServerError> {
        let path = path.as_ref();
        kubeconfig::write(path, &self.kubeconfig())
            .map_err(|source| ServerError::Kubeconfig { path: path.to_owned(), source })
    }

    /// The server without its socket, for a client in the same process.
    #[must_use]
    pub fn service(&self) -> Service {
        self.service.clone()
    }

    /// What is to go wrong, on command. Faults reach the requests that arrive after this was first called.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.service.faults()
    }

    /// Forgets all past changes, as etcd's compaction does: every older version is answered with 410.
    pub fn compact(&self) {
        self.api.store.compact();
    }

    /// Refuses connections until [`Server::accept_connections`]: once this returns, the port is closed and
    /// open connections are cut.
    pub async fn refuse_connections(&self) {
        self.set_open(false).await;
    }

    /// Takes connections again, on the same port, once this returns.
    pub async fn accept_connections(&self) {
        self.set_open(true).await;
    }

    async fn set_open(&self, open: bool) {
        self.open.send_replace(open);
        // Somebody else may have changed their mind meanwhile, or the server may have stopped: no wait then.
        let followed = |now: &bool| *now == open || *self.open.borrow() != open;
        let _: Result<_, _> = self.is_open.clone().wait_for(followed).await;
    }

    /// What it holds and has done.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let serialised = self.api.store.serialised();
        Stats {
            objects: self.api.store.sizes().iter().map(|(_, size)| size).sum(),
            version: self.api.store.revision(),
            serialised_objects: serialised.objects(),
            serialised_bytes: serialised.bytes(),
        }
    }

    /// Stops: ends all watches, lets open requests finish for a moment, frees the port. Nothing runs
    /// afterwards.
    pub async fn shutdown(mut self) {
        self.api.stop();
        for task in std::mem::take(&mut self.tasks) {
            let end = task.abort_handle();
            // A task that panicked has ended too; one that does not end is ended.
            if tokio::time::timeout(2 * GRACE, task).await.is_err() {
                end.abort();
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.api.stop();
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Housekeeping, and the simulation if there is one: in one task and always in this order, so that it can
/// repeat itself.
async fn controllers(api: Arc<Api>, simulation: Option<Simulation>) {
    let housekeeping = housekeeping::run(Arc::clone(&api));
    match simulation {
        Some(simulation) => {
            let simulator = simulator::run(api, simulation);
            futures_util::future::join(housekeeping, simulator).await;
        }
        None => housekeeping.await,
    }
}

/// What every cluster starts with.
fn furnish(api: &Api) {
    let options = WriteOptions { manager: "kube-apiserver".into(), ..Default::default() };
    let create = |group: &str, plural: &str, namespace: &str, object: Value| {
        let made = api.resource(group, plural).and_then(|r| api.create(&r, namespace, object, &options));
        if let Err(error) = made {
            tracing::error!(plural, message = %error.message, "the server starts without it");
        }
    };
    for name in NAMESPACES {
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        create("", "namespaces", "", object);
    }
    create(
        "",
        "services",
        "default",
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": "kubernetes", "labels": { "component": "apiserver", "provider": "kubernetes" } },
            "spec": { "ports": [{ "name": "https", "port": 443, "targetPort": 6443 }] },
        }),
    );
}
