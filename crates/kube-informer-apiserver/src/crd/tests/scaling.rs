use serde_json::{Value, json};

use super::{served, shown, with_version};
use crate::crd::{scale_get, scale_set, scale_to_patch, validate};
use crate::kinds::Resource;

fn scalable() -> Resource {
    served(with_version(json!({
        "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
        "subresources": { "scale": {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.sel",
        } },
    })))
}

fn built_in(group: &str, plural: &str) -> Resource {
    Resource { group: group.to_owned(), plural: plural.to_owned(), custom: None, ..scalable() }
}

fn object(spec: Value) -> Value {
    json!({
        "apiVersion": "ex.com/v1", "kind": "Foo",
        "metadata": { "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7", "labels": { "x": "y" } },
        "spec": spec,
    })
}

#[test]
fn a_custom_object_shows_its_scale() {
    let mut foo = object(json!({ "replicas": 3 }));
    foo["status"] = json!({ "replicas": 2, "sel": "a=b" });
    assert_eq!(
        scale_get(&scalable(), &foo).unwrap(),
        json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": { "name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7" },
            "spec": { "replicas": 3 }, "status": { "replicas": 2, "selector": "a=b" },
        })
    );
}

#[test]
fn without_replicas_there_is_no_scale_but_a_patch_may_set_them() {
    let resource = scalable();
    let mut foo = object(json!({}));
    let error = scale_get(&resource, &foo).unwrap_err();
    assert_eq!(
        error.message,
        r#"Internal error occurred: the spec replicas field ".spec.replicas" does not exist"#
    );
    let mut scale = scale_to_patch(&resource, &foo).unwrap();
    let error = scale_set(&resource, &mut foo, &scale).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (400, r#"the spec replicas field ".spec.replicas" cannot be empty"#)
    );
    scale["spec"]["replicas"] = json!(3);
    scale_set(&resource, &mut foo, &scale).unwrap();
    assert_eq!(foo["spec"], json!({ "replicas": 3 }));
}

#[test]
fn setting_a_scale_carries_the_version_that_it_is_based_on() {
    let resource = scalable();
    let mut foo = object(json!({ "replicas": 3 }));
    scale_set(&resource, &mut foo, &json!({ "metadata": { "resourceVersion": "6" }, "spec": {} })).unwrap();
    assert_eq!(foo["spec"]["replicas"], 0);
    assert_eq!(foo["metadata"]["resourceVersion"], "6");
}

#[test]
fn a_scale_for_another_uid_is_a_conflict() {
    let mut deployment = object(json!({ "replicas": 3 }));
    let scale = json!({ "metadata": { "uid": "zzz" }, "spec": { "replicas": 1 } });
    let error = scale_set(&built_in("apps", "deployments"), &mut deployment, &scale).unwrap_err();
    assert_eq!(
        error.message,
        "Operation cannot be fulfilled on deployments.apps \"a\": StorageError: invalid object, Code: 4, Key: /registry/deployments/ns/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: zzz, UID in object meta: u"
    );
}

#[test]
fn built_in_kinds_serialise_their_selector() {
    let deployment = object(json!({ "replicas": 2, "selector": {
        "matchLabels": { "b": "x", "a": "y" },
        "matchExpressions": [
            { "key": "a", "operator": "In", "values": ["y", "q"] },
            { "key": "z", "operator": "DoesNotExist" },
            { "key": "b", "operator": "Exists" },
        ],
    } }));
    let scale = scale_get(&built_in("apps", "deployments"), &deployment).unwrap();
    assert_eq!(scale["status"], json!({ "replicas": 0, "selector": "a=y,a in (q,y),b=x,b,!z" }));
    let controller = object(json!({ "replicas": 2, "selector": { "b": "x", "a": "y" } }));
    let scale = scale_get(&built_in("", "replicationcontrollers"), &controller).unwrap();
    assert_eq!(scale["status"]["selector"], "a=y,b=x");
}

#[test]
fn built_in_kinds_refuse_negative_replicas() {
    let mut deployment = object(json!({ "replicas": 3 }));
    let error =
        scale_set(&built_in("apps", "deployments"), &mut deployment, &json!({ "spec": { "replicas": -1 } }));
    assert_eq!(
        error.unwrap_err().message,
        r#"Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"#
    );
}

#[test]
fn replicas_of_custom_objects_are_small_natural_numbers() {
    let errors =
        |replicas: Value| shown(&validate(&scalable(), &object(json!({ "replicas": replicas })), None));
    assert_eq!(errors(json!(-1)), [".spec.replicas: Invalid value: -1: should be a non-negative integer"]);
    assert_eq!(
        errors(json!(3_000_000_000_u32)),
        [".spec.replicas: Invalid value: 3000000000: should be less than or equal to 2147483647"]
    );
    assert_eq!(
        errors(json!("x")),
        [
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64"
        ]
    );
}
