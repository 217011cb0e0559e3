//! What cannot be done is said, with what to do about it; and the others go on.

use anyhow::Result;
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::control_plane::Options;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::require;
use serde_json::{Value, json};

use crate::harness::{SOON, Stage, on_both, spec};

on_both! {
    whatever_is_wrong_is_said_and_the_others_go_on,
    a_selector_that_matches_nothing_is_said,
}

async fn whatever_is_wrong_is_said_and_the_others_go_on(stage: Stage) -> Result<()> {
    for name in ["good", "no-selector", "external", "headless", "udp"] {
        stage.deployment(name, 0).await?;
    }
    let long = "a-service-with-a-name-that-leaves-no-room-for-more";
    let services = [
        ("good", json!({ "selector": { "app": "good" }, "ports": [{ "port": 80 }] })),
        ("no-selector", json!({ "ports": [{ "port": 80 }] })),
        ("external", json!({ "type": "ExternalName", "externalName": "example.com" })),
        ("headless", json!({ "clusterIP": "None", "selector": { "app": "headless" } })),
        ("udp", json!({ "selector": { "app": "udp" }, "ports": [{ "port": 53, "protocol": "UDP" }] })),
        (long, json!({ "selector": { "app": "good" }, "ports": [{ "port": 80 }] })),
    ];
    for (name, spec) in services {
        stage.post(&stage.path("services"), &json!({ "metadata": { "name": name }, "spec": spec })).await?;
    }
    let deployment = |name| ("apps/v1", "Deployment", name);
    let cases = [
        (
            "unknown-kind",
            spec("good-2", ("example.com/v9", "Unicorn", "x")),
            "TargetFound",
            "UnknownKind",
            "correct apiVersion and kind",
        ),
        (
            "unscalable",
            spec("good-4", ("v1", "ConfigMap", "x")),
            "TargetFound",
            "NotScalable",
            "scale subresource",
        ),
        ("no-target", spec("good", deployment("nobody")), "TargetFound", "NotFound", "create it, or correct"),
        (
            "no-service",
            spec("nobody", deployment("good")),
            "ServiceFound",
            "NotFound",
            "create it, or correct",
        ),
        (
            "no-selector",
            spec("no-selector", deployment("no-selector")),
            "ServiceFound",
            "NoSelector",
            "give it the selector",
        ),
        (
            "external",
            spec("external", deployment("external")),
            "ServiceFound",
            "ExternalName",
            "name a Service with a selector",
        ),
        (
            "no-ports",
            spec("headless", deployment("headless")),
            "ServiceFound",
            "NoPorts",
            "give it the ports",
        ),
        ("udp", spec("udp", deployment("udp")), "ServiceFound", "NoTcpPorts", "give it a TCP port"),
        ("long", spec(long, deployment("good")), "ServiceFound", "NameTooLong", "a shorter one"),
        ("incomplete", spec("", deployment("good")), "Ready", "Incomplete", "spec.service is missing"),
        (
            "odd-name",
            spec("../secrets/a", deployment("good")),
            "Ready",
            "InvalidServiceName",
            "no Service can be called",
        ),
        (
            "nameless",
            spec("good-3", deployment("")),
            "Ready",
            "Incomplete",
            "spec.scaleTargetRef.name is missing",
        ),
    ];
    // The service of one that goes well is not to be named by another.
    stage.service("good-2", json!({ "app": "good" })).await?;
    stage.service("good-4", json!({ "app": "good" })).await?;
    for (name, spec, ..) in &cases {
        stage.elasti_of(name, spec).await?;
    }
    for (name, _, kind, reason, advice) in &cases {
        let said = stage.condition(name, kind, "False", reason).await;
        let words = said["message"].as_str().unwrap();
        assert!(words.contains(advice), "{name}: {words}");
        if *kind != "Ready" {
            stage.condition(name, "Ready", "False", reason).await;
        }
        let event = stage.event(name, reason).await;
        assert_eq!(event["type"], "Warning", "{event:#}");
    }
    stage.service("well", json!({ "app": "good" })).await?;
    stage.elasti("well", "well", deployment("good")).await?;
    stage.mode("well", "proxy").await;
    assert_eq!(stage.ask("well").await?.status, 200);
    // All of them can be deleted.
    for (name, ..) in &cases {
        stage.delete(&stage.elasti_path(name)).await?;
        stage.gone(&stage.elasti_path(name)).await;
    }
    stage.close().await
}

async fn a_selector_that_matches_nothing_is_said(stage: Stage) -> Result<()> {
    stage.deployment("web", 1).await?;
    stage.service("web", json!({ "app": "wbe" })).await?;
    stage.elasti("web", "web", ("apps/v1", "Deployment", "web")).await?;
    let said = stage.condition("web", "Redirected", "True", "SelectorMatchesNothing").await;
    assert!(said["message"].as_str().unwrap().contains("must match the labels"), "{said:#}");
    stage.event("web", "SelectorMatchesNothing").await;
    stage.merge(&stage.path("services/web"), &json!({ "spec": { "selector": { "app": "web" } } })).await?;
    stage.mode("web", "serve").await;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.close().await
}

/// An object that was written when the definition asked for less.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_cannot_be_read_is_told_and_can_be_deleted() -> Result<()> {
    let stage = Stage::embedded().await?;
    let lax = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let path = format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}",
        kube_informer_elasti::crd::NAME
    );
    let mut definition = stage.get(&path).await?;
    definition["spec"]["versions"][0]["schema"] = json!({ "openAPIV3Schema": lax });
    let answer = stage.endpoint.put(&path, &definition).await?;
    assert!(answer.status.is_success(), "{answer:?}");
    stage.app("web", 0).await?;
    stage.elasti_of("odd", &json!({ "service": ["web"], "scaleTargetRef": "deployment/web" })).await?;
    let said = stage.condition("odd", "Ready", "False", "Unreadable").await;
    assert!(said["message"].as_str().unwrap().contains("write it as the definition"), "{said:#}");
    stage.event("odd", "Unreadable").await;
    stage.elasti_of("bare", &Value::Null).await?;
    stage.condition("bare", "Ready", "False", "Incomplete").await;
    stage.mode("web", "proxy").await;
    for name in ["odd", "bare"] {
        stage.delete(&stage.elasti_path(name)).await?;
        stage.gone(&stage.elasti_path(name)).await;
    }
    stage.close().await
}

/// The same, where the definition asks for more again.
async fn of_an_older_schema(mut stage: Stage) -> Result<()> {
    stage.retire().await;
    let path = format!(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}",
        kube_informer_elasti::crd::NAME
    );
    let lax = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let strict = stage.get(&path).await?["spec"]["versions"][0]["schema"].clone();
    let odd = json!({ "service": ["web"], "scaleTargetRef": "deployment/web" });
    let list = stage.path("elasti.truefoundry.com/v1alpha1/elastiservices?dryRun=All");
    let probe = json!({ "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
        "metadata": { "name": "probe" }, "spec": odd });
    for (schema, expected) in [(json!({ "openAPIV3Schema": lax }), 201), (strict, 422)] {
        // Others write to it, too, and what is written takes effect a moment later.
        eventually("the schema is another one", SOON, async || {
            let mut definition = stage.get(&path).await.ok()?;
            definition["spec"]["versions"][0]["schema"] = schema.clone();
            stage.endpoint.put(&path, &definition).await.ok().filter(|answer| answer.status.is_success())
        })
        .await;
        eventually("it has taken effect", SOON, async || {
            stage.endpoint.post(&list, &probe).await.ok().filter(|answer| answer.status == expected)
        })
        .await;
        if expected == 201 {
            stage.elasti_of("odd", &odd).await?;
        }
    }
    stage.operate().await?;
    stage.app("web", 0).await?;
    // Servers check only what is new, so finalizer and status can be written: it is that it cannot be read.
    let said = stage.condition("odd", "Ready", "False", "Unreadable").await;
    assert!(said["message"].as_str().unwrap().contains("write it as the definition"), "{said:#}");
    stage.event("odd", "Unreadable").await;
    stage.mode("web", "proxy").await;
    stage.delete(&stage.elasti_path("odd")).await?;
    stage.gone(&stage.elasti_path("odd")).await;
    stage.close().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_an_older_schema_is_told_and_the_others_go_on() -> Result<()> {
    of_an_older_schema(Stage::embedded().await?).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_an_older_schema_is_told_on_the_real_server() {
    let own = require!(Cluster::own(Options::new().controller_manager(true)).await);
    let stage = Stage::real((*own).clone(), "an_older_schema").await.unwrap();
    of_an_older_schema(stage).await.unwrap();
}

/// Allowed almost everything: what is missing is said, and done when it is allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_forbidden_is_said() {
    let cluster = require!(Cluster::shared_with_controllers().await);
    forbidden(cluster).await.unwrap();
}

async fn forbidden(cluster: Cluster) -> Result<()> {
    let mut stage = Stage::real(cluster.clone(), "what_is_forbidden").await?;
    stage.retire().await;
    let account = cluster.kubeconfig_for_service_account(&stage.namespace, "operator").await?;
    let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let mut rules = vec![
        json!({ "apiGroups": ["elasti.truefoundry.com"], "resources": ["*"], "verbs": all }),
        json!({ "apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": all }),
        json!({ "apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": all }),
        json!({ "apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch"] }),
        json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"] }),
        json!({ "apiGroups": ["apps"], "resources": ["deployments", "*/scale"], "verbs": all }),
    ];
    let role = json!({ "metadata": { "name": "operator" }, "rules": rules });
    stage.post(&stage.path("rbac.authorization.k8s.io/v1/roles"), &role).await?;
    let binding = json!({ "metadata": { "name": "operator" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator" },
        "subjects": [{ "kind": "ServiceAccount", "name": "operator", "namespace": stage.namespace }] });
    stage.post(&stage.path("rbac.authorization.k8s.io/v1/rolebindings"), &binding).await?;
    stage.operate_as(&std::fs::read_to_string(account)?).await?;
    stage.app("web", 0).await?;
    let said = stage.condition("web", "Ready", "False", "Forbidden").await;
    assert!(said["message"].as_str().unwrap().contains("allow the operator's ServiceAccount"), "{said:#}");
    stage.event("web", "Forbidden").await;
    stage.stateful_set("db", 0).await?;
    stage.service("db", json!({ "app": "db" })).await?;
    stage.elasti("db", "db", ("apps/v1", "StatefulSet", "db")).await?;
    stage.condition("db", "TargetFound", "False", "Forbidden").await;
    stage.event("db", "Forbidden").await;
    for rule in &mut rules {
        rule["verbs"] = json!(["*"]);
        rule["resources"] = json!(["*"]);
    }
    stage
        .merge(&stage.path("rbac.authorization.k8s.io/v1/roles/operator"), &json!({ "rules": rules }))
        .await?;
    stage.mode("web", "proxy").await;
    stage.mode("db", "proxy").await;
    stage.close().await
}
