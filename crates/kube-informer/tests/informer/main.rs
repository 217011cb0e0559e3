//! The informer on servers: the embedded one and the real one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// Servers, what stands before them, and those who are told.
mod harness;
mod replay;
mod stage;

// Lists, watches, handlers, views.
mod basics;
mod keeping;
mod lifecycle;
mod scopes;

// What goes wrong.
mod access;
mod disasters;
mod faults;
mod odd;

// Much, nothing, and how it is counted.
mod load;
mod metrics;

// What people begin with.
mod examples;
