//! How a server is set up, and started.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::sync::watch;

use super::access::{Access, Token};
use super::addresses::{Addresses, Share};
use super::door::Door;
use super::routes::{self, App};
use super::{Phase, Server};
use crate::hub::Hub;

/// How a server is to be; made by [`Server::builder`].
#[derive(Debug)]
#[must_use = "nothing listens until `start` is called"]
pub struct Builder {
    hub: Hub,
    listen: SocketAddr,
    token: TokenFrom,
    hosts: Vec<String>,
    origins: Vec<String>,
    settings: Settings,
    registry: Registry,
}

#[derive(Debug)]
enum TokenFrom {
    Nowhere,
    Given(Token),
    File(PathBuf),
}

/// Limits and durations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) connections: usize,
    pub(crate) per_address: Option<usize>,
    pub(crate) pending: usize,
    pub(crate) subscriptions: usize,
    pub(crate) frame: usize,
    pub(crate) outbox: usize,
    pub(crate) handshake: Duration,
    pub(crate) ping: Duration,
    pub(crate) pong: Duration,
    pub(crate) bookmark: Duration,
    pub(crate) goodbye: Duration,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// What was asked for.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Others could connect, and nobody would ask who they are.
    #[error(
        "{address} can be reached by others: give a token, or a file with one, or listen on a loopback address such as \
         127.0.0.1"
    )]
    TokenWanted {
        /// What was asked for.
        address: SocketAddr,
    },
    /// The token cannot be read.
    #[error("cannot read the token from {path}: {source}", path = path.display())]
    TokenFile {
        /// Where from.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The token is none.
    #[error("the token {problem}: give one of at least {least} visible characters", least = super::access::SHORTEST)]
    Token {
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl Builder {
    pub(super) fn new(hub: Hub) -> Self {
        let settings = Settings {
            connections: 4_096,
            per_address: None,
            pending: 256,
            subscriptions: 64,
            frame: 64 << 10,
            outbox: 2 << 20,
            handshake: Duration::from_secs(10),
            ping: Duration::from_secs(20),
            pong: Duration::from_secs(20),
            bookmark: Duration::from_secs(30),
            goodbye: Duration::from_secs(5),
        };
        Self {
            hub,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token: TokenFrom::Nowhere,
            hosts: Vec::new(),
            origins: Vec::new(),
            settings,
            registry: Registry::default(),
        }
    }

    /// Where to listen. The default is a free port of 127.0.0.1. Any address that is not a loopback one needs a token.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// What clients must know.
    pub fn token(mut self, token: &str) -> Self {
        self.token = TokenFrom::Given(Token::new(token));
        self
    }

    /// A file with what clients must know; white space around it does not count.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token = TokenFrom::File(path.into());
        self
    }

    /// A name by which clients may call this server, beside `localhost` and addresses: `feed.example.com`.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into().to_ascii_lowercase());
        self
    }

    /// A site whose pages may connect, beside those that come from this server: `https://dash.example.com`.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into().to_ascii_lowercase());
        self
    }

    /// How many WebSockets may be open. The default is 4,096.
    pub fn connections(mut self, most: usize) -> Self {
        self.settings.connections = most;
        self
    }

    /// How many WebSockets of one address may be open; where an address has a range of the newer kind, all of the range. The
    /// default is a quarter of all, and as many as it wants for this machine itself. What is said here holds for every
    /// address: where all come by one, as through a proxy, say as many as there may be in all.
    pub fn per_address(mut self, most: usize) -> Self {
        self.settings.per_address = Some(most);
        self
    }

    /// How many connections may be open that are no WebSockets yet; more wait. The default is 256. One address may have a
    /// quarter of them, and not more than it may have WebSockets; connections that are more are closed at once.
    pub fn pending(mut self, most: usize) -> Self {
        self.settings.pending = most.max(1);
        self
    }

    /// How many subscriptions a connection may have. The default is 64.
    pub fn subscriptions(mut self, most: usize) -> Self {
        self.settings.subscriptions = most;
        self
    }

    /// How large a frame may be that a client sends. The default is 64 KiB.
    pub fn frame(mut self, bytes: usize) -> Self {
        self.settings.frame = bytes;
        self
    }

    /// How much may wait for a client that does not read: above half of it, changes are folded, above all of it, the client
    /// is closed. The default is 2 MiB. What waits for several is held once.
    pub fn outbox(mut self, bytes: usize) -> Self {
        self.settings.outbox = bytes;
        self
    }

    /// How long a connection may take to become a WebSocket, or to be answered: from when it is there, however its request
    /// comes, in one piece or byte by byte. The default is ten seconds.
    pub fn handshake(mut self, patience: Duration) -> Self {
        self.settings.handshake = patience;
        self
    }

    /// How often clients are pinged, and how long they may take to answer. The default is 20 seconds each. A client that is
    /// sent very much and reads it slowly comes to the ping late: as long as it reads, it is not asked again.
    pub fn ping(mut self, every: Duration, patience: Duration) -> Self {
        (self.settings.ping, self.settings.pong) = (every.max(Duration::from_millis(1)), patience);
        self
    }

    /// How often clients are told where the server is. The default is 30 seconds.
    pub fn bookmark(mut self, every: Duration) -> Self {
        self.settings.bookmark = every.max(Duration::from_millis(1));
        self
    }

    /// How long a client that is closed may take to read why. The default is five seconds.
    pub fn goodbye(mut self, patience: Duration) -> Self {
        self.settings.goodbye = patience;
        self
    }

    /// What else is shown under `/metrics`. What hub and factory count is added to it.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Starts it.
    ///
    /// # Errors
    ///
    /// Where the address cannot be listened on, or would let in everyone.
    pub async fn start(self) -> Result<Server, ServerError> {
        let Self { hub, listen, token, hosts, origins, settings, mut registry } = self;
        let token = match token {
            TokenFrom::Nowhere => None,
            TokenFrom::Given(token) => Some(token),
            TokenFrom::File(path) => match std::fs::read_to_string(&path) {
                Ok(text) => Some(Token::new(text.trim())),
                Err(source) => return Err(ServerError::TokenFile { path, source }),
            },
        };
        if let Some(problem) = token.as_ref().and_then(Token::problem) {
            return Err(ServerError::Token { problem });
        }
        if token.is_none() && !listen.ip().is_loopback() {
            return Err(ServerError::TokenWanted { address: listen });
        }
        let refused = |source| ServerError::Listen { address: listen, source };
        let listener = Door::listen(listen).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        hub.register_metrics(&mut registry);
        hub.factory().register_metrics(&mut registry);

        let Settings { connections, per_address, pending, handshake, .. } = settings;
        let quarter = (pending / 4).max(1);
        let in_line = Addresses::new(Share::of(pending, per_address.map(|most| most.min(quarter))));
        let door = Door::new(listener, pending, in_line, Arc::clone(hub.metrics()), handshake);

        let phase = watch::Sender::new(Phase::Running);
        let (open, opened) = watch::channel(0);
        let app = App {
            hub,
            access: Access::new(token, hosts, origins),
            settings,
            phase: phase.subscribe(),
            open,
            addresses: Addresses::new(Share::of(connections, per_address)),
            registry,
        };
        let router = routes::router(Arc::new(app));
        let mut ending = phase.subscribe();
        let task = tokio::spawn(async move {
            let ended = async move {
                // An error is the end as well: nobody is left to say it.
                let _ = ending.wait_for(|phase| *phase >= Phase::Ending).await;
            };
            let served = axum::serve(door, router.into_make_service_with_connect_info::<super::door::Peer>());
            if let Err(error) = served.with_graceful_shutdown(ended).await {
                tracing::error!(%error, "the server has ended");
            }
        });
        Ok(Server { address, phase, open: opened, task })
    }
}
