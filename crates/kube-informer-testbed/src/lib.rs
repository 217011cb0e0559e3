//! What the tests stand on.

pub mod skip;

pub mod eventually;

// Who one is, where the server is, and what it says.
pub mod certs;

pub mod kubeconfig;

pub mod http;

// The real servers: found or built, run, asked for by a test.
pub mod binaries;

pub mod process;

pub mod control_plane;

pub mod cluster;

// One of them, or the embedded one, for a test.
pub mod place;

// Our own programs.
pub mod examples;

// What tests put between and behind: faults, and objects in numbers.
pub mod load;
pub mod proxy;
