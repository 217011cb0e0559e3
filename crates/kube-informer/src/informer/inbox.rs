//! The events of one registration, one after the other.
//!
//! First the objects that there are, then what changes, and now and then everything again if that is asked for. An object
//! that has changed is not said again with an older state: what is new about it comes by itself. Changes come before what
//! is only said again: whoever never catches up is told nothing twice.
//!
//! What was begun is told to its end. Where changes are dropped meanwhile, the gap comes after it: so everything is told
//! once, however slow one is.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep_until};

use super::event::Event;
use super::hub::Hub;
use super::mailbox::{Delivery, Mailbox, Taken};
use super::wait::moment;
use crate::cache::Objects;

/// See the module. Dropping it ends the registration.
#[derive(Debug)]
pub(super) struct Inbox {
    hub: Arc<Hub>,
    mailbox: Arc<Mailbox>,
    /// What there was when it began, as far as it was not told yet.
    beginning: Option<Beginning>,
    /// What is said again.
    again: Option<Objects>,
    resync: Option<Resync>,
    is_synced: bool,
}

#[derive(Debug)]
struct Beginning {
    objects: Objects,
    /// Whether that was everything: the informer was synced.
    is_all: bool,
}

#[derive(Debug)]
struct Resync {
    period: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Inbox {
    /// Opens a registration.
    pub(super) fn new(hub: Arc<Hub>, name: Arc<str>, delivery: Delivery, resync: Option<Duration>) -> Self {
        let mailbox = hub.add(name, delivery);
        let resync = resync
            .filter(|period| !period.is_zero())
            .map(|period| Resync { period, timer: Box::pin(sleep_until(moment(period))) });
        Self { hub, mailbox, beginning: None, again: None, resync, is_synced: false }
    }

    pub(super) fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }

    pub(super) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// The next event; `None` when the registration has ended.
    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            match self.step(cx.waker()) {
                Taken::Event(event) => return Poll::Ready(Some(event)),
                Taken::Closed => return Poll::Ready(None),
                Taken::Nothing | Taken::Begin => {
                    ready!(self.poll_resync(cx));
                }
            }
        }
    }

    /// Waits until everything is to be said again.
    fn poll_resync(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(resync) = &mut self.resync else { return Poll::Pending };
        ready!(resync.timer.as_mut().poll(cx));
        resync.timer.as_mut().reset(moment(resync.period));
        self.again = Some(self.hub.in_turn(|snapshot| snapshot.list().iter()));
        Poll::Ready(())
    }

    fn step(&mut self, waker: &Waker) -> Taken {
        let taken = match &mut self.beginning {
            None => self.mailbox.take(waker),
            Some(_) if self.mailbox.is_closed() => Taken::Closed,
            Some(Beginning { objects, is_all }) => {
                self.mailbox.beginning.store(objects.size_hint().0.saturating_sub(1), Ordering::Relaxed);
                if let Some(new) = objects.next() {
                    return Taken::Event(Event::Added { new, initial: true });
                }
                if *is_all {
                    self.synced();
                }
                self.beginning = None;
                self.mailbox.take(waker)
            }
        };
        let taken = match taken {
            Taken::Begin => match self.begin() {
                Some(gap) => Taken::Event(gap),
                None => return self.step(waker),
            },
            Taken::Nothing => self.say_again(),
            other => other,
        };
        self.note_sync(&taken);
        taken
    }

    /// Begins with the cache as it is; tells of the gap before it, where there is one.
    fn begin(&mut self) -> Option<Event> {
        self.again = None;
        let (now, is_all, missed) =
            self.hub.in_turn(|snapshot| (snapshot, self.hub.is_synced(), self.mailbox.open()));
        self.beginning = Some(Beginning { objects: now.list().iter(), is_all });
        missed.map(|missed| Event::Gap { missed, now })
    }

    fn say_again(&mut self) -> Taken {
        let Some(objects) = &mut self.again else { return Taken::Nothing };
        for object in objects {
            let now = self.hub.cache.get(object.namespace(), object.name());
            if let Some(now) =
                now.filter(|now| now.version() == object.version() && now.uid() == object.uid())
            {
                // Whoever is told something does not wait any more.
                drop(self.mailbox.waiting());
                return Taken::Event(Event::Updated { old: now.clone(), new: now, resync: true });
            }
        }
        self.again = None;
        Taken::Nothing
    }

    /// Whoever asks for the next event has handled the ones before.
    fn note_sync(&mut self, next: &Taken) {
        if self.is_synced || self.beginning.is_some() || !self.hub.is_synced() {
            return;
        }
        let next_is_initial = matches!(next, Taken::Event(Event::Added { initial: true, .. }));
        if !next_is_initial && !matches!(next, Taken::Closed) && !self.mailbox.has_initial() {
            self.synced();
        }
    }

    fn synced(&mut self) {
        if !self.is_synced {
            self.is_synced = true;
            self.mailbox.synced.send_replace(true);
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // Nobody else waits for it.
        drop(self.mailbox.close());
        self.hub.remove(&self.mailbox);
    }
}
