//! Objects to the server, many at a time.
//!
//! The steps of one object are in order, objects are in none. A request that
//! is told to wait (429) waits as long as it was told, a bounded number of
//! times; nothing else is tried again. An object that fails does not stop the
//! others, until so many have failed that something else must be wrong.

use std::fmt;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

use super::{Object, Step};
use crate::http::{Endpoint, Response};

/// How often one request waits on a server that asks for it.
const PATIENCE: u32 = 20;

/// After so many failures the rest is not tried.
const HOPELESS: usize = 100;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// How many objects.
    pub objects: usize,
    /// How many requests that took, those that had to wait included.
    pub requests: u64,
    /// How often the server asked to wait.
    pub throttled: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// One object that could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// `namespace/name`.
    pub key: String,
    /// The method and path.
    pub request: String,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// What the server said, or why there was no answer.
    pub message: String,
}

/// Some objects could not be written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Failed {
    /// Which and why, in no order.
    pub failures: Vec<Failure>,
    /// What was written all the same.
    pub written: Written,
}

/// Requests of one writer, counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) requests: u64,
    pub(super) throttled: u64,
}

/// Writes objects into a namespace that exists, so many at a time, each from
/// its creation through all its steps.
pub async fn write_all(
    endpoint: &Endpoint,
    namespace: &str,
    objects: impl IntoIterator<Item = Object>,
    parallelism: usize,
) -> Result<Written, Failed> {
    let start = Instant::now();
    let mut written = Written { objects: 0, requests: 0, throttled: 0, elapsed: Duration::ZERO };
    let mut failures = Vec::new();
    let mut results = stream::iter(objects)
        .map(|object| async move {
            let mut counts = Counts::default();
            let result = write(endpoint, namespace, &object, &mut counts).await;
            (result, counts)
        })
        .buffer_unordered(parallelism.max(1));
    while let Some((result, counts)) = results.next().await {
        written.requests += counts.requests;
        written.throttled += counts.throttled;
        match result {
            Ok(()) => written.objects += 1,
            Err(failure) => failures.push(failure),
        }
        if failures.len() >= HOPELESS {
            break;
        }
    }
    drop(results);
    written.elapsed = start.elapsed();
    if failures.is_empty() { Ok(written) } else { Err(Failed { failures, written }) }
}

async fn write(
    endpoint: &Endpoint,
    namespace: &str,
    object: &Object,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let path = format!("{}?fieldManager={}", object.kind.path(namespace), object.manager);
    let key = format!("{namespace}/{}", object.name);
    send(endpoint, Method::POST, &path, "application/json", &object.manifest, &key, counts).await?;
    for step in &object.steps {
        apply(endpoint, namespace, object.kind, &object.name, step, counts).await?;
    }
    Ok(())
}

/// Writes one step of an object.
pub(super) async fn apply(
    endpoint: &Endpoint,
    namespace: &str,
    kind: super::Kind,
    name: &str,
    step: &Step,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let path = format!("{}/{name}/status?fieldManager={}", kind.path(namespace), step.manager);
    let key = format!("{namespace}/{name}");
    send(endpoint, Method::PATCH, &path, "application/merge-patch+json", &step.patch, &key, counts).await
}

async fn send(
    endpoint: &Endpoint,
    method: Method,
    path: &str,
    content_type: &'static str,
    body: &Value,
    key: &str,
    counts: &mut Counts,
) -> Result<(), Failure> {
    let failure = |status: Option<u16>, message: String| Failure {
        key: key.to_owned(),
        request: format!("{method} {path}"),
        status,
        message,
    };
    for _ in 0..PATIENCE {
        counts.requests += 1;
        let answer = endpoint
            .send_json(method.clone(), path, content_type, body)
            .await
            .map_err(|error| failure(None, format!("{error:#}")))?;
        if answer.status.is_success() {
            return Ok(());
        }
        if answer.status != StatusCode::TOO_MANY_REQUESTS {
            return Err(failure(Some(answer.status.as_u16()), message(&answer)));
        }
        counts.throttled += 1;
        tokio::time::sleep(retry_after(&answer.headers)).await;
    }
    Err(failure(Some(429), format!("the server asked to wait {PATIENCE} times")))
}

/// How long the server asks to wait; a second if it does not say.
fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(1))
}

/// The message of a `Status`, or the whole answer.
fn message(answer: &Response) -> String {
    let status = answer.json().ok();
    let message = status.as_ref().and_then(|status| status["message"].as_str());
    message.map_or_else(|| answer.text().trim().to_owned(), str::to_owned)
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: ", self.key, self.request)?;
        match self.status {
            Some(status) => write!(f, "{status}: {}", self.message),
            None => write!(f, "{}", self.message),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects were written, {} were not:", self.written.objects, self.failures.len())?;
        self.failures.iter().take(10).try_for_each(|failure| write!(f, "\n  {failure}"))
    }
}

impl std::error::Error for Failed {}
