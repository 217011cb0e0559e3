use serde_json::json;

use super::*;

fn rules(conditions: &[&str], fail_on: &[&str]) -> Rules {
    let read = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Rules::new(read(conditions), read(fail_on))
}

fn id(name: &str) -> Id {
    Id { target: 0, namespace: "shop".to_owned(), name: name.to_owned() }
}

fn ready(status: &str) -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } })
}

fn see(tracker: &mut Tracker, name: &str, uid: &str, json: &Value) -> Vec<Step> {
    tracker.see(&id(name), Some(Sight { uid, json }))
}

fn gone(tracker: &mut Tracker, name: &str) -> Vec<Step> {
    tracker.see(&id(name), None)
}

/// Objects that were asked for by name.
fn named(rules: Rules, names: &[&str]) -> Tracker {
    let mut tracker = Tracker::new(rules);
    for name in names {
        tracker.expect(id(name));
    }
    tracker
}

#[test]
fn all_objects_must_meet_it() {
    let mut tracker = named(rules(&["condition=Ready"], &[]), &["a", "b"]);
    assert_eq!(see(&mut tracker, "a", "1", &ready("True")), [Step::Met(id("a"))]);
    assert!(tracker.complete().is_empty() && !tracker.is_done());
    assert_eq!(tracker.report(), (2, vec![(&id("b"), "is not there")]));
    assert!(see(&mut tracker, "b", "2", &ready("False")).is_empty());
    assert_eq!(tracker.report().1, [(&id("b"), "Ready is False")]);
    assert_eq!(see(&mut tracker, "b", "2", &ready("True")), [Step::Met(id("b"))]);
    assert!(tracker.is_done());
}

#[test]
fn one_object_is_enough_where_that_was_asked_for() {
    let mut tracker = named(Rules { any_object: true, ..rules(&["condition=Ready"], &[]) }, &["a", "b"]);
    see(&mut tracker, "b", "2", &ready("True"));
    assert!(!tracker.is_done(), "the other one is not known yet");
    tracker.complete();
    assert!(tracker.is_done());
}

#[test]
fn nothing_is_decided_before_everything_was_seen() {
    let mut tracker = Tracker::new(rules(&["condition=Ready"], &[]));
    see(&mut tracker, "a", "1", &ready("True"));
    assert!(!tracker.is_done());
    tracker.complete();
    assert!(tracker.is_done());
}

#[test]
fn what_was_met_stays_met() {
    let mut tracker = named(rules(&["condition=Ready"], &[]), &["a", "b"]);
    tracker.complete();
    see(&mut tracker, "a", "1", &ready("True"));
    assert!(see(&mut tracker, "a", "1", &ready("False")).is_empty());
    see(&mut tracker, "b", "2", &ready("True"));
    assert!(tracker.is_done());
}

#[test]
fn conditions_are_met_one_after_the_other() {
    let mut tracker = named(rules(&["condition=Ready", "delete"], &[]), &["a"]);
    tracker.complete();
    assert!(gone(&mut tracker, "a").is_empty());
    assert_eq!(see(&mut tracker, "a", "1", &ready("True")), [Step::Met(id("a"))]);
    assert!(!tracker.is_done());
    assert_eq!(gone(&mut tracker, "a"), [Step::Met(id("a"))]);
    assert!(tracker.is_done());
}

#[test]
fn creation_comes_first_wherever_it_was_written() {
    let mut tracker = named(rules(&["condition=Ready", "create"], &[]), &["a"]);
    tracker.complete();
    assert!(!tracker.is_done());
    assert_eq!(see(&mut tracker, "a", "1", &ready("False")), [Step::Met(id("a"))]);
    assert_eq!(see(&mut tracker, "a", "1", &ready("True")), [Step::Met(id("a"))]);
    assert!(tracker.is_done());
}

#[test]
fn one_condition_is_enough_where_that_was_asked_for() {
    let either = Rules { any_condition: true, ..rules(&["condition=Ready", "condition=Failed"], &[]) };
    let mut tracker = named(either, &["a"]);
    tracker.complete();
    assert!(see(&mut tracker, "a", "1", &ready("False")).is_empty());
    assert_eq!(tracker.report().1[0].1, "Ready is False; has no condition Failed; it has Ready");
    let failed = json!({ "status": { "conditions": [{ "type": "Failed", "status": "True" }] } });
    assert_eq!(see(&mut tracker, "a", "1", &failed), [Step::Met(id("a"))]);
    assert!(tracker.is_done());
}

#[test]
fn an_object_that_was_deleted_and_made_again_was_deleted() {
    let mut tracker = named(rules(&["delete"], &[]), &["a"]);
    see(&mut tracker, "a", "1", &json!({}));
    tracker.complete();
    assert!(!tracker.is_done());
    assert_eq!(see(&mut tracker, "a", "2", &json!({})), [Step::Met(id("a"))]);
    assert!(tracker.is_done());
}

#[test]
fn what_is_not_there_is_deleted() {
    let mut tracker = named(rules(&["delete"], &[]), &["a"]);
    assert_eq!(tracker.complete(), [Step::Met(id("a"))]);
    assert!(tracker.is_done());
    let mut nobody = Tracker::new(rules(&["delete"], &[]));
    nobody.complete();
    assert!(nobody.is_done());
}

#[test]
fn whoever_waits_for_deletions_waits_for_those_that_were_there() {
    let mut tracker = Tracker::new(rules(&["delete"], &[]));
    see(&mut tracker, "a", "1", &json!({}));
    tracker.complete();
    assert!(see(&mut tracker, "late", "2", &json!({})).is_empty());
    gone(&mut tracker, "a");
    assert!(tracker.is_done());
}

#[test]
fn objects_that_come_later_count_and_those_that_go_do_not() {
    let mut tracker = Tracker::new(rules(&["condition=Ready"], &[]));
    tracker.complete();
    assert!(!tracker.is_done(), "there is nothing yet");
    see(&mut tracker, "old", "1", &ready("False"));
    see(&mut tracker, "new", "2", &ready("True"));
    assert!(!tracker.is_done());
    assert_eq!(gone(&mut tracker, "old"), [Step::Dropped(id("old"))]);
    assert!(tracker.is_done());
}

#[test]
fn an_object_that_was_named_is_waited_for_after_it_went() {
    let mut tracker = named(rules(&["condition=Ready"], &[]), &["a"]);
    see(&mut tracker, "a", "1", &ready("False"));
    tracker.complete();
    assert!(gone(&mut tracker, "a").is_empty() && !tracker.is_done());
    assert_eq!(tracker.report().1, [(&id("a"), "is not there")]);
    assert_eq!(see(&mut tracker, "a", "2", &ready("True")), [Step::Met(id("a"))]);
}

#[test]
fn what_must_not_be_is_told_at_once() {
    let phase = "jsonpath={.status.phase}=Failed";
    let mut tracker = named(rules(&["condition=Ready"], &[phase, "delete"]), &["a", "b"]);
    assert!(tracker.complete().is_empty(), "what never was there was not deleted");
    see(&mut tracker, "b", "2", &ready("False"));
    let failed = see(&mut tracker, "a", "1", &json!({ "status": { "phase": "Failed" } }));
    let seen = "{.status.phase} is Failed".to_owned();
    assert_eq!(failed, [Step::Failed { id: id("a"), condition: phase.to_owned(), seen }]);
    let failed = gone(&mut tracker, "b");
    let seen = "is not there".to_owned();
    assert_eq!(failed, [Step::Failed { id: id("b"), condition: "delete".to_owned(), seen }]);
}

#[test]
fn an_object_that_has_met_everything_can_fail_no_more() {
    let mut tracker = named(rules(&["condition=Ready"], &["condition=Ready=False"]), &["a"]);
    see(&mut tracker, "a", "1", &ready("True"));
    assert!(see(&mut tracker, "a", "1", &ready("False")).is_empty());
}

#[test]
fn what_can_never_be_is_told() {
    let mut tracker = named(rules(&["jsonpath={.status}=x"], &[]), &["a"]);
    let steps = see(&mut tracker, "a", "1", &ready("True"));
    assert!(matches!(&steps[..], [Step::Never { seen, .. }] if seen.contains("not compared")), "{steps:?}");
}
