//! What waits for one registration.
//!
//! The pump puts batches in and never waits. A batch is shared by all registrations, and putting it in costs the same
//! however large it is. Only where a registration does not take what there is, work is done for it here: its batches are
//! folded into one entry per object (`Latest`), or dropped, with a gap in their place (`Every`). Memory is bounded either
//! way.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::Waker;

use tokio::sync::watch;
use tokio::time::Instant;

use super::callers::{self, Caller};
use super::event::Event;
use super::pending::Pending;
use super::seat::Seat;
use super::stats::DurationCounters;
use super::turns::{Mean, SLOW};
use crate::cache::Applied;
use crate::sabotage::{self, Sabotage};

/// How a registration is told what changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Delivery {
    /// What is new about each object since it was told last: a handler that falls behind is told less, and never what is
    /// over already. One pending event per object, from the oldest old to the newest new, never across a deletion.
    /// An object that came and went in the meantime is not told at all.
    #[default]
    Latest,
    /// Each change, as long as not more than so many wait. Past that they are dropped, and an [`Event::Gap`] says so.
    /// Changes that were made together, as those of a list, are taken together where nothing waits.
    Every(usize),
}

/// Changes that were made together.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) changes: Vec<Applied>,
    /// Whether they are objects of the beginning.
    pub(super) initial: bool,
    /// About what waits with them, and would not be in memory without them.
    bytes: usize,
}

impl Batch {
    pub(super) fn new(changes: Vec<Applied>, initial: bool) -> Self {
        let object = |change: &Applied| match change {
            Applied::Added { new: object }
            | Applied::Updated { new: object, .. }
            | Applied::Deleted { last: object, .. } => object.size().0,
        };
        // Objects of the beginning are in the cache.
        let bytes = if initial { 0 } else { changes.iter().map(object).sum() };
        Self { changes, initial, bytes }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Mailbox {
    pub(super) name: Arc<str>,
    delivery: Delivery,
    inner: Mutex<Inner>,
    /// Whether the objects of the beginning have been handled.
    pub(super) synced: watch::Sender<bool>,
    pub(super) counters: Counters,
    /// Objects of the beginning that are still to be told.
    pub(super) beginning: AtomicUsize,
    /// How long calls take.
    pub(super) calls: Mean,
    /// Where the one that waits is called, unless that is a stranger's.
    place: OnceLock<Place>,
}

/// Where a handler is called.
#[derive(Debug)]
enum Place {
    /// An asynchronous one: by its own task, or behind others.
    Seat(Weak<Seat>),
    /// A closure: by a thread.
    Thread(Weak<Caller>),
}

/// Who is to be woken.
#[derive(Debug)]
pub(super) enum Waiting {
    /// An asynchronous handler that can be called behind others.
    InLine(Arc<Seat>),
    /// A closure.
    OnThread(Arc<Caller>),
    /// Somebody else, or one that nobody is to wait for.
    Alone(Waker),
}

/// What became of a registration's events.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) handled: AtomicU64,
    pub(super) panics: AtomicU64,
    pub(super) gaps: AtomicU64,
    pub(super) missed: AtomicU64,
    /// The time that was spent in the handler, in nanoseconds.
    pub(super) busy: AtomicU64,
    pub(super) durations: DurationCounters,
}

#[derive(Debug, Default)]
struct Inner {
    state: State,
    /// Whoever found nothing to take, and waits.
    waker: Option<Waker>,
    log: VecDeque<Arc<Batch>>,
    /// Changes of the first batch that have been taken.
    taken: usize,
    /// Changes in the log that were not taken, without those of the beginning.
    waiting: usize,
    /// The same for those of the beginning.
    initial: usize,
    /// The bytes of the log.
    bytes: usize,
    /// Only with `Latest`.
    pending: Pending,
    /// Changes that were dropped.
    missed: u64,
    /// Since when there is something.
    behind: Option<Instant>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nobody has begun to take: whoever does begins with the cache as it is then.
    #[default]
    Fresh,
    Open,
    /// Changes were dropped: whoever takes next begins again.
    Overflown,
    Closed,
}

/// What there is to take.
#[derive(Debug)]
pub(super) enum Taken {
    Event(Event),
    /// Begin with the cache as it is.
    Begin,
    Nothing,
    Closed,
}

/// So many changes, or bytes of them, wait before they are folded while nobody takes them.
const FOLD: usize = 1024;
const FOLD_BYTES: usize = 8 << 20;

impl Mailbox {
    pub(super) fn new(name: Arc<str>, delivery: Delivery) -> Self {
        Self {
            name,
            delivery,
            inner: Mutex::default(),
            synced: watch::Sender::new(false),
            counters: Counters::default(),
            beginning: AtomicUsize::new(0),
            calls: Mean::default(),
            place: OnceLock::new(),
        }
    }

    /// Whoever waits here waits in this seat.
    pub(super) fn sit(&self, seat: &Arc<Seat>) {
        // There is one handler to a mailbox.
        let _ = self.place.set(Place::Seat(Arc::downgrade(seat)));
    }

    /// Whoever waits here is called so.
    pub(super) fn called_by(&self, caller: &Arc<Caller>) {
        let _ = self.place.set(Place::Thread(Arc::downgrade(caller)));
    }

    /// Who it is that waits here with this waker.
    fn waiting_with(&self, waker: Waker) -> Waiting {
        // Nobody waits for one that takes long, so it has no place behind others. Unit tests run beside one another: a call that
        // was interrupted is not slow.
        let slow = if cfg!(test) { 200 * SLOW } else { SLOW };
        let place = match self.place.get() {
            Some(Place::Seat(seat)) if self.calls.get() <= slow => seat.upgrade().map(Waiting::InLine),
            Some(Place::Thread(caller)) => caller.upgrade().map(Waiting::OnThread),
            _ => None,
        };
        // The waker is that of the place, where there is one.
        place.unwrap_or(Waiting::Alone(waker))
    }

    /// Calls the closure, or goes on with the call of an asynchronous handler.
    pub(super) fn calling<R>(&self, call: impl FnOnce() -> R) -> R {
        callers::calling(self.address(), call)
    }

    /// Whether the thread that calls is in a call of the closure or the asynchronous handler.
    pub(super) fn is_here(&self) -> bool {
        callers::is_called_here(self.address())
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Puts a batch in. Whoever waits for it is to be woken.
    pub(super) fn push(&self, batch: &Arc<Batch>) -> Option<Waiting> {
        let mut inner = self.lock();
        match inner.state {
            State::Fresh | State::Closed => return None,
            State::Overflown => {
                inner.missed += batch.changes.len() as u64;
                return None;
            }
            State::Open => {}
        }
        inner.put(batch, self.delivery);
        let waker = inner.waker.take();
        drop(inner);
        waker.map(|waker| self.waiting_with(waker))
    }

    /// Whoever waits, to be woken.
    pub(super) fn waiting(&self) -> Option<Waiting> {
        let waker = self.lock().waker.take();
        waker.map(|waker| self.waiting_with(waker))
    }

    /// Takes the next event out. Where there is none, the waker is woken when there is something to look for.
    pub(super) fn take(&self, waker: &Waker) -> Taken {
        let mut inner = self.lock();
        match inner.state {
            State::Fresh | State::Overflown => Taken::Begin,
            State::Closed => Taken::Closed,
            State::Open => match inner.take(self.delivery) {
                Some(event) => Taken::Event(event),
                None => {
                    inner.behind = None;
                    let last = inner.waker.replace(waker.clone());
                    drop(inner);
                    // A stranger's, perhaps: what goes with it goes outside of the lock.
                    drop(last);
                    Taken::Nothing
                }
            },
        }
    }

    /// Begins anew: what waits is dropped, as the cache that is told from now on has it. To be called while nothing can
    /// be put in between taking that state and this. Tells how many changes were missed, where some were.
    pub(super) fn open(&self) -> Option<u64> {
        let mut inner = self.lock();
        if inner.state == State::Closed {
            return None;
        }
        let missed = (inner.state == State::Overflown).then_some(inner.missed);
        *inner = Inner { state: State::Open, ..Inner::default() };
        if let Some(missed) = missed {
            self.counters.gaps.fetch_add(1, Ordering::Relaxed);
            self.counters.missed.fetch_add(missed, Ordering::Relaxed);
        }
        missed
    }

    /// Nothing is taken any more. Whoever waits is to be woken.
    pub(super) fn close(&self) -> Option<Waker> {
        let last = std::mem::replace(&mut *self.lock(), Inner { state: State::Closed, ..Inner::default() });
        last.waker
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().state == State::Closed
    }

    /// How it is told.
    pub(super) fn delivery(&self) -> Delivery {
        self.delivery
    }

    /// Whether it is being called, or will be at once: whoever waits for something has left a waker.
    pub(super) fn is_busy(&self) -> bool {
        let inner = self.lock();
        matches!(inner.state, State::Open | State::Overflown) && inner.waker.is_none()
    }

    /// Whether objects of the beginning wait.
    pub(super) fn has_initial(&self) -> bool {
        let inner = self.lock();
        inner.initial > 0 || inner.pending.has_initial() || inner.state == State::Fresh
    }

    /// How many changes wait, and since when there is one that does.
    pub(super) fn backlog(&self) -> (usize, Option<Instant>) {
        let inner = self.lock();
        let dropped = usize::try_from(inner.missed).unwrap_or(usize::MAX);
        let beginning = self.beginning.load(Ordering::Relaxed);
        let waiting = inner.waiting + inner.initial + inner.pending.len() + beginning;
        (waiting.saturating_add(dropped), inner.behind)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn put(&mut self, batch: &Arc<Batch>, delivery: Delivery) {
        let count = batch.changes.len();
        self.behind.get_or_insert_with(Instant::now);
        if let Delivery::Every(capacity) = delivery
            && !batch.initial
            && self.waiting > 0
            && self.waiting + count > capacity
        {
            if sabotage::is(Sabotage::NoGap) {
                return;
            }
            let missed = (self.waiting + self.initial + count) as u64;
            let (waker, behind) = (self.waker.take(), self.behind);
            *self = Self { state: State::Overflown, waker, missed, behind, ..Self::default() };
            return;
        }
        let is_behind = self.waiting > FOLD || self.waiting > 0 && self.bytes + batch.bytes > FOLD_BYTES;
        self.bytes += batch.bytes;
        self.log.push_back(Arc::clone(batch));
        *(if batch.initial { &mut self.initial } else { &mut self.waiting }) += count;
        if delivery == Delivery::Latest && is_behind {
            self.fold();
        }
    }

    fn take(&mut self, delivery: Delivery) -> Option<Event> {
        if delivery == Delivery::Latest {
            // Where everything is of the beginning, there is nothing to fold: each object is in it once. Nor is there where
            // one change is all that waits, which is so for all who follow.
            let is_one = self.waiting == 1 && self.initial == 0;
            if self.pending.len() > 0 || self.waiting > 0 && !is_one {
                self.fold();
            }
            if let Some(event) = self.pending.next() {
                return Some(event);
            }
        }
        loop {
            let batch = self.log.front()?;
            if let Some(change) = batch.changes.get(self.taken) {
                self.taken += 1;
                *(if batch.initial { &mut self.initial } else { &mut self.waiting }) -= 1;
                return Some(Event::<serde_json::Value>::of(change.clone(), batch.initial));
            }
            self.bytes -= batch.bytes;
            self.log.pop_front();
            self.taken = 0;
        }
    }

    fn fold(&mut self) {
        for batch in self.log.drain(..) {
            for change in batch.changes.iter().skip(std::mem::take(&mut self.taken)) {
                self.pending.add(change, batch.initial);
            }
        }
        (self.waiting, self.initial, self.bytes) = (0, 0, 0);
    }
}
