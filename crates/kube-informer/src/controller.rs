//! Controllers: whatever happens, a reconciler looks at one object and does what is missing.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_informer::controller::{Action, BoxError, Context, Controller, Request};
//! use kube_informer::factory::Factory;
//!
//! async fn reconcile(context: Context<Deployment>) -> Result<Action, BoxError> {
//!     let Some(deployment) = context.object() else {
//!         return Ok(Action::done()); // it is gone
//!     };
//!     let owned = context.source::<ReplicaSet>()?;
//!     let owned = owned.list().namespace(deployment.namespace()).count();
//!     println!("{} has {owned} replica sets beside it", deployment.key());
//!     Ok(Action::requeue_after(Duration::from_secs(300)))
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let factory = Factory::try_default().await?;
//! Controller::new(&factory)
//!     .for_kind::<Deployment>()
//!     .owns::<ReplicaSet>()
//!     .watches::<ConfigMap>(|map| vec![Request::new(map.namespace(), "web")])
//!     .workers(4)
//!     .run(reconcile, async { drop(tokio::signal::ctrl_c().await) })
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! What is promised (17 and 18 are the numbers of the tests):
//!
//! - **Each key that something happened to is reconciled after it.** Keys come from *sources*: the objects themselves
//!   ([`for_kind`](Controller::for_kind)), objects that belong to them ([`owns`](Controller::owns): the old owner and the new
//!   one), others through a function ([`watches`](Controller::watches)), and [streams](Controller::external). Deletions
//!   count. No key is lost because a source is slow, or because everything is listed anew.
//! - **A key is never reconciled twice at the same time** (17). However much happens meanwhile, it runs once more.
//! - **Workers start when everything is known** (18): every source has handled its initial objects, but for those that are
//!   [`optional`](Controller::optional).
//! - **What fails is tried again,** later each time ([`limiter`](Controller::limiter)); a panic and a timeout are failures.
//!   [`terminal`] errors are not tried again. One key that fails, hangs or comes back without end holds up no other, as
//!   long as there is another worker.
//! - **A key that wrote sees it:** with [`Context::wrote`], it is not reconciled again before the cache has what it wrote,
//!   or the deadline is over.
//! - **The end** can be awaited: no key is taken any more, what is busy is finished, or cut off at a deadline and named.
//!
//! What is not promised: that a reconcile is told what happened, that there is one for each change, or an order of keys.
//!
//! What there was at the beginning, and what is only said again, comes after what changes ([`Priority::Low`](crate::workqueue::Priority::Low)).
//!
//! Several controllers run under the roof of a [`Runner`](crate::runner::Runner).

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt;
use kube_client::core::Resource as KubeResource;

// What is said between a controller and a reconciler.
pub(crate) mod action;
mod context;
mod error;
mod reconciler;
mod request;

// Where keys come from.
mod memory;
pub mod predicate;
mod source;

// Who works on them, and whether.
pub(crate) mod engine;
pub(crate) mod gate;
mod worker;
mod writes;

// What can be seen from outside.
mod meter;
mod metrics;

pub use action::{Action, BoxError, Terminal, terminal};
pub use context::{Context, NoSource};
pub use error::{Report, RunError};
pub use meter::{Meter, MeteredWork, MeteredWorker};
pub use metrics::Metrics;
pub use reconciler::Reconciler;
pub use request::Request;

use crate::factory::Factory;
use crate::informer::{Informer, Scope};
use crate::object::Object;
use crate::resource::{Placement, Resource};
use crate::workqueue::rate_limit::RateLimiter;
use crate::workqueue::{self, WorkQueue};
use engine::{Engine, External, Settings};
use predicate::{Change, Predicate};
use source::{Mapping, Source};

/// A controller, as it is to be. See the [module](self).
///
/// `K` is what is reconciled. `S` is the source that was added last, which [`when`](Self::when),
/// [`optional`](Self::optional) and [`resync`](Self::resync) are about.
#[must_use = "nothing happens until `run` is called"]
pub struct Controller<K = (), S = ()> {
    plan: Plan,
    kinds: PhantomData<fn() -> (K, S)>,
}

/// A source whose objects are seen as `S`.
#[derive(Debug)]
pub struct Of<S>(PhantomData<fn() -> S>);

/// A source of keys alone.
#[derive(Debug)]
pub struct Keys(());

/// What was added to a controller last: a source [of objects](Of), or of [keys](Keys). Before there is one, there is nothing
/// to reconcile.
pub trait Added {}

impl<S> Added for Of<S> {}

impl Added for Keys {}

struct Plan {
    factory: Factory,
    name: Option<String>,
    scope: Scope,
    /// The first is what is reconciled.
    sources: Vec<Planned>,
    external: External,
    queue: workqueue::Settings<Request>,
    metrics: Option<Metrics>,
    settings: Settings,
    capacity: Option<usize>,
}

struct Planned {
    origin: Origin,
    mapping: Mapping,
    predicates: Vec<Box<source::Says>>,
    required: bool,
    resync: Option<Duration>,
}

enum Origin {
    Kind(Resource),
    Informer(Informer),
}

impl Controller {
    /// A controller that takes its informers from a factory.
    pub fn new(factory: &Factory) -> Self {
        let settings = Settings {
            workers: 1,
            timeout: Duration::from_secs(600),
            sync_deadline: None,
            drain: Duration::from_secs(30),
            write_deadline: Duration::from_secs(5),
            everywhere: false,
        };
        let plan = Plan {
            factory: factory.clone(),
            name: None,
            scope: Scope::All,
            sources: Vec::new(),
            external: Vec::new(),
            queue: workqueue::Settings::default(),
            metrics: None,
            settings,
            capacity: None,
        };
        Self { plan, kinds: PhantomData }
    }

    /// What is reconciled: objects of a type.
    pub fn for_kind<K>(self) -> Controller<K, Of<K>>
    where
        K: KubeResource<DynamicType = (), Scope: Placement>,
    {
        self.with(Origin::Kind(Resource::of::<K>()), Mapping::Itself)
    }

    /// What is reconciled: objects of an informer, which may be of any resource, and set up in any way.
    pub fn for_informer<K>(self, informer: &Informer<K>) -> Controller<K, Of<K>> {
        self.with(Origin::Informer(informer.cast()), Mapping::Itself)
    }
}

impl<K, S> Controller<K, S> {
    fn with<J, T>(mut self, origin: Origin, mapping: Mapping) -> Controller<J, T> {
        let planned = Planned { origin, mapping, predicates: Vec::new(), required: true, resync: None };
        self.plan.sources.push(planned);
        self.turn()
    }

    fn turn<J, T>(self) -> Controller<J, T> {
        Controller { plan: self.plan, kinds: PhantomData }
    }

    /// Which objects are watched, of all kinds: all unless said otherwise. Kinds that are in no namespace are watched as a
    /// whole. Where it is one object, it is that one which is reconciled, and of other kinds everything in its namespace
    /// is watched.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.plan.scope = scope;
        self
    }

    /// What it is called in logs and metrics: the kind that is reconciled, in lower case, unless said otherwise.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.plan.name = Some(name.into());
        self
    }

    /// How many reconcile at the same time, each another key: one unless said otherwise.
    pub fn workers(mut self, workers: usize) -> Self {
        self.plan.settings.workers = workers.max(1);
        self
    }

    /// How long one reconcile may take; it is dropped then, which is a failure. Ten minutes unless said otherwise.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.plan.settings.timeout = timeout;
        self
    }

    /// How long it is waited, before workers start, until every required source has handled its initial objects. Past
    /// that, [`run`](Self::run) returns an error that says what is missing and why. For ever unless said otherwise.
    pub fn sync_deadline(mut self, deadline: Duration) -> Self {
        self.plan.settings.sync_deadline = Some(deadline);
        self
    }

    /// How long reconciles may take at the end until they are cut off. Half a minute unless said otherwise.
    pub fn drain(mut self, deadline: Duration) -> Self {
        self.plan.settings.drain = deadline;
        self
    }

    /// How long a key waits until the cache has what it wrote ([`Context::wrote`]). Five seconds unless said otherwise.
    pub fn write_deadline(mut self, deadline: Duration) -> Self {
        self.plan.settings.write_deadline = deadline;
        self
    }

    /// How long failures wait until they are tried again: [`workqueue::rate_limit::standard`] unless said otherwise.
    pub fn limiter(mut self, limiter: impl RateLimiter<Request> + 'static) -> Self {
        self.plan.queue = self.plan.queue.limiter(limiter);
        self
    }

    /// Where it is counted and measured.
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.plan.metrics = Some(metrics.clone());
        self
    }

    /// Under a [`Runner`](crate::runner::Runner) with leadership: this one runs also where another one leads.
    pub fn everywhere(mut self) -> Self {
        self.plan.settings.everywhere = true;
        self
    }

    /// How many changes may wait for each source.
    #[cfg(test)]
    fn capacity(mut self, capacity: usize) -> Self {
        self.plan.capacity = Some(capacity);
        self
    }
}

impl<K: 'static, S: Added> Controller<K, S> {
    /// Objects of another type that belong to those that are reconciled: their managing owner is one of them. When one
    /// changes hands, both owners are reconciled.
    pub fn owns<T>(self) -> Controller<K, Of<T>>
    where
        T: KubeResource<DynamicType = (), Scope: Placement>,
    {
        let owner = self.primary();
        self.with(Origin::Kind(Resource::of::<T>()), Mapping::Owner(owner))
    }

    /// As [`owns`](Self::owns), with the objects of an informer.
    pub fn owns_informer<T>(self, informer: &Informer<T>) -> Controller<K, Of<T>> {
        let owner = self.primary();
        self.with(Origin::Informer(informer.cast()), Mapping::Owner(owner))
    }

    /// Objects of another type, and a function that says which keys they are for. It is asked for the old and for the new
    /// object, and must not block.
    pub fn watches<T>(
        self,
        map: impl Fn(&Object<T>) -> Vec<Request> + Send + Sync + 'static,
    ) -> Controller<K, Of<T>>
    where
        T: KubeResource<DynamicType = (), Scope: Placement> + 'static,
    {
        self.with(
            Origin::Kind(Resource::of::<T>()),
            Mapping::Function(Box::new(move |object| map(&object.cast()))),
        )
    }

    /// As [`watches`](Self::watches), with the objects of an informer.
    pub fn watches_informer<T: 'static>(
        self,
        informer: &Informer<T>,
        map: impl Fn(&Object<T>) -> Vec<Request> + Send + Sync + 'static,
    ) -> Controller<K, Of<T>> {
        let map = Mapping::Function(Box::new(move |object| map(&object.cast())));
        self.with(Origin::Informer(informer.cast()), map)
    }

    /// Keys from elsewhere: a timer, a queue, a webhook.
    ///
    /// While a hundred thousand keys are ready, no more are taken from the stream, and it waits
    /// (`kube_informer_controller_external_waits_total` counts that). On standby, keys are taken all the same, each once, and
    /// up to that number: nobody knows whether the one who leads was told of them, too. `workqueue_depth` says how many there
    /// are. What the stream must not lose meanwhile, it has to keep.
    pub fn external<R: Into<Request> + 'static>(
        mut self,
        keys: impl Stream<Item = R> + Send + 'static,
    ) -> Controller<K, Keys> {
        self.plan.external.push(keys.map(Into::into).boxed());
        self.turn()
    }

    fn primary(&self) -> Resource {
        match self.plan.sources.first().map(|planned| &planned.origin) {
            Some(Origin::Kind(resource)) => resource.clone(),
            Some(Origin::Informer(informer)) => informer.resource().clone(),
            // There is no way to get here: what is added first is what is reconciled.
            None => Resource {
                group: String::new(),
                version: String::new(),
                plural: String::new(),
                kind: String::new(),
                namespaced: false,
            },
        }
    }

    /// Runs until the future resolves, and then to its end: no key is taken any more, what is busy is finished, or cut off
    /// at the [deadline](Self::drain). Starts the factory's informers, and leaves them running.
    ///
    /// # Errors
    ///
    /// Where a required source cannot be synced, or is stopped.
    pub async fn run(
        self,
        reconciler: impl Reconciler<K>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<Report, RunError> {
        let (engine, external) = self.build();
        engine.run(external, reconciler, shutdown, None).await
    }

    pub(crate) fn build(self) -> (Arc<Engine>, External) {
        let primary = self.primary();
        let Plan { factory, name, scope, sources, external, queue, metrics, settings, capacity } = self.plan;
        let name = name.unwrap_or_else(|| primary.kind.to_lowercase());
        let metrics = metrics.unwrap_or_default();
        let queue = WorkQueue::new(queue.metrics(metrics.queues(), name.clone()));
        let source = |(at, planned): (usize, Planned)| {
            let Planned { origin, mapping, predicates, required, resync } = planned;
            let informer = match origin {
                Origin::Informer(informer) => informer,
                Origin::Kind(resource) => {
                    let scope = scope_of(&scope, &resource, at == 0);
                    factory.configure_resource(resource, scope).informer()
                }
            };
            let mut source = Source::new(informer, mapping);
            (source.predicates, source.required, source.resync) = (predicates, required, resync);
            source.capacity = capacity.unwrap_or(source.capacity);
            source
        };
        let sources = sources.into_iter().enumerate().map(source).collect();
        let series = metrics.series(&name);
        (Engine::new(name.into(), factory, queue, sources, series, settings), external)
    }
}

/// Which objects of a resource are in the scope of a controller.
fn scope_of(scope: &Scope, resource: &Resource, is_primary: bool) -> Scope {
    match scope {
        Scope::Object { namespace, .. } if !is_primary && !namespace.is_empty() && resource.namespaced => {
            Scope::namespace(namespace.as_str())
        }
        Scope::Object { .. } if is_primary => scope.clone(),
        Scope::Namespaces(_) if resource.namespaced => scope.clone(),
        _ => Scope::All,
    }
}

impl<K, S: 'static> Controller<K, Of<S>> {
    /// Only changes that a predicate lets pass, of the source that was added last. Of several predicates, all must.
    pub fn when(mut self, predicate: Predicate<S>) -> Self {
        if let Some(last) = self.plan.sources.last_mut() {
            last.predicates.push(Box::new(move |change| {
                let (old, new) = (change.old.map(Object::cast::<S>), change.new.map(Object::cast::<S>));
                let Change { initial, resync, .. } = *change;
                predicate.passes(&Change { old: old.as_ref(), new: new.as_ref(), initial, resync })
            }));
        }
        self
    }

    /// Workers do not wait for the source that was added last. It may come later, or never.
    pub fn optional(mut self) -> Self {
        if let Some(last) = self.plan.sources.last_mut() {
            last.required = false;
        }
        self
    }

    /// How often everything of the source that was added last is reconciled, whether something happened or not. Zero is
    /// never. The default is the informer's, or the factory's.
    pub fn resync(mut self, period: Duration) -> Self {
        if let Some(last) = self.plan.sources.last_mut() {
            last.resync = Some(period);
        }
        self
    }
}

impl<K, S> fmt::Debug for Controller<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.plan.name)
            .field("sources", &self.plan.sources.len())
            .field("settings", &self.plan.settings)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
