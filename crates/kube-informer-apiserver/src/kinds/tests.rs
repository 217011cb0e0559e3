use super::*;
use crate::schema::{Codec, ListType, NodeKind, Schema};

fn at(schema: &Schema, path: &str) -> Schema {
    path.split('.').fold(schema.clone(), |at, name| {
        if name == "[]" { at.items().unwrap() } else { at.field(name).unwrap() }
    })
}

fn find(group: &str, plural: &str) -> &'static Resource {
    builtin().iter().find(|r| r.is(group, plural)).unwrap()
}

#[test]
fn the_core_group_comes_first_and_every_resource_that_is_written_has_a_schema() {
    assert!(builtin()[0].group.is_empty());
    for resource in builtin() {
        assert!(resource.schema.is_some(), "{}", resource.plural);
        let plain = resource
            .subresources
            .iter()
            .filter(|s| ["status", "scale", "eviction", "token", "binding"].contains(&s.name.as_str()));
        for subresource in plain {
            let schema = kind(&subresource.group, &subresource.version, &subresource.kind);
            assert!(schema.is_some(), "{}/{}", resource.plural, subresource.name);
        }
    }
}

#[test]
fn deployments_are_as_discovery_says() {
    let deployments = find("apps", "deployments");
    assert_eq!(deployments.api_version(), "apps/v1");
    assert_eq!((deployments.kind.as_str(), deployments.singular.as_str()), ("Deployment", "deployment"));
    assert_eq!(deployments.short_names, ["deploy"]);
    assert_eq!(deployments.categories, ["all"]);
    assert!(deployments.namespaced && deployments.has_subresource("status"));
    let scale = deployments.subresources.iter().find(|s| s.name == "scale").unwrap();
    assert_eq!(
        (scale.group.as_str(), scale.version.as_str(), scale.kind.as_str()),
        ("autoscaling", "v1", "Scale")
    );
    assert!(!find("", "nodes").namespaced);
    assert_eq!(find("authorization.k8s.io", "selfsubjectaccessreviews").verbs, ["create"]);
}

#[test]
fn places_know_how_they_are_merged_and_written() {
    let pods = find("", "pods").schema.clone().unwrap();
    let containers = at(&pods, "spec.containers");
    assert_eq!(containers.get().list, ListType::Map(vec!["name".to_owned()]));
    assert_eq!(containers.get().merge_key.as_deref(), Some("name"));
    assert!(containers.get().merge);
    let ports = at(&pods, "spec.containers.[].ports");
    assert_eq!(ports.get().list, ListType::Map(vec!["containerPort".to_owned(), "protocol".to_owned()]));
    assert_eq!(at(&ports, "[].protocol").get().default, Some("TCP".into()));
    assert!(at(&pods, "spec.nodeSelector").get().atomic_map);
    assert!(at(&pods, "spec.volumes").get().retain_keys);
    assert_eq!(at(&pods, "spec.containers.[].resources.limits.cpu").get().kind, NodeKind::Quantity);
    let start = at(&pods, "status.startTime");
    let go = start.get().go.clone().unwrap();
    assert_eq!((go.codec, go.pointer, go.name.as_str()), (Codec::Time, true, "v1.Time"));
    assert_eq!(at(&pods, "metadata.finalizers").get().list, ListType::Set);
    assert!(at(&pods, "metadata.creationTimestamp").get().go.as_ref().unwrap().omit_zero);
    // Overrides the type's own `atomic`.
    let volumes = find("", "persistentvolumes").schema.clone().unwrap();
    assert!(!at(&volumes, "spec.claimRef").get().atomic_map);
    assert!(at(&volumes, "spec.storageClassName").get().go.is_some());
}

#[test]
fn recursive_types_are_finite() {
    let crds = find("apiextensions.k8s.io", "customresourcedefinitions").schema.clone().unwrap();
    let root = at(&crds, "spec.versions.[].schema.openAPIV3Schema");
    let inner = at(&root, "properties.x.properties.y");
    assert_eq!(inner.get().definition, root.get().definition);
    assert!(inner.set.nodes.len() < 4000, "{}", inner.set.nodes.len());
}

#[test]
fn the_hash_of_a_stored_kind_follows_from_its_name() {
    // Custom resources compute it; built-in ones have it from discovery. Both are the same function.
    for (group, plural) in [("", "pods"), ("apps", "deployments"), ("rbac.authorization.k8s.io", "roles")] {
        let builtin = find(group, plural);
        let mut custom = builtin.clone();
        custom.custom = Some(Arc::new(crate::discovery::tests::blank()));
        assert_eq!(custom.storage_version_hash(), builtin.storage_version_hash(), "{plural}");
    }
    assert_eq!(find("authentication.k8s.io", "tokenreviews").storage_version_hash(), "");
}
