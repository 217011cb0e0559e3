//! What is counted and measured of controllers, for Prometheus, under the names of controller-runtime.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::meter::Meter;
use crate::workqueue;

/// The metrics of all controllers that were given it ([`Controller::metrics`](super::Controller::metrics)), and of their
/// work queues. A clone is the same.
///
/// What dashboards for controller-runtime show, under the same names:
///
/// | metric, with the label `controller` | |
/// |---|---|
/// | `controller_runtime_reconcile_total` | reconciles, by `result`: `success`, `error`, `requeue`, `requeue_after` |
/// | `controller_runtime_reconcile_errors_total` | those that failed |
/// | `controller_runtime_terminal_reconcile_errors_total` | those that failed and are not tried again |
/// | `controller_runtime_reconcile_panics_total` | those that panicked |
/// | `controller_runtime_reconcile_timeouts_total` | those that took too long |
/// | `controller_runtime_reconcile_time_seconds` | how long they took |
/// | `controller_runtime_max_concurrent_reconciles` | workers |
/// | `controller_runtime_active_workers` | workers that are busy |
///
/// And some of our own:
///
/// | | |
/// |---|---|
/// | `kube_informer_controller_write_waits_total` | keys that waited for what they wrote, by `outcome`: `arrived`, `deadline` |
/// | `kube_informer_controller_held_keys` | keys that wait for what they wrote; they are no work of the queue |
/// | `kube_informer_controller_external_waits_total` | how often a stream of keys had to wait, because very many were ready |
/// | `kube_informer_controller_source_panics_total` | panics of mapping functions and predicates |
/// | `kube_informer_controller_source_gaps_total` | how often a source fell behind, and everything that it knows was queued |
///
/// Those of the queue are in [`workqueue::Metrics`]; their `name` is the controller's. A controller is there as long as it
/// runs.
#[derive(Clone, Default)]
pub struct Metrics {
    queues: workqueue::Metrics,
    /// Whether the queues are somebody else's to register.
    shared: bool,
    named: Arc<Mutex<BTreeMap<String, Weak<Series>>>>,
}

impl Metrics {
    /// With queues that are counted beside those of others, such as a [manager](crate::manager::Metrics::queues), who
    /// register them: each metric is in a registry once.
    #[must_use]
    pub fn sharing(queues: &workqueue::Metrics) -> Self {
        Self { queues: queues.clone(), shared: true, named: Arc::default() }
    }

    /// Puts them into a registry; the queues, too, unless they are [shared](Self::sharing). Once: a second time, everything
    /// would be there twice.
    pub fn register(&self, registry: &mut Registry) {
        if !self.shared {
            self.queues.register(registry);
        }
        registry.register_collector(Box::new(self.clone()));
    }

    /// For a controller that has workers of its own, and is no [`Controller`](super::Controller): what they do is counted
    /// under that name, beside all others. It is there as long as the meter is.
    #[must_use]
    pub fn meter(&self, name: &str) -> Meter {
        Meter::new(self.queues.clone(), self.series(name), name)
    }

    /// Where its queues are counted, for [others](crate::manager::Metrics::sharing) that have queues, too.
    #[must_use]
    pub fn queues(&self) -> &workqueue::Metrics {
        &self.queues
    }

    pub(super) fn series(&self, name: &str) -> Arc<Series> {
        let mut named = locked(&self.named);
        named.retain(|_, series| series.strong_count() > 0);
        named.get(name).and_then(Weak::upgrade).unwrap_or_else(|| {
            let series = Arc::new(Series::default());
            named.insert(name.to_owned(), Arc::downgrade(&series));
            series
        })
    }
}

/// What the controllers of one name count and measure.
pub(super) struct Series {
    pub(super) success: Counter,
    pub(super) requeue: Counter,
    pub(super) requeue_after: Counter,
    pub(super) errors: Counter,
    pub(super) terminal: Counter,
    pub(super) panics: Counter,
    pub(super) timeouts: Counter,
    pub(super) time: Histogram,
    pub(super) workers: Gauge,
    pub(super) active: Gauge,
    pub(super) arrived: Counter,
    pub(super) late: Counter,
    pub(super) held: Gauge,
    pub(super) external_waits: Counter,
    pub(super) source_panics: Counter,
    pub(super) gaps: Counter,
}

/// In seconds.
const TIMES: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

impl Default for Series {
    fn default() -> Self {
        Self {
            success: Counter::default(),
            requeue: Counter::default(),
            requeue_after: Counter::default(),
            errors: Counter::default(),
            terminal: Counter::default(),
            panics: Counter::default(),
            timeouts: Counter::default(),
            time: Histogram::new(TIMES),
            workers: Gauge::default(),
            active: Gauge::default(),
            arrived: Counter::default(),
            late: Counter::default(),
            held: Gauge::default(),
            external_waits: Counter::default(),
            source_panics: Counter::default(),
            gaps: Counter::default(),
        }
    }
}

/// One value of a family, and what tells it from others of its controller.
type Value<'a> = (Option<(&'static str, &'static str)>, &'a dyn EncodeMetric);

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all: Vec<(String, Arc<Series>)> = {
            let named = locked(&self.named);
            named.iter().filter_map(|(name, series)| Some((name.clone(), series.upgrade()?))).collect()
        };
        if all.is_empty() {
            return Ok(());
        }
        let mut family = |name: &str, help: &str, kind, values: &dyn Fn(&Series) -> Vec<Value<'_>>| {
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (controller, series) in &all {
                for (more, value) in values(series) {
                    let mut labels = vec![("controller", controller.as_str())];
                    labels.extend(more);
                    value.encode(family.encode_family(&labels)?)?;
                }
            }
            Ok(())
        };
        // The encoder adds `_total` to the names of counters.
        use MetricType::{Counter, Gauge, Histogram};
        family("controller_runtime_reconcile", "Reconciles, by how they ended", Counter, &|series| {
            let by = |result, counter| (Some(("result", result)), counter as &dyn EncodeMetric);
            vec![
                by("success", &series.success),
                by("error", &series.errors),
                by("requeue", &series.requeue),
                by("requeue_after", &series.requeue_after),
            ]
        })?;
        family("controller_runtime_reconcile_errors", "Reconciles that failed", Counter, &|series| {
            vec![(None, &series.errors)]
        })?;
        family(
            "controller_runtime_terminal_reconcile_errors",
            "Reconciles that failed and are not tried again",
            Counter,
            &|series| vec![(None, &series.terminal)],
        )?;
        family("controller_runtime_reconcile_panics", "Reconciles that panicked", Counter, &|series| {
            vec![(None, &series.panics)]
        })?;
        family(
            "controller_runtime_reconcile_timeouts",
            "Reconciles that took too long",
            Counter,
            &|series| vec![(None, &series.timeouts)],
        )?;
        family(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciles took",
            Histogram,
            &|series| vec![(None, &series.time)],
        )?;
        family("controller_runtime_max_concurrent_reconciles", "Workers", Gauge, &|series| {
            vec![(None, &series.workers)]
        })?;
        family("controller_runtime_active_workers", "Workers that are busy", Gauge, &|series| {
            vec![(None, &series.active)]
        })?;
        family(
            "kube_informer_controller_write_waits",
            "Keys that waited for what they wrote, by how that ended",
            Counter,
            &|series| {
                vec![
                    (Some(("outcome", "arrived")), &series.arrived),
                    (Some(("outcome", "deadline")), &series.late),
                ]
            },
        )?;
        family(
            "kube_informer_controller_held_keys",
            "Keys that wait for what they wrote",
            Gauge,
            &|series| vec![(None, &series.held)],
        )?;
        family(
            "kube_informer_controller_external_waits",
            "How often a stream of keys had to wait, because very many were ready",
            Counter,
            &|series| vec![(None, &series.external_waits)],
        )?;
        family(
            "kube_informer_controller_source_panics",
            "Panics of mapping functions and predicates",
            Counter,
            &|series| vec![(None, &series.source_panics)],
        )?;
        family(
            "kube_informer_controller_source_gaps",
            "How often a source fell behind, and everything that it knows was queued",
            Counter,
            &|series| vec![(None, &series.gaps)],
        )
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("controllers", &locked(&self.named).keys()).finish()
    }
}

/// Nothing that runs under this lock leaves half a change behind.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
