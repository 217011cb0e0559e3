use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::crd::CustomResource;
use crate::kinds::{builtin, test_resource};

/// A definition that says nothing.
pub(crate) fn blank() -> CustomResource {
    CustomResource::default()
}

fn custom(group: &str, version: &str) -> Arc<Resource> {
    let mut resource = test_resource(group, version, "Foo", "foos");
    resource.custom = Some(Arc::new(blank()));
    resource.storage_version = "v1".to_owned();
    resource.short_names = vec!["fo".to_owned()];
    resource.subresources = vec![
        Subresource {
            name: "status".to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: "Foo".to_owned(),
            verbs: vec!["get".to_owned(), "patch".to_owned(), "update".to_owned()],
        },
        Subresource {
            name: "scale".to_owned(),
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            kind: "Scale".to_owned(),
            verbs: vec!["get".to_owned(), "patch".to_owned(), "update".to_owned()],
        },
    ];
    Arc::new(resource)
}

#[test]
fn versions_are_ordered_by_what_clients_should_prefer() {
    let mut versions = [
        "foo10",
        "v1alpha1",
        "v10beta3",
        "v2",
        "v11alpha2",
        "v1",
        "foo1",
        "v10",
        "v1beta2",
        "v0",
        "v1beta1",
        "v3x",
    ];
    versions.sort_by_key(|v| priority(v));
    assert_eq!(
        versions,
        [
            "v10",
            "v2",
            "v1",
            "v10beta3",
            "v1beta2",
            "v1beta1",
            "v11alpha2",
            "v1alpha1",
            "foo1",
            "foo10",
            "v0",
            "v3x"
        ]
    );
}

#[test]
fn custom_groups_follow_the_built_in_ones_with_their_best_version_first() {
    let mut all = builtin().to_vec();
    all.insert(0, custom("z.example.com", "v1"));
    all.push(custom("a.example.com", "v1beta1"));
    all.push(custom("a.example.com", "v1"));
    let list = group_list(&all);
    let names: Vec<&str> =
        list["groups"].as_array().unwrap().iter().filter_map(|g| g["name"].as_str()).collect();
    assert_eq!(names[..2], ["apiregistration.k8s.io", "apps"]);
    assert_eq!(names[names.len() - 2..], ["a.example.com", "z.example.com"]);
    assert_eq!(
        group(&all, "a.example.com").unwrap(),
        json!({
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": "a.example.com",
            "versions": [
                { "groupVersion": "a.example.com/v1", "version": "v1" },
                { "groupVersion": "a.example.com/v1beta1", "version": "v1beta1" },
            ],
            "preferredVersion": { "groupVersion": "a.example.com/v1", "version": "v1" },
        })
    );
    assert_eq!(group(&all, ""), None);
    assert_eq!(group(&all, "nope"), None);
}

#[test]
fn the_core_group_is_only_in_its_own_documents() {
    let all = builtin();
    assert!(aggregated(all, false)["items"].as_array().unwrap().iter().all(|g| g["metadata"] != json!({})));
    let core = aggregated(all, true);
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
    assert_eq!(core["items"][0]["metadata"], json!({}));
    assert_eq!(resource_list(all, "", "v1").unwrap()["groupVersion"], "v1");
    assert_eq!(resource_list(all, "apps", "v7"), None);
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    list["resources"].as_array().unwrap().iter().find(|r| r["name"] == name).unwrap()
}

#[test]
fn subresources_name_the_group_of_a_foreign_kind_only() {
    let list = resource_list(builtin(), "apps", "v1").unwrap();
    assert_eq!(
        *named(&list, "deployments/scale"),
        json!({
            "name": "deployments/scale", "singularName": "", "namespaced": true,
            "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"],
        })
    );
    assert_eq!(
        *named(&list, "deployments/status"),
        json!({
            "name": "deployments/status", "singularName": "", "namespaced": true,
            "kind": "Deployment", "verbs": ["get", "patch", "update"],
        })
    );
    assert_eq!(named(&list, "deployments")["storageVersionHash"], "8aSe+NMegvE=");
    assert_eq!(named(&list, "deployments")["shortNames"], json!(["deploy"]));
}

/// As kube-apiserver 1.37.1 shows a CustomResourceDefinition of this form.
#[test]
fn a_custom_resource_is_shown_as_on_the_real_server() {
    let all = [custom("example.com", "v1beta1")];
    let list = resource_list(&all, "example.com", "v1beta1").unwrap();
    assert_eq!(named(&list, "foos")["storageVersionHash"], "4XyhoHMtUhg=");
    assert_eq!(named(&list, "foos/scale")["group"], "autoscaling");
    assert_eq!(named(&list, "foos/status").get("group"), None);
    let found = aggregated(&all, false);
    let resource = &found["items"][0]["versions"][0]["resources"][0];
    assert_eq!(
        resource["responseKind"],
        json!({ "group": "example.com", "version": "v1beta1", "kind": "Foo" })
    );
    assert_eq!(
        resource["subresources"][1]["responseKind"],
        json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" })
    );
}

#[test]
fn the_root_lists_each_group_and_version_once_and_sorted() {
    let root = root_paths(builtin());
    let paths: Vec<&str> = root["paths"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(paths.is_sorted());
    for path in ["/api/v1", "/apis/apps", "/apis/apps/v1", "/openapi/v3", "/version"] {
        assert_eq!(paths.iter().filter(|p| **p == path).count(), 1, "{path}");
    }
}

#[test]
fn the_version_is_the_release_that_is_imitated_and_says_so() {
    let version = version();
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("37")));
    assert_eq!(version["gitVersion"], "v1.37.1+kube-informer");
}
