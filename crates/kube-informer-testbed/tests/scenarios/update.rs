//! Update: whole objects, with and without a version.

use anyhow::Result;
use serde_json::{Value, json};

use crate::harness::{Api, config_map, deployment, pod, scenarios, service};

scenarios![
    an_update_replaces_everything_but_the_identity,
    an_update_of_an_old_version_conflicts,
    an_update_without_a_version_wins_where_the_kind_allows_it,
    an_update_that_changes_nothing_keeps_the_version,
    an_update_of_another_uid_conflicts,
    an_update_must_be_about_the_object_in_the_path,
    an_update_of_a_missing_object_is_refused_or_creates_it,
    the_generation_counts_changes_of_the_spec_only,
    an_update_leaves_the_status_alone,
    a_dry_update_changes_nothing,
    several_managers_share_an_object,
    managers_that_lose_all_their_fields_disappear,
    managed_fields_can_be_reset,
    finalizers_cannot_be_added_to_a_deleted_object,
    the_last_finalizer_removed_by_an_update_ends_the_object,
    immutable_fields_stay,
    immutable_config_maps_and_secrets_stay,
    unknown_fields_in_an_update_are_warned_about_or_refused,
    versions_in_updates_must_be_numbers,
    identity_and_deletion_marks_cannot_be_changed,
];

fn set(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match parent {
        "" => object[key] = value,
        parent => object.pointer_mut(parent).unwrap()[key] = value,
    }
    object
}

async fn an_update_replaces_everything_but_the_identity(api: &Api) -> Result<()> {
    let mut object = config_map("a");
    object["metadata"]["labels"] = json!({ "a": "b" });
    let made = api.post("configmaps", &object).await?.code(201)?;
    let mut new = config_map("a");
    new["metadata"]["resourceVersion"] = made.version().into();
    new["metadata"]["annotations"] = json!({ "c": "d" });
    new["data"] = json!({ "other": "value" });
    api.put("configmaps/a", &new).await?.code(200)?;
    Ok(())
}

async fn an_update_of_an_old_version_conflicts(api: &Api) -> Result<()> {
    let made = api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.put("configmaps/a", &set(made.body.clone(), "/data", json!({ "a": "1" }))).await?.code(200)?;
    api.put("configmaps/a", &set(made.body, "/data", json!({ "a": "2" }))).await?.refused(409, "Conflict")?;
    api.get("configmaps/a").await?.code(200)?;
    let made = api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    api.put("apps/v1:deployments/a", &set(made.body.clone(), "/spec/replicas", 2.into())).await?.code(200)?;
    api.put("apps/v1:deployments/a", &set(made.body, "/spec/replicas", 3.into()))
        .await?
        .refused(409, "Conflict")?;
    Ok(())
}

async fn an_update_without_a_version_wins_where_the_kind_allows_it(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.put("configmaps/a", &set(config_map("a"), "/data", json!({ "a": "1" }))).await?.code(200)?;
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "a" }, "spec": { "holderIdentity": "x" } });
    api.post("coordination.k8s.io/v1:leases", &lease).await?.code(201)?;
    api.put("coordination.k8s.io/v1:leases/a", &set(lease, "/spec/holderIdentity", "y".into())).await?;
    api.post("services", &service("a")).await?.code(201)?;
    api.put("services/a", &set(service("a"), "/spec/ports/0/port", 81.into())).await?;
    let name = api.name("role");
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": { "name": name }, "rules": null });
    api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await?.code(201)?;
    let rules = json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }]);
    api.put(&format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}"), &set(role, "/rules", rules))
        .await?;
    let class = json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": api.name("class") }, "provisioner": "x" });
    api.post("/apis/storage.k8s.io/v1/storageclasses", &class).await?.code(201)?;
    let class = set(class, "/metadata/labels", json!({ "a": "b" }));
    api.put(&format!("/apis/storage.k8s.io/v1/storageclasses/{}", api.name("class")), &class).await?;
    Ok(())
}

async fn an_update_that_changes_nothing_keeps_the_version(api: &Api) -> Result<()> {
    let made = api.post("configmaps", &config_map("a")).await?.code(201)?;
    let same = api.put("configmaps/a", &made.body).await?.code(200)?;
    assert_eq!(same.version(), made.version());
    // Nor does one by somebody else.
    api.put("configmaps/a?fieldManager=other", &config_map("a")).await?.code(200)?;
    let made = api.post("pods", &pod("a")).await?.code(201)?;
    let same = api.put("pods/a", &made.body).await?.code(200)?;
    assert_eq!(same.version(), made.version());
    Ok(())
}

async fn an_update_of_another_uid_conflicts(api: &Api) -> Result<()> {
    let made = api.post("configmaps", &config_map("a")).await?.code(201)?;
    let other = "11111111-2222-3333-4444-555555555555";
    api.put("configmaps/a", &set(made.body.clone(), "/metadata/uid", other.into()))
        .await?
        .refused(409, "Conflict")?;
    api.put("configmaps/a", &set(made.body, "/metadata/uid", "".into())).await?.code(200)?;
    let made = api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    api.put("apps/v1:deployments/a", &set(made.body, "/metadata/uid", other.into()))
        .await?
        .refused(409, "Conflict")?;
    Ok(())
}

async fn an_update_must_be_about_the_object_in_the_path(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.put("configmaps/a", &config_map("b")).await?.refused(400, "BadRequest")?;
    api.put("configmaps/a", &json!({ "kind": "ConfigMap", "apiVersion": "v1" })).await?;
    api.put("configmaps/a", &json!({ "kind": "ConfigMap", "apiVersion": "v1", "metadata": {} })).await?;
    api.put("configmaps/a", &set(config_map("a"), "/metadata/namespace", "default".into()))
        .await?
        .code(400)?;
    api.put("configmaps/a", &set(config_map("a"), "/kind", "ServiceAccount".into())).await?.code(400)?;
    api.put("configmaps", &config_map("a")).await?.code(405)?;
    Ok(())
}

async fn an_update_of_a_missing_object_is_refused_or_creates_it(api: &Api) -> Result<()> {
    api.put("configmaps/a", &config_map("a")).await?.refused(404, "NotFound")?;
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "a" }, "spec": { "leaseDurationSeconds": 1 } });
    api.put("coordination.k8s.io/v1:leases/a", &lease).await?;
    api.put("coordination.k8s.io/v1:leases/b", &set(lease.clone(), "/metadata/name", "b".into())).await?;
    let with_version =
        set(set(lease.clone(), "/metadata/name", "c".into()), "/metadata/resourceVersion", "5".into());
    api.put("coordination.k8s.io/v1:leases/c", &with_version).await?;
    let with_uid = set(
        set(lease, "/metadata/name", "d".into()),
        "/metadata/uid",
        "11111111-2222-3333-4444-555555555555".into(),
    );
    api.put("coordination.k8s.io/v1:leases/d", &with_uid).await?;
    api.put("apps/v1:deployments/a", &deployment("a")).await?.code(404)?;
    api.put("apps/v1:deployments/a/status", &deployment("a")).await?.code(404)?;
    Ok(())
}

async fn the_generation_counts_changes_of_the_spec_only(api: &Api) -> Result<()> {
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    let path = "apps/v1:deployments/a";
    api.merge(path, &json!({ "metadata": { "labels": { "a": "b" } } })).await?.code(200)?;
    api.merge(path, &json!({ "spec": { "replicas": 3 } })).await?.code(200)?;
    api.merge(&format!("{path}/status"), &json!({ "status": { "observedGeneration": 2, "replicas": 3 } }))
        .await?
        .code(200)?;
    api.merge(&format!("{path}/scale"), &json!({ "spec": { "replicas": 4 } })).await?.code(200)?;
    api.merge(path, &json!({ "metadata": { "generation": 99 } })).await?.code(200)?;
    api.post("services", &service("a")).await?.code(201)?;
    api.merge("services/a", &json!({ "spec": { "type": "NodePort" } })).await?.code(200)?;
    api.post("pods", &pod("a")).await?.code(201)?;
    api.merge("pods/a", &json!({ "spec": { "activeDeadlineSeconds": 9 } })).await?.code(200)?;
    Ok(())
}

async fn an_update_leaves_the_status_alone(api: &Api) -> Result<()> {
    let made = api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    let both = set(set(made.body, "/spec/replicas", 2.into()), "/status", json!({ "replicas": 7 }));
    let updated = api.put("apps/v1:deployments/a", &both).await?.code(200)?;
    assert_eq!(updated.body["status"].get("replicas"), None);
    let both = set(set(updated.body, "/spec/replicas", 5.into()), "/status", json!({ "replicas": 7 }));
    let status = api.put("apps/v1:deployments/a/status", &both).await?.code(200)?;
    assert_eq!(
        (status.body["spec"]["replicas"].as_i64(), status.body["status"]["replicas"].as_i64()),
        (Some(2), Some(7))
    );
    Ok(())
}

async fn a_dry_update_changes_nothing(api: &Api) -> Result<()> {
    let made = api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.put("configmaps/a?dryRun=All", &set(made.body, "/data", json!({ "a": "1" }))).await?.code(200)?;
    api.merge("configmaps/a?dryRun=All", &json!({ "data": { "b": "2" } })).await?.code(200)?;
    api.get("configmaps/a").await?.code(200)?;
    Ok(())
}

async fn several_managers_share_an_object(api: &Api) -> Result<()> {
    api.post("apps/v1:deployments?fieldManager=maker", &deployment("a")).await?.code(201)?;
    let path = "apps/v1:deployments/a";
    api.merge(&format!("{path}?fieldManager=scaler"), &json!({ "spec": { "replicas": 2 } }))
        .await?
        .code(200)?;
    api.merge(
        &format!("{path}?fieldManager=labeller"),
        &json!({ "metadata": { "labels": { "x": "y" }, "finalizers": ["example.com/f"] } }),
    )
    .await?
    .code(200)?;
    let image = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": "nginx:2", "env": [{ "name": "A", "value": "1" }] }] } } } });
    api.patch(&format!("{path}?fieldManager=roller"), "strategic-merge", &image).await?.code(200)?;
    api.merge(
        &format!("{path}/status?fieldManager=controller"),
        &json!({ "status": { "replicas": 2,
        "conditions": [{ "type": "Available", "status": "True", "reason": "R", "message": "M" }] } }),
    )
    .await?
    .code(200)?;
    Ok(())
}

async fn managers_that_lose_all_their_fields_disappear(api: &Api) -> Result<()> {
    api.post("configmaps?fieldManager=one", &config_map("a")).await?.code(201)?;
    api.merge("configmaps/a?fieldManager=two", &json!({ "data": { "key": "two" } })).await?.code(200)?;
    api.merge("configmaps/a?fieldManager=three", &json!({ "data": { "key": null, "other": "x" } }))
        .await?
        .code(200)?;
    api.merge("configmaps/a?fieldManager=three", &json!({ "data": null })).await?.code(200)?;
    Ok(())
}

async fn managed_fields_can_be_reset(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.merge("configmaps/a", &json!({ "metadata": { "managedFields": [{}] } })).await?.code(200)?;
    api.merge("configmaps/a", &json!({ "data": { "x": "y" } })).await?.code(200)?;
    let mut object = config_map("b");
    object["metadata"]["managedFields"] = json!([{ "manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": { "f:data": {} } }]);
    api.post("configmaps", &object).await?;
    object["metadata"]["managedFields"] = json!([{ "manager": "m", "operation": "Nonsense" }]);
    api.post("configmaps?dryRun=All", &object).await?;
    Ok(())
}

async fn finalizers_cannot_be_added_to_a_deleted_object(api: &Api) -> Result<()> {
    let mut object = config_map("a");
    object["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    api.post("configmaps", &object).await?.code(201)?;
    api.delete("configmaps/a").await?.code(200)?;
    api.merge(
        "configmaps/a",
        &json!({ "metadata": { "finalizers": ["example.com/one", "example.com/two", "example.com/three"] } }),
    )
    .await?;
    api.merge("configmaps/a", &json!({ "metadata": { "finalizers": ["example.com/one"] } }))
        .await?
        .code(200)?;
    api.merge("configmaps/a", &json!({ "data": { "still": "possible" } })).await?.code(200)?;
    Ok(())
}

async fn the_last_finalizer_removed_by_an_update_ends_the_object(api: &Api) -> Result<()> {
    let mut object = config_map("a");
    object["metadata"]["finalizers"] = json!(["example.com/f"]);
    api.post("configmaps", &object).await?.code(201)?;
    api.delete("configmaps/a").await?.code(200)?;
    let mut now = api.get("configmaps/a").await?.code(200)?.body;
    now["metadata"]["finalizers"] = json!([]);
    api.put("configmaps/a", &now).await?.code(200)?;
    api.get("configmaps/a").await?.code(404)?;
    api.put("configmaps/a", &now).await?;
    Ok(())
}

async fn immutable_fields_stay(api: &Api) -> Result<()> {
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    api.merge("apps/v1:deployments/a", &json!({ "spec": { "selector": { "matchLabels": { "app": "b" } } } }))
        .await?
        .code(422)?;
    api.post("pods", &pod("a")).await?.code(201)?;
    api.merge("pods/a", &json!({ "spec": { "hostNetwork": true } })).await?.code(422)?;
    api.merge("pods/a", &json!({ "spec": { "restartPolicy": "Never" } })).await?.code(422)?;
    api.patch(
        "pods/a",
        "strategic-merge",
        &json!({ "spec": { "containers": [{ "name": "main", "image": "nginx:2" }] } }),
    )
    .await?
    .code(200)?;
    api.post("services", &service("a")).await?.code(201)?;
    api.merge(
        "services/a",
        &json!({ "spec": { "clusterIP": "10.99.99.99", "clusterIPs": ["10.99.99.99"] } }),
    )
    .await?;
    api.post("secrets", &json!({ "metadata": { "name": "a" }, "type": "example.com/x" })).await?.code(201)?;
    api.merge("secrets/a", &json!({ "type": "example.com/y" })).await?.code(422)?;
    api.post("persistentvolumeclaims", &json!({ "metadata": { "name": "a" }, "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } })).await?.code(201)?;
    api.merge("persistentvolumeclaims/a", &json!({ "spec": { "accessModes": ["ReadWriteMany"] } })).await?;
    Ok(())
}

async fn immutable_config_maps_and_secrets_stay(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.merge("configmaps/a", &json!({ "immutable": true })).await?.code(200)?;
    api.merge("configmaps/a", &json!({ "immutable": false })).await?.code(422)?;
    api.merge("configmaps/a", &json!({ "immutable": null })).await?.code(422)?;
    api.merge("configmaps/a", &json!({ "data": { "key": "new" } })).await?.code(422)?;
    api.merge("configmaps/a", &json!({ "binaryData": { "x": "AA==" } })).await?.code(422)?;
    api.merge("configmaps/a", &json!({ "metadata": { "labels": { "a": "b" } } })).await?.code(200)?;
    api.post(
        "secrets",
        &json!({ "metadata": { "name": "a" }, "immutable": true, "stringData": { "a": "b" } }),
    )
    .await?
    .code(201)?;
    api.merge("secrets/a", &json!({ "data": { "a": "AA==" } })).await?.code(422)?;
    api.merge("secrets/a", &json!({ "stringData": { "a": "c" }, "immutable": false })).await?.code(422)?;
    Ok(())
}

async fn unknown_fields_in_an_update_are_warned_about_or_refused(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    let odd = set(set(config_map("a"), "/surprise", 1.into()), "/metadata/odd", json!({}));
    api.put("configmaps/a", &odd).await?.code(200)?;
    api.put("configmaps/a?fieldValidation=Ignore", &odd).await?.code(200)?;
    api.put("configmaps/a?fieldValidation=Strict", &odd).await?.code(400)?;
    api.merge("configmaps/a", &json!({ "surprise": 1 })).await?;
    api.merge("configmaps/a?fieldValidation=Strict", &json!({ "surprise": 1 })).await?;
    api.merge("configmaps/a?fieldValidation=Ignore", &json!({ "surprise": 1 })).await?;
    Ok(())
}

async fn versions_in_updates_must_be_numbers(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for version in ["nonsense", "-1", "1.5", "99999999999999999999", "0"] {
        api.put("configmaps/a", &set(config_map("a"), "/metadata/resourceVersion", version.into())).await?;
    }
    Ok(())
}

async fn identity_and_deletion_marks_cannot_be_changed(api: &Api) -> Result<()> {
    let made = api.post("configmaps", &config_map("a")).await?.code(201)?;
    for (field, value) in [
        ("creationTimestamp", json!("2001-01-01T00:00:00Z")),
        ("creationTimestamp", Value::Null),
        ("deletionTimestamp", json!("2001-01-01T00:00:00Z")),
        ("deletionGracePeriodSeconds", json!(5)),
        ("generateName", json!("x-")),
        ("selfLink", json!("/x")),
        ("generation", json!(5)),
    ] {
        api.put("configmaps/a", &set(made.body.clone(), &format!("/metadata/{field}"), value)).await?;
    }
    Ok(())
}
