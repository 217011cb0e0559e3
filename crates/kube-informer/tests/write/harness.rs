//! A server, embedded or real, with a namespace for the test; clients that go straight to it or through a fault proxy.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kube_informer::factory::Factory;
use kube_informer::informer::{Informer, Scope};
use kube_informer::object::Object;
use kube_informer::resource::Placement;
use kube_informer_apiserver::Server;
use kube_informer_testbed::cluster::{Cluster, Namespace};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::{self, Proxy};
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
        let server = Server::builder().start().await?;
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

    /// Whether it is kube-apiserver.
    pub(crate) fn is_real(&self) -> bool {
        self.server.is_none()
    }

    /// What people put into a file.
    pub(crate) fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// The way to it, as somebody who may do everything.
    pub(crate) async fn config(&self) -> Result<Config> {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        Ok(config)
    }

    /// A client of its own.
    pub(crate) async fn client(&self) -> Result<Client> {
        Ok(Client::try_from(self.config().await?)?)
    }

    /// The informer of the namespace's objects of a type, synced.
    pub(crate) async fn informer<K>(&self) -> Result<(Factory, Informer<K>)>
    where
        K: kube_client::core::Resource<DynamicType = (), Scope: Placement>,
    {
        let factory = Factory::from_config(self.config().await?).await?;
        let informer = factory.informer::<K>(Scope::namespace(&self.namespace));
        factory.start();
        factory.synced(SOON).await?;
        Ok((factory, informer))
    }

    /// A fault proxy before it.
    pub(crate) async fn proxy(&self) -> Result<Proxy> {
        proxy::Config::new(self.endpoint.access()).add_credentials().start().await
    }

    /// The path of something in the namespace, of the core group or of another one: `apps/v1/deployments`.
    pub(crate) fn path(&self, rest: &str) -> String {
        match rest.split_once("/v1/") {
            Some((group, rest)) => format!("/apis/{group}/v1/namespaces/{}/{rest}", self.namespace),
            None => format!("/api/v1/namespaces/{}/{rest}", self.namespace),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value> {
        let answer = self.endpoint.get(path).await?;
        ensure!(answer.status.is_success(), "GET {path}: {answer:?}");
        answer.json().context("an answer that is not JSON")
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

/// A client that goes through a proxy, which has credentials for those who bring none.
pub(crate) async fn through(proxy: &Proxy) -> Result<Client> {
    let kubeconfig = Kubeconfig::from_yaml(&proxy.kubeconfig("none"))?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.auth_info.token = None;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
}

/// Waits for something that comes, or says what did not.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(SOON, future).await {
        Ok(value) => value,
        Err(_) => panic!("not within {SOON:?}: {what}"),
    }
}

/// The object of that name, once the cache has it like that.
pub(crate) async fn cached<K>(
    informer: &Informer<K>,
    namespace: &str,
    name: &str,
    like: impl Fn(&Object<K>) -> bool,
) -> Object<K> {
    let what = format!("{name} is in the cache");
    let found = async || informer.get(namespace, name).filter(|object| like(object));
    eventually(&what, SOON, found).await
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
