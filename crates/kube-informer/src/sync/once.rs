//! What is set once, of either kind.

use std::sync::{self, PoisonError, atomic::Ordering};

use shuttle::sync::{Mutex, MutexGuard, atomic::AtomicBool};

use super::schedules::is_scheduled;

pub(crate) enum OnceLock<T> {
    Usual(sync::OnceLock<T>),
    Scheduled(Box<Scheduled<T>>),
}

/// Whoever sets it waits for others who do. Whoever looks waits for nobody, and it is a step to look.
pub(crate) struct Scheduled<T> {
    turn: Mutex<()>,
    looked: AtomicBool,
    value: sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        if is_scheduled() {
            let (turn, looked) = (Mutex::new(()), AtomicBool::new(true));
            Self::Scheduled(Box::new(Scheduled { turn, looked, value: sync::OnceLock::new() }))
        } else {
            Self::Usual(sync::OnceLock::new())
        }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Usual(once) => once.get(),
            Self::Scheduled(once) => once.look(),
        }
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        match self {
            Self::Usual(once) => once.set(value),
            Self::Scheduled(once) => {
                let _turn = once.turn();
                once.value.set(value)
            }
        }
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        match self {
            Self::Usual(once) => once.get_or_init(make),
            Self::Scheduled(once) => {
                if let Some(value) = once.look() {
                    return value;
                }
                let _turn = once.turn();
                if once.value.get().is_none() {
                    // Others may come in between, and find nothing yet.
                    let value = make();
                    once.looked.store(true, Ordering::SeqCst);
                    let _ = once.value.set(value);
                }
                once.value.get().unwrap()
            }
        }
    }
}

impl<T> Scheduled<T> {
    fn look(&self) -> Option<&T> {
        self.looked.load(Ordering::SeqCst);
        self.value.get()
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}
