//! The operator: for every ElastiService, requests find somebody who answers, whether its pods are awake or not.
//!
//! Promised:
//!
//! - **No request is lost by a switch.** A service is redirected to the resolver *before* its target is put to sleep
//!   ([`put_to_sleep`](Operator::put_to_sleep)), and stays redirected until its own slices have a ready endpoint. Slices to
//!   the resolver and slices of the pods stand beside each other meanwhile: whoever routes by them finds either.
//! - **Mode follows the pods.** Requests go to the pods (`serve`) where the target is ready, and the Service leads to
//!   ready endpoints of its own: a redirect ends for each port and each address family by itself, when a pod answers
//!   there, or none [for a while](OperatorSettings::endpoints_patience) though others are answered. Otherwise requests
//!   go to the resolver (`proxy`). Whatever is there at the beginning, after a restart, or after an operator before this
//!   one: it is looked at, and brought to that.
//! - **Nothing is left behind.** What was made for a Service that the spec no longer names is deleted, after what sleeps
//!   behind it was woken and answers, or that took [too long](OperatorSettings::restore_deadline); a target that the
//!   spec no longer names, and that sleeps, is woken when the new one is known: it is tried for as long as the server fails,
//!   and [for a while](OperatorSettings::restore_deadline) where it does not allow it. When an ElastiService is deleted, its
//!   target is woken, and the redirect stays until the pods answer, or [too long](OperatorSettings::restore_deadline);
//!   then, when requests that were kept had their [time](OperatorSettings::linger), all that was made for it is deleted.
//!   The objects are owned by it in any case.
//! - **What cannot be done is said,** in conditions and events of that ElastiService, with what to do. Others go on. Nothing
//!   is written where nothing differs, and no status says what was not done. `Ready` says whether all is done;
//!   `TargetFound`, `ServiceFound` and `Redirected` what is; `NotActedOn` what is asked for and not done by this version.
//! - **Two ElastiServices on one Service:** the older one acts. The other one says so, and takes over when it goes.
//! - **Waking** never scales down, and never to zero. It goes before putting to sleep, in whichever process, as far as it can
//!   be written into the status there.
//! - **Whoever ends in the middle** leaves nothing asleep for good: what was put to sleep and does not belong to its
//!   ElastiService any more is woken by whoever comes next.
//!
//! Where the resolver has no ready endpoint, the slices to it are there without endpoints, and filled when it is back: what
//! is redirected stays redirected. Where the public Service is gone, all stays as it is until it is back. A headless Service
//! whose clients would ask the resolver at a port where it does not listen is not redirected; that is said, and its target is
//! never put to sleep, nor is one whose Service is asked by an address family that the resolver does not have.
//!
//! Not promised: that clients which do not route by EndpointSlices, or hold a connection for ever, notice a switch.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube_informer::controller::predicate::Predicate;
use kube_informer::controller::{Controller, Keys, Request};
use kube_informer::factory::Factory;
use kube_informer::informer::{Informer, Scope};
use kube_informer::leader::Leadership;
use kube_informer::manager::{KeyParams, Manager, Owner};
use kube_informer::object::Object;
use kube_informer::runner::Runner;
use kube_informer::write::Recorder;

// What is to be, as pure functions.
mod desired;

// What is said.
mod report;
mod saying;

// What is seen, and written.
mod world;

// What is done.
mod finalize;
mod interrupted;
mod letting_go;
mod next;
mod observe;
mod patience;
mod reconcile;
mod restore;

// What others ask for.
mod holds;
mod pokes;
mod sleep;
mod wake;

pub use sleep::{Asleep, SleepError};
pub use wake::{WakeError, Woken};

use crate::api::{self, ElastiService};
use crate::directory::Directory;
use crate::ops_informer::OpsInformer;
use crate::scale::Scaler;
use desired::{Resolver, SERVICE_NAME};
use holds::Holds;
use patience::Patience;
use pokes::Pokes;
use wake::Recent;
use world::World;

/// Under which name the server remembers who wrote something, and events say who speaks.
const NAME: &str = "kube-informer-elasti";

/// How long a worker waits until a target and its pods are known.
const FOLLOW_DEADLINE: Duration = Duration::from_secs(5);

/// How long a private Service stays after the redirect has ended, unless said otherwise.
pub(crate) const LINGER: Duration = Duration::from_secs(10);

/// How an operator is to work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct OperatorSettings {
    /// The namespace of the resolver.
    pub resolver_namespace: String,
    /// The Service whose endpoints are the resolver's.
    pub resolver_service: String,
    /// The port at which the resolver takes requests for others.
    pub resolver_proxy_port: u16,
    /// Whose ElastiServices are looked after. All, unless said otherwise.
    pub scope: Scope,
    /// How many are reconciled at the same time. Eight, unless said otherwise.
    pub workers: usize,
    /// How long the redirect of an ElastiService that is deleted, or of a Service that is not named any more, waits for its
    /// pods; and how long one that is not its target any more is tried to be woken where somebody would have to allow it.
    /// A minute, unless said otherwise.
    pub restore_deadline: Duration,
    /// How long the private Service of an ElastiService that is deleted, or of a Service that is not named any more, stays
    /// after the redirect has ended: requests that the resolver has kept go through it. Ten seconds, unless said otherwise.
    pub linger: Duration,
    /// How long it may take to redirect a service that is to sleep, and then to see its target at zero. Half a minute,
    /// unless said otherwise.
    pub sleep_deadline: Duration,
    /// How long a ready target may be without an endpoint in its Service until its selector is said to be wrong, or by some
    /// ports or address families until they are not redirected any more; and how long what is known of a target may be old
    /// until that is said. Ten seconds, unless said otherwise.
    pub endpoints_patience: Duration,
    /// How long a request that nobody waits for any more may take to be acted on: so long it is looked whether a sleep that
    /// was interrupted comes all the same. A minute, as servers take by default, unless said otherwise.
    pub in_flight: Duration,
    /// When it is tried again where only somebody else can help. Half a minute, unless said otherwise.
    pub retry: Duration,
}

/// Looks after ElastiServices. See the [module](self). A clone is the same.
#[derive(Clone)]
pub struct Operator {
    inner: Arc<Inner>,
}

struct Inner {
    settings: OperatorSettings,
    factory: Factory,
    manager: Manager,
    ops: OpsInformer,
    scaler: Scaler,
    directory: Directory,
    recorder: Recorder,
    world: World,
    holds: Holds,
    pokes: Pokes,
    /// Who leads, where several processes do this.
    leadership: OnceLock<Leadership>,
    /// What was answered a moment ago by one that does not reconcile.
    recent: Recent,
    /// The public Service that is watched for each.
    watched: Mutex<HashMap<Request, KeyParams>>,
    /// ElastiServices that are deleted, whose pods are waited for.
    leaving: Patience,
    /// Those whose redirect has ended, and whose kept requests are on their way.
    lingering: Patience,
    /// Those that name another Service now, and wait for the pods of the one before.
    parting: Patience,
    /// Those whose redirect of the Service before has ended, and whose kept requests are on their way.
    parted: Patience,
    /// Those whose ready pods have no endpoint yet.
    unanswered: Patience,
    /// Those whose pods answer by some ways and not by others.
    half_answered: Patience,
    /// The same of those that are given back.
    half_restored: Patience,
    /// What was the target of one before, by note, and cannot be woken.
    still_asleep: Patience<(Request, String)>,
    /// Those with a sleep that somebody began, and did not end.
    interrupted: Patience,
}

impl OperatorSettings {
    /// With a resolver at that Service and port.
    pub fn new(namespace: impl Into<String>, service: impl Into<String>, proxy_port: u16) -> Self {
        Self {
            resolver_namespace: namespace.into(),
            resolver_service: service.into(),
            resolver_proxy_port: proxy_port,
            scope: Scope::All,
            workers: 8,
            restore_deadline: Duration::from_secs(60),
            linger: LINGER,
            sleep_deadline: Duration::from_secs(30),
            endpoints_patience: Duration::from_secs(10),
            in_flight: Duration::from_secs(60),
            retry: Duration::from_secs(30),
        }
    }

    /// Whose ElastiServices are looked after.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// How many are reconciled at the same time.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }
}

impl Operator {
    /// An operator that takes its informers from a factory, and its watches of single objects from a manager of the same
    /// factory. It asks for them now; they start with the factory.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime, which a client needs, too.
    #[must_use]
    pub fn new(settings: OperatorSettings, factory: &Factory, manager: &Manager) -> Self {
        let world = World::new(factory, &settings);
        let inner = Inner {
            // A worker is not to wait for long for what may never come: it is told when it does.
            ops: OpsInformer::new(factory, manager)
                .sync_deadline(FOLLOW_DEADLINE)
                .lasting(settings.endpoints_patience),
            scaler: Scaler::of(factory),
            directory: Directory::new(),
            recorder: Recorder::new(factory.client(), NAME),
            world,
            factory: factory.clone(),
            manager: manager.clone(),
            settings,
            holds: Holds::default(),
            pokes: Pokes::default(),
            leadership: OnceLock::new(),
            recent: Recent::default(),
            watched: Mutex::default(),
            leaving: Patience::default(),
            lingering: Patience::default(),
            parting: Patience::default(),
            parted: Patience::default(),
            unanswered: Patience::default(),
            half_answered: Patience::default(),
            half_restored: Patience::default(),
            still_asleep: Patience::default(),
            interrupted: Patience::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The controller that looks after ElastiServices; the operator itself is its reconciler. To be made once.
    pub fn controller(&self) -> Controller<ElastiService, Keys> {
        let Inner { settings, factory, manager, ops, directory, world, pokes, .. } = &*self.inner;
        let (by_slice, by_change) = (self.clone(), self.clone());
        Controller::new(factory)
            .for_informer(&world.elastis)
            .name("elastiservice")
            .workers(settings.workers)
            .owns_informer(&world.privates)
            .watches_informer(&world.slices, move |slice| by_slice.concerned(slice))
            .when(Predicate::new(move |change| by_change.matters(change.old, change.new)))
            .external(ops.changes())
            .external(manager.requests_of_kind(api::KIND))
            .external(directory.changes())
            .external(pokes.stream())
    }

    /// Adds it to a runner.
    pub fn run_under(&self, runner: Runner) -> Runner {
        runner.controller(self.controller(), self.clone())
    }

    /// Nothing is put to sleep by a process that does not lead, from now on. To be said once, with what the runner is told:
    /// later calls do nothing.
    pub fn lead_by(&self, leadership: &Leadership) {
        // Whoever said so first is believed.
        drop(self.inner.leadership.set(leadership.clone()));
    }

    /// Whether this process leads, by the clock; also where nobody else could.
    fn leads(&self) -> bool {
        self.inner.leadership.get().is_none_or(Leadership::is_leader)
    }

    /// The ElastiServices, as they are now.
    #[must_use]
    pub fn informer(&self) -> &Informer<ElastiService> {
        &self.inner.world.elastis
    }

    /// Which ElastiService a Service belongs to, as far as this process has reconciled them.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.inner.directory
    }

    /// What the targets are doing.
    #[must_use]
    pub fn ops(&self) -> &OpsInformer {
        &self.inner.ops
    }

    /// Events about ElastiServices: to be shut down when all is over, and registered where it is counted.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    /// Whether all ElastiServices have been read: from then on, a service that none of them names is unknown.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.inner.world.elastis.is_synced()
    }

    /// The ElastiServices that a slice concerns.
    fn concerned(&self, slice: &Object<EndpointSlice>) -> Vec<Request> {
        let Inner { directory, world, .. } = &*self.inner;
        if world.is_of_resolver(slice) {
            return directory.all();
        }
        let service = slice.labels().get(SERVICE_NAME);
        let entry = service.and_then(|service| directory.lookup(slice.namespace(), service));
        let mut all: Vec<_> = entry.map(|entry| entry.elasti.clone()).into_iter().collect();
        all.extend(world::owner_of(slice).filter(|owner| all.first() != Some(owner)));
        all
    }

    /// Whether a change of a slice matters. Of the resolver's, only who is ready: everybody is looked at then.
    fn matters(&self, old: Option<&Object<EndpointSlice>>, new: Option<&Object<EndpointSlice>>) -> bool {
        let world = &self.inner.world;
        if ![old, new].into_iter().flatten().all(|slice| world.is_of_resolver(slice)) {
            return true;
        }
        let ready = |slice: Option<&Object<EndpointSlice>>| {
            let view = slice.and_then(|slice| slice.view().ok());
            Resolver::of(view.as_deref())
        };
        ready(old) != ready(new)
    }
}

/// Whom watches are for.
fn owner(request: &Request) -> Owner {
    Owner::from(request).kind(api::KIND)
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}
