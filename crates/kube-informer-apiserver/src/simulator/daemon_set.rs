//! DaemonSets: one pod on every node that it may run on.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster::{Kind, Who, count, set_count};
use super::deployment::amount;
use super::revisions::{HASH, Revision};
use super::scheduler::refusal;
use super::{Simulator, pod};
use crate::api::text;
use crate::object::Stored;

const COMPONENT: &str = "daemonset-controller";

/// A pod of a set.
struct Member {
    object: Arc<Stored>,
    ready: bool,
    over: bool,
    updated: bool,
}

impl Simulator {
    pub(super) fn sync_daemon_set(&mut self, set: &Arc<Stored>) {
        let value = set.value();
        if set.deleting {
            return;
        }
        let Some(revisions) = self.revisions(Kind::DaemonSet, set, &value) else { return };
        let Some(update) = revisions.last().cloned() else { return };
        let mut by_node: BTreeMap<String, Vec<Member>> = BTreeMap::new();
        let mut in_use = Vec::new();
        for pod in self.index.owned(&set.uid) {
            let node = if pod.node.is_empty() { &pod.target } else { &pod.node };
            let hash = pod.object.labels.get(HASH).map(String::as_str).unwrap_or_default();
            in_use.push(format!("{}-{hash}", set.name));
            by_node.entry(node.clone()).or_default().push(Member {
                object: Arc::clone(&pod.object),
                ready: pod.is_active() && pod.ready,
                over: pod.is_over(),
                updated: hash == update.hash(),
            });
        }
        let template = daemon(value.pointer("/spec/template").unwrap_or(&Value::Null));
        let nodes = self.index.nodes.values();
        // Room does not count: a daemon's place is not given to others.
        let eligible: Vec<String> = nodes
            .filter(|node| refusal(node, 0, &template).is_none())
            .map(|node| node.name.clone())
            .collect();
        if self.step_daemon_set(set, &value, &template, &update, &eligible, &by_node) {
            return;
        }
        self.report_daemon_set(set, &value, &eligible, &by_node);
        let in_use: Vec<&str> = in_use.iter().map(String::as_str).collect();
        self.drop_revisions(set, &value, &revisions, &in_use);
    }

    /// Makes and deletes pods; true if any.
    fn step_daemon_set(
        &mut self,
        set: &Arc<Stored>,
        value: &Value,
        template: &Value,
        update: &Revision,
        eligible: &[String],
        by_node: &BTreeMap<String, Vec<Member>>,
    ) -> bool {
        let mut acted = false;
        for node in eligible {
            let there = by_node.get(node).map(Vec::as_slice).unwrap_or_default();
            if there.is_empty() {
                acted |= self.make_daemon(set, value, template, update, node);
            }
            for member in there.iter().filter(|m| m.over && !m.object.deleting) {
                acted |= self.remove_daemon(set, &member.object);
            }
            // Two on one node: the older stays.
            for member in there.iter().filter(|m| !m.over && !m.object.deleting).skip(1) {
                acted |= self.remove_daemon(set, &member.object);
            }
        }
        let elsewhere = by_node.iter().filter(|(node, _)| !eligible.contains(node));
        let strays: Vec<Arc<Stored>> = elsewhere
            .flat_map(|(_, members)| members)
            .filter(|m| !m.object.deleting)
            .map(|m| Arc::clone(&m.object))
            .collect();
        for stray in strays {
            acted |= self.remove_daemon(set, &stray);
        }
        if acted || text(value, "/spec/updateStrategy/type") == "OnDelete" {
            return acted;
        }
        let setting = value.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable");
        let most = amount(setting, eligible.len() as i64, true).unwrap_or(1).max(1);
        let all = || by_node.values().flatten();
        let serving = all().filter(|m| m.ready).count() as i64;
        let mut spare = most - (eligible.len() as i64 - serving);
        let outdated: Vec<(Arc<Stored>, bool)> = all()
            .filter(|m| !m.updated && !m.object.deleting)
            .map(|m| (Arc::clone(&m.object), m.ready))
            .collect();
        for (old, ready) in outdated {
            // One that does not work anyway may always go.
            if !ready || spare > 0 {
                acted |= self.remove_daemon(set, &old);
                spare -= i64::from(ready);
            }
        }
        acted
    }

    fn make_daemon(
        &mut self,
        set: &Arc<Stored>,
        value: &Value,
        template: &Value,
        update: &Revision,
        node: &str,
    ) -> bool {
        let mut pod = pod::from_template(template, &self.reference(Kind::DaemonSet, set));
        pod["metadata"]["generateName"] = pod::generate_name(&set.name).into();
        pod::set_meta(&mut pod, "labels", HASH, update.hash());
        let generation = text(value, "/metadata/annotations/deprecated.daemonset.template.generation");
        if !generation.is_empty() {
            pod::set_meta(&mut pod, "labels", "pod-template-generation", generation);
        }
        if !pod.pointer("/spec/affinity").is_some_and(Value::is_object) {
            pod["spec"]["affinity"] = json!({});
        }
        pod["spec"]["affinity"]["nodeAffinity"] = json!({
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [node] }] },
                ],
            },
        });
        match self.make_pod(COMPONENT, Kind::DaemonSet, set, pod) {
            Ok(made) => {
                self.say(
                    set,
                    COMPONENT,
                    Kind::DaemonSet,
                    "SuccessfulCreate",
                    format!("Created pod: {}", made.name),
                );
                true
            }
            Err(_) => false,
        }
    }

    fn remove_daemon(&mut self, set: &Arc<Stored>, pod: &Arc<Stored>) -> bool {
        let deleted = self.delete(Kind::Pod, pod);
        if deleted {
            self.say(
                set,
                COMPONENT,
                Kind::DaemonSet,
                "SuccessfulDelete",
                format!("Deleted pod: {}", pod.name),
            );
        }
        deleted
    }

    fn report_daemon_set(
        &mut self,
        set: &Arc<Stored>,
        value: &Value,
        eligible: &[String],
        by_node: &BTreeMap<String, Vec<Member>>,
    ) {
        let here =
            || eligible.iter().filter_map(|node| by_node.get(node)).flatten().filter(|m| !m.object.deleting);
        let (scheduled, ready) = (here().count() as i64, here().filter(|m| m.ready).count() as i64);
        let available = self.available(Kind::DaemonSet, set, count(value, "/spec/minReadySeconds")) as i64;
        let old = value.get("status").cloned().unwrap_or_default();
        let mut status = old.clone();
        set_count(&mut status, "observedGeneration", count(value, "/metadata/generation"));
        status["currentNumberScheduled"] = scheduled.into();
        status["desiredNumberScheduled"] = eligible.len().into();
        status["numberMisscheduled"] = 0.into();
        status["numberReady"] = ready.into();
        set_count(&mut status, "numberAvailable", available);
        set_count(&mut status, "numberUnavailable", eligible.len() as i64 - available);
        set_count(&mut status, "updatedNumberScheduled", here().filter(|m| m.updated).count() as i64);
        if status != old {
            self.set_status(Who::ControllerManager, Kind::DaemonSet, set, &status);
        }
    }
}

/// A template with the tolerations that every daemon gets.
fn daemon(template: &Value) -> Value {
    const TOLERATED: [(&str, &str); 6] = [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ];
    let mut template = template.clone();
    if !template.get("spec").is_some_and(Value::is_object) {
        return template;
    }
    let mut all =
        template.pointer("/spec/tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    all.extend(
        TOLERATED.iter().map(|(key, effect)| json!({ "key": key, "operator": "Exists", "effect": effect })),
    );
    template["spec"]["tolerations"] = all.into();
    template
}
