//! A place among those who are told, and how one gets it.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::Instrument;

use super::Informer;
use super::event::Event;
use super::handler::{self, Handler};
use super::hub::Hub;
use super::inbox::Inbox;
use super::mailbox::{Delivery, Mailbox};
use super::running::{Running, until_closed};
use super::seat;
use super::spanned;
use super::stats::Durations;
use super::wait::moment;
use crate::cache::Snapshot;

/// How one is to be told what changes; made by [`Informer::subscribe`].
#[must_use = "nobody is told until one of `on`, `handler` or `events` is called"]
pub struct Subscription<K> {
    pub(super) informer: Informer<K>,
    pub(super) delivery: Delivery,
    pub(super) resync: Option<Duration>,
    pub(super) name: Option<Arc<str>>,
}

/// Someone who is told what changes.
///
/// Dropping it changes nothing: the handler goes on to be told. [`remove`](Self::remove) ends it.
pub struct Registration(Running);

/// What changes, as a stream. Dropping it ends the registration.
///
/// It ends when the informer is stopped. Errors of watching are no items: see
/// [`Informer::health`](super::Informer::health).
#[must_use = "streams do nothing unless polled"]
pub struct Events<K> {
    inbox: Inbox,
    /// Keeps the informer.
    _informer: Informer<K>,
    view: PhantomData<fn() -> K>,
}

/// How far the reader of a stream is behind the cache, seen from elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct Follow {
    hub: Arc<Hub>,
    mailbox: Arc<Mailbox>,
}

/// What became of a registration's events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistrationStats {
    /// Events that were handled.
    pub handled: u64,
    /// Calls that panicked.
    pub panics: u64,
    /// How often changes were missed.
    pub gaps: u64,
    /// Changes that were missed.
    pub missed: u64,
    /// Changes that wait.
    pub backlog: usize,
    /// Since when something waits.
    pub behind: Option<Duration>,
    /// The time that was spent in the handler.
    pub busy: Duration,
    /// How long calls took.
    pub durations: Durations,
}

/// Why it cannot be said that a registration has ended, or is synced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistrationError {
    /// The handler is still in a call; it is told nothing after that.
    #[error("handler {name:?} was still busy with one event {deadline:?} after its removal")]
    Busy {
        /// The registration's name.
        name: String,
        /// How long it was waited for.
        deadline: Duration,
    },
    /// The objects of the beginning have not been handled.
    #[error("handler {name:?} has not handled all initial objects within {deadline:?}: {waiting} wait")]
    NotSynced {
        /// The registration's name.
        name: String,
        /// How long it was waited for.
        deadline: Duration,
        /// Changes that wait for it.
        waiting: usize,
    },
    /// The registration has ended.
    #[error("handler {name:?} has been removed, or its informer stopped")]
    Ended {
        /// The registration's name.
        name: String,
    },
}

impl<K: Send + 'static> Subscription<K> {
    /// How much is told to those who cannot follow. The default is [`Delivery::Latest`].
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// How often everything is said again, from the cache: each object as [`Event::Updated`] with `resync`. Zero is never.
    /// The default is the informer's.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// What it is called in logs and metrics. Where another registration of the informer has that name, a number follows.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Calls a closure with each event. It may block: nobody waits for it. Closures share threads as long as they return
    /// at once, and get others where they do not.
    ///
    /// A closure that holds an [`Informer`], as one that reads the cache, keeps it alive: only
    /// [`Factory::shutdown`](crate::factory::Factory::shutdown) or [`Registration::remove`] ends it then.
    pub fn on(self, closure: impl FnMut(Event<K>) + Send + 'static) -> Registration {
        let (inbox, informer) = self.open();
        let mailbox = Arc::clone(inbox.mailbox());
        let (running, done) = watch::channel(());
        let core = informer.core();
        mailbox.called_by(&core.callers().add(spanned::closure(core.span(None), inbox, closure, running)));
        Registration::keep(Running { mailbox, done, task: None }, &informer)
    }

    /// Calls the methods of a handler, in tasks of the runtime. Where nothing blocks, this is the cheaper way: no thread of its
    /// own is woken for what comes, and handlers that take microseconds are called one after the other, in one task.
    pub fn handler(self, handler: impl Handler<K>) -> Registration {
        let (inbox, informer) = self.open();
        let mailbox = Arc::clone(inbox.mailbox());
        let (running, done) = watch::channel(());
        let core = informer.core();
        // Whoever waits for its end waits until both are gone: what is called, wherever that is, and its task.
        let called = running.clone();
        let run = async move {
            handler::run_handler(inbox, handler).await;
            drop(called);
        };
        let keeper = seat::take(&mailbox, run.instrument(core.span(None)), running);
        let task = core.runtime().spawn(keeper);
        Registration::keep(Running { mailbox, done, task: Some(task.abort_handle()) }, &informer)
    }

    /// The events as a stream. It begins with what there is when it is first polled; from then on, what is not read waits,
    /// as for any other handler.
    pub fn events(self) -> Events<K> {
        let (inbox, informer) = self.open();
        Events { inbox, _informer: informer, view: PhantomData }
    }

    fn open(self) -> (Inbox, Informer<K>) {
        let Self { informer, delivery, resync, name } = self;
        let core = informer.core();
        // Timers belong to a runtime.
        let _context = core.runtime().enter();
        let name = name.unwrap_or_else(|| core.handler_name());
        let inbox = Inbox::new(Arc::clone(core.hub()), name, delivery, resync.or(informer.resync));
        (inbox, informer)
    }
}

impl Registration {
    fn keep<K>(running: Running, informer: &Informer<K>) -> Self {
        informer.core().adopt(running.clone());
        Self(running)
    }

    /// The name in logs and metrics.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.mailbox.name
    }

    /// Whether all objects that there were at the beginning have been handled.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        *self.0.mailbox.synced.borrow()
    }

    /// Waits until all objects that there were at the beginning have been handled.
    ///
    /// # Errors
    ///
    /// Where that takes longer than the deadline, or the registration ends before.
    pub async fn synced(&self, deadline: Duration) -> Result<(), RegistrationError> {
        let mut synced = self.0.mailbox.synced.subscribe();
        let mut done = self.0.done.clone();
        let name = || self.name().to_owned();
        let wait = async {
            tokio::select! {
                biased;
                _ = synced.wait_for(|synced| *synced) => Ok(()),
                () = until_closed(&mut done) => Err(RegistrationError::Ended { name: name() }),
            }
        };
        match timeout(deadline, wait).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let waiting = self.0.mailbox.backlog().0;
                Err(RegistrationError::NotSynced { name: name(), deadline, waiting })
            }
        }
    }

    /// What became of its events.
    #[must_use]
    pub fn stats(&self) -> RegistrationStats {
        stats(&self.0.mailbox)
    }

    /// Ends it, and waits until nothing of it runs. Nothing is called afterwards.
    ///
    /// An asynchronous handler that is busy past the deadline is dropped where it waits.
    ///
    /// # Errors
    ///
    /// Where a closure is still in a call at the deadline, or a handler blocks its thread; and at once where a handler
    /// removes itself, which cannot be waited for. It is told nothing after that, all the same.
    pub async fn remove(self, deadline: Duration) -> Result<(), RegistrationError> {
        if let Some(waker) = self.0.mailbox.close() {
            waker.wake();
        }
        if self.0.end(moment(deadline)).await {
            return Ok(());
        }
        Err(RegistrationError::Busy { name: self.name().to_owned(), deadline })
    }
}

pub(super) fn stats(mailbox: &Mailbox) -> RegistrationStats {
    let counters = &mailbox.counters;
    let (backlog, behind) = mailbox.backlog();
    RegistrationStats {
        handled: counters.handled.load(Ordering::Relaxed),
        panics: counters.panics.load(Ordering::Relaxed),
        gaps: counters.gaps.load(Ordering::Relaxed),
        missed: counters.missed.load(Ordering::Relaxed),
        backlog,
        behind: behind.map(|since| since.elapsed()),
        busy: Duration::from_nanos(counters.busy.load(Ordering::Relaxed)),
        durations: counters.durations.read(),
    }
}

impl<K> Stream for Events<K> {
    type Item = Event<K>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<K>>> {
        let inbox = &mut self.get_mut().inbox;
        let event = ready!(inbox.poll_next(cx));
        inbox.mailbox().counters.handled.fetch_add(u64::from(event.is_some()), Ordering::Relaxed);
        Poll::Ready(event.map(Event::cast))
    }
}

impl<K> Events<K> {
    /// The next event; `None` when the informer has been stopped. Nothing is lost if it is dropped before it is ready.
    pub async fn next(&mut self) -> Option<Event<K>> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Whether all objects that there were at the beginning have been taken, and the last of them is done with: the next
    /// event was asked for.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        *self.inbox.mailbox().synced.borrow()
    }

    /// What became of its events.
    #[must_use]
    pub fn stats(&self) -> RegistrationStats {
        stats(self.inbox.mailbox())
    }
}

impl<K> Events<K> {
    pub(crate) fn follow(&self) -> Follow {
        Follow { hub: Arc::clone(self.inbox.hub()), mailbox: Arc::clone(self.inbox.mailbox()) }
    }
}

impl Follow {
    /// The cache as it is, and how many changes on the way to it are still to be read. In a turn: what can be seen in the
    /// cache is counted.
    pub(crate) fn look(&self) -> (Snapshot, usize) {
        self.hub.in_turn(|now| (now, self.mailbox.backlog().0))
    }

    /// Waits until the objects of the beginning have been read; that may come without an event.
    pub(crate) async fn synced(&self) {
        // The sender is here.
        let _ = self.mailbox.synced.subscribe().wait_for(|synced| *synced).await;
    }

    /// How often changes were missed.
    pub(crate) fn gaps(&self) -> u64 {
        self.mailbox.counters.gaps.load(Ordering::Relaxed)
    }
}

impl<K> fmt::Debug for Subscription<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("name", &self.name)
            .field("delivery", &self.delivery)
            .field("resync", &self.resync)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("name", &self.name())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for Events<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("name", &self.inbox.mailbox().name).finish_non_exhaustive()
    }
}
