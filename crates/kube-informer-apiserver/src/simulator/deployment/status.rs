//! What a Deployment says about itself.

use serde_json::Value;
use tokio::time::Instant;

use super::replica_sets::Set;
use super::{Kind, Seen, Simulator, Who};
use crate::api::text;
use crate::simulator::cluster::{count, set_count};
use crate::simulator::condition::{self, Condition};

/// The further times that a Deployment's conditions carry.
pub(super) const STAMPS: &[&str] = &["lastUpdateTime"];

impl Simulator {
    /// Everything is new, and all of it is available.
    pub(super) fn is_complete(&self, seen: &Seen, sets: &[Set]) -> bool {
        let sum = |field| sets.iter().map(|s| s.status(field)).sum::<i64>();
        let wanted = seen.plan.replicas;
        let updated: i64 = sets.iter().filter(|s| s.is_new).map(|s| s.status("replicas")).sum();
        updated == wanted && sum("replicas") == wanted && sum("availableReplicas") == wanted
    }

    pub(super) fn report_deployment(&mut self, seen: &Seen, sets: &[Set]) {
        let old = seen.value.get("status").cloned().unwrap_or_default();
        let mut status = numbers(seen, sets, &old);
        let available = count(&status, "/availableReplicas");
        let enough = available >= seen.plan.replicas - seen.plan.unavailable;
        let (truth, reason, message) = if enough {
            ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
        };
        condition::set(&mut status, Condition { kind: "Available", status: truth, reason, message }, STAMPS);
        match seen.deadline() {
            None => condition::remove(&mut status, "Progressing"),
            Some(deadline) if !seen.paused() && !seen.object.deleting => {
                self.report_progress(seen, sets, &old, &mut status, deadline);
            }
            Some(_) => {}
        }
        if status != old {
            self.set_status(Who::ControllerManager, Kind::Deployment, &seen.object, &status);
        }
    }

    fn report_progress(&mut self, seen: &Seen, sets: &[Set], old: &Value, status: &mut Value, deadline: i64) {
        let reason =
            condition::find(old, "Progressing").map(|c| text(c, "/reason").to_owned()).unwrap_or_default();
        let all_new = count(status, "/replicas") == count(status, "/updatedReplicas");
        if all_new && reason == "NewReplicaSetAvailable" {
            self.progress.remove(&seen.object.uid);
            return;
        }
        let subject = match sets.iter().find(|s| s.is_new) {
            Some(new) => format!("ReplicaSet \"{}\"", new.object.name),
            None => format!("Deployment \"{}\"", seen.name()),
        };
        let mut say = |truth, reason, what: &str| {
            let message = format!("{subject} {what}");
            let says = Condition { kind: "Progressing", status: truth, reason, message: &message };
            condition::set(status, says, STAMPS);
        };
        if self.is_complete(seen, sets) {
            self.progress.remove(&seen.object.uid);
            say("True", "NewReplicaSetAvailable", "has successfully progressed.");
            return;
        }
        let now = Instant::now();
        let wait = self.dice.real(deadline as f64);
        if progressed(&numbers(seen, sets, old), old) {
            say("True", "ReplicaSetUpdated", "is progressing.");
            self.progress.insert(seen.object.uid.clone(), now);
        }
        let since = *self.progress.entry(seen.object.uid.clone()).or_insert(now);
        if reason == "ProgressDeadlineExceeded" {
            return;
        }
        if since + wait <= now {
            say("False", "ProgressDeadlineExceeded", "has timed out progressing.");
        } else {
            self.later(Kind::Deployment, &seen.object.key, since + wait);
        }
    }
}

/// More of the new, fewer of the old, or more that work.
fn progressed(new: &Value, old: &Value) -> bool {
    let old_ones = |s: &Value| count(s, "/replicas") - count(s, "/updatedReplicas");
    let more = |field| count(new, field) > count(old, field);
    more("/updatedReplicas")
        || old_ones(new) < old_ones(old)
        || more("/readyReplicas")
        || more("/availableReplicas")
}

fn numbers(seen: &Seen, sets: &[Set], old: &Value) -> Value {
    let sum = |field| sets.iter().map(|s| s.status(field)).sum::<i64>();
    let wanted: i64 = sets.iter().map(|s| s.replicas).sum();
    let available = sum("availableReplicas");
    let updated = sets.iter().filter(|s| s.is_new).map(|s| s.status("replicas")).sum();
    let mut status = old.clone();
    set_count(&mut status, "observedGeneration", count(&seen.value, "/metadata/generation"));
    set_count(&mut status, "replicas", sum("replicas"));
    set_count(&mut status, "updatedReplicas", updated);
    set_count(&mut status, "readyReplicas", sum("readyReplicas"));
    set_count(&mut status, "availableReplicas", available);
    set_count(&mut status, "unavailableReplicas", (wanted - available).max(0));
    status["terminatingReplicas"] = sum("terminatingReplicas").into();
    status
}
