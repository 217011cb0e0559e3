//! The scheduler: a node for every pod.
//!
//! A pod goes to a ready node that its selector, its affinity and the node's taints allow and that has
//! room; of those, to the one with the fewest pods. If there is none, the pod says so and is looked at
//! again when room may have come free.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::cluster::{Kind, Who};
use super::condition::{self, Condition};
use super::dice::mix;
use super::index::NodeFacts;
use super::{Item, Simulator};
use crate::api::{Part, text};
use crate::object::Stored;

const COMPONENT: &str = "default-scheduler";
/// How long (in simulated seconds) pods that fitted nowhere wait after a change.
const RETRY: f64 = 1.0;

impl Simulator {
    pub(super) fn schedule(&mut self, pod: &Arc<Stored>) {
        let value = pod.value();
        let ours = matches!(text(&value, "/spec/schedulerName"), "" | "default-scheduler");
        if pod.deleting || !ours || has_gates(&value) {
            return;
        }
        let Some(node) = self.choose_node(pod, &value) else {
            return self.report_unschedulable(pod, &value);
        };
        self.unschedulable.remove(&pod.key);
        let binding = json!({ "metadata": { "name": pod.name }, "target": { "kind": "Node", "name": node } });
        let (pods, options) = (self.kinds.get(Kind::Pod), Who::Scheduler.options());
        match self.api.bind(&pods, &pod.namespace, &pod.name, &binding, &options) {
            Ok(_) => {
                let message = format!("Successfully assigned {} to {node}", pod.key);
                self.say(pod, COMPONENT, Kind::Pod, "Scheduled", message);
            }
            Err(error) => tracing::debug!(pod = %pod.key, message = %error.message, "not bound"),
        }
    }

    /// Room may have come free: whoever waits is looked at again, but not for every change.
    pub(super) fn room_may_be_free(&mut self) {
        if !self.unschedulable.is_empty() || !self.held_back.is_empty() {
            self.timers.at(Item::Waiting, Instant::now() + self.dice.real(RETRY));
        }
    }

    pub(super) fn retry_waiting(&mut self) {
        for key in std::mem::take(&mut self.unschedulable) {
            self.note(Kind::Pod, &key);
        }
        for (kind, key) in std::mem::take(&mut self.held_back) {
            self.note(kind, &key);
        }
    }

    fn choose_node(&self, pod: &Stored, value: &Value) -> Option<String> {
        let fits = |node: &&NodeFacts| refusal(node, self.index.load(&node.name), value).is_none();
        let nodes = self.index.nodes.values().filter(fits);
        // One roll per pod, and of the nodes only their hashes: there may be thousands of them.
        let roll = self.dice.roll("node", &pod.key, 0);
        let best = nodes.min_by_key(|node| (self.index.load(&node.name), mix(roll ^ node.hash)));
        best.map(|node| node.name.clone())
    }

    fn report_unschedulable(&mut self, pod: &Arc<Stored>, value: &Value) {
        self.unschedulable.insert(pod.key.clone());
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for node in self.index.nodes.values() {
            if let Some(why) = refusal(node, self.index.load(&node.name), value) {
                *reasons.entry(why).or_default() += 1;
            }
        }
        let all = self.index.nodes.len();
        let message = if all == 0 {
            "no nodes available to schedule pods".to_owned()
        } else {
            let reasons: Vec<String> = reasons.iter().map(|(why, n)| format!("{n} {why}")).collect();
            format!(
                "0/{all} nodes are available: {}. preemption: 0/{all} nodes are available: {all} Preemption is not helpful for scheduling.",
                reasons.join(", ")
            )
        };
        let mut status = value.get("status").cloned().unwrap_or_default();
        let says =
            Condition { kind: "PodScheduled", status: "False", reason: "Unschedulable", message: &message };
        condition::set(&mut status, says, &[]);
        if Some(&status) != value.get("status") {
            self.edit(Who::Scheduler, Kind::Pod, pod, Part::Status, |value| {
                value["status"]["conditions"] = status["conditions"].clone();
            });
            self.warn(pod, COMPONENT, Kind::Pod, "FailedScheduling", message);
        }
    }
}

fn has_gates(pod: &Value) -> bool {
    pod.pointer("/spec/schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty())
}

/// Why a pod may not go to a node.
pub(super) fn refusal(node: &NodeFacts, load: usize, pod: &Value) -> Option<String> {
    if !node.ready {
        return Some("node(s) were not ready".to_owned());
    }
    let cordoned = ("node.kubernetes.io/unschedulable".to_owned(), String::new(), "NoSchedule".to_owned());
    if node.unschedulable && !tolerated(pod, &cordoned) {
        return Some("node(s) were unschedulable".to_owned());
    }
    if let Some((key, value, _)) =
        node.taints.iter().filter(|t| t.0 != cordoned.0).find(|t| !tolerated(pod, t))
    {
        return Some(format!("node(s) had untolerated taint {{{key}: {value}}}"));
    }
    if !selected(node, pod) {
        return Some("node(s) didn't match Pod's node affinity/selector".to_owned());
    }
    (load >= node.room).then(|| "Too many pods".to_owned())
}

fn tolerated(pod: &Value, (key, value, effect): &(String, String, String)) -> bool {
    let mut tolerations = pod.pointer("/spec/tolerations").and_then(Value::as_array).into_iter().flatten();
    tolerations.any(|t| {
        let (own_key, own_effect) = (text(t, "/key"), text(t, "/effect"));
        let exists = text(t, "/operator") == "Exists";
        (own_effect.is_empty() || own_effect == effect)
            && (own_key == key || (own_key.is_empty() && exists))
            && (exists || text(t, "/value") == value)
    })
}

/// The node selector and the required node affinity.
fn selected(node: &NodeFacts, pod: &Value) -> bool {
    let selector = pod.pointer("/spec/nodeSelector").and_then(Value::as_object).into_iter().flatten();
    for (key, value) in selector {
        if node.labels.get(key).map(String::as_str) != value.as_str() {
            return false;
        }
    }
    let required =
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let Some(terms) = pod.pointer(required).and_then(Value::as_array) else { return true };
    let own_name = BTreeMap::from([("metadata.name".to_owned(), node.name.clone())]);
    terms.iter().any(|term| {
        let all = |field: &str, labels: &BTreeMap<String, String>| {
            let wanted = term.get(field).and_then(Value::as_array).into_iter().flatten();
            wanted.into_iter().all(|expression| meets(labels, expression))
        };
        all("matchExpressions", &node.labels) && all("matchFields", &own_name)
    })
}

fn meets(labels: &BTreeMap<String, String>, expression: &Value) -> bool {
    let label = labels.get(text(expression, "/key")).map(String::as_str);
    let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
    let values: Vec<&str> = values.filter_map(Value::as_str).collect();
    let number = |text: Option<&str>| text.and_then(|t| t.parse::<i64>().ok());
    let compared = || number(label).zip(number(values.first().copied()));
    match text(expression, "/operator") {
        "In" => label.is_some_and(|l| values.contains(&l)),
        "NotIn" => label.is_none_or(|l| !values.contains(&l)),
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        "Gt" => compared().is_some_and(|(own, other)| own > other),
        "Lt" => compared().is_some_and(|(own, other)| own < other),
        _ => false,
    }
}
