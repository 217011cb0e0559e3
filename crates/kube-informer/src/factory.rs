//! One informer for everyone who asks for the same.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_informer::factory::Factory;
//! use kube_informer::informer::{Event, Scope};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let factory = Factory::try_default().await?;
//! let pods = factory.informer::<Pod>(Scope::All);
//! pods.on(|event: Event<Pod>| match event {
//!     Event::Added { new, .. } => println!("+ {}", new.key()),
//!     Event::Updated { old, new, .. } => println!("~ {} {}→{}", new.key(), old.version(), new.version()),
//!     Event::Deleted { last, .. } => println!("- {}", last.key()),
//!     _ => {}
//! });
//! factory.start();
//! factory.synced(Duration::from_secs(30)).await?;
//! for pod in pods.list().namespace("default").labels("app=web")? {
//!     println!("{} {:?}", pod.key(), pod.view()?.status);
//! }
//! factory.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! - Informers are shared by what they ask the server for and by what they keep of it: resource, scope, selectors,
//!   encoding, dropped fields. Not by the type that their objects are seen as, the views that are kept, how often
//!   everything is said again, or how long changes may wait for others.
//! - They begin with [`start`](Factory::start); those that are asked for later begin at once.
//! - [`shutdown`](Factory::shutdown) ends everything and waits for it: nothing runs or is called afterwards. Where all
//!   handles of a factory and of its informers are dropped, everything is told to end, and nothing waited for. A handler
//!   that holds an informer is such a handle, too.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube_client::core::Resource as KubeResource;
use kube_client::{Client, Config};
use tokio::runtime::Handle;

mod builder;
pub(crate) mod lease;
mod metrics;
mod timings;

pub use crate::connect::gather::LONGEST as LONGEST_GATHER;
pub use builder::InformerBuilder;
use builder::Wishes;
pub use timings::Timings;

use crate::connect::{Catalog, CatalogError, ConnectError, Connection, ResolveError, Source};
use crate::informer::callers::Callers;
use crate::informer::core::Core;
use crate::informer::spec::Spec;
use crate::informer::{Informer, InformerStats, NotSynced, Scope};
use crate::reflector::{Server, Settings};
use crate::resource::{Placement, Resource};

/// Makes informers, one for everyone who asks for the same. See the [module](self).
///
/// A clone is the same factory.
#[derive(Clone)]
pub struct Factory {
    inner: Arc<Inner>,
}

struct Inner {
    connection: Connection,
    callers: Callers,
    server: Arc<Server>,
    informers: Mutex<Informers>,
}

#[derive(Default)]
struct Informers {
    all: HashMap<Spec, Arc<Core>>,
    /// Those that are being stopped.
    ending: Vec<Arc<Core>>,
    /// How many there were, so far.
    made: u64,
    phase: Phase,
    resync: Option<Duration>,
    settings: Settings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Idle,
    Started,
    Stopped,
}

/// What a shutdown has left: nothing, unless a closure was stuck.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shutdown {
    /// Closures that were still in a call; they are told nothing after it.
    pub busy: Vec<String>,
}

/// How long a shutdown waits for handlers that are busy.
const GRACE: Duration = Duration::from_secs(30);

impl Factory {
    /// A factory for the cluster that the environment names: a kubeconfig, or the cluster that it runs in.
    ///
    /// # Errors
    ///
    /// Where neither is there, or what is there cannot be used.
    pub async fn try_default() -> Result<Self, ConnectError> {
        Ok(Self::with(Connection::try_default().await?))
    }

    /// A factory for the cluster that a source names: a kubeconfig and a context, or the cluster that it runs in.
    ///
    /// # Errors
    ///
    /// Where it is not there, or what is there cannot be used.
    pub async fn from_source(source: Source) -> Result<Self, ConnectError> {
        Ok(Self::with(Connection::from_source(source).await?))
    }

    /// A factory for a cluster, as a configuration says.
    ///
    /// # Errors
    ///
    /// Where the configuration cannot be used.
    pub async fn from_config(config: Config) -> Result<Self, ConnectError> {
        Ok(Self::with(Connection::from_config(config).await?))
    }

    /// A factory that uses a client as it is.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime, which a client needs, too.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::with(Connection::new(client))
    }

    fn with(connection: Connection) -> Self {
        Self {
            inner: Arc::new(Inner {
                connection,
                callers: Callers::new(Handle::current()),
                server: Arc::default(),
                informers: Mutex::default(),
            }),
        }
    }

    /// How often everything is said again to those who are told, unless they or their informer say otherwise. Without it,
    /// never. It counts for informers that are asked for from now on.
    #[must_use]
    pub fn resync(self, period: Duration) -> Self {
        self.lock().resync = Some(period);
        self
    }

    /// How long things may take on the way to the server, and how long it is waited after failures. It counts for
    /// informers that are started from now on.
    #[must_use]
    pub fn timings(self, timings: Timings) -> Self {
        timings.apply(&mut self.lock().settings);
        self
    }

    /// The informer for objects of a type.
    #[must_use]
    pub fn informer<K>(&self, scope: Scope) -> Informer<K>
    where
        K: KubeResource<DynamicType = (), Scope: Placement>,
    {
        self.configure(scope).informer()
    }

    /// The informer for objects of a type, to be set up.
    pub fn configure<K>(&self, scope: Scope) -> InformerBuilder<K>
    where
        K: KubeResource<DynamicType = (), Scope: Placement>,
    {
        self.configure_resource(Resource::of::<K>(), scope).cast()
    }

    /// The informer for a resource that is named as for `kubectl`: `deploy`, `deployments.apps`, `Deployment.v1.apps`.
    ///
    /// # Errors
    ///
    /// Where there is no such resource, it cannot be watched, or the server cannot be asked.
    pub async fn resource(&self, name: &str, scope: Scope) -> Result<Informer, ResolveError> {
        Ok(self.configure_resource(self.resolve(name).await?, scope).informer())
    }

    /// The client in use, for what else is to be asked of the server. Another one takes its place when credentials are
    /// read anew: ask for it when it is needed.
    #[must_use]
    pub fn client(&self) -> Client {
        self.inner.connection.client()
    }

    /// The server's address, for messages: `https://10.0.0.1:6443`. `None` where only the client that was given knows it.
    #[must_use]
    pub fn server(&self) -> Option<String> {
        let server = self.inner.connection.server()?.to_string();
        Some(server.trim_end_matches('/').to_owned())
    }

    /// The resource that is named as for `kubectl`.
    ///
    /// # Errors
    ///
    /// Where there is no such resource, it cannot be watched, or the server cannot be asked.
    pub async fn resolve(&self, name: &str) -> Result<Resource, ResolveError> {
        self.inner.connection.resolve(name).await
    }

    /// What the server serves now, to look up several names. One question, whatever the number of names.
    ///
    /// # Errors
    ///
    /// Where the server does not say it.
    pub async fn catalog(&self) -> Result<Catalog, CatalogError> {
        self.inner.connection.catalog().await
    }

    /// The informer for a resource, to be set up.
    pub fn configure_resource(&self, resource: Resource, scope: Scope) -> InformerBuilder {
        InformerBuilder::new(self.clone(), Spec::new(resource, scope))
    }

    /// Starts all informers. Those that are asked for later start by themselves.
    ///
    /// Each lists everything first, and each namespace of its scope by itself. Of all lists of a factory, also later ones, 8
    /// go on at a time; the others wait for their turn. Watches are not counted.
    pub fn start(&self) {
        let mut informers = self.lock();
        if informers.phase == Phase::Idle {
            informers.phase = Phase::Started;
        }
        if informers.phase == Phase::Started {
            for core in informers.all.values() {
                core.start(&self.inner.connection, &self.inner.server, &informers.settings);
            }
        }
    }

    /// Waits until all informers have listed everything once.
    ///
    /// # Errors
    ///
    /// Where that takes longer than the deadline, or can never be; it says which are missing, and why.
    pub async fn synced(&self, deadline: Duration) -> Result<(), NotSynced> {
        let cores = self.inner.cores();
        crate::informer::synced(&cores.iter().collect::<Vec<_>>(), deadline).await
    }

    /// Stops one informer, for everyone, and waits for its end. Whoever asks for the same again gets a new one. Names the
    /// closures that are still busy at the deadline.
    pub async fn stop<K>(&self, informer: &Informer<K>, deadline: Duration) -> Shutdown {
        let core = informer.core();
        let is_it = |each: &Arc<Core>| Arc::ptr_eq(each, core);
        {
            let mut informers = self.lock();
            let Informers { all, ending, .. } = &mut *informers;
            // Where this is dropped before its end, a shutdown still waits for it.
            ending.extend(all.extract_if(|_, each| is_it(each)).map(|(_, each)| each));
        }
        let busy = core.stop(deadline).await;
        if busy.is_empty() {
            self.ended(core);
        }
        Shutdown { busy }
    }

    /// Stops everything and waits for its end. Handlers that are busy have half a minute. Connections that nobody uses are
    /// closed with the last handle of the factory, or after a minute.
    ///
    /// A handler that calls it does not wait for itself, and is named as busy.
    pub async fn shutdown(&self) -> Shutdown {
        self.shutdown_within(GRACE).await
    }

    /// Stops everything and waits for its end, and not longer than the deadline for handlers that are busy.
    pub async fn shutdown_within(&self, deadline: Duration) -> Shutdown {
        self.lock().phase = Phase::Stopped;
        let mut cores = self.inner.cores();
        cores.extend(self.lock().ending.iter().cloned());
        let stops = cores.iter().map(|core| core.stop(deadline));
        let busy = futures_util::future::join_all(stops).await;
        Shutdown { busy: busy.into_iter().flatten().collect() }
    }

    /// What the informers have done, and what they hold.
    #[must_use]
    pub fn stats(&self) -> Vec<InformerStats> {
        self.inner.cores().iter().map(|core| core.stats()).collect()
    }

    /// Registers metrics of all informers, those that there are and those to come: what they hold, what came, what
    /// waits, how handlers keep up, how it goes.
    ///
    /// ```no_run
    /// # use kube_informer::factory::Factory;
    /// # fn example(factory: &Factory) -> std::fmt::Result {
    /// let mut registry = prometheus_client::registry::Registry::default();
    /// factory.register_metrics(&mut registry);
    /// let mut page = String::new();
    /// prometheus_client::encoding::text::encode(&mut page, &registry)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Every name begins with `kube_informer_`, and every series has the labels `informer` (a name within the factory),
    /// `resource`, `scope` and `selector`.
    ///
    /// | Name | More labels | What it is |
    /// | ---- | ----------- | ---------- |
    /// | `objects` | | objects in the cache |
    /// | `kept_bytes` | | what is kept of them, packed |
    /// | `plain_bytes` | | what that is unpacked |
    /// | `events_total` | `type`: `added`, `updated`, `deleted`, `bookmark` | changes that were applied |
    /// | `stale_events_total` | | events that were older than what was known |
    /// | `received_bytes_total` | | bytes that came from the server |
    /// | `gather_seconds` | | how long changes may wait for others before they are read |
    /// | `gathered_total` | | how often changes that had waited were read; zero where the connection cannot do that |
    /// | `queue_length` | | changes on their way to the cache |
    /// | `queue_bytes` | | what they take |
    /// | `relists_total` | `reason`: see [`Relists`](crate::informer::Relists) | how often everything was listed |
    /// | `watches_total` | | watches that were opened |
    /// | `unreadable_total` | | objects that could not be read |
    /// | `index_faults_total` | | failures of index functions |
    /// | `encoding` | `encoding`: `json`, `protobuf` | 1 for the one in use |
    /// | `health` | `state`: `starting`, `syncing`, `live`, `stale`, `stopped` | 1 for the one in which it is, 0 for others |
    /// | `last_version` | `namespace`: empty where all are watched as one | the last version that was seen, where it is a number |
    /// | `last_event_timestamp_seconds` | | when something was last heard of an object; nothing before that |
    /// | `last_bookmark_timestamp_seconds` | | when the server last said that nothing had happened; nothing before that |
    /// | `handler_backlog` | `handler` | changes that wait for a handler or the reader of a stream |
    /// | `handler_behind_seconds` | `handler` | how long it has been behind |
    /// | `handler_panics_total` | `handler` | calls that panicked |
    /// | `handler_gaps_total` | `handler` | how often it missed changes |
    /// | `handler_missed_total` | `handler` | changes that it missed |
    /// | `handler_duration_seconds` | `handler` | a histogram: how long calls take; nothing before the first, nor for streams |
    pub fn register_metrics(&self, registry: &mut prometheus_client::registry::Registry) {
        registry.register_collector(metrics::collector(&self.inner));
    }

    /// The informer for this; started, if the others are.
    fn shared<K>(&self, spec: Spec, wishes: Wishes) -> Informer<K> {
        let mut informers = self.lock();
        let resync = wishes.resync.or(informers.resync);
        let core = self.core(&mut informers, spec, wishes);
        core.claims().keep();
        drop(informers);
        Informer::new(core, self.keeper(), resync)
    }

    /// The one that there is, or a new one.
    fn core(&self, informers: &mut Informers, spec: Spec, wishes: Wishes) -> Arc<Core> {
        let Wishes { views, gather, .. } = wishes;
        let phase = informers.phase;
        let Informers { all, made, settings, .. } = informers;
        let core = all.entry(spec).or_insert_with_key(|spec| {
            *made += 1;
            let name = format!("{}-{made}", spec.resource.plural).into();
            Core::new(name, spec.clone(), views.unwrap_or_default(), gather, self.inner.callers.clone())
        });
        let core = Arc::clone(core);
        core.gather().at_most(gather);
        match phase {
            Phase::Idle => {}
            Phase::Started => core.start(&self.inner.connection, &self.inner.server, settings),
            Phase::Stopped => core.abandon(),
        }
        core
    }

    /// What keeps informers going.
    fn keeper(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::<Inner>::clone(&self.inner) as Arc<dyn Any + Send + Sync>
    }

    /// The informers that there are.
    #[cfg(test)]
    pub(crate) fn cores(&self) -> Vec<Arc<Core>> {
        self.inner.cores()
    }

    /// Whether it was shut down: informers that are asked for never begin.
    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().phase == Phase::Stopped
    }

    /// Where tasks run.
    pub(crate) fn runtime(&self) -> &Handle {
        self.inner.callers.runtime()
    }

    fn lock(&self) -> MutexGuard<'_, Informers> {
        self.inner.lock()
    }
}

impl Inner {
    fn cores(&self) -> Vec<Arc<Core>> {
        self.lock().all.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Informers> {
        self.informers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let informers = self.informers.get_mut().unwrap_or_else(PoisonError::into_inner);
        for core in informers.all.values() {
            core.abandon();
        }
    }
}

impl fmt::Debug for Factory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let informers = self.lock();
        f.debug_struct("Factory")
            .field("phase", &informers.phase)
            .field("informers", &informers.all.len())
            .finish_non_exhaustive()
    }
}
