//! A server behind a fault proxy, with a namespace for the test, and a controller of its Deployments.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube_informer::connect::Source;
use kube_informer::factory::{Factory, Timings};
use kube_informer::informer::Scope;
use kube_informer_apiserver::Server;
use kube_informer_feed::deployments::{DeploymentController, Ended, Reported};
use kube_informer_testbed::cluster::{Cluster, Namespace};
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::{self, Proxy};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Long enough for anything on a busy machine; no test waits for it to pass.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A server with a namespace of the test's own.
pub(crate) struct Place {
    pub(crate) endpoint: Endpoint,
    pub(crate) proxy: Proxy,
    pub(crate) namespace: String,
    pub(crate) kubeconfig: PathBuf,
    /// What ends with the test.
    _server: Option<Server>,
    _own: Option<Namespace>,
}

impl Place {
    pub(crate) async fn embedded() -> Result<Self> {
        let server = Server::builder().start().await?;
        let endpoint = Endpoint::new(Access::anonymous(server.url()))?;
        let place = Self::before(endpoint, "test".to_owned(), Some(server), None).await?;
        place.post("/api/v1/namespaces", &json!({ "metadata": { "name": "test" } })).await?;
        Ok(place)
    }

    /// The real server of this test run.
    pub(crate) async fn real(cluster: Cluster, test: &str) -> Result<Self> {
        let namespace = cluster.namespace(test).await?;
        let name = namespace.name().to_owned();
        Self::before(cluster.endpoint().clone(), name, None, Some(namespace)).await
    }

    async fn before(
        endpoint: Endpoint,
        namespace: String,
        server: Option<Server>,
        own: Option<Namespace>,
    ) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let proxy = proxy::Config::new(endpoint.access()).add_credentials().start().await?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = format!("deployments-{}-{number}.kubeconfig", std::process::id());
        let kubeconfig = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(file);
        // The proxy has credentials for those who bring none.
        Access::anonymous(proxy.url()).write(&kubeconfig)?;
        Ok(Self { endpoint, proxy, namespace, kubeconfig, _server: server, _own: own })
    }

    /// A factory that goes through the proxy.
    pub(crate) async fn factory(&self) -> Result<Factory> {
        let short = Timings::default()
            .waits(Duration::from_millis(20), Duration::from_millis(200))
            .slow(Duration::from_millis(100));
        Ok(Factory::from_source(Source::file(&self.kubeconfig)).await?.timings(short))
    }

    /// The path of the Deployments, or of one of them.
    pub(crate) fn path(&self, name: &str) -> String {
        let slash = if name.is_empty() { "" } else { "/" };
        format!("/apis/apps/v1/namespaces/{}/deployments{slash}{name}", self.namespace)
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> Result<Value> {
        let answer = self.endpoint.post(path, object).await?;
        ensure!(answer.status.is_success(), "POST {path}: {answer:?}");
        answer.json().context("an answer that is not JSON")
    }

    pub(crate) async fn create(&self, name: &str, containers: Value) -> Result<Value> {
        self.post(&self.path(""), &deployment(name, 1, containers)).await
    }

    pub(crate) async fn merge(&self, name: &str, patch: &Value) -> Result<Value> {
        let answer = self.endpoint.merge_patch(&self.path(name), patch).await?;
        ensure!(answer.status.is_success(), "PATCH {name}: {answer:?}");
        answer.json().context("an answer that is not JSON")
    }

    pub(crate) async fn scale(&self, name: &str, replicas: u32) -> Result<Value> {
        self.merge(name, &json!({ "spec": { "replicas": replicas } })).await
    }

    /// Puts other containers in the place of those that are there.
    pub(crate) async fn containers(&self, name: &str, containers: Value) -> Result<Value> {
        self.merge(name, &json!({ "spec": { "template": { "spec": { "containers": containers } } } })).await
    }

    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        let answer = self.endpoint.delete(&self.path(name)).await?;
        ensure!(answer.status.is_success(), "DELETE {name}: {answer:?}");
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It is in a folder for such things.
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

pub(crate) fn deployment(name: &str, replicas: u32, containers: Value) -> Value {
    let labels = json!({ "app": name });
    json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": containers } },
        },
    })
}

/// One container.
pub(crate) fn web(tag: &str) -> Value {
    json!([{ "name": "web", "image": format!("shop/web:{tag}") }])
}

/// A controller that runs, and what it tells.
pub(crate) struct Running {
    pub(crate) told: mpsc::UnboundedReceiver<Reported>,
    shutdown: oneshot::Sender<()>,
    run: JoinHandle<Ended>,
    factory: Factory,
}

impl Running {
    /// A controller for the test's namespace, which knows what there is.
    pub(crate) async fn start(place: &Place) -> Result<Self> {
        Self::start_with(place, |_| {}).await
    }

    /// The same, with something that is called before anything is told.
    pub(crate) async fn start_with(
        place: &Place,
        before: impl Fn(&Reported) + Send + Sync + 'static,
    ) -> Result<Self> {
        let factory = place.factory().await?;
        let (began, mut beginning) = mpsc::unbounded_channel();
        let controller = DeploymentController::new(&factory, Scope::namespace(&place.namespace))
            .workers(3)
            .beginning(move |object| began.send(object.name().to_owned()).unwrap());
        let informer = controller.informer().clone();
        let (tell, told) = mpsc::unbounded_channel();
        let (shutdown, ended) = oneshot::channel::<()>();
        let sink = move |reported: Reported| {
            before(&reported);
            // A test that has ended wants to hear nothing.
            let _ = tell.send(reported);
        };
        let run = tokio::spawn(controller.run(sink, async move {
            let _ = ended.await;
        }));
        factory.synced(SOON).await?;
        // All of the beginning was handled: what comes now is a change.
        for _ in 0..informer.list().count() {
            tokio::time::timeout(SOON, beginning.recv()).await?;
        }
        Ok(Self { told, shutdown, run, factory })
    }

    /// The next change of what is tracked.
    pub(crate) async fn next(&mut self) -> Reported {
        loop {
            let told = tokio::time::timeout(SOON, self.told.recv()).await;
            let reported = told.expect("something is told in time").expect("the controller runs");
            if reported.is_tracked() {
                return reported;
            }
        }
    }

    /// Its line.
    pub(crate) async fn line(&mut self) -> String {
        self.next().await.change.summary
    }

    /// Ends it; what it told meanwhile, and how it ended.
    pub(crate) async fn end(mut self) -> Result<(Vec<Reported>, Ended)> {
        // It may have ended by itself.
        let _ = self.shutdown.send(());
        let ended = tokio::time::timeout(SOON, self.run).await??;
        let told = std::iter::from_fn(|| self.told.try_recv().ok()).collect();
        self.factory.shutdown().await;
        Ok((told, ended))
    }
}

/// Makes two tests of a function over a [`Place`].
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() -> anyhow::Result<()> {
                super::$name($crate::harness::Place::embedded().await?).await
            })*
        }
        mod real {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let cluster = kube_informer_testbed::require!(kube_informer_testbed::cluster::Cluster::shared().await);
                let place = $crate::harness::Place::real(cluster, stringify!($name)).await.unwrap();
                super::$name(place).await.unwrap();
            })*
        }
    };
}
pub(crate) use on_both;
