//! The contestants of `cargo xtask bench` that keep a cache and are written in Rust: what they have in common.
//!
//! A contestant is a program that keeps a cache of one resource of the cluster in `$KUBECONFIG`, has one handler or
//! more, and is told over stdin what to do next. It measures itself. client-go's is in `bench/peers`, and does the same.
//! Beside them are the programs around: an embedded server, one that writes, and a proxy that lies.

// What a handler does with an event, and what was seen.
pub mod count;
pub mod frames;
pub mod pods;
pub mod stamps;

pub mod seen;

// What is measured.
pub mod reads;
pub mod usage;

// How it is asked for, and what it needs from the system.
pub mod files;
pub mod protocol;

// How tests ask.
pub mod program;

pub use protocol::Contestant;
