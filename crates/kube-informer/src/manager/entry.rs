//! One watch: for whom, of what, who is told, and how far it is.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use super::key::{KeyParams, Owner};
use super::metrics::Series;
use super::request::{Handles, RequestWatch};
use super::state::GroupKey;
use super::story::Story;
use crate::informer::State;

/// See the module.
pub(super) struct Entry {
    pub(super) key: Arc<KeyParams>,
    pub(super) owner: Owner,
    pub(super) group: Arc<GroupKey>,
    /// Of the watched object.
    pub(super) name: Arc<str>,
    pub(super) handler: Option<Arc<Handles>>,
    pub(super) since: Timestamp,
    pub(super) began: Instant,
    pub(super) series: Arc<Series>,
    pub(super) life: watch::Sender<Life>,
    pub(super) progress: watch::Sender<Progress>,
    /// How many calls of its handler there are: one, or none. A call that ends may overlap with the beginning of the next.
    pub(super) busy: watch::Sender<usize>,
    /// Those who wait for it to be there. Changed under the manager's lock.
    pub(super) adders: AtomicUsize,
    pub(super) restarts: AtomicU64,
    /// Calls of its handler that failed in a row.
    pub(super) failures: AtomicU64,
    story: Mutex<Story>,
    resync: Mutex<Instant>,
}

/// How far a watch is. It only goes on, never back. What is there, or may come to be, is in the manager's state: until it is
/// over, it is changed under the manager's lock alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Life {
    /// Somebody waits to hear whether it can be.
    Adding,
    /// It is there.
    Ready,
    /// It was stopped, or given up before it was there: no call begins any more.
    Stopped,
    /// A call that still goes on is dropped.
    Cut,
}

/// What is known of the watched object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing.
    Unknown,
    /// Nothing, because of this.
    Failing(State),
    /// Whether it is there.
    Known(bool),
}

impl Life {
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Stopped | Self::Cut)
    }
}

impl Entry {
    pub(super) fn new(
        request: &RequestWatch,
        key: Arc<KeyParams>,
        group: Arc<GroupKey>,
        series: Arc<Series>,
        resync: Instant,
    ) -> Self {
        Self {
            key,
            owner: request.owner.clone(),
            group,
            name: request.name.as_str().into(),
            handler: request.handler.clone(),
            since: Timestamp::now(),
            began: Instant::now(),
            series,
            life: watch::Sender::new(Life::Adding),
            progress: watch::Sender::new(Progress::Unknown),
            busy: watch::Sender::new(0),
            adders: AtomicUsize::new(0),
            restarts: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            story: Mutex::default(),
            resync: Mutex::new(resync),
        }
    }

    pub(super) fn story(&self) -> MutexGuard<'_, Story> {
        self.story.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is watched, for errors: `deployments.v1.apps shop/web`.
    pub(super) fn target(&self) -> String {
        self.group.target(&self.name)
    }

    pub(super) fn is_ready(&self) -> bool {
        *self.life.borrow() == Life::Ready
    }

    /// Goes on from where it is, if it is there; whether it was.
    pub(super) fn turn(&self, from: &Life, to: Life) -> bool {
        self.life.send_if_modified(|life| {
            let fits = life == from;
            if fits {
                *life = to;
            }
            fits
        })
    }

    /// It is over, if it was not before; whether that is so.
    pub(super) fn stop(&self) -> bool {
        self.life.send_if_modified(|life| {
            let goes_on = !life.is_over();
            if goes_on {
                *life = Life::Stopped;
            }
            goes_on
        })
    }

    pub(super) fn is_busy(&self) -> bool {
        *self.busy.borrow() > 0
    }

    /// Whether it is time to say everything again; then the next time is set.
    pub(super) fn is_due(&self, now: Instant, period: Duration) -> bool {
        let mut due = self.resync.lock().unwrap_or_else(PoisonError::into_inner);
        if *due > now {
            return false;
        }
        *due = later(now, period);
        true
    }

    pub(super) fn restarted(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
    }
}

/// After that time; in a far future, where no clock goes so far.
pub(super) fn later(now: Instant, after: Duration) -> Instant {
    now.checked_add(after).unwrap_or_else(|| now + Duration::from_secs(86_400 * 365 * 30))
}
