//! What a server says about itself: groups, resources, version, health, and paths that lead nowhere.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Api, scenarios};

scenarios![
    groups_and_versions_are_listed,
    the_resources_of_each_group_are_listed,
    aggregated_discovery_holds_the_same,
    health_is_told_in_one_word,
    the_version_has_its_shape,
    paths_that_lead_nowhere_are_not_found,
    documents_are_only_read,
    a_wrong_token_is_refused,
    the_openapi_documents_are_there,
];

const GROUPS: [&str; 16] = [
    "apps",
    "batch",
    "coordination.k8s.io",
    "autoscaling",
    "apiextensions.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "events.k8s.io",
    "discovery.k8s.io",
    "scheduling.k8s.io",
    "node.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "admissionregistration.k8s.io",
];

/// The groups that both servers have: the real one serves some that have no place in memory.
fn resources(document: &Value) -> Vec<Value> {
    document["resources"].as_array().cloned().unwrap_or_default()
}

async fn groups_and_versions_are_listed(api: &Api) -> Result<()> {
    api.get("/api").await?.code(200)?;
    let groups = api.peek("/apis").await?.code(200)?.body;
    api.note("kind of the list", json!([groups["kind"], groups["apiVersion"]]));
    for group in GROUPS {
        let listed = groups["groups"].as_array().into_iter().flatten().find(|listed| listed["name"] == group);
        api.note(&format!("{group} in the list"), listed.cloned().unwrap_or_default());
        api.get(&format!("/apis/{group}")).await?.code(200)?;
    }
    Ok(())
}

async fn the_resources_of_each_group_are_listed(api: &Api) -> Result<()> {
    for version in [
        "/api/v1",
        "/apis/apps/v1",
        "/apis/batch/v1",
        "/apis/coordination.k8s.io/v1",
        "/apis/autoscaling/v2",
        "/apis/networking.k8s.io/v1",
        "/apis/policy/v1",
        "/apis/rbac.authorization.k8s.io/v1",
        "/apis/storage.k8s.io/v1",
        "/apis/events.k8s.io/v1",
        "/apis/discovery.k8s.io/v1",
        "/apis/scheduling.k8s.io/v1",
        "/apis/node.k8s.io/v1",
        "/apis/apiextensions.k8s.io/v1",
        "/apis/authentication.k8s.io/v1",
        "/apis/authorization.k8s.io/v1",
        "/apis/admissionregistration.k8s.io/v1",
    ] {
        let document = api.peek(version).await?;
        let names: Vec<Value> = resources(&document.body).iter().map(|r| r["name"].clone()).collect();
        api.note(&format!("names in {version}"), names.into());
        for mut resource in resources(&document.body) {
            let name = resource["name"].as_str().unwrap_or_default().to_owned();
            // A hash of how it is stored: only meaningful when compared with itself.
            if let Some(map) = resource.as_object_mut() {
                map.remove("storageVersionHash");
            }
            api.note(&format!("{version} {name}"), resource);
        }
    }
    Ok(())
}

async fn aggregated_discovery_holds_the_same(api: &Api) -> Result<()> {
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    for root in ["/api", "/apis"] {
        let (code, body) = api.quiet_as(root, accept).await?;
        api.note(&format!("{root} code"), code.into());
        for group in body["items"].as_array().into_iter().flatten() {
            let name = group["metadata"]["name"].as_str().unwrap_or_default();
            // Only the groups that scenarios use: the real server has more.
            if !["", "apps", "batch", "coordination.k8s.io", "policy"].contains(&name) {
                continue;
            }
            for version in group["versions"].as_array().into_iter().flatten() {
                for resource in version["resources"].as_array().into_iter().flatten() {
                    api.note(
                        &format!("{name} {} {}", version["version"], resource["resource"]),
                        resource.clone(),
                    );
                }
            }
        }
    }
    Ok(())
}

async fn health_is_told_in_one_word(api: &Api) -> Result<()> {
    for path in ["/healthz", "/livez", "/readyz", "/healthz/ping", "/readyz/ping", "/livez/nonsense"] {
        api.get(path).await?;
    }
    api.send_as(None, Method::GET, "/healthz").await?.code(200)?;
    api.send_as(None, Method::GET, "/readyz").await?.code(200)?;
    Ok(())
}

async fn the_version_has_its_shape(api: &Api) -> Result<()> {
    let version = api.peek("/version").await?.code(200)?;
    let keys: Vec<Value> =
        version.body.as_object().into_iter().flatten().map(|(key, _)| key.clone().into()).collect();
    api.note("fields", keys.into());
    for key in ["major", "minor"] {
        api.note(key, version.body[key].clone());
    }
    let git = version.body["gitVersion"].as_str().unwrap_or_default();
    api.note("gitVersion", git.split(['+', '-']).next().unwrap_or_default().into());
    Ok(())
}

async fn paths_that_lead_nowhere_are_not_found(api: &Api) -> Result<()> {
    for path in [
        "/nonsense",
        "/api/v9",
        "/api/v9/pods",
        "/api/v1/nonsense",
        "/apis/nonsense",
        "/apis/nonsense/v1",
        "/apis/apps/v9",
        "/apis/apps/v9/deployments",
        "/apis/apps/v1/nonsense",
        "/apis/apps/v1/namespaces/default/nonsense/a",
        "/apis/apps/v1/pods",
        "/api/v1/namespaces/default/namespaces/x",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/pods/a",
        "/api/v1/namespaces/default/pods/a/b/c/d",
        "/openapi/v9",
        "/apis//v1",
        "/metricss",
    ] {
        api.get(path).await?;
    }
    api.post("/apis/apps/v1/namespaces/default/nonsense", &json!({})).await?;
    api.delete("/nonsense").await?;
    Ok(())
}

async fn documents_are_only_read(api: &Api) -> Result<()> {
    for path in ["/api", "/apis/apps", "/apis/apps/v1", "/api/v1"] {
        api.post(path, &json!({})).await?;
        api.delete(path).await?;
    }
    Ok(())
}

async fn a_wrong_token_is_refused(api: &Api) -> Result<()> {
    for path in ["/api/v1/namespaces/default/configmaps", "/apis", "/nonsense"] {
        api.send_as(Some("wrong"), Method::GET, path).await?.refused(401, "Unauthorized")?;
    }
    api.send_as(Some("wrong"), Method::POST, "/api/v1/namespaces/default/configmaps")
        .await?
        .refused(401, "Unauthorized")?;
    api.send_as(Some("wrong"), Method::GET, "/healthz").await?;
    Ok(())
}

async fn the_openapi_documents_are_there(api: &Api) -> Result<()> {
    let index = api.peek("/openapi/v3").await?.code(200)?;
    for path in ["api/v1", "apis/apps/v1", "apis/coordination.k8s.io/v1"] {
        api.note(path, index.body["paths"][path]["serverRelativeURL"].is_string().into());
        let document = api.peek(&format!("/openapi/v3/{path}")).await?.code(200)?;
        api.note(&format!("{path} openapi"), document.body["openapi"].clone());
    }
    let pods = api.peek("/openapi/v3/api/v1").await?.body;
    let pod = &pods["components"]["schemas"]["io.k8s.api.core.v1.Pod"];
    let fields: Vec<Value> =
        pod["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone().into()).collect();
    api.note("fields of a pod", fields.into());
    api.note("kind of a pod", pod["x-kubernetes-group-version-kind"].clone());
    Ok(())
}
