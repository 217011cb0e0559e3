//! The informer on servers: the embedded one and the real one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

// Servers, what stands before them, who may see what, and those who are told.
mod harness;
mod replay;
mod somebody;
mod stage;

// Lists, watches, handlers, views.
mod basics;
mod crowd;
mod keeping;
mod lifecycle;
mod scopes;

// What goes wrong.
mod access;
mod credentials;
mod disasters;
mod faults;
mod limited;
mod odd;
mod pages;
mod unordered;

// Much, nothing, and how it is counted.
mod load;
mod metrics;

// What people begin with.
mod examples;
