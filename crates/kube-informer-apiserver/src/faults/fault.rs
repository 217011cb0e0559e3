//! Faults, and the handles that a test holds on them.
//!
//! A fault is installed by the last call of a sentence that starts with
//! `faults.on(…)`. It acts on as many matching requests as `times` says,
//! otherwise until it is removed. Several faults can act on one request, in
//! the order of their installation; the first that answers or hangs up takes
//! the request, and what would act on the answer's body is then left unused.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::watch;

use super::answer::Answer;
use super::event::WatchEvent;
use super::lock;
use super::matcher::{Events, Match};
use super::script::Script;

/// A fault being described: which requests, how often. The last call, which
/// says what happens, installs it.
#[must_use = "nothing happens before the call that says what the fault does"]
pub struct On {
    script: Arc<Script>,
    matcher: Match,
    reach: Reach,
    skip: u64,
    times: Option<u64>,
}

/// An installed fault. Dropping it leaves the fault in place.
#[derive(Clone)]
pub struct Fault {
    rule: Arc<Rule>,
    script: Arc<Script>,
}

/// Which requests a fault can reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Those that come.
    Coming,
    /// Those in flight now.
    Open,
    /// Both.
    Both,
}

/// What a fault does.
pub(crate) enum Action {
    /// Answers in the server's place.
    Answer(Answer),
    /// Accepts a watch and sends one `ERROR` event; on an open one, sends it next.
    ErrorEvent(Answer),
    /// Waits before the request is passed on or answered.
    Delay(Duration),
    /// Lets so many bytes per second through.
    Throttle(u64),
    /// Gives the answer another Content-Type.
    ContentType(HeaderValue),
    /// Closes the connection.
    Cut(Point),
    /// Lets nothing through until released.
    Stall(Point),
    /// Changes what events come through.
    Events(Events, Change),
}

/// Where in an exchange something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// Before the answer; in an exchange that is past that, at once.
    Before,
    /// After so many bytes of the body.
    Bytes(u64),
    /// After so many whole events of a watch.
    Events(u64),
    /// In the middle of the object that comes after so many others.
    Inside(u64),
}

/// What is done to an event.
pub(crate) enum Change {
    Drop,
    Duplicate,
    /// Held back until another event has gone out.
    Reorder,
    Edit(Mutex<Edit>),
}

type Edit = Box<dyn FnMut(&mut WatchEvent) + Send>;

/// An installed fault as requests meet it.
pub(crate) struct Rule {
    pub(crate) matcher: Match,
    pub(crate) action: Action,
    skip: u64,
    times: Option<u64>,
    /// How many requests matched, those skipped included.
    matched: AtomicU64,
    /// How many events matched, those skipped included.
    events_matched: AtomicU64,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    applied: u64,
    events: u64,
    released: bool,
    removed: bool,
}

impl On {
    pub(crate) fn new(script: Arc<Script>, matcher: Match, reach: Reach) -> Self {
        Self { script, matcher, reach, skip: 0, times: None }
    }

    /// For so many matching requests, and no more.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// For the next matching request only.
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Leaves the first so many matching requests alone.
    pub fn skip(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// Answers in the server's place; the server never sees the request.
    pub fn answer(self, answer: Answer) -> Fault {
        self.install(Action::Answer(answer))
    }

    /// Says the error inside a watch, as a server does that has accepted it:
    /// 200, one `ERROR` event in the stream's format, and a clean end.
    pub fn error_event(self, answer: Answer) -> Fault {
        self.install(Action::ErrorEvent(answer))
    }

    /// Makes `/version` say another version. The path is part of the fault.
    pub fn pretend_version(mut self, major: u32, minor: u32) -> Fault {
        self.matcher = self.matcher.path("/version");
        self.answer(Answer::version(major, minor))
    }

    /// Closes the connection without an answer; in exchanges already in
    /// flight, at once.
    pub fn cut(self) -> Fault {
        self.install(Action::Cut(Point::Before))
    }

    /// Closes the connection after so many bytes of the body.
    pub fn cut_after_bytes(self, bytes: u64) -> Fault {
        self.install(Action::Cut(Point::Bytes(bytes)))
    }

    /// Closes the connection after so many events of a watch.
    pub fn cut_after_events(self, events: u64) -> Fault {
        self.install(Action::Cut(Point::Events(events)))
    }

    /// Closes the connection in the middle of an object: a watch event or an
    /// item of a list, the one after so many whole ones.
    pub fn cut_inside_object(self, whole: u64) -> Fault {
        self.install(Action::Cut(Point::Inside(whole)))
    }

    /// Lets the client wait for its answer, with the connection open; in
    /// exchanges already in flight, lets nothing more through.
    pub fn stall(self) -> Fault {
        self.install(Action::Stall(Point::Before))
    }

    /// Lets so many bytes of the body through, then nothing until released.
    pub fn stall_after_bytes(self, bytes: u64) -> Fault {
        self.install(Action::Stall(Point::Bytes(bytes)))
    }

    /// Lets so many events of a watch through, then nothing until released.
    pub fn stall_after_events(self, events: u64) -> Fault {
        self.install(Action::Stall(Point::Events(events)))
    }

    /// Stops in the middle of the object after so many whole ones, until released.
    pub fn stall_inside_object(self, whole: u64) -> Fault {
        self.install(Action::Stall(Point::Inside(whole)))
    }

    /// Passes requests on, or answers them, only after so long.
    pub fn delay(self, delay: Duration) -> Fault {
        self.install(Action::Delay(delay))
    }

    /// Lets so many bytes per second of the body through.
    pub fn throttle(self, bytes_per_second: u64) -> Fault {
        self.install(Action::Throttle(bytes_per_second.max(1)))
    }

    /// Gives the answer another Content-Type, and leaves the body as it is.
    ///
    /// # Panics
    ///
    /// If the text cannot be a header's value.
    pub fn content_type(self, content_type: &str) -> Fault {
        self.install(Action::ContentType(
            HeaderValue::from_str(content_type).expect("a Content-Type is a header value"),
        ))
    }

    /// Loses events.
    pub fn drop_events(self, events: Events) -> Fault {
        self.install(Action::Events(events, Change::Drop))
    }

    /// Sends events twice.
    pub fn duplicate_events(self, events: Events) -> Fault {
        self.install(Action::Events(events, Change::Duplicate))
    }

    /// Sends events one place later: after the event that follows. At the end
    /// of the stream one that was held back is sent.
    pub fn reorder_events(self, events: Events) -> Fault {
        self.install(Action::Events(events, Change::Reorder))
    }

    /// Changes events.
    pub fn edit_events(self, events: Events, edit: impl FnMut(&mut WatchEvent) + Send + 'static) -> Fault {
        self.install(Action::Events(events, Change::Edit(Mutex::new(Box::new(edit)))))
    }

    /// Loses every bookmark.
    pub fn swallow_bookmarks(self) -> Fault {
        self.drop_events(Events::bookmarks())
    }

    /// Loses the bookmark that ends the initial events.
    pub fn swallow_initial_events_end(self) -> Fault {
        self.drop_events(Events::initial_events_end())
    }

    fn install(self, action: Action) -> Fault {
        let rule = Arc::new(Rule {
            matcher: self.matcher,
            action,
            skip: self.skip,
            times: self.times,
            matched: AtomicU64::new(0),
            events_matched: AtomicU64::new(0),
            state: watch::Sender::new(State::default()),
        });
        self.script.install(rule.clone(), self.reach);
        Fault { rule, script: self.script }
    }
}

impl Fault {
    /// Ends the fault: no request meets it any more, those that it slows, holds
    /// or edits go on untouched.
    pub fn remove(&self) {
        self.script.remove(&self.rule);
        self.rule.end();
    }

    /// Lets the requests that it stalls go on, now and in future.
    pub fn release(&self) {
        self.rule.state.send_modify(|state| state.released = true);
    }

    /// How many requests it acted on.
    #[must_use]
    pub fn applied(&self) -> u64 {
        self.rule.state.borrow().applied
    }

    /// How many events it lost, doubled, moved or edited.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.rule.state.borrow().events
    }

    /// Awaits that it has acted on so many requests. Without a deadline of its own.
    pub async fn wait_applied(&self, requests: u64) {
        self.wait(|state| state.applied >= requests).await;
    }

    /// Awaits that it has acted on so many events. Without a deadline of its own.
    pub async fn wait_events(&self, events: u64) {
        self.wait(|state| state.events >= events).await;
    }

    async fn wait(&self, condition: impl Fn(&State) -> bool) {
        // The sender is in the rule that `self` holds: this never fails.
        let _ = self.rule.state.subscribe().wait_for(condition).await;
    }
}

impl Rule {
    /// Takes one of its times for a matching request.
    pub(crate) fn take(&self) -> bool {
        let before = self.matched.fetch_add(1, Ordering::Relaxed);
        before >= self.skip && self.times.is_none_or(|times| before - self.skip < times)
    }

    /// True if no further request can meet it.
    pub(crate) fn is_used_up(&self) -> bool {
        let matched = self.matched.load(Ordering::Relaxed);
        self.times.is_some_and(|times| matched >= self.skip.saturating_add(times))
    }

    pub(crate) fn act(&self) {
        self.state.send_modify(|state| state.applied += 1);
    }

    /// True if this event is one that it changes, and counts it.
    pub(crate) fn takes_event(&self, events: &Events, event: &WatchEvent) -> bool {
        if self.is_removed() || !events.matches(event) {
            return false;
        }
        let before = self.events_matched.fetch_add(1, Ordering::Relaxed);
        before >= events.skip && events.at_most.is_none_or(|most| before - events.skip < most)
    }

    pub(crate) fn acted_on_event(&self) {
        self.state.send_modify(|state| state.events += 1);
    }

    pub(crate) fn end(&self) {
        self.state.send_modify(|state| state.removed = true);
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.state.borrow().removed
    }

    /// Resolves when a stall of this rule may end.
    pub(crate) async fn freed(&self) {
        // The sender lives in `self`: this never fails.
        let _ = self.state.subscribe().wait_for(|state| state.released || state.removed).await;
    }

    /// True if it takes a request for itself.
    pub(crate) fn is_exclusive(&self) -> bool {
        matches!(self.action, Action::Answer(_) | Action::ErrorEvent(_) | Action::Cut(Point::Before))
    }

    /// True if it acts before a request is passed on or answered.
    pub(crate) fn is_early(&self) -> bool {
        matches!(self.action, Action::Delay(_) | Action::Stall(Point::Before))
    }

    /// True if it must see where objects begin and end.
    pub(crate) fn needs_objects(&self) -> bool {
        match &self.action {
            Action::Events(..) => true,
            Action::Cut(point) | Action::Stall(point) => matches!(point, Point::Events(_) | Point::Inside(_)),
            _ => false,
        }
    }

    /// How the transcript names it.
    pub(crate) fn label(&self) -> String {
        match &self.action {
            Action::Answer(answer) => answer.label(),
            Action::ErrorEvent(answer) => format!("error event {}", answer.code()),
            Action::Delay(delay) => format!("delay {delay:?}"),
            Action::Throttle(rate) => format!("throttle {rate} bytes/s"),
            Action::ContentType(value) => {
                format!("content type {}", String::from_utf8_lossy(value.as_bytes()))
            }
            Action::Cut(point) => format!("cut {point}"),
            Action::Stall(point) => format!("stall {point}"),
            Action::Events(_, Change::Drop) => "drop events".to_owned(),
            Action::Events(_, Change::Duplicate) => "duplicate events".to_owned(),
            Action::Events(_, Change::Reorder) => "reorder events".to_owned(),
            Action::Events(_, Change::Edit(_)) => "edit events".to_owned(),
        }
    }
}

impl Change {
    /// What goes out for an event, at once and after the event that follows.
    pub(crate) fn apply(&self, mut event: WatchEvent) -> (Vec<WatchEvent>, Option<WatchEvent>) {
        match self {
            Self::Drop => (Vec::new(), None),
            Self::Duplicate => (vec![event.clone(), event], None),
            Self::Reorder => (Vec::new(), Some(event)),
            Self::Edit(edit) => {
                lock(edit)(&mut event);
                (vec![event], None)
            }
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before => write!(f, "at once"),
            Self::Bytes(bytes) => write!(f, "after {bytes} bytes"),
            Self::Events(events) => write!(f, "after {events} events"),
            Self::Inside(whole) => write!(f, "inside the object after {whole}"),
        }
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fault({}, {:?})", self.rule.label(), *self.rule.state.borrow())
    }
}
