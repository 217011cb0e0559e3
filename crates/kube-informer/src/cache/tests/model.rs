//! The cache beside a naive one: a sorted map, looked through from end to end for every question.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::cache::selector::Selector;

const NAMESPACES: [&str; 3] = ["n1", "n2", "n3"];
const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
const UIDS: [&str; 2] = ["one", "two"];
const APPS: [&str; 3] = ["web", "api", ""];
const OWNERS: [&str; 3] = ["o1", "o2", "o3"];
const NODES: [&str; 3] = ["node1", "node2", "bad"];
const SELECTORS: [&str; 7] =
    ["app=web", "app=web,!tier", "app!=web", "!app", "app in (web,api),tier", "app in (api)", ""];

/// A plain object: what the model knows of one.
#[derive(Debug, Clone, PartialEq)]
struct Plain {
    uid: &'static str,
    version: u64,
    app: Option<&'static str>,
    owners: Vec<&'static str>,
    node: Option<&'static str>,
}

type Key = (&'static str, &'static str);
type Whole = BTreeMap<Key, Plain>;

#[derive(Debug, Clone)]
enum Step {
    Put(Key, Plain),
    Remove(Key, Plain),
    /// Of a scope or of all, by its place.
    Replace(usize, Vec<(Key, Plain)>, u64),
    Progress(usize, u64),
    AddIndex(usize),
    RemoveIndex(usize),
}

/// What is told, in the model's words.
#[derive(Debug, PartialEq)]
enum Told {
    Added(Key, Plain),
    Updated(Key, Plain, Plain),
    Deleted(Key, Plain, bool),
}

/// Where an object comes from: an event, a list, or a list of a server that went back.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Origin {
    Event,
    List,
    Rewound,
}

#[derive(Debug, Clone, Default)]
struct Model {
    objects: Whole,
    /// By the scope's place.
    versions: Vec<Option<u64>>,
    indexes: BTreeSet<usize>,
    stale: u64,
}

const INDEXES: [&str; 5] = ["label:app", "owner", "controller", "/spec/nodeName", "function"];

fn index(at: usize) -> Index {
    match at {
        0 => Index::label("app"),
        1 => Index::owner(),
        2 => Index::controller(),
        3 => Index::pointer("/spec/nodeName").unwrap(),
        _ => Index::object("function", |object: &Object| {
            let node = object.pointer::<String>("/spec/nodeName").map_err(|error| error.to_string())?;
            match node.as_deref() {
                Some("bad") => Err("bad node".to_owned()),
                node => Ok(node.into_iter().map(str::to_owned).chain([object.name().to_owned()]).collect()),
            }
        }),
    }
}

/// The values that an object has in an index.
fn values(at: usize, key: Key, plain: &Plain) -> Vec<&'static str> {
    match at {
        0 => plain.app.into_iter().collect(),
        1 => plain.owners.clone(),
        2 => plain.owners.first().copied().into_iter().collect(),
        3 => plain.node.into_iter().collect(),
        _ if plain.node == Some("bad") => Vec::new(),
        _ => plain.node.into_iter().chain([key.1]).collect(),
    }
}

impl Model {
    /// `None` is all namespaces.
    fn scope(&self, at: usize) -> (usize, Option<&'static str>) {
        if self.versions.len() == 1 { (0, None) } else { (at, Some(NAMESPACES[at])) }
    }

    fn scope_of(&self, key: Key) -> usize {
        if self.versions.len() == 1 { 0 } else { NAMESPACES.iter().position(|each| *each == key.0).unwrap() }
    }

    fn raise(&mut self, scope: usize, version: u64) {
        if let Some(held) = &mut self.versions[scope] {
            *held = version.max(*held);
        }
    }

    fn put(&mut self, key: Key, new: Plain, from: Origin, told: &mut Vec<Told>) {
        let is_known = |old: &Plain| match from {
            Origin::Rewound => *old == new,
            Origin::Event | Origin::List => old.uid == new.uid && old.version == new.version,
        };
        match self.objects.get(&key).cloned() {
            None => told.push(Told::Added(key, new.clone())),
            Some(old) if is_known(&old) => return,
            Some(old) if from == Origin::Event && new.version < old.version => {
                self.stale += 1;
                return;
            }
            Some(old) if old.uid == new.uid => told.push(Told::Updated(key, old, new.clone())),
            Some(old) => told.extend([Told::Deleted(key, old, false), Told::Added(key, new.clone())]),
        }
        self.objects.insert(key, new);
    }

    fn apply(&mut self, step: Step, told: &mut Vec<Told>) {
        match step {
            Step::Put(key, plain) => {
                self.raise(self.scope_of(key), plain.version);
                self.put(key, plain, Origin::Event, told);
            }
            Step::Remove(key, plain) => {
                self.raise(self.scope_of(key), plain.version);
                match self.objects.get(&key) {
                    None => {}
                    Some(held) if held.uid == plain.uid && held.version <= plain.version => {
                        self.objects.remove(&key);
                        told.push(Told::Deleted(key, plain, true));
                    }
                    Some(held) if held.uid != plain.uid && held.version < plain.version => {
                        told.push(Told::Deleted(key, held.clone(), false));
                        self.objects.remove(&key);
                    }
                    Some(_) => self.stale += 1,
                }
            }
            Step::Replace(scope, objects, version) => {
                let (at, namespace) = self.scope(scope);
                let went_back = self.versions[at].is_some_and(|before| version < before);
                let from = if went_back { Origin::Rewound } else { Origin::List };
                self.versions[at] = Some(version);
                let inside = |key: &Key| namespace.is_none_or(|namespace| key.0 == namespace);
                let objects: Vec<_> = objects.into_iter().filter(|(key, _)| inside(key)).collect();
                for (key, held) in self.objects.clone() {
                    if inside(&key) && objects.iter().all(|(each, _)| *each != key) {
                        self.objects.remove(&key);
                        told.push(Told::Deleted(key, held, false));
                    }
                }
                objects.into_iter().for_each(|(key, plain)| self.put(key, plain, from, told));
            }
            Step::Progress(scope, version) => self.raise(self.scope(scope).0, version),
            Step::AddIndex(_) | Step::RemoveIndex(_) => {}
        }
    }
}

fn object(maker: &mut Maker, key: Key, plain: &Plain) -> Object {
    let labels: Vec<(&str, &str)> =
        plain.app.map(|app| ("app", app)).into_iter().chain([("tier", "t")]).collect();
    maker.make(&Made {
        namespace: key.0,
        name: key.1,
        uid: plain.uid,
        version: plain.version,
        labels: &labels,
        owners: &plain.owners,
        node: plain.node,
    })
}

fn plain(object: &Object) -> (Key, Plain) {
    fn known<const N: usize>(names: [&'static str; N], name: &str) -> &'static str {
        names.into_iter().find(|each| *each == name).unwrap()
    }
    let node: Option<String> = object.pointer("/spec/nodeName").unwrap();
    let plain = Plain {
        uid: known(UIDS, &object.uid().to_string()),
        version: object.version().number().unwrap(),
        app: object.labels().get("app").map(|app| known(APPS, app)),
        owners: object.owners().iter().map(|owner| known(OWNERS, &owner.uid)).collect(),
        node: node.map(|node| known(NODES, &node)),
    };
    ((known(NAMESPACES, object.namespace()), known(NAMES, object.name())), plain)
}

fn told(applied: &Applied) -> Told {
    match applied {
        Applied::Added { new } => {
            let (key, plain) = plain(new);
            Told::Added(key, plain)
        }
        Applied::Updated { old, new } => {
            let ((key, new), (old_key, old)) = (plain(new), plain(old));
            assert_eq!(key, old_key);
            Told::Updated(key, old, new)
        }
        Applied::Deleted { last, certain } => {
            let (key, plain) = plain(last);
            Told::Deleted(key, plain, *certain)
        }
    }
}

/// Asks a snapshot every question that the model can answer.
fn check(snapshot: &Snapshot, model: &Model) {
    let whole: Vec<(Key, Plain)> = model.objects.iter().map(|(key, plain)| (*key, plain.clone())).collect();
    assert_eq!(snapshot.list().into_iter().map(|object| plain(&object)).collect::<Vec<_>>(), whole);
    assert_eq!(snapshot.len(), whole.len());
    let versions: Vec<_> =
        snapshot.versions().map(|(_, version)| version.map(|version| version.number().unwrap())).collect();
    assert_eq!(versions, model.versions);
    let mut namespaces: BTreeMap<String, usize> = BTreeMap::new();
    whole.iter().for_each(|(key, _)| *namespaces.entry(key.0.to_owned()).or_default() += 1);
    assert_eq!(snapshot.namespaces(), namespaces.into_iter().collect::<Vec<_>>());
    for namespace in NAMESPACES {
        for name in NAMES {
            let found = snapshot.get(namespace, name).map(|object| plain(&object).1);
            assert_eq!(found.as_ref(), model.objects.get(&(namespace, name)));
        }
    }

    type Answer = Box<dyn Fn(Key, &Plain) -> bool>;
    let mut questions: Vec<(Query, Answer)> = vec![(snapshot.list(), Box::new(|_, _| true))];
    for owner in OWNERS {
        questions
            .push((snapshot.list().owned_by(owner), Box::new(move |_, plain| plain.owners.contains(&owner))));
        questions.push((
            snapshot.list().controlled_by(owner),
            Box::new(move |_, plain| plain.owners.first() == Some(&owner)),
        ));
    }
    for &at in &model.indexes {
        let mut entries: BTreeMap<String, usize> = BTreeMap::new();
        for (key, plain) in &whole {
            values(at, *key, plain)
                .iter()
                .for_each(|value| *entries.entry((*value).to_owned()).or_default() += 1);
        }
        let found = snapshot.index_values(INDEXES[at]).unwrap();
        let found: Vec<_> = found.map(|(value, count)| (value.to_string(), count)).collect();
        assert_eq!(found, entries.into_iter().collect::<Vec<_>>(), "{}", INDEXES[at]);
        for value in ["web", "o1", "node1", "bad", "a", "nothing"] {
            let query = snapshot.list().index(INDEXES[at], value).unwrap();
            questions.push((query, Box::new(move |key, plain| values(at, key, plain).contains(&value))));
        }
    }
    for (query, expected) in &questions {
        for namespace in [None, Some("n1"), Some("n3"), Some("elsewhere")] {
            for selector in SELECTORS {
                let narrowed =
                    namespace.map_or(query.clone(), |namespace| query.clone().namespace(namespace));
                let narrowed = narrowed.labels(selector).unwrap();
                let selector: Selector = selector.parse().unwrap();
                let met = |plain: &Plain| {
                    let meets = |each: &str| match each {
                        "app=web" => plain.app == Some("web"),
                        // All have this label.
                        "app=web,!tier" => false,
                        "app!=web" => plain.app != Some("web"),
                        "!app" => plain.app.is_none(),
                        "app in (web,api),tier" => matches!(plain.app, Some("web" | "api")),
                        "app in (api)" => plain.app == Some("api"),
                        _ => true,
                    };
                    meets(&selector.to_string().replace("(api,web)", "(web,api)"))
                };
                let inside = |key: &Key| namespace.is_none_or(|namespace| key.0 == namespace);
                let expected: Vec<String> = whole
                    .iter()
                    .filter(|(key, plain)| inside(key) && expected(*key, plain) && met(plain))
                    .map(|(key, _)| format!("{}/{}", key.0, key.1))
                    .collect();
                assert_eq!(keys(&narrowed), expected);
                let lent: Vec<String> = narrowed.each().map(|object| object.key().to_string()).collect();
                assert_eq!(lent, expected);
                assert_eq!(narrowed.count(), expected.len());
            }
        }
    }
}

fn key() -> impl Strategy<Value = Key> {
    (select(&NAMESPACES[..]), select(&NAMES[..]))
}

fn an_object() -> impl Strategy<Value = Plain> {
    let owners = proptest::sample::subsequence(OWNERS.to_vec(), 0..=3);
    let (app, node) = (proptest::option::of(select(&APPS[..])), proptest::option::of(select(&NODES[..])));
    // Few UIDs and versions: most steps meet something.
    (select(&[0_usize, 0, 0, 1][..]), 1_u64..30, app, owners, node)
        .prop_map(|(uid, version, app, owners, node)| Plain { uid: UIDS[uid], version, app, owners, node })
}

fn step() -> impl Strategy<Value = Step> {
    let list = proptest::collection::vec((key(), an_object()), 0..12);
    prop_oneof![
        8 => (key(), an_object()).prop_map(|(key, plain)| Step::Put(key, plain)),
        3 => (key(), an_object()).prop_map(|(key, plain)| Step::Remove(key, plain)),
        1 => (0..3_usize, list, 1..40_u64).prop_map(|(scope, list, version)| Step::Replace(scope, list, version)),
        1 => (0..3_usize, 1..40_u64).prop_map(|(scope, version)| Step::Progress(scope, version)),
        1 => (0..5_usize).prop_map(Step::AddIndex),
        1 => (0..5_usize).prop_map(Step::RemoveIndex),
    ]
}

/// Applies steps in batches to both, and asks both.
fn run(scoped: bool, batches: Vec<Vec<Step>>) {
    let scopes = if scoped { Scopes::namespaces(NAMESPACES) } else { Scopes::all() };
    let (mut writer, cache) = cache(scopes);
    let mut maker = Maker::new();
    let mut model = Model { versions: vec![None; if scoped { 3 } else { 1 }], ..Model::default() };
    let mut earlier = vec![(cache.snapshot(), model.clone())];
    for batch in batches {
        let mut expected = Vec::new();
        let mut changes = Vec::new();
        for step in batch {
            match &step {
                Step::AddIndex(at) => {
                    // Of functions it cannot be told whether they are the same.
                    let is_new = model.indexes.insert(*at);
                    assert_eq!(cache.add_index(index(*at)).is_ok(), is_new || *at < 4);
                }
                Step::RemoveIndex(at) => {
                    assert_eq!(cache.remove_index(INDEXES[*at]).is_ok(), model.indexes.remove(at));
                }
                Step::Put(key, plain) => changes.push(Change::Put(object(&mut maker, *key, plain))),
                Step::Remove(key, plain) => {
                    changes.push(Change::Remove { object: object(&mut maker, *key, plain) });
                }
                Step::Replace(scope, list, at) => changes.push(Change::Replace {
                    scope: model.scope(*scope).1.map(Into::into),
                    objects: list.iter().map(|(key, plain)| object(&mut maker, *key, plain)).collect(),
                    stays: Stays::Nothing,
                    version: version(*at),
                    went_back: false,
                }),
                Step::Progress(scope, at) => changes.push(Change::Progress {
                    scope: model.scope(*scope).1.map(Into::into),
                    version: version(*at),
                }),
            }
            model.apply(step, &mut expected);
        }
        let applied: Vec<Told> = writer.apply(changes).iter().map(told).collect();
        assert_eq!(applied, expected);
        earlier.push((cache.snapshot(), model.clone()));
    }
    assert_eq!(cache.stats().ignored_stale, model.stale);
    assert_eq!(cache.stats().objects, model.objects.len());
    // All of them now, after all that came later.
    for (snapshot, model) in &earlier {
        check(snapshot, model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(debug_assertions) { 40 } else { 400 }, ..ProptestConfig::default() })]

    #[test]
    fn promise_08_the_cache_answers_as_a_naive_one_does_and_snapshots_stay(
        scoped in any::<bool>(),
        batches in proptest::collection::vec(proptest::collection::vec(step(), 0..12), 1..12),
    ) {
        run(scoped, batches);
    }
}
