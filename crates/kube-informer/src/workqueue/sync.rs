//! The lock that a queue's state is in: the standard library's.
//!
//! In tests, a lock that is made under [`scheduled`] is one whose order a scheduler chooses, so that all that can happen
//! between two threads can be made to happen.

#[cfg(not(test))]
pub(super) use std::sync::{Mutex, MutexGuard};

#[cfg(test)]
pub(super) use either::{Mutex, MutexGuard, scheduled};

#[cfg(test)]
mod either {
    use std::cell::Cell;
    use std::ops::{Deref, DerefMut};
    use std::sync::{self, LockResult, PoisonError};

    thread_local! {
        /// A scheduler runs all of its threads on one thread of the system.
        static SCHEDULED: Cell<bool> = const { Cell::new(false) };
    }

    /// Locks that are made by this, and by what it starts under a scheduler, are the scheduler's.
    pub(in crate::workqueue) fn scheduled(run: impl FnOnce()) {
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

    pub(in crate::workqueue) enum Mutex<T> {
        Usual(sync::Mutex<T>),
        Scheduled(shuttle::sync::Mutex<T>),
    }

    pub(in crate::workqueue) enum MutexGuard<'a, T> {
        Usual(sync::MutexGuard<'a, T>),
        Scheduled(shuttle::sync::MutexGuard<'a, T>),
    }

    impl<T> Mutex<T> {
        pub(in crate::workqueue) fn new(value: T) -> Self {
            if SCHEDULED.get() {
                Self::Scheduled(shuttle::sync::Mutex::new(value))
            } else {
                Self::Usual(sync::Mutex::new(value))
            }
        }

        pub(in crate::workqueue) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
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
