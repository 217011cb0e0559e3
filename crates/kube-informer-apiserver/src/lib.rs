//! An in-process Kubernetes API server.
//!
//! It speaks HTTP and JSON like kube-apiserver, keeps everything in memory and starts in
//! milliseconds. Watches are real: versions, bookmarks, `sendInitialEvents`, a bounded window and
//! `410 Gone` beyond it. It shares no type with any client library, so it hides no decoding bug.
//!
//! The modules, in the order a request passes them.

// The way in and out: sockets, TLS, who is asking, what is asked for, in which form.

// What exists: kinds as data, their schemas, custom resources.
mod crd;
mod discovery;
mod kinds;
mod openapi;
mod schema;

// What a write goes through, as pure functions over JSON.
mod defaults;
mod fields;
mod managed_fields;
mod patch;
mod quantity;
mod strategy;
mod validation;

// What is kept, and who is told.
mod selector;
mod status;

// How it is shown.
mod table;
