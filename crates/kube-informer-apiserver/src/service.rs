//! The server as a `tower` service: for a client in the same process, and under every connection.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::FutureExt;
use http::{Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::Notify;

use crate::body::Body;
use crate::faults::{Faults, HangUp, Line};
use crate::handler::Handler;
use crate::status::ApiError;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, HangUp>> + Send>>;

/// Answers HTTP requests without a socket; a cheap clone.
///
/// `kube_client::Client::new(server.service(), "default")` makes a client of it. The only error is a fault
/// that hangs up ([`crate::faults`]).
#[derive(Clone)]
pub struct Service {
    handler: Arc<Handler>,
    faults: Faults,
    /// Nobody has taken the faults' handle as long as this is false: then they cost nothing.
    armed: Arc<AtomicBool>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}

impl Service {
    pub(crate) fn new(handler: Handler) -> Self {
        Self { handler: Arc::new(handler), faults: Faults::default(), armed: Arc::default() }
    }

    /// The faults; they reach the requests that come from now on.
    pub(crate) fn faults(&self) -> Faults {
        self.armed.store(true, Ordering::Release);
        self.faults.clone()
    }

    /// The same service for one connection, which its owner closes when `kill` is notified.
    pub(crate) fn on_connection(&self, id: u64, kill: Arc<Notify>) -> OnConnection {
        OnConnection { service: self.clone(), id, kill, begun: Arc::default() }
    }

    async fn answer<B>(self, line: Line, request: Request<B>) -> Result<Response<Body>, HangUp>
    where
        B: http_body::Body + Send,
        B::Error: Into<BoxError>,
    {
        if !self.armed.load(Ordering::Acquire) {
            return Ok(self.handle(request).await);
        }
        let forward = async |request| Ok(self.handle(request).await);
        let response = self.faults.pass(line, request, forward).await?;
        Ok(response.map(Body::faulty))
    }

    async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send,
        B::Error: Into<BoxError>,
    {
        let limit = self.handler.settings.body_limit;
        let (parts, body) = request.into_parts();
        let body = match Limited::new(body, limit).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return self.handler.refuse(&parts, ApiError::too_large(limit)).await;
            }
            // The client is gone, or its body makes no sense.
            Err(error) => {
                let error = ApiError::bad_request(format!("reading the request's body failed: {error}"));
                return self.handler.refuse(&parts, error).await;
            }
        };
        // A bug must not take the connection, and the other requests on it, along.
        let head = parts.clone();
        let handled = AssertUnwindSafe(self.handler.handle(Request::from_parts(parts, body))).catch_unwind();
        match handled.await {
            Ok(response) => response,
            Err(_) => {
                tracing::error!(method = %head.method, uri = %head.uri, "the server panicked; this is a bug");
                self.handler
                    .refuse(&head, ApiError::internal("the server panicked; its log says where"))
                    .await
            }
        }
    }
}

impl<B> tower_service::Service<Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = HangUp;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), HangUp>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answer {
        Box::pin(self.clone().answer(Line::in_process(), request))
    }
}

/// The service of one connection.
pub(crate) struct OnConnection {
    service: Service,
    id: u64,
    kill: Arc<Notify>,
    begun: Arc<AtomicBool>,
}

impl OnConnection {
    /// Turns true with the first request.
    pub(crate) fn begun(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.begun)
    }
}

impl<B> hyper::service::Service<Request<B>> for OnConnection
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = HangUp;
    type Future = Answer;

    fn call(&self, request: Request<B>) -> Answer {
        self.begun.store(true, Ordering::Release);
        let line = Line::of_connection(self.id, Arc::clone(&self.kill), ());
        Box::pin(self.service.clone().answer(line, request))
    }
}
