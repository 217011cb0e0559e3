//! How handlers are called.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::*;

/// A manager, a watch that is there, what its handler is told, and its cache.
async fn watched<F, Fut>(manager: &Manager, name: &str, act: F) -> (Watch, Heard, Hand)
where
    F: Fn(WatchEvent) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let (watch, told) = telling(pod(name), act);
    let add = adding(manager, watch);
    let mut hand = manager.one(name).await;
    hand.list(&[(name, 1)], 1);
    (add.await.unwrap().unwrap(), told, hand)
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_is_called_again_later_each_time_with_what_is_known_then() {
    let metrics = Metrics::default();
    let manager = manager().metrics(&metrics).timeout(Duration::from_secs(7)).started();
    let calls = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&calls);
    let act = move |_| {
        let call = counts.fetch_add(1, Ordering::Relaxed);
        async move {
            match call {
                0 => Err("not yet".into()),
                1 => panic!("not now"),
                2 => std::future::pending().await,
                _ => Ok(()),
            }
        }
    };
    let (watch, mut told, mut hand) = watched(&manager, "a", act).await;
    assert_eq!(told.next().await, "+a@1!");
    assert_eq!(told.next().await, "+a@1!", "an error");
    assert_eq!(told.next().await, "+a@1!", "a panic");
    hand.put("a", 3);
    assert_eq!(told.next().await, "+a@3!", "a timeout; and it is told what there is");
    told.nothing().await;
    assert_eq!(manager.list()[0].failures, 0);
    let page = page(&metrics);
    for result in ["success", "error", "panic", "timeout"] {
        let labels = format!(r#"{{manager="manager",resource="pods",result="{result}"}} 1"#);
        assert!(page.contains(&format!("handler_calls_total{labels}")), "{result}: {page}");
    }
    // With the last watch, what was counted goes, too.
    manager.stop(watch.key()).await;
    assert!(!self::page(&metrics).contains("resource="), "{}", self::page(&metrics));
    // In all, it stays counted.
    let stats = manager.stats();
    let each_once = ["success", "error", "panic", "timeout"].map(|result| (result, 1));
    assert_eq!(stats.calls, each_once.into());
    assert_eq!((stats.adds, stats.restarts), ([("success", 1)].into(), 0));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_stuck_holds_up_no_other() {
    let metrics = Metrics::default();
    let manager = manager().metrics(&metrics).workers(1).timeout(AGES).started();
    let (stuck, mut its, mut hand) = watched(&manager, "stuck", |_| std::future::pending()).await;
    assert_eq!(its.next().await, "+stuck@1!");
    let (_, mut told, mut other) = watched(&manager, "a", async |_| Ok(())).await;
    assert_eq!(told.next().await, "+a@1!");
    for version in 2..50 {
        hand.put("stuck", version);
        other.put("a", version);
        assert_eq!(told.next().await, format!("~a@{}→{version}", version - 1));
    }
    its.nothing().await;
    assert!(page(&metrics).contains(r#"manager_set_aside{manager="manager"} 1"#));
    // It is cut off when its watch is stopped, and the other goes on.
    assert!(manager.stop(stuck.key()).await);
    assert!(page(&metrics).contains(r#"manager_set_aside{manager="manager"} 0"#));
    other.put("a", 99);
    assert_eq!(told.next().await, "~a@49→99");
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_the_call_that_goes_on_and_none_follows() {
    let manager = manager().started();
    let ended = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&ended);
    let act = move |_| {
        let counts = Arc::clone(&counts);
        async move {
            // tidy: allow-sleep this is the work, on a paused clock
            tokio::time::sleep(Duration::from_secs(5)).await;
            counts.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    };
    let (watch, mut told, mut hand) = watched(&manager, "a", act).await;
    told.next().await;
    hand.put("a", 2);
    assert!(manager.stop(watch.key()).await);
    assert_eq!(ended.load(Ordering::Relaxed), 1);
    told.nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_stop_its_own_watch() {
    let manager = manager().started();
    let (stops, result) = (manager.clone(), Arc::new(Mutex::new(None)));
    let says = Arc::clone(&result);
    let act = move |_| {
        let (stops, says) = (stops.clone(), Arc::clone(&says));
        async move {
            let before = Instant::now();
            let was_there = stops.stop(&pod("a").key()).await;
            *says.lock().unwrap() = Some((was_there, before.elapsed() < Duration::from_secs(1)));
            Ok(())
        }
    };
    let (_, mut told, mut hand) = watched(&manager, "a", act).await;
    told.next().await;
    assert_eq!(eventually("it was stopped", || *result.lock().unwrap()).await, (true, true));
    hand.put("a", 2);
    told.nothing().await;
    assert!(manager.is_bare());
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_cuts_off_and_names_those_that_are_busy_at_the_deadline() {
    let manager = manager().timeout(AGES).started();
    let (watch, mut told, _hand) = watched(&manager, "a", |_| std::future::pending()).await;
    told.next().await;
    let report = manager.shutdown(Duration::from_secs(3)).await;
    assert_eq!(report, Shutdown { stopped: 1, busy: vec![watch.key().clone()] });
    drop(watch);
    assert!(told.0.recv().await.is_none(), "the handler is gone, and what it held");
}

#[tokio::test(start_paused = true)]
async fn everything_is_said_again_after_the_resync_period_and_marked() {
    let manager = manager().resync(Duration::from_secs(300)).started();
    let (_, mut told, mut hand) = watched(&manager, "a", async |_| Ok(())).await;
    let mut requests = manager.requests();
    assert_eq!(told.next().await, "+a@1!");
    for _ in 0..3 {
        let before = Instant::now();
        assert_eq!(told.next().await, "=a@1");
        assert!(before.elapsed() > Duration::from_secs(290) && before.elapsed() < Duration::from_secs(310));
    }
    use futures_util::StreamExt;
    assert_eq!(requests.next().await, Some(Request::new("o", "a")), "owners, too");
    hand.remove("a", 5);
    assert_eq!(told.next().await, "-a@5");
    if let Ok(Some(what)) = timeout(Duration::from_secs(1000), told.0.recv()).await {
        panic!("of what is gone nothing is said: {what}");
    }
}

#[tokio::test(start_paused = true)]
async fn everything_is_said_again_every_five_minutes_unless_said_otherwise() {
    let manager = as_it_is_made().started();
    let (_, mut told, _hand) = watched(&manager, "a", async |_| Ok(())).await;
    assert_eq!(told.next().await, "+a@1!");
    let before = Instant::now();
    assert_eq!(told.next().await, "=a@1");
    let seconds = before.elapsed().as_secs();
    assert!((290..310).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn each_watch_is_as_old_as_it_is_long_since_it_was_added() {
    let manager = manager().started();
    let began = jiff::Timestamp::now();
    let (_, _a, hand) = watched(&manager, "a", async |_| Ok(())).await;
    let between = Duration::from_secs(90);
    tokio::time::advance(between).await;
    let (_, _b, _other) = watched(&manager, "b", async |_| Ok(())).await;
    let ages = || manager.list().iter().map(|watch| watch.age).collect::<Vec<_>>();
    let before = ages();
    assert!(before[1] < Duration::from_secs(1), "{before:?}");
    assert!((between..between + Duration::from_secs(1)).contains(&before[0]), "{before:?}");
    // Whatever happens to it, it is the same.
    manager.inner.factory.stop(&hand.informer(), AGES).await;
    drop(hand);
    manager.one("a").await.list(&[("a", 20)], 20);
    tokio::time::advance(between).await;
    let after = ages();
    assert!(after[0] >= before[0] + between && after[1] >= before[1] + between, "{before:?} {after:?}");
    // Of the wall's clock, which nobody stops here.
    let since: Vec<_> = manager.list().iter().map(|watch| watch.since).collect();
    assert!(since.is_sorted() && since[0] >= began && since[1] <= jiff::Timestamp::now(), "{since:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_call_is_begun_or_goes_on_after_a_stop_whenever_it_comes() {
    let manager = manager().started();
    for round in 0..300 {
        let (is_over, wrong) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let (over, counts) = (Arc::clone(&is_over), Arc::clone(&wrong));
        let act = move |_| {
            let (over, counts) = (Arc::clone(&over), Arc::clone(&counts));
            async move {
                for _ in 0..3 {
                    counts.fetch_add(u32::from(over.load(Ordering::SeqCst)), Ordering::SeqCst);
                    tokio::task::yield_now().await;
                }
                Ok(())
            }
        };
        let (watch, _told, mut hand) = watched(&manager, "a", act).await;
        hand.put("a", 2);
        for _ in 0..round % 10 {
            tokio::task::yield_now().await;
        }
        assert!(manager.stop(watch.key()).await);
        is_over.store(true, Ordering::SeqCst);
        hand.put("a", 3);
        tokio::task::yield_now().await;
        assert_eq!(wrong.load(Ordering::SeqCst), 0);
    }
}

/// What is done with a manager, once begun and dropped, and then once more.
async fn twice<T>(ended: &AtomicU32, end: impl AsyncFn() -> T) -> T {
    use futures_util::FutureExt;
    assert!(Box::pin(end()).now_or_never().is_none(), "a call goes on");
    let again = end().await;
    assert_eq!(ended.load(Ordering::Relaxed), 1, "it has been waited for");
    again
}

#[tokio::test(start_paused = true)]
async fn promise_20_a_stop_that_is_repeated_waits_as_the_first_did() {
    for way in 0..4 {
        let manager = manager().started();
        let ended = Arc::new(AtomicU32::new(0));
        let counts = Arc::clone(&ended);
        let act = move |_| {
            let counts = Arc::clone(&counts);
            async move {
                // tidy: allow-sleep this is the work, on a paused clock
                tokio::time::sleep(Duration::from_secs(5)).await;
                counts.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        };
        let (watch, mut told, _hand) = watched(&manager, "a", act).await;
        told.next().await;
        let owner = Request::new("o", "a");
        match way {
            0 => assert!(!twice(&ended, async || manager.stop(watch.key()).await).await),
            1 => assert_eq!(twice(&ended, async || manager.stop_for_owner(&owner).await).await, 0),
            2 => assert_eq!(twice(&ended, async || manager.stop_all().await).await, 0),
            _ => {
                let report = twice(&ended, async || manager.shutdown(AGES).await).await;
                assert_eq!(report, Shutdown::default());
            }
        }
        assert!(manager.is_bare() && manager.scopes().is_empty());
        assert!(manager.inner.lock().ending.is_empty(), "nothing is kept of it");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_that_is_repeated_names_those_that_are_busy() {
    use futures_util::FutureExt;
    let manager = manager().timeout(AGES).started();
    let (watch, mut told, _hand) = watched(&manager, "a", |_| std::future::pending()).await;
    told.next().await;
    assert!(Box::pin(manager.shutdown(AGES)).now_or_never().is_none());
    let report = manager.shutdown(Duration::from_secs(3)).await;
    assert_eq!(report, Shutdown { stopped: 0, busy: vec![watch.key().clone()] });
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_does_not_hide_the_next_one() {
    use super::super::worker::Busy;
    let manager = manager();
    let waiting = manager.inner.enter(&pod("a")).unwrap();
    let first = Busy::new(&waiting.entry);
    let second = Busy::new(&waiting.entry);
    drop(first);
    assert!(waiting.entry.is_busy());
    drop(second);
    assert!(!waiting.entry.is_busy());
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_failed_when_its_object_came_is_told_that_it_is_gone() {
    let manager = manager().retries(Duration::from_secs(10), Duration::from_secs(10)).started();
    let act = async |event| match event {
        WatchEvent::Added { .. } => Err("half done".into()),
        _ => Ok(()),
    };
    let (_, mut told, mut hand) = watched(&manager, "a", act).await;
    assert_eq!(told.next().await, "+a@1!");
    hand.remove("a", 2);
    assert_eq!(told.next().await, "-a@2");
    told.nothing().await;
}
