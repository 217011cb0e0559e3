//! What the controllers ask again and again, kept up to date change by change: pods by owner with their
//! counts, pods by node, pods by Service.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::cluster::controller_of;
use super::{condition, dice};
use crate::api::text;
use crate::object::{Stored, labels_of};

/// How far a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Pending,
    Unknown,
    Running,
    Succeeded,
    Failed,
}

/// What is worth knowing of a pod without reading it.
pub(super) struct PodFacts {
    pub(super) object: Arc<Stored>,
    pub(super) phase: Phase,
    pub(super) ready: bool,
    /// The node it runs on, or empty.
    pub(super) node: String,
    /// The node it is meant for (a DaemonSet's pod), or empty.
    pub(super) target: String,
    pub(super) ip: String,
    /// Its name in the domain of a headless Service: (subdomain, hostname).
    pub(super) domain: Option<(String, String)>,
    /// The revision at which it was first seen: its age.
    pub(super) born: u64,
    pub(super) ready_since: Option<Instant>,
    controller: Option<String>,
}

impl PodFacts {
    pub(super) fn read(object: &Arc<Stored>) -> Self {
        let value = object.value();
        let status = value.get("status").unwrap_or(&Value::Null);
        let ready = condition::is_true(status, "Ready");
        let (subdomain, hostname) = (text(&value, "/spec/subdomain"), text(&value, "/spec/hostname"));
        Self {
            phase: match text(status, "/phase") {
                "Running" => Phase::Running,
                "Succeeded" => Phase::Succeeded,
                "Failed" => Phase::Failed,
                "Unknown" => Phase::Unknown,
                _ => Phase::Pending,
            },
            ready,
            node: text(&value, "/spec/nodeName").to_owned(),
            target: target_of(&value).to_owned(),
            ip: text(status, "/podIP").to_owned(),
            domain: (!subdomain.is_empty()).then(|| (subdomain.to_owned(), hostname.to_owned())),
            born: object.revision,
            ready_since: ready.then(Instant::now),
            controller: controller_of(&value).map(str::to_owned),
            object: Arc::clone(object),
        }
    }

    pub(super) fn deleting(&self) -> bool {
        self.object.deleting
    }

    /// Its containers will not run again.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// It counts as a replica.
    pub(super) fn is_active(&self) -> bool {
        !self.is_over() && !self.deleting()
    }

    fn tally(&self) -> Tally {
        let one = |yes: bool| usize::from(yes);
        Tally {
            active: one(self.is_active()),
            ready: one(self.is_active() && self.ready),
            terminating: one(self.deleting() && !self.is_over()),
            succeeded: one(self.phase == Phase::Succeeded),
            failed: one(self.phase == Phase::Failed),
        }
    }

    /// What an EndpointSlice says of it.
    fn endpoint(&self) -> (&str, bool, bool, bool, &str) {
        (&self.ip, self.ready, self.deleting(), self.is_over(), &self.node)
    }
}

/// The node that a pod's affinity names, as a DaemonSet sets it.
fn target_of(pod: &Value) -> &str {
    const TERMS: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0";
    match pod.pointer(TERMS) {
        Some(field) if text(field, "/key") == "metadata.name" => text(field, "/values/0"),
        _ => "",
    }
}

/// How many pods of an owner are how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) active: usize,
    /// Of the active ones.
    pub(super) ready: usize,
    pub(super) terminating: usize,
    pub(super) succeeded: usize,
    pub(super) failed: usize,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.active += other.active;
        self.ready += other.ready;
        self.terminating += other.terminating;
        self.succeeded += other.succeeded;
        self.failed += other.failed;
    }

    fn remove(&mut self, other: Self) {
        self.active = self.active.saturating_sub(other.active);
        self.ready = self.ready.saturating_sub(other.ready);
        self.terminating = self.terminating.saturating_sub(other.terminating);
        self.succeeded = self.succeeded.saturating_sub(other.succeeded);
        self.failed = self.failed.saturating_sub(other.failed);
    }
}

#[derive(Default)]
struct Owned {
    pods: BTreeSet<String>,
    tally: Tally,
}

/// What is worth knowing of a node.
pub(super) struct NodeFacts {
    pub(super) name: String,
    /// Of its name.
    pub(super) hash: u64,
    pub(super) address: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) ready: bool,
    /// Cordoned.
    pub(super) unschedulable: bool,
    /// `NoSchedule` and `NoExecute` taints: (key, value, effect).
    pub(super) taints: Vec<(String, String, String)>,
    pub(super) room: usize,
}

impl NodeFacts {
    pub(super) fn read(object: &Stored) -> Self {
        let value = object.value();
        let status = value.get("status").unwrap_or(&Value::Null);
        let addresses = status.get("addresses").and_then(Value::as_array).into_iter().flatten();
        let mut internal =
            addresses.filter(|a| text(a, "/type") == "InternalIP").map(|a| text(a, "/address"));
        let taints = value.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
        let taint = |t: &Value| {
            let part = |pointer| text(t, pointer).to_owned();
            (part("/key"), part("/value"), part("/effect"))
        };
        Self {
            name: object.name.clone(),
            hash: dice::hash(&object.name),
            address: internal.next().unwrap_or_default().to_owned(),
            labels: labels_of(&value),
            ready: condition::is_true(status, "Ready"),
            unschedulable: value.pointer("/spec/unschedulable").and_then(Value::as_bool).unwrap_or_default(),
            taints: taints.map(taint).filter(|(_, _, effect)| effect != "PreferNoSchedule").collect(),
            room: text(status, "/allocatable/pods").parse().unwrap_or(110),
        }
    }
}

struct ServiceFacts {
    /// Empty: the Service selects nothing.
    selector: BTreeMap<String, String>,
    members: BTreeSet<String>,
}

impl ServiceFacts {
    fn selects(&self, pod: &PodFacts) -> bool {
        !self.selector.is_empty() && self.selector.iter().all(|(k, v)| pod.object.labels.get(k) == Some(v))
    }
}

/// The facts, and who belongs to whom.
#[derive(Default)]
pub(super) struct Index {
    pods: BTreeMap<String, PodFacts>,
    owned: HashMap<String, Owned>,
    /// How many pods run on a node.
    load: HashMap<String, usize>,
    pub(super) nodes: BTreeMap<String, NodeFacts>,
    /// By namespace, then key.
    services: HashMap<String, BTreeMap<String, ServiceFacts>>,
}

/// Whom a change of a pod concerns.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// UIDs of controllers.
    pub(super) controllers: BTreeSet<String>,
    /// Keys of Services.
    pub(super) services: Vec<String>,
}

impl Index {
    pub(super) fn pod(&self, key: &str) -> Option<&PodFacts> {
        self.pods.get(key)
    }

    pub(super) fn is_assigned(&self, key: &str) -> bool {
        self.pods.get(key).is_some_and(|pod| !pod.node.is_empty())
    }

    /// The pods of a controller, by key.
    pub(super) fn owned(&self, controller: &str) -> impl Iterator<Item = &PodFacts> {
        let keys = self.owned.get(controller).into_iter().flat_map(|owned| &owned.pods);
        keys.filter_map(|key| self.pods.get(key))
    }

    pub(super) fn tally(&self, controller: &str) -> Tally {
        self.owned.get(controller).map(|owned| owned.tally).unwrap_or_default()
    }

    pub(super) fn load(&self, node: &str) -> usize {
        self.load.get(node).copied().unwrap_or_default()
    }

    /// The keys of the pods on a node. Looks at all pods: for when a node goes.
    pub(super) fn on_node(&self, node: &str) -> Vec<String> {
        self.pods.iter().filter(|(_, pod)| pod.node == node).map(|(key, _)| key.clone()).collect()
    }

    /// Takes in a new state of a pod.
    pub(super) fn set_pod(&mut self, mut new: PodFacts) -> Touched {
        let key = new.object.key.clone();
        let mut touched = Touched::default();
        if let Some(old) = self.pods.get(&key).filter(|old| old.object.uid == new.object.uid) {
            new.born = old.born;
            new.ready_since = new.ready_since.map(|since| old.ready_since.unwrap_or(since));
        }
        let old = self.detach(&key);
        if let Some(controller) = &new.controller {
            let owned = self.owned.entry(controller.clone()).or_default();
            owned.pods.insert(key.clone());
            owned.tally.add(new.tally());
        }
        if !new.node.is_empty() && !new.is_over() {
            *self.load.entry(new.node.clone()).or_default() += 1;
        }
        touched.controllers.extend(old.iter().chain([&new]).filter_map(|pod| pod.controller.clone()));
        let same_endpoint = old
            .as_ref()
            .is_some_and(|old| old.endpoint() == new.endpoint() && old.object.uid == new.object.uid);
        if let Some(services) = self.services.get_mut(&new.object.namespace) {
            for (service, facts) in services {
                let (was, is) = (facts.members.contains(&key), facts.selects(&new));
                if is && !was {
                    facts.members.insert(key.clone());
                } else if was && !is {
                    facts.members.remove(&key);
                }
                if was != is || (is && !same_endpoint) {
                    touched.services.push(service.clone());
                }
            }
        }
        self.pods.insert(key, new);
        touched
    }

    pub(super) fn remove_pod(&mut self, key: &str) -> Touched {
        let mut touched = Touched::default();
        let Some(old) = self.detach(key) else { return touched };
        touched.controllers.extend(old.controller.clone());
        for (service, facts) in self.services.get_mut(&old.object.namespace).into_iter().flatten() {
            if facts.members.remove(key) {
                touched.services.push(service.clone());
            }
        }
        touched
    }

    fn detach(&mut self, key: &str) -> Option<PodFacts> {
        let old = self.pods.remove(key)?;
        if let Some(controller) = &old.controller
            && let Some(owned) = self.owned.get_mut(controller)
        {
            owned.pods.remove(key);
            owned.tally.remove(old.tally());
            if owned.pods.is_empty() {
                self.owned.remove(controller);
            }
        }
        if !old.node.is_empty()
            && !old.is_over()
            && let Some(load) = self.load.get_mut(&old.node)
        {
            *load -= 1;
            if *load == 0 {
                self.load.remove(&old.node);
            }
        }
        Some(old)
    }

    /// Takes in a Service; looks at the pods of its namespace if it selects others than before.
    pub(super) fn set_service(&mut self, object: &Stored) {
        let value = object.value();
        let selector = value.pointer("/spec/selector").and_then(Value::as_object).into_iter().flatten();
        let selector: BTreeMap<String, String> =
            selector.filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect();
        let services = self.services.entry(object.namespace.clone()).or_default();
        if services.get(&object.key).is_some_and(|known| known.selector == selector) {
            return;
        }
        let mut facts = ServiceFacts { selector, members: BTreeSet::new() };
        let prefix = format!("{}/", object.namespace);
        let pods = self.pods.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
        facts.members = pods.filter(|(_, pod)| facts.selects(pod)).map(|(key, _)| key.clone()).collect();
        services.insert(object.key.clone(), facts);
    }

    pub(super) fn remove_service(&mut self, key: &str) {
        let namespace = key.split('/').next().unwrap_or_default();
        if let Some(services) = self.services.get_mut(namespace) {
            services.remove(key);
            if services.is_empty() {
                self.services.remove(namespace);
            }
        }
    }

    /// The pods that a Service selects.
    pub(super) fn members(&self, service: &Stored) -> impl Iterator<Item = &PodFacts> {
        let facts = self.services.get(&service.namespace).and_then(|all| all.get(&service.key));
        facts.into_iter().flat_map(|facts| &facts.members).filter_map(|key| self.pods.get(key))
    }
}
