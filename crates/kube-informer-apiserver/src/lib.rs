//! The embedded API server.
