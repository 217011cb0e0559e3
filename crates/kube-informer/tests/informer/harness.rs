//! A server, embedded or real, with a namespace for the test, and factories for it.

use std::ops::Deref;
use std::time::Duration;

use anyhow::Result;
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer::factory::Factory;
use kube_informer_apiserver::Server;
use kube_informer_testbed::cluster::Cluster;
pub(crate) use kube_informer_testbed::on_both;
use kube_informer_testbed::place;
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
    /// The embedded server.
    pub(crate) async fn embedded() -> Result<Self> {
        Ok(Self(place::Place::embedded().await?))
    }

    /// An embedded server that was made in some way.
    pub(crate) async fn of(server: Server) -> Result<Self> {
        Ok(Self(place::Place::of(server).await?))
    }

    /// The real server of this test run.
    pub(crate) async fn real(cluster: Cluster, test: &str) -> Result<Self> {
        Ok(Self(place::Place::real(cluster, test).await?))
    }

    /// The server is gone. Only the embedded one can do that.
    pub(crate) async fn refuse_connections(&self) {
        if let Some(server) = self.server() {
            server.refuse_connections().await;
        }
    }

    /// A factory for it, as somebody who may do everything.
    pub(crate) async fn factory(&self) -> Result<Factory> {
        let kubeconfig = Kubeconfig::from_yaml(self.kubeconfig())?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Factory::from_config(config).await?)
    }
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({ "metadata": { "name": name, "labels": { "made": "here" } }, "data": { "key": value } })
}
