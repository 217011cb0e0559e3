//! The informer on servers: the embedded one and the real one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod harness;

// Lists, watches, handlers, views.
mod basics;

// What people begin with.
mod examples;
