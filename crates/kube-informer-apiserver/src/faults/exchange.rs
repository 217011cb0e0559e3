//! The way of one request through the faults.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response};
use http_body_util::BodyExt;
use tokio::sync::Notify;

use super::Faults;
use super::answer::accepted;
use super::body::{HangUp, Made};
use super::fault::{Action, Point, Rule};
use super::frames::{Format, Tracker};
use super::list::Scanner;
use super::relay::{Objects, Relay};
use super::script::Exchange;
use super::transcript::{End, Recorder, Request};

/// A client's connection, as the faults see it.
pub struct Line {
    /// Told apart from others in the transcript.
    id: u64,
    kill: Arc<Notify>,
    /// Nobody closes a connection at `kill`: the exchange itself ends.
    alone: bool,
    /// Dropped when the exchange is over.
    guard: Box<dyn Send>,
}

impl Line {
    /// A request on a connection that its owner closes when `kill` is notified. `guard` is dropped when the
    /// exchange is over.
    #[must_use]
    pub fn of_connection(id: u64, kill: Arc<Notify>, guard: impl Send + 'static) -> Self {
        Self { id, kill, alone: false, guard: Box::new(guard) }
    }

    /// A request without a connection, from a client in the same process.
    #[must_use]
    pub fn in_process() -> Self {
        Self { id: 0, kill: Arc::default(), alone: true, guard: Box::new(()) }
    }
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Line({})", self.id)
    }
}

impl Faults {
    /// Passes a request on to `forward` and its answer back, through the faults. An error of `forward` is
    /// answered with 502 and plain text. [`HangUp`] means: close the connection without an answer.
    pub async fn pass<B, U, F>(
        &self,
        line: Line,
        request: http::Request<B>,
        forward: impl FnOnce(http::Request<B>) -> F,
    ) -> Result<Response<Made>, HangUp>
    where
        F: Future<Output = Result<Response<U>, String>>,
        U: http_body::Body<Data = Bytes> + Send + 'static,
        U::Error: Display,
    {
        if !line.alone {
            return self.exchange(line, request, forward).await;
        }
        let kill = line.kill.clone();
        tokio::select! {
            answer = self.exchange(line, request, forward) => answer,
            () = kill.notified() => Err(HangUp),
        }
    }

    async fn exchange<B, U, F>(
        &self,
        line: Line,
        mut request: http::Request<B>,
        forward: impl FnOnce(http::Request<B>) -> F,
    ) -> Result<Response<Made>, HangUp>
    where
        F: Future<Output = Result<Response<U>, String>>,
        U: http_body::Body<Data = Bytes> + Send + 'static,
        U::Error: Display,
    {
        let arrived = arrived(&line, &request);
        let accept = arrived.accept.clone();
        let is_watch = arrived.is_watch();
        let is_head = arrived.method == http::Method::HEAD;
        let recorder = Arc::new(self.requests.begin(arrived.clone()));
        let arrived = Request { id: recorder.id(), ..arrived };
        let (rules, exchange) = self.script.arrive(arrived, line.kill.clone());

        for rule in &rules {
            match &rule.action {
                Action::Delay(delay) => {
                    acted(rule, &recorder);
                    tokio::time::sleep(*delay).await;
                }
                Action::Stall(Point::Before) => {
                    acted(rule, &recorder);
                    rule.freed().await;
                }
                Action::Cut(Point::Before) => {
                    acted(rule, &recorder);
                    recorder.end(End::Cut);
                    return Err(HangUp);
                }
                Action::Answer(answer) => {
                    acted(rule, &recorder);
                    return Ok(whole(recorder, answer.response(&accept), line, exchange));
                }
                Action::ErrorEvent(answer) if is_watch => {
                    acted(rule, &recorder);
                    let format = accepted(&accept);
                    let mut response = Response::new(answer.error_event(format).encode());
                    let media = HeaderValue::from_static(watch_type(format));
                    response.headers_mut().insert(CONTENT_TYPE, media);
                    recorder.events(1);
                    return Ok(whole(recorder, response, line, exchange));
                }
                _ => {}
            }
        }

        if rules.iter().any(|rule| rule.needs_objects()) {
            request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        let response = match forward(request).await {
            Ok(response) => response,
            Err(message) => {
                recorder.end(End::Upstream(message.clone()));
                let text = format!("the upstream server cannot be reached: {message}\n");
                let mut response = Response::new(Bytes::from(text));
                *response.status_mut() = http::StatusCode::BAD_GATEWAY;
                let media = HeaderValue::from_static("text/plain; charset=utf-8");
                response.headers_mut().insert(CONTENT_TYPE, media);
                return Ok(whole(recorder, response, line, exchange));
            }
        };

        let (mut head, body) = response.into_parts();
        let objects = objects(&head.headers, is_watch);
        for rule in &rules {
            if let Action::ContentType(value) = &rule.action {
                acted(rule, &recorder);
                head.headers.insert(CONTENT_TYPE, value.clone());
            }
        }
        let bodiless = is_head || matches!(head.status.as_u16(), 204 | 304);
        let length = if bodiless { Some(0) } else { header(&head.headers, &CONTENT_LENGTH).parse().ok() };
        recorder.answered(head.status.as_u16(), &header(&head.headers, &CONTENT_TYPE), length);
        let rules = rules.into_iter().filter(|rule| !rule.is_early()).collect();
        let limit = self.frame_limit;
        let body = body.map_err(|error| error.to_string()).boxed_unsync();
        let made = Made::new(recorder.clone(), |out| async move {
            let Line { kill, alone, guard, .. } = line;
            let relay = Relay::new(body, out, recorder, exchange, objects, limit).run(rules);
            let end = tokio::select! {
                end = relay => end,
                () = kill.notified(), if alone => Err(End::Cut),
            };
            drop(guard);
            end
        });
        Ok(Response::from_parts(head, made))
    }
}

/// An answer of the faults' own.
fn whole(
    recorder: Arc<Recorder>,
    response: Response<Bytes>,
    line: Line,
    exchange: Exchange,
) -> Response<Made> {
    let (mut head, body) = response.into_parts();
    recorder.answered(head.status.as_u16(), &header(&head.headers, &CONTENT_TYPE), Some(body.len() as u64));
    head.headers.insert(CONTENT_LENGTH, body.len().into());
    let counter = recorder.clone();
    let made = Made::new(recorder, |out| async move {
        let (_line, _exchange) = (line, exchange);
        let length = body.len();
        if length > 0 && out.send(body).await.is_ok() {
            counter.passed(length);
        }
        Ok(())
    });
    Response::from_parts(head, made)
}

fn acted(rule: &Rule, recorder: &Recorder) {
    recorder.note(&rule.label());
    rule.act();
}

fn arrived<B>(line: &Line, request: &http::Request<B>) -> Request {
    let headers = request.headers();
    Request {
        connection: line.id,
        path: request.uri().path().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        accept: header(headers, &ACCEPT),
        authorization: headers.contains_key(AUTHORIZATION).then(|| header(headers, &AUTHORIZATION)),
        ..Request::arriving(request.method().clone())
    }
}

fn header(headers: &HeaderMap, name: &http::HeaderName) -> String {
    let values = headers.get_all(name).into_iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.collect::<Vec<_>>().join(",")
}

fn objects(headers: &HeaderMap, is_watch: bool) -> Objects {
    let encoding = header(headers, &CONTENT_ENCODING);
    if !(encoding.is_empty() || encoding == "identity") {
        return Objects::Opaque;
    }
    match Format::of(&header(headers, &CONTENT_TYPE)) {
        None => Objects::Opaque,
        Some(format) if is_watch => Objects::Followed(format, Tracker::new(format)),
        Some(format) => Objects::List(Scanner::new(format)),
    }
}

fn watch_type(format: Format) -> &'static str {
    match format {
        Format::Json => "application/json",
        Format::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
    }
}
