//! Behaviour as observed on kube-apiserver 1.37.1.

mod definitions;
mod objects;
mod paths;
mod scaling;
mod totality;

use serde_json::{Value, json};

use super::{default_definition, prepare_definition, resources, status};
use crate::kinds::Resource;
use crate::status::FieldError;

const NOW: &str = "2026-01-02T03:04:05Z";

/// A definition of `foos.ex.com` with one version.
fn definition(schema: Value) -> Value {
    with_version(json!({ "schema": { "openAPIV3Schema": schema } }))
}

/// The same, with more in its version.
fn with_version(more: Value) -> Value {
    let mut version = json!({ "name": "v1", "served": true, "storage": true });
    merge(&mut version, more);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "foos.ex.com" },
        "spec": {
            "group": "ex.com",
            "scope": "Namespaced",
            "names": { "plural": "foos", "kind": "Foo" },
            "versions": [version],
        },
    })
}

fn merge(into: &mut Value, from: Value) {
    if let (Some(into), Value::Object(from)) = (into.as_object_mut(), from) {
        into.extend(from);
    }
}

/// A definition as it is after it was created and found its names free.
fn established(mut crd: Value) -> Value {
    default_definition(&mut crd);
    prepare_definition(&mut crd, None);
    crd["status"] = status(&crd, &[], NOW);
    crd
}

/// The served resource of a definition with one version.
fn served(crd: Value) -> Resource {
    resources(&established(crd)).unwrap().remove(0)
}

/// Errors as the `Status` message shows them, sorted.
fn shown(errors: &[FieldError]) -> Vec<String> {
    let mut all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    all.sort();
    all
}
