//! An API server, embedded or real, behind a proxy that counts and breaks requests; a hub and a feed server on it.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use kube_informer::connect::Source;
use kube_informer::factory::{Factory, Timings};
use kube_informer::informer::Scope;
use kube_informer_apiserver::Server as ApiServer;
use kube_informer_feed::hub::{self, Hub};
use kube_informer_feed::message::StatusState;
use kube_informer_feed::server::{self, Server};
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
pub(crate) use kube_informer_testbed::on_both;
use kube_informer_testbed::place;
use kube_informer_testbed::proxy::{self, Proxy};
use serde_json::{Value, json};

use crate::client::Client;

/// Long enough for anything on a busy machine; no test waits for it to pass.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// An API server with a namespace of the test's own, behind a proxy.
pub(crate) struct Place {
    place: place::Place,
    pub(crate) proxy: Proxy,
}

impl Deref for Place {
    type Target = place::Place;

    fn deref(&self) -> &place::Place {
        &self.place
    }
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
        Self::behind_a_proxy(place::Place::of(server).await?).await
    }

    pub(crate) async fn real(cluster: Cluster, test: &str) -> Result<Self> {
        Self::behind_a_proxy(place::Place::real(cluster, test).await?).await
    }

    async fn behind_a_proxy(place: place::Place) -> Result<Self> {
        let proxy = proxy::Config::new(place.endpoint.access()).add_credentials().start().await?;
        Ok(Self { place, proxy })
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
        self.delete(&self.path(&format!("configmaps/{name}"))).await
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
