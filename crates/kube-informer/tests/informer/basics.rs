use std::sync::mpsc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::core::{DynamicObject, PartialObjectMeta};
use kube_informer::encoding::Encoding;
use kube_informer::informer::{Delivery, Event, Handler, Informer, Scope, State, Written};
use kube_informer::object::Object;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::harness::{Place, SOON, config_map, on_both};
use crate::replay::Replay;
use crate::stage::{MADE_HERE, Stage, ready, short};

on_both! {
    what_changes_is_told_and_can_be_read,
    one_watch_and_one_cache_serve_every_kind_of_reader,
    who_comes_late_is_told_what_there_is_and_holds_up_nobody,
    everything_is_said_again_from_the_cache,
    promise_07_objects_that_are_created_again_are_others,
}

async fn what_changes_is_told_and_can_be_read(place: Place) -> Result<()> {
    place.post(&place.path("configmaps"), &config_map("first", "1")).await?;
    let factory = place.factory().await?;
    let informer =
        factory.configure::<ConfigMap>(Scope::namespace(&place.namespace)).labels("made=here")?.informer();
    let (told, hear) = mpsc::channel();
    let registration = informer.subscribe().delivery(Delivery::Every(100)).on(move |event| {
        let text = match &event {
            Event::Added { new, initial } => format!("+{} {initial}", new.name()),
            Event::Updated { old, new, .. } => format!(
                "~{} {}→{}",
                new.name(),
                old.pointer::<String>("/data/key").unwrap().unwrap(),
                new.view().unwrap().data.as_ref().unwrap()["key"]
            ),
            Event::Deleted { last, certain } => format!("-{} {certain}", last.name()),
            other => format!("{other:?}"),
        };
        told.send(text).unwrap();
    });
    factory.start();
    factory.synced(SOON).await?;
    registration.synced(SOON).await?;
    let written = place.post(&place.path("configmaps"), &config_map("second", "1")).await?;
    let version = written["metadata"]["resourceVersion"].as_str().unwrap();
    let written = Written::new(informer.resource().clone(), &*place.namespace, version);
    informer.caught_up(&written, SOON).await?;
    assert_eq!(informer.list().count(), 2);
    assert_eq!(informer.health().state, State::Live);
    let encoding = if place.is_real() { Encoding::Protobuf } else { Encoding::Json };
    assert_eq!(informer.get(&place.namespace, "second").unwrap().encoding(), encoding);
    place.merge(&place.path("configmaps/first"), &json!({ "data": { "key": "2" } })).await?;
    place.delete(&place.path("configmaps/second")).await?;
    let told: Vec<String> = (0..4).map(|_| hear.recv_timeout(SOON).unwrap()).collect();
    assert_eq!(told, ["+first true", "+second false", "~first 1→2", "-second true"]);
    assert_eq!(factory.shutdown().await.busy, [""; 0]);
    Ok(())
}

/// What a user who wants one field writes.
#[derive(Debug, PartialEq, Deserialize)]
struct Narrow {
    data: Data,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Data {
    key: String,
}

async fn one_watch_and_one_cache_serve_every_kind_of_reader(place: Place) -> Result<()> {
    struct Typed(mpsc::Sender<String>);
    impl Handler<ConfigMap> for Typed {
        async fn added(&mut self, new: Object<ConfigMap>, _: bool) {
            self.0.send(new.view().unwrap().data.as_ref().unwrap()["key"].clone()).unwrap();
        }
    }
    let stage = Stage::before(place).await?;
    let factory = stage.factory(short()).await?;
    let scope = || Scope::namespace(&stage.place.namespace);
    let typed = factory.configure::<ConfigMap>(scope()).labels("made=here")?.informer();
    let dynamic: Informer<DynamicObject> = typed.cast();
    let (told, hear) = mpsc::channel();
    typed.handler(Typed(told));
    factory.start();
    // Whoever asks for the same, as whatever and in whatever words, gets the same.
    let again = factory.configure::<ConfigMap>(scope()).labels(" made == here ")?.cast::<Narrow>().informer();
    let value =
        factory.configure_resource(factory.resolve("cm").await?, scope()).labels("made=here")?.informer();
    let metadata: Informer<PartialObjectMeta<ConfigMap>> = value.cast();
    let mut events = value.events();
    factory.synced(SOON).await?;
    stage.config_maps(&["one"], "1").await?;

    assert_eq!(hear.recv_timeout(SOON)?, "1");
    let Some(Event::Added { new, .. }) = events.next().await else { panic!("an addition") };
    assert_eq!(new.view()?["data"], json!({ "key": "1" }));
    let key = (stage.place.namespace.as_str(), "one");
    assert_eq!(dynamic.get(key.0, key.1).unwrap().view()?.data["data"]["key"], "1");
    assert_eq!(*again.get(key.0, key.1).unwrap().view()?, Narrow { data: Data { key: "1".to_owned() } });
    let meta = metadata.get(key.0, key.1).unwrap().view()?;
    assert_eq!(meta.metadata.labels.as_ref().unwrap()["made"], "here");
    assert!(typed.get(key.0, key.1).unwrap().is_same(&value.get(key.0, key.1).unwrap()));

    assert_eq!(factory.stats().len(), 1);
    assert_eq!(stage.watches("configmaps").len(), 1);
    let listed = stage.proxy.requests().count(Request::is_list);
    assert_eq!(listed, 0, "a streaming list is enough");
    factory.shutdown().await;
    Ok(())
}

async fn who_comes_late_is_told_what_there_is_and_holds_up_nobody(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.config_maps(&["a", "b"], "1").await?;
    let factory = stage.factory(short()).await?;
    let informer: Informer<Value> = factory
        .configure::<ConfigMap>(Scope::namespace(&stage.place.namespace))
        .labels("made=here")?
        .cast()
        .informer();
    let early = Replay::both(&informer);
    factory.start();
    ready(&factory, &early).await?;
    stage.change("a", "2").await?;
    stage.settled(&informer, MADE_HERE, &[&early[0], &early[1]]).await;
    let late = Replay::both(&informer);
    for replay in &late {
        replay.registration.synced(SOON).await?;
        let told = replay.told();
        assert_eq!((told.added, told.initial, told.updated), (2, 2, 0));
    }
    stage.change("b", "2").await?;
    stage.remove("a").await?;
    stage.settled(&informer, MADE_HERE, &[&early[0], &early[1], &late[0], &late[1]]).await;
    let [_, every] = early;
    let told = every.told();
    assert_eq!((told.added, told.initial, told.updated, told.deleted), (2, 2, 2, 1));
    factory.shutdown().await;
    Ok(())
}

async fn everything_is_said_again_from_the_cache(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.config_maps(&["a", "b"], "1").await?;
    // The factory's period is overridden by the informer's, and that by the registration's.
    let factory = stage.factory(short()).await?.resync(Duration::from_secs(86_400));
    let informer = factory
        .configure::<ConfigMap>(Scope::namespace(&stage.place.namespace))
        .labels("made=here")?
        .informer();
    let often = factory
        .configure::<ConfigMap>(Scope::namespace(&stage.place.namespace))
        .labels("made=here")?
        .resync(Duration::from_millis(50))
        .informer();
    let (seldom, frequent) = (Replay::of(&informer, Delivery::Latest), Replay::of(&often, Delivery::Latest));
    let own = informer.subscribe().resync(Duration::from_millis(50)).on(|_| {});
    factory.start();
    factory.synced(SOON).await?;
    eventually("everything is said again", SOON, async || (frequent.told().resyncs >= 6).then_some(())).await;
    eventually("here, too", SOON, async || (own.stats().handled >= 8).then_some(())).await;
    frequent.assert_sound();
    assert_eq!(seldom.told().resyncs, 0);
    let asked = stage.proxy.requests().count(|request| request.path.ends_with("/configmaps"));
    assert_eq!(asked, 1, "nothing is asked of the server for that");
    factory.shutdown().await;
    Ok(())
}

async fn promise_07_objects_that_are_created_again_are_others(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.config_maps(&["phoenix"], "1").await?;
    let factory = stage.factory(short()).await?;
    let informer = factory
        .configure::<ConfigMap>(Scope::namespace(&stage.place.namespace))
        .labels("made=here")?
        .informer();
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    // While nobody looks: only what is listed afterwards tells.
    stage.proxy.go_down().await;
    stage.remove("phoenix").await?;
    stage.config_maps(&["phoenix"], "2").await?;
    stage.proxy.on(Match::watch().send_initial_events(false)).once().answer(Answer::gone());
    stage.proxy.accept_connections().await;
    eventually("the other one is there", SOON, async || {
        let object = informer.get(&stage.place.namespace, "phoenix")?;
        (object.pointer::<String>("/data/key").unwrap().as_deref() == Some("2")).then_some(())
    })
    .await;
    stage.settled(&informer, MADE_HERE, &[&told[0], &told[1]]).await;
    for replay in told {
        let told = replay.told();
        assert_eq!((told.added, told.updated, told.deleted, told.found_missing.len()), (2, 0, 1, 1));
    }
    factory.shutdown().await;
    Ok(())
}
