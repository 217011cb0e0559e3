//! The memory of a process that has an informer.
//!
//! Each test is a process by itself, because the memory is the process's. The server is in another one, and so is whoever
//! writes: what is written, and what is answered, takes memory, too, and is not the informer's.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod apart;

mod burst;
mod stuck;
