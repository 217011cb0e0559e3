//! Who somebody is, and who they say that they are.

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Api, scenarios};

scenarios![
    an_administrator_may_be_anybody,
    nobody_else_may_be_somebody_else,
    only_who_has_a_name_can_be_impersonated
];

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const JSON: (&str, &str) = ("content-type", "application/json");

fn review() -> String {
    json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" }).to_string()
}

async fn an_administrator_may_be_anybody(api: &Api) -> Result<()> {
    let user = |name| ("impersonate-user", name);
    let group = |name| ("impersonate-group", name);
    for headers in [
        &[user("jane")][..],
        &[user("jane"), group("devs"), group("ops")],
        &[user("jane"), group("system:authenticated"), group("devs")],
        &[user("jane"), group("system:masters")],
        &[user("jane"), ("impersonate-uid", "123"), ("impersonate-extra-scopes", "view")],
        &[
            user("jane"),
            ("impersonate-extra-acme.com%2Fproject", "a"),
            ("impersonate-extra-acme.com%2fproject", "b"),
        ],
        &[user("system:serviceaccount:shop:web")],
        &[user("system:serviceaccount:shop:web"), group("devs")],
        &[user("system:serviceaccount:Shop:web")],
        // Without groups, it depends on what the real server was asked before.
        &[user("system:node:a"), group("devs")],
        &[user("")],
    ] {
        let headers = [&[JSON], headers].concat();
        let answer = api.send(Method::POST, REVIEWS, &headers, review()).await?.code(201)?;
        let mut user = answer.body["status"]["userInfo"].clone();
        if headers.contains(&("impersonate-user", "")) {
            // Then it is who it is, by another name on each server.
            user = Value::Null;
        }
        api.forget_last();
        api.note(&format!("{headers:?}"), user);
    }
    Ok(())
}

async fn nobody_else_may_be_somebody_else(api: &Api) -> Result<()> {
    api.prepare("serviceaccounts", &json!({ "metadata": { "name": "web" } })).await?;
    let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest" }).to_string();
    let token =
        api.unrecorded(Method::POST, "serviceaccounts/web/token", &[JSON], request).await?.code(201)?;
    let token = token.body["status"]["token"].as_str().context("a token")?.to_owned();
    let user = |name| ("impersonate-user", name);
    for (method, path) in [
        (Method::GET, "configmaps"),
        (Method::GET, "configmaps?watch=true"),
        (Method::GET, "configmaps?fieldSelector=metadata.name%3Da"),
        (Method::GET, "configmaps/a"),
        (Method::POST, "configmaps"),
        (Method::PUT, "configmaps/a"),
        (Method::PATCH, "configmaps/a"),
        (Method::DELETE, "configmaps/a"),
        (Method::DELETE, "configmaps"),
        (Method::GET, "pods/a/status"),
        (Method::PUT, "apps/v1:deployments/a/scale"),
        (Method::GET, "/api/v1/nodes"),
        (Method::GET, "/api/v1/namespaces/default"),
        (Method::GET, "/apis/apps/v1/deployments"),
        (Method::GET, "/apis/apps/v1"),
        (Method::GET, "/version"),
    ] {
        api.send_as_with(&token, method, path, &[user("jane")]).await?.refused(403, "Forbidden")?;
    }
    for headers in [
        &[user("a<b&c>\"d\"")][..],
        &[user("jane"), ("impersonate-group", "devs")],
        &[user("system:serviceaccount:shop:web")],
        &[user("system:serviceaccount:shop:web"), ("impersonate-group", "devs")],
        &[user("system:node:a")],
        &[user("system:node:a"), ("impersonate-group", "devs")],
        &[user("system:anonymous")],
    ] {
        api.send_as_with(&token, Method::GET, "configmaps", headers).await?.refused(403, "Forbidden")?;
    }
    Ok(())
}

async fn only_who_has_a_name_can_be_impersonated(api: &Api) -> Result<()> {
    for headers in [
        &[("impersonate-group", "devs")][..],
        &[("impersonate-group", "devs"), ("impersonate-group", "")],
        &[("impersonate-uid", "1\"2")],
        &[("impersonate-extra-scopes", "view"), ("impersonate-extra-scopes", "edit")],
    ] {
        api.send(Method::GET, "configmaps", headers, "").await?.refused(400, "BadRequest")?;
    }
    Ok(())
}
