//! A stand-in for scheduler and kubelet: there is a node, and every pod of a namespace runs on it, has an address, is ready,
//! and ends when it is told to.

use std::collections::BTreeMap;
use std::time::Duration;

use kube_informer_testbed::http::Endpoint;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Kubelet(JoinHandle<()>);

/// One node, and the pods of one namespace on it.
struct Node {
    endpoint: Endpoint,
    /// Of the node, too.
    namespace: String,
    /// A number for each pod, by its uid.
    pods: BTreeMap<String, usize>,
    /// How often it was looked.
    looks: u32,
}

/// How often it is looked.
const POLL: Duration = Duration::from_millis(50);

/// After so many looks, the node says that it is alive.
const BEAT: u32 = 80;

impl Kubelet {
    pub(crate) fn start(endpoint: &Endpoint, namespace: &str) -> Self {
        let mut node = Node {
            endpoint: endpoint.clone(),
            namespace: namespace.to_owned(),
            pods: BTreeMap::new(),
            looks: 0,
        };
        Self(tokio::spawn(async move {
            let object = json!({ "metadata": { "name": node.namespace } });
            node.endpoint.post("/api/v1/nodes", &object).await.unwrap().success().unwrap();
            loop {
                // What fails is tried again: a pod may be gone, a test may be over.
                let _ = node.look().await;
                // tidy: allow-sleep it plays another process, which looks now and then
                tokio::time::sleep(POLL).await;
            }
        }))
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Node {
    async fn look(&mut self) -> anyhow::Result<()> {
        if self.looks.is_multiple_of(BEAT) {
            self.beat().await?;
        }
        self.looks += 1;
        let path = format!("/api/v1/namespaces/{}/pods", self.namespace);
        let pods = self.endpoint.get_json(&path).await?;
        for pod in pods["items"].as_array().into_iter().flatten() {
            let (name, uid) = (pod["metadata"]["name"].as_str(), pod["metadata"]["uid"].as_str());
            let (Some(name), Some(uid)) = (name, uid) else { continue };
            self.step(pod, &format!("{path}/{name}"), name, uid).await?;
        }
        Ok(())
    }

    /// The next step of a pod's life.
    async fn step(&mut self, pod: &Value, path: &str, name: &str, uid: &str) -> anyhow::Result<()> {
        let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            self.endpoint.delete(&format!("{path}?gracePeriodSeconds=0")).await?;
        } else if pod["spec"]["nodeName"].is_null() {
            let target = json!({ "apiVersion": "v1", "kind": "Node", "name": self.namespace });
            let binding = json!({ "metadata": { "name": name }, "target": target });
            self.endpoint.post(&format!("{path}/binding"), &binding).await?;
        } else if !pod["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(ready)) {
            let next = self.pods.len();
            let number = *self.pods.entry(uid.to_owned()).or_insert(next);
            let address = format!("10.9.{}.{}", number / 250, number % 250 + 1);
            let since = "2026-01-01T00:00:00Z";
            let status = json!({ "status": {
                "phase": "Running",
                "podIP": address,
                // Services of both families lead to them.
                "podIPs": [{ "ip": address }, { "ip": format!("fd00:9::{:x}", number + 1) }],
                "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": since }],
            }});
            self.endpoint.merge_patch(&format!("{path}/status"), &status).await?;
        }
        Ok(())
    }

    /// The node is alive. What counts is that the time is another one each time.
    async fn beat(&self) -> anyhow::Result<()> {
        let beats = self.looks / BEAT;
        let now = format!("2026-01-01T{:02}:{:02}:{:02}Z", beats / 3600 % 24, beats / 60 % 60, beats % 60);
        let status = json!({ "status": { "conditions": [{
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "it is played",
            "lastHeartbeatTime": now,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]}});
        self.endpoint
            .merge_patch(&format!("/api/v1/nodes/{}/status", self.namespace), &status)
            .await?
            .success()?;
        Ok(())
    }
}
