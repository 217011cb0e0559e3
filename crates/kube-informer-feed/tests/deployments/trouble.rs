//! What goes wrong on the way, sinks that do, and very much at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use anyhow::Result;
use futures_util::{StreamExt, TryStreamExt, stream};
use kube_informer::controller::Metrics;
use kube_informer::informer::Scope;
use kube_informer_feed::change::{Reason, What};
use kube_informer_feed::deployments::{DeploymentController, Reported};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match};
use prometheus_client::registry::Registry;

use crate::harness::{Place, Running, SOON, on_both, web};

on_both! {
    what_is_deleted_during_a_disconnect_is_found_missing,
    one_that_is_created_again_during_a_disconnect_is_a_deletion_and_an_addition,
    a_burst_is_told_as_what_it_comes_to,
    what_is_as_it_was_is_not_told,
    a_sink_that_panics_stops_nobody,
    what_was_read_is_told_before_the_end,
    a_sink_that_is_stuck_is_waited_for_and_not_for_ever,
    a_controller_that_is_dropped_leaves_nobody_behind,
    a_thousand_at_once_are_all_told,
}

/// Those who come wait until it is opened.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
}

impl Gate {
    fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        tokio::task::block_in_place(|| {
            let open = self.open.lock().unwrap();
            drop(self.opened.wait_while(open, |open| !*open).unwrap());
        });
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    async fn is_reached(&self) {
        eventually("somebody waits", SOON, async || (self.waiting.load(Ordering::SeqCst) > 0).then_some(()))
            .await;
    }
}

/// The server is away, something happens, and what happened is not told by the server when it is back.
async fn disconnected(place: &Place, meanwhile: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
    place.proxy.go_down().await;
    meanwhile().await?;
    let resumed = Match::watch().send_initial_events(false);
    let gone = place.proxy.on(resumed).once().answer(Answer::gone());
    place.proxy.accept_connections().await;
    gone.wait_applied(1).await;
    Ok(())
}

async fn what_is_deleted_during_a_disconnect_is_found_missing(place: Place) -> Result<()> {
    place.create("stays", web("1")).await?;
    place.create("goes", web("1")).await?;
    let mut controller = Running::start(&place).await?;
    place.scale("goes", 2).await?;
    assert_eq!(controller.line().await, "replicas 1→2");
    disconnected(&place, async || {
        place.delete("goes").await?;
        place.scale("stays", 3).await?;
        place.scale("stays", 4).await?;
        place.create("comes", web("1")).await?;
        Ok(())
    })
    .await?;
    let mut told = BTreeMap::new();
    for _ in 0..3 {
        let change = controller.next().await.change;
        told.insert(change.obj.name, (change.what, change.reason, change.summary));
    }
    let line = |what, reason, text: &str| (what, reason, text.to_owned());
    let missing = "deleted, found missing; replicas 2; image web shop/web:1";
    assert_eq!(told["goes"], line(What::Deleted, Some(Reason::FoundMissing), missing));
    assert_eq!(told["stays"], line(What::Modified, None, "replicas 1→4"));
    assert_eq!(told["comes"], line(What::Added, None, "created; replicas 1; image web shop/web:1"));
    let (rest, ended) = controller.end().await?;
    assert!(!rest.iter().any(Reported::is_tracked), "{rest:?}");
    assert_eq!((ended.left, ended.panics), (0, 0));
    Ok(())
}

async fn one_that_is_created_again_during_a_disconnect_is_a_deletion_and_an_addition(
    place: Place,
) -> Result<()> {
    place.create("web", web("1")).await?;
    let mut controller = Running::start(&place).await?;
    disconnected(&place, async || {
        place.delete("web").await?;
        place.create("web", web("2")).await?;
        Ok(())
    })
    .await?;
    assert_eq!(controller.line().await, "deleted, found missing; replicas 1; image web shop/web:1");
    assert_eq!(controller.line().await, "created; replicas 1; image web shop/web:2");
    controller.end().await?;
    Ok(())
}

async fn a_burst_is_told_as_what_it_comes_to(place: Place) -> Result<()> {
    place.create("web", web("1")).await?;
    place.create("other", web("1")).await?;
    let gate = Arc::new(Gate::default());
    let wait = Arc::clone(&gate);
    let mut controller = Running::start_with(&place, move |reported| {
        if reported.change.summary == "replicas 1→2" {
            wait.pass();
        }
    })
    .await?;
    place.scale("web", 2).await?;
    gate.is_reached().await;
    for replicas in 3..=20 {
        place.scale("web", replicas).await?;
    }
    place.containers("web", web("2")).await?;
    // Somebody else's change is told meanwhile; then everything before was read.
    place.scale("other", 3).await?;
    let other = controller.next().await.change;
    assert_eq!((other.obj.name.as_str(), other.summary.as_str()), ("other", "replicas 1→3"));
    gate.open();
    assert_eq!(controller.line().await, "replicas 1→2");
    let net = controller.next().await.change;
    assert_eq!(net.summary, "replicas 2→20; image web 1→2");
    assert!(net.coalesced > 1, "{}", net.coalesced);
    let (rest, ended) = controller.end().await?;
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!(ended.reported, 3);
    Ok(())
}

/// There and back again while nobody could be told: only the version is another then.
async fn what_is_as_it_was_is_not_told(place: Place) -> Result<()> {
    place.create("web", web("1")).await?;
    let factory = place.factory().await?;
    let gate = Arc::new(Gate::default());
    let (wait, (tell, mut told)) = (Arc::clone(&gate), tokio::sync::mpsc::unbounded_channel());
    let (found, mut same) = tokio::sync::mpsc::unbounded_channel();
    let controller = DeploymentController::new(&factory, Scope::namespace(&place.namespace))
        .workers(1)
        .same(move |object| found.send(object.version().to_string()).unwrap());
    let informer = controller.informer().clone();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let sink = move |reported: Reported| {
        if reported.change.summary == "replicas 1→2" {
            wait.pass();
        }
        tell.send(reported.change.summary).unwrap();
    };
    let run = tokio::spawn(controller.run(sink, async move {
        let _ = stopped.await;
    }));
    factory.synced(SOON).await?;
    place.scale("web", 2).await?;
    gate.is_reached().await;
    place.scale("web", 3).await?;
    let last = place.scale("web", 2).await?;
    let version = last["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    eventually("it is read", SOON, async || {
        let object = informer.get(&place.namespace, "web")?;
        (object.version().to_string() == version).then_some(())
    })
    .await;
    gate.open();
    let soon = |wait| tokio::time::timeout(SOON, wait);
    assert_eq!(soon(same.recv()).await?, Some(version), "it is known");
    place.scale("web", 5).await?;
    drop(stop);
    let ended = tokio::time::timeout(SOON, run).await??;
    let mut lines = Vec::new();
    while let Some(line) = told.recv().await {
        lines.push(line);
    }
    assert_eq!(lines.first().map(String::as_str), Some("replicas 1→2"));
    assert!(!lines.iter().any(|line| line.contains("no visible change")), "{lines:?}");
    assert_eq!((ended.reported, ended.left), (lines.len() as u64, 0));
    factory.shutdown().await;
    Ok(())
}

async fn a_sink_that_panics_stops_nobody(place: Place) -> Result<()> {
    let mut controller = Running::start_with(&place, |reported| {
        assert!(!reported.change.obj.name.starts_with("bad"), "this is the test's panic");
    })
    .await?;
    // More than there are workers.
    for number in 0..5 {
        place.create(&format!("bad-{number}"), web("1")).await?;
    }
    place.create("good", web("1")).await?;
    assert_eq!(controller.next().await.change.obj.name, "good");
    // What could not be told counts as told: the next change leads on from there.
    place.scale("good", 2).await?;
    assert_eq!(controller.line().await, "replicas 1→2");
    let (_, ended) = controller.end().await?;
    assert_eq!((ended.reported, ended.panics, ended.left), (2, 5, 0));
    Ok(())
}

async fn what_was_read_is_told_before_the_end(place: Place) -> Result<()> {
    let factory = place.factory().await?;
    let gate = Arc::new(Gate::default());
    let wait = Arc::clone(&gate);
    let (metrics, mut registry) = (Metrics::default(), Registry::default());
    metrics.register(&mut registry);
    let controller =
        DeploymentController::new(&factory, Scope::namespace(&place.namespace)).workers(2).metrics(&metrics);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let run = tokio::spawn(controller.run(move |_| wait.pass(), async move {
        let _ = stopped.await;
    }));
    factory.synced(SOON).await?;
    for number in 0..22 {
        place.create(&format!("web-{number}"), web("1")).await?;
    }
    // Two are held, and all others were read.
    eventually("all others wait", SOON, async || {
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        page.contains("workqueue_depth{name=\"deployments\"} 20\n").then_some(())
    })
    .await;
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry)?;
    for line in [
        "controller_runtime_max_concurrent_reconciles{controller=\"deployments\"} 2",
        "controller_runtime_active_workers{controller=\"deployments\"} 2",
        "controller_runtime_reconcile_total{controller=\"deployments\",result=\"success\"} 0",
        "controller_runtime_reconcile_errors_total{controller=\"deployments\"} 0",
        "workqueue_adds_total{name=\"deployments\"} 22",
    ] {
        assert!(page.lines().any(|each| each == line), "{line} in\n{page}");
    }
    drop(stop);
    gate.open();
    let ended = tokio::time::timeout(SOON, run).await??;
    assert_eq!((ended.reported, ended.left), (22, 0));
    factory.shutdown().await;
    Ok(())
}

async fn a_sink_that_is_stuck_is_waited_for_and_not_for_ever(place: Place) -> Result<()> {
    let factory = place.factory().await?;
    let gate = Arc::new(Gate::default());
    let wait = Arc::clone(&gate);
    let controller = DeploymentController::new(&factory, Scope::namespace(&place.namespace))
        .workers(1)
        .grace(Duration::from_millis(50));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let run = tokio::spawn(controller.run(move |_| wait.pass(), async move {
        let _ = stopped.await;
    }));
    factory.synced(SOON).await?;
    place.create("first", web("1")).await?;
    gate.is_reached().await;
    drop(stop);
    let ended = tokio::time::timeout(SOON, run).await??;
    assert_eq!((ended.reported, ended.panics, ended.left), (0, 0, 1));
    gate.open();
    factory.shutdown().await;
    Ok(())
}

async fn a_controller_that_is_dropped_leaves_nobody_behind(place: Place) -> Result<()> {
    let factory = place.factory().await?;
    let controller = DeploymentController::new(&factory, Scope::namespace(&place.namespace));
    let informer = controller.informer().clone();
    let told = Arc::new(AtomicUsize::new(0));
    let tell = Arc::clone(&told);
    let run = tokio::spawn(controller.run(
        move |_| {
            tell.fetch_add(1, Ordering::SeqCst);
        },
        std::future::pending(),
    ));
    factory.synced(SOON).await?;
    place.create("web", web("1")).await?;
    eventually("it is told", SOON, async || (told.load(Ordering::SeqCst) == 1).then_some(())).await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    // Whoever held the sink, or reads, is gone.
    eventually("nothing holds the sink", SOON, async || (Arc::strong_count(&told) == 1).then_some(())).await;
    place.scale("web", 2).await?;
    let scaled = async || {
        informer.get(&place.namespace, "web")?.pointer::<i64>("/spec/replicas").ok()?.filter(|n| *n == 2)
    };
    eventually("the informer goes on", SOON, scaled).await;
    assert_eq!(told.load(Ordering::SeqCst), 1);
    factory.shutdown().await;
    Ok(())
}

async fn a_thousand_at_once_are_all_told(place: Place) -> Result<()> {
    const MANY: usize = 1_000;
    let mut controller = Running::start(&place).await?;
    let name = |number: usize| format!("web-{number:04}");
    stream::iter(0..MANY)
        .map(|number| {
            let (place, name) = (&place, name(number));
            async move {
                place.create(&name, web("1")).await?;
                place.scale(&name, 2).await?;
                if name.ends_with('7') { place.delete(&name).await } else { Ok(()) }
            }
        })
        .buffer_unordered(16)
        .try_collect::<()>()
        .await?;
    // A last one, which is read after all others.
    place.create("last", web("1")).await?;
    let mut known = BTreeMap::<String, i64>::new();
    let wanted = |known: &BTreeMap<String, i64>| {
        known.len() == MANY - MANY / 10 + 1
            && known.values().sum::<i64>() == 2 * (MANY - MANY / 10) as i64 + 1
    };
    while !wanted(&known) {
        let reported = controller.next().await;
        let replicas = |object: &Option<_>| {
            let object: Option<&kube_informer::object::Object<_>> = object.as_ref();
            object.map(|object| object.pointer::<i64>("/spec/replicas").unwrap().unwrap())
        };
        let name = reported.change.obj.name.clone();
        // What is told leads on from what was told.
        let old = replicas(&reported.old).filter(|_| reported.change.what == What::Modified);
        match (reported.change.what, replicas(&reported.new)) {
            (What::Deleted, _) => assert!(known.remove(&name).is_some(), "{name}"),
            (_, Some(new)) => assert_eq!(known.insert(name, new), old),
            (what, None) => panic!("{what:?} {name}"),
        }
    }
    let (_, ended) = controller.end().await?;
    assert_eq!((ended.left, ended.panics), (0, 0));
    Ok(())
}
