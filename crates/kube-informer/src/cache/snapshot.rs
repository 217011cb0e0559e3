//! One state of the cache, held for as long as someone likes.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use super::postings::Postings;
use super::query::Query;
use super::state::{self, State};
use super::{IndexError, Stats, VersionError};
use crate::object::{Object, Version};

/// One consistent state: objects, indexes and versions as they were together. Objects are seen as a `K`.
///
/// Taking one copies nothing, and it does not change while the cache goes on. What the cache has replaced or removed since
/// stays in memory for as long as a snapshot has it: hold one for a piece of work, not for ever.
pub struct Snapshot<K = serde_json::Value> {
    state: Arc<State>,
    view: PhantomData<fn() -> K>,
}

impl<K> Snapshot<K> {
    pub(super) fn of(state: Arc<State>) -> Self {
        Self { state, view: PhantomData }
    }

    /// The object with this namespace (empty for cluster-scoped objects) and name.
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<Object<K>> {
        self.state.get(namespace, name).map(Object::cast)
    }

    /// All objects, to be narrowed down: a [`Query`] is a builder, and an iterator's source.
    pub fn list(&self) -> Query<K> {
        Query::all(Arc::clone(&self.state))
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.store.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The namespaces that objects are in, sorted, each with their number.
    #[must_use]
    pub fn namespaces(&self) -> Vec<(String, usize)> {
        let store = &self.state.store;
        let mut namespaces = Vec::new();
        let mut at = 0;
        while let Some(&(id, ())) = store.order().at(at)
            && let Some(object) = store.get(id)
        {
            let places = store.places(store.order(), object.namespace());
            namespaces.push((object.namespace().to_owned(), places.len()));
            // Never less: places of a namespace are one range, and this object is in it.
            at = places.end.max(at + 1);
        }
        namespaces
    }

    /// Counts the states: a later one has a higher number.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.state.generation
    }

    /// The version up to which the namespace was seen; `None` before its first list, and where it is out of scope.
    #[must_use]
    pub fn version(&self, namespace: &str) -> Option<&Version> {
        self.state.scopes.version(namespace).flatten()
    }

    /// The version of each scope. All namespaces are one scope, whose name is `None`; several namespaces are one each.
    pub fn versions(&self) -> impl ExactSizeIterator<Item = (Option<&str>, Option<&Version>)> {
        self.state.scopes.iter()
    }

    /// Whether every scope was listed once.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.versions().all(|(_, version)| version.is_some())
    }

    /// Whether this state has seen a version of an object in this namespace, such as one that was just written.
    ///
    /// # Errors
    ///
    /// Where the namespace is out of scope, or the versions have no order: waiting would be for ever.
    pub fn reached(&self, namespace: &str, version: &Version) -> Result<bool, VersionError> {
        self.state.scopes.reached(namespace, version)
    }

    /// The names of the indexes, in the order in which they were added.
    #[must_use]
    pub fn indexes(&self) -> Vec<Arc<str>> {
        state::names(&self.state.postings)
    }

    /// The values of an index, sorted, each with the number of objects that have it.
    ///
    /// # Errors
    ///
    /// Where there is no such index.
    pub fn index_values(
        &self,
        index: &str,
    ) -> Result<impl ExactSizeIterator<Item = (Arc<str>, usize)> + use<K>, IndexError> {
        let postings = &self.state.postings;
        let found = state::position(postings, index).and_then(|at| postings.get(at));
        let found = found.ok_or_else(|| IndexError::unknown(index, postings))?;
        Ok(found.values())
    }

    /// The same state, its objects seen as another type.
    #[must_use]
    pub fn cast<T>(&self) -> Snapshot<T> {
        Snapshot::of(Arc::clone(&self.state))
    }

    /// The same, without another handle to it.
    pub(crate) fn into_cast<T>(self) -> Snapshot<T> {
        Snapshot::of(self.state)
    }

    pub(super) fn stats(&self) -> Stats {
        let state = &*self.state;
        Stats {
            objects: state.store.len(),
            kept_bytes: state.store.bytes().kept,
            plain_bytes: state.store.bytes().plain,
            indexes: state.postings.len(),
            index_entries: state.postings.iter().map(Postings::entries).sum(),
            index_faults: 0,
            ignored_stale: state.ignored.stale,
            ignored_out_of_scope: state.ignored.out_of_scope,
        }
    }
}

impl<K> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        Self::of(Arc::clone(&self.state))
    }
}

impl<K> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("generation", &self.generation())
            .field("objects", &self.len())
            .finish_non_exhaustive()
    }
}
