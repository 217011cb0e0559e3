//! What a manager knows, all under one lock: watches, the objects that they are of, and the informers that these are seen
//! through.
//!
//! Under the lock no code of a user runs, and nothing is waited for. What happens in it is one step: a watch, its object and
//! its informer come and go together.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use super::entry::Entry;
use super::feed::Feed;
use super::joining::Ending;
use super::key::{KeyParams, Owner};
use super::metrics::Series;
use super::plan::{FeedKey, Plan};
use crate::informer::Scope;
use crate::informer::spec::Spec;
use crate::object::{Object, Version};
use crate::resource::Resource;

/// See the module.
#[derive(Default)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) entries: HashMap<Arc<KeyParams>, Arc<Entry>>,
    pub(super) owners: HashMap<Owner, BTreeSet<Arc<KeyParams>>>,
    pub(super) groups: HashMap<Arc<GroupKey>, Group>,
    /// Namespaces that the server does not let us see as a whole, and when that is tried again.
    pub(super) refused: HashMap<Arc<GroupKey>, Instant>,
    /// Watches that were stopped, and of which something goes on, by owner.
    pub(super) ending: HashMap<Owner, Vec<Ending>>,
    /// Informers that are being given back, whoever closed them.
    pub(super) closing: Vec<watch::Receiver<()>>,
    /// How many of them there were when it was last looked.
    pub(super) swept: usize,
    /// What is counted of each resource, and for how many watches.
    pub(super) series: HashMap<String, (Arc<Series>, usize)>,
    /// How many informers there were.
    pub(super) feeds: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    #[default]
    Idle,
    Started,
    Stopped,
}

/// Objects that can be seen through one informer.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct GroupKey {
    pub(super) resource: Resource,
    /// Empty for cluster-scoped resources.
    pub(super) namespace: String,
}

/// The watched objects of one resource and namespace.
pub(super) struct Group {
    pub(super) plan: Plan,
    pub(super) targets: HashMap<Arc<str>, Target>,
    /// Those whose informer was restarted, and does not know as much as the old one did yet.
    pub(super) catching_up: HashSet<Arc<str>>,
    pub(super) feeds: HashMap<FeedKey, Arc<Feed>>,
}

/// A watched object.
#[derive(Default)]
pub(super) struct Target {
    pub(super) entries: Vec<Arc<Entry>>,
    /// What there is, once that is known.
    pub(super) known: Option<Option<Object>>,
    /// Whatever informer comes next, it must have seen this.
    pub(super) floor: Option<Version>,
    /// Since when an informer that is to come next has not.
    pub(super) behind: Option<Instant>,
}

impl GroupKey {
    pub(super) fn target(&self, name: &str) -> String {
        if self.namespace.is_empty() {
            format!("{} {name}", self.resource)
        } else {
            format!("{} {}/{name}", self.resource, self.namespace)
        }
    }

    pub(super) fn spec(&self, feed: &FeedKey) -> Spec {
        let scope = match feed {
            FeedKey::One(name) => Scope::object(self.namespace.as_str(), &**name),
            FeedKey::Whole if self.namespace.is_empty() => Scope::All,
            FeedKey::Whole => Scope::namespace(self.namespace.as_str()),
        };
        Spec::new(self.resource.clone(), scope)
    }
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => self.resource.fmt(f),
            namespace => write!(f, "{} in {namespace}", self.resource),
        }
    }
}

impl Group {
    pub(super) fn new(share_from: usize, is_refused: bool) -> Self {
        Self {
            plan: Plan::new(share_from, is_refused),
            targets: HashMap::new(),
            catching_up: HashSet::new(),
            feeds: HashMap::new(),
        }
    }

    /// The informer through which an object is seen, or is to be.
    pub(super) fn feed_of(&self, name: &str) -> Option<&Arc<Feed>> {
        let place = self.plan.place(name)?;
        self.feeds.get(place.from.as_ref().or(place.to.as_ref())?)
    }

    /// Whether it is one of ours, and not one that came before.
    pub(super) fn has(&self, feed: &Arc<Feed>) -> bool {
        self.feeds.get(&feed.key).is_some_and(|each| Arc::ptr_eq(each, feed))
    }
}

impl State {
    /// The series of a resource; one more watch uses it.
    pub(super) fn count(&mut self, resource: &Resource) -> Arc<Series> {
        let (series, count) = self.series.entry(resource.to_string()).or_default();
        *count += 1;
        Arc::clone(series)
    }

    /// One watch less of a resource: with the last, everything that was counted goes.
    pub(super) fn discount(&mut self, resource: &Resource) {
        let name = resource.to_string();
        if let Some((_, count)) = self.series.get_mut(&name) {
            *count -= 1;
            if *count == 0 {
                self.series.remove(&name);
            }
        }
    }
}
