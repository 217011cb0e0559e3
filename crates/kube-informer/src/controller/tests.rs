//! The promises about controllers, with caches that are written by hand and a clock that is set forward.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube_client::{Client, Config};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::*;
use crate::informer::tests::hand::Hand;
use crate::reflector::Delta;

mod chance;
mod ends;
mod failures;
mod keys;
mod logs;
mod writes;

const HOUR: Duration = Duration::from_secs(3600);

/// Longer than anything waits.
const AGES: Duration = Duration::from_secs(3600 * 1000);

/// Shorter than a reconcile may take.
const A_WHILE: Duration = Duration::from_secs(300);

fn factory() -> Factory {
    let config = Config::new("http://127.0.0.1:9".parse().unwrap());
    Factory::new(Client::try_from(config).unwrap())
}

/// A controller of the pods of a hand.
fn controller(hand: &Hand) -> Controller<Value, Of<Value>> {
    Controller::new(&factory()).for_informer(&hand.informer())
}

/// What was reconciled, in order.
struct Heard(mpsc::UnboundedReceiver<String>);

impl Heard {
    async fn next(&mut self) -> String {
        timeout(AGES, self.0.recv()).await.expect("something is reconciled").expect("the controller runs")
    }

    /// So many, in the order of their names.
    async fn some(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.next().await);
        }
        all.sort();
        all
    }

    /// Nothing happens.
    async fn nothing(&mut self) {
        if let Ok(what) = timeout(A_WHILE, self.0.recv()).await {
            panic!("{what:?} is reconciled");
        }
    }
}

/// A reconciler that tells what it is asked, and does what the closure says.
fn tell<F, Fut>(act: F) -> (impl Reconciler<Value>, Heard)
where
    F: Fn(Context<Value>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, BoxError>> + Send + 'static,
{
    let (told, heard) = mpsc::unbounded_channel();
    let reconcile = move |context: Context<Value>| {
        let object = context.object().map(|object| format!("@{}", object.version()));
        let _ = told.send(format!("{}{}", context.request().name(), object.unwrap_or_default()));
        act(context)
    };
    (reconcile, Heard(heard))
}

fn done() -> (impl Reconciler<Value>, Heard) {
    tell(async |_| Ok(Action::done()))
}

/// A controller that runs.
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Report, RunError>>,
}

impl Running {
    async fn stop(self) -> Result<Report, RunError> {
        let _ = self.stop.send(());
        self.task.await.unwrap()
    }

    /// It ends by itself.
    async fn end(self) -> RunError {
        let _kept = self.stop;
        timeout(AGES, self.task).await.expect("it ends").unwrap().unwrap_err()
    }
}

fn run<K: Send + 'static, S: Added + 'static>(
    controller: Controller<K, S>,
    reconciler: impl Reconciler<K>,
) -> Running {
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move { controller.run(reconciler, async { drop(stopped.await) }).await });
    Running { stop, task }
}

fn page(metrics: &Metrics) -> String {
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
    page
}

#[track_caller]
fn has(metrics: &Metrics, line: &str) {
    let page = page(metrics);
    assert!(page.lines().any(|each| each == line), "{line:?} is not in\n{page}");
}

#[tokio::test(start_paused = true)]
async fn promise_18_workers_start_after_every_required_source_has_handled_its_initial_objects() {
    let (mut pods, mut owned, mut maps) =
        (Hand::new(Scope::All), Hand::new(Scope::All), Hand::new(Scope::All));
    let handled = Arc::new(Mutex::new(0));
    let (count, at_first) = (Arc::clone(&handled), Arc::clone(&handled));
    let controller =
        controller(&pods).owns_informer(&owned.informer()).watches_informer(&maps.informer(), move |_| {
            *count.lock().unwrap() += 1;
            Vec::new()
        });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let (reconciler, mut heard) = tell(move |_| {
        sees.lock().unwrap().push(*at_first.lock().unwrap());
        async { Ok(Action::done()) }
    });
    let running = run(controller, reconciler);
    pods.list(&[("a", 1)], 1);
    heard.nothing().await;
    owned.list(&[], 1);
    heard.nothing().await;
    let many: Vec<String> = (0..500).map(|number| format!("map-{number}")).collect();
    maps.list(&many.iter().map(|name| (name.as_str(), 2)).collect::<Vec<_>>(), 2);
    assert_eq!(heard.next().await, "a@1");
    assert_eq!(*seen.lock().unwrap(), [500], "all initial objects of all sources come before it");
    assert_eq!(running.stop().await.unwrap().busy, []);
}

#[tokio::test(start_paused = true)]
async fn promise_18_optional_sources_may_come_later_or_never() {
    let (mut pods, mut late, never) = (Hand::new(Scope::All), Hand::new(Scope::All), Hand::new(Scope::All));
    let map = |object: &Object<Value>| vec![Request::new("d", object.name())];
    let controller = controller(&pods)
        .watches_informer(&late.informer(), map)
        .optional()
        .owns_informer(&never.informer())
        .optional()
        .sync_deadline(HOUR);
    let (reconciler, mut heard) = done();
    let running = run(controller, reconciler);
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    late.list(&[("b", 1)], 1);
    assert_eq!(heard.next().await, "b");
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_required_source_that_does_not_come_in_time_is_named_with_the_reason() {
    let (mut pods, missing) = (Hand::new(Scope::All), Hand::new(Scope::namespace("d")));
    let (reconciler, _heard) = done();
    let controller = controller(&pods).name("web").owns_informer(&missing.informer());
    let running = run(controller.sync_deadline(Duration::from_secs(5)), reconciler);
    pods.list(&[], 1);
    let error = running.end().await;
    assert!(matches!(&error, RunError::NotSynced { missing, .. } if missing.len() == 1), "{error}");
    assert_eq!(error.to_string(), "controller \"web\" cannot start (waited 5s); pods (d): not started");
}

#[tokio::test(start_paused = true)]
async fn a_source_that_can_never_come_is_not_waited_for() {
    // The first source never comes; it is the second one that ends it.
    let (pods, factory) = (Hand::new(Scope::All), factory());
    // An informer that was stopped before it began.
    let stopped = factory.informer::<k8s_openapi::api::core::v1::Pod>(Scope::All);
    factory.stop(&stopped, HOUR).await;
    let (reconciler, _heard) = done();
    let running = run(controller(&pods).owns_informer(&stopped), reconciler);
    let error = running.end().await;
    assert_eq!(error.to_string(), "controller \"pod\": the informer of pods (all) was stopped");
}

#[tokio::test(start_paused = true)]
async fn promise_17_a_key_is_never_reconciled_twice_at_once_and_runs_once_more_after_changes() {
    let mut pods = Hand::new(Scope::All);
    let (go, gate) = watch::channel(false);
    let (reconciler, mut heard) = tell(move |_| {
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|open| *open).await?;
            Ok(Action::done())
        }
    });
    let running = run(controller(&pods).workers(4), reconciler);
    pods.list(&[("a", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    for version in 2..10 {
        pods.put("a", version);
    }
    heard.nothing().await;
    go.send(true).unwrap();
    assert_eq!(heard.next().await, "a@9", "once more, with what there is then");
    heard.nothing().await;
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn promise_17_changes_go_before_what_was_there_at_the_beginning() {
    let mut pods = Hand::new(Scope::All);
    let (go, gate) = watch::channel(false);
    let (reconciler, mut heard) = tell(move |_| {
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|open| *open).await?;
            Ok(Action::done())
        }
    });
    let running = run(controller(&pods), reconciler);
    pods.list(&[("a", 1), ("b", 1), ("c", 1), ("d", 1)], 1);
    assert_eq!(heard.next().await, "a@1");
    pods.put("d", 5);
    pods.put("e", 6);
    heard.nothing().await;
    go.send(true).unwrap();
    let mut order = Vec::new();
    for _ in 0..4 {
        order.push(heard.next().await);
    }
    assert_eq!(order, ["d@5", "e@6", "b@1", "c@1"]);
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn everything_is_reconciled_again_at_the_period_of_the_source_with_a_low_priority() {
    let mut pods = Hand::new(Scope::All);
    let (told, mut heard) = mpsc::unbounded_channel();
    let reconciler = move |context: Context<Value>| {
        let _ = told.send((context.request().name().to_owned(), context.priority(), Instant::now()));
        async { Ok::<_, BoxError>(Action::done()) }
    };
    let begun = Instant::now();
    let running = run(controller(&pods).resync(Duration::from_secs(60)), reconciler);
    pods.list(&[("a", 1)], 1);
    for minute in 0..3 {
        let (name, priority, when) = heard.recv().await.unwrap();
        assert_eq!((name.as_str(), priority), ("a", workqueue::Priority::Low));
        assert_eq!((when - begun).as_secs(), minute * 60);
    }
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn controllers_are_counted_under_the_names_of_controller_runtime_while_they_run() {
    let (mut pods, metrics) = (Hand::new(Scope::All), Metrics::default());
    let once = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let (reconciler, mut heard) = tell(move |context: Context<Value>| {
        let once = Arc::clone(&once);
        async move {
            match context.request().name() {
                "later" => Ok(Action::requeue_after(100 * HOUR)),
                "again" if once.swap(false, std::sync::atomic::Ordering::Relaxed) => {
                    Ok(Action::requeue_with(workqueue::Priority::High))
                }
                "never" => Err(terminal("no").into()),
                _ => Ok(Action::done()),
            }
        }
    });
    let running = run(controller(&pods).name("web").workers(3).metrics(&metrics), reconciler);
    pods.list(&[("again", 1), ("later", 1), ("never", 1)], 1);
    heard.some(4).await;
    heard.nothing().await;
    for line in [
        "controller_runtime_reconcile_total{controller=\"web\",result=\"success\"} 1",
        "controller_runtime_reconcile_total{controller=\"web\",result=\"error\"} 1",
        "controller_runtime_reconcile_total{controller=\"web\",result=\"requeue\"} 1",
        "controller_runtime_reconcile_total{controller=\"web\",result=\"requeue_after\"} 1",
        "controller_runtime_reconcile_errors_total{controller=\"web\"} 1",
        "controller_runtime_terminal_reconcile_errors_total{controller=\"web\"} 1",
        "controller_runtime_reconcile_panics_total{controller=\"web\"} 0",
        "controller_runtime_reconcile_timeouts_total{controller=\"web\"} 0",
        "controller_runtime_reconcile_time_seconds_count{controller=\"web\"} 4",
        "controller_runtime_max_concurrent_reconciles{controller=\"web\"} 3",
        "controller_runtime_active_workers{controller=\"web\"} 0",
        "workqueue_adds_total{name=\"web\"} 4",
    ] {
        has(&metrics, line);
    }
    running.stop().await.unwrap();
    assert!(!page(&metrics).contains("web"), "what has ended is gone");
}

#[tokio::test(start_paused = true)]
async fn a_context_knows_its_sources_and_says_which_it_has_not() {
    let (mut pods, other) = (Hand::new(Scope::All), Hand::new(Scope::All));
    let (told, mut heard) = mpsc::unbounded_channel();
    let reconciler = move |context: Context<Value>| {
        let pods = context.source::<k8s_openapi::api::core::v1::Pod>().map(|pods| pods.list().count());
        let nodes = context.source::<k8s_openapi::api::core::v1::Node>().map(|_| ());
        let _ = told.send((pods, nodes, context.controller().to_owned(), context.failures()));
        async { Ok::<_, BoxError>(Action::done()) }
    };
    let running = run(controller(&pods).owns_informer(&other.informer()).optional(), reconciler);
    pods.list(&[("a", 1)], 1);
    let (pods, nodes, name, failures) = heard.recv().await.unwrap();
    assert_eq!((pods, name.as_str(), failures), (Ok(1), "pod", 0));
    let error = nodes.unwrap_err().to_string();
    assert_eq!(
        error,
        "controller \"pod\" has no source of nodes; add it with owns or watches. It has pods (all), pods (all)"
    );
    running.stop().await.unwrap();
}
