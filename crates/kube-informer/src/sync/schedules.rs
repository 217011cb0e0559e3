//! Runs a test in many schedules, and knows what is a scheduler's.

use std::cell::Cell;
use std::mem::ManuallyDrop;

thread_local! {
    /// A scheduler runs all of its threads on one thread of the system.
    static SCHEDULED: Cell<bool> = const { Cell::new(false) };
}

/// Whether what is made now is a scheduler's.
pub(super) fn is_scheduled() -> bool {
    SCHEDULED.get()
}

/// What is made by this, and by what it starts under a scheduler, is the scheduler's, or not.
fn made<R>(scheduled: bool, make: impl FnOnce() -> R) -> R {
    struct End(bool);
    impl Drop for End {
        fn drop(&mut self) {
            SCHEDULED.set(self.0);
        }
    }
    let _end = End(SCHEDULED.replace(scheduled));
    make()
}

/// What is made by this is not the scheduler's: what a test needs, and is not about. Nothing that is the scheduler's may be
/// touched by it.
pub(crate) fn unscheduled<R>(make: impl FnOnce() -> R) -> R {
    made(false, make)
}

/// So many schedules of each kind.
const SCHEDULES: usize = 500;

/// Two kinds of choice: at random at each step, and by priorities that change seldom, which finds what needs long runs
/// of one thread.
pub(crate) fn in_many_schedules(run: impl Fn() + Send + Sync + Copy + 'static) {
    // What is awaited may need a clock: its deadlines are far away. After a failure it is left behind: it would wake those who
    // wait, and they are gone.
    let clock = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let clock = ManuallyDrop::new(clock);
    let entered = clock.enter();
    made(true, || {
        shuttle::check_random(run, SCHEDULES);
        shuttle::check_pct(run, SCHEDULES, 3);
    });
    drop(entered);
    drop(ManuallyDrop::into_inner(clock));
}
