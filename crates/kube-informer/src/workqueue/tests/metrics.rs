//! What is counted and measured.

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::*;

fn registered() -> (Metrics, Registry) {
    let (metrics, mut registry) = (Metrics::default(), Registry::default());
    metrics.register(&mut registry);
    (metrics, registry)
}

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    text
}

/// The value of a series.
fn value(registry: &Registry, series: &str) -> Option<f64> {
    let text = text(registry);
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn promise_17_the_names_are_those_of_client_go() {
    let (metrics, registry) = registered();
    assert_eq!(text(&registry), "# EOF\n");
    let queue = WorkQueue::<u32>::new(Settings::default().metrics(&metrics, "pods"));
    queue.add(1);
    let text = text(&registry);
    for name in ["depth", "unfinished_work_seconds", "longest_running_processor_seconds", "failing_keys"] {
        assert!(text.contains(&format!("# TYPE workqueue_{name} gauge\n")), "{name} in {text}");
        assert!(text.contains(&format!("\nworkqueue_{name}{{name=\"pods\"}} ")), "{name} in {text}");
    }
    for name in ["adds", "retries", "failing_keys_let_go"] {
        assert!(text.contains(&format!("\nworkqueue_{name}_total{{name=\"pods\"}} ")), "{name} in {text}");
    }
    for name in ["queue_duration_seconds", "work_duration_seconds"] {
        assert!(text.contains(&format!("# TYPE workqueue_{name} histogram\n")), "{name} in {text}");
        assert!(text.contains(&format!("\nworkqueue_{name}_count{{name=\"pods\"}} ")), "{name} in {text}");
        assert!(
            text.contains(&format!("\nworkqueue_{name}_bucket{{le=\"1e-8\",name=\"pods\"}} ")),
            "{name} in {text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn each_metric_says_what_happened() {
    let (metrics, registry) = registered();
    let limiter = Exponential::new(10 * SECOND, MINUTE).failing_keys(1);
    let queue = WorkQueue::new(Settings::default().limiter(limiter).metrics(&metrics, "q"));
    let value = |name: &str| value(&registry, &format!("workqueue_{name}{{name=\"q\"}}")).unwrap();
    queue.add("a");
    queue.add("a");
    queue.add("b");
    assert_eq!((value("depth"), value("adds_total"), value("retries_total")), (2.0, 2.0, 0.0));
    advance(3 * SECOND).await;
    let a = got(&queue).unwrap();
    queue.add("a");
    assert_eq!((value("depth"), value("adds_total")), (2.0, 3.0), "it is to run once more");
    assert_eq!((value("queue_duration_seconds_count"), value("queue_duration_seconds_sum")), (1.0, 3.0));
    advance(SECOND).await;
    let b = got(&queue).unwrap();
    advance(SECOND).await;
    assert_eq!(value("unfinished_work_seconds"), 3.0);
    assert_eq!(value("longest_running_processor_seconds"), 2.0);
    drop(a);
    assert_eq!((value("work_duration_seconds_count"), value("work_duration_seconds_sum")), (1.0, 2.0));
    assert_eq!(value("unfinished_work_seconds"), 1.0);
    b.retry();
    assert_eq!((value("depth"), value("retries_total"), value("failing_keys")), (1.0, 1.0, 1.0));
    // A key that is due is counted whenever someone looks, and waited since it was due.
    advance(15 * SECOND).await;
    assert_eq!((value("depth"), value("adds_total")), (2.0, 4.0));
    let before = value("queue_duration_seconds_sum");
    assert_eq!(all(&queue), ["a", "b"]);
    let waited = value("queue_duration_seconds_sum") - before;
    assert_eq!(waited, 17.0 + 5.0, "one since it was added while it ran, one since it was due");
    queue.add_after("c", SECOND);
    queue.add_rate_limited("c");
    assert_eq!(
        (value("retries_total"), value("failing_keys"), value("failing_keys_let_go_total")),
        (3.0, 1.0, 1.0)
    );
    queue.shut_down();
    queue.add_after("d", SECOND);
    assert_eq!((value("retries_total"), value("depth")), (3.0, 0.0), "what is ignored is not counted");
}

#[tokio::test(start_paused = true)]
async fn queues_of_one_name_are_counted_together_and_are_gone_when_the_last_is() {
    let (metrics, registry) = registered();
    let make = |name: &str| WorkQueue::<u32>::new(Settings::default().metrics(&metrics, name));
    let (one, two, other) = (make("a"), make("a"), make("b"));
    [&one, &two, &other].into_iter().for_each(|queue| queue.add(1));
    let depth = |name: &str| value(&registry, &format!("workqueue_depth{{name=\"{name}\"}}"));
    assert_eq!((depth("a"), depth("b")), (Some(2.0), Some(1.0)));
    drop(one);
    assert_eq!(depth("a"), Some(1.0));
    assert_eq!(value(&registry, "workqueue_adds_total{name=\"a\"}"), Some(2.0), "what was counted stays");
    drop((two, other));
    assert_eq!(text(&registry), "# EOF\n");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_only_kept_is_neither_work_nor_waits_for_any() {
    let (metrics, registry) = registered();
    let queue = WorkQueue::new(Settings::default().metrics(&metrics, "q"));
    let value = |name: &str| value(&registry, &format!("workqueue_{name}{{name=\"q\"}}")).unwrap();
    queue.add("a");
    let mut a = got(&queue).unwrap();
    queue.add("a");
    advance(SECOND).await;
    assert_eq!((value("depth"), value("unfinished_work_seconds")), (1.0, 1.0));
    a.rest();
    advance(SECOND).await;
    assert_eq!((value("depth"), value("unfinished_work_seconds")), (0.0, 0.0));
    assert_eq!((value("work_duration_seconds_count"), value("work_duration_seconds_sum")), (1.0, 1.0));
    assert!(got(&queue).is_none(), "nobody gets it");
    drop(a);
    assert_eq!((value("depth"), value("work_duration_seconds_count")), (1.0, 1.0));
    // What is added while it is kept is not forgotten either.
    let mut a = got(&queue).unwrap();
    a.rest();
    queue.add("a");
    assert_eq!(value("depth"), 0.0);
    drop(a);
    assert_eq!(value("depth"), 1.0);
    assert_eq!(all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_what_is_only_kept() {
    let queue = queue();
    queue.add("a");
    let mut a = got(&queue).unwrap();
    a.rest();
    queue.add("a");
    let mut drain = ByHand::new(queue.drain());
    assert!(drain.poll().is_pending());
    drop(a);
    assert!(drain.poll().is_pending(), "it is to run once more");
    drop(got(&queue).unwrap());
    assert_eq!(drain.poll(), Poll::Ready(true));
}
