//! Where keys come from: what happens to the objects of one informer.
//!
//! - Each change is seen, with its old and its new object: a key that an object belonged to before is queued as well as the
//!   one that it belongs to now. Changes of one object are not folded into one: what lies between may have been seen by a
//!   reconcile.
//! - A source that falls too far behind (because a mapping function is slow) queues everything that it knows of: what there
//!   was, what there is, and what was reconciled meanwhile.
//! - Until workers are about to start, nothing is queued: a key for each object that came and went meanwhile would be one
//!   too many. Then everything that is known is queued, as if all began at that moment.
//! - What there was when all began, and what is only said again, is queued with a low priority.

use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::coop::consume_budget;

use super::engine::Engine;
use super::memory::Memory;
use super::predicate::Change;
use super::request::Request;
use crate::informer::{Delivery, Event, Events, Follow, Informer};
use crate::object::Object;
use crate::resource::Resource;
use crate::workqueue::Priority;

/// How an object's keys are found.
pub(super) enum Mapping {
    /// It is the one to be reconciled.
    Itself,
    /// It belongs to the one to be reconciled, which is of this resource.
    Owner(Resource),
    Function(Box<Keys>),
}

pub(super) type Keys = dyn Fn(&Object) -> Vec<Request> + Send + Sync;

/// A predicate, whatever its objects are seen as.
pub(super) type Says = dyn Fn(&Change<'_, serde_json::Value>) -> bool + Send + Sync;

pub(super) struct Source {
    pub(super) informer: Informer,
    pub(super) mapping: Mapping,
    pub(super) predicates: Vec<Box<Says>>,
    pub(super) required: bool,
    pub(super) resync: Option<Duration>,
    /// So many changes may wait.
    pub(super) capacity: usize,
    pub(super) progress: watch::Sender<Progress>,
    follow: OnceLock<Follow>,
    /// Keys that were reconciled while changes were waiting here, which such a reconcile may have seen in the cache.
    unsure: Mutex<HashSet<Request>>,
}

/// How far a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Progress {
    #[default]
    Fresh,
    /// From now on, nothing is missed.
    Open,
    /// What there was at the beginning is known.
    Synced,
    /// So is every key of it queued.
    Queued,
    /// Nothing comes any more.
    Ended,
}

impl Source {
    pub(super) fn new(informer: Informer, mapping: Mapping) -> Self {
        Self {
            informer,
            mapping,
            predicates: Vec::new(),
            required: true,
            resync: None,
            capacity: 100_000,
            progress: watch::Sender::default(),
            follow: OnceLock::new(),
            unsure: Mutex::default(),
        }
    }

    /// Asks to be told what happens.
    pub(super) fn open(&self, controller: &str) -> Events<serde_json::Value> {
        let mut subscription = self.informer.subscribe().delivery(Delivery::Every(self.capacity));
        if let Some(resync) = self.resync {
            subscription = subscription.resync(resync);
        }
        let events = subscription.name(format!("controller {controller}")).events();
        // A controller runs once.
        let _ = self.follow.set(events.follow());
        events
    }

    /// Queues keys until the informer is stopped.
    pub(super) async fn run(&self, engine: &Engine, mut events: Events<serde_json::Value>) {
        let (mut memory, follow) = (Memory::default(), events.follow());
        let (mut open, mut is_open) = (engine.open.subscribe(), false);
        loop {
            let next = match events.next().now_or_never() {
                Some(next) => Some(next),
                None => {
                    self.quiet(&mut memory, &events, is_open);
                    let is_synced = *self.progress.borrow() >= Progress::Synced;
                    tokio::select! {
                        biased;
                        next = events.next() => Some(next),
                        // What is empty is synced without an event.
                        () = follow.synced(), if !is_synced => None,
                        Ok(_) = open.wait_for(|open| *open), if !is_open => None,
                    }
                }
            };
            // After something was taken, not before: if it does not open now, workers start later, and see a cache that has
            // what was taken. If it does, they may have seen what was before it, which is still remembered.
            if !is_open && *open.borrow() {
                for object in memory.known() {
                    self.handle(engine, &Event::Added { new: object, initial: true });
                    consume_budget().await;
                }
                is_open = true;
            }
            self.note_progress(&mut memory, &events, is_open);
            let Some(next) = next else { continue };
            let Some(event) = next else { break };
            if let Event::Gap { missed, now } = event {
                engine.series.gaps.inc();
                tracing::warn!(
                    controller = %engine.name, source = %self, missed,
                    "a source is too slow for what happens: everything that it knows of is queued"
                );
                let known = memory.missed(now);
                if !is_open {
                    continue;
                }
                let unsure = std::mem::take(&mut *self.unsure());
                unsure.into_iter().for_each(|request| engine.queue.add(request));
                for object in known {
                    self.keys(engine, &object, |request| engine.queue.at(Priority::Low).add(request));
                    consume_budget().await;
                }
            } else {
                memory.saw(&event, || self.look(&events));
                if is_open {
                    self.handle(engine, &event);
                }
            }
            // Many events are no reason for others to wait.
            consume_budget().await;
        }
        self.progress.send_replace(Progress::Ended);
    }

    fn handle(&self, engine: &Engine, event: &Event) {
        let (change, priority) = match event {
            Event::Added { new, initial } => {
                let priority = if *initial { Priority::Low } else { Priority::Normal };
                (Change { old: None, new: Some(new), initial: *initial, resync: false }, priority)
            }
            Event::Updated { old, new, resync } => {
                let priority = if *resync { Priority::Low } else { Priority::Normal };
                (Change { old: Some(old), new: Some(new), initial: false, resync: *resync }, priority)
            }
            Event::Deleted { last, .. } => {
                (Change { old: Some(last), new: None, initial: false, resync: false }, Priority::Normal)
            }
            Event::Gap { .. } => return,
        };
        let passes = || self.predicates.iter().all(|says| says(&change));
        let passes = catch_unwind(AssertUnwindSafe(passes)).unwrap_or_else(|_| {
            self.panicked(engine, "a predicate", change.new.or(change.old));
            // Better once too often than never.
            true
        });
        if !passes {
            return;
        }
        let queue = engine.queue.at(priority);
        if let Some(new) = change.new {
            self.keys(engine, new, |request| queue.add(request));
        }
        // Where it is the object itself that is reconciled, both are the same.
        let again = change.resync || change.new.is_some() && matches!(self.mapping, Mapping::Itself);
        if let Some(old) = change.old.filter(|_| !again) {
            self.keys(engine, old, |request| queue.add(request));
        }
    }

    /// The keys that an object is for.
    fn keys(&self, engine: &Engine, object: &Object, mut each: impl FnMut(Request)) {
        match &self.mapping {
            Mapping::Itself => each(object.into()),
            Mapping::Owner(owner) => {
                if let Some(request) = owned_by(owner, object) {
                    each(request);
                }
            }
            Mapping::Function(map) => match catch_unwind(AssertUnwindSafe(|| map(object))) {
                Ok(requests) => requests.into_iter().for_each(each),
                Err(_) => self.panicked(engine, "a mapping function", Some(object)),
            },
        }
    }

    fn panicked(&self, engine: &Engine, what: &str, object: Option<&Object>) {
        engine.series.source_panics.inc();
        let object = object.map(|object| object.key().to_string()).unwrap_or_default();
        tracing::error!(controller = %engine.name, source = %self, object, "{what} panicked");
    }

    fn look(&self, events: &Events<serde_json::Value>) -> (crate::cache::Snapshot, usize) {
        let (state, waiting) = events.follow().look();
        // One more than may be: what is being told at the beginning is counted after it was taken.
        (state, waiting + 1)
    }

    fn note_progress(&self, memory: &mut Memory, events: &Events<serde_json::Value>, is_open: bool) {
        let progress = match events.is_synced() {
            true if is_open => Progress::Queued,
            true => Progress::Synced,
            false => Progress::Open,
        };
        if *self.progress.borrow() == Progress::Fresh {
            memory.begin(self.look(events).0);
        }
        self.progress.send_if_modified(|known| {
            let further = progress > *known;
            *known = progress.max(*known);
            further
        });
    }

    /// Nothing waits.
    fn quiet(&self, memory: &mut Memory, events: &Events<serde_json::Value>, is_open: bool) {
        self.note_progress(memory, events, is_open);
        // Under this lock, so that no key is put there for something that comes just now.
        let mut unsure = self.unsure();
        let (now, waiting) = events.follow().look();
        if waiting == 0 {
            unsure.clear();
            memory.quiet(now);
        }
    }

    /// A mark for [`reconciled`](Self::reconciled), to be taken before the cache is read.
    pub(super) fn gaps(&self) -> u64 {
        self.follow.get().map_or(0, Follow::gaps)
    }

    /// A key was reconciled. What the reconcile saw in the cache, and this source was not told yet, it may never be told:
    /// then the key is queued once more.
    pub(super) fn reconciled(&self, engine: &Engine, request: &Request, gaps: u64) {
        let Some(follow) = self.follow.get() else { return };
        // Until it is let go, a gap that is told now cannot be done with.
        let mut unsure = self.unsure();
        // First what waits, then the gaps: whatever does not wait any more because of a gap is counted there.
        let (_, waiting) = follow.look();
        if follow.gaps() != gaps {
            engine.queue.add(request.clone());
        } else if waiting > 0 {
            unsure.insert(request.clone());
        }
    }

    fn unsure(&self) -> MutexGuard<'_, HashSet<Request>> {
        self.unsure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why it is not synced; `None` if it is.
    pub(super) fn missing(&self, engine: &Engine) -> Option<String> {
        match *self.progress.borrow() {
            Progress::Synced if *engine.open.borrow() => {
                return Some(format!("{self}: its first objects are still to be queued"));
            }
            Progress::Synced | Progress::Queued => return None,
            Progress::Ended => return Some(format!("{self}: stopped")),
            Progress::Fresh | Progress::Open => {}
        }
        if self.informer.is_synced() {
            let waiting = self.follow.get().map_or(0, |follow| follow.look().1);
            return Some(format!("{self}: {waiting} of its first objects are still to be taken"));
        }
        Some(format!("{self}: {}", self.informer.health().state))
    }
}

/// The key of the object's managing owner, if that is of this resource.
fn owned_by(resource: &Resource, object: &Object) -> Option<Request> {
    let owner = object.controller()?;
    let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let fits = group == resource.group && *owner.kind == *resource.kind;
    let namespace = if resource.namespaced { object.namespace() } else { "" };
    fits.then(|| Request::new(namespace, &owner.name))
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.informer.resource(), self.informer.scope())
    }
}
