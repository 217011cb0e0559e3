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
