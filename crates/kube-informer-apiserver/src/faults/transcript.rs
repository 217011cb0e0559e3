//! What went through: one record per request, kept in order.
//!
//! A record appears when the request's head has been read, before any fault
//! acts on it, and is completed as the answer goes out. The transcript is
//! bounded: past its capacity the oldest ended records are forgotten, and
//! counted; records of requests in flight stay. Everything can be awaited;
//! awaiting looks at the records there are first, so that nothing is missed.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;
use tokio::sync::watch;

use super::lock;

/// How many records are kept unless told otherwise.
pub const CAPACITY: usize = 10_000;

/// One request and what became of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// Counts up from 1 in the order of arrival.
    pub id: u64,
    /// The connection it came on.
    pub connection: u64,
    /// The method.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The query as it was sent; empty if there was none.
    pub query: String,
    /// The Accept header; empty if there was none.
    pub accept: String,
    /// The Authorization header, for matchers and assertions.
    pub authorization: Option<String>,
    /// When it arrived, since the beginning.
    pub at: Duration,
    /// The status that the client was given.
    pub status: Option<u16>,
    /// The Content-Type that the client was given; empty before and without.
    pub content_type: String,
    /// The faults that acted on it, in order.
    pub faults: Vec<String>,
    /// How many bytes of the body were handed to the client's connection.
    pub bytes: u64,
    /// How many watch events were handed over whole. Only counted in answers
    /// to watches that are not compressed.
    pub events: u64,
    /// How it ended; `None` while it is in flight.
    pub end: Option<End>,
    /// When it ended, since the beginning.
    pub ended_at: Option<Duration>,
    /// How many bytes its body has, where the head said so: a connection lets
    /// go of such a body after its last byte, without asking for its end.
    pub(crate) length: Option<u64>,
}

/// What a request asks for, in the API server's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// One object, a subresource, or something that is no resource.
    Get,
    /// A collection.
    List,
    /// A stream of changes.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE, of one object or of a collection.
    Delete,
    /// Any other method.
    Other,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The whole answer was handed over.
    Complete,
    /// A fault cut it.
    Cut,
    /// The client went away first.
    ClientGone,
    /// The upstream server failed, before the answer (then the client got 502)
    /// or within (then the client's connection was cut).
    Upstream(String),
    /// A watch event was above the limit; the connection was cut.
    FrameTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

/// The transcript: a cheap handle.
#[derive(Debug, Clone)]
pub struct Requests {
    shared: Arc<Shared>,
    deadline: Duration,
}

/// Nothing in the transcript was as awaited within the deadline.
#[derive(Debug, Clone)]
pub struct NotSeen {
    deadline: Duration,
    /// What there was instead.
    pub requests: Vec<Request>,
}

#[derive(Debug)]
struct Shared {
    started: Instant,
    capacity: usize,
    log: Mutex<Log>,
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Log {
    records: VecDeque<Request>,
    last: u64,
    forgotten: u64,
}

/// Completes one record; a recorder dropped before the end was told says that
/// the client went away, unless it had got everything.
#[derive(Debug)]
pub(crate) struct Recorder {
    requests: Requests,
    id: u64,
}

impl Request {
    /// A record of which nothing is known but the method.
    pub(crate) fn arriving(method: Method) -> Self {
        Self {
            id: 0,
            connection: 0,
            method,
            path: String::new(),
            query: String::new(),
            accept: String::new(),
            authorization: None,
            at: Duration::ZERO,
            status: None,
            content_type: String::new(),
            faults: Vec::new(),
            bytes: 0,
            events: 0,
            end: None,
            ended_at: None,
            length: None,
        }
    }

    /// What it asks for.
    #[must_use]
    pub fn verb(&self) -> Verb {
        match self.method {
            Method::GET if matches!(self.param("watch").as_deref(), Some("true" | "1")) => Verb::Watch,
            Method::GET if is_collection(&self.path) => Verb::List,
            Method::GET => Verb::Get,
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ => Verb::Other,
        }
    }

    /// True for a watch.
    #[must_use]
    pub fn is_watch(&self) -> bool {
        self.verb() == Verb::Watch
    }

    /// True for a list of a collection.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.verb() == Verb::List
    }

    /// True while its answer is not complete.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.end.is_none()
    }

    /// A parameter of the query, decoded.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<String> {
        self.query.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(key) == name).then(|| decoded(value))
        })
    }

    /// The version that it asks for; `None` where it names none.
    #[must_use]
    pub fn resource_version(&self) -> Option<String> {
        self.param("resourceVersion").filter(|version| !version.is_empty())
    }

    /// True if a fault whose name contains this text acted on it.
    #[must_use]
    pub fn had(&self, fault: &str) -> bool {
        self.faults.iter().any(|name| name.contains(fault))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {} {}", self.id, self.method, self.path)?;
        if !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        match self.status {
            Some(status) => write!(f, " -> {status}, {} bytes, {} events", self.bytes, self.events)?,
            None => write!(f, " -> no answer")?,
        }
        if !self.faults.is_empty() {
            write!(f, ", faults: {}", self.faults.join("; "))?;
        }
        match &self.end {
            Some(end) => write!(f, ", {end:?}"),
            None => write!(f, ", open"),
        }
    }
}

impl Requests {
    pub(crate) fn new(capacity: usize) -> Self {
        let shared = Shared {
            started: Instant::now(),
            capacity,
            log: Mutex::default(),
            changed: watch::Sender::new(0),
        };
        Self { shared: Arc::new(shared), deadline: Duration::from_secs(30) }
    }

    /// The same transcript, awaited with another deadline than 30 seconds.
    #[must_use]
    pub fn within(&self, deadline: Duration) -> Self {
        Self { shared: self.shared.clone(), deadline }
    }

    /// All records that are kept, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Request> {
        lock(&self.shared.log).records.iter().cloned().collect()
    }

    /// The records that satisfy a condition, oldest first.
    #[must_use]
    pub fn matching(&self, mut condition: impl FnMut(&Request) -> bool) -> Vec<Request> {
        lock(&self.shared.log).records.iter().filter(|record| condition(record)).cloned().collect()
    }

    /// How many records satisfy a condition.
    #[must_use]
    pub fn count(&self, mut condition: impl FnMut(&Request) -> bool) -> usize {
        lock(&self.shared.log).records.iter().filter(|record| condition(record)).count()
    }

    /// The requests in flight.
    #[must_use]
    pub fn open(&self) -> Vec<Request> {
        self.matching(Request::is_open)
    }

    /// How many records were forgotten because there were too many.
    #[must_use]
    pub fn forgotten(&self) -> u64 {
        lock(&self.shared.log).forgotten
    }

    /// The number of the newest request; those that come later are above it.
    #[must_use]
    pub fn last_id(&self) -> u64 {
        lock(&self.shared.log).last
    }

    /// Awaits the first record that satisfies a condition, which may speak of
    /// its end or of the bytes and events that have gone out.
    pub async fn wait_for(&self, mut condition: impl FnMut(&Request) -> bool) -> Result<Request, NotSeen> {
        let mut found = None;
        self.wait_until(|records| {
            found = records.iter().find(|record| condition(record)).cloned();
            found.is_some()
        })
        .await?;
        Ok(found.expect("the wait ends when it is found"))
    }

    /// Awaits so many records that satisfy a condition.
    pub async fn wait_for_count(
        &self,
        count: usize,
        mut condition: impl FnMut(&Request) -> bool,
    ) -> Result<Vec<Request>, NotSeen> {
        let mut found = Vec::new();
        self.wait_until(|records| {
            found = records.iter().filter(|record| condition(record)).cloned().collect();
            found.len() >= count
        })
        .await?;
        Ok(found)
    }

    /// Awaits a condition on the whole transcript. Like every condition here, it
    /// is asked under the transcript's lock: it must not ask the transcript.
    pub async fn wait_until(
        &self,
        mut condition: impl FnMut(&VecDeque<Request>) -> bool,
    ) -> Result<(), NotSeen> {
        let mut changes = self.shared.changed.subscribe();
        let shared = self.shared.clone();
        let seen = changes.wait_for(|_| condition(&lock(&shared.log).records));
        match tokio::time::timeout(self.deadline, seen).await {
            Ok(Ok(_)) => Ok(()),
            // The sender lives in `shared`, so only the deadline leads here.
            _ => Err(NotSeen { deadline: self.deadline, requests: self.all() }),
        }
    }

    /// Opens a record; the number, the time and the end are filled in.
    pub(crate) fn begin(&self, mut record: Request) -> Recorder {
        let mut log = lock(&self.shared.log);
        log.last += 1;
        let id = log.last;
        record.id = id;
        record.at = self.shared.started.elapsed();
        log.records.push_back(record);
        if log.records.len() > self.shared.capacity
            && let Some(oldest) = log.records.iter().position(|record| record.end.is_some())
        {
            log.records.remove(oldest);
            log.forgotten += 1;
        }
        drop(log);
        self.shared.changed.send_modify(|version| *version += 1);
        Recorder { requests: self.clone(), id }
    }

    /// Ends a record from outside; the first end counts.
    pub(crate) fn end(&self, id: u64, end: End) {
        self.change(id, |record| record.end(end));
    }

    pub(crate) fn note(&self, id: u64, fault: &str) {
        self.change(id, |record| record.record.faults.push(fault.to_owned()));
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut Change<'_>)) {
        let elapsed = self.shared.started.elapsed();
        let mut log = lock(&self.shared.log);
        // Numbers ascend, so the record is found by bisection.
        if let Ok(at) = log.records.binary_search_by_key(&id, |record| record.id) {
            change(&mut Change { record: &mut log.records[at], elapsed });
        }
        drop(log);
        self.shared.changed.send_modify(|version| *version += 1);
    }
}

struct Change<'a> {
    record: &'a mut Request,
    elapsed: Duration,
}

impl Change<'_> {
    fn end(&mut self, end: End) {
        if self.record.end.is_none() {
            self.record.end = Some(end);
            self.record.ended_at = Some(self.elapsed);
        }
    }
}

impl Recorder {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn answered(&self, status: u16, content_type: &str, length: Option<u64>) {
        self.requests.change(self.id, |change| {
            change.record.status = Some(status);
            change.record.length = length;
            content_type.clone_into(&mut change.record.content_type);
        });
    }

    pub(crate) fn passed(&self, bytes: usize) {
        self.requests.change(self.id, |change| change.record.bytes += bytes as u64);
    }

    pub(crate) fn events(&self, count: u64) {
        if count > 0 {
            self.requests.change(self.id, |change| change.record.events += count);
        }
    }

    pub(crate) fn note(&self, fault: &str) {
        self.requests.note(self.id, fault);
    }

    pub(crate) fn end(&self, end: End) {
        self.requests.end(self.id, end);
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.requests.change(self.id, |change| {
            let whole = change.record.length == Some(change.record.bytes);
            change.end(if whole { End::Complete } else { End::ClientGone });
        });
    }
}

impl fmt::Display for NotSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not seen within {:?}; the requests were:", self.deadline)?;
        self.requests.iter().try_for_each(|request| write!(f, "\n  {request}"))
    }
}

impl std::error::Error for NotSeen {}

/// `/api/v1/[namespaces/N/]R` and `/apis/G/V/[namespaces/N/]R`.
fn is_collection(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let resource = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => return false,
    };
    matches!(resource, [_] | ["namespaces", _, _])
        && !matches!(resource, ["namespaces", _, "status" | "finalize"])
}

fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = (digit(bytes.next()), digit(bytes.next()));
                out.push(high.zip(low).map_or(b'?', |(high, low)| (high * 16 + low) as u8));
            }
            byte => out.push(byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests;
