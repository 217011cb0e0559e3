//! One WebSocket: reads requests, sends what waits, keeps the time.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message as Frame, Utf8Bytes, WebSocket};
use bytes::Bytes;
use futures_util::{Sink, Stream};
use tokio::sync::watch;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, sleep, timeout};

use super::Phase;
use super::door::Peer;
use super::routes::Place;
use crate::hub::Link;
use crate::message::{ErrMessage, Hello, Limits, Message, Request, Sub, close};
use crate::metrics::{CloseReason, GapReason};
use crate::session::Last;

/// See the module.
pub(crate) struct Connection {
    place: Place,
    socket: WebSocket,
    peer: Peer,
    link: Arc<Link>,
    phase: watch::Receiver<Phase>,
    /// Requests that wait for the one before them.
    requests: VecDeque<(usize, Request)>,
    /// What they took as they came, in bytes.
    requested: usize,
    /// The one that is being done.
    doing: Option<Doing>,
    /// Whether something was given to the socket that may be in its buffer still.
    unflushed: bool,
    /// A ping that was not answered: since when, and how far the client had read.
    asked: Option<(Instant, u64)>,
    /// A ping that is to be sent.
    ping_due: bool,
    /// Whether nothing can be read any more.
    is_deaf: bool,
    /// Why it ended, as far as that is known.
    reason: CloseReason,
}

type Doing = Pin<Box<dyn Future<Output = Result<(), ErrMessage>> + Send>>;

/// What happens next.
enum Step {
    /// Something came; `None` at the end.
    Came(Option<Result<Frame, axum::Error>>),
    /// Something can be sent.
    Ready(Result<(), axum::Error>),
    Flushed(Result<(), axum::Error>),
    Done(Result<(), ErrMessage>),
}

/// How it ends.
enum End {
    /// The client is gone.
    Gone(CloseReason),
    /// The client closed the WebSocket, and is to be answered.
    Answer,
    /// What was said last has been sent; the socket is closed with this.
    Close(u16),
}

/// Requests that may wait for each other.
const REQUESTS: usize = 256;

/// What they may take, as they come; a single one may be larger.
const REQUESTED: usize = 256 << 10;

impl Connection {
    pub(crate) fn new(place: Place, socket: WebSocket, peer: Peer) -> Self {
        let link = place.hub.connect(place.settings.outbox);
        let phase = place.phase.clone();
        place.hub.metrics().connected();
        Self {
            place,
            socket,
            peer,
            link,
            phase,
            requests: VecDeque::new(),
            requested: 0,
            doing: None,
            unflushed: false,
            asked: None,
            ping_due: false,
            is_deaf: false,
            reason: CloseReason::Broken,
        }
    }

    /// Runs it to its end. `everything`: without being asked, the client is told of everything that the server is for.
    pub(crate) async fn run(mut self, everything: bool) {
        self.hello();
        if everything {
            let all = self.place.hub.wanted().into_iter();
            self.requests.extend(all.map(|gvr| (0, Request::Sub(Sub::new(gvr.clone(), gvr)))));
            self.next_request();
        }
        tracing::debug!(peer = %self.peer.address, everything, "connected");
        let mut over = self.phase.clone();
        let is_cut = tokio::select! {
            () = self.live() => false,
            _ = over.wait_for(|phase| *phase == Phase::Over) => true,
        };
        if is_cut && self.reason == CloseReason::Broken {
            self.reason = CloseReason::Shutdown;
        }
    }

    /// Serves, and says goodbye.
    async fn live(&mut self) {
        match self.serve().await {
            End::Gone(reason) => self.reason = reason,
            End::Answer => {
                self.reason = CloseReason::Client;
                // The library answers, when it is asked for what comes next.
                let answered = async { while let Some(Ok(_)) = self.socket.recv().await {} };
                let _ = timeout(self.place.settings.goodbye, answered).await;
            }
            End::Close(code) => {
                self.reason = CloseReason::of(code);
                self.say_goodbye(code).await;
            }
        }
    }

    fn hello(&self) {
        let (hub, settings) = (&self.place.hub, &self.place.settings);
        let limits =
            Limits { subscriptions: settings.subscriptions, frame: settings.frame, outbox: settings.outbox };
        let hello = Hello {
            epoch: hub.epoch().to_string(),
            cursor: hub.cursor(),
            limits,
            resources: hub.wanted(),
            any: hub.is_any(),
        };
        hub.say(&self.link, &Message::Hello(hello));
    }

    async fn serve(&mut self) -> End {
        let settings = self.place.settings;
        let mut ping = every(settings.ping);
        let mut bookmark = every(settings.bookmark);
        let link = Arc::clone(&self.link);
        let mut phase = self.phase.clone();
        let mut goodbye_by: Option<Instant> = None;
        loop {
            // Where there is always something to send, others have their turn all the same.
            consume_budget().await;
            self.fold();
            let closing = self.link.session().outbox.closing();
            if let Some(closing) = closing {
                if goodbye_by.is_none() && closing.code == close::SLOW {
                    self.place.hub.metrics().gap(GapReason::Slow);
                }
                let by = *goodbye_by.get_or_insert_with(|| Instant::now() + settings.goodbye);
                if self.link.session().outbox.is_empty() && !self.unflushed {
                    return End::Close(closing.code);
                }
                if Instant::now() >= by {
                    return End::Gone(CloseReason::of(closing.code));
                }
            }
            let (asked, closing_at) = (self.asked, goodbye_by);
            tokio::select! {
                step = self.step() => {
                    if let Some(end) = self.take(step) {
                        return end;
                    }
                }
                () = link.wake.notified() => {}
                _ = ping.tick(), if goodbye_by.is_none() => {
                    if self.asked.is_none() {
                        self.asked = Some((Instant::now(), self.peer.progress()));
                        self.ping_due = true;
                    }
                }
                _ = bookmark.tick(), if goodbye_by.is_none() => self.place.hub.bookmark(&self.link),
                () = until(asked.map(|(asked, _)| asked + settings.pong)), if goodbye_by.is_none() => {
                    self.unanswered();
                }
                () = until(closing_at) => {}
                _ = phase.wait_for(|phase| *phase >= Phase::Ending), if goodbye_by.is_none() => {
                    let message = "the server ends; come again with `since`";
                    self.link.with(|session| session.outbox.close(close::GOING_AWAY, message, None));
                }
            }
        }
    }

    /// A ping was not answered in time. Who has read meanwhile has not come to it yet.
    fn unanswered(&mut self) {
        let progress = self.peer.progress();
        if self.asked.is_some_and(|(_, before)| before != progress) {
            self.asked = Some((Instant::now(), progress));
            return;
        }
        // Nobody may be there to read it.
        let message = format!("a ping was not answered within {:?}", self.place.settings.pong);
        self.link.with(|session| session.outbox.close(close::SILENT, &message, None));
    }

    /// Waits for the socket, and for the request that is being done.
    async fn step(&mut self) -> Step {
        let wants = self.ping_due || !self.link.session().outbox.is_empty();
        std::future::poll_fn(|cx| {
            if !self.is_deaf
                && let Poll::Ready(came) = Pin::new(&mut self.socket).poll_next(cx)
            {
                return Poll::Ready(Step::Came(came));
            }
            if let Some(doing) = &mut self.doing
                && let Poll::Ready(done) = doing.as_mut().poll(cx)
            {
                return Poll::Ready(Step::Done(done));
            }
            let mut socket = Pin::new(&mut self.socket);
            if wants {
                return socket.poll_ready(cx).map(Step::Ready);
            }
            if self.unflushed {
                return socket.as_mut().poll_flush(cx).map(Step::Flushed);
            }
            Poll::Pending
        })
        .await
    }

    fn take(&mut self, step: Step) -> Option<End> {
        match step {
            Step::Came(None) => return Some(End::Gone(CloseReason::Client)),
            Step::Came(Some(Ok(frame))) => {
                self.asked = None;
                return self.came(frame);
            }
            Step::Came(Some(Err(error))) => return self.unreadable(&error),
            Step::Ready(Ok(())) => return self.send().err(),
            Step::Flushed(Ok(())) => self.unflushed = false,
            Step::Ready(Err(error)) | Step::Flushed(Err(error)) => {
                tracing::debug!(peer = %self.peer.address, %error, "a message cannot be sent");
                return Some(End::Gone(CloseReason::Broken));
            }
            Step::Done(done) => {
                self.doing = None;
                self.refuse(done.err());
                self.next_request();
            }
        }
        None
    }

    fn came(&mut self, frame: Frame) -> Option<End> {
        match frame {
            Frame::Text(text) => match Request::read(&text) {
                Ok(request) if self.has_room(text.len()) => {
                    self.requests.push_back((text.len(), request));
                    self.requested += text.len();
                    self.next_request();
                }
                Ok(_) => {
                    let (count, bytes) = (self.requests.len(), self.requested);
                    let message = format!(
                        "{count} requests of {bytes} bytes wait already, {REQUESTS} of {REQUESTED} bytes may; wait for answers"
                    );
                    self.refuse(Some(ErrMessage::new(None, 429, message)));
                }
                Err(error) => self.refuse(Some(error)),
            },
            Frame::Binary(bytes) => {
                let message = format!("{} binary bytes are not understood: send JSON as text", bytes.len());
                self.refuse(Some(ErrMessage::new(None, 400, message)));
            }
            // The library answers pings.
            Frame::Ping(_) | Frame::Pong(_) => {}
            Frame::Close(_) => return Some(End::Answer),
        }
        None
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.requests.is_empty()
            || (self.requests.len() < REQUESTS && self.requested.saturating_add(bytes) <= REQUESTED)
    }

    /// A frame cannot be read: what comes after it means nothing.
    fn unreadable(&mut self, error: &axum::Error) -> Option<End> {
        let text = error.to_string();
        if text.contains("without closing handshake") {
            // It went without a word, as programs do that are ended.
            return Some(End::Gone(CloseReason::Client));
        }
        let (code, status) = if text.contains("too long") || text.contains("too big") {
            (close::TOO_LARGE, 413)
        } else if text.to_ascii_lowercase().contains("utf-8") {
            (close::NOT_TEXT, 400)
        } else if text.contains("protocol") || text.contains("frame") || text.contains("Masked") {
            (close::PROTOCOL, 400)
        } else {
            return Some(End::Gone(CloseReason::Broken));
        };
        let message =
            format!("a frame cannot be read: {text}; at most {} bytes are taken", self.place.settings.frame);
        self.place.hub.metrics().error();
        self.is_deaf = true;
        let last = Last::Err(ErrMessage::new(None, status, message));
        let message = "a frame could not be read; see the err before";
        self.link.with(|session| session.outbox.close(code, message, Some(last)));
        None
    }

    fn next_request(&mut self) {
        while self.doing.is_none() {
            let Some((bytes, request)) = self.requests.pop_front() else { return };
            self.requested = self.requested.saturating_sub(bytes);
            match request {
                Request::Unsub(unsub) => {
                    let done = self.place.hub.unsubscribe(&self.link, &unsub.id);
                    self.refuse(done.err());
                }
                Request::Sub(sub) => {
                    let (hub, link) = (self.place.hub.clone(), Arc::clone(&self.link));
                    let most = self.place.settings.subscriptions;
                    self.doing = Some(Box::pin(async move { hub.subscribe(&link, sub, most).await }));
                }
            }
        }
    }

    fn refuse(&self, error: Option<ErrMessage>) {
        if let Some(error) = error {
            tracing::debug!(peer = %self.peer.address, %error, "a request was refused");
            self.place.hub.metrics().error();
            self.place.hub.say(&self.link, &Message::Err(error));
        }
    }

    /// Gives the next message to the socket.
    fn send(&mut self) -> Result<(), End> {
        let broken = |error: axum::Error| {
            tracing::debug!(%error, "a message cannot be sent");
            End::Gone(CloseReason::Broken)
        };
        if std::mem::take(&mut self.ping_due) {
            Pin::new(&mut self.socket).start_send(Frame::Ping(Bytes::new())).map_err(broken)?;
            self.unflushed = true;
            return Ok(());
        }
        let outgoing = {
            let mut session = self.link.session();
            // Where much is to be passed over, the hub gets in between.
            if session.advance() { session.pop() } else { None }
        };
        let Some(outgoing) = outgoing else { return Ok(()) };
        let text = outgoing.text();
        self.place.hub.metrics().sent(1, text.len() as u64);
        // It was text.
        let text = Utf8Bytes::try_from(text).unwrap_or_default();
        Pin::new(&mut self.socket).start_send(Frame::Text(text)).map_err(broken)?;
        self.unflushed = true;
        Ok(())
    }

    /// Folds what waits, where that is worth it; whoever tells does not wait for that.
    fn fold(&self) {
        let fold = self.link.session().take_fold();
        if let Some(fold) = fold {
            let folded = fold.run();
            let count = self.link.session().put_fold(folded);
            self.place.hub.metrics().coalesced(count);
        }
    }

    /// Closes the socket, and waits for the client to do so, too.
    async fn say_goodbye(&mut self, code: u16) {
        let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason(code)) };
        let goodbye = async {
            if self.socket.send(Frame::Close(Some(frame))).await.is_err() {
                return;
            }
            while let Some(Ok(_)) = self.socket.recv().await {}
        };
        // Who does not answer is dropped.
        let _ = timeout(self.place.settings.goodbye, goodbye).await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let subscriptions = self.link.session().len();
        self.place.hub.disconnect(&self.link);
        self.place.hub.metrics().disconnected(self.reason, subscriptions);
        tracing::debug!(peer = %self.peer.address, reason = ?self.reason, "disconnected");
    }
}

fn reason(code: u16) -> &'static str {
    match code {
        close::GOING_AWAY => "the server ends",
        close::SLOW => "too slow",
        close::SILENT => "no answer to a ping",
        close::TOO_LARGE => "a frame is too large",
        close::NOT_TEXT => "text is not UTF-8",
        _ => "a frame cannot be read",
    }
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep(moment.saturating_duration_since(Instant::now())).await,
        None => std::future::pending().await,
    }
}
