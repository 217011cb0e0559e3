//! A watch, as somebody sees it who asked for it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::Timestamp;

use super::Inner;
use super::entry::{Entry, Life};
use super::key::KeyParams;
use super::plan::FeedKey;
use super::state;
use crate::informer::{Informer, State, Why};
use crate::object::Object;

/// A watch that there is, or was. A clone is the same. Dropping it changes nothing: [`Manager::stop`](super::Manager::stop)
/// ends it.
#[derive(Clone)]
pub struct Watch {
    inner: Arc<Inner>,
    entry: Arc<Entry>,
}

/// How a watch is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchState {
    /// It is not known yet whether the object is there.
    Starting,
    /// The object is there, and what changes is heard as it changes.
    Live,
    /// The object is not there; that it comes would be heard.
    Missing,
    /// What is known of the object may be old.
    Stale {
        /// Since when.
        since: Timestamp,
        /// Why.
        why: Why,
    },
    /// Its informer begins anew.
    Restarting,
    /// It was stopped.
    Stopped,
}

impl WatchState {
    /// In one word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Live => "live",
            Self::Missing => "missing",
            Self::Stale { .. } => "stale",
            Self::Restarting => "restarting",
            Self::Stopped => "stopped",
        }
    }
}

impl fmt::Display for WatchState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { since, why } => write!(f, "stale since {since:.0}: {why}"),
            other => f.write_str(other.as_str()),
        }
    }
}

/// A watch in a list; from [`Manager::list`](super::Manager::list).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchInfo {
    /// What tells it from others.
    pub key: KeyParams,
    /// How it is.
    pub state: WatchState,
    /// When it was added.
    pub since: Timestamp,
    /// How long ago that was.
    pub age: Duration,
    /// How often its informer began anew.
    pub restarts: u64,
    /// How often its handler failed in a row.
    pub failures: u64,
    /// Whether it is seen through an informer of the whole namespace, and not through one of its own.
    pub shared: bool,
}

impl Watch {
    pub(super) fn new(inner: Arc<Inner>, entry: Arc<Entry>) -> Self {
        Self { inner, entry }
    }

    /// What tells it from others.
    #[must_use]
    pub fn key(&self) -> &KeyParams {
        &self.entry.key
    }

    /// The object as it was last seen; `None` if it is not there. While an informer begins anew, or cannot reach the server,
    /// this is what was known before. It is never older than what its handler was told.
    #[must_use]
    pub fn get(&self) -> Option<Object> {
        self.entry.story().seen().cloned()
    }

    /// How it is.
    #[must_use]
    pub fn state(&self) -> WatchState {
        self.inner.info(&self.inner.lock(), &self.entry).state
    }

    /// The informer that the object is seen through: its own, or that of its namespace. Which one that is may change; `None`
    /// while it begins anew, and when the watch was stopped.
    #[must_use]
    pub fn informer(&self) -> Option<Informer> {
        let state = self.inner.lock();
        let group = state.groups.get(&self.entry.group).filter(|_| self.entry.is_ready());
        group.and_then(|group| group.feed_of(&self.entry.name)).and_then(|feed| feed.informer())
    }
}

impl Inner {
    pub(super) fn info(&self, state: &state::State, entry: &Entry) -> WatchInfo {
        let group = state.groups.get(&entry.group);
        let feed = group.and_then(|group| group.feed_of(&entry.name));
        let life = entry.life.borrow().clone();
        let health = feed.and_then(|feed| feed.informer()).map(|informer| informer.health().state);
        let is_there = entry.story().seen().is_some();
        let is_known = group
            .and_then(|group| group.targets.get(&entry.name))
            .is_some_and(|target| target.known.is_some());
        let is_catching_up = group.is_some_and(|group| group.catching_up.contains(&entry.name));
        let state = match (life, health) {
            (Life::Stopped | Life::Cut, _) => WatchState::Stopped,
            (_, Some(State::Stale { since, why })) => WatchState::Stale { since, why },
            (_, Some(State::Stopped)) => WatchState::Restarting,
            _ if is_catching_up => WatchState::Restarting,
            _ if !is_known => WatchState::Starting,
            _ if is_there => WatchState::Live,
            _ => WatchState::Missing,
        };
        WatchInfo {
            key: KeyParams::clone(&entry.key),
            state,
            since: entry.since,
            age: entry.began.elapsed(),
            restarts: entry.restarts.load(Ordering::Relaxed),
            failures: entry.failures.load(Ordering::Relaxed),
            shared: feed.is_some_and(|feed| feed.key == FeedKey::Whole),
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("key", &format_args!("{}", self.key()))
            .field("state", &format_args!("{}", self.state()))
            .finish_non_exhaustive()
    }
}
