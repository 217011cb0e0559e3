//! Objects of custom resources.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Api, definition, scenarios, serve, simple, widget, widgets};

scenarios![
    defaults_are_filled_in_and_unknown_fields_go,
    unknown_fields_can_be_kept_or_refused,
    objects_are_validated_against_their_schema,
    rules_in_formats_lists_and_patterns_hold,
    the_status_of_a_custom_object_is_apart,
    the_scale_of_a_custom_object,
    patches_of_custom_objects,
    updates_of_custom_objects,
    watches_of_custom_objects,
    cluster_scoped_custom_objects,
    metadata_of_custom_objects_is_checked,
    collections_of_custom_objects_are_deleted,
    each_version_shows_the_fields_of_its_own_schema,
    a_patch_makes_no_other_kind_of_an_object,
];

async fn each_version_shows_the_fields_of_its_own_schema(api: &Api) -> Result<()> {
    let of = |name: &str| json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": { name: { "type": "string" } } } } });
    let mut both = definition(api, of("mode"));
    let second = json!({ "name": "v2", "served": true, "storage": false, "schema": { "openAPIV3Schema": of("size") } });
    both["spec"]["versions"].as_array_mut().unwrap().push(second);
    serve(api, &both).await?;
    let newer = format!("{}/v2:widgets", api.group());
    api.post(&widgets(api), &widget(api, "a", json!({ "mode": "x" }))).await?.code(201)?;
    api.get(&format!("{newer}/a")).await?.code(200)?;
    api.get(&newer).await?.code(200)?;
    api.merge(&format!("{newer}/a"), &json!({ "spec": { "size": "large" } })).await?.code(200)?;
    api.get(&format!("{}/a", widgets(api))).await?.code(200)?;
    Ok(())
}

async fn a_patch_makes_no_other_kind_of_an_object(api: &Api) -> Result<()> {
    serve(api, &definition(api, simple())).await?;
    api.post(&widgets(api), &widget(api, "a", json!({}))).await?.code(201)?;
    let path = format!("{}/a", widgets(api));
    api.merge(&path, &json!({ "kind": "Other" })).await?.refused(422, "Invalid")?;
    api.merge(&path, &json!({ "apiVersion": format!("{}/v2", api.group()) }))
        .await?
        .refused(422, "Invalid")?;
    api.get(&path).await?.code(200)?;
    Ok(())
}

async fn defaults_are_filled_in_and_unknown_fields_go(api: &Api) -> Result<()> {
    serve(api, &definition(api, simple())).await?;
    let path = widgets(api);
    let mut object = widget(api, "a", json!({ "color": "red", "unknown": 1, "nested": { "other": true } }));
    object["top"] = json!("unknown");
    object["metadata"]["odd"] = json!(1);
    api.post(&path, &object).await?.code(201)?;
    api.post(&path, &widget(api, "b", json!({ "size": null, "nested": {} }))).await?;
    let mut bare = widget(api, "c", json!({}));
    bare.as_object_mut().unwrap().remove("spec");
    api.post(&path, &bare).await?.code(201)?;
    api.post(&path, &widget(api, "d", Value::Null)).await?;
    Ok(())
}

async fn unknown_fields_can_be_kept_or_refused(api: &Api) -> Result<()> {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "typed": { "type": "object", "properties": { "a": { "type": "string" } } } } } } });
    serve(api, &definition(api, schema)).await?;
    let path = widgets(api);
    let object = widget(
        api,
        "a",
        json!({ "anything": { "goes": [1, 2.5, null, "x"] }, "typed": { "a": "x", "b": "dropped" } }),
    );
    api.post(&path, &object).await?.code(201)?;
    let mut odd = widget(api, "b", json!({ "typed": { "b": 1 } }));
    odd["top"] = 1.into();
    api.post(&format!("{path}?fieldValidation=Strict"), &odd).await?.refused(400, "BadRequest")?;
    api.post(&format!("{path}?fieldValidation=Warn"), &odd).await?.code(201)?;
    odd["metadata"]["name"] = "c".into();
    api.post(&format!("{path}?fieldValidation=Ignore"), &odd).await?.code(201)?;
    let json = [("content-type", "application/json")];
    let twice = format!(
        r#"{{"apiVersion":"{}/v1","kind":"Widget","metadata":{{"name":"d"}},"spec":{{"x":1,"x":2}}}}"#,
        api.group()
    );
    api.send(Method::POST, &path, &json, twice.clone()).await?;
    api.send(Method::POST, &format!("{path}?fieldValidation=Strict"), &json, twice).await?;
    Ok(())
}

async fn objects_are_validated_against_their_schema(api: &Api) -> Result<()> {
    let mut schema = simple();
    schema["properties"]["spec"]["required"] = json!(["color"]);
    schema["properties"]["spec"]["properties"]["color"]["enum"] = json!(["red", "green"]);
    schema["required"] = json!(["spec"]);
    serve(api, &definition(api, schema)).await?;
    let path = widgets(api);
    for spec in [
        json!({}),
        json!({ "color": "blue" }),
        json!({ "color": 5 }),
        json!({ "color": "red", "size": -1 }),
        json!({ "color": "red", "size": "x" }),
        json!({ "color": "red", "size": 1.5 }),
        json!({ "color": "red", "tags": "x" }),
        json!({ "color": "red", "tags": [1, {}] }),
        json!({ "color": "red", "nested": [] }),
        json!("text"),
        json!([]),
        json!({ "color": null }),
        json!({ "color": "red", "size": 99_999_999_999_i64 }),
    ] {
        api.post(&path, &widget(api, "a", spec)).await?;
    }
    let mut bare = widget(api, "b", json!({}));
    bare.as_object_mut().unwrap().remove("spec");
    api.post(&path, &bare).await?.refused(422, "Invalid")?;
    Ok(())
}

async fn rules_in_formats_lists_and_patterns_hold(api: &Api) -> Result<()> {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "pattern": { "type": "string", "pattern": "^[a-z]+$" }, "short": { "type": "string", "maxLength": 3, "minLength": 2 },
        "time": { "type": "string", "format": "date-time" }, "port": { "x-kubernetes-int-or-string": true },
        "range": { "type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 10, "multipleOf": 0.5 },
        "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" }, "maxItems": 3 },
        "map": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" }, "value": { "type": "integer" } } } },
        "free": { "type": "object", "additionalProperties": { "type": "integer" }, "maxProperties": 2 },
        "null": { "type": "string", "nullable": true },
        "any": { "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } }, "oneOf": [{ "required": ["a"] }, { "required": ["b"] }] } } } } });
    serve(api, &definition(api, schema)).await?;
    let path = widgets(api);
    api.post(&path, &widget(api, "good", json!({ "pattern": "abc", "short": "ab", "time": "2001-01-01T00:00:00Z", "port": "http", "range": 1.5, "set": ["a", "b"],
        "map": [{ "name": "x", "value": 1 }], "free": { "a": 1 }, "null": null, "any": { "a": "x" } }))).await?.code(201)?;
    for spec in [
        json!({ "pattern": "ABC" }),
        json!({ "short": "a" }),
        json!({ "short": "abcd" }),
        json!({ "time": "nonsense" }),
        json!({ "port": true }),
        json!({ "range": 1 }),
        json!({ "range": 11 }),
        json!({ "range": 1.3 }),
        json!({ "set": ["a", "a"] }),
        json!({ "set": ["a", "b", "c", "d"] }),
        json!({ "map": [{ "name": "x" }, { "name": "x" }] }),
        json!({ "map": [{ "value": 1 }] }),
        json!({ "free": { "a": "x" } }),
        json!({ "free": { "a": 1, "b": 2, "c": 3 } }),
        json!({ "any": {} }),
        json!({ "any": { "a": "x", "b": "y" } }),
    ] {
        api.post(&path, &widget(api, "bad", spec)).await?;
    }
    Ok(())
}

async fn the_status_of_a_custom_object_is_apart(api: &Api) -> Result<()> {
    let mut definition = definition(api, simple());
    definition["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    serve(api, &definition).await?;
    let path = widgets(api);
    let mut object = widget(api, "a", json!({}));
    object["status"] = json!({ "phase": "ignored" });
    api.post(&path, &object).await?.code(201)?;
    api.merge(&format!("{path}/a"), &json!({ "status": { "phase": "ignored" }, "spec": { "size": 2 } }))
        .await?
        .code(200)?;
    api.merge(&format!("{path}/a/status"), &json!({ "status": { "phase": "Ready" }, "spec": { "size": 9 }, "metadata": { "labels": { "x": "y" } } })).await?.code(200)?;
    api.get(&format!("{path}/a/status")).await?.code(200)?;
    api.merge(&format!("{path}/a/status"), &json!({ "status": { "phase": 5 } }))
        .await?
        .refused(422, "Invalid")?;
    api.merge(&format!("{path}/a"), &json!({ "metadata": { "labels": { "l": "m" } } })).await?.code(200)?;
    api.get(&format!("{path}/a/scale")).await?.code(404)?;
    Ok(())
}

async fn the_scale_of_a_custom_object(api: &Api) -> Result<()> {
    let mut definition = definition(api, simple());
    definition["spec"]["versions"][0]["subresources"] = json!({ "status": {}, "scale": { "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector" } });
    serve(api, &definition).await?;
    let path = widgets(api);
    api.post(&path, &widget(api, "a", json!({ "size": 3 }))).await?.code(201)?;
    api.merge(&format!("{path}/a/status"), &json!({ "status": { "replicas": 2, "selector": "app=a" } }))
        .await?
        .code(200)?;
    let mut scale = api.get(&format!("{path}/a/scale")).await?.code(200)?.body;
    scale["spec"]["replicas"] = 5.into();
    api.put(&format!("{path}/a/scale"), &scale).await?.code(200)?;
    api.put(&format!("{path}/a/scale"), &scale).await?.refused(409, "Conflict")?;
    api.merge(&format!("{path}/a/scale"), &json!({ "spec": { "replicas": 7 } })).await?.code(200)?;
    api.merge(&format!("{path}/a/scale"), &json!({ "spec": { "replicas": -7 } })).await?;
    api.get(&format!("{path}/a")).await?.code(200)?;
    Ok(())
}

async fn patches_of_custom_objects(api: &Api) -> Result<()> {
    serve(api, &definition(api, simple())).await?;
    let path = format!("{}/a", widgets(api));
    api.post(&widgets(api), &widget(api, "a", json!({ "tags": ["x"] }))).await?.code(201)?;
    api.merge(&path, &json!({ "spec": { "color": "red", "tags": ["y", "z"], "size": null } }))
        .await?
        .code(200)?;
    api.patch(&path, "json", &json!([{ "op": "add", "path": "/spec/tags/-", "value": "w" }]))
        .await?
        .code(200)?;
    api.patch(&path, "strategic-merge", &json!({ "spec": { "color": "blue" } }))
        .await?
        .refused(415, "UnsupportedMediaType")?;
    api.send(Method::PATCH, &path, &[("content-type", "application/json")], "{}")
        .await?
        .refused(415, "UnsupportedMediaType")?;
    api.merge(&path, &json!({ "spec": { "unknown": 1 } })).await?.code(200)?;
    api.merge(&format!("{path}?fieldValidation=Strict"), &json!({ "spec": { "unknown": 1 } })).await?;
    api.merge(&path, &json!({ "spec": { "size": "x" } })).await?.refused(422, "Invalid")?;
    api.merge(&path, &json!({ "kind": "Other" })).await?;
    api.merge(&path, &json!({ "metadata": { "resourceVersion": "1" } })).await?.refused(409, "Conflict")?;
    Ok(())
}

async fn updates_of_custom_objects(api: &Api) -> Result<()> {
    serve(api, &definition(api, simple())).await?;
    let path = format!("{}/a", widgets(api));
    let made = api.post(&widgets(api), &widget(api, "a", json!({}))).await?.code(201)?;
    api.put(&path, &widget(api, "a", json!({ "size": 2 }))).await?;
    let mut object = made.body.clone();
    object["spec"]["size"] = 3.into();
    api.put(&path, &object).await?.code(200)?;
    api.put(&path, &object).await?.refused(409, "Conflict")?;
    let now = api.peek(&path).await?.body;
    api.put(&path, &now).await?.code(200)?;
    object["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555".into();
    api.put(&path, &object).await?.refused(409, "Conflict")?;
    let mut other = now;
    other["kind"] = "Other".into();
    api.put(&path, &other).await?.code(422)?;
    api.put(&format!("{}/b", widgets(api)), &widget(api, "b", json!({}))).await?.refused(404, "NotFound")?;
    api.merge(&path, &json!({ "metadata": { "labels": { "a": "b" } } })).await?.code(200)?;
    Ok(())
}

async fn watches_of_custom_objects(api: &Api) -> Result<()> {
    serve(api, &definition(api, simple())).await?;
    let start = api.post(&widgets(api), &widget(api, "a", json!({}))).await?.code(201)?.version();
    let mut watch = api.watch(&format!("{}?resourceVersion={start}", widgets(api))).await?;
    api.merge(&format!("{}/a", widgets(api)), &json!({ "spec": { "size": 4 } })).await?.code(200)?;
    api.delete(&format!("{}/a", widgets(api))).await?.code(200)?;
    watch.events(2).await?;
    let mut watch = api
        .watch(&format!(
            "{}?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
            widgets(api)
        ))
        .await?;
    watch.events(1).await?;
    Ok(())
}

async fn cluster_scoped_custom_objects(api: &Api) -> Result<()> {
    let mut definition = definition(api, simple());
    definition["spec"]["scope"] = "Cluster".into();
    serve(api, &definition).await?;
    let path = format!("/apis/{}/v1/widgets", api.group());
    api.post(&path, &widget(api, "a", json!({}))).await?.code(201)?;
    api.get(&format!("{path}/a")).await?.code(200)?;
    api.post(&widgets(api), &widget(api, "b", json!({}))).await?.code(404)?;
    api.delete(&format!("{path}/a")).await?.code(200)?;
    Ok(())
}

async fn metadata_of_custom_objects_is_checked(api: &Api) -> Result<()> {
    serve(api, &definition(api, simple())).await?;
    let path = widgets(api);
    for (key, value) in [
        ("name", json!("Bad_Name")),
        ("labels", json!({ "a": "b c" })),
        ("labels", json!({ "a": 1 })),
        ("labels", json!([])),
        ("finalizers", json!(["bad one"])),
        ("name", json!(5)),
        ("annotations", json!({ "a": null })),
        ("ownerReferences", json!([{ "kind": "x" }])),
        ("creationTimestamp", json!("nonsense")),
    ] {
        let mut object = widget(api, "a", json!({}));
        object["metadata"][key] = value;
        api.post(&format!("{path}?dryRun=All"), &object).await?;
    }
    for body in [
        json!({}),
        json!({ "kind": "Widget" }),
        json!({ "apiVersion": format!("{}/v1", api.group()) }),
        json!({ "apiVersion": "v1", "kind": "Widget", "metadata": { "name": "a" } }),
        json!({ "apiVersion": format!("{}/v1", api.group()), "kind": "Other", "metadata": { "name": "a" } }),
    ] {
        api.post(&format!("{path}?dryRun=All"), &body).await?;
    }
    let mut object = widget(api, "", json!({}));
    object["metadata"] = json!({ "generateName": "gen-" });
    api.post(&path, &object).await?.code(201)?;
    Ok(())
}

async fn collections_of_custom_objects_are_deleted(api: &Api) -> Result<()> {
    serve(api, &definition(api, simple())).await?;
    let path = widgets(api);
    for name in ["a", "b", "c"] {
        api.post(&path, &widget(api, name, json!({}))).await?.code(201)?;
    }
    let page = api.get(&format!("{path}?limit=2")).await?.code(200)?;
    api.get(&format!("{path}?limit=2&continue={}", page.next_page())).await?.code(200)?;
    api.delete(&format!("{path}/a")).await?.code(200)?;
    api.delete(&path).await?.code(200)?;
    api.get(&path).await?.code(200)?;
    Ok(())
}
