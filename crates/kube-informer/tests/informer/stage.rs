//! A server behind a fault proxy, and factories that go through it, with short waits.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use futures_util::StreamExt;
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer::factory::{Factory, Timings};
use kube_informer::informer::{Cause, Health, Informer, State};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{self, Proxy, Request};
use serde_json::{Value, json};

use crate::harness::{Place, SOON};
use crate::replay::{Replay, cached};

/// Waits between failures that a test does not notice.
pub(crate) fn short() -> Timings {
    Timings::default()
        .waits(Duration::from_millis(20), Duration::from_millis(200))
        .slow(Duration::from_millis(100))
        .overdue(Duration::from_millis(500))
        .bookmarks(Duration::from_millis(200))
}

/// Where a test plays.
pub(crate) struct Stage {
    pub(crate) place: Place,
    pub(crate) proxy: Proxy,
}

impl Stage {
    pub(crate) async fn before(place: Place) -> Result<Self> {
        let proxy = proxy::Config::new(place.endpoint.access()).add_credentials().start().await?;
        Ok(Self { place, proxy })
    }

    /// A factory that goes through the proxy.
    pub(crate) async fn factory(&self, timings: Timings) -> Result<Factory> {
        Ok(Factory::from_config(self.config().await?).await?.timings(timings))
    }

    /// The way through the proxy.
    pub(crate) async fn config(&self) -> Result<Config> {
        let kubeconfig = Kubeconfig::from_yaml(&self.proxy.kubeconfig("none"))?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        // The proxy has credentials of its own for those who bring none.
        config.auth_info.token = None;
        Ok(config)
    }

    /// Requests of informers for a resource, as the proxy saw them.
    pub(crate) fn watches(&self, plural: &str) -> Vec<Request> {
        let end = format!("/{plural}");
        self.proxy.requests().matching(|request| request.is_watch() && request.path.ends_with(&end))
    }

    /// Makes config maps with these names and a value.
    pub(crate) async fn config_maps(&self, names: &[&str], value: &str) -> Result<()> {
        for name in names {
            self.place.post(&self.place.path("configmaps"), &config_map(name, value)).await?;
        }
        Ok(())
    }

    pub(crate) async fn change(&self, name: &str, value: &str) -> Result<Value> {
        let path = self.place.path(&format!("configmaps/{name}"));
        self.place.merge(&path, &json!({ "data": { "key": value } })).await
    }

    pub(crate) async fn remove(&self, name: &str) -> Result<()> {
        self.place.delete(&self.place.path(&format!("configmaps/{name}"))).await
    }

    /// Waits until the cache has exactly what the server has in the test's namespace, value by value, and everyone who is
    /// told knows the same. Checks that they were told nothing that does not follow from what they knew.
    pub(crate) async fn settled<K>(&self, informer: &Informer<K>, query: &str, told: &[&Replay]) {
        let api_version = informer.resource().api_version().into_owned();
        let path = format!("{}{query}", informer.resource().path(Some(&self.place.namespace)));
        let mut last = String::new();
        let what = "the cache, and what was told, equal the server";
        let same = eventually(what, 2 * SOON, async || {
            let list = self.place.endpoint.get_json(&path).await.ok()?;
            let server = listed(&list, &api_version, &informer.resource().kind);
            let cache = cached(informer);
            last = format!("the server has {server:#?}\nthe cache has {cache:#?}");
            (server == cache && told.iter().all(|replay| replay.knows(informer))).then_some(())
        });
        if tokio::time::timeout(SOON, same).await.is_err() {
            let told: Vec<_> = told.iter().map(|replay| replay.told()).collect();
            panic!("{what}: not so.\n{last}\ntold: {told:#?}\n{:#?}", informer.health());
        }
        told.iter().for_each(|replay| replay.assert_sound());
    }
}

/// The items of a list as an informer has them: each says what it is, and nobody who wrote it.
fn listed(list: &Value, api_version: &str, kind: &str) -> BTreeMap<String, Value> {
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let item = |mut item: Value| {
        item["apiVersion"] = api_version.into();
        item["kind"] = kind.into();
        item["metadata"].as_object_mut().unwrap().remove("managedFields");
        let text = |field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
        (format!("{}/{}", text("namespace"), text("name")), item)
    };
    items.into_iter().map(item).collect()
}

/// Labelled, because every namespace of the real server has a config map already.
pub(crate) fn config_map(name: &str, value: &str) -> Value {
    crate::harness::config_map(name, value)
}

/// The selector of those config maps, as a query.
pub(crate) const MADE_HERE: &str = "?labelSelector=made%3Dhere";

/// Waits until everything is listed, and told to those who are told. What comes then is not of the beginning.
pub(crate) async fn ready(factory: &Factory, told: &[Replay]) -> Result<()> {
    factory.synced(SOON).await?;
    for replay in told {
        replay.registration.synced(SOON).await?;
    }
    Ok(())
}

/// Waits until an informer's health is as wanted.
pub(crate) async fn health<K>(
    informer: &Informer<K>,
    what: &str,
    wanted: impl Fn(&Health) -> bool,
) -> Health {
    let mut changes = std::pin::pin!(informer.health_changes());
    let found = async {
        while let Some(health) = changes.next().await {
            if wanted(&health) {
                return health;
            }
        }
        panic!("{what}: the informer was stopped");
    };
    match tokio::time::timeout(SOON, found).await {
        Ok(health) => health,
        Err(_) => panic!("{what}: not so within {SOON:?}: {:#?}", informer.health()),
    }
}

/// Waits until an informer is live.
pub(crate) async fn live<K>(informer: &Informer<K>) -> Health {
    health(informer, "live", |health| health.state == State::Live).await
}

/// Waits until an informer is stale for a reason, and gives that in words.
pub(crate) async fn stale<K>(informer: &Informer<K>, cause: Cause) -> String {
    let health = health(informer, cause.as_str(), |health| why(health) == Some(cause)).await;
    health.state.to_string()
}

fn why(health: &Health) -> Option<Cause> {
    match &health.state {
        State::Stale { why, .. } => Some(why.cause),
        _ => None,
    }
}
