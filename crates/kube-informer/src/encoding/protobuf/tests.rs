//! What the protobuf encoding promises, sentence by sentence, and what it makes of bad input.
//!
//! Where a test says what an object shows, Go's types show the same of the same bytes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// Helpers.
mod build;

// What views show.
mod values;

mod absent;

mod embedded;

mod order;

mod views;

// What is refused.
mod refused;

mod depth;

// Random objects of all kinds.
mod random;
