//! The server: where it is, who one is there, and one request after the other.
//!
//! Promised:
//!
//! 1. A connection that is made here, and not out of somebody's client, has the timeouts and keepalives that watches
//!    need: nothing is retried below the reflector, a dead peer is found, an idle watch is left alone.
//! 2. Responses come as they are: never compressed, chunk by chunk, nothing is copied.
//! 3. What fails says why, down to the last cause; that nobody listens is told from everything else.
//! 4. Credentials that the server does not accept any more are read anew, from where they came, by one at a time; and so is
//!    the authority, where the server's certificate is not of it.
//! 5. A resource that is not served is gone only if that is proven.
//!
//! It holds no task of its own; what its client holds ends with the last clone.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING};
use kube_client::client::Body;
use kube_client::{Client, Config};

use self::body::Stream;
use self::gather::Gather;
use self::pulse::Allowed;
use crate::encoding::ServerVersion;
use crate::reflector::transport::{Absence, Failure, Request, Response, Transport};
use crate::resource::Resource;

// Where the server is, and who one is there.
mod address;
mod agent;
mod client;
pub(crate) mod gather;
mod line;
mod login;
mod pulse;
mod source;
mod straight;

// One request.
mod body;
pub(crate) mod cause;
mod fetch;
mod retry_after;

// What the server is, and what it serves.
mod absence;
mod discovery;
mod resolve;
mod version;

pub use self::resolve::{Catalog, CatalogError, NotFound, ResolveError};
pub use self::source::{ConnectError, Source};

/// A server, as somebody. Clones are the same connection.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    /// Which client the last request of this clone was sent with.
    used: AtomicU64,
    /// How long what comes over watches of this clone may wait.
    gather: Option<Gather>,
}

struct Shared {
    current: RwLock<Current>,
    origin: Origin,
    /// Held by the one who reads the credentials anew.
    reloading: tokio::sync::Mutex<()>,
    version: OnceLock<ServerVersion>,
}

struct Current {
    /// How many clients there were before this one.
    number: u64,
    client: Client,
}

/// Where the client came from, and comes from again.
enum Origin {
    /// From somebody who knows what to do about its credentials.
    Client,
    Config(Box<Config>),
    Source {
        source: Box<Source>,
        /// The server that it led to: credentials are read anew, but never for another cluster.
        server: http::Uri,
    },
}

/// How long it may take to read credentials anew: some come from programs, which may wait for somebody.
const PATIENCE: Duration = Duration::from_secs(60);

impl Connection {
    /// A client as it is: with its retries, timeouts and credentials.
    pub(crate) fn new(client: Client) -> Self {
        Self::of(client, Origin::Client)
    }

    /// What a configuration says, with the timeouts and keepalives that watches need.
    pub(crate) async fn from_config(config: Config) -> Result<Self, ConnectError> {
        let client = client::build(config.clone()).await?;
        Ok(Self::of(client, Origin::Config(Box::new(config))))
    }

    /// What the kubeconfig says, or, where there is none, the cluster that this process runs in.
    pub(crate) async fn try_default() -> Result<Self, ConnectError> {
        Self::from_source(Source::default()).await
    }

    /// What a source says.
    pub(crate) async fn from_source(source: Source) -> Result<Self, ConnectError> {
        let (config, source) = source.load().await?;
        let server = config.cluster_url.clone();
        Ok(Self::of(client::build(config).await?, Origin::Source { source: Box::new(source), server }))
    }

    fn of(client: Client, origin: Origin) -> Self {
        let shared = Shared {
            current: RwLock::new(Current { number: 0, client }),
            origin,
            reloading: tokio::sync::Mutex::default(),
            version: OnceLock::new(),
        };
        Self { shared: Arc::new(shared), used: AtomicU64::new(0), gather: None }
    }

    /// The same, and what comes over its watches may wait. With somebody's own client, or through a proxy, nothing does.
    pub(crate) fn gathering(&self, gather: &Gather) -> Self {
        Self { gather: Some(gather.clone()), ..self.clone() }
    }

    /// The client in use, for what else is to be asked of the server. Another one takes its place when credentials are
    /// read anew.
    pub(crate) fn client(&self) -> Client {
        self.current().1
    }

    /// Where the server is; `None` where somebody's own client knows it.
    pub(crate) fn server(&self) -> Option<&http::Uri> {
        match &self.shared.origin {
            Origin::Client => None,
            Origin::Config(config) => Some(&config.cluster_url),
            Origin::Source { server, .. } => Some(server),
        }
    }

    fn current(&self) -> (u64, Client) {
        let current = self.shared.current.read().unwrap_or_else(PoisonError::into_inner);
        (current.number, current.client.clone())
    }

    /// Sends a GET.
    async fn get(&self, uri: &str, accept: &str) -> Result<Response, Failure> {
        let request = http::Request::get(uri)
            .header(ACCEPT, accept)
            // Else servers compress each event of a watch by itself.
            .header(ACCEPT_ENCODING, "identity")
            .body(Body::empty())
            .map_err(|error| Failure { refused: false, untrusted: false, message: format!("{uri}: {error}") })?;
        let (number, client) = self.current();
        self.used.fetch_max(number, Ordering::Relaxed);
        let mut response = client.send(request).await.map_err(|error| {
            let failure = cause::failure(&error);
            let untrusted = cause::is_not_trusted(&failure.message) && self.has_authorities_to_read();
            Failure { untrusted, ..failure }
        })?;
        let gather = response.extensions_mut().remove::<Allowed>().zip(self.gather.clone());
        let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        Ok(Response {
            status: response.status().as_u16(),
            content_type: text(http::header::CONTENT_TYPE).map(str::to_owned),
            retry_after: text(http::header::RETRY_AFTER).and_then(retry_after::read),
            body: Box::new(Stream { body: response.into_body(), gather }),
        })
    }

    /// Whether authorities come from where others may be by now.
    fn has_authorities_to_read(&self) -> bool {
        match &self.shared.origin {
            Origin::Client => false,
            Origin::Config(config) => config.root_cert_file.is_some(),
            Origin::Source { .. } => true,
        }
    }

    async fn new_client(&self) -> Result<Client, ConnectError> {
        let config = match &self.shared.origin {
            Origin::Client => return Ok(self.client()),
            Origin::Config(config) => Config::clone(config),
            Origin::Source { source, server } => {
                let (config, _) = source.load().await?;
                if config.cluster_url != *server {
                    let (before, now) = (server.to_string(), config.cluster_url.to_string());
                    return Err(ConnectError::Moved { before, now });
                }
                config
            }
        };
        client::build(config).await
    }
}

impl Transport for Connection {
    async fn send(&self, request: Request) -> Result<Response, Failure> {
        self.get(&request.uri(), request.accept).await
    }

    async fn reload_credentials(&self) {
        if matches!(self.shared.origin, Origin::Client) {
            return;
        }
        let _one = self.shared.reloading.lock().await;
        // Many requests fail at once when a token expires. What was refused had been sent with an older client then.
        if self.current().0 > self.used.load(Ordering::Relaxed) {
            return;
        }
        let client = tokio::time::timeout(PATIENCE, self.new_client()).await;
        match client.unwrap_or(Err(ConnectError::Slow(PATIENCE))) {
            Ok(client) => {
                let mut current = self.shared.current.write().unwrap_or_else(PoisonError::into_inner);
                *current = Current { number: current.number + 1, client };
            }
            // What there is may be accepted again, and what there is to be read may be there later.
            Err(error) => {
                let error = cause::chain(&error);
                tracing::warn!(
                    error,
                    "credentials and authorities cannot be read anew; what was read before is used"
                );
            }
        }
    }

    async fn absence(&self, resource: &Resource) -> Absence {
        self.prove_absence(resource).await
    }
}

impl Clone for Connection {
    fn clone(&self) -> Self {
        let used = AtomicU64::new(self.used.load(Ordering::Relaxed));
        Self { shared: Arc::clone(&self.shared), used, gather: self.gather.clone() }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Nothing of the credentials.
        f.debug_struct("Connection").field("clients", &(self.current().0 + 1)).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
