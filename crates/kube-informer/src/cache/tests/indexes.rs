//! Indexes that come, go and fail.

use std::convert::Infallible;

use super::*;

#[test]
fn an_unknown_index_is_an_error_that_names_those_there_are() {
    let (_writer, cache) = cache(Scopes::all());
    let error = cache.list().index("node", "x").unwrap_err();
    assert_eq!(error.to_string(), "there is no index \"node\"; no index was added");
    cache.add_index(Index::owner()).unwrap();
    cache.add_index(Index::label("app")).unwrap();
    let error = cache.list().index("node", "x").unwrap_err();
    assert_eq!(error.to_string(), "there is no index \"node\"; there are owner, label:app");
    assert!(cache.snapshot().index_values("node").is_err());
    assert!(cache.remove_index("node").is_err());
    let error = cache.add_index(Index::label("x").named("owner")).unwrap_err();
    assert_eq!(error, IndexError::Exists { name: "owner".to_owned() });
    // The same once more is there for both.
    cache.add_index(Index::owner()).unwrap();
    assert_eq!(cache.snapshot().indexes(), ["owner".into(), "label:app".into()]);
}

#[test]
fn an_index_may_come_late_and_go() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let labelled = |maker: &mut Maker, name, version, app| {
        maker.make(&Made {
            namespace: "n",
            name,
            uid: name,
            version,
            labels: &[("app", app)],
            ..Made::default()
        })
    };
    writer.apply([list(vec![labelled(&mut maker, "a", 1, "x"), labelled(&mut maker, "b", 1, "y")], 1)]);
    cache.add_index(Index::label("app")).unwrap();
    let with = cache.snapshot();
    assert_eq!(keys(with.list().index("label:app", "x").unwrap()), ["n/a"]);
    writer.apply([Change::Put(labelled(&mut maker, "a", 2, "y"))]);
    assert_eq!(keys(cache.list().index("label:app", "y").unwrap()), ["n/a", "n/b"]);
    assert!(cache.list().index("label:app", "x").unwrap().is_empty());
    assert_eq!(cache.stats().index_entries, 2);
    cache.remove_index("label:app").unwrap();
    assert!(cache.list().index("label:app", "x").is_err());
    assert_eq!(cache.stats().index_entries, 0);
    assert_eq!(keys(with.list().index("label:app", "x").unwrap()), ["n/a"]);
}

#[test]
fn an_index_that_is_filled_sees_what_happens_meanwhile() {
    let (writer, cache) = cache(Scopes::all());
    let writer = Arc::new(Mutex::new(writer));
    let mut maker = Maker::new();
    let held = ["a", "b", "c"].map(|name| maker.pod(name, 1));
    writer.lock().unwrap().apply([list(held.into(), 1)]);
    // Seen from the function: the first time that it is called, all else changes. Numbers go to other keys.
    let changes = Mutex::new(Some(vec![
        Change::Remove { object: maker.pod("a", 2) },
        Change::Remove { object: maker.pod("c", 3) },
        Change::Put(maker.pod("z", 4)),
        Change::Put(maker.pod("0", 5)),
        Change::Put(maker.pod("b", 6)),
    ]));
    let index = Index::object("version", move |object: &Object| {
        if let Some(changes) = changes.lock().unwrap().take() {
            writer.lock().unwrap().apply(changes);
        }
        Ok::<_, Infallible>(vec![object.version().to_string(), "all".to_owned()])
    });
    cache.add_index(index).unwrap();
    assert_eq!(keys(cache.list().index("version", "all").unwrap()), ["n/0", "n/b", "n/z"]);
    let values: Vec<_> = cache.snapshot().index_values("version").unwrap().collect();
    assert_eq!(values, [("4".into(), 1), ("5".into(), 1), ("6".into(), 1), ("all".into(), 3)]);
}

#[test]
fn promise_13_labels_owners_and_pointers_are_indexed_and_asked_without_decoding() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    for index in [Index::label("app"), Index::owner(), Index::pointer("/spec/nodeName").unwrap()] {
        cache.add_index(index).unwrap();
    }
    let pod = |maker: &mut Maker, version| {
        let (labels, owners) = (&[("app", "x")], &["o"]);
        maker.make(&Made { namespace: "n", name: "a", uid: "u", version, labels, owners, node: Some("n1") })
    };
    writer.apply([list(vec![pod(&mut maker, 1)], 1)]);
    writer.apply([Change::Put(pod(&mut maker, 2))]);
    let all = cache.list().namespace("n").labels("app=x").unwrap().owned_by("o");
    assert_eq!(keys(all.index("/spec/nodeName", "n1").unwrap()), ["n/a"]);
    assert_eq!((cache.stats().index_entries, maker.0.stats().view_decodes), (3, 0));
    // One of a view is decoded.
    cache.add_index(Index::view("view", |_: &Value| Ok::<_, Infallible>(vec![]))).unwrap();
    assert_eq!(maker.0.stats().view_decodes, 1);
}

#[test]
fn promise_13_an_index_function_may_fail_or_panic_and_the_object_is_kept() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let failing = Index::object("failing", |object: &Object| match object.name() {
        "bad" => Err(format!("cannot: {}", "ä".repeat(1000))),
        "worse" => panic!("out of order"),
        name => Ok(vec![name.to_owned()]),
    });
    #[derive(serde::Deserialize)]
    struct Unfit {
        #[serde(rename = "spec")]
        _spec: String,
    }
    cache.add_index(failing).unwrap();
    cache.add_index(Index::view("unfit", |_: &Unfit| Ok::<_, Infallible>(vec![]))).unwrap();
    let objects = vec![maker.pod("bad", 1), maker.pod("good", 1), maker.pod("worse", 1)];
    assert_eq!(writer.apply([list(objects, 1)]).len(), 3);
    assert_eq!(keys(cache.list()), ["n/bad", "n/good", "n/worse"]);
    let values: Vec<_> = cache.snapshot().index_values("failing").unwrap().collect();
    assert_eq!(values, [("good".into(), 1)]);
    assert_eq!(cache.stats().index_faults, 5);
    let faults = cache.index_faults();
    let of = |index: &str| -> Vec<_> { faults.iter().filter(|fault| *fault.index == *index).collect() };
    let [bad, worse] = of("failing")[..] else { panic!("two") };
    assert!(bad.message.starts_with("cannot: ä") && bad.message.len() <= 512);
    assert_eq!((worse.key.to_string(), &*worse.message), ("n/worse".to_owned(), "panicked: out of order"));
    assert_eq!(of("unfit").len(), 3);
    // It goes on, and the list of faults has an end.
    for at in 2..100 {
        writer.apply([Change::Put(maker.pod("bad", at))]);
    }
    assert_eq!(cache.index_faults().len(), 32);
    assert_eq!(cache.stats().index_faults, 5 + 2 * 98);
    assert_eq!(cache.get("n", "bad").unwrap().version(), &version(99));
}

#[test]
fn the_first_failure_of_an_index_is_said_with_object_cause_and_what_follows_and_others_are_counted() {
    let (lines, _said) = crate::said::Lines::of("cache");
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    // More than are kept: the first of each index is not lost among those of another.
    let objects = (0..40).map(|at| maker.pod(&format!("p{at}"), 1)).collect();
    let failing = |name: &str| Index::object(name, |_: &Object| Err::<Vec<String>, _>("no such mood"));
    cache.add_index(failing("moods")).unwrap();
    cache.add_index(failing("tempers")).unwrap();
    writer.apply([list(objects, 1)]);
    let one = "index \"moods\" cannot place Pod n/p0 of v1 at version 1: no such mood; the object is kept, and found by \
               everything but this index until it changes: mend the function, or the object";
    assert!(lines.all()[0].contains(one), "{:?}", lines.all());
    assert!(lines.all()[1].contains("index \"tempers\" cannot place Pod n/p0"), "{:?}", lines.all());
    writer.apply([Change::Put(maker.pod("p1", 2)), Change::Put(maker.pod("p2", 2))]);
    assert_eq!((lines.all().len(), cache.stats().index_faults), (2, 84));
    assert!(cache.index_faults().iter().any(|fault| fault.to_string().contains("n/p2 of v1 at version 2")));
    // One that comes anew is said anew.
    cache.remove_index("moods").unwrap();
    cache.add_index(failing("moods")).unwrap();
    assert_eq!(lines.all().len(), 3, "{:?}", lines.all());
    assert_eq!(cache.stats().index_faults, 84 + 40);
}

#[test]
fn a_function_that_answers_differently_leaves_nothing_behind() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let calls = std::sync::atomic::AtomicU32::new(0);
    let index = Index::object("fickle", move |_: &Object| {
        let call = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok::<_, Infallible>(vec![call.to_string(), "same".to_owned(), "same".to_owned()])
    });
    cache.add_index(index).unwrap();
    for at in 1..5 {
        writer.apply([Change::Put(maker.pod("a", at))]);
    }
    assert_eq!(cache.stats().index_entries, 2);
    writer.apply([Change::Remove { object: maker.pod("a", 9) }]);
    assert_eq!(cache.stats().index_entries, 0);
    assert_eq!(cache.snapshot().index_values("fickle").unwrap().len(), 0);
}

#[test]
fn a_pointer_indexes_texts_numbers_and_lists_of_them() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    cache.add_index(Index::pointer("/spec/x").unwrap()).unwrap();
    assert!(Index::pointer("spec").is_err());
    let values =
        [json!("t"), json!(7), json!(true), json!(["t", 8, null]), json!(null), json!({}), json!([[]])];
    for (at, value) in values.into_iter().enumerate() {
        let document = json!({"metadata": {"name": format!("p{at}"), "uid": "u"}, "spec": {"x": value}});
        writer.apply([Change::Put(maker.0.object(document.to_string().as_bytes()).unwrap())]);
    }
    let values: Vec<_> = cache.snapshot().index_values("/spec/x").unwrap().collect();
    assert_eq!(values, [("7".into(), 1), ("8".into(), 1), ("t".into(), 2), ("true".into(), 1)]);
    assert_eq!(keys(cache.list().index("/spec/x", "t").unwrap()), ["p0", "p3"]);
    assert_eq!(cache.stats().index_faults, 2);
}
