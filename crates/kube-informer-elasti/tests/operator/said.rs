//! What is said of what there is not, or may be old.

use std::time::Duration;

use anyhow::Result;
use kube_informer_testbed::proxy::{Answer, Match};
use serde_json::json;

use crate::harness::{Stage, on_both};

on_both! {
    a_target_that_is_gone_has_no_replicas,
    what_others_add_to_what_was_made_stays,
}

async fn a_target_that_is_gone_has_no_replicas(stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    let path = stage.elasti_path("web");
    stage.until("its replicas are told", &path, |elasti| elasti["status"]["replicas"] == 1).await;
    stage.delete(&stage.path("apps/v1/deployments/web")).await?;
    stage.condition("web", "TargetFound", "False", "NotFound").await;
    stage.until("nobody has any", &path, |elasti| elasti["status"]["replicas"].is_null()).await;
    // The same where the Service is missing, too.
    stage.app("db", 1).await?;
    let path = stage.elasti_path("db");
    stage.until("its replicas are told", &path, |elasti| elasti["status"]["replicas"] == 1).await;
    stage.delete(&stage.path("services/db")).await?;
    stage.condition("db", "ServiceFound", "False", "NotFound").await;
    stage.delete(&stage.path("apps/v1/deployments/db")).await?;
    stage.until("nobody has any", &path, |elasti| elasti["status"]["replicas"].is_null()).await;
    stage.condition("db", "TargetFound", "False", "NotFound").await;
    // And where there is no such kind.
    stage.app("kind", 1).await?;
    let path = stage.elasti_path("kind");
    stage.until("its replicas are told", &path, |elasti| elasti["status"]["replicas"] == 1).await;
    let unicorn = json!({ "apiVersion": "example.com/v9", "kind": "Unicorn" });
    stage.merge(&path, &json!({ "spec": { "scaleTargetRef": unicorn } })).await?;
    stage.condition("kind", "TargetFound", "False", "UnknownKind").await;
    stage.until("nobody has any", &path, |elasti| elasti["status"]["replicas"].is_null()).await;
    stage.close().await
}

async fn what_others_add_to_what_was_made_stays(mut stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    let owner = stage.get(&stage.path("services/web")).await?["metadata"]["uid"].clone();
    let theirs = json!({ "apiVersion": "v1", "kind": "Service", "name": "web", "uid": owner });
    for path in [stage.private_path("web"), stage.slice_path("web")] {
        let mut owners = stage.get(&path).await?["metadata"]["ownerReferences"].clone();
        owners.as_array_mut().unwrap().push(theirs.clone());
        let more = json!({ "metadata": { "labels": { "team": "shop" }, "ownerReferences": owners } });
        stage.merge(&path, &more).await?;
    }
    // Both are written once more, with what is ours.
    stage.resolver.scale(2).await?;
    stage.redirected("web", &stage.resolver.addresses()).await;
    let port = json!({ "spec": { "ports": [{ "name": "http", "port": 85, "targetPort": 8080 }] } });
    stage.merge(&stage.path("services/web"), &port).await?;
    stage
        .until("the port is copied", &stage.private_path("web"), |private| {
            private["spec"]["ports"][0]["port"] == 85
        })
        .await;
    for path in [stage.private_path("web"), stage.slice_path("web")] {
        let object = stage.get(&path).await?;
        assert_eq!(object["metadata"]["labels"]["team"], "shop", "{object:#}");
        let owners = object["metadata"]["ownerReferences"].as_array().unwrap();
        let kinds: Vec<_> = owners.iter().filter_map(|owner| owner["kind"].as_str()).collect();
        assert_eq!(kinds, ["ElastiService", "Service"], "{object:#}");
    }
    stage.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_be_old_is_said_where_it_lasts() -> Result<()> {
    let mut stage = Stage::embedded().await?;
    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    let proxy = stage.operate_through_proxy().await?;
    // When it has looked at what is new, it knows all pods.
    stage.app("new", 1).await?;
    stage.mode("new", "serve").await;
    let pods = || Match::any().path_contains("/pods");
    let fault = proxy.on(pods()).answer(Answer::internal_error());
    proxy.cut_open(pods()).await;
    let said = stage.condition("web", "TargetFound", "Unknown", "Stale").await;
    assert!(said["message"].as_str().unwrap().contains("its pods"), "{said:#}");
    stage.condition("web", "Ready", "False", "Stale").await;
    stage.event("web", "Stale").await;
    assert_eq!(stage.get(&stage.elasti_path("web")).await?["status"]["mode"], "serve", "it stays as it was");
    fault.remove();
    stage.condition("web", "TargetFound", "True", "Found").await;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_without_an_answer_is_said() -> Result<()> {
    let mut stage = Stage::embedded().await?;
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    stage.retire().await;
    // The pods that are woken do not match the Service any more: nobody answers for it.
    stage.merge(&stage.path("services/web"), &json!({ "spec": { "selector": { "app": "nobody" } } })).await?;
    let mut settings = stage.settings();
    settings.restore_deadline = Duration::from_secs(1);
    // Long enough to be looked at.
    settings.linger = Duration::from_secs(5);
    stage.operate_as_said(settings).await?;
    stage.delete(&stage.elasti_path("web")).await?;
    let said = stage.condition("web", "Ready", "False", "RestoreTimedOut").await;
    assert!(said["message"].as_str().unwrap().contains("pods did not answer"), "{said:#}");
    stage.event("web", "RestoreTimedOut").await;
    stage.gone(&stage.elasti_path("web")).await;
    stage.replicas("deployments/web", 1).await;
    stage.close().await
}
