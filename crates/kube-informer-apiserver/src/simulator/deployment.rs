//! Deployments: one ReplicaSet per template, and the way from one to the next.
//!
//! A look does one thing, in this order: note a pause, find or make the ReplicaSet of the present template
//! (an old one with an equal template is taken up again, which is what makes a rollback), scale all of them
//! after a change of `replicas`, take one step of the rollout, drop history beyond its limit; then report.

mod replica_sets;
mod rollout;
mod status;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use self::replica_sets::{REVISION, Set, find_new, max_revision};
use self::rollout::Plan;
pub(super) use self::rollout::amount;
use super::cluster::{Kind, Who, count, int};
use super::condition::{self, Condition};
use super::{Simulator, dice, pod};
use crate::api::{Part, text};
use crate::object::Stored;

const COMPONENT: &str = "deployment-controller";
const HASH: &str = "pod-template-hash";

/// A Deployment as this look found it.
struct Seen {
    object: Arc<Stored>,
    value: Value,
    plan: Plan,
}

impl Seen {
    fn name(&self) -> &str {
        &self.object.name
    }

    fn paused(&self) -> bool {
        self.value.pointer("/spec/paused").and_then(Value::as_bool).unwrap_or_default()
    }

    /// `None`: rollouts may take for ever.
    fn deadline(&self) -> Option<i64> {
        int(&self.value, "/spec/progressDeadlineSeconds").filter(|seconds| *seconds != i64::from(i32::MAX))
    }
}

impl Simulator {
    pub(super) fn sync_deployment(&mut self, object: &Arc<Stored>) {
        let value = object.value();
        let seen = Seen { plan: Plan::of(&value), object: Arc::clone(object), value };
        let sets = self.replica_sets_of(&seen);
        if object.deleting {
            return self.report_deployment(&seen, &sets);
        }
        if self.note_pause(&seen) {
            return;
        }
        let scaling =
            sets.iter().any(|s| s.replicas > 0 && s.desired.is_some_and(|d| d != seen.plan.replicas));
        let may_create = !seen.paused() && !scaling;
        if !self.find_or_make(&seen, &sets, may_create) {
            return;
        }
        if seen.paused() || scaling {
            self.scale(&seen, &sets);
            if seen.paused() {
                self.drop_history(&seen, &sets);
            }
        } else if seen.plan.recreate {
            self.recreate(&seen, &sets);
        } else {
            self.roll(&seen, &sets);
        }
        let sets = self.replica_sets_of(&seen);
        self.report_deployment(&seen, &sets);
        if !seen.paused() && self.is_complete(&seen, &sets) {
            self.drop_history(&seen, &sets);
        }
    }

    /// The ReplicaSets that the Deployment controls, oldest first.
    fn replica_sets_of(&self, seen: &Seen) -> Vec<Set> {
        let mut sets: Vec<Set> =
            self.controlled(Kind::ReplicaSet, &seen.object.uid).into_iter().map(Set::read).collect();
        let template = seen.value.pointer("/spec/template").unwrap_or(&Value::Null);
        sets.sort_by(|a, b| a.age().cmp(&b.age()));
        if let Some(new) = find_new(&sets, template) {
            sets[new].is_new = true;
        }
        sets
    }

    /// Says that the Deployment has been paused or resumed; true if that was news.
    fn note_pause(&mut self, seen: &Seen) -> bool {
        let mut status = seen.value.get("status").cloned().unwrap_or_default();
        let reason = condition::find(&status, "Progressing").map(|c| text(c, "/reason").to_owned());
        if seen.deadline().is_none() || reason.as_deref() == Some("ProgressDeadlineExceeded") {
            return false;
        }
        let was_paused = reason.as_deref() == Some("DeploymentPaused");
        let (reason, message) = match (seen.paused(), was_paused) {
            (true, false) => ("DeploymentPaused", "Deployment is paused"),
            (false, true) => ("DeploymentResumed", "Deployment is resumed"),
            _ => return false,
        };
        let paused = Condition { kind: "Progressing", status: "Unknown", reason, message };
        condition::set(&mut status, paused, status::STAMPS);
        self.progress.insert(seen.object.uid.clone(), Instant::now());
        self.set_status(Who::ControllerManager, Kind::Deployment, &seen.object, &status);
        true
    }

    /// Brings the new ReplicaSet and the revision numbers up to date; false if this look ends here.
    fn find_or_make(&mut self, seen: &Seen, sets: &[Set], may_create: bool) -> bool {
        let old = max_revision(sets.iter().filter(|s| !s.is_new));
        if let Some(new) = sets.iter().find(|s| s.is_new) {
            let revision = if new.revision > old { new.revision } else { old + 1 };
            let min_ready = int(&seen.value, "/spec/minReadySeconds");
            let stale = new.revision != revision
                || new.desired != Some(seen.plan.replicas)
                || new.max != Some(seen.plan.most())
                || count(&new.value, "/spec/minReadySeconds") != min_ready.unwrap_or_default()
                || !replica_sets::has_annotations(&new.value, &seen.value);
            // While scaling, the annotations still say what was wanted before: that is how it is noticed.
            if stale && may_create {
                let annotations = replica_sets::annotations(&seen.value);
                let history = (new.revision != revision && new.revision > 0).then_some(new.revision);
                self.edit(Who::ControllerManager, Kind::ReplicaSet, &new.object, Part::Whole, |set| {
                    for (key, value) in &annotations {
                        pod::set_meta(set, "annotations", key, value);
                    }
                    if let Some(was) = history {
                        replica_sets::remember_revision(set, was);
                    }
                    pod::set_meta(set, "annotations", REVISION, &revision.to_string());
                    seen.plan.annotate(set);
                    if let Some(seconds) = min_ready {
                        set["spec"]["minReadySeconds"] = seconds.into();
                    }
                });
                return false;
            }
            let message = format!("Found new replica set \"{}\"", new.object.name);
            return !self.note_revision(seen, revision, "FoundNewReplicaSet", &message, false);
        }
        if may_create {
            self.make_replica_set(seen, sets, old + 1);
            return false;
        }
        true
    }

    fn make_replica_set(&mut self, seen: &Seen, sets: &[Set], revision: i64) {
        let template = seen.value.pointer("/spec/template").cloned().unwrap_or_default();
        let collisions = count(&seen.value, "/status/collisionCount");
        let hash = dice::short_hash(&template.to_string(), collisions);
        let mut labelled = template.clone();
        pod::set_meta(&mut labelled, "labels", HASH, &hash);
        let mut selector = seen.value.pointer("/spec/selector").cloned().unwrap_or_default();
        selector["matchLabels"][HASH] = hash.as_str().into();
        // With Recreate, the old ones have to go first.
        let waits = seen.plan.recreate && !sets.is_empty();
        let total = sets.iter().map(|s| s.replicas).sum();
        let replicas = if waits { 0 } else { seen.plan.room_for_new(total, 0) };
        let name = format!("{}-{hash}", seen.name());
        let mut set = json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "labels": labelled.pointer("/metadata/labels").cloned().unwrap_or_default(),
                "ownerReferences": [self.reference(Kind::Deployment, &seen.object)],
            },
            "spec": {
                "replicas": replicas,
                "minReadySeconds": count(&seen.value, "/spec/minReadySeconds"),
                "selector": selector,
                "template": labelled,
            },
        });
        for (key, value) in replica_sets::annotations(&seen.value) {
            pod::set_meta(&mut set, "annotations", &key, &value);
        }
        pod::set_meta(&mut set, "annotations", REVISION, &revision.to_string());
        seen.plan.annotate(&mut set);
        match self.create(Who::ControllerManager, Kind::ReplicaSet, &seen.object.namespace, set) {
            Ok(made) => {
                if replicas > 0 {
                    let message = format!("Scaled up replica set {name} from 0 to {replicas}");
                    self.say(&seen.object, COMPONENT, Kind::Deployment, "ScalingReplicaSet", message);
                }
                let message = format!("Created new replica set \"{}\"", made.name);
                self.note_revision(seen, revision, "NewReplicaSetCreated", &message, true);
            }
            Err(error) if error.reason == "AlreadyExists" => {
                // Another set has that name: the next look tries another hash.
                let mut status = seen.value.get("status").cloned().unwrap_or_default();
                status["collisionCount"] = (collisions + 1).into();
                self.set_status(Who::ControllerManager, Kind::Deployment, &seen.object, &status);
            }
            // The namespace is on its way out.
            Err(error) if error.code == 403 => {}
            Err(error) => {
                let message = format!("Failed to create new replica set \"{name}\": {}", error.message);
                let mut status = seen.value.get("status").cloned().unwrap_or_default();
                let reason = "ReplicaSetCreateError";
                let failed = Condition { kind: "Progressing", status: "False", reason, message: &message };
                condition::set(&mut status, failed, status::STAMPS);
                if Some(&status) != seen.value.get("status") {
                    self.set_status(Who::ControllerManager, Kind::Deployment, &seen.object, &status);
                }
            }
        }
    }

    /// Writes the revision number on the Deployment, and a first word on its progress; true if that was
    /// news.
    fn note_revision(
        &mut self,
        seen: &Seen,
        revision: i64,
        reason: &str,
        message: &str,
        created: bool,
    ) -> bool {
        let number = revision.to_string();
        let known = text(&seen.value, "/metadata/annotations/deployment.kubernetes.io~1revision") == number;
        let mut status = seen.value.get("status").cloned().unwrap_or_default();
        let silent = condition::find(&status, "Progressing").is_none();
        let speak = seen.deadline().is_some() && (created || silent);
        if known && !speak {
            return false;
        }
        if !known {
            self.edit(Who::ControllerManager, Kind::Deployment, &seen.object, Part::Whole, |deployment| {
                pod::set_meta(deployment, "annotations", REVISION, &number);
            });
        }
        if speak {
            let progressing = Condition { kind: "Progressing", status: "True", reason, message };
            condition::set(&mut status, progressing, status::STAMPS);
            self.progress.insert(seen.object.uid.clone(), Instant::now());
            self.set_status(Who::ControllerManager, Kind::Deployment, &seen.object, &status);
        }
        true
    }

    fn scale_set(&mut self, seen: &Seen, set: &Set, to: i64, even_if_same: bool) -> bool {
        let stale = set.desired != Some(seen.plan.replicas) || set.max != Some(seen.plan.most());
        let resize = set.replicas != to;
        let refresh = even_if_same && stale;
        if !resize && !refresh {
            return false;
        }
        let edited = self.edit(Who::ControllerManager, Kind::ReplicaSet, &set.object, Part::Whole, |value| {
            value["spec"]["replicas"] = to.into();
            seen.plan.annotate(value);
        });
        if edited.is_some() && resize {
            let (name, from) = (&set.object.name, set.replicas);
            let way = if from < to { "up" } else { "down" };
            let message = format!("Scaled {way} replica set {name} from {from} to {to}");
            self.say(&seen.object, COMPONENT, Kind::Deployment, "ScalingReplicaSet", message);
        }
        edited.is_some()
    }

    /// After a change of `replicas`, or while paused.
    fn scale(&mut self, seen: &Seen, sets: &[Set]) {
        for (at, to, even_if_same) in rollout::scale(&seen.plan, sets) {
            self.scale_set(seen, &sets[at], to, even_if_same);
        }
    }

    /// One step: more of the new, or else fewer of the old.
    fn roll(&mut self, seen: &Seen, sets: &[Set]) {
        let Some(new) = sets.iter().find(|s| s.is_new) else { return };
        let total = sets.iter().map(|s| s.replicas).sum();
        let grown = if new.replicas > seen.plan.replicas {
            seen.plan.replicas
        } else {
            seen.plan.room_for_new(total, new.replicas)
        };
        if self.scale_set(seen, new, grown, false) {
            return;
        }
        for (at, to) in rollout::shrink_old(&seen.plan, sets) {
            self.scale_set(seen, &sets[at], to, false);
        }
    }

    /// All of the old go before the first of the new comes.
    fn recreate(&mut self, seen: &Seen, sets: &[Set]) {
        let old = sets.iter().filter(|s| !s.is_new);
        let mut busy = false;
        for set in old {
            busy |= self.scale_set(seen, set, 0, false);
            let tally = self.index.tally(&set.object.uid);
            busy |= tally.active + tally.terminating > 0;
        }
        if !busy && let Some(new) = sets.iter().find(|s| s.is_new) {
            self.scale_set(seen, new, seen.plan.replicas, false);
        }
    }

    fn drop_history(&mut self, seen: &Seen, sets: &[Set]) {
        let Some(limit) = int(&seen.value, "/spec/revisionHistoryLimit") else { return };
        let mut old: Vec<&Set> = sets.iter().filter(|s| !s.is_new && !s.object.deleting).collect();
        old.sort_by_key(|s| s.revision);
        let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        for set in old.into_iter().take(surplus).filter(|s| s.is_idle()) {
            self.delete(Kind::ReplicaSet, &set.object);
        }
    }
}
