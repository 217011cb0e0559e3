//! The cache, seen from outside.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::*;
use crate::encoding::{Codec, Encoding, Rules};
use crate::object::{Intake, Packing, Uid};

mod indexes;
mod model;
mod schedules;
mod speed;
mod stress;
mod versions;

/// Makes objects.
struct Maker(Intake);

/// What an object is made of; all but the name may be left out.
#[derive(Debug, Clone, Default, PartialEq)]
struct Made<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    version: u64,
    labels: &'a [(&'a str, &'a str)],
    /// UIDs; the first is the controller.
    owners: &'a [&'a str],
    node: Option<&'a str>,
}

impl Maker {
    fn new() -> Self {
        let codec = Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap();
        Self(Intake::new(codec).packing(Packing::Off))
    }

    fn make(&mut self, made: &Made<'_>) -> Object {
        let owner = |(at, uid): (usize, &&str)| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "uid": uid, "controller": at == 0});
        let labels: serde_json::Map<String, Value> =
            made.labels.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        let mut document = json!({
            "metadata": {
                "name": made.name, "namespace": made.namespace, "uid": made.uid, "labels": labels,
                "ownerReferences": made.owners.iter().enumerate().map(owner).collect::<Vec<_>>(),
            },
            "spec": {},
        });
        if let Some(node) = made.node {
            document["spec"]["nodeName"] = json!(node);
        }
        if made.version > 0 {
            document["metadata"]["resourceVersion"] = json!(made.version.to_string());
        }
        self.0.object(document.to_string().as_bytes()).unwrap()
    }

    /// An object in namespace `n`, with UID `u` and the name.
    fn pod(&mut self, name: &str, version: u64) -> Object {
        self.make(&Made { namespace: "n", name, uid: &format!("u{name}"), version, ..Made::default() })
    }
}

fn version(number: u64) -> Version {
    Version::from(number.to_string().as_str())
}

fn list(objects: Vec<Object>, at: u64) -> Change {
    Change::Replace { scope: None, objects, stays: Stays::Nothing, version: version(at), went_back: false }
}

/// What was told, in short: `+a@1`, `~a@1>2`, `-a@2`, `?a@2` for a deletion that is not certain.
fn short(told: &[Applied]) -> String {
    let mut out = String::new();
    for each in told {
        let _ = match each {
            Applied::Added { new } => write!(out, "+{}@{} ", new.name(), new.version()),
            Applied::Updated { old, new } => {
                write!(out, "~{}@{}>{} ", new.name(), old.version(), new.version())
            }
            Applied::Deleted { last, certain } => {
                let sign = if *certain { '-' } else { '?' };
                write!(out, "{sign}{}@{} ", last.name(), last.version())
            }
        };
    }
    out.trim_end().to_owned()
}

fn keys<K>(objects: impl IntoIterator<Item = Object<K>>) -> Vec<String> {
    objects.into_iter().map(|object| object.key().to_string()).collect()
}

#[test]
fn what_becomes_of_objects_is_told_in_order() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let (a1, a2, b3) = (maker.pod("a", 1), maker.pod("a", 2), maker.pod("b", 3));
    let told = writer.apply([Change::Put(a1.clone()), Change::Put(a2.clone()), Change::Put(b3)]);
    assert_eq!(short(&told), "+a@1 ~a@1>2 +b@3");
    assert!(matches!(&told[1], Applied::Updated { old, new } if old.is_same(&a1) && new.is_same(&a2)));
    let a4 = maker.pod("a", 4);
    let told = writer.apply([Change::Remove { object: a4.clone() }]);
    // The last state is the one that came with the removal.
    assert!(matches!(&told[..], [Applied::Deleted { last, certain: true }] if last.is_same(&a4)));
    assert_eq!(keys(cache.list()), ["n/b"]);
    assert!(cache.get("n", "a").is_none());
}

#[test]
fn promise_07_a_list_first_removes_what_it_lacks_then_adds_and_updates_in_its_order() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let held: Vec<_> = ["a", "b", "c", "d"].map(|name| maker.pod(name, 5)).into();
    let kept = held[2].clone();
    writer.apply([list(held, 5)]);
    let fresh = vec![maker.pod("z", 9), maker.pod("c", 5), maker.pod("b", 8), maker.pod("e", 7)];
    let told = writer.apply([list(fresh, 9)]);
    assert_eq!(short(&told), "?a@5 ?d@5 +z@9 ~b@5>8 +e@7");
    // What has not changed is the very object, with what was decoded of it.
    assert!(cache.get("n", "c").unwrap().is_same(&kept));
    assert_eq!(keys(cache.list()), ["n/b", "n/c", "n/e", "n/z"]);
}

#[test]
fn versions_that_are_no_numbers_are_taken_as_they_come() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let mut text = |version: &str| {
        let document = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": version}});
        maker.0.object(document.to_string().as_bytes()).unwrap()
    };
    let told = writer.apply([
        Change::Replace {
            scope: None,
            objects: vec![text("zz")],
            stays: Stays::Nothing,
            version: Version::from("q"),
            went_back: false,
        },
        Change::Put(text("aa")),
        Change::Put(text("aa")),
    ]);
    assert_eq!(short(&told), "+a@zz ~a@zz>aa");
    let snapshot = cache.snapshot();
    assert_eq!(snapshot.version(""), Some(&Version::from("aa")));
    assert_eq!(snapshot.reached("", &Version::from("aa")), Ok(true));
    assert!(matches!(snapshot.reached("", &Version::from("7")), Err(VersionError::NoOrder { .. })));
}

#[test]
fn promise_08_every_scope_has_its_own_version_and_its_own_lists() {
    let (mut writer, cache) = cache(Scopes::namespaces(["two", "one", "two"]));
    let mut maker = Maker::new();
    let mut at = |namespace, name, version| {
        maker.make(&Made { namespace, name, uid: name, version, ..Made::default() })
    };
    let scoped = |namespace: &str, objects, at| Change::Replace {
        scope: Some(namespace.into()),
        objects,
        stays: Stays::Nothing,
        version: version(at),
        went_back: false,
    };
    writer.apply([scoped("one", vec![at("one", "a", 1), at("one", "b", 2)], 5)]);
    let snapshot = cache.snapshot();
    let versions: Vec<_> = snapshot.versions().collect();
    assert_eq!(versions, [(Some("one"), Some(&version(5))), (Some("two"), None)]);
    assert!(!snapshot.is_synced());
    assert_eq!(snapshot.reached("two", &version(1)), Ok(false));
    let told = writer.apply([
        scoped("two", vec![at("two", "c", 3)], 7),
        Change::Put(at("one", "b", 9)),
        // Nothing of this is in scope: an object, one in a list, a list, a version.
        Change::Put(at("three", "x", 10)),
        scoped("two", vec![at("two", "c", 3), at("one", "y", 11)], 7),
        list(vec![], 12),
        Change::Progress { scope: Some("three".into()), version: version(13) },
    ]);
    assert_eq!(short(&told), "+c@3 ~b@2>9");
    assert_eq!(cache.stats().ignored_out_of_scope, 4);
    let snapshot = cache.snapshot();
    assert!(snapshot.is_synced());
    assert_eq!(snapshot.reached("one", &version(9)), Ok(true));
    assert_eq!(snapshot.reached("two", &version(9)), Ok(false));
    let error = snapshot.reached("three", &version(1)).unwrap_err();
    assert_eq!(error.to_string(), "namespace \"three\" is not watched; watched are one, two");
    assert_eq!(snapshot.namespaces(), [("one".to_owned(), 2), ("two".to_owned(), 1)]);
}

#[test]
fn promise_08_a_snapshot_stays_as_it_is_and_states_are_counted() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    writer.apply([list(vec![maker.pod("a", 1), maker.pod("b", 1)], 1)]);
    let before = cache.snapshot();
    let query = before.list();
    writer.apply([list(vec![maker.pod("c", 2)], 2)]);
    assert_eq!(keys(&query), ["n/a", "n/b"]);
    assert_eq!(before.len(), 2);
    assert!(before.get("n", "a").is_some() && before.get("n", "c").is_none());
    let after = cache.snapshot();
    assert_eq!(keys(after.list()), ["n/c"]);
    assert!(after.generation() > before.generation());
    assert_eq!((before.version("n"), after.version("n")), (Some(&version(1)), Some(&version(2))));
}

#[test]
fn many_are_read_in_order_and_counted_while_they_are() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let names: Vec<String> = (0..100).map(|at| format!("p{at:03}")).collect();
    writer.apply([list(names.iter().map(|name| maker.pod(name, 1)).collect(), 2)]);
    let query = cache.list();
    assert!(query.each().map(|pod| pod.name().to_owned()).eq(names.iter().cloned()));
    let mut pods = query.iter();
    for (read, name) in names.iter().enumerate() {
        assert_eq!(pods.size_hint(), (names.len() - read, Some(names.len() - read)));
        assert_eq!(pods.next().unwrap().name(), name);
    }
    assert!(pods.next().is_none() && pods.size_hint() == (0, Some(0)));
}

#[test]
fn what_is_read_where_it_is_stays_as_it_is_meanwhile() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    writer.apply([Change::Put(maker.pod("a", 1))]);
    let read = cache.with("n", "a", |pod| {
        writer.apply([Change::Put(maker.pod("a", 2))]);
        let object = Change::Remove { object: maker.pod("a", 3) };
        writer.apply([object]);
        (pod.version().to_string(), cache.with("n", "a", |_| ()))
    });
    assert_eq!(read, Some(("1".to_owned(), None)));
    assert_eq!(cache.with("n", "a", |_| ()), None);
}

#[test]
fn objects_can_be_kept_in_another_form_without_a_word() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    writer.apply([list(vec![maker.pod("a", 1), maker.pod("b", 2)], 2)]);
    let (same, late) = (maker.pod("a", 1), maker.pod("b", 1));
    let bytes = cache.stats().kept_bytes;
    writer.exchange([same.clone(), late.clone(), maker.pod("x", 1)]);
    assert!(cache.get("n", "a").unwrap().is_same(&same));
    assert!(!cache.get("n", "b").unwrap().is_same(&late));
    assert_eq!((cache.stats().objects, cache.stats().kept_bytes), (2, bytes));
}

#[test]
fn without_a_version_only_the_same_content_is_kept_in_another_form() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut intake = Intake::new(Codec::new(Encoding::Json, "v1", "Pod", Rules::default()).unwrap());
    let [old, new, same] = ["one", "two", "two"].map(|node| {
        let metadata = r#"{"name":"a","namespace":"n","uid":"u"}"#;
        let pod = format!(r#"{{"metadata":{metadata},"spec":{{"nodeName":"{node}"}}}}"#);
        intake.object(pod.as_bytes()).unwrap()
    });
    writer.apply([Change::Put(old.clone()), Change::Put(new.clone())]);
    writer.exchange([old]);
    assert!(cache.get("n", "a").unwrap().is_same(&new));
    writer.exchange([same.clone()]);
    assert!(cache.get("n", "a").unwrap().is_same(&same));
}

#[test]
fn queries_are_narrowed_by_namespace_labels_owners_and_indexes() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    cache.add_index(Index::pointer("/spec/nodeName").unwrap()).unwrap();
    let pods = [
        ("x", "a", "web", "o1", "n1"),
        ("x", "b", "web", "o2", "n2"),
        ("y", "c", "api", "o1", "n1"),
        ("y", "d", "web", "o1", "n1"),
    ];
    let objects = pods.map(|(namespace, name, app, owner, node)| {
        let (labels, owners) = ([("app", app)], [owner, "o3"]);
        let node = Some(node);
        maker.make(&Made { namespace, name, uid: name, version: 1, labels: &labels, owners: &owners, node })
    });
    writer.apply([list(objects.into(), 1)]);
    // With and without the indexes that could answer.
    for round in 0..2 {
        let list = || cache.list();
        assert_eq!(keys(list().namespace("y")), ["y/c", "y/d"]);
        assert_eq!(keys(list().namespace("z")), [""; 0]);
        assert_eq!(keys(list().labels("app=web").unwrap()), ["x/a", "x/b", "y/d"]);
        assert_eq!(keys(list().labels("app notin (web)").unwrap()), ["y/c"]);
        assert_eq!(keys(list().labels("").unwrap()).len(), 4);
        assert_eq!(keys(list().owned_by("o1")), ["x/a", "y/c", "y/d"]);
        assert_eq!(keys(list().owned_by("o3")).len(), 4);
        assert_eq!(keys(list().controlled_by("o3")), [""; 0]);
        assert_eq!(keys(list().controlled_by(&Uid::from("o2"))), ["x/b"]);
        let node = list().index("/spec/nodeName", "n1").unwrap();
        assert_eq!(node.count(), 3);
        let all = node.namespace("y").owned_by("o1").labels("app!=api,app").unwrap();
        assert_eq!(keys(&all), ["y/d"]);
        assert_eq!((all.count(), all.is_empty()), (1, false));
        assert_eq!(all.first().unwrap().name(), "d");
        assert!(list().labels("app=nothing").unwrap().is_empty());
        if round == 0 {
            for index in [Index::label("app"), Index::owner(), Index::controller()] {
                cache.add_index(index).unwrap();
            }
        }
    }
    let values: Vec<_> = cache.snapshot().index_values("label:app").unwrap().collect();
    assert_eq!(values, [("api".into(), 1), ("web".into(), 3)]);
}

#[test]
fn the_smallest_set_is_looked_through() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    for index in [Index::label("app"), Index::pointer("/spec/nodeName").unwrap()] {
        cache.add_index(index).unwrap();
    }
    let mut objects = Vec::new();
    for at in 0..100 {
        let (namespace, name, node) = (format!("n{}", at % 2), format!("p{at}"), format!("node{}", at % 10));
        let labels = [("app", if at == 7 { "rare" } else { "usual" })];
        objects.push(maker.make(&Made {
            namespace: &namespace,
            name: &name,
            uid: &name,
            version: 1,
            labels: &labels,
            node: Some(&node),
            ..Made::default()
        }));
    }
    writer.apply([list(objects, 1)]);
    let most = |query: &Query| query.iter().size_hint();
    let query = cache.list();
    assert_eq!(most(&query), (100, Some(100)));
    let query = query.namespace("n1");
    assert_eq!(most(&query), (50, Some(50)));
    let query = query.index("/spec/nodeName", "node7").unwrap();
    assert_eq!(most(&query), (10, Some(10)));
    // Other conditions are still to be asked.
    let query = query.labels("app").unwrap();
    assert_eq!(most(&query), (0, Some(10)));
    let query = query.labels("app=rare").unwrap();
    assert_eq!(most(&query), (0, Some(1)));
    assert_eq!(keys(query), ["n1/p7"]);
}

#[test]
fn what_is_held_is_counted() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let objects: Vec<_> = (0..50).map(|at| maker.pod(&format!("p{at}"), 1)).collect();
    let bytes: u64 = objects.iter().map(|object| object.size().0 as u64).sum();
    writer.apply([list(objects, 1)]);
    assert_eq!((cache.stats().objects, cache.stats().kept_bytes), (50, bytes));
    writer.apply([list(vec![], 2)]);
    let Stats { objects, kept_bytes, plain_bytes, index_entries, .. } = cache.stats();
    assert_eq!((objects, kept_bytes, plain_bytes, index_entries), (0, 0, 0, 0));
}

#[test]
fn handles_can_be_sent_and_shared() {
    fn shared<T: Send + Sync + Clone>() {}
    fn sent<T: Send>() {}
    shared::<Cache>();
    shared::<Snapshot>();
    shared::<Query>();
    sent::<Objects>();
    sent::<Writer>();
}

#[test]
fn a_list_leaves_what_could_not_be_read_as_it_was() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let mut at =
        |name, version| maker.make(&Made { namespace: "n", name, uid: name, version, ..Made::default() });
    let key = |name: &str| ObjectKey { namespace: "n".to_owned(), name: name.to_owned() };
    writer.apply([list(vec![at("a", 1), at("b", 2), at("c", 3)], 3)]);
    let some = |objects, stays, at| Change::Replace {
        scope: None,
        objects,
        stays,
        version: version(at),
        went_back: false,
    };
    let names = || cache.list().iter().map(|object| object.name().to_owned()).collect::<Vec<_>>();

    let told = writer.apply([some(vec![at("a", 4)], Stays::Those(vec![key("b"), key("unknown")]), 5)]);
    assert!(
        matches!(&told[..], [Applied::Deleted { last, .. }, Applied::Updated { .. }] if last.name() == "c")
    );
    assert_eq!(names(), ["a", "b"]);

    // One had not even a name: it may be any of those that are missing.
    let told = writer.apply([some(vec![at("d", 6)], Stays::Everything, 7)]);
    assert!(matches!(&told[..], [Applied::Added { new }] if new.name() == "d"));
    assert_eq!(names(), ["a", "b", "d"]);
}

#[test]
fn what_is_gone_is_gone_even_if_its_last_state_could_not_be_read() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let object = maker.make(&Made { namespace: "n", name: "a", uid: "a", version: 1, ..Made::default() });
    writer.apply([list(vec![object], 3)]);
    let gone = || Change::RemoveKey { key: ObjectKey { namespace: "n".to_owned(), name: "a".to_owned() } };
    let told = writer.apply([gone(), gone()]);
    assert!(matches!(&told[..], [Applied::Deleted { last, certain: true }] if last.name() == "a"));
    assert!(cache.list().is_empty());
}
