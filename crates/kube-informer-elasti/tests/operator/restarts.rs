//! Operators come and go: whatever was in between is made good.

use anyhow::Result;
use serde_json::json;

use crate::harness::{Stage, on_both};

on_both! {
    a_restart_finds_what_happened_meanwhile,
    a_crash_in_the_middle_of_switches_is_made_good,
    one_that_was_deleted_meanwhile_is_cleaned_up_after,
    a_namespace_can_be_deleted_with_everything_in_it,
}

async fn a_restart_finds_what_happened_meanwhile(mut stage: Stage) -> Result<()> {
    stage.app("up", 0).await?;
    stage.app("down", 1).await?;
    stage.mode("up", "proxy").await;
    stage.mode("down", "serve").await;
    stage.retire().await;
    stage.scale("deployments/up", 1).await?;
    stage.scale("deployments/down", 0).await?;
    stage.replicas("deployments/up", 1).await;
    stage.replicas("deployments/down", 0).await;
    stage.operate().await?;
    stage.mode("up", "serve").await;
    stage.gone(&stage.slice_path("up")).await;
    stage.mode("down", "proxy").await;
    stage.redirected("down", &stage.resolver.addresses()).await;
    // And once more with nothing new: nothing is written.
    let before = (stage.get(&stage.elasti_path("up")).await?, stage.get(&stage.slice_path("down")).await?);
    stage.retire().await;
    stage.operate().await?;
    stage.app("third", 0).await?;
    stage.mode("third", "proxy").await;
    let after = (stage.get(&stage.elasti_path("up")).await?, stage.get(&stage.slice_path("down")).await?);
    assert_eq!(after, before);
    assert_eq!(stage.ask("down").await?.status, 200);
    stage.close().await
}

async fn a_crash_in_the_middle_of_switches_is_made_good(mut stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    let mut replicas = 1;
    for _ in 0..4 {
        replicas = 1 - replicas;
        stage.scale("deployments/web", replicas).await?;
        // Somewhere in the middle of what follows from that.
        tokio::task::yield_now().await;
        stage.crash().await;
        stage.operate().await?;
    }
    stage.mode("web", "serve").await;
    stage.gone(&stage.slice_path("web")).await;
    stage.scale("deployments/web", 0).await?;
    stage.crash().await;
    stage.operate().await?;
    stage.mode("web", "proxy").await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    assert_eq!(stage.ask("web").await?.status, 200);
    stage.close().await
}

async fn one_that_was_deleted_meanwhile_is_cleaned_up_after(mut stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.retire().await;
    stage.delete(&stage.elasti_path("web")).await?;
    let kept = stage.get(&stage.elasti_path("web")).await?;
    assert_eq!(kept["metadata"]["finalizers"], json!(["elasti.truefoundry.com/finalizer"]));
    stage.operate().await?;
    stage.gone(&stage.elasti_path("web")).await;
    stage.gone(&stage.private_path("web")).await;
    stage.gone(&stage.slice_path("web")).await;
    stage.replicas("deployments/web", 1).await;
    stage.close().await
}

async fn a_namespace_can_be_deleted_with_everything_in_it(mut stage: Stage) -> Result<()> {
    stage.app("asleep", 0).await?;
    stage.app("awake", 1).await?;
    stage.mode("asleep", "proxy").await;
    stage.mode("awake", "serve").await;
    let namespace = format!("/api/v1/namespaces/{}", stage.namespace);
    stage.delete(&namespace).await?;
    // Nobody can answer there any more, and nobody waits for that.
    stage.gone(&stage.elasti_path("asleep")).await;
    stage.gone(&stage.elasti_path("awake")).await;
    stage.gone(&namespace).await;
    stage.retire().await;
    Ok(())
}
