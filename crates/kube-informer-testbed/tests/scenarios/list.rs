//! List: selectors, pages, versions, forms.

use anyhow::Result;
use serde_json::{Value, json};

use crate::harness::{Api, config_map, labelled, pod, pod_on, scenarios};

scenarios![
    an_empty_collection_is_listed,
    a_collection_is_listed_in_the_order_of_its_names,
    labels_are_selected_by_every_operator,
    nonsense_for_a_label_selector_is_refused,
    fields_are_selected_where_the_kind_allows_it,
    unknown_fields_in_a_selector_are_refused,
    pages_hold_what_the_first_one_saw,
    pages_with_a_selector_do_not_count_the_rest,
    a_limit_of_nothing_is_no_limit,
    nonsense_for_a_page_is_refused,
    an_expired_page_is_gone_and_can_be_resumed_inconsistently,
    versions_and_how_they_match_are_checked_together,
    an_exact_version_is_listed_as_it_was,
    a_version_from_the_future_is_too_large,
    lists_come_as_metadata_and_as_tables,
    a_listed_item_has_no_kind_of_its_own,
    pods_are_listed_as_a_table_with_their_state,
    lists_across_namespaces_hold_what_is_in_each,
    a_table_describes_its_columns,
    list_options_that_make_no_sense_are_refused,
];

const PARTIAL: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

async fn an_empty_collection_is_listed(api: &Api) -> Result<()> {
    for path in ["configmaps", "pods", "apps/v1:deployments", "coordination.k8s.io/v1:leases"] {
        api.get(path).await?.code(200)?;
        api.get_as(path, PARTIAL).await?.code(200)?;
        api.get_as(path, TABLE).await?.code(200)?;
    }
    Ok(())
}

async fn a_collection_is_listed_in_the_order_of_its_names(api: &Api) -> Result<()> {
    for name in ["b", "a-b", "a", "a.b", "c"] {
        api.post("configmaps", &config_map(name)).await?.code(201)?;
    }
    api.get("configmaps").await?.code(200)?;
    Ok(())
}

/// The names that a list holds, as one step.
async fn names(api: &Api, path: &str) -> Result<()> {
    let answer = api.peek(path).await?;
    let names: Vec<Value> = match answer.body["items"].as_array() {
        Some(items) => items.iter().map(|item| item["metadata"]["name"].clone()).collect(),
        None => vec![answer.body.clone()],
    };
    api.note(&format!("names of {path}"), json!({ "code": answer.code, "names": names }));
    Ok(())
}

async fn labels_are_selected_by_every_operator(api: &Api) -> Result<()> {
    for (name, labels) in [
        ("none", json!({})),
        ("web", json!({ "app": "web", "tier": "front" })),
        ("db", json!({ "app": "db", "tier": "back", "x.io/size": "10" })),
        ("empty", json!({ "app": "" })),
        ("num", json!({ "app": "web", "size": "7" })),
    ] {
        api.post("configmaps", &labelled(name, labels)).await?.code(201)?;
    }
    for selector in [
        "app=web",
        "app==web",
        "app!=web",
        "app",
        "!app",
        "app=",
        "app%20in%20(web,db)",
        "app%20notin%20(web)",
        "app%20in%20()",
        "app%20in%20(,web)",
        "size%3E5",
        "size%3C7",
        "size%3E=5",
        "size%3Eabc",
        "x.io/size=10",
        "app=web,tier=front",
        "app,!tier",
        "%20app%20=%20web%20",
        "app=web,",
        "",
        "app%20notin%20(web,),tier",
        "app%20in%20(web),tier%20in%20(front,back)",
        "app=web,app!=web",
    ] {
        names(api, &format!("configmaps?labelSelector={selector}")).await?;
    }
    Ok(())
}

async fn nonsense_for_a_label_selector_is_refused(api: &Api) -> Result<()> {
    for selector in [
        "=",
        "a%20b",
        "a=b=c",
        "a%20in%20b",
        "a%20in%20(b",
        "!",
        "bad%20key=x",
        "a=bad%20value",
        "a=b,,c",
        "(a)",
        "UPPER/x/y=1",
        "a%3E",
        "-a=b",
        "a=-b",
        "%00",
    ] {
        api.get(&format!("configmaps?labelSelector={selector}")).await?;
    }
    api.delete("configmaps?labelSelector=a%20b").await?;
    Ok(())
}

async fn fields_are_selected_where_the_kind_allows_it(api: &Api) -> Result<()> {
    for name in ["a", "b"] {
        api.post("configmaps", &config_map(name)).await?.code(201)?;
    }
    api.post("pods", &pod("a")).await?.code(201)?;
    api.post("pods", &pod_on("b", "node-1")).await?.code(201)?;
    for path in [
        "configmaps?fieldSelector=metadata.name=a",
        "configmaps?fieldSelector=metadata.name==a",
        "configmaps?fieldSelector=metadata.name!=a",
        "configmaps?fieldSelector=metadata.name=a,metadata.name=b",
        "configmaps?fieldSelector=metadata.namespace=default",
        "configmaps?fieldSelector=",
        "pods?fieldSelector=spec.nodeName=node-1",
        "pods?fieldSelector=spec.nodeName=",
        "pods?fieldSelector=spec.nodeName!=node-1",
        "pods?fieldSelector=status.phase=Pending",
        "pods?fieldSelector=status.phase!=Pending",
        "pods?fieldSelector=spec.restartPolicy=Always",
        "pods?fieldSelector=spec.schedulerName=default-scheduler,spec.nodeName=node-1",
        "pods?fieldSelector=status.podIP=",
        "pods?fieldSelector=spec.hostNetwork=false",
        "pods?fieldSelector=spec.serviceAccountName=default",
        "pods?labelSelector=app=b&fieldSelector=metadata.name=a",
    ] {
        names(api, path).await?;
    }
    api.post("secrets", &json!({ "metadata": { "name": "s" }, "type": "example.com/t" })).await?.code(201)?;
    names(api, "secrets?fieldSelector=type=example.com/t").await?;
    names(api, "secrets?fieldSelector=type=Opaque").await?;
    Ok(())
}

async fn unknown_fields_in_a_selector_are_refused(api: &Api) -> Result<()> {
    for path in [
        "configmaps?fieldSelector=data.key=value",
        "configmaps?fieldSelector=spec.nodeName=x",
        "pods?fieldSelector=spec.nope=x",
        "pods?fieldSelector=nonsense",
        "pods?fieldSelector==",
        "pods?fieldSelector=metadata.name%3Ea",
        "apps/v1:deployments?fieldSelector=status.replicas=1",
        "secrets?fieldSelector=kind=Secret",
    ] {
        api.get(path).await?;
    }
    Ok(())
}

async fn pages_hold_what_the_first_one_saw(api: &Api) -> Result<()> {
    for name in ["a", "b", "c", "d", "e"] {
        api.post("configmaps", &config_map(name)).await?.code(201)?;
    }
    let first = api.get("configmaps?limit=2").await?.code(200)?;
    // What happens in between is not in the following pages.
    api.delete("configmaps/d").await?.code(200)?;
    api.post("configmaps", &config_map("f")).await?.code(201)?;
    api.merge("configmaps/c", &json!({ "data": { "key": "changed" } })).await?.code(200)?;
    let second = api.get(&format!("configmaps?limit=2&continue={}", first.next_page())).await?.code(200)?;
    let third = api.get(&format!("configmaps?limit=2&continue={}", second.next_page())).await?.code(200)?;
    assert_eq!(third.next_page(), "");
    // Without a limit the rest comes at once.
    api.get(&format!("configmaps?continue={}", first.next_page())).await?.code(200)?;
    api.get("configmaps?limit=5").await?.code(200)?;
    api.get("configmaps?limit=500").await?.code(200)?;
    Ok(())
}

async fn pages_with_a_selector_do_not_count_the_rest(api: &Api) -> Result<()> {
    for name in ["a", "b", "c", "d"] {
        let labels = if name == "b" { json!({}) } else { json!({ "in": "yes" }) };
        api.post("configmaps", &labelled(name, labels)).await?.code(201)?;
    }
    let first = api.get("configmaps?limit=1&labelSelector=in=yes").await?.code(200)?;
    let next = first.next_page();
    api.get(&format!("configmaps?limit=1&labelSelector=in=yes&continue={next}")).await?.code(200)?;
    let first = api.get("configmaps?limit=1&fieldSelector=metadata.name!=a").await?.code(200)?;
    let next = first.next_page();
    api.get(&format!("configmaps?limit=9&fieldSelector=metadata.name!=a&continue={next}"))
        .await?
        .code(200)?;
    Ok(())
}

async fn a_limit_of_nothing_is_no_limit(api: &Api) -> Result<()> {
    for name in ["a", "b"] {
        api.post("configmaps", &config_map(name)).await?.code(201)?;
    }
    for limit in ["0", "", "-1", "x", "99999999999999999999", "1.5"] {
        api.get(&format!("configmaps?limit={limit}")).await?;
    }
    Ok(())
}

async fn nonsense_for_a_page_is_refused(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.post("configmaps", &config_map("b")).await?.code(201)?;
    let first = api.get("configmaps?limit=1").await?.code(200)?;
    let token = first.next_page();
    for query in ["continue=nonsense", "continue=e30", "continue=bm9uc2Vuc2U", "limit=1&continue=%20"] {
        api.get(&format!("configmaps?{query}")).await?;
    }
    api.get(&format!("configmaps?continue={token}&resourceVersion={}", first.version())).await?;
    api.get(&format!("configmaps?continue={token}&resourceVersion=0")).await?;
    api.get(&format!("configmaps?continue={token}&resourceVersionMatch=Exact")).await?;
    Ok(())
}

async fn an_expired_page_is_gone_and_can_be_resumed_inconsistently(api: &Api) -> Result<()> {
    // etcd is compacted by its own schedule: only the embedded server can be asked to forget.
    let Some(server) = api.embedded.clone() else { return Ok(()) };
    for name in ["a", "b", "c"] {
        api.peek("configmaps").await?;
        api.post("configmaps", &config_map(name)).await?.code(201)?;
    }
    let first = api.get("configmaps?limit=1").await?.code(200)?;
    api.post("configmaps", &config_map("d")).await?.code(201)?;
    server.compact();
    let gone = api
        .get(&format!("configmaps?limit=1&continue={}", first.next_page()))
        .await?
        .refused(410, "Expired")?;
    let rest = api.get(&format!("configmaps?continue={}", gone.next_page())).await?.code(200)?;
    let items = rest.body["items"].as_array().map_or(0, Vec::len);
    anyhow::ensure!(items == 3, "b, c and d, not {items}");
    api.forget();
    Ok(())
}

async fn versions_and_how_they_match_are_checked_together(api: &Api) -> Result<()> {
    let version = api.post("configmaps", &config_map("a")).await?.code(201)?.version();
    for rv in ["", "0", version.as_str(), "nonsense", "-1"] {
        for matching in ["", "Exact", "NotOlderThan", "Nonsense"] {
            for rest in ["", "&limit=1"] {
                // From the cache, whose age depends on the moment.
                if rv == "0" && matching != "Exact" && matching != "Nonsense" {
                    continue;
                }
                api.get(&format!("configmaps?resourceVersion={rv}&resourceVersionMatch={matching}{rest}"))
                    .await?;
            }
        }
    }
    Ok(())
}

async fn an_exact_version_is_listed_as_it_was(api: &Api) -> Result<()> {
    let first = api.post("configmaps", &config_map("a")).await?.code(201)?.version();
    let second = api.merge("configmaps/a", &json!({ "data": { "key": "2" } })).await?.code(200)?.version();
    api.post("configmaps", &config_map("b")).await?.code(201)?;
    api.delete("configmaps/a").await?.code(200)?;
    for version in [&first, &second] {
        api.get(&format!("configmaps?resourceVersion={version}&resourceVersionMatch=Exact"))
            .await?
            .code(200)?;
    }
    api.get(&format!("configmaps?resourceVersion={second}&resourceVersionMatch=Exact&limit=1"))
        .await?
        .code(200)?;
    api.get(&format!("configmaps?resourceVersion={first}&resourceVersionMatch=NotOlderThan"))
        .await?
        .code(200)?;
    api.get(&format!("configmaps?resourceVersion={first}")).await?.code(200)?;
    Ok(())
}

async fn a_version_from_the_future_is_too_large(api: &Api) -> Result<()> {
    let future = "9000000000";
    for path in [
        format!("configmaps?resourceVersion={future}"),
        format!("configmaps?resourceVersion={future}&resourceVersionMatch=Exact"),
        format!("configmaps/a?resourceVersion={future}"),
    ] {
        let answer = api.send(http::Method::GET, &path, &[], "").await?;
        assert!(answer.code >= 400, "{}", answer.body);
    }
    Ok(())
}

async fn lists_come_as_metadata_and_as_tables(api: &Api) -> Result<()> {
    api.post("configmaps", &labelled("a", json!({ "x": "y" }))).await?.code(201)?;
    api.post("configmaps", &config_map("b")).await?.code(201)?;
    api.get_as("configmaps", PARTIAL).await?.code(200)?;
    api.get_as("configmaps?limit=1", PARTIAL).await?.code(200)?;
    api.get_as("configmaps", TABLE).await?.code(200)?;
    api.get_as("configmaps?limit=1", TABLE).await?.code(200)?;
    api.get_as("configmaps?includeObject=Object", TABLE).await?.code(200)?;
    api.get_as("configmaps?includeObject=None", TABLE).await?.code(200)?;
    Ok(())
}

async fn a_listed_item_has_no_kind_of_its_own(api: &Api) -> Result<()> {
    api.post("pods", &pod("a")).await?.code(201)?;
    let list = api.get("pods").await?.code(200)?;
    assert!(list.body["items"][0].get("kind").is_none());
    Ok(())
}

async fn pods_are_listed_as_a_table_with_their_state(api: &Api) -> Result<()> {
    for name in ["pending", "running", "failed", "crashing", "going"] {
        api.post("pods", &pod_on(name, "node-1")).await?.code(201)?;
    }
    let running = json!({ "status": { "phase": "Running", "podIP": "192.168.0.1", "podIPs": [{ "ip": "192.168.0.1" }],
        "conditions": [{ "type": "Ready", "status": "True" }],
        "containerStatuses": [{ "name": "main", "ready": true, "restartCount": 0, "image": "nginx:1", "imageID": "", "state": { "running": {} } }] } });
    api.patch("pods/running/status", "merge", &running).await?.code(200)?;
    api.merge("pods/failed/status", &json!({ "status": { "phase": "Failed", "reason": "Evicted" } }))
        .await?
        .code(200)?;
    let crashing = json!({ "status": { "phase": "Running", "containerStatuses": [{ "name": "main", "ready": false, "restartCount": 4,
        "image": "nginx:1", "imageID": "", "state": { "waiting": { "reason": "CrashLoopBackOff" } } }] } });
    api.merge("pods/crashing/status", &crashing).await?.code(200)?;
    api.delete("pods/going").await?.code(200)?;
    api.get_as("pods?includeObject=None", TABLE).await?.code(200)?;
    Ok(())
}

async fn lists_across_namespaces_hold_what_is_in_each(api: &Api) -> Result<()> {
    let label = api.name("label");
    api.post("configmaps", &labelled("a", json!({ "of": label }))).await?.code(201)?;
    api.post("/api/v1/namespaces/default/configmaps", &labelled(&api.name("b"), json!({ "of": label })))
        .await?
        .code(201)?;
    api.get(&format!("/api/v1/configmaps?labelSelector=of={label}")).await?.code(200)?;
    let own = &api.namespace;
    api.get(&format!("/api/v1/configmaps?labelSelector=of={label}&fieldSelector=metadata.namespace={own}"))
        .await?
        .code(200)?;
    Ok(())
}

async fn a_table_describes_its_columns(api: &Api) -> Result<()> {
    api.post("pods", &pod("a")).await?.code(201)?;
    let table = api.get_as("pods", TABLE).await?.code(200)?;
    let columns = table.body["columnDefinitions"].as_array().cloned().unwrap_or_default();
    let described =
        columns.iter().all(|column| column["description"].as_str().is_some_and(|text| !text.is_empty()));
    api.note("every column is described", described.into());
    Ok(())
}

async fn list_options_that_make_no_sense_are_refused(api: &Api) -> Result<()> {
    for query in [
        "timeoutSeconds=x",
        "timeoutSeconds=1&watch=maybe",
        "watch=false",
        "watch=0",
        "allowWatchBookmarks=x",
        "sendInitialEvents=true",
        "sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
        "limit=1&limit=2",
        "unknown=parameter",
        "resourceVersion=%2B1",
    ] {
        api.get(&format!("configmaps?{query}")).await?;
    }
    Ok(())
}
