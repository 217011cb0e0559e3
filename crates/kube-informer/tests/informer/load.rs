//! Much, and nothing at all.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Event as CoreEvent;
use kube_informer::factory::LONGEST_GATHER;
use kube_informer::informer::{Delivery, Scope};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::load::{self, Pace, Steady};
use kube_informer_testbed::proxy::{End, Request};

use crate::harness::{Place, SOON, on_both};
use crate::metrics::{Page, registry};
use crate::replay::Replay;
use crate::stage::{Stage, live, ready, short};

on_both! {
    promise_10_handlers_that_are_stuck_hold_up_nobody,
    changes_that_wait_for_others_are_all_told_over_one_watch,
    promise_05_an_idle_watch_is_left_alone,
}

/// How many objects are updated, and how often before it is looked at what waits: more often than anything is kept as it came.
const OBJECTS: usize = 20;
const UPDATES: u64 = 1_200;

/// Changes that may wait as they came, before those of one object become one.
const UNFOLDED: usize = 1_024;

async fn promise_10_handlers_that_are_stuck_hold_up_nobody(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let (endpoint, namespace) = (&stage.place.endpoint, &stage.place.namespace);
    load::install_custom_resources(endpoint).await?;
    load::write_all(endpoint, namespace, load::custom_resources(1, OBJECTS), 8).await?;
    let factory = stage.factory(short()).await?;
    let informer = factory.resource("gadgets.load.kube-informer.dev", Scope::namespace(namespace)).await?;
    // The first event is never done with.
    let (entered, entries) = mpsc::channel();
    let (open, [gate, other_gate]) = gates();
    let stuck = |gate: Gate| {
        let entered = entered.clone();
        move |_| {
            _ = entered.send(());
            _ = gate.recv();
        }
    };
    let latest = informer.on(stuck(gate));
    let every = informer.subscribe().delivery(Delivery::Every(100)).on(stuck(other_gate));
    let unread = informer.events();
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    for _ in 0..2 {
        entries.recv_timeout(SOON)?;
    }

    let terminated = terminated_watchers(&stage).await?;
    let pace = Pace { seed: 1, per_second: 1_000.0, parallelism: 16 };
    let steady = Steady::start(endpoint, namespace, load::custom_resources(1, OBJECTS), pace);
    let mut kept = Vec::new();
    for updates in [UPDATES, 5 * UPDATES] {
        steady.wait(updates).await;
        eventually("all have come", SOON, async || (informer.stats().updated >= updates).then_some(())).await;
        // Not more than that and one entry per object, however often it has changed.
        let waiting = latest.stats().backlog;
        assert!((OBJECTS - 1..=UNFOLDED + OBJECTS).contains(&waiting), "{waiting} after {updates}");
        kept.push(informer.stats().cache.kept_bytes);
    }
    let updated = steady.stop().await;
    assert_eq!(updated.failed, 0, "{:?}", updated.failures);
    assert!(updated.written >= 5 * UPDATES);
    println!(
        "{} updates at {:.0}/s, of {:.0}/s that were asked for",
        updated.written,
        updated.written as f64 / updated.elapsed.as_secs_f64(),
        pace.per_second
    );
    eventually("each has come", SOON, async || (informer.stats().updated >= updated.written).then_some(()))
        .await;
    // Each was written once, and is told once; nothing else writes these objects.
    assert_eq!(informer.stats().updated, updated.written);
    // Updates of the same objects: what is kept of them stays about the same.
    assert!(kept[1] <= 2 * kept[0], "{kept:?}");

    stage.settled(&informer, "", &[&told[0], &told[1]]).await;
    assert!(told[1].told().updated >= 5 * UPDATES || told[1].told().gaps > 0);
    assert_eq!((latest.stats().handled, every.stats().handled, unread.stats().handled), (0, 0, 0));
    // The server saw a client that takes what it sends.
    let health = live(&informer).await;
    assert_eq!((health.watches, health.relists.first), (1, 1));
    assert_eq!(stage.watches("gadgets").len(), 1);
    assert!(stage.watches("gadgets")[0].is_open());
    assert_eq!((informer.stats().queue_length, informer.stats().queue_bytes), (0, 0));
    assert_eq!(
        terminated_watchers(&stage).await?,
        terminated,
        "the server has ended a watch that fell behind"
    );

    // Whoever is freed goes on with what there is now.
    drop(open);
    eventually("the first has caught up", SOON, async || (latest.stats().backlog == 0).then_some(())).await;
    assert!(latest.stats().handled <= 2 * OBJECTS as u64 + 1, "{:?}", latest.stats());
    eventually("the second has caught up", SOON, async || (every.stats().backlog == 0).then_some(())).await;
    assert_eq!(every.stats().gaps, 1);
    assert!(every.stats().missed > 100);
    // Of all that it missed, nothing was left but their number.
    assert!(every.stats().handled <= 2 * OBJECTS as u64 + 2, "{:?}", every.stats());
    drop(unread);
    factory.shutdown().await;
    Ok(())
}

/// They wait as long as they can: steady changes, and after a silence as many at once as the server takes.
async fn changes_that_wait_for_others_are_all_told_over_one_watch(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let (endpoint, namespace) = (&stage.place.endpoint, &stage.place.namespace);
    load::install_custom_resources(endpoint).await?;
    load::write_all(endpoint, namespace, load::custom_resources(1, OBJECTS), 8).await?;
    let factory = stage.factory(short()).await?;
    let registry = registry(&factory);
    let gadgets = factory.resolve("gadgets.load.kube-informer.dev").await?;
    let scope = Scope::namespace(namespace);
    let informer = factory.configure_resource(gadgets.clone(), scope.clone()).gather(SOON).informer();
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    let terminated = terminated_watchers(&stage).await?;
    let update = async |per_second| {
        let pace = Pace { seed: 1, per_second, parallelism: 16 };
        let steady = Steady::start(endpoint, namespace, load::custom_resources(1, OBJECTS), pace);
        steady.wait(UPDATES).await;
        let updated = steady.stop().await;
        assert_eq!(updated.failed, 0, "{:?}", updated.failures);
        stage.settled(&informer, "", &[&told[0], &told[1]]).await;
    };
    assert_eq!(informer.stats().gather, LONGEST_GATHER);
    update(200.0).await;
    let gathered = informer.stats().gathered;
    assert!(gathered > 0, "no change has waited");
    // Ten come while one waits as long as it can; from a server that is busy, fewer.
    assert!(gathered < UPDATES * 3 / 4, "{gathered} reads of {UPDATES} changes");
    update(1e6).await;
    let gathered = informer.stats().gathered;
    let page = Page::of(&registry);
    page.assert("kube_informer_gathered_total", &["resource=\"gadgets."], gathered as f64);
    page.assert("kube_informer_gather_seconds", &["resource=\"gadgets."], LONGEST_GATHER.as_secs_f64());
    // Who asks for the same, and does not want to wait, does not, and neither does anybody else.
    let same = factory.configure_resource(gadgets, scope).informer();
    assert_eq!((informer.stats().gather, same.stats().gather), (Duration::ZERO, Duration::ZERO));
    let gathered = informer.stats().gathered;
    update(1_000.0).await;
    assert_eq!(informer.stats().gathered, gathered, "nothing waits any more");
    let health = live(&informer).await;
    assert_eq!((health.watches, health.relists.first), (1, 1));
    assert_eq!(
        terminated_watchers(&stage).await?,
        terminated,
        "the server has ended a watch that fell behind"
    );
    factory.shutdown().await;
    Ok(())
}

/// Watches of these objects that the real server has ended because their clients did not read; the embedded one never does.
async fn terminated_watchers(stage: &Stage) -> Result<Option<f64>> {
    if !stage.place.is_real() {
        return Ok(None);
    }
    let page = stage.place.endpoint.get("/metrics").await?.success()?.text().into_owned();
    assert!(page.contains("apiserver_watch_cache_"), "{page}");
    let is_meant = |line: &&str| {
        line.starts_with("apiserver_terminated_watchers_total{") && line.contains("\"gadgets\"")
    };
    // A counter without a label's value is not there.
    let count = page.lines().find(is_meant).and_then(|line| line.rsplit_once(' '));
    Ok(Some(count.map_or(Ok(0.0), |(_, count)| count.parse())?))
}

/// What holds someone up until the other end is dropped.
type Gate = mpsc::Receiver<()>;

fn gates() -> ([mpsc::Sender<()>; 2], [Gate; 2]) {
    let ((first, first_gate), (second, second_gate)) = (mpsc::channel(), mpsc::channel());
    ([first, second], [first_gate, second_gate])
}

/// The server ends watches after a second or two, and nothing happens.
async fn promise_05_an_idle_watch_is_left_alone(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let factory =
        stage.factory(short().watch(Duration::from_secs(1)).overdue(Duration::from_secs(30))).await?;
    let informer = factory.informer::<CoreEvent>(Scope::namespace(&stage.place.namespace));
    factory.start();
    factory.synced(SOON).await?;
    let is_over = |request: &Request| request.is_watch() && !request.is_open();
    stage.proxy.requests().wait_for_count(3, is_over).await?;
    stage
        .proxy
        .requests()
        .wait_for(|request| request.is_watch() && request.id > 3 && request.is_open())
        .await?;
    let watches = stage.watches("events");
    for watch in &watches {
        assert!(matches!(watch.end, None | Some(End::Complete)), "the server ended it: {watch}");
    }
    let health = live(&informer).await;
    assert_eq!(health.relists.first, 1);
    let relists: u64 = health.relists.by_reason().iter().map(|(_, count)| count).sum();
    assert_eq!(relists, 1, "{health:#?}");
    factory.shutdown().await;
    Ok(())
}
