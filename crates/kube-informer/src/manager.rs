//! Watches of single objects that come and go while a program runs: each for an owner, which is told what changes.
//!
//! An operator whose objects name other objects (a workload, a Service) cannot know beforehand what to watch. A [`Manager`]
//! watches what it is asked for, for as long as that is wanted, and shares informers between all who want something of the
//! same namespace.
//!
//! ```no_run
//! use k8s_openapi::api::apps::v1::Deployment;
//! use kube_informer::controller::Request;
//! use kube_informer::factory::Factory;
//! use kube_informer::manager::{Manager, RequestWatch, WatchEvent};
//! use kube_informer::resource::Resource;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let factory = Factory::try_default().await?;
//! let manager = Manager::new(&factory);
//! manager.start();
//! let owner = Request::new("shop", "web"); // who is reconciled when the Deployment changes
//! let request = RequestWatch::new(&owner, Resource::of::<Deployment>(), "shop", "web-v2").on(async |event| {
//!     if let WatchEvent::Updated { new, resync: false, .. } = event {
//!         println!("{} has {:?} replicas", new.key(), new.pointer::<i64>("/spec/replicas")?);
//!     }
//!     Ok::<_, kube_informer::encoding::ViewError>(()) // an error is tried again
//! });
//! let watch = manager.add(request).await?; // or why not: not there, forbidden, not served, not in time
//! println!("{} is {}", watch.key(), watch.state());
//! let keys = manager.requests(); // a stream of owners, for `Controller::external`
//! manager.stop_for_owner(&owner).await; // nothing is called afterwards
//! # drop(keys);
//! # Ok(())
//! # }
//! ```
//!
//! What is promised (20 is the number of the tests):
//!
//! - **A watch is there once.** Its [key](KeyParams) says for whom and of what. Whoever adds it again, also at the same time,
//!   gets the same one, with the handler of the first.
//! - **It is there, or nothing is.** [`add`](Manager::add) returns when it is known that the object is there, also of a watch
//!   that there is already. Otherwise it says why not, nothing is left unless somebody else asked for it, too, and it can be
//!   tried again. So it is where it is dropped before its end, and where the watch is stopped meanwhile: a stop wins. With [`wait_for_target`](RequestWatch::wait_for_target), the object may come later.
//! - **What is told is a story without holes** ([`WatchEvent`]), whatever informer the object is seen through: what was told
//!   is held against what there is. Deletions that nobody saw happen are told, too.
//! - **Handlers are called through a work queue:** one call at a time for each watch; what fails, panics or takes too long is
//!   tried again, later each time, with what is known then. One that hangs does not hold up the others.
//! - **Few connections.** Single objects are watched by their names; from [`share_from`](Manager::share_from) objects of one
//!   resource and namespace on, one informer takes their place. Where only single objects may be seen (RBAC with
//!   `resourceNames`), they are watched one by one, each with its own connection, and the whole is tried again from time to
//!   time. An informer that nobody needs any more is stopped, unless it is in use elsewhere. There is no bound across
//!   namespaces: each with fewer objects than that has one connection for each of them, and so has one that is refused as a
//!   whole, however many they are. `kube_informer_manager_informers{of="object"}` says how many there are.
//! - **Health is looked at,** by each informer's own task. What is stuck begins anew, later each time. Reflectors try again by
//!   themselves, so that this is seldom: informers that were stopped or failed, or have not been live for longer than the
//!   [grace](Manager::grace), though the server could be asked. While the server refuses connections or says what is wrong (403,
//!   404, 401, 429), nothing is begun anew: it would not help. Until it begins anew, an informer is followed: what recovers
//!   stays.
//! - **Stopping** one watch, those of an owner, or all can be repeated, and is awaited, by each who does so: nothing is called
//!   afterwards, and no informer is left that nobody needs.
//!
//! What is not promised: that every change is told; an order between objects; that an informer is never older than another
//! one where versions have no order (some aggregated APIs). After a server was restored to an older state, an informer that
//! takes the place of another waits for [`sync_deadline`](Manager::sync_deadline), and then tells what there is.
//!
//! The end: [`shutdown`](Manager::shutdown). Where all handles of a manager are dropped, everything is told to end, and nothing
//! waited for. A handler that holds a manager is such a handle, too.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Semaphore, watch as channel};
use tokio::task::JoinSet;

// What is asked for, and what is said of it.
mod error;
mod key;
mod request;
mod settings;
mod watch;

// What is told of an object.
mod story;

// What there is: watches, the objects that they are of, and the informers that these are seen through.
mod entry;
mod feed;
mod plan;
mod state;

// How it changes.
mod adding;
mod joining;
mod seeing;

// Who is told.
mod requests;
mod worker;

// The beginning and the end of it all.
mod running;

// What can be seen from outside.
mod metrics;

pub use error::AddError;
pub use key::{KeyParams, Owner};
pub use metrics::{ManagerStats, Metrics};
pub use request::{RequestWatch, WatchEvent, WatchHandler};
pub use requests::Owners;
pub use watch::{Watch, WatchInfo, WatchState};

use crate::factory::Factory;
use crate::workqueue::WorkQueue;
use requests::Requests;
use settings::Settings;
use state::State;

/// Watches single objects for owners. See the [module](self).
///
/// A clone is the same manager. What is set counts for what begins afterwards.
#[derive(Clone)]
pub struct Manager {
    inner: Arc<Inner>,
    _handle: Arc<Handle>,
}

/// The last one to be dropped ends everything.
struct Handle(Arc<Inner>);

/// What a shutdown has left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shutdown {
    /// So many watches were stopped.
    pub stopped: usize,
    /// Those whose handlers were still in a call at the deadline; they were dropped where they waited.
    pub busy: Vec<KeyParams>,
}

struct Inner {
    this: Weak<Inner>,
    factory: Factory,
    settings: Mutex<Settings>,
    state: Mutex<State>,
    /// From the start on.
    queue: OnceLock<WorkQueue<Arc<KeyParams>>>,
    requests: Requests,
    tasks: Mutex<Tasks>,
    /// Tells workers to end.
    stopped: channel::Sender<bool>,
    /// Held by the one who shuts down.
    ending: tokio::sync::Mutex<()>,
    /// So many may ask the server at a time whether an object is there.
    asking: Semaphore,
    adds: metrics::Adds,
    /// What was counted of all resources.
    total: metrics::Series,
}

#[derive(Default)]
struct Tasks {
    workers: JoinSet<()>,
    /// Calls of handlers that take their time.
    aside: JoinSet<()>,
}

impl Manager {
    /// A manager that takes its informers from a factory.
    #[must_use]
    pub fn new(factory: &Factory) -> Self {
        let inner = Arc::new_cyclic(|this| Inner {
            this: Weak::clone(this),
            factory: factory.clone(),
            settings: Mutex::default(),
            state: Mutex::default(),
            queue: OnceLock::new(),
            requests: Requests::default(),
            tasks: Mutex::default(),
            stopped: channel::Sender::new(false),
            ending: tokio::sync::Mutex::default(),
            asking: Semaphore::new(8),
            adds: metrics::Adds::default(),
            total: metrics::Series::default(),
        });
        Self { _handle: Arc::new(Handle(Arc::clone(&inner))), inner }
    }

    /// Starts the factory's informers, and calls handlers from now on. Once: later calls do nothing.
    pub fn start(&self) {
        self.inner.factory.start();
        self.inner.start();
    }

    /// Watches an object; the watch that there is already, where there is one. Returns when it is known that the object is
    /// there. Can be dropped at any time: nothing is left then, unless somebody else adds the same.
    ///
    /// # Errors
    ///
    /// Where the object cannot be watched, or is not there, or that is not known in time; where it is stopped meanwhile.
    pub async fn add(&self, request: RequestWatch) -> Result<Watch, AddError> {
        let added = self.inner.add(&request).await;
        // What is begun is counted where that is known: of several that add it, one has begun it.
        if let Err(error) = &added {
            self.inner.adds.count(Some(error));
        }
        added.map(|entry| Watch::new(Arc::clone(&self.inner), entry))
    }

    /// The watch of a key, if there is one.
    #[must_use]
    pub fn get(&self, key: &KeyParams) -> Option<Watch> {
        let entry = self.inner.lock().entries.get(key).filter(|entry| entry.is_ready()).cloned()?;
        Some(Watch::new(Arc::clone(&self.inner), entry))
    }

    /// Stops a watch, also one that is being added, and waits for its end: its handler is not called afterwards. Whether there
    /// was one. Where it was stopped before, that end is waited for. A handler may stop its own watch; it is not waited for then.
    pub async fn stop(&self, key: &KeyParams) -> bool {
        self.inner.stop(key).await
    }

    /// Stops all watches of an owner, in one step, and waits for their ends; how many there were.
    pub async fn stop_for_owner(&self, owner: impl Into<Owner>) -> usize {
        self.inner.stop_for_owner(&owner.into()).await
    }

    /// Stops all watches, in one step, and waits for their ends; how many there were.
    pub async fn stop_all(&self) -> usize {
        self.inner.stop_all().await
    }

    /// The watches that there are, and how they are, in the order of their keys. Those that are being added are among them.
    #[must_use]
    pub fn list(&self) -> Vec<WatchInfo> {
        let state = self.inner.lock();
        let mut all: Vec<WatchInfo> =
            state.entries.values().map(|entry| self.inner.info(&state, entry)).collect();
        drop(state);
        all.sort_by(|a, b| a.key.cmp(&b.key));
        all
    }

    /// Owners whose watched objects changed, or are said again: a source of keys for
    /// [`Controller::external`](crate::controller::Controller::external). Each reader gets all, beginning with every owner
    /// that there is. However much changes, an owner waits once for each reader, and only while something is watched for it.
    pub fn requests(&self) -> Owners {
        self.inner.read(None)
    }

    /// As [`requests`](Self::requests), with the owners of one [kind](Owner::kind) alone.
    pub fn requests_of_kind(&self, kind: impl Into<String>) -> Owners {
        self.inner.read(Some(kind.into()))
    }

    /// What it has done since it was made.
    #[must_use]
    pub fn stats(&self) -> ManagerStats {
        self.inner.stats()
    }

    /// Stops everything, and waits for it: calls of handlers may take so long, and are dropped where they wait then. Nothing
    /// runs afterwards, and nothing can be added.
    pub async fn shutdown(&self, deadline: Duration) -> Shutdown {
        self.inner.shutdown(deadline).await
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settings(&self) -> Settings {
        self.lock_settings().clone()
    }

    fn name(&self) -> Arc<str> {
        Arc::clone(&self.lock_settings().name)
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_aside_count(&self) -> usize {
        let mut tasks = self.tasks();
        while tasks.aside.try_join_next().is_some() {}
        tasks.aside.len()
    }

    fn read(&self, kind: Option<String>) -> Owners {
        // Under the lock: whoever comes meanwhile is among the owners, or is told.
        let state = self.lock();
        self.requests.read(kind, state.owners.keys().cloned())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.inner.lock();
        f.debug_struct("Manager")
            .field("name", &self.inner.name())
            .field("phase", &state.phase)
            .field("watches", &state.entries.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
