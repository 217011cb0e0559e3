//! The splitters of response bodies, from outside.

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

mod bodies;
mod fuzz;
mod list;
mod memory;
mod properties;
mod status;
mod watch;
