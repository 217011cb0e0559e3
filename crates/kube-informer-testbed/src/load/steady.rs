//! Updates at a steady rate to objects that exist.
//!
//! Update `n` is due `n / rate` seconds after the start, and the sequence of
//! objects and changes is the same for the same seed. When the server is slower
//! than the rate, at most `parallelism` updates are in flight and the others
//! wait; they are late, none is left out. Every update changes something: each
//! carries a number that starts with the time of the start, so that no two
//! runs write the same.
//!
//! Stopping starts no further update and awaits those in flight. Dropping
//! abandons them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::rng::Rng;
use super::write::{Counts, Failure, apply};
use super::{Kind, Object};
use crate::http::Endpoint;

/// So many failures are kept; all are counted.
const KEPT: usize = 100;

/// How fast, and in which sequence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Decides which objects change in which order, and how.
    pub seed: u64,
    /// Updates per second.
    pub per_second: f64,
    /// How many may be in flight.
    pub parallelism: usize,
}

/// Running updates.
#[derive(Debug)]
pub struct Steady {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    progress: watch::Receiver<Progress>,
    failures: Arc<Mutex<Vec<Failure>>>,
    start: Instant,
}

/// What the updates came to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Updated {
    /// How many were written.
    pub written: u64,
    /// How many were not.
    pub failed: u64,
    /// How often the server asked to wait.
    pub throttled: u64,
    /// The first hundred failures.
    pub failures: Vec<Failure>,
    /// From the start to the end of the last update.
    pub elapsed: Duration,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    written: u64,
    failed: u64,
    throttled: u64,
}

struct Target {
    endpoint: Endpoint,
    namespace: String,
    objects: Vec<(Kind, String)>,
}

impl Steady {
    /// Starts updating these objects, which exist in the namespace. Must be
    /// called in a tokio runtime.
    ///
    /// # Panics
    ///
    /// If there are no objects, or the rate is not above 0.
    #[must_use]
    pub fn start(
        endpoint: &Endpoint,
        namespace: &str,
        objects: impl IntoIterator<Item = Object>,
        pace: Pace,
    ) -> Self {
        let objects: Vec<_> = objects.into_iter().map(|object| (object.kind, object.name)).collect();
        assert!(!objects.is_empty(), "nothing to update");
        assert!(pace.per_second > 0.0, "no rate");
        let target = Target { endpoint: endpoint.clone(), namespace: namespace.to_owned(), objects };
        let (stop, stopped) = oneshot::channel();
        let (sender, progress) = watch::channel(Progress::default());
        let failures = Arc::<Mutex<Vec<Failure>>>::default();
        let task = tokio::spawn(run(Arc::new(target), pace, stopped, Arc::new(sender), failures.clone()));
        Self { stop: Some(stop), task, progress, failures, start: Instant::now() }
    }

    /// How many were written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.progress.borrow().written
    }

    /// Awaits that so many are written or have failed. Without a deadline of its own.
    pub async fn wait(&self, updates: u64) {
        let mut progress = self.progress.clone();
        // Ends early only if the runtime is being shut down.
        let _ = progress.wait_for(|progress| progress.written + progress.failed >= updates).await;
    }

    /// Ends the updates, awaits those in flight, and tells what they came to.
    pub async fn stop(mut self) -> Updated {
        if let Some(stop) = self.stop.take() {
            // Fails only if the task is gone, which is what is wanted.
            let _ = stop.send(());
        }
        // A panic in an update has shown in the test's output.
        let _ = (&mut self.task).await;
        let Progress { written, failed, throttled } = *self.progress.borrow();
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Updated { written, failed, throttled, failures, elapsed: self.start.elapsed() }
    }
}

impl Drop for Steady {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(
    target: Arc<Target>,
    pace: Pace,
    mut stopped: oneshot::Receiver<()>,
    progress: Arc<watch::Sender<Progress>>,
    failures: Arc<Mutex<Vec<Failure>>>,
) {
    let start = tokio::time::Instant::now();
    let stamp = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64);
    let mut rng = Rng::of(pace.seed, "updates", 0);
    let mut flying = JoinSet::new();
    for number in 0u64.. {
        let due = start + Duration::from_secs_f64(number as f64 / pace.per_second);
        let turn = async {
            tokio::time::sleep_until(due).await;
            while flying.len() >= pace.parallelism.max(1) {
                flying.join_next().await;
            }
        };
        tokio::select! {
            biased;
            _ = &mut stopped => break,
            () = turn => {}
        }
        // Finished ones are taken out, or they would pile up.
        while flying.try_join_next().is_some() {}

        let at = rng.below(target.objects.len() as u64) as usize;
        let step = target.objects[at].0.update(stamp + number, &mut rng);
        let (target, progress, failures) = (target.clone(), progress.clone(), failures.clone());
        flying.spawn(async move {
            let (kind, name) = &target.objects[at];
            let mut counts = Counts::default();
            let result = apply(&target.endpoint, &target.namespace, *kind, name, &step, &mut counts).await;
            let failed = result.is_err();
            if let Err(failure) = result {
                let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                if failures.len() < KEPT {
                    failures.push(failure);
                }
            }
            progress.send_modify(|progress| {
                progress.written += u64::from(!failed);
                progress.failed += u64::from(failed);
                progress.throttled += counts.throttled;
            });
        });
    }
    while flying.join_next().await.is_some() {}
}
