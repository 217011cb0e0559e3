//! A server, embedded or real, with a namespace for the test; workloads and pods in it, played by hand.

use std::ops::Deref;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_core::Stream;
use futures_util::StreamExt;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kube_informer::controller::Request;
use kube_informer::factory::{Factory, Timings};
use kube_informer::manager::{Manager, WatchState};
use kube_informer_elasti::api::{ElastiService, Mode};
use kube_informer_elasti::crd;
use kube_informer_elasti::ops_informer::{OpsInformer, TargetState};
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::eventually::eventually;
pub(crate) use kube_informer_testbed::on_both;
use kube_informer_testbed::place;
use kube_informer_testbed::proxy::{self, Proxy};
use serde_json::{Value, json};

/// Long enough for anything on a busy machine; no test waits for it to pass.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A server with a namespace of the test's own.
pub(crate) struct Place(place::Place);

impl Deref for Place {
    type Target = place::Place;

    fn deref(&self) -> &place::Place {
        &self.0
    }
}

impl Place {
    pub(crate) async fn embedded() -> Result<Self> {
        Ok(Self(place::Place::embedded().await?))
    }

    pub(crate) async fn real(cluster: Cluster, test: &str) -> Result<Self> {
        Ok(Self(place::Place::real(cluster, test).await?))
    }

    pub(crate) async fn client(&self) -> Result<Client> {
        Ok(Client::try_from(config(self.kubeconfig()).await?)?)
    }

    /// A fault proxy before it.
    pub(crate) async fn proxy(&self) -> Result<Proxy> {
        proxy::Config::new(self.endpoint.access()).add_credentials().start().await
    }

    /// What is under test, straight to the server.
    pub(crate) async fn ops(&self) -> Result<Ops> {
        Ops::begin(config(self.kubeconfig()).await?).await
    }

    /// What is under test, through a proxy.
    pub(crate) async fn ops_through(&self, proxy: &Proxy) -> Result<Ops> {
        Ops::begin(through(proxy).await?).await
    }

    /// Makes a definition known, and waits until its objects can be made. Others may have made it before.
    pub(crate) async fn define(&self, definition: &Value) -> Result<()> {
        const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let answer = self.endpoint.post(PATH, definition).await?;
        ensure!(answer.status.is_success() || answer.status == 409, "{answer:?}");
        let name = definition["metadata"]["name"].as_str().context("a name")?;
        let spec = &definition["spec"];
        let version = spec["versions"][0]["name"].as_str().context("a version")?;
        let objects = format!(
            "/apis/{}/{version}/{}",
            spec["group"].as_str().context("a group")?,
            spec["names"]["plural"].as_str().context("a plural")?
        );
        let is_served = async || {
            let established = self.get(&format!("{PATH}/{name}")).await.ok()?;
            let conditions = established["status"]["conditions"].as_array()?;
            conditions.iter().find(|each| each["type"] == "Established" && each["status"] == "True")?;
            self.get(&objects).await.ok()
        };
        eventually("the definition is served", SOON, is_served).await;
        Ok(())
    }

    /// The definition of the ElastiService.
    pub(crate) async fn define_elasti(&self) -> Result<()> {
        self.define(&from_yaml(crd::manifest())?).await
    }

    /// A group that no other test has.
    pub(crate) fn group(&self) -> String {
        format!("{}.example.com", self.namespace)
    }

    /// Makes a workload of `apps/v1` that selects the pods with its name as `app`.
    pub(crate) async fn workload(&self, plural: &str, name: &str, spec: i64, status: i64) -> Result<Value> {
        let kind = match plural {
            "deployments" => "Deployment",
            "statefulsets" => "StatefulSet",
            _ => "ReplicaSet",
        };
        let labels = json!({ "app": name });
        let object = json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name },
            "spec": {
                "replicas": spec, "selector": { "matchLabels": labels }, "serviceName": name,
                "template": { "metadata": { "labels": labels }, "spec": pod_spec() },
            },
        });
        let path = self.path(&format!("apps/v1/{plural}"));
        let made = self.post(&path, &object).await?;
        self.merge(&format!("{path}/{name}/status"), &json!({ "status": { "replicas": status } })).await?;
        Ok(made)
    }

    /// How many replicas a Deployment is to have, and has.
    pub(crate) async fn replicas(&self, name: &str, spec: i64, status: i64) -> Result<()> {
        let path = self.path(&format!("apps/v1/deployments/{name}"));
        self.merge(&path, &json!({ "spec": { "replicas": spec } })).await?;
        self.merge(&format!("{path}/status"), &json!({ "status": { "replicas": status } })).await?;
        Ok(())
    }

    /// Makes a pod with that `app`.
    pub(crate) async fn pod(&self, name: &str, app: &str, ready: bool) -> Result<()> {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            // What is deleted stays, and goes when it is let go.
            "metadata": { "name": name, "labels": { "app": app }, "finalizers": ["example.com/stays"] },
            "spec": pod_spec(),
        });
        self.post(&self.path("pods"), &pod).await?;
        self.ready(name, ready).await
    }

    /// The kubelet finds a pod ready, or not.
    pub(crate) async fn ready(&self, name: &str, ready: bool) -> Result<()> {
        let status = if ready { "True" } else { "False" };
        let conditions = json!([{ "type": "Ready", "status": status }]);
        let patch = json!({ "status": { "phase": "Running", "conditions": conditions } });
        self.merge(&self.path(&format!("pods/{name}/status")), &patch).await?;
        Ok(())
    }

    /// Asks for the deletion of a pod; it stays for now.
    pub(crate) async fn terminate(&self, name: &str) -> Result<()> {
        self.delete(&self.path(&format!("pods/{name}"))).await
    }

    /// Lets a pod go.
    pub(crate) async fn let_go(&self, name: &str) -> Result<()> {
        let path = self.path(&format!("pods/{name}"));
        self.merge(&path, &json!({ "metadata": { "finalizers": null } })).await?;
        Ok(())
    }
}

/// What is under test.
pub(crate) struct Ops {
    pub(crate) factory: Factory,
    pub(crate) manager: Manager,
    pub(crate) ops: OpsInformer,
}

impl Deref for Ops {
    type Target = OpsInformer;

    fn deref(&self) -> &OpsInformer {
        &self.ops
    }
}

impl Ops {
    async fn begin(config: Config) -> Result<Self> {
        let waits = Timings::default()
            .waits(Duration::from_millis(20), Duration::from_millis(100))
            .slow(Duration::from_millis(100));
        let factory = Factory::from_config(config).await?.timings(waits);
        let manager = Manager::new(&factory);
        let ops = OpsInformer::new(&factory, &manager);
        manager.start();
        Ok(Self { factory, manager, ops })
    }

    /// Waits until a decision is made for a reason that has these words in it.
    pub(crate) async fn decides(&self, owner: &Request, mode: Mode, why: &str) -> TargetState {
        let what = format!("{owner}: {mode} because of {why:?}");
        let found =
            async || self.state(owner).filter(|state| state.decision == mode && state.why.contains(why));
        let last = tokio::time::timeout(SOON, eventually(&what, SOON * 2, found)).await;
        last.unwrap_or_else(|_| panic!("not within {SOON:?}: {what}; it is {:?}", self.state(owner)))
    }

    /// Ends everything, and sees that nothing is left.
    pub(crate) async fn end(self) {
        self.ops.shutdown().await;
        assert_eq!(self.ops.namespaces(), Vec::<String>::new());
        assert!(self.manager.list().is_empty(), "{:?}", self.manager.list());
        let pods: Vec<_> =
            self.factory.stats().into_iter().filter(|informer| informer.resource == "pods").collect();
        assert!(pods.is_empty(), "{pods:?}");
        self.manager.shutdown(SOON).await;
        self.factory.shutdown().await;
    }
}

/// Owners that were told, with a time limit.
pub(crate) struct Told(Pin<Box<dyn Stream<Item = Request> + Send>>);

impl Told {
    pub(crate) fn of(ops: &OpsInformer) -> Self {
        Self(Box::pin(ops.changes()))
    }

    pub(crate) async fn next(&mut self) -> Request {
        soon("somebody is told", self.0.next()).await.expect("it goes on")
    }

    /// Reads until the owner is told and its state is like that; every time it is told, there is something new.
    pub(crate) async fn until(
        &mut self,
        ops: &OpsInformer,
        owner: &Request,
        like: impl Fn(&TargetState) -> bool,
    ) -> TargetState {
        loop {
            let told = self.next().await;
            if let Some(state) = ops.state(owner).filter(|state| told == *owner && like(state)) {
                return state;
            }
        }
    }

    /// Waits for the end.
    pub(crate) async fn ended(&mut self) {
        while self.0.next().await.is_some() {}
    }

    /// Whether nobody waits to be told.
    pub(crate) fn is_silent(&mut self) -> bool {
        use futures_util::future::FutureExt;
        self.0.next().now_or_never().is_none()
    }
}

/// Waits until all watches know whether their objects are there.
pub(crate) async fn cached(ops: &Ops, what: &str) {
    let known = async || {
        let list = ops.manager.list();
        (!list.is_empty() && list.iter().all(|watch| watch.state == WatchState::Live)).then_some(())
    };
    eventually(what, SOON, known).await;
}

pub(crate) fn elasti(api_version: &str, kind: &str, name: &str) -> ElastiService {
    let spec = json!({
        "scaleTargetRef": { "apiVersion": api_version, "kind": kind, "name": name }, "service": name,
    });
    serde_json::from_value(json!({ "metadata": {}, "spec": spec })).unwrap()
}

pub(crate) fn deployment(name: &str) -> ElastiService {
    elasti("apps/v1", "Deployment", name)
}

pub(crate) fn pod_spec() -> Value {
    json!({ "containers": [{ "name": "c", "image": "example.com/c" }] })
}

/// A definition with a scale subresource, or without one.
pub(crate) fn definition(group: &str, plural: &str, kind: &str, scale: &Value) -> Value {
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let mut subresources = json!({ "status": {} });
    if !scale.is_null() {
        subresources["scale"] = scale.clone();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": subresources,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": anything, "status": anything } } },
            }],
        },
    })
}

/// A manifest as JSON. What reads kubeconfigs keeps what it does not know.
pub(crate) fn from_yaml(manifest: &str) -> Result<Value> {
    let read = Kubeconfig::from_yaml(manifest)?;
    let mut object = serde_json::to_value(read.other)?;
    object["apiVersion"] = read.api_version.into();
    object["kind"] = read.kind.into();
    Ok(object)
}

async fn config(kubeconfig: &str) -> Result<Config> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(config)
}

/// The way through a proxy, which has credentials for those who bring none.
pub(crate) async fn through(proxy: &Proxy) -> Result<Config> {
    let mut config = config(&proxy.kubeconfig("none")).await?;
    config.auth_info.token = None;
    Ok(config)
}

/// Waits for something that comes, or says what did not.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(SOON, future).await {
        Ok(value) => value,
        Err(_) => panic!("not within {SOON:?}: {what}"),
    }
}
