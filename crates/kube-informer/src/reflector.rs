//! Keeps a sink up to date with one collection of a server: lists it, watches it, and does both again when needed.
//!
//! Promised (the numbers are those of the tests):
//!
//! 1. A streaming list first; it is committed as a whole at the bookmark that ends it, and the same stream goes on as the
//!    watch. Where the server does not do that, makes no progress or ends early, a LIST, item by item, and no stream for a
//!    while. There is a deadline on progress, none on the whole. The first list may be any; later ones are never older
//!    than what was seen.
//! 2. A watch resumes at the last version. That it ended is no reason to list, and neither is that its connection broke or
//!    could not be made: nothing was missed, since what was not received as a whole is sent again after that version, and
//!    a server that no longer can says so. Only where several watches in a row brought nothing and ended as none should,
//!    everything is listed. Expired versions, and any other error that the server or the content gives, but 429, are a
//!    reason.
//! 3. Failures back off, and lists that fail do, too; so do watches that end at once. `Retry-After` is honoured.
//! 4. A resource that is not served proves nothing about its objects: they stay, and the sink is told. Only where the
//!    transport proves that the resource is gone, its objects are.
//! 5. A dead watch is found; an idle one is left alone.
//! 6. Versions that go back are found, and everything is listed anew.
//!
//! 16. Of all reflectors of a server, only some list at a time.
//!
//! While no watch is open, and none is just being opened, the sink has been told so, and why.
//!
//! An object that cannot be read is never lost without a word: what is known of it stays, it is reported, and it is read
//! again with the next list.
//!
//! It runs until its future is dropped or the sink is gone; nothing is left behind then.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use self::backoff::{Backoff, BackoffSettings};
use self::fault::{Fault, Remedy};
use self::liveness::{Liveness, LivenessSettings};
use self::request::{Freshness, Target};
pub(crate) use self::server::Server;
use self::staged::Staged;
use self::stream::Watch;
use self::transport::{Body, Request, Transport};
use self::upkeep::{Dictionaries, Upkeep};
use crate::encoding::{DecodeError, Encoding, ObjectKey};
use crate::object::{Intake, KeyRef, Object, Version};

// What goes wrong, and when to try again.
pub(crate) mod backoff;
pub(crate) mod fault;
pub(crate) mod liveness;
mod recovery;

// The states, one step each.
mod listing;
mod spans;
mod staged;
mod upkeep;
mod watching;

// What is asked, and of whom.
pub(crate) mod request;
mod server;
mod stream;
pub(crate) mod transport;

/// Where what is learned goes.
pub(crate) trait Sink: Send {
    /// Takes a change, which may wait for others that come with it. An error ends the reflector: nobody is interested any
    /// more.
    fn deliver(&mut self, delta: Delta) -> impl Future<Output = Result<(), Gone>> + Send;

    /// Nothing more comes for now: what was taken is not to wait any longer.
    fn flush(&mut self) -> impl Future<Output = Result<(), Gone>> + Send {
        std::future::ready(Ok(()))
    }

    /// What is known of an object.
    fn current(&self, key: KeyRef<'_>) -> Option<Object>;

    /// All that is known of what this reflector has told.
    fn held(&self) -> Vec<Object>;

    /// Hears how it goes.
    fn report(&self, report: Report);
}

/// The sink is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// One change to what is known.
#[derive(Debug, Clone)]
pub(crate) enum Delta {
    /// Everything that there is.
    Replace {
        objects: Vec<Object>,
        /// Objects that are there and could not be read: what is known of them stays.
        unreadable: Vec<ObjectKey>,
        /// Whether what is not among them is gone. Not so where an item could not even be told by its name.
        complete: bool,
        version: Version,
        /// Whether the server went back since what was told before.
        went_back: bool,
    },
    /// An object is there, or has changed.
    Put(Object),
    /// An object is gone; its last state.
    Remove(Object),
    /// An object is gone whose last state could not be read.
    RemoveKey(ObjectKey),
    /// Everything up to a version has been seen.
    Progress(Version),
    /// Objects that are kept smaller from now on, and have not changed: each takes the place of what is known by its key
    /// where that is of the same UID and version, and nobody is told.
    Exchange(Vec<Object>),
}

/// How it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// Everything is being listed.
    Listing(Why),
    /// Everything was listed, and delivered.
    Listed {
        objects: usize,
        encoding: Encoding,
        /// Whether it was a streaming list.
        streaming: bool,
        version: Version,
    },
    /// A watch is open: what is known is what there is.
    Watching { encoding: Encoding },
    /// What came since the last time.
    Received(Traffic),
    /// Something went wrong, and is tried again at a time.
    Failing {
        /// What was asked for.
        request: String,
        fault: Fault,
        remedy: Remedy,
        again: Duration,
    },
    /// Something could not be read.
    Unreadable {
        /// What was asked for.
        request: String,
        what: Unread,
        error: String,
    },
    /// The resource is asked for in JSON from now on.
    TurnedToJson { error: String },
    /// The resource is not served, and it is proven that it is gone: so are its objects.
    Absent,
    /// The resource is not served, and may be there all the same: its objects stay.
    NotProvenAbsent { why: String },
}

/// What could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unread {
    Object(ObjectKey),
    /// An object, or what stands in its place.
    Nameless,
    Bookmark,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object(key) => write!(f, "{key}"),
            Self::Nameless => f.write_str("an object without a name"),
            Self::Bookmark => f.write_str("a bookmark"),
        }
    }
}

/// What came from the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    /// Bytes of bodies.
    pub(crate) bytes: u64,
    /// Events and items, readable or not, without bookmarks.
    pub(crate) objects: u64,
    pub(crate) bookmarks: u64,
    /// Lists that were begun anew when some of their objects had come.
    pub(crate) begun_anew: u64,
}

/// Why everything is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Why {
    /// For the first time.
    First,
    /// The version was too old or too new.
    Expired,
    /// Something failed; it is not known what was missed.
    Failure,
    /// The server's versions went back.
    WentBack,
    /// An object could not be read.
    Unreadable,
    /// Protobuf held what the table does not know.
    Encoding,
}

/// How it is done.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// How long a request or a list may be silent.
    pub(crate) patience: Duration,
    /// The shortest time after which the server ends a watch; it is between this and twice as long, and never longer
    /// than [`LONGEST_WATCH`].
    pub(crate) watch_timeout: Duration,
    /// Items of a page.
    pub(crate) page: u32,
    /// The largest object, in bytes.
    pub(crate) limit: usize,
    pub(crate) backoff: BackoffSettings,
    pub(crate) liveness: LivenessSettings,
    /// How often it is tried where it is forbidden or not served.
    pub(crate) slow: Duration,
    /// How long no streaming list is asked for after one did not work.
    pub(crate) plain: Duration,
    /// How long a call of a handler may take before that is said.
    pub(crate) call: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
            watch_timeout: Duration::from_secs(300),
            page: 500,
            // etcd takes no more than some megabytes; aggregated APIs may.
            limit: 64 << 20,
            backoff: BackoffSettings::default(),
            liveness: LivenessSettings::default(),
            slow: Duration::from_secs(30),
            plain: Duration::from_secs(3_600),
            call: Duration::from_secs(30),
        }
    }
}

/// No watch is asked to last longer, whatever the settings are. Connections are given up after more silence than that.
pub(crate) const LONGEST_WATCH: Duration = Duration::from_secs(1_800);

/// Bytes of which the sink hears at the latest.
const TOLD_AT: u64 = 64 << 10;

/// See the module.
pub(crate) struct Reflector<T, S> {
    target: Target,
    transport: T,
    sink: S,
    settings: Settings,
    server: Arc<Server>,
    intakes: Intakes,
    state: State,
    /// The last version that was seen.
    version: Option<Version>,
    /// Whether the server pages lists of any version: it has no watch cache for this resource.
    pages: bool,
    /// Until when this resource is listed plainly: streams of it did not work.
    plain: Option<Instant>,
    backoff: Backoff,
    liveness: Liveness,
    /// Watches in a row of which nothing came, and that ended as none should.
    fruitless: u32,
    /// Streaming lists in a row that failed for no reason that is theirs.
    odd_streams: u32,
    /// Whether no watch has lasted since one was told that its version is too old.
    expired: bool,
    /// Objects that could not be read with the last list. Another list would not help.
    unreadable: HashSet<ObjectKey>,
    /// Whether the credentials were read anew since the last success.
    reloaded: bool,
    /// Whether the server went back since everything was listed.
    rewound: bool,
    /// Whether it was told that the resource is gone.
    absent: bool,
    /// The turn to list, from the beginning of a list to its end.
    turn: Option<OwnedSemaphorePermit>,
    upkeep: Upkeep,
    /// What came, and the sink has not heard of.
    traffic: Traffic,
    /// Whether something came of a list that is not complete.
    in_part: bool,
    /// The last request, for people to read.
    asked: String,
}

/// The makers of objects, by the encoding that comes.
struct Intakes {
    json: Intake,
    /// Where it may be asked for.
    protobuf: Option<Intake>,
}

/// What it does now. A state is moved with every step, of which there is one for each object: what is large is boxed.
enum State {
    // ## Begin => (Streaming | Listing | Pause)
    Begin { freshness: Freshness, why: Why },
    // ## Streaming => (Streaming | Watching | Listing | Begin | Pause)
    Streaming { watch: Box<Watch>, staged: Box<Staged>, freshness: Freshness },
    // ## Listing => (Connect | Begin | Pause)
    Listing { freshness: Freshness, paged: bool },
    // ## Connect => (Watching | Begin | NotServed | Pause)
    Connect,
    // ## Watching => (Watching | Probe | Connect | Begin | Pause)
    Watching { watch: Box<Watch> },
    // ## Probe => (Connect | Begin | Pause)
    Probe,
    // ## NotServed => Pause
    NotServed { fault: Fault, next: Box<State> },
    // ## Pause => (Begin | Listing | Connect | Probe)
    Pause { until: Instant, reload: bool, next: Box<State> },
}

impl<T: Transport, S: Sink> Reflector<T, S> {
    /// The intakes make the objects of what comes: their codecs must be of [`Form::kind`](request::Form::kind).
    /// Protobuf is asked for where there is an intake for it.
    pub(crate) fn new(
        target: Target,
        transport: T,
        sink: S,
        server: Arc<Server>,
        json: Intake,
        protobuf: Option<Intake>,
        settings: Settings,
    ) -> Self {
        let backoff = Backoff::new(settings.backoff);
        let liveness = Liveness::new(settings.liveness);
        let intakes = Intakes { json, protobuf };
        let state = State::Begin { freshness: Freshness::Any, why: Why::First };
        Self {
            target,
            transport,
            sink,
            settings,
            server,
            intakes,
            state,
            version: None,
            pages: false,
            plain: None,
            backoff,
            liveness,
            fruitless: 0,
            odd_streams: 0,
            expired: false,
            unreadable: HashSet::new(),
            reloaded: false,
            rewound: false,
            absent: false,
            turn: None,
            upkeep: Upkeep::default(),
            traffic: Traffic::default(),
            in_part: false,
            asked: String::new(),
        }
    }

    /// Runs until the sink is gone.
    pub(crate) async fn run(mut self) {
        while self.chapter().await.is_ok() {}
    }

    /// One step of the state machine.
    async fn step(&mut self) -> Result<(), Gone> {
        let state = std::mem::replace(&mut self.state, State::Connect);
        self.state = match state {
            State::Begin { freshness, why } => self.begin(freshness, why).await,
            State::Streaming { watch, staged, freshness } => self.streaming(watch, staged, freshness).await?,
            State::Listing { freshness, paged } => self.listing(freshness, paged).await?,
            State::Connect => self.connect().await,
            State::Watching { watch } => self.watching(watch).await?,
            State::Probe => self.probe().await,
            State::NotServed { fault, next } => self.not_served(fault, *next).await?,
            State::Pause { until, reload, next } => {
                tokio::time::sleep_until(until).await;
                if reload {
                    self.transport.reload_credentials().await;
                }
                *next
            }
        };
        if !matches!(self.state, State::Watching { .. }) {
            self.sink.flush().await?;
        }
        // Of an open watch it is told when there is a pause, or much.
        self.received(!matches!(self.state, State::Streaming { .. } | State::Watching { .. }));
        if !matches!(self.state, State::Begin { .. } | State::Streaming { .. } | State::Listing { .. }) {
            self.turn = None;
        }
        Ok(())
    }

    /// Asks for something.
    async fn open(&mut self, request: Request) -> Result<(Encoding, Box<dyn Body>), Fault> {
        self.asked = request.described();
        stream::open(&self.transport, request, self.settings.patience).await
    }

    /// Something went wrong, and is tried again at a time.
    fn failing(&self, fault: Fault, remedy: Remedy, again: Duration) {
        self.sink.report(Report::Failing { request: self.asked.clone(), fault, remedy, again });
    }

    /// The encoding to ask for.
    fn encoding(&self) -> Encoding {
        if self.intakes.protobuf.is_some() { Encoding::Protobuf } else { Encoding::Json }
    }

    /// After how long the server is to end a watch: not all watches at once.
    fn watch_timeout(&self) -> Duration {
        self.settings.watch_timeout.mul_f64(1.0 + fastrand::f64()).min(LONGEST_WATCH)
    }

    /// Makes an object out of what came. Its previous version, where there is one, helps to keep it small.
    fn make(&mut self, encoding: Encoding, bytes: &[u8]) -> Result<Object, DecodeError> {
        let sink = &self.sink;
        self.intakes.of(encoding).update(bytes, |key| sink.current(key))
    }

    /// The same, for what may not last.
    fn make_fresh(&mut self, encoding: Encoding, bytes: &[u8]) -> Result<Object, DecodeError> {
        let sink = &self.sink;
        self.intakes.of(encoding).fresh(bytes, |key| sink.current(key))
    }

    /// Tells what came, if it is much, or in any case.
    fn received(&mut self, in_any_case: bool) {
        if (in_any_case && self.traffic != Traffic::default()) || self.traffic.bytes >= TOLD_AT {
            self.sink.report(Report::Received(std::mem::take(&mut self.traffic)));
        }
    }

    /// An object could not be read.
    fn unreadable(&self, key: Option<ObjectKey>, error: &dyn fmt::Display) {
        self.unread(key.map_or(Unread::Nameless, Unread::Object), error);
    }

    fn unread(&self, what: Unread, error: &dyn fmt::Display) {
        self.sink.report(Report::Unreadable { request: self.asked.clone(), what, error: error.to_string() });
    }

    /// Protobuf held what the table does not know: nothing may be lost, so everything is read again in JSON.
    fn turn_to_json(&mut self, error: &DecodeError) -> State {
        self.intakes.protobuf = None;
        self.sink.report(Report::TurnedToJson { error: error.to_string() });
        State::Begin { freshness: self.not_older(), why: Why::Encoding }
    }

    /// Not older than what was seen.
    fn not_older(&self) -> Freshness {
        match &self.version {
            Some(version) => Freshness::NotOlderThan(version.clone()),
            None => Freshness::Any,
        }
    }
}

impl Intakes {
    fn of(&mut self, encoding: Encoding) -> &mut Intake {
        match (encoding, &mut self.protobuf) {
            (Encoding::Protobuf, Some(protobuf)) => protobuf,
            _ => &mut self.json,
        }
    }

    /// The numbers of the dictionaries in use.
    fn dictionaries(&self) -> Dictionaries {
        let number = |intake: &Intake| intake.stats().dictionary;
        [number(&self.json), self.protobuf.as_ref().map_or(0, number)]
    }

    fn settle(&mut self) {
        self.json.settle();
        if let Some(protobuf) = &mut self.protobuf {
            protobuf.settle();
        }
    }
}

#[cfg(test)]
mod tests;
