//! The task that drives the asynchronous handlers of an informer.
//!
//! A change is told to all handlers. If each had a task, each change would wake as many, and another thread of the runtime
//! with them, which costs more than most handlers do. So one task drives them, one after the other.
//!
//! - A handler whose turns take long, as a mean, has a task for each turn: others do not wait for it.
//! - Where one blocks its thread all the same, the others go on in another task, and a warning names it. A watcher sees
//!   to that, which is only awake while something happens.
//! - A handler is never driven by two at once, and is dropped with the runtime, as any task is.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::task::coop::has_budget_remaining;

use super::mailbox::Mailbox;
use super::turns::{SLOW, Turns};

/// Where nothing moves for so long, the one whose turn it is blocks its thread.
const STUCK: Duration = Duration::from_millis(100);

/// See the module.
pub(super) struct Crew(Arc<Shared>);

struct Shared {
    runtime: Handle,
    queue: Mutex<Queue>,
    /// Rung when there is something to watch.
    bell: Notify,
}

#[derive(Default)]
struct Queue {
    /// All that have not ended.
    members: Vec<Arc<Member>>,
    /// Those with something to do, and without a task of their own for it.
    ready: VecDeque<Arc<Member>>,
    /// The number of the driver. One with another number ends as soon as it comes.
    driver: u64,
    /// Whether there is one.
    is_driven: bool,
    /// How it is woken, where it waits for somebody to be ready.
    waits: Option<Waker>,
    /// Turns that have begun.
    turns: u64,
    watcher: Option<AbortHandle>,
    /// Whether the watcher is awake.
    is_watched: bool,
}

/// One handler.
pub(super) struct Member {
    crew: Arc<Shared>,
    turns: Turns,
    mailbox: Arc<Mailbox>,
    /// It is to be dropped as soon as it waits.
    is_ended: AtomicBool,
    /// Taken at its end.
    run: Mutex<Option<Run>>,
}

/// What a handler does, from its beginning to its end.
type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Crew {
    pub(super) fn new(runtime: Handle) -> Self {
        Self(Arc::new(Shared { runtime, queue: Mutex::default(), bell: Notify::new() }))
    }

    /// Drives a handler until it ends.
    pub(super) fn add(
        &self,
        mailbox: Arc<Mailbox>,
        run: impl Future<Output = ()> + Send + 'static,
    ) -> Arc<Member> {
        let member = Arc::new(Member {
            crew: Arc::clone(&self.0),
            turns: Turns::default(),
            mailbox,
            is_ended: AtomicBool::new(false),
            run: Mutex::new(Some(Box::pin(run))),
        });
        let mut queue = self.0.lock();
        queue.members.push(Arc::clone(&member));
        if queue.is_driven {
            drop(queue);
        } else {
            self.0.drive(queue);
        }
        member.wake_by_ref();
        member
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing is left half done where it is held.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a driver. Where there is one, it is not counted on any more.
    fn drive(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) {
        queue.is_driven = true;
        queue.driver += 1;
        queue.waits = None;
        let driver = Driver { crew: Arc::clone(self), number: queue.driver };
        // It takes the lock where it is dropped at once, because the runtime is gone.
        drop(queue);
        self.runtime.spawn(driver);
    }

    fn push(self: &Arc<Self>, member: &Arc<Member>) {
        let mut queue = self.lock();
        if !queue.is_driven {
            // The runtime is gone, and with it the handler.
            return;
        }
        queue.ready.push_back(Arc::clone(member));
        let waker = queue.waits.take();
        // The driver waits: it comes now, and for this one. Else it has others to drive.
        let is_to_be_watched = waker.is_none() && !queue.is_watched && queue.members.len() > 1;
        if is_to_be_watched {
            queue.is_watched = true;
            if queue.watcher.is_none() {
                queue.watcher = Some(self.runtime.spawn(watch(Arc::clone(self))).abort_handle());
            }
        }
        drop(queue);
        if is_to_be_watched {
            self.bell.notify_one();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whose turn it is. `None` for a driver that is not needed any more.
    fn next(&self, driver: u64, context: &Context<'_>) -> Poll<Option<Arc<Member>>> {
        let mut queue = self.lock();
        if queue.driver != driver {
            return Poll::Ready(None);
        }
        if let Some(member) = queue.ready.pop_front() {
            queue.turns = queue.turns.wrapping_add(1);
            return Poll::Ready(Some(member));
        }
        if queue.members.is_empty() {
            queue.is_driven = false;
            // This one does not count any more, whoever comes until it is gone.
            queue.driver += 1;
            queue.is_watched = false;
            if let Some(watcher) = queue.watcher.take() {
                watcher.abort();
            }
            return Poll::Ready(None);
        }
        queue.waits = Some(context.waker().clone());
        Poll::Pending
    }

    /// A member has ended. The driver looks whether there are others.
    fn remove(&self, member: &Arc<Member>) {
        let mut queue = self.lock();
        queue.members.retain(|each| !Arc::ptr_eq(each, member));
        let waker = if queue.members.is_empty() { queue.waits.take() } else { None };
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Drives those that are ready.
struct Driver {
    crew: Arc<Shared>,
    number: u64,
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        while let Some(member) = ready!(self.crew.next(self.number, context)) {
            member.turn();
            // Other tasks have their turn.
            if !has_budget_remaining() {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let mut queue = self.crew.lock();
        if queue.driver != self.number {
            return;
        }
        // The runtime is gone, and with it go its tasks.
        queue.is_driven = false;
        queue.watcher = None;
        let (members, ready) = (std::mem::take(&mut queue.members), std::mem::take(&mut queue.ready));
        drop(queue);
        drop(ready);
        members.iter().for_each(|member| member.drop_at_once());
    }
}

/// Sees to it that nobody waits for a handler that blocks.
async fn watch(shared: Arc<Shared>) {
    loop {
        shared.bell.notified().await;
        let mut seen = shared.lock().turns;
        loop {
            tokio::time::sleep(STUCK).await;
            let mut queue = shared.lock();
            if queue.turns != seen {
                seen = queue.turns;
                continue;
            }
            if queue.ready.is_empty() {
                queue.is_watched = false;
                break;
            }
            let blocks = queue.members.iter().find(|member| member.turns.is_on());
            let handler = blocks.map(|member| Arc::clone(&member.mailbox.name));
            shared.drive(queue);
            tracing::warn!(
                handler = handler.as_deref(),
                "a handler blocks its thread: the others go on without it; give a closure to Informer::on for what blocks"
            );
        }
    }
}

impl Wake for Member {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.turns.wake() {
            self.make_ready();
        }
    }
}

impl Member {
    /// Drops it as soon as it waits.
    pub(super) fn end(self: &Arc<Self>) {
        self.is_ended.store(true, Ordering::Release);
        self.wake_by_ref();
    }

    fn make_ready(self: &Arc<Self>) {
        if self.turns.mean() > SLOW {
            let member = Arc::clone(self);
            self.crew.runtime.spawn(async move { member.turn() });
        } else {
            self.crew.push(self);
        }
    }

    fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }

    /// Drives it until it waits, or ends.
    fn turn(self: &Arc<Self>) {
        self.turns.begin();
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);
        let mut slot = self.slot();
        let Some(run) = slot.as_mut() else { return };
        if !self.is_ended() {
            let begun = Instant::now();
            // Whatever the handler does is caught where it is called. What is left is a runtime that is gone.
            let poll = || catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(&mut context)));
            let polled = self.mailbox.calling(poll).unwrap_or(Poll::Ready(()));
            self.turns.took(begun.elapsed());
            if polled.is_pending() && !self.is_ended() {
                drop(slot);
                if !self.turns.rest() {
                    self.turns.again();
                    self.make_ready();
                }
                return;
            }
        }
        self.drop_run(slot);
        self.crew.remove(self);
    }

    /// Drops it; where it is in a turn, that does.
    fn drop_at_once(&self) {
        self.is_ended.store(true, Ordering::Release);
        if let Ok(slot) = self.run.try_lock() {
            self.drop_run(slot);
        }
    }

    fn drop_run(&self, mut slot: MutexGuard<'_, Option<Run>>) {
        let run = slot.take();
        drop(slot);
        // A stranger's handler is dropped with it, and may ask for its own end.
        drop(self.mailbox.calling(|| catch_unwind(AssertUnwindSafe(|| drop(run)))));
    }

    fn slot(&self) -> MutexGuard<'_, Option<Run>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crew").field("handlers", &self.0.lock().members.len()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("name", &self.mailbox.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
