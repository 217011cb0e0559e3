//! ReplicaSets: as many active pods as asked for.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::cluster::{Kind, Who, count, int, set_count};
use super::index::PodFacts;
use super::{Simulator, pod};
use crate::object::Stored;

const COMPONENT: &str = "replicaset-controller";
/// How many pods are made or deleted before others get their turn.
const BURST: usize = 100;

impl Simulator {
    pub(super) fn sync_replica_set(&mut self, set: &Arc<Stored>) {
        let value = set.value();
        let wanted = usize::try_from(int(&value, "/spec/replicas").unwrap_or(1)).unwrap_or_default();
        let tally = self.index.tally(&set.uid);
        if !set.deleting && tally.active < wanted {
            self.add_replicas(set, &value, wanted - tally.active);
        } else if !set.deleting && tally.active > wanted {
            self.remove_replicas(set, tally.active - wanted);
        } else {
            self.report_replica_set(set, &value);
        }
    }

    fn add_replicas(&mut self, set: &Arc<Stored>, value: &Value, missing: usize) {
        let template = value.pointer("/spec/template").unwrap_or(&Value::Null);
        let mut pod = pod::from_template(template, &self.reference(Kind::ReplicaSet, set));
        pod["metadata"]["generateName"] = pod::generate_name(&set.name).into();
        for _ in 0..missing.min(BURST) {
            match self.make_pod(COMPONENT, Kind::ReplicaSet, set, pod.clone()) {
                Ok(made) => self.say(
                    set,
                    COMPONENT,
                    Kind::ReplicaSet,
                    "SuccessfulCreate",
                    format!("Created pod: {}", made.name),
                ),
                Err(error) => {
                    self.report_replica_set(set, value);
                    // The namespace is going, or there may be no more pods, which has been said.
                    if error.code != 403 {
                        self.warn(
                            set,
                            COMPONENT,
                            Kind::ReplicaSet,
                            "FailedCreate",
                            format!("Error creating: {}", error.message),
                        );
                    }
                    return;
                }
            }
        }
    }

    fn remove_replicas(&mut self, set: &Arc<Stored>, surplus: usize) {
        for victim in victims(self.index.owned(&set.uid), surplus.min(BURST)) {
            if self.delete(Kind::Pod, &victim) {
                self.say(
                    set,
                    COMPONENT,
                    Kind::ReplicaSet,
                    "SuccessfulDelete",
                    format!("Deleted pod: {}", victim.name),
                );
            }
        }
    }

    fn report_replica_set(&mut self, set: &Arc<Stored>, value: &Value) {
        let tally = self.index.tally(&set.uid);
        let min_ready = count(value, "/spec/minReadySeconds");
        let available = self.available(Kind::ReplicaSet, set, min_ready);
        let old = value.get("status").cloned().unwrap_or_default();
        let mut status = old.clone();
        let replicas = tally.active as i64;
        set_count(&mut status, "fullyLabeledReplicas", replicas);
        set_count(&mut status, "readyReplicas", tally.ready as i64);
        set_count(&mut status, "availableReplicas", available as i64);
        status["replicas"] = replicas.into();
        status["terminatingReplicas"] = tally.terminating.into();
        status["observedGeneration"] = count(value, "/metadata/generation").into();
        if status != old {
            self.set_status(Who::ControllerManager, Kind::ReplicaSet, set, &status);
        }
    }

    /// How many pods have been ready for long enough; looks again when the next one will have been.
    pub(super) fn available(&mut self, kind: Kind, owner: &Stored, min_ready: i64) -> usize {
        if min_ready <= 0 {
            return self.index.tally(&owner.uid).ready;
        }
        let (now, wait) = (Instant::now(), self.dice.real(min_ready as f64));
        let ready = self.index.owned(&owner.uid).filter(|pod| pod.is_active() && pod.ready);
        let (done, waiting): (Vec<Instant>, Vec<Instant>) =
            ready.filter_map(|pod| pod.ready_since).map(|since| since + wait).partition(|due| *due <= now);
        if let Some(next) = waiting.into_iter().min() {
            self.later(kind, &owner.key, next);
        }
        done.len()
    }
}

/// Whom to delete first: who does least, then who shares a node with most of its siblings, then the
/// youngest.
fn victims<'a>(pods: impl Iterator<Item = &'a PodFacts>, most: usize) -> Vec<Arc<Stored>> {
    let mut active: Vec<&PodFacts> = pods.filter(|pod| pod.is_active()).collect();
    let mut siblings: HashMap<&str, usize> = HashMap::new();
    for pod in &active {
        *siblings.entry(&pod.node).or_default() += 1;
    }
    active.sort_by_key(|pod| {
        let together = siblings.get(pod.node.as_str()).copied();
        (!pod.node.is_empty(), pod.phase, pod.ready, Reverse(together), Reverse(pod.born))
    });
    active.into_iter().take(most).map(|pod| Arc::clone(&pod.object)).collect()
}
