//! An API server, embedded or real, behind a proxy that counts and breaks requests; a hub and a feed server on it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube_informer::connect::Source;
use kube_informer::factory::{Factory, Timings};
use kube_informer::informer::Scope;
use kube_informer_apiserver::Server as ApiServer;
use kube_informer_feed::hub::{self, Hub};
use kube_informer_feed::message::StatusState;
use kube_informer_feed::server::{self, Server};
use kube_informer_testbed::cluster::{Cluster, Namespace};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::{self, Proxy};
use serde_json::{Value, json};

use crate::client::Client;

/// Long enough for anything on a busy machine; no test waits for it to pass.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// An API server with a namespace of the test's own.
pub(crate) struct Place {
    pub(crate) endpoint: Endpoint,
    pub(crate) namespace: String,
    pub(crate) proxy: Proxy,
    /// What ends with the test.
    _server: Option<ApiServer>,
    _own: Option<Namespace>,
}

/// A feed on it.
pub(crate) struct Feed {
    pub(crate) place: Place,
    /// What it reads through, for as long as it does.
    _factory: Factory,
    pub(crate) hub: Hub,
    pub(crate) server: Server,
}

/// A file that no other test has.
fn file(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("feed-{}-{number}-{name}", std::process::id()))
}

impl Place {
    pub(crate) async fn embedded() -> Result<Self> {
        let server = ApiServer::builder().tls(false).start().await?;
        let path = file("kubeconfig");
        std::fs::write(&path, server.kubeconfig())?;
        let endpoint = Endpoint::new(Access::read(&path).await?)?;
        std::fs::remove_file(&path)?;
        let proxy = proxy::Config::new(endpoint.access()).add_credentials().start().await?;
        let namespace = "test".to_owned();
        let place = Self { endpoint, namespace, proxy, _server: Some(server), _own: None };
        place.namespace("test").await?;
        Ok(place)
    }

    pub(crate) async fn real(cluster: Cluster, test: &str) -> Result<Self> {
        let namespace = cluster.namespace(test).await?;
        let endpoint = cluster.endpoint().clone();
        let proxy = proxy::Config::new(endpoint.access()).add_credentials().start().await?;
        let name = namespace.name().to_owned();
        Ok(Self { endpoint, namespace: name, proxy, _server: None, _own: Some(namespace) })
    }

    pub(crate) async fn namespace(&self, name: &str) -> Result<()> {
        self.post("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?;
        Ok(())
    }

    /// A factory that goes through the proxy, with short waits.
    pub(crate) async fn factory(&self) -> Result<Factory> {
        let path = file("kubeconfig");
        // The proxy has credentials for those who bring none.
        Access::anonymous(self.proxy.url()).write(&path)?;
        let factory = Factory::from_source(Source::file(&path)).await;
        let timings = Timings::default()
            .waits(Duration::from_millis(20), Duration::from_millis(200))
            .slow(Duration::from_millis(100));
        Ok(factory?.timings(timings))
    }

    /// A feed of config maps of the test's namespace, live.
    pub(crate) async fn feed(self) -> Result<Feed> {
        self.feed_with(|hub| hub, |server| server).await
    }

    pub(crate) async fn feed_with(
        self,
        hub: impl FnOnce(hub::Builder) -> hub::Builder,
        server: impl FnOnce(server::Builder) -> server::Builder,
    ) -> Result<Feed> {
        let factory = self.factory().await?;
        let builder =
            Hub::builder(factory.clone()).resource("v1/configmaps").scope(Scope::namespace(&self.namespace));
        let hub = hub(builder).start().await?;
        factory.start();
        let server = server(Server::builder(hub.clone())).start().await?;
        let feed = Feed { place: self, _factory: factory, hub, server };
        feed.live("v1/configmaps").await;
        Ok(feed)
    }

    /// The path of a namespaced resource in the core group.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/api/v1/namespaces/{}/{rest}", self.namespace)
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> Result<Value> {
        let answer = self.endpoint.post(path, object).await?;
        ensure!(answer.status.is_success(), "POST {path}: {answer:?}");
        answer.json().context("an answer that is not JSON")
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Result<Value> {
        let answer = self.endpoint.merge_patch(path, patch).await?;
        ensure!(answer.status.is_success(), "PATCH {path}: {answer:?}");
        answer.json().context("an answer that is not JSON")
    }

    /// Makes a config map with a label and a value.
    pub(crate) async fn add(&self, name: &str, app: &str, value: &str) -> Result<Value> {
        let map = json!({ "metadata": { "name": name, "labels": { "app": app } }, "data": { "key": value } });
        self.post(&self.path("configmaps"), &map).await
    }

    pub(crate) async fn change(&self, name: &str, value: &str) -> Result<Value> {
        self.merge(&self.path(&format!("configmaps/{name}")), &json!({ "data": { "key": value } })).await
    }

    pub(crate) async fn label(&self, name: &str, app: &str) -> Result<Value> {
        let patch = json!({ "metadata": { "labels": { "app": app } } });
        self.merge(&self.path(&format!("configmaps/{name}")), &patch).await
    }

    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        let path = self.path(&format!("configmaps/{name}"));
        let answer = self.endpoint.delete(&path).await?;
        ensure!(answer.status.is_success(), "DELETE {path}: {answer:?}");
        Ok(())
    }

    /// Watches of a resource that are open on the API server.
    pub(crate) fn open_watches(&self, plural: &str) -> usize {
        let end = format!("/{plural}");
        let open = self.proxy.requests().open();
        open.iter().filter(|request| request.is_watch() && request.path.ends_with(&end)).count()
    }
}

impl Feed {
    /// A client that speaks the protocol.
    pub(crate) async fn client(&self) -> Result<Client> {
        Client::speaking(&self.server.url()).await
    }

    /// Waits until a resource is live.
    pub(crate) async fn live(&self, gvr: &str) {
        eventually("the resource is live", SOON, async || {
            let topics = self.hub.topics();
            topics
                .iter()
                .any(|topic| topic.gvr == gvr && topic.ready && topic.state == StatusState::Live)
                .then_some(())
        })
        .await;
    }

    /// Waits until there are so many connections.
    pub(crate) async fn connections(&self, count: usize) {
        eventually("so many connections", SOON, async || (self.server.connections() == count).then_some(()))
            .await;
    }

    /// One value under `/metrics`.
    pub(crate) async fn metric(&self, name: &str) -> Result<f64> {
        let page = self.get("/metrics").await?.1;
        let line =
            page.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
        let line = line.with_context(|| format!("no {name} in\n{page}"))?;
        Ok(line.rsplit_once(' ').context("no value")?.1.parse()?)
    }

    /// GET of a path of the feed server: status and text.
    pub(crate) async fn get(&self, path: &str) -> Result<(u16, String)> {
        let endpoint = Endpoint::new(Access::anonymous(format!("http://{}", self.server.address())))?;
        let answer = endpoint.get(path).await?;
        Ok((answer.status.as_u16(), answer.text().into_owned()))
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
