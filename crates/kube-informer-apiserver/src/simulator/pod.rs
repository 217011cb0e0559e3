//! Making pods from templates, and noting what their changes concern.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Simulator;
use super::cluster::{Kind, Who};
use super::index::{NodeFacts, PodFacts, Touched};
use crate::api::text;
use crate::object::{Stored, metadata_mut};
use crate::status::ApiError;

/// A pod as its template describes it: labels, annotations, finalizers and spec.
pub(super) fn from_template(template: &Value, owner: &Value) -> Value {
    let mut meta = Map::new();
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = template.pointer(&format!("/metadata/{field}")) {
            meta.insert(field.into(), value.clone());
        }
    }
    meta.insert("ownerReferences".into(), json!([owner]));
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": template.get("spec").cloned().unwrap_or_default(),
    })
}

/// Sets a label or an annotation.
pub(super) fn set_meta(object: &mut Value, field: &str, key: &str, value: &str) {
    let map = metadata_mut(object).entry(field).or_insert_with(|| json!({}));
    if !map.is_object() {
        *map = json!({});
    }
    map[key] = value.into();
}

/// A name from which others are generated; long ones are cut as the real controllers' are.
pub(super) fn generate_name(owner: &str) -> String {
    format!("{owner}-")
}

impl Simulator {
    pub(super) fn observe_pod(&mut self, object: &Arc<Stored>) {
        let touched = self.index.set_pod(PodFacts::read(object));
        self.note_touched(touched);
    }

    pub(super) fn observe_pod_deletion(&mut self, last: &Stored) {
        self.lives.remove(&last.key);
        self.unschedulable.remove(&last.key);
        let touched = self.index.remove_pod(&last.key);
        self.note_touched(touched);
        self.room_may_be_free();
    }

    /// Makes a pod for its controller, if there may be more. A controller that is held back says so once, and
    /// is looked at again when pods have gone.
    pub(super) fn make_pod(
        &mut self,
        component: &str,
        kind: Kind,
        owner: &Stored,
        pod: Value,
    ) -> Result<Arc<Stored>, ApiError> {
        let most = self.settings.pods;
        if self.api.store.count(&Kind::Pod.bucket()) < most {
            return self.create(Who::ControllerManager, Kind::Pod, &owner.namespace, pod);
        }
        let named = ["/metadata/name", "/metadata/generateName"].map(|pointer| text(&pod, pointer));
        let name = named.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        let why = format!("the simulation has no more than {most} pods");
        let error = ApiError::forbidden("", "pods", name, &why);
        if self.held_back.insert((kind, owner.key.clone())) {
            tracing::warn!(?kind, owner = %owner.key, most, "there may be no more pods");
            self.warn(owner, component, kind, "FailedCreate", format!("Error creating: {}", error.message));
        }
        Err(error)
    }

    fn note_touched(&mut self, touched: Touched) {
        for uid in touched.controllers {
            if let Some((bucket, owner)) = self.api.store.by_uid(&uid)
                && let Some(kind) = Kind::of(&bucket)
            {
                self.note(kind, &owner.key);
            }
        }
        for service in touched.services {
            self.note_service(&service);
        }
    }

    pub(super) fn observe_node(&mut self, object: &Stored) {
        self.index.nodes.insert(object.name.clone(), NodeFacts::read(object));
        self.node_changed();
    }

    pub(super) fn observe_node_deletion(&mut self, last: &Stored) {
        self.index.nodes.remove(&last.name);
        self.beats.remove(&last.key);
        // Nobody tends them any more: they are collected.
        for key in self.index.on_node(&last.name) {
            self.note(Kind::Pod, &key);
        }
        self.node_changed();
    }

    fn node_changed(&mut self) {
        self.room_may_be_free();
        for set in self.api.store.list(&Kind::DaemonSet.bucket(), "").objects {
            self.note(Kind::DaemonSet, &set.key);
        }
    }

    /// What an owner's pods look like to the API: its reference.
    pub(super) fn reference(&self, kind: Kind, owner: &Stored) -> Value {
        super::cluster::controller_reference(&self.kinds.get(kind), owner)
    }
}
