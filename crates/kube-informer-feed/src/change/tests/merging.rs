//! Two changes as one.

use super::*;

fn state(replicas: u32, image: &str) -> Value {
    json!({
        "spec": {
            "replicas": replicas,
            "template": { "spec": { "containers": [{ "name": "web", "image": image }] } },
        },
    })
}

#[test]
fn changes_that_follow_each_other_are_one_from_the_oldest_to_the_newest() {
    let first = change(state(1, "web:1"), state(2, "web:1"));
    let second = change(state(2, "web:1"), state(3, "web:2"));
    let both = Change::merge(&first, &second).unwrap();
    assert_eq!((both.summary.as_str(), both.coalesced), ("replicas 1→3; image web 1→2", 2));
    assert_eq!(both.classes, [Class::Scale, Class::Image]);
    let third = change(state(3, "web:2"), state(1, "web:2"));
    let all = Change::merge(&both, &third).unwrap();
    assert_eq!((all.summary.as_str(), all.coalesced), ("image web 1→2", 3));
}

#[test]
fn what_came_and_changed_came_as_it_is_now() {
    let added = Change::added(&deployment(state(1, "web:1"))).unwrap();
    let sidecar =
        containers(json!([{ "name": "web", "image": "web:1" }, { "name": "sidecar", "image": "envoy:1" }]));
    let mut with_sidecar = state(4, "web:1");
    with_sidecar["spec"]["template"] = sidecar["spec"]["template"].clone();
    with_sidecar["metadata"]["labels"] = json!({ "a": "b" });
    let modified = change(state(1, "web:1"), with_sidecar.clone());
    let both = Change::merge(&added, &modified).unwrap();
    assert_eq!((both.what, &*both.classes, both.coalesced), (What::Added, &[Class::Create][..], 2));
    let at_once = Change::added(&deployment(with_sidecar.clone())).unwrap();
    assert_eq!((&both.changes, &both.summary), (&at_once.changes, &at_once.summary));
    assert_eq!(both.summary, "created; replicas 4; image sidecar envoy:1; image web web:1");
    // A container that came and went was never there.
    let gone = Change::merge(&both, &change(with_sidecar, state(4, "web:2"))).unwrap();
    assert_eq!(gone.summary, "created; replicas 4; image web web:2");
}

#[test]
fn what_changed_and_went_is_gone() {
    let modified = change(state(1, "web:1"), state(2, "web:1"));
    let deleted = Change::deleted(&deployment(state(2, "web:1")), false).unwrap();
    let both = Change::merge(&modified, &deleted).unwrap();
    assert_eq!((both.what, both.reason, both.coalesced), (What::Deleted, Some(Reason::FoundMissing), 2));
    assert_eq!(both.summary, deleted.summary);
}

#[test]
fn nothing_is_merged_across_an_end() {
    let object = deployment(state(1, "web:1"));
    let mut other = state(1, "web:1");
    other["metadata"]["uid"] = "u2".into();
    let other = deployment(other);
    let (added, deleted) = (Change::added(&object).unwrap(), Change::deleted(&object, true).unwrap());
    let modified = change(state(1, "web:1"), state(2, "web:1"));
    let recreated = Change::added(&other).unwrap();
    let of_other = Change::modified(&other, &other).unwrap();
    for (earlier, later) in [
        (&deleted, &added),
        (&deleted, &recreated),
        (&deleted, &modified),
        (&deleted, &deleted),
        (&added, &deleted),
        (&added, &added),
        (&modified, &added),
        (&modified, &recreated),
        (&modified, &of_other),
    ] {
        assert_eq!(Change::merge(earlier, later), None, "{earlier} then {later}");
    }
}
