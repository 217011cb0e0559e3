//! Watch: from where, what, in which form, until when.

use anyhow::Result;
use serde_json::json;

use crate::harness::{
    Api, config_map, definition, deployment, labelled, pod, scenarios, serve, simple, widgets,
};

scenarios![
    a_watch_from_a_version_tells_everything_after_it,
    a_watch_without_a_version_starts_with_what_there_is,
    a_watch_from_the_cache_starts_with_what_there_is,
    initial_events_end_with_a_bookmark,
    no_initial_events_on_request,
    initial_events_need_the_right_options,
    a_deleted_object_is_told_with_a_version_of_its_own,
    an_object_that_begins_to_match_is_added_and_one_that_stops_is_deleted,
    a_field_selector_is_watched_like_a_label_selector,
    one_object_is_watched_by_its_name,
    the_old_watch_paths_work,
    a_watch_ends_after_its_timeout,
    a_version_too_old_is_gone,
    a_version_too_old_is_told_by_an_event,
    a_watch_from_the_future_is_too_large_or_waits,
    nonsense_for_a_watch_is_refused,
    events_come_as_metadata,
    events_come_as_tables,
    finalizers_make_a_deletion_two_events,
    a_change_that_changes_nothing_is_no_event,
    watches_across_namespaces_and_kinds,
    a_watch_of_a_subresource_or_of_a_missing_object,
];

async fn a_watch_from_a_version_tells_everything_after_it(api: &Api) -> Result<()> {
    let start = api.post("configmaps", &config_map("a")).await?.code(201)?.version();
    let mut watch = api.watch(&format!("configmaps?resourceVersion={start}")).await?;
    api.post("configmaps", &config_map("b")).await?.code(201)?;
    api.merge("configmaps/a", &json!({ "data": { "key": "2" } })).await?.code(200)?;
    api.delete("configmaps/a").await?.code(200)?;
    watch.events(3).await?;
    // Again, now as history.
    api.watch(&format!("configmaps?resourceVersion={start}")).await?.events(3).await?;
    Ok(())
}

async fn a_watch_without_a_version_starts_with_what_there_is(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.post("configmaps", &config_map("b")).await?.code(201)?;
    let mut watch = api.watch("configmaps").await?;
    watch.events(2).await?;
    api.delete("configmaps/b").await?.code(200)?;
    watch.events(1).await?;
    Ok(())
}

async fn a_watch_from_the_cache_starts_with_what_there_is(api: &Api) -> Result<()> {
    let version = api.post("configmaps", &config_map("a")).await?.code(201)?.version();
    // The cache has seen it now.
    api.peek(&format!("configmaps?resourceVersion={version}")).await?;
    let mut watch = api.watch("configmaps?resourceVersion=0").await?;
    watch.events(1).await?;
    api.merge("configmaps/a", &json!({ "metadata": { "labels": { "x": "y" } } })).await?.code(200)?;
    watch.events(1).await?;
    Ok(())
}

async fn initial_events_end_with_a_bookmark(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.post("configmaps", &config_map("b")).await?.code(201)?;
    let options = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = api.watch(&format!("configmaps?{options}")).await?;
    watch.events(3).await?;
    api.post("configmaps", &config_map("c")).await?.code(201)?;
    watch.events(1).await?;
    let mut watch = api.watch(&format!("configmaps?labelSelector=no=such&{options}")).await?;
    watch.events(1).await?;
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let version = api.peek("configmaps").await?.version();
    let mut watch = api.watch_as(&format!("configmaps?{options}&resourceVersion={version}"), partial).await?;
    watch.events(4).await?;
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let mut watch = api.watch_as(&format!("configmaps?{options}"), table).await?;
    watch.events(4).await?;
    Ok(())
}

async fn no_initial_events_on_request(api: &Api) -> Result<()> {
    let version = api.post("configmaps", &config_map("a")).await?.code(201)?.version();
    let options = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = api.watch(&format!("configmaps?{options}&resourceVersion={version}")).await?;
    api.post("configmaps", &config_map("b")).await?.code(201)?;
    watch.events(1).await?;
    Ok(())
}

async fn initial_events_need_the_right_options(api: &Api) -> Result<()> {
    for options in [
        "sendInitialEvents=true",
        "sendInitialEvents=true&resourceVersionMatch=Exact",
        "sendInitialEvents=false",
        "resourceVersionMatch=NotOlderThan",
        "resourceVersionMatch=Exact",
        "sendInitialEvents=true&resourceVersionMatch=Nonsense&allowWatchBookmarks=true",
        "sendInitialEvents=maybe&resourceVersionMatch=NotOlderThan",
    ] {
        let answer = api.watch(&format!("configmaps?timeoutSeconds=1&{options}")).await?;
        drop(answer);
    }
    Ok(())
}

async fn a_deleted_object_is_told_with_a_version_of_its_own(api: &Api) -> Result<()> {
    let start = api.post("configmaps", &config_map("a")).await?.code(201)?.version();
    let mut watch = api.watch(&format!("configmaps?resourceVersion={start}")).await?;
    api.delete("configmaps/a").await?.code(200)?;
    let events = watch.events(1).await?;
    let version = events[0]["object"]["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    assert!(version.parse::<u64>()? > start.parse::<u64>()?);
    // Resuming from there tells nothing of it.
    let mut watch = api.watch(&format!("configmaps?resourceVersion={version}")).await?;
    api.post("configmaps", &config_map("b")).await?.code(201)?;
    watch.events(1).await?;
    Ok(())
}

async fn an_object_that_begins_to_match_is_added_and_one_that_stops_is_deleted(api: &Api) -> Result<()> {
    let start = api.post("configmaps", &config_map("a")).await?.code(201)?.version();
    let mut watch = api.watch(&format!("configmaps?labelSelector=in=yes&resourceVersion={start}")).await?;
    let label = |value: serde_json::Value| json!({ "metadata": { "labels": { "in": value } } });
    api.merge("configmaps/a", &label("yes".into())).await?.code(200)?;
    api.merge("configmaps/a", &json!({ "data": { "key": "2" } })).await?.code(200)?;
    api.merge("configmaps/a", &label("no".into())).await?.code(200)?;
    api.merge("configmaps/a", &json!({ "data": { "key": "3" } })).await?.code(200)?;
    api.merge("configmaps/a", &label("yes".into())).await?.code(200)?;
    api.delete("configmaps/a").await?.code(200)?;
    api.post("configmaps", &labelled("b", json!({ "in": "no" }))).await?.code(201)?;
    api.delete("configmaps/b").await?.code(200)?;
    api.post("configmaps", &labelled("c", json!({ "in": "yes" }))).await?.code(201)?;
    watch.events(6).await?;
    Ok(())
}

async fn a_field_selector_is_watched_like_a_label_selector(api: &Api) -> Result<()> {
    let start = api.post("pods", &pod("a")).await?.code(201)?.version();
    let mut watch =
        api.watch(&format!("pods?fieldSelector=status.phase=Running&resourceVersion={start}")).await?;
    api.merge("pods/a/status", &json!({ "status": { "phase": "Running" } })).await?.code(200)?;
    api.merge("pods/a/status", &json!({ "status": { "phase": "Failed" } })).await?.code(200)?;
    watch.events(2).await?;
    Ok(())
}

async fn one_object_is_watched_by_its_name(api: &Api) -> Result<()> {
    let start = api.post("configmaps", &config_map("a")).await?.code(201)?.version();
    let mut by_field =
        api.watch(&format!("configmaps?fieldSelector=metadata.name=a&resourceVersion={start}")).await?;
    // A path to one object is a read, whatever else it says.
    api.get(&format!("configmaps/a?watch=true&resourceVersion={start}")).await?.code(200)?;
    api.post("configmaps", &config_map("b")).await?.code(201)?;
    api.merge("configmaps/a", &json!({ "data": { "key": "2" } })).await?.code(200)?;
    by_field.events(1).await?;
    Ok(())
}

async fn the_old_watch_paths_work(api: &Api) -> Result<()> {
    let start = api.post("configmaps", &config_map("a")).await?.code(201)?.version();
    let namespace = &api.namespace;
    let mut all = api
        .watch(&format!("/api/v1/watch/namespaces/{namespace}/configmaps?resourceVersion={start}"))
        .await?;
    let mut one = api
        .watch(&format!("/api/v1/watch/namespaces/{namespace}/configmaps/a?resourceVersion={start}"))
        .await?;
    api.delete("configmaps/a").await?.code(200)?;
    all.events(1).await?;
    one.events(1).await?;
    Ok(())
}

async fn a_watch_ends_after_its_timeout(api: &Api) -> Result<()> {
    let mut watch = api.watch("configmaps?timeoutSeconds=1").await?;
    watch.ends().await?;
    for nonsense in ["x", "1.5"] {
        api.watch(&format!("configmaps?timeoutSeconds={nonsense}")).await?;
    }
    Ok(())
}

async fn a_version_too_old_is_gone(api: &Api) -> Result<()> {
    // etcd is compacted by its own schedule: only the embedded server can be asked to forget.
    let Some(server) = api.embedded.clone() else { return Ok(()) };
    let start = api.post("configmaps", &config_map("a")).await?.code(201)?.version();
    api.post("configmaps", &config_map("b")).await?.code(201)?;
    server.compact();
    let events = api.watch(&format!("configmaps?resourceVersion={start}")).await?.events(1).await?;
    anyhow::ensure!(events[0]["type"] == "ERROR" && events[0]["object"]["code"] == 410, "{}", events[0]);
    anyhow::ensure!(events[0]["object"]["reason"] == "Expired", "{}", events[0]);
    api.forget();
    Ok(())
}

async fn a_version_too_old_is_told_by_an_event(api: &Api) -> Result<()> {
    // What the real server remembers of a resource begins when it is first served, long after version 1.
    serve(api, &definition(api, simple())).await?;
    if let Some(server) = &api.embedded {
        server.compact();
    }
    let path = format!("{}?resourceVersion=1", widgets(api));
    let mut watch = api.watch(&path).await?;
    watch.events(1).await?;
    watch.ends().await?;
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    api.watch_as(&path, partial).await?.events(1).await?;
    Ok(())
}

async fn a_watch_from_the_future_is_too_large_or_waits(api: &Api) -> Result<()> {
    let mut watch = api.watch("configmaps?resourceVersion=9000000000&timeoutSeconds=1").await?;
    watch.ends().await?;
    let initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = api.watch(&format!("configmaps?{initial}&resourceVersion=9000000000")).await?;
    watch.events(1).await?;
    watch.ends().await?;
    Ok(())
}

async fn nonsense_for_a_watch_is_refused(api: &Api) -> Result<()> {
    for query in [
        "resourceVersion=x",
        "resourceVersion=-1",
        "labelSelector=a%20b",
        "fieldSelector=nope=1",
        "limit=x",
        "continue=x",
        "allowWatchBookmarks=x",
    ] {
        api.watch(&format!("configmaps?timeoutSeconds=1&{query}")).await?;
    }
    Ok(())
}

async fn events_come_as_metadata(api: &Api) -> Result<()> {
    let start = api.post("configmaps", &labelled("a", json!({ "x": "y" }))).await?.code(201)?.version();
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut watch = api.watch_as(&format!("configmaps?resourceVersion={start}"), partial).await?;
    api.merge("configmaps/a", &json!({ "data": { "key": "2" } })).await?.code(200)?;
    api.delete("configmaps/a").await?.code(200)?;
    watch.events(2).await?;
    Ok(())
}

async fn events_come_as_tables(api: &Api) -> Result<()> {
    let start = api.post("configmaps", &config_map("a")).await?.code(201)?.version();
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let mut watch = api.watch_as(&format!("configmaps?resourceVersion={start}"), table).await?;
    let mut objects =
        api.watch_as(&format!("configmaps?includeObject=Object&resourceVersion={start}"), table).await?;
    api.merge("configmaps/a", &json!({ "data": { "second": "2" } })).await?.code(200)?;
    api.delete("configmaps/a").await?.code(200)?;
    watch.events(2).await?;
    objects.events(2).await?;
    Ok(())
}

async fn finalizers_make_a_deletion_two_events(api: &Api) -> Result<()> {
    let mut object = config_map("a");
    object["metadata"]["finalizers"] = json!(["example.com/f"]);
    let start = api.post("configmaps", &object).await?.code(201)?.version();
    let mut watch = api.watch(&format!("configmaps?resourceVersion={start}")).await?;
    api.delete("configmaps/a").await?.code(200)?;
    api.merge("configmaps/a", &json!({ "metadata": { "finalizers": null } })).await?.code(200)?;
    watch.events(2).await?;
    Ok(())
}

async fn a_change_that_changes_nothing_is_no_event(api: &Api) -> Result<()> {
    let made = api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    let start = made.version();
    let mut watch = api.watch(&format!("apps/v1:deployments?resourceVersion={start}")).await?;
    api.put("apps/v1:deployments/a", &made.body).await?.code(200)?;
    api.merge("apps/v1:deployments/a", &json!({ "spec": { "replicas": 1 } })).await?.code(200)?;
    api.merge("apps/v1:deployments/a", &json!({ "spec": { "replicas": 2 } })).await?.code(200)?;
    watch.events(1).await?;
    Ok(())
}

async fn watches_across_namespaces_and_kinds(api: &Api) -> Result<()> {
    let label = api.name("label");
    let start = api.post("configmaps", &labelled("a", json!({ "of": label }))).await?.code(201)?.version();
    let mut everywhere =
        api.watch(&format!("/api/v1/configmaps?labelSelector=of={label}&resourceVersion={start}")).await?;
    let name = api.name("b");
    api.post("/api/v1/namespaces/default/configmaps", &labelled(&name, json!({ "of": label })))
        .await?
        .code(201)?;
    api.delete("configmaps/a").await?.code(200)?;
    everywhere.events(2).await?;
    let node = api.name("node");
    let made = api.post("/api/v1/nodes", &json!({ "metadata": { "name": node } })).await?.code(201)?;
    let query = format!("fieldSelector=metadata.name={node}&resourceVersion={}", made.version());
    let mut watch = api.watch(&format!("/api/v1/nodes?{query}")).await?;
    api.delete(&format!("/api/v1/nodes/{node}")).await?.code(200)?;
    watch.events(1).await?;
    Ok(())
}

async fn a_watch_of_a_subresource_or_of_a_missing_object(api: &Api) -> Result<()> {
    api.watch("configmaps/missing?timeoutSeconds=1").await?;
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    api.get("apps/v1:deployments/a/status?watch=true").await?;
    Ok(())
}
