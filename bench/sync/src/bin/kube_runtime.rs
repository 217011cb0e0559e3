//! kube-runtime as a contestant: a watcher with a streaming list, the managed fields dropped, into a reflector's store.
//!
//! `typed` keeps pods, `dynamic` the custom resource as `DynamicObject`; `idle` connects and does nothing. The store has
//! no indexes: what others find by an index is found by looking at everything, which is how it is done with it.

use std::fmt::Debug;
use std::hash::Hash;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube_client::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube_client::{Client, Resource, ResourceExt as _};
use kube_informer_bench_sync::reads::Reads;
use kube_informer_bench_sync::seen::Seen;
use kube_informer_bench_sync::stamps::SENT;
use kube_informer_bench_sync::{Contestant, pods};
use kube_runtime::reflector::store::{Store, Writer};
use kube_runtime::reflector::{Lookup, ObjectRef};
use kube_runtime::watcher::{self, Event};
use kube_runtime::{WatchStreamExt as _, watcher as watch};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

fn main() -> Result<()> {
    let start = Instant::now();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // As many workers as $TOKIO_WORKER_THREADS says.
    let runtime = tokio::runtime::Runtime::new()?;
    let contestant = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["typed"] => runtime.block_on(typed()),
        ["dynamic"] => runtime.block_on(dynamic()),
        ["idle"] => runtime.block_on(idle()),
        _ => bail!("usage: typed | dynamic | idle"),
    }?;
    let served = contestant.serve(start, std::io::stdin().lock(), std::io::stdout().lock());
    runtime.shutdown_background();
    served
}

async fn idle() -> Result<Contestant> {
    Client::try_default().await?.apiserver_version().await?;
    Ok(Contestant::idle())
}

async fn typed() -> Result<Contestant> {
    let (store, seen) = synced(Api::<Pod>::all(Client::try_default().await?), (), pods::parts).await?;
    let (objects, count) = (store.len(), store.clone());
    let reads = Box::new(move || Ok(typed_reads(&store)));
    Ok(Contestant { objects, count: Box::new(move || count.len()), seen, handlers: None, reads: Some(reads) })
}

/// Reads that look into typed pods.
fn typed_reads(store: &Store<Pod>) -> Reads {
    let state = store.state();
    let mut keys: Vec<String> = state
        .iter()
        .map(|pod| format!("{}/{}", Lookup::namespace(&**pod).unwrap_or_default(), pod.name_any()))
        .collect();
    let mut values: Vec<String> = state.iter().map(|pod| pods::node(pod).to_owned()).collect();
    keys.sort_unstable();
    values.sort_unstable();
    values.dedup();
    let mut labels: Vec<String> = state.iter().filter_map(|pod| pod.labels().get("app").cloned()).collect();
    labels.sort_unstable();
    labels.dedup();
    let [one, some, labelled, all, whole] = [(); 5].map(|()| store.clone());
    Reads {
        keys,
        values,
        labels,
        get: Box::new(move |key| {
            let (namespace, name) = key.split_once('/').unwrap_or_default();
            one.get(&ObjectRef::new(name).within(namespace)).map_or(0, |pod| pods::containers(&pod))
        }),
        indexed: Box::new(move |node| {
            some.state_filter(|pod| pods::node(pod) == node).iter().map(|pod| pods::containers(pod)).sum()
        }),
        list: Box::new(move |()| all.state().iter().map(|pod| pods::containers(pod)).sum()),
        labelled: Box::new(move |app| {
            let found = labelled.state_filter(|pod| pod.labels().get("app").is_some_and(|of| of == app));
            found.iter().map(|pod| pod.name_any().len()).sum()
        }),
        plain: None,
        snapshot: Box::new(move |()| whole.state().len()),
    }
}

async fn dynamic() -> Result<Contestant> {
    let kind = GroupVersionKind::gvk("load.kube-informer.dev", "v1", "Gadget");
    let gadgets = ApiResource::from_gvk_with_plural(&kind, "gadgets");
    let api = Api::<DynamicObject>::all_with(Client::try_default().await?, &gadgets);
    let fields = |gadget: &DynamicObject| gadget.data.as_object().map_or(0, serde_json::Map::len);
    let (store, seen) = synced(api, gadgets, fields).await?;
    Ok(Contestant {
        objects: store.len(),
        count: Box::new(move || store.len()),
        seen,
        handlers: None,
        reads: None,
    })
}

/// Starts to watch; returns when everything is in the store, and the handler has seen it.
async fn synced<K>(
    api: Api<K>,
    dyntype: <K as Resource>::DynamicType,
    whole: impl Fn(&K) -> usize + Send + 'static,
) -> Result<(Store<K>, Arc<Seen>)>
where
    K: Resource<DynamicType = <K as Lookup>::DynamicType> + Lookup,
    K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    <K as Lookup>::DynamicType: Eq + Hash + Clone + Send + Sync,
{
    let writer = Writer::new(dyntype);
    let (store, seen) = (writer.as_reader(), Arc::<Seen>::default());
    let (done, synced) = oneshot::channel();
    let handler_seen = seen.clone();
    tokio::spawn(async move {
        let seen = handler_seen;
        let mut done = Some(done);
        let events = watch(api, watcher::Config::default().streaming_lists())
            .default_backoff()
            .modify(|object| object.managed_fields_mut().clear())
            .reflect(writer);
        let mut events = pin!(events);
        while let Some(event) = events.next().await {
            match event {
                // There is no telling which of them are new.
                Ok(Event::InitApply(object)) => {
                    look_for_stamp(&seen, &object);
                    black_box(metadata(&object));
                }
                Ok(Event::Apply(object)) => {
                    look_for_stamp(&seen, &object);
                    black_box(metadata(&object));
                    if seen.whole() {
                        black_box(whole(&object));
                    }
                    seen.updates.add();
                }
                Ok(Event::InitDone) => {
                    if let Some(done) = done.take() {
                        let _ = done.send(());
                    }
                }
                Ok(Event::Init | Event::Delete(_)) => {}
                Err(error) => eprintln!("kube-runtime: {error}"),
            }
        }
    });
    synced.await.context("the watch has ended")?;
    Ok((store, seen))
}

fn look_for_stamp(seen: &Seen, object: &impl Resource) {
    if seen.stamps.wanted() {
        let annotations = object.meta().annotations.as_ref();
        seen.stamps.saw(annotations.and_then(|all| all.get(SENT)).map(String::as_str));
    }
}

fn metadata(object: &impl Resource) -> usize {
    let meta = object.meta();
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    length(&meta.namespace)
        + length(&meta.name)
        + length(&meta.resource_version)
        + meta.labels.as_ref().map_or(0, std::collections::BTreeMap::len)
}
