//! The state in its lock, and who is told when it changes.

use std::hint::spin_loop;
use std::sync::{Arc, PoisonError, TryLockError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::hash::Hasher;
use super::item::Item;
use super::metrics::{Meter, Observed, Reading};
use super::priority::Priority;
use super::rate_limit::RateLimiter;
use super::state::{Changed, Done, State, When};
use super::table::Slot;
use super::{Key, Settings};
use crate::sync::{Mutex, MutexGuard};

/// Longer delays are this long: an instant has an end.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// How often a processor pauses before the lock is looked at again: together a microsecond or a few, less than to sleep and to be
/// woken costs.
const PAUSES: [u32; 4] = [8, 16, 32, 64];

pub(super) struct Shared<K> {
    inner: Mutex<Inner<K>>,
    /// Hashing needs no lock.
    hasher: Hasher,
    /// Apart, because it is code of the user.
    limiter: Mutex<Box<dyn RateLimiter<K>>>,
    meter: Option<Meter>,
    /// For getters: there may be something for one of you. For all of them at the end.
    pub(super) wake: Notify,
    /// For the getter that watches the clock: there is an earlier deadline.
    pub(super) earlier: Notify,
    /// For those who wait until everything is done.
    pub(super) drained: Notify,
}

pub(super) struct Inner<K> {
    pub(super) state: State<K>,
    /// How many getters wait, or are about to.
    pub(super) waiting: usize,
    /// One of them watches the clock.
    pub(super) watched: bool,
    /// Who waits until everything is done shall wait no more.
    pub(super) cut_short: bool,
}

/// Whom to wake.
enum Wake {
    Nobody,
    One,
    Watcher,
    All,
}

/// What a getter finds.
pub(super) enum Next<K: Key> {
    Item(Item<K>),
    Nothing,
    /// And there will never be anything.
    End,
}

impl<K: Key> Shared<K> {
    pub(super) fn new(settings: Settings<K>) -> Arc<Self> {
        let inner =
            Inner { state: State::new(settings.patience), waiting: 0, watched: false, cut_short: false };
        let shared = Arc::new(Self {
            hasher: inner.state.hasher().clone(),
            inner: Mutex::new(inner),
            limiter: Mutex::new(settings.limiter),
            meter: settings.metrics.map(|(metrics, name)| metrics.meter(name)),
            wake: Notify::new(),
            earlier: Notify::new(),
            drained: Notify::new(),
        });
        if let Some(meter) = &shared.meter {
            let observed: Arc<dyn Observed> = Arc::<Self>::clone(&shared);
            meter.observe(&observed);
        }
        shared
    }

    /// Whoever finds it taken leaves it alone for a while, and longer each time: two threads that ask for it again and again
    /// take each other's memory away, and both are slower than one would be. After that, they sleep.
    ///
    /// A panic under the lock can only be one of a key's own functions. They are called before anything is changed, so that
    /// the queue goes on.
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner<K>> {
        for pause in PAUSES {
            match self.inner.try_lock() {
                Ok(inner) => return inner,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => (0..pause).for_each(|_| spin_loop()),
            }
        }
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn limiter(&self) -> MutexGuard<'_, Box<dyn RateLimiter<K>>> {
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, key: K, priority: Priority) {
        // Two calls, not two times: one that is not there is then known when this is compiled.
        match &self.meter {
            None => self.schedule(key, priority, When::Now(None), false),
            Some(_) => self.schedule(key, priority, When::Now(Some(Instant::now())), false),
        }
    }

    pub(super) fn add_after(&self, key: K, priority: Priority, delay: Duration) {
        let now = Instant::now();
        let when = if delay.is_zero() { When::Now(Some(now)) } else { When::At(now + delay.min(LONGEST)) };
        self.schedule(key, priority, when, true);
    }

    pub(super) fn add_rate_limited(&self, key: K, priority: Priority) -> Duration {
        let delay = {
            let mut limiter = self.limiter();
            let delay = limiter.delay(&key, Instant::now());
            if let Some(meter) = &self.meter {
                meter.remembered(limiter.remembered());
            }
            delay
        };
        self.add_after(key, priority, delay);
        delay
    }

    fn schedule(&self, key: K, priority: Priority, when: When, retry: bool) {
        let hash = self.hasher.hash(&key);
        let (changed, wake) = {
            let mut inner = self.lock();
            if inner.state.is_closed() {
                return;
            }
            let changed = inner.state.add(hash, key, priority, when);
            (changed, inner.whom(changed))
        };
        if let Some(meter) = &self.meter {
            meter.added(u64::from(changed.added), u64::from(retry));
        }
        self.wake(wake);
    }

    pub(super) fn take(self: &Arc<Self>) -> Next<K> {
        let mut inner = self.lock();
        let now = (self.meter.is_some() || inner.state.has_delayed()).then(Instant::now);
        let due = now.map_or(0, |now| inner.state.make_due_ready(now));
        let taken = inner.state.take();
        let over = inner.state.is_over();
        let wake = match &taken {
            Some(_) if over => Wake::All,
            Some(_) if inner.waiting > 0 && inner.state.has_in_line() => Wake::One,
            _ => Wake::Nobody,
        };
        drop(inner);
        self.wake(wake);
        if let Some(meter) = &self.meter {
            meter.added(due as u64, 0);
        }
        match taken {
            Some(taken) => {
                let started = self.meter.as_ref().zip(now).map(|(meter, now)| {
                    meter.started(taken.slot, taken.since, now);
                    now
                });
                Next::Item(Item::new(Arc::clone(self), taken, started))
            }
            None if over => Next::End,
            None => Next::Nothing,
        }
    }

    pub(super) fn done(&self, slot: Slot, started: Option<Instant>) {
        // Before someone else can have the slot.
        if let (Some(meter), Some(started)) = (&self.meter, started) {
            meter.finished(slot, started);
        }
        let (done, waiting, idle) = {
            let mut inner = self.lock();
            let done = inner.state.done(slot);
            (done, inner.waiting > 0, inner.state.is_closed() && inner.state.is_idle())
        };
        let wake = if waiting && matches!(done, Done::InLine) { Wake::One } else { Wake::Nobody };
        self.wake(wake);
        if idle {
            self.drained.notify_waiters();
        }
    }

    /// The worker has done its work, and keeps the key.
    pub(super) fn rest(&self, slot: Slot, started: Option<Instant>) {
        if let (Some(meter), Some(started)) = (&self.meter, started) {
            meter.finished(slot, started);
        }
        self.lock().state.rest(slot);
    }

    /// `drain`: whoever waits until everything is done goes on to do so.
    pub(super) fn close(&self, drain: bool) {
        let due = {
            let mut inner = self.lock();
            inner.cut_short = !drain;
            inner.state.close(Instant::now())
        };
        if let Some(meter) = &self.meter {
            meter.added(due as u64, 0);
        }
        self.wake.notify_waiters();
        self.drained.notify_waiters();
    }

    /// Looks at the state as it is now: what is due is ready.
    pub(super) fn look<T>(&self, look: impl FnOnce(&State<K>) -> T) -> T {
        loop {
            let mut inner = self.lock();
            if !inner.state.has_delayed() {
                return look(&inner.state);
            }
            let due = inner.state.make_due_ready(Instant::now());
            if due == 0 {
                return look(&inner.state);
            }
            // Whoever watches the clock will find it in line: its time has come, too.
            drop(inner);
            if let Some(meter) = &self.meter {
                meter.added(due as u64, 0);
            }
        }
    }

    fn wake(&self, whom: Wake) {
        match whom {
            Wake::Nobody => {}
            Wake::One => self.wake.notify_one(),
            Wake::Watcher => self.earlier.notify_one(),
            Wake::All => self.wake.notify_waiters(),
        }
    }
}

impl<K> Inner<K> {
    fn whom(&self, changed: Changed) -> Wake {
        if self.waiting == 0 {
            return Wake::Nobody;
        }
        match changed {
            Changed { in_line: true, .. } => Wake::One,
            Changed { earliest: true, .. } if self.watched => Wake::Watcher,
            // It will watch the clock.
            Changed { earliest: true, .. } => Wake::One,
            _ => Wake::Nobody,
        }
    }
}

impl<K: Key> Observed for Shared<K> {
    fn reading(&self) -> Reading {
        let depth = self.look(State::awaited);
        Reading { depth, failing: self.limiter().remembered().keys }
    }
}
