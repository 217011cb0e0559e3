//! What goes wrong, and what is told all the same.

use anyhow::Result;
use kube_informer::manager::WatchState;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::on_both;
use kube_informer_testbed::proxy::{Answer, Match};

use crate::harness::{Place, SOON, Told};

on_both! {
    a_watch_that_is_dead_is_found_and_a_deletion_in_between_is_told,
    a_deletion_while_the_server_cannot_be_reached_is_told,
    what_fails_for_too_long_begins_anew_and_others_are_not_held_up,
    a_server_that_is_gone_is_waited_for_without_beginning_anew,
}

fn one(name: &str) -> Match {
    Match::any().field_selector(format!("metadata.name={name}"))
}

async fn a_watch_that_is_dead_is_found_and_a_deletion_in_between_is_told(place: Place) -> Result<()> {
    place.make("a", "1").await?;
    let factory = place.factory().await?;
    let timings = crate::harness::short().watch(std::time::Duration::from_secs(1));
    let manager = crate::harness::quick(&factory.timings(timings));
    let (watch, told) = Told::of(place.watch("a"));
    manager.add(watch).await?;
    told.knows(Some("1")).await;
    // It says nothing any more, and is not closed.
    let stalled = place.proxy.on_open(Match::watch()).stall();
    place.remove("a").await?;
    told.knows(None).await;
    stalled.release();
    place.make("a", "2").await?;
    told.knows(Some("2")).await;
    manager.shutdown(SOON).await;
    Ok(())
}

async fn a_deletion_while_the_server_cannot_be_reached_is_told(place: Place) -> Result<()> {
    let manager = place.manager().await?;
    let mut told = Vec::new();
    for name in ["goes", "stays", "anew"] {
        place.make(name, "1").await?;
        let (watch, hears) = Told::of(place.watch(name));
        manager.add(watch).await?;
        hears.knows(Some("1")).await;
        told.push(hears);
    }
    place.proxy.go_down().await;
    place.remove("goes").await?;
    place.remove("anew").await?;
    place.make("anew", "2").await?;
    eventually("it is stale", SOON, async || {
        manager.list().iter().all(|watch| watch.state.as_str() == "stale").then_some(())
    })
    .await;
    place.proxy.accept_connections().await;
    told[0].knows(None).await;
    told[2].knows(Some("2")).await;
    let all = told[2].all();
    assert!(
        matches!(&all[..], [first, gone, second] if first == "+1!" && gone.starts_with("-1") && second == "+2"),
        "{all:?}"
    );
    eventually("it is live", SOON, async || {
        manager.list().iter().all(|watch| watch.state.as_str() != "stale").then_some(())
    })
    .await;
    assert_eq!(told[1].all(), ["+1!"]);
    manager.shutdown(SOON).await;
    Ok(())
}

async fn what_fails_for_too_long_begins_anew_and_others_are_not_held_up(place: Place) -> Result<()> {
    let manager = place.manager().await?;
    place.make("fails", "1").await?;
    place.make("works", "1").await?;
    let (fails, its) = Told::of(place.watch("fails"));
    let (works, told) = Told::of(place.watch("works"));
    let fails = manager.add(fails).await?;
    manager.add(works).await?;
    its.knows(Some("1")).await;
    let fault = place.proxy.on(one("fails")).answer(Answer::internal_error());
    place.proxy.cut_open(one("fails")).await;
    let restarts = || manager.list().iter().map(|watch| watch.restarts).collect::<Vec<_>>();
    eventually("it begins anew", SOON, async || (restarts()[0] >= 2).then_some(())).await;
    place.remove("fails").await?;
    place.change("works", "2").await?;
    told.knows(Some("2")).await;
    assert!(fails.get().is_some(), "what was known is kept");
    assert_eq!(its.all(), ["+1!"]);
    fault.remove();
    its.knows(None).await;
    eventually("it is live", SOON, async || (fails.state() == WatchState::Missing).then_some(())).await;
    assert_eq!((restarts()[1], its.all()), (0, vec!["+1!".to_owned(), "-1?".to_owned()]));
    manager.shutdown(SOON).await;
    place.watches(0).await;
    Ok(())
}

async fn a_server_that_is_gone_is_waited_for_without_beginning_anew(place: Place) -> Result<()> {
    let manager = place.manager().await?;
    place.make("a", "1").await?;
    let (watch, told) = Told::of(place.watch("a"));
    let watch = manager.add(watch).await?;
    told.knows(Some("1")).await;
    place.proxy.go_down().await;
    eventually("it is refused", SOON, async || {
        let WatchState::Stale { why, .. } = watch.state() else { return None };
        why.to_string().contains("refused").then_some(())
    })
    .await;
    // Well past the grace.
    let since = manager.list()[0].age;
    eventually("a second is over", SOON, async || {
        (manager.list()[0].age > since + std::time::Duration::from_secs(1)).then_some(())
    })
    .await;
    assert_eq!(manager.list()[0].restarts, 0);
    place.change("a", "2").await?;
    place.proxy.accept_connections().await;
    told.knows(Some("2")).await;
    manager.shutdown(SOON).await;
    Ok(())
}
