#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! Read top to bottom, they are the way from an object's text to what is done for it.
#![forbid(unsafe_code)]

// What users write, and what they read: the ElastiService, and its definition.
pub mod api;
pub mod crd;
// What the objects are called that are made for it.
pub mod names;

// Who wants to know, told once however often it changes.
mod news;

// Which ElastiService a Service belongs to.
pub mod directory;

// What its target is doing, and who is to answer for it.
pub mod ops_informer;

// How the target is woken, and put to sleep.
pub mod scale;

// What is done for all of them.
pub mod operator;

// What the operator is told.
pub mod settings;

// Who asks for a service that sleeps.
mod http;
pub mod wake;

// What can be seen from outside.
pub mod metrics;

// Everything under one roof.
pub mod run;
