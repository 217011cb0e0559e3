//! Namespaces: made, ended, refused.

use anyhow::Result;
use serde_json::json;

use crate::harness::{Api, config_map, scenarios};

scenarios![
    a_namespace_is_made_with_its_finalizer_and_label,
    a_namespace_ends_when_its_finalizer_is_removed,
    a_terminating_namespace_takes_nothing_new,
    namespaces_are_validated,
    the_namespace_of_the_server_stays,
    a_namespace_is_updated_and_its_status_apart,
];

async fn a_namespace_is_made_with_its_finalizer_and_label(api: &Api) -> Result<()> {
    let name = api.name("ns");
    api.post("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?.code(201)?;
    api.get(&format!("/api/v1/namespaces/{name}")).await?.code(200)?;
    let dry = api.name("dry");
    api.post("/api/v1/namespaces?dryRun=All", &json!({ "metadata": { "name": dry } })).await?.code(201)?;
    api.get(&format!("/api/v1/namespaces/{dry}")).await?.refused(404, "NotFound")?;
    Ok(())
}

async fn a_namespace_ends_when_its_finalizer_is_removed(api: &Api) -> Result<()> {
    let name = api.name("ns");
    let path = format!("/api/v1/namespaces/{name}");
    let mut object = json!({ "metadata": { "name": name, "finalizers": ["example.com/hold"] } });
    api.post("/api/v1/namespaces", &object).await?.code(201)?;
    api.delete(&path).await?.code(200)?;
    // The controller of the embedded server removes the namespace's own finalizer by itself.
    api.merge(&format!("{path}/finalize"), &json!({ "spec": { "finalizers": [] } })).await.ok();
    object = api.peek(&path).await?.body;
    object["spec"]["finalizers"] = json!([]);
    api.put(&format!("{path}/finalize"), &object).await.ok();
    api.forget();
    api.get(&path).await?.code(200)?;
    api.merge(&path, &json!({ "metadata": { "finalizers": null } })).await?.code(200)?;
    api.until(&path, |answer| answer.code == 404).await?;
    api.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}

async fn a_terminating_namespace_takes_nothing_new(api: &Api) -> Result<()> {
    let name = api.name("ns");
    let path = format!("/api/v1/namespaces/{name}");
    api.post(
        "/api/v1/namespaces",
        &json!({ "metadata": { "name": name, "finalizers": ["example.com/hold"] } }),
    )
    .await?
    .code(201)?;
    api.delete(&path).await?.code(200)?;
    api.post(&format!("{path}/configmaps"), &config_map("a")).await?.refused(403, "Forbidden")?;
    api.post(
        &format!("/apis/coordination.k8s.io/v1/namespaces/{name}/leases"),
        &json!({ "metadata": { "name": "a" }, "spec": {} }),
    )
    .await?
    .refused(403, "Forbidden")?;
    api.post("/api/v1/namespaces", &json!({ "metadata": { "name": name } }))
        .await?
        .refused(409, "AlreadyExists")?;
    Ok(())
}

async fn namespaces_are_validated(api: &Api) -> Result<()> {
    for name in ["Upper", "has.dot", "-a", ""] {
        api.post("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?.code(422)?;
    }
    api.post("/api/v1/namespaces", &json!({ "metadata": { "name": "x".repeat(64) } })).await?.code(422)?;
    api.post("/api/v1/namespaces", &json!({ "metadata": { "name": "default" } }))
        .await?
        .refused(409, "AlreadyExists")?;
    let dotted = json!({ "metadata": { "name": api.name("n") }, "spec": { "finalizers": ["bad one"] } });
    api.post("/api/v1/namespaces", &dotted).await?.code(422)?;
    Ok(())
}

async fn the_namespace_of_the_server_stays(api: &Api) -> Result<()> {
    for name in ["default", "kube-system", "kube-public"] {
        api.delete(&format!("/api/v1/namespaces/{name}")).await?.refused(403, "Forbidden")?;
    }
    api.delete("/api/v1/namespaces/kube-node-lease?dryRun=All").await?;
    Ok(())
}

async fn a_namespace_is_updated_and_its_status_apart(api: &Api) -> Result<()> {
    let name = api.name("ns");
    let path = format!("/api/v1/namespaces/{name}");
    api.post("/api/v1/namespaces", &json!({ "metadata": { "name": name, "labels": { "a": "b" } } }))
        .await?
        .code(201)?;
    api.merge(&path, &json!({ "metadata": { "labels": { "c": "d", "kubernetes.io/metadata.name": "other" } }, "spec": { "finalizers": [] } })).await?.code(200)?;
    api.merge(&path, &json!({ "metadata": { "labels": null } })).await?.code(200)?;
    api.merge(&path, &json!({ "status": { "phase": "Terminating" } })).await?.code(200)?;
    api.get(&format!("{path}/status")).await?.code(200)?;
    api.merge(&format!("{path}/status"), &json!({ "status": { "phase": "Terminating" } })).await?;
    Ok(())
}
