//! Pods: defaults, what is validated, what is looked up.

use anyhow::Result;
use serde_json::{Value, json};

use crate::harness::{Api, pod, scenarios, variants};

scenarios![
    a_pod_gets_its_defaults,
    a_rich_pod_keeps_what_it_says,
    pods_are_validated,
    quality_of_service_follows_from_resources,
    quantities_are_written_in_their_canonical_form,
    priority_classes_and_runtime_classes_are_looked_up,
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
