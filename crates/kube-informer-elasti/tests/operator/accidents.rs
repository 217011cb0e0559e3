//! What others do in the middle: no target sleeps by accident, and none is left asleep.

use std::time::Duration;

use anyhow::Result;
use kube_informer::leader::LeaderElection;
use kube_informer_elasti::operator::{Asleep, OperatorSettings, SleepError};
use kube_informer_testbed::proxy::{Answer, Fault, Match, Proxy, Verb};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::harness::{SOON, Stage, met, met_once, on_both};
use crate::interrupted::noted;

on_both! {
    nothing_sleeps_that_was_edited_while_it_was_put_to_sleep,
    nothing_sleeps_that_was_deleted_while_it_was_put_to_sleep,
    nothing_sleeps_whose_redirect_was_lost_before_it_was_scaled,
    nothing_sleeps_whose_redirect_was_lost_while_it_was_scaled,
    the_redirect_is_written_before_anything_is_scaled,
    all_services_of_a_target_are_redirected_before_it_sleeps,
    a_service_that_nobody_has_looked_at_yet_is_redirected_too,
    who_does_not_lead_puts_nothing_to_sleep,
    a_wake_of_what_is_put_to_sleep_is_written_however_soon_after_another,
    nothing_is_held_longer_where_a_sleep_and_a_wake_are_seen_as_one,
    nothing_is_held_longer_where_another_target_is_named_meanwhile,
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
    let mut sleep = tokio::spawn(async move {
        loop {
            match operator.put_to_sleep(&namespace, "web").await {
                Err(SleepError::Unknown(_)) => tokio::task::yield_now().await,
                other => return other,
            }
        }
    });
    met(&stalled, &mut sleep).await;
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
    let mut sleep = tokio::spawn(async move {
        loop {
            match operator.put_to_sleep(&namespace, "web").await {
                Err(SleepError::Unknown(_)) => tokio::task::yield_now().await,
                other => return other,
            }
        }
    });
    met(&stalled, &mut sleep).await;
    stage.delete(&stage.elasti_path("web")).await?;
    stalled.release();
    let slept = sleep.await?;
    assert!(matches!(slept, Err(SleepError::NotRedirected { .. })), "{slept:?}");
    stage.replicas("deployments/web", 2).await;
    stage.gone(&stage.elasti_path("web")).await;
    stage.replicas("deployments/web", 2).await;
    stage.close().await
}

async fn nothing_sleeps_whose_redirect_was_lost_before_it_was_scaled(mut stage: Stage) -> Result<()> {
    // When it is noted that it is about to sleep, it has been redirected.
    let path = stage.elasti_path("web");
    let proxy = lost_redirect(&mut stage, Match::any().verb(Verb::Patch).path(path)).await?;
    assert_eq!(proxy.requests().count(|request| scale_writes().matches(request)), 0);
    stage.close().await
}

async fn nothing_sleeps_whose_redirect_was_lost_while_it_was_scaled(mut stage: Stage) -> Result<()> {
    let proxy = lost_redirect(&mut stage, scale_writes()).await?;
    // Down and up; others may write to it at the same time, and then it is tried once more.
    let writes = proxy.requests().count(|request| scale_writes().matches(request));
    assert!(writes >= 2, "{writes}");
    stage.close().await
}

/// The resolver goes while something is put to sleep, and a request of that is on its way.
async fn lost_redirect(stage: &mut Stage, at: Match) -> Result<Proxy> {
    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    let proxy = stage.operate_through_proxy().await?;
    stage.app("barrier", 1).await?;
    stage.mode("barrier", "serve").await;
    let stalled = proxy.on(at).once().stall();
    let mut sleep = put_to_sleep(stage);
    met(&stalled, &mut sleep).await;
    stage.resolver.unready().await?;
    stage.condition("web", "Redirected", "False", "ResolverUnavailable").await;
    stalled.release();
    match sleep.await? {
        Err(SleepError::NotRedirected { why, .. }) => {
            assert!(why.contains("see that the resolver runs"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    stage.replicas("deployments/web", 1).await;
    Ok(proxy)
}

/// The slice is held back: as long as it is, nothing is scaled.
async fn the_redirect_is_written_before_anything_is_scaled(mut stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    let proxy = stage.operate_through_proxy().await?;
    stage.app("barrier", 1).await?;
    stage.mode("barrier", "serve").await;
    let stalled = proxy.on(Match::any().verb(Verb::Create).path_contains("/endpointslices")).once().stall();
    let mut sleep = put_to_sleep(&stage);
    met(&stalled, &mut sleep).await;
    // One at a time: what is noted of a sleep is of one.
    match stage.operator().put_to_sleep(&stage.namespace, "web").await {
        Err(SleepError::NotRedirected { why, .. }) => assert!(why.contains("already"), "{why}"),
        other => panic!("{other:?}"),
    }
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
    let mut sleep = put_to_sleep(&stage);
    met(&stalled, &mut sleep).await;
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

/// It names the target in other words, and waits for its turn.
async fn a_service_that_nobody_has_looked_at_yet_is_redirected_too(mut stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    stage.service("grpc", json!({ "app": "web" })).await?;
    stage.mode("web", "serve").await;
    stage.retire().await;
    let proxy = stage.proxy().await?;
    stage.operate_behind_as_said(&proxy, patient(&stage)).await?;
    stage.app("barrier", 1).await?;
    stage.mode("barrier", "serve").await;
    let first_write = Match::any().verb(Verb::Patch).path(stage.elasti_path("grpc"));
    let unseen = proxy.on(first_write).once().stall();
    stage.elasti("grpc", "grpc", ("apps/v1", "deployments", "web")).await?;
    met_once(&unseen).await;
    let scaling = proxy.on(scale_writes()).once().stall();
    let mut sleep = put_to_sleep(&stage);
    stage.until("web is redirected", &stage.slice_path("web"), |_| true).await;
    assert_eq!(scaling.applied(), 0, "it sleeps, and grpc is not redirected");
    unseen.release();
    met(&scaling, &mut sleep).await;
    assert!(stage.find(&stage.slice_path("grpc")).await.is_some(), "grpc is not redirected");
    assert!(noted(&stage.get(&stage.elasti_path("grpc")).await?), "whoever comes after this does not know");
    scaling.release();
    sleep.await??;
    stage.close().await
}

async fn who_does_not_lead_puts_nothing_to_sleep(stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    let factory = Stage::factory(stage.kubeconfig()).await?;
    let leadership = LeaderElection::new(factory.client(), &stage.namespace, "elasti").start()?;
    leadership.acquired().await;
    leadership.shutdown(SOON).await;
    stage.operator().lead_by(&leadership);
    match stage.operator().put_to_sleep(&stage.namespace, "web").await {
        Err(SleepError::NotRedirected { why, .. }) => assert!(why.contains("does not lead"), "{why}"),
        other => panic!("{other:?}"),
    }
    stage.mode("web", "serve").await;
    stage.gone(&stage.slice_path("web")).await;
    stage.replicas("deployments/web", 1).await;
    stage.close().await
}

/// Whoever comes after this process, if it ends now, knows of the wake by its time.
async fn a_wake_of_what_is_put_to_sleep_is_written_however_soon_after_another(
    mut stage: Stage,
) -> Result<()> {
    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    let proxy = stage.operate_through_proxy().await?;
    stage.app("barrier", 1).await?;
    stage.mode("barrier", "serve").await;
    let stalled = proxy.on(scale_writes()).once().stall();
    stage.operator().wake(&stage.namespace, "web").await?;
    let woken = |elasti: &Value| elasti["status"]["lastScaledUpTime"].clone();
    let path = stage.elasti_path("web");
    stage.until("it is written", &path, |elasti| woken(elasti).is_string()).await;
    let mut sleep = put_to_sleep(&stage);
    met(&stalled, &mut sleep).await;
    let before = woken(&stage.get(&path).await?);
    stage.operator().wake(&stage.namespace, "web").await?;
    assert_ne!(woken(&stage.get(&path).await?), before, "as old as the one before");
    stalled.release();
    let slept = sleep.await?;
    assert!(matches!(slept, Err(SleepError::Woken { .. })), "{slept:?}");
    stage.replicas("deployments/web", 1).await;
    stage.close().await
}

pub(crate) fn put_to_sleep(stage: &Stage) -> JoinHandle<Result<Asleep, SleepError>> {
    let (operator, namespace) = (stage.operator().clone(), stage.namespace.clone());
    tokio::spawn(async move { operator.put_to_sleep(&namespace, "web").await })
}

fn watches_of_web() -> Match {
    Match::watch().path_contains("/deployments").field_selector("metadata.name=web")
}

/// An operator that tries to put something to sleep for longer than any test waits.
fn patient(stage: &Stage) -> OperatorSettings {
    let mut settings = stage.settings();
    settings.sleep_deadline = Duration::from_secs(600);
    settings
}

/// The target sleeps, which the operator knows of, and does not see: it cannot read the target until the fault is removed.
async fn asleep_unseen(stage: &mut Stage) -> Result<(Proxy, Fault, JoinHandle<Result<Asleep, SleepError>>)> {
    stage.app("web", 1).await?;
    stage.deployment("other", 1).await?;
    stage.mode("web", "serve").await;
    stage.retire().await;
    let proxy = stage.proxy().await?;
    stage.operate_behind_as_said(&proxy, patient(stage)).await?;
    stage.app("barrier", 1).await?;
    stage.mode("barrier", "serve").await;
    let stalled = proxy.on(Match::any().verb(Verb::Update).path_contains("/web/scale")).once().stall();
    let mut sleep = put_to_sleep(stage);
    met(&stalled, &mut sleep).await;
    let unseen = proxy.on(watches_of_web()).answer(Answer::internal_error());
    proxy.cut_open(watches_of_web()).await;
    stalled.release();
    let deployment = stage.path("apps/v1/deployments/web");
    stage.until("it is scaled", &deployment, |web| web["spec"]["replicas"] == 0).await;
    // Then all was looked at that a wake or an edit could have changed.
    stage.until("nothing is noted any more", &stage.elasti_path("web"), |elasti| !noted(elasti)).await;
    Ok((proxy, unseen, sleep))
}

async fn nothing_is_held_longer_where_a_sleep_and_a_wake_are_seen_as_one(mut stage: Stage) -> Result<()> {
    let (proxy, unseen, sleep) = asleep_unseen(&mut stage).await?;
    stage.operator().wake(&stage.namespace, "web").await?;
    // What was missed is listed, and not told one by one.
    let missed = proxy.on(watches_of_web()).once().answer(Answer::gone());
    unseen.remove();
    met_once(&missed).await;
    tokio::time::timeout(SOON, sleep).await???;
    stage.mode("web", "serve").await;
    stage.gone(&stage.slice_path("web")).await;
    stage.close().await
}

async fn nothing_is_held_longer_where_another_target_is_named_meanwhile(mut stage: Stage) -> Result<()> {
    let (_proxy, unseen, sleep) = asleep_unseen(&mut stage).await?;
    let other = json!({ "spec": { "scaleTargetRef": { "name": "other" } } });
    stage.merge(&stage.elasti_path("web"), &other).await?;
    stage.replicas("deployments/web", 1).await;
    unseen.remove();
    tokio::time::timeout(SOON, sleep).await???;
    stage.mode("web", "serve").await;
    stage.gone(&stage.slice_path("web")).await;
    stage.close().await
}
