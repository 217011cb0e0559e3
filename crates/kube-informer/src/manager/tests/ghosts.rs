//! That nothing is believed to be there that is gone, however the cache is ahead of what is told of it.

use futures_util::FutureExt;

use super::*;

/// A watch of `y` through the informer of its namespace.
async fn shared(manager: &Manager) -> Hand {
    let add = adding(manager, pod("y"));
    let mut whole = manager.whole().await;
    whole.list(&[("y", 10)], 10);
    whole.live();
    add.await.unwrap().unwrap();
    whole
}

async fn is_missing(watch: &Watch) {
    eventually("it is gone", || (watch.state() == WatchState::Missing).then_some(())).await;
    assert!(watch.get().is_none());
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_in_the_cache_and_is_gone_before_it_was_told_is_gone() {
    let manager = manager().share_from(1).started();
    let mut whole = shared(&manager).await;
    // Nobody else runs in between.
    whole.put("x", 20);
    let watch = manager.add(pod("x")).now_or_never().expect("it is in the cache").unwrap();
    assert!(watch.get().is_some());
    whole.remove("x", 21);
    is_missing(&watch).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_while_the_first_list_is_being_told_is_told_to_be_gone() {
    let manager = manager().share_from(1).started();
    let names: Vec<String> = (0..1000).map(|number| format!("p{number}")).collect();
    let mut objects: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 5)).collect();
    objects.push(("x", 6));
    let (watch, mut told) = heard(pod("x"));
    let add = adding(&manager, watch);
    let mut whole = manager.whole().await;
    whole.list(&objects, 10);
    let watch = add.await.unwrap().unwrap();
    // It is known, and most of the list has not been told.
    whole.remove("x", 21);
    is_missing(&watch).await;
    if let Ok(Ok(first)) = timeout(A_WHILE, async { told.0.recv().await.ok_or(()) }).await {
        assert_eq!((first.as_str(), told.next().await.as_str()), ("+x@6!", "-x@21"));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_among_more_changes_than_can_wait_is_told_to_be_gone() {
    let manager = manager().share_from(1).started();
    let (watch, mut told) = heard(pod("x"));
    let add = adding(&manager, watch);
    let mut whole = manager.whole().await;
    whole.list(&[("x", 10), ("y", 10)], 10);
    whole.live();
    add.await.unwrap().unwrap();
    assert_eq!(told.next().await, "+x@10!");
    // Nobody else runs in between.
    for version in 11..3000 {
        match version {
            500 => whole.remove("x", version),
            _ => whole.put("y", version),
        }
    }
    assert_eq!(told.next().await, "-x@10?");
    whole.put("x", 4000);
    assert_eq!(told.next().await, "+x@4000");
}
