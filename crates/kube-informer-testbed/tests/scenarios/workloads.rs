//! What makes pods: defaults, and what is validated.

use anyhow::Result;
use serde_json::{Value, json};

use crate::harness::{Api, deployment, scenarios, template, variants};

scenarios![workloads_get_their_defaults, workloads_are_validated, an_autoscaler_gets_its_defaults,];

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

async fn an_autoscaler_gets_its_defaults(api: &Api) -> Result<()> {
    let path = "autoscaling/v2:horizontalpodautoscalers";
    let target = json!({ "kind": "Deployment", "name": "a", "apiVersion": "apps/v1" });
    api.post(
        path,
        &json!({ "metadata": { "name": "a" }, "spec": { "scaleTargetRef": target, "maxReplicas": 3 } }),
    )
    .await?
    .code(201)?;
    let rich = json!({ "metadata": { "name": "b" }, "spec": { "scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3,
        "metrics": [{ "type": "Resource", "resource": { "name": "memory", "target": { "type": "AverageValue", "averageValue": "1Gi" } } }], "behavior": { "scaleDown": { "stabilizationWindowSeconds": 5 } } } });
    api.post(path, &rich).await?.code(201)?;
    variants(
        api,
        path,
        &rich,
        &[
            ("/spec/maxReplicas", json!(0)),
            ("/spec/minReplicas", json!(5)),
            ("/spec/metrics", json!([{ "type": "Nonsense" }])),
            ("/spec/scaleTargetRef", json!({})),
        ],
    )
    .await?;
    // The older version of the same thing.
    let old = api.peek("autoscaling/v1:horizontalpodautoscalers/a").await?;
    api.note("in autoscaling/v1", old.code.into());
    Ok(())
}
