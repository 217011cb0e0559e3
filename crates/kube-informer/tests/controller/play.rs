//! A controller of config maps that tells what it does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_informer::controller::{
    Action, Added, BoxError, Context, Controller, Of, Reconciler, Report, RunError,
};
use kube_informer::factory::{Factory, Timings};
use kube_informer::informer::{Informer, Scope};
use kube_informer_testbed::eventually::eventually;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::harness::{Place, SOON, config_map};
use crate::stage::Stage;

pub(crate) struct Play {
    pub(crate) stage: Stage,
    pub(crate) factory: Factory,
}

impl Play {
    pub(crate) async fn at(place: Place, timings: Timings) -> Result<Self> {
        let stage = Stage::before(place).await?;
        let factory = stage.factory(timings).await?;
        Ok(Self { stage, factory })
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope::namespace(&self.stage.place.namespace)
    }

    /// Config maps of the test: the real server has one of its own in each namespace.
    pub(crate) fn config_maps(&self) -> Informer<ConfigMap> {
        self.factory.configure(self.scope()).labels("made=here").unwrap().informer()
    }

    pub(crate) fn controller(&self) -> Controller<ConfigMap, Of<ConfigMap>> {
        Controller::new(&self.factory).scope(self.scope()).for_informer(&self.config_maps())
    }

    pub(crate) async fn make(&self, name: &str) -> Result<Value> {
        let place = &self.stage.place;
        place.post(&place.path("configmaps"), &config_map(name, "0")).await
    }

    pub(crate) async fn change(&self, name: &str, value: &str) -> Result<Value> {
        self.stage.change(name, value).await
    }

    /// A secret that belongs to a config map.
    pub(crate) async fn owned(&self, name: &str, owner: &Value) -> Result<Value> {
        let place = &self.stage.place;
        let secret = json!({ "metadata": { "name": name, "ownerReferences": owners(owner) } });
        place.post(&place.path("secrets"), &secret).await
    }
}

/// The references to a config map that owns something.
pub(crate) fn owners(owner: &Value) -> Value {
    let (name, uid) = (&owner["metadata"]["name"], &owner["metadata"]["uid"]);
    json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": true }])
}

/// What was reconciled: how often, and the value that was seen last; `None` if the object was gone.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Counts>>);

type Counts = BTreeMap<String, (usize, Option<String>)>;

impl Seen {
    pub(crate) fn note(&self, context: &Context<ConfigMap>) {
        let object = context.object();
        let value = object.map(|object| object.pointer::<String>("/data/key").unwrap().unwrap_or_default());
        let mut seen = self.0.lock().unwrap();
        let entry = seen.entry(context.request().name().to_owned()).or_default();
        *entry = (entry.0 + 1, value);
    }

    /// How often it was reconciled.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.0.lock().unwrap().get(name).map_or(0, |(count, _)| *count)
    }

    /// Waits until it was reconciled more often than that.
    pub(crate) async fn more(&self, name: &str, than: usize) -> usize {
        eventually(&format!("{name} is reconciled more than {than} times"), SOON, async || {
            Some(self.count(name)).filter(|count| *count > than)
        })
        .await
    }

    /// Waits until it was reconciled with that value.
    pub(crate) async fn value(&self, name: &str, value: Option<&str>) {
        eventually(&format!("{name} is reconciled with {value:?}"), SOON, async || {
            let seen = self.0.lock().unwrap().get(name).cloned();
            seen.filter(|(_, seen)| seen.as_deref() == value).map(drop)
        })
        .await;
    }
}

/// A reconciler that does nothing.
pub(crate) fn watching(seen: &Seen) -> impl Reconciler<ConfigMap> + use<> {
    let seen = seen.clone();
    move |context: Context<ConfigMap>| {
        seen.note(&context);
        async { Ok::<_, BoxError>(Action::done()) }
    }
}

pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Report, RunError>>,
}

impl Running {
    pub(crate) fn start<S: Added + 'static>(
        controller: Controller<ConfigMap, S>,
        reconciler: impl Reconciler<ConfigMap>,
    ) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let run = async move { controller.run(reconciler, async { drop(stopped.await) }).await };
        Self { stop, task: tokio::spawn(run) }
    }

    pub(crate) async fn stop(self) -> Result<Report> {
        let _ = self.stop.send(());
        Ok(tokio::time::timeout(SOON, self.task).await???)
    }

    /// It ends by itself.
    pub(crate) async fn end(self) -> RunError {
        let _kept = self.stop;
        tokio::time::timeout(SOON, self.task).await.expect("it ends").unwrap().unwrap_err()
    }
}

/// What belongs to the config maps of a controller.
pub(crate) type Owned = Secret;

pub(crate) const LONG: Duration = Duration::from_secs(3600);
