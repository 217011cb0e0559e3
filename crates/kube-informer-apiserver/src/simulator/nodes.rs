//! The nodes: their taints, which follow from their state, and their heartbeat.

use std::net::Ipv4Addr;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::Simulator;
use super::cluster::{Kind, Who};
use super::condition::{self, now};
use crate::api::{Part, text};
use crate::object::Stored;

const LEASES: &str = "kube-node-lease";

impl Simulator {
    /// Makes the nodes that are not there yet.
    pub(super) fn make_nodes(&mut self) {
        for number in 1..=self.settings.nodes {
            let name = format!("node-{number}");
            if self.api.store.get(&Kind::Node.bucket(), &name).is_some() {
                continue;
            }
            let node = node(&name, number, self.settings.pods_per_node);
            let status = node.get("status").cloned().unwrap_or_default();
            if let Ok(made) = self.create(Who::Kubelet, Kind::Node, "", node) {
                self.set_status(Who::Kubelet, Kind::Node, &made, &status);
                self.say(
                    &made,
                    "node-controller",
                    Kind::Node,
                    "RegisteredNode",
                    format!("Node {name} event: Registered Node {name} in Controller"),
                );
            }
        }
    }

    pub(super) fn tend_node(&mut self, node: &Arc<Stored>) {
        let value = node.value();
        let taints = taints(&value);
        if taints != value.pointer("/spec/taints").and_then(Value::as_array).cloned().unwrap_or_default() {
            self.edit(Who::ControllerManager, Kind::Node, node, Part::Whole, |node| {
                node["spec"]["taints"] = taints.clone().into();
            });
        }
        self.beat(node);
    }

    /// A node renews its Lease when it is time to.
    fn beat(&mut self, node: &Arc<Stored>) {
        let Some(every) = self.settings.heartbeat else { return };
        let every = self.dice.real(every.as_secs_f64().max(0.1));
        let now = Instant::now();
        match self.beats.get(&node.key) {
            Some(last) if *last + every > now => return self.later(Kind::Node, &node.key, *last + every),
            _ => self.beats.insert(node.key.clone(), now),
        };
        let renewed = micros();
        let lease = self.api.store.get(&Kind::Lease.bucket(), &format!("{LEASES}/{}", node.name));
        // Whole seconds would be too coarse to tell two beats apart.
        match lease {
            Some(lease) => {
                self.edit(Who::Kubelet, Kind::Lease, &lease, Part::Whole, |lease| {
                    lease["spec"]["renewTime"] = renewed.clone().into();
                });
            }
            None => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {
                        "name": node.name,
                        "ownerReferences": [{
                            "apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid,
                        }],
                    },
                    "spec": { "holderIdentity": node.name, "leaseDurationSeconds": 40, "renewTime": renewed },
                });
                let _: Result<_, _> = self.create(Who::Kubelet, Kind::Lease, LEASES, lease);
            }
        }
        self.later(Kind::Node, &node.key, now + every);
    }
}

/// The taints that a node should have: those that people set, and those that follow from its state.
fn taints(node: &Value) -> Vec<Value> {
    let status = node.get("status").unwrap_or(&Value::Null);
    let cordoned = node.pointer("/spec/unschedulable").and_then(Value::as_bool).unwrap_or_default();
    let implied = [
        ("node.kubernetes.io/not-ready", !condition::is_true(status, "Ready")),
        ("node.kubernetes.io/unschedulable", cordoned),
    ];
    let old = node.pointer("/spec/taints").and_then(Value::as_array).cloned().unwrap_or_default();
    let is = |taint: &Value, key: &str| text(taint, "/key") == key && text(taint, "/effect") == "NoSchedule";
    let mut taints: Vec<Value> = old
        .iter()
        .filter(|taint| !implied.iter().any(|(key, wanted)| !wanted && is(taint, key)))
        .cloned()
        .collect();
    for (key, _) in implied.iter().filter(|(key, wanted)| *wanted && !old.iter().any(|taint| is(taint, key)))
    {
        taints.push(json!({ "key": key, "effect": "NoSchedule" }));
    }
    taints
}

/// Now, as a `MicroTime`.
fn micros() -> String {
    let time = jiff::Timestamp::now();
    let (whole, micros) = (crate::api::seconds(time), time.subsec_nanosecond().unsigned_abs() / 1_000);
    format!("{}.{micros:06}Z", whole.trim_end_matches('Z'))
}

fn node(name: &str, number: usize, pods: usize) -> Value {
    let address = Ipv4Addr::from(u32::from(Ipv4Addr::new(172, 18, 0, 1)).wrapping_add(number as u32));
    let resources = json!({
        "cpu": "16", "memory": "64Gi", "ephemeral-storage": "200Gi", "pods": pods.to_string(),
        "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    let condition = |kind: &str, truth: bool, reason: &str, message: &str| {
        json!({
            "type": kind, "status": if truth { "True" } else { "False" }, "reason": reason, "message": message,
            "lastHeartbeatTime": now(), "lastTransitionTime": now(),
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
            },
        },
        "spec": {},
        "status": {
            "addresses": [
                { "type": "InternalIP", "address": address.to_string() },
                { "type": "Hostname", "address": name },
            ],
            "capacity": resources,
            "allocatable": resources,
            "conditions": [
                condition("MemoryPressure", false, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", false, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", true, "KubeletReady", "kubelet is posting ready status"),
            ],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
            "nodeInfo": {
                "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "containerd://2.1.0",
                "kernelVersion": "6.12.0", "kubeProxyVersion": "", "kubeletVersion": "v1.37.1",
                "machineID": "", "operatingSystem": "linux", "osImage": "Simulated Linux", "systemUUID": "",
            },
        },
    })
}
