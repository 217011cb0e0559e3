//! What a controller writes, on servers: leases, finalizers, status, events.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// Servers, and ways to them.
mod harness;

// Who may act.
mod election;
mod processes;

// To objects, and about them.
mod events;
mod finalizers;
mod statuses;
