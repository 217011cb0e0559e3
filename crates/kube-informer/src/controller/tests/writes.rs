//! Reading one's own writes.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};

use super::*;
use crate::informer::Written;
use crate::workqueue::Priority;

fn pod(namespace: &str, version: &str) -> Written {
    Written::new(Resource::of::<Pod>(), namespace, version)
}

/// A controller that comes back at once, and writes the first time.
fn writes(written: Vec<Written>) -> (impl Reconciler<Value>, Heard) {
    let first = Mutex::new(Some(written));
    tell(move |context: Context<Value>| {
        let written = first.lock().unwrap().take();
        let again = written.is_some() && context.request().name() == "a";
        written.unwrap_or_default().iter().for_each(|written| context.wrote(written));
        async move { Ok(if again { Action::requeue_with(Priority::High) } else { Action::done() }) }
    })
}

#[tokio::test(start_paused = true)]
async fn a_key_that_wrote_is_reconciled_again_when_the_cache_has_it() {
    let (mut pods, metrics) = (Hand::new(Scope::All), Metrics::default());
    let (reconciler, mut heard) = writes(vec![pod("d", "10"), pod("d", "8")]);
    let running = run(controller(&pods).metrics(&metrics).write_deadline(10 * HOUR), reconciler);
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    heard.nothing().await;
    // The key waits, not the worker; and it waits for the last of what it wrote.
    pods.put("b", 8);
    assert_eq!(heard.next().await, "b@8");
    heard.nothing().await;
    pods.put("a", 10);
    assert_eq!(heard.next().await, "a@10");
    heard.nothing().await;
    has(&metrics, "kube_informer_controller_write_waits_total{controller=\"pod\",outcome=\"arrived\"} 1");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_key_goes_on_after_the_deadline() {
    let (mut pods, metrics) = (Hand::new(Scope::All), Metrics::default());
    let (reconciler, mut heard) = writes(vec![pod("d", "10")]);
    let running = run(controller(&pods).metrics(&metrics).write_deadline(Duration::from_secs(7)), reconciler);
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    let begun = Instant::now();
    assert_eq!(heard.next().await, "a@1");
    assert_eq!(begun.elapsed().as_secs(), 7);
    has(&metrics, "kube_informer_controller_write_waits_total{controller=\"pod\",outcome=\"deadline\"} 1");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_the_controller_does_not_watch_is_not_waited_for() {
    let (mut pods, metrics) = (Hand::new(Scope::namespace("d")), Metrics::default());
    let map = Written::new(Resource::of::<ConfigMap>(), "d", "99");
    let (reconciler, mut heard) = writes(vec![map, pod("elsewhere", "99"), pod("d", ""), pod("d", "1")]);
    let running = run(controller(&pods).metrics(&metrics).write_deadline(10 * HOUR), reconciler);
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    assert_eq!(heard.next().await, "a@1");
    has(&metrics, "kube_informer_controller_write_waits_total{controller=\"pod\",outcome=\"arrived\"} 0");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_what_was_written() {
    let mut pods = Hand::new(Scope::All);
    let (reconciler, mut heard) = writes(vec![pod("d", "10")]);
    let running = run(controller(&pods).write_deadline(10 * HOUR), reconciler);
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    heard.nothing().await;
    let begun = Instant::now();
    assert_eq!(running.stop().await.unwrap().busy, []);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn one_object_that_is_watched_alone_is_not_waited_for_because_of_another() {
    let (a, b) = (pod("d", "10").named("a"), pod("d", "11").named("b"));
    // A newer write to another object says nothing of it.
    for (written, waits) in [(vec![b.clone()], false), (vec![a.clone()], true), (vec![a, b], true)] {
        let mut pods = Hand::new(Scope::object("d", "a"));
        let (reconciler, mut heard) = writes(written.clone());
        let running = run(controller(&pods).write_deadline(10 * HOUR), reconciler);
        pods.list(&[("a", 1)], 1);
        assert_eq!(heard.next().await, "a@1");
        let begun = Instant::now();
        assert_eq!(heard.next().await, "a@1");
        assert_eq!(begun.elapsed() > HOUR, waits, "{written:?}");
        running.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_waits_for_its_write_is_no_work_of_the_queue() {
    let (mut pods, metrics) = (Hand::new(Scope::All), Metrics::default());
    let (reconciler, mut heard) = writes(vec![pod("d", "10")]);
    let running = run(controller(&pods).metrics(&metrics).write_deadline(10 * HOUR), reconciler);
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    // It asked to be called again, and something happened to it: it waits all the same.
    pods.put("a", 2);
    heard.nothing().await;
    for line in [
        "workqueue_depth{name=\"pod\"} 0",
        "workqueue_unfinished_work_seconds{name=\"pod\"} 0.0",
        "workqueue_longest_running_processor_seconds{name=\"pod\"} 0.0",
        "workqueue_work_duration_seconds_count{name=\"pod\"} 1",
        "workqueue_work_duration_seconds_sum{name=\"pod\"} 0.0",
        "kube_informer_controller_held_keys{controller=\"pod\"} 1",
    ] {
        has(&metrics, line);
    }
    pods.put("a", 10);
    assert_eq!(heard.next().await, "a@10");
    heard.nothing().await;
    for line in [
        "workqueue_depth{name=\"pod\"} 0",
        "workqueue_work_duration_seconds_count{name=\"pod\"} 2",
        "kube_informer_controller_held_keys{controller=\"pod\"} 0",
    ] {
        has(&metrics, line);
    }
    running.stop().await.unwrap();
}
