//! What others do in the middle: no target sleeps by accident, and none is left asleep.

use anyhow::Result;
use kube_informer_elasti::operator::SleepError;
use kube_informer_testbed::proxy::{Match, Verb};
use serde_json::json;

use crate::harness::{Stage, on_embedded};

on_embedded! {
    nothing_sleeps_that_was_edited_while_it_was_put_to_sleep,
    nothing_sleeps_that_was_deleted_while_it_was_put_to_sleep,
    the_redirect_is_written_before_anything_is_scaled,
    all_services_of_a_target_are_redirected_before_it_sleeps,
}

fn scale_writes() -> Match {
    Match::any().verb(Verb::Update).path_contains("/scale")
}

async fn nothing_sleeps_that_was_edited_while_it_was_put_to_sleep(mut stage: Stage) -> Result<()> {
    stage.app("web", 2).await?;
    stage.deployment("other", 1).await?;
    stage.mode("web", "serve").await;
    let proxy = stage.operate_through_proxy().await?;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.replicas("deployments/web", 2).await;
    let stalled = proxy.on(scale_writes()).once().stall();
    let (operator, namespace) = (stage.operator().clone(), stage.namespace.clone());
    let sleep = tokio::spawn(async move {
        loop {
            match operator.put_to_sleep(&namespace, "web").await {
                Err(SleepError::Unknown(_)) => tokio::task::yield_now().await,
                other => return other,
            }
        }
    });
    stalled.wait_applied(1).await;
    // What it scales is not its target any more.
    let other = json!({ "spec": { "scaleTargetRef": { "name": "other" } } });
    stage.merge(&stage.elasti_path("web"), &other).await?;
    stage
        .until("the other target is noted", &stage.private_path("web"), |private| {
            private["metadata"]["annotations"]["elasti.truefoundry.com/scale-target"]
                .as_str()
                .is_some_and(|note| note.ends_with("/other"))
        })
        .await;
    stalled.release();
    let slept = sleep.await?;
    assert!(matches!(slept, Err(SleepError::NotRedirected { .. })), "{slept:?}");
    stage.replicas("deployments/web", 2).await;
    stage.replicas("deployments/other", 1).await;
    stage.close().await
}

async fn nothing_sleeps_that_was_deleted_while_it_was_put_to_sleep(mut stage: Stage) -> Result<()> {
    stage.app("web", 2).await?;
    stage.mode("web", "serve").await;
    let proxy = stage.operate_through_proxy().await?;
    let stalled = proxy.on(scale_writes()).once().stall();
    let (operator, namespace) = (stage.operator().clone(), stage.namespace.clone());
    let sleep = tokio::spawn(async move {
        loop {
            match operator.put_to_sleep(&namespace, "web").await {
                Err(SleepError::Unknown(_)) => tokio::task::yield_now().await,
                other => return other,
            }
        }
    });
    stalled.wait_applied(1).await;
    stage.delete(&stage.elasti_path("web")).await?;
    stalled.release();
    let slept = sleep.await?;
    assert!(matches!(slept, Err(SleepError::NotRedirected { .. })), "{slept:?}");
    stage.replicas("deployments/web", 2).await;
    stage.gone(&stage.elasti_path("web")).await;
    stage.replicas("deployments/web", 2).await;
    stage.close().await
}

/// The slice is held back: as long as it is, nothing is scaled.
async fn the_redirect_is_written_before_anything_is_scaled(mut stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    let proxy = stage.operate_through_proxy().await?;
    stage.app("barrier", 1).await?;
    stage.mode("barrier", "serve").await;
    let stalled = proxy.on(Match::any().verb(Verb::Create).path_contains("/endpointslices")).once().stall();
    let (operator, namespace) = (stage.operator().clone(), stage.namespace.clone());
    let sleep = tokio::spawn(async move { operator.put_to_sleep(&namespace, "web").await });
    stalled.wait_applied(1).await;
    // What is asked after it is answered meanwhile.
    stage.scale("deployments/barrier", 2).await?;
    stage
        .until("the others go on", &stage.elasti_path("barrier"), |elasti| elasti["status"]["replicas"] == 2)
        .await;
    let is_scaled = |request: &kube_informer_testbed::proxy::Request| {
        request.verb() == Verb::Update && request.path.ends_with("/scale")
    };
    assert_eq!(proxy.requests().count(is_scaled), 0);
    stalled.release();
    sleep.await??;
    let all = proxy.requests().all();
    let slice =
        all.iter().find(|request| request.verb() == Verb::Create && request.path.contains("/endpointslices"));
    let scale = all.iter().find(|request| is_scaled(request)).unwrap();
    assert!(slice.unwrap().ended_at.unwrap() <= scale.at);
    stage.close().await
}

async fn all_services_of_a_target_are_redirected_before_it_sleeps(mut stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    stage.service("grpc", json!({ "app": "web" })).await?;
    // Another way to write the same kind.
    stage.elasti("grpc", "grpc", ("apps/v1", "deployments", "web")).await?;
    stage.mode("web", "serve").await;
    stage.mode("grpc", "serve").await;
    let proxy = stage.operate_through_proxy().await?;
    stage.app("barrier", 1).await?;
    stage.mode("barrier", "serve").await;
    let stalled = proxy.on(scale_writes()).once().stall();
    let (operator, namespace) = (stage.operator().clone(), stage.namespace.clone());
    let sleep = tokio::spawn(async move { operator.put_to_sleep(&namespace, "web").await });
    stalled.wait_applied(1).await;
    // Nothing is scaled yet, and nobody depends on the pods any more.
    for service in ["web", "grpc"] {
        let slice = stage.find(&stage.slice_path(service)).await;
        assert!(slice.is_some(), "{service} is not redirected yet");
    }
    stalled.release();
    sleep.await??;
    stage.mode("web", "proxy").await;
    stage.mode("grpc", "proxy").await;
    stage.close().await
}
