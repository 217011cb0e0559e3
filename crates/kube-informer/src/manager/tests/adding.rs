//! How watches come and go.

use futures_util::{FutureExt, StreamExt};

use super::*;
use crate::reflector::fault::Fault;

#[tokio::test(start_paused = true)]
async fn promise_20_adds_at_the_same_time_are_one_watch_and_both_get_it() {
    let manager = manager().started();
    let (first, mut told) = heard(pod("a"));
    let (second, mut other) = heard(pod("a"));
    let (one, two) = (adding(&manager, first), adding(&manager, second));
    let mut hand = manager.one("a").await;
    hand.list(&[("a", 1)], 1);
    let (one, two) = (one.await.unwrap().unwrap(), two.await.unwrap().unwrap());
    assert_eq!(one.key(), two.key());
    assert_eq!(told.next().await, "+a@1!");
    // Once more, when it is there: at once, and without an informer of its own.
    let again = manager.add(pod("a")).now_or_never().unwrap().unwrap();
    assert_eq!(again.get().unwrap().version(), one.get().unwrap().version());
    assert_eq!(manager.list().len(), 1);
    assert_eq!(manager.stats().adds, [("success", 1)].into(), "one was begun");
    assert_eq!(manager.scopes(), ["d/a"]);
    other.nothing().await;
    assert!(manager.stop(one.key()).await);
    assert!(!manager.stop(one.key()).await, "there is none any more");
    assert!(manager.is_bare() && manager.scopes().is_empty());
    assert_eq!(again.state(), WatchState::Stopped);
}

#[tokio::test(start_paused = true)]
async fn promise_20_an_add_that_is_not_in_time_says_why_and_leaves_nothing_and_can_be_tried_again() {
    let metrics = Metrics::default();
    let manager = manager().metrics(&metrics).started();
    let before = Instant::now();
    let add = adding(&manager, pod("a"));
    let hand = manager.one("a").await;
    hand.fail(Fault::Connection("the wire was cut".to_owned()));
    let error = add.await.unwrap().unwrap_err();
    assert!(before.elapsed() >= Duration::from_secs(30), "the deadline");
    let AddError::NotSynced { ref why, .. } = error else { panic!("{error}") };
    assert!(why.contains("the wire was cut"), "{why}");
    assert!(manager.is_bare() && manager.scopes().is_empty(), "nothing is left: {manager:?}");
    assert!(!page(&metrics).contains("manager_watches{"), "no gauge either: {}", page(&metrics));
    let add = adding(&manager, pod("a"));
    manager.one("a").await.list(&[("a", 1)], 1);
    add.await.unwrap().unwrap();
    assert!(page(&metrics).contains(r#"manager_watches{manager="manager",resource="pods"} 1"#));
    assert!(page(&metrics).contains(r#"manager_adds_total{manager="manager",result="not_synced"} 1"#));
}

#[tokio::test(start_paused = true)]
async fn promise_20_an_add_that_is_dropped_leaves_nothing_unless_somebody_else_waits() {
    let manager = manager().started();
    let add = adding(&manager, pod("a"));
    manager.has(&["d/a"]).await;
    add.abort();
    manager.has(&[]).await;
    assert!(manager.is_bare());
    // Two wait, one of them gives up.
    let (one, two) = (adding(&manager, pod("a")), adding(&manager, pod("a")));
    let mut hand = manager.one("a").await;
    one.abort();
    assert!(one.await.unwrap_err().is_cancelled());
    hand.list(&[("a", 1)], 1);
    assert_eq!(two.await.unwrap().unwrap().state(), WatchState::Live);
}

#[tokio::test(start_paused = true)]
async fn promise_20_a_stop_wins_over_an_add_that_is_under_way() {
    let manager = manager().started();
    let add = adding(&manager, pod("a"));
    let mut hand = manager.one("a").await;
    assert_eq!(manager.stop_for_owner(&Request::new("o", "b")).await, 0, "it is somebody else's");
    assert_eq!(manager.stop_for_owner(&Request::new("o", "a")).await, 1);
    hand.list(&[("a", 1)], 1);
    assert!(matches!(add.await.unwrap(), Err(AddError::Stopped { .. })));
    assert!(manager.is_bare());
    manager.has(&[]).await;
    // Also over one that would wait for ever.
    let add = adding(&manager, pod("a").wait_for_target().within(AGES));
    manager.has(&["d/a"]).await;
    assert_eq!(manager.stop_all().await, 1);
    assert!(matches!(add.await.unwrap(), Err(AddError::Stopped { .. })));
}

#[tokio::test(start_paused = true)]
async fn promise_20_a_target_that_is_not_there_yet_is_waited_for_and_told_when_it_comes() {
    let manager = manager().started();
    let (watch, mut told) = heard(pod("a").wait_for_target());
    let mut requests = manager.requests();
    let add = adding(&manager, watch);
    let mut hand = manager.one("a").await;
    hand.list(&[], 1);
    let watch = add.await.unwrap().unwrap();
    assert_eq!((watch.state(), watch.get().is_none()), (WatchState::Missing, true));
    told.nothing().await;
    assert!(requests.next().now_or_never().is_none());
    hand.put("a", 5);
    assert_eq!(told.next().await, "+a@5");
    assert_eq!(requests.next().await, Some(Request::new("o", "a")));
    assert_eq!(watch.state(), WatchState::Live);
    hand.remove("a", 7);
    assert_eq!(told.next().await, "-a@7");
    assert_eq!(watch.state(), WatchState::Missing);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_target_joins_one_who_does_not_and_goes_on_without() {
    let manager = manager().started();
    let strict = adding(&manager, pod("a").within(Duration::from_secs(1)));
    manager.has(&["d/a"]).await;
    let patient = adding(&manager, pod("a").wait_for_target());
    assert!(matches!(strict.await.unwrap(), Err(AddError::NotSynced { .. })));
    assert_eq!(patient.await.unwrap().unwrap().state(), WatchState::Starting);
    assert_eq!(manager.list().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_can_never_be_is_said_at_once() {
    let manager = manager();
    for (namespace, name) in [("d", "a/b"), ("", "a"), ("d", ""), ("d/e", "a"), ("d", "..")] {
        let watch = RequestWatch::new(Request::new("o", "a"), pods(), namespace, name);
        let error = manager.add(watch).now_or_never().unwrap().unwrap_err();
        assert!(matches!(error, AddError::Invalid { .. }), "{error}");
    }
    assert!(manager.is_bare());
}

#[tokio::test(start_paused = true)]
async fn several_owners_of_one_object_share_its_informer_and_are_stopped_apart() {
    let manager = manager().started();
    let of = |owner: &str| RequestWatch::new(Request::new("o", owner), pods(), "d", "a");
    let add = adding(&manager, of("one"));
    let mut hand = manager.one("a").await;
    hand.list(&[("a", 1)], 1);
    add.await.unwrap().unwrap();
    let (two, mut told) = heard(of("two"));
    let two = manager.add(two).await.unwrap();
    assert_eq!(told.next().await, "+a@1!", "what is known already is told");
    assert_eq!(manager.stop_for_owner(&Request::new("o", "one")).await, 1);
    hand.put("a", 2);
    assert_eq!(told.next().await, "~a@1→2");
    assert!(manager.stop(two.key()).await);
    assert!(manager.is_bare() && manager.scopes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn owners_of_several_kinds_are_told_apart() {
    let manager = manager().started();
    let owner = |kind: &str| Owner::from(Request::new("o", "x")).kind(kind);
    let of = |kind: &str| RequestWatch::new(owner(kind), pods(), "d", "a").wait_for_target();
    let (foo, bar) = (adding(&manager, of("Foo")), adding(&manager, of("Bar")));
    manager.one("a").await.list(&[("a", 1)], 1);
    foo.await.unwrap().unwrap();
    bar.await.unwrap().unwrap();
    let mut bars = manager.requests_of_kind("Bar");
    assert_eq!(manager.stop_for_owner(owner("Foo")).await, 1);
    assert_eq!(manager.list().len(), 1);
    assert_eq!(bars.next().now_or_never().flatten(), Some(Request::new("o", "x")));
    assert!(bars.next().now_or_never().is_none(), "once");
}

#[tokio::test(start_paused = true)]
async fn shutting_down_twice_is_nothing_new_and_nothing_can_be_added_afterwards() {
    let manager = manager().started();
    let (mut requests, add) = (manager.requests(), adding(&manager, pod("a").within(AGES)));
    manager.has(&["d/a"]).await;
    assert_eq!(manager.shutdown(AGES).await, Shutdown { stopped: 1, busy: Vec::new() });
    assert!(matches!(add.await.unwrap(), Err(AddError::Stopped { .. })));
    assert_eq!(manager.shutdown(AGES).await, Shutdown::default());
    assert!(matches!(manager.add(pod("a")).await, Err(AddError::Stopped { .. })));
    assert!(manager.is_bare() && manager.scopes().is_empty());
    assert_eq!((requests.next().await, manager.requests().next().await), (None, None));
    assert_eq!((manager.stop_all().await, manager.list().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_a_manager_that_was_dropped() {
    let manager = manager().started();
    let add = adding(&manager, pod("a").wait_for_target());
    manager.one("a").await.list(&[("a", 1)], 1);
    let watch = add.await.unwrap().unwrap();
    let (factory, inner) = (manager.inner.factory.clone(), Arc::downgrade(&manager.inner));
    drop(manager);
    eventually("no informer", || factory.cores().is_empty().then_some(())).await;
    assert_eq!((watch.state(), watch.informer().is_none()), (WatchState::Stopped, true));
    drop(watch);
    eventually("no task", || inner.upgrade().is_none().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn promise_20_what_is_stopped_while_it_succeeds_is_there_or_was_stopped() {
    let manager = manager();
    for _ in 0..3000 {
        let waiting = manager.inner.enter(&pod("a")).unwrap();
        let (entry, barrier) = (Arc::clone(&waiting.entry), Arc::new(tokio::sync::Barrier::new(2)));
        let (stops, meets) = (manager.clone(), Arc::clone(&barrier));
        let stop = tokio::spawn(async move {
            meets.wait().await;
            stops.stop(&pod("a").key()).await
        });
        barrier.wait().await;
        let is_there = manager.inner.succeed(&entry);
        assert!(stop.await.unwrap());
        assert!(!entry.is_ready(), "it was there: {is_there}");
        assert!(manager.list().is_empty());
        drop(waiting);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_was_taken_out_does_not_come_to_be() {
    let manager = manager();
    let waiting = manager.inner.enter(&pod("a")).unwrap();
    // As if it were taken out, and not told so yet.
    let closed = manager.inner.remove(&mut manager.inner.lock(), &waiting.entry);
    assert!(!manager.inner.succeed(&waiting.entry));
    assert!(!waiting.entry.is_ready());
    drop(closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn promise_20_nothing_is_left_when_an_add_has_failed() {
    let manager = manager();
    for _ in 0..300 {
        let add = manager.add(pod("a").within(Duration::from_millis(1)));
        assert!(matches!(add.await, Err(AddError::NotSynced { .. })));
        assert!(manager.is_bare() && manager.scopes().is_empty(), "{:?}", manager.scopes());
    }
}

#[tokio::test(start_paused = true)]
async fn each_who_adds_the_same_has_a_deadline_of_their_own() {
    let manager = manager().started();
    let hasty = adding(&manager, pod("a").within(Duration::from_millis(10)));
    let patient = adding(&manager, pod("a"));
    let error = hasty.await.unwrap().unwrap_err();
    let AddError::NotSynced { deadline, .. } = error else { panic!("{error}") };
    assert_eq!(deadline, Duration::from_millis(10));
    assert_eq!(manager.list().len(), 1, "the other one waits");
    manager.one("a").await.list(&[("a", 1)], 1);
    assert_eq!(patient.await.unwrap().unwrap().state(), WatchState::Live);
}

#[tokio::test(start_paused = true)]
async fn who_insists_on_an_object_is_not_content_because_somebody_else_is() {
    let manager = manager().started();
    let strict = adding(&manager, pod("a"));
    let waits = adding(&manager, pod("a").wait_for_target().within(Duration::from_secs(1)));
    let watch = waits.await.unwrap().unwrap();
    assert!(!strict.is_finished(), "it is not known whether it is there");
    manager.one("a").await.list(&[], 1);
    // It is not in the cache, and the server does not answer.
    assert!(strict.await.unwrap().is_err());
    // Nor where the watch is there already, and it is known that the object is not.
    assert_eq!(watch.state(), WatchState::Missing);
    assert!(manager.add(pod("a")).await.is_err());
    assert_eq!((watch.state(), manager.list().len()), (WatchState::Missing, 1), "it is the other one's");
    assert!(manager.add(pod("a").wait_for_target()).now_or_never().unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_informers_that_were_closed_before() {
    let manager = manager();
    let mut add = Box::pin(manager.add(pod("a")));
    assert!(add.as_mut().now_or_never().is_none());
    manager.has(&["d/a"]).await;
    drop(add);
    assert_eq!(manager.scopes(), ["d/a"], "it has not ended yet");
    manager.shutdown(AGES).await;
    assert!(manager.scopes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn settings_of_any_length_are_taken_as_never() {
    let manager = manager().resync(Duration::MAX).probe(Duration::MAX).share_from(1).started();
    let (watch, mut told) = heard(pod("a").within(Duration::MAX));
    let add = adding(&manager, watch);
    manager.whole().await.fail(feeds::status(403));
    manager.one("a").await.list(&[("a", 1)], 1);
    add.await.unwrap().unwrap();
    assert_eq!(told.next().await, "+a@1!");
    told.nothing().await;
    assert_eq!(manager.scopes(), ["d/a"]);
}

#[tokio::test(start_paused = true)]
async fn informers_of_a_factory_that_was_shut_down_are_not_begun_anew() {
    let manager = manager().started();
    let add = adding(&manager, pod("a"));
    manager.one("a").await.list(&[("a", 1)], 1);
    add.await.unwrap().unwrap();
    manager.inner.factory.shutdown().await;
    // tidy: allow-sleep the clock is paused: no real time passes
    tokio::time::sleep(Duration::from_secs(1000)).await;
    assert_eq!(manager.list()[0].restarts, 0);
    assert_eq!(manager.shutdown(AGES).await.stopped, 1);
}

#[tokio::test(start_paused = true)]
async fn no_series_is_there_twice() {
    let metrics = Metrics::default();
    let manager = manager().metrics(&metrics).metrics(&metrics).started();
    let other = super::manager().metrics(&metrics).started();
    for manager in [&manager, &other] {
        let add = adding(manager, pod("a"));
        manager.one("a").await.list(&[("a", 1)], 1);
        add.await.unwrap().unwrap();
    }
    let page = page(&metrics);
    let series = page.lines().filter(|line| line.starts_with("kube_informer_manager_")).map(|line| {
        let (series, _) = line.rsplit_once(' ').unwrap();
        series
    });
    let mut seen = std::collections::HashSet::new();
    series.for_each(|series| assert!(seen.insert(series), "{series} twice in {page}"));
    assert!(page.contains(r#"informers{manager="manager",resource="pods",of="object",state="#), "{page}");
    assert!(page.contains(r#"watches{manager="manager-2",resource="pods"} 1"#), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_registry_with_controllers_beside_has_each_metric_once() {
    let controllers = crate::controller::Metrics::default();
    let managers = Metrics::sharing(controllers.queues());
    let manager = manager().metrics(&managers).started();
    let meter = controllers.meter("reconciles");
    let queue = WorkQueue::<u32>::new(
        crate::workqueue::Settings::default().metrics(controllers.queues(), "reconciles"),
    );
    let add = adding(&manager, pod("a"));
    manager.one("a").await.list(&[("a", 1)], 1);
    add.await.unwrap().unwrap();
    let families = |register: &dyn Fn(&mut prometheus_client::registry::Registry)| {
        let (mut registry, mut page) = (prometheus_client::registry::Registry::default(), String::new());
        register(&mut registry);
        prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
        let mut families = std::collections::BTreeMap::<String, usize>::new();
        for line in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            *families.entry(line.to_owned()).or_default() += 1;
        }
        (families, page)
    };
    let (both, page) = families(&|registry| {
        controllers.register(registry);
        managers.register(registry);
    });
    assert!(both.values().all(|count| *count == 1), "{both:#?}");
    for family in [
        "workqueue_depth gauge",
        "kube_informer_manager_watches gauge",
        "controller_runtime_reconcile counter",
    ] {
        assert!(both.contains_key(family), "{family} in {both:#?}");
    }
    // Each by its name.
    for name in ["manager", "reconciles"] {
        assert!(page.contains(&format!("workqueue_depth{{name=\"{name}\"}} ")), "{name} in {page}");
    }
    // The other way round, it is the same.
    let managers = Metrics::default();
    let controllers = crate::controller::Metrics::sharing(managers.queues());
    let other = super::manager().metrics(&managers).started();
    let (both, _) = families(&|registry| {
        controllers.register(registry);
        managers.register(registry);
    });
    assert!(both.contains_key("workqueue_depth gauge"), "{both:#?}");
    assert!(both.values().all(|count| *count == 1), "{both:#?}");
    drop((meter, queue, other));
}
