//! The feed over WebSocket.
//!
//! | path | is |
//! |---|---|
//! | `/v1/stream` | the WebSocket: [`message`](crate::message) says what is spoken |
//! | `/healthz` | 200 while the server runs |
//! | `/readyz` | 200 while everything that it was started for is live; otherwise 503. Why is said to those who know the token, where there is one |
//! | `/metrics` | what is counted, for Prometheus |
//!
//! Promised:
//!
//! 1. A client that names the subprotocol [`SUBPROTOCOL`](crate::message::SUBPROTOCOL) subscribes to what it wants. One that
//!    names none is subscribed to everything that the server was started for: any WebSocket client just works. One that names
//!    others only is refused.
//! 2. Without a token the server listens on loopback addresses only. With one, it is wanted for everything but `/healthz` and
//!    `/readyz`: in `Authorization: Bearer …`, or, for browsers, as a subprotocol (see [`bearer_subprotocol`]). Never in an
//!    address, where logs would keep it.
//! 3. A page of another site cannot connect through somebody's browser: its `Origin` is refused, and so is a `Host` that is
//!    a name which was not allowed, as a name that was made to point here would be.
//! 4. Everything is bounded: connections, those of one address, requests that are not complete, subscriptions, frames,
//!    requests that wait, what waits for a client. One address does not take the places of all others, whatever it does.
//! 5. What a client sends wrongly is said to that client. Only a frame that cannot be read, or is too large, ends its
//!    connection. Others notice nothing.
//! 6. A client that neither answers pings nor reads is closed; one that reads less than there is to tell is told so, and closed.
//!    Who reads at all is given its snapshot, however long that takes and however much changes meanwhile.
//! 7. At shutdown, everyone is told from where to go on.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

// How it is set up.
mod builder;

// The way in: connections, who may come, what is asked for.
mod access;
mod addresses;
mod door;
mod routes;

// One WebSocket.
mod connection;

pub use access::bearer_subprotocol;
pub use builder::{Builder, ServerError};

use crate::hub::Hub;

/// See the [module](self). Dropping it ends it at once, without goodbyes.
pub struct Server {
    address: SocketAddr,
    phase: watch::Sender<Phase>,
    /// How many connections there are.
    open: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

/// Where a server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    /// Connections say goodbye.
    Ending,
    /// Connections end, whatever they do.
    Over,
}

impl Server {
    /// A server for a hub.
    pub fn builder(hub: Hub) -> Builder {
        Builder::new(hub)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where a WebSocket client connects: `ws://127.0.0.1:8080/v1/stream`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("ws://{}/v1/stream", self.address)
    }

    /// How many WebSockets are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        *self.open.borrow()
    }

    /// Says goodbye to everyone, with the cursor from which to go on, and waits until they have it, or the deadline has
    /// passed. Tells whether all had it.
    pub async fn shutdown(mut self, deadline: Duration) -> bool {
        self.phase.send_replace(Phase::Ending);
        let gone = tokio::time::timeout(deadline, self.open.wait_for(|open| *open == 0)).await.is_ok();
        self.phase.send_replace(Phase::Over);
        // Those that were cut have nothing left to do.
        let _ = self.open.wait_for(|open| *open == 0).await;
        self.task.abort();
        // It was aborted: that is its end.
        let _ = (&mut self.task).await;
        gone
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.phase.send_replace(Phase::Over);
        self.task.abort();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .field("connections", &self.connections())
            .finish_non_exhaustive()
    }
}
