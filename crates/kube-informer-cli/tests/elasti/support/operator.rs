//! The operator's process.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};

use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::{Endpoint, Response};
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::process::{Launch, Process};
use serde_json::json;

use super::{SOON, World};

/// A running operator; killed at the latest when it is dropped.
pub(crate) struct Operator {
    pub(crate) process: Process,
    pub(crate) wake: Endpoint,
    pub(crate) metrics: Endpoint,
    pub(crate) probes: Endpoint,
}

impl Operator {
    /// Starts one for the world's namespace, with the rights that it has there.
    pub(crate) async fn start(world: &World, more: &[&str]) -> Self {
        Self::as_somebody(world, &world.access(), more).await
    }

    /// Starts one that comes to the server in this way.
    pub(crate) async fn as_somebody(world: &World, access: &Access, more: &[&str]) -> Self {
        Self::listening(Self::spawn(world, access, more)).await
    }

    /// Waits until one that was started listens.
    async fn listening(mut process: Process) -> Self {
        let (wake, metrics, probes) = eventually("the operator says where it listens", SOON, async || {
            if let Some(status) = process.exited().unwrap() {
                panic!("it ended with {status}: {}", process.logged());
            }
            let said = process.logged();
            let address = |before: &str, after: &str| {
                let line = said.lines().find_map(|line| line.strip_prefix(before))?;
                Some(line.split_once(after)?.0.to_owned())
            };
            let wake = address("the resolver calls http://", "/informer")?;
            let metrics = address("metrics on http://", "/metrics")?;
            let probes = address("probes on http://", "/healthz")?;
            Some((wake, metrics, probes))
        })
        .await;
        let endpoint = |address: &str| Endpoint::new(Access::anonymous(format!("http://{address}"))).unwrap();
        Self { process, wake: endpoint(&wake), metrics: endpoint(&metrics), probes: endpoint(&probes) }
    }

    /// Starts one, and waits for nothing.
    pub(crate) fn spawn(world: &World, access: &Access, more: &[&str]) -> Process {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = |kind: &str| -> PathBuf { world.folder().join(format!("operator-{number}.{kind}")) };
        access.write(&file("kubeconfig")).unwrap();
        let kubeconfig = file("kubeconfig");
        let namespace = world.namespace.as_str();
        let watched = if world.everywhere { "" } else { namespace };
        let args = [
            "elasti",
            "--kubeconfig",
            kubeconfig.to_str().unwrap(),
            "--watch-namespace",
            watched,
            "--operator-namespace",
            namespace,
            "--resolver-namespace",
            namespace,
            "--wake-bind-address=127.0.0.1:0",
            "--metrics-bind-address=127.0.0.1:0",
            "--health-probe-bind-address=127.0.0.1:0",
            // Nobody here has anything kept that is under way for so long.
            "--linger=1s",
        ];
        Launch::new("operator", env!("CARGO_BIN_EXE_kube-informer"), file("log"))
            .args(args)
            .args(more.iter().copied())
            .env("RUST_LOG", "info")
            .env("NO_COLOR", "1")
            .spawn()
            .unwrap()
    }

    /// Calls as the resolver does.
    pub(crate) async fn call(&self, namespace: &str, service: &str) -> Response {
        let call = json!({ "count": 1, "svc": service, "namespace": namespace });
        self.wake.post("/informer/incoming-request", &call).await.unwrap()
    }

    /// Waits until it says that it is ready.
    pub(crate) async fn ready(&self) {
        eventually("the operator is ready", SOON, async || {
            self.probes.get("/readyz").await.ok().filter(|answer| answer.status.is_success())
        })
        .await;
    }

    /// What `/readyz` says.
    pub(crate) async fn readiness(&self) -> String {
        self.probes.get("/readyz").await.unwrap().text().into_owned()
    }

    /// SIGTERM; how it ended, and what it said. Nothing of what it did was forbidden.
    pub(crate) async fn stop(mut self) -> (ExitStatus, String) {
        let status = self.process.stop(SOON).await.unwrap();
        let said = self.process.logged();
        assert!(!said.contains("forbidden"), "{said}");
        (status, said)
    }

    /// Ctrl-C; how it ended, and what it said.
    pub(crate) async fn interrupt(mut self) -> (ExitStatus, String) {
        self.signal("-INT");
        self.ended().await
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// How it ended, once it has, and what it said.
    pub(crate) async fn ended(&mut self) -> (ExitStatus, String) {
        let ended = tokio::time::timeout(SOON, self.process.ended()).await;
        let said = self.process.logged();
        (ended.unwrap_or_else(|_| panic!("it does not end: {said}")).unwrap(), said)
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
    }
}
