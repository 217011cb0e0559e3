//! The ElastiService operator as a process: it is started, stopped, killed at every step, has rivals and few rights, and in
//! the end everything is as it should be.

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

// A cluster with a resolver and services, and the operator's process.
mod support;

// How it begins and ends.
mod lifecycle;

// One of several works.
mod rivals;

// SIGKILL in the middle of everything that it does.
mod killed;
mod taken_back;

// The resolver comes and goes.
mod resolver;

// Five hundred ElastiServices.
mod many;

// What is applied to a cluster, and whether its rights suffice.
mod manifests;
mod rights;
