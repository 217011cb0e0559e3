//! Kinds: defaults, what is validated, what is allocated.

use anyhow::Result;
use serde_json::{Value, json};

use crate::harness::{Api, config_map, deployment, pod, scenarios, service, template};

scenarios![
    a_pod_gets_its_defaults,
    a_rich_pod_keeps_what_it_says,
    pods_are_validated,
    quality_of_service_follows_from_resources,
    workloads_get_their_defaults,
    workloads_are_validated,
    services_of_every_type_get_addresses,
    services_are_validated,
    a_service_changes_its_type,
    secrets_take_plain_text_and_types,
    config_maps_are_validated,
    events_are_one_thing_in_two_groups,
    leases_keep_microseconds,
    nodes_and_volumes_are_cluster_scoped,
    quantities_are_written_in_their_canonical_form,
    autoscalers_speak_two_versions,
    policies_and_roles_get_their_defaults,
    ingresses_and_their_classes,
    priority_classes_and_runtime_classes_are_looked_up,
    a_claim_for_a_volume,
    reviews_are_answered_and_not_stored,
    webhook_configurations_get_their_defaults,
];

async fn a_pod_gets_its_defaults(api: &Api) -> Result<()> {
    api.post("pods", &pod("a")).await?.code(201)?;
    api.get("pods/a").await?.code(200)?;
    let mut object = pod("b");
    object["spec"]["containers"][0]["image"] = "nginx".into();
    object["spec"]["containers"][0]["ports"] = json!([{ "containerPort": 80 }]);
    object["spec"]["hostNetwork"] = true.into();
    api.post("pods", &object).await?.code(201)?;
    Ok(())
}

async fn a_rich_pod_keeps_what_it_says(api: &Api) -> Result<()> {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" },
        "spec": {
            "initContainers": [{ "name": "i", "image": "x", "restartPolicy": "Always" }],
            "containers": [{
                "name": "c", "image": "x@sha256:0123456789012345678901234567890123456789012345678901234567890123",
                "command": ["sh"], "args": ["-c", "true"], "workingDir": "/w",
                "env": [{ "name": "A", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }, { "name": "B", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k", "optional": true } } }],
                "envFrom": [{ "configMapRef": { "name": "m" } }],
                "livenessProbe": { "httpGet": { "path": "/", "port": 80 } },
                "readinessProbe": { "tcpSocket": { "port": "http" }, "periodSeconds": 3 },
                "startupProbe": { "exec": { "command": ["true"] } },
                "lifecycle": { "preStop": { "sleep": { "seconds": 1 } } },
                "ports": [{ "name": "http", "containerPort": 80, "protocol": "TCP" }],
                "resources": { "requests": { "cpu": "0.1", "memory": "128Mi" }, "limits": { "cpu": 1, "memory": "1Gi" } },
                "securityContext": { "runAsNonRoot": true, "capabilities": { "drop": ["ALL"] } },
                "volumeMounts": [{ "name": "m", "mountPath": "/m" }, { "name": "t", "mountPath": "/t", "readOnly": true }],
            }],
            "volumes": [
                { "name": "m", "configMap": { "name": "m", "items": [{ "key": "k", "path": "p" }] } },
                { "name": "t", "projected": { "sources": [{ "serviceAccountToken": { "path": "token" } }, { "downwardAPI": { "items": [{ "path": "l", "fieldRef": { "fieldPath": "metadata.labels" } }] } }] } },
                { "name": "e", "emptyDir": {} }, { "name": "h", "hostPath": { "path": "/h" } }, { "name": "s", "secret": { "secretName": "s" } },
            ],
            "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "podAffinityTerm": { "topologyKey": "k", "labelSelector": { "matchLabels": { "a": "b" } } } }] } },
            "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {} }],
            "tolerations": [{ "key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5 }],
            "serviceAccountName": "robot", "automountServiceAccountToken": false,
            "hostAliases": [{ "ip": "127.0.0.1", "hostnames": ["x"] }], "securityContext": { "fsGroup": 5 },
            "overhead": null, "terminationGracePeriodSeconds": 1, "schedulingGates": [{ "name": "example.com/gate" }],
        },
    });
    api.post("pods", &object).await?.code(201)?;
    Ok(())
}

/// Posts variants of an object: each sets one field to one value.
async fn variants(api: &Api, path: &str, base: &Value, changes: &[(&str, Value)]) -> Result<()> {
    for (pointer, value) in changes {
        let mut object = base.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let place = if parent.is_empty() { Some(&mut object) } else { object.pointer_mut(parent) };
        let place = place.unwrap_or_else(|| panic!("no {parent}"));
        match key.parse::<usize>() {
            Ok(number) if place.is_array() => place[number] = value.clone(),
            _ => place[key] = value.clone(),
        }
        let before = format!("{path}?dryRun=All&fieldManager={}", key.to_lowercase());
        api.post(&before, &object).await?;
    }
    Ok(())
}

async fn pods_are_validated(api: &Api) -> Result<()> {
    let base = pod("a");
    variants(api, "pods", &base, &[
        ("/spec", Value::Null),
        ("/spec/containers", json!([])),
        ("/spec/containers", json!([{ "name": "a" }])),
        ("/spec/containers", json!([{ "image": "a" }])),
        ("/spec/containers", json!([{ "name": "Bad_Name", "image": "a" }])),
        ("/spec/containers", json!([{ "name": "a", "image": "a" }, { "name": "a", "image": "b" }])),
        ("/spec/containers/0/image", json!(" ")),
        ("/spec/containers/0/imagePullPolicy", json!("Sometimes")),
        ("/spec/containers/0/ports", json!([{ "containerPort": 0 }])),
        ("/spec/containers/0/ports", json!([{ "containerPort": 70000 }])),
        ("/spec/containers/0/ports", json!([{ "containerPort": 80, "protocol": "HTTP" }])),
        ("/spec/containers/0/ports", json!([{ "containerPort": 80, "name": "toolongtoolongtoolong" }])),
        ("/spec/containers/0/env", json!([{ "name": "a=b" }])),
        ("/spec/containers/0/env", json!([{ "name": "A", "value": "x", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }])),
        ("/spec/containers/0/volumeMounts", json!([{ "name": "missing", "mountPath": "/x" }])),
        ("/spec/containers/0/resources", json!({ "requests": { "cpu": "2" }, "limits": { "cpu": "1" } })),
        ("/spec/containers/0/resources", json!({ "requests": { "cpu": "-1" } })),
        ("/spec/containers/0/resources", json!({ "requests": { "cpu": "nonsense" } })),
        ("/spec/containers/0/livenessProbe", json!({})),
        ("/spec/containers/0/livenessProbe", json!({ "httpGet": { "port": 80 }, "tcpSocket": { "port": 80 } })),
        ("/spec/containers/0/terminationMessagePolicy", json!("Nonsense")),
        ("/spec/restartPolicy", json!("Sometimes")),
        ("/spec/dnsPolicy", json!("Nonsense")),
        ("/spec/terminationGracePeriodSeconds", json!(-5)),
        ("/spec/activeDeadlineSeconds", json!(0)),
        ("/spec/nodeSelector", json!({ "bad key": "x" })),
        ("/spec/hostname", json!("Bad_Host")),
        ("/spec/volumes", json!([{ "name": "v" }])),
        ("/spec/volumes", json!([{ "name": "v", "emptyDir": {} }, { "name": "v", "emptyDir": {} }])),
        ("/spec/volumes", json!([{ "name": "v", "emptyDir": {}, "hostPath": { "path": "/x" } }])),
        ("/spec/tolerations", json!([{ "key": "a", "operator": "Nonsense" }])),
        ("/spec/tolerations", json!([{ "operator": "Equal" }])),
        ("/spec/serviceAccountName", json!("Bad_Name")),
        ("/spec/nodeName", json!("Bad_Node")),
        ("/metadata/labels", json!({ "a": "b c" })),
    ]).await
}

async fn quality_of_service_follows_from_resources(api: &Api) -> Result<()> {
    let with = |name: &str, resources: Value| {
        let mut object = pod(name);
        object["spec"]["containers"][0]["resources"] = resources;
        object
    };
    let full = json!({ "cpu": "1", "memory": "1Gi" });
    api.post("pods", &with("guaranteed", json!({ "requests": full, "limits": full }))).await?.code(201)?;
    api.post("pods", &with("limits", json!({ "limits": full }))).await?.code(201)?;
    api.post("pods", &with("burstable", json!({ "requests": { "cpu": "100m" } }))).await?.code(201)?;
    api.post("pods", &with("best-effort", json!({}))).await?.code(201)?;
    Ok(())
}

async fn workloads_get_their_defaults(api: &Api) -> Result<()> {
    api.post("apps/v1:deployments", &deployment("a")).await?.code(201)?;
    let selector = json!({ "matchLabels": { "app": "a" } });
    let set =
        json!({ "metadata": { "name": "a" }, "spec": { "selector": selector, "template": template("a") } });
    api.post("apps/v1:replicasets", &set).await?.code(201)?;
    api.post("apps/v1:daemonsets", &set).await?.code(201)?;
    let mut stateful = set.clone();
    stateful["spec"]["serviceName"] = "a".into();
    stateful["spec"]["volumeClaimTemplates"] = json!([{ "metadata": { "name": "data" }, "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }]);
    api.post("apps/v1:statefulsets", &stateful).await?.code(201)?;
    let mut job_template = template("a");
    job_template["spec"]["restartPolicy"] = "Never".into();
    job_template["metadata"] = json!({});
    let job = json!({ "metadata": { "name": "a" }, "spec": { "template": job_template } });
    api.post("batch/v1:jobs", &job).await?.code(201)?;
    let cron = json!({ "metadata": { "name": "a" }, "spec": { "schedule": "*/5 * * * *", "jobTemplate": { "spec": { "template": job_template } } } });
    api.post("batch/v1:cronjobs", &cron).await?.code(201)?;
    api.post(
        "replicationcontrollers",
        &json!({ "metadata": { "name": "a" }, "spec": { "template": template("a") } }),
    )
    .await?
    .code(201)?;
    Ok(())
}

async fn workloads_are_validated(api: &Api) -> Result<()> {
    variants(
        api,
        "apps/v1:deployments",
        &deployment("a"),
        &[
            ("/spec", json!({})),
            ("/spec/selector", Value::Null),
            ("/spec/selector", json!({})),
            ("/spec/selector", json!({ "matchLabels": { "app": "other" } })),
            ("/spec/selector", json!({ "matchExpressions": [{ "key": "a", "operator": "Nonsense" }] })),
            ("/spec/replicas", json!(-1)),
            ("/spec/replicas", json!("three")),
            ("/spec/template", Value::Null),
            ("/spec/strategy", json!({ "type": "Nonsense" })),
            ("/spec/strategy", json!({ "type": "Recreate", "rollingUpdate": {} })),
            ("/spec/strategy", json!({ "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 0 } })),
            ("/spec/strategy", json!({ "rollingUpdate": { "maxSurge": "x%" } })),
            ("/spec/strategy", json!({ "rollingUpdate": { "maxUnavailable": "200%" } })),
            ("/spec/minReadySeconds", json!(-1)),
            ("/spec/progressDeadlineSeconds", json!(0)),
            ("/spec/template/spec/restartPolicy", json!("Never")),
            ("/metadata/name", json!("x".repeat(64))),
        ],
    )
    .await?;
    let selector = json!({ "matchLabels": { "app": "a" } });
    let stateful = json!({ "metadata": { "name": "a" }, "spec": { "selector": selector, "serviceName": "a", "template": template("a") } });
    variants(
        api,
        "apps/v1:statefulsets",
        &stateful,
        &[
            ("/spec/podManagementPolicy", json!("Nonsense")),
            ("/spec/updateStrategy", json!({ "type": "OnDelete", "rollingUpdate": {} })),
            ("/spec/serviceName", json!("Bad_Name")),
            ("/spec/replicas", json!(-1)),
            ("/spec/template/spec/restartPolicy", json!("OnFailure")),
        ],
    )
    .await?;
    let mut job_template = template("a");
    job_template["spec"]["restartPolicy"] = "Never".into();
    let job = json!({ "metadata": { "name": "a" }, "spec": { "template": job_template } });
    variants(
        api,
        "batch/v1:jobs",
        &job,
        &[
            ("/spec/template/spec/restartPolicy", json!("Always")),
            ("/spec/parallelism", json!(-1)),
            ("/spec/completions", json!(-1)),
            ("/spec/backoffLimit", json!(-1)),
            ("/spec/completionMode", json!("Nonsense")),
            ("/spec/completionMode", json!("Indexed")),
            ("/spec/selector", json!({ "matchLabels": { "a": "b" } })),
        ],
    )
    .await?;
    let cron = json!({ "metadata": { "name": "a" }, "spec": { "schedule": "* * * * *", "jobTemplate": { "spec": { "template": job_template } } } });
    variants(
        api,
        "batch/v1:cronjobs",
        &cron,
        &[
            ("/spec/schedule", json!("nonsense")),
            ("/spec/schedule", json!("")),
            ("/spec/concurrencyPolicy", json!("Nonsense")),
            ("/spec/timeZone", json!("Nowhere/Land")),
            ("/spec/startingDeadlineSeconds", json!(-1)),
            ("/metadata/name", json!("x".repeat(53))),
        ],
    )
    .await
}

async fn services_of_every_type_get_addresses(api: &Api) -> Result<()> {
    api.post("services", &service("cluster")).await?.code(201)?;
    let with = |name: &str, changes: Value| {
        let mut object = service(name);
        object["spec"].as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        object
    };
    api.post("services", &with("port", json!({ "type": "NodePort" }))).await?.code(201)?;
    api.post("services", &with("balanced", json!({ "type": "LoadBalancer" }))).await?.code(201)?;
    api.post("services", &with("local", json!({ "type": "LoadBalancer", "externalTrafficPolicy": "Local" })))
        .await?
        .code(201)?;
    api.post("services", &with("headless", json!({ "clusterIP": "None" }))).await?.code(201)?;
    api.post("services", &json!({ "metadata": { "name": "external" }, "spec": { "type": "ExternalName", "externalName": "example.com" } })).await?.code(201)?;
    api.post("services", &with("affine", json!({ "sessionAffinity": "ClientIP" }))).await?.code(201)?;
    api.post("services", &with("named", json!({ "ports": [{ "name": "a", "port": 80, "targetPort": "http" }, { "name": "b", "port": 81, "protocol": "UDP" }] }))).await?.code(201)?;
    api.get("services").await?.code(200)?;
    Ok(())
}

async fn services_are_validated(api: &Api) -> Result<()> {
    variants(
        api,
        "services",
        &service("a"),
        &[
            ("/metadata/name", json!("9starts-with-digit")),
            ("/metadata/name", json!("has.dot")),
            ("/spec/ports", json!([])),
            ("/spec/ports", json!([{ "port": 0 }])),
            ("/spec/ports", json!([{ "port": 80 }, { "port": 81 }])),
            ("/spec/ports", json!([{ "name": "a", "port": 80 }, { "name": "a", "port": 81 }])),
            ("/spec/ports", json!([{ "name": "a", "port": 80 }, { "name": "b", "port": 80 }])),
            ("/spec/ports", json!([{ "port": 80, "protocol": "HTTP" }])),
            ("/spec/ports", json!([{ "port": 80, "nodePort": 31000 }])),
            ("/spec/type", json!("Nonsense")),
            ("/spec/type", json!("ExternalName")),
            ("/spec/clusterIP", json!("not an address")),
            ("/spec/clusterIP", json!("1.2.3.4")),
            ("/spec/sessionAffinity", json!("Nonsense")),
            ("/spec/externalTrafficPolicy", json!("Local")),
            ("/spec/internalTrafficPolicy", json!("Nonsense")),
            ("/spec/selector", json!({ "bad key": "x" })),
            ("/spec/externalIPs", json!(["x"])),
            ("/spec/loadBalancerSourceRanges", json!(["x"])),
        ],
    )
    .await
}

async fn a_service_changes_its_type(api: &Api) -> Result<()> {
    api.post("services", &service("a")).await?.code(201)?;
    for kind in ["NodePort", "LoadBalancer", "ClusterIP"] {
        api.merge("services/a", &json!({ "spec": { "type": kind } })).await?.code(200)?;
    }
    api.merge("services/a", &json!({ "spec": { "type": "ExternalName", "externalName": "example.com" } }))
        .await?;
    api.merge("services/a", &json!({ "spec": { "type": "ExternalName", "externalName": "example.com", "clusterIP": null, "clusterIPs": null } })).await?;
    api.merge("services/a", &json!({ "spec": { "type": "ClusterIP", "externalName": null } })).await?;
    Ok(())
}

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

async fn quantities_are_written_in_their_canonical_form(api: &Api) -> Result<()> {
    let mut object = pod("a");
    object["spec"]["containers"][0]["resources"] = json!({
        "requests": { "cpu": "1000m", "memory": "1024Mi", "ephemeral-storage": "1e3", "example.com/gpu": 2 },
        "limits": { "cpu": "1.5", "memory": 2_147_483_648_u64, "ephemeral-storage": "0.5Gi", "example.com/gpu": "2" },
    });
    api.post("pods", &object).await?.code(201)?;
    object["metadata"]["name"] = "b".into();
    object["spec"]["containers"][0]["resources"] =
        json!({ "requests": { "cpu": 0.25, "memory": "1000000", "ephemeral-storage": "1500M" } });
    api.post("pods", &object).await?.code(201)?;
    Ok(())
}

async fn autoscalers_speak_two_versions(api: &Api) -> Result<()> {
    let old = json!({ "metadata": { "name": "a" }, "spec": { "scaleTargetRef": { "kind": "Deployment", "name": "a", "apiVersion": "apps/v1" }, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50 } });
    api.post("autoscaling/v1:horizontalpodautoscalers", &old).await?.code(201)?;
    api.get("autoscaling/v2:horizontalpodautoscalers/a").await?.code(200)?;
    let new = json!({ "metadata": { "name": "b" }, "spec": { "scaleTargetRef": { "kind": "Deployment", "name": "b", "apiVersion": "apps/v1" }, "minReplicas": 2, "maxReplicas": 3,
        "metrics": [{ "type": "Resource", "resource": { "name": "memory", "target": { "type": "AverageValue", "averageValue": "1Gi" } } }], "behavior": { "scaleDown": { "stabilizationWindowSeconds": 5 } } } });
    api.post("autoscaling/v2:horizontalpodautoscalers", &new).await?.code(201)?;
    api.get("autoscaling/v1:horizontalpodautoscalers/b").await?.code(200)?;
    api.get("autoscaling/v1:horizontalpodautoscalers").await?.code(200)?;
    variants(
        api,
        "autoscaling/v2:horizontalpodautoscalers",
        &new,
        &[
            ("/spec/maxReplicas", json!(0)),
            ("/spec/minReplicas", json!(5)),
            ("/spec/metrics", json!([{ "type": "Nonsense" }])),
            ("/spec/scaleTargetRef", json!({})),
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

async fn ingresses_and_their_classes(api: &Api) -> Result<()> {
    let rule = json!({ "host": "x.example.com", "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": { "service": { "name": "a", "port": { "number": 80 } } } }] } });
    let ingress = json!({ "metadata": { "name": "a" }, "spec": { "rules": [rule], "tls": [{ "hosts": ["x.example.com"], "secretName": "s" }] } });
    api.post("networking.k8s.io/v1:ingresses", &ingress).await?.code(201)?;
    variants(
        api,
        "networking.k8s.io/v1:ingresses",
        &ingress,
        &[
            ("/spec/rules", json!([])),
            ("/spec/rules/0/host", json!("1.2.3.4")),
            ("/spec/rules/0/http/paths/0/pathType", Value::Null),
            ("/spec/rules/0/http/paths/0/path", json!("x")),
            ("/spec/rules/0/http/paths/0/backend", json!({})),
        ],
    )
    .await?;
    api.post(
        "/apis/networking.k8s.io/v1/ingressclasses",
        &json!({ "metadata": { "name": api.name("c") }, "spec": { "controller": "example.com/c" } }),
    )
    .await?
    .code(201)?;
    Ok(())
}

async fn priority_classes_and_runtime_classes_are_looked_up(api: &Api) -> Result<()> {
    let class = api.name("high");
    api.post(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        &json!({ "metadata": { "name": class }, "value": 1000, "preemptionPolicy": "Never" }),
    )
    .await?
    .code(201)?;
    let with = |name: &str, field: &str, value: &str| {
        let mut object = pod(name);
        object["spec"][field] = value.into();
        object
    };
    api.post("pods", &with("a", "priorityClassName", &class)).await?.code(201)?;
    api.post("pods", &with("b", "priorityClassName", "missing")).await?;
    api.post("pods", &with("c", "priorityClassName", "system-node-critical")).await?;
    api.post("pods", &with("d", "runtimeClassName", "missing")).await?;
    let mut object = pod("e");
    object["spec"]["priority"] = 5.into();
    api.post("pods", &object).await?;
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
