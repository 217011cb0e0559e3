//! Pointers that are read while they are exchanged, of either kind.

use std::sync::{Arc, Mutex, PoisonError, atomic::Ordering};

use arc_swap::{Guard, RefCnt};
use shuttle::sync::atomic::AtomicBool;

use super::schedules::is_scheduled;

pub(crate) type ArcSwap<T> = ArcSwapAny<Arc<T>>;
pub(crate) type ArcSwapOption<T> = ArcSwapAny<Option<Arc<T>>>;

pub(crate) enum ArcSwapAny<T: RefCnt> {
    Usual(arc_swap::ArcSwapAny<T>),
    Scheduled(Scheduled<T>),
}

/// Others may come before and after it is read or exchanged.
pub(crate) struct Scheduled<T> {
    pointer: Mutex<T>,
    looked: AtomicBool,
}

impl<T> ArcSwap<T> {
    pub(crate) fn from_pointee(value: T) -> Self {
        Self::new(Arc::new(value))
    }
}

impl<T> ArcSwapOption<T> {
    pub(crate) fn empty() -> Self {
        Self::new(None)
    }
}

impl<T: RefCnt> ArcSwapAny<T> {
    fn new(value: T) -> Self {
        if is_scheduled() {
            Self::Scheduled(Scheduled { pointer: Mutex::new(value), looked: AtomicBool::new(true) })
        } else {
            Self::Usual(arc_swap::ArcSwapAny::new(value))
        }
    }

    /// The scheduler's is counted from the beginning, and not only when it is exchanged: that is the same for whoever has
    /// exchanged it.
    pub(crate) fn load(&self) -> Guard<T> {
        match self {
            Self::Usual(swap) => swap.load(),
            Self::Scheduled(pointer) => Guard::from_inner(pointer.step(|value| value.clone())),
        }
    }

    pub(crate) fn load_full(&self) -> T {
        match self {
            Self::Usual(swap) => swap.load_full(),
            Self::Scheduled(pointer) => pointer.step(|value| value.clone()),
        }
    }

    pub(crate) fn store(&self, value: T) {
        drop(self.swap(value));
    }

    pub(crate) fn swap(&self, value: T) -> T {
        match self {
            Self::Usual(swap) => swap.swap(value),
            Self::Scheduled(pointer) => pointer.step(|old| std::mem::replace(old, value)),
        }
    }
}

impl<T> Scheduled<T> {
    fn step<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        self.looked.load(Ordering::SeqCst);
        let done = act(&mut self.pointer.lock().unwrap_or_else(PoisonError::into_inner));
        self.looked.load(Ordering::SeqCst);
        done
    }
}
