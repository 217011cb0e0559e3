//! The splitters of response bodies, from outside.

mod bodies;
mod fuzz;
mod list;
mod properties;
mod status;
mod watch;
