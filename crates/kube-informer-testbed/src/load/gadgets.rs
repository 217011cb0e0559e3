//! A custom resource that stands for any: a spec that people write, a status
//! that a controller writes.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::rng::Rng;
use super::{Endpoint, Kind, Object, Step};

/// The API group.
pub(super) const GROUP: &str = "load.kube-informer.dev";

const TEAMS: &[&str] = &["blue", "green", "orange", "red", "violet", "yellow"];
const SITES: &[&str] = &["berlin", "dublin", "oslo", "osaka", "quito", "sydney"];

pub(super) fn gadget(seed: u64, index: u64) -> Object {
    let mut rng = Rng::of(seed, "gadget", index);
    let name = format!("gadget-{}-{index:x}", rng.name(6));
    let team = *rng.pick(TEAMS);
    let parts: Vec<Value> = (0..3)
        .map(|at| {
            json!({
                "name": format!("part-{at}"),
                "serial": rng.hex(24).to_uppercase(),
                "quantity": 1 + rng.below(40),
                "settings": { "mode": rng.pick(&["auto", "manual", "off"]), "threshold": rng.below(1000).to_string() },
            })
        })
        .collect();
    let manifest = json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "Gadget",
        "metadata": {
            "name": name,
            "labels": { "team": team, "site": rng.pick(SITES), "app.kubernetes.io/managed-by": "gadget-cli" },
            "annotations": { format!("{GROUP}/requested-by"): format!("{team}@example.com") },
        },
        "spec": {
            "owner": format!("{team}-team"),
            "description": format!("Batch {} of the assembly line, order {}.", rng.below(1000), rng.hex(12)),
            "replicas": 1 + rng.below(9),
            "parts": parts,
            "window": { "start": rng.time(), "end": "2026-03-02T00:00:00Z" },
        },
    });
    let assembled = rng.time();
    let status = json!({
        "observedGeneration": 1,
        "phase": "Assembled",
        "processed": 0,
        "conditions": [
            { "type": "Ready", "status": "True", "reason": "Assembled", "message": "all parts are in place",
              "lastTransitionTime": assembled },
            { "type": "Progressing", "status": "False", "reason": "Done", "message": "nothing is left to do",
              "lastTransitionTime": assembled },
        ],
        "parts": (0..3).map(|at| json!({ "name": format!("part-{at}"), "state": "fitted", "checksum": rng.hex(32) }))
            .collect::<Vec<_>>(),
    });
    let steps = vec![Step { manager: "gadget-controller", patch: json!({ "status": status }) }];
    Object { kind: Kind::Gadget, name, manager: "gadget-cli", manifest, steps }
}

/// The controller has done one thing more.
pub(super) fn update(number: u64, rng: &mut Rng) -> Step {
    let phase = *rng.pick(&["Assembled", "Testing", "Shipping"]);
    Step { manager: "gadget-controller", patch: json!({ "status": { "processed": number, "phase": phase } }) }
}

/// The manifest of the definition that [`custom_resources`](super::custom_resources) need.
#[must_use]
pub fn custom_resource_definition() -> Value {
    let text = json!({ "type": "string" });
    let number = json!({ "type": "integer", "format": "int64" });
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let list = |properties: Value, key: &str| {
        json!({
            "type": "array",
            "items": { "type": "object", "required": [key], "properties": properties },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": [key],
        })
    };
    let spec = object(json!({
        "owner": text,
        "description": text,
        "replicas": number,
        "parts": list(json!({
            "name": text,
            "serial": text,
            "quantity": number,
            "settings": { "type": "object", "additionalProperties": text },
        }), "name"),
        "window": object(json!({ "start": text, "end": text })),
    }));
    let status = object(json!({
        "observedGeneration": number,
        "phase": text,
        "processed": number,
        "conditions": list(json!({
            "type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": text,
        }), "type"),
        "parts": list(json!({ "name": text, "state": text, "checksum": text }), "name"),
    }));
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("gadgets.{GROUP}") },
        "spec": {
            "group": GROUP,
            "names": { "kind": "Gadget", "listKind": "GadgetList", "plural": "gadgets", "singular": "gadget" },
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": object(json!({ "spec": spec, "status": status })) },
            }],
        },
    })
}

/// Creates the definition, if it is not there, and awaits that it is served.
pub async fn install_custom_resources(endpoint: &Endpoint) -> Result<()> {
    let answer = endpoint
        .post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &custom_resource_definition())
        .await?;
    if answer.status != http::StatusCode::CONFLICT {
        answer.success().context("cannot define the custom resource")?;
    }
    let collection = format!("/apis/{GROUP}/v1/gadgets?limit=1");
    let served = async {
        // Nothing to watch tells that a path is served: ask until it is.
        while endpoint.get(&collection).await?.status != http::StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    match tokio::time::timeout(Duration::from_secs(30), served).await {
        Ok(served) => served,
        Err(_) => bail!("{collection} is not served within 30 s"),
    }
}
