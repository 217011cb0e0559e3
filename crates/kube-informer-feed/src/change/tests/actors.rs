//! Who is said to have written.

use super::*;

const KUBECTL: (&str, &str) = ("kubectl", "");
const NOTES: (&str, &str) = ("kube-controller-manager", "");
const STATUS: (&str, &str) = ("kube-controller-manager", "status");
const SCALE: (&str, &str) = ("demo", "scale");

/// A deployment that was created in the first second, and who wrote it in which one.
fn written(replicas: u32, ready: u32, writers: &[((&str, &str), u32)]) -> Value {
    let at = |second: u32| format!("2026-01-01T00:00:{second:02}Z");
    let writers = writers.iter().map(|((manager, subresource), second)| {
        json!({ "manager": manager, "operation": "Update", "time": at(*second), "subresource": subresource })
    });
    json!({
        "metadata": { "creationTimestamp": at(1), "managedFields": writers.collect::<Vec<_>>() },
        "spec": { "replicas": replicas }, "status": { "readyReplicas": ready },
    })
}

fn manager(change: &Change) -> &str {
    &change.actor.as_ref().unwrap().manager
}

#[test]
fn who_wrote_within_the_same_second_is_who_writes_what_has_changed() {
    let writers = [(KUBECTL, 1), (STATUS, 1)];
    assert_eq!(manager(&change(written(1, 1, &writers), written(2, 1, &writers))), "kubectl");
    assert_eq!(manager(&change(written(1, 0, &writers), written(1, 1, &writers))), "kube-controller-manager");
    assert_eq!(change(json!({}), json!({ "spec": { "replicas": 2 } })).actor, None);
}

#[test]
fn who_answered_later_with_a_status_has_not_changed_the_rest() {
    let old = written(1, 1, &[(KUBECTL, 1), (STATUS, 2)]);
    let scaled = |writers: &[_]| change(old.clone(), written(0, 0, writers));
    assert_eq!(manager(&scaled(&[(KUBECTL, 1), (SCALE, 3), (STATUS, 4)])), "demo");
    assert_eq!(manager(&scaled(&[(KUBECTL, 1), (SCALE, 3), (NOTES, 4), (STATUS, 4)])), "demo");
    assert_eq!(manager(&scaled(&[(KUBECTL, 4), (SCALE, 3), (STATUS, 4)])), "kubectl", "of two, the last");
    assert_eq!(manager(&scaled(&[(KUBECTL, 1), (NOTES, 4), (STATUS, 4)])), "kube-controller-manager");
}

#[test]
fn who_made_an_object_is_who_wrote_it_when_it_was_created() {
    let made = |writers: &[_]| Change::added(&deployment(written(1, 1, writers))).unwrap();
    assert_eq!(manager(&made(&[(KUBECTL, 1)])), "kubectl");
    assert_eq!(manager(&made(&[(KUBECTL, 1), (NOTES, 1), (STATUS, 2)])), "kubectl");
    assert_eq!(manager(&made(&[(KUBECTL, 1), (SCALE, 2)])), "kubectl");
    assert_eq!(manager(&made(&[(NOTES, 1), (STATUS, 1)])), "kube-controller-manager");
    assert_eq!(manager(&made(&[(KUBECTL, 3), (STATUS, 5)])), "kubectl", "who made it has written it again");
    assert_eq!(Change::added(&deployment(json!({}))).unwrap().actor, None);
}

#[test]
fn what_a_controller_owns_the_controllers_may_have_written() {
    let mut owned = written(1, 1, &[(NOTES, 1), (SCALE, 1)]);
    owned["metadata"]["ownerReferences"] = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u0", "controller": true }]);
    let mut scaled = owned.clone();
    scaled["spec"]["replicas"] = 2.into();
    scaled["metadata"]["managedFields"][0]["time"] = "2026-01-01T00:00:05Z".into();
    scaled["metadata"]["managedFields"][1]["time"] = "2026-01-01T00:00:04Z".into();
    assert_eq!(manager(&change(owned, scaled)), "kube-controller-manager");
}

#[test]
fn of_two_that_are_one_it_is_who_did_more_than_to_answer() {
    let writers = |scale: u32, status: u32| [(KUBECTL, 1), (SCALE, scale), (STATUS, status)];
    let scaled = change(written(1, 1, &writers(2, 2)), written(0, 1, &writers(3, 2)));
    let answered = change(written(0, 1, &writers(3, 2)), written(0, 0, &writers(3, 4)));
    assert_eq!((manager(&scaled), manager(&answered)), ("demo", "kube-controller-manager"));
    assert_eq!(manager(&Change::merge(&scaled, &answered).unwrap()), "demo");
    assert_eq!(manager(&Change::merge(&answered, &scaled).unwrap()), "demo");
    let made = Change::added(&deployment(written(1, 1, &[(KUBECTL, 1)]))).unwrap();
    assert_eq!(manager(&Change::merge(&made, &scaled).unwrap()), "kubectl");
}

/// The same, and something of it as well.
fn with(mut document: Value, place: &str, value: Value) -> Value {
    let (parent, field) = place.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap()[field] = value;
    document
}

const LAST: [((&str, &str), u32); 2] = [(KUBECTL, 1), (STATUS, 3)];
const DELETION: &str = "/metadata/deletionTimestamp";

#[test]
fn nobody_is_named_for_a_deletion_that_begins() {
    let old = written(1, 1, &[(KUBECTL, 1), (NOTES, 1)]);
    let new = with(old.clone(), DELETION, "2026-01-01T00:05:00Z".into());
    let terminating = change(old, new);
    assert_eq!((terminating.summary.as_str(), terminating.actor), ("terminating", None));
    // Nor is whoever wrote something else meanwhile.
    let new = with(written(1, 0, &[(KUBECTL, 1), (STATUS, 4)]), DELETION, "2026-01-01T00:05:00Z".into());
    assert_eq!(change(written(1, 1, &LAST), new).actor, None);
}

#[test]
fn nobody_is_named_for_the_node_that_a_pod_is_given() {
    let pod = |document: Value| object("v1", "Pod", &named(document));
    let old = written(1, 1, &[(KUBECTL, 1), (NOTES, 1)]);
    let new = with(old.clone(), "/spec/nodeName", "n1".into());
    let bound = Change::modified(&pod(old), &pod(new)).unwrap();
    assert_eq!((paths(&bound), &bound.actor), (vec!["/spec/nodeName"], &None));
    // Of other kinds, it is a field like any other.
    let old = written(1, 1, &[(KUBECTL, 1)]);
    let new = with(written(1, 1, &[(KUBECTL, 2)]), "/spec/nodeName", "n1".into());
    assert_eq!(manager(&change(old, new)), "kubectl");
}

#[test]
fn nobody_is_named_who_only_took_something_away() {
    let old = |place: &str, value: Value| with(written(1, 1, &LAST[..1]), place, value);
    let labels = old("/metadata/labels", json!({ "app": "web", "tier": "front" }));
    let fewer = with(labels.clone(), "/metadata/labels", json!({ "tier": "front" }));
    assert_eq!(change(labels.clone(), fewer).actor, None);
    let other = with(labels.clone(), "/metadata/labels/app", "api".into());
    assert_eq!(manager(&change(labels, other)), "kubectl", "within the same second");
    // The second one moves up.
    let finalizers = old("/metadata/finalizers", json!(["a.io/a", "b.io/b"]));
    let fewer = with(finalizers.clone(), "/metadata/finalizers", json!(["b.io/b"]));
    assert_eq!(change(finalizers, fewer).actor, None);
}

#[test]
fn who_wrote_before_the_last_second_has_not_written_again() {
    // Somebody has written the status since: who sets something now has an entry of that second, or a later one.
    let old = written(1, 1, &LAST);
    assert_eq!(change(old.clone(), written(2, 1, &LAST)).actor, None);
    assert_eq!(manager(&change(old, written(1, 0, &LAST))), "kube-controller-manager");
}

#[test]
fn of_two_that_are_one_nobody_is_named_for_what_nobody_is_known_for() {
    let old = written(1, 1, &LAST);
    let terminating = with(old.clone(), DELETION, "2026-01-01T00:05:00Z".into());
    let ready = with(written(1, 0, &[(KUBECTL, 1), (STATUS, 4)]), DELETION, "2026-01-01T00:05:00Z".into());
    let begun = change(old.clone(), terminating.clone());
    let answered = change(terminating, ready);
    assert_eq!(manager(&answered), "kube-controller-manager");
    assert_eq!(Change::merge(&begun, &answered).unwrap().actor, None);
    let scaled = written(2, 1, &[(KUBECTL, 4), (STATUS, 3)]);
    let begun = change(scaled.clone(), with(scaled.clone(), DELETION, "2026-01-01T00:05:00Z".into()));
    assert_eq!(Change::merge(&change(old.clone(), scaled), &begun).unwrap().actor, None);
    // Somebody took a label away, and the status was an answer to that; or came before.
    let labelled = with(old.clone(), "/metadata/labels", json!({ "app": "web" }));
    let taken = change(labelled.clone(), old.clone());
    let answered = change(old, written(1, 0, &[(KUBECTL, 1), (STATUS, 4)]));
    assert_eq!(manager(&answered), "kube-controller-manager");
    assert_eq!(Change::merge(&taken, &answered).unwrap().actor, None);
    assert_eq!(Change::merge(&answered, &taken).unwrap().actor, None);
    // Nobody knows who brought it in: whoever answered did not.
    let entered = Change { what: What::Added, ..taken };
    assert_eq!(Change::merge(&entered, &answered).unwrap().actor, None);
}
