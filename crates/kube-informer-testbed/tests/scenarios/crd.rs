//! Custom resources: their definitions, and objects of them.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Api, scenarios};

scenarios![
    a_definition_is_served_once_it_is_established,
    defaults_are_filled_in_and_unknown_fields_go,
    unknown_fields_can_be_kept_or_refused,
    objects_are_validated_against_their_schema,
    rules_in_formats_lists_and_patterns_hold,
    several_versions_show_one_object,
    a_version_is_added_and_another_not_served_any_more,
    columns_are_printed_in_tables,
    the_status_of_a_custom_object_is_apart,
    the_scale_of_a_custom_object,
    patches_of_custom_objects,
    updates_of_custom_objects,
    watches_of_custom_objects,
    cluster_scoped_custom_objects,
    deleting_a_definition_ends_what_it_served,
    names_of_definitions_may_not_collide,
    definitions_are_validated,
    the_names_of_a_definition_must_fit,
    selectable_fields_of_custom_objects,
    discovery_knows_custom_resources,
    metadata_of_custom_objects_is_checked,
    collections_of_custom_objects_are_deleted,
];

/// A definition of `widgets` in the scenario's group.
fn definition(api: &Api, schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("widgets.{}", api.group()) },
        "spec": {
            "group": api.group(), "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wd"] },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }],
        },
    })
}

fn simple() -> Value {
    json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": {
            "size": { "type": "integer", "default": 1, "minimum": 0 }, "color": { "type": "string" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "nested": { "type": "object", "default": {}, "properties": { "deep": { "type": "string", "default": "x" } } } } },
        "status": { "type": "object", "properties": { "phase": { "type": "string" }, "replicas": { "type": "integer" }, "selector": { "type": "string" } } } } })
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Posts a definition and waits until it is served.
async fn serve(api: &Api, definition: &Value) -> Result<()> {
    api.prepare(DEFINITIONS, definition).await?;
    settle(api, definition).await
}

async fn settle(api: &Api, definition: &Value) -> Result<()> {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let established = |body: &Value| {
        let conditions = body["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True")
    };
    api.until(&format!("{DEFINITIONS}/{name}"), |answer| established(&answer.body)).await?;
    let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
    for version in definition["spec"]["versions"].as_array().into_iter().flatten() {
        let served = version["served"] == true;
        let path = format!("/apis/{}/{}/{plural}", api.group(), version["name"].as_str().unwrap_or_default());
        api.until(&path, |answer| (answer.code == 200) == served).await?;
    }
    Ok(())
}

fn widget(api: &Api, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": format!("{}/v1", api.group()), "kind": "Widget", "metadata": { "name": name }, "spec": spec })
}

fn widgets(api: &Api) -> String {
    format!("{}/v1:widgets", api.group())
}

async fn a_definition_is_served_once_it_is_established(api: &Api) -> Result<()> {
    let definition = definition(api, simple());
    api.post(DEFINITIONS, &definition).await?.code(201)?;
    settle(api, &definition).await?;
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    api.get(&format!("{DEFINITIONS}/{name}")).await?.code(200)?;
    api.post(&widgets(api), &widget(api, "a", json!({}))).await?.code(201)?;
    api.get(&format!("{}/a", widgets(api))).await?.code(200)?;
    api.get(&widgets(api)).await?.code(200)?;
    api.get(&format!("/apis/{}/v1/widgets", api.group())).await?.code(200)?;
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

async fn several_versions_show_one_object(api: &Api) -> Result<()> {
    let mut definition = definition(api, simple());
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = "v1beta1".into();
    second["storage"] = false.into();
    second["deprecated"] = true.into();
    definition["spec"]["versions"].as_array_mut().unwrap().push(second);
    serve(api, &definition).await?;
    api.post(&widgets(api), &widget(api, "a", json!({ "color": "red" }))).await?.code(201)?;
    let beta = format!("{}/v1beta1:widgets", api.group());
    api.get(&format!("{beta}/a")).await?.code(200)?;
    api.get(&beta).await?.code(200)?;
    let mut object = widget(api, "b", json!({}));
    object["apiVersion"] = format!("{}/v1beta1", api.group()).into();
    api.post(&beta, &object).await?.code(201)?;
    api.get(&widgets(api)).await?.code(200)?;
    api.post(&widgets(api), &object).await?.refused(400, "BadRequest")?;
    Ok(())
}

async fn a_version_is_added_and_another_not_served_any_more(api: &Api) -> Result<()> {
    let mut definition = definition(api, simple());
    serve(api, &definition).await?;
    api.post(&widgets(api), &widget(api, "a", json!({}))).await?.code(201)?;
    let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    definition["spec"]["versions"][0]["served"] = false.into();
    definition["spec"]["versions"][0]["storage"] = false.into();
    definition["spec"]["versions"].as_array_mut().unwrap().push(second);
    let patch = json!({ "spec": { "versions": definition["spec"]["versions"] } });
    let path = format!("{DEFINITIONS}/{name}");
    api.merge(&path, &patch).await?.code(200)?;
    settle(api, &definition).await?;
    api.get(&path).await?.code(200)?;
    api.get(&format!("{}/v2:widgets/a", api.group())).await?.code(200)?;
    api.get(&format!("{}/a", widgets(api))).await?.code(404)?;
    Ok(())
}

async fn columns_are_printed_in_tables(api: &Api) -> Result<()> {
    let mut definition = definition(api, simple());
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
        { "name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1, "description": "what it looks like" },
        { "name": "Tags", "type": "string", "jsonPath": ".spec.tags[*]" },
        { "name": "Missing", "type": "string", "jsonPath": ".status.phase" },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ]);
    serve(api, &definition).await?;
    api.post(&widgets(api), &widget(api, "a", json!({ "color": "red", "tags": ["x", "y"] })))
        .await?
        .code(201)?;
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    api.get_as(&widgets(api), table).await?.code(200)?;
    api.get_as(&format!("{}/a", widgets(api)), table).await?.code(200)?;
    let partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    api.get_as(&widgets(api), partial).await?.code(200)?;
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
    object["kind"] = "Other".into();
    api.put(&path, &object).await?.code(400)?;
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

async fn deleting_a_definition_ends_what_it_served(api: &Api) -> Result<()> {
    let definition = definition(api, simple());
    serve(api, &definition).await?;
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    api.post(&widgets(api), &widget(api, "a", json!({}))).await?.code(201)?;
    api.delete(&format!("{DEFINITIONS}/{name}")).await?.code(200)?;
    api.until(&format!("{DEFINITIONS}/{name}"), |answer| answer.code == 404).await?;
    api.until(&widgets(api), |answer| answer.code == 404).await?;
    api.get(&widgets(api)).await?.code(404)?;
    serve(api, &definition).await?;
    api.get(&widgets(api)).await?.code(200)?;
    Ok(())
}

async fn names_of_definitions_may_not_collide(api: &Api) -> Result<()> {
    serve(api, &definition(api, simple())).await?;
    let mut other = definition(api, simple());
    other["metadata"]["name"] = format!("gadgets.{}", api.group()).into();
    other["spec"]["names"]["plural"] = "gadgets".into();
    api.post(DEFINITIONS, &other).await?.code(201)?;
    let path = format!("{DEFINITIONS}/gadgets.{}", api.group());
    api.until(&path, |answer| {
        answer.body["status"]["conditions"]
            .as_array()
            .is_some_and(|c| c.iter().any(|c| c["type"] == "NamesAccepted" && c["status"] == "False"))
    })
    .await?;
    api.get(&path).await?.code(200)?;
    api.get(&format!("{}/v1:gadgets", api.group())).await?.code(404)?;
    Ok(())
}

async fn definitions_are_validated(api: &Api) -> Result<()> {
    let base = definition(api, simple());
    let with = |pointer: &str, value: Value| {
        let mut object = base.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[key] = value;
        object
    };
    let schema = |schema: Value| with("/spec/versions/0/schema", json!({ "openAPIV3Schema": schema }));
    for object in [
        with("/spec/versions/0/schema", Value::Null),
        with("/spec/versions/0/storage", json!(false)),
        with("/spec/versions", json!([])),
        with("/spec/scope", json!("Nonsense")),
        with("/spec/group", json!("other.example.com")),
        with("/spec/versions/0/name", json!("Bad.Version")),
        schema(json!({ "type": "string" })),
        schema(json!({ "properties": {} })),
        schema(json!({ "type": "object", "properties": { "spec": {} } })),
        schema(json!({ "type": "object", "properties": { "spec": { "type": "array" } } })),
        schema(json!({ "type": "object", "properties": { "spec": { "type": "nonsense" } } })),
        schema(
            json!({ "type": "object", "properties": { "spec": { "type": "object", "additionalProperties": false } } }),
        ),
        schema(json!({ "type": "object", "properties": { "spec": { "type": "integer", "default": "x" } } })),
        schema(json!({ "type": "object", "properties": { "spec": { "type": "string", "pattern": "(" } } })),
        schema(json!({ "type": "object", "properties": { "spec": { "type": "object", "$ref": "#/x" } } })),
        schema(
            json!({ "type": "object", "properties": { "metadata": { "type": "object", "properties": { "labels": { "type": "object" } } } } }),
        ),
        with(
            "/spec/versions/0/additionalPrinterColumns",
            json!([{ "name": "x", "type": "nonsense", "jsonPath": ".spec" }]),
        ),
        with(
            "/spec/versions/0/additionalPrinterColumns",
            json!([{ "name": "x", "type": "string", "jsonPath": "spec" }]),
        ),
        with(
            "/spec/versions/0/subresources",
            json!({ "scale": { "specReplicasPath": "spec", "statusReplicasPath": ".status.x" } }),
        ),
        with("/spec/conversion", json!({ "strategy": "Webhook" })),
        with("/spec/conversion", json!({ "strategy": "Nonsense" })),
        with("/spec/preserveUnknownFields", json!(true)),
    ] {
        api.post(&format!("{DEFINITIONS}?dryRun=All"), &object).await?;
    }
    Ok(())
}

async fn the_names_of_a_definition_must_fit(api: &Api) -> Result<()> {
    let base = definition(api, simple());
    for (key, value) in [
        ("plural", "gadgets"),
        ("kind", "widget"),
        ("kind", ""),
        ("plural", "Widgets"),
        ("singular", "Bad_Name"),
        ("listKind", "lower"),
        ("listKind", "Widget"),
    ] {
        let mut object = base.clone();
        object["spec"]["names"][key] = value.into();
        api.post(&format!("{DEFINITIONS}?dryRun=All"), &object).await?;
    }
    let mut object = base;
    object["metadata"]["name"] = "other".into();
    api.post(&format!("{DEFINITIONS}?dryRun=All"), &object).await?.refused(422, "Invalid")?;
    Ok(())
}

async fn selectable_fields_of_custom_objects(api: &Api) -> Result<()> {
    let mut definition = definition(api, simple());
    definition["spec"]["versions"][0]["selectableFields"] = json!([{ "jsonPath": ".spec.color" }]);
    serve(api, &definition).await?;
    let path = widgets(api);
    api.post(&path, &widget(api, "a", json!({ "color": "red" }))).await?.code(201)?;
    api.post(&path, &widget(api, "b", json!({ "color": "blue" }))).await?.code(201)?;
    api.get(&format!("{path}?fieldSelector=spec.color=red")).await?.code(200)?;
    api.get(&format!("{path}?fieldSelector=spec.color!=red")).await?.code(200)?;
    api.get(&format!("{path}?fieldSelector=spec.size=1")).await?.refused(400, "BadRequest")?;
    api.get(&format!("{path}?fieldSelector=metadata.name=b")).await?.code(200)?;
    Ok(())
}

async fn discovery_knows_custom_resources(api: &Api) -> Result<()> {
    let mut definition = definition(api, simple());
    definition["spec"]["names"]["categories"] = json!(["all"]);
    definition["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    serve(api, &definition).await?;
    let group = api.group();
    api.until(&format!("/apis/{group}/v1"), |answer| answer.code == 200).await?;
    let mut document = api.peek(&format!("/apis/{group}/v1")).await?.body;
    for resource in document["resources"].as_array_mut().into_iter().flatten() {
        if let Some(map) = resource.as_object_mut() {
            map.remove("storageVersionHash");
        }
    }
    api.note("resources", document);
    api.get(&format!("/apis/{group}")).await?.code(200)?;
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
