//! An operator that is killed between the scale-down and the look after it leaves nothing asleep for good.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::process::Process;
use kube_informer_testbed::proxy::{Answer, Fault, Match, Proxy, Request, Verb};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{SOON, Stage, met_once, on_both};
use crate::killed;

on_both! {
    a_target_of_before_is_woken_though_the_operator_ended_while_it_put_it_to_sleep,
    a_target_is_woken_though_its_elasti_service_was_deleted_and_the_operator_ended_while_it_put_it_to_sleep,
    a_target_that_is_still_the_same_sleeps_on_and_is_woken_when_it_is_asked_for,
    a_target_of_before_is_woken_however_long_the_server_fails,
    a_target_that_was_asked_for_meanwhile_is_woken,
    a_target_that_is_named_in_another_way_sleeps_on,
    a_note_that_cannot_be_taken_away_is_said,
}

const NOTE: &str = "elasti.truefoundry.com/putting-to-sleep";

pub(crate) fn noted(elasti: &Value) -> bool {
    elasti["metadata"]["annotations"][NOTE].is_string()
}

/// An operator, in a process of its own, that is about to scale a target to zero.
struct Sleeping {
    process: Process,
    proxy: Proxy,
    /// What it has sent, and the server has not got.
    stalled: Fault,
    /// It is not told what came of it.
    _unanswered: Fault,
    _folder: TempDir,
}

impl Sleeping {
    async fn start(stage: &mut Stage) -> Result<Self> {
        stage.app("web", 2).await?;
        stage.serves("web").await;
        stage.retire().await;
        stage.resolver.ask_nobody();
        let (proxy, folder) = (stage.proxy().await?, tempfile::tempdir()?);
        let scaled = || Match::any().verb(Verb::Update).path_contains("/web/scale");
        let unanswered = proxy.on(scaled()).once().stall_after_bytes(0);
        let stalled = proxy.on(scaled()).once().stall();
        let mut process = killed::start(&proxy, &stage.namespace, &folder.path().join("log"))?;
        tokio::select! {
            () = met_once(&stalled) => {}
            ended = process.ended() => bail!("it ended with {ended:?}: {}", process.logged()),
        }
        let elasti = stage.get(&stage.elasti_path("web")).await?;
        let note = elasti["metadata"]["annotations"][NOTE].as_str().unwrap_or_default();
        ensure!(note.starts_with("apps/v1/deployments/web@"), "before anything is scaled: {note}");
        Ok(Self { process, proxy, stalled, _unanswered: unanswered, _folder: folder })
    }

    /// SIGKILL. What it has sent and nobody has passed on is lost.
    async fn kill(mut self) -> Result<()> {
        self.process.kill()?;
        self.proxy.shut_down().await;
        Ok(())
    }
}

/// The operator scales the target to zero, and is killed before it is told so. In between, something happens.
async fn interrupted(stage: &mut Stage, meanwhile: impl AsyncFnOnce(&Stage) -> Result<()>) -> Result<()> {
    let sleeping = Sleeping::start(stage).await?;
    meanwhile(stage).await?;
    sleeping.stalled.release();
    let deployment = stage.path("apps/v1/deployments/web");
    stage.until("it is scaled", &deployment, |web| web["spec"]["replicas"] == 0).await;
    sleeping.kill().await
}

async fn a_target_of_before_is_woken_though_the_operator_ended_while_it_put_it_to_sleep(
    mut stage: Stage,
) -> Result<()> {
    stage.deployment("other", 1).await?;
    interrupted(&mut stage, async |stage| {
        let other = json!({ "spec": { "scaleTargetRef": { "name": "other" } } });
        stage.merge(&stage.elasti_path("web"), &other).await?;
        // It was looked at, and found awake.
        stage
            .until("the other target is noted", &stage.private_path("web"), |private| {
                private["metadata"]["annotations"]["elasti.truefoundry.com/scale-target"]
                    .as_str()
                    .is_some_and(|note| note.ends_with("/other"))
            })
            .await;
        Ok(())
    })
    .await?;
    stage.operate().await?;
    stage.replicas("deployments/web", 1).await;
    stage.replicas("deployments/other", 1).await;
    stage.mode("web", "serve").await;
    stage.until("nothing is left of it", &stage.elasti_path("web"), |elasti| !noted(elasti)).await;
    stage.replicas("deployments/web", 1).await;
    stage.close().await
}

/// What was on its way when the operator ended comes when the next one has found the target awake.
async fn a_target_is_woken_though_its_elasti_service_was_deleted_and_the_operator_ended_while_it_put_it_to_sleep(
    mut stage: Stage,
) -> Result<()> {
    let sleeping = Sleeping::start(&mut stage).await?;
    stage.app("barrier", 0).await?;
    stage.mode("barrier", "proxy").await;
    stage.delete(&stage.elasti_path("web")).await?;
    // One that is deleted after it, and has more to be done for it, is gone meanwhile.
    stage.delete(&stage.elasti_path("barrier")).await?;
    stage.gone(&stage.elasti_path("barrier")).await;
    ensure!(stage.find(&stage.elasti_path("web")).await.is_some(), "it is kept until all is looked after");
    sleeping.kill().await?;

    let proxy = stage.proxy().await?;
    let mut settings = stage.settings();
    // Longer than it takes until it comes, also on a busy machine.
    settings.in_flight = Duration::from_secs(30);
    stage.operate_behind_as_said(&proxy, settings).await?;
    let scale = stage.path("apps/v1/deployments/web/scale");
    let is_read = |request: &Request| {
        request.verb() == Verb::Get && request.path == scale && request.ended_at.is_some()
    };
    // Once for the note, and once because it is deleted.
    eventually("it is found awake", SOON, async || (proxy.requests().count(is_read) >= 2).then_some(()))
        .await;
    let clients = stage.clients("web");
    // Its pods are gone before others are ready.
    stage.kubelet.delay(Duration::from_secs(4));
    stage.scale("deployments/web", 0).await?;
    stage.replicas("deployments/web", 1).await;
    stage.gone(&stage.elasti_path("web")).await;
    let (answered, lost) = clients.stop().await;
    assert!(lost.is_empty() && answered > 0, "{} of {answered} were lost: {lost:#?}", lost.len());
    stage.gone(&stage.slice_path("web")).await;
    stage.gone(&stage.private_path("web")).await;
    stage.replicas("deployments/web", 1).await;
    stage.close().await
}

async fn a_target_of_before_is_woken_however_long_the_server_fails(mut stage: Stage) -> Result<()> {
    stage.deployment("other", 1).await?;
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    stage.retire().await;
    // As one has left it that ended: the target is another one by now, and nothing else says that this one sleeps.
    let other = json!({ "metadata": { "annotations": { NOTE: "apps/v1/deployments/web@0" } },
        "spec": { "scaleTargetRef": { "name": "other" } } });
    stage.merge(&stage.elasti_path("web"), &other).await?;
    let nothing = json!({ "metadata": { "annotations": { "elasti.truefoundry.com/scale-target": null } } });
    stage.merge(&stage.private_path("web"), &nothing).await?;
    let proxy = stage.proxy().await?;
    let fault =
        proxy.on(Match::any().path_contains("/deployments/web/scale")).answer(Answer::internal_error());
    stage.operate_behind(&proxy).await?;
    met_once(&fault).await;
    let since = Instant::now();
    let is_late = async || (since.elapsed() > Duration::from_secs(2)).then_some(());
    eventually("it is later than anything could come", SOON, is_late).await;
    let tried = fault.applied();
    eventually("it is tried again", SOON, async || (fault.applied() > tried).then_some(())).await;
    assert!(noted(&stage.get(&stage.elasti_path("web")).await?), "it is not forgotten");
    proxy.heal();
    stage.replicas("deployments/web", 1).await;
    stage.until("nothing is left of it", &stage.elasti_path("web"), |elasti| !noted(elasti)).await;
    stage.close().await
}

/// One that sleeps, and an operator before that has left a note.
async fn asleep_with(stage: &mut Stage, target: (&str, &str, &str), note: &str) -> Result<()> {
    stage.service("web", json!({ "app": "web" })).await?;
    stage.elasti("web", "web", target).await?;
    stage.mode("web", "proxy").await;
    stage.retire().await;
    let note = json!({ "metadata": { "annotations": { NOTE: note } } });
    stage.merge(&stage.elasti_path("web"), &note).await?;
    Ok(())
}

async fn a_target_that_was_asked_for_meanwhile_is_woken(mut stage: Stage) -> Result<()> {
    stage.deployment("web", 0).await?;
    // It was noted when it had been woken at another time.
    asleep_with(&mut stage, ("apps/v1", "Deployment", "web"), "apps/v1/deployments/web@1").await?;
    stage.operate().await?;
    stage.replicas("deployments/web", 1).await;
    stage.mode("web", "serve").await;
    stage.until("nothing is left of it", &stage.elasti_path("web"), |elasti| !noted(elasti)).await;
    stage.close().await
}

async fn a_target_that_is_named_in_another_way_sleeps_on(mut stage: Stage) -> Result<()> {
    stage.stateful_set("web", 0).await?;
    asleep_with(&mut stage, ("apps/v1", "sts", "web"), "apps/v1/statefulsets/web@0").await?;
    stage.operate().await?;
    stage.until("nothing is left of it", &stage.elasti_path("web"), |elasti| !noted(elasti)).await;
    stage.replicas("statefulsets/web", 0).await;
    stage.close().await
}

async fn a_note_that_cannot_be_taken_away_is_said(mut stage: Stage) -> Result<()> {
    stage.deployment("web", 0).await?;
    asleep_with(&mut stage, ("apps/v1", "Deployment", "web"), "apps/v1/deployments/web@0").await?;
    let proxy = stage.proxy().await?;
    let path = stage.elasti_path("web");
    let patched = || Match::any().verb(Verb::Patch).path(path.clone());
    let rejected = proxy.on(patched()).answer(Answer::status(422, "Invalid", "spec.x: Required value"));
    stage.operate_behind(&proxy).await?;
    let said = stage.condition("web", "Ready", "False", "Rejected").await;
    assert!(said["message"].as_str().unwrap().contains("Required value"), "{said:#}");
    stage.event("web", "Rejected").await;
    proxy.on(patched()).answer(Answer::forbidden());
    rejected.remove();
    let said = stage.condition("web", "Ready", "False", "Forbidden").await;
    assert!(said["message"].as_str().unwrap().contains("patch elastiservices"), "{said:#}");
    // It does not go while something is to be looked after, and says so.
    stage.delete(&stage.elasti_path("web")).await?;
    stage.replicas("deployments/web", 1).await;
    assert!(stage.find(&stage.elasti_path("web")).await.is_some());
    proxy.heal();
    stage.gone(&stage.elasti_path("web")).await;
    stage.close().await
}

async fn a_target_that_is_still_the_same_sleeps_on_and_is_woken_when_it_is_asked_for(
    mut stage: Stage,
) -> Result<()> {
    interrupted(&mut stage, async |_| Ok(())).await?;
    stage.operate().await?;
    stage.until("nothing is left of it", &stage.elasti_path("web"), |elasti| !noted(elasti)).await;
    stage.sleeps("web", "deployments/web").await;
    assert_eq!(stage.ask("web").await?.status, 200);
    stage.mode("web", "serve").await;
    stage.close().await
}
