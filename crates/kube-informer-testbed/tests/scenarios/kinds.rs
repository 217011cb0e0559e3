//! Other kinds: defaults, what is validated, what is answered.

use anyhow::Result;
use serde_json::{Value, json};

use crate::harness::{Api, config_map, scenarios, variants};

scenarios![
    secrets_take_plain_text_and_types,
    config_maps_are_validated,
    events_are_one_thing_in_two_groups,
    leases_keep_microseconds,
    nodes_and_volumes_are_cluster_scoped,
    policies_and_roles_get_their_defaults,
    a_claim_for_a_volume,
    reviews_are_answered_and_not_stored,
    webhook_configurations_get_their_defaults,
];

async fn secrets_take_plain_text_and_types(api: &Api) -> Result<()> {
    api.post("secrets", &json!({ "metadata": { "name": "a" }, "stringData": { "plain": "text", "over": "new" }, "data": { "over": "b2xk" } })).await?.code(201)?;
    variants(
        api,
        "secrets",
        &json!({ "metadata": { "name": "b" }, "data": { "a": "AAAA" } }),
        &[
            ("/data", json!({ "a": "not base64!" })),
            ("/data", json!({ "bad key": "AAAA" })),
            ("/data", json!({ "": "AAAA" })),
            ("/type", json!("kubernetes.io/tls")),
            ("/type", json!("kubernetes.io/dockerconfigjson")),
            ("/type", json!("kubernetes.io/basic-auth")),
            ("/type", json!("kubernetes.io/service-account-token")),
            ("/data", json!({ "a": 5 })),
        ],
    )
    .await
}

async fn config_maps_are_validated(api: &Api) -> Result<()> {
    variants(
        api,
        "configmaps",
        &config_map("a"),
        &[
            ("/data", json!({ "bad key": "x" })),
            ("/data", json!({ "..": "x" })),
            ("/data", json!({ "a": 5 })),
            ("/data", json!("text")),
            ("/binaryData", json!({ "key": "AAAA" })),
            ("/binaryData", json!({ "x": "not base64!" })),
            ("/immutable", json!("yes")),
        ],
    )
    .await?;
    let big = "x".repeat(1024 * 1024 + 1);
    api.post("configmaps?dryRun=All", &json!({ "metadata": { "name": "big" }, "data": { "a": big } }))
        .await?
        .code(422)?;
    Ok(())
}

async fn events_are_one_thing_in_two_groups(api: &Api) -> Result<()> {
    let about = json!({ "kind": "Pod", "name": "a", "namespace": api.namespace, "apiVersion": "v1" });
    let old = json!({ "metadata": { "name": "old" }, "involvedObject": about, "reason": "Test", "message": "hello", "type": "Normal",
        "firstTimestamp": "2001-01-01T00:00:00Z", "lastTimestamp": "2001-01-01T00:00:01Z", "count": 2, "source": { "component": "scenario" } });
    api.post("events", &old).await?.code(201)?;
    api.get("events.k8s.io/v1:events/old").await?.code(200)?;
    let new = json!({ "metadata": { "name": "new" }, "regarding": about, "reason": "Test", "note": "hello", "type": "Normal", "action": "Testing",
        "eventTime": "2001-01-01T00:00:00.000001Z", "reportingController": "example.com/scenario", "reportingInstance": "one" });
    api.post("events.k8s.io/v1:events", &new).await?.code(201)?;
    api.get("events/new").await?.code(200)?;
    api.get("events").await?.code(200)?;
    api.get("events.k8s.io/v1:events?fieldSelector=regarding.name=a").await?;
    api.get("events?fieldSelector=involvedObject.name=a,type=Normal").await?.code(200)?;
    variants(
        api,
        "events.k8s.io/v1:events",
        &new,
        &[
            ("/regarding/namespace", json!("elsewhere")),
            ("/reportingController", json!("")),
            ("/reportingInstance", json!("")),
            ("/action", json!("")),
            ("/reason", json!("")),
            ("/type", json!("Nonsense")),
            ("/eventTime", Value::Null),
            ("/note", json!("x".repeat(1025))),
        ],
    )
    .await?;
    variants(
        api,
        "events",
        &old,
        &[
            ("/involvedObject/namespace", json!("elsewhere")),
            ("/type", json!("Nonsense")),
            ("/involvedObject", json!({})),
        ],
    )
    .await?;
    api.merge("events/old", &json!({ "count": 3, "lastTimestamp": "2001-01-01T00:00:09Z" }))
        .await?
        .code(200)?;
    api.merge(
        "events.k8s.io/v1:events/new",
        &json!({ "series": { "count": 2, "lastObservedTime": "2001-01-01T00:00:09.5Z" } }),
    )
    .await?;
    api.merge("events.k8s.io/v1:events/new", &json!({ "reason": "Other" })).await?;
    Ok(())
}

async fn leases_keep_microseconds(api: &Api) -> Result<()> {
    let lease = json!({ "metadata": { "name": "a" }, "spec": { "holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": "2001-01-01T00:00:00.100000Z", "renewTime": "2001-01-01T01:00:00.123456+01:00", "leaseTransitions": 0 } });
    api.post("coordination.k8s.io/v1:leases", &lease).await?.code(201)?;
    variants(
        api,
        "coordination.k8s.io/v1:leases",
        &lease,
        &[
            ("/spec/leaseDurationSeconds", json!(0)),
            ("/spec/leaseDurationSeconds", json!(-1)),
            ("/spec/leaseTransitions", json!(-1)),
            ("/spec/renewTime", json!("nonsense")),
            ("/spec/renewTime", json!(5)),
            ("/spec/holderIdentity", json!("")),
            ("/spec/strategy", json!("Nonsense")),
        ],
    )
    .await
}

async fn nodes_and_volumes_are_cluster_scoped(api: &Api) -> Result<()> {
    let node = api.name("node");
    api.post("/api/v1/nodes", &json!({ "metadata": { "name": node }, "spec": { "podCIDR": "10.1.0.0/24", "taints": [{ "key": "a", "effect": "NoSchedule" }] } })).await?.code(201)?;
    api.merge(&format!("/api/v1/nodes/{node}"), &json!({ "spec": { "unschedulable": true } }))
        .await?
        .code(200)?;
    api.merge(
        &format!("/api/v1/nodes/{node}"),
        &json!({ "spec": { "podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"] } }),
    )
    .await?;
    api.post(&format!("/api/v1/namespaces/{}/nodes", api.namespace), &json!({ "metadata": { "name": "x" } }))
        .await?
        .code(404)?;
    let volume = json!({ "metadata": { "name": api.name("pv") }, "spec": { "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "hostPath": { "path": "/x" } } });
    api.post("/api/v1/persistentvolumes", &volume).await?.code(201)?;
    variants(
        api,
        "/api/v1/persistentvolumes",
        &volume,
        &[
            ("/spec/capacity", Value::Null),
            ("/spec/capacity", json!({})),
            ("/spec/accessModes", json!([])),
            ("/spec/hostPath", Value::Null),
            ("/spec/accessModes", json!(["Nonsense"])),
        ],
    )
    .await?;
    variants(
        api,
        "/api/v1/nodes",
        &json!({ "metadata": { "name": "x" }, "spec": {} }),
        &[
            ("/metadata/namespace", json!("default")),
            ("/spec/taints", json!([{ "key": "a", "effect": "Nonsense" }])),
            ("/spec/podCIDR", json!("x")),
        ],
    )
    .await
}

async fn policies_and_roles_get_their_defaults(api: &Api) -> Result<()> {
    api.post("networking.k8s.io/v1:networkpolicies", &json!({ "metadata": { "name": "a" }, "spec": { "podSelector": {}, "ingress": [{ "ports": [{ "port": 80 }], "from": [{ "ipBlock": { "cidr": "10.0.0.0/8" } }] }] } })).await?.code(201)?;
    api.post("policy/v1:poddisruptionbudgets", &json!({ "metadata": { "name": "a" }, "spec": { "maxUnavailable": "50%", "selector": { "matchLabels": { "a": "b" } } } })).await?.code(201)?;
    api.post(
        "policy/v1:poddisruptionbudgets",
        &json!({ "metadata": { "name": "b" }, "spec": { "maxUnavailable": 1, "minAvailable": 1 } }),
    )
    .await?;
    api.post("rbac.authorization.k8s.io/v1:roles", &json!({ "metadata": { "name": "a" }, "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }] })).await?.code(201)?;
    api.post(
        "rbac.authorization.k8s.io/v1:roles",
        &json!({ "metadata": { "name": "b" }, "rules": [{ "resources": ["pods"] }] }),
    )
    .await?;
    let binding = json!({ "metadata": { "name": "a" }, "roleRef": { "kind": "Role", "name": "a" }, "subjects": [{ "kind": "User", "name": "jane" }, { "kind": "ServiceAccount", "name": "robot", "namespace": api.namespace }] });
    api.post("rbac.authorization.k8s.io/v1:rolebindings", &binding).await?;
    let mut full = binding.clone();
    full["roleRef"]["apiGroup"] = "rbac.authorization.k8s.io".into();
    full["metadata"]["name"] = "b".into();
    api.post("rbac.authorization.k8s.io/v1:rolebindings", &full).await?.code(201)?;
    api.merge("rbac.authorization.k8s.io/v1:rolebindings/b", &json!({ "roleRef": { "name": "other" } }))
        .await?;
    api.post("limitranges", &json!({ "metadata": { "name": "a" }, "spec": { "limits": [{ "type": "Container", "default": { "cpu": "1" }, "max": { "cpu": "2" } }] } })).await?.code(201)?;
    api.post(
        "resourcequotas",
        &json!({ "metadata": { "name": "a" }, "spec": { "hard": { "count/secrets": "5" } } }),
    )
    .await?
    .code(201)?;
    Ok(())
}

async fn a_claim_for_a_volume(api: &Api) -> Result<()> {
    let claim = json!({ "metadata": { "name": "a" }, "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } });
    api.post("persistentvolumeclaims", &claim).await?.code(201)?;
    api.merge(
        "persistentvolumeclaims/a",
        &json!({ "spec": { "resources": { "requests": { "storage": "2Gi" } } } }),
    )
    .await?;
    variants(
        api,
        "persistentvolumeclaims",
        &claim,
        &[
            ("/spec/accessModes", json!([])),
            ("/spec/resources", json!({})),
            ("/spec/storageClassName", json!("Bad_Name")),
            ("/spec/volumeMode", json!("Nonsense")),
        ],
    )
    .await?;
    api.delete("persistentvolumeclaims/a").await?.code(200)?;
    Ok(())
}

async fn reviews_are_answered_and_not_stored(api: &Api) -> Result<()> {
    let review = |kind: &str, group: &str, spec: Value| json!({ "apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec });
    let own = api
        .post(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            &json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" }),
        )
        .await?
        .code(201)?;
    assert_eq!(own.body["status"]["userInfo"]["username"], "admin");
    let attributes = json!({ "verb": "get", "resource": "pods", "namespace": api.namespace });
    api.post(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        &review(
            "SelfSubjectAccessReview",
            "authorization.k8s.io",
            json!({ "resourceAttributes": attributes }),
        ),
    )
    .await?
    .code(201)?;
    api.post(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        &review(
            "SubjectAccessReview",
            "authorization.k8s.io",
            json!({ "user": "admin", "groups": ["system:masters"], "resourceAttributes": attributes }),
        ),
    )
    .await?
    .code(201)?;
    api.post(
        "/apis/authentication.k8s.io/v1/tokenreviews",
        &review("TokenReview", "authentication.k8s.io", json!({ "token": "wrong" })),
    )
    .await?
    .code(201)?;
    api.get("/apis/authentication.k8s.io/v1/tokenreviews").await?.code(405)?;
    api.get("/apis/authentication.k8s.io/v1/tokenreviews/a").await?;
    Ok(())
}

async fn webhook_configurations_get_their_defaults(api: &Api) -> Result<()> {
    let webhook = json!({ "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": { "url": "https://127.0.0.1:1/x" },
        "rules": [{ "apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"] }], "failurePolicy": "Ignore" });
    let object = json!({ "metadata": { "name": api.name("hooks") }, "webhooks": [webhook] });
    api.post("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", &object)
        .await?
        .code(201)?;
    Ok(())
}
