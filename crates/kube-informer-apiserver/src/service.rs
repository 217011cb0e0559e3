//! The server as a `tower` service: for a client in the same process, and under every connection.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::body::Body;
use crate::handler::Handler;
use crate::status::ApiError;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Answers HTTP requests without a socket; a cheap clone.
///
/// `kube_client::Client::new(server.service(), "default")` makes a client of it.
#[derive(Clone)]
pub struct Service {
    pub(crate) handler: Arc<Handler>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}

impl Service {
    async fn answer<B>(self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send,
        B::Error: Into<BoxError>,
    {
        let limit = self.handler.settings.body_limit;
        let (parts, body) = request.into_parts();
        let body = match Limited::new(body, limit).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return self.handler.refuse(&parts, ApiError::too_large(limit));
            }
            // The client is gone, or its body makes no sense.
            Err(error) => {
                let error = ApiError::bad_request(format!("reading the request's body failed: {error}"));
                return self.handler.refuse(&parts, error);
            }
        };
        self.handler.handle(Request::from_parts(parts, body)).await
    }
}

impl<B> tower_service::Service<Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

impl<B> hyper::service::Service<Request<B>> for Service
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}
