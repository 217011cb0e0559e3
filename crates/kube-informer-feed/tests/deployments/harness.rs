//! A server behind a fault proxy, with a namespace for the test, and a controller of its Deployments.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use kube_informer::connect::Source;
use kube_informer::factory::{Factory, Timings};
use kube_informer::informer::Scope;
use kube_informer_feed::deployments::{DeploymentController, Ended, Reported};
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::kubeconfig::Access;
pub(crate) use kube_informer_testbed::on_both;
use kube_informer_testbed::place;
use kube_informer_testbed::proxy::{self, Proxy};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Long enough for anything on a busy machine; no test waits for it to pass.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A server with a namespace of the test's own, behind a proxy.
pub(crate) struct Place {
    place: place::Place,
    pub(crate) proxy: Proxy,
    /// Of the way through the proxy.
    pub(crate) kubeconfig: PathBuf,
}

impl Deref for Place {
    type Target = place::Place;

    fn deref(&self) -> &place::Place {
        &self.place
    }
}

impl Place {
    pub(crate) async fn embedded() -> Result<Self> {
        Self::behind_a_proxy(place::Place::embedded().await?).await
    }

    /// The real server of this test run.
    pub(crate) async fn real(cluster: Cluster, test: &str) -> Result<Self> {
        Self::behind_a_proxy(place::Place::real(cluster, test).await?).await
    }

    async fn behind_a_proxy(place: place::Place) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let proxy = proxy::Config::new(place.endpoint.access()).add_credentials().start().await?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let file = format!("deployments-{}-{number}.kubeconfig", std::process::id());
        let kubeconfig = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(file);
        // The proxy has credentials for those who bring none.
        Access::anonymous(proxy.url()).write(&kubeconfig)?;
        Ok(Self { place, proxy, kubeconfig })
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
        self.place.path(&format!("apps/v1/deployments{slash}{name}"))
    }

    pub(crate) async fn create(&self, name: &str, containers: Value) -> Result<Value> {
        self.post(&self.path(""), &deployment(name, 1, containers)).await
    }

    pub(crate) async fn merge(&self, name: &str, patch: &Value) -> Result<Value> {
        self.place.merge(&self.path(name), patch).await
    }

    pub(crate) async fn scale(&self, name: &str, replicas: u32) -> Result<Value> {
        self.merge(name, &json!({ "spec": { "replicas": replicas } })).await
    }

    /// Puts other containers in the place of those that are there.
    pub(crate) async fn containers(&self, name: &str, containers: Value) -> Result<Value> {
        self.merge(name, &json!({ "spec": { "template": { "spec": { "containers": containers } } } })).await
    }

    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        self.place.delete(&self.path(name)).await
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
