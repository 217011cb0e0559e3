//! StatefulSets: numbered pods, one after the other.
//!
//! With `OrderedReady`, a pod is made when all before it are ready, and deleted when all after it are gone;
//! an update goes from the highest number down to the partition, one pod at a time.

use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster::{Kind, Who, count, int, set_count};
use super::index::PodFacts;
use super::revisions::{HASH, Revision};
use super::{Simulator, pod};
use crate::api::text;
use crate::object::Stored;

/// How many pods are made before others get their turn.
const BURST: usize = 100;
const COMPONENT: &str = "statefulset-controller";

/// A StatefulSet as this look found it.
struct Seen<'a> {
    object: &'a Arc<Stored>,
    value: &'a Value,
    replicas: i64,
    start: i64,
    partition: i64,
    /// One at a time.
    ordered: bool,
    current: Revision,
    update: Revision,
}

/// A pod of a set, as far as its number matters.
struct Member {
    ordinal: i64,
    object: Arc<Stored>,
    healthy: bool,
    over: bool,
    revision: String,
}

impl Member {
    fn read(set: &Stored, pod: &PodFacts) -> Option<Self> {
        let ordinal = pod.object.name.strip_prefix(&set.name)?.strip_prefix('-')?.parse().ok()?;
        Some(Self {
            ordinal,
            object: Arc::clone(&pod.object),
            healthy: pod.is_active() && pod.ready,
            over: pod.is_over(),
            revision: pod.object.labels.get(HASH).cloned().unwrap_or_default(),
        })
    }
}

impl Simulator {
    pub(super) fn sync_stateful_set(&mut self, set: &Arc<Stored>) {
        let value = set.value();
        if set.deleting {
            return;
        }
        let Some(revisions) = self.revisions(Kind::StatefulSet, set, &value) else { return };
        let Some(update) = revisions.last().cloned() else { return };
        let current_name = text(&value, "/status/currentRevision");
        let current =
            revisions.iter().find(|r| r.name == current_name).cloned().unwrap_or_else(|| update.clone());
        let seen = Seen {
            object: set,
            value: &value,
            replicas: int(&value, "/spec/replicas").unwrap_or(1).max(0),
            start: count(&value, "/spec/ordinals/start"),
            partition: count(&value, "/spec/updateStrategy/rollingUpdate/partition"),
            ordered: text(&value, "/spec/podManagementPolicy") != "Parallel",
            current,
            update,
        };
        let mut members: Vec<Member> =
            self.index.owned(&set.uid).filter_map(|pod| Member::read(set, pod)).collect();
        members.sort_by_key(|m| m.ordinal);
        if !self.step_stateful_set(&seen, &members) {
            self.report_stateful_set(&seen, &members);
            let in_use: Vec<&str> = members
                .iter()
                .map(|m| m.revision.as_str())
                .chain([seen.current.name.as_str(), seen.update.name.as_str()])
                .collect();
            self.drop_revisions(set, &value, &revisions, &in_use);
        }
    }

    /// Does what may be done now; true if pods were made or deleted.
    fn step_stateful_set(&mut self, seen: &Seen<'_>, members: &[Member]) -> bool {
        let range = seen.start..seen.start.saturating_add(seen.replicas);
        let (mut acted, mut made) = (false, 0);
        for ordinal in range.clone() {
            match members.binary_search_by_key(&ordinal, |m| m.ordinal).ok().map(|at| &members[at]) {
                None => {
                    if made == BURST {
                        return true;
                    }
                    if !self.make_member(seen, ordinal) {
                        // There is no room for more: nor for the next, but others may still go.
                        break;
                    }
                    made += 1;
                    acted = true;
                }
                Some(member) if member.over && !member.object.deleting => {
                    acted |= self.delete(Kind::Pod, &member.object);
                }
                Some(member) if member.healthy => continue,
                // Not ready yet, or on its way out.
                Some(_) => {}
            }
            if seen.ordered {
                return acted;
            }
        }
        for member in members.iter().rev().filter(|m| !range.contains(&m.ordinal)) {
            if !member.object.deleting {
                acted |= self.remove_member(seen, member);
            }
            if seen.ordered {
                return acted;
            }
        }
        if acted || text(seen.value, "/spec/updateStrategy/type") == "OnDelete" {
            return acted;
        }
        for member in members.iter().rev().filter(|m| m.ordinal >= seen.start + seen.partition) {
            if member.revision != seen.update.name && !member.object.deleting {
                return self.remove_member(seen, member);
            }
            if !member.healthy {
                return false;
            }
        }
        false
    }

    fn make_member(&mut self, seen: &Seen<'_>, ordinal: i64) -> bool {
        let set = seen.object;
        let rolling = text(seen.value, "/spec/updateStrategy/type") != "OnDelete";
        let kept = rolling && ordinal < seen.start + seen.partition;
        let revision = if kept { &seen.current } else { &seen.update };
        let name = format!("{}-{ordinal}", set.name);
        let mut pod = pod::from_template(&revision.template, &self.reference(Kind::StatefulSet, set));
        pod["metadata"]["name"] = name.as_str().into();
        pod::set_meta(&mut pod, "labels", HASH, &revision.name);
        pod::set_meta(&mut pod, "labels", "statefulset.kubernetes.io/pod-name", &name);
        pod::set_meta(&mut pod, "labels", "apps.kubernetes.io/pod-index", &ordinal.to_string());
        pod["spec"]["hostname"] = name.as_str().into();
        if let Some(service) = seen.value.pointer("/spec/serviceName").filter(|s| **s != json!("")) {
            pod["spec"]["subdomain"] = service.clone();
        }
        let made = self.make_pod(COMPONENT, Kind::StatefulSet, set, pod).is_ok();
        if made {
            let message = format!("create Pod {name} in StatefulSet {} successful", set.name);
            self.say(set, COMPONENT, Kind::StatefulSet, "SuccessfulCreate", message);
        }
        made
    }

    fn remove_member(&mut self, seen: &Seen<'_>, member: &Member) -> bool {
        let deleted = self.delete(Kind::Pod, &member.object);
        if deleted {
            let message =
                format!("delete Pod {} in StatefulSet {} successful", member.object.name, seen.object.name);
            self.say(seen.object, COMPONENT, Kind::StatefulSet, "SuccessfulDelete", message);
        }
        deleted
    }

    fn report_stateful_set(&mut self, seen: &Seen<'_>, members: &[Member]) {
        let of = |wanted: &dyn Fn(&&Member) -> bool| members.iter().filter(wanted).count() as i64;
        let counts = |m: &&Member| !m.object.deleting && !m.over;
        let replicas = of(&|m| counts(m));
        let ready = of(&|m| m.healthy);
        let updated = of(&|m| counts(m) && m.revision == seen.update.name);
        let available =
            self.available(Kind::StatefulSet, seen.object, count(seen.value, "/spec/minReadySeconds"));
        let old = seen.value.get("status").cloned().unwrap_or_default();
        let mut status = old.clone();
        set_count(&mut status, "observedGeneration", count(seen.value, "/metadata/generation"));
        status["replicas"] = replicas.into();
        status["availableReplicas"] = available.into();
        set_count(&mut status, "readyReplicas", ready);
        set_count(&mut status, "updatedReplicas", updated);
        status["updateRevision"] = seen.update.name.as_str().into();
        status["collisionCount"] = count(&old, "/collisionCount").into();
        let complete = updated == seen.replicas && replicas == seen.replicas && ready == seen.replicas;
        let current = if complete { &seen.update } else { &seen.current };
        status["currentRevision"] = current.name.as_str().into();
        set_count(&mut status, "currentReplicas", of(&|m| counts(m) && m.revision == current.name));
        if status != old {
            self.set_status(Who::ControllerManager, Kind::StatefulSet, seen.object, &status);
        }
    }
}
