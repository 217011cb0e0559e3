use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::kinds::{self, Resource};

const WINDOW: usize = 6;
const BUCKETS: usize = 2;

fn resource() -> &'static Resource {
    kinds::builtin().iter().find(|r| r.is("", "configmaps")).unwrap()
}

fn bucket(at: usize) -> BucketId {
    ("test".into(), format!("things-{at}"))
}

/// An object of the model.
#[derive(Debug, Clone, PartialEq)]
struct Thing {
    uid: String,
    owners: Vec<String>,
    version: u64,
}

fn make(store: &Store, key: &str, thing: &Thing) -> impl FnOnce(u64) -> Stored {
    let (namespace, name) = key.split_once('/').unwrap();
    let owners: Vec<_> = thing.owners.iter().map(|uid| json!({ "uid": uid })).collect();
    let (uid, serialised) = (thing.uid.clone(), Arc::clone(store.serialised()));
    let mut object = json!({ "metadata": { "name": name, "namespace": namespace, "uid": uid, "ownerReferences": owners } });
    move |revision| {
        object["metadata"]["resourceVersion"] = revision.to_string().into();
        Stored::new(resource(), &object, revision, &serialised)
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Insert; or replace, where the key is taken.
    Put {
        bucket: usize,
        key: String,
        owner: Option<usize>,
    },
    Remove {
        bucket: usize,
        key: String,
    },
    /// A write by somebody who saw an older version.
    Late {
        bucket: usize,
        key: String,
    },
    Compact,
    /// The resource goes, and may come again.
    Drop {
        bucket: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = 0..BUCKETS;
    let key = prop::sample::select(vec!["a/x", "a/y", "a/yy", "ab/x", "b/x", "b/z"]).prop_map(str::to_owned);
    let step = prop_oneof![
        12 => (at.clone(), key.clone(), prop::option::of(0..8_usize))
            .prop_map(|(bucket, key, owner)| Step::Put { bucket, key, owner }),
        5 => (at.clone(), key.clone()).prop_map(|(bucket, key)| Step::Remove { bucket, key }),
        2 => (at.clone(), key).prop_map(|(bucket, key)| Step::Late { bucket, key }),
        1 => Just(Step::Compact),
        1 => at.prop_map(|bucket| Step::Drop { bucket }),
    ];
    prop::collection::vec(step, 0..40)
}

type Objects = BTreeMap<String, Thing>;

/// What a bucket's past looks like to somebody who writes everything down.
#[derive(Debug, Default)]
struct Past {
    now: Objects,
    /// Revision, key, and what the object became.
    changes: Vec<(u64, String, Option<Thing>)>,
    /// What the objects were at each revision.
    states: BTreeMap<u64, Objects>,
    /// Versions before this cannot be started from, apart from what the window says.
    floor: u64,
    /// The changes that have left the log, by compaction or over the window.
    lost: usize,
}

impl Past {
    fn oldest(&self) -> u64 {
        let left = self.lost.checked_sub(1).map_or(0, |last| self.changes[last].0);
        left.max(self.floor)
    }

    fn lost(&self) -> u64 {
        self.lost.checked_sub(1).map_or(0, |last| self.changes[last].0)
    }
}

struct Model {
    revision: u64,
    uids: usize,
    pasts: Vec<Past>,
}

impl Model {
    fn record(&mut self, at: usize, key: &str, thing: Option<Thing>) {
        self.revision += 1;
        let past = &mut self.pasts[at];
        match &thing {
            Some(thing) => past.now.insert(key.to_owned(), thing.clone()),
            None => past.now.remove(key),
        };
        past.changes.push((self.revision, key.to_owned(), thing));
        past.lost = past.lost.max(past.changes.len().saturating_sub(WINDOW));
        for past in &mut self.pasts {
            past.states.insert(self.revision, past.now.clone());
        }
    }
}

fn shown(listing: &Listing) -> Objects {
    let thing = |o: &Arc<Stored>| Thing { uid: o.uid.clone(), owners: o.owners.clone(), version: o.revision };
    let keys: Vec<&String> = listing.objects.iter().map(|o| &o.key).collect();
    assert!(keys.is_sorted(), "{keys:?}");
    listing.objects.iter().map(|o| (o.key.clone(), thing(o))).collect()
}

fn step(store: &Store, model: &mut Model, step: Step) {
    match step {
        Step::Put { bucket: at, key, owner } => {
            let owners: Vec<String> = owner.into_iter().map(|n| format!("uid-{n}")).collect();
            let seen = store.get(&bucket(at), &key);
            assert_eq!(seen.is_some(), model.pasts[at].now.contains_key(&key));
            let uid = match &seen {
                Some(seen) => seen.uid.clone(),
                None => format!("uid-{}", model.uids),
            };
            let thing = Thing { uid, owners, version: model.revision + 1 };
            let stored = match &seen {
                Some(seen) => {
                    let taken = store.insert(&bucket(at), &key, |_| unreachable!("the key is taken"));
                    assert_eq!(taken.err(), Some(Refused::Exists));
                    store.replace(&bucket(at), seen, make(store, &key, &thing))
                }
                None => {
                    model.uids += 1;
                    store.insert(&bucket(at), &key, make(store, &key, &thing))
                }
            };
            assert_eq!(stored.ok().map(|s| s.revision), Some(thing.version));
            model.record(at, &key, Some(thing));
        }
        Step::Remove { bucket: at, key } => {
            let Some(seen) = store.get(&bucket(at), &key) else { return };
            let thing = model.pasts[at].now[&key].clone();
            assert!(store.remove(&bucket(at), &seen, make(store, &key, &thing)).is_ok());
            model.record(at, &key, None);
        }
        Step::Late { bucket: at, key } => {
            let Some(seen) = store.get(&bucket(at), &key) else { return };
            let thing = Thing { version: model.revision + 1, ..model.pasts[at].now[&key].clone() };
            assert!(store.replace(&bucket(at), &seen, make(store, &key, &thing)).is_ok());
            model.record(at, &key, Some(thing));
            let late = |_| unreachable!("somebody was faster");
            assert_eq!(store.replace(&bucket(at), &seen, late).err(), Some(Refused::Changed));
            assert_eq!(store.remove(&bucket(at), &seen, late).err(), Some(Refused::Changed));
        }
        Step::Compact => {
            store.compact();
            for past in &mut model.pasts {
                past.floor = model.revision;
                past.lost = past.changes.len();
            }
        }
        Step::Drop { bucket: at } => {
            let existed = !model.pasts[at].changes.is_empty();
            store.drop_bucket(&bucket(at));
            let past = &mut model.pasts[at];
            if existed {
                past.floor = model.revision;
                past.now.clear();
                // No revision of its own: the state at this one is now empty.
                past.states.insert(model.revision, Objects::new());
            }
        }
    }
}

fn whole(store: &Store, id: &BucketId, prefix: &str, revision: u64) -> Result<Listing, TooOld> {
    let ask = Ask { prefix, from: "", revision: Some(revision), limit: usize::MAX, selects: None };
    let (listing, left) = store.page(id, &ask)?;
    assert_eq!((listing.revision, left), (revision, 0));
    Ok(listing)
}

/// Any part of a list is that part of the whole, and what is left is counted.
fn compare_pages(store: &Store, id: &BucketId, prefix: &str, revision: u64, wanted: &Objects) {
    let owned = |object: &Stored| !object.owners.is_empty();
    for from in ["", "a/y", "a/y\0", "b/", "c"] {
        for limit in [1, 2, 4] {
            let ask = Ask { prefix, from, revision: Some(revision), limit, selects: None };
            let (listing, left) = store.page(id, &ask).ok().unwrap();
            let rest: Vec<&String> = wanted.keys().filter(|key| key.as_str() >= from).collect();
            let keys: Vec<&String> = listing.objects.iter().map(|o| &o.key).collect();
            assert_eq!(keys, rest[..limit.min(rest.len())], "{prefix} from {from} at {revision}");
            assert_eq!(left, rest.len().saturating_sub(limit), "{prefix} from {from} at {revision}");
            let (listing, left) = store.page(id, &Ask { selects: Some(&owned), ..ask }).ok().unwrap();
            let rest: Vec<&String> = rest.into_iter().filter(|key| !wanted[*key].owners.is_empty()).collect();
            let keys: Vec<&String> = listing.objects.iter().map(|o| &o.key).collect();
            assert_eq!(keys, rest[..limit.min(rest.len())], "{prefix} from {from} at {revision}");
            assert_eq!(left > 0, rest.len() > limit);
        }
    }
}

fn compare(store: &Store, model: &Model) {
    assert_eq!(store.revision(), model.revision);
    for (at, past) in model.pasts.iter().enumerate() {
        let id = bucket(at);
        for prefix in ["", "a/", "b/", "none/"] {
            let within = |objects: &Objects| -> Objects {
                objects
                    .iter()
                    .filter(|(key, _)| key.starts_with(prefix))
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect()
            };
            let now = store.list(&id, prefix);
            assert_eq!((now.revision, shown(&now)), (model.revision, within(&past.now)));
            for revision in 0..=model.revision {
                let old = whole(store, &id, prefix, revision).map(|listing| shown(&listing));
                if revision < past.oldest() {
                    assert_eq!(old, Err(TooOld { oldest: past.oldest() }));
                } else {
                    let wanted = within(&past.states[&revision]);
                    assert_eq!(old, Ok(wanted.clone()), "bucket {at} at {revision}");
                    compare_pages(store, &id, prefix, revision, &wanted);
                }
                assert_eq!(store.check_start(&id, revision).is_err(), revision < past.oldest());
            }
        }
        for revision in 0..=model.revision {
            for most in [1, 3, 100] {
                match store.changes(&id, revision, most) {
                    Err(_) => assert!(revision < past.lost()),
                    Ok((changes, reached)) => {
                        assert!(revision >= past.lost());
                        let wanted = past.changes.iter().filter(|(r, ..)| *r > revision).take(most);
                        let wanted: Vec<(u64, String, bool)> =
                            wanted.map(|(r, key, thing)| (*r, key.clone(), thing.is_none())).collect();
                        let given: Vec<(u64, String, bool)> = changes
                            .iter()
                            .map(|c| (c.revision, c.new.key.clone(), c.kind == ChangeKind::Deleted))
                            .collect();
                        assert_eq!(given, wanted);
                        let all = past.changes.last().is_none_or(|(r, ..)| *r <= revision)
                            || given.last().map(|g| g.0) == past.changes.last().map(|c| c.0);
                        let last = given.last().map_or(revision, |g| g.0);
                        assert_eq!(reached, if all { model.revision } else { last });
                        for change in &changes {
                            assert_eq!(change.old.is_none(), change.kind == ChangeKind::Added);
                        }
                    }
                }
            }
        }
    }
    let everything: BTreeMap<(usize, String), Thing> = model
        .pasts
        .iter()
        .enumerate()
        .flat_map(|(at, past)| past.now.iter().map(move |(key, thing)| ((at, key.clone()), thing.clone())))
        .collect();
    for uid in (0..model.uids + 8).map(|n| format!("uid-{n}")) {
        let found = store.by_uid(&uid).map(|(id, object)| (id, object.key.clone()));
        let wanted = everything.iter().find(|(_, thing)| thing.uid == uid);
        assert_eq!(found, wanted.map(|((at, key), _)| (bucket(*at), key.clone())));
        let found: BTreeSet<_> =
            store.dependents(&uid).iter().map(|(id, o)| (id.clone(), o.key.clone())).collect();
        let owned = everything.iter().filter(|(_, thing)| thing.owners.contains(&uid));
        assert_eq!(found, owned.map(|((at, key), _)| (bucket(*at), key.clone())).collect());
    }
    let everything_stored = store.everything("");
    assert_eq!(everything_stored.len(), everything.len());
    assert_eq!(store.sizes().iter().map(|(_, size)| size).sum::<usize>(), everything.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_what_somebody_who_writes_everything_down_knows(steps in steps()) {
        let store = Store::new(WINDOW);
        let mut pasts: Vec<Past> = (0..BUCKETS).map(|_| Past::default()).collect();
        for past in &mut pasts {
            past.states.extend([(0, Objects::new()), (1, Objects::new())]);
        }
        let mut model = Model { revision: 1, uids: 0, pasts };
        for next in steps {
            step(&store, &mut model, next);
        }
        compare(&store, &model);
    }
}

fn thing(uid: &str) -> Thing {
    Thing { uid: uid.into(), owners: Vec::new(), version: 0 }
}

#[test]
fn a_version_is_too_old_exactly_when_a_change_after_it_has_left_the_window() {
    let store = Store::new(2);
    for at in 0..3 {
        let key = format!("a/{at}");
        assert!(store.insert(&bucket(0), &key, make(&store, &key, &thing(&key))).is_ok());
    }
    // Revisions 2, 3 and 4; 2 has left.
    assert_eq!(store.check_start(&bucket(0), 1), Err(TooOld { oldest: 2 }));
    assert_eq!(store.check_start(&bucket(0), 2), Ok(()));
    assert_eq!(store.check_start(&bucket(1), 0), Ok(()), "another resource has its own window");
}

#[test]
fn after_a_compaction_newcomers_start_again_and_the_others_go_on() {
    let store = Store::new(WINDOW);
    assert!(store.insert(&bucket(0), "a/x", make(&store, "a/x", &thing("x"))).is_ok());
    assert!(store.insert(&bucket(1), "a/y", make(&store, "a/y", &thing("y"))).is_ok());
    store.compact();
    for at in 0..3 {
        assert_eq!(store.check_start(&bucket(at), 2), Err(TooOld { oldest: 3 }));
    }
    // Who has seen revision 2 has missed nothing of the first bucket.
    assert!(store.changes(&bucket(0), 2, 10).is_ok());
    assert!(store.changes(&bucket(1), 2, 10).is_err());
}

#[test]
fn followers_are_woken_by_changes_and_told_of_the_end() {
    let store = Store::new(WINDOW);
    let mut grown = store.follow(&bucket(0));
    let mut newest = store.newest();
    assert!(!grown.has_changed().unwrap());
    assert!(store.insert(&bucket(1), "a/x", make(&store, "a/x", &thing("x"))).is_ok());
    assert!(!grown.has_changed().unwrap(), "of another bucket");
    assert_eq!(*newest.borrow_and_update(), 2);
    assert!(store.insert(&bucket(0), "a/x", make(&store, "a/x", &thing("y"))).is_ok());
    assert_eq!(*grown.borrow_and_update(), Some(3));
    store.drop_bucket(&bucket(0));
    assert_eq!(*grown.borrow_and_update(), None);
    assert_eq!(store.by_uid("y").map(|(id, _)| id), None);
    let again = store.follow(&bucket(0));
    assert_eq!(*again.borrow(), Some(3));
}
