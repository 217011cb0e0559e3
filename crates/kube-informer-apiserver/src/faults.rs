//! Faults: what goes wrong between an API server and its clients, on command.
//!
//! A test takes the handle of a server ([`Server::faults`](crate::Server::faults)) and says what is to
//! happen to which requests:
//!
//! ```
//! # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kube_informer_apiserver::Server;
//! use kube_informer_apiserver::faults::{Answer, Events, Match};
//!
//! let server = Server::builder().start().await?;
//! let faults = server.faults();
//! faults.on(Match::watch().path("/api/v1/pods")).times(2).answer(Answer::gone());
//! faults.on(Match::any_watch()).drop_events(Events::deleted().named("web"));
//! let stalled = faults.on_open(Match::watch()).stall();
//! stalled.release();
//! faults.cut_open(&Match::watch());
//! # Ok(()) }
//! ```
//!
//! What it promises:
//! - Without a fault nothing is changed: status, headers and body are the server's, byte by byte, as they
//!   come.
//! - A fault acts on requests that arrive after it was installed (`on`), on those in flight (`on_open`), or
//!   on both (`on_all`). None is missed between.
//! - Bodies are never held whole. Only while a fault looks at events, one event at a time is, up to a limit;
//!   a larger one cuts the connection, and the transcript says so. Frames are looked at where the answer is
//!   an uncompressed watch in JSON or protobuf; the server is asked for that when such a fault is there as
//!   the request arrives.
//! - Every request is in the transcript, bounded, with how it ended.
//!
//! The engine knows no server: [`Faults::pass`] stands before whatever answers requests. The embedded server
//! uses it, and so does a proxy before a real one.

// The way of a request: the match, the fault, the server, the record.
mod matcher;
mod script;

mod answer;
mod fault;

mod exchange;

mod body;
mod relay;

mod event;
mod frames;
mod list;
mod protobuf;

mod transcript;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use answer::Answer;
pub use body::{HangUp, Made};
pub use event::WatchEvent;
pub use exchange::Line;
pub use fault::{Fault, On};
pub use frames::Format;
pub use matcher::{Events, Match};
pub use transcript::{CAPACITY, End, NotSeen, Request, Requests, Verb};

use fault::Reach;
use script::Script;

/// The largest watch event that is looked at, unless told otherwise.
pub const FRAME_LIMIT: usize = 64 << 20;

/// The faults of one server; a cheap clone.
#[derive(Clone)]
pub struct Faults {
    script: Arc<Script>,
    requests: Requests,
    frame_limit: usize,
}

impl Default for Faults {
    fn default() -> Self {
        Self::new(CAPACITY, FRAME_LIMIT)
    }
}

impl Faults {
    /// No faults yet; a transcript of so many requests, watch events of so many bytes.
    #[must_use]
    pub fn new(transcript: usize, frame_limit: usize) -> Self {
        Self { script: Arc::default(), requests: Requests::new(transcript), frame_limit }
    }

    /// Begins a fault for requests that arrive from now on.
    pub fn on(&self, requests: Match) -> On {
        On::new(self.script.clone(), requests, Reach::Coming)
    }

    /// Begins a fault for requests in flight now, and no others. Faults that act before or instead of an
    /// answer have nothing to do here, except that `cut` and `stall` act at once.
    pub fn on_open(&self, requests: Match) -> On {
        On::new(self.script.clone(), requests, Reach::Open)
    }

    /// Begins a fault for requests in flight and those that arrive.
    pub fn on_all(&self, requests: Match) -> On {
        On::new(self.script.clone(), requests, Reach::Both)
    }

    /// Closes the connections of the matching requests in flight, now, in whatever state they are; returns
    /// the ids of the connections, one for each request.
    pub fn cut_open(&self, requests: &Match) -> Vec<u64> {
        let mut cut = Vec::new();
        self.script.each_open(requests, |request, kill| {
            self.requests.note(request.id, "cut now");
            self.requests.end(request.id, End::Cut);
            kill.notify_one();
            cut.push(request.connection);
        });
        cut
    }

    /// Removes every fault.
    pub fn heal(&self) {
        self.script.heal();
    }

    /// The transcript.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.requests.clone()
    }
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Faults({} requests in flight)", self.requests.open().len())
    }
}

/// A lock is poisoned by a test's closure that panicked; what it guards is changed in single steps and stays
/// usable.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
