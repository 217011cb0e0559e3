//! The proof that a resource is gone.

use kube_informer_apiserver::faults::{Answer, Match};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::require;
use serde_json::json;

use super::names::{DEFINITIONS, define, unique};
use super::*;

fn widgets(group: &str, version: &str) -> Resource {
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: "widgets".to_owned(),
        kind: "Widget".to_owned(),
        namespaced: true,
    }
}

async fn not_proven(connection: &Connection, resource: &Resource) -> String {
    match connection.absence(resource).await {
        Absence::NotProven(why) => why,
        Absence::Proven => panic!("it is proven that {resource} is gone"),
    }
}

async fn eventually_proven(connection: &Connection, resource: &Resource) {
    eventually("discovery has heard of it", Duration::from_secs(30), async || {
        (connection.absence(resource).await == Absence::Proven).then_some(())
    })
    .await;
}

/// From its definition to its end, on any server.
async fn lives_and_goes(connection: &Connection, endpoint: &Endpoint, group: &str) {
    let (served, unserved) = (widgets(group, "v1"), widgets(group, "v2"));
    define(endpoint, group).await;
    // It is served.
    not_proven(connection, &served).await;
    // It is not, and its objects are there all the same.
    assert_eq!(endpoint.get(&unserved.path(None)).await.unwrap().status, 404);
    let why = not_proven(connection, &unserved).await;
    assert_eq!(why, format!("its definition widgets.{group} is there"));

    // Its deletion has begun, and an object does not go.
    let objects = served.path(Some("default"));
    let object = json!({
        "apiVersion": served.api_version(), "kind": "Widget",
        "metadata": { "name": "last", "finalizers": ["example.com/stays"] },
    });
    endpoint.post(&objects, &object).await.unwrap().success().unwrap();
    let definition = format!("{DEFINITIONS}/widgets.{group}");
    endpoint.delete(&definition).await.unwrap().success().unwrap();
    not_proven(connection, &served).await;
    not_proven(connection, &unserved).await;

    // Now it goes.
    let free = json!({ "metadata": { "finalizers": null } });
    eventually("the last object may go", Duration::from_secs(30), async || {
        let answer = endpoint.merge_patch(&format!("{objects}/last"), &free).await.ok()?;
        (answer.status == 200 || answer.status == 404).then_some(())
    })
    .await;
    eventually_proven(connection, &served).await;
    eventually_proven(connection, &unserved).await;
}

#[tokio::test]
async fn on_the_real_server_a_definition_s_end_is_proven_and_nothing_before_it() {
    let cluster = require!(Cluster::shared().await);
    lives_and_goes(&real(&cluster).await, cluster.endpoint(), &unique("gone")).await;
}

#[tokio::test]
async fn on_the_embedded_server_too() {
    let server = Server::builder().start().await.unwrap();
    let endpoint = Endpoint::new(Access::anonymous(server.url())).unwrap();
    lives_and_goes(&embedded(&server).await, &endpoint, &unique("gone")).await;
}

#[tokio::test]
async fn of_what_never_was_it_is_proven_and_of_what_is_built_in_never() {
    let cluster = require!(Cluster::shared().await);
    let connection = real(&cluster).await;
    assert_eq!(connection.absence(&widgets("never.connect.example.com", "v1")).await, Absence::Proven);
    let why = not_proven(&connection, &widgets("apps", "v1beta2")).await;
    assert!(why.contains("built in"), "{why}");
}

#[tokio::test]
async fn who_may_not_read_definitions_proves_nothing() {
    let cluster = require!(Cluster::shared().await);
    let kubeconfig = cluster.kubeconfig_for_user("nobody-in-particular", &[]).await.unwrap();
    let connection = of_file(&kubeconfig).await;
    let why = not_proven(&connection, &widgets("never.connect.example.com", "v1")).await;
    assert!(why.contains("403"), "{why}");
}

#[tokio::test]
async fn an_answer_that_is_not_the_server_s_proves_nothing() {
    let server = Server::builder().start().await.unwrap();
    let connection = embedded(&server).await;
    let gone = widgets("never.connect.example.com", "v1");
    assert_eq!(connection.absence(&gone).await, Absence::Proven);

    let definition = format!("{DEFINITIONS}/widgets.never.connect.example.com");
    let lies = [
        (definition.clone(), Answer::not_served()),
        (definition.clone(), Answer::html(404)),
        (definition.clone(), Answer::not_found()),
        (definition, Answer::unavailable()),
        ("/apis/never.connect.example.com/v1".to_owned(), Answer::unavailable()),
        ("/apis/never.connect.example.com/v1".to_owned(), Answer::html(200)),
        ("/apis".to_owned(), Answer::not_served()),
        ("/apis".to_owned(), Answer::html(200)),
        ("/apis".to_owned(), Answer::raw(200, "application/json", r#"{"kind":"APIGroupList","groups":[]}"#)),
    ];
    for (path, answer) in lies {
        let lie = format!("{path} {answer:?}");
        server.faults().on(Match::any().path(path)).answer(answer);
        assert!(matches!(connection.absence(&gone).await, Absence::NotProven(_)), "{lie}");
        server.faults().heal();
    }
    assert_eq!(connection.absence(&gone).await, Absence::Proven);
}
