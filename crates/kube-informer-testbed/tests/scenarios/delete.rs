//! Delete, one and many: options, finalizers, grace, what is answered.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Api, config_map, deployment, labelled, pod, pod_on, scenarios, service};

scenarios![
    a_deletion_is_answered_by_kind,
    a_missing_object_cannot_be_deleted,
    finalizers_hold_an_object,
    deleting_again_changes_nothing,
    preconditions_must_hold,
    preconditions_in_the_query_must_hold,
    propagation_sets_finalizers,
    orphan_dependents_is_the_old_way,
    contradicting_or_unknown_options_are_refused,
    options_come_in_the_body_or_in_the_query,
    a_dry_deletion_deletes_nothing,
    a_pod_without_a_node_goes_at_once,
    a_pod_on_a_node_waits_for_its_kubelet,
    the_grace_period_can_be_shortened_but_not_prolonged,
    a_finished_pod_goes_at_once,
    a_pod_with_a_finalizer_waits_for_both,
    a_collection_is_deleted_by_selectors,
    a_collection_is_deleted_with_options,
    of_a_collection_the_page_that_was_asked_for_is_deleted,
    a_collection_of_a_missing_kind_or_without_permission_stays,
    a_deleted_name_can_be_used_again,
    owners_are_checked,
];

fn with_finalizer(name: &str) -> Value {
    let mut object = config_map(name);
    object["metadata"]["finalizers"] = json!(["example.com/f"]);
    object
}

async fn a_deletion_is_answered_by_kind(api: &Api) -> Result<()> {
    for (path, object) in [
        ("configmaps", config_map("a")),
        ("secrets", json!({ "metadata": { "name": "a" } })),
        ("services", service("a")),
        ("serviceaccounts", json!({ "metadata": { "name": "a" } })),
        ("pods", pod("a")),
        ("apps/v1:deployments", deployment("a")),
        (
            "persistentvolumeclaims",
            json!({ "metadata": { "name": "a" }, "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }),
        ),
        ("resourcequotas", json!({ "metadata": { "name": "a" }, "spec": {} })),
        ("limitranges", json!({ "metadata": { "name": "a" }, "spec": { "limits": [] } })),
        ("podtemplates", json!({ "metadata": { "name": "a" }, "template": crate::harness::template("a") })),
        ("endpoints", json!({ "metadata": { "name": "b" } })),
        ("coordination.k8s.io/v1:leases", json!({ "metadata": { "name": "a" }, "spec": {} })),
        (
            "networking.k8s.io/v1:networkpolicies",
            json!({ "metadata": { "name": "a" }, "spec": { "podSelector": {} } }),
        ),
        ("policy/v1:poddisruptionbudgets", json!({ "metadata": { "name": "a" }, "spec": {} })),
        ("rbac.authorization.k8s.io/v1:roles", json!({ "metadata": { "name": "a" }, "rules": [] })),
        (
            "discovery.k8s.io/v1:endpointslices",
            json!({ "metadata": { "name": "a" }, "addressType": "IPv4", "endpoints": [] }),
        ),
        ("events", json!({ "metadata": { "name": "a" }, "involvedObject": { "namespace": api.namespace } })),
    ] {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        api.post(path, &object).await?.code(201)?;
        api.delete(&format!("{path}/{name}")).await?;
    }
    for (path, object) in [
        ("/api/v1/nodes", json!({ "metadata": { "name": api.name("n") } })),
        (
            "/api/v1/persistentvolumes",
            json!({ "metadata": { "name": api.name("pv") }, "spec": { "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "hostPath": { "path": "/x" } } }),
        ),
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({ "metadata": { "name": api.name("sc") }, "provisioner": "x" }),
        ),
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            json!({ "metadata": { "name": api.name("pc") }, "value": 5 }),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            json!({ "metadata": { "name": api.name("cr") }, "rules": [] }),
        ),
    ] {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        api.post(path, &object).await?.code(201)?;
        api.delete(&format!("{path}/{name}")).await?;
    }
    Ok(())
}

async fn a_missing_object_cannot_be_deleted(api: &Api) -> Result<()> {
    api.delete("configmaps/a").await?.refused(404, "NotFound")?;
    api.delete("configmaps/a?dryRun=All").await?.refused(404, "NotFound")?;
    api.delete("pods/a").await?.refused(404, "NotFound")?;
    api.delete_with("configmaps/a", &json!({ "preconditions": { "uid": "x" } }))
        .await?
        .refused(404, "NotFound")?;
    Ok(())
}

async fn finalizers_hold_an_object(api: &Api) -> Result<()> {
    api.post("configmaps", &with_finalizer("a")).await?.code(201)?;
    api.delete("configmaps/a").await?.code(200)?;
    api.get("configmaps/a").await?.code(200)?;
    api.post("configmaps", &config_map("a")).await?;
    api.merge("configmaps/a", &json!({ "metadata": { "finalizers": null } })).await?.code(200)?;
    api.get("configmaps/a").await?.refused(404, "NotFound")?;
    let mut object = deployment("a");
    object["metadata"]["finalizers"] = json!(["example.com/f"]);
    api.post("apps/v1:deployments", &object).await?.code(201)?;
    api.delete("apps/v1:deployments/a").await?.code(200)?;
    api.get("apps/v1:deployments/a").await?.code(200)?;
    Ok(())
}

async fn deleting_again_changes_nothing(api: &Api) -> Result<()> {
    api.post("configmaps", &with_finalizer("a")).await?.code(201)?;
    api.delete("configmaps/a").await?.code(200)?;
    api.delete("configmaps/a").await?.code(200)?;
    api.delete("configmaps/a?gracePeriodSeconds=5").await?.code(200)?;
    api.delete("configmaps/a?propagationPolicy=Foreground").await?.code(200)?;
    Ok(())
}

async fn preconditions_must_hold(api: &Api) -> Result<()> {
    let made = api.post("configmaps", &config_map("a")).await?.code(201)?;
    let when = |uid: &str, version: &str| {
        let mut preconditions = json!({});
        if !uid.is_empty() {
            preconditions["uid"] = uid.into();
        }
        if !version.is_empty() {
            preconditions["resourceVersion"] = version.into();
        }
        json!({ "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions })
    };
    api.delete_with("configmaps/a", &when("11111111-2222-3333-4444-555555555555", ""))
        .await?
        .refused(409, "Conflict")?;
    api.delete_with("configmaps/a", &when("", "1")).await?.refused(409, "Conflict")?;
    api.delete_with("configmaps/a", &when(&made.uid(), "1")).await?.refused(409, "Conflict")?;
    api.delete_with("configmaps/a", &when(&made.uid(), &made.version())).await?.code(200)?;
    let made = api.post("pods", &pod_on("a", "node-1")).await?.code(201)?;
    api.delete_with("pods/a", &when("11111111-2222-3333-4444-555555555555", ""))
        .await?
        .refused(409, "Conflict")?;
    api.delete_with("pods/a", &when(&made.uid(), "")).await?.code(200)?;
    Ok(())
}

async fn preconditions_in_the_query_must_hold(api: &Api) -> Result<()> {
    let made = api.post("configmaps", &config_map("a")).await?.code(201)?;
    let (uid, version) = (made.uid(), made.version());
    for wrong in ["uid=x", "resourceVersion=0", "resourceVersion=x"] {
        api.delete(&format!("configmaps/a?{wrong}")).await?.refused(409, "Conflict")?;
    }
    api.delete(&format!("configmaps/a?uid={uid}&resourceVersion=1")).await?.refused(409, "Conflict")?;
    api.delete(&format!("configmaps/a?uid={uid}&resourceVersion={version}&dryRun=All")).await?.code(200)?;
    // Where there is a body, nobody looks at the query.
    api.delete_with("configmaps/a?uid=x&dryRun=nonsense", &json!({ "dryRun": ["All"] })).await?.code(200)?;
    api.delete_with("configmaps/a?dryRun=All", &json!({})).await?.code(200)?;
    api.get("configmaps/a").await?.refused(404, "NotFound")?;
    Ok(())
}

async fn propagation_sets_finalizers(api: &Api) -> Result<()> {
    for (name, policy) in [("a", "Foreground"), ("b", "Orphan"), ("c", "Background")] {
        api.post("apps/v1:deployments", &deployment(name)).await?.code(201)?;
        api.delete(&format!("apps/v1:deployments/{name}?propagationPolicy={policy}")).await?.code(200)?;
        if policy == "Background" {
            api.get(&format!("apps/v1:deployments/{name}")).await?.refused(404, "NotFound")?;
        }
    }
    let mut held = deployment("d");
    held["metadata"]["finalizers"] = json!(["orphan", "example.com/f"]);
    api.post("apps/v1:deployments", &held).await?.code(201)?;
    api.delete_with("apps/v1:deployments/d", &json!({ "propagationPolicy": "Foreground" }))
        .await?
        .code(200)?;
    Ok(())
}

async fn orphan_dependents_is_the_old_way(api: &Api) -> Result<()> {
    for (name, orphan) in [("a", true), ("b", false)] {
        api.post("apps/v1:deployments", &deployment(name)).await?.code(201)?;
        api.delete_with(&format!("apps/v1:deployments/{name}"), &json!({ "orphanDependents": orphan }))
            .await?
            .code(200)?;
    }
    Ok(())
}

async fn contradicting_or_unknown_options_are_refused(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    for options in [
        json!({ "orphanDependents": true, "propagationPolicy": "Orphan" }),
        json!({ "propagationPolicy": "Nonsense" }),
        json!({ "propagationPolicy": "" }),
        json!({ "dryRun": ["Some"] }),
        json!({ "dryRun": ["All", "All"] }),
        json!({ "gracePeriodSeconds": "x" }),
        json!({ "kind": "Pod", "apiVersion": "v1" }),
        json!({ "kind": "DeleteOptions", "apiVersion": "nonsense/v1" }),
        json!({ "kind": "DeleteOptions", "apiVersion": "apps/v1" , "dryRun": ["All"] }),
        json!({ "preconditions": "x" }),
        json!({ "unknown": "field", "dryRun": ["All"] }),
        json!([]),
    ] {
        api.delete_with("configmaps/a", &options).await?;
    }
    for body in ["nonsense", "{", "null", "\"text\""] {
        api.send(Method::DELETE, "configmaps/a", &[("content-type", "application/json")], body).await?;
        api.post("configmaps", &config_map("a")).await?;
    }
    for query in [
        "propagationPolicy=Nonsense",
        "gracePeriodSeconds=x",
        "dryRun=Some",
        "orphanDependents=maybe&propagationPolicy=Orphan",
    ] {
        api.delete(&format!("configmaps/a?{query}")).await?;
    }
    Ok(())
}

async fn options_come_in_the_body_or_in_the_query(api: &Api) -> Result<()> {
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    // The body wins.
    api.delete_with(
        "apps/v1:deployments/a?propagationPolicy=Orphan",
        &json!({ "propagationPolicy": "Foreground" }),
    )
    .await?
    .code(200)?;
    api.post("apps/v1:deployments", &deployment("b")).await?.code(201)?;
    api.delete_with("apps/v1:deployments/b?propagationPolicy=Orphan", &json!({})).await?.code(200)?;
    api.get("apps/v1:deployments/b").await?;
    api.post("apps/v1:deployments", &deployment("c")).await?.code(201)?;
    api.delete("apps/v1:deployments/c?orphanDependents=true").await?.code(200)?;
    Ok(())
}

async fn a_dry_deletion_deletes_nothing(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.delete("configmaps/a?dryRun=All").await?.code(200)?;
    api.delete_with("configmaps/a", &json!({ "dryRun": ["All"] })).await?.code(200)?;
    api.get("configmaps/a").await?.code(200)?;
    api.post("configmaps", &with_finalizer("b")).await?.code(201)?;
    api.delete("configmaps/b?dryRun=All").await?.code(200)?;
    api.get("configmaps/b").await?.code(200)?;
    api.post("pods", &pod_on("a", "node-1")).await?.code(201)?;
    api.delete("pods/a?dryRun=All").await?.code(200)?;
    api.get("pods/a").await?.code(200)?;
    api.delete("configmaps?dryRun=All").await?.code(200)?;
    api.get("configmaps").await?.code(200)?;
    Ok(())
}

async fn a_pod_without_a_node_goes_at_once(api: &Api) -> Result<()> {
    api.post("pods", &pod("a")).await?.code(201)?;
    api.delete("pods/a").await?.code(200)?;
    api.get("pods/a").await?.refused(404, "NotFound")?;
    api.post("pods", &pod("b")).await?.code(201)?;
    api.delete("pods/b?gracePeriodSeconds=60").await?.code(200)?;
    api.get("pods/b").await?;
    Ok(())
}

async fn a_pod_on_a_node_waits_for_its_kubelet(api: &Api) -> Result<()> {
    api.post("pods", &pod_on("a", "node-1")).await?.code(201)?;
    let start = api.peek("pods/a").await?.version();
    let mut watch = api.watch(&format!("pods?resourceVersion={start}")).await?;
    api.delete("pods/a").await?.code(200)?;
    api.get("pods/a").await?.code(200)?;
    // As a kubelet ends it.
    api.delete("pods/a?gracePeriodSeconds=0").await?.code(200)?;
    api.get("pods/a").await?.refused(404, "NotFound")?;
    watch.events(3).await?;
    Ok(())
}

async fn the_grace_period_can_be_shortened_but_not_prolonged(api: &Api) -> Result<()> {
    api.post("pods", &pod_on("a", "node-1")).await?.code(201)?;
    api.delete("pods/a?gracePeriodSeconds=20").await?.code(200)?;
    api.delete("pods/a?gracePeriodSeconds=90").await?.code(200)?;
    api.delete("pods/a").await?.code(200)?;
    api.delete("pods/a?gracePeriodSeconds=5").await?.code(200)?;
    api.delete("pods/a?gracePeriodSeconds=-1").await?.code(200)?;
    let mut object = pod_on("b", "node-1");
    object["spec"]["terminationGracePeriodSeconds"] = 7.into();
    api.post("pods", &object).await?.code(201)?;
    api.delete("pods/b").await?.code(200)?;
    let mut object = pod_on("c", "node-1");
    object["spec"]["terminationGracePeriodSeconds"] = 0.into();
    api.post("pods", &object).await?.code(201)?;
    api.delete("pods/c").await?.code(200)?;
    Ok(())
}

async fn a_finished_pod_goes_at_once(api: &Api) -> Result<()> {
    api.post("pods", &pod_on("a", "node-1")).await?.code(201)?;
    api.merge("pods/a/status", &json!({ "status": { "phase": "Succeeded" } })).await?.code(200)?;
    api.delete("pods/a").await?.code(200)?;
    api.get("pods/a").await?.refused(404, "NotFound")?;
    Ok(())
}

async fn a_pod_with_a_finalizer_waits_for_both(api: &Api) -> Result<()> {
    let mut object = pod_on("a", "node-1");
    object["metadata"]["finalizers"] = json!(["example.com/f"]);
    api.post("pods", &object).await?.code(201)?;
    api.delete("pods/a").await?.code(200)?;
    api.merge("pods/a", &json!({ "metadata": { "finalizers": null } })).await?.code(200)?;
    api.get("pods/a").await?.code(200)?;
    api.delete("pods/a?gracePeriodSeconds=0").await?.code(200)?;
    api.get("pods/a").await?.refused(404, "NotFound")?;
    object["metadata"]["name"] = "b".into();
    api.post("pods", &object).await?.code(201)?;
    api.delete("pods/b?gracePeriodSeconds=0").await?.code(200)?;
    api.get("pods/b").await?.code(200)?;
    api.merge("pods/b", &json!({ "metadata": { "finalizers": null } })).await?.code(200)?;
    api.get("pods/b").await?.refused(404, "NotFound")?;
    Ok(())
}

async fn a_collection_is_deleted_by_selectors(api: &Api) -> Result<()> {
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "z")] {
        api.post("configmaps", &labelled(name, json!({ "k": label }))).await?.code(201)?;
    }
    api.delete("configmaps?labelSelector=k=x").await?.code(200)?;
    api.delete("configmaps?fieldSelector=metadata.name=d").await?.code(200)?;
    api.get("configmaps").await?.code(200)?;
    api.delete("configmaps?labelSelector=no=such").await?.code(200)?;
    api.delete("configmaps?labelSelector=a%20b").await?;
    api.delete("configmaps?fieldSelector=no=such").await?;
    api.delete("configmaps").await?.code(200)?;
    api.get("configmaps").await?.code(200)?;
    Ok(())
}

async fn of_a_collection_the_page_that_was_asked_for_is_deleted(api: &Api) -> Result<()> {
    let mut versions = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        versions.push(api.post("configmaps", &config_map(name)).await?.code(201)?.version());
    }
    api.delete("configmaps?limit=1&dryRun=All").await?.code(200)?;
    let page = api.delete("configmaps?limit=1").await?.code(200)?;
    api.delete(&format!("configmaps?limit=1&continue={}", page.next_page())).await?.code(200)?;
    api.get("configmaps").await?.code(200)?;
    // Without a body the version is a condition as well; with one it says which state is to go.
    let up_to = format!("configmaps?resourceVersion={}", versions[3]);
    api.delete(&up_to).await?.refused(409, "Conflict")?;
    api.delete_with(&up_to, &json!({})).await?.code(200)?;
    api.get("configmaps").await?.code(200)?;
    Ok(())
}

async fn a_collection_is_deleted_with_options(api: &Api) -> Result<()> {
    for name in ["a", "b"] {
        api.post("apps/v1:deployments", &deployment(name)).await?.code(201)?;
        api.post("pods", &pod_on(name, "node-1")).await?.code(201)?;
    }
    // What becomes of the deployments is a controller's to say, and only one of the servers has it.
    api.delete_with("apps/v1:deployments", &json!({ "propagationPolicy": "Foreground" })).await?.code(200)?;
    api.delete_with("pods", &json!({ "gracePeriodSeconds": 3 })).await?.code(200)?;
    api.delete("pods?gracePeriodSeconds=0").await?.code(200)?;
    api.get("pods").await?.code(200)?;
    api.delete_with("pods", &json!({ "propagationPolicy": "Nonsense" })).await?;
    api.delete_with("pods", &json!({ "preconditions": { "resourceVersion": "1" } })).await?;
    Ok(())
}

async fn a_collection_of_a_missing_kind_or_without_permission_stays(api: &Api) -> Result<()> {
    api.delete("nonsense").await?.code(404)?;
    api.delete("/api/v1/configmaps").await?;
    // Namespaces and services take no such deletion, or do.
    api.send(Method::DELETE, "/api/v1/namespaces?labelSelector=no=such", &[], "").await?;
    api.send(Method::DELETE, "services?labelSelector=no=such", &[], "").await?;
    Ok(())
}

async fn a_deleted_name_can_be_used_again(api: &Api) -> Result<()> {
    let first = api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.delete("configmaps/a").await?.code(200)?;
    let second = api.post("configmaps", &config_map("a")).await?.code(201)?;
    assert_ne!(first.uid(), second.uid());
    Ok(())
}

async fn owners_are_checked(api: &Api) -> Result<()> {
    let owner = api.post("configmaps", &config_map("owner")).await?.code(201)?;
    let with = |owner: Value| {
        let mut object = config_map("a");
        object["metadata"]["ownerReferences"] = owner;
        object
    };
    let one = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid() });
    api.post("configmaps?dryRun=All", &with(json!([one]))).await?.code(201)?;
    for (field, value) in [
        ("apiVersion", json!("")),
        ("kind", json!("")),
        ("name", json!("")),
        ("uid", json!("")),
        ("apiVersion", json!("a/b/c")),
        ("controller", json!("x")),
    ] {
        let mut bad = one.clone();
        bad[field] = value;
        api.post("configmaps?dryRun=All", &with(json!([bad]))).await?;
    }
    let controller = |uid: &str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": uid, "controller": true });
    api.post("configmaps?dryRun=All", &with(json!([controller("1"), controller("2")])))
        .await?
        .refused(422, "Invalid")?;
    let event = json!([{ "apiVersion": "v1", "kind": "Event", "name": "x", "uid": "1" }]);
    api.post("configmaps?dryRun=All", &with(event)).await?;
    api.post("configmaps?dryRun=All", &with(json!([one, one]))).await?;
    Ok(())
}
