//! A server, embedded or real, with a namespace for the test; clients that go straight to it or through a fault proxy.

use std::ops::Deref;
use std::time::Duration;

use anyhow::Result;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kube_informer::factory::Factory;
use kube_informer::informer::{Informer, Scope};
use kube_informer::object::Object;
use kube_informer::resource::Placement;
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::eventually::eventually;
pub(crate) use kube_informer_testbed::on_both;
use kube_informer_testbed::place;
use kube_informer_testbed::proxy::{self, Proxy};

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

    /// The real server of this test run.
    pub(crate) async fn real(cluster: Cluster, test: &str) -> Result<Self> {
        Ok(Self(place::Place::real(cluster, test).await?))
    }

    /// The way to it, as somebody who may do everything.
    pub(crate) async fn config(&self) -> Result<Config> {
        let kubeconfig = Kubeconfig::from_yaml(self.kubeconfig())?;
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
