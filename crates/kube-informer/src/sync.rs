//! Locks and atomics of what is awaited by hand: the standard library's.
//!
//! In tests, those that are made under [`in_many_schedules`] are a scheduler's, which chooses who goes on at each of them, so that
//! all that can happen between two threads can be made to happen.

#[cfg(not(test))]
pub(crate) use std::sync::{Mutex, MutexGuard, atomic::AtomicU8};

#[cfg(test)]
pub(crate) use either::{AtomicU8, Mutex, MutexGuard, in_many_schedules};

#[cfg(test)]
mod either {
    use std::cell::Cell;
    use std::ops::{Deref, DerefMut};
    use std::sync::atomic::Ordering;
    use std::sync::{self, LockResult, PoisonError, atomic};

    thread_local! {
        /// A scheduler runs all of its threads on one thread of the system.
        static SCHEDULED: Cell<bool> = const { Cell::new(false) };
    }

    /// What is made by this, and by what it starts under a scheduler, is the scheduler's.
    fn scheduled(run: impl FnOnce()) {
        struct End;
        impl Drop for End {
            fn drop(&mut self) {
                SCHEDULED.set(false);
            }
        }
        SCHEDULED.set(true);
        let _end = End;
        run();
    }

    /// So many schedules of each kind.
    const SCHEDULES: usize = 500;

    /// Two kinds of choice: at random at each step, and by priorities that change seldom, which finds what needs long runs
    /// of one thread.
    pub(crate) fn in_many_schedules(run: impl Fn() + Send + Sync + Copy + 'static) {
        // What is awaited may need a clock: its deadlines are far away.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _entered = runtime.enter();
        scheduled(|| {
            shuttle::check_random(run, SCHEDULES);
            shuttle::check_pct(run, SCHEDULES, 3);
        });
    }

    #[derive(Debug)]
    pub(crate) enum AtomicU8 {
        Usual(atomic::AtomicU8),
        Scheduled(shuttle::sync::atomic::AtomicU8),
    }

    impl Default for AtomicU8 {
        fn default() -> Self {
            Self::new(0)
        }
    }

    impl AtomicU8 {
        pub(crate) fn new(value: u8) -> Self {
            if SCHEDULED.get() {
                Self::Scheduled(shuttle::sync::atomic::AtomicU8::new(value))
            } else {
                Self::Usual(atomic::AtomicU8::new(value))
            }
        }

        pub(crate) fn store(&self, value: u8, order: Ordering) {
            match self {
                Self::Usual(atomic) => atomic.store(value, order),
                Self::Scheduled(atomic) => atomic.store(value, order),
            }
        }

        pub(crate) fn swap(&self, value: u8, order: Ordering) -> u8 {
            match self {
                Self::Usual(atomic) => atomic.swap(value, order),
                Self::Scheduled(atomic) => atomic.swap(value, order),
            }
        }

        pub(crate) fn compare_exchange(
            &self,
            current: u8,
            new: u8,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u8, u8> {
            match self {
                Self::Usual(atomic) => atomic.compare_exchange(current, new, success, failure),
                Self::Scheduled(atomic) => atomic.compare_exchange(current, new, success, failure),
            }
        }

        pub(crate) fn fetch_update(
            &self,
            set: Ordering,
            fetch: Ordering,
            next: impl FnMut(u8) -> Option<u8>,
        ) -> Result<u8, u8> {
            match self {
                Self::Usual(atomic) => atomic.fetch_update(set, fetch, next),
                Self::Scheduled(atomic) => atomic.fetch_update(set, fetch, next),
            }
        }
    }

    pub(crate) enum Mutex<T> {
        Usual(sync::Mutex<T>),
        Scheduled(shuttle::sync::Mutex<T>),
    }

    pub(crate) enum MutexGuard<'a, T> {
        Usual(sync::MutexGuard<'a, T>),
        Scheduled(shuttle::sync::MutexGuard<'a, T>),
    }

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            if SCHEDULED.get() {
                Self::Scheduled(shuttle::sync::Mutex::new(value))
            } else {
                Self::Usual(sync::Mutex::new(value))
            }
        }

        pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            fn wrapped<G, W>(locked: LockResult<G>, wrap: impl FnOnce(G) -> W) -> LockResult<W> {
                match locked {
                    Ok(guard) => Ok(wrap(guard)),
                    Err(poisoned) => Err(PoisonError::new(wrap(poisoned.into_inner()))),
                }
            }
            match self {
                Self::Usual(mutex) => wrapped(mutex.lock(), MutexGuard::Usual),
                Self::Scheduled(mutex) => wrapped(mutex.lock(), MutexGuard::Scheduled),
            }
        }
    }

    impl<T> Deref for MutexGuard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            match self {
                Self::Usual(guard) => guard,
                Self::Scheduled(guard) => guard,
            }
        }
    }

    impl<T> DerefMut for MutexGuard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            match self {
                Self::Usual(guard) => guard,
                Self::Scheduled(guard) => guard,
            }
        }
    }
}
