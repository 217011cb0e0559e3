//! The simulator on an empty server, with tokio's clock paused: waiting costs no time.

mod deployments;
mod determinism;
mod pods;
mod sets;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::Simulation;
use super::cluster::{Kind, Who};
use crate::api::{Api, DeleteOptions, Part, text};
use crate::housekeeping;
use crate::object::{Stored, key};
use crate::registry::bucket_of;
use crate::store::{Change, ChangeKind};

/// Longer than anything that is waited for.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// A server with housekeeping and a simulation.
struct World {
    api: Arc<Api>,
    task: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl World {
    fn start(simulation: Simulation) -> Self {
        Self::with_window(simulation, 1_000_000)
    }

    fn with_window(simulation: Simulation, window: usize) -> Self {
        let api = Arc::new(Api::new(window, simulation.seed));
        let namespaces = api.resource("", "namespaces").unwrap();
        for name in ["default", "kube-node-lease"] {
            let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            api.create(&namespaces, "", object, &Who::Human.options()).unwrap();
        }
        let both = futures_util::future::join(
            housekeeping::run(Arc::clone(&api)),
            super::run(Arc::clone(&api), simulation),
        );
        let task = tokio::spawn(async move {
            both.await;
        });
        Self { api, task }
    }

    fn create(&self, kind: Kind, object: Value) -> Arc<Stored> {
        let (group, plural) = kind.bucket();
        let resource = self.api.resource(&group, &plural).unwrap();
        let namespace = if resource.namespaced { "default" } else { "" };
        self.api.create(&resource, namespace, object, &Who::Human.options()).unwrap()
    }

    fn edit(&self, kind: Kind, name: &str, change: impl Fn(&mut Value)) {
        let (group, plural) = kind.bucket();
        let resource = self.api.resource(&group, &plural).unwrap();
        let namespace = if resource.namespaced { "default" } else { "" };
        let options = Who::Human.options();
        let edited = self.api.update(&resource, namespace, name, Part::Whole, &options, |current| {
            let mut new = current.cloned().unwrap();
            change(&mut new);
            Ok(new)
        });
        edited.unwrap();
    }

    fn delete(&self, kind: Kind, name: &str) {
        let (group, plural) = kind.bucket();
        let resource = self.api.resource(&group, &plural).unwrap();
        let namespace = if resource.namespaced { "default" } else { "" };
        self.api.delete(&resource, namespace, name, &DeleteOptions::propagating("Background")).unwrap();
    }

    fn try_get(&self, kind: Kind, name: &str) -> Option<Value> {
        let namespaced = !matches!(kind, Kind::Node | Kind::Namespace);
        let key = key(if namespaced { "default" } else { "" }, name);
        self.api.store.get(&kind.bucket(), &key).map(|o| o.value())
    }

    fn get(&self, kind: Kind, name: &str) -> Value {
        self.try_get(kind, name).unwrap_or_else(|| panic!("there is no {kind:?} {name}"))
    }

    fn list(&self, kind: Kind) -> Vec<Value> {
        self.api.store.list(&kind.bucket(), "default/").objects.iter().map(|o| o.value()).collect()
    }

    /// The pods that are not on their way out.
    fn live_pods(&self) -> Vec<Value> {
        self.list(Kind::Pod).into_iter().filter(|p| !is_deleting(p)).collect()
    }

    /// Waits until something is so.
    async fn until(&self, what: &str, so: impl Fn(&Self) -> bool) {
        let mut newest = self.api.store.newest();
        let wait = async {
            while !so(self) {
                newest.changed().await.unwrap();
            }
        };
        if tokio::time::timeout(LONG, wait).await.is_err() {
            panic!(
                "never: {what}; pods: {:#?}",
                self.list(Kind::Pod).iter().map(summary).collect::<Vec<_>>()
            );
        }
    }

    /// Waits until nothing has changed for a while.
    async fn quiet(&self) {
        let mut newest = self.api.store.newest();
        while tokio::time::timeout(Duration::from_secs(1_000), newest.changed()).await.is_ok() {}
    }

    async fn deployed(&self, name: &str) {
        self.until(&format!("{name} is deployed"), |w| is_deployed(&w.get(Kind::Deployment, name))).await;
    }

    /// Every change of a kind so far.
    fn history(&self, kind: Kind) -> Vec<Arc<Change>> {
        let (changes, _) = self.api.store.all_changes(0).unwrap();
        changes.into_iter().filter(|(bucket, _)| Kind::of(bucket) == Some(kind)).map(|(_, c)| c).collect()
    }

    /// The states of all pods after each change of one.
    fn replay_pods(&self, mut check: impl FnMut(u64, &std::collections::BTreeMap<String, Value>)) {
        let mut pods = std::collections::BTreeMap::new();
        for change in self.history(Kind::Pod) {
            match change.kind {
                ChangeKind::Deleted => pods.remove(&change.new.key),
                _ => pods.insert(change.new.key.clone(), change.new.value()),
            };
            check(change.revision, &pods);
        }
    }
}

fn is_deployed(deployment: &Value) -> bool {
    let status = &deployment["status"];
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap();
    let number = |field: &str| status[field].as_i64().unwrap_or_default();
    status["observedGeneration"] == deployment["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|field| number(field) == wanted)
}

fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

fn is_ready(pod: &Value) -> bool {
    super::condition::is_true(&pod["status"], "Ready")
}

/// It counts as a replica.
fn is_active(pod: &Value) -> bool {
    !is_deleting(pod) && !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

fn summary(pod: &Value) -> String {
    format!(
        "{} {} on {:?} ready {} deleting {}",
        name(pod),
        text(pod, "/status/phase"),
        text(pod, "/spec/nodeName"),
        is_ready(pod),
        is_deleting(pod),
    )
}

fn reason(object: &Value, condition: &str) -> String {
    super::condition::find(&object["status"], condition)
        .map(|c| text(c, "/reason").to_owned())
        .unwrap_or_default()
}

fn workload(kind: &str, name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": if kind == "Job" { "batch/v1" } else { "apps/v1" },
        "kind": kind,
        "metadata": { "name": name },
        "spec": {
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{
                    "name": "main", "image": "example.com/main:1",
                    "ports": [{ "name": "http", "containerPort": 8080 }],
                }] },
            },
        },
    });
    if kind != "Job" {
        object["spec"]["selector"] = json!({ "matchLabels": { "app": name } });
    }
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    object
}

fn deployment(name: &str, replicas: u32) -> Value {
    workload("Deployment", name, json!({ "replicas": replicas }))
}

fn set_image(object: &mut Value, image: &str) {
    object["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
}

#[test]
fn every_kind_that_is_simulated_is_served() {
    let api = Api::new(1, 0);
    for (kind, resource) in super::Kinds::new(&api).map(|kinds| kinds.named()).unwrap() {
        assert_eq!(Kind::of(&bucket_of(&resource)), Some(kind));
    }
}
