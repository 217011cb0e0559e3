//! The operator on servers: the embedded one, and the real one with its controllers. Pods, the resolver and clients are played.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// Servers, and an operator that runs in this process.
mod harness;

// Who stands around it.
mod support;

// What users do, and see.
mod scenarios;

// That no request is lost.
mod switching;

// What others do in the middle of it.
mod accidents;
mod given_back;

// What changes meanwhile: targets, specs, operators, definitions.
mod changes;
mod restarts;

// What cannot be done, and is said.
mod bad_input;

// What is written, and what is not.
mod objects;
