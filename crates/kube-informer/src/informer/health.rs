//! How it goes: whether the cache is what the server has, and if not, since when and why not.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use crate::encoding::Encoding;
use crate::reflector::fault::{Fault, Remedy};
use crate::reflector::transport::CLOSED;
use crate::reflector::{Report, Why as Reason};
use crate::sync::{Mutex, MutexGuard};

/// How an informer is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// The whole: of several namespaces, the one that is worst off.
    pub state: State,
    /// Each namespace by itself, where several are watched; otherwise one, without a name.
    pub scopes: Vec<(Option<Arc<str>>, State)>,
    /// When something was last heard of an object.
    pub last_event: Option<Timestamp>,
    /// When the server last said that nothing had happened.
    pub last_bookmark: Option<Timestamp>,
    /// How often everything was listed, by why.
    pub relists: Relists,
    /// How often a watch was opened.
    pub watches: u64,
    /// Objects that could not be read, and bookmarks, so far. What was known of them before is kept.
    pub unreadable: u64,
    /// The last of them: what was asked for, which one it is, why, and what to do.
    pub last_unreadable: Option<Why>,
    /// The encoding in which the server last sent something.
    pub encoding: Option<Encoding>,
}

/// Where an informer stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum State {
    /// It was not started.
    #[default]
    Starting,
    /// It reads everything for the first time.
    Syncing,
    /// It hears of what changes as it changes.
    Live,
    /// What it has may be old.
    Stale {
        /// Since when.
        since: Timestamp,
        /// Why.
        why: Why,
    },
    /// It was stopped.
    Stopped,
}

/// Why an informer is stale, or something could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// In one word.
    pub cause: Cause,
    /// What was asked for: `LIST /api/v1/pods?limit=500`.
    pub request: String,
    /// What happened.
    pub message: String,
    /// When it is tried again; zero where that is not known.
    pub again: Duration,
}

/// In one word, why an informer is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The connection is refused: nobody listens there.
    Refused,
    /// The connection broke, or could not be made.
    Connection,
    /// The server does not accept the credentials.
    Unauthorized,
    /// The credentials do not allow it.
    Forbidden,
    /// The resource, or its version, is not served. What was there is kept: this proves nothing about it.
    NotServed,
    /// The server asks to be asked less.
    Throttled,
    /// The server does not accept what it is asked for, such as a selector of a field that it cannot select by.
    Rejected,
    /// The server failed.
    Server,
    /// What answers is not an API server.
    NotAnApi,
    /// Nothing came for too long.
    Stalled,
    /// A change cannot be read: see the message.
    Unreadable,
    /// What was missed is being read.
    Relisting,
    /// What was asked for cannot be: see the message.
    Misconfigured,
    /// The informer itself failed.
    Broken,
}

/// How often everything was listed, by why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Relists {
    /// For the first time, once per scope.
    pub first: u64,
    /// The version was too old for the server.
    pub expired: u64,
    /// Something failed, and it was not known what was missed.
    pub failure: u64,
    /// The server's versions went back.
    pub went_back: u64,
    /// An object could not be read.
    pub unreadable: u64,
    /// Protobuf held what is not known here; JSON is asked for since.
    pub encoding: u64,
}

impl Relists {
    /// By the names that metrics use.
    #[must_use]
    pub fn by_reason(&self) -> [(&'static str, u64); 6] {
        [
            ("first", self.first),
            ("expired", self.expired),
            ("failure", self.failure),
            ("went_back", self.went_back),
            ("unreadable", self.unreadable),
            ("encoding", self.encoding),
        ]
    }
}

impl Cause {
    /// What to do about it.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::Refused => "check that the API server runs, and the server's address in the kubeconfig",
            Self::Connection => "check the network to the API server, its address and its certificate",
            Self::Unauthorized => {
                "check the credentials in the kubeconfig, or the mounted token: log in anew"
            }
            Self::Forbidden => "allow this user to list and watch the resource (kubectl auth can-i watch …)",
            Self::NotServed => "check that the resource and its version are served (kubectl api-resources)",
            Self::Throttled => "the server is busy; it is asked again when it said so",
            Self::Rejected => "change what is asked for: the server says what it does not take",
            Self::Server => "look at the API server's log",
            Self::NotAnApi => "check the server's address, and what proxies are on the way",
            Self::Stalled => "check the network to the API server, and proxies that hold connections back",
            Self::Unreadable => "look at the object on the server; it is read again with the next list",
            Self::Relisting => "wait",
            Self::Misconfigured => "change what is asked for",
            Self::Broken => "stop the informer and ask for it again, or restart the process",
        }
    }

    /// A name for programs: log lines have it in their field `cause`. No metric has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Connection => "connection",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotServed => "not_served",
            Self::Throttled => "throttled",
            Self::Rejected => "rejected",
            Self::Server => "server",
            Self::NotAnApi => "not_an_api",
            Self::Stalled => "stalled",
            Self::Unreadable => "unreadable",
            Self::Relisting => "relisting",
            Self::Misconfigured => "misconfigured",
            Self::Broken => "broken",
        }
    }

    fn of(fault: &Fault, remedy: Remedy) -> Self {
        match (remedy, fault) {
            (Remedy::Credentials, _) => Self::Unauthorized,
            (Remedy::Forbidden, _) => Self::Forbidden,
            (Remedy::NotServed, _) => Self::NotServed,
            (_, Fault::Refused(_)) => Self::Refused,
            (_, Fault::Connection(_) | Fault::Short(_)) => Self::Connection,
            (_, Fault::Status(status)) => match status.code {
                429 => Self::Throttled,
                400 | 405 | 406 | 414 | 415 | 422 => Self::Rejected,
                _ => Self::Server,
            },
            (_, Fault::Body(_)) => Self::NotAnApi,
            (_, Fault::Stalled(_)) => Self::Stalled,
            (_, Fault::Unreadable(_)) => Self::Unreadable,
        }
    }
}

impl Why {
    /// What happened, and what to do about it. Where a connection that worked was closed, that is all there is to say: it is
    /// made again.
    #[must_use]
    pub fn explained(&self) -> String {
        match advice(self.cause, &self.message) {
            Some(todo) => format!("{}; {todo}", self.message),
            None => self.message.clone(),
        }
    }
}

/// What to do, where there is something to do.
fn advice(cause: Cause, message: &str) -> Option<&'static str> {
    let is_closed = cause == Cause::Connection && message.ends_with(CLOSED);
    (!is_closed).then(|| cause.advice())
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.request, self.message)?;
        if !self.again.is_zero() {
            write!(f, " (tried again after {:.1?})", self.again)?;
        }
        match advice(self.cause, &self.message) {
            Some(todo) => write!(f, "; {todo}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("not started"),
            Self::Syncing => f.write_str("reading everything for the first time"),
            Self::Live => f.write_str("live"),
            Self::Stale { since, why } => write!(f, "stale since {since:.0}: {why}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl State {
    /// The name that metrics use.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Syncing => "syncing",
            Self::Live => "live",
            Self::Stale { .. } => "stale",
            Self::Stopped => "stopped",
        }
    }

    /// Of two, the worse.
    fn severity(&self) -> u8 {
        match self {
            Self::Live => 0,
            Self::Syncing => 1,
            Self::Starting => 2,
            Self::Stale { .. } => 3,
            Self::Stopped => 4,
        }
    }
}

/// Where it is written down.
#[derive(Debug)]
pub(super) struct Board {
    notes: Mutex<Notes>,
    /// Changes when a state does.
    pub(super) changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Notes {
    scopes: Vec<Scope>,
    last_event: Option<Timestamp>,
    last_bookmark: Option<Timestamp>,
    relists: Relists,
    watches: u64,
    unreadable: u64,
    last_unreadable: Option<Why>,
    encoding: Option<Encoding>,
}

#[derive(Debug)]
struct Scope {
    namespace: Option<Arc<str>>,
    request: String,
    state: State,
    /// Whether its first list is in the cache.
    is_synced: bool,
    /// Whether its watch is open.
    is_watching: bool,
    /// What is known of a resource that is not served.
    not_served: Option<String>,
}

impl Board {
    /// Scopes, each with what is asked for.
    pub(super) fn new(scopes: impl IntoIterator<Item = (Option<Arc<str>>, String)>) -> Self {
        let scope = |(namespace, request)| Scope {
            namespace,
            request,
            state: State::Starting,
            is_synced: false,
            is_watching: false,
            not_served: None,
        };
        let mut scopes: Vec<Scope> = scopes.into_iter().map(scope).collect();
        if scopes.is_empty() {
            // Nothing is asked for, and somebody must be told why.
            scopes.push(scope((None, "watch".to_owned())));
        }
        let notes = Notes { scopes, ..Notes::default() };
        Self { notes: Mutex::new(notes), changes: watch::Sender::new(0) }
    }

    pub(super) fn health(&self) -> Health {
        let notes = self.lock();
        let states = notes.scopes.iter().map(|scope| &scope.state);
        let state = states.max_by_key(|state| state.severity()).cloned().unwrap_or_default();
        Health {
            state,
            scopes: notes.scopes.iter().map(|scope| (scope.namespace.clone(), scope.state.clone())).collect(),
            last_event: notes.last_event,
            last_bookmark: notes.last_bookmark,
            relists: notes.relists,
            watches: notes.watches,
            unreadable: notes.unreadable,
            last_unreadable: notes.last_unreadable.clone(),
            encoding: notes.encoding,
        }
    }

    /// Hears what a reflector says.
    pub(super) fn report(&self, scope: usize, report: &Report) {
        let mut notes = self.lock();
        match report {
            Report::Listing(reason) => {
                let relists = &mut notes.relists;
                let count = match reason {
                    Reason::First => &mut relists.first,
                    Reason::Expired => &mut relists.expired,
                    Reason::Failure => &mut relists.failure,
                    Reason::WentBack => &mut relists.went_back,
                    Reason::Unreadable => &mut relists.unreadable,
                    Reason::Encoding => &mut relists.encoding,
                };
                *count += 1;
                tracing::debug!(?reason, "everything is being listed");
                let Some(scope) = notes.scopes.get_mut(scope) else { return };
                scope.is_watching = false;
                match &scope.state {
                    State::Starting => scope.state = State::Syncing,
                    State::Live => {
                        let message = format!("everything is read again: {reason:?}");
                        scope.stale(Cause::Relisting, scope.request.clone(), message, Duration::ZERO);
                    }
                    // What went wrong is over only when it works again.
                    State::Syncing | State::Stale { .. } | State::Stopped => {}
                }
            }
            Report::Listed { objects, encoding, streaming, version } => {
                notes.encoding = Some(*encoding);
                let encoding = encoding.as_str();
                tracing::debug!(objects, %version, encoding, streaming, "everything was listed");
                return;
            }
            Report::Received(_) => return,
            Report::Watching { encoding } => {
                notes.watches += 1;
                notes.encoding = Some(*encoding);
                let Some(scope) = notes.scopes.get_mut(scope) else { return };
                scope.is_watching = true;
                scope.not_served = None;
                scope.settle();
            }
            // Another way is taken at once.
            Report::Failing { remedy: Remedy::PlainList | Remedy::Newest, again: Duration::ZERO, .. } => {
                return;
            }
            Report::Failing { request, fault, remedy, again } => {
                let Some(scope) = notes.scopes.get_mut(scope) else { return };
                scope.is_watching = false;
                let cause = Cause::of(fault, *remedy);
                let mut message = fault.to_string();
                let todo = advice(cause, &message).unwrap_or("it is tried again");
                tracing::warn!(
                    %request, cause = cause.as_str(), error = %fault, ?again,
                    "watching does not work; {todo}"
                );
                if let Some(more) = scope.not_served.as_ref().filter(|_| cause == Cause::NotServed) {
                    message = format!("{message}; {more}");
                }
                scope.stale(cause, request.clone(), message, *again);
            }
            Report::Unreadable { request, what, error } => {
                notes.unreadable += 1;
                let cause = Cause::Unreadable;
                tracing::warn!(
                    %request, object = %what, %error,
                    "it cannot be read, and what was known is kept; {}", cause.advice()
                );
                let what = what.to_string();
                // Most errors say themselves whose they are.
                let message =
                    if error.starts_with(&what) { error.clone() } else { format!("{what}: {error}") };
                let request = request.clone();
                notes.last_unreadable = Some(Why { cause, request, message, again: Duration::ZERO });
            }
            Report::Absent => {
                tracing::warn!("the resource is gone, and so are its objects");
                let Some(scope) = notes.scopes.get_mut(scope) else { return };
                scope.not_served = Some("the resource is gone, and its objects with it".to_owned());
            }
            Report::NotProvenAbsent { why } => {
                let Some(scope) = notes.scopes.get_mut(scope) else { return };
                scope.not_served = Some(format!("its objects are kept: {why}"));
            }
            Report::TurnedToJson { error } => {
                tracing::warn!(%error, "protobuf is not understood; JSON is asked for from now on");
                notes.encoding = Some(Encoding::Json);
            }
        }
        drop(notes);
        self.changed();
    }

    /// What was asked for cannot be.
    pub(super) fn misconfigured(&self, message: &str) {
        self.each(|scope| {
            scope.stale(Cause::Misconfigured, scope.request.clone(), message.to_owned(), Duration::ZERO);
        });
    }

    /// Nothing works any more.
    pub(super) fn broken(&self, message: &str) {
        self.each(|scope| {
            scope.stale(Cause::Broken, scope.request.clone(), message.to_owned(), Duration::ZERO);
        });
    }

    /// The first list of a scope is in the cache.
    pub(super) fn synced(&self, scope: usize) {
        let mut notes = self.lock();
        let Some(scope) = notes.scopes.get_mut(scope) else { return };
        scope.is_synced = true;
        scope.settle();
        drop(notes);
        self.changed();
    }

    /// Something was heard.
    pub(super) fn heard(&self, event: bool, bookmark: bool) {
        let now = Timestamp::now();
        let mut notes = self.lock();
        if event {
            notes.last_event = Some(now);
        }
        if bookmark {
            notes.last_bookmark = Some(now);
        }
    }

    pub(super) fn encoding(&self, encoding: Encoding) {
        self.lock().encoding = Some(encoding);
    }

    pub(super) fn started(&self) {
        self.each(|scope| {
            if scope.state == State::Starting {
                scope.state = State::Syncing;
            }
        });
    }

    pub(super) fn stopped(&self) {
        self.each(|scope| scope.state = State::Stopped);
    }

    fn each(&self, act: impl FnMut(&mut Scope)) {
        self.lock().scopes.iter_mut().for_each(act);
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scope {
    fn settle(&mut self) {
        if self.is_synced && self.is_watching && self.state != State::Stopped {
            if let State::Stale { since, why } = &self.state
                && why.cause != Cause::Relisting
            {
                tracing::info!(%since, "watching works again");
            }
            self.state = State::Live;
        }
    }

    fn stale(&mut self, cause: Cause, request: String, message: String, again: Duration) {
        let since = match &self.state {
            State::Stale { since, .. } => *since,
            State::Stopped => return,
            _ => Timestamp::now(),
        };
        let why = Why { cause, request, message, again };
        self.state = State::Stale { since, why };
    }
}
