//! By which ways requests come: a redirect ends for each port and address family by itself, and nothing sleeps while one of
//! them would lead to nobody.

use anyhow::Result;
use kube_informer_elasti::operator::SleepError;
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::control_plane::Options;
use kube_informer_testbed::require;
use serde_json::{Value, json};

use crate::harness::{Stage, addresses, conditions, on_both};

on_both! { a_redirect_ends_for_each_port_by_itself }

fn ports(slice: &Value) -> Vec<&str> {
    slice["ports"].as_array().into_iter().flatten().filter_map(|port| port["name"].as_str()).collect()
}

async fn a_redirect_ends_for_each_port_by_itself(stage: Stage) -> Result<()> {
    stage.deployment("web", 0).await?;
    // No container has a port of that name.
    let both = json!([{ "name": "http", "port": 80, "targetPort": 8080 },
        { "name": "admin", "port": 81, "targetPort": "admin" }]);
    let service =
        json!({ "metadata": { "name": "web" }, "spec": { "selector": { "app": "web" }, "ports": both } });
    stage.post(&stage.path("services"), &service).await?;
    stage.elasti("web", "web", ("apps/v1", "Deployment", "web")).await?;
    stage.mode("web", "proxy").await;
    let slice = stage.redirected("web", &stage.resolver.addresses()).await;
    assert_eq!(ports(&slice), ["http", "admin"]);
    stage.scale("deployments/web", 1).await?;
    stage.replicas("deployments/web", 1).await;
    // Pods answer at one of them. At the other one, requests are kept, and it is said why.
    let slice =
        stage.until("one port is left", &stage.slice_path("web"), |slice| ports(slice) == ["admin"]).await;
    assert_eq!(addresses(&slice), stage.resolver.addresses());
    let said = stage.condition("web", "Redirected", "True", "PortsNotAnswered").await;
    assert!(said["message"].as_str().unwrap().contains("port admin by IPv4"), "{said:#}");
    stage.event("web", "PortsNotAnswered").await;
    // It can be put to sleep: everything is redirected then.
    stage.operator().put_to_sleep(&stage.namespace, "web").await?;
    stage.until("both are back", &stage.slice_path("web"), |slice| ports(slice) == ["http", "admin"]).await;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.scale("deployments/web", 1).await?;
    stage.until("one is left again", &stage.slice_path("web"), |slice| ports(slice) == ["admin"]).await;
    let mended = json!({ "spec": { "ports": [{ "name": "http", "port": 80, "targetPort": 8080 },
        { "name": "admin", "port": 81, "targetPort": 9090 }] } });
    stage.merge(&stage.path("services/web"), &mended).await?;
    stage.mode("web", "serve").await;
    stage.gone(&stage.slice_path("web")).await;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.close().await
}

/// Requests come by both families.
async fn both_families_are_redirected(stage: Stage) -> Result<()> {
    stage.deployment("web", 0).await?;
    let spec = json!({ "selector": { "app": "web" }, "ports": [{ "port": 80 }],
        "ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6", "IPv4"] });
    stage.post(&stage.path("services"), &json!({ "metadata": { "name": "web" }, "spec": spec })).await?;
    stage.elasti("web", "web", ("apps/v1", "Deployment", "web")).await?;
    stage.mode("web", "proxy").await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    let second = format!("{}-ipv6", stage.slice_path("web"));
    assert!(stage.find(&second).await.is_none(), "the resolver has no such address");
    let slice = json!({
        "metadata": { "name": "resolver-2", "labels": { "kubernetes.io/service-name": "elasti-resolver-service" } },
        "addressType": "IPv6", "ports": [{ "name": "", "port": 8012, "protocol": "TCP" }],
        "endpoints": [{ "addresses": ["fd00:77::7"] }, { "addresses": ["fd00:77::8"], "conditions": { "ready": false } }],
    });
    stage.post(&stage.path("discovery.k8s.io/v1/endpointslices"), &slice).await?;
    let slice = stage
        .until("both families are redirected", &second, |slice| addresses(slice) == ["fd00:77::7"])
        .await;
    assert_eq!(slice["addressType"], "IPv6");
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.close().await
}

/// Pods have addresses of one family: who answers by the other one is made by hand.
async fn each_family_is_by_itself(stage: Stage) -> Result<()> {
    stage.deployment("web", 1).await?;
    let spec = json!({ "selector": { "app": "web" }, "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }],
        "ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"] });
    stage.post(&stage.path("services"), &json!({ "metadata": { "name": "web" }, "spec": spec })).await?;
    stage.elasti("web", "web", ("apps/v1", "Deployment", "web")).await?;
    stage.mode("web", "serve").await;
    let said = stage.condition("web", "Redirected", "False", "PodsReady").await;
    assert!(said["message"].as_str().unwrap().contains("give the resolver IPv6 addresses"), "{said:#}");
    match stage.operator().put_to_sleep(&stage.namespace, "web").await {
        Err(SleepError::NotRedirected { why, .. }) => {
            assert!(why.contains("no ready endpoint of the family IPv6"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    stage.replicas("deployments/web", 1).await;
    // Whoever puts it to sleep all the same is told, and the family that can be redirected is.
    stage.scale("deployments/web", 0).await?;
    stage.condition("web", "Redirected", "True", "FamilyNotRedirected").await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.scale("deployments/web", 1).await?;
    stage.mode("web", "serve").await;

    let slices = stage.path("discovery.k8s.io/v1/endpointslices");
    let slice = |name: &str, service: &str, port: &str, endpoints: Value| {
        json!({ "metadata": { "name": name, "labels": { "kubernetes.io/service-name": service } },
            "addressType": "IPv6", "ports": [{ "name": port, "port": 8012, "protocol": "TCP" }],
            "endpoints": endpoints })
    };
    let resolver =
        slice("resolver-2", "elasti-resolver-service", "", json!([{ "addresses": ["fd00:77::7"] }]));
    stage.post(&slices, &resolver).await?;
    stage
        .until("the resolver is known by both", &stage.elasti_path("web"), |elasti| {
            conditions(elasti).any(|each| each["type"] == "Redirected" && each["message"] == "1 pod is ready")
        })
        .await;
    stage.operator().put_to_sleep(&stage.namespace, "web").await?;
    let second = format!("{}-ipv6", stage.slice_path("web"));
    stage.until("the other family is redirected", &second, |slice| addresses(slice) == ["fd00:77::7"]).await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.scale("deployments/web", 1).await?;
    // Pods answer by one of them.
    stage.gone(&stage.slice_path("web")).await;
    stage.condition("web", "Redirected", "True", "PortsNotAnswered").await;
    assert_eq!(stage.find(&second).await.map(|slice| addresses(&slice)), Some(vec!["fd00:77::7".to_owned()]));
    stage
        .post(&slices, &slice("web-by-hand", "web", "http", json!([{ "addresses": ["fd00:88::1"] }])))
        .await?;
    stage.mode("web", "serve").await;
    stage.gone(&second).await;
    stage.close().await
}

/// The embedded server knows one family.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dual_stack_service_is_redirected_by_both_families_and_nothing_sleeps_without_one() {
    let options = Options::new()
        .controller_manager(true)
        .apiserver_flag("--service-cluster-ip-range=10.0.0.0/24,fd00:10::/112");
    let own = require!(Cluster::own(options).await);
    let stage = Stage::real((*own).clone(), "both_families").await.unwrap();
    both_families_are_redirected(stage).await.unwrap();
    let stage = Stage::real((*own).clone(), "each_family").await.unwrap();
    each_family_is_by_itself(stage).await.unwrap();
}
