//! What the operator asks of the server, and what its role allows it: the same.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use kube_client::config::Kubeconfig;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match, Request, Verb};
use serde_json::{Value, json};

use crate::harness::{SOON, Stage, on_both};

on_both! { the_role_allows_what_is_done_and_nothing_else }

/// By group and resource, what is done with it.
type Rights = BTreeMap<(String, String), BTreeSet<String>>;

/// Kinds that are scaled. Whichever it is, the same is done.
const TARGETS: [(&str, &str); 4] = [
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("argoproj.io", "rollouts"),
    ("odd.example.com", "oddities"),
];

/// What the role allows, and the server asks for by itself, without a request: who owns an object that is to keep its owner
/// must be allowed to change the owner's finalizers.
const UNSEEN: (&str, &str, &str) = ("elasti.truefoundry.com", "elastiservices/finalizers", "update");

fn role() -> Result<Rights> {
    // What reads kubeconfigs reads YAML, and keeps what it does not know.
    let read = Kubeconfig::from_yaml(include_str!("../../manifests/clusterrole.yaml"))?;
    let role = serde_json::to_value(read.other)?;
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut rights = Rights::new();
    for rule in role["rules"].as_array().context("rules")? {
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                rights.entry((group.clone(), resource)).or_default().extend(texts(rule, "verbs"));
            }
        }
    }
    Ok(rights)
}

/// What a request is about: group, resource with its subresource, and verb. Nothing, where it is about what the server has.
fn asked(request: &Request) -> Option<(String, String, &'static str)> {
    let mut parts = request.path.split('/').skip(1);
    let group = match parts.next()? {
        "api" => "",
        "apis" => parts.next()?,
        _ => return None,
    };
    parts.next()?;
    let mut rest: Vec<&str> = parts.collect();
    if rest.len() > 2 && rest[0] == "namespaces" {
        rest.drain(..2);
    }
    let verb = match request.verb() {
        Verb::Get => "get",
        Verb::List => "list",
        Verb::Watch => "watch",
        Verb::Create => "create",
        Verb::Update => "update",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
        _ => return None,
    };
    let resource = match rest[..] {
        [resource] | [resource, _] => resource.to_owned(),
        [resource, _, part] => format!("{resource}/{part}"),
        _ => return None,
    };
    Some((group.to_owned(), resource, verb))
}

/// All kinds of targets as one.
fn with_one_target(rights: Rights) -> Rights {
    let mut new = Rights::new();
    for ((group, resource), verbs) in rights {
        let (whole, part) = resource.split_once('/').unwrap_or((&resource, ""));
        let key = match TARGETS.contains(&(group.as_str(), whole)) {
            true => (String::new(), format!("target/{part}")),
            false => (group, resource),
        };
        new.entry(key).or_default().extend(verbs);
    }
    new
}

/// Everything that an operator does, at least once.
async fn everything(stage: &mut Stage) -> Result<()> {
    let scale = json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector" });
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "oddities.odd.example.com" },
        "spec": { "group": "odd.example.com", "scope": "Namespaced",
            "names": { "plural": "oddities", "singular": "oddity", "kind": "Oddity" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "subresources": { "status": {}, "scale": scale },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": anything, "status": anything } } } }] },
    });
    let answer =
        stage.endpoint.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await?;
    let is_there = answer.status.is_success() || answer.status == http::StatusCode::CONFLICT;
    ensure!(is_there, "the definition was refused: {answer:?}");
    let oddities = format!("/apis/odd.example.com/v1/namespaces/{}/oddities", stage.namespace);
    let odd = json!({ "apiVersion": "odd.example.com/v1", "kind": "Oddity", "metadata": { "name": "odd" },
        "spec": { "replicas": 0 } });
    eventually("oddities are served", SOON, async || stage.post(&oddities, &odd).await.ok()).await;
    stage.service("odd", json!({ "app": "odd" })).await?;
    stage.elasti("odd", "odd", ("odd.example.com/v1", "Oddity", "odd")).await?;
    stage.mode("odd", "proxy").await;
    stage.operator().wake(&stage.namespace, "odd").await?;

    stage.app("web", 1).await?;
    stage.mode("web", "serve").await;
    stage.operator().put_to_sleep(&stage.namespace, "web").await?;
    stage.mode("web", "proxy").await;
    stage.resolver.scale(2).await?;
    stage.redirected("web", &stage.resolver.addresses()).await;
    let port = json!({ "spec": { "ports": [{ "name": "http", "port": 85, "targetPort": 8080 }] } });
    stage.merge(&stage.path("services/web"), &port).await?;
    stage
        .until("the port is copied", &stage.private_path("web"), |private| {
            private["spec"]["ports"][0]["port"] == 85
        })
        .await;
    stage.delete(&stage.elasti_path("web")).await?;
    stage.gone(&stage.elasti_path("web")).await;
    // A target that is missing is told from one that cannot be scaled.
    stage.delete(&format!("{oddities}/odd")).await?;
    stage.condition("odd", "TargetFound", "False", "NotFound").await;
    for _ in 0..3 {
        stage.operator().wake(&stage.namespace, "odd").await.unwrap_err();
    }
    Ok(())
}

async fn the_role_allows_what_is_done_and_nothing_else(mut stage: Stage) -> Result<()> {
    stage.retire().await;
    let proxy = stage.proxy().await?;
    // A server that can stream lists is not asked for them otherwise. Not every server can.
    proxy.on(Match::watch().send_initial_events(true)).answer(Answer::no_streaming_lists());
    stage.operate_behind(&proxy).await?;
    everything(&mut stage).await?;
    // What is told again and again is told in one event, at the latest at the end.
    stage.retire().await;
    assert_eq!(proxy.requests().forgotten(), 0);
    let mut used = Rights::new();
    for (group, resource, verb) in proxy.requests().all().iter().filter_map(asked) {
        used.entry((group, resource)).or_default().insert(verb.to_owned());
    }
    let (group, resource, verb) = UNSEEN;
    used.entry((group.to_owned(), resource.to_owned())).or_default().insert(verb.to_owned());
    let role = role()?;
    // Each kind that is named can be done the same with.
    let target = |part: &str| {
        TARGETS[..3]
            .iter()
            .map(|(group, plural)| role.get(&(String::from(*group), format!("{plural}{part}"))))
            .collect::<BTreeSet<_>>()
    };
    assert_eq!((target("").len(), target("/scale").len()), (1, 1), "{role:#?}");
    assert_eq!(with_one_target(used), with_one_target(role), "what is used, and what is allowed");
    stage.close().await
}
