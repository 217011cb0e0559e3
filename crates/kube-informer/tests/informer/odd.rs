//! Objects, bookmarks, versions, functions and handlers that are not as they should be: what is wrong with them is said,
//! and everything else goes on.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::cache::Index;
use kube_informer::encoding::{Encoding, ServerVersion};
use kube_informer::factory::{Factory, Timings};
use kube_informer::informer::{Cause, Delivery, Health, Informer, Scope, State, Written};
use kube_informer::object::Version;
use kube_informer_apiserver::Server;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Events, Match};
use serde_json::{Value, json};

use crate::harness::{Place, SOON, on_both};
use crate::replay::{Replay, cached};
use crate::stage::{MADE_HERE, Stage, health, live, ready, short};

mod protobuf;

on_both! {
    an_event_that_cannot_be_read_is_made_good_with_a_list,
    an_object_that_can_never_be_read_harms_no_other,
    an_item_of_a_list_that_cannot_be_read_is_said,
    a_very_large_object_is_one_like_any_other,
    a_version_that_is_no_number_does_no_harm,
    an_odd_bookmark_is_said_and_not_believed,
    a_bookmark_whose_version_is_no_number_is_taken_back_by_the_server,
    index_functions_may_fail_and_panic,
    a_handler_that_panics_or_never_returns_harms_nobody,
    a_newer_server_is_asked_for_json,
}

/// Config maps, mostly in JSON, which tests can write, an informer of them, and two who are told.
struct Play {
    stage: Stage,
    factory: Factory,
    informer: Informer<Value>,
    told: [Replay; 2],
}

impl Play {
    async fn prepare(place: Place, timings: Timings) -> Result<Self> {
        Self::prepare_in(Encoding::Json, place, timings).await
    }

    async fn prepare_in(encoding: Encoding, place: Place, timings: Timings) -> Result<Self> {
        let stage = Stage::before(place).await?;
        stage.config_maps(&["bad", "good"], "1").await?;
        let factory = stage.factory(timings).await?;
        let builder = factory.configure::<ConfigMap>(Scope::namespace(&stage.place.namespace));
        let informer = builder.labels("made=here")?.encoding(encoding).cast().informer();
        let told = Replay::both(&informer);
        Ok(Self { stage, factory, informer, told })
    }

    async fn begin(place: Place) -> Result<Self> {
        Self::begin_in(Encoding::Json, place).await
    }

    async fn begin_in(encoding: Encoding, place: Place) -> Result<Self> {
        let play = Self::prepare_in(encoding, place, short()).await?;
        play.factory.start();
        ready(&play.factory, &play.told).await?;
        live(&play.informer).await;
        Ok(play)
    }

    fn value(&self, name: &str) -> Option<String> {
        self.informer.get(&self.stage.place.namespace, name)?.pointer("/data/key").unwrap()
    }

    async fn until(&self, name: &str, value: &str) {
        let what = format!("{name} is {value}");
        eventually(&what, SOON, async || (self.value(name).as_deref() == Some(value)).then_some(())).await;
    }

    /// What could not be read is said with what was asked for, of which resource, why, and what to do.
    fn assert_said(&self, health: Health, verb: &str, parts: &[&str]) {
        let said = health.last_unreadable.unwrap();
        assert_eq!(said.cause, Cause::Unreadable);
        let text = said.to_string();
        let path = format!("{verb} {}", self.stage.place.path("configmaps"));
        for part in parts.iter().copied().chain([&*path, Cause::Unreadable.advice()]) {
            assert_eq!(text.matches(part).count(), 1, "{part} in {text}");
        }
    }

    async fn end(self) -> Result<()> {
        self.stage.proxy.heal();
        self.stage.settled(&self.informer, MADE_HERE, &[&self.told[0], &self.told[1]]).await;
        live(&self.informer).await;
        self.factory.shutdown().await;
        Ok(())
    }
}

/// Makes an object of which only the name can be told.
fn wreck(object: &[u8]) -> Vec<u8> {
    let mut object: Value = serde_json::from_slice(object).unwrap();
    object["metadata"]["labels"] = json!([7]);
    object.to_string().into_bytes()
}

async fn an_event_that_cannot_be_read_is_made_good_with_a_list(place: Place) -> Result<()> {
    let play = Play::begin(place).await?;
    let once = Events::modified().named("bad").at_most(1);
    play.stage
        .proxy
        .on_all(Match::watch())
        .edit_events(once, |event| event.set_object(wreck(event.object())));
    play.stage.change("bad", "2").await?;
    let health = health(&play.informer, "said", |health| health.relists.unreadable == 1).await;
    assert_eq!(health.unreadable, 1);
    let bad = format!("{}/bad: ", play.stage.place.namespace);
    play.assert_said(health, "WATCH", &[&bad, "labels"]);
    play.until("bad", "2").await;
    play.end().await
}

async fn an_object_that_can_never_be_read_harms_no_other(place: Place) -> Result<()> {
    never_read(Play::begin(place).await?, wreck).await
}

async fn never_read(play: Play, wreck: fn(&[u8]) -> Vec<u8>) -> Result<()> {
    let proxy = &play.stage.proxy;
    let wrecked = Events::all().named("bad");
    let fault = proxy
        .on_all(Match::watch())
        .edit_events(wrecked, move |event| event.set_object(wreck(event.object())));
    play.stage.change("bad", "2").await?;
    // Everything is listed once more, and that does not help.
    health(&play.informer, "listed", |health| health.relists.unreadable == 1 && health.unreadable >= 2).await;
    live(&play.informer).await;
    for value in ["3", "4", "5"] {
        play.stage.change("bad", value).await?;
        play.stage.change("good", value).await?;
        play.until("good", value).await;
    }
    assert_eq!(play.value("bad").as_deref(), Some("1"), "what was known of it stays");
    let health = live(&play.informer).await;
    assert_eq!(health.relists.unreadable, 1, "it is not listed for ever");
    assert!(health.unreadable >= 5, "each time is counted: {}", health.unreadable);
    let bad = format!("{}/bad: ", play.stage.place.namespace);
    play.assert_said(health, "WATCH", &[&bad]);
    // That it is gone can be told all the same.
    play.stage.remove("bad").await?;
    eventually("it is gone", SOON, async || play.value("bad").is_none().then_some(())).await;
    fault.remove();
    play.stage.config_maps(&["bad"], "6").await?;
    play.until("bad", "6").await;
    play.end().await
}

async fn an_item_of_a_list_that_cannot_be_read_is_said(place: Place) -> Result<()> {
    let play = Play::prepare(place, short()).await?;
    let path = format!("{}{MADE_HERE}", play.stage.place.path("configmaps"));
    let mut list = play.stage.place.endpoint.get_json(&path).await?;
    for item in list["items"].as_array_mut().unwrap() {
        if item["metadata"]["name"] == "bad" {
            item["metadata"]["ownerReferences"] = json!("nobody");
        }
    }
    let proxy = &play.stage.proxy;
    proxy.on(Match::watch().send_initial_events(true)).answer(Answer::no_streaming_lists());
    proxy.on(Match::list()).once().answer(Answer::raw(200, "application/json", list.to_string()));
    play.factory.start();
    ready(&play.factory, &play.told).await?;
    assert_eq!(play.value("good").as_deref(), Some("1"));
    let health = live(&play.informer).await;
    assert_eq!((health.unreadable, play.value("bad")), (1, None));
    play.assert_said(health, "LIST", &["/bad: ", "ownerReferences"]);
    // The next version of it may be better.
    play.stage.change("bad", "2").await?;
    play.until("bad", "2").await;
    play.end().await
}

async fn a_very_large_object_is_one_like_any_other(place: Place) -> Result<()> {
    let play = Play::begin(place).await?;
    let size = 20 << 20;
    // Servers do not take such an object, but some have one.
    let large = Events::modified().named("bad").at_most(1);
    play.stage.proxy.on_all(Match::watch()).edit_events(large, move |event| {
        let mut object: Value = serde_json::from_slice(event.object()).unwrap();
        object["data"]["large"] = "x".repeat(size).into();
        event.set_object(object.to_string());
    });
    play.stage.change("bad", "2").await?;
    play.until("bad", "2").await;
    let object = play.informer.get(&play.stage.place.namespace, "bad").unwrap();
    assert_eq!(object.pointer::<String>("/data/large")?.map(|text| text.len()), Some(size));
    assert_eq!(live(&play.informer).await.watches, 1);
    play.stage.change("good", "2").await?;
    play.until("good", "2").await;
    play.stage.change("bad", "3").await?;
    play.end().await
}

async fn a_version_that_is_no_number_does_no_harm(place: Place) -> Result<()> {
    let play = Play::begin(place).await?;
    let named = Events::modified().named("bad").at_most(1);
    play.stage.proxy.on_all(Match::watch()).edit_events(named, |event| {
        let mut object: Value = serde_json::from_slice(event.object()).unwrap();
        object["metadata"]["resourceVersion"] = "no-number".into();
        event.set_object(object.to_string());
    });
    play.stage.change("bad", "2").await?;
    play.until("bad", "2").await;
    // The server does not take that version for one of its own, and everything is listed in the end.
    play.stage.proxy.cut_open(Match::watch()).await;
    play.stage.change("bad", "3").await?;
    play.stage.remove("good").await?;
    play.end().await
}

/// Puts a bookmark before, or after, the next change of `good`, on the watch that is open. The server's own do not come.
fn bookmark(play: &Play, is_first: bool, object: Vec<u8>) {
    let next = || Events::modified().named("good");
    let proxy = &play.stage.proxy;
    proxy.on_open(Match::watch()).swallow_bookmarks();
    proxy.on_open(Match::watch()).duplicate_events(next().at_most(1));
    let one = if is_first { next() } else { next().skip(1) };
    proxy.on_open(Match::watch()).edit_events(one.at_most(1), move |event| {
        event.set_kind("BOOKMARK");
        event.set_object(object.clone());
    });
}

/// A version that no server has come to.
const FAR: u64 = 999_999_999;

async fn an_odd_bookmark_is_said_and_not_believed(place: Place) -> Result<()> {
    let of = |kind: &str, metadata: Value| {
        json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata }).to_string().into_bytes()
    };
    let odd = [
        (of("Pod", json!({ "resourceVersion": FAR.to_string() })), "an object of the kind \"Pod\""),
        (of("ConfigMap", json!({})), "a bookmark without a version"),
        (of("ConfigMap", json!({ "resourceVersion": FAR })), "expected a string"),
    ];
    odd_bookmarks(Play::begin(place).await?, odd).await
}

async fn odd_bookmarks(play: Play, odd: [(Vec<u8>, &str); 3]) -> Result<()> {
    for ((object, says), number) in odd.into_iter().zip(1..) {
        bookmark(&play, true, object);
        let value = format!("after {number}");
        play.stage.change("good", &value).await?;
        play.until("good", &value).await;
        let health = live(&play.informer).await;
        assert_eq!((health.unreadable, health.watches), (number, 1), "{health:#?}");
        play.assert_said(health, "WATCH", &["a bookmark: ", says]);
        let version = play.informer.snapshot().version(&play.stage.place.namespace).and_then(Version::number);
        assert!(version.is_some_and(|version| version < FAR), "{version:?}");
    }
    play.stage.settled(&play.informer, MADE_HERE, &[&play.told[0], &play.told[1]]).await;
    // What comes is of the version that was seen, not of that which a bookmark named.
    play.stage.proxy.cut_open(Match::watch()).await;
    play.stage.change("bad", "2").await?;
    play.until("bad", "2").await;
    let health = live(&play.informer).await;
    assert_eq!((health.relists.first, health.relists.went_back, health.relists.failure), (1, 0, 0));
    play.end().await
}

async fn a_bookmark_whose_version_is_no_number_is_taken_back_by_the_server(place: Place) -> Result<()> {
    let play = Play::begin(place).await?;
    let namespace = &play.stage.place.namespace;
    let odd = "no-number";
    let object = json!({ "kind": "ConfigMap", "metadata": { "resourceVersion": odd } });
    bookmark(&play, false, object.to_string().into_bytes());
    play.stage.change("good", "2").await?;
    let seen = || play.informer.snapshot().version(namespace).map(ToString::to_string);
    eventually("it was seen", SOON, async || (seen().as_deref() == Some(odd)).then_some(())).await;
    // There are such versions: nothing is wrong with it as long as the server does not say so.
    assert_eq!((live(&play.informer).await.unreadable, play.value("good").as_deref()), (0, Some("2")));
    let written = Written::new(play.informer.resource().clone(), namespace, "1");
    let error = play.informer.caught_up(&written, SOON).await.unwrap_err();
    assert!(error.to_string().contains("version 1 cannot be compared to version no-number"), "{error}");

    let held = play.stage.proxy.on(Match::watch().send_initial_events(true)).stall();
    play.stage.proxy.cut_open(Match::watch()).await;
    play.stage.change("bad", "2").await?;
    let stale = health(&play.informer, "said", |health| health.relists.failure == 1).await.state;
    let State::Stale { why, .. } = stale else { panic!("{stale}") };
    let text = why.to_string();
    let path = format!("WATCH {}?", play.stage.place.path("configmaps"));
    for part in [&*path, odd, "Invalid value", Cause::Server.advice()] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    assert_eq!((why.cause, cached(&play.informer).len()), (Cause::Server, 2), "what is known stays");
    held.remove();
    play.until("bad", "2").await;
    live(&play.informer).await;
    assert!(play.informer.snapshot().version(namespace).and_then(Version::number).is_some());
    play.end().await
}

async fn index_functions_may_fail_and_panic(place: Place) -> Result<()> {
    let play = Play::begin(place).await?;
    play.stage.config_maps(&["worse"], "1").await?;
    play.until("worse", "1").await;
    let index = Index::view("moods", |map: &ConfigMap| match map.metadata.name.as_deref() {
        Some("good") => Ok(vec!["fine".to_owned()]),
        Some("worse") => panic!("an index function that panics"),
        _ => Err("an index function that fails"),
    });
    play.informer.add_index(index)?;
    let found: Vec<String> =
        play.informer.list().index("moods", "fine")?.iter().map(|object| object.name().to_owned()).collect();
    assert_eq!(found, ["good"]);
    assert_eq!(play.informer.list().count(), 3, "all are kept");
    let faults = play.informer.index_faults();
    let said = |name: &str| faults.iter().find(|fault| fault.key.name == name).unwrap().message.clone();
    assert!(said("bad").contains("that fails") && said("worse").contains("that panics"), "{faults:?}");
    let before = play.informer.stats().cache.index_faults;
    play.stage.change("bad", "2").await?;
    play.stage.change("worse", "2").await?;
    play.until("worse", "2").await;
    assert_eq!(play.informer.stats().cache.index_faults, before + 2);
    play.end().await
}

async fn a_handler_that_panics_or_never_returns_harms_nobody(place: Place) -> Result<()> {
    let play = Play::begin(place).await?;
    let panics = play.informer.on(|_| panic!("a handler that panics"));
    let (open, gate) = mpsc::channel::<()>();
    let stuck = play.informer.subscribe().delivery(Delivery::Every(2)).name("stuck").on(move |_| {
        _ = gate.recv();
    });
    panics.synced(SOON).await?;
    for value in ["2", "3", "4", "5"] {
        play.stage.change("good", value).await?;
        play.until("good", value).await;
    }
    play.stage.settled(&play.informer, MADE_HERE, &[&play.told[0], &play.told[1]]).await;
    eventually("it panicked each time", SOON, async || {
        let stats = panics.stats();
        (stats.panics == stats.handled && stats.handled >= 3).then_some(())
    })
    .await;
    assert!(stuck.stats().handled == 0 && !stuck.is_synced());
    assert_eq!(live(&play.informer).await.watches, 1);
    let ended = play.factory.shutdown_within(Duration::from_secs(3)).await;
    assert_eq!(ended.busy, ["stuck"], "who does not end is named");
    drop(open);
    stuck.remove(SOON).await?;
    Ok(())
}

async fn a_newer_server_is_asked_for_json(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.config_maps(&["one", "two"], "1").await?;
    let ServerVersion { major, minor } = ServerVersion::SCHEMA;
    stage.proxy.on(Match::any()).pretend_version(major, minor + 1);
    let factory = stage.factory(short()).await?;
    let scope = Scope::namespace(&stage.place.namespace);
    let informer = factory.configure::<ConfigMap>(scope).labels("made=here")?.informer();
    let told = Replay::both(&informer);
    factory.start();
    factory.synced(SOON).await?;
    stage.change("one", "2").await?;
    stage.settled(&informer, MADE_HERE, &[&told[0], &told[1]]).await;
    assert_eq!(live(&informer).await.encoding, Some(Encoding::Json));
    let [watch] = &stage.watches("configmaps")[..] else { panic!("one watch") };
    assert!(!watch.accept.contains("protobuf"), "{}", watch.accept);
    factory.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_bookmark_of_another_kind_is_not_believed() -> Result<()> {
    let often = Duration::from_millis(50);
    let place = Place::of(Server::builder().bookmark_interval(often).start().await?).await?;
    let play = Play::begin(place).await?;
    let fault =
        play.stage.proxy.on_all(Match::watch()).edit_events(Events::bookmarks().at_most(5), |event| {
            event
                .set_object(r#"{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"999999999"}}"#);
        });
    fault.wait_events(5).await;
    play.stage.change("good", "2").await?;
    play.until("good", "2").await;
    let health = live(&play.informer).await;
    assert!(health.unreadable >= 1, "{health:#?}");
    play.assert_said(health, "WATCH", &["a bookmark: ", "Pod"]);
    let version = play.informer.snapshot().version(&play.stage.place.namespace).and_then(Version::number);
    assert!(version.is_some_and(|version| version < 999_999_999), "{version:?}");
    assert_eq!(cached(&play.informer).len(), 2);
    play.end().await
}
