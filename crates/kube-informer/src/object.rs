//! One version of one object: its bytes, its metadata, its views.

// How it is kept small.
#[cfg_attr(not(test), expect(dead_code, reason = "used by the cache's writer"))]
mod pack;

// What many objects have in common is stored once.
#[cfg_attr(not(test), expect(dead_code, reason = "used by the cache's writer"))]
mod intern;

// What was decoded of it, while that is worth its memory.
#[cfg_attr(not(test), expect(dead_code, reason = "used by objects"))]
mod views;

pub use intern::{Labels, OwnerRef};
pub use pack::{Packing, UnpackError};
pub use views::ViewBudget;
