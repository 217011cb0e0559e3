#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! Read top to bottom, they are the way of a change.

#![forbid(unsafe_code)]

// What changed, said in words.
pub mod change;

// What happens to Deployments: the controller.
pub mod deployments;

// What is said over a connection.
pub mod message;

// What was told, for those who come back.
pub mod journal;

// One informer per resource, however many are told.
pub mod hub;

// One connection without its socket.
mod session;

// Connections.
pub mod server;

// What is counted.
mod metrics;
