//! Which objects are asked for, and the way to them.
//!
//! Objects come in order of namespace and name. The way to them is the smallest known set that contains them all: the
//! objects with a value of an index, within the namespace, or the namespace as a whole. The rest of the question is put
//! to each object of that set; where there is no rest, the number of objects is known without looking at any.

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use super::IndexError;
use super::ahead::{Ahead, Pace, read_some};
use super::index::By;
use super::selector::{ParseSelectorError, Selector};
use super::state::{self, State};
use super::store::Ids;
use super::tree;
use crate::object::{Borrowed, Object, OwnerRef, Uid};

/// A question about one state of the cache. Conditions are joined: an object must meet all of them.
///
/// It is answered when it is iterated over, or counted; always from the state in which it was asked.
#[must_use = "a query does nothing until it is iterated over"]
pub struct Query<K = serde_json::Value> {
    state: Arc<State>,
    namespace: Option<Box<str>>,
    conditions: Vec<Condition>,
    view: PhantomData<fn() -> K>,
}

#[derive(Clone)]
enum Condition {
    Labels(Selector),
    Owner(Box<str>),
    Controller(Box<str>),
    /// The place of the index, and the value.
    Index(usize, Box<str>),
}

impl<K> Query<K> {
    pub(super) fn all(state: Arc<State>) -> Self {
        Self { state, namespace: None, conditions: Vec::new(), view: PhantomData }
    }

    /// Only objects in this namespace. Of two, the last counts.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only objects whose labels meet a selector, as text: `app=web,tier in (front,back)`.
    ///
    /// # Errors
    ///
    /// Where the text is not a selector.
    pub fn labels(self, selector: &str) -> Result<Self, ParseSelectorError> {
        Ok(self.with(Condition::Labels(selector.parse()?)))
    }

    /// Only objects whose labels meet a selector.
    pub fn selector(self, selector: &Selector) -> Self {
        self.with(Condition::Labels(selector.clone()))
    }

    /// Only objects that this one owns, as one of their owners.
    pub fn owned_by(self, owner: impl Owner) -> Self {
        self.with(Condition::Owner(owner.uid()))
    }

    /// Only objects whose controller this one is.
    pub fn controlled_by(self, owner: impl Owner) -> Self {
        self.with(Condition::Controller(owner.uid()))
    }

    /// Only objects that have this value in an index.
    ///
    /// # Errors
    ///
    /// Where there is no such index.
    pub fn index(self, name: &str, value: &str) -> Result<Self, IndexError> {
        let postings = &self.state.postings;
        let at = state::position(postings, name).ok_or_else(|| IndexError::unknown(name, postings))?;
        Ok(self.with(Condition::Index(at, value.into())))
    }

    /// How many objects there are.
    #[must_use]
    pub fn count(&self) -> usize {
        let plan = self.plan();
        if plan.rest.is_empty() { plan.places.len() } else { self.iter().count() }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// The first object, by namespace and name.
    #[must_use]
    pub fn first(&self) -> Option<Object<K>> {
        self.iter().next()
    }

    /// The objects.
    #[must_use]
    pub fn iter(&self) -> Objects<K> {
        let plan = self.plan();
        Objects {
            ids: plan.ids.iter(plan.places),
            rest: plan.rest.into_iter().cloned().collect(),
            state: Arc::clone(&self.state),
            pace: Pace::default(),
            read: Vec::new(),
            view: PhantomData,
        }
    }

    /// The objects, lent: for those who read many. No reference is counted, and nothing locked, on the way to them.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube_informer::informer::Informer;
    /// # fn images(pods: &Informer<Pod>) -> usize {
    /// let all = pods.list();
    /// // Views that are kept are lent, too.
    /// let pods = all.each().filter_map(|pod| pod.look().ok());
    /// pods.map(|pod| pod.spec.as_ref().map_or(0, |spec| spec.containers.len())).sum()
    /// # }
    /// ```
    pub fn each(&self) -> impl Iterator<Item = Borrowed<'_, K>> {
        let Plan { ids, places, rest } = self.plan();
        let state = &*self.state;
        Ahead::new(ids.iter(places), &state.store)
            .filter(move |object| rest.iter().all(|condition| condition.is_met(object, state)))
            .map(Borrowed::new)
    }

    /// The same question, the objects seen as another type.
    pub fn cast<T>(self) -> Query<T> {
        let Self { state, namespace, conditions, .. } = self;
        Query { state, namespace, conditions, view: PhantomData }
    }

    fn with(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    fn plan(&self) -> Plan<'_> {
        let places = |ids: &Ids| match &self.namespace {
            Some(namespace) => self.state.store.places(ids, namespace),
            None => 0..ids.len(),
        };
        let order = self.state.store.order();
        let mut best = (order, places(order), None);
        let mut is_hopeless = false;
        for (at, condition) in self.conditions.iter().enumerate() {
            condition.each_set(&self.state, |set| {
                let Some(ids) = set.ids else {
                    is_hopeless = true;
                    return;
                };
                let places = places(ids);
                if places.len() < best.1.len() {
                    best = (ids, places, set.is_all.then_some(at));
                }
            });
        }
        if is_hopeless {
            return Plan::NOTHING;
        }
        let (ids, places, answered) = best;
        let rest = self.conditions.iter().enumerate();
        let rest = rest.filter(|(at, condition)| Some(*at) != answered && !condition.is_always_met());
        Plan { ids, places, rest: rest.map(|(_, condition)| condition).collect() }
    }
}

/// The way to the objects.
struct Plan<'a> {
    ids: &'a Ids,
    places: Range<usize>,
    /// What is still to be asked of each.
    rest: Vec<&'a Condition>,
}

impl Plan<'_> {
    const NOTHING: Self = Plan { ids: &Ids::Empty, places: 0..0, rest: Vec::new() };
}

/// All objects that meet a condition, or a part of it.
struct Set<'a> {
    /// `None` if no object does.
    ids: Option<&'a Ids>,
    /// Whether the condition has no other part.
    is_all: bool,
}

impl Condition {
    /// What the indexes know about it.
    fn each_set<'a>(&'a self, state: &'a State, mut call: impl FnMut(Set<'a>)) {
        let by = |wanted: &dyn Fn(&By) -> bool| state.postings.iter().find(|each| wanted(each.index().by()));
        match self {
            Self::Labels(selector) => {
                let is_all = selector.requirements().len() == 1;
                for requirement in selector.requirements() {
                    let (key, Some(value)) = (requirement.key(), requirement.exact()) else { continue };
                    if let Some(index) = by(&|by| matches!(by, By::Label(label) if **label == *key)) {
                        call(Set { ids: index.ids(value), is_all });
                    }
                }
            }
            Self::Owner(uid) => {
                if let Some(index) = by(&|by| matches!(by, By::Owner)) {
                    call(Set { ids: index.ids(uid), is_all: true });
                }
            }
            Self::Controller(uid) => {
                if let Some(index) = by(&|by| matches!(by, By::Controller)) {
                    call(Set { ids: index.ids(uid), is_all: true });
                }
            }
            Self::Index(at, value) => {
                let index = state.postings.get(*at);
                call(Set { ids: index.and_then(|index| index.ids(value)), is_all: true });
            }
        }
    }

    fn is_always_met(&self) -> bool {
        matches!(self, Self::Labels(selector) if selector.requirements().is_empty())
    }

    fn is_met(&self, object: &Object, state: &State) -> bool {
        match self {
            Self::Labels(selector) => selector.matches(object.labels()),
            Self::Owner(uid) => object.owners().iter().any(|owner| owner.uid == *uid),
            Self::Controller(uid) => object.controller().is_some_and(|owner| owner.uid == *uid),
            Self::Index(at, value) => {
                let ids = state.postings.get(*at).and_then(|index| index.ids(value));
                ids.is_some_and(|ids| ids.get(state.store.by(object.key())).is_some())
            }
        }
    }
}

/// The objects that a query found, in order of namespace and name. They are found one by one.
pub struct Objects<K = serde_json::Value> {
    state: Arc<State>,
    ids: tree::Iter<u32>,
    rest: Vec<Condition>,
    pace: Pace,
    /// Those that were read, the next one last. They meet all conditions.
    read: Vec<Object>,
    view: PhantomData<fn() -> K>,
}

impl<K> Iterator for Objects<K> {
    type Item = Object<K>;

    fn next(&mut self) -> Option<Object<K>> {
        while self.read.is_empty() && self.ids.len() > 0 {
            let Self { state, ids, rest, pace, read, .. } = self;
            let is_met = |object: &&Object| rest.iter().all(|condition| condition.is_met(object, state));
            read.extend(read_some(ids, &state.store, pace).filter(is_met).cloned());
        }
        self.read.pop().map(Object::into_cast)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let most = self.ids.len() + self.read.len();
        (if self.rest.is_empty() { most } else { 0 }, Some(most))
    }
}

impl<K> FusedIterator for Objects<K> {}

impl<K> IntoIterator for Query<K> {
    type Item = Object<K>;
    type IntoIter = Objects<K>;

    fn into_iter(self) -> Objects<K> {
        self.iter()
    }
}

impl<K> IntoIterator for &Query<K> {
    type Item = Object<K>;
    type IntoIter = Objects<K>;

    fn into_iter(self) -> Objects<K> {
        self.iter()
    }
}

/// What can be asked for as an owner: a UID, a reference to the owner, or the owner itself.
pub trait Owner {
    /// The owner's UID.
    fn uid(&self) -> Box<str>;
}

impl Owner for &str {
    fn uid(&self) -> Box<str> {
        (*self).into()
    }
}

impl Owner for &Uid {
    fn uid(&self) -> Box<str> {
        self.to_string().into()
    }
}

impl Owner for &OwnerRef {
    fn uid(&self) -> Box<str> {
        self.uid.clone()
    }
}

impl<K> Owner for &Object<K> {
    fn uid(&self) -> Box<str> {
        Object::uid(self).to_string().into()
    }
}

impl<K> Clone for Query<K> {
    fn clone(&self) -> Self {
        let Self { state, namespace, conditions, .. } = self;
        let (namespace, conditions) = (namespace.clone(), conditions.clone());
        Self { state: Arc::clone(state), namespace, conditions, view: PhantomData }
    }
}

impl<K> fmt::Debug for Query<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query")
            .field("namespace", &self.namespace)
            .field("conditions", &self.conditions.len())
            .finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for Objects<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("candidates", &(self.ids.len() + self.read.len()))
            .finish_non_exhaustive()
    }
}
