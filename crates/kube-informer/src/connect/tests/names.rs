//! Names of resources, looked up on servers.

use kube_informer_apiserver::faults::{Answer, Match};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::require;
use serde_json::{Value, json};

use super::*;

async fn found(connection: &Connection, name: &str) -> String {
    match connection.resolve(name).await {
        Ok(resource) => format!("{} {} {}", resource.root(), resource.kind, resource.namespaced),
        Err(error) => error.to_string(),
    }
}

/// What every server has.
async fn finds_what_is_built_in(connection: &Connection) {
    for name in
        ["deploy", "deployments", "deployment", "Deployment", "deployments.apps", "Deployment.v1.apps"]
    {
        assert_eq!(found(connection, name).await, "/apis/apps/v1 Deployment true", "{name}");
    }
    for (name, expected) in [
        ("po", "/api/v1 Pod true"),
        ("ns", "/api/v1 Namespace false"),
        ("events", "/api/v1 Event true"),
        ("crd", "/apis/apiextensions.k8s.io/v1 CustomResourceDefinition false"),
        ("leases.coordination.k8s.io", "/apis/coordination.k8s.io/v1 Lease true"),
    ] {
        assert_eq!(found(connection, name).await, expected, "{name}");
    }
    let nothing = found(connection, "deploymnets").await;
    assert!(nothing.contains("did you mean deployments.apps?"), "{nothing}");
    assert!(found(connection, "bindings").await.contains("cannot be listed and watched, only: create"));
}

/// A definition of a kind of which v1 is served and v2 is not.
pub(super) fn definition(group: &str) -> Value {
    let version = |name: &str, served: bool| {
        json!({
            "name": name, "served": served, "storage": name == "v1",
            "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("widgets.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wdg"] },
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

/// A group that no other test has, nor an earlier run of this one.
pub(super) fn unique(prefix: &str) -> String {
    format!("{prefix}-{:08x}.connect.example.com", fastrand::u32(..))
}

pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Creates it, and waits until it is served.
pub(super) async fn define(endpoint: &Endpoint, group: &str) {
    endpoint.post(DEFINITIONS, &definition(group)).await.unwrap().success().unwrap();
    let path = format!("/apis/{group}/v1/widgets");
    eventually("the definition is served", Duration::from_secs(30), async || {
        endpoint.get(&path).await.ok().filter(|answer| answer.status == 200)
    })
    .await;
}

#[tokio::test]
async fn the_embedded_server_is_read() {
    let server = Server::builder().start().await.unwrap();
    finds_what_is_built_in(&embedded(&server).await).await;
}

#[tokio::test]
async fn the_real_server_is_read() {
    let cluster = require!(Cluster::shared().await);
    let connection = real(&cluster).await;
    finds_what_is_built_in(&connection).await;

    let group = &unique("names");
    define(cluster.endpoint(), group).await;
    let beginning = group.strip_suffix(".example.com").unwrap();
    for name in [format!("wdg.{group}"), format!("Widget.v1.{group}"), format!("widgets.{beginning}")] {
        let expected = format!("/apis/{group}/v1 Widget true");
        let said = eventually("discovery has it", Duration::from_secs(30), async || {
            Some(found(&connection, &name).await).filter(|found| found.starts_with("/apis"))
        });
        assert_eq!(said.await, expected, "{name}");
    }
    let unserved = found(&connection, &format!("widgets.v2.{group}")).await;
    assert!(unserved.contains("has no resource"), "{unserved}");
    cluster.endpoint().delete(&format!("{DEFINITIONS}/widgets.{group}")).await.unwrap().success().unwrap();
}

/// A server that knows nothing of aggregated discovery.
async fn old_server() -> Server {
    let server = Server::builder().start().await.unwrap();
    let connection = embedded(&server).await;
    for root in ["/api", "/apis"] {
        let document = connection.document(root, "application/json", 1 << 20).await.unwrap();
        let answer = Answer::raw(200, "application/json", document);
        server.faults().on(Match::any().path(root)).answer(answer);
    }
    server
}

#[tokio::test]
async fn a_server_without_aggregated_discovery_is_read_group_by_group() {
    let server = old_server().await;
    finds_what_is_built_in(&embedded(&server).await).await;
    let requests = server.faults().requests();
    assert!(requests.all().iter().any(|request| request.path == "/apis/apps/v1"), "nobody asked");
}

#[tokio::test]
async fn a_group_that_cannot_be_read_harms_only_itself() {
    let server = old_server().await;
    let fault = server.faults().on(Match::any().path("/apis/apps/v1")).answer(Answer::unavailable());
    let connection = embedded(&server).await;
    assert_eq!(found(&connection, "jobs").await, "/apis/batch/v1 Job true");
    let missing = found(&connection, "deployments").await;
    assert!(missing.contains("Could not be read: apps/v1: the server answered: 503"), "{missing}");
    drop(fault);
}

#[tokio::test]
async fn a_page_in_place_of_discovery_is_said_to_be_one() {
    let server = Server::builder().start().await.unwrap();
    server.faults().on(Match::any()).answer(Answer::html(200));
    let Err(ResolveError::Discovery { name, reason }) = embedded(&server).await.resolve("pods").await else {
        panic!("it is found")
    };
    assert!(name == "pods" && reason.contains("not the API server's"), "{reason}");

    server.faults().heal();
    server.faults().on(Match::any()).answer(Answer::raw(200, "application/json", r#"{"kind":"Menu"}"#));
    let error = embedded(&server).await.resolve("pods").await.unwrap_err().to_string();
    assert!(error.contains("its kind is Menu"), "{error}");
}
