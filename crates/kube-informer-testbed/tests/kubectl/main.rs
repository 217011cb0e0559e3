//! kubectl against the embedded server: what people type, and what they then read.
//!
//! Outputs are those of kube-apiserver 1.37.1, exact where nothing in them is random; spacing, ages and what
//! kubectl words differently from one release to the next are taken out first. The kubectl on the PATH is
//! used, or one built from the pinned Go module; where neither can be had each test is left out by name.
//!
//! One server per test. kubectl never sees a kubeconfig, a cache or a setting of whoever runs the tests.

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

mod harness;

// Reading.
mod access;
mod discovery;
mod get;

// Writing.
mod apply;
mod create;
mod delete;
mod edit;

// More than one built-in object.
mod custom;
mod rollout;

// What is refused, and in which words.
mod refusals;
