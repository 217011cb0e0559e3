//! The simulation as a client sees it: over HTTP, with the public API alone.
//!
//! The clock is paused and the server is in this runtime, so that waiting costs no time. Requests go
//! through [`kube_informer_apiserver::Service`], which needs no socket.

use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt, Full};
use kube_informer_apiserver::{Server, Service, Simulation};
use serde_json::{Value, json};
use tower_service::Service as _;

const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

async fn send(service: &Service, verb: &str, path: &str, kind: &str, body: Option<&Value>) -> (u16, Value) {
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = Request::builder()
        .method(verb)
        .uri(path)
        .header("content-type", kind)
        .body(Full::new(bytes::Bytes::from(body)))
        .expect("a request");
    let response = service.clone().call(request).await.expect("an answer");
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn get(service: &Service, path: &str) -> Value {
    send(service, "GET", path, "application/json", None).await.1
}

async fn create(service: &Service, path: &str, object: &Value) -> Value {
    let (status, created) = send(service, "POST", path, "application/json", Some(object)).await;
    assert_eq!(status, 201, "{created}");
    created
}

async fn patch(service: &Service, path: &str, patch: &Value) -> Value {
    let (status, patched) = send(service, "PATCH", path, "application/merge-patch+json", Some(patch)).await;
    assert_eq!(status, 200, "{patched}");
    patched
}

fn web(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "example.com/web:1" }] },
            },
        },
    })
}

/// What `kubectl rollout status` waits for.
async fn rolled_out(service: &Service) -> Value {
    for _ in 0..100_000 {
        let web = get(service, WEB).await;
        let status = &web["status"];
        let wanted = &web["spec"]["replicas"];
        if status["observedGeneration"] == web["metadata"]["generation"]
            && ["replicas", "updatedReplicas", "availableReplicas"].iter().all(|f| status[*f] == *wanted)
        {
            return web;
        }
        // tidy: allow-sleep the clock is paused: simulated time passes, no real time
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never rolled out: {:#}", get(service, WEB).await);
}

fn image(tag: u32) -> Value {
    let containers = json!([{ "name": "web", "image": format!("example.com/web:{tag}") }]);
    json!({ "spec": { "template": { "spec": { "containers": containers } } } })
}

#[tokio::test(start_paused = true)]
async fn a_client_can_roll_out_scale_and_undo() {
    let server = Server::builder().simulate(Simulation::default().with_seed(1)).start().await.unwrap();
    let service = server.service();
    create(&service, "/apis/apps/v1/namespaces/default/deployments", &web(2)).await;
    let deployed = rolled_out(&service).await;
    assert_eq!(deployed["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");

    patch(&service, WEB, &image(2)).await;
    rolled_out(&service).await;
    patch(&service, &format!("{WEB}/scale"), &json!({ "spec": { "replicas": 5 } })).await;
    rolled_out(&service).await;
    let scale = get(&service, &format!("{WEB}/scale")).await;
    assert_eq!(scale["status"]["replicas"], 5);
    patch(&service, WEB, &image(1)).await;
    let undone = rolled_out(&service).await;

    assert_eq!(undone["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3");
    assert_eq!(get(&service, SETS).await["items"].as_array().unwrap().len(), 2);
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_shows_its_grace_and_is_replaced() {
    let server = Server::builder().simulate(Simulation::default()).start().await.unwrap();
    let service = server.service();
    create(&service, "/apis/apps/v1/namespaces/default/deployments", &web(2)).await;
    rolled_out(&service).await;
    let pods = get(&service, PODS).await;
    let victim = pods["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
    let (status, deleted) =
        send(&service, "DELETE", &format!("{PODS}/{victim}"), "application/json", None).await;
    assert_eq!((status, &deleted["metadata"]["deletionGracePeriodSeconds"]), (200, &json!(30)));
    // tidy: allow-sleep the clock is paused: simulated time passes, no real time
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(get(&service, &format!("{PODS}/{victim}")).await["reason"], "NotFound");
    assert_eq!(get(&service, PODS).await["items"].as_array().unwrap().len(), 2);
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn endpoint_slices_and_events_can_be_read() {
    let server = Server::builder().simulate(Simulation::default()).start().await.unwrap();
    let service = server.service();
    create(
        &service,
        "/api/v1/namespaces/default/services",
        &json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": "web" },
            "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": 8080 }] },
        }),
    )
    .await;
    create(&service, "/apis/apps/v1/namespaces/default/deployments", &web(3)).await;
    rolled_out(&service).await;
    // tidy: allow-sleep the clock is paused: simulated time passes, no real time
    tokio::time::sleep(Duration::from_secs(5)).await;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name%3Dweb";
    let slices = get(&service, slices).await;
    assert_eq!(slices["items"][0]["endpoints"].as_array().unwrap().len(), 3);
    let events = get(&service, "/api/v1/namespaces/default/events").await;
    for reason in ["Scheduled", "Pulled", "Created", "Started", "ScalingReplicaSet", "SuccessfulCreate"] {
        assert!(events["items"].as_array().unwrap().iter().any(|e| e["reason"] == reason), "{reason}");
    }
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_simulation_nothing_comes_to_life() {
    let server = Server::builder().start().await.unwrap();
    let service = server.service();
    create(&service, "/apis/apps/v1/namespaces/default/deployments", &web(2)).await;
    // tidy: allow-sleep the clock is paused: simulated time passes, no real time
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(get(&service, PODS).await["items"].as_array().unwrap().is_empty());
    assert!(get(&service, "/api/v1/nodes").await["items"].as_array().unwrap().is_empty());
    server.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_of_the_story_goes_and_comes_back() {
    let simulation = Simulation::default().with_story(true).with_seed(4);
    let server = Server::builder().simulate(simulation).start().await.unwrap();
    let service = server.service();
    // tidy: allow-sleep the clock is paused: simulated time passes, no real time
    tokio::time::sleep(Duration::from_secs(60)).await;
    let old = get(&service, "/api/v1/namespaces/shop").await["metadata"]["uid"].clone();
    assert!(old.is_string());
    send(&service, "DELETE", "/api/v1/namespaces/shop", "application/json", None).await;
    // tidy: allow-sleep the clock is paused: simulated time passes, no real time
    tokio::time::sleep(Duration::from_secs(120)).await;
    let new = get(&service, "/api/v1/namespaces/shop").await;
    assert_eq!(new["status"]["phase"], "Active");
    assert_ne!(new["metadata"]["uid"], old);
    assert!(!get(&service, "/api/v1/namespaces/shop/pods").await["items"].as_array().unwrap().is_empty());
    server.shutdown().await;
}
