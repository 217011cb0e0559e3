//! The manager on servers: the embedded one and the real one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// A server, and what stands before it.
mod harness;

// How watches come and go, and what is said where they cannot be.
mod adding;
mod stopping;

// Through which informers objects are seen, and who may see them.
mod access;
mod sharing;

// What goes wrong, and what is told all the same.
mod health;

// Who is told.
mod telling;
