//! Wrong requests: each gets the real server's code, reason, message and causes, and changes nothing.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Api, config_map, definition, deployment, pod, scenarios, serve, widget, widgets};

scenarios![
    broken_json_is_refused,
    json_of_the_wrong_shape_is_refused,
    values_of_the_wrong_type_are_refused,
    numbers_out_of_range_are_refused,
    bodies_in_other_formats_are_refused,
    a_body_over_the_limit_is_refused,
    methods_that_do_not_fit_are_refused,
    answers_that_are_not_spoken_are_refused,
    odd_names_in_paths_are_refused,
    a_wrong_request_changes_nothing,
    odd_queries_are_refused_or_ignored,
    broken_deletions_are_refused,
    a_collection_survives_options_that_are_wrong,
    lists_of_options_are_checked_to_the_end,
    timeouts_that_are_none_are_refused,
    a_deeply_nested_body_is_refused,
    objects_of_many_levels_can_be_changed,
];

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

async fn broken_json_is_refused(api: &Api) -> Result<()> {
    for body in [
        "",
        " ",
        "{",
        "}",
        "[",
        "nonsense",
        "{\"kind\"}",
        "{\"kind\":}",
        "{\"kind\":\"ConfigMap\",}",
        "{'kind':'ConfigMap'}",
        "{\"metadata\":{\"name\":\"a\"}",
        "{\"a\":1}{\"b\":2}",
        "{\"metadata\":{\"name\":\"a\"}} trailing",
        "\"text",
        "{\"a\":\"\\x\"}",
        "{\"a\":01}",
        "{\"a\":1e}",
        "{\"a\":tru}",
        "{\"a\":\"\u{1}\"}",
        "\u{feff}{}",
    ] {
        let answer = api.send(Method::POST, "configmaps", &JSON, body).await?;
        ensure!(answer.code >= 400, "{body}: {}", answer.body);
    }
    api.send(Method::POST, "configmaps", &JSON, &b"{\"metadata\":{\"name\":\"\xff\xfe\"}}"[..]).await?;
    api.send(Method::PUT, "configmaps/a", &JSON, "{").await?;
    Ok(())
}

async fn json_of_the_wrong_shape_is_refused(api: &Api) -> Result<()> {
    for body in [
        "null",
        "true",
        "1",
        "\"text\"",
        "[]",
        "[{}]",
        "{}",
        "{\"metadata\":null}",
        "{\"metadata\":[]}",
        "{\"metadata\":\"x\"}",
        "{\"kind\":5}",
        "{\"apiVersion\":[]}",
        "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[]}",
    ] {
        let answer = api.send(Method::POST, "configmaps", &JSON, body).await?;
        ensure!(answer.code >= 400, "{body}: {}", answer.body);
    }
    Ok(())
}

async fn values_of_the_wrong_type_are_refused(api: &Api) -> Result<()> {
    let with = |pointer: &str, value: Value| {
        let mut object = pod("a");
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[key] = value;
        object
    };
    for object in [
        with("/metadata/name", json!(5)),
        with("/metadata/labels", json!([])),
        with("/metadata/labels", json!({ "a": 1 })),
        with("/metadata/labels", json!({ "a": { "b": "c" } })),
        with("/metadata/annotations", json!("x")),
        with("/metadata/finalizers", json!("x")),
        with("/metadata/finalizers", json!([1])),
        with("/metadata/ownerReferences", json!({})),
        with("/metadata/creationTimestamp", json!("yesterday")),
        with("/metadata/generation", json!("x")),
        with("/spec/containers", json!({})),
        with("/spec/containers", json!(["x"])),
        with("/spec/containers", json!([{ "name": 1, "image": "x" }])),
        with("/spec/hostNetwork", json!("yes")),
        with("/spec/hostNetwork", json!(1)),
        with("/spec/terminationGracePeriodSeconds", json!("30")),
        with("/spec/terminationGracePeriodSeconds", json!(1.5)),
        with("/spec/nodeSelector", json!({ "a": true })),
        with("/spec/volumes", json!("x")),
        with("/spec/affinity", json!([])),
        with("/spec/tolerations", json!([[]])),
        with("/spec/securityContext", json!({ "runAsUser": "root" })),
    ] {
        api.post("pods", &object).await?.refused(400, "BadRequest")?;
    }
    Ok(())
}

async fn numbers_out_of_range_are_refused(api: &Api) -> Result<()> {
    let path = "apps/v1:deployments?dryRun=All";
    for replicas in
        ["2147483648", "-2147483649", "99999999999999999999999999", "1e3", "1.0", "1.5", "-0", "1e400"]
    {
        let body = deployment("a").to_string().replacen(
            "\"spec\":{",
            &format!("\"spec\":{{\"replicas\":{replicas},"),
            1,
        );
        api.send(Method::POST, path, &JSON, body).await?;
    }
    Ok(())
}

async fn bodies_in_other_formats_are_refused(api: &Api) -> Result<()> {
    let body = config_map("a").to_string();
    for media in [
        "text/plain",
        "application/xml",
        "nonsense",
        "application/json; charset=utf-8",
        "application/json;stream=watch",
        "application/jsonp",
        "multipart/form-data",
        "application/json;",
        "application/json;;",
        "application/json;x",
        "application/json;=x",
        "application/json; x=1",
    ] {
        let answer = api
            .unrecorded(Method::POST, "configmaps?dryRun=All", &[("content-type", media)], body.clone())
            .await?;
        api.note(&format!("posted as {media}"), answer.verdict());
    }
    api.send(Method::POST, "configmaps?dryRun=All", &[], body.clone()).await?;
    api.send(Method::PUT, "configmaps/a", &[("content-type", "text/plain")], body.clone()).await?;
    let deleted =
        api.unrecorded(Method::DELETE, "configmaps/a", &[("content-type", "text/plain")], "{}").await?;
    api.note("deleted as text", deleted.verdict());
    let protobuf = [("content-type", "application/vnd.kubernetes.protobuf")];
    let patched = api.unrecorded(Method::PATCH, "configmaps/a", &protobuf, "k8s\0").await?;
    api.note("patched as protobuf", patched.verdict());
    Ok(())
}

async fn a_body_over_the_limit_is_refused(api: &Api) -> Result<()> {
    let mut object = config_map("a");
    object["data"]["big"] = "x".repeat(3 * 1024 * 1024).into();
    api.post("configmaps", &object).await?.refused(413, "RequestEntityTooLarge")?;
    api.get("configmaps/a").await?.refused(404, "NotFound")?;
    api.post("configmaps", &config_map("b")).await?.code(201)?;
    api.merge("configmaps/b", &object).await?.refused(413, "RequestEntityTooLarge")?;
    api.put("configmaps/b", &object).await?.refused(413, "RequestEntityTooLarge")?;
    api.delete_with("configmaps/b", &object).await?;
    Ok(())
}

async fn methods_that_do_not_fit_are_refused(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for (method, path) in [
        (Method::POST, "configmaps/a"),
        (Method::PUT, "configmaps"),
        (Method::PATCH, "configmaps"),
        (Method::OPTIONS, "configmaps"),
        (Method::TRACE, "configmaps/a"),
        (Method::POST, "/api/v1/configmaps"),
        (Method::PUT, "/api/v1/configmaps"),
        (Method::DELETE, "/api/v1/pods"),
        (Method::DELETE, "/api/v1/namespaces"),
        (Method::POST, "/healthz"),
        (Method::POST, "/version"),
        (Method::DELETE, "/version"),
        (Method::GET, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        (Method::PUT, "/api/v1/namespaces/default/finalize"),
        (Method::GET, "/api/v1/namespaces/default/finalize"),
        (Method::GET, "bindings"),
    ] {
        api.send(method, path, &JSON, "{}").await?;
    }
    Ok(())
}

async fn answers_that_are_not_spoken_are_refused(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for accept in [
        "text/html",
        "image/png",
        "application/json;as=Table;g=meta.k8s.io;v=v7",
        "application/json;as=Nonsense",
    ] {
        for path in ["configmaps", "configmaps/a", "/apis/apps/v1", "/api"] {
            let answer = api.unrecorded(Method::GET, path, &[("accept", accept)], "").await?;
            api.note(&format!("{path} as {accept}"), answer.verdict());
        }
    }
    api.get_as("configmaps/a", "text/html").await?;
    Ok(())
}

async fn odd_names_in_paths_are_refused(api: &Api) -> Result<()> {
    for path in [
        "configmaps/UPPER",
        "configmaps/%20",
        "configmaps/a%2Fb",
        "configmaps/..",
        "configmaps/%2E%2E",
        "configmaps//a",
        "configmaps/a/",
        "configmaps/%00",
        "configmaps/%C3%A4",
    ] {
        api.get(path).await?;
    }
    api.put("configmaps/UPPER", &config_map("UPPER")).await?;
    api.delete("configmaps/UPPER").await?;
    Ok(())
}

async fn a_wrong_request_changes_nothing(api: &Api) -> Result<()> {
    let made = api.post("configmaps", &config_map("a")).await?.code(201)?;
    let before = api.peek("configmaps").await?.body["items"].clone();
    api.post("configmaps", &config_map("a")).await?.code(409)?;
    api.post("configmaps", &config_map("B")).await?.code(422)?;
    api.put("configmaps/a", &config_map("b")).await?.code(400)?;
    api.put("configmaps/c", &config_map("c")).await?.code(404)?;
    api.merge("configmaps/a", &json!({ "data": { "x": 1 } })).await?.code(422)?;
    api.patch("configmaps/a", "json", &json!([{ "op": "test", "path": "/data/key", "value": "no" }])).await?;
    api.delete_with("configmaps/a", &json!({ "preconditions": { "uid": "no" } })).await?.code(409)?;
    api.delete("configmaps?labelSelector=a%20b").await?.code(400)?;
    let after = api.peek("configmaps").await?.body["items"].clone();
    ensure!(before == after, "{before} became {after}");
    ensure!(api.peek("configmaps/a").await?.version() == made.version());
    Ok(())
}

async fn odd_queries_are_refused_or_ignored(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for query in [
        "pretty=true",
        "pretty=nonsense",
        "unknown=1",
        "a&b&c",
        "=",
        "&&&",
        "%zz",
        "resourceVersion=%zz",
        "limit=%31",
        "fieldSelector=metadata.name%3Da&fieldSelector=metadata.name%3Db",
        "labelSelector=%E4",
        "fieldSelector=%E4",
        "limit=%E4",
    ] {
        api.get(&format!("configmaps?{query}")).await?;
    }
    api.post("configmaps?dryRun=All&unknown=1&pretty=1", &config_map("b")).await?;
    Ok(())
}

async fn a_collection_survives_options_that_are_wrong(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for query in [
        "limit=x",
        "timeoutSeconds=x",
        "continue=x",
        "resourceVersion=x",
        "resourceVersion=0",
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Nonsense&resourceVersion=1",
        "sendInitialEvents=true",
        "dryRun=All&dryRun=x",
        "labelSelector=%2C",
        "timeout=x",
    ] {
        let answer = api.delete(&format!("configmaps?{query}")).await?;
        ensure!(answer.code >= 400, "{query}: {}", answer.body);
    }
    api.get("configmaps").await?.code(200)?;
    Ok(())
}

async fn lists_of_options_are_checked_to_the_end(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for query in ["dryRun=All&dryRun=x", "dryRun=x&dryRun=All", "dryRun=&dryRun=All"] {
        api.post(&format!("configmaps?{query}"), &config_map("b")).await?.refused(422, "Invalid")?;
        api.put(&format!("configmaps/a?{query}"), &config_map("a")).await?.refused(422, "Invalid")?;
        let data = json!({ "data": { "x": "y" } });
        api.merge(&format!("configmaps/a?{query}"), &data).await?.refused(422, "Invalid")?;
        api.delete(&format!("configmaps/a?{query}")).await?.refused(422, "Invalid")?;
    }
    api.delete("configmaps/a?dryRun=All&dryRun=All&fieldManager=%00").await?.code(200)?;
    api.get("configmaps/a").await?.code(200)?;
    Ok(())
}

async fn timeouts_that_are_none_are_refused(api: &Api) -> Result<()> {
    for wrong in ["x", "1", "-", ".s", "1x", "1%20s", "1h2%C3%A4", "3000000h", "99999999999999999999s", "%22"]
    {
        let path = format!("configmaps?timeout={wrong}");
        api.post(&path, &config_map("a")).await?.refused(400, "BadRequest")?;
        api.get(&path).await?.refused(400, "BadRequest")?;
    }
    for right in ["", "34s", "1.5m", "1h1m1s", "0"] {
        api.get(&format!("configmaps?timeout={right}")).await?.code(200)?;
    }
    api.get("/nowhere?timeout=x").await?.refused(400, "BadRequest")?;
    api.get("/version?timeout=x").await?.refused(400, "BadRequest")?;
    api.get("configmaps?watch=1&timeout=x&timeoutSeconds=1").await?.code(200)?;
    Ok(())
}

async fn broken_deletions_are_refused(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for body in [
        "{",
        "[]",
        "\"x\"",
        "5",
        "{\"gracePeriodSeconds\":\"x\"}",
        "{\"preconditions\":[]}",
        "{\"dryRun\":\"All\"}",
        "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\"}",
    ] {
        let answer = api.send(Method::DELETE, "configmaps/a", &JSON, body).await?;
        ensure!(answer.code >= 400, "{body}: {}", answer.body);
        let answer = api.send(Method::DELETE, "configmaps", &JSON, body).await?;
        ensure!(answer.code >= 400, "{body}: {}", answer.body);
    }
    api.get("configmaps/a").await?.code(200)?;
    Ok(())
}

async fn a_deeply_nested_body_is_refused(api: &Api) -> Result<()> {
    let deep = |depth: usize| {
        format!("{{\"metadata\":{{\"name\":\"a\"}},\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth))
    };
    for depth in [100, 9_000, 20_000] {
        let answer = api.send(Method::POST, "configmaps?dryRun=All", &JSON, deep(depth)).await?;
        api.note(&format!("depth {depth}"), answer.code.into());
    }
    Ok(())
}

async fn objects_of_many_levels_can_be_changed(api: &Api) -> Result<()> {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    serve(api, &definition(api, schema)).await?;
    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!({ "a": inner }));
    for depth in [10, 100, 110, 118, 122, 126, 140, 1000] {
        let name = format!("d{depth}");
        let body = widget(api, &name, json!(0)).to_string();
        let spec = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        let body = body.replace("\"spec\":0", &format!("\"spec\":{spec}"));
        let made = api.unrecorded(Method::POST, &widgets(api), &JSON, body).await?;
        api.note(&format!("{depth} levels"), made.code.into());
        if made.code == 201 {
            // Whatever is taken can be worked with.
            let path = format!("{}/{name}", widgets(api));
            let media = [("content-type", "application/merge-patch+json")];
            let label = json!({ "metadata": { "labels": { "a": "b" } } }).to_string();
            api.unrecorded(Method::PATCH, &path, &media, label).await?.code(200)?;
        }
    }
    let base = widget(api, "grown", nested(90));
    api.unrecorded(Method::POST, &widgets(api), &JSON, base.to_string()).await?.code(201)?;
    let deeper = json!([{ "op": "add", "path": format!("/spec{}/b", "/a".repeat(60)), "value": nested(80) }]);
    let media = [("content-type", "application/json-patch+json")];
    let path = format!("{}/grown", widgets(api));
    let grown = api.unrecorded(Method::PATCH, &path, &media, deeper.to_string()).await?;
    api.note("grown by a patch", grown.code.into());
    let label = json!([{ "op": "add", "path": "/metadata/labels", "value": { "a": "b" } }]).to_string();
    api.unrecorded(Method::PATCH, &path, &media, label).await?.code(200)?;
    Ok(())
}
