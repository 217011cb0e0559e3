//! Parts of objects with an endpoint of their own: status, scale, binding, eviction, token, finalize.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::harness::{Api, config_map, deployment, pod, pod_on, scenarios, template};

scenarios![
    the_status_is_read_and_written_apart,
    a_status_is_validated_and_merged,
    the_scale_of_a_deployment,
    the_scale_of_other_kinds,
    a_scale_must_fit,
    a_pod_is_bound_to_a_node,
    a_pod_is_evicted,
    a_disruption_budget_forbids_an_eviction,
    an_eviction_takes_from_the_budget,
    several_budgets_for_a_pod_are_an_error,
    a_pod_that_is_not_ready_is_no_disruption,
    a_token_is_issued_for_a_service_account,
    parts_that_only_a_node_can_serve,
    subresources_that_do_not_exist_are_not_found,
    methods_that_a_subresource_does_not_have_are_refused,
    status_updates_conflict_as_updates_do,
];

async fn the_status_is_read_and_written_apart(api: &Api) -> Result<()> {
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    let mut object = api.get("apps/v1:deployments/a/status").await?.code(200)?.body;
    object["status"] = json!({ "replicas": 1, "observedGeneration": 1, "readyReplicas": 1 });
    object["metadata"]["labels"] = json!({ "ignored": "yes" });
    object["spec"]["replicas"] = 9.into();
    api.put("apps/v1:deployments/a/status", &object).await?.code(200)?;
    api.post("pods", &pod("a")).await?.code(201)?;
    let mut object = api.get("pods/a/status").await?.code(200)?.body;
    object["status"]["phase"] = "Running".into();
    object["status"]["hostIP"] = "192.168.0.9".into();
    object["metadata"]["annotations"] = json!({ "kept": "perhaps" });
    object["spec"]["hostNetwork"] = true.into();
    api.put("pods/a/status", &object).await?.code(200)?;
    let node = api.name("node");
    api.post("/api/v1/nodes", &json!({ "metadata": { "name": node } })).await?.code(201)?;
    let status = json!({ "metadata": { "labels": { "a": "b" } }, "status": { "capacity": { "cpu": "4", "memory": "8Gi" },
        "conditions": [{ "type": "Ready", "status": "True", "lastHeartbeatTime": "2001-01-01T00:00:00Z" }],
        "addresses": [{ "type": "InternalIP", "address": "192.168.0.1" }] } });
    api.patch(&format!("/api/v1/nodes/{node}/status"), "strategic-merge", &status).await?.code(200)?;
    Ok(())
}

async fn a_status_is_validated_and_merged(api: &Api) -> Result<()> {
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    api.merge("apps/v1:deployments/a/status", &json!({ "status": { "replicas": -1 } })).await?;
    api.merge(
        "apps/v1:deployments/a/status",
        &json!({ "status": { "replicas": 1, "availableReplicas": 5 } }),
    )
    .await?;
    api.merge("apps/v1:deployments/a/status", &json!({ "status": { "nonsense": 1 } })).await?;
    api.merge("apps/v1:deployments/a/status", &json!({ "status": null })).await?;
    api.merge("apps/v1:deployments/a/status", &json!({ "status": "text" })).await?;
    api.post("pods", &pod_on("a", "n")).await?.code(201)?;
    api.merge("pods/a/status", &json!({ "status": { "phase": "Nonsense" } })).await?;
    api.merge("pods/a/status", &json!({ "status": { "podIPs": [{ "ip": "not an address" }] } })).await?;
    api.merge("pods/a/status", &json!({ "status": { "podIP": "192.168.0.1" } })).await?;
    Ok(())
}

async fn the_scale_of_a_deployment(api: &Api) -> Result<()> {
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    let path = "apps/v1:deployments/a/scale";
    let mut scale = api.get(path).await?.code(200)?.body;
    scale["spec"]["replicas"] = 3.into();
    api.put(path, &scale).await?.code(200)?;
    api.put(path, &scale).await?.refused(409, "Conflict")?;
    scale["metadata"] = json!({ "name": "a", "namespace": api.namespace });
    api.put(path, &scale).await?.code(200)?;
    api.merge(path, &json!({ "spec": { "replicas": 5 } })).await?.code(200)?;
    api.patch(path, "json", &json!([{ "op": "replace", "path": "/spec/replicas", "value": 6 }]))
        .await?
        .code(200)?;
    api.merge(&format!("{path}?dryRun=All"), &json!({ "spec": { "replicas": 9 } })).await?.code(200)?;
    api.get("apps/v1:deployments/a").await?.code(200)?;
    Ok(())
}

async fn the_scale_of_other_kinds(api: &Api) -> Result<()> {
    let set = json!({ "metadata": { "name": "a" }, "spec": { "replicas": 2, "selector": { "matchLabels": { "app": "a" },
        "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["x", "y"] }, { "key": "z", "operator": "DoesNotExist" }] },
        "template": { "metadata": { "labels": { "app": "a", "tier": "x" } }, "spec": template("a")["spec"] } } });
    api.post("apps/v1:replicasets", &set).await?.code(201)?;
    api.get("apps/v1:replicasets/a/scale").await?.code(200)?;
    api.merge("apps/v1:replicasets/a/scale", &json!({ "spec": { "replicas": 4 } })).await?.code(200)?;
    let stateful = json!({ "metadata": { "name": "a" }, "spec": { "serviceName": "a", "selector": { "matchLabels": { "app": "a" } }, "template": template("a") } });
    api.post("apps/v1:statefulsets", &stateful).await?.code(201)?;
    api.get("apps/v1:statefulsets/a/scale").await?.code(200)?;
    api.merge("apps/v1:statefulsets/a/scale", &json!({ "spec": { "replicas": 0 } })).await?.code(200)?;
    let controller = json!({ "metadata": { "name": "a" }, "spec": { "selector": { "app": "a" }, "template": template("a") } });
    api.post("replicationcontrollers", &controller).await?.code(201)?;
    api.get("replicationcontrollers/a/scale").await?.code(200)?;
    api.get("apps/v1:daemonsets/a/scale").await?.code(404)?;
    Ok(())
}

async fn a_scale_must_fit(api: &Api) -> Result<()> {
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    let path = "apps/v1:deployments/a/scale";
    let scale = |name: &str, replicas: Value| json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": name }, "spec": { "replicas": replicas } });
    api.put(path, &scale("a", (-1).into())).await?.refused(422, "Invalid")?;
    api.put(path, &scale("b", 1.into())).await?;
    api.put(path, &scale("", 1.into())).await?;
    api.put(path, &scale("a", "x".into())).await?;
    api.put(path, &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" } })).await?;
    api.put(path, &json!({ "apiVersion": "autoscaling/v9", "kind": "Scale", "metadata": { "name": "a" } }))
        .await?;
    api.merge(path, &json!({ "spec": { "replicas": -5 } })).await?;
    api.merge(path, &json!({ "spec": { "replicas": "x" } })).await?;
    api.put("apps/v1:deployments/missing/scale", &scale("missing", 1.into()))
        .await?
        .refused(404, "NotFound")?;
    let mut other = scale("a", 1.into());
    other["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555".into();
    api.put(path, &other).await?;
    Ok(())
}

async fn a_pod_is_bound_to_a_node(api: &Api) -> Result<()> {
    let start = api.post("pods", &pod("a")).await?.code(201)?.version();
    let mut watch = api.watch(&format!("pods?resourceVersion={start}")).await?;
    let binding = |name: &str, target: Value| json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name }, "target": target });
    api.post("pods/a/binding", &binding("a", json!({}))).await?;
    api.post("pods/a/binding", &binding("a", json!({ "kind": "Pod", "name": "x" }))).await?;
    api.post("pods/a/binding", &binding("b", json!({ "kind": "Node", "name": "node-1" }))).await?;
    api.post("pods/a/binding?dryRun=All", &binding("a", json!({ "kind": "Node", "name": "node-0" }))).await?;
    api.post("pods/a/binding", &binding("a", json!({ "kind": "Node", "name": "node-1" })))
        .await?
        .code(201)?;
    api.get("pods/a").await?.code(200)?;
    api.post("pods/a/binding", &binding("a", json!({ "kind": "Node", "name": "node-2" })))
        .await?
        .refused(409, "Conflict")?;
    api.post("pods/missing/binding", &binding("missing", json!({ "kind": "Node", "name": "node-1" })))
        .await?
        .refused(404, "NotFound")?;
    api.post("pods", &pod("c")).await?.code(201)?;
    let mut other = binding("c", json!({ "kind": "Node", "name": "node-1" }));
    other["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555".into();
    api.post("pods/c/binding", &other).await?;
    other["metadata"]["uid"] = "".into();
    other["metadata"]["annotations"] = json!({ "from": "binding" });
    api.post("bindings", &other).await?;
    api.get("pods/c").await?.code(200)?;
    watch.events(1).await?;
    Ok(())
}

async fn a_pod_is_evicted(api: &Api) -> Result<()> {
    let eviction =
        |name: &str| json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name } });
    api.post("pods", &pod_on("a", "node-1")).await?.code(201)?;
    api.post("pods/a/eviction", &eviction("b")).await?;
    let mut dry = eviction("a");
    dry["deleteOptions"] = json!({ "dryRun": ["All"] });
    api.post("pods/a/eviction", &dry).await?.code(201)?;
    api.post("pods/a/eviction?dryRun=All", &eviction("a")).await?.code(201)?;
    api.get("pods/a").await?.code(200)?;
    let mut wrong = eviction("a");
    wrong["deleteOptions"] = json!({ "preconditions": { "uid": "11111111-2222-3333-4444-555555555555" } });
    api.post("pods/a/eviction", &wrong).await?;
    api.post("pods/a/eviction", &eviction("a")).await?.code(201)?;
    api.get("pods/a").await?.code(200)?;
    api.post("pods/missing/eviction", &eviction("missing")).await?.refused(404, "NotFound")?;
    api.post("pods", &pod("c")).await?.code(201)?;
    api.post("pods/c/eviction", &json!({ "apiVersion": "v1", "kind": "Pod" })).await?;
    api.post("pods/c/eviction", &eviction("c")).await?.code(201)?;
    api.get("pods/c").await?.code(404)?;
    Ok(())
}

async fn a_disruption_budget_forbids_an_eviction(api: &Api) -> Result<()> {
    api.post("pods", &pod_on("a", "node-1")).await?.code(201)?;
    api.merge(
        "pods/a/status",
        &json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } }),
    )
    .await?
    .code(200)?;
    let budget = json!({ "metadata": { "name": "b" }, "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } } } });
    api.post("policy/v1:poddisruptionbudgets", &budget).await?.code(201)?;
    let status = json!({ "status": { "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": 1 } });
    api.merge("policy/v1:poddisruptionbudgets/b/status", &status).await?.code(200)?;
    let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "a" } });
    api.post("pods/a/eviction", &eviction).await?;
    api.get("pods/a").await?.code(200)?;
    Ok(())
}

const BUDGETS: &str = "policy/v1:poddisruptionbudgets";

fn eviction(name: &str) -> Value {
    json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name } })
}

/// A pod of `app: web` that runs.
async fn running(api: &Api, name: &str, ready: &str) -> Result<()> {
    let mut object = pod_on(name, "node-1");
    object["metadata"]["labels"] = json!({ "app": "web" });
    api.post("pods", &object).await?.code(201)?;
    let status = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] });
    api.merge(&format!("pods/{name}/status"), &json!({ "status": status })).await?.code(200)?;
    Ok(())
}

async fn budget(api: &Api, name: &str) -> Result<()> {
    let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } });
    api.post(BUDGETS, &json!({ "metadata": { "name": name }, "spec": spec })).await?.code(201)?;
    Ok(())
}

async fn allow(api: &Api, disruptions: u8, healthy: u8) -> Result<()> {
    let status = json!({ "disruptionsAllowed": disruptions, "currentHealthy": healthy, "desiredHealthy": 1,
        "expectedPods": 3, "observedGeneration": 1 });
    api.merge(&format!("{BUDGETS}/b/status"), &json!({ "status": status })).await?.code(200)?;
    Ok(())
}

async fn an_eviction_takes_from_the_budget(api: &Api) -> Result<()> {
    for name in ["x", "y", "z"] {
        running(api, name, "True").await?;
    }
    budget(api, "b").await?;
    api.post("pods/x/eviction", &eviction("x")).await?.refused(429, "TooManyRequests")?;
    allow(api, 2, 3).await?;
    api.post("pods/x/eviction?dryRun=All", &eviction("x")).await?.code(201)?;
    api.get(&format!("{BUDGETS}/b")).await?.code(200)?;
    api.post("pods/x/eviction", &eviction("x")).await?.code(201)?;
    api.get(&format!("{BUDGETS}/b")).await?.code(200)?;
    api.post("pods/y/eviction", &eviction("y")).await?.code(201)?;
    api.get(&format!("{BUDGETS}/b")).await?.code(200)?;
    api.post("pods/z/eviction", &eviction("z")).await?.refused(429, "TooManyRequests")?;
    allow(api, 0, 1).await?;
    api.post("pods/z/eviction", &eviction("z")).await?.refused(429, "TooManyRequests")?;
    // What has been evicted already is no disruption any more.
    api.post("pods/y/eviction", &eviction("y")).await?.code(201)?;
    Ok(())
}

async fn several_budgets_for_a_pod_are_an_error(api: &Api) -> Result<()> {
    running(api, "x", "True").await?;
    budget(api, "b").await?;
    budget(api, "c").await?;
    api.post("pods/x/eviction", &eviction("x")).await?.code(500)?;
    api.delete(&format!("{BUDGETS}/c")).await?.code(200)?;
    allow(api, 1, 2).await?;
    api.post("pods/x/eviction", &eviction("x")).await?.code(201)?;
    Ok(())
}

async fn a_pod_that_is_not_ready_is_no_disruption(api: &Api) -> Result<()> {
    for name in ["x", "y", "z"] {
        running(api, name, "False").await?;
    }
    budget(api, "b").await?;
    allow(api, 0, 0).await?;
    api.post("pods/x/eviction", &eviction("x")).await?.refused(429, "TooManyRequests")?;
    allow(api, 0, 1).await?;
    api.post("pods/x/eviction", &eviction("x")).await?.code(201)?;
    allow(api, 0, 0).await?;
    let always = json!({ "spec": { "unhealthyPodEvictionPolicy": "AlwaysAllow" } });
    api.merge(&format!("{BUDGETS}/b"), &always).await?.code(200)?;
    api.post("pods/y/eviction", &eviction("y")).await?.code(201)?;
    api.get(&format!("{BUDGETS}/b")).await?.code(200)?;
    Ok(())
}

async fn a_token_is_issued_for_a_service_account(api: &Api) -> Result<()> {
    api.post("serviceaccounts", &json!({ "metadata": { "name": "robot" } })).await?.code(201)?;
    let request = |spec: Value| json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec });
    let made = api.post("serviceaccounts/robot/token", &request(json!({}))).await?.code(201)?;
    let token = made.body["status"]["token"].as_str().unwrap_or_default().to_owned();
    api.post(
        "serviceaccounts/robot/token",
        &request(json!({ "expirationSeconds": 3601, "audiences": ["https://kubernetes.default.svc"] })),
    )
    .await?;
    api.post("serviceaccounts/robot/token", &request(json!({ "expirationSeconds": 5 }))).await?;
    api.post("serviceaccounts/missing/token", &request(json!({}))).await?.refused(404, "NotFound")?;
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token } });
    let reviewed = api.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await?.code(201)?;
    assert_eq!(reviewed.body["status"]["authenticated"], true);
    Ok(())
}

async fn parts_that_only_a_node_can_serve(api: &Api) -> Result<()> {
    api.post("pods", &pod_on("a", "node-1")).await?.code(201)?;
    // What these need is a kubelet; only how they are refused or answered is of interest.
    for part in ["ephemeralcontainers", "resize"] {
        let answer = api.unrecorded(Method::GET, &format!("pods/a/{part}"), &[], "").await?;
        api.note(part, answer.code.into());
        let media = [("content-type", "application/merge-patch+json")];
        let answer = api.unrecorded(Method::PATCH, &format!("pods/a/{part}"), &media, "{}").await?;
        api.note(&format!("patch of {part}"), answer.code.into());
    }
    Ok(())
}

async fn subresources_that_do_not_exist_are_not_found(api: &Api) -> Result<()> {
    api.post("configmaps", &config_map("a")).await?.code(201)?;
    api.get("configmaps/a/status").await?.code(404)?;
    api.get("configmaps/a/nonsense").await?.code(404)?;
    api.get("configmaps/a/status/more").await?.code(404)?;
    api.put("configmaps/a/status", &config_map("a")).await?.code(404)?;
    api.get("pods/a/scale").await?.code(404)?;
    api.get("secrets/a/scale").await?.code(404)?;
    Ok(())
}

async fn methods_that_a_subresource_does_not_have_are_refused(api: &Api) -> Result<()> {
    api.post("pods", &pod("a")).await?.code(201)?;
    api.get("pods/a/binding").await?.code(405)?;
    api.get("pods/a/eviction").await?.code(405)?;
    api.delete("pods/a/status").await?.code(405)?;
    api.post("pods/a/status", &pod("a")).await?.code(405)?;
    api.post("pods/a", &pod("a")).await?.code(405)?;
    api.send(Method::PUT, "pods/a/binding", &[], "{}").await?.code(405)?;
    api.post("apps/v1:deployments/a/scale", &json!({})).await?.code(405)?;
    Ok(())
}

async fn status_updates_conflict_as_updates_do(api: &Api) -> Result<()> {
    let made = api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    api.merge("apps/v1:deployments/a", &json!({ "metadata": { "labels": { "a": "b" } } }))
        .await?
        .code(200)?;
    let mut old = made.body;
    old["status"] = json!({ "replicas": 1 });
    api.put("apps/v1:deployments/a/status", &old).await?.refused(409, "Conflict")?;
    old["metadata"]["resourceVersion"] = "".into();
    api.put("apps/v1:deployments/a/status", &old).await?.code(200)?;
    old["metadata"]["name"] = "b".into();
    api.put("apps/v1:deployments/a/status", &old).await?.refused(400, "BadRequest")?;
    Ok(())
}
