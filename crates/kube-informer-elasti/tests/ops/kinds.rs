//! Whatever can be scaled can be followed, and what cannot says why.

use anyhow::Result;
use kube_informer::controller::Request;
use kube_informer_elasti::api::Mode;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match};
use serde_json::{Value, json};

use crate::harness::{Place, SOON, Told, definition, elasti, on_both, pod_spec};

on_both! {
    workloads_are_followed_by_any_of_their_names,
    a_definition_says_where_replicas_are,
    a_definition_that_may_not_be_read_is_asked_for,
    a_rollout_is_followed_with_its_own_selector,
    a_rollout_is_followed_with_the_selector_of_what_it_names,
    a_definition_that_is_made_anew_is_read_anew,
    what_cannot_be_scaled_says_so,
    a_group_that_cannot_be_read_is_not_taken_for_missing,
    what_cannot_be_read_is_said_and_changes_nothing,
}

async fn workloads_are_followed_by_any_of_their_names(place: Place) -> Result<()> {
    let ops = place.ops().await?;
    for plural in ["deployments", "statefulsets", "replicasets"] {
        place.workload(plural, plural, 1, 1).await?;
        place.pod(plural, plural, true).await?;
    }
    let labels = json!({ "app": "old" });
    let old = json!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": { "name": "old" },
        "spec": { "replicas": 1, "selector": labels, "template": { "metadata": { "labels": labels }, "spec": pod_spec() } },
    });
    place.post(&place.path("replicationcontrollers"), &old).await?;
    let status = json!({ "status": { "replicas": 1 } });
    place.merge(&place.path("replicationcontrollers/old/status"), &status).await?;
    place.pod("old", "old", true).await?;
    for (api_version, kind, name) in [
        ("apps/v1", "Deployment", "deployments"),
        ("apps/v1", "deployments", "deployments"),
        ("apps/v1", "deployment", "deployments"),
        ("apps/v1", "StatefulSet", "statefulsets"),
        ("apps/v1", "statefulsets", "statefulsets"),
        ("apps/v1", "ReplicaSet", "replicasets"),
        ("v1", "ReplicationController", "old"),
    ] {
        let owner = Request::new(&place.namespace, &format!("of-{}", kind.to_lowercase()));
        let object = elasti(api_version, kind, name);
        let before = object.clone();
        ops.follow(&owner, &object).await?;
        let state = ops.decides(&owner, Mode::Serve, "1 pod is ready").await;
        assert_eq!(state.target.unwrap().name, name, "{kind}");
        assert_eq!(object, before, "nothing of a spec is changed");
    }
    ops.end().await;
    Ok(())
}

async fn a_definition_says_where_replicas_are(place: Place) -> Result<()> {
    let scale = json!({
        "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.current",
        "labelSelectorPath": ".status.selectorText",
    });
    let group = place.group();
    place.define(&definition(&group, "oddities", "Oddity", &scale)).await?;
    let (ops, owner) = (place.ops().await?, Request::new(&place.namespace, "it"));
    let path = format!("/apis/{group}/v1alpha1/namespaces/{}/oddities", place.namespace);
    let api_version = format!("{group}/v1alpha1");
    let object = json!({
        "apiVersion": api_version, "kind": "Oddity", "metadata": { "name": "it" },
        "spec": { "size": 0, "replicas": 9, "selector": { "matchLabels": { "app": "decoy" } } },
    });
    place.post(&path, &object).await?;
    place.pod("it-1", "it", true).await?;
    ops.follow(&owner, &elasti(&api_version, "oddity", "it")).await?;
    let mut told = Told::of(&ops);
    let state = told.until(&ops, &owner, |_| true).await;
    assert_eq!((state.decision, state.why.as_str()), (Mode::Proxy, "the target is to have no replicas"));
    // Nothing said is one.
    place.merge(&format!("{path}/it"), &json!({ "spec": { "size": null } })).await?;
    ops.decides(&owner, Mode::Proxy, "the target has no replicas yet").await;
    let status = json!({ "status": { "current": 1, "replicas": 0 } });
    place.merge(&format!("{path}/it/status"), &status).await?;
    ops.decides(&owner, Mode::Proxy, "no selector").await;
    let status = json!({ "status": { "selectorText": "app in (it),!decoy" } });
    place.merge(&format!("{path}/it/status"), &status).await?;
    let state = ops.decides(&owner, Mode::Serve, "1 pod is ready").await;
    let target = state.target.unwrap();
    assert_eq!((target.spec_replicas, target.status_replicas), (1, 1));
    assert_eq!(target.selector.unwrap().to_string(), "app in (it),!decoy");
    ops.end().await;
    Ok(())
}

async fn a_definition_that_may_not_be_read_is_asked_for(place: Place) -> Result<()> {
    let scale = json!({ "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.current" });
    let group = place.group();
    place.define(&definition(&group, "oddities", "Oddity", &scale)).await?;
    let proxy = place.proxy().await?;
    let (ops, owner) = (place.ops_through(&proxy).await?, Request::new(&place.namespace, "it"));
    let fault =
        proxy.on(Match::any().path_contains("/customresourcedefinitions/")).answer(Answer::forbidden());
    let object = elasti(&format!("{group}/v1alpha1"), "Oddity", "it");
    let error = ops.follow(&owner, &object).await.unwrap_err();
    assert_eq!((error.reason(), error.is_permanent()), ("Forbidden", false), "{error}");
    assert!(error.to_string().contains("get customresourcedefinitions"), "{error}");
    fault.remove();
    // It is asked again at once: nothing of the failure is remembered.
    ops.follow(&owner, &object).await?;
    assert_eq!(ops.state(&owner).unwrap().why, "the target is not there");
    ops.end().await;
    Ok(())
}

/// A server that lists its groups, and cannot say what is in one of them.
async fn a_group_that_cannot_be_read_is_not_taken_for_missing(place: Place) -> Result<()> {
    place.workload("deployments", "web", 0, 0).await?;
    let proxy = place.proxy().await?;
    let (ops, owner) = (place.ops_through(&proxy).await?, Request::new(&place.namespace, "web"));
    let version = json!({ "groupVersion": "apps/v1", "version": "v1" });
    let group = json!({ "name": "apps", "versions": [version], "preferredVersion": version });
    let groups = json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group] }).to_string();
    proxy.on(Match::any().path("/apis")).answer(Answer::raw(200, "application/json", groups));
    let away = proxy.on(Match::any().path("/apis/apps/v1")).answer(Answer::unavailable());
    let object = elasti("apps/v1", "Deployment", "web");
    let error = ops.follow(&owner, &object).await.unwrap_err();
    assert_eq!(error.reason(), "ServerUnreachable", "{error}");
    assert!(error.to_string().contains("it is tried again"), "{error}");
    // What the group does not have is missing all the same, once that can be read.
    let unicorn = elasti("apps/v1", "Unicorn", "web");
    assert_eq!(ops.follow(&owner, &unicorn).await.unwrap_err().reason(), "ServerUnreachable");
    away.remove();
    ops.follow(&owner, &object).await?;
    let error = ops.follow(&owner, &unicorn).await.unwrap_err();
    assert_eq!(error.reason(), "UnknownKind", "{error}");
    ops.end().await;
    Ok(())
}

/// As Argo defines them, as far as it matters.
async fn rollouts(place: &Place) -> Result<String> {
    let scale = json!({
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.HPAReplicas",
        "labelSelectorPath": ".status.selector",
    });
    place.define(&definition("argoproj.io", "rollouts", "Rollout", &scale)).await?;
    Ok(format!("/apis/argoproj.io/v1alpha1/namespaces/{}/rollouts", place.namespace))
}

fn rollout(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": { "name": name }, "spec": spec })
}

async fn a_rollout_is_followed_with_its_own_selector(place: Place) -> Result<()> {
    let path = rollouts(&place).await?;
    let spec = json!({ "selector": { "matchLabels": { "app": "web" } } });
    place.post(&path, &rollout("web", &spec)).await?;
    place.merge(&format!("{path}/web/status"), &json!({ "status": { "replicas": 1 } })).await?;
    place.pod("web-1", "web", true).await?;
    let (ops, owner) = (place.ops().await?, Request::new(&place.namespace, "web"));
    ops.follow(&owner, &elasti("argoproj.io/v1alpha1", "rollouts", "web")).await?;
    let state = ops.decides(&owner, Mode::Serve, "1 pod is ready").await;
    assert_eq!(state.target.unwrap().spec_replicas, 1, "nothing said is one");
    place.merge(&format!("{path}/web"), &json!({ "spec": { "replicas": 0 } })).await?;
    ops.decides(&owner, Mode::Proxy, "the target is to have no replicas").await;
    assert_eq!(ops.manager.list().len(), 1);
    ops.end().await;
    Ok(())
}

async fn a_rollout_is_followed_with_the_selector_of_what_it_names(place: Place) -> Result<()> {
    let path = rollouts(&place).await?;
    let names = |name: &str| json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name });
    // Argo scales the workload that it takes over to nothing: its replicas do not count.
    place.workload("deployments", "base", 0, 0).await?;
    place.post(&path, &rollout("web", &json!({ "replicas": 1, "workloadRef": names("base") }))).await?;
    place.merge(&format!("{path}/web/status"), &json!({ "status": { "replicas": 1 } })).await?;
    place.pod("base-1", "base", true).await?;
    let (ops, owner) = (place.ops().await?, Request::new(&place.namespace, "web"));
    let mut told = Told::of(&ops);
    ops.follow(&owner, &elasti("argoproj.io/v1alpha1", "Rollout", "web")).await?;
    // The first that is said is right: nothing was decided without the selector.
    assert_eq!(told.next().await, owner);
    let state = ops.state(&owner).unwrap();
    assert_eq!((state.decision, state.why.as_str()), (Mode::Serve, "1 pod is ready"));
    assert_eq!(state.target.unwrap().selector.unwrap().to_string(), "app=base");
    assert_eq!(ops.manager.list().len(), 2);
    // Another workload, which comes later. Until then, what Argo says counts, if it says something.
    place.merge(&format!("{path}/web"), &json!({ "spec": { "workloadRef": names("late") } })).await?;
    ops.decides(&owner, Mode::Proxy, "no selector").await;
    place.merge(&format!("{path}/web/status"), &json!({ "status": { "selector": "app=base" } })).await?;
    ops.decides(&owner, Mode::Serve, "ready").await;
    place.workload("deployments", "late", 0, 0).await?;
    ops.decides(&owner, Mode::Proxy, "no pod with app=late is ready").await;
    place.pod("late-1", "late", true).await?;
    ops.decides(&owner, Mode::Serve, "ready").await;
    assert_eq!(ops.manager.list().len(), 2, "{:?}", ops.manager.list());
    // None, or one of a kind that there is not: what Argo says.
    for reference in [Value::Null, json!({ "apiVersion": "apps/v1", "kind": "Nothing", "name": "late" })] {
        place.merge(&format!("{path}/web"), &json!({ "spec": { "workloadRef": reference } })).await?;
        let is_base = async || {
            let target = ops.state(&owner)?.target?;
            (target.selector?.to_string() == "app=base").then_some(())
        };
        eventually("what Argo says counts", SOON, is_base).await;
        assert_eq!(ops.manager.list().len(), 1);
    }
    ops.end().await;
    Ok(())
}

async fn a_definition_that_is_made_anew_is_read_anew(place: Place) -> Result<()> {
    let group = place.group();
    let api_version = format!("{group}/v1alpha1");
    let path = format!("/apis/{group}/v1alpha1/namespaces/{}/oddities", place.namespace);
    let (ops, owner) = (place.ops().await?, Request::new(&place.namespace, "it"));
    let elasti = elasti(&api_version, "Oddity", "it");
    place.pod("it-1", "it", true).await?;
    for (size, current) in [("size", "current"), ("wanted", "there")] {
        let scale = json!({
            "specReplicasPath": format!(".spec.{size}"), "statusReplicasPath": format!(".status.{current}"),
            "labelSelectorPath": ".status.selectorText",
        });
        place.define(&definition(&group, "oddities", "Oddity", &scale)).await?;
        let object = json!({
            "apiVersion": api_version, "kind": "Oddity", "metadata": { "name": "it" }, "spec": { size: 2 },
        });
        place.post(&path, &object).await?;
        let status = json!({ "status": { current: 1, "selectorText": "app=it" } });
        place.merge(&format!("{path}/it/status"), &status).await?;
        // A controller tries again until it succeeds.
        let followed = async || ops.follow(&owner, &elasti).await.ok();
        eventually("it is followed", SOON, followed).await;
        let state = ops.decides(&owner, Mode::Serve, "ready").await;
        assert_eq!(state.target.unwrap().spec_replicas, 2, "{size}");
        place
            .delete(&format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/oddities.{group}"))
            .await?;
        ops.decides(&owner, Mode::Proxy, "the target is gone").await;
        let unknown =
            async || ops.follow(&owner, &elasti).await.err().filter(|error| error.reason() == "UnknownKind");
        eventually("its kind is gone", SOON, unknown).await;
    }
    ops.end().await;
    Ok(())
}

async fn what_cannot_be_scaled_says_so(place: Place) -> Result<()> {
    let group = place.group();
    place.define(&definition(&group, "plains", "Plain", &Value::Null)).await?;
    let (ops, owner) = (place.ops().await?, Request::new(&place.namespace, "web"));
    for (api_version, kind, name, reason, words) in [
        ("apps/v1", "Deploymint", "web", "UnknownKind", "deployments.apps"),
        ("apps/v7", "Deployment", "web", "UnknownKind", "apps/v7"),
        ("app/v1", "Deployment", "web", "UnknownKind", "app/v1"),
        ("example.com/v1", "Thing", "web", "UnknownKind", "install what defines it"),
        ("v1", "ConfigMap", "web", "NotScalable", "no scale subresource"),
        ("apps/v1", "DaemonSet", "web", "NotScalable", "no scale subresource"),
        ("v1", "Node", "web", "NotScalable", "in no namespace"),
        (&format!("{group}/v1alpha1"), "Plain", "web", "NotScalable", "declares no scale subresource"),
        ("apps/v1", "Deployment", "", "InvalidTargetRef", "name is empty"),
        ("apps/v1", "Deployment", "../web", "InvalidTargetRef", "../web"),
    ] {
        let error = ops.follow(&owner, &elasti(api_version, kind, name)).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(ops.state(&owner), None);
    }
    assert!(ops.manager.list().is_empty() && ops.namespaces().is_empty());
    ops.end().await;
    Ok(())
}

async fn what_cannot_be_read_is_said_and_changes_nothing(place: Place) -> Result<()> {
    let scale = json!({ "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.current",
        "labelSelectorPath": ".status.selectorText" });
    let group = place.group();
    place.define(&definition(&group, "oddities", "Oddity", &scale)).await?;
    let (ops, owner) = (place.ops().await?, Request::new(&place.namespace, "it"));
    let path = format!("/apis/{group}/v1alpha1/namespaces/{}/oddities", place.namespace);
    let api_version = format!("{group}/v1alpha1");
    let object = json!({ "apiVersion": api_version, "kind": "Oddity", "metadata": { "name": "it" }, "spec": { "size": 1 } });
    place.post(&path, &object).await?;
    let status = json!({ "status": { "current": 1, "selectorText": "app=it" } });
    place.merge(&format!("{path}/it/status"), &status).await?;
    place.pod("it-1", "it", true).await?;
    ops.follow(&owner, &elasti(&api_version, "Oddity", "it")).await?;
    ops.decides(&owner, Mode::Serve, "ready").await;
    let status = json!({ "status": { "selectorText": "app=it, or so" } });
    place.merge(&format!("{path}/it/status"), &status).await?;
    let state = ops.decides(&owner, Mode::Serve, "/status/selectorText is no selector").await;
    assert_eq!(state.target, None);
    let status = json!({ "status": { "selectorText": "app=it" } });
    place.merge(&format!("{path}/it/status"), &status).await?;
    ops.decides(&owner, Mode::Serve, "1 pod is ready").await;
    ops.end().await;
    Ok(())
}
