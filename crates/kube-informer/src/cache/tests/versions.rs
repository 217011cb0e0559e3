//! What versions and UIDs say: what is known, what is late, what was made again, and what a server gave out twice.

use super::*;

#[test]
fn promise_07_an_object_that_was_made_again_is_deleted_and_added() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let again = |maker: &mut Maker, uid, version| {
        maker.make(&Made { namespace: "n", name: "a", uid, version, ..Made::default() })
    };
    writer.apply([Change::Put(again(&mut maker, "one", 5))]);
    let told = writer.apply([Change::Put(again(&mut maker, "two", 6))]);
    assert_eq!(short(&told), "?a@5 +a@6");
    let told = writer.apply([list(vec![again(&mut maker, "three", 6)], 7)]);
    assert_eq!(short(&told), "?a@6 +a@6");
    // Late words of predecessors.
    let late =
        [Change::Remove { object: again(&mut maker, "two", 6) }, Change::Put(again(&mut maker, "two", 5))];
    assert_eq!(short(&writer.apply(late)), "");
    assert_eq!(cache.stats().ignored_stale, 2);
    assert_eq!(cache.get("n", "a").unwrap().uid(), "three");
}

#[test]
fn promise_07_where_a_successor_that_was_never_seen_is_gone_nothing_is_left() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let mut of =
        |uid, version| maker.make(&Made { namespace: "n", name: "a", uid, version, ..Made::default() });
    writer.apply([list(vec![of("one", 5)], 5)]);
    // What went then is known; when the one that is held went, is not.
    let told = writer.apply([Change::Remove { object: of("two", 8) }]);
    assert!(matches!(&told[..], [Applied::Deleted { last, certain: false }] if last.uid() == "one"));
    assert!(cache.get("n", "a").is_none());
    assert_eq!((cache.stats().ignored_stale, cache.snapshot().version("n")), (0, Some(&version(8))));
    assert_eq!(short(&writer.apply([Change::Put(of("three", 9))])), "+a@9");
}

#[test]
fn only_a_list_takes_versions_back() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    writer.apply([list(vec![maker.pod("a", 50), maker.pod("b", 60)], 70)]);
    let told = writer.apply([
        Change::Put(maker.pod("a", 49)),
        Change::Remove { object: maker.pod("b", 59) },
        Change::Progress { scope: None, version: version(10) },
    ]);
    assert_eq!(short(&told), "");
    assert_eq!(cache.stats().ignored_stale, 2);
    assert_eq!(cache.snapshot().version("n"), Some(&version(70)));
    let told = writer.apply([list(vec![maker.pod("a", 20)], 30)]);
    assert_eq!(short(&told), "?b@60 ~a@50>20");
    assert_eq!(cache.snapshot().version("n"), Some(&version(30)));
}

#[test]
fn where_versions_went_back_the_content_tells_what_is_known() {
    let mut protobuf = Intake::new(Codec::new(Encoding::Protobuf, "v1", "Pod", Rules::default()).unwrap());
    // In its envelope: metadata of that name, namespace, UID and version, and a spec with a node's name.
    let mut in_protobuf = |node: &str| {
        let field = |number: u8, bytes: &[u8]| {
            let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
            field.extend_from_slice(bytes);
            field
        };
        let metadata = [field(1, b"a"), field(3, b"n"), field(5, b"ua"), field(6, b"50")].concat();
        let pod = [field(1, &metadata), field(2, &field(10, node.as_bytes()))].concat();
        let kind = [field(1, b"v1"), field(2, b"Pod")].concat();
        let document = [&b"k8s\0"[..], &field(1, &kind), &field(2, &pod)].concat();
        protobuf.object(&document).unwrap()
    };
    for scope in [None, Some("n")] {
        let (mut writer, cache) = cache(scope.map_or_else(Scopes::all, |scope| Scopes::namespaces([scope])));
        let mut maker = Maker::new();
        let mut on = |name, version, node| {
            maker.make(&Made {
                namespace: "n",
                name,
                uid: "ua",
                version,
                node: Some(node),
                ..Made::default()
            })
        };
        let node = || cache.get("n", "a").unwrap().pointer::<String>("/spec/nodeName").unwrap().unwrap();
        let mut listed = |objects, at, went_back| {
            let (scope, stays, version) = (scope.map(Into::into), Stays::Nothing, version(at));
            short(&writer.apply([Change::Replace { scope, objects, stays, version, went_back }]))
        };
        let mut lists = |objects, at| listed(objects, at, false);
        assert_eq!(lists(vec![on("a", 50, "one"), on("b", 60, "one")], 90), "+a@50 +b@60");
        // As long as they do not, a version is given once.
        assert_eq!(lists(vec![on("a", 50, "two"), on("b", 60, "two")], 90), "");
        let kept = cache.get("n", "b").unwrap();
        assert_eq!(lists(vec![on("a", 50, "two"), on("b", 60, "one")], 70), "~a@50>50");
        assert_eq!(node(), "two");
        assert!(cache.get("n", "b").unwrap().is_same(&kept), "what is the same stays the very object");
        // Also where one came as JSON and the other did not.
        assert_eq!(lists(vec![in_protobuf("three")], 60), "?b@60 ~a@50>50");
        assert_eq!(node(), "three");
        // By the time of the list, the server may be where it was before.
        assert_eq!(lists(vec![on("a", 50, "four")], 80), "");
        assert_eq!(listed(vec![on("a", 50, "four")], 95, true), "~a@50>50");
        assert_eq!(node(), "four");
    }
}

#[test]
fn what_is_known_already_is_not_told_again() {
    let (mut writer, cache) = cache(Scopes::all());
    let mut maker = Maker::new();
    let first = maker.pod("a", 1);
    writer.apply([Change::Put(first.clone())]);
    assert_eq!(short(&writer.apply([Change::Put(maker.pod("a", 1))])), "");
    assert!(cache.get("n", "a").unwrap().is_same(&first));
    assert_eq!(short(&writer.apply([Change::Remove { object: maker.pod("x", 2) }])), "");
    assert_eq!(cache.stats().ignored_stale, 0);
    // Without versions, the content tells.
    let bare = |maker: &mut Maker, node| maker.make(&Made { name: "m", node, ..Made::default() });
    assert_eq!(writer.apply([Change::Put(bare(&mut maker, None))]).len(), 1);
    assert_eq!(writer.apply([Change::Put(bare(&mut maker, None))]).len(), 0);
    assert_eq!(writer.apply([Change::Put(bare(&mut maker, Some("n")))]).len(), 1);
}
