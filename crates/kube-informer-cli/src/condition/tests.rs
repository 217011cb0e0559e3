use serde_json::json;

use super::*;

fn condition(text: &str) -> Condition {
    text.parse().unwrap()
}

fn check(text: &str, object: &Value) -> Verdict {
    condition(text).check(Some(object))
}

fn pod() -> Value {
    json!({
        "metadata": { "name": "web", "generation": 3 },
        "status": {
            "phase": "Running",
            "replicas": 3,
            "ratio": 0.5,
            "done": true,
            "conditions": [
                { "type": "Initialized", "status": "True" },
                { "type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "one of two\nwaits" },
                { "type": "Old", "status": "True", "observedGeneration": 2 },
                { "type": "New", "status": "True", "observedGeneration": 3 },
                { "type": "Odd", "status": "Almost" },
            ],
            "nodes": ["a", "b"],
        },
    })
}

#[test]
fn a_condition_without_a_value_is_to_be_true() {
    let pod = pod();
    assert!(check("condition=Initialized", &pod).is_met());
    assert!(!check("condition=Ready", &pod).is_met());
    assert!(check("condition=Ready=False", &pod).is_met());
    assert!(check("condition=Odd=almost", &pod).is_met());
}

#[test]
fn names_and_statuses_are_compared_without_regard_to_case() {
    let pod = pod();
    assert!(check("condition=INITIALIZED=tRUE", &pod).is_met());
    assert!(equal_fold("Straße", "straße") && equal_fold("\u{212a}", "k") && equal_fold("ΣΑΣ", "σας"));
    assert!(!equal_fold("Ready", "Read") && !equal_fold("a", "b") && !equal_fold("ss", "ß"));
}

#[test]
fn a_condition_of_an_older_generation_does_not_count() {
    let mut pod = pod();
    let verdict = check("condition=Old", &pod);
    assert!(!verdict.is_met());
    assert_eq!(verdict.seen, "Old is True, but that is about generation 2, and the object is at 3");
    assert!(check("condition=New", &pod).is_met());
    // The whole status may be about an older one; a condition that says more is believed.
    pod["status"]["observedGeneration"] = json!(2);
    assert!(!check("condition=Initialized", &pod).is_met());
    assert!(check("condition=New", &pod).is_met());
}

#[test]
fn what_was_seen_is_said_with_reason_and_message() {
    let pod = pod();
    assert_eq!(check("condition=ready", &pod).seen, "ready is False (ContainersNotReady: one of two waits)");
    assert_eq!(
        check("condition=Gone", &pod).seen,
        "has no condition Gone; it has Initialized, Ready, Old, New, Odd"
    );
    assert_eq!(check("condition=Ready", &json!({})).seen, "has no condition Ready; it has none");
    assert_eq!(condition("condition=Ready").check(None).seen, "is not there");
}

#[test]
fn a_path_is_compared_as_text() {
    let pod = pod();
    for met in [
        "jsonpath={.status.phase}=Running",
        "jsonpath=.status.phase=Running",
        "jsonpath=status.phase=Running",
        "jsonpath={.status.phase}='Running'",
        "jsonpath={.status.phase}=\"Running\"",
        "jsonpath={.status.replicas}=3",
        "jsonpath={.status.ratio}=0.5",
        "jsonpath={.status.done}=true",
        "jsonpath={.status.phase}",
        "jsonpath={.status.nodes}",
        "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}=False",
        "jsonpath={.status.conditions[?(@.observedGeneration>=3)].type}=New",
        "jsonpath=.status.conditions[?(@.type==\"Ready\")].status=False",
    ] {
        let verdict = check(met, &pod);
        assert!(verdict.is_met(), "{met}: {verdict:?}");
    }
    for not_yet in [
        "jsonpath={.status.phase}=running",
        "jsonpath={.status.missing}",
        "jsonpath={.status.missing[0]}",
        "jsonpath={.status.nodes[7]}=a",
        "jsonpath={.status.conditions[?(@.type==\"None\")].status}=False",
    ] {
        assert_eq!(check(not_yet, &pod).outcome, Outcome::NotYet, "{not_yet}");
    }
    for never in ["jsonpath={.status.nodes}=a", "jsonpath={.status.nodes[*]}=a", "jsonpath={.status}=x"] {
        assert_eq!(check(never, &pod).outcome, Outcome::Never, "{never}");
    }
}

#[test]
fn what_is_there_is_created_and_what_is_not_is_deleted() {
    let pod = pod();
    assert!(check("create", &pod).is_met() && !condition("Create").check(None).is_met());
    assert!(!check("delete", &pod).is_met() && condition("DELETE").check(None).is_met());
    assert_eq!(check("delete", &pod).seen, "is there, and nobody has asked for its deletion");
    let going = json!({ "metadata": { "deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["a/b"] } });
    let seen = "is there, its deletion was asked for at 2030-01-01T00:00:00Z, its finalizers are a/b";
    assert_eq!(check("delete", &going).seen, seen);
}

#[test]
fn what_cannot_be_waited_for_is_explained() {
    for (text, expected) in [
        ("", "is nothing to wait for"),
        ("ready", "is nothing to wait for"),
        ("Condition=Ready", "is nothing to wait for"),
        ("condition=", "lacks a name or a value"),
        ("condition=Ready=", "lacks a name or a value"),
        ("jsonpath=", "has no path"),
        ("jsonpath={.a}=", "has no value"),
        ("jsonpath=.a=b=c", "more than one equals sign"),
        ("jsonpath={.a[}", "unterminated array at character 4"),
        ("jsonpath={.a}{.b}", "is no path"),
        ("jsonpath={.a", "is no path"),
    ] {
        let error = text.parse::<Condition>().unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn what_is_seen_is_one_line_of_bounded_length() {
    let long = json!({ "status": { "phase": "é\n".repeat(1000) } });
    let seen = check("jsonpath={.status.phase}", &long).seen;
    assert!(seen.chars().count() <= SHOWN + 1 && !seen.contains('\n'), "{seen}");
}
