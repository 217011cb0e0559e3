//! The body of a watch or a list, as frames or items, with a deadline on silence.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use super::Traffic;
use super::fault::{self, Fault};
use super::transport::{Body, Request, Response, Transport};
use crate::encoding::Encoding;
use crate::wire::{Change, ListEnd, ListItems, Status, WatchFrame, WatchFrames, WireError};

/// Sends a request, and gives the response if it is a success in one of the encodings.
pub(super) async fn open(
    transport: &impl Transport,
    request: Request,
    patience: Duration,
) -> Result<(Encoding, Box<dyn Body>), Fault> {
    let deadline = Instant::now() + patience;
    let stalled = |_| Fault::Stalled(patience);
    let response: Response = timeout_at(deadline, transport.send(request)).await.map_err(stalled)??;
    if !(200..300).contains(&response.status) {
        return Err(timeout_at(deadline, fault::of_response(response)).await.unwrap_or_else(stalled));
    }
    let content_type = response.content_type.as_deref().unwrap_or_default();
    match Encoding::of_content_type(content_type) {
        Some(encoding) => Ok((encoding, response.body)),
        // A web page, with a code that says that all is well.
        None => {
            let mut status = Status::default();
            if let Fault::Status(said) =
                timeout_at(deadline, fault::of_response(response)).await.unwrap_or_else(stalled)
            {
                status = *said;
            }
            Err(Fault::Body(WireError::NotAnApi { beginning: status.message }))
        }
    }
}

/// A watch that is open.
pub(super) struct Watch {
    pub(super) encoding: Encoding,
    frames: WatchFrames,
    body: Box<dyn Body>,
    /// When it was asked for.
    pub(super) opened: Instant,
    /// Since when it is a watch: since it was asked for, or since its list was complete.
    pub(super) began: Instant,
    /// When the last bytes came.
    pub(super) heard: Instant,
    /// After how long the server ends it.
    pub(super) timeout: Duration,
    /// How many events it has had since it began.
    pub(super) events: u64,
    /// Whether the sink knows that it is open.
    pub(super) told: bool,
    /// Whether something was said since the last pause.
    said: bool,
    timer: Timer,
}

/// A deadline that is mostly moved, and seldom reached: it is only set when it comes, or comes earlier.
struct Timer(Pin<Box<Sleep>>);

impl Timer {
    fn new() -> Self {
        // Any time: it is set anew before it is waited for.
        Self(Box::pin(sleep_until(Instant::now())))
    }

    /// What the future gives; `None` if that is not before the deadline.
    async fn until<T>(&mut self, deadline: Instant, future: impl Future<Output = T>) -> Option<T> {
        let mut future = std::pin::pin!(future);
        if self.0.deadline() > deadline {
            self.0.as_mut().reset(deadline);
        }
        poll_fn(|cx| {
            if let Poll::Ready(value) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(value));
            }
            while self.0.as_mut().poll(cx).is_ready() {
                if self.0.deadline() >= deadline {
                    return Poll::Ready(None);
                }
                self.0.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await
    }
}

/// What a watch has next.
pub(super) enum Heard {
    Frame(WatchFrame),
    /// An event that cannot be read; others follow. How its object changed, where that can be told.
    Unreadable(WireError, Option<Change>),
    /// The server has ended it.
    End,
    /// The connection broke. `inside`: a part of an event had come.
    Broke {
        fault: Fault,
        inside: bool,
    },
    Failed(Fault),
    /// Nothing came until the deadline.
    Silence,
    /// What came has been said; more may follow.
    Pause,
}

impl Watch {
    /// A watch that was asked for then. Proxies may hold its beginning back until there is an event: the time counts
    /// since it was asked for.
    pub(super) fn new(
        encoding: Encoding,
        body: Box<dyn Body>,
        limit: usize,
        asked: Instant,
        timeout: Duration,
    ) -> Self {
        // Each object is checked to its last byte when it is made.
        let (frames, heard) = (WatchFrames::new(encoding, limit).presuming(), Instant::now());
        let (events, told, said, timer) = (0, false, false, Timer::new());
        Self {
            encoding,
            frames,
            body,
            opened: asked,
            began: asked,
            heard,
            timeout,
            events,
            told,
            said,
            timer,
        }
    }

    /// What follows is a watch. Where there were events before, they were a list.
    pub(super) fn begin(&mut self) {
        if self.events > 0 {
            (self.began, self.events) = (Instant::now(), 0);
        }
        // What is listed does not wait: somebody waits for all of it.
        self.body.gather();
    }

    /// The next event. Nothing is lost if this is dropped before it is ready. Who hears of a pause is to take the
    /// traffic, which is counted there.
    pub(super) async fn next(&mut self, deadline: Instant, traffic: &mut Traffic) -> Heard {
        loop {
            match self.frames.next_frame() {
                Some(Ok(frame)) => {
                    self.events += 1;
                    self.said = true;
                    match frame {
                        WatchFrame::Bookmark { .. } => traffic.bookmarks += 1,
                        _ => traffic.objects += 1,
                    }
                    return Heard::Frame(frame);
                }
                Some(Err(error)) if !error.is_fatal() => {
                    self.events += 1;
                    self.said = true;
                    traffic.objects += 1;
                    return Heard::Unreadable(error, self.frames.skipped_change());
                }
                Some(Err(error)) => return Heard::Failed(error.into()),
                None => {}
            }
            // Who takes the traffic meanwhile, as where it is much, hears of the pause all the same.
            if std::mem::take(&mut self.said) || *traffic != Traffic::default() {
                return Heard::Pause;
            }
            match self.timer.until(deadline, self.body.chunk()).await {
                None => return Heard::Silence,
                Some(Some(Ok(chunk))) => {
                    self.heard = Instant::now();
                    traffic.bytes += chunk.len() as u64;
                    self.frames.push(chunk);
                }
                Some(Some(Err(failure))) => {
                    return Heard::Broke { fault: failure.into(), inside: self.finish().is_err() };
                }
                Some(None) => {
                    return match self.finish() {
                        Ok(()) => Heard::End,
                        // What was on the way did not arrive, which is no end: the connection broke, and somebody on the
                        // way hides that.
                        Err(WireError::Broken(error)) => {
                            let fault = Fault::Connection(format!("the body broke off: {error}"));
                            Heard::Broke { fault, inside: true }
                        }
                        Err(error) => Heard::Failed(error.into()),
                    };
                }
            }
        }
    }

    /// The object of the last frame cannot be read. Whether the frame may be another one than it seemed; it comes next then, as
    /// what it is.
    pub(super) fn doubt(&mut self, traffic: &mut Traffic) -> bool {
        let doubted = self.frames.doubt();
        if doubted {
            // It is counted when it comes again.
            self.events = self.events.saturating_sub(1);
            traffic.objects = traffic.objects.saturating_sub(1);
        }
        doubted
    }

    /// Nothing more comes: whether what came was whole.
    fn finish(&mut self) -> Result<(), WireError> {
        std::mem::replace(&mut self.frames, WatchFrames::new(self.encoding, 0)).finish()
    }
}

/// A list that is being read.
pub(super) struct List {
    pub(super) encoding: Encoding,
    items: ListItems,
    body: Box<dyn Body>,
}

/// What a list has next.
pub(super) enum Read {
    Item(bytes::Bytes),
    /// An item that cannot be read; others follow.
    Unreadable(WireError),
    End(ListEnd),
}

impl List {
    pub(super) fn new(encoding: Encoding, body: Box<dyn Body>, limit: usize) -> Self {
        Self { encoding, items: ListItems::new(encoding, limit), body }
    }

    /// The next item. `patience` is for silence, not for the whole.
    pub(super) async fn next(&mut self, patience: Duration, traffic: &mut Traffic) -> Result<Read, Fault> {
        loop {
            match self.items.next_item() {
                Some(Ok(item)) => {
                    traffic.objects += 1;
                    return Ok(Read::Item(item));
                }
                Some(Err(error)) if !error.is_fatal() => {
                    traffic.objects += 1;
                    return Ok(Read::Unreadable(error));
                }
                Some(Err(error)) => return Err(error.into()),
                None => {}
            }
            let chunk = timeout_at(Instant::now() + patience, self.body.chunk()).await;
            match chunk.map_err(|_| Fault::Stalled(patience))? {
                Some(chunk) => {
                    let chunk = chunk?;
                    traffic.bytes += chunk.len() as u64;
                    self.items.push(chunk);
                }
                None => {
                    let items = std::mem::replace(&mut self.items, ListItems::new(self.encoding, 0));
                    return Ok(Read::End(items.finish()?));
                }
            }
        }
    }
}
