//! `get` beside `kubectl get`, on both servers: the same bytes.

use anyhow::Result;
use kube_informer_testbed::proxy::{Answer, Match};
use kube_informer_testbed::require;
use serde_json::json;

use crate::harness::{Place, on_both, output};
use crate::running::text;

on_both! {
    it_prints_what_kubectl_prints,
    awkward_texts_are_written_as_kubectl_writes_them,
    custom_resources_have_their_own_columns,
    namespaces_are_in_the_servers_order,
    what_is_not_there_is_an_error_after_what_is,
    nothing_is_said_in_kubectls_words,
    managed_fields_are_shown_on_request,
}

/// Ages go on between two commands, so they may have to be asked again.
const TRIES: usize = 20;

/// Holds what both print to the same arguments side by side.
async fn same(place: &Place, args: &[&str]) -> Result<bool> {
    same_through(place, &place.file(), args).await
}

/// The same where ours comes to the server in another way.
async fn same_through(place: &Place, file: &str, args: &[&str]) -> Result<bool> {
    let mut seen = None;
    for _ in 0..TRIES {
        let theirs = match place.kubectl(args).await {
            Ok(theirs) => theirs,
            Err(unavailable) => {
                require!(Err::<(), _>(unavailable), else Ok(false));
                return Ok(false);
            }
        };
        let ours = output(place.command_through(file, args)).await;
        let both = (text(&theirs.stdout), text(&ours.stdout));
        assert_eq!(ours.status.code(), theirs.status.code(), "{args:?}: {}", text(&ours.stderr));
        if both.0 == both.1 {
            if theirs.status.success() {
                assert_eq!(text(&ours.stderr), text(&theirs.stderr), "{args:?}");
            }
            return Ok(true);
        }
        seen = Some(both);
    }
    let (theirs, ours) = seen.unwrap_or_default();
    panic!("{args:?}\n--- kubectl\n{theirs}\n--- ours\n{ours}");
}

/// The same for arguments that are split at spaces.
async fn same_as(place: &Place, all: &[&str]) -> Result<()> {
    for args in all {
        let args: Vec<&str> = args.split_whitespace().collect();
        if !same(place, &args).await? {
            break;
        }
    }
    Ok(())
}

async fn it_prints_what_kubectl_prints(place: Place) -> Result<()> {
    let labels = json!({ "app": "web" });
    let container =
        json!({ "name": "web", "image": "nginx:1.27", "env": [{ "name": "A", "value": "<b> & c" }] });
    for name in ["web-1", "web-2", "a-much-longer-name-than-the-others"] {
        let pod = json!({
            "metadata": { "name": name, "labels": labels, "annotations": { "note": "it's: \"so\"" } },
            "spec": { "containers": [container, { "name": "side", "image": "envoy" }] },
        });
        place.post(&place.path("pods"), &pod).await?;
    }
    let service = json!({
        "metadata": { "name": "web" },
        "spec": { "selector": labels, "ports": [{ "port": 80, "targetPort": 8080 }] },
    });
    place.post(&place.path("services"), &service).await?;
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [container] } },
        },
    });
    place.post(&place.path("apps/v1/deployments"), &deployment).await?;
    place.config_map("settings", json!({ "b": "2", "a": "1" })).await?;
    let status = json!({ "status": {
        "phase": "Running",
        "podIP": "10.1.2.3",
        "conditions": [{ "type": "Ready", "status": "True" }],
        "containerStatuses": [{
            "name": "web", "ready": true, "restartCount": 3, "image": "nginx:1.27", "imageID": "x", "started": true,
            "state": { "running": {} },
        }],
    } });
    place.merge(&place.path("pods/web-1/status"), &status).await?;
    let about = json!({ "kind": "Pod", "name": "web-1", "namespace": place.namespace });
    let event = json!({
        "metadata": { "name": "web-1.1" }, "involvedObject": about, "reason": "Played", "type": "Normal",
        "message": "as the test has it", "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    });
    place.post(&place.path("events"), &event).await?;
    same_as(
        &place,
        &[
            "get pods",
            "get po -o wide",
            "get pods --no-headers",
            "get pods -o json",
            "get pods -o yaml",
            "get pods -o name",
            "get pods web-1",
            "get pod/web-1 -o json",
            "get pod web-1 -o yaml",
            "get pods web-2 web-1",
            "get pods web-2 web-1 -o json",
            "get pods web-2 web-1 -o name",
            "get pods -l app=web",
            "get pods -l app=none,x",
            "get pods -l app=none -o json",
            "get pods -l app=none -o yaml",
            "get pods -l app=none -o name",
            "get pods --field-selector status.phase=Running",
            "get deploy,svc",
            "get deploy,svc -o wide",
            "get deployments.apps,services --no-headers",
            "get deploy/web svc/web",
            "get deploy/web svc/web -o name",
            "get deploy/web svc/nosuch",
            "get deploy,svc web",
            "get deploy,svc web -o name",
            "get deployments.v1.apps web -o yaml",
            "get deploy,svc -o yaml",
            "get deploy,svc -o json",
            "get cm settings",
            "get configmaps -o name",
            "get pods,secrets -l app=web",
            "get events",
            "get pods,events",
            "get pods,events -o wide",
            "get all",
            "get serviceaccounts,endpointslices",
            "get nodes,persistentvolumes",
            "get pods -o jsonpath={.items[*].metadata.name}",
            "get pods -o jsonpath={.items[*].metadata.managedFields[*].operation}",
            "get pods -o custom-columns=NAME:.metadata.name,WRITER:.metadata.managedFields[*].operation",
            "get pod web-1 -o jsonpath={.spec.containers[*].image}",
            "get pods -o custom-columns=NAME:.metadata.name,IMAGES:.spec.containers[*].image,NO:.none,L:.metadata.labels",
            "get pods,services -o custom-columns=NAME:.metadata.name --no-headers",
            "get pods -l app=none -o custom-columns=NAME:.metadata.name",
            "get pods -A -l app=web",
            "get pods,namespaces -A -l app=web",
        ],
    )
    .await
}

async fn awkward_texts_are_written_as_kubectl_writes_them(place: Place) -> Result<()> {
    let long = "a word and another one, ".repeat(12);
    let texts = [
        "",
        " ",
        "a",
        "true",
        "True",
        "no",
        "y",
        "null",
        "~",
        "1",
        "-1",
        "+1",
        "0x1f",
        "0o17",
        "012",
        "08",
        "1_000",
        "1.5",
        ".5",
        "1.",
        "1e3",
        "1e999",
        "0b11",
        "2024-01-02",
        "2024-1-2",
        "2024-01-02T03:04:05Z",
        "2024-01-02T03:04:05.5+01:00",
        "2024-01-02 03:04:05",
        "2024-13-02",
        "12:30",
        "12:30:45.5",
        "1:90",
        ".inf",
        "-.INF",
        ".nan",
        "<<",
        "=",
        "-",
        "--",
        "---",
        "- a",
        "-a",
        "a: b",
        "a:b",
        "a:",
        ": a",
        "a #b",
        "a#b",
        "#a",
        "[a]",
        "{a}",
        "a,b",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "'a'",
        "\"a\"",
        "%a",
        "@a",
        "`a`",
        "? a",
        "?a",
        "it's",
        "it's: so",
        " a",
        "a ",
        "a\n",
        "a\nb",
        "a\n\n",
        "\na",
        " a\nb",
        "a \nb",
        "a\n b\n",
        "\n",
        "\n\n",
        "a\tb",
        "a\r\nb",
        "é",
        "日本語",
        "😀",
        "\u{feff}",
        "\u{a0}",
        "\u{2028}a",
        "a\u{2028}b",
        "\u{1}",
        "\\",
        "\\n",
        "a\\b: c",
        "<a & b>",
        "10.0.0.1",
        "1.2.3",
        "100m",
        "1Gi",
        "0",
        "00",
        "0.0",
        "-0",
        "...",
        "....",
        "a\u{7e}b",
        "{}",
        "[]",
        "key: |\n  text\n",
        &long,
        &format!("{long}: x"),
        &format!("{long}\t{long}"),
        &format!("\"{long}\" # {long}"),
        &format!("{long}\n{long}\n"),
        &"x".repeat(300),
        &format!("{}  {long}", "y".repeat(90)),
        &format!("'{}  b: {long}", "y".repeat(90)),
        &format!("\u{1}{}   {long}", "z".repeat(90)),
    ];
    let data: serde_json::Map<String, serde_json::Value> =
        texts.iter().enumerate().map(|(at, text)| (format!("k{at}"), json!(text))).collect();
    place.config_map("awkward", json!(data)).await?;
    let annotations: serde_json::Map<String, serde_json::Value> = [
        "a10",
        "a2",
        "a1",
        "A",
        "b.c",
        "b-c",
        "b_c",
        "x.example.com/a",
        "true",
        "1",
        "0.5",
        "y",
        "null",
        "2024-01-02",
    ]
    .iter()
    .map(|key| ((*key).to_owned(), json!("v")))
    .collect();
    let long_key = format!("{}/{}", "k".repeat(100), "n".repeat(60));
    let object = json!({ "metadata": { "name": "keys", "annotations": annotations }, "data": { "a": "b" } });
    place.post(&place.path("configmaps"), &object).await?;
    let object = json!({ "metadata": { "name": "long-key", "annotations": { long_key: "v: x", "z": "" } } });
    place.post(&place.path("configmaps"), &object).await?;
    same_as(
        &place,
        &[
            "get cm awkward -o yaml",
            "get cm awkward -o json",
            "get cm keys -o yaml",
            "get cm keys -o json",
            "get cm long-key -o yaml",
            "get cm -o yaml",
            "get cm",
        ],
    )
    .await
}

async fn custom_resources_have_their_own_columns(place: Place) -> Result<()> {
    let group = format!("{}.example.com", place.namespace);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("widgets.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
                "additionalPrinterColumns": [
                    { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
                    { "name": "Zone", "type": "string", "jsonPath": ".spec.zone", "priority": 1 },
                    { "name": "Ratio", "type": "number", "jsonPath": ".spec.ratio" },
                    { "name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status" },
                    { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                ],
            }],
        },
    });
    place.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await?;
    let path = format!("/apis/{group}/v1/namespaces/{}/widgets", place.namespace);
    kube_informer_testbed::eventually::eventually(
        "the resource is served",
        crate::harness::SOON,
        async || place.get(&path).await.ok(),
    )
    .await;
    let spec = json!({ "size": 3, "zone": "b", "ratio": 0.5, "n": 1.0, "big": 1e21, "small": 0.0000001 });
    let object = json!({ "apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": { "name": "a" }, "spec": spec,
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    place.post(&path, &object).await?;
    let object =
        json!({ "apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": { "name": "empty" } });
    place.post(&path, &object).await?;
    let kind = format!("widgets.{group}");
    let checked = async {
        for args in ["-o table", "-o wide", "-o json", "-o yaml", "-o name"] {
            let args = format!("get {kind} {}", if args == "-o table" { "" } else { args });
            same_as(&place, &[&args]).await?;
        }
        // Who may not read the definition sees the same: the server knows the columns, too.
        let (proxy, file) = place.proxy().await?;
        let definitions = proxy.on(Match::any().path_contains("/customresourcedefinitions/"));
        let definitions = definitions.answer(Answer::forbidden());
        for args in [
            "",
            " -o wide",
            " -A",
            " --no-headers",
            " -l !none",
            " a",
            " a missing",
            " missing empty a",
            ",configmaps",
        ] {
            let args = format!("get {kind}{args}");
            if !same_through(&place, &file, &args.split_whitespace().collect::<Vec<_>>()).await? {
                return Ok(());
            }
        }
        assert!(definitions.applied() > 0, "it was asked for");
        anyhow::Ok(())
    };
    let checked = checked.await;
    let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}");
    place.delete(&definition).await?;
    checked
}

async fn namespaces_are_in_the_servers_order(place: Place) -> Result<()> {
    let other = format!("{}-b", place.namespace);
    place.post("/api/v1/namespaces", &json!({ "metadata": { "name": other } })).await?;
    let marker = format!("m-{}", place.namespace);
    for namespace in [&place.namespace, &other] {
        for name in ["x", "a"] {
            let object = json!({ "metadata": { "name": name, "labels": { "marker": marker } } });
            place.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), &object).await?;
        }
    }
    let selector = format!("marker={marker}");
    for format in ["table", "name", "json"] {
        let mut args = vec!["get", "configmaps", "-A", "-l", &selector];
        if format != "table" {
            args.extend(["-o", format]);
        }
        same(&place, &args).await?;
    }
    // Several namespaces: what kubectl cannot.
    let several =
        output(place.command_of(&["get", "cm", "-n", &place.namespace, "-n", &other, "-l", &selector])).await;
    let lines = text(&several.stdout);
    assert!(lines.starts_with("NAMESPACE") && lines.lines().count() == 5, "{lines}");
    place.delete(&format!("/api/v1/namespaces/{other}")).await?;
    Ok(())
}

async fn what_is_not_there_is_an_error_after_what_is(place: Place) -> Result<()> {
    place.config_map("there", json!({})).await?;
    let output = place.run("get cm gone there").await;
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("there"), "{}", text(&output.stdout));
    let todo = "give another -n, or leave out names to see what there is";
    let expected = format!("error: configmaps \"gone\" not found in {}: {todo}\n", place.namespace);
    assert_eq!(text(&output.stderr), expected);
    let output = place.run("get deploy gone -o json").await;
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()));
    assert!(text(&output.stderr).contains("deployments.apps \"gone\" not found"), "{}", text(&output.stderr));
    Ok(())
}

async fn nothing_is_said_in_kubectls_words(place: Place) -> Result<()> {
    same_as(
        &place,
        &[
            "get pods",
            "get pods,services",
            "get pods -A -l none=there",
            "get persistentvolumes -l none=there",
            "get pods -o json",
        ],
    )
    .await
}

async fn managed_fields_are_shown_on_request(place: Place) -> Result<()> {
    place.config_map("owned", json!({ "a": "b" })).await?;
    assert!(!place.ok("get cm owned -o json").await.contains("managedFields"));
    assert!(place.ok("get cm owned -o json --show-managed-fields").await.contains("managedFields"));
    same_as(
        &place,
        &["get cm owned -o yaml --show-managed-fields", "get cm owned -o json --show-managed-fields"],
    )
    .await
}
