//! The contestants of `cargo xtask bench sync` that are written in Rust: what they have in common.
//!
//! A contestant is a program that keeps a cache of one resource of the cluster in `$KUBECONFIG`, has one handler or
//! more, and is told over stdin what to do next. It measures itself. client-go's is in `bench/peers`, and does the same.

// What a handler does with an event, and what was seen.
pub mod pods;
pub mod seen;

// What is measured.
pub mod reads;
pub mod usage;

// How it is asked for.
pub mod protocol;

pub use protocol::Contestant;
