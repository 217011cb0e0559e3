//! The fault proxy before a scripted server: every fault, both formats, and
//! what the transcript says.

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

#[path = "../support/watching.rs"]
mod watching;

mod answers;
mod bodies;
mod door;
mod events;
mod transcript;
mod upstream;
