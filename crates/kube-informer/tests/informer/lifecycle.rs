//! How informers begin and end.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube_informer::factory::Factory;
use kube_informer::informer::{Cause, Delivery, Event, Handler, Informer, Scope, State};
use kube_informer::object::Object;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::harness::{Place, SOON, on_both};
use crate::stage::{Stage, live, short, stale};

on_both! {
    informers_start_with_the_factory_and_later_ones_by_themselves,
    what_is_not_synced_is_named_with_the_reason,
    a_stopped_informer_is_gone_for_everyone_and_asking_again_makes_another,
    promise_12_nothing_is_left_of_a_factory_that_was_shut_down,
    nothing_is_left_of_a_factory_that_was_dropped,
}

async fn informers_start_with_the_factory_and_later_ones_by_themselves(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let factory = stage.factory(short()).await?;
    let scope = || Scope::namespace(&stage.place.namespace);
    let first = factory.informer::<ConfigMap>(scope());
    assert_eq!(first.health().state, State::Starting);
    let error = factory.synced(Duration::ZERO).await.unwrap_err();
    assert!(error.to_string().contains("configmaps"), "{error}");
    assert!(error.to_string().contains("not started"), "{error}");
    assert_eq!(stage.proxy.requests().count(|_| true), 0, "nothing is asked before the start");
    factory.start();
    factory.start();
    first.synced(SOON).await?;
    let second = factory.informer::<Secret>(scope());
    second.synced(SOON).await?;
    live(&second).await;
    assert_eq!((stage.watches("configmaps").len(), stage.watches("secrets").len()), (1, 1));
    factory.shutdown().await;
    // Whoever asks after the end gets one that has ended.
    assert_eq!(factory.informer::<Secret>(scope()).health().state, State::Stopped);
    let late = factory.informer::<Pod>(scope());
    assert_eq!(late.health().state, State::Stopped);
    let error = late.synced(SOON).await.unwrap_err();
    assert!(error.to_string().contains("stopped"), "{error}");
    Ok(())
}

async fn what_is_not_synced_is_named_with_the_reason(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let factory = stage.factory(short()).await?;
    let scope = || Scope::namespace(&stage.place.namespace);
    let works = factory.informer::<ConfigMap>(scope());
    let broken = factory.informer::<Secret>(scope());
    let secrets = Match::any().path_contains("/secrets");
    let fault = stage.proxy.on(secrets).answer(Answer::internal_error());
    factory.start();
    works.synced(SOON).await?;
    stale(&broken, Cause::Server).await;
    let error = factory.synced(Duration::from_millis(1)).await.unwrap_err();
    let text = error.to_string();
    let [missing] = &error.missing[..] else { panic!("{text}") };
    assert_eq!(missing.resource.plural, "secrets");
    for part in
        ["secrets", &stage.place.namespace, "WATCH /api/v1/namespaces/", "etcdserver: request timed out"]
    {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    fault.remove();
    factory.synced(SOON).await?;
    factory.shutdown().await;
    Ok(())
}

async fn a_stopped_informer_is_gone_for_everyone_and_asking_again_makes_another(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.config_maps(&["one"], "1").await?;
    let factory = stage.factory(short()).await?;
    let ask = || factory.configure::<ConfigMap>(Scope::namespace(&stage.place.namespace)).labels("made=here");
    let (informer, same): (Informer<ConfigMap>, Informer<Value>) =
        (ask()?.informer(), ask()?.cast().informer());
    factory.start();
    factory.synced(SOON).await?;
    let mut events = same.events();
    assert!(matches!(events.next().await, Some(Event::Added { initial: true, .. })));
    assert_eq!(factory.stop(&informer, SOON).await.busy, [""; 0]);
    assert!(events.next().await.is_none(), "whoever shares it is told that it has ended");
    assert_eq!(same.health().state, State::Stopped);
    assert_eq!(same.list().count(), 1, "what was known can be read");
    assert!(factory.stats().is_empty());
    stage
        .proxy
        .requests()
        .wait_until(|all| all.iter().all(|request| !request.is_watch() || !request.is_open()))
        .await?;
    // Stopping twice is nothing new.
    assert_eq!(factory.stop(&informer, SOON).await.busy, [""; 0]);

    let another = ask()?.informer();
    another.synced(SOON).await?;
    stage.change("one", "2").await?;
    eventually("the other one follows", SOON, async || {
        let object = another.get(&stage.place.namespace, "one")?;
        (object.pointer::<String>("/data/key").unwrap().as_deref() == Some("2")).then_some(())
    })
    .await;
    let old = informer.get(&stage.place.namespace, "one").unwrap();
    assert_eq!(old.pointer::<String>("/data/key")?.as_deref(), Some("1"), "the old one does not");
    factory.shutdown().await;
    Ok(())
}

/// Those who are not stuck end within it.
const A_MOMENT: Duration = Duration::from_secs(3);

/// Handlers of every kind; their end can be heard of.
struct Busy {
    closure: mpsc::Receiver<()>,
    task: mpsc::Receiver<()>,
}

struct Teller {
    is_stuck: bool,
    #[expect(dead_code, reason = "it is dropped with the handler")]
    end: mpsc::Sender<()>,
}

impl Handler<ConfigMap> for Teller {
    async fn added(&mut self, _: Object<ConfigMap>, _: bool) {
        if self.is_stuck {
            std::future::pending::<()>().await;
        }
    }
}

impl Busy {
    fn with(informer: &Informer<ConfigMap>, is_stuck: bool) -> Self {
        let ((tell, closure), (end, task)) = (mpsc::channel(), mpsc::channel());
        informer.subscribe().delivery(Delivery::Every(5)).on(move |_| _ = tell.send(()));
        informer.subscribe().resync(Duration::from_millis(10)).handler(Teller { is_stuck, end });
        Self { closure, task }
    }

    /// Both have ended: nobody is left who could say anything.
    fn ended(&self) -> bool {
        let ended = |end: &mpsc::Receiver<()>| {
            std::iter::from_fn(|| end.try_recv().ok()).count();
            end.try_recv() == Err(mpsc::TryRecvError::Disconnected)
        };
        ended(&self.closure) && ended(&self.task)
    }
}

/// Runs a factory in a runtime of its own, so that everything in it can be counted.
async fn run_apart(stage: &Stage, runtime: &Runtime, stuck: bool) -> Result<(Factory, Busy)> {
    stage.config_maps(&["one", "two"], "1").await?;
    let (config, namespace) = (stage.config().await?, stage.place.namespace.clone());
    let run = async move {
        let factory = Factory::from_config(config).await?.timings(short());
        let several = factory.informer::<ConfigMap>(Scope::namespaces([&*namespace, "default"]));
        let _metadata: Informer<Secret> =
            factory.configure::<Secret>(Scope::namespace(&namespace)).metadata_only().informer();
        let busy = Busy::with(&several, stuck);
        factory.start();
        factory.synced(SOON).await?;
        anyhow::Ok((factory, busy))
    };
    let running = runtime.spawn(run).await??;
    assert!(runtime.metrics().num_alive_tasks() > 3 && stage.proxy.connections() >= 3);
    Ok(running)
}

async fn assert_nothing_is_left(stage: &Stage, runtime: Runtime, busy: &Busy) {
    let what = "the runtime is empty";
    eventually(what, SOON, async || (runtime.metrics().num_alive_tasks() == 0).then_some(())).await;
    eventually("all handlers have ended", SOON, async || busy.ended().then_some(())).await;
    assert!(stage.proxy.wait_connections(0, SOON).await, "{:?}", stage.proxy.requests().open());
    runtime.shutdown_background();
}

async fn promise_12_nothing_is_left_of_a_factory_that_was_shut_down(place: Place) -> Result<()> {
    let (stage, runtime) = (Stage::before(place).await?, Runtime::new()?);
    let (factory, busy) = run_apart(&stage, &runtime, true).await?;
    let handle = factory.clone();
    let ended = runtime.spawn(async move { handle.shutdown_within(A_MOMENT).await }).await?;
    assert_eq!(ended.busy, [""; 0], "a task that is stuck is dropped where it waits");
    assert!(busy.ended(), "nothing is called afterwards");
    // What is left is the client's, and ends with it.
    stage.proxy.requests().wait_until(|all| all.iter().all(|request| !request.is_open())).await?;
    drop(factory);
    assert_nothing_is_left(&stage, runtime, &busy).await;
    Ok(())
}

async fn nothing_is_left_of_a_factory_that_was_dropped(place: Place) -> Result<()> {
    let (stage, runtime) = (Stage::before(place).await?, Runtime::new()?);
    let (factory, busy) = run_apart(&stage, &runtime, false).await?;
    drop(factory);
    assert_nothing_is_left(&stage, runtime, &busy).await;
    Ok(())
}
