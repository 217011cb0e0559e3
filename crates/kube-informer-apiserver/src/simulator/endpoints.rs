//! EndpointSlices follow Services.
//!
//! A Service is looked at a moment after the change that concerns it, so that many pods that become ready
//! together cost one look. An endpoint stays in the slice where it is; a slice is written only if it
//! differs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::Simulator;
use super::cluster::{Kind, Who};
use super::index::PodFacts;
use crate::api::{Part, text};
use crate::object::Stored;

/// The most endpoints in a slice.
const FULL: usize = 100;
/// How long (in simulated seconds) changes are gathered, and the least that this is in real time: a look
/// costs as much as the Service has endpoints.
const DELAY: f64 = 0.1;
const LEAST_DELAY: Duration = Duration::from_millis(20);
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";

/// Endpoints by the name of their pod.
type Endpoints = BTreeMap<String, Value>;

impl Simulator {
    pub(super) fn observe_service(&mut self, service: &Stored) {
        self.index.set_service(service);
        self.note_service(&service.key);
    }

    pub(super) fn note_service(&mut self, key: &str) {
        let due = Instant::now() + self.dice.real(DELAY).max(LEAST_DELAY);
        self.later(Kind::Service, key, due);
    }

    pub(super) fn sync_endpoints(&mut self, service: &Arc<Stored>) {
        let value = service.value();
        let selects =
            value.pointer("/spec/selector").and_then(Value::as_object).is_some_and(|s| !s.is_empty());
        if service.deleting || !selects || text(&value, "/spec/type") == "ExternalName" {
            return;
        }
        // Pods whose named ports differ need slices of their own.
        let mut wanted: BTreeMap<String, (Value, Endpoints)> = BTreeMap::new();
        for pod in self.index.members(service) {
            if pod.ip.is_empty() || pod.is_over() {
                continue;
            }
            let ports = ports(&value, Some(pod));
            let group = wanted.entry(ports.to_string()).or_insert_with(|| (ports, Endpoints::new()));
            group.1.insert(pod.object.name.clone(), endpoint(service, &value, pod));
        }
        if wanted.is_empty() {
            let ports = ports(&value, None);
            wanted.insert(ports.to_string(), (ports, Endpoints::new()));
        }
        self.place(service, &value, wanted);
    }

    fn place(
        &mut self,
        service: &Arc<Stored>,
        value: &Value,
        mut wanted: BTreeMap<String, (Value, Endpoints)>,
    ) {
        let labels = labels(service, value);
        let slices = self.controlled(Kind::EndpointSlice, &service.uid);
        let mut kept: BTreeMap<String, Vec<(Arc<Stored>, Value, Endpoints)>> = BTreeMap::new();
        for (slice, old) in slices {
            if slice.labels.get(MANAGED_BY).map(String::as_str) != Some(MANAGER) || slice.deleting {
                continue;
            }
            // The API shows an empty list as null.
            let group =
                old.get("ports").filter(|p| !p.is_null()).map_or_else(|| "[]".to_owned(), Value::to_string);
            let stay = match wanted.get_mut(&group) {
                Some((_, endpoints)) => {
                    names(&old).iter().filter_map(|n| endpoints.remove_entry(n)).collect()
                }
                None => Endpoints::new(),
            };
            kept.entry(group).or_default().push((slice, old, stay));
        }
        for (group, (ports, mut rest)) in wanted {
            let mut slices = kept.remove(&group).unwrap_or_default();
            for (_, _, endpoints) in &mut slices {
                while endpoints.len() < FULL
                    && let Some((name, endpoint)) = rest.pop_first()
                {
                    endpoints.insert(name, endpoint);
                }
            }
            let any = slices.iter().any(|(_, _, endpoints)| !endpoints.is_empty()) || !rest.is_empty();
            let mut first = true;
            for (slice, old, endpoints) in slices {
                // One slice stays even if there is nothing to say.
                if endpoints.is_empty() && (any || !first) {
                    self.delete(Kind::EndpointSlice, &slice);
                } else {
                    self.rewrite(&slice, &old, &labels, endpoints);
                }
                first = false;
            }
            while !rest.is_empty() || first {
                let more =
                    rest.keys().nth(FULL).cloned().map(|from| rest.split_off(&from)).unwrap_or_default();
                let endpoints: Vec<Value> = std::mem::replace(&mut rest, more).into_values().collect();
                let slice = json!({
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "metadata": {
                        "generateName": format!("{}-", service.name),
                        "labels": labels,
                        "ownerReferences": [self.reference(Kind::Service, service)],
                    },
                    "addressType": "IPv4",
                    "endpoints": endpoints,
                    "ports": ports,
                });
                let _: Result<_, _> =
                    self.create(Who::ControllerManager, Kind::EndpointSlice, &service.namespace, slice);
                first = false;
            }
        }
        for (slice, ..) in kept.into_values().flatten() {
            self.delete(Kind::EndpointSlice, &slice);
        }
    }

    fn rewrite(&self, slice: &Stored, old: &Value, labels: &Value, endpoints: Endpoints) {
        let endpoints = Value::Array(endpoints.into_values().collect());
        let same =
            old.get("endpoints").is_some_and(|e| *e == endpoints || (e.is_null() && endpoints == json!([])));
        if same && old.pointer("/metadata/labels") == Some(labels) {
            return;
        }
        self.edit(Who::ControllerManager, Kind::EndpointSlice, slice, Part::Whole, |slice| {
            slice["endpoints"] = endpoints.clone();
            slice["metadata"]["labels"] = labels.clone();
        });
    }
}

fn labels(service: &Stored, value: &Value) -> Value {
    let mut labels: BTreeMap<&str, &str> =
        service.labels.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    labels.insert(SERVICE_NAME, &service.name);
    labels.insert(MANAGED_BY, MANAGER);
    if text(value, "/spec/clusterIP") == "None" {
        labels.insert(HEADLESS, "");
    } else {
        labels.remove(HEADLESS);
    }
    json!(labels)
}

/// The pods of a slice, in its order.
fn names(slice: &Value) -> BTreeSet<String> {
    let endpoints = slice.get("endpoints").and_then(Value::as_array).into_iter().flatten();
    endpoints.map(|e| text(e, "/targetRef/name").to_owned()).collect()
}

fn endpoint(service: &Stored, value: &Value, pod: &PodFacts) -> Value {
    let despite =
        value.pointer("/spec/publishNotReadyAddresses").and_then(Value::as_bool).unwrap_or_default();
    let mut endpoint = json!({
        "addresses": [pod.ip],
        "conditions": {
            "ready": despite || (pod.ready && !pod.deleting()),
            "serving": pod.ready,
            "terminating": pod.deleting(),
        },
        "nodeName": pod.node,
        "targetRef": {
            "kind": "Pod", "name": pod.object.name, "namespace": pod.object.namespace, "uid": pod.object.uid,
        },
    });
    if let Some((subdomain, hostname)) = &pod.domain
        && *subdomain == service.name
        && !hostname.is_empty()
    {
        endpoint["hostname"] = hostname.as_str().into();
    }
    endpoint
}

/// The ports of a Service, as numbers of the pod's.
fn ports(service: &Value, pod: Option<&PodFacts>) -> Value {
    let all = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let mut ports: Vec<Value> = Vec::new();
    for port in all {
        let protocol = match text(port, "/protocol") {
            "" => "TCP",
            given => given,
        };
        let target = port.get("targetPort").filter(|t| !t.is_null() && **t != json!(0));
        let number = match target {
            Some(Value::String(name)) => match pod.and_then(|pod| named_port(pod, name, protocol)) {
                Some(number) => number,
                None => continue,
            },
            Some(number) => number.clone(),
            None => port.get("port").cloned().unwrap_or_default(),
        };
        let mut one = json!({ "name": text(port, "/name"), "port": number, "protocol": protocol });
        if let Some(application) = port.get("appProtocol") {
            one["appProtocol"] = application.clone();
        }
        ports.push(one);
    }
    // A fixed order makes equal sets of ports equal.
    ports.sort_by_key(Value::to_string);
    ports.into()
}

fn named_port(pod: &PodFacts, name: &str, protocol: &str) -> Option<Value> {
    let value = pod.object.value();
    let containers = value.pointer("/spec/containers")?.as_array()?;
    let ports = containers.iter().filter_map(|c| c.get("ports")?.as_array()).flatten();
    let mut named = ports.filter(|p| {
        text(p, "/name") == name && matches!(text(p, "/protocol"), "" | "TCP") == (protocol == "TCP")
    });
    named.next()?.get("containerPort").cloned()
}
