//! The forms of an answer: whole objects, metadata, tables, each in its versions.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{
    Answer, Api, config_map, definition, deployment, scenarios, serve, simple, widget, widgets,
};

scenarios![
    metadata_and_tables_have_an_older_version,
    a_watch_sends_the_older_version_too,
    forms_that_do_not_exist_are_refused,
    the_form_must_fit_what_is_asked_for,
    the_form_that_is_liked_best_is_sent,
    a_form_that_does_not_fit_is_refused_before_the_write,
    parts_of_objects_come_as_metadata,
    a_page_of_metadata_says_how_many_follow,
];

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const OLD_TABLE: &str = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const OLD_PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1";
const PARTIALS: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const OLD_PARTIALS: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1";

async fn metadata_and_tables_have_an_older_version(api: &Api) -> Result<()> {
    api.get_as("configmaps", OLD_TABLE).await?.code(200)?;
    api.get_as("configmaps", OLD_PARTIALS).await?.code(200)?;
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for path in ["configmaps", "configmaps?includeObject=Object", "configmaps?includeObject=None"] {
        api.get_as(path, OLD_TABLE).await?.code(200)?;
    }
    api.get_as("configmaps/a", OLD_TABLE).await?.code(200)?;
    api.get_as("configmaps/a", OLD_PARTIAL).await?.code(200)?;
    api.get_as("configmaps", OLD_PARTIALS).await?.code(200)?;
    api.get_as("configmaps?includeObject=Nonsense", OLD_TABLE).await?.code(400)?;
    api.get_as("configmaps?includeObject=Nonsense", "application/json").await?.code(200)?;
    Ok(())
}

async fn a_watch_sends_the_older_version_too(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    let mut tables = api.watch_as("configmaps", OLD_TABLE).await?;
    let mut metadata = api.watch_as("configmaps", OLD_PARTIAL).await?;
    tables.events(1).await?;
    metadata.events(1).await?;
    api.merge("configmaps/a", &json!({ "data": { "key": "other" } })).await?.code(200)?;
    tables.events(1).await?;
    metadata.events(1).await?;
    let mut lists = api.watch_as("configmaps?timeoutSeconds=1", PARTIALS).await?;
    lists.ends().await?;
    Ok(())
}

async fn a_page_of_metadata_says_how_many_follow(api: &Api) -> Result<()> {
    api.get_as("configmaps?limit=1", PARTIALS).await?.code(200)?;
    for (name, left) in [("a", json!(null)), ("b", json!(1)), ("c", json!(2))] {
        api.post("configmaps", &config_map(name)).await?.code(201)?;
        let page = api.get_as("configmaps?limit=1", PARTIALS).await?.code(200)?;
        assert_eq!(page.body["items"].as_array().map(Vec::len), Some(1), "{}", page.body);
        assert_eq!(page.body["metadata"]["remainingItemCount"], left, "{}", page.body);
    }
    Ok(())
}

/// What an answer is, without what the server holds besides.
fn shape(answer: &Answer) -> Value {
    json!({ "code": answer.code, "reason": answer.body["reason"], "kind": answer.body["kind"],
        "apiVersion": answer.body["apiVersion"] })
}

async fn forms_that_do_not_exist_are_refused(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for form in [
        "as=Table",
        "as=Table;g=meta.k8s.io",
        "as=Table;v=v1beta1",
        "as=Table;v=v2;g=meta.k8s.io",
        "as=Table;v=v1;g=x",
        "as=PartialObjectMetadata;v=v2;g=meta.k8s.io",
        "as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
        "as=",
        "g=x",
        "v=v1",
        "x=y",
        "q=0",
        "pretty=1",
    ] {
        for path in ["configmaps", "configmaps/a", "/api", "/apis", "/apis/apps", "/apis/apps/v1", "/version"]
        {
            let accept = format!("application/json;{form}");
            let answer = api.unrecorded(Method::GET, path, &[("accept", &accept)], "").await?;
            api.note(&format!("{path} as {form}"), shape(&answer));
        }
    }
    for path in ["/version", "/apis/apps"] {
        let answer = api.unrecorded(Method::GET, path, &[("accept", "text/html")], "").await?;
        api.note(&format!("{path} as text"), shape(&answer));
    }
    Ok(())
}

async fn the_form_must_fit_what_is_asked_for(api: &Api) -> Result<()> {
    serve(api, &definition(api, simple())).await?;
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.get_as("configmaps/a", PARTIALS).await?.refused(406, "NotAcceptable")?;
    let custom = widgets(api);
    for path in [
        "configmaps",
        "events",
        "apps/v1:daemonsets",
        "events.k8s.io/v1:events",
        "discovery.k8s.io/v1:endpointslices",
        "rbac.authorization.k8s.io/v1:roles",
        "networking.k8s.io/v1:ingresses",
        &custom,
    ] {
        api.get_as(path, PARTIAL).await?.refused(406, "NotAcceptable")?;
    }
    Ok(())
}

async fn the_form_that_is_liked_best_is_sent(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for accept in [
        format!("{TABLE};q=0.1, application/json;q=0.5"),
        format!("application/json;q=0.5, {TABLE}"),
        format!("*/*, {TABLE}"),
        format!("{TABLE}, */*"),
        "application/json;as=Table,application/json".to_owned(),
        "application/json;as=Table,text/html".to_owned(),
        format!("text/html, {OLD_TABLE}"),
    ] {
        let answer = api.unrecorded(Method::GET, "configmaps/a", &[("accept", &accept)], "").await?;
        api.note(&accept, shape(&answer));
    }
    Ok(())
}

async fn a_form_that_does_not_fit_is_refused_before_the_write(api: &Api) -> Result<()> {
    for (name, path, accept) in [
        ("a", "configmaps", "application/json;as=Table;g=x;v=v1"),
        ("b", "configmaps", "text/html"),
        ("c", "configmaps", PARTIALS),
        ("d", "configmaps?includeObject=Nonsense", TABLE),
    ] {
        let headers = [("content-type", "application/json"), ("accept", accept)];
        let body = config_map(name).to_string();
        let answer = api.unrecorded(Method::POST, path, &headers, body).await?;
        api.note(&format!("{name} posted"), answer.verdict());
        let there = api.peek(&format!("configmaps/{name}")).await?;
        api.note(&format!("{name} exists"), (there.code == 200).into());
    }
    api.post("configmaps", &config_map("e")).await?.code(201)?;
    for (path, accept) in [("configmaps?labelSelector=no", PARTIAL), ("configmaps/e", "text/html")] {
        let answer = api.unrecorded(Method::DELETE, path, &[("accept", accept)], "").await?.code(406)?;
        api.note(path, answer.verdict());
    }
    api.get("configmaps/e").await?.code(200)?;
    Ok(())
}

async fn parts_of_objects_come_as_metadata(api: &Api) -> Result<()> {
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    api.get_as("apps/v1:deployments/a/status", PARTIAL).await?.code(200)?;
    api.get_as("apps/v1:deployments/a/scale", PARTIAL).await?.code(200)?;
    api.get_as("apps/v1:deployments/a/scale", PARTIALS).await?.refused(406, "NotAcceptable")?;
    let scale = json!({ "metadata": { "name": "a" }, "spec": { "replicas": 2 } });
    let headers = [("content-type", "application/json"), ("accept", PARTIAL)];
    api.send(Method::PUT, "apps/v1:deployments/a/scale", &headers, scale.to_string()).await?.code(200)?;
    let review = json!({ "spec": { "nonResourceAttributes": { "path": "/", "verb": "get" } } }).to_string();
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    api.send(Method::POST, reviews, &headers, review.clone()).await?.code(201)?;
    let as_table = api
        .unrecorded(Method::POST, reviews, &[("content-type", "application/json"), ("accept", TABLE)], review)
        .await?;
    api.note("a review as a table", shape(&as_table));
    serve(api, &definition(api, simple())).await?;
    let one = widget(api, "a", json!({}));
    api.send(Method::POST, &widgets(api), &headers, one.to_string()).await?.code(201)?;
    Ok(())
}
