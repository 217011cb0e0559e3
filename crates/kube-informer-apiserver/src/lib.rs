//! An in-process Kubernetes API server.
//!
//! It speaks HTTP and JSON like kube-apiserver, keeps everything in memory and starts in
//! milliseconds. Watches are real: versions, bookmarks, `sendInitialEvents`, a bounded window and
//! `410 Gone` beyond it. It shares no type with any client library, so it hides no decoding bug.
//!
//! The modules, in the order a request passes them.

// The way in: sockets, TLS, one service, and what can go wrong there on command.
mod accept;
pub mod faults;
mod server;
mod service;
mod tls;

// What is asked, by whom, in which form.
mod auth;
mod handler;
mod kubeconfig;
mod listing;
mod negotiate;
mod protobuf;
mod request;

// What exists: kinds as data, their schemas, custom resources.
mod crd;
mod discovery;
mod kinds;
mod openapi;
mod registry;
mod schema;

// The verbs, and what every write goes through.
mod admission;
mod api;
mod convert;
mod defaults;
mod fields;
mod managed_fields;
mod patch;
mod strategy;
mod validation;

// What is kept, and who is told.
mod housekeeping;
mod object;
mod selector;
mod store;
mod watch;

// Who does something about it.
mod simulator;

// The way out.
mod body;
pub mod print;
mod render;
mod status;
mod table;

pub use self::body::Body;
pub use self::server::{Builder, Server, ServerError, Stats};
pub use self::service::Service;
pub use self::simulator::Simulation;

/// What the README shows works.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
