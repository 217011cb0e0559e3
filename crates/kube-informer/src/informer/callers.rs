//! Threads that call closures, which may block.
//!
//! - Closures that return at once are called by one thread, one after the other: to wake a thread for each of them would
//!   cost more than most of them do. What takes long is not waited for: a closure that took long before, or takes long
//!   now, has its thread for itself, and others go on on another one. How long "now" is, a watcher decides, which is only
//!   there while closures wait for one another.
//! - Closures that are told something together become ready together: the thread that comes for the first of them finds all, and
//!   does not meet, before each, the one that still wakes the others.
//! - A closure is never called by two threads at once, and everything is done in the order of its events.
//! - There are never more threads than closures, and one. Those that have nothing to do end after a while, and at once
//!   when there is no closure any more.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use tokio::runtime::Handle;

use super::turns::{Mean, SLOW, Turns};

/// How long is long.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// A closure whose calls take longer than this, as a mean, is slow: others do not wait for it.
    slow: Duration,
    /// One that was called for longer than this lets others have their turn.
    slice: Duration,
    /// Where nothing moves for so long, the one that is being called is slow.
    stuck: Duration,
    /// So long a thread waits for something to do.
    idle: Duration,
}

const LIMITS: Limits = Limits {
    slow: SLOW,
    slice: Duration::from_millis(1),
    stuck: Duration::from_millis(50),
    idle: Duration::from_secs(10),
};

/// The name of the threads.
const NAME: &str = "informer-calls";

/// See the module. Clones share the threads.
#[derive(Clone)]
pub(crate) struct Callers {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Handle,
    limits: Limits,
    queue: Mutex<Queue>,
    /// For those that have nothing to do.
    work: Condvar,
    /// For the one that watches.
    alarm: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Closures with something to be called with.
    ready: VecDeque<Arc<Caller>>,
    /// All closures that there are.
    callers: usize,
    /// All threads, and those that are about to begin.
    threads: usize,
    /// Those that are about to begin.
    beginning: usize,
    /// Threads that wait, and are not told to come.
    idle: usize,
    /// Threads that waited, were told to come, and have not come.
    told: usize,
    /// Threads in a call that should not take long: they come by themselves.
    quick: usize,
    /// Changes when those that should not take long did.
    epoch: u64,
    /// How often a call that should not take long did not.
    returned: u64,
    watch: Watch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Watch {
    #[default]
    Off,
    /// Whoever comes next watches.
    Wanted,
    On,
}

/// A thread in a call that should not take long, and since when.
#[derive(Clone, Copy)]
struct Quick(u64);

/// A thread that is about to begin. Where it does not, because the runtime is gone, nobody waits for it.
struct Beginning(Option<Arc<Shared>>);

impl Beginning {
    /// What a thread does, from its beginning to its end.
    fn serve(mut self) {
        let Some(shared) = self.0.take() else { return };
        // So that closures can spawn tasks.
        let _context = shared.runtime.enter();
        let mut queue = shared.lock();
        queue.beginning -= 1;
        let mut next = shared.next(queue);
        while let Some((caller, quick)) = next {
            caller.run(quick.is_some());
            drop(caller);
            let mut queue = shared.lock();
            if quick.is_some_and(|Quick(epoch)| epoch == queue.epoch) {
                queue.quick -= 1;
                queue.returned = queue.returned.wrapping_add(1);
            }
            next = shared.next(queue);
        }
        shared.lock().threads -= 1;
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        let Some(shared) = &self.0 else { return };
        let mut queue = shared.lock();
        queue.beginning -= 1;
        queue.threads -= 1;
    }
}

/// What is done for one closure.
pub(super) trait Work: Send + 'static {
    /// Calls the closure with the next event, if there is one; else sees to it that the waker is woken when there is.
    fn step(&mut self, context: &mut Context<'_>) -> Step;
}

/// What a step was.
pub(super) enum Step {
    /// It was called, and took so long.
    Called(Duration),
    /// There is nothing to call it with.
    Waits,
    /// There will be nothing any more.
    Ended,
}

/// One closure, and whose turn it is to call it.
pub(super) struct Caller {
    shared: Arc<Shared>,
    /// Its turns with a thread.
    turns: Turns,
    /// How long calls take.
    calls: Mean,
    /// Taken at its end.
    work: Mutex<Option<Box<dyn Work>>>,
}

impl Callers {
    pub(crate) fn new(runtime: Handle) -> Self {
        Self::within(LIMITS, runtime)
    }

    fn within(limits: Limits, runtime: Handle) -> Self {
        let (work, alarm) = (Condvar::new(), Condvar::new());
        Self { shared: Arc::new(Shared { runtime, limits, queue: Mutex::default(), work, alarm }) }
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.shared.runtime
    }

    /// Works until there is nothing to do any more, and then drops it.
    pub(super) fn add(&self, work: impl Work) -> Arc<Caller> {
        let shared = Arc::clone(&self.shared);
        let work = Mutex::new(Some(Box::new(work) as Box<dyn Work>));
        self.shared.lock().callers += 1;
        let caller = Arc::new(Caller { shared, turns: Turns::default(), calls: Mean::default(), work });
        caller.wake_by_ref();
        caller
    }
}

/// There is something to do for all of these.
pub(super) fn wake_together(mut callers: Vec<Arc<Caller>>) {
    callers.retain(|caller| caller.turns.wake());
    for of_one in callers.chunk_by(|one, next| Arc::ptr_eq(&one.shared, &next.shared)) {
        of_one[0].shared.push(of_one);
    }
}

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.turns.wake() {
            self.shared.push(std::slice::from_ref(self));
        }
    }
}

impl Caller {
    fn is_slow(&self) -> bool {
        self.calls.get() > self.shared.limits.slow
    }

    /// Calls the closure until there is nothing to call it with, or others are to have their turn; or until it is slow, and
    /// was thought to be `quick`.
    fn run(self: &Arc<Self>, quick: bool) {
        self.turns.begin();
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);
        let mut slot = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let mut busy = Duration::ZERO;
        while let Some(work) = slot.as_mut() {
            // Whatever the closure does is caught where it is called. What is left is a runtime that is gone.
            let step = catch_unwind(AssertUnwindSafe(|| work.step(&mut context))).unwrap_or(Step::Ended);
            match step {
                Step::Called(time) => {
                    self.calls.add(time);
                    busy += time;
                    if busy >= self.shared.limits.slice || quick && self.is_slow() {
                        drop(slot);
                        self.turns.again();
                        self.shared.push(std::slice::from_ref(self));
                        return;
                    }
                }
                Step::Waits => {
                    if self.turns.rest() {
                        return;
                    }
                }
                Step::Ended => {
                    let work = slot.take();
                    // A stranger's closure is dropped with it.
                    drop(catch_unwind(AssertUnwindSafe(|| drop(work))));
                    self.shared.one_less();
                }
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing is left half done where it is held.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(self: &Arc<Self>, callers: &[Arc<Caller>]) {
        let mut queue = self.lock();
        queue.ready.extend(callers.iter().cloned());
        self.provide(queue);
    }

    fn one_less(&self) {
        let mut queue = self.lock();
        queue.callers -= 1;
        if queue.callers == 0 {
            self.work.notify_all();
            self.alarm.notify_all();
        }
    }

    /// Sees to it that somebody comes for what is ready.
    fn provide(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) {
        if queue.ready.is_empty() || queue.told + queue.beginning > 0 {
            return;
        }
        if queue.quick > 0 {
            // Somebody comes soon; or does not, and then somebody else has to see that.
            if queue.watch != Watch::Off {
                return;
            }
            queue.watch = Watch::Wanted;
        }
        if queue.idle > 0 {
            queue.idle -= 1;
            queue.told += 1;
            drop(queue);
            self.work.notify_one();
            return;
        }
        let beginning = self.begin(queue);
        if let Err(error) = std::thread::Builder::new().name(NAME.to_owned()).spawn(|| beginning.serve()) {
            // The pool has threads already, or makes room for one later.
            tracing::warn!(%error, "no thread for handlers: they share the pool of the runtime");
            let beginning = self.begin(self.lock());
            self.runtime.spawn_blocking(|| beginning.serve());
        }
    }

    fn begin(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) -> Beginning {
        queue.beginning += 1;
        queue.threads += 1;
        drop(queue);
        Beginning(Some(Arc::clone(self)))
    }

    /// Waits for something to do; `None` where the thread is to end.
    fn next<'a>(
        self: &'a Arc<Self>,
        mut queue: MutexGuard<'a, Queue>,
    ) -> Option<(Arc<Caller>, Option<Quick>)> {
        loop {
            if queue.watch == Watch::Wanted {
                queue = self.watch(queue);
            }
            if let Some(caller) = queue.ready.pop_front() {
                let quick = (!caller.is_slow()).then_some(Quick(queue.epoch));
                queue.quick += usize::from(quick.is_some());
                self.provide(queue);
                return Some((caller, quick));
            }
            if queue.callers == 0 {
                return None;
            }
            queue.idle += 1;
            let is_for_nothing = |queue: &mut Queue| queue.told == 0 && queue.callers > 0;
            let waited = self.work.wait_timeout_while(queue, self.limits.idle, is_for_nothing);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            if queue.told == 0 {
                queue.idle -= 1;
                return None;
            }
            queue.told -= 1;
        }
    }

    /// Waits until no call returns any more that should: there is none, or one takes long.
    fn watch<'a>(&'a self, mut queue: MutexGuard<'a, Queue>) -> MutexGuard<'a, Queue> {
        queue.watch = Watch::On;
        while queue.callers > 0 {
            let returned = queue.returned;
            let waited = self.alarm.wait_timeout(queue, self.limits.stuck);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            if queue.returned == returned {
                break;
            }
        }
        queue.watch = Watch::Off;
        if !queue.ready.is_empty() {
            // Nobody counts on those that are being called any more.
            queue.quick = 0;
            queue.epoch = queue.epoch.wrapping_add(1);
        }
        queue
    }
}

thread_local! {
    /// Whose closure, or asynchronous handler, this thread is in a call of.
    static CALLING: Cell<usize> = const { Cell::new(0) };
}

/// Calls, and lets [`is_called_here`] know that it is the one with this address.
pub(super) fn calling<R>(whose: usize, call: impl FnOnce() -> R) -> R {
    let before = CALLING.replace(whose);
    let result = call();
    CALLING.set(before);
    result
}

/// Whether this thread is in a call of the one with this address.
pub(super) fn is_called_here(whose: usize) -> bool {
    CALLING.get() == whose
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller").field("turns", &self.turns).finish_non_exhaustive()
    }
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callers").field("closures", &self.shared.lock().callers).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
