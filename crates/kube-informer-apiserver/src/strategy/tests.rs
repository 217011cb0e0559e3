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
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: String::new(),
        plural: plural.to_owned(),
        singular: String::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        list_kind: String::new(),
        verbs: Vec::new(),
        subresources: vec![Subresource {
            name: "status".to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: String::new(),
            verbs: Vec::new(),
        }],
        schema: None,
        storage_version: version.to_owned(),
        custom: None,
    }
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
        Ok(wanted.unwrap_or_else(|| fields::text(self.0, &["spec", "clusterIP"])).to_owned())
    }

    fn node_port(&mut self, wanted: Option<i64>) -> Result<i64, String> {
        let first = fields::list(self.0, &["spec", "ports"]).first();
        let stored = first.and_then(|port| fields::int(port, &["nodePort"]));
        Ok(wanted.or(stored).unwrap_or(30000))
    }
}

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
                    Value::String(text) => in_status && text.is_empty(),
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
