//! By which ways requests come: a redirect ends for each port and address family by itself, and nothing sleeps while one of
//! them would lead to nobody.

use std::time::Duration;

use anyhow::Result;
use kube_informer_elasti::operator::SleepError;
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::control_plane::Options;
use kube_informer_testbed::require;
use serde_json::{Value, json};

use crate::harness::{Stage, addresses, conditions, on_both};

on_both! {
    a_redirect_ends_for_each_port_by_itself,
    an_end_does_not_wait_for_ports_that_nobody_answers_at,
}

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
    // Pods answer at one of them. At the other one, requests are kept for a while, as it may be late; then it is said why not.
    let slice = stage.slice_path("web");
    let left = stage.until("one port is left", &slice, |slice| ports(slice) == ["admin"]).await;
    assert_eq!(addresses(&left), stage.resolver.addresses());
    stage.mode("web", "serve").await;
    stage.gone(&slice).await;
    let said = stage.condition("web", "Redirected", "False", "PortsNotAnswered").await;
    assert!(said["message"].as_str().unwrap().contains("port admin by IPv4"), "{said:#}");
    stage.event("web", "PortsNotAnswered").await;
    stage.condition("web", "Ready", "False", "PortsNotAnswered").await;
    // It can be put to sleep: everything is redirected then.
    stage.operator().put_to_sleep(&stage.namespace, "web").await?;
    stage.until("both are back", &slice, |slice| ports(slice) == ["http", "admin"]).await;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.scale("deployments/web", 1).await?;
    stage.until("one is left again", &slice, |slice| ports(slice) == ["admin"]).await;
    let mended = json!({ "spec": { "ports": [{ "name": "http", "port": 80, "targetPort": 8080 },
        { "name": "admin", "port": 81, "targetPort": 9090 }] } });
    stage.merge(&stage.path("services/web"), &mended).await?;
    stage.mode("web", "serve").await;
    stage.gone(&slice).await;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.close().await
}

/// Nobody waits until it is too late: neither for a port that no pod has, nor for one that the Service has no more.
async fn an_end_does_not_wait_for_ports_that_nobody_answers_at(mut stage: Stage) -> Result<()> {
    let port = |name: &str, target: Value| json!({ "name": name, "port": 80, "targetPort": target });
    let mut admin = port("admin", json!("admin"));
    admin["port"] = json!(81);
    for (name, ports) in
        [("dead", json!([port("http", json!(8080)), admin])), ("renamed", json!([port("http", json!(8080))]))]
    {
        stage.deployment(name, 0).await?;
        let spec = json!({ "selector": { "app": name }, "ports": ports });
        stage.post(&stage.path("services"), &json!({ "metadata": { "name": name }, "spec": spec })).await?;
        stage.elasti(name, name, ("apps/v1", "Deployment", name)).await?;
        stage.mode(name, "proxy").await;
        stage.redirected(name, &stage.resolver.addresses()).await;
    }
    stage.retire().await;
    let renamed = json!({ "spec": { "ports": [port("web", json!(8080))] } });
    stage.merge(&stage.path("services/renamed"), &renamed).await?;
    stage.delete(&stage.elasti_path("renamed")).await?;
    let mut settings = stage.settings();
    // Longer than any test waits.
    settings.restore_deadline = Duration::from_secs(600);
    let patience = std::mem::replace(&mut settings.endpoints_patience, Duration::from_secs(600));
    stage.operate_as_said(settings.clone()).await?;
    stage.gone(&stage.elasti_path("renamed")).await;
    stage.replicas("deployments/renamed", 1).await;
    stage.retire().await;
    settings.endpoints_patience = patience;
    stage.operate_as_said(settings).await?;
    stage.delete(&stage.elasti_path("dead")).await?;
    stage.gone(&stage.elasti_path("dead")).await;
    stage.replicas("deployments/dead", 1).await;
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
    // As long as requests are held, a resolver that comes by the other family holds those as well, until pods answer there.
    stage.gone(&stage.slice_path("web")).await;
    stage.condition("web", "Redirected", "False", "PodsReady").await;

    let slices = stage.path("discovery.k8s.io/v1/endpointslices");
    let slice = |name: &str, service: &str, port: &str, endpoints: Value| {
        json!({ "metadata": { "name": name, "labels": { "kubernetes.io/service-name": service } },
            "addressType": "IPv6", "ports": [{ "name": port, "port": 8012, "protocol": "TCP" }],
            "endpoints": endpoints })
    };
    let resolver =
        slice("resolver-2", "elasti-resolver-service", "", json!([{ "addresses": ["fd00:77::7"] }]));
    stage.post(&slices, &resolver).await?;
    // Whether it still waits for pods that answer by it is not of interest.
    stage
        .until("the resolver is known by both", &stage.elasti_path("web"), |elasti| {
            let mut said = conditions(elasti).filter(|each| each["type"] == "Redirected");
            said.all(|each| !each["message"].as_str().unwrap_or_default().contains("give the resolver"))
        })
        .await;
    stage.operator().put_to_sleep(&stage.namespace, "web").await?;
    let second = format!("{}-ipv6", stage.slice_path("web"));
    stage.until("the other family is redirected", &second, |slice| addresses(slice) == ["fd00:77::7"]).await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.scale("deployments/web", 1).await?;
    // Pods answer by one of them; by the other one, none comes.
    stage.gone(&stage.slice_path("web")).await;
    stage.condition("web", "Redirected", "False", "PortsNotAnswered").await;
    stage.gone(&second).await;
    stage
        .post(&slices, &slice("web-by-hand", "web", "http", json!([{ "addresses": ["fd00:88::1"] }])))
        .await?;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    stage.mode("web", "serve").await;
    stage.close().await
}

/// Pods have addresses of both families, and the slices that the server's controllers make lead to both.
async fn pods_answer_by_both_families(stage: Stage) -> Result<()> {
    stage.kubelet.both_families();
    stage.deployment("web", 0).await?;
    let spec = json!({ "selector": { "app": "web" }, "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }],
        "ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4", "IPv6"] });
    stage.post(&stage.path("services"), &json!({ "metadata": { "name": "web" }, "spec": spec })).await?;
    let slices = stage.path("discovery.k8s.io/v1/endpointslices");
    let resolver = json!({
        "metadata": { "name": "resolver-2", "labels": { "kubernetes.io/service-name": "elasti-resolver-service" } },
        "addressType": "IPv6", "ports": [{ "name": "", "port": 8012, "protocol": "TCP" }],
        "endpoints": [{ "addresses": ["fd00:77::7"] }],
    });
    stage.post(&slices, &resolver).await?;
    stage.elasti("web", "web", ("apps/v1", "Deployment", "web")).await?;
    stage.mode("web", "proxy").await;
    let second = format!("{}-ipv6", stage.slice_path("web"));
    stage.until("both families are redirected", &second, |slice| addresses(slice) == ["fd00:77::7"]).await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.scale("deployments/web", 1).await?;
    stage.mode("web", "serve").await;
    stage.gone(&stage.slice_path("web")).await;
    stage.gone(&second).await;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    let of_pods = |slice: &&Value| {
        slice["metadata"]["labels"]["kubernetes.io/service-name"] == "web" && !addresses(slice).is_empty()
    };
    let list = stage.get(&slices).await?;
    let found = list["items"].as_array().into_iter().flatten().filter(of_pods);
    let mut families: Vec<_> = found.filter_map(|slice| slice["addressType"].as_str()).collect();
    families.sort_unstable();
    assert_eq!(families, ["IPv4", "IPv6"]);
    // The private Service has them, too, when the public one has: one that loses a family is followed.
    let both = |service: &Value| service["spec"]["ipFamilies"] == json!(["IPv4", "IPv6"]);
    stage.until("the private one has both", &stage.private_path("web"), both).await;
    let single = json!({ "spec": { "ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"] } });
    stage.merge(&stage.path("services/web"), &single).await?;
    let one = |service: &Value| service["spec"]["ipFamilies"] == json!(["IPv4"]);
    stage.until("the private one has one", &stage.private_path("web"), one).await;
    let dual = json!({ "spec": { "ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4", "IPv6"] } });
    stage.merge(&stage.path("services/web"), &dual).await?;
    stage.until("the private one has both again", &stage.private_path("web"), both).await;
    stage.condition("web", "Ready", "True", "Reconciled").await;
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
    let stage = Stage::real((*own).clone(), "pods_of_both").await.unwrap();
    pods_answer_by_both_families(stage).await.unwrap();
}
