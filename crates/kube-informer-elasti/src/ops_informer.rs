//! What the targets of ElastiServices are doing, and who is to answer for their services: the pods, or the resolver.
//!
//! ```no_run
//! use futures_util::StreamExt;
//! use kube_informer::controller::Request;
//! use kube_informer::factory::Factory;
//! use kube_informer::manager::Manager;
//! use kube_informer_elasti::api::ElastiService;
//! use kube_informer_elasti::ops_informer::OpsInformer;
//!
//! # async fn example(elasti: ElastiService) -> Result<(), Box<dyn std::error::Error>> {
//! let factory = Factory::try_default().await?;
//! let manager = Manager::new(&factory);
//! let ops = OpsInformer::new(&factory, &manager);
//! factory.start();
//! manager.start();
//! let owner = Request::new("shop", "web");
//! ops.follow(&owner, &elasti).await?;
//! let mut changes = std::pin::pin!(ops.changes());
//! while let Some(owner) = changes.next().await {
//!     if let Some(state) = ops.state(&owner) {
//!         println!("{owner}: {} ({})", state.decision, state.why);
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Promised:
//!
//! - A target is anything with a scale subresource: Deployments, StatefulSets, ReplicaSets, Argo's Rollouts (also those that
//!   name another workload), and whatever a definition declares paths for. Nothing else of it is decoded.
//! - Only the namespaces in use are watched, each once, and of its pods is kept what readiness needs.
//! - Whoever follows is told of whatever changes a target, its readiness or the decision, and of nothing else: also that the
//!   target comes late, goes, or is made anew. Each owner waits to be told once, and what it then finds is the last state.
//! - [`state`](OpsInformer::state) asks nobody. It knows nothing until everything that it needs was read once.
//! - Nothing is decided by what may be old: see [`TargetState::stale`]. Where that [lasts](TargetState::stale_lasts), it is told.
//! - What is not followed any more leaves nothing behind.
//!
//! Not promised: that every state in between is seen. One of these is made for a [`Factory`]: its informers of pods are its
//! own.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_core::Stream;
use kube_informer::controller::Request;
use kube_informer::factory::Factory;
use kube_informer::informer::{CaughtUpError, Written};
use kube_informer::manager::Manager;
use kube_informer::resource::Resource;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

// What is read of a target, and where.
mod paths;
mod scale_target;

// What kind of thing it is.
mod kinds;

// Its pods.
mod pods;
mod selectors;
mod trust;

// What follows from that.
mod decision;

// How it comes and goes, and what is heard of it.
mod error;
mod followed;
mod hearing;
mod joining;
mod turns;

pub use error::FollowError;
pub use paths::Shape;
pub use scale_target::ScaleTarget;

use self::followed::Followed;
use self::kinds::Kinds;
use self::pods::Pods;
use self::selectors::Selectors;
use self::turns::Turns;
use crate::api::{ElastiService, Mode, ScaleTargetRef};
use crate::news::News;

/// See the [module](self). A clone is the same.
#[derive(Clone)]
pub struct OpsInformer {
    inner: Arc<Inner>,
}

/// What is known of the target of an ElastiService.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetState {
    /// The target; `None` where it is not there, or cannot be read.
    pub target: Option<ScaleTarget>,
    /// How many of its pods are ready, and stay.
    pub ready_pods: usize,
    /// Who is to answer for the service.
    pub decision: Mode,
    /// Why.
    pub why: String,
    /// Where what is known may be old: what stands in the way. The decision is the last that was made by what was not.
    pub stale: Option<String>,
    /// Whether it has been so for [a while](OpsInformer::lasting). Whoever follows is told when that begins and ends.
    pub stale_lasts: bool,
}

struct Inner {
    factory: Factory,
    manager: Manager,
    runtime: Handle,
    kinds: Kinds,
    state: Mutex<State>,
    /// Those who set up and take down, per owner, and per namespace.
    owner_turns: Turns,
    namespace_turns: Turns,
    news: News,
    /// Owners of whom something is not known, or may be old: looked at again and again.
    unsettled: Mutex<BTreeSet<Request>>,
    wake: Arc<Notify>,
    sweeper: Mutex<Option<AbortHandle>>,
    settings: Mutex<Settings>,
}

#[derive(Clone, Copy)]
struct Settings {
    sync_deadline: Duration,
    settling: Duration,
    lasting: Duration,
}

#[derive(Default)]
struct State {
    stopped: bool,
    owners: HashMap<Request, Followed>,
    namespaces: HashMap<Box<str>, Namespace>,
}

/// The pods of a namespace, and who wants to know of them.
struct Namespace {
    pods: Pods,
    selectors: Selectors,
    owners: BTreeSet<Request>,
    task: AbortHandle,
}

/// How long it is waited for the pods of a namespace.
const SYNC_DEADLINE: Duration = Duration::from_secs(30);

/// How long pods are not trusted after an interruption.
const SETTLING: Duration = Duration::from_secs(1);

/// How long an interruption is nothing to tell of.
const LASTING: Duration = Duration::from_secs(10);

impl OpsInformer {
    /// One that follows nothing yet. Informers start with the factory, watches with the manager.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    #[must_use]
    pub fn new(factory: &Factory, manager: &Manager) -> Self {
        let inner = Arc::new(Inner {
            factory: factory.clone(),
            manager: manager.clone(),
            runtime: Handle::current(),
            kinds: Kinds::default(),
            state: Mutex::default(),
            owner_turns: Turns::default(),
            namespace_turns: Turns::default(),
            news: News::default(),
            unsettled: Mutex::default(),
            wake: Arc::default(),
            sweeper: Mutex::default(),
            settings: Mutex::new(Settings {
                sync_deadline: SYNC_DEADLINE,
                settling: SETTLING,
                lasting: LASTING,
            }),
        });
        let sweeper = inner.runtime.spawn(hearing::sweep(Arc::downgrade(&inner), Arc::clone(&inner.wake)));
        *inner.sweeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(sweeper.abort_handle());
        Self { inner }
    }

    /// How long [`follow`](Self::follow) waits until the target and its pods are known. Half a minute unless said otherwise.
    #[must_use]
    pub fn sync_deadline(self, deadline: Duration) -> Self {
        self.inner.lock_settings().sync_deadline = deadline;
        self
    }

    /// How long the watch of pods must have been open after an interruption until it is decided by them that pods answer:
    /// what was missed comes after it was opened. A second unless said otherwise. It counts for namespaces that are watched
    /// from now on.
    #[must_use]
    pub fn settling(self, settling: Duration) -> Self {
        self.inner.lock_settings().settling = settling;
        self
    }

    /// How long what is known may be old until whoever follows is told of that, too. Ten seconds unless said otherwise.
    #[must_use]
    pub fn lasting(self, lasting: Duration) -> Self {
        self.inner.lock_settings().lasting = lasting;
        self
    }

    /// Follows the target that an ElastiService names, and no other one any more. Done again, it costs next to nothing. The
    /// target need not be there. Gives what the target is for the server.
    ///
    /// # Errors
    ///
    /// Where the target cannot be, or cannot be scaled; or where it, or its pods, are not known in time, as they may not be
    /// watched. In these last cases it is followed all the same, and told of when they are.
    pub async fn follow(&self, owner: &Request, elasti: &ElastiService) -> Result<Resource, FollowError> {
        let (inner, owner) = (Arc::clone(&self.inner), owner.clone());
        let reference = elasti.spec.scale_target_ref.clone();
        let followed = self.inner.to_the_end(async move { inner.follow(&owner, &reference).await }).await;
        followed.unwrap_or(Err(FollowError::Stopped))
    }

    /// Follows the target of an ElastiService no more. Tells whether it was followed.
    pub async fn unfollow(&self, owner: &Request) -> bool {
        let (inner, owner) = (Arc::clone(&self.inner), owner.clone());
        self.inner.to_the_end(async move { inner.unfollow(&owner).await }).await.unwrap_or(false)
    }

    /// What is known of the target of an ElastiService, from caches; `None` where it is not followed, or not everything was
    /// read once.
    #[must_use]
    pub fn state(&self, owner: &Request) -> Option<TargetState> {
        self.inner.lock().told(owner)
    }

    /// What the target of an ElastiService is for the server; `None` where it is not followed.
    #[must_use]
    pub fn resource(&self, owner: &Request) -> Option<Resource> {
        Some(self.inner.lock().owners.get(owner)?.kind.resource.clone())
    }

    /// The same, where it is this target that is followed.
    #[must_use]
    pub fn resource_of(&self, owner: &Request, reference: &ScaleTargetRef) -> Option<Resource> {
        let state = self.inner.lock();
        let followed = state.owners.get(owner).filter(|followed| followed.reference == *reference)?;
        Some(followed.kind.resource.clone())
    }

    /// Whether what was written to the target of an ElastiService has been seen, or never will be.
    pub(crate) async fn has_seen(&self, owner: &Request, written: &Written) -> bool {
        let informer = self.inner.lock().owners.get(owner).and_then(|followed| followed.watch.informer());
        // It may begin anew.
        let Some(informer) = informer else { return false };
        let is_behind =
            matches!(informer.caught_up(written, Duration::ZERO).await, Err(CaughtUpError::Deadline { .. }));
        if !is_behind {
            self.inner.look(owner);
        }
        !is_behind
    }

    /// What the server calls a target, whether it is followed or not. What it said is remembered for some minutes.
    pub(crate) async fn resolve(&self, reference: &ScaleTargetRef) -> Result<Resource, FollowError> {
        self.inner.kinds.resource(&self.inner.factory, reference).await
    }

    /// The target that is followed for an ElastiService: what it is for the server, and its name.
    #[must_use]
    pub fn followed(&self, owner: &Request) -> Option<(Resource, String)> {
        let state = self.inner.lock();
        let followed = state.owners.get(owner)?;
        Some((followed.kind.resource.clone(), followed.reference.name.clone()))
    }

    /// Owners whose target, readiness or decision has changed; first, those of whom something is known. Any number can read
    /// it, each at its own pace. It ends with the last handle.
    pub fn changes(&self) -> impl Stream<Item = Request> + Send + use<> + 'static {
        let state = self.inner.lock();
        let known = state.owners.iter().filter(|(_, followed)| followed.state.is_some());
        // Under the lock: what changes after it is told.
        self.inner.news.read(known.map(|(owner, _)| owner.clone()).collect())
    }

    /// The namespaces whose pods are watched, in order.
    #[must_use]
    pub fn namespaces(&self) -> Vec<String> {
        let mut namespaces: Vec<String> =
            self.inner.lock().namespaces.keys().map(ToString::to_string).collect();
        namespaces.sort_unstable();
        namespaces
    }

    /// Follows nothing any more, and waits until nothing is left.
    pub async fn shutdown(&self) {
        let owners: Vec<Request> = {
            let mut state = self.inner.lock();
            state.stopped = true;
            state.owners.keys().cloned().collect()
        };
        futures_util::future::join_all(owners.iter().map(|owner| self.unfollow(owner))).await;
    }
}

impl Inner {
    /// Does something whether its end is waited for or not: whoever is dropped in the middle leaves nothing half done.
    async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        self.runtime.spawn(work).await.ok()
    }

    fn settings(&self) -> Settings {
        *self.lock_settings()
    }

    fn lock_settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsettled(&self) -> MutexGuard<'_, BTreeSet<Request>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(sweeper) = self.sweeper.get_mut().unwrap_or_else(PoisonError::into_inner) {
            sweeper.abort();
        }
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.namespaces.values().for_each(|namespace| namespace.task.abort());
    }
}

impl fmt::Debug for OpsInformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.inner.lock();
        f.debug_struct("OpsInformer")
            .field("owners", &state.owners.len())
            .field("namespaces", &state.namespaces.len())
            .finish_non_exhaustive()
    }
}
