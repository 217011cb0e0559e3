//! The Deployment controller on servers: the embedded one and the real one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// Servers, and a controller that runs.
mod harness;

// What is told.
mod changes;

// What goes wrong, and much of it.
mod trouble;

// What people begin with.
mod example;
