//! One state of the cache, and how a change makes the next one out of it.

use std::cmp::Ordering;
use std::sync::Arc;

use super::fault::Faults;
use super::postings::Postings;
use super::scope::Scopes;
use super::store::Store;
use super::{Applied, Change, Stays};
use crate::object::{KeyRef, Object, ObjectKey};
use crate::sabotage::{self, Sabotage};

/// All that readers see together. A clone costs a few pointers, and stays as it is.
#[derive(Clone)]
pub(super) struct State {
    pub(super) generation: u64,
    pub(super) store: Store,
    pub(super) postings: Vec<Postings>,
    pub(super) scopes: Scopes,
    pub(super) ignored: Ignored,
}

/// Changes that were not made, by why not.
#[derive(Clone, Copy, Default)]
pub(super) struct Ignored {
    /// Older than what was there.
    pub(super) stale: u64,
    /// Of a namespace or a scope that the cache is not for.
    pub(super) out_of_scope: u64,
}

/// Where a version comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// An event: it cannot make anything older.
    Event,
    /// A list: it is what the server has, even if that is older than what was seen.
    List,
    /// A list of a server whose versions went back: it gives versions once more, and to something else.
    Rewound,
}

impl State {
    pub(super) fn new(scopes: Scopes) -> Self {
        Self {
            generation: 0,
            store: Store::default(),
            postings: Vec::new(),
            scopes,
            ignored: Ignored::default(),
        }
    }

    /// The object with this namespace and name.
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Object> {
        self.store.find(KeyRef { namespace, name }).map(|(_, object)| object)
    }

    pub(super) fn apply(&mut self, change: Change, told: &mut Vec<Applied>, faults: &mut Faults) {
        match change {
            Change::Put(object) => {
                let namespace = object.namespace();
                if !self.is_in_scope(namespace) {
                    return;
                }
                self.scopes.raise(namespace, object.version());
                self.put(object, Source::Event, told, faults);
            }
            Change::Remove { object } => {
                if !self.is_in_scope(object.namespace()) {
                    return;
                }
                self.scopes.raise(object.namespace(), object.version());
                self.remove(object, told, faults);
            }
            Change::RemoveKey { key } => self.remove_key(&key, told, faults),
            Change::Replace { scope, objects, stays, version, went_back } => {
                let scope = scope.as_deref();
                if !self.scopes.has(scope) {
                    self.ignored.out_of_scope += 1;
                    return;
                }
                let before = self.scopes.version(scope.unwrap_or_default()).flatten();
                let went_back = went_back || before.is_some_and(|before| version < *before);
                let source = if went_back { Source::Rewound } else { Source::List };
                self.scopes.reset(scope, version);
                self.replace(scope, objects, &stays, source, told, faults);
            }
            Change::Progress { scope, version } => {
                if self.scopes.has(scope.as_deref()) {
                    self.scopes.raise(scope.as_deref().unwrap_or_default(), &version);
                } else {
                    self.ignored.out_of_scope += 1;
                }
            }
        }
    }

    /// Keeps the same version of an object in another form. Nothing is told: nothing has changed.
    pub(super) fn exchange(&mut self, object: Object) {
        if let Some((id, held)) = self.store.find(object.key())
            && is_known(held, &object)
        {
            self.store.replace(id, object);
        }
    }

    fn put(&mut self, new: Object, source: Source, told: &mut Vec<Applied>, faults: &mut Faults) {
        let Some((id, old)) = self.store.find(new.key()) else {
            let Some(id) = self.store.add(new.clone()) else { return };
            self.reindex(id, None, Some(&new), faults);
            told.push(Applied::Added { new });
            return;
        };
        let old = old.clone();
        if is_known(&old, &new) && (source != Source::Rewound || is_equal(&old, &new)) {
            return;
        }
        if source == Source::Event && is_older(&new, &old) {
            self.ignored.stale += 1;
            return;
        }
        self.store.replace(id, new.clone());
        self.reindex(id, Some(&old), Some(&new), faults);
        if old.uid() == new.uid() || sabotage::is(Sabotage::NoUidCheck) {
            told.push(Applied::Updated { old, new });
        } else {
            told.extend([Applied::Deleted { last: old, certain: false }, Applied::Added { new }]);
        }
    }

    fn remove(&mut self, last: Object, told: &mut Vec<Applied>, faults: &mut Faults) {
        let Some((id, held)) = self.store.find(last.key()) else { return };
        let held = held.clone();
        let is_same = held.uid() == last.uid();
        // A late word of a predecessor, or of a time before the object came back into the selection.
        if is_older(&last, &held) || !is_same && !is_older(&held, &last) {
            self.ignored.stale += 1;
            return;
        }
        self.forget(id, &held, faults);
        // Where a successor went that was never seen, nothing has that name, and the end of what had was missed.
        let last = if is_same { last } else { held };
        told.push(Applied::Deleted { last, certain: is_same });
    }

    /// The server said that it is gone, and not which version of it went.
    fn remove_key(&mut self, key: &ObjectKey, told: &mut Vec<Applied>, faults: &mut Faults) {
        let key = KeyRef { namespace: &key.namespace, name: &key.name };
        let Some((id, last)) = self.store.find(key) else { return };
        let last = last.clone();
        self.forget(id, &last, faults);
        told.push(Applied::Deleted { last, certain: true });
    }

    fn replace(
        &mut self,
        scope: Option<&str>,
        mut objects: Vec<Object>,
        stays: &Stays,
        source: Source,
        told: &mut Vec<Applied>,
        faults: &mut Faults,
    ) {
        if let Some(namespace) = scope {
            let all = objects.len();
            objects.retain(|object| object.namespace() == namespace);
            self.ignored.out_of_scope += (all - objects.len()) as u64;
        }
        let mut listed = Marks::new(self.store.end());
        for object in &objects {
            if let Some((id, _)) = self.store.find(object.key()) {
                listed.set(id);
            }
        }
        if let Stays::Those(keys) = stays {
            for key in keys {
                let key = KeyRef { namespace: &key.namespace, name: &key.name };
                if let Some((id, _)) = self.store.find(key) {
                    listed.set(id);
                }
            }
        }
        let order = self.store.order();
        let places = match (stays, scope) {
            (Stays::Everything, _) => 0..0,
            _ if sabotage::is(Sabotage::NoRelistDiff) => 0..0,
            (_, None) => 0..order.len(),
            (_, Some(namespace)) => self.store.places(order, namespace),
        };
        for (id, ()) in order.iter(places) {
            if listed.has(id) {
                continue;
            }
            if let Some(last) = self.store.get(id).cloned() {
                self.forget(id, &last, faults);
                told.push(Applied::Deleted { last, certain: false });
            }
        }
        // A first list is told at once: to grow while it is told would take twice the memory.
        told.reserve(objects.len().saturating_sub(self.store.len()));
        for object in objects {
            self.put(object, source, told, faults);
        }
    }

    fn forget(&mut self, id: u32, held: &Object, faults: &mut Faults) {
        self.reindex(id, Some(held), None, faults);
        self.store.remove(id);
    }

    /// Called while the object's number leads to its key: the indexes are in order of the keys.
    fn reindex(&mut self, id: u32, old: Option<&Object>, new: Option<&Object>, faults: &mut Faults) {
        for postings in &mut self.postings {
            postings.update(id, old, new, &self.store, faults);
        }
    }

    fn is_in_scope(&mut self, namespace: &str) -> bool {
        let known = self.scopes.version(namespace).is_some();
        self.ignored.out_of_scope += u64::from(!known);
        known
    }
}

/// Whether this very version is there already. Without a version, the content tells.
fn is_known(held: &Object, new: &Object) -> bool {
    held.uid() == new.uid() && held.version() == new.version() && (!new.version().is_empty() || held == new)
}

/// Whether two of the same UID and version have the same content. Objects of different encodings are taken for equal on
/// the word of their version, which is not believed here.
fn is_equal(held: &Object, new: &Object) -> bool {
    let is_same_json = || matches!((held.json(), new.json()), (Ok(held), Ok(new)) if held == new);
    held == new && (held.encoding() == new.encoding() || is_same_json())
}

/// Versions that are no numbers have no order, and are taken as they come.
fn is_older(a: &Object, b: &Object) -> bool {
    a.version().partial_cmp(b.version()) == Some(Ordering::Less)
}

/// A set of numbers below a bound.
struct Marks(Vec<u64>);

impl Marks {
    fn new(end: u32) -> Self {
        Self(vec![0; (end as usize).div_ceil(64)])
    }

    fn set(&mut self, id: u32) {
        if let Some(word) = self.0.get_mut(id as usize / 64) {
            *word |= 1 << (id % 64);
        }
    }

    fn has(&self, id: u32) -> bool {
        self.0.get(id as usize / 64).is_some_and(|word| word & 1 << (id % 64) != 0)
    }
}

/// The place of an index among the others.
pub(super) fn position(postings: &[Postings], name: &str) -> Option<usize> {
    postings.iter().position(|each| each.index().name() == name)
}

/// The names of all indexes.
pub(super) fn names(postings: &[Postings]) -> Vec<Arc<str>> {
    postings.iter().map(|each| Arc::clone(each.index().shared_name())).collect()
}
