//! The server, its three resources in three namespaces, and the proxy before it.

use std::time::Duration;

use anyhow::{Context, Result};
use kube_informer_apiserver::Server;
use kube_informer_testbed::cluster::{Cluster, Namespace};
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::load::{Rng, install_custom_resources};
use kube_informer_testbed::proxy::{self, Proxy};
use serde_json::{Value, json};

use crate::plan::Plan;

/// See the module.
pub(crate) struct World {
    /// Straight to the server.
    pub(crate) endpoint: Endpoint,
    pub(crate) proxy: Proxy,
    pub(crate) namespaces: Vec<String>,
    /// A label that all objects have, and a value that no other run's objects have.
    pub(crate) run: String,
    /// Where it is embedded.
    pub(crate) server: Option<Server>,
    own: Vec<Namespace>,
}

/// A resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In protobuf, on the real server.
    ConfigMap,
    /// The same, with more in it.
    Deployment,
    /// A custom resource: always in JSON.
    Gadget,
}

/// One of the objects that there may be.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// So few that operations meet.
const NAMES: u64 = 24;

pub(crate) const COLORS: [&str; 3] = ["blue", "green", "red"];
pub(crate) const GROUPS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// Who deletes an object that has it waits until somebody takes it off.
pub(crate) const FINALIZER: &str = "soak.example.com/hold";

impl World {
    /// On an embedded server that forgets changes soon.
    pub(crate) async fn embedded(plan: &Plan) -> Result<Self> {
        let server = Server::builder()
            .watch_window(64)
            .bookmark_interval(Duration::from_secs(1))
            .seed(plan.seed)
            .start()
            .await?;
        let access = Access::anonymous(server.url());
        let endpoint = Endpoint::new(access.clone())?;
        let namespaces = ["soak-a", "soak-b", "soak-c"].map(str::to_owned).to_vec();
        for name in &namespaces {
            let namespace = json!({ "metadata": { "name": name } });
            endpoint.post("/api/v1/namespaces", &namespace).await?.success()?;
        }
        Self::of(endpoint, &access, namespaces, Some(server), Vec::new()).await
    }

    /// On the real server of this test run.
    pub(crate) async fn real(cluster: &Cluster) -> Result<Self> {
        let mut own = Vec::new();
        for _ in 0..3 {
            own.push(cluster.namespace("soak").await?);
        }
        let namespaces = own.iter().map(|namespace| namespace.name().to_owned()).collect();
        Self::of(cluster.endpoint().clone(), cluster.admin(), namespaces, None, own).await
    }

    async fn of(
        endpoint: Endpoint,
        access: &Access,
        mut namespaces: Vec<String>,
        server: Option<Server>,
        own: Vec<Namespace>,
    ) -> Result<Self> {
        install_custom_resources(&endpoint).await?;
        // Waiting for a request looks at all records.
        let proxy = proxy::Config::new(access).add_credentials().transcript(200).start().await?;
        namespaces.sort();
        let run = namespaces[0].clone();
        Ok(Self { endpoint, proxy, namespaces, run, server, own })
    }

    /// The selector of all objects. On the embedded server there are no others.
    pub(crate) fn selector(&self) -> Option<String> {
        self.server.is_none().then(|| format!("soak={}", self.run))
    }

    /// Some object, which may be there or not.
    pub(crate) fn some(&self, rng: &mut Rng) -> Place {
        Place {
            kind: *rng.pick(&Kind::ALL),
            namespace: rng.pick(&self.namespaces).clone(),
            name: format!("object-{}", rng.below(NAMES)),
        }
    }

    /// An object as it is first.
    pub(crate) fn manifest(&self, place: &Place, rng: &mut Rng) -> Value {
        let mut manifest = place.kind.content(&place.name, rng);
        manifest["metadata"] = json!({
            "name": place.name,
            "labels": { "soak": self.run, "color": rng.pick(&COLORS), "group": rng.pick(&GROUPS) },
        });
        manifest
    }

    /// The objects of a collection.
    pub(crate) async fn list(&self, collection: &str, selector: Option<&str>) -> Result<Vec<Value>> {
        let query: String =
            selector.iter().flat_map(|text| text.bytes()).map(|byte| format!("%{byte:02X}")).collect();
        let path = if query.is_empty() {
            collection.to_owned()
        } else {
            format!("{collection}?labelSelector={query}")
        };
        let list = self.endpoint.get_json(&path).await?;
        list["items"].as_array().cloned().with_context(|| format!("{path} is no list"))
    }

    /// Ends it.
    pub(crate) async fn close(self) -> Result<()> {
        self.proxy.shut_down().await;
        for namespace in self.own {
            namespace.close().await?;
        }
        if let Some(server) = self.server {
            server.shutdown().await;
        }
        Ok(())
    }
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::ConfigMap, Self::Deployment, Self::Gadget];

    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::ConfigMap => "v1",
            Self::Deployment => "apps/v1",
            Self::Gadget => "load.kube-informer.dev/v1",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Deployment => "Deployment",
            Self::Gadget => "Gadget",
        }
    }

    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Deployment => "deployments",
            Self::Gadget => "gadgets",
        }
    }

    /// The path of all objects, or of those in a namespace.
    pub(crate) fn collection(self, namespace: Option<&str>) -> String {
        let root = if self == Self::ConfigMap { "api" } else { "apis" };
        let inside = namespace.map(|name| format!("/namespaces/{name}")).unwrap_or_default();
        format!("/{root}/{}{inside}/{}", self.api_version(), self.plural())
    }

    /// What an object of this name has, but for its metadata.
    fn content(self, name: &str, rng: &mut Rng) -> Value {
        let mut content = match self {
            Self::ConfigMap | Self::Gadget => json!({}),
            Self::Deployment => json!({ "spec": {
                "paused": true,
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "main", "image": "example.com/none:1" }] },
                },
            }}),
        };
        content["apiVersion"] = self.api_version().into();
        content["kind"] = self.name().into();
        self.change(&mut content, rng);
        content
    }

    /// Writes something new into it.
    pub(crate) fn change(self, content: &mut Value, rng: &mut Rng) {
        let length = 4 + rng.below(120);
        let text = rng.hex(usize::try_from(length).unwrap());
        match self {
            Self::ConfigMap => content["data"]["value"] = text.into(),
            Self::Deployment => {
                content["spec"]["replicas"] = rng.below(10).into();
                content["spec"]["minReadySeconds"] = rng.below(500).into();
            }
            Self::Gadget => {
                content["spec"]["description"] = text.into();
                content["spec"]["replicas"] = rng.below(10).into();
            }
        }
    }
}

impl Place {
    pub(crate) fn collection(&self) -> String {
        self.kind.collection(Some(&self.namespace))
    }

    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}
