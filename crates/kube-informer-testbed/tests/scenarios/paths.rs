//! Paths with holes, and methods that only documents take.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Api, config_map, definition, scenarios, serve, simple, widget};

scenarios![
    a_namespace_without_a_name_is_all_of_them,
    what_has_no_name_is_not_there,
    a_watch_of_nothing_is_no_request,
    custom_resources_have_namespaces_with_names,
    a_head_is_asked_of_documents_only,
    openapi_of_unknown_groups_is_not_found,
];

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

async fn a_namespace_without_a_name_is_all_of_them(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    // A server holds more than what a scenario made.
    let own = |list: &Value| {
        let items = list["items"].as_array().into_iter().flatten();
        let own = items.filter(|item| item["metadata"]["namespace"] == api.namespace.as_str());
        Value::from(own.map(|item| item["metadata"]["name"].clone()).collect::<Vec<_>>())
    };
    for path in
        ["/api/v1/namespaces//configmaps", "/api/v1/namespaces//configmaps/", "/api/v1/namespaces//pods"]
    {
        let list = api.peek(path).await?.code(200)?;
        api.note(path, json!([list.body["kind"], own(&list.body)]));
    }
    for object in [
        json!({ "metadata": { "name": "b" } }),
        json!({ "metadata": { "name": "b", "namespace": "default" } }),
        json!({ "metadata": { "name": "B" }, "data": { "a b": "c" } }),
    ] {
        api.post("/api/v1/namespaces//configmaps", &object).await?.refused(422, "Invalid")?;
    }
    api.send(Method::POST, "/api/v1/namespaces//configmaps", &JSON, "{").await?;
    let body = json!({ "metadata": { "name": "a" } });
    for method in [Method::GET, Method::PUT, Method::DELETE, Method::POST] {
        api.send(method, "/api/v1/namespaces//configmaps/a", &JSON, body.to_string()).await?;
    }
    api.merge("/api/v1/namespaces//configmaps/a", &body).await?;
    api.get("/api/v1/namespaces//pods/a/status").await?;
    api.get("/apis/apps/v1/namespaces//deployments/a/scale").await?;
    api.post("/api/v1/namespaces//pods/a/eviction", &json!({ "metadata": { "name": "a" } })).await?;
    api.put("/api/v1/namespaces//configmaps", &json!({})).await?;
    api.get("/api/v1/namespaces//nodes").await?;
    api.get("/api/v1/namespaces//nonsense").await?;
    api.get("configmaps/a").await?.code(200)?;
    Ok(())
}

async fn what_has_no_name_is_not_there(api: &Api) -> Result<()> {
    for path in [
        "pods//status",
        "apps/v1:deployments//scale",
        "/api/v1/nodes//status",
        "/api/v1/namespaces//status",
        "/api/v1/namespaces//finalize",
        "configmaps//a",
        "/api/v1//configmaps",
        "/api//v1/configmaps",
        "/apis/apps//deployments",
        "/apis/apps//v1",
        "/apis//apps",
        "/apis//",
        "//",
        "//api/v1/namespaces/default",
        "/api/v1/namespaces///configmaps",
        "/api/v1/namespaces/default//configmaps",
        "/apis/nonsense/v1/namespaces//x",
        "/healthz/",
        "/index.html/",
        "/openapi/v2/",
    ] {
        api.get(path).await?;
    }
    let body = json!({ "metadata": { "name": "x" } });
    api.put("/api/v1/namespaces//finalize", &body).await?;
    api.post("pods//eviction", &body).await?;
    api.post("pods//binding", &body).await?;
    Ok(())
}

async fn a_watch_of_nothing_is_no_request(api: &Api) -> Result<()> {
    for path in [
        "/api/v1/watch",
        "/api/v1/watch/",
        "/api/v1/watch?a=1&b",
        "/api/v1/proxy",
        "/apis/apps/v1/watch",
        "/apis/nonsense/v1/watch",
        "//api/v1/watch",
        "/api/v1/watch/nonsense",
        "/api/watch",
    ] {
        api.get(path).await?;
    }
    api.post("/api/v1/watch", &json!({})).await?.code(500)?;
    Ok(())
}

async fn custom_resources_have_namespaces_with_names(api: &Api) -> Result<()> {
    let mut defined = definition(api, simple());
    defined["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    serve(api, &defined).await?;
    let group = api.group();
    let all = format!("/apis/{group}/v1/namespaces//widgets");
    api.get(&all).await?.code(200)?;
    api.post(&all, &widget(api, "a", json!({}))).await?.code(404)?;
    api.delete(&all).await?.code(404)?;
    for path in [
        format!("{all}/a"),
        format!("{all}/a/status"),
        format!("/apis/{group}/v1//widgets"),
        format!("/apis/{group}/v1/namespaces/default//widgets"),
        format!("/apis/{group}/v1/namespaces/default/widgets//status"),
        format!("/apis/{group}/v1/namespaces/default/widgets//a"),
        format!("/apis/{group}/v1/watch"),
    ] {
        api.get(&path).await?;
    }
    Ok(())
}

async fn a_head_is_asked_of_documents_only(api: &Api) -> Result<()> {
    for path in [
        "/",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/apis/nonsense",
        "/healthz",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/api/v1",
        "/version",
        "/nonsense",
        "/api/v1/namespaces/default",
        "configmaps",
        "configmaps/a",
        "configmaps?watch=true",
        "pods/a/status",
    ] {
        let answer = api.unrecorded(Method::HEAD, path, &[], "").await?;
        api.note(&format!("head of {path}"), answer.code.into());
    }
    Ok(())
}

async fn openapi_of_unknown_groups_is_not_found(api: &Api) -> Result<()> {
    for path in ["apis/nonsense/v1", "apis/nonsense", "apis/apps/v9", "api/v9", "nonsense", ""] {
        api.get(&format!("/openapi/v3/{path}")).await?.code(404)?;
    }
    Ok(())
}
