//! Through which informers objects are seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::on_both;
use kube_informer_testbed::proxy::{Answer, Request};

use crate::harness::{Place, SOON, Told};

on_both! {
    promise_20_ten_thousand_watched_objects_do_not_open_ten_thousand_connections,
    promise_20_what_is_told_has_no_holes_while_objects_move_between_informers,
    promise_20_where_the_namespace_is_forbidden_objects_are_watched_by_their_names,
}

const MANY: usize = 10_000;

async fn promise_20_ten_thousand_watched_objects_do_not_open_ten_thousand_connections(
    place: Place,
) -> Result<()> {
    let there = ["object-0", "object-5000", "object-9999"];
    for name in there {
        place.make(name, "1").await?;
    }
    let manager = place.manager().await?;
    let mut told = Vec::new();
    let watches = (0..MANY).map(|number| {
        let name = format!("object-{number}");
        let watch = place.watch(&name).wait_for_target();
        if there.contains(&&*name) {
            let (watch, hears) = Told::of(watch);
            told.push(hears);
            return watch;
        }
        watch
    });
    let watches: Vec<_> = watches.collect();
    let adds = watches.into_iter().map(|watch| manager.add(watch));
    for watch in futures_util::future::join_all(adds).await {
        watch?;
    }
    assert_eq!(manager.list().len(), MANY);
    for told in &told {
        told.knows(Some("1")).await;
    }
    place.watches(1).await;
    // The first three had informers of their own, until there were four.
    let watches = place.proxy.requests().count(Request::is_watch);
    assert!(watches <= 8, "{watches} watches in all");
    let connections: std::collections::BTreeSet<u64> =
        place.proxy.requests().all().iter().map(|request| request.connection).collect();
    assert!(connections.len() <= 12, "{} connections in all", connections.len());
    place.change("object-5000", "2").await?;
    told[1].knows(Some("2")).await;
    assert_eq!(manager.stop_all().await, MANY);
    place.watches(0).await;
    manager.shutdown(SOON).await;
    Ok(())
}

async fn promise_20_what_is_told_has_no_holes_while_objects_move_between_informers(
    place: Place,
) -> Result<()> {
    let manager = place.manager().await?.share_from(3);
    place.make("steady", "0").await?;
    let (watch, told) = Told::of(place.watch("steady"));
    manager.add(watch).await?;
    let (moving, first) = Told::of(place.watch("moving").wait_for_target());
    manager.add(moving).await?;
    let mut moves = vec![first];
    let place = Arc::new(place);
    let ends = Arc::new(AtomicBool::new(false));
    let writer = {
        let (place, ends) = (Arc::clone(&place), Arc::clone(&ends));
        tokio::spawn(async move {
            let mut number = 0;
            while !ends.load(Ordering::Relaxed) {
                number += 1;
                place.change("steady", &number.to_string()).await?;
                // One that comes and goes.
                if number % 2 == 0 {
                    place.remove("moving").await?;
                } else {
                    place.make("moving", &number.to_string()).await?;
                }
            }
            anyhow::Ok(number)
        })
    };
    for _ in 0..5 {
        // One of the whole namespace, and back.
        for name in ["x", "y"] {
            manager.add(place.watch(name).wait_for_target()).await?;
        }
        eventually("all are seen through one", SOON, async || {
            manager.list().iter().all(|watch| watch.shared).then_some(())
        })
        .await;
        manager.stop(&place.watch("x").key()).await;
        manager.stop(&place.watch("y").key()).await;
        manager.stop(&place.watch("moving").key()).await;
        eventually("each is seen by itself", SOON, async || {
            manager.list().iter().all(|watch| !watch.shared).then_some(())
        })
        .await;
        let (again, hears) = Told::of(place.watch("moving").wait_for_target());
        manager.add(again).await?;
        moves.push(hears);
    }
    ends.store(true, Ordering::Relaxed);
    let last = writer.await??;
    told.knows(Some(&last.to_string())).await;
    // The last one knows what there is in the end, and none was told what cannot be.
    let last = (last % 2 == 1).then(|| last.to_string());
    moves.last().unwrap().knows(last.as_deref()).await;
    moves.iter().for_each(Told::sound);
    assert_eq!(told.all().first().map(String::as_str), Some("+0!"));
    assert!(told.all().iter().skip(1).all(|each| each.starts_with('~')), "{:?}", told.all());
    manager.shutdown(SOON).await;
    Ok(())
}

async fn promise_20_where_the_namespace_is_forbidden_objects_are_watched_by_their_names(
    place: Place,
) -> Result<()> {
    let manager = place.manager().await?.share_from(3).probe(std::time::Duration::from_millis(300));
    let forbidden = place.proxy.on_all(place.whole()).answer(Answer::forbidden());
    let mut told = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        place.make(name, "1").await?;
        let (watch, hears) = Told::of(place.watch(name));
        manager.add(watch).await?;
        told.push(hears);
    }
    assert!(manager.list().iter().all(|watch| !watch.shared));
    for name in ["a", "b", "c", "d", "e"] {
        place.change(name, "2").await?;
    }
    for told in &told {
        told.knows(Some("2")).await;
    }
    // It is tried again from time to time, and when it is allowed, one is for all.
    let tried = || place.proxy.requests().count(|request| request.status == Some(403));
    let before = tried();
    eventually("it is tried again", SOON, async || (tried() > before).then_some(())).await;
    forbidden.remove();
    place.watches(1).await;
    assert!(manager.list().iter().all(|watch| watch.shared));
    place.change("e", "3").await?;
    told[4].knows(Some("3")).await;
    assert_eq!(told[4].all(), ["+1!", "~2", "~3"]);
    // It is forbidden while it is in use.
    let forbidden = place.proxy.on(place.whole()).answer(Answer::forbidden());
    place.proxy.cut_open(place.whole()).await;
    eventually("each is seen by itself again", SOON, async || {
        manager.list().iter().all(|watch| !watch.shared).then_some(())
    })
    .await;
    place.remove("a").await?;
    told[0].knows(None).await;
    forbidden.remove();
    manager.shutdown(SOON).await;
    place.watches(0).await;
    Ok(())
}
