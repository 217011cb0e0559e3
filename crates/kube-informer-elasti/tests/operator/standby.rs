//! Wakes in a process that does not lead: they cost little, and whoever leads knows of them.

use anyhow::Result;
use kube_informer::factory::Factory;
use kube_informer::manager::Manager;
use kube_informer_elasti::operator::{Operator, SleepError};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Match, Proxy, Request, Verb};

use crate::accidents::put_to_sleep;
use crate::harness::{SOON, Stage, met, on_embedded, on_real};

on_embedded! {
    many_wakes_of_one_that_does_not_lead_are_one_question_what_there_is,
    a_wake_by_another_process_goes_before_a_sleep,
    a_wake_by_another_process_goes_before_a_sleep_however_soon_after_another,
}

// How a server is asked what it has depends on the server.
on_real! {
    a_wake_by_another_process_goes_before_a_sleep,
    a_wake_by_another_process_goes_before_a_sleep_however_soon_after_another,
}

/// One that reads, and reconciles nothing.
async fn standby(stage: &Stage, factory: &Factory) -> Result<Operator> {
    let standby = Operator::new(stage.settings(), factory, &Manager::new(factory));
    factory.start();
    factory.synced(SOON).await?;
    Ok(standby)
}

fn asks_what_there_is(request: &Request) -> bool {
    matches!(request.path.as_str(), "/api" | "/apis")
        || request.path.starts_with("/apis/") && request.path.split('/').count() <= 4
}

async fn many_wakes_of_one_that_does_not_lead_are_one_question_what_there_is(mut stage: Stage) -> Result<()> {
    for name in ["a", "b", "c", "d"] {
        stage.app(name, 0).await?;
        stage.mode(name, "proxy").await;
    }
    stage.retire().await;
    let proxy: Proxy = stage.proxy().await?;
    let factory = Stage::factory_behind(&proxy).await?;
    let standby = standby(&stage, &factory).await?;
    let begun = proxy.requests().last_id();
    for round in 0..5 {
        for name in ["a", "b", "c", "d"] {
            let woken = standby.wake(&stage.namespace, name).await?;
            assert_eq!((woken.scaled.before, woken.scaled.now), (i32::from(round > 0), 1));
        }
    }
    let asked = proxy.requests().matching(|request| request.id > begun && asks_what_there_is(request));
    let roots = asked.iter().filter(|request| request.path == "/apis").count();
    assert_eq!(roots, 1, "{asked:#?}");
    // Of two that come right after each other, the second is told what the first was, and nobody else is asked.
    eventually("two come soon enough", SOON, async || {
        standby.wake(&stage.namespace, "a").await.unwrap();
        let begun = proxy.requests().last_id();
        standby.wake(&stage.namespace, "a").await.unwrap();
        let about = |request: &Request| request.id > begun && !request.is_watch();
        (proxy.requests().count(about) == 0).then_some(())
    })
    .await;
    factory.shutdown().await;
    stage.close().await
}

async fn a_wake_by_another_process_goes_before_a_sleep(mut stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    let factory = Stage::factory(stage.kubeconfig()).await?;
    let standby = standby(&stage, &factory).await?;
    let proxy = stage.operate_through_proxy().await?;
    stage.app("barrier", 1).await?;
    stage.mode("barrier", "serve").await;
    let scaled = || Match::any().verb(Verb::Update).path_contains("/web/scale");
    // Between the redirect and the scale-down it finds the target awake, and says so.
    let stalled = proxy.on(scaled()).once().stall();
    let mut sleep = put_to_sleep(&stage);
    met(&stalled, &mut sleep).await;
    let woken = standby.wake(&stage.namespace, "web").await?;
    assert_eq!((woken.scaled.before, woken.scaled.now), (1, 1));
    stalled.release();
    let slept = sleep.await?;
    assert!(matches!(slept, Err(SleepError::Woken { .. })), "{slept:?}");
    stage.replicas("deployments/web", 1).await;
    stage.gone(&stage.slice_path("web")).await;
    // Before the redirect is done, it is the same.
    let begun = proxy.requests().last_id();
    let stalled = proxy.on(Match::any().verb(Verb::Create).path_contains("/endpointslices")).once().stall();
    let mut sleep = put_to_sleep(&stage);
    met(&stalled, &mut sleep).await;
    let path = stage.elasti_path("web");
    let is_read = |request: &Request| {
        request.id > begun
            && request.verb() == Verb::Get
            && request.path == path
            && request.ended_at.is_some()
    };
    // Once to see whether it was woken a moment ago, and once when it is held.
    let both = async || (proxy.requests().count(is_read) >= 2).then_some(());
    eventually("it is known when it was woken", SOON, both).await;
    standby.wake(&stage.namespace, "web").await?;
    let begun = proxy.requests().last_id();
    stalled.release();
    let slept = sleep.await?;
    assert!(matches!(slept, Err(SleepError::Woken { .. })), "{slept:?}");
    let writes = proxy.requests().count(|request| request.id > begun && scaled().matches(request));
    assert_eq!(writes, 0, "it was seen before anything was scaled");
    factory.shutdown().await;
    stage.close().await
}

/// The second of two wakes is not written by a process that does not lead. It is before the sleep, or it is written.
async fn a_wake_by_another_process_goes_before_a_sleep_however_soon_after_another(
    mut stage: Stage,
) -> Result<()> {
    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    let factory = Stage::factory(stage.kubeconfig()).await?;
    let standby = standby(&stage, &factory).await?;
    let proxy = stage.operate_through_proxy().await?;
    stage.app("barrier", 1).await?;
    stage.mode("barrier", "serve").await;
    for _ in 0..3 {
        stage.gone(&stage.slice_path("web")).await;
        let stalled = proxy.on(Match::any().verb(Verb::Update).path_contains("/web/scale")).once().stall();
        standby.wake(&stage.namespace, "web").await?;
        let mut sleep = put_to_sleep(&stage);
        met(&stalled, &mut sleep).await;
        standby.wake(&stage.namespace, "web").await?;
        stalled.release();
        let slept = sleep.await?;
        assert!(matches!(slept, Err(SleepError::Woken { .. })), "{slept:?}");
        stage.replicas("deployments/web", 1).await;
    }
    factory.shutdown().await;
    stage.close().await
}
