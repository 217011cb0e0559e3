//! What is written, and what is not: only what is needed, with nothing of others in it, and nothing twice.

use std::time::Duration;

use anyhow::Result;
use kube_informer_elasti::names;
use serde_json::{Value, json};

use crate::harness::{Stage, addresses, on_both, spec};

on_both! {
    what_nothing_happens_to_is_not_written,
    a_private_service_has_nothing_of_its_public_ones_place_in_the_cluster,
    a_headless_service_stays_headless,
    what_somebody_deletes_or_edits_is_made_anew,
    objects_of_an_operator_before_are_taken_over,
    what_belongs_to_somebody_else_is_left_alone,
    what_is_not_acted_on_is_said_and_kept,
}

fn versions(objects: &[Value]) -> Vec<&Value> {
    objects.iter().map(|object| &object["metadata"]["resourceVersion"]).collect()
}

async fn what_nothing_happens_to_is_not_written(stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.app("other", 1).await?;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.mode("other", "serve").await;
    stage.replicas("deployments/other", 1).await;
    let all = async || {
        let mut all = Vec::new();
        for path in [
            stage.elasti_path("web"),
            stage.elasti_path("other"),
            stage.private_path("web"),
            stage.private_path("other"),
            stage.slice_path("web"),
        ] {
            all.push(stage.get(&path).await?);
        }
        anyhow::Ok(all)
    };
    let before = all().await?;
    // Everybody is looked at, again and again: the resolver's endpoints change what they say, and not who is ready.
    for round in 0..3 {
        let touch = json!({ "metadata": { "annotations": { "touched": format!("{round}") } } });
        stage.merge(&stage.path("services/web"), &touch).await?;
        stage.merge(&stage.path("apps/v1/deployments/other"), &touch).await?;
        stage.merge(&stage.elasti_path("web"), &touch).await?;
        stage.merge(&stage.path("discovery.k8s.io/v1/endpointslices/resolver-1"), &touch).await?;
    }
    // What comes after all that has been looked at after it.
    stage.app("third", 0).await?;
    stage.mode("third", "proxy").await;
    let after = all().await?;
    let touched = stage.get(&stage.elasti_path("web")).await?;
    assert_eq!(versions(&after)[1..], versions(&before)[1..]);
    assert_eq!(touched["status"], before[0]["status"]);
    stage.close().await
}

async fn a_private_service_has_nothing_of_its_public_ones_place_in_the_cluster(stage: Stage) -> Result<()> {
    stage.deployment("web", 0).await?;
    let public = json!({
        "metadata": { "name": "web", "labels": { "app": "web", "chart": "web-1" }, "annotations": { "cloud": "lb" } },
        "spec": { "type": "LoadBalancer", "selector": { "app": "web" }, "publishNotReadyAddresses": true, "ports": [
            { "name": "http", "port": 80, "targetPort": 8080 },
            { "name": "dns", "port": 53, "protocol": "UDP" },
        ] },
    });
    stage.post(&stage.path("services"), &public).await?;
    stage.elasti("web", "web", ("apps/v1", "Deployment", "web")).await?;
    stage.mode("web", "proxy").await;
    let private = stage.find(&stage.private_path("web")).await.unwrap();
    assert_eq!(private["spec"]["type"], "ClusterIP");
    assert_eq!(
        private["metadata"]["labels"],
        json!({ "app.kubernetes.io/managed-by": "kube-informer-elasti" })
    );
    let owner = &private["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["name"], &owner["controller"]),
        (&json!("ElastiService"), &json!("web"), &json!(true))
    );
    assert!(private["spec"]["publishNotReadyAddresses"].is_null());
    let ports = private["spec"]["ports"].as_array().unwrap();
    assert!(ports.len() == 2 && ports.iter().all(|port| port["nodePort"].is_null()), "{private:#}");
    // What cannot be kept is not redirected, and that is said.
    let slice = stage.find(&stage.slice_path("web")).await.unwrap();
    assert_eq!(slice["ports"].as_array().unwrap().len(), 1, "{slice:#}");
    assert_eq!(slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"], "kube-informer-elasti");
    let said = stage.condition("web", "Redirected", "True", "TargetNotReady").await;
    assert!(said["message"].as_str().unwrap().contains("53/UDP"), "{said:#}");
    stage.close().await
}

async fn a_headless_service_stays_headless(stage: Stage) -> Result<()> {
    stage.stateful_set("db", 0).await?;
    let spec = json!({ "clusterIP": "None", "selector": { "app": "db" }, "ports": [{ "port": 5432 }] });
    stage.post(&stage.path("services"), &json!({ "metadata": { "name": "db" }, "spec": spec })).await?;
    stage.elasti("db", "db", ("apps/v1", "StatefulSet", "db")).await?;
    stage.condition("db", "Redirected", "False", "Headless").await;
    let private = stage.find(&stage.private_path("db")).await.unwrap();
    assert_eq!(private["spec"]["clusterIP"], "None");
    // Made anew with an address, it has a private one with an address.
    stage.delete(&stage.path("services/db")).await?;
    stage.service("db", json!({ "app": "db" })).await?;
    let has_address = |private: &Value| private["spec"]["clusterIP"] != "None";
    stage.until("the private one has an address, too", &stage.private_path("db"), has_address).await;
    stage.mode("db", "proxy").await;
    assert_eq!(stage.ask("db").await?.status, 200);
    stage.close().await
}

async fn what_somebody_deletes_or_edits_is_made_anew(stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    let (private, slice) = (stage.private_path("web"), stage.slice_path("web"));
    for path in [&private, &slice] {
        let before = stage.until("it is there", path, |_| true).await["metadata"]["uid"].clone();
        stage.delete(path).await?;
        stage.until("it is made anew", path, |now| now["metadata"]["uid"] != before).await;
    }
    stage.merge(&slice, &json!({ "endpoints": [] })).await?;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.merge(&private, &json!({ "spec": { "selector": { "app": "other" } } })).await?;
    let mended = |private: &Value| private["spec"]["selector"] == json!({ "app": "web" });
    stage.until("the selector is mended", &private, mended).await;
    stage.close().await
}

async fn objects_of_an_operator_before_are_taken_over(mut stage: Stage) -> Result<()> {
    stage.retire().await;
    stage.deployment("asleep", 0).await?;
    stage.deployment("awake", 1).await?;
    stage.replicas("deployments/awake", 1).await;
    for name in ["asleep", "awake"] {
        stage.service(name, json!({ "app": name })).await?;
        stage.elasti(name, name, ("apps/v1", "deployments", name)).await?;
        // As KubeElasti leaves them: a slice that nobody owns, of a resolver that is long gone; a copy of the Service.
        let slice = json!({
            "metadata": { "name": names::resolver_slice(name), "labels": { "kubernetes.io/service-name": name } },
            "addressType": "IPv4", "ports": [{ "name": "http", "port": 8012, "protocol": "TCP" }],
            "endpoints": [{ "addresses": ["10.9.9.9"] }],
        });
        stage.post(&stage.path("discovery.k8s.io/v1/endpointslices"), &slice).await?;
        let private = json!({
            "metadata": { "name": names::private_service(name), "labels": { "app": name } },
            "spec": { "selector": { "app": "old" }, "ports": [{ "name": "old", "port": 1 }] },
        });
        stage.post(&stage.path("services"), &private).await?;
    }
    stage.operate().await?;
    stage.redirected("asleep", &stage.resolver.addresses()).await;
    stage.mode("asleep", "proxy").await;
    stage.mode("awake", "serve").await;
    stage.gone(&stage.slice_path("awake")).await;
    for name in ["asleep", "awake"] {
        let private = stage.find(&stage.private_path(name)).await.unwrap();
        assert_eq!(private["spec"]["selector"], json!({ "app": name }));
        assert_eq!(private["spec"]["ports"][0]["name"], "http");
        assert_eq!(private["metadata"]["ownerReferences"][0]["kind"], "ElastiService");
    }
    stage.close().await
}

async fn what_belongs_to_somebody_else_is_left_alone(stage: Stage) -> Result<()> {
    stage.deployment("web", 0).await?;
    let owner = stage.get(&stage.path("apps/v1/deployments/web")).await?["metadata"]["uid"].clone();
    let taken = json!({
        "metadata": { "name": names::private_service("web"), "ownerReferences": [
            { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner, "controller": true }] },
        "spec": { "selector": { "app": "theirs" }, "ports": [{ "port": 1 }] },
    });
    stage.post(&stage.path("services"), &taken).await?;
    stage.service("web", json!({ "app": "web" })).await?;
    stage.elasti("web", "web", ("apps/v1", "Deployment", "web")).await?;
    let said = stage.condition("web", "Ready", "False", "NameTaken").await;
    assert!(said["message"].as_str().unwrap().contains("belongs to somebody else"), "{said:#}");
    stage.event("web", "NameTaken").await;
    let theirs = stage.find(&stage.private_path("web")).await.unwrap();
    assert_eq!(theirs["spec"]["selector"], json!({ "app": "theirs" }));
    let elasti = stage.get(&stage.elasti_path("web")).await?;
    assert!(elasti["status"]["mode"].is_null(), "no status says what was not done: {elasti:#}");
    // When they are gone, it is tried again.
    stage.delete(&stage.private_path("web")).await?;
    stage.mode("web", "proxy").await;
    stage.close().await
}

async fn what_is_not_acted_on_is_said_and_kept(stage: Stage) -> Result<()> {
    stage.deployment("web", 0).await?;
    stage.service("web", json!({ "app": "web" })).await?;
    let mut all = spec("web", ("apps/v1", "Deployment", "web"));
    all["triggers"] = json!([{ "type": "prometheus", "metadata": { "query": "up", "threshold": 0.5, "own": { "x": [1] } } }]);
    all["autoscaler"] = json!({ "type": "keda", "name": "web" });
    all["enabledPeriod"] = json!({ "schedule": "0 8 * * *", "duration": "8h" });
    all["cooldownPeriod"] = json!(5);
    stage.elasti_of("web", &all).await?;
    let said = stage.condition("web", "NotActedOn", "True", "NotSupportedYet").await;
    assert!(
        said["message"].as_str().unwrap().starts_with("triggers, autoscaler, enabledPeriod are kept"),
        "{said:#}"
    );
    stage.condition("web", "Ready", "True", "Reconciled").await;
    let elasti = stage.mode("web", "proxy").await;
    assert_eq!(elasti["spec"], all);
    // It wakes all the same.
    assert_eq!(stage.ask("web").await?.status, 200);
    let slice = stage.find(&stage.slice_path("web")).await;
    assert!(slice.is_none_or(|slice| !addresses(&slice).is_empty()));
    stage.kubelet.delay(Duration::ZERO);
    stage.close().await
}
