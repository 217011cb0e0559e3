//! What is answered in the server's place.
//!
//! Errors are `Status` objects with the reasons, messages and details that a
//! kube-apiserver gives, written in the encoding that the request accepts, as
//! the server does. Some errors never are a `Status`: an unserved path and a
//! request refused by priority and fairness are plain text, a load balancer's
//! error is an HTML page.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::event::WatchEvent;
use super::frames::Format;
use super::protobuf;

/// An answer that the server did not give.
#[derive(Debug, Clone)]
pub struct Answer {
    code: StatusCode,
    headers: HeaderMap,
    body: Body,
}

#[derive(Debug, Clone)]
enum Body {
    /// A `Status`, in whatever encoding the request accepts.
    Status(Value),
    Raw(Bytes),
}

impl Answer {
    /// 401: the credentials are not, or no longer, valid.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::status(401, "Unauthorized", "Unauthorized")
    }

    /// 403: the user may not do this.
    #[must_use]
    pub fn forbidden() -> Self {
        let message = "pods is forbidden: User \"system:serviceaccount:default:default\" cannot list resource \
                       \"pods\" in API group \"\" at the cluster scope";
        Self::status(403, "Forbidden", message).details(json!({ "kind": "pods" }))
    }

    /// 404 as a `Status`: the object does not exist.
    #[must_use]
    pub fn not_found() -> Self {
        Self::status(404, "NotFound", "the server could not find the requested resource").details(json!({}))
    }

    /// 404 as plain text: nothing is served under this path.
    #[must_use]
    pub fn not_served() -> Self {
        Self::raw(404, "text/plain; charset=utf-8", "404 page not found\n")
    }

    /// 410: the version is too old. A server that has accepted a watch says so
    /// inside the stream: see `On::error_event`.
    #[must_use]
    pub fn gone() -> Self {
        Self::status(410, "Expired", "too old resource version: 1 (1000)")
    }

    /// 410 for the next page of a list.
    #[must_use]
    pub fn continue_expired() -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can \
                       start a new list without the continue parameter.";
        Self::status(410, "Expired", message)
    }

    /// 422: the server does not know streaming lists.
    #[must_use]
    pub fn no_streaming_lists() -> Self {
        let why = "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
        let message = format!("ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: {why}");
        Self::status(422, "Invalid", &message).details(json!({
            "group": "meta.k8s.io",
            "kind": "ListOptions",
            "causes": [{ "reason": "FieldValueForbidden", "message": why, "field": "sendInitialEvents" }],
        }))
    }

    /// 429 as a `Status`, with Retry-After.
    #[must_use]
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        Self::status(
            429,
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later",
        )
        .details(json!({ "retryAfterSeconds": retry_after_seconds }))
        .retry_after(retry_after_seconds)
    }

    /// 429 as priority and fairness writes it: plain text, with Retry-After.
    #[must_use]
    pub fn overloaded(retry_after_seconds: u32) -> Self {
        Self::raw(429, "text/plain; charset=utf-8", "Too many requests, please try again later.\n")
            .retry_after(retry_after_seconds)
    }

    /// 500: the server cannot reach its store.
    #[must_use]
    pub fn internal_error() -> Self {
        let why = "etcdserver: request timed out";
        Self::status(500, "InternalError", &format!("Internal error occurred: {why}"))
            .details(json!({ "causes": [{ "message": why }] }))
    }

    /// 503: the server is starting, stopping, or not there.
    #[must_use]
    pub fn unavailable() -> Self {
        Self::status(503, "ServiceUnavailable", "the server is currently unable to handle the request")
    }

    /// 504: the server has not yet come to the version that was asked for.
    #[must_use]
    pub fn too_large_version() -> Self {
        Self::status(504, "Timeout", "Timeout: Too large resource version: 1000, current: 1").details(json!({
            "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
            "retryAfterSeconds": 1,
        }))
    }

    /// A page for people, from something that stands between.
    #[must_use]
    pub fn html(code: u16) -> Self {
        let page = format!(
            "<!DOCTYPE html>\n<html><head><title>{code}</title></head><body><h1>{code}</h1></body></html>\n"
        );
        Self::raw(code, "text/html; charset=utf-8", page)
    }

    /// What `/version` says on a server of this minor version.
    #[must_use]
    pub fn version(major: u32, minor: u32) -> Self {
        let version = json!({
            "major": major.to_string(),
            "minor": minor.to_string(),
            "gitVersion": format!("v{major}.{minor}.0"),
            "gitCommit": "0000000000000000000000000000000000000000",
            "gitTreeState": "clean",
            "buildDate": "2025-01-01T00:00:00Z",
            "goVersion": "go1.24.0",
            "compiler": "gc",
            "platform": "linux/amd64",
        });
        Self::raw(200, "application/json", version.to_string())
    }

    /// Any other `Status`.
    ///
    /// # Panics
    ///
    /// If the code is no HTTP status.
    #[must_use]
    pub fn status(code: u16, reason: &str, message: &str) -> Self {
        let status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        });
        Self { code: status_code(code), headers: HeaderMap::new(), body: Body::Status(status) }
    }

    /// Anything at all.
    ///
    /// # Panics
    ///
    /// If the code is no HTTP status, or the type no header value.
    #[must_use]
    pub fn raw(code: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_str(content_type).expect("a Content-Type is a header value"),
        );
        Self { code: status_code(code), headers, body: Body::Raw(body.into()) }
    }

    /// The details of a `Status`.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        if let Body::Status(status) = &mut self.body {
            status["details"] = details;
        }
        self
    }

    /// Another message in a `Status`.
    #[must_use]
    pub fn message(mut self, message: &str) -> Self {
        if let Body::Status(status) = &mut self.body {
            status["message"] = message.into();
        }
        self
    }

    /// Asks to come back after so many seconds.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        self.header("retry-after", &seconds.to_string())
    }

    /// Adds a header.
    ///
    /// # Panics
    ///
    /// If name or value cannot be one.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().expect("a header name");
        self.headers.insert(name, HeaderValue::from_str(value).expect("a header value"));
        self
    }

    /// The HTTP status.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.code.as_u16()
    }

    /// The answer as the request wants it.
    pub(crate) fn response(&self, accept: &str) -> http::Response<Bytes> {
        let (body, content_type) = match &self.body {
            Body::Raw(body) => (body.clone(), None),
            Body::Status(status) => match accepted(accept) {
                Format::Json => (Bytes::from(format!("{status}\n")), Some("application/json")),
                Format::Protobuf => {
                    (status_document(status).into(), Some("application/vnd.kubernetes.protobuf"))
                }
            },
        };
        let mut response = http::Response::new(body);
        *response.status_mut() = self.code;
        *response.headers_mut() = self.headers.clone();
        if let Some(content_type) = content_type {
            response.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(content_type));
        }
        response
    }

    /// The answer as the `ERROR` event of a stream; a raw body becomes the
    /// message of a `Status`.
    pub(crate) fn error_event(&self, format: Format) -> WatchEvent {
        let status = match &self.body {
            Body::Status(status) => status.clone(),
            Body::Raw(body) => {
                let made = Self::status(self.code(), "Unknown", &String::from_utf8_lossy(body));
                let Body::Status(status) = made.body else { return made.error_event(format) };
                status
            }
        };
        let object = match format {
            Format::Json => status.to_string().into_bytes(),
            Format::Protobuf => status_document(&status),
        };
        WatchEvent::new(format, "ERROR", object)
    }

    /// How the transcript names it.
    pub(crate) fn label(&self) -> String {
        match self.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()) {
            Some(seconds) => format!("answer {} retry-after {seconds}", self.code()),
            None => format!("answer {}", self.code()),
        }
    }
}

/// The encoding that a request wants: the first of its Accept that is known.
pub(crate) fn accepted(accept: &str) -> Format {
    accept.split(',').find_map(Format::of).unwrap_or(Format::Json)
}

fn status_code(code: u16) -> StatusCode {
    StatusCode::from_u16(code).expect("an HTTP status")
}

/// A `Status` in protobuf. As the server does, it writes empty texts, too.
fn status_document(status: &Value) -> Vec<u8> {
    let mut meta = Vec::new();
    for number in 1..=3 {
        protobuf::put_bytes(&mut meta, number, b"");
    }
    let mut message = Vec::new();
    protobuf::put_bytes(&mut message, 1, &meta);
    put_text(&mut message, 2, &status["status"]);
    put_text(&mut message, 3, &status["message"]);
    put_text(&mut message, 4, &status["reason"]);
    let details = &status["details"];
    if details.is_object() {
        let mut out = Vec::new();
        put_text(&mut out, 1, &details["name"]);
        put_text(&mut out, 2, &details["group"]);
        put_text(&mut out, 3, &details["kind"]);
        for cause in details["causes"].as_array().into_iter().flatten() {
            let mut inner = Vec::new();
            put_text(&mut inner, 1, &cause["reason"]);
            put_text(&mut inner, 2, &cause["message"]);
            put_text(&mut inner, 3, &cause["field"]);
            protobuf::put_bytes(&mut out, 4, &inner);
        }
        protobuf::put_number(&mut out, 5, details["retryAfterSeconds"].as_u64().unwrap_or(0));
        put_text(&mut out, 6, &details["uid"]);
        protobuf::put_bytes(&mut message, 5, &out);
    }
    protobuf::put_number(&mut message, 6, status["code"].as_u64().unwrap_or(0));
    protobuf::envelope("v1", "Status", &message)
}

fn put_text(out: &mut Vec<u8>, number: u64, text: &Value) {
    protobuf::put_bytes(out, number, text.as_str().unwrap_or_default().as_bytes());
}
