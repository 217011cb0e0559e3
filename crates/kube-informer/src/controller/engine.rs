//! One controller as it runs: its sources, its queue, its workers.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{BoxStream, StreamExt};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::error::{Report, RunError};
use super::gate::Gate;
use super::metrics::Series;
use super::reconciler::Reconciler;
use super::request::Request;
use super::source::{Progress, Source};
use super::worker::Worker;
use super::writes;
use crate::factory::Factory;
use crate::informer::Informer;
use crate::workqueue::WorkQueue;
use crate::workqueue::rate_limit::FAILING_KEYS;
use crate::workqueue::rate_limit::failures::Failures;

/// See the module. It runs once.
pub(crate) struct Engine {
    pub(crate) name: Arc<str>,
    pub(super) factory: Factory,
    pub(super) queue: WorkQueue<Request>,
    /// The first is what is reconciled.
    pub(super) sources: Vec<Source>,
    pub(super) series: Arc<Series>,
    pub(super) settings: Settings,
    pub(super) phase: watch::Sender<Phase>,
    /// Workers are about to start: sources queue what they know, and whatever happens from then on.
    pub(super) open: watch::Sender<bool>,
    /// What each worker is busy with.
    busy: Mutex<BTreeMap<usize, Busy>>,
    /// How often keys failed in a row. The limiter counts more: also those that succeeded, and want to run again.
    failures: Mutex<Failures<Request>>,
    /// A worker is done with something.
    pub(super) freed: Notify,
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) workers: usize,
    pub(super) timeout: Duration,
    pub(super) sync_deadline: Option<Duration>,
    pub(super) drain: Duration,
    pub(super) write_deadline: Duration,
    /// Whether it also runs where another one leads.
    pub(super) everywhere: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    Syncing,
    /// Everything is known, and someone else leads.
    Standby,
    Working,
    Stopping,
    Ended,
}

#[derive(Debug, Clone)]
pub(super) struct Busy {
    pub(super) request: Request,
    pub(super) since: Instant,
}

/// Streams of keys from elsewhere.
pub(crate) type External = Vec<BoxStream<'static, Request>>;

/// While so many keys are ready, no more are taken from elsewhere. On standby, nobody takes them away.
const ENOUGH: usize = 100_000;

/// How long it may take to drop a task that is told to end. One that does not return to its runtime cannot be dropped.
const TO_DROP: Duration = Duration::from_secs(1);

/// How much longer than its timeout a reconcile may take before it is said that it blocks its thread.
const OVERDUE: Duration = Duration::from_secs(30);

/// How a run goes on.
enum Turn {
    /// The given future has resolved.
    Asked,
    Failed(RunError),
}

impl Engine {
    pub(super) fn new(
        name: Arc<str>,
        factory: Factory,
        queue: WorkQueue<Request>,
        sources: Vec<Source>,
        series: Arc<Series>,
        settings: Settings,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            factory,
            queue,
            sources,
            series,
            settings,
            phase: watch::Sender::new(Phase::Idle),
            open: watch::Sender::new(false),
            busy: Mutex::default(),
            failures: Mutex::new(Failures::new(FAILING_KEYS)),
            freed: Notify::new(),
        })
    }

    pub(crate) fn runs_everywhere(&self) -> bool {
        self.settings.everywhere
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Required sources that do not know their initial objects, or have not queued them when they should, and why.
    pub(crate) fn missing(&self) -> Vec<String> {
        self.sources
            .iter()
            .filter(|source| source.required)
            .filter_map(|source| source.missing(self))
            .collect()
    }

    /// Sources whose caches may be old, and why.
    pub(crate) fn stale(&self) -> Vec<String> {
        let stale = |source: &Source| match source.informer.health().state {
            state @ crate::informer::State::Stale { .. } => Some(format!("{source}: {state}")),
            _ => None,
        };
        self.sources.iter().filter_map(stale).collect()
    }

    /// What can never come right by itself.
    pub(crate) fn broken(&self) -> Vec<String> {
        let is_broken = |source: &&Source| match source.informer.health().state {
            crate::informer::State::Stale { why, .. } => why.cause == crate::informer::Cause::Broken,
            _ => false,
        };
        let sources = self.sources.iter().filter(is_broken);
        let sources = sources.map(|source| format!("{source}: {}", source.informer.health().state));
        let overdue = self.settings.timeout.saturating_add(OVERDUE);
        let busy = self.lock_busy();
        let stuck =
            busy.values().filter(|busy| busy.since.elapsed() > overdue).map(|Busy { request, since }| {
                format!("the reconcile of {request} blocks its thread for {:.0?}", since.elapsed())
            });
        sources.chain(stuck).collect()
    }

    /// What workers are busy with.
    pub(crate) fn busy(&self) -> Vec<Request> {
        self.lock_busy().values().map(|busy| busy.request.clone()).collect()
    }

    pub(super) fn lock_busy(&self) -> MutexGuard<'_, BTreeMap<usize, Busy>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often keys failed in a row; of so many keys, those that failed last.
    pub(super) fn failures(&self) -> MutexGuard<'_, Failures<Request>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs until the future resolves, the gate closes, or something fails for good.
    pub(crate) async fn run<K: 'static, R: Reconciler<K>>(
        self: Arc<Self>,
        external: External,
        reconciler: R,
        shutdown: impl Future<Output = ()>,
        mut gate: Option<Gate>,
    ) -> Result<Report, RunError> {
        let _ending = Ending(&self);
        self.phase.send_replace(Phase::Syncing);
        let mut feeding = JoinSet::new();
        // Before the informers begin, so that the least is told twice.
        for at in 0..self.sources.len() {
            let Some(source) = self.sources.get(at) else { continue };
            let (engine, events) = (Arc::clone(&self), source.open(&self.name));
            feeding.spawn(async move {
                if let Some(source) = engine.sources.get(at) {
                    source.run(&engine, events).await;
                }
            });
        }
        for stream in external {
            feeding.spawn(Arc::clone(&self).follow(stream));
        }
        self.factory.start();

        let (stop, stopped) = watch::channel(false);
        let mut workers = JoinSet::new();
        let turn = {
            let start = |gate: Option<Gate>, workers: &mut JoinSet<()>| {
                self.start::<K, R>(reconciler, gate, &stopped, workers);
            };
            let mut work = pin!(self.work(&mut feeding, &mut workers, &mut gate, start));
            let mut shutdown = pin!(shutdown);
            tokio::select! {
                biased;
                () = &mut shutdown => Turn::Asked,
                error = &mut work => Turn::Failed(error),
            }
        };
        feeding.abort_all();
        self.queue.shut_down();
        self.phase.send_replace(Phase::Stopping);
        stop.send_replace(true);
        let patience = match &turn {
            Turn::Failed(RunError::LeadershipLost { .. }) => Duration::ZERO,
            _ => self.settings.drain,
        };
        let drained = tokio::select! {
            biased;
            () = closed(&mut gate) => None,
            busy = self.drain(&mut workers, patience) => Some(busy),
        };
        let busy = match drained {
            Some(busy) => busy,
            // What it would write, someone else may write differently.
            None => self.drain(&mut workers, Duration::ZERO).await,
        };
        // A mapping function that blocks its thread cannot be waited for.
        let _ = timeout(TO_DROP, async { while feeding.join_next().await.is_some() {} }).await;
        feeding.detach_all();
        match turn {
            Turn::Asked => Ok(Report { controller: self.name.to_string(), busy }),
            Turn::Failed(error) => {
                tracing::error!(controller = %self.name, %error, "the controller ends");
                Err(error)
            }
        }
    }

    /// Waits for everything that must be there, starts the workers, and then for something to fail.
    async fn work(
        &self,
        feeding: &mut JoinSet<()>,
        workers: &mut JoinSet<()>,
        gate: &mut Option<Gate>,
        start: impl FnOnce(Option<Gate>, &mut JoinSet<()>),
    ) -> RunError {
        let before = tokio::select! {
            biased;
            before = self.before(gate) => before,
            error = self.broken_task(feeding, workers) => Err(error),
        };
        if let Err(error) = before {
            return error;
        }
        self.phase.send_replace(Phase::Working);
        tracing::info!(controller = %self.name, workers = self.settings.workers, "the controller works");
        start(gate.clone(), workers);
        tokio::select! {
            biased;
            () = closed(gate) => RunError::LeadershipLost { controller: self.name.to_string() },
            error = self.broken_task(feeding, workers) => error,
        }
    }

    /// Waits for a task that panics, or a required source that stops.
    async fn broken_task(&self, feeding: &mut JoinSet<()>, workers: &mut JoinSet<()>) -> RunError {
        loop {
            let ended = tokio::select! {
                Some(ended) = feeding.join_next() => ended,
                Some(ended) = workers.join_next() => ended,
                else => return std::future::pending().await,
            };
            if let Err(error) = ended
                && error.is_panic()
            {
                return RunError::Broken { controller: self.name.to_string() };
            }
            let stopped = |source: &&Source| source.required && *source.progress.borrow() == Progress::Ended;
            if let Some(source) = self.sources.iter().find(stopped) {
                let (controller, source) = (self.name.to_string(), source.to_string());
                return RunError::SourceStopped { controller, source };
            }
        }
    }

    /// Waits for everything that must be there before workers start, and then for sources to queue what they know.
    async fn before(&self, gate: &mut Option<Gate>) -> Result<(), RunError> {
        self.ready().await?;
        let lost = || RunError::LeadershipLost { controller: self.name.to_string() };
        if let Some(gate) = gate {
            self.phase.send_replace(Phase::Standby);
            gate.opened().await.map_err(|_| lost())?;
        }
        self.open.send_replace(true);
        tokio::select! {
            biased;
            () = closed(gate) => Err(lost()),
            queued = self.queued() => queued,
        }
    }

    /// Waits until every required source knows its initial objects.
    async fn ready(&self) -> Result<(), RunError> {
        let wait = async {
            for source in &self.sources {
                let mut progress = source.progress.subscribe();
                // From now on it misses nothing, whether it is waited for or not.
                let opened = progress.wait_for(|progress| *progress >= Progress::Open).await.is_ok();
                if !opened || !source.required {
                    continue;
                }
                // This returns where it can never be.
                if source.informer.synced(Duration::MAX).await.is_err() {
                    return false;
                }
                let synced = progress.wait_for(|progress| *progress >= Progress::Synced).await;
                if synced.is_ok_and(|progress| *progress == Progress::Ended) {
                    return false;
                }
            }
            true
        };
        self.in_time(wait).await
    }

    /// Waits until every required source has queued what it knows.
    async fn queued(&self) -> Result<(), RunError> {
        let wait = async {
            for source in self.sources.iter().filter(|source| source.required) {
                let mut progress = source.progress.subscribe();
                let queued = progress.wait_for(|progress| *progress >= Progress::Queued).await;
                if queued.is_ok_and(|progress| *progress == Progress::Ended) {
                    return false;
                }
            }
            true
        };
        self.in_time(wait).await
    }

    /// Waits for sources as long as they may take, or until they say that it is in vain.
    async fn in_time(&self, wait: impl Future<Output = bool>) -> Result<(), RunError> {
        let deadline = self.settings.sync_deadline;
        let in_time = timeout(deadline.unwrap_or(Duration::MAX), wait).await;
        if in_time == Ok(true) {
            return Ok(());
        }
        let deadline = deadline.filter(|_| in_time.is_err());
        Err(RunError::NotSynced { controller: self.name.to_string(), deadline, missing: self.missing() })
    }

    fn start<K: 'static, R: Reconciler<K>>(
        self: &Arc<Self>,
        reconciler: R,
        gate: Option<Gate>,
        stopped: &watch::Receiver<bool>,
        workers: &mut JoinSet<()>,
    ) {
        let Some(primary) = self.sources.first() else { return };
        let informer: Informer<K> = primary.informer.cast();
        let reconciler = Arc::new(reconciler);
        let (hold, held) = writes::channel();
        workers.spawn(writes::hold(Arc::clone(self), held, stopped.clone()));
        for number in 0..self.settings.workers {
            let worker = Worker {
                engine: Arc::clone(self),
                informer: informer.clone(),
                reconciler: Arc::clone(&reconciler),
                number,
                gate: gate.clone(),
                hold: hold.clone(),
            };
            workers.spawn(worker.run(stopped.clone()));
        }
    }

    /// Waits for workers to finish what they have; then drops them where they are. What they were busy with.
    async fn drain(&self, workers: &mut JoinSet<()>, deadline: Duration) -> Vec<Request> {
        let done = async { while workers.join_next().await.is_some() {} };
        if timeout(deadline, done).await.is_ok() {
            return Vec::new();
        }
        let busy = self.busy();
        workers.abort_all();
        let _ = timeout(TO_DROP, async { while workers.join_next().await.is_some() {} }).await;
        // Those that block their threads cannot be waited for.
        workers.detach_all();
        if !busy.is_empty() {
            let keys: Vec<String> = busy.iter().map(ToString::to_string).collect();
            tracing::warn!(controller = %self.name, keys = keys.join(", "), "reconciles were cut off");
        }
        busy
    }

    /// Queues keys from elsewhere.
    async fn follow(self: Arc<Self>, mut stream: BoxStream<'static, Request>) {
        loop {
            let mut waits = false;
            loop {
                let mut freed = pin!(self.freed.notified());
                freed.as_mut().enable();
                if self.queue.len() < ENOUGH {
                    break;
                }
                if !std::mem::replace(&mut waits, true) {
                    self.series.external_waits.inc();
                }
                freed.await;
            }
            match std::panic::AssertUnwindSafe(stream.next()).catch_unwind().await {
                Ok(Some(request)) => self.queue.add(request),
                Ok(None) => return,
                Err(_) => {
                    self.series.source_panics.inc();
                    tracing::error!(controller = %self.name, "an external source panicked, and is not asked again");
                    return;
                }
            }
            tokio::task::coop::consume_budget().await;
        }
    }
}

/// Waits until a gate is open no more, where there is one.
async fn closed(gate: &mut Option<Gate>) {
    match gate {
        Some(gate) => gate.closed().await,
        None => std::future::pending().await,
    }
}

/// However a run ends, it has ended.
struct Ending<'a>(&'a Engine);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.queue.shut_down();
        self.0.phase.send_replace(Phase::Ended);
    }
}
