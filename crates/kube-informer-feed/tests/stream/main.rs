//! The feed over WebSocket, with clients on sockets, on the embedded API server and on the real one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// Servers, and clients.
mod client;
mod harness;

// Snapshots, changes, selectors, resuming.
mod published;
mod resume;
mod subscribing;

// Who may come in.
mod door;

// What resources are called.
mod names;

// What clients do wrong, and what goes wrong around them.
mod bad_input;
mod cluster;
mod slow;

// Many of them.
mod many;
