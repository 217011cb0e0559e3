//! A controller that says what changes about Deployments: how many are wanted, what each container runs, who came and went.
//!
//! ```text
//! informer ──events──▶ feeder ──keys──▶ work queue ──▶ workers ──▶ handle_add, handle_update, handle_delete ──▶ sink
//!                        └──what was told last, what is now: `Tracker`──┘
//! ```
//!
//! Promised:
//!
//! 1. Each change is told with the state before and after: replicas, and the images of all containers, init containers
//!    among them, and containers that were added or removed. What else has changed is told as well; [`Reported::is_tracked`]
//!    tells them apart.
//! 2. What there is at the beginning is no change. What comes later is, if it shows: another version in which nothing is
//!    different that would be told is not told.
//! 3. A deletion is told with the last known state, also where it was missed and only found later. One that was created
//!    again under the same name is a deletion and an addition.
//! 4. Changes of one Deployment are told in order, one at a time. Those that come faster than they are told become one:
//!    what was told last, compared with what is now. What came and went meanwhile is not told.
//! 5. A sink that panics stops nobody; the panic is logged, counted, and the change is not told again.
//! 6. What is kept is bounded by the Deployments that there are, or were told to be.
//! 7. At shutdown nothing more is read, what was read is told, and then nothing runs any more.
//!
//! ```no_run
//! # use kube_informer::factory::Factory;
//! # use kube_informer::informer::Scope;
//! use kube_informer_feed::deployments::DeploymentController;
//!
//! # async fn example(shutdown: impl Future<Output = ()>) -> Result<(), Box<dyn std::error::Error>> {
//! let factory = Factory::try_default().await?;
//! let controller = DeploymentController::new(&factory, Scope::All).workers(2);
//! controller.run(|reported| println!("{}", reported.change), shutdown).await;
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::Stream;
use k8s_openapi::api::apps::v1::Deployment;
use kube_informer::controller::{Meter, MeteredWorker, Metrics};
use kube_informer::encoding::{ManagedFields, ViewError};
use kube_informer::factory::Factory;
use kube_informer::informer::{Event, Events, Informer, Scope};
use kube_informer::object::{Object, ObjectKey};
use kube_informer::workqueue::{Settings, WorkQueue};
use tokio::task::JoinSet;
use tokio::task::coop::consume_budget;

// What was told, and what is to be told.
mod tracker;

use crate::change::{Change, Class};
use crate::hub::Publisher;
use tracker::{Step, Tracker};

/// See the [module](self).
#[must_use = "nothing is told until `run` is called"]
pub struct DeploymentController {
    factory: Factory,
    informer: Informer<Deployment>,
    workers: usize,
    grace: Duration,
    metrics: Option<Metrics>,
    beginning: Beginning,
    begun: Begun,
    same: Beginning,
}

/// One change, and the states that it leads from and to.
#[derive(Debug, Clone)]
pub struct Reported {
    /// What changed.
    pub change: Change,
    /// What was told before; `None` of one that is new. Of one that is gone, its last known state.
    pub old: Option<Object<Deployment>>,
    /// What is now; `None` of one that is gone.
    pub new: Option<Object<Deployment>>,
}

/// What a controller did, when it has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// Changes that were told.
    pub reported: u64,
    /// How often the sink panicked.
    pub panics: u64,
    /// Deployments whose last changes were not told, or are being told, because the sink did not come to an end in time.
    pub left: usize,
}

/// Who is given what there is at the beginning, or what it is by now without having changed.
type Beginning = Box<dyn Fn(&Object<Deployment>) + Send + Sync>;

/// Who is told that this was all.
type Begun = Box<dyn Fn() + Send + Sync>;

/// What everything that runs shares.
struct Inner<S> {
    tracker: Mutex<Tracker<Object<Deployment>>>,
    queue: WorkQueue<ObjectKey>,
    beginning: Beginning,
    begun: Begun,
    same: Beginning,
    meter: Option<Meter>,
    sink: S,
    reported: AtomicU64,
    panics: AtomicU64,
}

/// How long a shutdown waits for the sink.
const GRACE: Duration = Duration::from_secs(30);

impl Reported {
    /// Whether it is one of those that the controller is for: a Deployment came or went, or its replicas or images are
    /// others. All else is the way there: status, conditions, labels.
    #[must_use]
    pub fn is_tracked(&self) -> bool {
        let tracked =
            |class: &Class| matches!(class, Class::Create | Class::Delete | Class::Scale | Class::Image);
        self.change.classes.iter().any(tracked)
    }
}

impl DeploymentController {
    /// A controller for the Deployments of a cluster, or of some namespaces.
    pub fn new(factory: &Factory, scope: Scope) -> Self {
        Self {
            factory: factory.clone(),
            informer: factory.configure(scope).managed_fields(ManagedFields::Writers).informer(),
            workers: 2,
            grace: GRACE,
            metrics: None,
            beginning: Box::new(|_| {}),
            begun: Box::new(|| {}),
            same: Box::new(|_| {}),
        }
    }

    /// How many workers there are: how many Deployments are told of at a time. The default is two.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// How long a shutdown waits until what was read is told. The default is half a minute.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Where it is counted what its workers do (`controller_runtime_*`), and its work queue is measured (`workqueue_*`), both
    /// under the name `deployments`.
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// Who is given each Deployment that there is at the beginning: the states that changes lead on from. It is called before
    /// any change of that Deployment is told, and must not block.
    pub fn beginning(mut self, call: impl Fn(&Object<Deployment>) + Send + Sync + 'static) -> Self {
        self.beginning = Box::new(call);
        self
    }

    /// Who is told that each Deployment that there is at the beginning was given to [`beginning`](Self::beginning). It is
    /// called once, and must not block.
    pub fn begun(mut self, call: impl Fn() + Send + Sync + 'static) -> Self {
        self.begun = Box::new(call);
        self
    }

    /// Who is given each Deployment of which there is another version that shows no change: only who wrote it, or its version,
    /// are others. Nothing is told of it. It is called in the place of the sink, and must not block.
    pub fn same(mut self, call: impl Fn(&Object<Deployment>) + Send + Sync + 'static) -> Self {
        self.same = Box::new(call);
        self
    }

    /// Tells those who are connected to a hub: what there is at the beginning, and that this was all; and keeps what those who
    /// connect later begin with up to date where nothing is told. Changes are for the sink to [publish](Publisher::publish), all of them: what was not published is not known to those who connect later.
    pub fn begin_with(self, publisher: &Publisher) -> Self {
        let (known, begun, same) = (publisher.clone(), publisher.clone(), publisher.clone());
        self.beginning(move |deployment| known.known(deployment))
            .begun(move || begun.begun())
            .same(move |deployment| same.known(deployment))
    }

    /// The informer that it reads, to be shared.
    #[must_use]
    pub fn informer(&self) -> &Informer<Deployment> {
        &self.informer
    }

    /// Starts the factory, and tells the sink each change until `shutdown` resolves. Then it tells what was read by then, and
    /// ends. The sink is called by several workers at a time, for each Deployment by one; it must not block for long.
    ///
    /// Where this is dropped, everything ends at once.
    pub async fn run(
        self,
        sink: impl Fn(Reported) + Send + Sync + 'static,
        shutdown: impl Future<Output = ()>,
    ) -> Ended {
        let Self { factory, informer, workers, grace, metrics, beginning, begun, same } = self;
        let meter = metrics.map(|metrics| metrics.meter("deployments"));
        let settings = Settings::default();
        let queue = WorkQueue::new(match &meter {
            Some(meter) => meter.measured(settings),
            None => settings,
        });
        let inner = Arc::new(Inner {
            tracker: Mutex::default(),
            queue: queue.clone(),
            beginning,
            begun,
            same,
            meter,
            sink,
            reported: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        });
        let events = informer.subscribe().name("deployment-controller").resync(Duration::ZERO).events();
        let (mut feeder, mut tasks) = (JoinSet::new(), JoinSet::new());
        feeder.spawn(Arc::clone(&inner).feed(events));
        factory.start();

        let mut shutdown = std::pin::pin!(shutdown);
        let is_over = tokio::select! {
            () = &mut shutdown => true,
            // Longer than anyone runs. Where it fails, the informer was stopped: nothing will come.
            _ = informer.synced(Duration::MAX) => false,
        };
        for _ in 0..workers {
            tasks.spawn(Arc::clone(&inner).work());
        }
        if !is_over {
            tracing::info!(scope = %informer.scope(), workers, "the Deployment controller runs");
            shutdown.await;
        }
        feeder.shutdown().await;
        if tokio::time::timeout(grace, queue.drain()).await.is_ok() {
            while tasks.join_next().await.is_some() {}
        } else {
            queue.shut_down();
            tracing::warn!(
                ?grace,
                left = inner.lock().pending(),
                "the sink is stuck: what is left is not told"
            );
        }
        Ended {
            reported: inner.reported.load(Ordering::Relaxed),
            panics: inner.panics.load(Ordering::Relaxed),
            left: inner.lock().pending(),
        }
    }
}

impl<S: Fn(Reported) + Send + Sync + 'static> Inner<S> {
    /// Notes what the informer tells, and queues whose it is. It waits for nobody.
    async fn feed(self: Arc<Self>, mut events: Events<Deployment>) {
        let mut has_begun = false;
        loop {
            let event = match next(&mut events, has_begun).await {
                Next::Event(event) => event,
                Next::Begun => {
                    has_begun = true;
                    self.guarded("all of them", || (self.begun)());
                    continue;
                }
                Next::End => return,
            };
            let key = match event {
                Event::Added { new, initial: true } if !has_begun => {
                    tracing::debug!(deployment = %new.key(), version = %new.version(), "is there at the beginning");
                    self.guarded(new.key(), || (self.beginning)(&new));
                    self.lock().begin(new);
                    None
                }
                Event::Updated { resync: true, .. } => None,
                Event::Added { new, .. } | Event::Updated { new, .. } => {
                    let key = new.key().to_key();
                    self.lock().is(new);
                    Some(key)
                }
                Event::Deleted { last, certain } => {
                    let key = last.key().to_key();
                    self.lock().was(last, certain);
                    Some(key)
                }
                _ => None,
            };
            if let Some(key) = key {
                self.queue.add(key);
            }
            consume_budget().await;
        }
    }

    /// Tells what is queued, until the queue has ended.
    async fn work(self: Arc<Self>) {
        let worker = self.meter.as_ref().map(Meter::worker);
        while let Some(item) = self.queue.get().await {
            let work = worker.as_ref().map(MeteredWorker::begin);
            let is_well = self.process(item.key());
            work.into_iter().for_each(|work| work.end(is_well));
            item.forget();
            drop(item);
            consume_budget().await;
        }
    }

    /// What is to be told about one Deployment. Nobody else has its key meanwhile. Whether all of it was.
    fn process(&self, key: &ObjectKey) -> bool {
        let (steps, folded) = self.lock().take(key);
        let alone = steps.len() == 1;
        let mut is_well = true;
        for step in steps {
            let reported = match step {
                Step::Add { new } => Self::handle_add(new),
                Step::Update { old, new } => Self::handle_update(old, new),
                Step::Delete { last, certain } => Self::handle_delete(last, certain),
            };
            match reported {
                Ok(Reported { change, new: Some(new), .. }) if !change.is_visible() => {
                    is_well &= self.guarded(key, || (self.same)(&new));
                }
                Ok(mut reported) => {
                    reported.change.coalesced = if alone { folded.max(1) } else { 1 };
                    is_well &= self.report(key, reported);
                }
                Err(error) => {
                    is_well = false;
                    tracing::error!(deployment = %key, %error, "a change cannot be told");
                }
            }
        }
        self.lock().done(key);
        is_well
    }

    /// A Deployment is new.
    fn handle_add(new: Object<Deployment>) -> Result<Reported, ViewError> {
        Ok(Reported { change: Change::added(&new)?, old: None, new: Some(new) })
    }

    /// A Deployment is another now.
    fn handle_update(old: Object<Deployment>, new: Object<Deployment>) -> Result<Reported, ViewError> {
        Ok(Reported { change: Change::modified(&old, &new)?, old: Some(old), new: Some(new) })
    }

    /// A Deployment is gone; `last` is what is known of it.
    fn handle_delete(last: Object<Deployment>, certain: bool) -> Result<Reported, ViewError> {
        Ok(Reported { change: Change::deleted(&last, certain)?, old: Some(last), new: None })
    }

    fn report(&self, key: &ObjectKey, reported: Reported) -> bool {
        let Change { summary, actor, coalesced, what, .. } = &reported.change;
        let by = actor.as_ref().map(|actor| actor.manager.as_str());
        if reported.is_tracked() {
            tracing::info!(deployment = %key, ?what, by, coalesced, "{summary}");
        } else {
            tracing::debug!(deployment = %key, ?what, by, coalesced, "{summary}");
        }
        let is_told = self.guarded(key, || (self.sink)(reported));
        self.reported.fetch_add(u64::from(is_told), Ordering::Relaxed);
        is_told
    }

    /// Calls what is not ours. Tells whether it came back.
    fn guarded(&self, key: impl fmt::Display, call: impl FnOnce()) -> bool {
        let Err(panic) = catch_unwind(AssertUnwindSafe(call)) else { return true };
        self.panics.fetch_add(1, Ordering::Relaxed);
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("a panic without a text");
        tracing::error!(deployment = %key, panic = text, "the sink panicked; it is told the next change");
        false
    }

    fn lock(&self) -> MutexGuard<'_, Tracker<Object<Deployment>>> {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a feeder reads.
enum Next {
    Event(Event<Deployment>),
    /// All objects of the beginning were read, and handled.
    Begun,
    End,
}

async fn next(events: &mut Events<Deployment>, has_begun: bool) -> Next {
    // Where there is always something to read, it has begun all the same.
    if !has_begun && events.is_synced() {
        return Next::Begun;
    }
    std::future::poll_fn(|cx| match Pin::new(&mut *events).poll_next(cx) {
        // Who asks for the next event is done with those before.
        Poll::Pending if !has_begun && events.is_synced() => Poll::Ready(Next::Begun),
        Poll::Pending => Poll::Pending,
        Poll::Ready(Some(event)) => Poll::Ready(Next::Event(event)),
        Poll::Ready(None) => Poll::Ready(Next::End),
    })
    .await
}

impl fmt::Debug for DeploymentController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeploymentController")
            .field("informer", &self.informer)
            .field("workers", &self.workers)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}
