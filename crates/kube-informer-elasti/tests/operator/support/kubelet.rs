//! A stand-in for the kubelet, and for the scheduler where there is none: the pods of one namespace start, answer, and end.
//!
//! Every pod that is ready answers with its name. One that is deleted goes on to answer for a while, as pods should.
//! Where the server simulates a kubelet, only the answering is done here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use http::StatusCode;
use kube_informer_testbed::http::Endpoint;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::echo;
use super::follow::{Told, follow};
use super::network::{Host, Network};

/// How long a pod answers after it was told to end: longer than it takes until everybody has heard of that.
const GRACE: Duration = Duration::from_secs(2);

/// See the module. It ends when it is dropped.
pub(crate) struct Kubelet {
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

struct Shared {
    endpoint: Endpoint,
    namespace: String,
    network: Network,
    /// Whether the pods are started here.
    starts: bool,
    /// How long a pod takes until it is ready, in milliseconds.
    delay: AtomicU64,
    /// Whether pods become ready at all.
    ready: AtomicBool,
    /// Whether pods have addresses of both families.
    dual: AtomicBool,
    pods: Mutex<HashMap<String, Life>>,
}

/// What is done for a pod, by its UID.
#[derive(Default)]
struct Life {
    bound: bool,
    started: bool,
    ending: bool,
    answers: Option<Host>,
}

impl Kubelet {
    /// For the pods of a namespace.
    pub(crate) async fn start(
        endpoint: &Endpoint,
        namespace: &str,
        network: &Network,
        starts: bool,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            endpoint: endpoint.clone(),
            namespace: namespace.to_owned(),
            network: network.clone(),
            starts,
            delay: AtomicU64::new(0),
            ready: AtomicBool::new(true),
            dual: AtomicBool::new(false),
            pods: Mutex::default(),
        });
        let mut tasks = Vec::new();
        if starts {
            shared.make_node().await?;
            let node = Arc::clone(&shared);
            tasks.push(tokio::spawn(async move {
                loop {
                    drop(node.beat().await);
                    // tidy: allow-sleep a node that says from time to time that it lives
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
            }));
        }
        let pods = Arc::clone(&shared);
        tasks.push(tokio::spawn(async move { pods.run().await }));
        Ok(Self { shared, tasks })
    }

    /// How long pods take from now on until they are ready.
    pub(crate) fn delay(&self, delay: Duration) {
        self.shared.delay.store(delay.as_millis().try_into().unwrap(), Ordering::Relaxed);
    }

    /// Whether pods become ready from now on.
    pub(crate) fn ready(&self, ready: bool) {
        self.shared.ready.store(ready, Ordering::Relaxed);
    }

    /// Pods that start from now on have an address of the second family, too. Nobody answers there: it is there to be led to.
    pub(crate) fn both_families(&self) {
        self.shared.dual.store(true, Ordering::Relaxed);
    }

    /// Makes those ready that were kept from it.
    pub(crate) async fn release(&self) -> Result<()> {
        self.ready(true);
        let list = self.shared.endpoint.get_json(&self.shared.path("pods")).await?;
        for pod in list["items"].as_array().into_iter().flatten() {
            if pod["status"]["podIP"].is_string() && pod["metadata"]["deletionTimestamp"].is_null() {
                self.shared.make_ready(pod, &text(&pod["status"]["podIP"])).await?;
            }
        }
        Ok(())
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Shared {
    fn path(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.namespace)
    }

    /// Endpoints are of pods on nodes that there are.
    async fn make_node(&self) -> Result<()> {
        let node = json!({ "metadata": { "name": self.namespace }, "spec": {} });
        self.endpoint.post("/api/v1/nodes", &node).await?.success()?;
        self.beat().await
    }

    /// The node is alive.
    async fn beat(&self) -> Result<()> {
        let now = now();
        let condition = json!({ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
            "lastHeartbeatTime": now, "lastTransitionTime": now });
        let status = json!({ "status": { "conditions": [condition] } });
        self.endpoint
            .merge_patch(&format!("/api/v1/nodes/{}/status", self.namespace), &status)
            .await?
            .success()?;
        Ok(())
    }

    async fn run(self: Arc<Self>) {
        let mut pods = follow(self.endpoint.clone(), self.path("pods"));
        while let Some(told) = pods.recv().await {
            match told {
                Told::Anew(all) => all.into_iter().for_each(|pod| self.see(pod)),
                Told::Put(pod) => self.see(pod),
                Told::Gone(pod) => {
                    // Clients that have not heard of it yet are answered.
                    let life = self.pods.lock().unwrap().remove(&text(&pod["metadata"]["uid"]));
                    tokio::spawn(async move {
                        // tidy: allow-sleep a pod that takes its time to end
                        tokio::time::sleep(GRACE).await;
                        drop(life);
                    });
                }
            }
        }
    }

    /// Does the next step for a pod, beside the others.
    fn see(self: &Arc<Self>, pod: Value) {
        let uid = text(&pod["metadata"]["uid"]);
        let mut pods = self.pods.lock().unwrap();
        let life = pods.entry(uid).or_default();
        let shared = Arc::clone(self);
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            if !std::mem::replace(&mut life.ending, true) && self.starts {
                tokio::spawn(async move { drop(shared.end(&pod).await) });
            }
        } else if !self.starts {
            if is_ready(&pod) && !std::mem::replace(&mut life.started, true) {
                let address = text(&pod["status"]["podIP"]);
                tokio::spawn(async move { drop(shared.answer(&pod, &address).await) });
            }
        } else if text(&pod["spec"]["nodeName"]).is_empty() {
            if !std::mem::replace(&mut life.bound, true) {
                tokio::spawn(async move { drop(shared.bind(&pod).await) });
            }
        } else if !std::mem::replace(&mut life.started, true) {
            tokio::spawn(async move { shared.launch(&pod).await.unwrap() });
        }
    }

    async fn bind(&self, pod: &Value) -> Result<()> {
        let name = text(&pod["metadata"]["name"]);
        let binding = json!({ "metadata": { "name": name },
            "target": { "apiVersion": "v1", "kind": "Node", "name": self.namespace } });
        self.endpoint.post(&self.path(&format!("pods/{name}/binding")), &binding).await?.success()?;
        Ok(())
    }

    async fn launch(self: &Arc<Self>, pod: &Value) -> Result<()> {
        let address = self.network.address();
        self.set_status(pod, &address, false).await?;
        // tidy: allow-sleep a pod that takes its time to start
        tokio::time::sleep(Duration::from_millis(self.delay.load(Ordering::Relaxed))).await;
        if self.ready.load(Ordering::Relaxed) {
            self.make_ready(pod, &address).await?;
        }
        Ok(())
    }

    async fn make_ready(&self, pod: &Value, address: &str) -> Result<()> {
        self.answer(pod, address).await?;
        self.set_status(pod, address, true).await
    }

    /// It answers before it is said to be ready.
    async fn answer(&self, pod: &Value, address: &str) -> Result<()> {
        let (name, uid) = (text(&pod["metadata"]["name"]), text(&pod["metadata"]["uid"]));
        if self.pods.lock().unwrap().get(&uid).is_none_or(|life| life.answers.is_some()) {
            return Ok(());
        }
        let host = self.network.listen(address, echo::app(name)).await?;
        if let Some(life) = self.pods.lock().unwrap().get_mut(&uid) {
            life.answers = Some(host);
        }
        Ok(())
    }

    async fn set_status(&self, pod: &Value, address: &str, ready: bool) -> Result<()> {
        let now = now();
        let condition = |kind: &str, is: bool| {
            let status = if is { "True" } else { "False" };
            json!({ "type": kind, "status": status, "lastTransitionTime": now })
        };
        let conditions = json!([
            condition("PodScheduled", true),
            condition("Initialized", true),
            condition("ContainersReady", ready),
            condition("Ready", ready)
        ]);
        let mut addresses = vec![json!({ "ip": address })];
        if self.dual.load(Ordering::Relaxed) {
            addresses.push(json!({ "ip": format!("fd00:99::{}", address.replace('.', ":")) }));
        }
        let status = json!({ "status": { "phase": "Running", "podIP": address, "podIPs": addresses,
            "conditions": conditions, "startTime": now } });
        let path = self.path(&format!("pods/{}/status", text(&pod["metadata"]["name"])));
        let answer = self.endpoint.merge_patch(&path, &status).await?;
        if answer.status != StatusCode::NOT_FOUND {
            answer.success()?;
        }
        Ok(())
    }

    async fn end(&self, pod: &Value) -> Result<()> {
        // tidy: allow-sleep a pod that takes its time to end
        tokio::time::sleep(GRACE).await;
        let (name, uid) = (text(&pod["metadata"]["name"]), text(&pod["metadata"]["uid"]));
        if let Some(life) = self.pods.lock().unwrap().get_mut(&uid) {
            life.answers = None;
        }
        let options = json!({ "gracePeriodSeconds": 0, "preconditions": { "uid": uid } });
        let path = self.path(&format!("pods/{name}"));
        self.endpoint.send_json(http::Method::DELETE, &path, "application/json", &options).await?;
        Ok(())
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|each| each["type"] == "Ready" && each["status"] == "True")
}

fn now() -> String {
    let now = jiff::Timestamp::now();
    jiff::Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}
