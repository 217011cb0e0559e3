#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! Read top to bottom, they are the way of the data.

// One line is allowed to be: `informer/slack.rs`.
#![deny(unsafe_code)]

// What arrives: chunks of a response's body become frames of a watch and items of a list.
pub mod wire;

// What an object's bytes say: metadata, and views decoded on demand.
pub mod encoding;

// What is kept: one version of one object.
pub mod object;

// Which one: group, version, plural, kind.
pub mod resource;

// Whom to ask, and as whom.
pub mod connect;

// Who asks the server: lists, watches, resumes.
mod reflector;

// The way from there to the cache.
mod queue;

// What is known now: all objects of a resource, found by key, namespace, label, owner or any index.
pub mod cache;

// One watch and one cache for everyone who wants to know.
pub mod informer;

// One informer for everyone who asks for the same.
pub mod factory;

// What the soak test switches off, to see that it then fails.
#[doc(hidden)]
pub mod sabotage;

// What to do: keys that wait for workers, once each, with delays, retries and priorities.
pub mod workqueue;

// Where it is done.
mod host;

// What threads wait for each other with, there and on the way to the cache.
mod sync;

// What is written in doing it.
pub mod write;

// Who does it: sources of keys, workers, and a reconciler.
pub mod controller;

// Single objects that are watched for somebody, for as long as they are of interest.
pub mod manager;

// Several controllers and their informers under one roof.
pub mod runner;

// Who may do it, where there are several.
pub mod leader;

// What tests hear of it.
#[cfg(test)]
mod said;

/// What the guides and the repository's first page show compiles.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../docs/migrating-from-client-go.md")]
    struct FromClientGo;

    #[doc = include_str!("../docs/migrating-from-kube-runtime.md")]
    struct FromKubeRuntime;

    #[doc = include_str!("../../../README.md")]
    struct FirstPage;
}
