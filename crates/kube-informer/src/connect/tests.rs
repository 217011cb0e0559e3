//! Against servers.
