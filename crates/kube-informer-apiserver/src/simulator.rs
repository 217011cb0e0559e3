//! A workload simulator: plays kube-controller-manager, kube-scheduler and kubelet.
//!
//! One task. It follows all changes of the store, notes what they touch in a queue without repeats, and
//! looks at each noted object once, with one file per controller. Steps that take time (an image pull, a
//! back-off) are timers that note the object again. Everything is level-triggered: a controller reads the
//! present state and moves it one step; a lost race only means that another change follows, and if the
//! task falls behind the window of the store, it looks at everything once.
//!
//! What is kept beside the store is bounded by the number of objects: facts per pod and node ([`index`]),
//! one timer per object ([`timers`]), one noted entry per object. No change costs a look at all pods.
//!
//! Deterministic: durations and choices are hashes of the seed and the object's name, and time is tokio's.
//! The same seed and the same writes at the same times give the same names, nodes and states in the same
//! order.

mod cluster;
mod condition;
mod daemon_set;
mod deployment;
mod dice;
mod endpoints;
mod events;
mod index;
mod job;
mod kubelet;
mod namespaces;
mod nodes;
mod pod;
mod queue;
mod replica_set;
mod revisions;
mod scheduler;
mod settings;
mod stateful_set;
mod story;
#[cfg(test)]
mod tests;
mod timers;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tokio::time::Instant;

use self::cluster::{Kind, Kinds};
use self::dice::Dice;
use self::events::Recorder;
use self::index::Index;
use self::kubelet::Life;
use self::queue::Queue;
pub use self::settings::Simulation;
use self::story::Story;
use self::timers::Timers;
use crate::api::Api;
use crate::object::Stored;
use crate::status::ApiError;
use crate::store::{BucketId, Change, ChangeKind};

/// How many objects are looked at before other tasks of the runtime get their turn.
const TURN: usize = 64;

/// What there is to look at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Item {
    /// The object of a kind with this key, by the controllers of its kind.
    Object(Kind, String),
    /// The pods that fitted no node, and the controllers that were held back.
    Waiting,
    /// The next scene of the story.
    Scene,
}

/// Simulates until the server stops.
pub(crate) async fn run(api: Arc<Api>, simulation: Simulation) {
    let mut stopping = api.stopping();
    let mut newest = api.store.newest();
    let mut simulator = match Simulator::new(api, simulation) {
        Ok(simulator) => simulator,
        Err(error) => {
            tracing::error!(message = %error.message, "nothing is simulated");
            return;
        }
    };
    simulator.start();
    while !*stopping.borrow() {
        newest.borrow_and_update();
        if simulator.turn() {
            tokio::task::yield_now().await;
            continue;
        }
        let due = simulator.timers.next();
        tokio::select! {
            biased;
            _ = stopping.changed() => {}
            changed = newest.changed() => if changed.is_err() { return },
            () = sleep_until(due) => {}
        }
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// All controllers and what they know.
struct Simulator {
    api: Arc<Api>,
    kinds: Kinds,
    settings: Simulation,
    dice: Dice,
    /// How far the changes have been seen.
    position: u64,
    queue: Queue,
    timers: Timers,
    index: Index,
    recorder: Recorder,
    /// What each pod's kubelet is at, by the pod's key.
    lives: HashMap<String, Life>,
    /// Since when a Deployment's rollout has not progressed, by UID.
    progress: HashMap<String, Instant>,
    /// When a Job finished, and when it may make the next pod after a failure, by UID.
    jobs: HashMap<String, job::Clock>,
    /// When each node last renewed its Lease.
    beats: HashMap<String, Instant>,
    /// Pods that fit no node, by key.
    unschedulable: BTreeSet<String>,
    /// Controllers that want more pods than there may be.
    held_back: BTreeSet<(Kind, String)>,
    /// How many addresses have been given to pods.
    addresses: u32,
    story: Story,
}

impl Simulator {
    fn new(api: Arc<Api>, settings: Simulation) -> Result<Self, ApiError> {
        Ok(Self {
            kinds: Kinds::new(&api)?,
            dice: Dice::new(settings.seed, settings.speed),
            recorder: Recorder::new(settings.events),
            api,
            settings,
            position: 0,
            queue: Queue::default(),
            timers: Timers::default(),
            index: Index::default(),
            lives: HashMap::new(),
            progress: HashMap::new(),
            jobs: HashMap::new(),
            beats: HashMap::new(),
            unschedulable: BTreeSet::new(),
            held_back: BTreeSet::new(),
            addresses: 0,
            story: Story::default(),
        })
    }

    /// Makes the nodes, and the cast of the story.
    fn start(&mut self) {
        self.make_nodes();
        if self.settings.story {
            self.timers.at(Item::Scene, Instant::now());
        }
    }

    /// Looks at what is due; true if there is more to look at now.
    fn turn(&mut self) -> bool {
        for item in self.timers.due(Instant::now()) {
            self.queue.note(item);
        }
        for _ in 0..TURN {
            self.catch_up();
            match self.queue.take() {
                Some(item) => self.look(&item),
                None => return false,
            }
        }
        true
    }

    /// Notes what has changed since the last time.
    fn catch_up(&mut self) {
        if self.position == self.api.store.revision() {
            return;
        }
        match self.api.store.all_changes(self.position) {
            Ok((changes, reached)) => {
                for (bucket, change) in &changes {
                    self.observe(bucket, change);
                }
                self.position = reached;
            }
            Err(_) => self.look_at_everything(),
        }
    }

    /// After falling behind, and at the start.
    fn look_at_everything(&mut self) {
        self.position = self.api.store.revision();
        let mut all: BTreeMap<(BucketId, String), Arc<Stored>> = BTreeMap::new();
        for (bucket, object) in self.api.store.everything("") {
            all.insert((bucket, object.key.clone()), object);
        }
        self.index = Index::default();
        for ((bucket, _), object) in all {
            if let Some(kind) = Kind::of(&bucket) {
                self.observe_object(kind, &object);
            }
        }
        self.lives.retain(|key, _| self.index.pod(key).is_some());
        self.unschedulable.retain(|key| self.index.pod(key).is_some());
    }

    fn observe(&mut self, bucket: &BucketId, change: &Change) {
        let Some(kind) = Kind::of(bucket) else { return };
        match change.kind {
            ChangeKind::Added | ChangeKind::Modified => self.observe_object(kind, &change.new),
            ChangeKind::Deleted => self.observe_deletion(kind, &change.new),
        }
    }

    fn observe_object(&mut self, kind: Kind, object: &Arc<Stored>) {
        match kind {
            Kind::Pod => self.observe_pod(object),
            Kind::Node => self.observe_node(object),
            Kind::Service => self.observe_service(object),
            _ => {}
        }
        if kind.has_controller() {
            self.note(kind, &object.key);
        }
        // After the object itself: a set that shrinks does so before its owner lets another grow.
        if matches!(kind, Kind::ReplicaSet | Kind::EndpointSlice | Kind::ControllerRevision) {
            self.note_owners(object);
        }
    }

    fn observe_deletion(&mut self, kind: Kind, last: &Arc<Stored>) {
        match kind {
            Kind::Pod => self.observe_pod_deletion(last),
            Kind::Node => self.observe_node_deletion(last),
            Kind::Service => self.index.remove_service(&last.key),
            Kind::ReplicaSet | Kind::EndpointSlice | Kind::ControllerRevision => self.note_owners(last),
            Kind::ServiceAccount | Kind::ConfigMap => self.note(Kind::Namespace, &last.namespace),
            _ => {}
        }
        self.progress.remove(&last.uid);
        self.jobs.remove(&last.uid);
        self.held_back.remove(&(kind, last.key.clone()));
        self.timers.forget(&Item::Object(kind, last.key.clone()));
    }

    fn look(&mut self, item: &Item) {
        let (kind, key) = match item {
            Item::Object(kind, key) => (kind, key),
            Item::Waiting => return self.retry_waiting(),
            Item::Scene => return self.next_scene(),
        };
        let Some(object) = self.api.store.get(&kind.bucket(), key) else { return };
        match kind {
            Kind::Pod if self.index.is_assigned(key) => self.tend_pod(&object),
            Kind::Pod => self.schedule(&object),
            Kind::ReplicaSet => self.sync_replica_set(&object),
            Kind::Deployment => self.sync_deployment(&object),
            Kind::StatefulSet => self.sync_stateful_set(&object),
            Kind::DaemonSet => self.sync_daemon_set(&object),
            Kind::Job => self.sync_job(&object),
            Kind::Service => self.sync_endpoints(&object),
            Kind::Namespace => self.furnish_namespace(&object),
            Kind::Node => self.tend_node(&object),
            _ => {}
        }
    }

    fn note(&mut self, kind: Kind, key: &str) {
        self.queue.note(Item::Object(kind, key.to_owned()));
    }

    /// The controllers of an object's owners look again.
    fn note_owners(&mut self, object: &Stored) {
        for uid in &object.owners {
            if let Some((bucket, owner)) = self.api.store.by_uid(uid)
                && let Some(kind) = Kind::of(&bucket)
            {
                match kind {
                    Kind::Service => self.note_service(&owner.key),
                    _ => self.note(kind, &owner.key),
                }
            }
        }
    }

    /// Looks at an object again after a while.
    fn later(&mut self, kind: Kind, key: &str, due: Instant) {
        self.timers.at(Item::Object(kind, key.to_owned()), due);
    }
}
