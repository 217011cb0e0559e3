//! Which objects: of all namespaces, of some, one; those that selectors leave; and how many informers of them list at a time.

use std::collections::BTreeSet;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube_informer::informer::{CaughtUpError, Scope, State, Written};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Match, Request};
use serde_json::json;

use crate::harness::{Place, SOON, on_both};
use crate::replay::{Replay, cached};
use crate::stage::{MADE_HERE, Stage, config_map, live, ready, short};

on_both! {
    all_namespaces_are_one_watch,
    several_namespaces_have_a_watch_and_a_version_each,
    one_object_is_asked_for_by_its_name,
    cluster_scoped_objects_are_in_no_namespace,
    an_object_that_leaves_the_selector_is_gone_and_one_that_meets_it_is_new,
    fields_are_selected_by_the_server,
    promise_16_of_many_informers_only_some_list_at_a_time,
}

/// A second namespace, which every cluster has.
const OTHER: &str = "default";

/// A config map that only this test selects, here and in another namespace; gone at the end.
async fn make_both(stage: &Stage) -> Result<String> {
    let name = format!("both-{}", stage.place.namespace);
    let mut map = config_map(&name, "1");
    map["metadata"]["labels"]["only"] = stage.place.namespace.clone().into();
    for namespace in [stage.place.namespace.as_str(), OTHER] {
        stage.place.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), &map).await?;
    }
    Ok(name)
}

async fn remove_other(stage: &Stage, name: &str) -> Result<()> {
    stage.place.delete(&format!("/api/v1/namespaces/{OTHER}/configmaps/{name}")).await
}

async fn all_namespaces_are_one_watch(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let name = make_both(&stage).await?;
    let factory = stage.factory(short()).await?;
    let selector = format!("only={}", stage.place.namespace);
    let informer = factory.configure::<ConfigMap>(Scope::All).labels(&selector)?.informer();
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    let mut namespaces = informer.snapshot().namespaces();
    namespaces.retain(|(name, count)| *count == 1 && [OTHER, &*stage.place.namespace].contains(&&**name));
    assert_eq!((namespaces.len(), informer.snapshot().len()), (2, 2));
    assert_eq!(informer.list().namespace(OTHER).count(), 1);
    assert_eq!(informer.snapshot().versions().len(), 1);
    let [watch] = &stage.watches("configmaps")[..] else { panic!("one watch") };
    assert_eq!(watch.path, "/api/v1/configmaps");
    remove_other(&stage, &name).await?;
    eventually("it is gone", SOON, async || (informer.list().count() == 1).then_some(())).await;
    eventually("that was told", SOON, async || told[0].knows(&informer).then_some(())).await;
    told.iter().for_each(Replay::assert_sound);
    factory.shutdown().await;
    Ok(())
}

async fn several_namespaces_have_a_watch_and_a_version_each(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let name = make_both(&stage).await?;
    let factory = stage.factory(short()).await?;
    let selector = format!("only={}", stage.place.namespace);
    let scope = Scope::namespaces([OTHER, &stage.place.namespace]);
    let informer = factory.configure::<ConfigMap>(scope).labels(&selector)?.informer();
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    let snapshot = informer.snapshot();
    assert_eq!(snapshot.len(), 2);
    let versions: Vec<_> = snapshot.versions().collect();
    let [(Some(first), Some(_)), (Some(second), Some(_))] = &versions[..] else { panic!("{versions:?}") };
    let names = BTreeSet::from([OTHER, &stage.place.namespace]);
    assert_eq!([*first, *second].into_iter().collect::<BTreeSet<_>>(), names);
    let health = live(&informer).await;
    assert_eq!((health.scopes.len(), health.watches), (2, 2));
    let paths: BTreeSet<String> = stage.watches("configmaps").into_iter().map(|watch| watch.path).collect();
    let path = |namespace: &&str| format!("/api/v1/namespaces/{namespace}/configmaps");
    assert_eq!(paths, names.iter().map(path).collect());

    // One's own writes can be waited for, each in its namespace.
    let written = stage.change(&name, "2").await?;
    let version = written["metadata"]["resourceVersion"].as_str().unwrap();
    let token = |namespace: &str| Written::new(informer.resource().clone(), namespace, version);
    informer.caught_up(&token(&stage.place.namespace), SOON).await?;
    let object = informer.get(&stage.place.namespace, &name).unwrap();
    assert_eq!(object.pointer::<String>("/data/key")?.as_deref(), Some("2"));
    let elsewhere = informer.caught_up(&token("kube-system"), SOON).await;
    assert!(matches!(elsewhere, Err(CaughtUpError::Version { .. })), "{elsewhere:?}");

    remove_other(&stage, &name).await?;
    eventually("it is gone", SOON, async || (informer.list().count() == 1).then_some(())).await;
    eventually("that was told", SOON, async || told[1].knows(&informer).then_some(())).await;
    told.iter().for_each(Replay::assert_sound);
    factory.shutdown().await;
    Ok(())
}

async fn one_object_is_asked_for_by_its_name(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.config_maps(&["one", "two"], "1").await?;
    let factory = stage.factory(short()).await?;
    let informer = factory.informer::<ConfigMap>(Scope::object(&stage.place.namespace, "one"));
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    assert_eq!(cached(&informer).len(), 1);
    let [watch] = &stage.watches("configmaps")[..] else { panic!("one watch") };
    assert_eq!(watch.param("fieldSelector").as_deref(), Some("metadata.name=one"));
    stage.remove("one").await?;
    eventually("it is gone", SOON, async || informer.list().is_empty().then_some(())).await;
    stage.config_maps(&["one"], "2").await?;
    stage.change("two", "2").await?;
    stage.settled(&informer, "?fieldSelector=metadata.name%3Done", &[&told[0], &told[1]]).await;
    factory.shutdown().await;
    Ok(())
}

async fn cluster_scoped_objects_are_in_no_namespace(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let factory = stage.factory(short()).await?;
    let all = factory.informer::<Namespace>(Scope::All);
    let one = factory.informer::<Namespace>(Scope::object("", &stage.place.namespace));
    factory.start();
    factory.synced(SOON).await?;
    let object = all.get("", &stage.place.namespace).unwrap();
    assert_eq!(object.view()?.metadata.name.as_ref(), Some(&stage.place.namespace));
    assert_eq!(one.list().count(), 1);
    assert_eq!(one.list().first().unwrap().uid(), object.uid());
    factory.shutdown().await;
    Ok(())
}

async fn an_object_that_leaves_the_selector_is_gone_and_one_that_meets_it_is_new(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.config_maps(&["stays", "leaves"], "1").await?;
    let factory = stage.factory(short()).await?;
    let informer = factory
        .configure::<ConfigMap>(Scope::namespace(&stage.place.namespace))
        .labels("made=here, gone!=true")?
        .informer();
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    let label = async |gone: serde_json::Value| {
        let path = stage.place.path("configmaps/leaves");
        stage.place.merge(&path, &json!({ "metadata": { "labels": { "gone": gone } } })).await
    };
    label("true".into()).await?;
    eventually("it left", SOON, async || (informer.list().count() == 1).then_some(())).await;
    label(serde_json::Value::Null).await?;
    stage.settled(&informer, MADE_HERE, &[&told[0], &told[1]]).await;
    let every = told[1].told();
    assert_eq!((every.added, every.updated, every.deleted), (3, 0, 1));
    assert_eq!(live(&informer).await.state, State::Live);
    factory.shutdown().await;
    Ok(())
}

async fn fields_are_selected_by_the_server(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.config_maps(&["hidden", "seen"], "1").await?;
    let factory = stage.factory(short()).await?;
    let informer = factory
        .configure::<ConfigMap>(Scope::namespace(&stage.place.namespace))
        .labels("made=here")?
        .fields("metadata.name!=hidden")
        .informer();
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    stage.change("hidden", "2").await?;
    stage.change("seen", "2").await?;
    let query = format!("{MADE_HERE}&fieldSelector=metadata.name%21%3Dhidden");
    stage.settled(&informer, &query, &[&told[0], &told[1]]).await;
    assert_eq!(cached(&informer).len(), 1);
    factory.shutdown().await;
    Ok(())
}

/// How many lists of a factory go on at a time.
const LISTS: usize = 8;

async fn promise_16_of_many_informers_only_some_list_at_a_time(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let factory = stage.factory(short()).await?;
    let scope = |number| Scope::object(&stage.place.namespace, format!("map-{number}"));
    let informers: Vec<_> =
        (0..LISTS + 4).map(|number| factory.informer::<ConfigMap>(scope(number))).collect();
    // No list comes to its end.
    let stalled = stage.proxy.on(Match::watch().send_initial_events(true)).stall();
    factory.start();
    eventually("all want to list", SOON, async || {
        informers.iter().all(|informer| informer.health().relists.first == 1).then_some(())
    })
    .await;
    eventually("some do", SOON, async || (stage.watches("configmaps").len() >= LISTS).then_some(())).await;
    // Whoever else had asked would have been heard before this is answered.
    factory.catalog().await?;
    assert_eq!(stage.watches("configmaps").len(), LISTS);
    assert_eq!(stage.proxy.requests().count(Request::is_list), 0);
    // What goes on as a watch holds up nobody.
    stalled.release();
    factory.synced(SOON).await?;
    assert_eq!(stage.watches("configmaps").len(), informers.len());
    assert!(stage.watches("configmaps").iter().all(Request::is_open));
    factory.shutdown().await;
    Ok(())
}
