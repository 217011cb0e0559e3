use kube_informer::encoding::{Codec, Encoding, Rules};
use kube_informer::object::Intake;
use kube_informer::resource::Resource;
use serde_json::json;

use super::super::paths::Definition;
use super::*;

fn object(content: Value) -> Object {
    let mut object = json!({
        "apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": { "name": "web", "namespace": "shop", "uid": "the-uid", "resourceVersion": "7" },
    });
    for (key, value) in content.as_object().unwrap() {
        object[key] = value.clone();
    }
    let codec = Codec::new(Encoding::Json, "example.com/v1", "Thing", Rules::default()).unwrap();
    Intake::new(codec).object(object.to_string().as_bytes()).unwrap()
}

fn shape(group: &str, plural: &str) -> Shape {
    let resource = Resource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        plural: plural.to_owned(),
        kind: String::new(),
        namespaced: true,
    };
    Shape::known(&resource).unwrap()
}

fn read(content: Value) -> Result<ScaleTarget, String> {
    ScaleTarget::read(&object(content), &shape("apps", "deployments"))
}

#[test]
fn a_workload_says_how_many_and_which() {
    let target = read(json!({
        "spec": { "replicas": 3, "selector": { "matchLabels": { "app": "web", "tier": "front" },
            "matchExpressions": [
                { "key": "env", "operator": "In", "values": ["b", "a"] },
                { "key": "canary", "operator": "DoesNotExist" },
                { "key": "zone", "operator": "Exists", "values": [] },
                { "key": "age", "operator": "NotIn", "values": ["old"] },
            ] }, "template": { "spec": { "containers": "whatever this is" } } },
        "status": { "replicas": 2 },
    }));
    let target = target.unwrap();
    assert_eq!((target.spec_replicas, target.status_replicas), (3, 2));
    assert_eq!((target.namespace.as_str(), target.name.as_str()), ("shop", "web"));
    assert_eq!(target.uid, "the-uid");
    assert_eq!(
        target.selector.unwrap().to_string(),
        "age notin (old),app=web,!canary,env in (a,b),tier=front,zone"
    );
}

#[test]
fn nothing_said_is_one_wanted_and_none_there() {
    for content in [json!({}), json!({ "spec": {} }), json!({ "spec": { "replicas": null }, "status": null })]
    {
        let target = read(content).unwrap();
        assert_eq!((target.spec_replicas, target.status_replicas, target.selector), (1, 0, None));
    }
}

#[test]
fn a_zero_is_a_zero() {
    let target = read(json!({ "spec": { "replicas": 0 }, "status": { "replicas": 0 } })).unwrap();
    assert_eq!((target.spec_replicas, target.status_replicas), (0, 0));
}

#[test]
fn a_selector_of_everything_is_none() {
    for selector in
        [json!({}), json!(null), json!(""), json!({ "matchLabels": {} }), json!({ "matchExpressions": [] })]
    {
        let target = read(json!({ "spec": { "selector": selector } })).unwrap();
        assert_eq!(target.selector, None, "{selector}");
    }
}

#[test]
fn a_selector_may_be_a_text_or_bare_labels() {
    for selector in [json!("app=web,!canary"), json!(" app == web , !canary")] {
        let target = read(json!({ "spec": { "selector": selector } })).unwrap();
        assert_eq!(target.selector.unwrap().to_string(), "app=web,!canary");
    }
    let target = read(json!({ "spec": { "selector": { "app": "web" } } })).unwrap();
    assert_eq!(target.selector.unwrap().to_string(), "app=web");
}

#[test]
fn what_cannot_be_read_is_named_with_its_place() {
    for (content, place) in [
        (json!({ "spec": { "replicas": "three" } }), "/spec/replicas"),
        (json!({ "spec": { "replicas": 1.5 } }), "/spec/replicas"),
        (json!({ "status": { "replicas": [] } }), "/status/replicas"),
        (json!({ "spec": { "selector": 7 } }), "/spec/selector"),
        (json!({ "spec": { "selector": "a in b" } }), "/spec/selector"),
        (json!({ "spec": { "selector": { "matchLabels": { "a": 1 } } } }), "/spec/selector"),
        (json!({ "spec": { "selector": { "app": ["web"] } } }), "/spec/selector"),
        (
            json!({ "spec": { "selector": { "matchExpressions": [{ "key": "a", "operator": "Like" }] } } }),
            "/spec/selector",
        ),
        (
            json!({ "spec": { "selector": { "matchExpressions": [{ "key": "a", "operator": "In" }] } } }),
            "/spec/selector",
        ),
    ] {
        let why = read(content.clone()).unwrap_err();
        assert!(why.contains(place), "{content}: {why}");
    }
}

#[test]
fn a_rollout_may_name_the_workload_that_has_the_selector() {
    let shape = shape("argoproj.io", "rollouts");
    let rollout = object(json!({
        "spec": { "replicas": 2, "workloadRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "base" } },
        "status": { "replicas": 2, "selector": "app=of-argo" },
    }));
    let reading = Reading::of(&rollout, &shape).unwrap();
    let reference = reading.reference.unwrap();
    assert_eq!((reference.kind.as_str(), reference.name.as_str()), ("Deployment", "base"));
    assert_eq!(reading.target.selector.unwrap().to_string(), "app=of-argo");
    let base = object(json!({ "spec": { "replicas": 0, "selector": { "matchLabels": { "app": "base" } } } }));
    assert_eq!(referenced_selector(&base).unwrap().unwrap().to_string(), "app=base");
    assert_eq!(referenced_selector(&object(json!({}))).unwrap(), None);
    // One that has its own needs nobody else's.
    let plain = object(json!({ "spec": { "selector": { "matchLabels": { "app": "own" } } } }));
    let reading = Reading::of(&plain, &shape).unwrap();
    assert_eq!(
        (reading.reference, reading.target.selector.unwrap().to_string()),
        (None, "app=own".to_owned())
    );
}

#[test]
fn odd_paths_are_read_where_they_lead() {
    let definition: Definition = serde_json::from_value(json!({ "spec": { "versions": [{
        "name": "v1", "subresources": { "scale": {
            "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.current",
            "labelSelectorPath": ".status.selectorText",
        } },
    }] } }))
    .unwrap();
    let shape = Shape::declared(&definition, "v1").unwrap();
    let thing = object(json!({
        "spec": { "size": 4, "replicas": 9, "selector": { "matchLabels": { "not": "this" } } },
        "status": { "current": 3, "replicas": 9, "selectorText": "app=thing" },
    }));
    let target = ScaleTarget::read(&thing, &shape).unwrap();
    assert_eq!((target.spec_replicas, target.status_replicas), (4, 3));
    assert_eq!(target.selector.unwrap().to_string(), "app=thing");
}
