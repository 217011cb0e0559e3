//! The call, as HTTP.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Deserialize;

use super::{Outcome, Wakes, is_label};
use crate::http::Peer;

/// Where the resolver calls.
pub(crate) const PATH: &str = "/informer/incoming-request";

/// The largest body that is read.
const LARGEST: usize = 64 << 10;

/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(4);

/// What the resolver sends. How many requests there were changes nothing: one is enough.
#[derive(Debug, Deserialize)]
struct Call {
    #[serde(default, rename = "count")]
    _count: Option<i64>,
    #[serde(default)]
    svc: String,
    #[serde(default)]
    namespace: String,
}

/// Answers the resolver.
pub(crate) fn router(wakes: Wakes) -> Router {
    Router::new()
        .route(PATH, any(called))
        .fallback(async || answer(StatusCode::NOT_FOUND, format!("there are POST {PATH} and /metrics")))
        .with_state(wakes)
}

async fn called(
    State(wakes): State<Wakes>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    if request.method() != Method::POST {
        let mut response = answer(StatusCode::METHOD_NOT_ALLOWED, "it is called with POST".to_owned());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let (head, body) = request.into_parts();
    let body = match read(&head.headers, body).await {
        Ok(body) => body,
        Err((status, why)) => return answer(status, why),
    };
    peer.heard();
    let Call { svc, namespace, .. } = match serde_json::from_slice(&body) {
        Ok(call) => call,
        Err(error) => return answer(StatusCode::BAD_REQUEST, format!("the body cannot be read: {error}")),
    };
    for (field, value) in [("svc", &svc), ("namespace", &namespace)] {
        if !is_label(value) {
            let why = format!("the body's {field:?} must be a name, and is {}", shown(value));
            return answer(StatusCode::BAD_REQUEST, why);
        }
    }
    match wakes.wake(namespace.clone(), svc.clone()).await {
        Outcome::Woken(done) => answer(StatusCode::OK, done),
        Outcome::Unknown => {
            answer(StatusCode::NOT_FOUND, format!("no ElastiService is about the service {namespace}/{svc}"))
        }
        Outcome::Failed(why) => later(1, format!("{namespace}/{svc} was not woken: {why}")),
        Outcome::Late => later(1, format!("{namespace}/{svc} was not woken in time")),
        Outcome::Busy(why) => later(1, why.to_owned()),
    }
}

/// The whole body, if it is not too large and does not take too long.
async fn read(headers: &HeaderMap, body: Body) -> Result<axum::body::Bytes, (StatusCode, String)> {
    let too_large = || (StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {LARGEST} bytes"));
    let said = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|said| said > LARGEST as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(PATIENCE, to_bytes(body, LARGEST)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(_)) if said.is_none() => Err(too_large()),
        Ok(Err(error)) => Err((StatusCode::BAD_REQUEST, format!("the body cannot be read: {error}"))),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body did not come in time".to_owned())),
    }
}

/// To be asked again after so many seconds.
fn later(seconds: u32, why: String) -> Response {
    let mut response = answer(StatusCode::SERVICE_UNAVAILABLE, why);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

fn answer(status: StatusCode, message: String) -> Response {
    let body = serde_json::json!({ "message": message }).to_string();
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

/// The beginning of what somebody sent.
fn shown(text: &str) -> String {
    let short: String = text.chars().take(64).collect();
    format!("{short:?}")
}
