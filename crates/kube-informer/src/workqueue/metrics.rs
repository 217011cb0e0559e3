//! What is counted and measured of queues, for Prometheus. A queue without a [`Meter`] measures nothing.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::rate_limit::Remembered;
use super::table::Slot;

/// The metrics of all queues that were given it ([`Settings::metrics`](super::Settings::metrics)). A clone is the same.
///
/// What dashboards for client-go's work queues show, under the same names:
///
/// | metric, with the label `name` | |
/// |---|---|
/// | `workqueue_depth` | keys that are ready, also those that a worker has and that were added meanwhile; not those that are only kept |
/// | `workqueue_adds_total` | keys that became ready and were not |
/// | `workqueue_retries_total` | keys that were added with a delay or rate limited |
/// | `workqueue_queue_duration_seconds` | from ready to a worker |
/// | `workqueue_work_duration_seconds` | from a worker to done |
/// | `workqueue_unfinished_work_seconds` | how long workers have had what they have, added up |
/// | `workqueue_longest_running_processor_seconds` | the longest of these |
///
/// And two of our own, about failures that are remembered ([`rate_limit`](super::rate_limit)):
///
/// | | |
/// |---|---|
/// | `workqueue_failing_keys` | keys with failures that count |
/// | `workqueue_failing_keys_let_go_total` | keys that were let go for want of room |
///
/// The buckets are those of controller-runtime: client-go's, and two more. The gauges are read when they are asked for. A
/// name is there as long as a queue of that name is.
#[derive(Clone, Default)]
pub struct Metrics {
    named: Arc<Mutex<BTreeMap<String, Weak<Series>>>>,
}

impl Metrics {
    /// Puts them into a registry. Once: a second time, everything would be there twice.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    pub(super) fn meter(&self, name: String) -> Meter {
        let mut named = locked(&self.named);
        named.retain(|_, series| series.strong_count() > 0);
        let series = named.get(&name).and_then(Weak::upgrade).unwrap_or_else(|| {
            let series = Arc::new(Series::new());
            named.insert(name, Arc::downgrade(&series));
            series
        });
        Meter { series, let_go: Mutex::new(0), running: Arc::default() }
    }
}

/// What the queues of one name count and measure.
struct Series {
    adds: Counter,
    retries: Counter,
    let_go: Counter,
    queue_duration: Histogram,
    work_duration: Histogram,
    queues: Mutex<Vec<Queue>>,
}

struct Queue {
    observed: Weak<dyn Observed>,
    running: Arc<Mutex<Running>>,
}

/// Since when a worker has what is in a slot.
type Running = HashMap<Slot, Instant>;

/// What a queue can be asked at any time.
pub(super) trait Observed: Send + Sync {
    fn reading(&self) -> Reading;
}

pub(super) struct Reading {
    pub(super) depth: usize,
    pub(super) failing: usize,
}

impl Series {
    fn new() -> Self {
        let duration = || Histogram::new(exponential_buckets(1e-8, 10.0, 12));
        Self {
            adds: Counter::default(),
            retries: Counter::default(),
            let_go: Counter::default(),
            queue_duration: duration(),
            work_duration: duration(),
            queues: Mutex::default(),
        }
    }

    fn gauges(&self, now: Instant) -> Gauges {
        let mut gauges = Gauges::default();
        // Not under the lock: a queue has its own, and may be dropped here.
        let queues: Vec<_> = {
            let mut queues = locked(&self.queues);
            queues.retain(|queue| queue.observed.strong_count() > 0);
            queues.iter().map(|queue| (queue.observed.upgrade(), Arc::clone(&queue.running))).collect()
        };
        for (observed, running) in queues {
            let Some(observed) = observed else { continue };
            let reading = observed.reading();
            gauges.depth += reading.depth as u64;
            gauges.failing += reading.failing as u64;
            for started in locked(&running).values() {
                let seconds = now.saturating_duration_since(*started).as_secs_f64();
                gauges.unfinished += seconds;
                gauges.longest = gauges.longest.max(seconds);
            }
        }
        gauges
    }
}

#[derive(Default)]
struct Gauges {
    depth: u64,
    failing: u64,
    unfinished: f64,
    longest: f64,
}

/// What one queue measures with.
pub(super) struct Meter {
    series: Arc<Series>,
    running: Arc<Mutex<Running>>,
    /// How many keys the limiter had let go when it was last looked at.
    let_go: Mutex<u64>,
}

impl Meter {
    pub(super) fn observe(&self, observed: &Arc<dyn Observed>) {
        let queue = Queue { observed: Arc::downgrade(observed), running: Arc::clone(&self.running) };
        locked(&self.series.queues).push(queue);
    }

    pub(super) fn added(&self, keys: u64, retries: u64) {
        self.series.adds.inc_by(keys);
        self.series.retries.inc_by(retries);
    }

    pub(super) fn started(&self, slot: Slot, since: Option<Instant>, now: Instant) {
        if let Some(since) = since {
            self.series.queue_duration.observe(now.saturating_duration_since(since).as_secs_f64());
        }
        locked(&self.running).insert(slot, now);
    }

    pub(super) fn finished(&self, slot: Slot, started: Instant) {
        self.series.work_duration.observe(started.elapsed().as_secs_f64());
        locked(&self.running).remove(&slot);
    }

    /// What the limiter remembers now. Called under the limiter's lock, so that its numbers come in order.
    pub(super) fn remembered(&self, remembered: Remembered) {
        let mut seen = locked(&self.let_go);
        self.series.let_go.inc_by(remembered.let_go.saturating_sub(*seen));
        *seen = remembered.let_go;
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all: Vec<(String, Arc<Series>)> = {
            let named = locked(&self.named);
            named.iter().filter_map(|(name, series)| Some((name.clone(), series.upgrade()?))).collect()
        };
        if all.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        // First, because it makes keys ready that are due.
        let gauges: Vec<_> = all.iter().map(|(_, series)| series.gauges(now)).collect();

        let mut family =
            |name, help, kind, each: &dyn Fn(usize, &Series, MetricEncoder<'_>) -> fmt::Result| {
                let mut family = encoder.encode_descriptor(name, help, None, kind)?;
                all.iter().enumerate().try_for_each(|(at, (name, series))| {
                    let labels = [("name", name.as_str())];
                    each(at, series, family.encode_family(&labels)?)
                })
            };
        // The encoder adds `_total` to the names of counters.
        family("workqueue_depth", "Keys that are ready", MetricType::Gauge, &|at, _, mut encoder| {
            encoder.encode_gauge(&gauges[at].depth)
        })?;
        family("workqueue_adds", "Keys that became ready", MetricType::Counter, &|_, series, encoder| {
            series.adds.encode(encoder)
        })?;
        family(
            "workqueue_retries",
            "Keys that were added with a delay",
            MetricType::Counter,
            &|_, series, encoder| series.retries.encode(encoder),
        )?;
        family(
            "workqueue_queue_duration_seconds",
            "How long keys were ready before a worker got them",
            MetricType::Histogram,
            &|_, series, encoder| series.queue_duration.encode(encoder),
        )?;
        family(
            "workqueue_work_duration_seconds",
            "How long workers had keys",
            MetricType::Histogram,
            &|_, series, encoder| series.work_duration.encode(encoder),
        )?;
        family(
            "workqueue_unfinished_work_seconds",
            "How long workers have had the keys that they have, added up; grows steadily if some are stuck",
            MetricType::Gauge,
            &|at, _, mut encoder| encoder.encode_gauge(&gauges[at].unfinished),
        )?;
        family(
            "workqueue_longest_running_processor_seconds",
            "How long a worker has had the key that was taken first",
            MetricType::Gauge,
            &|at, _, mut encoder| encoder.encode_gauge(&gauges[at].longest),
        )?;
        family(
            "workqueue_failing_keys",
            "Keys with failures that count",
            MetricType::Gauge,
            &|at, _, mut encoder| encoder.encode_gauge(&gauges[at].failing),
        )?;
        family(
            "workqueue_failing_keys_let_go",
            "Failing keys that were let go for want of room",
            MetricType::Counter,
            &|_, series, encoder| series.let_go.encode(encoder),
        )
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("queues", &locked(&self.named).keys()).finish()
    }
}

/// Nothing that runs under these locks leaves half a change behind.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
