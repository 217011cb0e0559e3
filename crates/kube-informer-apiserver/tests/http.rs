//! The server on the wire: protocols, TLS, tokens, compression, limits, and its end.

#[path = "http/answers.rs"]
mod answers;
#[path = "http/client.rs"]
mod client;
#[path = "http/lifecycle.rs"]
mod lifecycle;
#[path = "http/protocols.rs"]
mod protocols;

use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, size: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": { "text": "x".repeat(size) },
    })
}
