//! Locks of either kind.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{self, LockResult, PoisonError, TryLockError, TryLockResult};

use shuttle::sync as scheduled;

use super::schedules::is_scheduled;

pub(crate) enum Mutex<T> {
    Usual(sync::Mutex<T>),
    Scheduled(scheduled::Mutex<T>),
}

pub(crate) enum MutexGuard<'a, T> {
    Usual(sync::MutexGuard<'a, T>),
    Scheduled(scheduled::MutexGuard<'a, T>),
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        if is_scheduled() {
            Self::Scheduled(scheduled::Mutex::new(value))
        } else {
            Self::Usual(sync::Mutex::new(value))
        }
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        match self {
            Self::Usual(mutex) => wrapped(mutex.lock(), MutexGuard::Usual),
            Self::Scheduled(mutex) => wrapped(mutex.lock(), MutexGuard::Scheduled),
        }
    }

    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        match self {
            Self::Usual(mutex) => try_wrapped(mutex.try_lock(), MutexGuard::Usual),
            Self::Scheduled(mutex) => try_wrapped(mutex.try_lock(), MutexGuard::Scheduled),
        }
    }
}

fn wrapped<G, W>(locked: LockResult<G>, wrap: impl FnOnce(G) -> W) -> LockResult<W> {
    match locked {
        Ok(guard) => Ok(wrap(guard)),
        Err(poisoned) => Err(PoisonError::new(wrap(poisoned.into_inner()))),
    }
}

fn try_wrapped<G, W>(locked: TryLockResult<G>, wrap: impl FnOnce(G) -> W) -> TryLockResult<W> {
    match locked {
        Ok(guard) => Ok(wrap(guard)),
        Err(TryLockError::Poisoned(poisoned)) => {
            Err(TryLockError::Poisoned(PoisonError::new(wrap(poisoned.into_inner()))))
        }
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usual(mutex) => mutex.fmt(f),
            Self::Scheduled(mutex) => mutex.fmt(f),
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
