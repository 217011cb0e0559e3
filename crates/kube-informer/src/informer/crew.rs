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

/// How long is long.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// A handler whose turns take longer, as a mean, is slow: others do not wait for it.
    slow: Duration,
    /// A turn that lasts for so long blocks its thread.
    stuck: Duration,
}

const LIMITS: Limits = Limits { slow: SLOW, stuck: Duration::from_millis(100) };

/// After so many turns, other tasks have theirs.
const TURNS: usize = 64;

/// See the module.
pub(super) struct Crew(Arc<Shared>);

struct Shared {
    runtime: Handle,
    limits: Limits,
    queue: Mutex<Queue>,
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
    /// Whose turn it is with the driver.
    current: Option<Arc<Member>>,
    /// Turns that have begun.
    turns: u64,
    watcher: Option<Watcher>,
    /// Watchers so far.
    watchers: u64,
}

/// What is known of the task that watches.
struct Watcher {
    /// One with another number does not count any more.
    number: u64,
    task: AbortHandle,
    /// Rung when there is something to watch.
    bell: Arc<Notify>,
    is_awake: bool,
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
        Self::within(LIMITS, runtime)
    }

    fn within(limits: Limits, runtime: Handle) -> Self {
        Self(Arc::new(Shared { runtime, limits, queue: Mutex::default() }))
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
        (queue.waits, queue.current) = (None, None);
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
        // Nobody else waits for the only one.
        let bell = if queue.members.len() > 1 { self.watched(&mut queue) } else { None };
        drop(queue);
        if let Some(bell) = bell {
            bell.notify_one();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Sees to it that somebody watches; what is to be rung for that.
    fn watched(self: &Arc<Self>, queue: &mut Queue) -> Option<Arc<Notify>> {
        let Queue { watcher, watchers, .. } = queue;
        let watcher = watcher.get_or_insert_with(|| {
            *watchers += 1;
            let (number, bell) = (*watchers, Arc::new(Notify::new()));
            let task = self.runtime.spawn(watch(Arc::clone(self), Arc::clone(&bell), number)).abort_handle();
            Watcher { number, task, bell, is_awake: false }
        });
        let was_awake = std::mem::replace(&mut watcher.is_awake, true);
        (!was_awake).then(|| Arc::clone(&watcher.bell))
    }

    /// Whose turn it is. `None` for a driver that is not needed any more.
    fn next(&self, driver: u64, context: &Context<'_>) -> Poll<Option<Arc<Member>>> {
        let mut queue = self.lock();
        if queue.driver != driver {
            return Poll::Ready(None);
        }
        if let Some(member) = queue.ready.pop_front() {
            queue.turns = queue.turns.wrapping_add(1);
            queue.current = Some(Arc::clone(&member));
            return Poll::Ready(Some(member));
        }
        if queue.members.is_empty() {
            queue.is_driven = false;
            // This one does not count any more, whoever comes until it is gone.
            queue.driver += 1;
            if let Some(watcher) = queue.watcher.take() {
                watcher.task.abort();
            }
            return Poll::Ready(None);
        }
        queue.waits = Some(context.waker().clone());
        Poll::Pending
    }

    /// A turn with a driver is over.
    fn over(&self, driver: u64) {
        let mut queue = self.lock();
        let last = if queue.driver == driver { queue.current.take() } else { None };
        drop(queue);
        drop(last);
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
        for _ in 0..TURNS {
            let Some(member) = ready!(self.crew.next(self.number, context)) else { return Poll::Ready(()) };
            member.turn();
            self.crew.over(self.number);
            // What a slow one does next is a task, which may have been put behind this one.
            if !has_budget_remaining() || member.is_slow() {
                break;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
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
        let last = (queue.watcher.take(), queue.current.take(), std::mem::take(&mut queue.ready));
        let members = std::mem::take(&mut queue.members);
        drop(queue);
        drop(last);
        members.iter().for_each(|member| member.drop_at_once());
    }
}

/// Sees to it that nobody waits for a handler that blocks.
async fn watch(crew: Arc<Shared>, bell: Arc<Notify>, number: u64) {
    loop {
        bell.notified().await;
        let mut seen = crew.lock().turns;
        loop {
            tokio::time::sleep(crew.limits.stuck).await;
            let mut queue = crew.lock();
            let is_over = queue.turns == seen && queue.ready.is_empty() && queue.current.is_none();
            let Some(watcher) = queue.watcher.as_mut().filter(|watcher| watcher.number == number) else {
                return;
            };
            if is_over {
                watcher.is_awake = false;
                break;
            }
            let blocks = if queue.turns == seen { queue.current.clone() } else { None };
            seen = queue.turns;
            let Some(blocks) = blocks else { continue };
            let members = queue.members.clone();
            crew.drive(queue);
            // What is to wake one may be with the thread that is blocked.
            members.iter().for_each(Wake::wake_by_ref);
            tracing::warn!(
                handler = &*blocks.mailbox.name,
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

    fn is_slow(&self) -> bool {
        self.turns.mean() > self.crew.limits.slow
    }

    fn make_ready(self: &Arc<Self>) {
        if self.is_slow() {
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
                if self.turns.rest() {
                    if !has_budget_remaining() {
                        // What is to wake it may be with this thread, which others may block.
                        self.wake_by_ref();
                    }
                    return;
                }
                if !self.is_ended() {
                    self.turns.again();
                    self.make_ready();
                    return;
                }
                slot = self.slot();
            }
        }
        self.drop_run(slot);
        self.crew.remove(self);
    }

    /// Drops it; where it is in a turn, that does.
    fn drop_at_once(&self) {
        self.is_ended.store(true, Ordering::Release);
        // Whoever has it sees, at the end of its turn, that it is woken; and then, that it is ended.
        self.turns.wake();
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
