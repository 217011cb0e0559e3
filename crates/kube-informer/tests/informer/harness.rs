//! A server, embedded or real, with a namespace for the test, and factories for it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer::factory::Factory;
use kube_informer_apiserver::Server;
use kube_informer_testbed::cluster::{Cluster, Namespace};
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::{Value, json};

/// Long enough for anything on a busy machine; no test waits for it to pass.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A server with a namespace of the test's own.
pub(crate) struct Place {
    kubeconfig: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) namespace: String,
    /// What ends with the test.
    server: Option<Server>,
    _own: Option<Namespace>,
}

impl Place {
    /// The embedded server.
    pub(crate) async fn embedded() -> Result<Self> {
        Self::of(Server::builder().start().await?).await
    }

    /// An embedded server that was made in some way.
    pub(crate) async fn of(server: Server) -> Result<Self> {
        let kubeconfig = server.kubeconfig();
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("kubeconfig");
        std::fs::write(&file, &kubeconfig)?;
        let endpoint = Endpoint::new(Access::read(&file).await?)?;
        let namespace = "test".to_owned();
        let place = Self { kubeconfig, endpoint, namespace, server: Some(server), _own: None };
        place.post("/api/v1/namespaces", &json!({ "metadata": { "name": "test" } })).await?;
        Ok(place)
    }

    /// The real server of this test run.
    pub(crate) async fn real(cluster: Cluster, test: &str) -> Result<Self> {
        let namespace = cluster.namespace(test).await?;
        let kubeconfig = std::fs::read_to_string(cluster.admin_kubeconfig())?;
        let endpoint = cluster.endpoint().clone();
        let name = namespace.name().to_owned();
        Ok(Self { kubeconfig, endpoint, namespace: name, server: None, _own: Some(namespace) })
    }

    /// Whether it is kube-apiserver. The embedded server answers in JSON only.
    pub(crate) fn is_real(&self) -> bool {
        self.server.is_none()
    }

    /// The embedded server, if it is that.
    pub(crate) fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// What people put into a file.
    pub(crate) fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The server is gone. Only the embedded one can do that.
    pub(crate) async fn refuse_connections(&self) {
        if let Some(server) = &self.server {
            server.refuse_connections().await;
        }
    }

    /// A factory for it, as somebody who may do everything.
    pub(crate) async fn factory(&self) -> Result<Factory> {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Factory::from_config(config).await?)
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

    pub(crate) async fn delete(&self, path: &str) -> Result<()> {
        let answer = self.endpoint.delete(path).await?;
        ensure!(answer.status.is_success(), "DELETE {path}: {answer:?}");
        Ok(())
    }
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({ "metadata": { "name": name, "labels": { "made": "here" } }, "data": { "key": value } })
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
