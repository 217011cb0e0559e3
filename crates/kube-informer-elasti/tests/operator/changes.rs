//! What changes while the operator runs: targets come and go, specs name others, two want the same, definitions go.

use std::time::Duration;

use anyhow::Result;
use kube_informer_elasti::names;
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::control_plane::Options;
use kube_informer_testbed::require;
use serde_json::{Value, json};

use crate::avoided::Story;
use crate::harness::{Stage, define, on_both, undefine};

on_both! {
    a_target_may_come_late_go_and_come_again,
    a_service_may_come_late_go_and_come_again,
    what_was_made_for_another_service_goes,
    a_target_that_is_not_named_any_more_is_woken,
    what_is_deleted_in_the_middle_of_a_switch_does_not_come_back,
    of_two_that_name_one_service_the_older_acts,
    the_younger_takes_over_without_a_gap,
}

async fn a_target_may_come_late_go_and_come_again(stage: Stage) -> Result<()> {
    stage.service("web", json!({ "app": "web" })).await?;
    stage.elasti("web", "web", ("apps/v1", "deployments", "web")).await?;
    let said = stage.condition("web", "TargetFound", "False", "NotFound").await;
    assert!(
        said["message"].as_str().unwrap().contains("create it, or correct spec.scaleTargetRef"),
        "{said:#}"
    );
    stage.event("web", "NotFound").await;
    stage.deployment("web", 1).await?;
    stage.condition("web", "TargetFound", "True", "Found").await;
    stage.serves("web").await;
    let deployment = stage.path("apps/v1/deployments/web");
    stage.delete(&deployment).await?;
    // What asks meanwhile is kept, for it comes again.
    stage.mode("web", "proxy").await;
    stage.condition("web", "TargetFound", "False", "NotFound").await;
    stage.gone(&deployment).await;
    stage.deployment("web", 0).await?;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.sleeps("web", "deployments/web").await;
    assert_eq!(stage.ask("web").await?.status, 200);
    stage.mode("web", "serve").await;
    stage.close().await
}

async fn a_service_may_come_late_go_and_come_again(stage: Stage) -> Result<()> {
    stage.deployment("web", 0).await?;
    stage.elasti("web", "web", ("apps/v1", "Deployment", "web")).await?;
    let said = stage.condition("web", "ServiceFound", "False", "NotFound").await;
    assert!(said["message"].as_str().unwrap().contains("create it, or correct spec.service"), "{said:#}");
    stage.service("web", json!({ "app": "web" })).await?;
    stage.condition("web", "ServiceFound", "True", "Found").await;
    stage.mode("web", "proxy").await;
    stage.delete(&stage.path("services/web")).await?;
    stage.condition("web", "ServiceFound", "False", "NotFound").await;
    stage.service("web", json!({ "app": "web" })).await?;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    assert_eq!(stage.ask("web").await?.status, 200);
    stage.mode("web", "serve").await;
    stage.close().await
}

/// What asks for the Service of before is kept until its pods answer, though the target is the same.
async fn what_was_made_for_another_service_goes(mut stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    for name in ["second", "third"] {
        stage.service(name, json!({ "app": "web" })).await?;
    }
    stage.kubelet.delay(Duration::from_secs(2));
    stage.merge(&stage.elasti_path("web"), &json!({ "spec": { "service": "second" } })).await?;
    nothing_is_lost_of(&stage, "web").await;
    stage.gone(&stage.private_path("web")).await;
    stage.mode("web", "serve").await;
    assert!(stage.operator().directory().lookup(&stage.namespace, "web").is_none());
    let error = stage.operator().wake(&stage.namespace, "web").await.unwrap_err().to_string();
    assert!(error.contains("no ElastiService names"), "{error}");

    // The same while nobody is there.
    stage.scale("deployments/web", 0).await?;
    stage.mode("web", "proxy").await;
    stage.redirected("second", &stage.resolver.addresses()).await;
    stage.retire().await;
    stage.merge(&stage.elasti_path("web"), &json!({ "spec": { "service": "third" } })).await?;
    stage.operate().await?;
    nothing_is_lost_of(&stage, "second").await;
    stage.gone(&stage.private_path("second")).await;
    assert_eq!(stage.ask("third").await?.status, 200);
    stage.close().await
}

/// Somebody asks for a Service until it is not redirected any more, and pods answer.
async fn nothing_is_lost_of(stage: &Stage, service: &str) {
    let clients = stage.clients(service);
    stage.replicas("deployments/web", 1).await;
    stage.gone(&stage.slice_path(service)).await;
    let (answered, lost) = clients.stop().await;
    assert!(lost.is_empty() && answered > 0, "{} of {answered} were lost: {lost:#?}", lost.len());
}

async fn a_target_that_is_not_named_any_more_is_woken(mut stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    for name in ["second", "third"] {
        stage.deployment(name, 0).await?;
    }
    let name = |name: &str| json!({ "spec": { "scaleTargetRef": { "name": name }, "minTargetReplicas": 2 } });
    stage.merge(&stage.elasti_path("web"), &name("second")).await?;
    stage.replicas("deployments/web", 2).await;
    let noted = |name: &'static str| {
        move |private: &Value| {
            private["metadata"]["annotations"]["elasti.truefoundry.com/scale-target"]
                .as_str()
                .is_some_and(|note| note.ends_with(name))
        }
    };
    stage.until("the target is noted", &stage.private_path("web"), noted("/second")).await;
    stage.operator().wake(&stage.namespace, "web").await?;
    stage.replicas("deployments/second", 2).await;
    stage.scale("deployments/second", 0).await?;
    let elasti = |elasti: &Value| elasti["status"]["replicas"] == 0;
    stage.until("the second is asleep", &stage.elasti_path("web"), elasti).await;

    // The same while nobody is there.
    stage.retire().await;
    stage.merge(&stage.elasti_path("web"), &name("third")).await?;
    stage.operate().await?;
    stage.replicas("deployments/second", 2).await;
    stage.until("the target is noted", &stage.private_path("web"), noted("/third")).await;
    stage.close().await
}

async fn what_is_deleted_in_the_middle_of_a_switch_does_not_come_back(stage: Stage) -> Result<()> {
    stage.app("web", 1).await?;
    for round in 0..3 {
        stage.mode("web", "serve").await;
        let story = Story::follow(&stage).await?;
        // Both at once: the switch and the end are one after the other, whichever is first.
        let elasti = stage.elasti_path("web");
        let (scaled, deleted) = tokio::join!(stage.scale("deployments/web", 0), stage.delete(&elasti));
        scaled.and(deleted)?;
        stage.gone(&stage.elasti_path("web")).await;
        // Whatever was still to be done for it has been done by now.
        let barrier = format!("barrier-{round}");
        stage.app(&barrier, 0).await?;
        stage.mode(&barrier, "proxy").await;
        let [_, private] = story.nothing_comes_back("web", &barrier).await?;
        assert!(private, "it never went");
        stage.gone(&stage.slice_path("web")).await;
        stage.gone(&stage.private_path("web")).await;
        stage.scale("deployments/web", 1).await?;
        stage.replicas("deployments/web", 1).await;
        stage.elasti("web", "web", ("apps/v1", "Deployment", "web")).await?;
    }
    stage.close().await
}

async fn of_two_that_name_one_service_the_older_acts(stage: Stage) -> Result<()> {
    stage.app("a-web", 0).await?;
    stage.mode("a-web", "proxy").await;
    stage.deployment("z", 0).await?;
    stage.elasti("z-web", "a-web", ("apps/v1", "Deployment", "z")).await?;
    let said = stage.condition("z-web", "Ready", "False", "Conflict").await;
    assert!(said["message"].as_str().unwrap().contains("a-web is older"), "{said:#}");
    stage.event("z-web", "Conflict").await;
    assert_eq!(stage.ask("a-web").await?.status, 200);
    stage.replicas("deployments/a-web", 1).await;
    stage.replicas("deployments/z", 0).await;
    // The one that does nothing takes nothing with it.
    stage.delete(&stage.elasti_path("z-web")).await?;
    stage.gone(&stage.elasti_path("z-web")).await;
    stage.replicas("deployments/z", 0).await;
    stage.mode("a-web", "serve").await;
    assert!(stage.find(&stage.private_path("a-web")).await.is_some());
    stage.close().await
}

async fn the_younger_takes_over_without_a_gap(stage: Stage) -> Result<()> {
    stage.app("a-web", 0).await?;
    stage.mode("a-web", "proxy").await;
    stage.redirected("a-web", &stage.resolver.addresses()).await;
    stage.elasti("z-web", "a-web", ("apps/v1", "Deployment", "a-web")).await?;
    stage.condition("z-web", "Ready", "False", "Conflict").await;
    let (private, slice) = (stage.private_path("a-web"), stage.slice_path("a-web"));
    let before = [stage.get(&private).await?, stage.get(&slice).await?];
    stage.delete(&stage.elasti_path("a-web")).await?;
    stage.gone(&stage.elasti_path("a-web")).await;
    stage.mode("z-web", "proxy").await;
    stage.condition("z-web", "Ready", "True", "Reconciled").await;
    for (path, before) in [&private, &slice].into_iter().zip(&before) {
        let owned = |object: &Value| object["metadata"]["ownerReferences"][0]["name"] == "z-web";
        let now = stage.until("the younger owns it", path, owned).await;
        assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"], "it was handed over, not made anew");
    }
    assert_eq!(stage.ask("a-web").await?.status, 200);
    stage.mode("z-web", "serve").await;
    stage.close().await
}

/// Not on a server that others use: the definition is everybody's.
async fn a_definition_may_go_and_come_again(stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    undefine(&stage).await?;
    // With it goes what it defined, which is cleaned up after.
    stage.replicas("deployments/web", 1).await;
    stage.gone(&stage.private_path("web")).await;
    stage.gone(&stage.slice_path("web")).await;
    stage
        .gone(&format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}",
            kube_informer_elasti::crd::NAME
        ))
        .await;
    define(&stage).await?;
    stage.elasti("web", "web", ("apps/v1", "Deployment", "web")).await?;
    stage.mode("web", "serve").await;
    stage.scale("deployments/web", 0).await?;
    stage.mode("web", "proxy").await;
    assert_eq!(stage.ask("web").await?.status, 200);
    assert!(stage.find(&stage.path(&format!("services/{}", names::private_service("web")))).await.is_some());
    stage.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_may_go_and_come_again_on_the_embedded_server() -> Result<()> {
    a_definition_may_go_and_come_again(Stage::embedded().await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_may_go_and_come_again_on_the_real_server() {
    let own = require!(Cluster::own(Options::new().controller_manager(true)).await);
    let stage = Stage::real((*own).clone(), "a_definition").await.unwrap();
    a_definition_may_go_and_come_again(stage).await.unwrap();
}
