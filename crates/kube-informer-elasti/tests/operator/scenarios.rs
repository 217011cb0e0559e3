//! What users do with ElastiServices, and what they see: the scenarios that KubeElasti is tested by, from their behaviour.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::harness::{Stage, addresses, on_both, spec};

on_both! {
    a_target_at_zero_is_redirected,
    requests_wake_it_again_and_again,
    a_target_that_is_scaled_up_by_hand_is_served,
    the_private_service_follows_the_public_one,
    a_deleted_one_leaves_nothing_and_its_target_awake,
    the_slice_follows_the_resolver,
    a_target_is_served_when_it_is_ready_and_not_before,
    a_stateful_set_sleeps_and_wakes,
}

async fn a_target_at_zero_is_redirected(stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    assert!(stage.find(&stage.slice_path("web")).await.is_none(), "the pods answer");
    stage.scale("deployments/web", 0).await?;
    let elasti = stage.mode("web", "proxy").await;
    assert_eq!(elasti["status"]["replicas"], 0);
    assert_eq!(elasti["status"]["observedGeneration"], elasti["metadata"]["generation"]);
    let slice = stage.find(&stage.slice_path("web")).await.unwrap();
    assert_eq!(addresses(&slice), stage.resolver.addresses());
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.condition("web", "Redirected", "True", "TargetNotReady").await;
    stage.event("web", "SwitchedToProxy").await;
    stage.close().await
}

async fn requests_wake_it_again_and_again(stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    for _ in 0..4 {
        stage.serves("web").await;
        let before = stage.get(&stage.path("pods")).await?;
        let is_of_before = |pod: &str| {
            before["items"].as_array().into_iter().flatten().any(|each| each["metadata"]["name"] == pod)
        };
        stage.scale("deployments/web", 0).await?;
        stage.sleeps("web", "deployments/web").await;
        let kept = stage.resolver.kept();
        for _ in 0..5 {
            let answer = stage.ask("web").await?;
            assert_eq!(answer.status, 200, "{answer:?}");
            assert!(answer.body.starts_with("web-"), "a pod answered: {answer:?}");
            assert!(!is_of_before(&answer.body), "one that was woken answered: {answer:?}");
        }
        assert!(stage.resolver.kept() > kept, "it was the resolver that woke it");
        stage.replicas("deployments/web", 1).await;
    }
    let elasti = stage.mode("web", "serve").await;
    assert!(elasti["status"]["lastScaledUpTime"].is_string(), "{elasti:#}");
    stage.event("web", "SuccessToScale").await;
    stage.close().await
}

async fn a_target_that_is_scaled_up_by_hand_is_served(stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    stage.scale("deployments/web", 1).await?;
    stage.mode("web", "serve").await;
    stage.gone(&stage.slice_path("web")).await;
    stage.condition("web", "Redirected", "False", "PodsReady").await;
    stage.close().await
}

async fn the_private_service_follows_the_public_one(stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    let public = stage.path("services/web");
    let change = json!({ "spec": {
        "ports": [{ "name": "http", "port": 85, "targetPort": 1111 }, { "name": "more", "port": 86, "targetPort": "m" }],
        "selector": { "app": "web", "extra": "yes" },
    } });
    stage.merge(&public, &change).await?;
    let private = stage
        .until("the private Service has the ports", &stage.private_path("web"), |private| {
            private["spec"]["ports"][1]["port"] == 86
        })
        .await;
    assert_eq!(private["spec"]["ports"][0]["port"], 85);
    assert_eq!(private["spec"]["ports"][0]["targetPort"], 1111);
    assert_eq!(private["spec"]["selector"], json!({ "app": "web", "extra": "yes" }));
    // The slice knows them, too.
    let slice = stage
        .until("the slice has the ports", &stage.slice_path("web"), |slice| {
            slice["ports"][1]["name"] == "more"
        })
        .await;
    assert!(slice["ports"].as_array().unwrap().iter().all(|port| port["port"] == 8012), "{slice:#}");
    // What is taken away is taken away.
    stage.merge(&public, &json!({ "spec": { "selector": { "extra": null } } })).await?;
    let follows = |private: &Value| private["spec"]["selector"] == json!({ "app": "web" });
    stage.until("the selector is shorter", &stage.private_path("web"), follows).await;
    stage.close().await
}

async fn a_deleted_one_leaves_nothing_and_its_target_awake(stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.merge(&stage.elasti_path("web"), &json!({ "spec": { "minTargetReplicas": 2 } })).await?;
    stage.mode("web", "proxy").await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.delete(&stage.elasti_path("web")).await?;
    stage.gone(&stage.elasti_path("web")).await;
    stage.gone(&stage.private_path("web")).await;
    stage.gone(&stage.slice_path("web")).await;
    stage.replicas("deployments/web", 2).await;
    assert_eq!(stage.ask("web").await?.status, 200, "the pods answer");
    assert!(stage.operator().directory().is_empty());
    // One that serves goes without more ado.
    stage.elasti("web", "web", ("apps/v1", "deployments", "web")).await?;
    stage.mode("web", "serve").await;
    stage.delete(&stage.elasti_path("web")).await?;
    stage.gone(&stage.elasti_path("web")).await;
    stage.gone(&stage.private_path("web")).await;
    stage.close().await
}

async fn the_slice_follows_the_resolver(mut stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    assert!(stage.find(&stage.private_path("web")).await.is_some());
    for count in [2, 3, 1] {
        stage.resolver.scale(count).await?;
        stage.redirected("web", &stage.resolver.addresses()).await;
    }
    // Those that are not ready are not led to; the slice stays.
    stage.resolver.unready().await?;
    stage.redirected("web", &[]).await;
    let said = stage.condition("web", "Redirected", "False", "ResolverUnavailable").await;
    assert!(said["message"].as_str().unwrap().contains("see that the resolver runs"), "{said:#}");
    stage.event("web", "ResolverUnavailable").await;
    stage.resolver.scale(1).await?;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.close().await
}

async fn a_target_is_served_when_it_is_ready_and_not_before(stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    if stage.is_real() {
        stage.kubelet.ready(false);
        stage.scale("deployments/web", 1).await?;
        let pods = stage.path("pods");
        let runs = |list: &Value| list["items"][0]["status"]["phase"] == "Running";
        stage.until("a pod runs", &pods, runs).await;
        let what = "the operator has seen the replica, and waits for it";
        let waits = |elasti: &Value| elasti["status"]["replicas"] == 1 && elasti["status"]["mode"] == "proxy";
        stage.until(what, &stage.elasti_path("web"), waits).await;
        stage.redirected("web", &stage.resolver.addresses()).await;
        stage.kubelet.release().await?;
    }
    stage.kubelet.delay(Duration::from_millis(300));
    stage.scale("deployments/web", 2).await?;
    stage.replicas("deployments/web", 2).await;
    stage.mode("web", "serve").await;
    stage.close().await
}

async fn a_stateful_set_sleeps_and_wakes(stage: Stage) -> Result<()> {
    stage.stateful_set("db", 1).await?;
    stage.service("db", json!({ "app": "db" })).await?;
    // Without a number of replicas, it is woken to one.
    let mut without = spec("db", ("apps/v1", "StatefulSet", "db"));
    without.as_object_mut().unwrap().remove("minTargetReplicas");
    stage.elasti_of("db", &without).await?;
    stage.serves("db").await;
    stage.scale("statefulsets/db", 0).await?;
    stage.sleeps("db", "statefulsets/db").await;
    for _ in 0..3 {
        assert_eq!(stage.ask("db").await?.body, "db-0");
    }
    stage.replicas("statefulsets/db", 1).await;
    stage.mode("db", "serve").await;
    stage.close().await
}
