//! A list that is not complete yet: each object once, as it was last.
//!
//! While a list streams, its objects change. What came last about a key is what counts, whatever came before. Servers send
//! a list in the order of its keys, and as long as they do, no key can come twice: where to find each is only noted when
//! something else comes.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};

use tokio::time::Instant;

use crate::encoding::ObjectKey;
use crate::object::{ByKey, KeyRef, Object};

/// See the module.
pub(super) struct Staged {
    /// In the order in which they came first. Those that are gone are still among them.
    objects: Vec<Object>,
    /// Where each of them is, once that must be known.
    places: Option<HashMap<ByKey, usize>>,
    /// The places of those that are gone.
    gone: HashSet<usize>,
    unreadable: BTreeSet<ObjectKey>,
    nameless: bool,
    /// When it last came closer to its end.
    pub(super) progress: Instant,
    /// Whether something else came than the objects that there were: no more of them are to come.
    pub(super) changes: bool,
}

/// What was staged.
pub(super) struct Complete {
    pub(super) objects: Vec<Object>,
    /// Objects that are there and could not be read.
    pub(super) unreadable: Vec<ObjectKey>,
    /// Whether something came that could not even be told by its name.
    pub(super) nameless: bool,
}

impl Staged {
    pub(super) fn new() -> Self {
        Self {
            objects: Vec::new(),
            places: None,
            gone: HashSet::new(),
            unreadable: BTreeSet::new(),
            nameless: false,
            progress: Instant::now(),
            changes: false,
        }
    }

    /// An object is there, as this.
    pub(super) fn put(&mut self, object: Object) {
        if !self.unreadable.is_empty() {
            self.unreadable.remove(&object.key().to_key());
        }
        let ascends =
            self.objects.last().is_none_or(|last| path_order(last.key(), object.key()) == Ordering::Less);
        if self.places.is_none() && ascends {
            self.objects.push(object);
            return;
        }
        let place = self.places().get(&ByKey(object.clone())).copied();
        let place = place.unwrap_or(self.objects.len());
        // Taken out first: the map would hold on to the object that it knows.
        self.places().remove(&ByKey(object.clone()));
        self.places().insert(ByKey(object.clone()), place);
        self.gone.remove(&place);
        match self.objects.get_mut(place) {
            Some(known) => *known = object,
            None => self.objects.push(object),
        }
    }

    /// An object is gone; its last state.
    pub(super) fn remove(&mut self, object: Object) {
        self.unreadable.remove(&object.key().to_key());
        let place = self.places().get(&ByKey(object)).copied();
        self.gone.extend(place);
    }

    /// An object is gone whose last state could not be read.
    pub(super) fn remove_key(&mut self, key: &ObjectKey) {
        self.unreadable.remove(key);
        // It is rare enough to look at all of them.
        let is_it = |object: &Object| {
            let known = object.key();
            (known.namespace, known.name) == (key.namespace.as_str(), key.name.as_str())
        };
        self.gone.extend(self.objects.iter().position(is_it));
        // What comes after this may be that object again.
        self.places();
    }

    /// An object is there and cannot be read; without a key, it is not known which.
    pub(super) fn unreadable(&mut self, key: Option<ObjectKey>) {
        match key {
            Some(key) => {
                self.unreadable.insert(key);
            }
            None => self.nameless = true,
        }
    }

    pub(super) fn complete(self) -> Complete {
        let Self { mut objects, gone, unreadable, nameless, .. } = self;
        if !gone.is_empty() {
            let mut place = 0..;
            objects.retain(|_| !place.next().is_some_and(|place| gone.contains(&place)));
        }
        Complete { objects, unreadable: unreadable.into_iter().collect(), nameless }
    }

    fn places(&mut self) -> &mut HashMap<ByKey, usize> {
        self.places.get_or_insert_with(|| {
            self.objects.iter().enumerate().map(|(place, object)| (ByKey(object.clone()), place)).collect()
        })
    }
}

/// How servers order what they store: by `namespace/name` as a whole, so that `a-b/x` comes before `a/x`.
fn path_order(left: KeyRef<'_>, right: KeyRef<'_>) -> Ordering {
    if left.namespace == right.namespace {
        return left.name.cmp(right.name);
    }
    let path = |key: KeyRef<'_>| [key.namespace.as_bytes(), b"/", key.name.as_bytes()].concat();
    path(left).cmp(&path(right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Codec, Encoding, Rules};
    use crate::object::Intake;

    struct Maker(Intake);

    impl Maker {
        fn new() -> Self {
            Self(Intake::new(Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap()))
        }

        fn make(&mut self, namespace: &str, name: &str, version: u64) -> Object {
            let metadata = format!(
                r#"{{"name":"{name}","namespace":"{namespace}","uid":"u","resourceVersion":"{version}"}}"#
            );
            self.0.update(format!(r#"{{"metadata":{metadata}}}"#).as_bytes(), |_| None::<Object>).unwrap()
        }
    }

    fn shown(staged: Staged) -> Vec<String> {
        let objects = staged.complete().objects;
        objects.iter().map(|object| format!("{}@{}", object.key(), object.version())).collect()
    }

    #[test]
    fn what_came_last_about_a_key_counts() {
        let mut maker = Maker::new();
        let mut staged = Staged::new();
        for version in [1, 3] {
            staged.put(maker.make("d", "ghost", version));
            staged.remove(maker.make("d", "ghost", version + 1));
        }
        for version in [1, 3, 4] {
            staged.put(maker.make("d", "again", version));
        }
        staged.remove(maker.make("d", "unknown", 9));
        assert_eq!(shown(staged), ["d/again@4"]);
    }

    #[test]
    fn nothing_is_noted_as_long_as_keys_come_in_the_server_s_order() {
        let mut maker = Maker::new();
        let mut staged = Staged::new();
        for (namespace, name) in [("a-b", "x"), ("a", "x"), ("a", "y"), ("b", "a")] {
            staged.put(maker.make(namespace, name, 1));
        }
        assert!(staged.places.is_none());
        staged.put(maker.make("a", "x", 2));
        assert!(staged.places.is_some());
        assert_eq!(shown(staged), ["a-b/x@1", "a/x@2", "a/y@1", "b/a@1"]);
    }

    #[test]
    fn what_is_gone_by_its_key_alone_may_come_back() {
        let mut maker = Maker::new();
        let key = ObjectKey { namespace: "d".to_owned(), name: "a".to_owned() };
        let mut staged = Staged::new();
        staged.put(maker.make("d", "a", 1));
        staged.remove_key(&key);
        staged.put(maker.make("d", "b", 2));
        staged.put(maker.make("d", "a", 3));
        assert_eq!(shown(staged), ["d/a@3", "d/b@2"]);
    }

    #[test]
    fn what_could_not_be_read_is_over_when_it_can_or_is_gone() {
        let mut maker = Maker::new();
        let key = |name: &str| ObjectKey { namespace: "d".to_owned(), name: name.to_owned() };
        let mut staged = Staged::new();
        for name in ["a", "b", "c", "d"] {
            staged.unreadable(Some(key(name)));
        }
        staged.put(maker.make("d", "a", 2));
        staged.remove(maker.make("d", "b", 2));
        staged.remove_key(&key("c"));
        let Complete { objects, unreadable, nameless } = staged.complete();
        assert_eq!((objects.len(), unreadable, nameless), (1, vec![key("d")], false));
    }
}
