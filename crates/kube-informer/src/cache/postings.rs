//! One index with what it has found: for every value, the objects that have it, in order of their keys.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use super::fault::Faults;
use super::index::Index;
use super::store::{Ids, Store};
use super::tree::Tree;
use super::vector::{Counted, Vector};
use crate::object::Object;

#[derive(Clone)]
pub(super) struct Postings {
    index: Arc<Index>,
    values: Tree<Arc<str>, Ids>,
    /// The values of each object, for what cannot be asked again: a function may answer differently.
    held: Vector<Held>,
    entries: usize,
}

/// The values that an object has; most have one.
#[derive(Clone)]
enum Held {
    One(Arc<str>),
    Many(Arc<[Arc<str>]>),
}

impl Counted for Held {
    fn count(&self) -> usize {
        match self {
            Self::One(value) => value.count(),
            Self::Many(values) => values.count(),
        }
    }
}

impl Held {
    /// Whether an object that has this has these values.
    fn is(held: Option<&Self>, values: &[Cow<'_, str>]) -> bool {
        match (held, values) {
            (None, []) => true,
            (Some(Self::One(held)), [value]) => **held == **value,
            (Some(Self::Many(held)), values) => {
                held.iter().map(|held| &**held).eq(values.iter().map(AsRef::as_ref))
            }
            _ => false,
        }
    }
}

impl Postings {
    pub(super) fn new(index: Index) -> Self {
        Self { index: Arc::new(index), values: Tree::Empty, held: Vector::default(), entries: 0 }
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    /// How many pairs of value and object there are.
    pub(super) fn entries(&self) -> usize {
        self.entries
    }

    /// The objects with a value.
    pub(super) fn ids(&self, value: &str) -> Option<&Ids> {
        self.values.get(to(value)).map(|(_, ids)| ids)
    }

    /// All values, sorted, each with the number of objects that have it.
    pub(super) fn values(&self) -> impl ExactSizeIterator<Item = (Arc<str>, usize)> + use<> {
        self.values.iter(0..self.values.len()).map(|(value, ids)| (value, ids.len()))
    }

    /// An object came, changed or goes. It is in the store while this is called, in either version.
    pub(super) fn update(
        &mut self,
        id: u32,
        old: Option<&Object>,
        new: Option<&Object>,
        store: &Store,
        faults: &mut Faults,
    ) {
        if let (Some(old), Some(new)) = (old, new)
            && self.index.by().is_unchanged(old, new)
        {
            return;
        }
        let fresh = match new.map(|new| (new, self.index.values(new))) {
            None => Vec::new(),
            Some((_, Ok(values))) => values,
            Some((new, Err(message))) => {
                faults.record(self.index.shared_name(), new, message);
                Vec::new()
            }
        };
        let Some(object) = new.or(old) else { return };
        if self.index.by().is_metadata() {
            // Values of metadata never fail, and are the same whenever they are asked for.
            let stale = old.and_then(|old| self.index.values(old).ok()).unwrap_or_default();
            self.exchange(id, object, &stale, &fresh, store);
            return;
        }
        // Most updates change nothing that is indexed. What stays is not touched: readers share it.
        if Held::is(self.held.get(id), &fresh) {
            return;
        }
        let stale = self.held.take(id);
        let stale = match &stale {
            None => &[][..],
            Some(Held::One(value)) => std::slice::from_ref(value),
            Some(Held::Many(values)) => values,
        };
        self.exchange(id, object, stale, &fresh, store);
        if let Some(held) = self.hold(&fresh) {
            self.held.set(id, held);
        }
    }

    /// Takes an object out of the values that it has no longer, and into those that it has now. Both are sorted.
    fn exchange<A: AsRef<str>, B: AsRef<str>>(
        &mut self,
        id: u32,
        object: &Object,
        stale: &[A],
        fresh: &[B],
        store: &Store,
    ) {
        let differ = |change: Difference<'_>| match change {
            Difference::Gone(value) => self.leave(value, object, store),
            Difference::New(value) => self.enter(value, id, object, store),
        };
        differences(stale, fresh, differ);
    }

    fn enter(&mut self, value: &str, id: u32, object: &Object, store: &Store) {
        match self.values.get_mut(to(value)) {
            Some(ids) => {
                ids.insert(id, (), store.by(object.key()));
            }
            None => {
                self.values.insert(value.into(), Ids::One((id, ())), to(value));
            }
        }
        self.entries += 1;
    }

    fn leave(&mut self, value: &str, object: &Object, store: &Store) {
        let Some(ids) = self.values.get_mut(to(value)) else { return };
        ids.remove(store.by(object.key()));
        if ids.is_empty() {
            self.values.remove(to(value));
        }
        self.entries = self.entries.saturating_sub(1);
    }

    /// The values as they stand in the index: their text is stored once.
    fn hold(&self, values: &[Cow<'_, str>]) -> Option<Held> {
        let shared = |value: &Cow<'_, str>| self.values.get(to(value)).map(|(value, _)| Arc::clone(value));
        match values {
            [] => None,
            [one] => shared(one).map(Held::One),
            many => Some(Held::Many(many.iter().filter_map(shared).collect())),
        }
    }
}

/// Compares a value to another.
fn to(wanted: &str) -> impl Fn(&Arc<str>) -> Ordering {
    move |value| (**value).cmp(wanted)
}

enum Difference<'a> {
    Gone(&'a str),
    New(&'a str),
}

/// What is in only one of two sorted lists.
fn differences<A: AsRef<str>, B: AsRef<str>>(old: &[A], new: &[B], mut call: impl FnMut(Difference<'_>)) {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(a), Some(b)) if a.as_ref() == b.as_ref() => {
                old.next();
                new.next();
            }
            (Some(a), b) if b.is_none_or(|b| a.as_ref() < b.as_ref()) => {
                call(Difference::Gone(a.as_ref()));
                old.next();
            }
            (_, Some(b)) => {
                call(Difference::New(b.as_ref()));
                new.next();
            }
            (Some(_), None) => return,
        }
    }
}
