#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! Read top to bottom, they are the way of the data.

#![forbid(unsafe_code)]

// What arrives: chunks of a response's body become frames of a watch and items of a list.
pub mod wire;

// What an object's bytes say: metadata, and views decoded on demand.
pub mod encoding;

// What is kept: one version of one object.
pub mod object;

// Which one: group, version, plural, kind.
pub mod resource;

// Who asks the server: lists, watches, resumes.
#[cfg_attr(not(test), expect(dead_code, reason = "the informer will start them"))]
mod reflector;

// What is known now: all objects of a resource, found by key, namespace, label, owner or any index.
pub mod cache;

// What to do: keys that wait for workers, once each, with delays, retries and priorities.
pub mod workqueue;
