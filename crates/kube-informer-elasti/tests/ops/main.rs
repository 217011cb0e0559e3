//! The definition, targets and their scale, on servers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// Servers, and what is made on them.
mod harness;

// What users write.
mod definition;

// How targets are scaled.
mod scaling;

// What targets are doing.
mod following;
mod kinds;
mod many;
mod stale;
