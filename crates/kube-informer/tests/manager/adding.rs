//! How watches come, and what is said where they cannot be.

use std::time::Duration;

use anyhow::Result;
use futures_util::FutureExt as _;
use kube_informer::manager::{AddError, RequestWatch, WatchState};
use kube_informer::resource::Resource;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::on_both;
use kube_informer_testbed::proxy::Match;
use serde_json::json;

use crate::harness::{Place, SOON, Told, config_maps, unstarted};

on_both! {
    promise_20_an_add_that_failed_leaves_nothing_and_works_when_it_is_tried_again,
    promise_20_adds_of_one_key_at_the_same_time_are_one_watch,
    what_is_added_before_the_start_is_watched_when_it_starts,
    promise_20_an_add_that_cannot_sync_ends_at_its_deadline_and_holds_up_no_other,
    a_target_that_comes_later_is_told_when_it_comes,
    a_resource_that_is_not_served_is_said_and_one_that_comes_later_is_picked_up,
    an_object_that_was_just_made_is_there,
}

/// Of the defects of others: a first try that failed used up the only one, and later ones said that all was well.
async fn promise_20_an_add_that_failed_leaves_nothing_and_works_when_it_is_tried_again(
    place: Place,
) -> Result<()> {
    let manager = place.manager().await?;
    for _ in 0..3 {
        let error = manager.add(place.watch("late")).await.unwrap_err();
        assert!(matches!(error, AddError::NotFound { .. }), "{error}");
        assert!(error.to_string().contains(&format!("configmaps {}/late", place.namespace)), "{error}");
        assert!(manager.list().is_empty());
        place.watches(0).await;
    }
    place.make("late", "1").await?;
    let (watch, told) = Told::of(place.watch("late"));
    let watch = manager.add(watch).await?;
    told.knows(Some("1")).await;
    assert_eq!(watch.state(), WatchState::Live);
    place.change("late", "2").await?;
    told.knows(Some("2")).await;
    assert_eq!(manager.shutdown(SOON).await.stopped, 1);
    place.watches(0).await;
    Ok(())
}

async fn what_is_added_before_the_start_is_watched_when_it_starts(place: Place) -> Result<()> {
    place.make("one", "1").await?;
    let manager = unstarted(&place.factory().await?);
    let (watch, told) = Told::of(place.watch("one"));
    let mut add = Box::pin(manager.add(watch));
    assert!((&mut add).now_or_never().is_none());
    assert_eq!(manager.list()[0].state, WatchState::Starting);
    // Another one, which has started, has asked what there is meanwhile.
    let other = place.manager().await?;
    other.add(place.watch("one")).await?;
    assert!((&mut add).now_or_never().is_none(), "nobody asks for it before the start");
    place.watches(1).await;
    manager.start();
    let watch = add.await?;
    assert_eq!(watch.state(), WatchState::Live);
    told.knows(Some("1")).await;
    place.change("one", "2").await?;
    told.knows(Some("2")).await;
    // Once is enough.
    manager.start();
    place.watches(2).await;
    other.shutdown(SOON).await;
    manager.shutdown(SOON).await;
    place.watches(0).await;
    Ok(())
}

async fn promise_20_adds_of_one_key_at_the_same_time_are_one_watch(place: Place) -> Result<()> {
    place.make("one", "1").await?;
    let manager = place.manager().await?;
    let adds = (0..50).map(|_| manager.add(place.watch("one")));
    for watch in futures_util::future::join_all(adds).await {
        assert_eq!(watch?.state(), WatchState::Live);
    }
    assert_eq!(manager.list().len(), 1);
    assert_eq!(manager.stats().adds, [("success", 1)].into(), "one was begun");
    place.watches(1).await;
    let stops = (0..50).map(|_| manager.stop_for_owner(place.owner("one")));
    let stopped: usize = futures_util::future::join_all(stops).await.into_iter().sum();
    assert_eq!(stopped, 1, "stopped once, however many stop it at the same time");
    place.watches(0).await;
    Ok(())
}

async fn promise_20_an_add_that_cannot_sync_ends_at_its_deadline_and_holds_up_no_other(
    place: Place,
) -> Result<()> {
    place.make("works", "1").await?;
    place.make("hangs", "1").await?;
    let manager = place.manager().await?;
    let hang = place.proxy.on(Match::any().field_selector("metadata.name=hangs")).stall();
    let hangs = {
        let (manager, watch) = (manager.clone(), place.watch("hangs").within(Duration::from_secs(3)));
        tokio::spawn(async move { manager.add(watch).await })
    };
    let (watch, told) = Told::of(place.watch("works"));
    manager.add(watch).await?;
    place.change("works", "2").await?;
    told.knows(Some("2")).await;
    let error = hangs.await?.unwrap_err();
    assert!(matches!(error, AddError::NotSynced { .. }), "{error}");
    assert_eq!(manager.list().len(), 1);
    hang.remove();
    hang.release();
    manager.add(place.watch("hangs")).await?;
    assert_eq!(manager.stop_all().await, 2);
    Ok(())
}

async fn a_target_that_comes_later_is_told_when_it_comes(place: Place) -> Result<()> {
    let manager = place.manager().await?;
    let (watch, told) = Told::of(place.watch("late").wait_for_target());
    let watch = manager.add(watch).await?;
    assert_eq!((watch.state(), watch.get().is_none()), (WatchState::Missing, true));
    place.make("late", "1").await?;
    told.knows(Some("1")).await;
    assert_eq!((watch.state(), told.all()), (WatchState::Live, vec!["+1".to_owned()]));
    place.remove("late").await?;
    told.knows(None).await;
    // Another one of that name.
    place.make("late", "2").await?;
    told.knows(Some("2")).await;
    assert_eq!(told.all(), ["+1", "-1", "+2"]);
    manager.shutdown(SOON).await;
    Ok(())
}

async fn a_resource_that_is_not_served_is_said_and_one_that_comes_later_is_picked_up(
    place: Place,
) -> Result<()> {
    let manager = place.manager().await?;
    let group = format!("{}.example.com", place.namespace);
    let resource = Resource {
        group: group.clone(),
        version: "v1".to_owned(),
        plural: "gadgets".to_owned(),
        kind: "Gadget".to_owned(),
        namespaced: true,
    };
    let watch = || RequestWatch::new(place.owner("g"), resource.clone(), &*place.namespace, "g");
    let error = manager.add(watch()).await.unwrap_err();
    assert!(matches!(error, AddError::UnknownResource { .. }), "{error}");
    assert!(manager.list().is_empty());
    let (watch, told) = Told::of(watch().wait_for_target());
    let watch = manager.add(watch).await?;
    assert_eq!(watch.state().as_str(), "stale");
    let definition = json!({
        "metadata": { "name": format!("gadgets.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "plural": "gadgets", "singular": "gadget", "kind": "Gadget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
            }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    place.post(definitions, &definition).await?;
    let gadget = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Gadget",
        "metadata": { "name": "g" }, "data": { "key": "1" },
    });
    let path = resource.path(Some(&place.namespace));
    eventually("gadgets are served", SOON, async || {
        place.endpoint.post(&path, &gadget).await.ok().filter(|answer| answer.status.is_success())
    })
    .await;
    told.knows(Some("1")).await;
    assert_eq!(watch.state(), WatchState::Live);
    place.delete(&format!("{definitions}/gadgets.{group}")).await?;
    told.knows(None).await;
    manager.shutdown(SOON).await;
    Ok(())
}

async fn an_object_that_was_just_made_is_there(place: Place) -> Result<()> {
    // Also where it is seen through a cache that was filled before.
    let manager = place.manager().await?.share_from(1);
    let first = RequestWatch::new(place.owner("x"), config_maps(), &*place.namespace, "first");
    manager.add(first.wait_for_target()).await?;
    for number in 0..20 {
        let name = format!("new-{number}");
        place.make(&name, "1").await?;
        let watch = manager.add(place.watch(&name)).await?;
        assert!(watch.get().is_some() && watch.state() == WatchState::Live);
    }
    place.watches(1).await;
    manager.shutdown(SOON).await;
    Ok(())
}
