//! What the server lets one see, and what is said where it does not, or where there is none.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube_informer::informer::{Cause, Scope, State};
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match};
use kube_informer_testbed::require;
use serde_json::Value;
use tokio::time::timeout;

use crate::harness::{Place, SOON, on_both};
use crate::replay::Replay;
use crate::somebody::Somebody;
use crate::stage::{Stage, health, live, short, stale};

on_both! {
    an_unknown_resource_is_named_with_what_to_do,
    a_selector_that_cannot_be_is_said,
    a_page_instead_of_a_server_is_said,
    nobody_at_the_address_is_said,
    what_cannot_be_asked_for_is_said_without_asking,
}

/// Long enough to show that nothing waited for it.
const NEVER: Duration = Duration::from_secs(86_400);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_see_one_object_sees_it_and_the_others_when_that_is_allowed() -> Result<()> {
    let cluster = require!(Cluster::shared().await, else Ok(()));
    let somebody = Somebody::on(cluster, "sees one").await?;
    let place = &somebody.place;
    for name in ["one", "two"] {
        place.post(&place.path("configmaps"), &crate::stage::config_map(name, "1")).await?;
    }
    somebody.may_watch("one", &["one"]).await?;
    let factory = somebody.factory().await?;
    let one = factory.informer::<ConfigMap>(Scope::object(&place.namespace, "one"));
    let all =
        factory.configure::<ConfigMap>(Scope::namespace(&place.namespace)).labels("made=here")?.informer();
    let told = Replay::both(&all);
    factory.start();
    one.synced(SOON).await?;
    assert_eq!(one.list().count(), 1);
    let text = stale(&all, Cause::Forbidden).await;
    let said = format!("User \"{}\" cannot", somebody.name);
    for part in [&*said, "configmaps", "kubectl auth can-i", &place.namespace] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    somebody.may_watch("all", &[]).await?;
    all.synced(SOON).await?;
    live(&all).await;
    eventually("both are told", SOON, async || told[0].knows(&all).then_some(())).await;
    assert_eq!(all.list().count(), 2);
    factory.shutdown().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forbidden_namespace_among_several_is_named_and_the_others_work() -> Result<()> {
    let cluster = require!(Cluster::shared().await, else Ok(()));
    let somebody = Somebody::on(cluster, "forbidden namespace").await?;
    let place = &somebody.place;
    somebody.may_watch("all", &[]).await?;
    place.post(&place.path("configmaps"), &crate::stage::config_map("one", "1")).await?;
    let factory = somebody.factory().await?;
    let scope = Scope::namespaces([&*place.namespace, "kube-system"]);
    let informer = factory.configure::<ConfigMap>(scope).labels("made=here")?.informer();
    let told = Replay::both(&informer);
    factory.start();
    stale(&informer, Cause::Forbidden).await;
    eventually("what is allowed is there", SOON, async || (informer.list().count() == 1).then_some(())).await;
    let error = factory.synced(Duration::from_millis(1)).await.unwrap_err();
    let [missing] = &error.missing[..] else { panic!("{error}") };
    assert_eq!(missing.namespace.as_deref(), Some("kube-system"));
    assert!(error.to_string().contains("configmaps in kube-system") && error.to_string().contains("cannot"));
    let states = informer.health().scopes;
    let state =
        |name: &str| states.iter().find(|(scope, _)| scope.as_deref() == Some(name)).unwrap().1.as_str();
    assert_eq!((state("kube-system"), state(&place.namespace)), ("stale", "live"));
    // What is allowed goes on.
    place.post(&place.path("configmaps"), &crate::stage::config_map("two", "1")).await?;
    eventually("that is told, too", SOON, async || {
        told.iter().all(|told| told.told().added == 2).then_some(())
    })
    .await;
    factory.shutdown().await;
    Ok(())
}

async fn an_unknown_resource_is_named_with_what_to_do(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let factory = stage.factory(short()).await?;
    let error = factory.resource("deploymints", Scope::All).await.unwrap_err().to_string();
    assert!(error.contains("deploymints") && error.contains("deployments"), "{error}");
    // One that the server can only be asked for.
    let mut resource = factory.resolve("deployments").await?;
    resource.version = "v7".to_owned();
    let informer = factory.configure_resource(resource, Scope::All).informer();
    factory.start();
    let text = stale(&informer, Cause::NotServed).await;
    assert!(text.contains("WATCH /apis/apps/v7/deployments?"), "{text}");
    assert!(text.contains("kubectl api-resources"), "{text}");
    factory.shutdown().await;
    Ok(())
}

async fn a_selector_that_cannot_be_is_said(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let factory = stage.factory(short()).await?;
    let scope = || Scope::namespace(&stage.place.namespace);
    // Labels are read here: the place is named, and what is expected there.
    let error = factory.configure::<ConfigMap>(scope()).labels("a in (").unwrap_err().to_string();
    for part in ["\"a in (\"", "at byte 6: expected a value, a comma or )", "found the end"] {
        assert!(error.contains(part), "{part:?} is missing: {error}");
    }
    // Fields are the server's: what it says is said, with what it was asked.
    factory.start();
    let path = stage.place.path("configmaps");
    for (selector, asked, says) in [
        ("spec.colour=blue", "spec.colour%3Dblue", &["spec.colour", "metadata.name"][..]),
        (
            "spec.colour",
            "spec.colour",
            &["invalid selector: 'spec.colour'", "can't understand 'spec.colour'"],
        ),
    ] {
        let informer = factory.configure::<ConfigMap>(scope()).fields(selector).informer();
        let text = stale(&informer, Cause::Rejected).await;
        // As a watch at first, and then as a list.
        let asked = format!(" {path}?fieldSelector={asked}&");
        for part in says.iter().copied().chain([&*asked, "change what is asked for"]) {
            assert!(text.contains(part), "{part:?} is missing: {text}");
        }
    }
    factory.shutdown().await;
    Ok(())
}

async fn a_page_instead_of_a_server_is_said(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.proxy.on(Match::any()).answer(Answer::html(200));
    let factory = stage.factory(short()).await?;
    let informer = factory.informer::<ConfigMap>(Scope::namespace(&stage.place.namespace));
    factory.start();
    let text = stale(&informer, Cause::NotAnApi).await;
    assert!(text.contains("<!DOCTYPE html>") && text.contains("check the server's address"), "{text}");
    let error = factory.resource("pods", Scope::All).await.unwrap_err().to_string();
    assert!(error.contains("<!DOCTYPE html>"), "{error}");
    stage.proxy.heal();
    factory.synced(SOON).await?;
    factory.shutdown().await;
    Ok(())
}

async fn nobody_at_the_address_is_said(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    stage.proxy.go_down().await;
    let factory = stage.factory(short()).await?;
    let informer = factory.informer::<ConfigMap>(Scope::namespace(&stage.place.namespace));
    factory.start();
    stale(&informer, Cause::Refused).await;
    let error = factory.synced(Duration::from_millis(1)).await.unwrap_err().to_string();
    for part in ["configmaps", "connection refused", "check that the API server runs"] {
        assert!(error.contains(part), "{part:?} is missing: {error}");
    }
    stage.proxy.accept_connections().await;
    factory.synced(SOON).await?;
    live(&informer).await;
    factory.shutdown().await;
    Ok(())
}

async fn what_cannot_be_asked_for_is_said_without_asking(place: Place) -> Result<()> {
    let stage = Stage::before(place).await?;
    let factory = stage.factory(short()).await?;
    factory.start();
    let none: [&str; 0] = [];
    let of_maps = |scope| factory.informer::<ConfigMap>(scope).cast::<Value>();
    let of_namespaces = |scope| factory.informer::<Namespace>(scope).cast::<Value>();
    for (informer, part) in [
        (of_maps(Scope::namespaces(none)), "names no namespace"),
        (of_maps(Scope::object("", "one")), "are in namespaces"),
        (of_maps(Scope::object("a/b", "one")), "is not a name"),
        (of_namespaces(Scope::namespace("default")), "are in no namespace"),
        (of_namespaces(Scope::object("default", "one")), "leave out"),
    ] {
        let error = timeout(SOON, informer.synced(NEVER)).await?.unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("change what is asked for"), "{error}");
        let state = health(&informer, "misconfigured", |health| health.state != State::Starting).await.state;
        assert!(matches!(state, State::Stale { why, .. } if why.cause == Cause::Misconfigured));
    }
    assert_eq!(stage.proxy.requests().count(|_| true), 0);
    assert!(timeout(SOON, factory.synced(NEVER)).await?.is_err());
    factory.shutdown().await;
    Ok(())
}
