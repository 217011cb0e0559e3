//! The pods of one namespace: which of them are ready, asked by selector.
//!
//! Of each pod is kept what that needs: its labels, and the conditions of its status. Those that are ready are found by an
//! index, and so are the labels that selectors ask for: a count costs what the pods of one workload cost, not what those of
//! the namespace do.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use kube_informer::cache::selector::Requirement;
use kube_informer::cache::{Index, Selector};
use kube_informer::encoding::{PointerError, ViewError};
use kube_informer::factory::Factory;
use kube_informer::informer::{Informer, Scope, State};
use kube_informer::object::Object;
use serde::Deserialize;

use super::trust::Trust;

/// See the module.
#[derive(Debug)]
pub(super) struct Pods {
    informer: Informer,
    /// Labels that have an index.
    indexed: BTreeSet<Box<str>>,
    trust: Trust,
}

/// What is kept of a pod beside its metadata is its phase and its conditions.
const DROPPED: [&str; 14] = [
    "/metadata/annotations",
    "/spec",
    "/status/containerStatuses",
    "/status/ephemeralContainerStatuses",
    "/status/extendedResourceClaimStatus",
    "/status/hostIP",
    "/status/hostIPs",
    "/status/initContainerStatuses",
    "/status/message",
    "/status/podIP",
    "/status/podIPs",
    "/status/reason",
    "/status/resourceClaimStatuses",
    "/status/startTime",
];

/// The index of pods that are ready, and its only value.
const READY: &str = "elasti/ready";
const YES: &str = "yes";

/// So many labels get an index at most. Selectors by others are compared with all pods that are ready.
const INDEXES: usize = 8;

impl Pods {
    /// The pods of a namespace, kept from now on. After an interruption, they are trusted after a while.
    pub(super) fn open(factory: &Factory, namespace: &str, settling: Duration) -> Result<Self, PointerError> {
        let mut builder = factory.configure::<k8s_openapi::api::core::v1::Pod>(Scope::namespace(namespace));
        for pointer in DROPPED {
            builder = builder.drop(pointer)?;
        }
        let informer = builder.cast().informer();
        let ready = Index::object(READY, |pod| {
            is_ready(pod).map(|ready| if ready { vec![YES.to_owned()] } else { Vec::new() })
        });
        // Where it is there already, it is the same.
        drop(informer.add_index(ready));
        Ok(Self { informer, indexed: BTreeSet::new(), trust: Trust::new(settling) })
    }

    pub(super) fn informer(&self) -> &Informer {
        &self.informer
    }

    /// Makes it cheap to ask by this selector.
    pub(super) fn expect(&mut self, selector: &Selector) {
        let exact = selector.requirements().iter().filter(|each| each.exact().is_some());
        for key in exact.map(Requirement::key) {
            if self.indexed.len() < INDEXES && !self.indexed.contains(key) {
                drop(self.informer.add_index(Index::label(key)));
                self.indexed.insert(key.into());
            }
        }
    }

    /// How many pods that meet a selector are ready, and stay.
    pub(super) fn ready(&self, selector: &Selector) -> usize {
        match self.informer.list().selector(selector).index(READY, YES) {
            Ok(ready) => ready.count(),
            // Somebody took the index away.
            Err(_) => {
                let pods = self.informer.list().selector(selector).into_iter();
                pods.filter(|pod| is_ready(pod).unwrap_or(false)).count()
            }
        }
    }

    /// What stands in the way of what there is being what the server has. To be asked whenever the informer's health changes.
    pub(super) fn stale(&self) -> Option<String> {
        let health = self.informer.health();
        if health.state != State::Live {
            return Some(health.state.to_string());
        }
        let is_trusted = self.trust.is_given(health.watches);
        (!is_trusted).then(|| "just connected again: what was missed may still come".to_owned())
    }
}

/// What says that a pod is ready.
#[derive(Deserialize)]
struct View<'a> {
    #[serde(borrow, default)]
    status: Option<Status<'a>>,
}

#[derive(Deserialize)]
struct Status<'a> {
    #[serde(borrow, default)]
    conditions: Option<Vec<Condition<'a>>>,
}

#[derive(Deserialize)]
struct Condition<'a> {
    #[serde(borrow, rename = "type")]
    type_: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
}

/// Whether a pod is ready, and stays: its deletion was not asked for.
pub(super) fn is_ready(pod: &Object) -> Result<bool, ViewError> {
    if pod.deletion().is_some() {
        return Ok(false);
    }
    pod.read(|stored| {
        let view: View<'_> = stored.view()?;
        let conditions = view.status.and_then(|status| status.conditions).unwrap_or_default();
        Ok(conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"))
    })?
}

#[cfg(test)]
mod tests {
    use kube_informer::encoding::{Codec, Encoding, Rules};
    use kube_informer::object::Intake;
    use serde_json::{Value, json};

    use super::*;

    fn pod(deleted: Option<&str>, status: Value) -> Object {
        let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap();
        let pod = json!({
            "metadata": { "name": "p", "namespace": "shop", "deletionTimestamp": deleted }, "status": status,
        });
        Intake::new(codec).object(pod.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_pod_is_ready_if_it_says_so_and_stays() {
        let said = |status: &str| {
            json!({ "phase": "Running", "conditions": [
                { "type": "PodScheduled", "status": "True" }, { "type": "Ready", "status": status, "reason": "x" },
            ] })
        };
        assert!(is_ready(&pod(None, said("True"))).unwrap());
        for not in ["False", "Unknown", "true", ""] {
            assert!(!is_ready(&pod(None, said(not))).unwrap(), "{not}");
        }
        assert!(!is_ready(&pod(Some("2026-01-01T00:00:00Z"), said("True"))).unwrap());
        for status in [json!(null), json!({}), json!({ "conditions": null }), json!({ "conditions": [] })] {
            assert!(!is_ready(&pod(None, status)).unwrap());
        }
        assert!(is_ready(&pod(None, json!({ "conditions": "none" }))).is_err());
    }
}
