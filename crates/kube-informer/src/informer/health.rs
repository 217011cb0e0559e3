//! How it goes: whether the cache is what the server has, and if not, since when and why not.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::encoding::Encoding;
use crate::reflector::transport::CLOSED;

mod board;

pub(super) use board::Board;

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
}

impl Why {
    /// What happened, and what to do about it. Where a watch that was open was closed, that is all there is to say: it is
    /// opened again.
    #[must_use]
    pub fn explained(&self) -> String {
        match self.advice() {
            Some(todo) => format!("{}; {todo}", self.message),
            None => self.message.clone(),
        }
    }

    /// What to do, where there is something to do. Servers and what is on the way to them end watches when they like; who cannot
    /// read a list to its end should look why.
    fn advice(&self) -> Option<&'static str> {
        let is_over = self.cause == Cause::Connection
            && self.message.ends_with(CLOSED)
            && self.request.starts_with("WATCH ");
        (!is_over).then(|| self.cause.advice())
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.request, self.message)?;
        if !self.again.is_zero() {
            write!(f, " (tried again after {:.1?})", self.again)?;
        }
        match self.advice() {
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
