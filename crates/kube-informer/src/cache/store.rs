//! The objects of one state: numbered, found by key, in order of their keys.
//!
//! An object has the same number as long as something is kept under its key. A new version changes one place; the order,
//! the keys and what the indexes hold are numbers, and stay. Numbers that are free are used again, lowest first.

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use foldhash::fast::RandomState;

use super::table::Table;
use super::tree::Tree;
use super::vector::{Counted, Reader, Vector};
use crate::object::{KeyRef, Object};

/// Numbers of objects, in order of their keys.
pub(super) type Ids = Tree<u32>;

#[derive(Clone, Default)]
pub(super) struct Store {
    objects: Vector<Object>,
    /// Numbers below `end` that are free.
    free: Tree<u32>,
    end: u32,
    by_key: Table,
    order: Ids,
    hasher: RandomState,
    bytes: Bytes,
}

impl Counted for Object {
    fn count(&self) -> usize {
        self.references()
    }
}

/// What the objects take.
#[derive(Clone, Copy, Default)]
pub(super) struct Bytes {
    pub(super) kept: u64,
    pub(super) plain: u64,
}

impl Store {
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// All numbers, in order.
    pub(super) fn order(&self) -> &Ids {
        &self.order
    }

    /// No number is as high as this.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    pub(super) fn get(&self, id: u32) -> Option<&Object> {
        self.objects.get(id)
    }

    /// Gets many, one after the other.
    pub(super) fn reader(&self) -> Reader<'_, Object> {
        self.objects.reader()
    }

    /// The number and the object with a key.
    #[inline]
    pub(super) fn find(&self, key: KeyRef<'_>) -> Option<(u32, &Object)> {
        let right = |id| self.get(id).filter(|object| object.key().is(key)).map(|object| (id, object));
        self.by_key.find(hash(&self.hasher, key), right)
    }

    /// Keeps an object whose key is not there yet. `None` if there are no numbers left.
    pub(super) fn add(&mut self, object: Object) -> Option<u32> {
        let id = match self.free.at(0) {
            Some(&(id, ())) => {
                self.free.remove(|free| free.cmp(&id));
                id
            }
            None => {
                let id = self.end;
                self.end = id.checked_add(1)?;
                id
            }
        };
        self.bytes.add(&object);
        self.objects.set(id, object.clone());
        let Self { objects, order, by_key, hasher, .. } = self;
        let key = object.key();
        order.insert(id, (), by(objects, key));
        by_key.insert(hash(hasher, key), id);
        Some(id)
    }

    /// Keeps an object instead of the one with the same key.
    pub(super) fn replace(&mut self, id: u32, object: Object) {
        self.bytes.add(&object);
        if let Some(old) = self.objects.set(id, object) {
            self.bytes.subtract(&old);
        }
    }

    /// Keeps an object no longer. Nothing else may have its number any more.
    pub(super) fn remove(&mut self, id: u32) {
        let Some(object) = self.objects.get(id).cloned() else { return };
        let Self { objects, order, by_key, hasher, .. } = self;
        let key = object.key();
        by_key.remove(hash(hasher, key), id);
        order.remove(by(objects, key));
        objects.take(id);
        self.bytes.subtract(&object);
        self.free.insert(id, (), |free| free.cmp(&id));
    }

    /// Compares a number to a key.
    pub(super) fn by<'a>(&'a self, key: KeyRef<'a>) -> impl Fn(&u32) -> Ordering + 'a {
        by(&self.objects, key)
    }

    /// The places of a namespace.
    pub(super) fn places(&self, ids: &Ids, namespace: &str) -> Range<usize> {
        let compare =
            |id: &u32| self.get(*id).map_or(Ordering::Less, |object| object.namespace().cmp(namespace));
        ids.rank(compare)..ids.rank(|id| compare(id).then(Ordering::Less))
    }

    /// The numbers whose objects are not the same in both, in whatever order.
    pub(super) fn changed(&self, other: &Self) -> Vec<u32> {
        self.objects.changed(&other.objects, Object::is_same)
    }
}

/// Half of a hash with a secret: names are chosen by others.
#[inline]
fn hash(hasher: &RandomState, key: KeyRef<'_>) -> u32 {
    let mut state = hasher.build_hasher();
    // Their lengths count, too: nothing needs to stand between them.
    state.write(key.namespace.as_bytes());
    state.write(key.name.as_bytes());
    (state.finish() >> 32) as u32
}

fn by<'a>(objects: &'a Vector<Object>, key: KeyRef<'a>) -> impl Fn(&u32) -> Ordering + 'a {
    move |&id| objects.get(id).map_or(Ordering::Less, |object| object.key().cmp(&key))
}

impl Bytes {
    fn add(&mut self, object: &Object) {
        let (kept, plain) = object.size();
        self.kept += kept as u64;
        self.plain += plain as u64;
    }

    fn subtract(&mut self, object: &Object) {
        let (kept, plain) = object.size();
        self.kept = self.kept.saturating_sub(kept as u64);
        self.plain = self.plain.saturating_sub(plain as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Codec, Encoding, Rules};
    use crate::object::Intake;

    #[test]
    fn keys_with_the_same_hash_are_told_apart() {
        let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap();
        let mut intake = Intake::new(codec);
        let store_hash = RandomState::default();
        // A hash of 32 bits is met twice among some hundred thousand names; names are cheaper than objects.
        let mut names: Vec<(u32, String)> = (0..400_000)
            .map(|at| format!("p{at}"))
            .map(|name| (hash(&store_hash, KeyRef { namespace: "", name: &name }), name))
            .collect();
        names.sort_unstable();
        let twins: Vec<&str> = names
            .chunk_by(|a, b| a.0 == b.0)
            .filter(|chunk| chunk.len() > 1)
            .flatten()
            .map(|(_, name)| &**name)
            .collect();
        let mut store = Store { hasher: store_hash.clone(), ..Store::default() };
        for &name in &twins {
            let document = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
            store.add(intake.object(document.as_bytes()).unwrap()).unwrap();
        }
        let find = |store: &Store, name| {
            let (id, found) = store.find(KeyRef { namespace: "", name })?;
            Some((id, found.name().to_owned()))
        };
        for &name in &twins {
            assert_eq!(find(&store, name).unwrap().1, name);
        }
        for &name in twins.iter().step_by(2) {
            let (id, _) = find(&store, name).unwrap();
            store.remove(id);
            assert_eq!(find(&store, name), None);
        }
        for &name in twins.iter().skip(1).step_by(2) {
            assert_eq!(find(&store, name).unwrap().1, name);
        }
        assert_eq!(store.len(), twins.len() / 2);
    }
}
