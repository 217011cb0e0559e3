//! Controllers on servers: the embedded one and the real one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// Servers, and what stands before them.
#[path = "../informer/harness.rs"]
#[expect(dead_code, reason = "the tests of informers use more of it")]
mod harness;
#[path = "../informer/replay.rs"]
#[expect(dead_code, reason = "the tests of informers use more of it")]
mod replay;
#[path = "../informer/stage.rs"]
#[expect(dead_code, reason = "the tests of informers use more of it")]
mod stage;

// A controller that tells what it does.
mod play;

// Where keys come from, and that none is lost.
mod sources;

// How reconciles end, what they see, and who may run them.
mod running;
