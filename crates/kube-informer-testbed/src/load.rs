//! Objects in numbers: made from a seed, written to an API server, kept moving.
//!
//! [`pods`] and [`custom_resources`] give the same objects for the same seed,
//! on every machine; an object does not depend on how many others are made.
//! They are made one at a time, so that a large load needs no memory here.
//!
//! A pod is about 12 KB of JSON as the server renders it, a custom resource
//! about 3 KB; more than half of a pod are its managed fields. Those cannot be
//! sent, they come about: each object is written in several steps, as several
//! writers do it (a pod as kube-controller-manager, kube-scheduler and kubelet).
//! What the server adds (uid, versions, times of writing) differs between runs.
//!
//! [`write_all`] writes with bounded parallelism and says which object could
//! not be written, at which step, and why. [`Steady`] updates what was written,
//! at a rate. Both wait where the server asks for it (429 with Retry-After).
//!
//! The pods' nodes and owners do not exist: on a cluster with controllers they
//! are collected as garbage. Use a control plane without, or finish sooner.

use serde_json::Value;

use crate::http::Endpoint;

mod gadgets;
mod pods;
mod rng;

mod steady;
mod write;

pub use gadgets::{custom_resource_definition, install_custom_resources};
pub use rng::Rng;
pub use steady::{Pace, Steady, Updated};
pub use write::{Failed, Failure, Written, write_all};

/// What kind of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `v1/pods`.
    Pod,
    /// `load.kube-informer.dev/v1/gadgets`, a custom resource.
    Gadget,
}

/// One object to write: its first manifest and the writes that follow.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    kind: Kind,
    name: String,
    manager: &'static str,
    manifest: Value,
    steps: Vec<Step>,
}

/// A write that follows the creation: a merge patch of the status.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    manager: &'static str,
    patch: Value,
}

/// So many realistic pods: two containers, probes, volumes, a full status. Five
/// by five they belong to one ReplicaSet and share its labels and owner.
pub fn pods(seed: u64, count: usize) -> impl Iterator<Item = Object> + Clone + Send {
    (0..count).map(move |index| pods::pod(seed, index as u64))
}

/// So many custom resources. They need [`install_custom_resources`] first.
pub fn custom_resources(seed: u64, count: usize) -> impl Iterator<Item = Object> + Clone + Send {
    (0..count).map(move |index| gadgets::gadget(seed, index as u64))
}

impl Object {
    /// What kind of object.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The manifest that it is created from, without namespace and status.
    #[must_use]
    pub fn manifest(&self) -> &Value {
        &self.manifest
    }
}

impl Kind {
    /// The path of the collection in a namespace.
    #[must_use]
    pub fn path(self, namespace: &str) -> String {
        match self {
            Self::Pod => format!("/api/v1/namespaces/{namespace}/pods"),
            Self::Gadget => format!("/apis/{}/v1/namespaces/{namespace}/gadgets", gadgets::GROUP),
        }
    }

    /// A change of the status, which holds the number, and who makes it.
    fn update(self, number: u64, rng: &mut Rng) -> Step {
        match self {
            Self::Pod => pods::update(number, rng),
            Self::Gadget => gadgets::update(number, rng),
        }
    }
}

#[cfg(test)]
mod tests;
