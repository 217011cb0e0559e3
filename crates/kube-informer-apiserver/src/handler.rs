//! From a parsed HTTP request to an answer.
//!
//! One request at a time, no state of its own. Whatever goes wrong becomes a `Status` with the real
//! server's code; nothing that a client sends makes it panic.

mod at;
mod documents;
mod resources;
mod reviews;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, RETRY_AFTER, VARY, WARNING};
use http::{Method, Request, Response, StatusCode};
use serde_json::Value;

use crate::api::Api;
use crate::auth::impersonate::{Deed, impersonated};
use crate::auth::{Tokens, User};
use crate::body::Body;
use crate::negotiate;
use crate::protobuf;
use crate::request::{self, Query, Route};
use crate::status::ApiError;

/// From this size on answers are compressed for those who take it, as on the real server.
const WORTH_COMPRESSING: usize = 128 * 1024;

/// What can be set.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Where clients reach the server, as discovery tells them.
    pub(crate) address: String,
    pub(crate) bookmark_interval: Duration,
    pub(crate) body_limit: usize,
}

/// Answers requests.
pub(crate) struct Handler {
    pub(crate) api: Arc<Api>,
    pub(crate) tokens: Tokens,
    pub(crate) settings: Settings,
}

/// An answer on its way out.
pub(crate) struct Reply {
    status: StatusCode,
    body: Body,
    /// Of the body; empty where there is none.
    media: &'static str,
    warnings: Vec<String>,
    retry_after: Option<u32>,
    /// Watches are sent event by event, never compressed.
    compressible: bool,
}

impl Reply {
    fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self::body(status, Body::whole(body))
    }

    fn value(status: u16, value: &Value) -> Self {
        Self::json(status, value.to_string())
    }

    fn body(status: u16, body: Body) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self {
            status,
            body,
            media: "application/json",
            warnings: Vec::new(),
            retry_after: None,
            compressible: true,
        }
    }

    fn text(status: u16, text: impl Into<Bytes>) -> Self {
        Self { media: "text/plain; charset=utf-8", ..Self::json(status, text) }
    }

    /// No body, and so no type of it.
    fn empty(status: u16) -> Self {
        Self { media: "", ..Self::json(status, "") }
    }

    fn with_warnings(self, warnings: Vec<String>) -> Self {
        Self { warnings, ..self }
    }
}

impl From<ApiError> for Reply {
    fn from(error: ApiError) -> Self {
        if error.plain {
            return Self::text(error.code, error.message);
        }
        let mut reply = Self::value(error.code, &error.to_json());
        reply.retry_after = error.retry_after;
        reply
    }
}

/// A request whose body has been read.
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a Method,
    pub(crate) headers: &'a http::HeaderMap,
    pub(crate) query: Query,
    pub(crate) body: &'a Bytes,
    pub(crate) user: User,
}

impl Handler {
    /// Answers a request.
    pub(crate) async fn handle(&self, request: Request<Bytes>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let reply = match self.answer(&parts, &body).await {
            Ok(reply) => reply,
            Err(error) => error.into(),
        };
        finish(reply, &parts.headers, parts.method == Method::HEAD).await
    }

    /// Refuses a request that could not be read.
    pub(crate) async fn refuse(&self, parts: &http::request::Parts, error: ApiError) -> Response<Body> {
        finish(error.into(), &parts.headers, parts.method == Method::HEAD).await
    }

    async fn answer(&self, parts: &http::request::Parts, body: &Bytes) -> Result<Reply, ApiError> {
        let route = request::route(&parts.uri)?;
        let query = Query::of(&parts.uri);
        request::timeout::check(&parts.method, &route, &query)?;
        let user = match (self.tokens.authenticate(&parts.headers), &route) {
            // Load balancers ask without a token.
            (Err(_), Route::Other(path))
                if documents::is_public(path) && !parts.headers.contains_key(AUTHORIZATION) =>
            {
                User::anonymous()
            }
            (user, _) => user?,
        };
        let path = parts.uri.path();
        let deed = Deed { method: &parts.method, path, route: &route, query: &query };
        let user = impersonated(user, &parts.headers, &deed)?;
        // A path that does not exist is told before a kind that is not known.
        if let Route::Resource(target) = &route
            && self.api.registry.find(&target.group, &target.version, &target.plural).is_none()
        {
            return Err(self.nowhere(&target.group, ApiError::unknown_path()));
        }
        // From here on a body is JSON, whatever it came as.
        let json = match content_type(&parts.headers).as_str() {
            // There are no patches in protobuf.
            protobuf::MEDIA_TYPE if !body.is_empty() && parts.method != Method::PATCH => {
                Some(protobuf::read(body)?.to_string().into())
            }
            _ => None,
        };
        let body = json.as_ref().unwrap_or(body);
        let asked = Asked { method: &parts.method, headers: &parts.headers, query, body, user };
        match route {
            Route::Resource(target) => self.resource(&asked, &target).await,
            other => self.document(&asked, &other),
        }
    }
}

/// The media type of a request's body, without parameters. Where those are malformed, it is none that is known.
fn content_type(headers: &http::HeaderMap) -> String {
    let header = headers.get(CONTENT_TYPE).and_then(|h| h.to_str().ok()).unwrap_or_default();
    let (media_type, parameters) = header.split_once(';').unwrap_or((header, ""));
    // One semicolon may stand at the end.
    let mut all = parameters.split(';').map(str::trim);
    let well_formed = parameters.trim().is_empty()
        || all.all(|one| one.split_once('=').is_some_and(|(name, _)| !name.trim().is_empty()));
    match well_formed {
        true => media_type.trim().to_ascii_lowercase(),
        false => header.to_owned(),
    }
}

/// Writes the headers; compresses where that is wanted and worth it.
async fn finish(reply: Reply, headers: &http::HeaderMap, head: bool) -> Response<Body> {
    let (body, gzip) = match head {
        true => (Body::whole(Bytes::new()), false),
        false if reply.compressible && negotiate::takes_gzip(headers) => {
            reply.body.gzipped_above(WORTH_COMPRESSING).await
        }
        false => (reply.body, false),
    };
    let mut response = Response::new(body);
    *response.status_mut() = reply.status;
    let out = response.headers_mut();
    if !reply.media.is_empty() {
        out.insert(CONTENT_TYPE, HeaderValue::from_static(reply.media));
    }
    out.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if gzip {
        out.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        out.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    if let Some(seconds) = reply.retry_after {
        out.insert(RETRY_AFTER, seconds.into());
    }
    for warning in reply.warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            out.append(WARNING, value);
        }
    }
    response
}
