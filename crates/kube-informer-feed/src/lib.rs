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
