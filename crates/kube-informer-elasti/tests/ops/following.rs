//! What targets are doing: told when it changes, and never before it is known.

use std::collections::BTreeSet;

use anyhow::Result;
use kube_informer::controller::Request;
use kube_informer_elasti::api::Mode;
use kube_informer_elasti::ops_informer::TargetState;
use kube_informer_testbed::proxy::{Answer, Match};
use serde_json::json;

use crate::harness::{Place, Told, deployment, on_both, soon};

on_both! {
    pods_answer_when_one_is_ready_and_the_resolver_otherwise,
    a_target_that_sleeps_from_the_start_is_known_at_once,
    a_target_may_come_late_go_and_be_made_anew,
    what_does_not_matter_is_not_told,
    another_target_is_followed_in_place_of_the_first,
    pods_are_watched_where_somebody_follows_and_once,
    nothing_is_told_before_everything_was_read,
    a_pod_that_is_relabelled_is_another_one_s,
    what_is_told_late_is_the_last_state,
    what_may_not_be_watched_says_so_and_is_followed_when_it_may,
    who_does_not_wait_for_the_end_leaves_nothing_half_done,
    many_at_once_are_as_good_as_one_after_the_other,
    it_ends_with_its_last_handle,
}

impl Place {
    fn owner(&self, name: &str) -> Request {
        Request::new(&self.namespace, name)
    }
}

async fn pods_answer_when_one_is_ready_and_the_resolver_otherwise(place: Place) -> Result<()> {
    let (ops, owner) = (place.ops().await?, place.owner("web"));
    place.workload("deployments", "web", 1, 1).await?;
    place.pod("web-1", "web", false).await?;
    place.pod("stranger", "other", true).await?;
    let resource = ops.follow(&owner, &deployment("web")).await?;
    assert_eq!(resource.to_string(), "deployments.v1.apps");
    assert_eq!(ops.resource(&owner), Some(resource));
    let mut told = Told::of(&ops);
    let state = told.until(&ops, &owner, |_| true).await;
    assert_eq!((state.decision, state.ready_pods), (Mode::Proxy, 0));
    assert!(state.why.contains("app=web"), "{}", state.why);
    let target = state.target.unwrap();
    assert_eq!((target.spec_replicas, target.status_replicas), (1, 1));
    assert_eq!((target.namespace.as_str(), target.name.as_str()), (place.namespace.as_str(), "web"));
    // Ready, not ready, ready again.
    for _ in 0..2 {
        place.ready("web-1", true).await?;
        let state = told.until(&ops, &owner, |state| state.decision == Mode::Serve).await;
        assert_eq!(state.ready_pods, 1);
        place.ready("web-1", false).await?;
        told.until(&ops, &owner, |state| state.decision == Mode::Proxy).await;
    }
    // A second one is enough.
    place.pod("web-2", "web", true).await?;
    told.until(&ops, &owner, |state| state.decision == Mode::Serve).await;
    // One that is to go is none, though it is ready.
    place.terminate("web-2").await?;
    let state = told.until(&ops, &owner, |state| state.decision == Mode::Proxy).await;
    assert_eq!((state.ready_pods, state.stale), (0, None));
    place.let_go("web-2").await?;
    place.ready("web-1", true).await?;
    told.until(&ops, &owner, |state| state.decision == Mode::Serve).await;
    // To sleep: before the pods are gone.
    place.replicas("web", 0, 1).await?;
    let state = told.until(&ops, &owner, |state| state.decision == Mode::Proxy).await;
    assert_eq!((state.ready_pods, state.why.as_str()), (1, "the target is to have no replicas"));
    ops.end().await;
    Ok(())
}

async fn a_target_that_sleeps_from_the_start_is_known_at_once(place: Place) -> Result<()> {
    place.workload("deployments", "web", 0, 0).await?;
    let (ops, owner) = (place.ops().await?, place.owner("web"));
    assert_eq!(ops.state(&owner), None);
    ops.follow(&owner, &deployment("web")).await?;
    let state = ops.state(&owner).unwrap();
    assert_eq!((state.decision, state.why.as_str()), (Mode::Proxy, "the target is to have no replicas"));
    assert_eq!(Told::of(&ops).next().await, owner);
    ops.end().await;
    Ok(())
}

async fn a_target_may_come_late_go_and_be_made_anew(place: Place) -> Result<()> {
    let (ops, owner) = (place.ops().await?, place.owner("web"));
    place.pod("web-1", "web", true).await?;
    ops.follow(&owner, &deployment("web")).await?;
    let mut told = Told::of(&ops);
    let missing = told.until(&ops, &owner, |_| true).await;
    assert_eq!(
        (missing.decision, missing.target, missing.why.as_str()),
        (Mode::Proxy, None, "the target is not there")
    );
    let mut uids = BTreeSet::new();
    for _ in 0..2 {
        place.workload("deployments", "web", 1, 1).await?;
        let state = told.until(&ops, &owner, |state| state.decision == Mode::Serve).await;
        uids.insert(state.target.unwrap().uid);
        place.delete(&place.path("apps/v1/deployments/web")).await?;
        let gone = told.until(&ops, &owner, |state| state.decision == Mode::Proxy).await;
        assert_eq!((gone.target, gone.why.as_str()), (None, "the target is gone"));
    }
    assert_eq!(uids.len(), 2, "another one each time");
    ops.end().await;
    Ok(())
}

async fn what_does_not_matter_is_not_told(place: Place) -> Result<()> {
    let (ops, owner) = (place.ops().await?, place.owner("web"));
    place.workload("deployments", "web", 2, 2).await?;
    place.pod("web-1", "web", true).await?;
    ops.follow(&owner, &deployment("web")).await?;
    let mut told = Told::of(&ops);
    told.until(&ops, &owner, |state| state.decision == Mode::Serve).await;
    // A second pod is ready, and things change that nobody asks for.
    place.pod("web-2", "web", true).await?;
    let annotate = json!({ "metadata": { "annotations": { "note": "changed" } } });
    place.merge(&place.path("apps/v1/deployments/web"), &annotate).await?;
    place.merge(&place.path("pods/web-1"), &annotate).await?;
    ops.decides(&owner, Mode::Serve, "2 pods are ready").await;
    ops.follow(&owner, &deployment("web")).await?;
    assert!(told.is_silent());
    // What matters is told.
    place.replicas("web", 3, 2).await?;
    let is_three =
        |state: &TargetState| state.target.as_ref().is_some_and(|target| target.spec_replicas == 3);
    told.until(&ops, &owner, is_three).await;
    assert!(told.is_silent());
    ops.end().await;
    Ok(())
}

async fn another_target_is_followed_in_place_of_the_first(place: Place) -> Result<()> {
    let (ops, owner) = (place.ops().await?, place.owner("web"));
    place.workload("deployments", "one", 1, 1).await?;
    place.workload("deployments", "two", 0, 0).await?;
    place.workload("statefulsets", "two", 1, 1).await?;
    place.pod("one-1", "one", true).await?;
    place.pod("two-1", "two", true).await?;
    let watched = || -> Vec<String> {
        let list = ops.manager.list().into_iter();
        list.map(|watch| format!("{}/{}", watch.key.resource_type, watch.key.resource_name)).collect()
    };
    ops.follow(&owner, &deployment("one")).await?;
    ops.decides(&owner, Mode::Serve, "ready").await;
    assert_eq!(watched(), ["deployments/one"]);
    // Another name, another kind; and the same in other words, for which nothing is done.
    let mut told = Told::of(&ops);
    told.next().await;
    for (kind, name, mode, watches) in [
        ("deployments", "one", None, "deployments/one"),
        ("DEPLOYMENT", "one", None, "deployments/one"),
        ("Deployment", "two", Some(Mode::Proxy), "deployments/two"),
        ("StatefulSet", "two", Some(Mode::Serve), "statefulsets/two"),
        ("statefulsets", "two", None, "statefulsets/two"),
    ] {
        ops.follow(&owner, &crate::harness::elasti("apps/v1", kind, name)).await?;
        assert_eq!(watched(), [watches], "{kind} {name}");
        match mode {
            Some(mode) => {
                told.until(&ops, &owner, |state| state.decision == mode).await;
            }
            None => assert!(told.is_silent(), "{kind} {name}"),
        }
    }
    // What cannot be followed takes its place all the same: what was followed is not wanted any more.
    let error = ops.follow(&owner, &crate::harness::elasti("apps/v1", "Nothing", "two")).await.unwrap_err();
    assert_eq!(error.reason(), "UnknownKind", "{error}");
    assert_eq!((ops.state(&owner), watched().len(), ops.namespaces().len()), (None, 0, 0));
    ops.end().await;
    Ok(())
}

async fn pods_are_watched_where_somebody_follows_and_once(place: Place) -> Result<()> {
    let ops = place.ops().await?;
    let informers = || {
        let all = ops.factory.stats().into_iter();
        all.filter(|informer| informer.resource == "pods")
            .map(|informer| informer.scope.to_string())
            .collect::<Vec<_>>()
    };
    assert!(informers().is_empty());
    for name in ["one", "two"] {
        ops.follow(&place.owner(name), &deployment(name)).await?;
        assert_eq!((informers().len(), ops.namespaces()), (1, vec![place.namespace.clone()]));
    }
    assert!(informers()[0].contains(&place.namespace), "{:?}", informers());
    assert!(ops.unfollow(&place.owner("one")).await);
    assert!(!ops.unfollow(&place.owner("one")).await);
    assert_eq!((ops.state(&place.owner("one")), informers().len()), (None, 1));
    assert!(ops.unfollow(&place.owner("two")).await);
    assert!(informers().is_empty() && ops.namespaces().is_empty());
    // And again.
    place.workload("deployments", "one", 1, 1).await?;
    place.pod("one-1", "one", true).await?;
    ops.follow(&place.owner("one"), &deployment("one")).await?;
    ops.decides(&place.owner("one"), Mode::Serve, "1 pod is ready").await;
    ops.end().await;
    Ok(())
}

async fn nothing_is_told_before_everything_was_read(place: Place) -> Result<()> {
    place.workload("deployments", "web", 1, 1).await?;
    place.pod("web-1", "web", true).await?;
    let proxy = place.proxy().await?;
    let ops = place.ops_through(&proxy).await?;
    let owner = place.owner("web");
    let mut told = Told::of(&ops);
    // It is read of the target, and not yet of its pods.
    let held = proxy.on(Match::any().path_contains("/pods")).stall();
    let following = {
        let (ops, owner) = (ops.ops.clone(), owner.clone());
        tokio::spawn(async move { ops.follow(&owner, &deployment("web")).await })
    };
    soon("pods are asked for", held.wait_applied(1)).await;
    crate::harness::cached(&ops, "the target is watched").await;
    assert_eq!(ops.state(&owner), None);
    assert!(told.is_silent());
    held.remove();
    held.release();
    following.await??;
    // The first that is said is right.
    assert_eq!(told.next().await, owner);
    assert_eq!(ops.state(&owner).unwrap().decision, Mode::Serve);
    ops.end().await;
    Ok(())
}

async fn a_pod_that_is_relabelled_is_another_one_s(place: Place) -> Result<()> {
    let ops = place.ops().await?;
    let (one, two) = (place.owner("one"), place.owner("two"));
    for (owner, name) in [(&one, "one"), (&two, "two")] {
        place.workload("deployments", name, 1, 1).await?;
        ops.follow(owner, &deployment(name)).await?;
    }
    place.pod("pod", "one", true).await?;
    ops.decides(&one, Mode::Serve, "ready").await;
    ops.decides(&two, Mode::Proxy, "no pod with app=two is ready").await;
    let relabel = json!({ "metadata": { "labels": { "app": "two" } } });
    place.merge(&place.path("pods/pod"), &relabel).await?;
    ops.decides(&one, Mode::Proxy, "no pod with app=one is ready").await;
    ops.decides(&two, Mode::Serve, "ready").await;
    ops.end().await;
    Ok(())
}

async fn what_is_told_late_is_the_last_state(place: Place) -> Result<()> {
    let (ops, owner) = (place.ops().await?, place.owner("web"));
    place.workload("deployments", "web", 1, 1).await?;
    place.pod("web-1", "web", false).await?;
    ops.follow(&owner, &deployment("web")).await?;
    let mut told = Told::of(&ops);
    // Nobody reads, and much happens.
    for _ in 0..5 {
        place.ready("web-1", true).await?;
        ops.decides(&owner, Mode::Serve, "ready").await;
        place.ready("web-1", false).await?;
        ops.decides(&owner, Mode::Proxy, "no pod").await;
    }
    assert_eq!(told.next().await, owner);
    assert!(told.is_silent(), "once, however often it changed");
    assert_eq!(ops.state(&owner).unwrap().decision, Mode::Proxy);
    // One who comes now begins with what is known.
    assert_eq!(Told::of(&ops).next().await, owner);
    ops.end().await;
    Ok(())
}

async fn what_may_not_be_watched_says_so_and_is_followed_when_it_may(place: Place) -> Result<()> {
    place.workload("deployments", "web", 1, 1).await?;
    place.pod("web-1", "web", true).await?;
    let proxy = place.proxy().await?;
    let ops = place.ops_through(&proxy).await?;
    let owner = place.owner("web");
    let fault = proxy.on(Match::any().path_contains("/pods")).answer(Answer::forbidden());
    let error = ops.follow(&owner, &deployment("web")).await.unwrap_err();
    assert_eq!(error.reason(), "PodsNotWatched", "{error}");
    assert!(error.to_string().contains("list and watch"), "{error}");
    assert_eq!(ops.state(&owner), None);
    fault.remove();
    ops.decides(&owner, Mode::Serve, "ready").await;
    ops.unfollow(&owner).await;
    let fault = proxy.on(Match::any().path_contains("/deployments")).answer(Answer::forbidden());
    let error = ops.follow(&owner, &deployment("web")).await.unwrap_err();
    assert_eq!(error.reason(), "Forbidden", "{error}");
    assert!(
        error.to_string().contains("deployments.v1.apps") && error.to_string().contains("allow"),
        "{error}"
    );
    assert_eq!(ops.state(&owner), None);
    fault.remove();
    ops.decides(&owner, Mode::Serve, "ready").await;
    ops.end().await;
    Ok(())
}

async fn who_does_not_wait_for_the_end_leaves_nothing_half_done(place: Place) -> Result<()> {
    place.workload("deployments", "web", 1, 1).await?;
    let proxy = place.proxy().await?;
    let ops = place.ops_through(&proxy).await?;
    let owner = place.owner("web");
    for part in ["/deployments", "/pods"] {
        // A reconcile is dropped while the target, or its pods, are being read.
        let held = proxy.on(Match::any().path_contains(part)).stall();
        let following = {
            let (ops, owner) = (ops.ops.clone(), owner.clone());
            tokio::spawn(async move { ops.follow(&owner, &deployment("web")).await })
        };
        soon("it is asked for", held.wait_applied(1)).await;
        following.abort();
        assert!(following.await.unwrap_err().is_cancelled());
        held.remove();
        held.release();
        // What comes next finds everything in order.
        assert!(ops.unfollow(&owner).await, "{part}");
        assert!(ops.manager.list().is_empty() && ops.namespaces().is_empty(), "{part}");
    }
    ops.end().await;
    Ok(())
}

async fn many_at_once_are_as_good_as_one_after_the_other(place: Place) -> Result<()> {
    let ops = place.ops().await?;
    for name in ["one", "two"] {
        place.workload("deployments", name, 1, 1).await?;
        place.pod(name, name, true).await?;
    }
    let owner = place.owner("web");
    for _ in 0..3 {
        let begun = (0..20).map(|number| {
            let (ops, owner) = (&ops, &owner);
            async move {
                match number % 4 {
                    0 => _ = ops.unfollow(owner).await,
                    1 => _ = ops.follow(owner, &deployment("two")).await,
                    _ => _ = ops.follow(owner, &deployment("one")).await,
                }
            }
        });
        futures_util::future::join_all(begun).await;
        // Whoever was last, there is one thing or nothing, and no remains.
        let (watches, namespaces) = (ops.manager.list().len(), ops.namespaces().len());
        assert_eq!(watches, namespaces, "{:?}", ops.manager.list());
        ops.follow(&owner, &deployment("two")).await?;
        let state = ops.decides(&owner, Mode::Serve, "1 pod is ready").await;
        assert_eq!(state.target.unwrap().name, "two");
        assert_eq!((ops.manager.list().len(), ops.namespaces().len()), (1, 1));
    }
    ops.end().await;
    Ok(())
}

async fn it_ends_with_its_last_handle(place: Place) -> Result<()> {
    let (ops, owner) = (place.ops().await?, place.owner("web"));
    ops.follow(&owner, &deployment("web")).await?;
    let mut told = Told::of(&ops);
    assert_eq!(told.next().await, owner);
    let crate::harness::Ops { factory, manager, ops } = ops;
    drop(ops);
    soon("the stream ends", told.ended()).await;
    manager.shutdown(crate::harness::SOON).await;
    factory.shutdown().await;
    Ok(())
}
