//! Requests that make sense, about a few objects: many are taken, so that there is something to lose.

use http::Method;
use serde_json::{Value, json};

use super::random::Random;
use crate::harness::{config_map, deployment, pod, service};

/// A request whose parts fit.
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) media: &'static str,
    pub(super) body: Value,
}

const NAMES: [&str; 3] = ["a", "b", "ws.f.example.com"];
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

impl Random {
    /// A collection and an object that it takes.
    pub(super) fn thing(&mut self) -> (&'static str, Value) {
        match self.below(11) {
            0 => ("/api/v1/namespaces/default/configmaps", config_map("a")),
            1 => ("/api/v1/namespaces/default/pods", pod("a")),
            2 => ("/api/v1/namespaces/default/services", service("a")),
            3 => ("/apis/apps/v1/namespaces/default/deployments", deployment("a")),
            4 => ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition()),
            5 => ("/apis/f.example.com/v1/namespaces/default/ws", custom()),
            6 => ("/apis/coordination.k8s.io/v1/namespaces/default/leases", lease()),
            7 => ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget()),
            8 => ("/api/v1/namespaces", json!({ "metadata": { "name": "x" } })),
            9 => ("/api/v1/namespaces/x/configmaps", config_map("a")),
            _ => ("/api/v1/namespaces/default/serviceaccounts", json!({ "metadata": { "name": "a" } })),
        }
    }

    pub(super) fn sense(&mut self) -> Asked {
        let (collection, mut object) = self.thing();
        let fixed = collection.ends_with("definitions") || collection.ends_with("/namespaces");
        if !fixed && self.chance(40) {
            object["metadata"]["name"] = self.of(&NAMES).into();
        }
        if self.chance(10) {
            object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        if self.chance(10) {
            let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "11111111-2222-3333-4444-555555555555" });
            object["metadata"]["ownerReferences"] = json!([owner]);
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let one = format!("{collection}/{name}");
        let ask = |method, path, media, body| Asked { method, path, media, body };
        match self.below(20) {
            0..6 => ask(Method::POST, collection.to_owned(), JSON, object),
            6..9 => ask(Method::PUT, one, JSON, object),
            9..11 => ask(Method::PATCH, one, MERGE, self.change(object)),
            11 => ask(Method::PATCH, one, "application/strategic-merge-patch+json", self.change(object)),
            12 => ask(Method::PATCH, one, "application/json-patch+json", self.operations()),
            13..15 => {
                let options = json!({ "kind": "DeleteOptions", "apiVersion": "v1",
                    "propagationPolicy": self.of(&["Foreground", "Background", "Orphan"]) });
                ask(Method::DELETE, one, JSON, options)
            }
            15 => ask(Method::PUT, format!("{one}/status"), JSON, object),
            16 => ask(Method::PATCH, format!("{one}/status"), MERGE, self.change(object)),
            17 => self.part(),
            18 => ask(Method::GET, one, JSON, Value::Null),
            _ if self.chance(20) => ask(Method::DELETE, collection.to_owned(), JSON, json!({})),
            _ => ask(Method::GET, collection.to_owned(), JSON, Value::Null),
        }
    }

    /// Some of an object, as a patch has it.
    fn change(&mut self, object: Value) -> Value {
        match self.below(4) {
            0 => json!({ "metadata": { "labels": { "app": self.of(&["a", "b"]) } } }),
            1 => json!({ "metadata": { "finalizers": null } }),
            2 => {
                json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "$patch": "delete" }], "$setElementOrder/containers": [{ "name": "x" }] } }, "$retainKeys": ["x"] }, "$patch": "merge" })
            }
            _ => object,
        }
    }

    /// What is posted to a part of an object.
    fn part(&mut self) -> Asked {
        let (path, method, body) = match self.below(5) {
            0 => (
                "/api/v1/namespaces/default/pods/a/binding",
                Method::POST,
                json!({ "metadata": { "name": "a" }, "target": { "kind": "Node", "name": "n" } }),
            ),
            1 => (
                "/api/v1/namespaces/default/pods/a/eviction",
                Method::POST,
                json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "a" }, "deleteOptions": { "gracePeriodSeconds": 0 } }),
            ),
            2 => (
                "/apis/apps/v1/namespaces/default/deployments/a/scale",
                Method::PUT,
                json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": { "name": "a" }, "spec": { "replicas": self.below(5) } }),
            ),
            3 => (
                "/apis/f.example.com/v1/namespaces/default/ws/a/scale",
                Method::PUT,
                json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": { "name": "a" }, "spec": { "replicas": self.below(5) } }),
            ),
            _ => (
                "/api/v1/namespaces/default/serviceaccounts/a/token",
                Method::POST,
                json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} }),
            ),
        };
        Asked { method, path: path.to_owned(), media: JSON, body }
    }
}

fn definition() -> Value {
    json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "ws.f.example.com" },
        "spec": { "group": "f.example.com", "scope": "Namespaced", "names": { "plural": "ws", "singular": "w", "kind": "W", "listKind": "WList" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {}, "scale": { "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n" } },
                "additionalPrinterColumns": [{ "name": "N", "type": "integer", "jsonPath": ".spec.n" }],
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "n": { "type": "integer", "default": 1, "maximum": 9 }, "s": { "type": "string", "pattern": "^a+$" } } }, "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } } } }] } })
}

fn custom() -> Value {
    json!({ "apiVersion": "f.example.com/v1", "kind": "W", "metadata": { "name": "a" }, "spec": { "n": 3, "s": "aaa", "x": [1, { "y": null }] } })
}

fn lease() -> Value {
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "a" }, "spec": { "renewTime": "2001-01-01T00:00:00.000000Z" } })
}

fn budget() -> Value {
    json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "a" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "a" } } },
        "status": { "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2, "observedGeneration": 9 } })
}
