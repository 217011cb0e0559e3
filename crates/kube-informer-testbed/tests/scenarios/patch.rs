//! Patch: JSON, merge and strategic merge; apply is not spoken by the embedded server.

use anyhow::Result;
use http::Method;
use serde_json::json;

use crate::harness::{Api, config_map, deployment, pod, scenarios, service};

scenarios![
    a_json_patch_is_done_operation_by_operation,
    a_failing_json_patch_changes_nothing,
    malformed_json_patches_are_refused,
    a_merge_patch_sets_and_removes,
    merge_patches_that_do_not_fit_are_refused,
    a_strategic_merge_patch_merges_lists_by_their_keys,
    strategic_directives_delete_and_replace,
    strategic_lists_follow_the_order_that_is_asked_for,
    strategic_merge_of_ports_finalizers_and_conditions,
    malformed_strategic_patches_are_refused,
    a_strategic_patch_does_not_say_what_the_type_is,
    a_patch_with_an_old_version_conflicts,
    a_patch_of_a_missing_object_is_not_found,
    a_patch_in_an_unknown_format_is_refused,
    a_patch_cannot_rename_or_move,
    a_patch_that_changes_nothing_keeps_the_version,
    a_patched_object_is_validated_and_defaulted,
    server_side_apply_is_answered,
    an_empty_patch_body_is_refused,
];

async fn a_json_patch_is_done_operation_by_operation(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.patch(
        "configmaps/a",
        "json",
        &json!([
            { "op": "test", "path": "/data/key", "value": "value" },
            { "op": "add", "path": "/data/second", "value": "2" },
            { "op": "replace", "path": "/data/key", "value": "new" },
            { "op": "copy", "from": "/data/key", "path": "/data/third" },
            { "op": "move", "from": "/data/second", "path": "/data/fourth" },
            { "op": "add", "path": "/metadata/labels", "value": { "a~b": "x" } },
            { "op": "add", "path": "/metadata/annotations", "value": { "example.com/x": "y" } },
            { "op": "replace", "path": "/metadata/annotations/example.com~1x", "value": "z" },
            { "op": "remove", "path": "/metadata/labels" },
        ]),
    )
    .await?
    .code(200)?;
    let mut many = pod("a");
    many["spec"]["containers"] = json!([{ "name": "a", "image": "a" }, { "name": "b", "image": "b" }]);
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    api.patch("apps/v1:deployments/a", "json", &json!([
        { "op": "add", "path": "/spec/template/spec/containers/-", "value": { "name": "b", "image": "b" } },
        { "op": "add", "path": "/spec/template/spec/containers/0", "value": { "name": "c", "image": "c" } },
        { "op": "remove", "path": "/spec/template/spec/containers/1" },
        { "op": "replace", "path": "/spec/template/spec/containers/1/image", "value": "bb" },
    ])).await?.code(200)?;
    api.patch("configmaps/a", "json", &json!([])).await?.code(200)?;
    Ok(())
}

async fn a_failing_json_patch_changes_nothing(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for operation in [
        json!({ "op": "test", "path": "/data/key", "value": "other" }),
        json!({ "op": "test", "path": "/data/missing", "value": null }),
        json!({ "op": "remove", "path": "/data/missing" }),
        json!({ "op": "replace", "path": "/data/missing", "value": "x" }),
        json!({ "op": "replace", "path": "/spec/missing/deep", "value": "x" }),
        json!({ "op": "add", "path": "/spec/missing/deep", "value": "x" }),
        json!({ "op": "copy", "from": "/data/missing", "path": "/data/x" }),
        json!({ "op": "move", "from": "/data/missing", "path": "/data/x" }),
        json!({ "op": "add", "path": "/metadata/managedFields/99", "value": {} }),
        json!({ "op": "add", "path": "/metadata/managedFields/x", "value": {} }),
    ] {
        let patch = json!([{ "op": "add", "path": "/data/before", "value": "x" }, operation]);
        api.patch("configmaps/a", "json", &patch).await?;
    }
    api.get("configmaps/a").await?.code(200)?;
    Ok(())
}

async fn malformed_json_patches_are_refused(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for body in [
        r#"{"op":"add"}"#,
        r#"[{"op":"nonsense","path":"/data/x","value":"y"}]"#,
        r#"[{"op":"add","value":"y"}]"#,
        r#"[{"op":"add","path":"data/x","value":"y"}]"#,
        r#"[{"op":"add","path":"/data/x"}]"#,
        r#"[{"path":"/data/x","value":"y"}]"#,
        r#"[{"op":"move","path":"/data/x"}]"#,
        r#"["x"]"#,
        r#"nonsense"#,
        r#"null"#,
        r#""#,
        r#"[{"op":"replace","path":"","value":{}}]"#,
        r#"[{"op":"remove","path":""}]"#,
        r#"[{"op":"add","path":"/data/x","value":1}]"#,
        r#"[{"op":"add","path":"/data","value":"text"}]"#,
    ] {
        api.send(Method::PATCH, "configmaps/a", &[("content-type", "application/json-patch+json")], body)
            .await?;
    }
    let many: Vec<_> =
        (0..10_001).map(|_| json!({ "op": "test", "path": "/data/key", "value": "value" })).collect();
    api.patch("configmaps/a", "json", &many.into()).await?;
    Ok(())
}

async fn a_merge_patch_sets_and_removes(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.merge("configmaps/a", &json!({ "data": { "second": "2", "key": null, "missing": null }, "metadata": { "labels": { "x": "y" } } })).await?.code(200)?;
    api.merge("configmaps/a", &json!({ "data": null })).await?.code(200)?;
    api.merge(
        "configmaps/a",
        &json!({ "data": { "again": "1" }, "metadata": { "labels": null, "annotations": {} } }),
    )
    .await?
    .code(200)?;
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    // Lists are replaced as a whole.
    let containers = json!([{ "name": "only", "image": "x" }]);
    api.merge("apps/v1:deployments/a", &json!({ "spec": { "template": { "spec": { "containers": containers } }, "strategy": { "rollingUpdate": null, "type": "Recreate" } } })).await?.code(200)?;
    Ok(())
}

async fn merge_patches_that_do_not_fit_are_refused(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for body in [
        r#"[]"#,
        r#""text""#,
        r#"1"#,
        r#"null"#,
        r#"{"#,
        r#"nonsense"#,
        r#"{"data":"text"}"#,
        r#"{"data":{"x":1}}"#,
        r#"{"data":{"x":{"y":"z"}}}"#,
        r#"{"metadata":null}"#,
        r#"{"metadata":{"name":null}}"#,
        r#"{"kind":"ServiceAccount"}"#,
        r#"{"apiVersion":"v9"}"#,
        r#"{"kind":null}"#,
    ] {
        api.send(Method::PATCH, "configmaps/a", &[("content-type", "application/merge-patch+json")], body)
            .await?;
    }
    api.get("configmaps/a").await?;
    Ok(())
}

async fn a_strategic_merge_patch_merges_lists_by_their_keys(api: &Api) -> Result<()> {
    let mut object = deployment("a");
    object["spec"]["template"]["spec"]["containers"] = json!([
        { "name": "a", "image": "a", "env": [{ "name": "X", "value": "1" }, { "name": "Y", "value": "2" }], "args": ["one", "two"],
          "ports": [{ "containerPort": 80, "name": "http" }], "volumeMounts": [{ "name": "v", "mountPath": "/v" }] },
        { "name": "b", "image": "b" },
    ]);
    object["spec"]["template"]["spec"]["volumes"] = json!([{ "name": "v", "emptyDir": {} }]);
    api.post("apps/v1:deployments", &object).await?.code(201)?;
    let path = "apps/v1:deployments/a";
    let of = |containers: serde_json::Value| json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    api.patch(
        path,
        "strategic-merge",
        &of(json!([{ "name": "b", "image": "bb" }, { "name": "c", "image": "c" }])),
    )
    .await?
    .code(200)?;
    api.patch(path, "strategic-merge", &of(json!([{ "name": "a", "env": [{ "name": "Y", "value": "22" }, { "name": "Z", "value": "3" }], "args": ["three"] }]))).await?.code(200)?;
    api.patch(path, "strategic-merge", &of(json!([{ "name": "a", "ports": [{ "containerPort": 81 }, { "containerPort": 80, "protocol": "UDP" }] }]))).await?;
    api.patch(path, "strategic-merge", &json!({ "spec": { "template": { "spec": { "volumes": [{ "name": "v", "emptyDir": null, "configMap": { "name": "x" } }], "nodeSelector": { "a": "b" } } } } })).await?;
    api.patch(
        path,
        "strategic-merge",
        &json!({ "metadata": { "labels": { "x": "y" }, "annotations": { "p": "q" } } }),
    )
    .await?
    .code(200)?;
    api.patch(path, "strategic-merge", &json!({ "metadata": { "labels": { "x": null } } }))
        .await?
        .code(200)?;
    Ok(())
}

async fn strategic_directives_delete_and_replace(api: &Api) -> Result<()> {
    let mut object = deployment("a");
    object["spec"]["template"]["spec"]["containers"] = json!([
        { "name": "a", "image": "a", "env": [{ "name": "X", "value": "1" }, { "name": "Y", "value": "2" }] },
        { "name": "b", "image": "b" }, { "name": "c", "image": "c" },
    ]);
    api.post("apps/v1:deployments", &object).await?.code(201)?;
    let path = "apps/v1:deployments/a";
    let of = |containers: serde_json::Value| json!({ "spec": { "template": { "spec": { "containers": containers } } } });
    api.patch(path, "strategic-merge", &of(json!([{ "name": "b", "$patch": "delete" }]))).await?.code(200)?;
    api.patch(
        path,
        "strategic-merge",
        &of(json!([{ "name": "a", "env": [{ "$patch": "replace" }, { "name": "Z", "value": "3" }] }])),
    )
    .await?
    .code(200)?;
    api.patch(
        path,
        "strategic-merge",
        &json!({ "spec": { "strategy": { "$patch": "replace", "type": "Recreate" } } }),
    )
    .await?
    .code(200)?;
    api.patch(
        path,
        "strategic-merge",
        &json!({ "spec": { "strategy": { "$retainKeys": ["type"], "type": "RollingUpdate" } } }),
    )
    .await?;
    api.patch(path, "strategic-merge", &json!({ "metadata": { "labels": { "$patch": "delete" } } })).await?;
    api.patch(
        path,
        "strategic-merge",
        &of(json!([{ "$patch": "replace" }, { "name": "only", "image": "x" }])),
    )
    .await?
    .code(200)?;
    api.patch(path, "strategic-merge", &of(json!([{ "name": "only", "$patch": "delete" }]))).await?;
    let mut object = config_map("a");
    object["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
    api.post("configmaps", &object).await?.code(201)?;
    api.patch(
        "configmaps/a",
        "strategic-merge",
        &json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["example.com/a"] } }),
    )
    .await?;
    api.patch("configmaps/a", "strategic-merge", &json!({ "data": { "$patch": "replace", "only": "x" } }))
        .await?;
    Ok(())
}

async fn strategic_lists_follow_the_order_that_is_asked_for(api: &Api) -> Result<()> {
    let mut object = deployment("a");
    object["spec"]["template"]["spec"]["containers"] =
        json!([{ "name": "a", "image": "a" }, { "name": "b", "image": "b" }, { "name": "c", "image": "c" }]);
    api.post("apps/v1:deployments", &object).await?.code(201)?;
    let path = "apps/v1:deployments/a";
    let spec = |spec: serde_json::Value| json!({ "spec": { "template": { "spec": spec } } });
    api.patch(
        path,
        "strategic-merge",
        &spec(json!({ "$setElementOrder/containers": [{ "name": "c" }, { "name": "d" }, { "name": "a" }],
        "containers": [{ "name": "d", "image": "d" }, { "name": "b", "$patch": "delete" }] })),
    )
    .await?
    .code(200)?;
    api.patch(
        path,
        "strategic-merge",
        &spec(json!({ "$setElementOrder/containers": [{ "name": "a" }, { "name": "c" }, { "name": "d" }] })),
    )
    .await?;
    api.patch(path, "strategic-merge", &spec(json!({ "$setElementOrder/containers": [{ "name": "a" }], "containers": [{ "name": "e", "image": "e" }] }))).await?;
    api.patch(path, "strategic-merge", &json!({ "metadata": { "$setElementOrder/finalizers": ["example.com/b", "example.com/a"], "finalizers": ["example.com/a", "example.com/b"] } })).await?;
    Ok(())
}

async fn strategic_merge_of_ports_finalizers_and_conditions(api: &Api) -> Result<()> {
    api.post("services", &service("a")).await?.code(201)?;
    api.patch(
        "services/a",
        "strategic-merge",
        &json!({ "spec": { "ports": [{ "port": 80, "name": "http" }, { "port": 443, "name": "https" }] } }),
    )
    .await?
    .code(200)?;
    api.patch("services/a", "strategic-merge", &json!({ "metadata": { "finalizers": ["example.com/a"] } }))
        .await?
        .code(200)?;
    api.patch("services/a", "strategic-merge", &json!({ "metadata": { "finalizers": ["example.com/b"] } }))
        .await?
        .code(200)?;
    api.post("pods", &pod("a")).await?.code(201)?;
    let condition = |kind: &str, status: &str| json!({ "status": { "conditions": [{ "type": kind, "status": status }] } });
    api.patch("pods/a/status", "strategic-merge", &condition("Ready", "False")).await?.code(200)?;
    api.patch("pods/a/status", "strategic-merge", &condition("Initialized", "True")).await?.code(200)?;
    api.patch("pods/a/status", "strategic-merge", &condition("Ready", "True")).await?.code(200)?;
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    api.patch("apps/v1:deployments/a/scale", "strategic-merge", &json!({ "spec": { "replicas": 3 } }))
        .await?;
    Ok(())
}

async fn malformed_strategic_patches_are_refused(api: &Api) -> Result<()> {
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    for body in [
        "[]",
        "null",
        "1",
        "nonsense",
        "",
        r#"{"spec":{"template":{"spec":{"containers":[{"image":"x"}]}}}}"#,
        r#"{"spec":{"template":{"spec":{"containers":"x"}}}}"#,
        r#"{"spec":{"template":{"spec":{"containers":{"name":"x"}}}}}"#,
        r#"{"spec":{"template":{"spec":{"containers":["x"]}}}}"#,
        r#"{"spec":{"strategy":{"$patch":"nonsense"}}}"#,
        r#"{"spec":{"strategy":{"$retainKeys":"x"}}}"#,
        r#"{"spec":{"$setElementOrder/nope":"x"}}"#,
        r#"{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"nokey":"x"}]}}}}"#,
        r#"{"spec":{"replicas":"three"}}"#,
        r#"{"spec":5}"#,
        r#"{"$patch":"delete"}"#,
        r#"{"$patch":"replace"}"#,
    ] {
        api.send(
            Method::PATCH,
            "apps/v1:deployments/a",
            &[("content-type", "application/strategic-merge-patch+json")],
            body,
        )
        .await?;
    }
    api.get("apps/v1:deployments/a").await?;
    Ok(())
}

async fn a_patch_with_an_old_version_conflicts(api: &Api) -> Result<()> {
    let made = api.post("configmaps", &config_map("a")).await?.code(201)?;
    let with = |version: &str, value: &str| json!({ "metadata": { "resourceVersion": version }, "data": { "key": value } });
    let next = api.merge("configmaps/a", &with(&made.version(), "2")).await?.code(200)?;
    api.merge("configmaps/a", &with(&made.version(), "3")).await?.refused(409, "Conflict")?;
    api.patch("configmaps/a", "strategic-merge", &with(&made.version(), "3"))
        .await?
        .refused(409, "Conflict")?;
    api.patch(
        "configmaps/a",
        "json",
        &json!([{ "op": "replace", "path": "/metadata/resourceVersion", "value": made.version() }]),
    )
    .await?;
    api.patch("configmaps/a", "strategic-merge", &with(&next.version(), "4")).await?.code(200)?;
    api.merge("configmaps/a", &json!({ "metadata": { "uid": "11111111-2222-3333-4444-555555555555" } }))
        .await?
        .refused(422, "Invalid")?;
    api.merge("configmaps/a", &with("nonsense", "5")).await?;
    Ok(())
}

async fn a_patch_of_a_missing_object_is_not_found(api: &Api) -> Result<()> {
    api.merge("configmaps/a", &json!({ "data": {} })).await?.refused(404, "NotFound")?;
    api.patch("configmaps/a", "json", &json!([{ "op": "nonsense" }])).await?;
    api.patch("apps/v1:deployments/a/status", "merge", &json!({})).await?.refused(404, "NotFound")?;
    api.patch("apps/v1:deployments/a/scale", "merge", &json!({})).await?.refused(404, "NotFound")?;
    api.merge("coordination.k8s.io/v1:leases/a", &json!({ "spec": {} })).await?;
    Ok(())
}

async fn a_patch_in_an_unknown_format_is_refused(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for media in [
        "application/json",
        "text/plain",
        "application/nonsense-patch+json",
        "application/merge-patch+json; charset=utf-8",
    ] {
        api.send(Method::PATCH, "configmaps/a", &[("content-type", media)], r#"{"data":{"x":"y"}}"#).await?;
    }
    api.send(Method::PATCH, "configmaps/a", &[], r#"{"data":{"x":"y"}}"#).await?;
    api.send(Method::PATCH, "configmaps", &[("content-type", "application/merge-patch+json")], "{}").await?;
    Ok(())
}

async fn a_patch_cannot_rename_or_move(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.merge("configmaps/a", &json!({ "metadata": { "name": "b" } })).await?;
    api.merge("configmaps/a", &json!({ "metadata": { "namespace": "default" } })).await?;
    api.merge("configmaps/a", &json!({ "metadata": { "creationTimestamp": null, "uid": null } })).await?;
    api.patch("configmaps/a", "json", &json!([{ "op": "remove", "path": "/metadata/name" }])).await?;
    Ok(())
}

async fn a_patch_that_changes_nothing_keeps_the_version(api: &Api) -> Result<()> {
    let made = api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    let path = "apps/v1:deployments/a";
    for same in [
        api.merge(path, &json!({})).await?.code(200)?,
        api.merge(path, &json!({ "spec": { "replicas": 1 } })).await?.code(200)?,
        api.patch(path, "strategic-merge", &json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "image": "nginx:1" }] } } } })).await?.code(200)?,
        api.patch(path, "json", &json!([{ "op": "test", "path": "/spec/replicas", "value": 1 }])).await?.code(200)?,
    ] {
        assert_eq!(same.version(), made.version());
    }
    Ok(())
}

async fn a_patched_object_is_validated_and_defaulted(api: &Api) -> Result<()> {
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    let path = "apps/v1:deployments/a";
    api.merge(path, &json!({ "spec": { "replicas": -1 } })).await?.refused(422, "Invalid")?;
    api.merge(path, &json!({ "spec": { "replicas": null, "strategy": null, "revisionHistoryLimit": null } }))
        .await?
        .code(200)?;
    api.merge(path, &json!({ "spec": { "template": { "spec": { "containers": [] } } } }))
        .await?
        .refused(422, "Invalid")?;
    api.merge(path, &json!({ "spec": { "template": { "metadata": { "labels": null } } } }))
        .await?
        .refused(422, "Invalid")?;
    Ok(())
}

async fn server_side_apply_is_answered(api: &Api) -> Result<()> {
    let apply = [("content-type", "application/apply-patch+yaml")];
    api.send(Method::PATCH, "configmaps/a?fieldManager=x", &apply, config_map("a").to_string()).await?;
    Ok(())
}

async fn an_empty_patch_body_is_refused(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for format in ["merge", "strategic-merge", "json"] {
        let media = format!("application/{format}-patch+json");
        api.send(Method::PATCH, "configmaps/a", &[("content-type", &media)], "").await?;
    }
    Ok(())
}

async fn a_strategic_patch_does_not_say_what_the_type_is(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for patch in [
        json!({ "kind": "Pod" }),
        json!({ "apiVersion": "v3" }),
        json!({ "kind": null, "data": { "k": "v" } }),
    ] {
        api.patch("configmaps/a", "strategic-merge", &patch).await?.code(200)?;
    }
    Ok(())
}
