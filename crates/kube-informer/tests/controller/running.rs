use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use futures_util::stream;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_client::api::{Patch, PatchParams};
use kube_client::{Api, Client};
use kube_informer::controller::{
    Action, BoxError, Context, Controller, Metrics, Reconciler, Request, RunError, terminal,
};
use kube_informer::factory::Timings;
use kube_informer::informer::Written;
use kube_informer::leader::{LeaderElection, Leadership};
use kube_informer::runner::Runner;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::Match;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::sync::{mpsc, oneshot, watch};

use crate::harness::{Place, SOON, on_both};
use crate::play::{LONG, Play, Running, Seen, watching};
use crate::stage::short;

on_both! {
    promise_14_a_reconcile_sees_what_the_one_before_it_wrote,
    promise_14_a_key_waits_for_a_slow_watch_and_others_do_not,
    promise_17_a_key_is_never_reconciled_twice_at_once,
    promise_18_reconciles_that_misbehave_hold_up_no_other,
    promise_18_a_shutdown_finishes_what_is_busy,
    several_controllers_run_under_one_roof,
    a_leader_works_and_one_on_standby_is_warm,
    promise_19_reconciles_of_a_leader_that_is_cut_off_end_before_those_of_another_one_begin,
}

/// Counts up to this in the config map that it is called for, in one write per reconcile.
const STEPS: u32 = 30;

async fn promise_14_a_reconcile_sees_what_the_one_before_it_wrote(place: Place) -> Result<()> {
    let play = Play::at(place, Timings::default()).await?;
    play.make("counter").await?;
    let (told, mut hear) = mpsc::unbounded_channel();
    let count = move |context: Context<ConfigMap>| {
        let told = told.clone();
        async move {
            let Some(object) = context.object() else { return Ok(Action::done()) };
            let value: u32 = object.pointer::<String>("/data/key")?.unwrap_or_default().parse()?;
            told.send(value)?;
            if value == STEPS {
                return Ok(Action::done());
            }
            let api: Api<ConfigMap> = Api::namespaced(context.client(), object.namespace());
            let patch = Patch::Merge(json!({ "data": { "key": (value + 1).to_string() } }));
            let written = api.patch(object.name(), &PatchParams::default(), &patch).await?;
            context.wrote(&Written::of(&written));
            Ok::<_, BoxError>(Action::requeue_after(Duration::from_nanos(1)))
        }
    };
    // Events come late: without waiting, an old value would be seen.
    play.stage.proxy.on(Match::watch()).throttle(20_000);
    let running = Running::start(play.controller().write_deadline(LONG).workers(4), count);
    let mut last = None;
    while last != Some(STEPS) {
        let value = tokio::time::timeout(SOON, hear.recv()).await?.unwrap();
        // The event of a write may come after the reconcile that it was waited for: then nothing is new.
        assert!(last.is_none_or(|last| value == last || value == last + 1), "{value} after {last:?}");
        assert!(
            last.is_none_or(|last| value > last || value == STEPS),
            "{value} is seen again: it was written over"
        );
        last = Some(value);
    }
    running.stop().await?;
    play.factory.shutdown().await;
    Ok(())
}

async fn promise_14_a_key_waits_for_a_slow_watch_and_others_do_not(place: Place) -> Result<()> {
    let play = Play::at(place, Timings::default()).await?;
    play.make("writes").await?;
    let (seen, wrote) = (Seen::default(), Arc::new(AtomicBool::new(false)));
    let (notes, writes) = (seen.clone(), Arc::clone(&wrote));
    let reconcile = move |context: Context<ConfigMap>| {
        notes.note(&context);
        let writes = Arc::clone(&writes);
        async move {
            if context.request().name() == "writes" && !writes.swap(true, Ordering::SeqCst) {
                let api: Api<ConfigMap> = Api::namespaced(context.client(), context.request().namespace());
                let patch = Patch::Merge(json!({ "data": { "key": "written" } }));
                let written = api.patch("writes", &PatchParams::default(), &patch).await?;
                context.wrote(&Written::of(&written));
                return Ok(Action::requeue_after(Duration::from_nanos(1)));
            }
            Ok::<_, BoxError>(Action::done())
        }
    };
    let (elsewhere, keys) = mpsc::unbounded_channel();
    let keys = stream::unfold(keys, async |mut keys: mpsc::UnboundedReceiver<Request>| {
        Some((keys.recv().await?, keys))
    });
    // Everything is listed, and then the watch says nothing for a while.
    let config_maps = play.config_maps();
    play.factory.start();
    config_maps.synced(SOON).await?;
    let watch = Match::watch().path_contains("/configmaps");
    let stalled = play.stage.proxy.on_open(watch).stall();
    stalled.wait_applied(1).await;
    let running = Running::start(play.controller().external(keys).write_deadline(LONG), reconcile);
    seen.value("writes", Some("0")).await;
    eventually("it wrote", SOON, async || wrote.load(Ordering::SeqCst).then_some(())).await;
    // The only worker is free for others, a hundred times, and that one key still waits.
    let namespace = play.stage.place.namespace.clone();
    for _ in 0..100 {
        let before = seen.count("other");
        elsewhere.send(Request::new(&namespace, "other"))?;
        elsewhere.send(Request::new(&namespace, "writes"))?;
        seen.more("other", before).await;
    }
    assert_eq!(seen.count("writes"), 1);
    stalled.release();
    seen.value("writes", Some("written")).await;
    running.stop().await?;
    play.factory.shutdown().await;
    Ok(())
}

async fn promise_17_a_key_is_never_reconciled_twice_at_once(place: Place) -> Result<()> {
    let play = Play::at(place, short()).await?;
    for number in 0..3 {
        play.make(&format!("key-{number}")).await?;
    }
    let at_once: Arc<[AtomicUsize; 3]> = Arc::default();
    let (seen, together) = (Seen::default(), Arc::new(AtomicBool::new(false)));
    let (notes, busy, overlap) = (seen.clone(), Arc::clone(&at_once), Arc::clone(&together));
    let reconcile = move |context: Context<ConfigMap>| {
        notes.note(&context);
        let (busy, overlap) = (Arc::clone(&busy), Arc::clone(&overlap));
        async move {
            let number: usize = context.request().name().trim_start_matches("key-").parse()?;
            if busy[number].fetch_add(1, Ordering::SeqCst) > 0 {
                overlap.store(true, Ordering::SeqCst);
            }
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            busy[number].fetch_sub(1, Ordering::SeqCst);
            Ok::<_, BoxError>(Action::done())
        }
    };
    let running = Running::start(play.controller().workers(8), reconcile);
    for value in 1..=20 {
        for number in 0..3 {
            play.change(&format!("key-{number}"), &value.to_string()).await?;
        }
    }
    for number in 0..3 {
        seen.value(&format!("key-{number}"), Some("20")).await;
    }
    running.stop().await?;
    assert!(!together.load(Ordering::SeqCst));
    play.factory.shutdown().await;
    Ok(())
}

async fn promise_18_reconciles_that_misbehave_hold_up_no_other(place: Place) -> Result<()> {
    let play = Play::at(place, short()).await?;
    for name in ["fails", "panics", "hangs", "terminal", "again", "later", "fine"] {
        play.make(name).await?;
    }
    let (seen, metrics) = (Seen::default(), Metrics::default());
    let notes = seen.clone();
    let reconcile = move |context: Context<ConfigMap>| {
        notes.note(&context);
        async move {
            match context.request().name() {
                "fails" => Err("it always fails".into()),
                "panics" => panic!("it always panics"),
                "hangs" => std::future::pending().await,
                "terminal" => Err(BoxError::from(terminal("it makes no sense"))),
                "again" => Ok(Action::requeue_after(Duration::ZERO)),
                "later" => Ok(Action::requeue_after(Duration::from_millis(20))),
                _ => Ok(Action::done()),
            }
        }
    };
    let controller = play.controller().name("odd").workers(2).metrics(&metrics);
    let running = Running::start(controller.timeout(Duration::from_millis(200)), reconcile);
    for name in ["fails", "panics", "hangs", "again", "later"] {
        seen.more(name, 2).await;
    }
    for value in ["1", "2", "3"] {
        play.change("fine", value).await?;
        seen.value("fine", Some(value)).await;
    }
    assert_eq!(seen.count("terminal"), 1);
    play.change("terminal", "1").await?;
    seen.value("terminal", Some("1")).await;
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry)?;
    let value = |metric: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(metric));
        line.unwrap_or_else(|| panic!("no {metric} in\n{page}")).trim().parse().unwrap()
    };
    assert!(value("controller_runtime_reconcile_panics_total{controller=\"odd\"}") > 2.0);
    assert!(value("controller_runtime_reconcile_timeouts_total{controller=\"odd\"}") > 1.0);
    assert!(value("controller_runtime_reconcile_total{controller=\"odd\",result=\"requeue_after\"}") > 2.0);
    assert!(value("controller_runtime_terminal_reconcile_errors_total{controller=\"odd\"}") >= 1.0);
    assert!(value("workqueue_depth{name=\"odd\"}") <= 7.0, "no more than there are keys");
    running.stop().await?;
    play.factory.shutdown().await;
    Ok(())
}

async fn promise_18_a_shutdown_finishes_what_is_busy(place: Place) -> Result<()> {
    let play = Play::at(place, short()).await?;
    play.make("busy").await?;
    let (go, may) = watch::channel(false);
    let (seen, finished) = (Seen::default(), Arc::new(AtomicBool::new(false)));
    let (notes, finishes) = (seen.clone(), Arc::clone(&finished));
    let reconcile = move |context: Context<ConfigMap>| {
        notes.note(&context);
        let (mut may, finishes) = (may.clone(), Arc::clone(&finishes));
        async move {
            may.wait_for(|may| *may).await?;
            finishes.store(true, Ordering::SeqCst);
            Ok::<_, BoxError>(Action::done())
        }
    };
    let running = Running::start(play.controller(), reconcile);
    seen.more("busy", 0).await;
    let stopping = tokio::spawn(running.stop());
    play.make("late").await?;
    eventually("it is in the cache", SOON, async || {
        play.config_maps().get(&play.stage.place.namespace, "late").map(drop)
    })
    .await;
    go.send(true)?;
    assert_eq!(stopping.await??.busy, []);
    assert!(finished.load(Ordering::SeqCst));
    assert_eq!(seen.count("late"), 0);
    play.factory.shutdown().await;
    Ok(())
}

async fn several_controllers_run_under_one_roof(place: Place) -> Result<()> {
    let play = Play::at(place, short()).await?;
    play.make("one").await?;
    let seen = Seen::default();
    let (told, mut hear) = mpsc::unbounded_channel();
    let secrets = Controller::new(&play.factory).for_kind::<Secret>().scope(play.scope());
    let tell = move |context: Context<Secret>| {
        let told = told.clone();
        async move {
            told.send(context.request().name().to_owned())?;
            Ok::<_, BoxError>(Action::done())
        }
    };
    let runner =
        Runner::new(&play.factory).controller(play.controller(), watching(&seen)).controller(secrets, tell);
    let probes = runner.probes();
    assert!(!probes.readiness().ok);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(runner.run(async { drop(stopped.await) }));
    seen.value("one", Some("0")).await;
    let secret = json!({ "metadata": { "name": "hidden" } });
    play.stage.place.post(&play.stage.place.path("secrets"), &secret).await?;
    assert_eq!(tokio::time::timeout(SOON, hear.recv()).await?.as_deref(), Some("hidden"));
    assert_eq!(probes.readiness().to_string(), "ok");
    // A server that cannot be reached is said, and is no reason to be restarted.
    play.stage.proxy.go_down().await;
    eventually("it is said", SOON, async || {
        let readiness = probes.readiness();
        (readiness.ok && readiness.to_string().contains("stale since")).then_some(())
    })
    .await;
    assert!(probes.liveness().ok, "{}", probes.liveness());
    stop.send(()).unwrap();
    let report = tokio::time::timeout(SOON, running).await???;
    assert_eq!(report.busy().count(), 0);
    assert_eq!(report.controllers.len(), 2);
    assert!(!probes.readiness().ok);
    Ok(())
}

async fn a_leader_works_and_one_on_standby_is_warm(place: Place) -> Result<()> {
    let play = Play::at(place, short()).await?;
    play.make("one").await?;
    let (seen, (lead, leads)) = (Seen::default(), watch::channel(false));
    let notes = seen.clone();
    let hangs = move |context: Context<ConfigMap>| {
        notes.note(&context);
        async { std::future::pending::<Result<Action, BoxError>>().await }
    };
    let runner = Runner::new(&play.factory).controller(play.controller().drain(LONG), hangs).when(leads);
    let probes = runner.probes();
    let running = tokio::spawn(runner.run(std::future::pending()));
    eventually("it is on standby", SOON, async || probes.readiness().ok.then_some(())).await;
    assert_eq!(play.config_maps().list().count(), 1, "its cache is warm");
    play.change("one", "1").await?;
    eventually("its cache follows", SOON, async || {
        let object = play.config_maps().get(&play.stage.place.namespace, "one")?;
        (object.pointer::<String>("/data/key").unwrap().as_deref() == Some("1")).then_some(())
    })
    .await;
    assert_eq!(seen.count("one"), 0);
    lead.send(true)?;
    seen.value("one", Some("1")).await;
    lead.send(false)?;
    let error = tokio::time::timeout(SOON, running).await??.unwrap_err();
    assert!(matches!(error, RunError::LeadershipLost { .. }), "{error}");
    Ok(())
}

/// When somebody reconciled first, and last.
#[derive(Clone, Default)]
struct Times(Arc<Mutex<Option<(Instant, Instant)>>>);

impl Times {
    /// Its reconciles are busy until they are dropped.
    fn reconciler(&self) -> impl Reconciler<ConfigMap> + use<> {
        let times = self.clone();
        move |_: Context<ConfigMap>| times.clone().go_on()
    }

    async fn go_on(self) -> Result<Action, BoxError> {
        loop {
            let now = Instant::now();
            self.0.lock().unwrap().get_or_insert((now, now)).1 = now;
            // tidy: allow-sleep nothing is waited for: these are the steps of a long reconcile
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn get(&self) -> Option<(Instant, Instant)> {
        *self.0.lock().unwrap()
    }
}

fn candidate(client: Client, place: &Place, identity: &str) -> Result<Leadership> {
    let election = LeaderElection::new(client, &place.namespace, "the-lease").identity(identity);
    let (lease, renew) = (Duration::from_secs(4), Duration::from_secs(3));
    Ok(election.lease(lease).renew(renew).retry(Duration::from_millis(400)).start()?)
}

async fn promise_19_reconciles_of_a_leader_that_is_cut_off_end_before_those_of_another_one_begin(
    place: Place,
) -> Result<()> {
    let play = Play::at(place, short()).await?;
    play.make("one").await?;
    let place = &play.stage.place;
    let (cut_off, other) = (Times::default(), Times::default());
    let leads = candidate(play.factory.client(), place, "cut off")?;
    let runner = Runner::new(&play.factory).controller(play.controller(), cut_off.reconciler()).when(&leads);
    let first = tokio::spawn(runner.run(std::future::pending()));
    eventually("the first one leads", SOON, async || cut_off.get().map(drop)).await;

    let factory = place.factory().await?;
    let maps = factory.configure::<ConfigMap>(play.scope()).labels("made=here")?.informer();
    let stands = candidate(factory.client(), place, "other")?;
    // Its reconcile never ends by itself: the end does not wait for it.
    let controller = Controller::new(&factory).for_informer(&maps).drain(Duration::ZERO);
    let runner = Runner::new(&factory).controller(controller, other.reconciler()).when(&stands);
    let (stop, stopped) = oneshot::channel::<()>();
    let second = tokio::spawn(runner.run(async { drop(stopped.await) }));

    // Nothing gets through any more, and no connection is closed.
    let _hole = play.stage.proxy.on_all(Match::any()).stall();
    let error = tokio::time::timeout(SOON, first).await??.unwrap_err();
    assert!(matches!(error, RunError::LeadershipLost { .. }), "{error}");
    eventually("the other one leads", SOON, async || other.get().map(drop)).await;
    let (ended, began) = (cut_off.get().unwrap().1, other.get().unwrap().0);
    assert!(ended < began, "{:?}", ended - began);
    drop(stop);
    tokio::time::timeout(SOON, second).await???;
    assert!(stands.is_leader());
    stands.shutdown(SOON).await;
    Ok(())
}
