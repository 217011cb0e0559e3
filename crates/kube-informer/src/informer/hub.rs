//! Where the cache and the registrations of one informer meet.
//!
//! A state of the cache is published first, and told afterwards: a handler finds the cache at its event's version or
//! later. Both happen in one turn. Whoever begins takes the state and its place in what is told in a turn of its own, so
//! that nothing is missed and nothing told twice.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Waker;

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::callers::{self, Caller};
use super::mailbox::{Batch, Delivery, Mailbox, Waiting};
use super::relay::Relay;
use super::seat::Seat;
use crate::cache::{Cache, Change, Snapshot, Writer};
use crate::sync::{AtomicBool, Mutex, MutexGuard};

/// See the module.
#[derive(Debug)]
pub(super) struct Hub {
    pub(super) cache: Cache,
    /// Whoever has it changes the state, or takes it together with a place in what is told.
    turn: Mutex<()>,
    mailboxes: RwLock<Mailboxes>,
    /// Asynchronous handlers that are called one behind the other.
    relay: Relay,
    synced: AtomicBool,
    /// Counts the turns.
    turns: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Mailboxes {
    all: Vec<Arc<Mailbox>>,
    /// Nobody is told anything any more.
    closed: bool,
}

/// What was told in one turn, by kind.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) added: u64,
    pub(super) updated: u64,
    pub(super) deleted: u64,
}

/// Those who are to be woken: at its end, where the hub holds no lock. A waker may be a stranger's, and do whatever it likes, such
/// as to poll or to drop what it wakes. Nothing more is applied until it returns.
struct Woken<'a> {
    on_threads: Vec<Arc<Caller>>,
    alone: Vec<Waker>,
    in_line: Vec<Arc<Seat>>,
    relay: &'a Relay,
}

impl Woken<'_> {
    fn add(&mut self, waiting: Option<Waiting>) {
        match waiting {
            Some(Waiting::OnThread(caller)) => self.on_threads.push(caller),
            Some(Waiting::InLine(seat)) => self.in_line.push(seat),
            Some(Waiting::Alone(waker)) => self.alone.push(waker),
            None => {}
        }
    }
}

impl Drop for Woken<'_> {
    fn drop(&mut self) {
        callers::wake_together(std::mem::take(&mut self.on_threads));
        for waker in self.alone.drain(..) {
            // One that panics must not keep the others from being woken: nobody else does.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                std::mem::forget(panic);
                tracing::error!("the waker of a stream panicked");
            }
        }
        // After those that take long: a runtime keeps what becomes ready last for the thread that it runs on.
        self.relay.wake(std::mem::take(&mut self.in_line));
    }
}

impl Hub {
    pub(super) fn new(cache: Cache, runtime: Handle) -> Self {
        Self {
            cache,
            turn: Mutex::default(),
            mailboxes: RwLock::default(),
            relay: Relay::new(runtime),
            synced: AtomicBool::new(false),
            turns: watch::Sender::new(0),
        }
    }

    /// Applies changes, publishes the new state, tells everyone.
    pub(super) fn apply(&self, writer: &mut Writer, changes: Vec<Change>, initial: bool) -> Told {
        let mut woken = self.woken();
        let turn = self.turn();
        let changes = writer.apply(changes);
        let told = Told::of(&changes);
        if !changes.is_empty() {
            let batch = Arc::new(Batch::new(changes, initial));
            self.each(|mailbox| woken.add(mailbox.push(&batch)));
        }
        if !self.is_synced() && self.cache.snapshot().is_synced() {
            self.synced.store(true, Ordering::Release);
            // Those whose last object of the beginning came earlier.
            self.each(|mailbox| woken.add(mailbox.waiting()));
        }
        drop(turn);
        drop(woken);
        self.turns.send_modify(|turns| *turns += 1);
        told
    }

    /// The state of the cache in which everything that was told is, and nothing else. Until it is dropped, nothing
    /// happens: only what must not be missed belongs into it.
    pub(super) fn in_turn<R>(&self, take: impl FnOnce(Snapshot) -> R) -> R {
        let _turn = self.turn();
        take(self.cache.snapshot())
    }

    /// Whether everything was listed once.
    pub(super) fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Acquire)
    }

    /// Changes with every turn.
    pub(super) fn turns(&self) -> watch::Receiver<u64> {
        self.turns.subscribe()
    }

    /// Adds someone to those who are told; closed at once where nobody is told any more. A name that somebody else has
    /// gets a number: metrics tell them apart by it.
    pub(super) fn add(&self, name: Arc<str>, delivery: Delivery) -> Arc<Mailbox> {
        let mut mailboxes = self.mailboxes.write().unwrap_or_else(PoisonError::into_inner);
        let Mailboxes { all, closed } = &mut *mailboxes;
        let is_taken = |name: &Arc<str>| all.iter().any(|each| each.name == *name);
        let numbered = (2u64..).map(|number| Arc::from(format!("{name}-{number}")));
        let name = std::iter::once(Arc::clone(&name)).chain(numbered).find(|name| !is_taken(name));
        let mailbox = Arc::new(Mailbox::new(name.unwrap_or_default(), delivery));
        if *closed {
            // Nobody waits for it yet.
            drop(mailbox.close());
        }
        all.push(Arc::clone(&mailbox));
        mailbox
    }

    pub(super) fn remove(&self, mailbox: &Arc<Mailbox>) {
        let mut mailboxes = self.mailboxes.write().unwrap_or_else(PoisonError::into_inner);
        mailboxes.all.retain(|each| !Arc::ptr_eq(each, mailbox));
    }

    /// Ends all that there are, and those to come.
    pub(super) fn close(&self) {
        let mut woken = self.woken();
        let mut mailboxes = self.mailboxes.write().unwrap_or_else(PoisonError::into_inner);
        mailboxes.closed = true;
        woken.alone.extend(mailboxes.all.iter().filter_map(|mailbox| mailbox.close()));
        drop(mailboxes);
        drop(woken);
        self.relay.close();
    }

    /// Those that there are.
    pub(super) fn mailboxes(&self) -> Vec<Arc<Mailbox>> {
        self.mailboxes.read().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    /// Whether a thread watches those who are called one behind the other.
    #[cfg(test)]
    pub(super) fn is_watched(&self) -> bool {
        self.relay.is_watched()
    }

    fn woken(&self) -> Woken<'_> {
        Woken { on_threads: Vec::new(), alone: Vec::new(), in_line: Vec::new(), relay: &self.relay }
    }

    fn each(&self, act: impl FnMut(&Arc<Mailbox>)) {
        self.mailboxes.read().unwrap_or_else(PoisonError::into_inner).all.iter().for_each(act);
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        // It guards an order: a panic on the way leaves nothing half done that could be seen.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn of(changes: &[crate::cache::Applied]) -> Self {
        let mut told = Self::default();
        for change in changes {
            match change {
                crate::cache::Applied::Added { .. } => told.added += 1,
                crate::cache::Applied::Updated { .. } => told.updated += 1,
                crate::cache::Applied::Deleted { .. } => told.deleted += 1,
            }
        }
        told
    }
}

#[cfg(test)]
mod schedules;
