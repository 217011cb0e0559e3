//! The ReplicaSets of a Deployment: which is new, which revision each is.

use std::sync::Arc;

use serde_json::Value;

use crate::object::Stored;
use crate::simulator::cluster::{count, int};
use crate::simulator::pod;

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// Belongs to the Deployment alone.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// One ReplicaSet.
pub(super) struct Set {
    pub(super) object: Arc<Stored>,
    pub(super) value: Value,
    pub(super) is_new: bool,
    pub(super) replicas: i64,
    pub(super) available: i64,
    pub(super) revision: i64,
    /// What the Deployment wanted when it last scaled this set.
    pub(super) desired: Option<i64>,
    pub(super) max: Option<i64>,
}

impl Set {
    pub(super) fn read((object, value): (Arc<Stored>, Value)) -> Self {
        let annotation = |key| annotation(&value, key).parse().ok();
        Self {
            is_new: false,
            replicas: int(&value, "/spec/replicas").unwrap_or(1),
            available: count(&value, "/status/availableReplicas"),
            revision: annotation(REVISION).unwrap_or_default(),
            desired: annotation(DESIRED),
            max: annotation(MAX),
            object,
            value,
        }
    }

    pub(super) fn status(&self, field: &str) -> i64 {
        self.value.pointer("/status").and_then(|s| s.get(field)).and_then(Value::as_i64).unwrap_or_default()
    }

    /// Oldest first. Not by creation time: it has whole seconds and would not repeat itself.
    pub(super) fn age(&self) -> (i64, &str) {
        (self.revision, &self.object.name)
    }

    /// Nothing is lost if it goes.
    pub(super) fn is_idle(&self) -> bool {
        self.replicas == 0
            && self.status("replicas") == 0
            && count(&self.value, "/metadata/generation") <= self.status("observedGeneration")
    }
}

fn annotation<'v>(object: &'v Value, key: &str) -> &'v str {
    let annotations = object.pointer("/metadata/annotations");
    annotations.and_then(|a| a.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// The oldest set whose template is the given one, but for the label that the controller adds.
pub(super) fn find_new(sets: &[Set], template: &Value) -> Option<usize> {
    let wanted = without_hash(template);
    sets.iter().position(|set| {
        !set.object.deleting && set.value.pointer("/spec/template").is_some_and(|t| without_hash(t) == wanted)
    })
}

fn without_hash(template: &Value) -> Value {
    let mut bare = template.clone();
    if let Some(labels) = bare.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(super::HASH);
        if labels.is_empty()
            && let Some(meta) = bare.get_mut("metadata").and_then(Value::as_object_mut)
        {
            meta.remove("labels");
        }
    }
    bare
}

pub(super) fn max_revision<'a>(sets: impl Iterator<Item = &'a Set>) -> i64 {
    sets.map(|s| s.revision).max().unwrap_or_default()
}

/// The annotations that a ReplicaSet takes over from its Deployment.
pub(super) fn annotations(deployment: &Value) -> Vec<(String, String)> {
    let all = deployment.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
    let own = [REVISION, DESIRED, MAX, HISTORY, LAST_APPLIED];
    all.filter(|(key, _)| !own.contains(&key.as_str()))
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

pub(super) fn has_annotations(set: &Value, deployment: &Value) -> bool {
    annotations(deployment).iter().all(|(key, value)| annotation(set, key) == value)
}

/// A set that is taken up again remembers which revision it was.
pub(super) fn remember_revision(set: &mut Value, revision: i64) {
    let history = match annotation(set, HISTORY) {
        "" => revision.to_string(),
        earlier => format!("{earlier},{revision}"),
    };
    pod::set_meta(set, "annotations", HISTORY, &history);
}
