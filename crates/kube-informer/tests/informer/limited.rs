//! A token that lets its bearer see one object, through a line that breaks and a server that forgets.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer::factory::Factory;
use kube_informer::informer::{Cause, Scope};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match, Request};

use crate::harness::{Place, SOON, on_both};
use crate::replay::Replay;
use crate::somebody::{account, may_watch, token};
use crate::stage::{Stage, health, live, ready, short, stale};

on_both! {
    promise_16_who_may_see_one_object_loses_nothing_of_it_and_asks_for_nothing_else,
}

/// What selects the one object.
const ONE: &str = "metadata.name=one";
const QUERY: &str = "?fieldSelector=metadata.name%3Done";

/// A token whose bearer may list and watch the config map `one`.
async fn limited(stage: &Stage) -> Result<String> {
    let place = &stage.place;
    if !place.is_real() {
        // The embedded server allows everything: what roles would forbid is refused on the way.
        let forbidden = |request: &Request| {
            request.path.ends_with("/configmaps") && request.param("fieldSelector").as_deref() != Some(ONE)
        };
        stage.proxy.on(Match::any().when(forbidden)).answer(Answer::forbidden());
        return Ok("limited".to_owned());
    }
    may_watch(place, "one", &["one"], account(place, "limited")).await?;
    let token = token(place, "limited").await?;
    let endpoint = stage.proxy.endpoint(&token)?;
    let path = format!("{}{QUERY}", place.path("configmaps"));
    eventually("the role is known", SOON, async || {
        endpoint.get(&path).await.ok().filter(|answer| answer.status.is_success())
    })
    .await;
    Ok(token)
}

async fn promise_16_who_may_see_one_object_loses_nothing_of_it_and_asks_for_nothing_else(
    place: Place,
) -> Result<()> {
    let stage = Stage::before(place).await?;
    let proxy = &stage.proxy;
    stage.config_maps(&["one", "two"], "1").await?;
    let token = limited(&stage).await?;
    let begun = proxy.requests().last_id();
    let config = Kubeconfig::from_yaml(&proxy.kubeconfig(&token))?;
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let factory = Factory::from_config(config).await?.timings(short());
    let informer = factory.informer::<ConfigMap>(Scope::object(&stage.place.namespace, "one"));
    let told = Replay::both(&informer);
    factory.start();
    ready(&factory, &told).await?;
    let settled = async || stage.settled(&informer, QUERY, &[&told[0], &told[1]]).await;
    settled().await;

    // The line breaks: the watch is resumed, after a look at the server's version that is allowed, too.
    let last = proxy.requests().last_id();
    assert_eq!(proxy.cut_open(Match::watch()).await, 1);
    stage.change("one", "2").await?;
    stage.change("two", "2").await?;
    settled().await;
    assert!(proxy.requests().count(|request| request.id > last && request.is_list()) >= 1);
    let relists = live(&informer).await.relists;
    assert_eq!((relists.first, relists.failure, relists.expired), (1, 0, 0));

    // The server has forgotten the version, and says so in the watch; the object is another one by then.
    let held = proxy.on(Match::watch().send_initial_events(true)).stall();
    proxy.on_open(Match::watch()).error_event(Answer::gone());
    held.wait_applied(1).await;
    stage.remove("one").await?;
    stage.config_maps(&["one"], "3").await?;
    held.remove();
    health(&informer, "listed", |health| health.relists.expired == 1).await;
    settled().await;
    live(&informer).await;

    // It says so when the watch is asked for, and knows no streaming lists: everything that is one object is listed.
    let gone = proxy.on(Match::watch().send_initial_events(false)).once().answer(Answer::gone());
    let plain =
        proxy.on(Match::watch().send_initial_events(true)).once().answer(Answer::no_streaming_lists());
    assert_eq!(proxy.cut_open(Match::watch()).await, 1);
    stage.change("one", "4").await?;
    gone.wait_applied(1).await;
    plain.wait_applied(1).await;
    let relists = health(&informer, "listed", |health| health.relists.expired == 2).await.relists;
    assert_eq!((relists.first, relists.failure), (1, 0));
    settled().await;
    live(&informer).await;
    for told in &told {
        let told = told.told();
        assert_eq!((told.added, told.deleted, told.gaps), (2, 1, 0), "{told:#?}");
    }

    // Nothing was asked for that is not allowed.
    let asked = proxy.requests().matching(|request| {
        request.id > begun && (request.path.ends_with("/configmaps") || request.status == Some(403))
    });
    assert!(asked.len() >= 7, "{asked:#?}");
    for request in asked {
        assert_eq!(request.param("fieldSelector").as_deref(), Some(ONE), "{request}");
        assert_ne!(request.status, Some(403), "{request}");
    }
    // What is not allowed is said, and harms nobody.
    let all = factory.informer::<ConfigMap>(Scope::namespace(&stage.place.namespace));
    let text = stale(&all, Cause::Forbidden).await;
    for part in [&stage.place.path("configmaps"), "orbidden", "kubectl auth can-i"] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    stage.change("one", "5").await?;
    settled().await;
    live(&informer).await;
    factory.shutdown().await;
    Ok(())
}
