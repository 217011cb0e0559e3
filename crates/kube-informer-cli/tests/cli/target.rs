//! What is asked for: types and names as for kubectl, and what is said where they are none.

use anyhow::Result;
use serde_json::json;

use crate::harness::{Place, blocking, on_both};
use crate::running::text;

on_both! {
    types_are_named_as_for_kubectl,
    a_type_that_there_is_not_is_told_with_what_is_near,
    what_cannot_be_meant_is_a_wrong_argument,
    the_namespace_of_the_kubeconfig_is_the_default,
    several_namespaces_are_watched_at_once,
    all_namespaces_are_watched_at_once,
}

async fn types_are_named_as_for_kubectl(place: Place) -> Result<()> {
    place.config_map("a", json!({})).await?;
    for name in ["configmaps", "configmap", "cm", "ConfigMap", "cm/a", "configmaps.v1.", "cm a"] {
        let printed = place.ok(&format!("get {name} -o name")).await;
        assert!(printed.lines().any(|line| line == "configmap/a"), "{name}: {printed}");
    }
    let deployments = "get deploy.v1.apps,deployments.apps,deployment -o name";
    assert_eq!(place.ok(deployments).await, "", "one resource, and none of it");
    Ok(())
}

async fn a_type_that_there_is_not_is_told_with_what_is_near(place: Place) -> Result<()> {
    for (command, name, near) in [
        ("get", "pdos", "did you mean pods"),
        ("get", "pds", "pods"),
        ("get", "podz", "pods"),
        ("watch", "deploymentss", "deployments.apps"),
    ] {
        let output = place.run(&format!("{command} {name}")).await;
        assert_eq!(output.status.code(), Some(1), "{name}");
        let said = text(&output.stderr);
        let expected = format!("error: the server has no resource \"{name}\"");
        assert!(said.starts_with(&expected) && said.contains(near), "{said}");
        assert!(said.contains("kubectl api-resources"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    Ok(())
}

async fn what_cannot_be_meant_is_a_wrong_argument(place: Place) -> Result<()> {
    let names: Vec<String> = (0..13).map(|number| format!("p{number}")).collect();
    let namespaces: Vec<String> = (0..20).map(|number| format!("-n n{number}")).collect();
    let too_many = format!("get pods {} {}", names.join(" "), namespaces.join(" "));
    for (args, expected) in [
        ("get pods/a services", "TYPE/NAME for each"),
        ("get pods,", "a type is missing"),
        ("watch pods a -l app=web", "by name or by selector"),
        ("get pods a -A", "in all namespaces"),
        ("get pods/a/b", "no name of an object"),
        (&too_many, "20 namespaces are 260 objects, and 256 are the most"),
    ] {
        let output = place.run(args).await;
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args}: {said}");
        assert!(said.starts_with("error: ") && said.contains(expected), "{args}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    Ok(())
}

async fn the_namespace_of_the_kubeconfig_is_the_default(place: Place) -> Result<()> {
    place.config_map("mine", json!({})).await?;
    // A kubeconfig in JSON is one, too.
    let config = std::fs::read_to_string(place.file())?;
    let mut config: serde_json::Value = serde_json::from_str(&config)?;
    config["contexts"][0]["context"]["namespace"] = json!(place.namespace);
    let file = place.path_of("with-namespace");
    std::fs::write(&file, config.to_string())?;
    let output = crate::harness::output(crate::running::kube_informer(&[
        "get",
        "cm",
        "mine",
        "-o",
        "name",
        "--kubeconfig",
        &file,
    ]))
    .await;
    assert_eq!(text(&output.stdout), "configmap/mine\n", "{}", text(&output.stderr));
    Ok(())
}

/// Another namespace, and a config map in each.
async fn with_another(place: &Place) -> Result<String> {
    let other = format!("{}-other", place.namespace);
    place.post("/api/v1/namespaces", &json!({ "metadata": { "name": other } })).await?;
    for namespace in [&place.namespace, &other] {
        let map = json!({ "metadata": { "name": "one", "labels": { "app": place.namespace } } });
        place.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), &map).await?;
    }
    Ok(other)
}

/// Namespace and name of a row, after its mark.
fn words(row: &str) -> Vec<String> {
    let (mark, row) = row.split_at(2);
    [mark].into_iter().chain(row.split_whitespace().take(2)).map(str::to_owned).collect()
}

async fn several_namespaces_are_watched_at_once(place: Place) -> Result<()> {
    let (mine, other) = (&place.namespace, with_another(&place).await?);
    let mut watch = place.start(&format!("watch cm -l app={mine} -n {mine} -n {other}"));
    assert_eq!(words(&blocking(|| watch.line(""))), ["  ", "NAMESPACE", "NAME"]);
    assert_eq!(words(&blocking(|| watch.line(""))), ["  ", &other, "one"], "a-b/x comes before a/x");
    assert_eq!(words(&blocking(|| watch.line(""))), ["  ", mine, "one"]);
    // What is elsewhere is not shown.
    let elsewhere = json!({ "metadata": { "name": format!("{mine}-elsewhere"), "labels": { "app": mine } } });
    place.post("/api/v1/namespaces/default/configmaps", &elsewhere).await?;
    for namespace in [mine, &other] {
        place.delete(&format!("/api/v1/namespaces/{namespace}/configmaps/one")).await?;
        assert_eq!(words(&blocking(|| watch.line(""))), ["- ", namespace, "one"]);
    }
    place.delete(&format!("/api/v1/namespaces/default/configmaps/{mine}-elsewhere")).await?;
    place.delete(&format!("/api/v1/namespaces/{other}")).await?;
    Ok(())
}

async fn all_namespaces_are_watched_at_once(place: Place) -> Result<()> {
    let (mine, other) = (&place.namespace, with_another(&place).await?);
    let mut watch = place.start(&format!("watch cm -l app={mine} -A"));
    assert_eq!(words(&blocking(|| watch.line(""))), ["  ", "NAMESPACE", "NAME"]);
    assert_eq!(words(&blocking(|| watch.line(""))), ["  ", &other, "one"]);
    assert_eq!(words(&blocking(|| watch.line(""))), ["  ", mine, "one"]);
    let elsewhere = json!({ "metadata": { "name": format!("{mine}-elsewhere"), "labels": { "app": mine } } });
    place.post("/api/v1/namespaces/default/configmaps", &elsewhere).await?;
    let row = words(&blocking(|| watch.line("")));
    assert_eq!(row, ["+ ", "default", &format!("{mine}-elsewhere")]);
    place.delete(&format!("/api/v1/namespaces/default/configmaps/{mine}-elsewhere")).await?;
    place.delete(&format!("/api/v1/namespaces/{other}")).await?;
    Ok(())
}
