#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! Read top to bottom, they are the way from an object's text to what is done for it.
#![forbid(unsafe_code)]

// What users write, and what they read: the ElastiService.
pub mod api;
// What the objects are called that are made for it.
pub mod names;
