//! Through which informers objects are seen, and that nothing is lost when that changes.

use super::*;
use crate::encoding::Encoding;
use crate::reflector::fault::Fault;
use crate::wire::Status;

pub(super) fn status(code: u16) -> Fault {
    let body = format!(r#"{{"kind":"Status","status":"Failure","message":"no","code":{code}}}"#);
    Fault::Status(Box::new(Status::read(Encoding::Json, body.as_bytes())))
}

async fn add(manager: &Manager, name: &str) -> (Watch, Heard, Hand) {
    let (watch, told) = heard(pod(name));
    let add = adding(manager, watch);
    let mut hand = manager.one(name).await;
    hand.list(&[(name, 10)], 10);
    (add.await.unwrap().unwrap(), told, hand)
}

#[tokio::test(start_paused = true)]
async fn promise_20_objects_move_to_a_shared_informer_without_a_lost_or_doubled_event() {
    let manager = manager().share_from(3).sync_deadline(Duration::from_secs(3600)).started();
    let (_, mut a, mut old) = add(&manager, "a").await;
    let (_, mut b, mut gone) = add(&manager, "b").await;
    assert_eq!((a.next().await, b.next().await), ("+a@10!".to_owned(), "+b@10!".to_owned()));
    let third = adding(&manager, pod("c"));
    manager.has(&["d", "d/a", "d/b"]).await;
    let mut whole = manager.whole().await;
    old.put("a", 20);
    assert_eq!(a.next().await, "~a@10→20", "until then it is told as before");
    gone.remove("b", 21);
    assert_eq!(b.next().await, "-b@21");
    // A list from before that: what is old is not told.
    whole.list(&[("a", 15), ("b", 10), ("c", 12)], 15);
    third.await.unwrap().unwrap();
    a.nothing().await;
    b.nothing().await;
    assert_eq!(manager.scopes(), ["d", "d/a", "d/b"]);
    // It catches up.
    whole.put("a", 20);
    manager.has(&["d", "d/b"]).await;
    whole.remove("b", 21);
    manager.has(&["d"]).await;
    a.nothing().await;
    b.nothing().await;
    assert!(manager.list().iter().all(|watch| watch.shared));
    whole.put("a", 30);
    whole.put("b", 31);
    assert_eq!((a.next().await, b.next().await), ("~a@20→30".to_owned(), "+b@31".to_owned()));
    // And back, when few are left.
    manager.stop(&pod("b").key()).await;
    manager.stop(&pod("c").key()).await;
    let mut own = manager.one("a").await;
    own.list(&[("a", 10)], 10);
    whole.remove("a", 40);
    assert_eq!(a.next().await, "-a@40");
    own.replace(Vec::new(), 41);
    manager.has(&["d/a"]).await;
    own.put("a", 50);
    assert_eq!(a.next().await, "+a@50");
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_never_catches_up_is_believed_in_the_end() {
    let manager = manager().share_from(2).started();
    let (_, mut a, _old) = add(&manager, "a").await;
    a.next().await;
    let second = adding(&manager, pod("b"));
    let mut whole = manager.whole().await;
    // The server was restored to what it was before.
    whole.list(&[("a", 3), ("b", 4)], 5);
    second.await.unwrap().unwrap();
    let before = Instant::now();
    assert_eq!(a.next().await, "~a@10→3");
    assert!(before.elapsed() >= Duration::from_secs(25), "not at once");
    manager.has(&["d"]).await;
}

#[tokio::test(start_paused = true)]
async fn where_the_namespace_is_forbidden_objects_are_watched_by_their_names_until_it_is_tried_again() {
    let manager = manager().share_from(2).started();
    let (_, mut a, mut own) = add(&manager, "a").await;
    a.next().await;
    let second = adding(&manager, pod("b"));
    manager.whole().await.fail(status(403));
    manager.has(&["d/a", "d/b"]).await;
    manager.one("b").await.list(&[("b", 11)], 11);
    assert!(!manager.list()[0].shared);
    second.await.unwrap().unwrap();
    // That is remembered, also when nothing is watched there for a while.
    own.put("a", 12);
    assert_eq!(a.next().await, "~a@10→12");
    assert_eq!(manager.stop_all().await, 2);
    let (third, fourth) = (adding(&manager, pod("a")), adding(&manager, pod("b")));
    manager.has(&["d/a", "d/b"]).await;
    for name in ["a", "b"] {
        manager.one(name).await.list(&[(name, 20)], 20);
    }
    third.await.unwrap().unwrap();
    fourth.await.unwrap().unwrap();
    // After ten minutes.
    let mut whole = manager.whole().await;
    assert_eq!(manager.scopes(), ["d", "d/a", "d/b"], "nothing is given up for a try");
    whole.list(&[("a", 20), ("b", 20)], 20);
    manager.has(&["d"]).await;
    // It is forbidden again, and each is seen by itself.
    whole.fail(status(403));
    manager.has(&["d", "d/a", "d/b"]).await;
    for name in ["a", "b"] {
        manager.one(name).await.list(&[(name, 20)], 20);
    }
    manager.has(&["d/a", "d/b"]).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_forbidden_or_not_served_is_said_at_once() {
    let manager = manager().started();
    let add = adding(&manager, pod("a"));
    manager.one("a").await.fail(status(403));
    let error = add.await.unwrap().unwrap_err();
    assert!(matches!(&error, AddError::Forbidden { target, .. } if target == "pods d/a"), "{error}");
    manager.has(&[]).await;
    let add = adding(&manager, pod("a"));
    manager.one("a").await.fail(status(404));
    let error = add.await.unwrap().unwrap_err();
    assert!(matches!(error, AddError::UnknownResource { .. }), "{error}");
    assert!(manager.is_bare());
    // Who waits is not held up by it either.
    let add = adding(&manager, pod("a").wait_for_target());
    let mut hand = manager.one("a").await;
    hand.fail(status(404));
    let watch = add.await.unwrap().unwrap();
    assert_eq!(watch.state().as_str(), "stale");
    hand.list(&[("a", 1)], 1);
    hand.live();
    eventually("it is there", || (watch.state() == WatchState::Live).then_some(())).await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_was_stopped_begins_anew_and_what_was_missed_is_told() {
    let metrics = Metrics::default();
    let manager = manager().metrics(&metrics).started();
    let (watch, mut a, hand) = add(&manager, "a").await;
    a.next().await;
    manager.inner.factory.stop(&hand.informer(), AGES).await;
    let mut anew = manager.one("a").await;
    assert_eq!(watch.state(), WatchState::Restarting);
    assert!(watch.get().is_some(), "what was known is not forgotten");
    anew.list(&[], 20);
    assert_eq!(a.next().await, "-a@10?");
    anew.put("a", 21);
    assert_eq!(a.next().await, "+a@21");
    assert_eq!(manager.list()[0].restarts, 1);
    let page = page(&metrics);
    for line in ["watches", "restarts_total"] {
        let line = format!(r#"kube_informer_manager_{line}{{manager="manager",resource="pods"}} 1"#);
        assert!(page.contains(&line), "{line} in {page}");
    }
    manager.stop(watch.key()).await;
    assert!(!self::page(&metrics).contains("resource="), "{}", self::page(&metrics));
    assert!(manager.is_bare() && manager.scopes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn promise_20_what_is_stuck_begins_anew_later_each_time_and_one_never_waits_for_another() {
    let manager = manager().started();
    let (_, mut a, hand) = add(&manager, "a").await;
    let (_, mut b, mut other) = add(&manager, "b").await;
    a.next().await;
    b.next().await;
    hand.fail(status(500));
    drop(hand);
    let mut waits = Vec::new();
    for _ in 0..4 {
        let before = Instant::now();
        // What begins anew fails, too.
        manager.one("a").await.fail(status(500));
        waits.push(before.elapsed().as_secs());
    }
    // The grace of a minute, up to a tick of five seconds, and a second that doubles.
    for (at, wait) in waits.iter().enumerate() {
        let from = 60 + (1 << at);
        assert!((from - 1..from + 6).contains(wait), "{waits:?}");
    }
    other.put("b", 11);
    assert_eq!(b.next().await, "~b@10→11");
    assert_eq!(manager.list().iter().map(|watch| watch.restarts).collect::<Vec<_>>(), [4, 0]);
    a.nothing().await;
}

#[tokio::test(start_paused = true)]
async fn health_is_looked_at_every_five_seconds_unless_said_otherwise() {
    let often = |manager: Manager, seconds: u64| async move {
        let at_once = Duration::from_millis(1);
        let manager = manager.grace(at_once).restarts(at_once, at_once).started();
        let (_watch, _told, hand) = add(&manager, "a").await;
        hand.fail(status(500));
        drop(hand);
        manager.one("a").await.fail(status(500));
        // It is looked at when it begins, and it failed a moment after that.
        let before = Instant::now();
        drop(manager.one("a").await);
        let waited = before.elapsed();
        let about = Duration::from_secs(seconds);
        assert!(waited > about * 9 / 10 && waited < about * 11 / 10, "{waited:?} of {about:?}");
    };
    often(as_it_is_made(), 5).await;
    often(as_it_is_made().health_check(Duration::from_secs(20)), 20).await;
}

#[tokio::test(start_paused = true)]
async fn what_a_new_informer_would_not_help_is_not_begun_anew() {
    let manager = manager().started();
    let (_, mut a, hand) = add(&manager, "a").await;
    a.next().await;
    let faults = [Fault::Refused("nobody".to_owned()), status(403), status(404), status(401), status(429)];
    for fault in faults {
        hand.fail(fault);
        // tidy: allow-sleep the clock is paused: no real time passes
        tokio::time::sleep(Duration::from_secs(600)).await;
    }
    assert_eq!(manager.list()[0].restarts, 0);
    assert_eq!(manager.list()[0].state.as_str(), "stale");
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_others_use_is_neither_taken_from_them_nor_stopped() {
    let manager = manager().share_from(1).started();
    let add = adding(&manager, pod("a"));
    let mut whole = manager.whole().await;
    let factory = manager.inner.factory.clone();
    let others = factory.informer::<Pod>(Scope::namespace("d"));
    whole.list(&[("a", 1)], 1);
    let watch = add.await.unwrap().unwrap();
    whole.fail(status(500));
    // tidy: allow-sleep the clock is paused: no real time passes
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(manager.list()[0].restarts, 0);
    assert!(manager.stop(watch.key()).await);
    whole.put("b", 2);
    assert_eq!((others.list().count(), manager.scopes()), (2, vec!["d".to_owned()]));
    // What nobody else uses is stopped, also if another manager has used it.
    let second = Manager::new(&factory).share_from(1);
    assert_eq!(second.add(pod("b")).await.unwrap().get().unwrap().name(), "b");
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_an_informer_begins_anew_leaves_nothing() {
    let manager = manager().restarts(Duration::from_secs(100), AGES).started();
    let (watch, mut a, hand) = add(&manager, "a").await;
    a.next().await;
    manager.inner.factory.stop(&hand.informer(), AGES).await;
    eventually("it begins anew", || (manager.list()[0].restarts == 1).then_some(())).await;
    let before = Instant::now();
    assert!(manager.stop(watch.key()).await);
    assert!(before.elapsed() < Duration::from_secs(50), "nobody waits for it");
    assert!(manager.is_bare() && manager.scopes().is_empty());
    // tidy: allow-sleep the clock is paused: no real time passes
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert!(manager.scopes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_recovers_before_it_begins_anew_is_told_at_once_and_stays() {
    let manager = manager().restarts(Duration::from_secs(1000), AGES).started();
    let (_, mut a, mut hand) = add(&manager, "a").await;
    a.next().await;
    hand.fail(status(500));
    // tidy: allow-sleep the clock is paused: no real time passes
    tokio::time::sleep(Duration::from_secs(200)).await;
    let before = Instant::now();
    hand.put("a", 11);
    assert_eq!(a.next().await, "~a@10→11");
    hand.live();
    hand.put("a", 12);
    assert_eq!(a.next().await, "~a@11→12");
    assert!(before.elapsed() < Duration::from_secs(10), "{:?}", before.elapsed());
    // tidy: allow-sleep the clock is paused: no real time passes
    tokio::time::sleep(Duration::from_secs(5000)).await;
    assert_eq!(manager.list()[0].restarts, 0);
    hand.put("a", 13);
    assert_eq!(a.next().await, "~a@12→13");
    // What fails again has its time again.
    hand.fail(status(500));
    eventually("it begins anew", || (manager.list()[0].restarts == 1).then_some(())).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_takes_long_is_not_begun_anew() {
    let manager = manager().started();
    let (_, mut a, mut hand) = add(&manager, "a").await;
    a.next().await;
    hand.live();
    hand.list_again();
    // tidy: allow-sleep the clock is paused: no real time passes
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((manager.list()[0].restarts, manager.list()[0].state.as_str()), (0, "stale"));
    hand.put("a", 13);
    assert_eq!(a.next().await, "~a@10→13");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_refused_is_tried_again_whatever_becomes_of_others() {
    let manager = manager().share_from(1).started();
    let begun = Instant::now();
    let of = |namespace: &str| {
        let watch = RequestWatch::new(Request::new("o", namespace), pods(), namespace, "a");
        watch.wait_for_target().within(Duration::from_millis(1))
    };
    // tidy: allow-sleep the clock is paused: no real time passes
    tokio::time::sleep(Duration::from_secs(1)).await;
    manager.add(of("d1")).await.unwrap();
    manager.add(of("d2")).await.unwrap();
    manager.hand(&Scope::namespace("d1")).await.fail(status(403));
    manager.has(&["d1/a", "d2"]).await;
    let second = manager.hand(&Scope::namespace("d2")).await;
    // The time of the first is over, and it was not looked yet.
    // tidy: allow-sleep the clock is paused: no real time passes
    tokio::time::sleep_until(begun + Duration::from_millis(602_500)).await;
    assert_eq!(manager.scopes(), ["d1/a", "d2"]);
    second.fail(status(403));
    manager.has(&["d1/a", "d2/a"]).await;
    manager.has(&["d1", "d2/a"]).await;
}

#[tokio::test(start_paused = true)]
async fn an_add_is_not_forbidden_because_the_namespace_has_just_been() {
    use futures_util::FutureExt;
    let manager = manager().share_from(2).started();
    let (_, mut a, _own) = add(&manager, "a").await;
    a.next().await;
    let second = adding(&manager, pod("b"));
    let whole = manager.whole().await;
    // Nobody else runs in between.
    whole.fail(status(403));
    let mut third = Box::pin(manager.add(pod("c")));
    assert!(third.as_mut().now_or_never().is_none());
    for name in ["b", "c"] {
        manager.one(name).await.list(&[(name, 11)], 11);
    }
    second.await.unwrap().unwrap();
    assert_eq!(third.await.unwrap().state(), WatchState::Live);
}
