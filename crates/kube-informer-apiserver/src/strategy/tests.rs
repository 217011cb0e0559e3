//! The recorded answers of kube-apiserver 1.37.1, played through defaults, admission, strategy and
//! validation.
//!
//! Every line of the `.jsonl` files is one request (`object`, and for updates the stored `old`) and what
//! the real server made of it: the object that it stored, or its errors.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::service::Allocator;
use super::*;
use crate::fields::tests::any_json;
use crate::kinds::Subresource;
use crate::{defaults, validation};

/// Group and plural of the kinds that the recordings are about.
pub(crate) const RESOURCES: &[(&str, &str)] = &[
    ("", "pods"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("", "services"),
    ("", "endpoints"),
    ("", "configmaps"),
    ("", "secrets"),
    ("", "namespaces"),
    ("", "nodes"),
    ("", "persistentvolumes"),
    ("", "persistentvolumeclaims"),
    ("", "events"),
    ("", "limitranges"),
    ("", "serviceaccounts"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("apps", "daemonsets"),
    ("batch", "jobs"),
    ("batch", "cronjobs"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("policy", "poddisruptionbudgets"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("discovery.k8s.io", "endpointslices"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "csidrivers"),
    ("coordination.k8s.io", "leases"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
];

pub(crate) fn resource(group: &str, plural: &str) -> Resource {
    let version = if group == "autoscaling" { "v2" } else { "v1" };
    let status = Subresource {
        name: "status".to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: String::new(),
        verbs: Vec::new(),
    };
    Resource { subresources: vec![status], ..crate::kinds::test_resource(group, version, "", plural) }
}

fn recorded(case: &Value) -> Resource {
    let mut resource = resource(fields::text(case, &["group"]), fields::text(case, &["plural"]));
    resource.version = fields::text(case, &["version"]).to_owned();
    resource.namespaced = fields::is_true(case, &["namespaced"]);
    resource
}

fn cases(text: &'static str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap())
}

/// Gives what the real server gave.
struct Recorded<'a>(&'a Value);

impl Allocator for Recorded<'_> {
    fn cluster_ip(&mut self, wanted: Option<&str>) -> Result<String, String> {
        if let Some(ip) = wanted.filter(|ip| !ip.starts_with("10.0.0.")) {
            return Err(format!(
                "the provided IP ({ip}) is not in the valid range. The range of valid IPs is 10.0.0.0/24"
            ));
        }
        Ok(wanted.unwrap_or_else(|| fields::text(self.0, &["spec", "clusterIP"])).to_owned())
    }

    fn node_port(&mut self, wanted: Option<i64>) -> Result<i64, String> {
        let first = fields::list(self.0, &["spec", "ports"]).first();
        let stored = first.and_then(|port| fields::int(port, &["nodePort"]));
        Ok(wanted.or(stored).unwrap_or(30000))
    }
}

/// Fields that the Go types write even when they are empty.
const WRITTEN_EMPTY: &[&str] = &["serviceName", "reportingComponent", "reportingInstance"];

/// What is left when everything empty is taken away: the schema writes empty things where the Go types
/// do. A status also loses its zeroes.
fn bare(value: &Value, in_status: bool) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter_map(|(key, value)| {
                let value = bare(value, in_status || key == "status");
                let empty = match &value {
                    Value::Null => true,
                    Value::Object(map) => map.is_empty(),
                    Value::Array(items) => items.is_empty(),
                    Value::String(text) => {
                        (in_status || WRITTEN_EMPTY.contains(&key.as_str())) && text.is_empty()
                    }
                    Value::Number(number) => in_status && number.as_i64() == Some(0),
                    Value::Bool(flag) => in_status && !flag,
                };
                (!empty).then(|| (key.clone(), value))
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| bare(item, in_status)).collect()),
        value => value.clone(),
    }
}

/// An error as far as it is compared: a Go value or a diff in it is not ours to reproduce.
fn comparable(error: &str) -> String {
    let first = error.split("\n").next().unwrap_or_default();
    let field = first.split(": ").next().unwrap_or_default();
    let go_value = first.contains("\":null") && first.contains("Invalid value: {\"")
        || first.contains("Invalid value: [{\"") && first.contains("\"Spec\"")
        || field == "spec.template"
        || field == "spec.volumeClaimTemplates";
    if go_value {
        let why = first.rsplit(": ").next().unwrap_or_default();
        return format!("{field}: … {why}");
    }
    first.to_owned()
}

fn now(stored: &Value) -> Timestamp {
    let time = fields::text(stored, &["metadata", "creationTimestamp"]);
    time.parse().unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The outcome as one text, for a readable difference.
fn outcome(errors: Vec<String>, stored: &Value) -> String {
    if errors.is_empty() {
        let mut stored = bare(stored, false);
        for field in ["resourceVersion", "managedFields"] {
            fields::remove(&mut stored, &["metadata", field]);
        }
        return serde_json::to_string_pretty(&stored).unwrap();
    }
    errors.iter().map(|error| comparable(error)).collect::<Vec<_>>().join("\n")
}

fn expected(case: &Value) -> String {
    let errors = fields::list(case, &["errors"]).iter().map(|error| error.as_str().unwrap().to_owned());
    outcome(errors.collect(), case.get("stored").unwrap_or(&Value::Null))
}

fn shown(errors: &[crate::status::FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn play_create(case: &Value) -> String {
    let resource = recorded(case);
    let stored = case.get("stored").unwrap_or(&Value::Null);
    let mut object = case["object"].clone();
    let is_service = resource.is("", "services");
    defaults::apply(&resource, &mut object);
    // The core's part.
    for field in ["uid", "name", "creationTimestamp"] {
        if fields::at(stored, &["metadata", field]).is_some() {
            fields::copy(stored, &mut object, &["metadata", field]);
        }
    }
    if let Some(uid) = fields::at(case, &["uid"]) {
        fields::set(&mut object, &["metadata", "uid"], uid.clone());
    }
    let none = |_: &str, _: &str| Vec::new();
    if let Err(error) = admission::create(&resource, &mut object, &none) {
        return error.message;
    }
    let mut errors = Vec::new();
    if is_service {
        errors = shown(&service::normalise(None, &mut object));
    }
    prepare_create(&resource, &mut object, now(stored));
    if errors.is_empty() {
        errors = shown(&validation::create(&resource, &object));
    }
    if errors.is_empty() && is_service {
        errors = shown(&service::allocate(&mut object, &mut Recorded(stored)));
    }
    outcome(errors, &object)
}

fn play_update(case: &Value) -> String {
    let resource = recorded(case);
    let stored = case.get("stored").unwrap_or(&Value::Null);
    let old = &case["old"];
    let mut new = case["object"].clone();
    defaults::apply(&resource, &mut new);
    let mut errors = Vec::new();
    if case["verb"] == "update_status" {
        prepare_status_update(&resource, old, &mut new, Timestamp::UNIX_EPOCH);
        errors = shown(&validation::update_status(&resource, old, &new));
        // The one time that is not the client's.
        if resource.is("", "persistentvolumes") {
            fields::copy(stored, &mut new, &["status", "lastPhaseTransitionTime"]);
        }
    } else {
        admission::update(&resource, old, &mut new);
        if resource.is("", "services") {
            errors = shown(&service::normalise(Some(old), &mut new));
        }
        prepare_update(&resource, old, &mut new);
        if errors.is_empty() {
            errors = shown(&validation::update(&resource, old, &new));
        }
        if errors.is_empty() && resource.is("", "services") {
            errors = shown(&service::allocate(&mut new, &mut Recorded(stored)));
        }
    }
    outcome(errors, &new)
}

/// Plays all cases and reports those that differ.
fn compare(text: &'static str, play: fn(&Value) -> String) {
    let mut wrong = Vec::new();
    for case in cases(text) {
        let (expected, got) = match fields::text(&case, &["message"]) {
            // Refused by admission, which has no causes.
            message if fields::int(&case, &["code"]) == Some(403) => (message.to_owned(), play(&case)),
            _ => (expected(&case), play(&case)),
        };
        if expected != got {
            wrong.push(format!("## {}\n-- kube-apiserver\n{expected}\n-- ours\n{got}\n", case["case"]));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn created_objects_are_stored_as_the_real_server_stores_them() {
    compare(include_str!("tests/created.jsonl"), play_create);
}

#[test]
fn bad_objects_are_refused_in_the_words_of_the_real_server() {
    compare(include_str!("tests/refused.jsonl"), play_create);
}

#[test]
fn updates_are_stored_or_refused_as_on_the_real_server() {
    compare(include_str!("tests/updated.jsonl"), play_update);
}

#[test]
fn deletes_go_the_way_they_go_on_the_real_server() {
    for case in cases(include_str!("tests/deleted.jsonl")) {
        let resource = recorded(&case);
        for step in fields::list(&case, &["steps"]) {
            let options = deletion::DeleteOptions {
                grace_period_seconds: fields::int(step, &["options", "gracePeriodSeconds"]),
                propagation_policy: fields::at(step, &["options", "propagationPolicy"])
                    .and_then(Value::as_str)
                    .map(str::to_owned),
                orphan_dependents: fields::at(step, &["options", "orphanDependents"])
                    .and_then(Value::as_bool),
            };
            let mut object = step["before"].clone();
            let after = &step["after"];
            // The moment of the delete, worked out from what it wrote.
            let end: Option<Timestamp> = fields::text(after, &["metadata", "deletionTimestamp"]).parse().ok();
            let grace = fields::int(after, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or_default();
            let now = end.map_or(Timestamp::UNIX_EPOCH, |end| {
                end.checked_sub(jiff::SignedDuration::from_secs(grace)).unwrap()
            });
            let events = match deletion::begin(&resource, &mut object, &options, now) {
                deletion::Deletion::Remove => vec!["DELETED"],
                deletion::Deletion::Update { remove: true } => vec!["MODIFIED", "DELETED"],
                deletion::Deletion::Update { remove: false } => vec!["MODIFIED"],
                deletion::Deletion::Unchanged => vec![],
            };
            assert_eq!(json!(events), step["events"], "{} {}", case["case"], step["options"]);
            if !after.is_null() {
                assert_eq!(outcome(Vec::new(), &object), outcome(Vec::new(), after), "{}", case["case"]);
            }
        }
    }
}

fn custom(status: bool) -> Resource {
    let mut custom = resource("example.com", "widgets");
    custom.custom =
        Some(std::sync::Arc::new(crate::crd::CustomResource { status: true, ..Default::default() }));
    if !status {
        custom.subresources.clear();
    }
    custom
}

#[test]
fn the_status_of_a_custom_resource_is_written_through_its_subresource_alone() {
    let widget = custom(true);
    let mut object = json!({ "metadata": { "name": "w" }, "spec": { "a": 1 }, "status": { "b": 1 } });
    prepare_create(&widget, &mut object, Timestamp::UNIX_EPOCH);
    assert_eq!(object, json!({ "metadata": { "name": "w", "generation": 1 }, "spec": { "a": 1 } }));

    let old = object;
    let mut new = old.clone();
    new["status"] = json!({ "b": 2 });
    new["spec"]["a"] = json!(2);
    let mut status = new.clone();
    prepare_update(&widget, &old, &mut new);
    assert_eq!(new, json!({ "metadata": { "name": "w", "generation": 2 }, "spec": { "a": 2 } }));

    fields::set(&mut status, &["metadata", "labels"], json!({ "l": "1" }));
    prepare_status_update(&widget, &old, &mut status, Timestamp::UNIX_EPOCH);
    assert_eq!(
        status,
        json!({ "metadata": { "name": "w", "generation": 1 }, "spec": { "a": 1 }, "status": { "b": 2 } })
    );
}

#[test]
fn without_a_status_subresource_status_is_content_like_any_other() {
    let widget = custom(false);
    let old = json!({ "metadata": { "generation": 3 }, "status": { "b": 1 } });
    let mut new = json!({ "metadata": { "labels": { "l": "1" } }, "status": { "b": 1 } });
    prepare_update(&widget, &old, &mut new);
    assert_eq!(new["metadata"]["generation"], 3);
    new["status"]["b"] = json!(2);
    prepare_update(&widget, &old, &mut new);
    assert_eq!(new["metadata"]["generation"], 4);
}

#[test]
fn the_last_finalizer_takes_the_object_along() {
    let (cm, ns) = (resource("", "configmaps"), resource("", "namespaces"));
    let old = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"] } });
    let done = json!({ "metadata": { "finalizers": [] } });
    assert!(deletion::ends_with_update(&cm, &old, &done));
    assert!(!deletion::ends_with_update(&cm, &old, &old));
    assert!(!deletion::ends_with_update(&cm, &json!({}), &done));
    assert!(!deletion::ends_with_update(&ns, &old, &json!({ "spec": { "finalizers": ["kubernetes"] } })));
    let waiting = json!({ "metadata": { "deletionTimestamp": "x", "deletionGracePeriodSeconds": 30 } });
    assert!(!deletion::ends_with_update(&cm, &waiting, &done));
}

#[test]
fn a_pod_gets_the_priority_of_its_class_or_of_the_default() {
    let pods = resource("", "pods");
    let classes = |_: &str, plural: &str| match plural {
        "priorityclasses" => vec![
            json!({ "metadata": { "name": "high" }, "value": 9, "preemptionPolicy": "Never" }),
            json!({ "metadata": { "name": "usual" }, "value": 3, "globalDefault": true }),
        ],
        _ => Vec::new(),
    };
    let admit = |spec: Value| {
        let mut pod = json!({ "metadata": { "name": "p" }, "spec": spec });
        admission::create(&pods, &mut pod, &classes).map(|()| pod)
    };
    let high = admit(json!({ "priorityClassName": "high" })).unwrap();
    assert_eq!((&high["spec"]["priority"], &high["spec"]["preemptionPolicy"]), (&json!(9), &json!("Never")));
    let usual = admit(json!({})).unwrap();
    assert_eq!(
        (&usual["spec"]["priority"], &usual["spec"]["priorityClassName"]),
        (&json!(3), &json!("usual"))
    );
    let error = admit(json!({ "priorityClassName": "nope" })).unwrap_err();
    assert_eq!(error.message, "pods \"p\" is forbidden: no PriorityClass with name nope was found");
}

#[test]
fn a_claim_gets_the_newest_default_class() {
    let classes = |_: &str, _: &str| {
        let class = |name: &str, time: &str| {
            let mark = json!({ "storageclass.kubernetes.io/is-default-class": "true" });
            json!({ "metadata": { "name": name, "creationTimestamp": time, "annotations": mark } })
        };
        vec![class("old", "2026-01-01T00:00:00Z"), class("new", "2026-01-02T00:00:00Z")]
    };
    let mut claim = json!({ "spec": {} });
    admission::create(&resource("", "persistentvolumeclaims"), &mut claim, &classes).unwrap();
    assert_eq!(claim["spec"]["storageClassName"], "new");
}

#[test]
fn a_put_creates_where_the_real_server_lets_it() {
    for (group, plural, creates) in [
        ("coordination.k8s.io", "leases", true),
        ("", "services", true),
        ("rbac.authorization.k8s.io", "roles", true),
        ("", "configmaps", false),
        ("", "pods", false),
        ("example.com", "unknown", false),
    ] {
        assert_eq!(allows_create_on_update(&resource(group, plural)), creates, "{plural}");
    }
    assert!(!allows_create_on_update(&custom(true)));
    assert!(!allows_unconditional_update(&custom(true)));
}

#[test]
fn finalize_is_the_only_way_to_a_namespaces_finalizers() {
    let old = json!({ "metadata": { "uid": "u" }, "spec": { "finalizers": ["kubernetes"] },
                      "status": { "phase": "Terminating" } });
    let sent = json!({ "metadata": {}, "spec": { "finalizers": [] }, "status": { "phase": "Active" } });
    let mut updated = sent.clone();
    prepare_update(&resource("", "namespaces"), &old, &mut updated);
    assert_eq!(updated["spec"], old["spec"]);
    let mut finalized = sent.clone();
    prepare_finalize(&old, &mut finalized);
    assert_eq!(finalized["spec"], sent["spec"]);
    assert_eq!(finalized["status"], old["status"]);
}

#[test]
fn sizes_are_limited() {
    let object =
        json!({ "metadata": { "name": "c", "namespace": "n" }, "data": { "a": "x".repeat(1 << 20) } });
    let maps = resource("", "configmaps");
    assert_eq!(validation::create(&maps, &object), []);
    let object = json!({
        "metadata": { "name": "c", "namespace": "n", "annotations": { "a": "x".repeat(1 << 18) } },
        "data": { "a": "x".repeat((1 << 20) + 1) },
    });
    let errors = shown(&validation::create(&maps, &object));
    assert_eq!(
        errors,
        [
            "metadata.annotations: Too long: may not be more than 262144 bytes",
            "[]: Too long: may not be more than 1048576 bytes"
        ]
    );
}

/// Objects whose fields have real names and any values: what a hostile client would send.
fn any_object() -> impl Strategy<Value = Value> {
    let names = [
        "containers",
        "initContainers",
        "volumes",
        "ports",
        "env",
        "valueFrom",
        "resources",
        "limits",
        "requests",
        "template",
        "spec",
        "metadata",
        "labels",
        "selector",
        "matchLabels",
        "matchExpressions",
        "strategy",
        "type",
        "rollingUpdate",
        "maxSurge",
        "replicas",
        "schedule",
        "jobTemplate",
        "clusterIP",
        "clusterIPs",
        "ipFamilies",
        "subsets",
        "addresses",
        "endpoints",
        "rules",
        "http",
        "paths",
        "backend",
        "service",
        "name",
        "finalizers",
        "ownerReferences",
        "tolerations",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "annotations",
        "status",
        "phase",
        "conditions",
        "metrics",
        "behavior",
        "scaleUp",
        "policies",
        "data",
        "accessModes",
        "capacity",
        "storage",
        "cpu",
        "hostPath",
        "path",
        "value",
        "key",
        "operator",
    ];
    any_json().prop_recursive(6, 80, 6, move |inner| {
        let name = prop::sample::select(names.to_vec()).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_that_a_client_sends_makes_the_strategies_panic(
        index in 0..RESOURCES.len(), old in any_object(), new in any_object(), grace in any::<Option<i64>>(),
    ) {
        let resource = resource(RESOURCES[index].0, RESOURCES[index].1);
        let now = Timestamp::UNIX_EPOCH;
        let (mut first, mut second) = (old, new);
        defaults::apply(&resource, &mut first);
        let _ = admission::create(&resource, &mut first, &|_, _| vec![]);
        if resource.is("", "services") {
            service::normalise(None, &mut first);
        }
        prepare_create(&resource, &mut first, now);
        validation::create(&resource, &first);
        defaults::apply(&resource, &mut second);
        admission::update(&resource, &first, &mut second);
        if resource.is("", "services") {
            service::normalise(Some(&first), &mut second);
            service::allocate(&mut second, &mut Recorded(&first));
        }
        let mut third = second.clone();
        prepare_update(&resource, &first, &mut second);
        validation::update(&resource, &first, &second);
        prepare_status_update(&resource, &first, &mut third, now);
        validation::update_status(&resource, &first, &third);
        let options = deletion::DeleteOptions { grace_period_seconds: grace, ..Default::default() };
        deletion::begin(&resource, &mut second, &options, now);
        deletion::begin(&resource, &mut second, &options, Timestamp::MAX);
    }

    #[test]
    fn an_update_that_changes_nothing_does_not_count(index in 0..RESOURCES.len(), spec in any_object()) {
        let resource = resource(RESOURCES[index].0, RESOURCES[index].1);
        let mut old = json!({ "metadata": { "name": "a", "uid": "u" }, "spec": spec });
        defaults::apply(&resource, &mut old);
        prepare_create(&resource, &mut old, Timestamp::UNIX_EPOCH);
        let mut new = old.clone();
        prepare_update(&resource, &old, &mut new);
        prop_assert_eq!(&old["metadata"]["generation"], &new["metadata"]["generation"]);
        prop_assert_eq!(&old["status"], &new["status"]);
    }
}
