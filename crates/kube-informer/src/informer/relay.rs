//! Asynchronous handlers that are called one behind the other, by one task.
//!
//! Where several tasks become ready at a time, a runtime wakes another of its threads to share them. For handlers that take a
//! microsecond that costs more than they do. So those who are told something together stand in a line, and a task that is made
//! for it leads it: it polls each in its [seat](super::seat), and ends with the line. Their own tasks sleep on.
//!
//! - A single one is called by its own task, and so is one that has more to do than a task may do at a time.
//! - The one that leads is nobody's own task. So one that blocks its thread, which it must not, takes no other handler with it: a
//!   line that forms behind its back has a leader of its own, and those who stood behind it are called by their own tasks. That they
//!   are stuck a thread sees, after 50 ms or a little more. It is there only while there are lines now and then, and ends with the
//!   relay.
//!   Not so what the runtime keeps for its thread: a handler that has yielded in the middle of a call, or the task that was
//!   woken last, waits until the thread is free.
//! - Nothing is polled or woken with the lock held.
//!
//! A line that somebody stands in is led, or its leader waits for its turn in the runtime; a line that nobody stands in is not.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::coop::has_budget_remaining;
use tokio::task::yield_now;

use super::seat::{Seat, Turn};

/// How long is long.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// So long a line is led before other tasks have their turn.
    slice: Duration,
    /// And for so many turns.
    turns: usize,
    /// Where a line does not move for so long, it is stuck.
    stuck: Duration,
    /// After so many looks at a line that does not move, nobody watches any more.
    idle: u32,
}

const LIMITS: Limits = Limits {
    slice: if cfg!(test) { Duration::from_millis(50) } else { Duration::from_micros(200) },
    turns: 32,
    // Unit tests run beside one another: what is late there is not stuck.
    stuck: Duration::from_millis(if cfg!(test) { 500 } else { 50 }),
    idle: 200,
};

/// The name of the thread.
const NAME: &str = "informer-relay";

/// See the module.
pub(super) struct Relay {
    shared: Arc<Shared>,
}

struct Shared {
    runtime: Handle,
    limits: Limits,
    line: Mutex<Line>,
    /// For the one that watches: there is nothing to watch any more.
    over: Condvar,
}

#[derive(Default)]
struct Line {
    /// Those who are ready. One that somebody else has come for stands here for nothing.
    waiting: VecDeque<Arc<Seat>>,
    /// Changes with everyone who leaves the line, and with every line that forms.
    moves: u64,
    is_watched: bool,
    /// There are no lines any more.
    is_over: bool,
}

impl Relay {
    pub(super) fn new(runtime: Handle) -> Self {
        Self::within(LIMITS, runtime)
    }

    fn within(limits: Limits, runtime: Handle) -> Self {
        Self { shared: Arc::new(Shared { runtime, limits, line: Mutex::default(), over: Condvar::new() }) }
    }

    /// There is something to do for all of these.
    pub(super) fn wake(&self, mut seats: Vec<Arc<Seat>>) {
        seats.retain(|seat| seat.is_ready_now());
        if !seats.is_empty() {
            self.shared.join(seats);
        }
    }

    #[cfg(test)]
    pub(super) fn is_watched(&self) -> bool {
        self.shared.lock().is_watched
    }

    /// No line forms any more. Those who stand in one are called by their own tasks.
    pub(super) fn close(&self) {
        let mut line = self.shared.lock();
        line.is_over = true;
        let stood = line.leave();
        drop(line);
        self.shared.over.notify_all();
        call_tasks(stood);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.close();
    }
}

impl Line {
    fn next(&mut self) -> Option<Arc<Seat>> {
        self.moves = self.moves.wrapping_add(1);
        self.waiting.pop_front()
    }

    /// All leave.
    fn leave(&mut self) -> VecDeque<Arc<Seat>> {
        self.moves = self.moves.wrapping_add(1);
        std::mem::take(&mut self.waiting)
    }
}

impl Shared {
    fn join(self: &Arc<Self>, seats: Vec<Arc<Seat>>) {
        let mut line = self.lock();
        let is_led = !line.waiting.is_empty();
        let is_single = !is_led && seats.len() == 1;
        let is_alone = line.is_over || is_single;
        if is_alone || !self.is_watched(&mut line) {
            drop(line);
            call_tasks(seats);
            if !is_alone {
                tracing::debug!("no thread to watch handlers: each is woken by itself");
            }
            return;
        }
        line.waiting.extend(seats);
        if !is_led {
            line.moves = line.moves.wrapping_add(1);
            drop(line);
            self.runtime.spawn(lead(Arc::clone(self)));
        }
    }

    /// Whether somebody watches; begins to.
    fn is_watched(self: &Arc<Self>, line: &mut Line) -> bool {
        if !line.is_watched {
            let shared = Arc::clone(self);
            let thread = std::thread::Builder::new().name(NAME.to_owned());
            line.is_watched = thread.spawn(move || shared.watch()).is_ok();
        }
        line.is_watched
    }

    /// Calls the tasks of those in the line whenever it does not move.
    fn watch(&self) {
        let (mut seen, mut still) = (None, 0);
        let _watching = Watching(self);
        let mut line = self.lock();
        while !line.is_over {
            still = if seen == Some(line.moves) { still + 1 } else { 0 };
            if still > 0 && !line.waiting.is_empty() {
                let stood = line.leave();
                drop(line);
                let waiting = stood.len();
                call_tasks(stood);
                tracing::debug!(waiting, "handlers do not get their turn: another one may block its thread");
                line = self.lock();
                still = 0;
            }
            if still >= self.limits.idle {
                break;
            }
            seen = Some(line.moves);
            let waited = self.over.wait_timeout_while(line, self.limits.stuck, |line| !line.is_over);
            line = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        line.is_watched = false;
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        // Nothing is left half done where it is held.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody watches any more where it ends with a panic: a stranger's log may.
struct Watching<'a>(&'a Shared);

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_watched = false;
        }
    }
}

/// Calls one after the other, until nobody stands in the line.
async fn lead(shared: Arc<Shared>) {
    loop {
        let begun = Instant::now();
        for _ in 0..shared.limits.turns {
            let Some(seat) = shared.lock().next() else { return };
            if seat.poll() == Turn::Again {
                shared.join(vec![seat]);
            }
            // Without a budget, those who come next would do nothing: it is all theirs after the others' turn.
            if !has_budget_remaining() || begun.elapsed() >= shared.limits.slice {
                break;
            }
        }
        yield_now().await;
    }
}

fn call_tasks(seats: impl IntoIterator<Item = Arc<Seat>>) {
    seats.into_iter().for_each(|seat| seat.call_task());
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("waiting", &self.shared.lock().waiting.len()).finish()
    }
}

#[cfg(test)]
mod tests;
