//! Where an asynchronous handler is called: by its own task, or by whoever comes for it.
//!
//! Its task is woken by what it waits for, as any other is. What is told to several of them at a time is brought by one task for
//! all ([`relay`](super::relay)), which polls each where it sits.
//!
//! - It is polled by one at a time. Whoever has its turn has its future: nobody waits for the lock around it.
//! - What wakes it goes to its task, whoever polled it; where it is being polled, another turn follows.
//! - When its task is dropped, its future is dropped: at once, or by whoever polls it at that moment, when that returns. When its
//!   future has ended, its task ends.
//! - A panic that it does not catch ends it, and nobody else.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use tokio::sync::watch;

use super::mailbox::Mailbox;
use super::turns::Turns;

/// See the module.
pub(super) struct Seat {
    mailbox: Arc<Mailbox>,
    /// Who is in its turn alone has the future. At its end, the turn stays taken.
    turns: Turns,
    /// Taken at its end.
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    /// Of its own task.
    task: AtomicWaker,
    /// Its task was dropped.
    is_left: AtomicBool,
    /// Its future is gone.
    has_ended: AtomicBool,
}

/// What became of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "one that is to be called again is called by nobody else"]
pub(super) enum Turn {
    /// It waits, has ended, or is with somebody else.
    Over,
    /// It was woken since: it is ready, and somebody is to come for it.
    Again,
}

/// What a handler's own task does. Dropping it ends the handler.
pub(super) struct Keeper {
    seat: Arc<Seat>,
    /// Closed when nothing of the handler runs any more.
    _running: watch::Sender<()>,
}

/// Makes a place for a handler, and tells its mailbox. It is ready: its task begins with it.
pub(super) fn take(
    mailbox: &Arc<Mailbox>,
    future: impl Future<Output = ()> + Send + 'static,
    running: watch::Sender<()>,
) -> Keeper {
    let seat = Arc::new(Seat {
        mailbox: Arc::clone(mailbox),
        turns: Turns::default(),
        future: Mutex::new(Some(Box::pin(future))),
        task: AtomicWaker::new(),
        is_left: AtomicBool::new(false),
        has_ended: AtomicBool::new(false),
    });
    mailbox.sit(&seat);
    seat.turns.wake();
    Keeper { seat, _running: running }
}

impl Seat {
    /// There is something to do. Whether somebody is to come for it who does not anyway.
    pub(super) fn is_ready_now(&self) -> bool {
        self.turns.wake()
    }

    /// Its own task is to come for it.
    pub(super) fn call_task(&self) {
        self.task.wake();
    }

    /// Polls it, if it is ready.
    pub(super) fn poll(self: &Arc<Self>) -> Turn {
        if !self.turns.claim() {
            return Turn::Over;
        }
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);
        if self.is_left.load(Ordering::Acquire) || self.poll_future(&mut context).is_ready() {
            self.end();
            return Turn::Over;
        }
        if self.turns.rest() {
            return Turn::Over;
        }
        self.turns.again();
        // Not before: its task could be dropped in between, and nobody would come.
        if self.is_left.load(Ordering::Acquire) && self.turns.claim() {
            self.end();
            return Turn::Over;
        }
        Turn::Again
    }

    fn poll_future(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut slot = self.future.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(future) = slot.as_mut() else { return Poll::Ready(()) };
        // What a handler does is caught where it is called. What is left is, for one, a runtime without timers.
        let poll = || catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        self.mailbox.calling(poll).unwrap_or_else(|panic| {
            std::mem::forget(panic);
            tracing::error!(handler = %self.mailbox.name, "a handler has ended with a panic");
            Poll::Ready(())
        })
    }

    /// Only for the one in its turn, which stays taken.
    fn end(&self) {
        let future = self.future.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A stranger's handler is dropped with it.
        let dropped = self.mailbox.calling(|| catch_unwind(AssertUnwindSafe(|| drop(future))));
        self.has_ended.store(true, Ordering::Release);
        self.task.wake();
        if let Err(panic) = dropped {
            std::mem::forget(panic);
            tracing::error!(handler = %self.mailbox.name, "a handler panicked while it was dropped");
        }
    }

    /// Its task is gone, so it ends.
    fn leave(self: &Arc<Self>) {
        self.is_left.store(true, Ordering::Release);
        // Whoever is in its turn sees that at its end; one who comes after this, at the beginning.
        self.turns.wake();
        let _ = self.poll();
    }
}

impl Wake for Seat {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_ready_now() {
            self.call_task();
        }
    }
}

impl Future for Keeper {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.seat.task.register(context.waker());
        if self.seat.poll() == Turn::Again {
            context.waker().wake_by_ref();
        }
        if self.seat.has_ended.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.seat.leave();
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not its mailbox, in which it is.
        f.debug_struct("Seat").field("turns", &self.turns).finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests;
