//! Definitions of custom resources.

use anyhow::Result;
use serde_json::{Value, json};

use crate::harness::{Api, DEFINITIONS, definition, scenarios, serve, settle, simple, widget, widgets};

scenarios![
    a_definition_is_served_once_it_is_established,
    several_versions_show_one_object,
    a_version_is_added_and_another_not_served_any_more,
    columns_are_printed_in_tables,
    deleting_a_definition_ends_what_it_served,
    names_of_definitions_may_not_collide,
    definitions_are_validated,
    the_names_of_a_definition_must_fit,
    selectable_fields_of_custom_objects,
    discovery_knows_custom_resources,
];

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
