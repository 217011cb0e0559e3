//! What a factory says of itself in numbers.

use std::collections::BTreeSet;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_informer::factory::Factory;
use kube_informer::informer::{Cause, Scope};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::harness::{Place, SOON, on_both};
use crate::stage::{Stage, live, short, stale};

on_both! {
    a_scrape_tells_what_informers_and_handlers_do,
    what_has_ended_is_not_told_of,
}

/// One scrape.
struct Page(String);

impl Page {
    fn of(registry: &Registry) -> Self {
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

    fn assert(&self, name: &str, labels: &[&str], value: f64) {
        let found = self.value(name, labels);
        assert_eq!(found, Some(value), "{name} {labels:?}:\n{}", self.0);
    }
}

fn registry(factory: &Factory) -> Registry {
    let mut registry = Registry::default();
    factory.register_metrics(&mut registry);
    registry
}

const MAPS: &str = "resource=\"configmaps\"";

async fn a_scrape_tells_what_informers_and_handlers_do(place: Place) -> Result<()> {
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
    Page::of(&registry).assert("kube_informer_health", &[MAPS, "state=\"starting\""], 1.0);
    factory.start();
    factory.synced(SOON).await?;
    told.synced(SOON).await?;
    live(&maps).await;
    stage.change("a", "2").await?;
    stage.remove("b").await?;
    eventually("all is told", SOON, async || (told.stats().handled == 4).then_some(())).await;

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
    assert!(page.value("kube_informer_received_bytes_total", &[MAPS]).is_some_and(|bytes| bytes > 100.0));
    assert!(page.value("kube_informer_last_version", &[MAPS]).is_some_and(|version| version > 1.0));

    // What goes wrong is told as well.
    let fault = stage.proxy.on(Match::any()).answer(Answer::internal_error());
    stage.proxy.cut_open(Match::watch()).await;
    stale(&maps, Cause::Server).await;
    Page::of(&registry).assert("kube_informer_health", &[MAPS, "state=\"stale\""], 1.0);
    fault.remove();
    live(&maps).await;
    let failures = Page::of(&registry).value("kube_informer_relists_total", &[MAPS, "reason=\"failure\""]);
    assert!(failures.is_some_and(|failures| failures >= 1.0), "{failures:?}");
    drop(open);
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
