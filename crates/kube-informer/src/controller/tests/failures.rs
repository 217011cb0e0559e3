//! Reconciles that fail, panic, hang, come back.

use super::*;

#[tokio::test(start_paused = true)]
async fn promise_18_what_fails_is_tried_again_and_each_time_later() {
    let mut pods = Hand::new(Scope::All);
    let (told, mut heard) = mpsc::unbounded_channel();
    let reconciler = move |context: Context<Value>| {
        let _ = told.send((context.failures(), Instant::now()));
        async { Err::<Action, BoxError>("no".into()) }
    };
    let running = run(controller(&pods), reconciler);
    pods.list(&[("a", 1)], 1);
    let mut last = None;
    for failures in 0..12_u32 {
        let (counted, now) = heard.recv().await.unwrap();
        assert_eq!(counted, failures);
        if let Some(last) = last.replace(now) {
            // Doubled each time. Timers count in milliseconds.
            let waited = Duration::from_millis(5 << (failures - 1));
            let took: Duration = now - last;
            assert!(took >= waited && took <= waited + Duration::from_millis(2), "{failures}: {took:?}");
        }
    }
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn success_forgets_failures() {
    let mut pods = Hand::new(Scope::All);
    let (told, mut heard) = mpsc::unbounded_channel();
    let reconciler = move |context: Context<Value>| {
        let _ = told.send(context.failures());
        async move {
            if context.failures() < 3 { Err::<Action, BoxError>("no".into()) } else { Ok(Action::done()) }
        }
    };
    let running = run(controller(&pods), reconciler);
    pods.list(&[("a", 1)], 1);
    for round in 0..2 {
        for failures in 0..4 {
            assert_eq!(heard.recv().await.unwrap(), failures, "round {round}");
        }
        pods.put("a", 2 + round);
    }
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn to_ask_to_be_called_again_is_no_failure() {
    let mut pods = Hand::new(Scope::All);
    let (told, mut heard) = mpsc::unbounded_channel();
    let turn = std::sync::atomic::AtomicUsize::new(0);
    let reconciler = move |context: Context<Value>| {
        let _ = told.send(context.failures());
        let turn = turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        async move {
            match turn {
                0 | 1 | 4 | 5 => Err::<Action, BoxError>("no".into()),
                _ => Ok(Action::requeue_after(Duration::ZERO)),
            }
        }
    };
    let running = run(controller(&pods), reconciler);
    pods.list(&[("a", 1)], 1);
    for failures in [0, 1, 2, 0, 0, 1, 2, 0, 0, 0] {
        assert_eq!(heard.recv().await.unwrap(), failures);
    }
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn promise_18_a_panic_is_an_error_and_the_worker_goes_on() {
    let (mut pods, metrics) = (Hand::new(Scope::All), Metrics::default());
    let (reconciler, mut heard) = tell(|context: Context<Value>| {
        // Before there is a future, and in it.
        assert!(context.request().name() != "early", "at once");
        async move {
            assert!(context.request().name() != "late" || context.failures() > 0, "later");
            Ok(Action::done())
        }
    });
    let running = run(controller(&pods).metrics(&metrics).limiter(after(HOUR)), reconciler);
    pods.list(&[("early", 1), ("late", 1), ("other", 1)], 1);
    assert_eq!(heard.some(3).await, ["early@1", "late@1", "other@1"]);
    assert_eq!(heard.some(2).await, ["early@1", "late@1"], "after an hour");
    has(&metrics, "controller_runtime_reconcile_panics_total{controller=\"pod\"} 3");
    has(&metrics, "controller_runtime_reconcile_errors_total{controller=\"pod\"} 3");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn promise_18_a_reconcile_that_takes_too_long_is_dropped_and_tried_again() {
    let (mut pods, metrics) = (Hand::new(Scope::All), Metrics::default());
    let dropped = Arc::new(());
    let held = Arc::clone(&dropped);
    let (reconciler, mut heard) = tell(move |context: Context<Value>| {
        let held = Arc::clone(&held);
        async move {
            if context.request().name() == "stuck" {
                std::future::pending::<()>().await;
            }
            drop(held);
            Ok(Action::done())
        }
    });
    let timeout = Duration::from_secs(20);
    let controller = controller(&pods).metrics(&metrics).timeout(timeout).limiter(after(HOUR));
    let running = run(controller, reconciler);
    pods.list(&[("other", 1), ("stuck", 1)], 1);
    assert_eq!(heard.some(2).await, ["other@1", "stuck@1"]);
    let begun = Instant::now();
    assert_eq!(heard.next().await, "stuck@1");
    assert!(begun.elapsed() >= HOUR + timeout);
    has(&metrics, "controller_runtime_reconcile_timeouts_total{controller=\"pod\"} 1");
    running.stop().await.unwrap();
    assert_eq!(Arc::strong_count(&dropped), 1, "nothing of it is left");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_hangs_holds_up_no_other_worker() {
    let mut pods = Hand::new(Scope::All);
    let (reconciler, mut heard) = tell(async |context: Context<Value>| {
        if context.request().name() == "a" {
            std::future::pending::<()>().await;
        }
        Ok(Action::done())
    });
    let running = run(controller(&pods).workers(2).timeout(Duration::MAX), reconciler);
    pods.list(&[("a", 1), ("b", 1), ("c", 1), ("d", 1)], 1);
    assert_eq!(heard.some(4).await, ["a@1", "b@1", "c@1", "d@1"]);
    assert_eq!(running.stop().await.unwrap().busy, [Request::new("d", "a")]);
}

#[tokio::test(start_paused = true)]
async fn promise_18_a_terminal_error_is_not_tried_again_until_something_changes() {
    let (mut pods, metrics) = (Hand::new(Scope::All), Metrics::default());
    let (reconciler, mut heard) = tell(async |_| Err(terminal("this makes no sense").into()));
    let running = run(controller(&pods).metrics(&metrics), reconciler);
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    heard.nothing().await;
    pods.put("a", 2);
    assert_eq!(heard.next().await, "a@2");
    has(&metrics, "controller_runtime_terminal_reconcile_errors_total{controller=\"pod\"} 2");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn promise_18_requeue_after_comes_then_or_earlier_if_something_changes() {
    let mut pods = Hand::new(Scope::All);
    let (reconciler, mut heard) = tell(async |_| Ok(Action::requeue_after(Duration::from_secs(60))));
    let running = run(controller(&pods), reconciler);
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    let begun = Instant::now();
    assert_eq!(heard.next().await, "a@1");
    assert_eq!(begun.elapsed().as_secs(), 60);
    tokio::time::advance(Duration::from_secs(30)).await;
    pods.put("a", 2);
    assert_eq!(heard.next().await, "a@2");
    assert_eq!(begun.elapsed().as_secs(), 90);
    // The earlier one was replaced, not added.
    assert_eq!(heard.next().await, "a@2");
    assert_eq!(begun.elapsed().as_secs(), 150);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_that_comes_back_without_end_is_slowed_down_and_others_go_on() {
    let mut pods = Hand::new(Scope::All);
    let (reconciler, mut heard) = tell(async |context: Context<Value>| match context.request().name() {
        "loop" => Ok(Action::requeue_after(Duration::ZERO)),
        _ => Ok(Action::done()),
    });
    let running = run(controller(&pods), reconciler);
    pods.list(&[("loop", 1)], 1);
    let begun = Instant::now();
    for _ in 0..12 {
        assert_eq!(heard.next().await, "loop@1");
    }
    assert!(begun.elapsed() > Duration::from_secs(10), "each time later");
    pods.put("other", 2);
    assert_eq!(heard.next().await, "other@2");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_its_reconcile_deletes_is_gone_and_the_rest_goes_on() {
    let pods = Arc::new(Mutex::new(Hand::new(Scope::All)));
    let deletes = Arc::clone(&pods);
    let controller = controller(&pods.lock().unwrap());
    let (reconciler, mut heard) = tell(move |context: Context<Value>| {
        if context.object().is_some_and(|object| object.name() == "a") {
            deletes.lock().unwrap().remove("a", 5);
        }
        async { Ok(Action::done()) }
    });
    let running = run(controller, reconciler);
    pods.lock().unwrap().list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    assert_eq!(heard.next().await, "a", "it is gone, and that is to be seen to as well");
    pods.lock().unwrap().put("b", 6);
    assert_eq!(heard.next().await, "b@6");
    heard.nothing().await;
    running.stop().await.unwrap();
}

#[derive(Debug)]
struct Unspeakable;

impl fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("no words")
    }
}

impl std::error::Error for Unspeakable {}

struct Clings;

impl Drop for Clings {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "it does not let go");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_that_cannot_be_told_and_reconciles_that_cannot_be_dropped_are_errors_too() {
    let (mut pods, metrics) = (Hand::new(Scope::All), Metrics::default());
    let tried = Mutex::new(std::collections::BTreeSet::new());
    let (reconciler, mut heard) = tell(move |context: Context<Value>| {
        let name = context.request().name().to_owned();
        let first = tried.lock().unwrap().insert(name.clone());
        async move {
            match &*name {
                "odd" if first => Err(Unspeakable.into()),
                "clings" if first => {
                    let _clings = Clings;
                    std::future::pending().await
                }
                _ => Ok(Action::done()),
            }
        }
    });
    let running = run(controller(&pods).timeout(Duration::from_secs(1)).metrics(&metrics), reconciler);
    pods.list(&[("clings", 1), ("fine", 1), ("odd", 1)], 1);
    assert_eq!(heard.some(5).await, ["clings@1", "clings@1", "fine@1", "odd@1", "odd@1"]);
    heard.nothing().await;
    has(&metrics, "controller_runtime_reconcile_panics_total{controller=\"pod\"} 2");
    running.stop().await.unwrap();
}

/// Failures wait so long.
fn after(delay: Duration) -> workqueue::rate_limit::Exponential<Request> {
    workqueue::rate_limit::Exponential::new(delay, delay)
}
