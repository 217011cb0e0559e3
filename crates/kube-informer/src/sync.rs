//! Locks, atomics and pointers at which threads meet: the standard library's, and arc-swap's.
//!
//! In tests, those that are made under [`in_many_schedules`] are a scheduler's, which chooses who goes on at each of them, so that
//! all that can happen between two threads can be made to happen. What that shows, and what not:
//!
//! - A step is one call: a load, a store, a swap, a lock that is taken or let go. The scheduler's form of an [`ArcSwap`] is a lock
//!   around an `Arc`, and that of a [`OnceLock`] a lock beside one: how these are made inside is not tested here, only how they
//!   are used.
//! - What is not from here, such as tokio's channels and the counts of an `Arc`, goes with the step before it.
//! - All threads see one order of all steps. What only weaker memory can do is not tried.

#[cfg(not(test))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};
#[cfg(not(test))]
pub(crate) use std::sync::{Mutex, MutexGuard, OnceLock};

#[cfg(not(test))]
pub(crate) use arc_swap::{ArcSwap, ArcSwapOption};

#[cfg(test)]
mod atomic;
#[cfg(test)]
mod mutex;
#[cfg(test)]
mod once;
#[cfg(test)]
mod schedules;
#[cfg(test)]
mod swap;

#[cfg(test)]
pub(crate) use atomic::{AtomicBool, AtomicU8, AtomicUsize};
#[cfg(test)]
pub(crate) use mutex::{Mutex, MutexGuard};
#[cfg(test)]
pub(crate) use once::OnceLock;
#[cfg(test)]
pub(crate) use schedules::{in_many_schedules, unscheduled};
#[cfg(test)]
pub(crate) use swap::{ArcSwap, ArcSwapOption};
