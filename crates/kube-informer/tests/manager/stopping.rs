//! How watches go, whatever else happens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Result;
use kube_informer::manager::{AddError, Metrics};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::on_both;

use crate::harness::{Place, SOON, Told, quick};

on_both! {
    promise_20_stops_of_all_kinds_at_the_same_time_stop_everything_once,
    an_informer_that_begins_anew_is_not_left_behind_by_a_stop,
    adds_and_stops_that_race_leave_what_was_added_last_or_nothing,
    numbers_are_right_after_restarts_and_gone_after_the_stop,
    a_shutdown_ends_everything_and_can_be_repeated,
}

async fn promise_20_stops_of_all_kinds_at_the_same_time_stop_everything_once(place: Place) -> Result<()> {
    let manager = place.manager().await?;
    for name in ["a", "b", "c", "d", "e"] {
        place.make(name, "1").await?;
        manager.add(place.watch(name)).await?;
    }
    let (a, b) = (place.watch("a").key(), place.owner("b"));
    let (one, two, three, four) =
        tokio::join!(manager.stop(&a), manager.stop_for_owner(&b), manager.stop_all(), manager.stop_all(),);
    assert_eq!(usize::from(one) + two + three + four, 5);
    assert!(manager.list().is_empty());
    place.watches(0).await;
    Ok(())
}

async fn an_informer_that_begins_anew_is_not_left_behind_by_a_stop(place: Place) -> Result<()> {
    place.make("a", "1").await?;
    let factory = place.factory().await?;
    let manager = quick(&factory);
    for _ in 0..20 {
        let watch = manager.add(place.watch("a")).await?;
        let informer = watch.informer().unwrap();
        // Both at the same time: it is begun anew because it was stopped, and nobody wants it any more.
        let (_, stopped) = tokio::join!(factory.stop(&informer, SOON), manager.stop(watch.key()));
        assert!(stopped);
        assert!(factory.stats().is_empty(), "{:?}", factory.stats());
    }
    place.watches(0).await;
    Ok(())
}

async fn adds_and_stops_that_race_leave_what_was_added_last_or_nothing(place: Place) -> Result<()> {
    place.make("a", "1").await?;
    let factory = place.factory().await?;
    let manager = quick(&factory);
    let ends = Arc::new(AtomicBool::new(false));
    let stopper = {
        let (manager, ends, owner) = (manager.clone(), Arc::clone(&ends), place.owner("a"));
        tokio::spawn(async move {
            while !ends.load(Ordering::Relaxed) {
                manager.stop_for_owner(&owner).await;
                tokio::task::yield_now().await;
            }
        })
    };
    for round in 0..100 {
        let add = manager.add(place.watch("a"));
        // Some are dropped before their end.
        let patience = if round % 3 == 0 { Duration::from_millis(round % 7) } else { SOON };
        match tokio::time::timeout(patience, add).await {
            Ok(Ok(_) | Err(AddError::Stopped { .. })) | Err(_) => {}
            Ok(Err(error)) => panic!("{error}"),
        }
    }
    ends.store(true, Ordering::Relaxed);
    stopper.await?;
    manager.stop_all().await;
    assert!(manager.list().is_empty());
    eventually("no informer is left", SOON, async || factory.stats().is_empty().then_some(())).await;
    place.watches(0).await;
    let (watch, told) = Told::of(place.watch("a"));
    manager.add(watch).await?;
    told.knows(Some("1")).await;
    manager.shutdown(SOON).await;
    Ok(())
}

async fn numbers_are_right_after_restarts_and_gone_after_the_stop(place: Place) -> Result<()> {
    place.make("a", "1").await?;
    let factory = place.factory().await?;
    let metrics = Metrics::default();
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let page = || {
        let mut page = String::new();
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        page
    };
    let manager = quick(&factory).metrics(&metrics).name("it");
    let (watch, told) = Told::of(place.watch("a"));
    let watch = manager.add(watch).await?;
    for restart in 1..4 {
        factory.stop(&watch.informer().unwrap(), SOON).await;
        eventually("it has begun anew", SOON, async || {
            let info = manager.list().pop()?;
            (info.restarts == restart && info.state.as_str() == "live").then_some(())
        })
        .await;
        let line = r#"kube_informer_manager_watches{manager="it",resource="configmaps"} 1"#;
        assert!(page().contains(line), "{}", page());
        let line = r#"kube_informer_manager_informers{manager="it",resource="configmaps",of="object",state="live"} 1"#;
        eventually("one informer", SOON, async || page().contains(line).then_some(())).await;
    }
    let line = r#"kube_informer_manager_restarts_total{manager="it",resource="configmaps"} 3"#;
    assert!(page().contains(line), "{}", page());
    place.change("a", "2").await?;
    told.knows(Some("2")).await;
    assert_eq!(told.all(), ["+1!", "~2"], "nothing was told twice");
    manager.stop(watch.key()).await;
    assert!(!page().contains("configmaps"), "{}", page());
    Ok(())
}

async fn a_shutdown_ends_everything_and_can_be_repeated(place: Place) -> Result<()> {
    place.make("a", "1").await?;
    let factory = place.factory().await?;
    let manager = quick(&factory);
    // Those that are there, those that wait, those that cannot be.
    manager.add(place.watch("a")).await?;
    manager.add(place.watch("late").wait_for_target()).await?;
    drop(manager.add(place.watch("never")).await.unwrap_err());
    let (one, two) = tokio::join!(manager.shutdown(SOON), manager.shutdown(SOON));
    assert_eq!(one.stopped + two.stopped, 2);
    assert!(one.busy.is_empty() && two.busy.is_empty());
    assert!(factory.stats().is_empty(), "{:?}", factory.stats());
    place.watches(0).await;
    assert!(matches!(manager.add(place.watch("a")).await, Err(AddError::Stopped { .. })));
    Ok(())
}
