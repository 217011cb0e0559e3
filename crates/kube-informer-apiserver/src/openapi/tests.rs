use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::kinds::{builtin, test_resource};

fn apps() -> Value {
    document(builtin(), "apps", "v1").unwrap()
}

fn references(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            out.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|v| references(v, out));
        }
        Value::Array(items) => items.iter().for_each(|v| references(v, out)),
        _ => {}
    }
}

#[test]
fn every_reference_of_every_document_leads_somewhere() {
    for (group, version) in group_versions(builtin()) {
        let document = document(builtin(), &group, &version).unwrap();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for name in found {
            let name = name.strip_prefix("#/components/schemas/").unwrap();
            let schema = document.pointer(&format!("/components/schemas/{name}"));
            assert!(schema.is_some(), "{group}/{version}: {name}");
        }
    }
}

#[test]
fn a_patch_takes_field_validation() {
    let document = apps();
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({ "group": "apps", "version": "v1", "kind": "Deployment" })
    );
    let parameters = patch["parameters"].as_array().unwrap();
    assert!(parameters.iter().any(|p| p["name"] == "fieldValidation" && p["in"] == "query"));
}

#[test]
fn lists_say_how_they_are_merged() {
    let document = apps();
    let pod = &document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"];
    assert_eq!(pod["containers"]["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(pod["containers"]["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(pod["containers"]["x-kubernetes-list-map-keys"], json!(["name"]));
    let deployment = &document["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"];
    assert_eq!(deployment["strategy"]["x-kubernetes-patch-strategy"], "retainKeys");
}

#[test]
fn the_index_points_at_every_document_with_a_hash() {
    let index = index(builtin());
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    assert!(url.starts_with("/openapi/v3/apis/apps/v1?hash="), "{url}");
    assert!(index["paths"]["api/v1"].is_object());
    assert_eq!(document(builtin(), "apps", "v9"), None);
}

#[test]
fn a_custom_resource_gets_its_own_schema_and_a_new_hash_when_that_changes() {
    let make = |open_api: Value| {
        let mut resource = test_resource("example.com", "v1", "Foo", "foos");
        let mut custom = crate::discovery::tests::blank();
        custom.open_api = open_api;
        resource.custom = Some(Arc::new(custom));
        vec![Arc::new(resource)]
    };
    let size = json!({ "type": "object", "properties": { "size": { "type": "integer" } } });
    let one = make(size);
    let document = document(&one, "example.com", "v1").unwrap();
    let foo = &document["components"]["schemas"]["com.example.v1.Foo"];
    assert_eq!(foo["properties"]["size"], json!({ "type": "integer" }));
    assert_eq!(foo["x-kubernetes-group-version-kind"][0]["kind"], "Foo");
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for name in found {
        let name = name.strip_prefix("#/components/schemas/").unwrap();
        assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
    }
    assert_ne!(index(&one), index(&make(json!({ "type": "object" }))));
}
