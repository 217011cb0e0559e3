//! The operator on servers: the embedded one, and the real one with its controllers. Pods, the resolver and clients are played.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// Servers, and an operator that runs in this process.
mod harness;

// Who stands around it.
mod support;

// What users do, and see.
mod scenarios;

// That no request is lost.
mod end_to_end;
mod switching;

// What others do in the middle of it.
mod accidents;
mod given_back;
mod interrupted;
mod standby;

// By which ways requests come.
mod ways;

// What changes meanwhile: targets, specs, operators, definitions.
mod changes;
mod killed;
mod restarts;

// What cannot be done, and is said.
mod bad_input;
mod said;

// What is written, and what is not.
mod objects;

// What it has to be allowed.
mod rights;

// What KubeElasti did wrong, and where that is shown to be avoided.
mod avoided;
mod defects;
