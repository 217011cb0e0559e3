//! A small HTTP server that nobody can hold up.
//!
//! Promised:
//!
//! 1. So many connections may be open; more wait in the kernel's queue.
//! 2. A connection has one request, which must have come completely in time, and must have been answered and read in time.
//!    Who says nothing, or reads nothing, is dropped, and its place is free.
//! 3. [`Serving::shutdown`] takes no more connections, lets what is being answered come to its end until the deadline, cuts
//!    the rest, and returns when none is left.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::middleware::{self, Next};
use axum::response::Response;
use http::header::CONNECTION;
use http::{HeaderValue, Method};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

mod door;

pub(crate) use door::Peer;

/// What a server bears.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections that are open.
    pub(crate) connections: u32,
    /// Until a request has come.
    pub(crate) request: Duration,
    /// Until it is answered, from when it has come.
    pub(crate) answer: Duration,
}

/// A server that runs. Dropped, it is told to end, and nobody waits for it.
#[derive(Debug)]
pub(crate) struct Serving {
    address: SocketAddr,
    phase: watch::Sender<Phase>,
    places: Arc<Semaphore>,
    limits: Limits,
    task: JoinHandle<()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Running,
    /// No more connections are taken.
    Ending,
    /// Those that are open are cut.
    Over,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connections: 512, request: seconds(5), answer: seconds(30) }
    }
}

impl Serving {
    /// Answers what comes on a listener.
    pub(crate) fn start(
        listener: TcpListener,
        router: Router,
        limits: Limits,
    ) -> Result<Self, std::io::Error> {
        let address = listener.local_addr()?;
        let phase = watch::Sender::new(Phase::Running);
        let places = Arc::new(Semaphore::new(limits.connections as usize));
        let door = door::Door::new(listener, Arc::clone(&places), limits, phase.subscribe());
        let router = router.layer(middleware::from_fn(one_request));
        let mut ending = phase.subscribe();
        let task = tokio::spawn(async move {
            let ended = async move {
                // An error is the end as well: nobody is left to say it.
                let _ = ending.wait_for(|phase| *phase >= Phase::Ending).await;
            };
            let served = axum::serve(door, router.into_make_service_with_connect_info::<Peer>());
            if let Err(error) = served.with_graceful_shutdown(ended).await {
                tracing::error!(%error, %address, "an HTTP server has ended");
            }
        });
        Ok(Self { address, phase, places, limits, task })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it: what is being answered has so long.
    pub(crate) async fn shutdown(mut self, deadline: Duration) {
        self.phase.send_replace(Phase::Ending);
        // It ends when all of its connections have.
        if tokio::time::timeout(deadline, &mut self.task).await.is_err() {
            self.phase.send_replace(Phase::Over);
            // A connection gives its place back when it has ended.
            let _ = self.places.acquire_many(self.limits.connections).await;
            self.task.abort();
            let _ = (&mut self.task).await;
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.phase.send_replace(Phase::Over);
        self.task.abort();
    }
}

/// Lets each connection have one request: so its time is bounded.
async fn one_request(request: Request, next: Next) -> Response {
    // What has no body has come as a whole.
    if let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<Peer>>()
        && matches!(*request.method(), Method::GET | Method::HEAD)
    {
        peer.heard();
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests;
