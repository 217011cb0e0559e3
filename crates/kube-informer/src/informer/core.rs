//! One informer, whatever its objects are seen as: its reflectors, its queue, its cache, and those who are told.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tracing::Instrument;

use super::callers::Callers;
use super::health::Board;
use super::hub::{Hub, Told};
use super::overlong;
use super::pump::{Item, Pump, ScopeSink};
use super::running::{Running, Task};
use super::slack::Slack;
use super::spec::Spec;
use super::wait::moment;
use crate::cache::{self, Cache};
use crate::connect::Connection;
use crate::connect::gather::Gather;
use crate::encoding::{Codec, Encoding, ServerVersion};
use crate::factory::lease::Claims;
use crate::object::{Intake, ViewBudget};
use crate::queue::{self, Gauge};
use crate::reflector::backoff::Backoff;
use crate::reflector::fault::{Fault, Remedy};
use crate::reflector::transport::Transport;
use crate::reflector::{Reflector, Report, Server, Settings};

/// See the module.
#[derive(Debug)]
pub(crate) struct Core {
    /// Tells it from others of its factory.
    name: Arc<str>,
    spec: Spec,
    views: ViewBudget,
    gather: Gather,
    callers: Callers,
    hub: Arc<Hub>,
    board: Board,
    traffic: Traffic,
    gauge: Arc<Gauge>,
    /// Until it is started.
    idle: Mutex<Option<Idle>>,
    /// What was started for it.
    tasks: Mutex<Vec<Task>>,
    /// Handlers that were started, and may run.
    handlers: Mutex<Vec<Running>>,
    /// Told when there is one more.
    adopted: Notify,
    claims: Claims,
    slack: Arc<Slack>,
}

#[derive(Debug)]
struct Idle {
    pump: Pump,
    sender: queue::Sender<Item>,
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
    /// What was in them.
    pub(super) objects: AtomicU64,
    /// Lists that were begun anew when some of them had come.
    pub(super) begun_anew: AtomicU64,
}

/// So many bytes may wait on their way to the cache.
const QUEUE: usize = 8 << 20;

impl Core {
    pub(crate) fn new(
        name: Arc<str>,
        spec: Spec,
        views: ViewBudget,
        gather: Duration,
        callers: Callers,
    ) -> Arc<Self> {
        let (writer, cache) = cache::cache(spec.scopes());
        let (sender, receiver) = queue::queue(QUEUE);
        let targets = spec.targets().into_iter();
        let board = Board::new(targets.map(|(namespace, target)| {
            (namespace, format!("WATCH {}", target.resource.path(target.namespace.as_deref())))
        }));
        let hub = Arc::new(Hub::new(cache, callers.runtime().clone()));
        let pump = Pump::new(writer, receiver);
        Arc::new(Self {
            name,
            views,
            gather: Gather::new(gather),
            callers,
            hub,
            board,
            traffic: Traffic::default(),
            gauge: sender.gauge(),
            idle: Mutex::new(Some(Idle { pump, sender })),
            tasks: Mutex::default(),
            handlers: Mutex::default(),
            adopted: Notify::new(),
            claims: Claims::default(),
            slack: Arc::default(),
            spec,
        })
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.spec
    }

    /// How long changes may wait for others, on their way.
    pub(crate) fn gather(&self) -> &Gather {
        &self.gather
    }

    /// Who uses it.
    pub(crate) fn claims(&self) -> &Claims {
        &self.claims
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

    /// What its tasks say is said in this. Spans are there only where their level is listened to: so that no warning is without
    /// a name, it is the one that everybody listens to.
    pub(super) fn span(&self, namespace: Option<&str>) -> tracing::Span {
        let resource = &self.spec.resource;
        tracing::error_span!("informer", %resource, api_version = %resource.api_version(), namespace)
    }

    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    pub(super) fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    pub(super) fn callers(&self) -> &Callers {
        &self.callers
    }

    pub(super) fn runtime(&self) -> &Handle {
        self.callers.runtime()
    }

    /// A name for a registration that has none. Of several, each but the first gets a number.
    pub(super) fn handler_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Keeps a handler, to wait for its end.
    pub(super) fn adopt(&self, running: Running) {
        let mut handlers = lock(&self.handlers);
        handlers.retain(|each| !each.has_ended());
        handlers.push(running);
        self.adopted.notify_one();
    }

    /// Waits until there is one more handler, or was since this was last waited for. By one at a time.
    pub(super) async fn adopted(&self) {
        self.adopted.notified().await;
    }

    /// Those that were started, and have not ended.
    pub(super) fn running(&self) -> Vec<Running> {
        lock(&self.handlers).iter().filter(|each| !each.has_ended()).cloned().collect()
    }

    /// The queue, to be filled and emptied by hand.
    #[cfg(test)]
    pub(super) fn take_queue(&self) -> Option<(queue::Sender<Item>, Pump)> {
        lock(&self.idle).take().map(|idle| (idle.sender, idle.pump))
    }

    /// What applies changes, to be called by hand.
    #[cfg(test)]
    pub(super) fn take_applier(&self) -> Option<Arc<super::pump::Applier>> {
        lock(&self.idle).take().map(|idle| idle.pump.applier())
    }

    /// Begins to list and watch. Once: later calls do nothing.
    pub(crate) fn start(
        self: &Arc<Self>,
        connection: &Connection,
        server: &Arc<Server>,
        settings: &Settings,
    ) {
        // Whoever stops it sees all tasks, or none and that there will be none.
        let mut tasks = lock(&self.tasks);
        let Some(Idle { pump, sender }) = lock(&self.idle).take() else { return };
        if let Some(problem) = self.spec.problem() {
            tracing::error!(resource = %self.spec.resource, scope = %self.spec.scope, problem, "nothing can be watched");
            self.board.misconfigured(&problem);
            return;
        }
        self.board.started();
        let applier = pump.applier();
        let alarm = Alarm(Arc::clone(self));
        let run = async move {
            pump.run(&alarm.0).await;
            drop(alarm);
        };
        tasks.push(Task::spawn(self.runtime(), run.instrument(self.span(None))));
        let slack = Arc::clone(&self.slack);
        tasks.push(Task::spawn(self.runtime(), async move { slack.run().await }));
        let (core, long) = (Arc::clone(self), settings.call);
        let look = async move { overlong::run(&core, long).await };
        tasks.push(Task::spawn(self.runtime(), look.instrument(self.span(None))));
        for (number, (namespace, target)) in self.spec.targets().into_iter().enumerate() {
            let span = self.span(namespace.as_deref());
            let alarm = Alarm(Arc::clone(self));
            let sink =
                ScopeSink::new(Arc::clone(self), number, namespace, Arc::clone(&applier), sender.clone());
            let connection = connection.gathering(&self.gather);
            let (server, settings) = (Arc::clone(server), settings.clone());
            let run = async move {
                let intakes = alarm.0.intakes(number, &connection, &settings).await;
                if let Some((json, protobuf)) = intakes {
                    Reflector::new(target, connection, sink, server, json, protobuf, settings).run().await;
                }
                drop(alarm);
            };
            tasks.push(Task::spawn(self.runtime(), run.instrument(span)));
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
            None if !self.spec.may_be_protobuf() => Encoding::Json,
            None => self.spec.encoding(self.server_version(scope, connection, settings).await),
        };
        self.board.encoding(encoding);
        // What was asked for has been checked; see `problem`.
        let intake = |encoding| self.spec.codec(encoding).ok().map(|codec| self.intake(codec));
        let protobuf = if encoding == Encoding::Protobuf { intake(Encoding::Protobuf) } else { None };
        Some((intake(Encoding::Json)?, protobuf))
    }

    fn intake(&self, codec: Codec) -> Intake {
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
    ) -> Option<ServerVersion> {
        let mut backoff = Backoff::new(settings.backoff);
        let mut failures = 0;
        loop {
            match connection.version().await {
                Ok(version) => return version,
                Err(fault) => {
                    let remedy = fault.remedy(false);
                    // A server that answers everything but this can be read all the same, in JSON.
                    failures += u32::from(matches!(fault, Fault::Status(_) | Fault::Stalled(_)));
                    if failures > 5 && remedy != Remedy::Credentials {
                        return None;
                    }
                    if fault.is_of_credentials() {
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
        if deleted > 0 {
            self.slack.look(self.cache());
        }
        let events = added + updated + deleted;
        if events + bookmarks > 0 {
            self.board.heard(events > 0, bookmarks > 0);
        }
    }

    /// A list was read, and is in the cache.
    pub(super) fn listed(&self, objects: usize) {
        self.slack.listed(objects);
    }

    /// Counts what came.
    pub(super) fn received(&self, came: crate::reflector::Traffic) {
        self.traffic.begun_anew.fetch_add(came.begun_anew, Ordering::Relaxed);
        self.traffic.bytes.fetch_add(came.bytes, Ordering::Relaxed);
        self.traffic.objects.fetch_add(came.objects, Ordering::Relaxed);
    }

    /// Stops: nothing is asked, applied or told afterwards. Names the handlers that are still busy at the deadline. It can
    /// be called again, and waits again for what has not ended.
    pub(crate) async fn stop(&self, deadline: Duration) -> Vec<String> {
        let deadline = moment(deadline);
        let tasks = self.end();
        let mut busy = Vec::new();
        for task in tasks {
            if !task.end(deadline).await {
                // Somebody's index function does not return.
                busy.push(self.name.to_string());
            }
        }
        self.board.stopped();
        let handlers = lock(&self.handlers).clone();
        for handler in handlers {
            if !handler.end(deadline).await {
                busy.push(handler.mailbox.name.to_string());
            }
        }
        lock(&self.handlers).retain(|handler| !handler.has_ended());
        busy.dedup();
        busy
    }

    /// Tells everything that runs to end, and does not wait.
    pub(crate) fn abandon(&self) {
        self.end().iter().for_each(Task::abort);
        self.board.stopped();
    }

    /// Nobody is told anything any more, and nothing will be started; what was.
    fn end(&self) -> Vec<Task> {
        self.hub.close();
        let tasks = lock(&self.tasks);
        drop(lock(&self.idle).take());
        tasks.clone()
    }
}

/// Says so when a task that has it panics: nothing is as it was then, and health must not go on to say so.
struct Alarm(Arc<Core>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(informer = %self.0.name, "a task of the informer panicked: this is a bug");
            self.0.board.broken("a task of the informer panicked: this is a bug, please report it");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
