//! No request is lost: clients send throughout, and are routed by what the EndpointSlices say.

use std::time::Duration;

use anyhow::Result;
use kube_informer::manager::Manager;
use kube_informer_elasti::operator::{Operator, SleepError, WakeError};
use kube_informer_testbed::eventually::eventually;

use crate::harness::{SOON, Stage, on_both};

on_both! {
    no_request_is_lost_over_several_sleeps_and_wakes,
    no_request_is_lost_when_a_sleeping_one_is_deleted,
    nothing_is_put_to_sleep_without_a_resolver,
    an_operator_that_does_not_lead_wakes,
    a_wake_goes_before_a_sleep,
    what_is_unknown_is_neither_woken_nor_put_to_sleep,
}

async fn no_request_is_lost_over_several_sleeps_and_wakes(stage: Stage) -> Result<()> {
    stage.app("web", 2).await?;
    stage.mode("web", "serve").await;
    let clients = stage.clients("web");
    for _ in 0..3 {
        let answered = clients.answered();
        // Whoever is still kept since the last time may ask for it meanwhile.
        let sleep = async || match stage.operator().put_to_sleep(&stage.namespace, "web").await {
            Err(SleepError::Woken { .. }) => None,
            other => Some(other),
        };
        let slept = eventually("it is put to sleep", SOON, sleep).await?;
        assert_eq!(slept.scaled.now, 0);
        // Clients are kept by the resolver, which wakes it.
        stage.replicas("deployments/web", 1).await;
        stage.mode("web", "serve").await;
        stage.gone(&stage.slice_path("web")).await;
        let more = async || (clients.answered() > answered).then_some(());
        eventually("clients are answered", SOON, more).await;
    }
    let (answered, lost) = clients.stop().await;
    assert!(lost.is_empty(), "{} of {answered} were lost: {lost:#?}", lost.len());
    assert!(stage.resolver.kept() > 0, "some of them came when nobody was awake");
    stage.close().await
}

async fn no_request_is_lost_when_a_sleeping_one_is_deleted(stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.kubelet.delay(Duration::from_secs(3));
    let kept = stage.resolver.kept();
    let clients = stage.clients("web");
    eventually("requests are kept", SOON, async || (stage.resolver.kept() > kept).then_some(())).await;
    stage.delete(&stage.elasti_path("web")).await?;
    stage.gone(&stage.elasti_path("web")).await;
    stage.replicas("deployments/web", 1).await;
    let (answered, lost) = clients.stop().await;
    assert!(lost.is_empty() && answered > 0, "{} of {answered} were lost: {lost:#?}", lost.len());
    stage.close().await
}

async fn nothing_is_put_to_sleep_without_a_resolver(stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    stage.app("asleep", 0).await?;
    stage.mode("web", "serve").await;
    stage.mode("asleep", "proxy").await;
    stage.resolver.unready().await?;
    // The operator knows of it.
    stage.condition("asleep", "Redirected", "False", "ResolverUnavailable").await;
    match stage.operator().put_to_sleep(&stage.namespace, "web").await {
        Err(SleepError::NotRedirected { why, .. }) => {
            assert!(why.contains("see that the resolver runs"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    stage.replicas("deployments/web", 1).await;
    stage.mode("web", "serve").await;
    stage.gone(&stage.slice_path("web")).await;
    stage.close().await
}

async fn an_operator_that_does_not_lead_wakes(mut stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    stage.retire().await;
    // It reads, and reconciles nothing.
    let factory = Stage::factory(stage.kubeconfig()).await?;
    let standby = Operator::new(stage.settings(), &factory, &Manager::new(&factory));
    assert!(!standby.is_ready());
    factory.start();
    factory.synced(SOON).await?;
    assert!(standby.is_ready());
    let woken = standby.wake(&stage.namespace, "web").await?;
    assert_eq!((woken.scaled.before, woken.scaled.now), (0, 1));
    let error = standby.wake(&stage.namespace, "other").await.unwrap_err();
    assert!(matches!(error, WakeError::Unknown { .. }), "{error}");
    stage.replicas("deployments/web", 1).await;
    factory.shutdown().await;
    stage.close().await
}

async fn a_wake_goes_before_a_sleep(mut stage: Stage) -> Result<()> {
    stage.retire().await;
    let mut settings = stage.settings();
    // Nothing is held for so long after a wake: no test waits for it.
    settings.sleep_deadline = Duration::from_secs(600);
    stage.operate_as_said(settings).await?;
    stage.app("web", 1).await?;
    for _ in 0..5 {
        stage.mode("web", "serve").await;
        stage.gone(&stage.slice_path("web")).await;
        let (operator, namespace) = (stage.operator().clone(), stage.namespace.clone());
        let sleep = tokio::spawn(async move { operator.put_to_sleep(&namespace, "web").await });
        // It has begun, and is anywhere between the redirect and its end.
        stage.redirected("web", &stage.resolver.addresses()).await;
        stage.operator().wake(&stage.namespace, "web").await?;
        match sleep.await? {
            Ok(_) | Err(SleepError::Woken { .. }) => {}
            Err(other) => return Err(other.into()),
        }
        // Whoever was first, and without another wake.
        stage.replicas("deployments/web", 1).await;
    }
    stage.close().await
}

async fn what_is_unknown_is_neither_woken_nor_put_to_sleep(stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    let error = stage.operator().wake(&stage.namespace, "other").await.unwrap_err();
    assert!(matches!(error, WakeError::Unknown { .. }), "{error}");
    let error = stage.operator().put_to_sleep("elsewhere", "web").await.unwrap_err();
    assert!(matches!(error, SleepError::Unknown(WakeError::Unknown { .. })), "{error}");
    // What is awake stays as it is, however many it has.
    stage.scale("deployments/web", 3).await?;
    let woken = stage.operator().wake(&stage.namespace, "web").await?;
    assert_eq!((woken.scaled.before, woken.scaled.now), (3, 3));
    // One whose target is gone cannot be woken, and says so.
    stage.delete(&stage.path("apps/v1/deployments/web")).await?;
    stage.gone(&stage.path("apps/v1/deployments/web")).await;
    let error = stage.operator().wake(&stage.namespace, "web").await.unwrap_err();
    assert!(matches!(error, WakeError::ScalingFailed { .. }), "{error}");
    stage.event("web", "FailedToScale").await;
    stage.close().await
}
