//! The objects of one informer: one writer, many readers.
//!
//! Every call of [`Writer::apply`] makes one new state out of the last one, and publishes it with a swap of a pointer.
//!
//! - **A state is consistent.** Objects, all indexes and the versions change together. A list, a get, a [`Snapshot`] sees
//!   one state, and goes on to see it.
//! - **Reads never wait for changes being made.** States share what they have in common: taking a snapshot copies nothing,
//!   and the next state is made beside it. Readers and the writer meet only at the pointer, and do not wait for one another
//!   there.
//! - **What was applied is told in order,** once, as what became of each object ([`Applied`]).
//! - **A list replaces its scope** as one step: objects that it lacks are gone, those that it has are added or updated in
//!   its order, and what it has in the same version stays as it is, with its decoded views. Only a list can take versions
//!   back. An event that is older than what is there is ignored, and counted.
//! - **An object that was made again** (same key, another UID) is told as deleted and added.
//! - **Indexes may come and go at any time.** One that comes late is filled while changes go on, and appears complete. A
//!   function that fails or panics costs its object its place in that index, and nothing else.
//!
//! Memory is bounded by what the server has: one place for each object (about 35 bytes beside the object itself), one entry
//! for each value that an index gives it, and the last few faults of index functions. Free numbers of objects that are gone
//! take four bytes, until they are used again. A snapshot keeps what it has, for as long as it is held.

use std::fmt;
use std::sync::{Arc, PoisonError};

// Structures that cost nothing to copy.
mod table;
mod tree;
mod vector;

// One state.
mod scope;
mod state;
mod store;

// What objects are found by.
mod fault;
mod index;
mod postings;

// How they are asked for.
mod ahead;
pub mod selector;

mod query;
mod snapshot;

pub use fault::IndexFault;
pub use index::Index;
pub use query::{Objects, Owner, Query};
pub use scope::{Scopes, VersionError};
pub use selector::{ParseSelectorError, Selector};
pub use snapshot::Snapshot;

use crate::object::{Object, ObjectKey, Version};
use crate::sync::{ArcSwap, Mutex, MutexGuard};
use fault::Faults;
use postings::Postings;
use state::State;

/// Makes an empty cache.
///
/// ```
/// use kube_informer::cache::{self, Applied, Change, Scopes, Stays};
/// use kube_informer::encoding::{Codec, Encoding, Rules};
/// use kube_informer::object::{Intake, Version};
///
/// let mut intake = Intake::new(Codec::new(Encoding::Json, "v1", "Pod", Rules::default())?);
/// let arrived = br#"{"metadata":{"name":"a","namespace":"b","resourceVersion":"7","labels":{"app":"web"}}}"#;
/// let pod = intake.object(arrived)?;
///
/// let (mut writer, cache) = cache::cache(Scopes::all());
/// let list = Change::Replace { scope: None, objects: vec![pod], stays: Stays::Nothing, version: Version::from("9"), went_back: false };
/// let told = writer.apply([list]);
/// assert!(matches!(&told[..], [Applied::Added { new }] if new.name() == "a"));
///
/// let names: Vec<_> = cache.list().namespace("b").labels("app=web")?.into_iter().map(|pod| pod.key().to_string()).collect();
/// assert_eq!(names, ["b/a"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn cache(scopes: Scopes) -> (Writer, Cache) {
    let shared = Arc::new(Shared {
        published: ArcSwap::from_pointee(State::new(scopes)),
        turn: Mutex::new(()),
        faults: Mutex::default(),
    });
    (Writer { shared: Arc::clone(&shared) }, Cache { shared })
}

/// Changes the cache. There is one.
pub struct Writer {
    shared: Arc<Shared>,
}

/// Reads the cache. A clone reads the same one.
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

/// What the server said.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// An object was added or changed.
    Put(Object),
    /// An object is gone.
    Remove {
        /// Its last state, with the version of its removal.
        object: Object,
    },
    /// An object is gone whose last state could not be read.
    RemoveKey {
        /// Namespace and name.
        key: ObjectKey,
    },
    /// These are all objects of a scope.
    Replace {
        /// The namespace; `None` for all.
        scope: Option<Arc<str>>,
        /// The objects, in the order of the list.
        objects: Vec<Object>,
        /// What else stays as it is: objects that are there, and could not be read.
        stays: Stays,
        /// The version of the list.
        version: Version,
        /// Whether the server is known to have gone back since the last one: versions are given once more, and to something else.
        /// Where this version is less than the last one, that is seen without it.
        went_back: bool,
    },
    /// Nothing happened up to this version.
    Progress {
        /// The namespace; `None` for all.
        scope: Option<Arc<str>>,
        /// The version.
        version: Version,
    },
}

/// What a list does not have, and does not take away.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Stays {
    /// Nothing: the list is complete.
    #[default]
    Nothing,
    /// These.
    Those(Vec<ObjectKey>),
    /// Everything: some that could not be read could not even be told by their names.
    Everything,
}

/// What became of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applied {
    /// It is new.
    Added {
        /// The object.
        new: Object,
    },
    /// It has changed.
    Updated {
        /// What was there before.
        old: Object,
        /// What is there now.
        new: Object,
    },
    /// It is gone.
    Deleted {
        /// Its last state, as far as it is known.
        last: Object,
        /// Whether the server said so. If not, the object was found missing, and may have changed before it went.
        certain: bool,
    },
}

/// What a cache holds, and what it did not take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Objects.
    pub objects: usize,
    /// What is kept of them, in bytes, beside their metadata.
    pub kept_bytes: u64,
    /// What that is unpacked.
    pub plain_bytes: u64,
    /// Indexes.
    pub indexes: usize,
    /// Pairs of value and object in all indexes.
    pub index_entries: usize,
    /// How often an index function failed, so far.
    pub index_faults: u64,
    /// Events that were older than what was there, so far.
    pub ignored_stale: u64,
    /// Objects, lists and versions of namespaces that the cache is not for, so far.
    pub ignored_out_of_scope: u64,
}

/// Why an index cannot be added, removed or asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// There is none with this name.
    #[error("there is no index {name:?}; {}", known(names))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// Those that there are.
        names: Vec<Arc<str>>,
    },
    /// There is one with this name already.
    #[error("there is an index {name:?} already: remove it first, or give the new one another name")]
    Exists {
        /// The name.
        name: String,
    },
}

fn known(names: &[Arc<str>]) -> String {
    if names.is_empty() { "no index was added".to_owned() } else { format!("there are {}", names.join(", ")) }
}

impl IndexError {
    fn unknown(name: &str, postings: &[Postings]) -> Self {
        Self::Unknown { name: name.to_owned(), names: state::names(postings) }
    }
}

struct Shared {
    published: ArcSwap<State>,
    /// Whoever makes the next state holds it. It guards no data: a state that is never published leaves no trace, so a
    /// panic on the way harms nothing.
    turn: Mutex<()>,
    faults: Mutex<Faults>,
}

impl Shared {
    fn load(&self) -> Arc<State> {
        self.published.load_full()
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, mut next: State) {
        next.generation += 1;
        // What nobody else holds of the last one goes here.
        self.published.store(Arc::new(next));
    }

    /// Keeps faults, in the turn in which they came about: an index that is removed later takes its own with it. Those that are to
    /// be said are given back, for when the turn is over.
    fn note(&self, faults: Faults) -> Vec<IndexFault> {
        if faults.total() == 0 { Vec::new() } else { self.faults().append(faults) }
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Applies changes in order, publishes the state after the last of them, and tells what became of the objects.
    pub fn apply(&mut self, changes: impl IntoIterator<Item = Change>) -> Vec<Applied> {
        let mut told = Vec::new();
        let first = self.next(|state| {
            let mut faults = Faults::default();
            for change in changes {
                state.apply(change, &mut told, &mut faults);
            }
            self.shared.note(faults)
        });
        fault::say(first);
        told
    }

    /// Keeps objects in another form, such as [repacked](crate::object::Intake::repack). Those whose version is no longer
    /// there are let go. There is nothing to tell.
    pub fn exchange(&mut self, objects: impl IntoIterator<Item = Object>) {
        self.next(|state| objects.into_iter().for_each(|object| state.exchange(object)));
    }

    /// A handle for readers.
    #[must_use]
    pub fn cache(&self) -> Cache {
        Cache { shared: Arc::clone(&self.shared) }
    }

    fn next<T>(&self, make: impl FnOnce(&mut State) -> T) -> T {
        let _turn = self.shared.turn();
        let mut next = State::clone(&self.shared.load());
        let made = make(&mut next);
        self.shared.publish(next);
        made
    }
}

impl Cache {
    /// The state as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.shared.load())
    }

    /// The object with this namespace (empty for cluster-scoped objects) and name, as it is now.
    #[must_use]
    pub fn get(&self, namespace: &str, name: &str) -> Option<Object> {
        // For so short a time, nobody needs to count who has the state.
        self.shared.published.load().get(namespace, name).cloned()
    }

    /// Reads the object with this namespace and name as it is now, where it is. For those who read one after the other: no
    /// reference to it is counted. It must not take long: the state that it is read from stays until then.
    pub fn with<R>(&self, namespace: &str, name: &str, read: impl FnOnce(&Object) -> R) -> Option<R> {
        self.shared.published.load().get(namespace, name).map(read)
    }

    /// All objects as they are now, to be narrowed down.
    pub fn list(&self) -> Query {
        Query::all(self.shared.load())
    }

    /// Adds an index. It appears with all objects in it. Meanwhile changes go on, and do not wait for it to be filled;
    /// only for those that came in the meantime. One by a label, an owner or a pointer that is there already is there for
    /// both.
    ///
    /// # Errors
    ///
    /// Where there is another one with this name.
    pub fn add_index(&self, index: Index) -> Result<(), IndexError> {
        let is_there = |state: &State| {
            let found = state::position(&state.postings, index.name()).and_then(|at| state.postings.get(at));
            match found {
                Some(postings) if postings.index().is_same(&index) => Ok(true),
                Some(_) => Err(IndexError::Exists { name: index.name().to_owned() }),
                None => Ok(false),
            }
        };
        let before = self.shared.load();
        if is_there(&before)? {
            return Ok(());
        }
        let mut faults = Faults::default();
        let mut postings = Postings::new(index.clone());
        for (id, ()) in before.store.order().iter(0..before.store.len()) {
            postings.update(id, None, before.store.get(id), &before.store, &mut faults);
        }

        let turn = self.shared.turn();
        let now = self.shared.load();
        if is_there(&now)? {
            return Ok(());
        }
        let changed = before.store.changed(&now.store);
        // A number may lead to another key by now. All such are taken out in the old order, before any is put into the new.
        for &id in &changed {
            postings.update(id, before.store.get(id), None, &before.store, &mut faults);
        }
        for &id in &changed {
            postings.update(id, None, now.store.get(id), &now.store, &mut faults);
        }
        let mut next = State::clone(&now);
        next.postings.push(postings);
        self.shared.publish(next);
        let first = self.shared.note(faults);
        drop(turn);
        fault::say(first);
        Ok(())
    }

    /// Removes an index. Snapshots and queries that have it keep it.
    ///
    /// # Errors
    ///
    /// Where there is none with this name.
    pub fn remove_index(&self, name: &str) -> Result<(), IndexError> {
        let _turn = self.shared.turn();
        let mut next = State::clone(&self.shared.load());
        let at = state::position(&next.postings, name);
        let at = at.ok_or_else(|| IndexError::unknown(name, &next.postings))?;
        next.postings.remove(at);
        self.shared.publish(next);
        self.shared.faults().forget(name);
        Ok(())
    }

    /// The last failures of index functions, oldest first. [`Stats::index_faults`] counts all of them.
    #[must_use]
    pub fn index_faults(&self) -> Vec<IndexFault> {
        self.shared.faults().last()
    }

    /// What it holds, and what it did not take.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats { index_faults: self.shared.faults().total(), ..self.snapshot().stats() }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("snapshot", &self.snapshot()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
