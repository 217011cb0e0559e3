//! What may be old decides nothing.

use std::time::Duration;

use anyhow::Result;
use kube_informer::controller::Request;
use kube_informer_elasti::api::Mode;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Fault, Match, Proxy};

use crate::harness::{Ops, Place, SOON, deployment, on_both};

on_both! {
    old_pods_do_not_answer,
    what_was_just_connected_again_is_not_trusted_yet,
    an_old_target_does_not_take_them_away,
    everything_goes_on_after_the_server_was_away,
}

/// Waits until what is known is told to be old, or not to be.
async fn stale(ops: &Ops, owner: &Request, what: Option<&str>) {
    let found = async || {
        let stale = ops.state(owner)?.stale;
        match (what, &stale) {
            (None, None) => Some(()),
            (Some(what), Some(stale)) if stale.contains(what) => Some(()),
            _ => None,
        }
    };
    eventually(&format!("stale: {what:?}"), SOON, found).await;
}

/// Watches of this break, and are not opened again until the fault is removed.
async fn cut_off(proxy: &Proxy, what: impl Fn() -> Match) -> Fault {
    let fault = proxy.on(what()).answer(Answer::internal_error());
    proxy.cut_open(what()).await;
    fault
}

async fn old_pods_do_not_answer(place: Place) -> Result<()> {
    place.workload("deployments", "web", 1, 1).await?;
    place.pod("web-1", "web", true).await?;
    let proxy = place.proxy().await?;
    let (ops, owner) = (place.ops_through(&proxy).await?, Request::new(&place.namespace, "web"));
    ops.follow(&owner, &deployment("web")).await?;
    ops.decides(&owner, Mode::Serve, "ready").await;
    let pods = || Match::any().path_contains("/pods");
    let fault = cut_off(&proxy, pods).await;
    stale(&ops, &owner, Some("its pods")).await;
    assert_eq!(ops.state(&owner).unwrap().decision, Mode::Serve, "it stays as it was");
    // It is put to sleep, and woken again. Its pod is gone since, which is not known here.
    place.terminate("web-1").await?;
    place.let_go("web-1").await?;
    place.replicas("web", 0, 0).await?;
    ops.decides(&owner, Mode::Proxy, "the target is to have no replicas").await;
    place.replicas("web", 1, 1).await?;
    let state = ops.decides(&owner, Mode::Proxy, "what is known of its pods may be old").await;
    assert_eq!(state.ready_pods, 1, "so it seems");
    fault.remove();
    // Connected again, and what was missed comes after that: nobody is sent to a pod that is gone meanwhile.
    let caught_up = async || {
        let state = ops.state(&owner)?;
        assert_eq!(state.decision, Mode::Proxy, "{state:?}");
        state.why.contains("no pod with app=web is ready").then_some(())
    };
    eventually("what was missed is known", SOON, caught_up).await;
    stale(&ops, &owner, None).await;
    place.pod("web-2", "web", true).await?;
    ops.decides(&owner, Mode::Serve, "1 pod is ready").await;
    ops.end().await;
    Ok(())
}

async fn what_was_just_connected_again_is_not_trusted_yet(place: Place) -> Result<()> {
    place.workload("deployments", "web", 0, 0).await?;
    place.pod("web-1", "web", true).await?;
    let proxy = place.proxy().await?;
    let Ops { factory, manager, ops } = place.ops_through(&proxy).await?;
    // What is a second for others does not pass in this test.
    let ops = Ops { factory, manager, ops: ops.settling(Duration::from_secs(3600)) };
    let owner = Request::new(&place.namespace, "web");
    ops.follow(&owner, &deployment("web")).await?;
    place.replicas("web", 1, 1).await?;
    ops.decides(&owner, Mode::Serve, "ready").await;
    place.replicas("web", 0, 0).await?;
    ops.decides(&owner, Mode::Proxy, "the target is to have no replicas").await;
    proxy.cut_open(Match::any().path_contains("/pods")).await;
    stale(&ops, &owner, Some("its pods: just connected again")).await;
    place.replicas("web", 1, 1).await?;
    let state = ops.decides(&owner, Mode::Proxy, "what is known of its pods may be old").await;
    assert_eq!(state.ready_pods, 1);
    ops.end().await;
    Ok(())
}

async fn an_old_target_does_not_take_them_away(place: Place) -> Result<()> {
    place.workload("deployments", "web", 0, 0).await?;
    place.pod("web-1", "web", false).await?;
    let proxy = place.proxy().await?;
    let (ops, owner) = (place.ops_through(&proxy).await?, Request::new(&place.namespace, "web"));
    ops.follow(&owner, &deployment("web")).await?;
    ops.decides(&owner, Mode::Proxy, "the target is to have no replicas").await;
    let targets = || Match::any().path_contains("/deployments");
    let fault = cut_off(&proxy, targets).await;
    stale(&ops, &owner, Some("the target")).await;
    place.ready("web-1", true).await?;
    place.replicas("web", 1, 1).await?;
    let is_seen = async || {
        let state = ops.state(&owner)?;
        assert_eq!(state.decision, Mode::Proxy);
        (state.ready_pods == 1 && state.why.contains("may be old")).then_some(())
    };
    eventually("the pod is seen", SOON, is_seen).await;
    fault.remove();
    ops.decides(&owner, Mode::Serve, "1 pod is ready").await;
    // That nobody is ready counts, whatever the target says.
    let fault = cut_off(&proxy, targets).await;
    stale(&ops, &owner, Some("the target")).await;
    place.ready("web-1", false).await?;
    ops.decides(&owner, Mode::Proxy, "no pod with app=web is ready").await;
    fault.remove();
    stale(&ops, &owner, None).await;
    ops.end().await;
    Ok(())
}

async fn everything_goes_on_after_the_server_was_away(place: Place) -> Result<()> {
    place.workload("deployments", "web", 1, 1).await?;
    place.pod("web-1", "web", true).await?;
    let proxy = place.proxy().await?;
    let (ops, owner) = (place.ops_through(&proxy).await?, Request::new(&place.namespace, "web"));
    ops.follow(&owner, &deployment("web")).await?;
    ops.decides(&owner, Mode::Serve, "ready").await;
    proxy.go_down().await;
    stale(&ops, &owner, Some("its pods")).await;
    stale(&ops, &owner, Some("the target")).await;
    // What is followed already is followed, also while nobody can be asked.
    ops.follow(&owner, &deployment("web")).await?;
    place.delete(&place.path("apps/v1/deployments/web")).await?;
    assert_eq!(ops.state(&owner).unwrap().decision, Mode::Serve);
    proxy.accept_connections().await;
    ops.decides(&owner, Mode::Proxy, "the target is gone").await;
    stale(&ops, &owner, None).await;
    ops.end().await;
    Ok(())
}
