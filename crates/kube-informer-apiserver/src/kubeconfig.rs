//! A kubeconfig for the server. Written as JSON, which every YAML reader takes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The contents of a kubeconfig that reaches `url`.
pub(crate) fn kubeconfig(url: &str, ca_pem: Option<&str>, token: Option<&str>) -> Value {
    let mut cluster = json!({ "server": url });
    if let Some(ca) = ca_pem {
        cluster["certificate-authority-data"] = STANDARD.encode(ca).into();
    }
    let user = token.map_or_else(|| json!({}), |token| json!({ "token": token }));
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "kube-informer", "cluster": cluster }],
        "users": [{ "name": "kube-informer", "user": user }],
        "contexts": [{
            "name": "kube-informer",
            "context": { "cluster": "kube-informer", "user": "kube-informer", "namespace": "default" },
        }],
        "current-context": "kube-informer",
    })
}
