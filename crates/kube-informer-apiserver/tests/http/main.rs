//! The server on the wire: protocols, TLS, tokens, compression, limits, and its end.

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

mod answers;
mod client;
mod connections;
mod lifecycle;
mod protocols;

use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, size: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": { "text": "x".repeat(size) },
    })
}
