//! What a factory says of itself in numbers.

use std::collections::BTreeSet;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_informer::factory::Factory;
use kube_informer::informer::{Cause, Delivery, Scope};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Events, Match, WatchEvent};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::harness::{Place, SOON, on_both};
use crate::stage::{Stage, health, live, short, stale};

on_both! {
    promise_15_a_scrape_tells_what_informers_and_handlers_do,
    what_has_ended_is_not_told_of,
}

/// One scrape.
pub(crate) struct Page(String);

impl Page {
    pub(crate) fn of(registry: &Registry) -> Self {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        let page = Self(text);
        page.assert_distinct();
        page
    }

    /// Scrapers refuse pages that say something twice.
    fn assert_distinct(&self) {
        let mut seen = BTreeSet::new();
        for line in self.0.lines().filter(|line| !line.starts_with('#')) {
            let (series, _) = line.rsplit_once(' ').unwrap();
            assert!(seen.insert(series), "twice: {series}\n{}", self.0);
        }
    }

    /// The value of the one series with this name whose labels have all of these.
    fn value(&self, name: &str, labels: &[&str]) -> Option<f64> {
        let is_meant = |line: &&str| {
            line.split(['{', ' ']).next() == Some(name) && labels.iter().all(|label| line.contains(label))
        };
        let mut lines = self.0.lines().filter(is_meant);
        let line = lines.next()?;
        assert_eq!(lines.next(), None, "{name} {labels:?} is not one");
        Some(line.rsplit_once(' ')?.1.parse().unwrap())
    }

    pub(crate) fn assert(&self, name: &str, labels: &[&str], value: f64) {
        let found = self.value(name, labels);
        assert_eq!(found, Some(value), "{name} {labels:?}:\n{}", self.0);
    }
}

pub(crate) fn registry(factory: &Factory) -> Registry {
    let mut registry = Registry::default();
    factory.register_metrics(&mut registry);
    registry
}

const MAPS: &str = "resource=\"configmaps\"";

async fn promise_15_a_scrape_tells_what_informers_and_handlers_do(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.config_maps(&["a", "b"], "1").await?;
    let factory = stage.factory(short()).await?;
    let registry = registry(&factory);
    let scope = || Scope::namespace(&stage.place.namespace);
    let maps = factory.configure::<ConfigMap>(scope()).labels("made=here")?.informer();
    let told = maps.subscribe().name("teller").on(|_| {});
    // Another of the same name, which waits.
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let stuck = maps.subscribe().name("teller").on(move |_| _ = gate.recv());
    assert_ne!(told.name(), stuck.name());
    let (open_few, few_gate) = std::sync::mpsc::channel::<()>();
    let few = maps.subscribe().name("few").delivery(Delivery::Every(1)).on(move |_| _ = few_gate.recv());
    let panics = maps.subscribe().name("panics").on(|_| panic!("a handler that panics"));
    Page::of(&registry).assert("kube_informer_health", &[MAPS, "state=\"starting\""], 1.0);
    factory.start();
    factory.synced(SOON).await?;
    told.synced(SOON).await?;
    panics.synced(SOON).await?;
    live(&maps).await;
    stage.change("a", "2").await?;
    stage.remove("b").await?;
    eventually("all is told", SOON, async || (told.stats().handled == 4).then_some(())).await;
    eventually("it panicked", SOON, async || (panics.stats().panics == 4).then_some(())).await;
    // That changes were missed is told when the handler goes on.
    drop(open_few);
    eventually("changes are missed", SOON, async || (few.stats().gaps == 1).then_some(())).await;

    let page = Page::of(&registry);
    let scope = format!("scope=\"{}\"", stage.place.namespace);
    page.assert("kube_informer_objects", &[MAPS, &scope, "selector=\"made=here\""], 1.0);
    for (kind, count) in [("added", 2.0), ("updated", 1.0), ("deleted", 1.0)] {
        page.assert("kube_informer_events_total", &[MAPS, &format!("type=\"{kind}\"")], count);
    }
    for (reason, count) in [("first", 1.0), ("expired", 0.0), ("failure", 0.0)] {
        page.assert("kube_informer_relists_total", &[MAPS, &format!("reason=\"{reason}\"")], count);
    }
    for (state, value) in [("live", 1.0), ("stale", 0.0), ("starting", 0.0)] {
        page.assert("kube_informer_health", &[MAPS, &format!("state=\"{state}\"")], value);
    }
    let encoding = if stage.place.is_real() { "protobuf" } else { "json" };
    page.assert("kube_informer_encoding", &[MAPS, &format!("encoding=\"{encoding}\"")], 1.0);
    page.assert("kube_informer_watches_total", &[MAPS], 1.0);
    page.assert("kube_informer_handler_backlog", &[MAPS, "handler=\"teller\""], 0.0);
    page.assert("kube_informer_handler_duration_seconds_count", &[MAPS, "handler=\"teller\""], 4.0);
    let other = format!("handler=\"{}\"", stuck.name());
    assert!(
        page.value("kube_informer_handler_backlog", &[MAPS, &other]).is_some_and(|waiting| waiting >= 1.0)
    );
    // Since when something waits: longer with every look, until there is nothing any more.
    let behind = || Page::of(&registry).value("kube_informer_handler_behind_seconds", &[MAPS, &other]);
    eventually("it has asked for more", SOON, async || told.stats().behind.is_none().then_some(())).await;
    let teller = [MAPS, "handler=\"teller\""];
    Page::of(&registry).assert("kube_informer_handler_behind_seconds", &teller, 0.0);
    let since = behind();
    assert!(since > Some(0.0), "{since:?}");
    assert!(stuck.stats().behind.map(|behind| behind.as_secs_f64()) >= since, "{:?}", stuck.stats());
    for name in
        ["queue_length", "queue_bytes", "unreadable_total", "index_faults_total", "stale_events_total"]
    {
        page.assert(&format!("kube_informer_{name}"), &[MAPS], 0.0);
    }
    for (name, handler, value) in [
        ("panics", "panics", 4.0),
        ("panics", "teller", 0.0),
        ("gaps", "few", 1.0),
        ("gaps", "teller", 0.0),
        ("missed", "teller", 0.0),
    ] {
        let handler = format!("handler=\"{handler}\"");
        page.assert(&format!("kube_informer_handler_{name}_total"), &[MAPS, &handler], value);
    }
    let missed = page.value("kube_informer_handler_missed_total", &[MAPS, "handler=\"few\""]);
    assert_eq!(missed, Some(few.stats().missed as f64));
    assert!(missed > Some(0.0));
    let kept = page.value("kube_informer_kept_bytes", &[MAPS]);
    assert!(kept > Some(0.0) && kept <= page.value("kube_informer_plain_bytes", &[MAPS]), "{kept:?}");
    assert!(page.value("kube_informer_received_bytes_total", &[MAPS]).is_some_and(|bytes| bytes > 100.0));
    assert!(page.value("kube_informer_last_version", &[MAPS]).is_some_and(|version| version > 1.0));

    let last = |what: &str| {
        Page::of(&registry).value(&format!("kube_informer_last_{what}_timestamp_seconds"), &[MAPS])
    };
    let changed = last("event");
    assert_eq!(changed, maps.health().last_event.map(|at| at.as_duration().as_secs_f64()));
    assert!(changed > Some(0.0));

    // What the server says when nothing happens, in place of a change.
    let before = page.value("kube_informer_events_total", &[MAPS, "type=\"bookmark\""]);
    let once = || Events::modified().named("a").at_most(1);
    stage.proxy.on_all(Match::watch()).edit_events(once(), |event| event.set_kind("BOOKMARK"));
    stage.change("a", "3").await?;
    let bookmarks = || Page::of(&registry).value("kube_informer_events_total", &[MAPS, "type=\"bookmark\""]);
    eventually("one has come", SOON, async || (bookmarks() > before).then_some(())).await;
    eventually("when it came is told", SOON, async || (last("bookmark") > changed).then_some(())).await;
    assert_eq!(last("event"), changed);

    // What goes wrong is told as well.
    stage.proxy.heal();
    stage.proxy.cut_open(Match::watch()).await;
    health(&maps, "watched again", |health| health.watches == 2).await;
    Page::of(&registry).assert("kube_informer_watches_total", &[MAPS], 2.0);
    let broken_off = |event: &mut WatchEvent| {
        let object = event.object().clone();
        event.set_object(object.slice(..object.len() - 1));
    };
    stage.proxy.on_all(Match::watch()).edit_events(once(), broken_off);
    stage.change("a", "4").await?;
    health(&maps, "listed", |health| health.watches == 3).await;
    let page = Page::of(&registry);
    page.assert("kube_informer_unreadable_total", &[MAPS], 1.0);
    page.assert("kube_informer_relists_total", &[MAPS, "reason=\"unreadable\""], 1.0);
    page.assert("kube_informer_watches_total", &[MAPS], 3.0);
    stage.proxy.heal();
    let fault = stage.proxy.on(Match::any()).answer(Answer::internal_error());
    stage.proxy.cut_open(Match::watch()).await;
    stale(&maps, Cause::Server).await;
    Page::of(&registry).assert("kube_informer_health", &[MAPS, "state=\"stale\""], 1.0);
    fault.remove();
    live(&maps).await;
    let failures = Page::of(&registry).value("kube_informer_relists_total", &[MAPS, "reason=\"failure\""]);
    assert!(failures.is_some_and(|failures| failures >= 1.0), "{failures:?}");
    assert!(behind() > since);
    drop(open);
    eventually("it has caught up", SOON, async || stuck.stats().behind.is_none().then_some(())).await;
    assert_eq!(behind(), Some(0.0));
    factory.shutdown().await;
    Ok(())
}

async fn what_has_ended_is_not_told_of(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let factory = stage.factory(short()).await?;
    let registry = registry(&factory);
    let scope = || Scope::namespace(&stage.place.namespace);
    let maps = factory.informer::<ConfigMap>(scope());
    let secrets = factory.informer::<Secret>(scope());
    let registration = maps.subscribe().name("short-lived").on(|_| {});
    let events = maps.subscribe().name("stream").events();
    factory.start();
    factory.synced(SOON).await?;
    let has = |part: &str| Page::of(&registry).0.contains(part);
    assert!(has("handler=\"short-lived\"") && has("handler=\"stream\"") && has("resource=\"secrets\""));
    registration.remove(SOON).await?;
    drop(events);
    assert!(!has("handler="));
    factory.stop(&secrets, SOON).await;
    assert!(!has("resource=\"secrets\"") && has(MAPS));
    factory.shutdown().await;
    Page::of(&registry).assert("kube_informer_health", &[MAPS, "state=\"stopped\""], 1.0);
    drop((maps, secrets, factory));
    assert!(!has("informer="), "a registry keeps no factory");
    Ok(())
}
