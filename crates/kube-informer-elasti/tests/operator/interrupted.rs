//! An operator that ends between the scale-down and the look after it leaves nothing asleep for good.

use anyhow::Result;
use kube_informer_testbed::proxy::{Match, Verb};
use serde_json::{Value, json};

use crate::harness::{Stage, on_embedded};

on_embedded! {
    a_target_of_before_is_woken_though_the_operator_ended_while_it_put_it_to_sleep,
    a_target_is_woken_though_its_elasti_service_was_deleted_and_the_operator_ended_while_it_put_it_to_sleep,
    a_target_that_is_still_the_same_sleeps_on_and_is_woken_when_it_is_asked_for,
}

const NOTE: &str = "elasti.truefoundry.com/putting-to-sleep";

fn noted(elasti: &Value) -> bool {
    elasti["metadata"]["annotations"][NOTE].is_string()
}

/// The operator scales the target to zero, and ends before it is told so. In between, something happens.
async fn interrupted(stage: &mut Stage, meanwhile: impl AsyncFnOnce(&Stage) -> Result<()>) -> Result<()> {
    stage.app("web", 2).await?;
    stage.mode("web", "serve").await;
    let proxy = stage.operate_through_proxy().await?;
    stage.app("barrier", 0).await?;
    stage.mode("barrier", "proxy").await;
    let scaled = || Match::any().verb(Verb::Update).path_contains("/web/scale");
    let unanswered = proxy.on(scaled()).once().stall_after_bytes(0);
    let stalled = proxy.on(scaled()).once().stall();
    let (operator, namespace) = (stage.operator().clone(), stage.namespace.clone());
    let sleep = tokio::spawn(async move { operator.put_to_sleep(&namespace, "web").await });
    stalled.wait_applied(1).await;
    let elasti = stage.get(&stage.elasti_path("web")).await?;
    assert_eq!(
        elasti["metadata"]["annotations"][NOTE], "apps/v1/deployments/web",
        "before anything is scaled"
    );
    meanwhile(stage).await?;
    stalled.release();
    let deployment = stage.path("apps/v1/deployments/web");
    stage.until("it is scaled", &deployment, |web| web["spec"]["replicas"] == 0).await;
    // Nobody reconciles any more when the hold ends.
    stage.crash().await;
    sleep.abort();
    drop(sleep.await);
    drop((unanswered, proxy));
    Ok(())
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

async fn a_target_is_woken_though_its_elasti_service_was_deleted_and_the_operator_ended_while_it_put_it_to_sleep(
    mut stage: Stage,
) -> Result<()> {
    interrupted(&mut stage, async |stage| {
        stage.delete(&stage.elasti_path("web")).await?;
        // One that is deleted after it, and has more to be done for it, is gone meanwhile.
        stage.delete(&stage.elasti_path("barrier")).await?;
        stage.gone(&stage.elasti_path("barrier")).await;
        assert!(
            stage.find(&stage.elasti_path("web")).await.is_some(),
            "it is kept until all is looked after"
        );
        Ok(())
    })
    .await?;
    stage.operate().await?;
    stage.replicas("deployments/web", 1).await;
    stage.gone(&stage.elasti_path("web")).await;
    stage.gone(&stage.slice_path("web")).await;
    stage.gone(&stage.private_path("web")).await;
    stage.replicas("deployments/web", 1).await;
    stage.close().await
}

async fn a_target_that_is_still_the_same_sleeps_on_and_is_woken_when_it_is_asked_for(
    mut stage: Stage,
) -> Result<()> {
    interrupted(&mut stage, async |_| Ok(())).await?;
    stage.operate().await?;
    stage.mode("web", "proxy").await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.until("nothing is left of it", &stage.elasti_path("web"), |elasti| !noted(elasti)).await;
    stage.replicas("deployments/web", 0).await;
    assert_eq!(stage.ask("web").await?.status, 200);
    stage.mode("web", "serve").await;
    stage.close().await
}
