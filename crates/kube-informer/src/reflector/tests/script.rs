//! A server that follows a script, and a sink that writes down what it is told.

use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Notify;

use super::*;
use crate::encoding::protobuf::MAGIC;
use crate::encoding::protobuf::reader::put_bytes;
use crate::encoding::{Codec, Rules};
use crate::reflector::transport::{Absence, Body, Chunk, Failure, Request, Response};
use crate::resource::Resource;

/// What the server answers to one request.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    Watch(Vec<Piece>),
    /// The same, in protobuf.
    Protobuf(Vec<Piece>),
    Body(String),
    Status {
        code: u16,
        body: String,
        retry_after: Option<u64>,
    },
    Html,
    Refused,
    /// The connection breaks before there is an answer.
    Lost,
    /// The server's certificate is of no authority that is known.
    Untrusted,
}

fn failure(message: &str) -> Failure {
    Failure { refused: false, untrusted: false, message: message.to_owned() }
}

/// A part of a watch. After the last one the server ends it.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text(String),
    Bytes(Vec<u8>),
    Wait(Duration),
    /// The connection breaks.
    Broken,
    /// Nothing more comes, and the connection stays.
    Hang,
}

impl Piece {
    pub(super) fn raw(line: &str) -> Self {
        Self::Text(format!("{line}\n"))
    }

    pub(super) fn event(kind: &str, object: String) -> Self {
        Self::raw(&format!(r#"{{"type":"{kind}","object":{object}}}"#))
    }

    pub(super) fn bookmark(version: u64, end: bool) -> Self {
        raw_bookmark(&version.to_string(), end)
    }

    pub(super) fn error(code: u16, reason: &str) -> Self {
        Self::event("ERROR", status_body(code, reason))
    }

    /// An event in protobuf.
    pub(super) fn protobuf(kind: &str, metadata: &[(u32, &[u8])]) -> Self {
        Self::protobuf_and(kind, metadata, &[])
    }

    /// The same of a pod with more behind its metadata.
    pub(super) fn protobuf_and(kind: &str, metadata: &[(u32, &[u8])], more: &[u8]) -> Self {
        let pod = [message(&[(1, &message(metadata))]).as_slice(), more].concat();
        let kinds = message(&[(1, b"v1"), (2, b"Pod")]);
        let object = [MAGIC, &message(&[(1, &kinds), (2, &pod)])].concat();
        let event = message(&[(1, kind.as_bytes()), (2, &message(&[(1, &object)]))]);
        let length = u32::try_from(event.len()).unwrap().to_be_bytes();
        Self::Bytes([&length, event.as_slice()].concat())
    }
}

/// The annotation of the bookmark that ends a streaming list.
const END: &str = "k8s.io/initial-events-end";

pub(super) fn raw_bookmark(version: &str, end: bool) -> Piece {
    saying(version, end.then_some("true"))
}

/// A bookmark whose annotation has this value.
pub(super) fn saying(version: &str, end: Option<&str>) -> Piece {
    let annotations = end.map(|value| format!(r#","annotations":{{"{END}":"{value}"}}"#)).unwrap_or_default();
    let object = format!(r#"{{"kind":"Pod","metadata":{{"resourceVersion":"{version}"{annotations}}}}}"#);
    Piece::event("BOOKMARK", object)
}

/// The same in protobuf.
pub(super) fn saying_protobuf(version: &str, end: &str) -> Piece {
    let annotation = message(&[(1, END.as_bytes()), (2, end.as_bytes())]);
    Piece::protobuf("BOOKMARK", &[(6, version.as_bytes()), (12, &annotation)])
}

/// A message of these fields.
pub(super) fn message(fields: &[(u32, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    fields.iter().for_each(|(number, field)| put_bytes(&mut bytes, *number, field));
    bytes
}

pub(super) fn pod(name: &str, version: u64) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"d","uid":"u-{name}","resourceVersion":"{version}"}}}}"#
    )
}

pub(super) fn page(objects: &[(&str, u64)], version: u64, token: &str) -> String {
    let items: Vec<String> = objects.iter().map(|(name, version)| pod(name, *version)).collect();
    let items = items.join(",");
    format!(
        r#"{{"kind":"PodList","metadata":{{"resourceVersion":"{version}","continue":"{token}"}},"items":[{items}]}}"#
    )
}

pub(super) fn list(objects: &[(&str, u64)], version: u64) -> String {
    page(objects, version, "")
}

fn status_body(code: u16, reason: &str) -> String {
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"{reason}","message":"m","code":{code}}}"#
    )
}

pub(super) fn status(code: u16, reason: &str) -> Answer {
    Answer::Status { code, body: status_body(code, reason), retry_after: None }
}

/// As servers answer that have streaming lists switched off.
pub(super) fn no_streaming_lists() -> Answer {
    let causes = r#"[{"reason":"FieldValueForbidden","message":"m","field":"sendInitialEvents"}]"#;
    let body = format!(
        r#"{{"kind":"Status","apiVersion":"v1","reason":"Invalid","code":422,"details":{{"causes":{causes}}}}}"#
    );
    Answer::Status { code: 422, body, retry_after: None }
}

pub(super) fn retry_after(code: u16, seconds: u64) -> Answer {
    Answer::Status { code, body: status_body(code, "TooManyRequests"), retry_after: Some(seconds) }
}

/// That a version is too large, as servers say it since 1.18.6, as those since 1.17.0 did, and as those before did.
pub(super) fn too_large() -> [Answer; 3] {
    let words = "Too large resource version";
    let causes = |reason: &str| format!(r#""details":{{"causes":[{{{reason}"message":"{words}"}}]}}"#);
    let parts = [
        format!(r#""message":"m",{}"#, causes(r#""reason":"ResourceVersionTooLarge","#)),
        format!(r#""message":"m",{}"#, causes("")),
        format!(r#""message":"Timeout: {words}: 9, current: 5","details":{{}}"#),
    ];
    parts.map(|parts| {
        let body = format!(r#"{{"kind":"Status","apiVersion":"v1","reason":"Timeout","code":504,{parts}}}"#);
        Answer::Status { code: 504, body, retry_after: None }
    })
}

/// The largest object that is read.
pub(super) const LIMIT: usize = 1 << 20;

/// A script and what came of it.
pub(super) struct Play {
    script: Arc<Script>,
    server: Arc<Server>,
    protobuf: bool,
}

#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Path and timeout left out.
    pub(super) requests: Vec<String>,
    /// The forms in which each of them takes the answer.
    pub(super) accepts: Vec<&'static str>,
    /// The timeouts of those that have one, in seconds.
    pub(super) timeouts: Vec<u64>,
    /// How long before each of them nothing was asked.
    pub(super) pauses: Vec<Duration>,
    pub(super) deltas: Vec<String>,
    /// How many of them may wait for others that come with them.
    pub(super) waiting: usize,
    pub(super) unreadable: Vec<String>,
    pub(super) reports: Vec<Report>,
    /// How often it was said that what comes may wait for more of it.
    pub(super) gathers: usize,
    pub(super) reloads: usize,
    pub(super) proofs: usize,
}

impl Seen {
    /// What failed, and how long it was waited then.
    pub(super) fn failures(&self) -> Vec<(&Fault, Duration)> {
        self.reports
            .iter()
            .filter_map(|report| match report {
                Report::Failing { fault, again, .. } => Some((fault, *again)),
                _ => None,
            })
            .collect()
    }

    /// How often a watch was said to work.
    pub(super) fn watches(&self) -> usize {
        self.reports.iter().filter(|report| matches!(report, Report::Watching { .. })).count()
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.reports.iter().fold(Traffic::default(), |sum, report| match report {
            Report::Received(more) => Traffic {
                bytes: sum.bytes + more.bytes,
                objects: sum.objects + more.objects,
                bookmarks: sum.bookmarks + more.bookmarks,
                begun_anew: sum.begun_anew + more.begun_anew,
            },
            _ => sum,
        })
    }
}

struct Script {
    answers: Mutex<VecDeque<Answer>>,
    seen: Mutex<Seen>,
    last: Mutex<Instant>,
    /// What is proven about a resource that is not served.
    absence: Mutex<VecDeque<Absence>>,
    /// What the sink knows.
    held: Mutex<BTreeMap<ObjectKey, Object>>,
    /// Whether the sink says of nothing that it knows it: what it is told waits.
    lags: AtomicBool,
    /// The script has been played to its end.
    over: Notify,
}

impl Play {
    pub(super) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let script = Script {
            answers: Mutex::new(answers.into_iter().collect()),
            seen: Mutex::default(),
            last: Mutex::new(Instant::now()),
            absence: Mutex::default(),
            held: Mutex::default(),
            lags: AtomicBool::new(false),
            over: Notify::new(),
        };
        Self { script: Arc::new(script), server: Arc::default(), protobuf: false }
    }

    /// The sink applies nothing while this goes on.
    pub(super) fn lagging(self) -> Self {
        self.script.lags.store(true, Ordering::Relaxed);
        self
    }

    /// Takes protobuf, too.
    pub(super) fn protobuf(mut self) -> Self {
        self.protobuf = true;
        self
    }

    /// What is proven, one time after the other.
    pub(super) fn absence(self, proofs: impl IntoIterator<Item = Absence>) -> Self {
        self.script.absence.lock().unwrap().extend(proofs);
        self
    }

    /// Shares a server with other plays.
    pub(super) fn server(mut self, server: &Arc<Server>) -> Self {
        self.server = Arc::clone(server);
        self
    }

    /// Shows what was reported so far.
    pub(super) fn reports(&self) -> impl Fn() -> Vec<Report> + use<> {
        let script = Arc::clone(&self.script);
        move || script.seen.lock().unwrap().reports.clone()
    }

    /// Plays until the reflector asks for more than there is, or the last answer hangs.
    pub(super) async fn run(self) -> Seen {
        self.play(Duration::ZERO).await
    }

    /// Plays until then, and until the reflector has nothing to do any more.
    pub(super) async fn run_until_quiet(self) -> Seen {
        self.play(Duration::from_secs(1)).await
    }

    async fn play(self, quiet: Duration) -> Seen {
        let target = Target::all(Resource::of::<Pod>());
        let intake = |encoding| {
            let codec = Codec::new(encoding, "v1", "Pod", Rules::default()).unwrap();
            Intake::new(codec)
        };
        let reflector = Reflector::new(
            target,
            Scripted(Arc::clone(&self.script)),
            Notebook(Arc::clone(&self.script)),
            Arc::clone(&self.server),
            intake(Encoding::Json),
            self.protobuf.then(|| intake(Encoding::Protobuf)),
            Settings { limit: LIMIT, ..Settings::default() },
        );
        tokio::select! {
            () = reflector.run() => panic!("the sink is not gone"),
            () = async {
                self.script.over.notified().await;
                // Paused time goes on only when nobody has anything to do.
                tokio::time::timeout(quiet, pending::<()>()).await.unwrap_err();
            } => {}
        }
        std::mem::take(&mut self.script.seen.lock().unwrap())
    }
}

struct Scripted(Arc<Script>);

impl Transport for Scripted {
    async fn send(&self, request: Request) -> Result<Response, Failure> {
        let query: Vec<String> = request
            .query
            .iter()
            .filter(|(key, _)| *key != "timeoutSeconds")
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let timeout = request.query.iter().find(|(key, _)| *key == "timeoutSeconds");
        let pause = std::mem::replace(&mut *self.0.last.lock().unwrap(), Instant::now()).elapsed();
        let answer = self.0.answers.lock().unwrap().pop_front();
        let Some(answer) = answer else {
            self.0.seen.lock().unwrap().pauses.push(pause);
            self.0.over.notify_one();
            return pending().await;
        };
        {
            let mut seen = self.0.seen.lock().unwrap();
            seen.requests.push(query.join(" "));
            seen.accepts.push(request.accept);
            seen.timeouts.extend(timeout.map(|(_, seconds)| seconds.parse::<u64>().unwrap()));
            seen.pauses.push(pause);
        }
        let json = |status, pieces: Vec<Piece>, retry_after: Option<u64>| {
            let body = Scroll { pieces: pieces.into(), script: Arc::clone(&self.0) };
            Response {
                status,
                content_type: Some("application/json".to_owned()),
                retry_after: retry_after.map(Duration::from_secs),
                body: Box::new(body),
            }
        };
        match answer {
            Answer::Watch(pieces) => Ok(json(200, pieces, None)),
            Answer::Protobuf(pieces) => {
                let content_type = "application/vnd.kubernetes.protobuf;stream=watch".to_owned();
                Ok(Response { content_type: Some(content_type), ..json(200, pieces, None) })
            }
            Answer::Body(text) => Ok(json(200, vec![Piece::Text(text)], None)),
            Answer::Status { code, body, retry_after } => {
                Ok(json(code, vec![Piece::Text(body)], retry_after))
            }
            Answer::Html => {
                let page = Piece::Text("<html>Bad gateway</html>".to_owned());
                Ok(Response { content_type: Some("text/html".to_owned()), ..json(200, vec![page], None) })
            }
            Answer::Lost => Err(failure("reset")),
            Answer::Refused => Err(Failure { refused: true, ..failure("refused") }),
            Answer::Untrusted => Err(Failure { untrusted: true, ..failure("UnknownIssuer") }),
        }
    }

    async fn reload_credentials(&self) {
        self.0.seen.lock().unwrap().reloads += 1;
    }

    async fn absence(&self, resource: &Resource) -> Absence {
        assert_eq!(resource.plural, "pods");
        self.0.seen.lock().unwrap().proofs += 1;
        let proof = self.0.absence.lock().unwrap().pop_front();
        proof.unwrap_or_else(|| Absence::NotProven("the script says nothing".to_owned()))
    }
}

struct Scroll {
    pieces: VecDeque<Piece>,
    script: Arc<Script>,
}

impl Body for Scroll {
    fn gather(&mut self) {
        self.script.seen.lock().unwrap().gathers += 1;
    }

    fn chunk(&mut self) -> Chunk<'_> {
        Box::pin(async move {
            loop {
                match self.pieces.front_mut() {
                    None => return None,
                    Some(Piece::Hang) => {
                        // Nothing more is to come: the play is over, unless there are answers to what comes of silence.
                        if self.script.answers.lock().unwrap().is_empty() {
                            self.script.over.notify_one();
                        }
                        return pending().await;
                    }
                    Some(Piece::Wait(left)) => {
                        let until = Instant::now() + *left;
                        // tidy: allow-sleep the scripted server is slow, on paused time
                        tokio::time::sleep_until(until).await;
                    }
                    Some(Piece::Broken) => {
                        return Some(Err(failure("reset")));
                    }
                    Some(Piece::Text(text)) => {
                        let chunk = Bytes::from(std::mem::take(text));
                        self.pieces.pop_front();
                        return Some(Ok(chunk));
                    }
                    Some(Piece::Bytes(bytes)) => {
                        let chunk = Bytes::from(std::mem::take(bytes));
                        self.pieces.pop_front();
                        return Some(Ok(chunk));
                    }
                }
                self.pieces.pop_front();
            }
        })
    }
}

struct Notebook(Arc<Script>);

impl Sink for Notebook {
    async fn deliver(&mut self, delta: Delta) -> Result<(), Gone> {
        {
            let mut held = self.0.held.lock().unwrap();
            let put = |held: &mut BTreeMap<_, _>, object: &Object| {
                held.insert(object.key().to_key(), object.clone());
            };
            match &delta {
                Delta::Replace { objects, .. } => {
                    // What it had until then is still there where it waits.
                    if !self.0.lags.load(Ordering::Relaxed) {
                        held.clear();
                    }
                    objects.iter().for_each(|object| put(&mut held, object));
                }
                Delta::Put(object) => put(&mut held, object),
                Delta::Remove(object) => {
                    held.remove(&object.key().to_key());
                }
                Delta::Exchange(objects) => {
                    for object in objects {
                        let known = &held[&object.key().to_key()];
                        if (known.uid(), known.version()) != (object.uid(), object.version()) {
                            continue;
                        }
                        assert_eq!(known.json().unwrap(), object.json().unwrap());
                        assert!(object.size() < known.size());
                        put(&mut held, object);
                    }
                }
                Delta::RemoveKey(_) | Delta::Progress(_) => {}
            }
        }
        let show = |object: &Object| format!("{}@{}", object.name(), object.version());
        let line = match delta {
            Delta::Replace { objects, unreadable, complete, version, went_back } => {
                let mut line = format!("replace {version}:");
                for object in &objects {
                    line += &format!(" {}", show(object));
                }
                for key in unreadable {
                    line += &format!(" (kept {key})");
                }
                line += if went_back { " (went back)" } else { "" };
                line + if complete { "" } else { " (incomplete)" }
            }
            Delta::Put(object) => format!("put {}", show(&object)),
            Delta::Remove(object) => format!("remove {}", show(&object)),
            Delta::RemoveKey(key) => format!("remove {key} by its key"),
            Delta::Progress(version) => format!("progress {version}"),
            Delta::Exchange(objects) => format!("exchange {}", objects.len()),
        };
        let mut seen = self.0.seen.lock().unwrap();
        if line.starts_with("exchange") && seen.waiting > 0 {
            let last = seen.deltas.last().map(String::as_str).unwrap_or_default();
            assert!(!last.starts_with("put"), "{last} waited until others were packed");
        }
        seen.deltas.push(line);
        seen.waiting += 1;
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), Gone> {
        self.0.seen.lock().unwrap().waiting = 0;
        Ok(())
    }

    fn current(&self, key: KeyRef<'_>) -> Option<Object> {
        if self.0.lags.load(Ordering::Relaxed) {
            return None;
        }
        self.0.held.lock().unwrap().get(&key.to_key()).cloned()
    }

    fn held(&self) -> Vec<Object> {
        self.0.held.lock().unwrap().values().cloned().collect()
    }

    fn report(&self, report: Report) {
        let mut seen = self.0.seen.lock().unwrap();
        if let Report::Unreadable { what, .. } = &report {
            seen.unreadable.push(what.to_string());
        }
        seen.reports.push(report);
    }
}
