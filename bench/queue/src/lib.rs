//! The contestants of `cargo xtask bench queue` that are written in Rust: what they have in common.
//!
//! A contestant is a program that is called with the name of a case and a number of keys. It plays the case some times, or
//! as often as a third argument says, each time with a new queue, and prints one line of JSON: what one key took, as `wall_ns` and as `cpu_ns`, and the most
//! memory that the program ever had, its keys included, as `peak_bytes`; or why the case is `left_out`. So that one can see
//! that the work was done, it says what became of the keys, see [`Tally`]. Keys are made, and copied for the queue, before
//! the clock runs. client-go's contestant is in `bench/peers/queue`, and does the same.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

pub mod case;
pub mod memory;
pub mod watch;

pub use case::Case;
pub use watch::Stopwatch;

/// How many workers there are where there are several.
pub const WORKERS: usize = 4;

/// What was asked for on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// What is to be played.
    pub case: Case,
    /// With how many keys.
    pub keys: usize,
    /// How often.
    pub times: usize,
}

impl Task {
    /// From the arguments of the program.
    ///
    /// # Errors
    ///
    /// If they are not a case and one or two numbers.
    pub fn from_arguments() -> Result<Self> {
        let mut arguments = std::env::args().skip(1);
        let usage = "usage: CASE KEYS [TIMES]";
        let case = Case::named(&arguments.next().context(usage)?)?;
        let keys = arguments.next().context(usage)?.parse().context("not a number of keys")?;
        let times = match arguments.next() {
            Some(times) => times.parse().context("not a number of times")?,
            None => case.times(keys),
        };
        Ok(Self { case, keys, times })
    }

    /// What the program prints.
    ///
    /// # Errors
    ///
    /// Where there is no `/proc`.
    pub fn measured(self, watch: &Stopwatch, tally: Tally) -> Result<Value> {
        let operations = self.times * self.keys;
        let each = |time: Duration| time.as_nanos() as f64 / operations as f64;
        Ok(json!({
            "case": self.case.name(),
            "keys": self.keys,
            "wall_ns": each(watch.wall()),
            "cpu_ns": each(watch.cpu()),
            "peak_bytes": memory::peak()?,
            "got": tally.got,
            "left": tally.left,
            "failing": tally.failing,
        }))
    }

    /// What the program prints of a case that its queue has no way to do.
    #[must_use]
    pub fn left_out(self, why: &str) -> Value {
        json!({ "case": self.case.name(), "keys": self.keys, "left_out": why })
    }
}

/// What became of the keys of all times that a case was played, counted together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Keys that workers got.
    pub got: usize,
    /// Keys that were there to be got at the end; none where the queue cannot say.
    pub left: Option<usize>,
    /// Failures that were remembered at the end; none where the queue remembers none.
    pub failing: Option<usize>,
}

/// Namespace and name of so many objects, in the order of a list.
pub fn names(keys: usize) -> impl Iterator<Item = (String, String)> {
    (0..keys).map(|at| (format!("namespace-{}", at / 1000), format!("web-6d4b75cb6d-{at:07}")))
}

/// The same in another order, which is always the same one.
#[must_use]
pub fn mixed<T>(mut keys: Vec<T>) -> Vec<T> {
    let mut state = 1_u64;
    for at in (1..keys.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        keys.swap(at, (state >> 33) as usize % (at + 1));
    }
    keys
}

/// How long a key is delayed, by its place: up to 10 ms, in no order.
#[must_use]
pub fn delay(at: usize) -> Duration {
    Duration::from_micros((at as u64).wrapping_mul(7919) % 10_000)
}
