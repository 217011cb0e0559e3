//! Create: identity, generated names, dry runs, conflicts, what is done about unknown fields.

use anyhow::Result;
use http::Method;
use serde_json::json;

use crate::harness::{Api, config_map, deployment, pod, scenarios};

scenarios![
    a_created_object_has_an_identity_and_an_owner_of_its_fields,
    what_a_client_says_about_identity_is_overruled,
    a_name_is_generated_from_its_base,
    a_long_base_is_cut_before_the_random_part,
    a_name_wins_over_a_base,
    a_dry_run_answers_as_if_and_stores_nothing,
    a_dry_run_finds_what_exists_and_what_is_invalid,
    a_generated_name_is_not_generated_in_a_dry_run_twice,
    creating_twice_is_refused,
    creating_in_another_namespace_than_the_path_says_is_refused,
    creating_in_a_missing_namespace_is_refused,
    a_version_in_a_new_object_is_refused,
    kind_and_version_of_the_body_may_be_absent_or_must_fit,
    unknown_fields_are_warned_about_by_default,
    unknown_fields_are_dropped_in_silence_on_request,
    unknown_fields_are_refused_when_strict,
    duplicate_fields_are_warned_about_or_refused,
    an_unknown_field_validation_is_refused,
    the_field_manager_can_be_named,
    null_and_empty_fields_are_dropped_as_the_kind_defines,
    metadata_is_validated,
    a_yaml_body_is_taken,
    a_created_object_can_be_answered_as_metadata_or_table,
];

async fn a_created_object_has_an_identity_and_an_owner_of_its_fields(api: &Api) -> Result<()> {
    let mut object = config_map("a");
    object["metadata"]["labels"] = json!({ "app": "web", "tier": "" });
    object["metadata"]["annotations"] = json!({ "example.com/note": "x" });
    object["binaryData"] = json!({ "bin": "AAEC" });
    let made = api.post("configmaps", &object).await?.code(201)?;
    assert!(!made.uid().is_empty() && !made.version().is_empty());
    api.get("configmaps/a").await?.code(200)?;
    Ok(())
}

async fn what_a_client_says_about_identity_is_overruled(api: &Api) -> Result<()> {
    let mut object = config_map("a");
    object["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555".into();
    object["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    object["metadata"]["deletionTimestamp"] = "2001-01-01T00:00:00Z".into();
    object["metadata"]["deletionGracePeriodSeconds"] = 17.into();
    object["metadata"]["generation"] = 17.into();
    object["metadata"]["selfLink"] = "/nowhere".into();
    api.post("configmaps", &object).await?.code(201)?;
    let mut object = deployment("a");
    object["metadata"]["generation"] = 17.into();
    object["status"] = json!({ "replicas": 3, "observedGeneration": 9 });
    api.post("apps/v1:deployments", &object).await?.code(201)?;
    Ok(())
}

async fn a_name_is_generated_from_its_base(api: &Api) -> Result<()> {
    let mut object = config_map("");
    object["metadata"] = json!({ "generateName": "web-" });
    let first = api.post("configmaps", &object).await?.code(201)?.name();
    let second = api.post("configmaps", &object).await?.code(201)?.name();
    assert!(first != second && first.len() == 9 && first.starts_with("web-"), "{first} {second}");
    api.post("configmaps", &json!({ "metadata": {} })).await?.refused(422, "Invalid")?;
    Ok(())
}

async fn a_long_base_is_cut_before_the_random_part(api: &Api) -> Result<()> {
    let base = "x".repeat(70);
    let made = api.post("configmaps", &json!({ "metadata": { "generateName": base } })).await?.code(201)?;
    api.note("length", made.name().len().into());
    api.note("stem", made.name()[..58].into());
    Ok(())
}

async fn a_name_wins_over_a_base(api: &Api) -> Result<()> {
    let mut object = config_map("a");
    object["metadata"]["generateName"] = "web-".into();
    api.post("configmaps", &object).await?.code(201)?;
    api.post("configmaps", &object).await?.refused(409, "AlreadyExists")?;
    Ok(())
}

async fn a_dry_run_answers_as_if_and_stores_nothing(api: &Api) -> Result<()> {
    api.post("configmaps?dryRun=All", &config_map("a")).await?.code(201)?;
    api.get("configmaps/a").await?.refused(404, "NotFound")?;
    api.post("pods?dryRun=All", &pod("a")).await?.code(201)?;
    api.get("pods/a").await?.refused(404, "NotFound")?;
    Ok(())
}

async fn a_dry_run_finds_what_exists_and_what_is_invalid(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.post("configmaps?dryRun=All", &config_map("a")).await?.refused(409, "AlreadyExists")?;
    api.post("configmaps?dryRun=All", &config_map("A")).await?.refused(422, "Invalid")?;
    api.post("configmaps?dryRun=Some", &config_map("b")).await?.refused(422, "Invalid")?;
    api.post("configmaps?dryRun=", &config_map("c")).await?;
    api.post("configmaps?dryRun=All&dryRun=All", &config_map("d")).await?;
    api.get("configmaps/d").await?;
    Ok(())
}

async fn a_generated_name_is_not_generated_in_a_dry_run_twice(api: &Api) -> Result<()> {
    let mut object = config_map("");
    object["metadata"] = json!({ "generateName": "web-" });
    api.post("configmaps?dryRun=All", &object).await?.code(201)?;
    Ok(())
}

async fn creating_twice_is_refused(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.post("configmaps", &config_map("a")).await?.refused(409, "AlreadyExists")?;
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    api.post("apps/v1:deployments", &deployment("a")).await?.refused(409, "AlreadyExists")?;
    Ok(())
}

async fn creating_in_another_namespace_than_the_path_says_is_refused(api: &Api) -> Result<()> {
    let mut object = config_map("a");
    object["metadata"]["namespace"] = "default".into();
    api.post("configmaps", &object).await?.refused(400, "BadRequest")?;
    object["metadata"]["namespace"] = api.namespace.clone().into();
    api.post("configmaps", &object).await?.code(201)?;
    // Without a namespace in the path there is nothing to create in.
    api.post("/api/v1/configmaps", &object).await?;
    Ok(())
}

async fn creating_in_a_missing_namespace_is_refused(api: &Api) -> Result<()> {
    let missing = api.name("missing");
    api.post(&format!("/api/v1/namespaces/{missing}/configmaps"), &config_map("a"))
        .await?
        .refused(404, "NotFound")?;
    api.post(&format!("/apis/apps/v1/namespaces/{missing}/deployments"), &deployment("a"))
        .await?
        .code(404)?;
    api.get(&format!("/api/v1/namespaces/{missing}/configmaps")).await?.code(200)?;
    api.get(&format!("/api/v1/namespaces/{missing}/configmaps/a")).await?.code(404)?;
    Ok(())
}

async fn a_version_in_a_new_object_is_refused(api: &Api) -> Result<()> {
    let mut object = config_map("a");
    object["metadata"]["resourceVersion"] = "1".into();
    api.post("configmaps", &object).await?;
    object["metadata"]["resourceVersion"] = "".into();
    api.post("configmaps", &object).await?.code(201)?;
    Ok(())
}

async fn kind_and_version_of_the_body_may_be_absent_or_must_fit(api: &Api) -> Result<()> {
    let body = |fields: serde_json::Value| {
        let mut body = json!({ "metadata": { "name": "a" } });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    api.post("configmaps?dryRun=All", &body(json!({}))).await?.code(201)?;
    api.post("configmaps?dryRun=All", &body(json!({ "kind": "ConfigMap" }))).await?;
    api.post("configmaps?dryRun=All", &body(json!({ "apiVersion": "v1" }))).await?;
    for (version, kind) in [
        ("v1", "Pod"),
        ("v2", "ConfigMap"),
        ("apps/v1", "ConfigMap"),
        ("v1", "configmap"),
        ("a/b/c", "ConfigMap"),
        ("v1", "Nonsense"),
    ] {
        let fields = json!({ "apiVersion": version, "kind": kind });
        api.post("configmaps?dryRun=All", &body(fields)).await?.refused(400, "BadRequest")?;
    }
    api.post(
        "apps/v1:deployments?dryRun=All",
        &json!({ "apiVersion": "apps/v1beta1", "kind": "Deployment" }),
    )
    .await?;
    Ok(())
}

const UNKNOWN: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","extra":1},
    "spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":1,"nope":true}],"Image":"x"}],"surprise":{}},"top":[1]}"#;

const DUPLICATE: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","name":"b"},
    "spec":{"containers":[{"name":"c","image":"i","image":"j"}],"containers":[{"name":"d","image":"k"}]}}"#;

async fn unknown_fields_are_warned_about_by_default(api: &Api) -> Result<()> {
    let json = [("content-type", "application/json")];
    api.send(Method::POST, "pods?dryRun=All", &json, UNKNOWN).await?.code(201)?;
    api.send(Method::POST, "pods?dryRun=All&fieldValidation=Warn", &json, UNKNOWN).await?.code(201)?;
    Ok(())
}

async fn unknown_fields_are_dropped_in_silence_on_request(api: &Api) -> Result<()> {
    let json = [("content-type", "application/json")];
    api.send(Method::POST, "pods?fieldValidation=Ignore", &json, UNKNOWN).await?.code(201)?;
    api.get("pods/a").await?.code(200)?;
    Ok(())
}

async fn unknown_fields_are_refused_when_strict(api: &Api) -> Result<()> {
    let json = [("content-type", "application/json")];
    api.send(Method::POST, "pods?fieldValidation=Strict", &json, UNKNOWN)
        .await?
        .refused(400, "BadRequest")?;
    api.get("pods/a").await?.code(404)?;
    let clean = config_map("a");
    api.post("configmaps?fieldValidation=Strict", &clean).await?.code(201)?;
    Ok(())
}

async fn duplicate_fields_are_warned_about_or_refused(api: &Api) -> Result<()> {
    let json = [("content-type", "application/json")];
    api.send(Method::POST, "pods?dryRun=All", &json, DUPLICATE).await?.code(201)?;
    api.send(Method::POST, "pods?dryRun=All&fieldValidation=Ignore", &json, DUPLICATE).await?.code(201)?;
    api.send(Method::POST, "pods?dryRun=All&fieldValidation=Strict", &json, DUPLICATE)
        .await?
        .refused(400, "BadRequest")?;
    Ok(())
}

async fn an_unknown_field_validation_is_refused(api: &Api) -> Result<()> {
    api.post("configmaps?fieldValidation=Maybe", &config_map("a")).await?.refused(422, "Invalid")?;
    api.post("configmaps?fieldValidation=", &config_map("a")).await?.code(201)?;
    Ok(())
}

async fn the_field_manager_can_be_named(api: &Api) -> Result<()> {
    api.post("configmaps?fieldManager=somebody", &config_map("a")).await?.code(201)?;
    let long = "m".repeat(129);
    api.post(&format!("configmaps?fieldManager={long}"), &config_map("b")).await?.refused(422, "Invalid")?;
    api.post("configmaps?fieldManager=a%07b", &config_map("c")).await?.refused(422, "Invalid")?;
    let agent = [
        ("user-agent", "kubectl/v1.37.1 (linux/amd64) kubernetes/abc"),
        ("content-type", "application/json"),
    ];
    api.send(Method::POST, "configmaps", &agent, config_map("d").to_string()).await?.code(201)?;
    Ok(())
}

async fn null_and_empty_fields_are_dropped_as_the_kind_defines(api: &Api) -> Result<()> {
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": null, "binaryData": {}, "immutable": false,
        "metadata": { "name": "a", "labels": {}, "annotations": null, "finalizers": [], "ownerReferences": [] } });
    api.post("configmaps", &object).await?.code(201)?;
    api.get("configmaps/a").await?.code(200)?;
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "creationTimestamp": null },
        "spec": { "nodeSelector": {}, "volumes": [], "tolerations": null, "initContainers": [],
            "containers": [{ "name": "c", "image": "i", "env": [], "args": null, "command": [], "resources": {}, "stdin": false, "ports": [] }] },
        "status": {} });
    api.post("pods", &pod).await?.code(201)?;
    Ok(())
}

async fn metadata_is_validated(api: &Api) -> Result<()> {
    let with = |key: &str, value: serde_json::Value| {
        let mut object = config_map("a");
        object["metadata"][key] = value;
        object
    };
    api.post("configmaps", &with("name", "Upper".into())).await?.refused(422, "Invalid")?;
    api.post("configmaps", &with("name", "-a".into())).await?.code(422)?;
    api.post("configmaps", &with("name", "x".repeat(254).into())).await?.code(422)?;
    api.post("configmaps", &with("name", "a/b".into())).await?.code(422)?;
    api.post("configmaps", &with("labels", json!({ "bad key": "x" }))).await?.code(422)?;
    api.post("configmaps", &with("labels", json!({ "a": "bad value" }))).await?.code(422)?;
    api.post("configmaps", &with("labels", json!({ "a": "x".repeat(64) }))).await?.code(422)?;
    api.post("configmaps", &with("annotations", json!({ "/x": "y" }))).await?.code(422)?;
    api.post("configmaps", &with("annotations", json!({ "x": "y".repeat(256 * 1024 + 1) })))
        .await?
        .code(422)?;
    api.post("configmaps", &with("finalizers", json!(["bad finalizer"]))).await?.code(422)?;
    api.post("configmaps", &with("finalizers", json!(["nogroup"]))).await?;
    api.post("configmaps", &with("finalizers", json!(["orphan", "foregroundDeletion"]))).await?;
    api.post("configmaps", &with("generateName", "Bad_".into())).await?;
    Ok(())
}

async fn a_yaml_body_is_taken(api: &Api) -> Result<()> {
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  key: value\n";
    api.send(Method::POST, "configmaps", &[("content-type", "application/yaml")], yaml).await?;
    Ok(())
}

async fn a_created_object_can_be_answered_as_metadata_or_table(api: &Api) -> Result<()> {
    let headers = |accept| [("content-type", "application/json"), ("accept", accept)];
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    api.send(Method::POST, "configmaps", &headers(partial), config_map("a").to_string()).await?.code(201)?;
    api.send(Method::POST, "configmaps", &headers(table), config_map("b").to_string()).await?.code(201)?;
    Ok(())
}
