//! What workers do that belong to no [`Controller`](super::Controller), counted beside those that do.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use super::metrics::Series;
use crate::workqueue;

/// Counts what workers do, for those who have their own; from [`Metrics::meter`](super::Metrics::meter). A clone counts in
/// the same place.
///
/// ```
/// # use kube_informer::controller::Metrics;
/// # use kube_informer::workqueue::{Settings, WorkQueue};
/// let metrics = Metrics::default();
/// let meter = metrics.meter("mine");
/// let queue = WorkQueue::<u32>::new(meter.measured(Settings::default()));
/// let worker = meter.worker();                          // until it is dropped
/// let work = worker.begin();
/// work.end(true);                                          // success
/// ```
#[derive(Clone)]
pub struct Meter {
    queues: workqueue::Metrics,
    series: Arc<Series>,
    name: String,
}

/// A worker that there is, until this is dropped.
#[must_use = "dropped, it is gone"]
pub struct MeteredWorker {
    series: Arc<Series>,
}

/// Work that is being done. Dropped without [`end`](Self::end), it panicked.
#[must_use = "dropped, it has failed"]
pub struct MeteredWork<'a> {
    series: &'a Series,
    begun: Instant,
    outcome: Option<bool>,
}

impl Meter {
    pub(super) fn new(queues: workqueue::Metrics, series: Arc<Series>, name: &str) -> Self {
        Self { queues, series, name: name.to_owned() }
    }

    /// The settings of its queue, which is measured under the same name.
    pub fn measured<K: workqueue::Key>(&self, settings: workqueue::Settings<K>) -> workqueue::Settings<K> {
        settings.metrics(&self.queues, self.name.as_str())
    }

    /// One more worker.
    pub fn worker(&self) -> MeteredWorker {
        self.series.workers.inc();
        MeteredWorker { series: Arc::clone(&self.series) }
    }
}

impl MeteredWorker {
    /// It begins to work on a key.
    pub fn begin(&self) -> MeteredWork<'_> {
        self.series.active.inc();
        MeteredWork { series: &self.series, begun: Instant::now(), outcome: None }
    }
}

impl Drop for MeteredWorker {
    fn drop(&mut self) {
        self.series.workers.dec();
    }
}

impl MeteredWork<'_> {
    /// How it ended: well, or with an error.
    pub fn end(mut self, is_success: bool) {
        self.outcome = Some(is_success);
    }
}

impl Drop for MeteredWork<'_> {
    fn drop(&mut self) {
        let Series { success, errors, panics, active, time, .. } = self.series;
        active.dec();
        time.observe(self.begun.elapsed().as_secs_f64());
        match self.outcome {
            Some(true) => _ = success.inc(),
            Some(false) => _ = errors.inc(),
            None => {
                panics.inc();
                errors.inc();
            }
        }
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for MeteredWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeteredWorker").finish_non_exhaustive()
    }
}

impl fmt::Debug for MeteredWork<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeteredWork").field("begun", &self.begun).finish_non_exhaustive()
    }
}
