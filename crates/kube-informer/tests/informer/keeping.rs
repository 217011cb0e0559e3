//! What is kept of objects, in which encoding, and by what it is found.

use std::convert::Infallible;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_informer::cache::Index;
use kube_informer::encoding::{Encoding, ManagedFields};
use kube_informer::informer::{Informer, Scope};
use kube_informer::object::Packing;
use kube_informer_testbed::eventually::eventually;
use serde_json::{Value, json};

use crate::harness::{Place, SOON, on_both};
use crate::replay::{Replay, cached};
use crate::stage::{MADE_HERE, Stage, live, ready, short};

on_both! {
    dropped_fields_are_not_kept,
    managed_fields_are_cut_told_apart_or_kept,
    only_the_metadata_is_asked_for_and_kept,
    every_encoding_and_packing_gives_what_the_server_has,
    indexes_are_complete_whenever_they_are_added,
}

async fn dropped_fields_are_not_kept(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.config_maps(&["one"], "secret").await?;
    let factory = stage.factory(short()).await?;
    let scope = || Scope::namespace(&stage.place.namespace);
    let configure = || factory.configure::<ConfigMap>(scope()).labels("made=here");
    let without = configure()?.drop("/data")?.informer();
    let with = configure()?.informer();
    factory.start();
    factory.synced(SOON).await?;
    assert_eq!(factory.stats().len(), 2, "what is kept tells informers apart");
    let key = (&stage.place.namespace, "one");
    let object = without.get(key.0, key.1).unwrap();
    assert_eq!(object.view()?.data, None);
    assert!(!object.json()?.contains("secret"), "{}", object.json()?);
    assert!(with.get(key.0, key.1).unwrap().json()?.contains("secret"));
    // So it is with what comes later.
    stage.change("one", "hidden").await?;
    eventually("it has changed", SOON, async || {
        (without.get(key.0, key.1)?.version() != object.version()).then_some(())
    })
    .await;
    assert!(!without.get(key.0, key.1).unwrap().json()?.contains("hidden"));
    assert!(configure()?.drop("/metadata/name").is_err());
    factory.shutdown().await;
    Ok(())
}

async fn managed_fields_are_cut_told_apart_or_kept(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let path = format!("{}?fieldManager=somebody", stage.place.path("configmaps"));
    stage.place.post(&path, &crate::stage::config_map("one", "1")).await?;
    let factory = stage.factory(short()).await?;
    let informer = |managed_fields| -> Result<Informer<Value>> {
        let scope = Scope::object(&stage.place.namespace, "one");
        Ok(factory.configure::<ConfigMap>(scope).managed_fields(managed_fields).cast().informer())
    };
    let [cut, writers, keep] = [ManagedFields::Cut, ManagedFields::Writers, ManagedFields::Keep]
        .map(|setting| informer(setting).unwrap());
    factory.start();
    factory.synced(SOON).await?;
    let one = |informer: &Informer<Value>| informer.get(&stage.place.namespace, "one").unwrap();
    let has = |informer| one(informer).pointer::<Value>("/metadata/managedFields").unwrap().is_some();
    assert_eq!([&cut, &writers, &keep].map(has), [false, false, true]);
    assert!(one(&cut).writers().is_empty());
    let object = one(&writers);
    let [writer] = object.writers() else { panic!("{:?}", object.writers()) };
    assert_eq!((&*writer.manager, &*writer.operation), ("somebody", "Update"));
    let kept = one(&keep).pointer::<Value>("/metadata/managedFields/0/manager")?;
    assert_eq!(kept, Some(json!("somebody")));
    factory.shutdown().await;
    Ok(())
}

async fn only_the_metadata_is_asked_for_and_kept(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.config_maps(&["one"], "secret").await?;
    let factory = stage.factory(short()).await?;
    let informer = factory
        .configure::<ConfigMap>(Scope::namespace(&stage.place.namespace))
        .labels("made=here")?
        .metadata_only()
        .cast::<Value>()
        .informer();
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    stage.change("one", "hidden").await?;
    stage.config_maps(&["two"], "secret").await?;
    eventually("both are told", SOON, async || {
        let told = told.each_ref().map(Replay::told);
        told.iter().all(|told| told.added == 2 && told.updated == 1).then_some(())
    })
    .await;
    for object in informer.list() {
        let view = object.view()?;
        assert!(view["metadata"]["uid"].is_string() && view.get("data").is_none(), "{view}");
        assert_eq!(object.labels().get("made"), Some("here"));
    }
    let [watch] = &stage.watches("configmaps")[..] else { panic!("one watch") };
    assert!(watch.accept.contains("as=PartialObjectMetadata"), "{}", watch.accept);
    factory.shutdown().await;
    Ok(())
}

async fn every_encoding_and_packing_gives_what_the_server_has(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.config_maps(&["one"], "ä \"quoted\" \u{1F980}").await?;
    let factory = stage.factory(short()).await?;
    let mut informers = Vec::new();
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        for packing in [Packing::Off, Packing::default()] {
            let scope = Scope::namespace(&stage.place.namespace);
            let builder = factory.configure::<ConfigMap>(scope).labels("made=here")?;
            let informer = builder.encoding(encoding).packing(packing).informer();
            informers.push((encoding, Replay::both(&informer), informer));
        }
    }
    factory.start();
    factory.synced(SOON).await?;
    let names: Vec<String> = (0..20).map(|number| format!("more-{number}")).collect();
    stage.config_maps(&names.iter().map(String::as_str).collect::<Vec<_>>(), "many").await?;
    stage.change("one", "2").await?;
    stage.remove("more-3").await?;
    for (encoding, told, informer) in &informers {
        stage.settled(informer, MADE_HERE, &[&told[0], &told[1]]).await;
        // What the server says counts: the embedded one knows no protobuf.
        let expected = if stage.place.is_real() { *encoding } else { Encoding::Json };
        assert_eq!(live(informer).await.encoding, Some(expected));
        assert_eq!(informer.list().first().unwrap().encoding(), expected);
        assert_eq!(cached(informer).len(), 20);
    }
    assert_eq!(factory.stats().len(), 4);
    factory.shutdown().await;
    Ok(())
}

/// A pod as a controller makes it, on a node or none.
fn pod(name: &str, node: Option<&str>, owner: Option<&str>) -> Value {
    let mut pod = json!({
        "metadata": { "name": name, "labels": { "app": "web", "made": "here" } },
        "spec": { "automountServiceAccountToken": false, "containers": [{ "name": "c", "image": "example.com/web:1" }] },
    });
    if let Some(node) = node {
        pod["spec"]["nodeName"] = node.into();
    }
    if let Some(uid) = owner {
        pod["metadata"]["ownerReferences"] = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": true }]);
    }
    pod
}

async fn indexes_are_complete_whenever_they_are_added(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let pods = stage.place.path("pods");
    stage.place.post(&pods, &pod("a", Some("n1"), Some("owner-1"))).await?;
    stage.place.post(&pods, &pod("b", Some("n2"), Some("owner-1"))).await?;
    let factory = stage.factory(short()).await?;
    let informer =
        factory.configure::<Pod>(Scope::namespace(&stage.place.namespace)).labels("made=here")?.informer();
    let image = |pod: &Pod| -> Result<Vec<String>, Infallible> {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        Ok(containers.filter_map(|container| container.image.clone()).collect())
    };
    informer.add_index(Index::pointer("/spec/nodeName")?.named("node"))?;
    factory.start();
    factory.synced(SOON).await?;
    informer.add_index(Index::view("image", image))?;
    informer.add_index(Index::label("app"))?;
    informer.add_index(Index::owner())?;
    informer.add_index(Index::label("app"))?;
    let other = Index::label("other").named(Index::label("app").name());
    assert!(informer.add_index(other).is_err(), "there is another one of that name");

    stage.place.post(&pods, &pod("c", Some("n1"), None)).await?;
    stage.place.delete(&format!("{pods}/b?gracePeriodSeconds=0")).await?;
    eventually("both are known", SOON, async || {
        let there = |name| informer.get(&stage.place.namespace, name).is_some();
        (there("c") && !there("b")).then_some(())
    })
    .await;
    let found = |index: &str, value: &str| -> Vec<String> {
        let mut names: Vec<String> =
            informer.list().index(index, value).unwrap().iter().map(|pod| pod.name().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(found("node", "n1"), ["a", "c"]);
    assert_eq!(found("node", "n2"), [""; 0]);
    assert_eq!(found("image", "example.com/web:1"), ["a", "c"]);
    assert_eq!(found(Index::label("app").name(), "web"), ["a", "c"]);
    assert_eq!(found(Index::owner().name(), "owner-1"), ["a"]);
    assert!(informer.list().index("no-such", "x").is_err());
    informer.remove_index("image")?;
    assert!(informer.list().index("image", "example.com/web:1").is_err());
    factory.shutdown().await;
    Ok(())
}
