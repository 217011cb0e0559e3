//! What one object costs: framed, scanned, cut, packed, unpacked, viewed; beside serde_json, sonic-rs and prost.
//!
//! A [`Case`] is one piece of work per object, over the same recorded objects (`data/`, made by `examples/record.rs`
//! from a real server). The program of this package times all cases in one process, in turns, so that what disturbs the
//! machine disturbs all of them, or runs them one after the other for a profiler that counts instructions.
//!
//! Of each resource, the first half of the objects trains the dictionary and the second half is measured: nothing is
//! packed that the dictionary was made from.

// What was recorded.
pub mod data;

// What every case begins with: objects at each stage.
mod prepared;

// The pieces of work.
pub mod cases;

pub use cases::Case;
