//! What clients call resources: what is found, what is refused and how, and how seldom the cluster is asked.

use std::time::Instant;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::factory::Factory;
use kube_informer::resource::Resource;
use kube_informer_feed::hub::Hub;
use kube_informer_feed::message::Message;
use kube_informer_feed::server::Server;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match};
use serde_json::json;

use crate::client::Client;
use crate::harness::{Place, SOON, on_both};

on_both! {
    who_may_have_some_resources_is_not_told_which_others_there_are,
    who_may_have_any_resource_is_told_what_may_be_meant_and_no_list_of_groups,
}

/// What is there, by its name, a short name or a kind; what is not; and what is there and cannot be watched.
async fn who_may_have_some_resources_is_not_told_which_others_there_are(place: Place) -> Result<()> {
    let feed = place.feed().await?;
    let mut client = feed.client().await?;
    refused(&mut client).await?;
    // What it was started for is found by any of its names.
    for (id, name) in [
        ("a", "cm"),
        ("b", "ConfigMap"),
        ("c", "configmaps"),
        ("d", "v1/configmaps"),
        ("e", "configmap"),
        ("f", "CM.v1."),
    ] {
        client.sub(id, json!({ "gvr": name })).await?;
        client.snapshot(id).await?;
    }
    Ok(())
}

async fn who_may_have_any_resource_is_told_what_may_be_meant_and_no_list_of_groups(
    place: Place,
) -> Result<()> {
    let feed = place.feed_with(|hub| hub.any_resource(true), |server| server).await?;
    let mut client = feed.client().await?;
    for (name, code, said) in [
        ("deploymets", 404, r#"the server has no resource "deploymets"; did you mean deployments.apps?"#),
        ("qqqqqqqqqq", 404, r#"the server has no resource "qqqqqqqqqq""#),
        (
            "subjectaccessreviews",
            405,
            "subjectaccessreviews.v1.authorization.k8s.io cannot be listed and watched, only: create",
        ),
    ] {
        client.sub("s", json!({ "gvr": name })).await?;
        let (was, _, message) = client.err().await?;
        assert_eq!((was, &*message), (code, said));
    }
    Ok(())
}

/// Whether a path is of discovery: all groups, or what one version of a group has.
fn is_discovery(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["", "api" | "apis"] | ["", "api", _] | ["", "apis", _, _])
}

/// Questions about what the cluster serves.
fn asked(place: &Place) -> usize {
    place.proxy.requests().matching(|request| is_discovery(&request.path)).len()
}

/// Names of everything but config maps, of what is there and of what is not.
const OTHERS: [&str; 11] = [
    "secrets",
    "deploy",
    "Deployment",
    "podz",
    "deploymets",
    "things.example.com",
    "bindings",
    "subjectaccessreviews",
    "apps/v1/deployments",
    "apps/v1/deploymets",
    "v1/bindings",
];

/// All of them are refused, in the same words.
async fn refused(client: &mut Client) -> Result<()> {
    for name in OTHERS {
        client.sub("s", json!({ "gvr": name })).await?;
        let (code, _, message) = client.err().await?;
        let expected = format!("{name} is not to be had here; this server was started for v1/configmaps");
        assert_eq!((code, message), (403, expected));
    }
    Ok(())
}

#[tokio::test]
async fn however_many_names_are_tried_the_cluster_is_asked_seldom() -> Result<()> {
    let feed = Place::embedded().await?.feed_with(|hub| hub.any_resource(true), |server| server).await?;
    let mut client = feed.client().await?;
    let questions = || feed.place.proxy.requests().matching(|request| request.path == "/apis").len();
    let (before, begun) = (questions(), Instant::now());
    for number in 0..200 {
        client.sub("s", json!({ "gvr": format!("apps/v1/things{number}") })).await?;
        let (code, _, message) = client.err().await?;
        assert!(code == 404 && message.contains("things"), "{code} {message}");
    }
    // Once, and once more for each two seconds.
    let most = 1 + usize::try_from(begun.elapsed().as_secs())? / 2;
    let count = questions() - before;
    assert!((1..=most).contains(&count), "{count}, at most {most}");
    // What is there is found, as it was read; what comes is found soon.
    client.sub("d", json!({ "gvr": "deploy" })).await?;
    client.snapshot("d").await?;
    Ok(())
}

#[tokio::test]
async fn what_is_not_to_be_had_is_refused_without_asking_the_cluster() -> Result<()> {
    let feed = Place::embedded().await?.feed().await?;
    let mut client = feed.client().await?;
    let before = asked(&feed.place);
    refused(&mut client).await?;
    // Nor is it asked what the others are called.
    client.sub("a", json!({ "gvr": "cm" })).await?;
    client.snapshot("a").await?;
    assert_eq!(asked(&feed.place), before);
    Ok(())
}

/// A server for config maps, which were known when it was started: nobody has asked the cluster anything.
async fn known(place: &Place, any: bool) -> Result<(Factory, Server, Client)> {
    let factory = place.factory().await?;
    let hub = Hub::builder(factory.clone()).known_resource(Resource::of::<ConfigMap>()).any_resource(any);
    let server = Server::builder(hub.start().await?).start().await?;
    factory.start();
    assert_eq!(asked(place), 0);
    let client = Client::speaking(&server.url()).await?;
    Ok((factory, server, client))
}

#[tokio::test]
async fn what_a_known_resource_is_called_is_asked_once_whatever_names_are_tried() -> Result<()> {
    let place = Place::embedded().await?;
    let (_factory, _server, mut client) = known(&place, false).await?;
    for id in ["a", "b"] {
        refused(&mut client).await?;
        client.sub(id, json!({ "gvr": "cm" })).await?;
        client.snapshot(id).await?;
        assert_eq!(asked(&place), 1);
    }
    Ok(())
}

#[tokio::test]
async fn who_cannot_be_told_what_a_name_is_comes_again_and_is_not_told_what_went_wrong() -> Result<()> {
    for any in [false, true] {
        let place = Place::embedded().await?;
        let (_factory, _server, mut client) = known(&place, any).await?;
        let discovery = Match::any().when(|request| is_discovery(&request.path));
        let trouble = place.proxy.on(discovery).answer(Answer::internal_error().message("etcd at 10.0.0.7"));
        for name in ["cm", "deploy"] {
            client.sub("s", json!({ "gvr": name })).await?;
            let (code, _, message) = client.err().await?;
            assert_eq!((code, message), (503, format!("{name:?} cannot be looked up now; try again later")));
        }
        assert!(trouble.applied() > 0);
        // Nobody has to be asked for this.
        client.sub("known", json!({ "gvr": "ConfigMap" })).await?;
        if any {
            assert_eq!(client.err().await?.0, 503);
        } else {
            client.snapshot("known").await?;
        }
        trouble.remove();
        eventually("it is found again", SOON, async || {
            client.sub("s", json!({ "gvr": "cm" })).await.unwrap();
            let is_found = |message: Message| match message {
                Message::Err(err) => {
                    assert_eq!(err.code, 503);
                    Some(false)
                }
                Message::SnapEnd(end) => (end.sub == "s").then_some(true),
                _ => None,
            };
            client.find(is_found).await.unwrap().then_some(())
        })
        .await;
    }
    Ok(())
}
