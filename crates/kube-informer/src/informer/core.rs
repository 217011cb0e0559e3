//! One informer, whatever its objects are seen as: its reflectors, its queue, its cache, and those who are told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use super::health::Board;
use super::hub::{Hub, Told};
use super::mailbox::Mailbox;
use super::pump::{Item, Pump, ScopeSink};
use super::spec::Spec;
use super::wait::moment;
use crate::cache::{self, Cache};
use crate::connect::Connection;
use crate::encoding::Encoding;
use crate::object::{Intake, ViewBudget};
use crate::queue::{self, Gauge};
use crate::reflector::backoff::Backoff;
use crate::reflector::fault::Remedy;
use crate::reflector::transport::Transport;
use crate::reflector::{Reflector, Report, Server, Settings};

/// See the module.
#[derive(Debug)]
pub(crate) struct Core {
    /// Tells it from others of its factory.
    name: Arc<str>,
    spec: Spec,
    views: ViewBudget,
    runtime: Handle,
    hub: Arc<Hub>,
    board: Board,
    traffic: Traffic,
    gauge: Arc<Gauge>,
    /// Until it is started.
    idle: Mutex<Option<Idle>>,
    /// What was started for it.
    tasks: Mutex<Vec<JoinHandle<()>>>,
    /// Handlers that were started.
    handlers: Mutex<Vec<Running>>,
    /// Registrations that were given a name.
    named: AtomicU64,
}

#[derive(Debug)]
struct Idle {
    pump: Pump,
    sender: queue::Sender<Item>,
}

/// A handler, in a task or a thread.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) mailbox: Arc<Mailbox>,
    /// Closed when nothing runs any more.
    pub(super) done: watch::Receiver<()>,
    /// Tasks can be ended wherever they wait; threads cannot.
    pub(super) task: Option<AbortHandle>,
}

/// What came in, so far.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) added: AtomicU64,
    pub(super) updated: AtomicU64,
    pub(super) deleted: AtomicU64,
    pub(super) bookmarks: AtomicU64,
    /// Bytes of bodies.
    pub(super) bytes: AtomicU64,
}

/// So many bytes may wait on their way to the cache.
const QUEUE: usize = 8 << 20;

impl Core {
    pub(crate) fn new(name: Arc<str>, spec: Spec, views: ViewBudget, runtime: Handle) -> Arc<Self> {
        let (writer, cache) = cache::cache(spec.scopes());
        let (sender, receiver) = queue::queue(QUEUE);
        let targets = spec.targets().into_iter();
        let board = Board::new(targets.map(|(namespace, target)| {
            (namespace, format!("WATCH {}", target.resource.path(target.namespace.as_deref())))
        }));
        let hub = Arc::new(Hub::new(cache));
        let pump = Pump::new(writer, receiver);
        Arc::new(Self {
            name,
            views,
            runtime,
            hub,
            board,
            traffic: Traffic::default(),
            gauge: sender.gauge(),
            idle: Mutex::new(Some(Idle { pump, sender })),
            tasks: Mutex::default(),
            handlers: Mutex::default(),
            named: AtomicU64::new(0),
            spec,
        })
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.hub.cache
    }

    pub(super) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    pub(super) fn board(&self) -> &Board {
        &self.board
    }

    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    pub(super) fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// A name for a registration that has none.
    pub(super) fn next_name(&self) -> Arc<str> {
        let number = self.named.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}-{number}", self.name).into()
    }

    /// Keeps a handler, to wait for its end.
    pub(super) fn adopt(&self, running: Running) {
        let mut handlers = lock(&self.handlers);
        handlers.retain(|each| each.done.has_changed().is_ok());
        handlers.push(running);
    }

    /// What applies changes, to be called by hand.
    #[cfg(test)]
    pub(super) fn take_pump(&self) -> Option<Pump> {
        lock(&self.idle).take().map(|idle| idle.pump)
    }

    /// Begins to list and watch. Once: later calls do nothing.
    pub(crate) fn start(
        self: &Arc<Self>,
        connection: &Connection,
        server: &Arc<Server>,
        settings: &Settings,
    ) {
        let Some(Idle { pump, sender }) = lock(&self.idle).take() else { return };
        if let Some(problem) = self.spec.problem() {
            tracing::error!(resource = %self.spec.resource, scope = %self.spec.scope, problem, "nothing can be watched");
            self.board.misconfigured(&problem);
            return;
        }
        self.board.started();
        let mut tasks = lock(&self.tasks);
        tasks.push(self.runtime.spawn(pump.run(Arc::clone(self))));
        for (number, (namespace, target)) in self.spec.targets().into_iter().enumerate() {
            let span = tracing::info_span!(
                "informer",
                resource = %self.spec.resource,
                namespace = namespace.as_deref().unwrap_or_default()
            );
            let sink = ScopeSink::new(Arc::clone(self), number, namespace, sender.clone());
            let (connection, server, settings) = (connection.clone(), Arc::clone(server), settings.clone());
            let run = async move {
                let core = Arc::clone(sink.core());
                let Some((json, protobuf)) = core.intakes(number, &connection, &settings).await else {
                    return;
                };
                Reflector::new(target, connection, sink, server, json, protobuf, settings).run().await;
            };
            tasks.push(self.runtime.spawn(run.instrument(span)));
        }
    }

    /// The makers of objects, as soon as it is known what the server can be asked for.
    async fn intakes(
        &self,
        scope: usize,
        connection: &Connection,
        settings: &Settings,
    ) -> Option<(Intake, Option<Intake>)> {
        let encoding = match self.spec.encoding {
            Some(encoding) => encoding,
            // What is in no table needs no version.
            None if self.spec.encoding(Some(crate::encoding::ServerVersion { major: 1, minor: 0 }))
                == Encoding::Json =>
            {
                Encoding::Json
            }
            None => self.spec.encoding(self.server_version(scope, connection, settings).await),
        };
        self.board.encoding(encoding);
        // What was asked for has been checked; see `problem`.
        let intake = |encoding| self.spec.codec(encoding).ok().map(|codec| self.intake(codec));
        let protobuf = if encoding == Encoding::Protobuf { intake(Encoding::Protobuf) } else { None };
        Some((intake(Encoding::Json)?, protobuf))
    }

    fn intake(&self, codec: crate::encoding::Codec) -> Intake {
        // Each scope has its own; together they keep what was allowed.
        let views = match self.views {
            ViewBudget::Recent(bytes) => ViewBudget::Recent(bytes / self.spec.targets().len().max(1)),
            other => other,
        };
        Intake::new(codec).packing(self.spec.packing).views(views)
    }

    async fn server_version(
        &self,
        scope: usize,
        connection: &Connection,
        settings: &Settings,
    ) -> Option<crate::encoding::ServerVersion> {
        let mut backoff = Backoff::new(settings.backoff);
        loop {
            match connection.version().await {
                Ok(version) => return version,
                Err(fault) => {
                    let remedy = fault.remedy(false);
                    if remedy == Remedy::Credentials {
                        connection.reload_credentials().await;
                    }
                    let again = backoff.failed(fault.retry_after());
                    let request = "GET /version".to_owned();
                    self.board.report(scope, &Report::Failing { request, fault, remedy, again });
                    tokio::time::sleep(again).await;
                }
            }
        }
    }

    /// Counts what was told.
    pub(super) fn told(&self, told: Told, bookmarks: u64) {
        let Told { added, updated, deleted } = told;
        let traffic = &self.traffic;
        for (counter, count) in [
            (&traffic.added, added),
            (&traffic.updated, updated),
            (&traffic.deleted, deleted),
            (&traffic.bookmarks, bookmarks),
        ] {
            counter.fetch_add(count, Ordering::Relaxed);
        }
        let events = added + updated + deleted;
        if events + bookmarks > 0 {
            self.board.heard(events > 0, bookmarks > 0);
        }
    }

    /// Counts what came.
    pub(super) fn received(&self, came: crate::reflector::Traffic) {
        self.traffic.bytes.fetch_add(came.bytes, Ordering::Relaxed);
    }

    /// Stops: nothing is asked, applied or told afterwards. Names the handlers that are still busy at the deadline.
    pub(crate) async fn stop(&self, deadline: Duration) -> Vec<String> {
        let deadline = moment(deadline);
        drop(lock(&self.idle).take());
        self.hub.close();
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        for task in &tasks {
            task.abort();
        }
        for task in tasks {
            // It was aborted, or had ended.
            drop(task.await);
        }
        self.board.stopped();
        let handlers = std::mem::take(&mut *lock(&self.handlers));
        let mut busy = Vec::new();
        for handler in handlers {
            if !handler.end(deadline).await {
                busy.push(handler.mailbox.name.to_string());
            }
        }
        busy
    }

    /// Tells everything that runs to end, and does not wait.
    pub(crate) fn abandon(&self) {
        drop(lock(&self.idle).take());
        self.hub.close();
        for task in lock(&self.tasks).drain(..) {
            task.abort();
        }
        self.board.stopped();
    }
}

impl Running {
    /// Waits for its end; whether it has ended. A task that is busy past the deadline is dropped where it waits.
    pub(super) async fn end(&self, deadline: Instant) -> bool {
        let mut done = self.done.clone();
        if timeout_at(deadline, until_closed(&mut done)).await.is_ok() {
            return true;
        }
        let Some(task) = &self.task else { return false };
        task.abort();
        until_closed(&mut done).await;
        true
    }
}

/// Waits until the other side is gone.
pub(super) async fn until_closed(done: &mut watch::Receiver<()>) {
    while done.changed().await.is_ok() {}
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
