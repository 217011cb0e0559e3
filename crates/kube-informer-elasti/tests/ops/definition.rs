//! What users write: everything that was accepted before is accepted, kept, and shown.

use std::time::Duration;

use anyhow::Result;
use http::{HeaderMap, HeaderValue, Method};
use kube_informer_elasti::api::{ElastiService, ElastiServiceStatus};
use kube_informer_elasti::crd;
use kube_informer_testbed::binaries;
use kube_informer_testbed::require;
use serde_json::{Value, json};

use crate::harness::{Place, SOON, from_yaml, on_both};

const OBJECTS: &str = "elasti.truefoundry.com/v1alpha1/elastiservices";

on_both! {
    every_object_that_was_accepted_is_accepted_and_kept,
    what_is_left_out_is_filled_in,
    what_cannot_be_is_refused_in_words,
    the_status_that_was_written_before_is_kept,
    people_see_mode_target_replicas_and_age,
    people_apply_it_with_kubectl,
}

fn target(api_version: &str, kind: &str) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "name": "target" })
}

/// Specs as people have them, each with what it is about.
fn specs() -> Vec<(&'static str, Value)> {
    let with = |more: Value| {
        let mut spec = json!({ "scaleTargetRef": target("apps/v1", "deployments"), "service": "web" });
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        spec
    };
    let of = |api_version, kind| json!({ "scaleTargetRef": target(api_version, kind), "service": "web" });
    let prometheus = |metadata: Value| json!([{ "type": "prometheus", "metadata": metadata }]);
    vec![
        ("plural", of("apps/v1", "deployments")),
        ("deployment", of("apps/v1", "Deployment")),
        ("statefulset", of("apps/v1", "StatefulSet")),
        ("rollouts", of("argoproj.io/v1alpha1", "rollouts")),
        ("rollout", of("argoproj.io/v1alpha1", "Rollout")),
        ("anything", of("example.com/v1beta2", "Thing")),
        ("least", with(json!({ "minTargetReplicas": 1, "cooldownPeriod": 0 }))),
        ("most", with(json!({ "minTargetReplicas": 2_147_483_647, "cooldownPeriod": 604_800 }))),
        ("no-triggers", with(json!({ "triggers": [] }))),
        ("bare-trigger", with(json!({ "triggers": [{ "type": "prometheus" }] }))),
        ("text", with(json!({ "triggers": prometheus(json!({ "query": "up", "threshold": "0.5" })) }))),
        ("number", with(json!({ "triggers": prometheus(json!({ "query": "up", "threshold": 0.5 })) }))),
        ("whole", with(json!({ "triggers": prometheus(json!({ "query": "up", "threshold": 1 })) }))),
        (
            "free",
            with(json!({ "triggers": prometheus(json!({ "any": { "thing": [1, "two", null, {}] } })) })),
        ),
        ("hpa", with(json!({ "autoscaler": { "type": "hpa", "name": "web" } }))),
        ("period", with(json!({ "enabledPeriod": { "schedule": "0 8 * * 1-5", "duration": "10h" } }))),
        ("odd-period", with(json!({ "enabledPeriod": { "schedule": "never", "duration": "x" } }))),
        (
            "everything",
            with(json!({
                "minTargetReplicas": 3, "cooldownPeriod": 300,
                "triggers": [
                    { "type": "prometheus", "metadata": {
                        "serverAddress": "http://prometheus.example.com:9090",
                        "query": "sum(rate(requests_total{app=\"web\"}[1m])) or vector(0)",
                        "threshold": "0.01", "uptimeFilter": "container=\"prometheus\"",
                        "headers": { "Authorization": "Bearer x", "X-Scope": "shop" },
                    } },
                    { "type": "prometheus", "metadata": { "query": "vector(1)" } },
                ],
                "autoscaler": { "type": "keda", "name": "web" },
                "enabledPeriod": { "schedule": "0 0 * * *", "duration": "24h" },
            })),
        ),
    ]
}

/// All of it is in there, and the same.
fn assert_kept(sent: &Value, kept: &Value, at: &str) {
    match (sent, kept) {
        (Value::Object(sent), Value::Object(kept)) => {
            for (key, value) in sent {
                assert_kept(
                    value,
                    kept.get(key).unwrap_or_else(|| panic!("{at}.{key} was dropped")),
                    &format!("{at}.{key}"),
                );
            }
        }
        (sent, kept) => assert_eq!(sent, kept, "{at}"),
    }
}

async fn every_object_that_was_accepted_is_accepted_and_kept(place: Place) -> Result<()> {
    place.define_elasti().await?;
    for (name, spec) in specs() {
        let object = json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
            "metadata": { "name": name }, "spec": spec,
        });
        place.post(&place.path(OBJECTS), &object).await?;
        let kept = place.get(&place.path(&format!("{OBJECTS}/{name}"))).await?;
        assert_kept(&spec, &kept["spec"], name);
        // It can be read here, and nothing that is known here is lost on the way.
        let read: ElastiService = serde_json::from_value(kept.clone())?;
        assert_eq!(serde_json::to_value(&read.spec)?, kept["spec"], "{name}");
        // Whoever changes only its metadata is not refused.
        let patch = json!({ "metadata": { "finalizers": ["elasti.truefoundry.com/finalizer"] } });
        let path = place.path(&format!("{OBJECTS}/{name}"));
        assert_kept(&spec, &place.merge(&path, &patch).await?["spec"], name);
        place.merge(&path, &json!({ "metadata": { "finalizers": null } })).await?;
    }
    // It was accepted without a spec, too.
    let bare = json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService", "metadata": { "name": "bare" },
    });
    let bare: ElastiService = serde_json::from_value(place.post(&place.path(OBJECTS), &bare).await?)?;
    assert_eq!(bare.spec.service, "");
    Ok(())
}

async fn what_is_left_out_is_filled_in(place: Place) -> Result<()> {
    place.define_elasti().await?;
    let object = json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService", "metadata": { "name": "least" },
        "spec": { "scaleTargetRef": target("apps/v1", "Deployment"), "service": "web", "enabledPeriod": {} },
    });
    let made = place.post(&place.path(OBJECTS), &object).await?;
    assert_eq!(
        made["spec"],
        json!({
            "scaleTargetRef": target("apps/v1", "Deployment"), "service": "web",
            "minTargetReplicas": 1, "cooldownPeriod": 900,
            "enabledPeriod": { "schedule": "0 0 * * *", "duration": "24h" },
        })
    );
    let read: ElastiService = serde_json::from_value(made)?;
    assert_eq!((read.spec.wake_to(), read.spec.cooldown_seconds()), (1, 900));
    Ok(())
}

async fn what_cannot_be_is_refused_in_words(place: Place) -> Result<()> {
    place.define_elasti().await?;
    let good = json!({ "scaleTargetRef": target("apps/v1", "Deployment"), "service": "web" });
    for (pointer, value, field) in [
        ("/service", Value::Null, "spec.service"),
        ("/scaleTargetRef", Value::Null, "spec.scaleTargetRef"),
        ("/scaleTargetRef/kind", Value::Null, "spec.scaleTargetRef.kind"),
        ("/scaleTargetRef/kind", json!(""), "spec.scaleTargetRef.kind"),
        ("/scaleTargetRef/apiVersion", json!(""), "spec.scaleTargetRef.apiVersion"),
        ("/scaleTargetRef/name", json!(7), "spec.scaleTargetRef.name"),
        ("/minTargetReplicas", json!(0), "spec.minTargetReplicas"),
        ("/minTargetReplicas", json!(-1), "spec.minTargetReplicas"),
        ("/minTargetReplicas", json!("1"), "spec.minTargetReplicas"),
        ("/cooldownPeriod", json!(604_801), "spec.cooldownPeriod"),
        ("/cooldownPeriod", json!(-1), "spec.cooldownPeriod"),
        ("/triggers", json!([{ "metadata": {} }]), "spec.triggers[0].type"),
        ("/triggers", json!([{ "type": "cron" }]), "spec.triggers[0].type"),
        ("/autoscaler", json!({ "type": "keda" }), "spec.autoscaler.name"),
        ("/autoscaler", json!({ "type": "vpa", "name": "web" }), "spec.autoscaler.type"),
        ("/enabledPeriod", json!({ "schedule": 8 }), "spec.enabledPeriod.schedule"),
    ] {
        let mut spec = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = spec.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match &value {
            Value::Null => _ = parent.remove(key),
            value => _ = parent.insert(key.to_owned(), value.clone()),
        }
        let object = json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
            "metadata": { "name": "wrong" }, "spec": spec,
        });
        let answer = place.endpoint.post(&place.path(OBJECTS), &object).await?;
        let text = answer.text();
        assert_eq!(answer.status, 422, "{pointer} {value}: {text}");
        assert!(
            answer.json()?["message"].as_str().is_some_and(|message| message.contains(field)),
            "{field}: {text}"
        );
    }
    Ok(())
}

async fn the_status_that_was_written_before_is_kept(place: Place) -> Result<()> {
    place.define_elasti().await?;
    let object = json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService", "metadata": { "name": "web" },
        "spec": { "scaleTargetRef": target("apps/v1", "Deployment"), "service": "web" },
    });
    place.post(&place.path(OBJECTS), &object).await?;
    let path = place.path(&format!("{OBJECTS}/web"));
    let old = json!({
        "lastReconciledTime": "2026-01-02T03:04:05Z", "lastScaledUpTime": "2026-01-02T03:04:06Z", "mode": "proxy",
    });
    let kept = place.merge(&format!("{path}/status"), &json!({ "status": old })).await?;
    assert_eq!(kept["status"], old);
    let more = json!({
        "observedGeneration": 1, "replicas": 0,
        "conditions": [{ "type": "Ready", "status": "True", "reason": "Fine", "message": "",
            "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 1 }],
    });
    let kept = place.merge(&format!("{path}/status"), &json!({ "status": more })).await?;
    assert_kept(&old, &kept["status"], "status");
    assert_kept(&more, &kept["status"], "status");
    let read: ElastiServiceStatus = serde_json::from_value(kept["status"].clone())?;
    assert_eq!((read.mode.as_deref(), read.replicas), (Some("proxy"), Some(0)));
    assert_eq!(serde_json::to_value(&read)?, kept["status"]);
    // Somebody wrote a mode that nobody knows, and a time that was none.
    let odd = json!({ "status": { "mode": "", "lastScaledUpTime": null } });
    assert_eq!(place.merge(&format!("{path}/status"), &odd).await?["status"]["mode"], "");
    // A write to the object does not change its status.
    let spec = json!({ "spec": { "cooldownPeriod": 5 }, "status": { "mode": "serve" } });
    assert_eq!(place.merge(&path, &spec).await?["status"]["mode"], "");
    Ok(())
}

async fn people_see_mode_target_replicas_and_age(place: Place) -> Result<()> {
    place.define_elasti().await?;
    let object = json!({
        "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService", "metadata": { "name": "web" },
        "spec": { "scaleTargetRef": target("apps/v1", "Deployment"), "service": "web" },
    });
    place.post(&place.path(OBJECTS), &object).await?;
    let status = json!({ "status": { "mode": "proxy", "replicas": 0 } });
    place.merge(&place.path(&format!("{OBJECTS}/web/status")), &status).await?;
    let accept = HeaderValue::from_static("application/json;as=Table;g=meta.k8s.io;v=v1");
    let headers = HeaderMap::from_iter([(http::header::ACCEPT, accept)]);
    let table = place
        .endpoint
        .request(Method::GET, &place.path(OBJECTS), headers, Vec::new())
        .await?
        .success()?
        .json()?;
    let columns: Vec<_> = table["columnDefinitions"].as_array().into_iter().flatten().collect();
    let shown = |wide: bool| -> Vec<&str> {
        let is_shown = |column: &&&Value| wide || column["priority"] == 0;
        columns.iter().filter(is_shown).filter_map(|column| column["name"].as_str()).collect()
    };
    assert_eq!(shown(false), ["Name", "Mode", "Target", "Replicas", "Age"]);
    assert_eq!(shown(true), ["Name", "Mode", "Target", "Kind", "Service", "Replicas", "Age"]);
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(
        cells[..6],
        [json!("web"), json!("proxy"), json!("target"), json!("Deployment"), json!("web"), json!(0)]
    );
    Ok(())
}

async fn people_apply_it_with_kubectl(place: Place) -> Result<()> {
    let kubectl = require!(binaries::kubectl().await, else Ok(()));
    let home = tempfile::tempdir()?;
    std::fs::write(home.path().join("kubeconfig"), place.kubeconfig())?;
    std::fs::write(home.path().join("crd.yaml"), crd::manifest())?;
    let run = async |arguments: &str| {
        let command = tokio::process::Command::new(&kubectl)
            .args(["--kubeconfig", "kubeconfig", "--namespace", &place.namespace])
            .args(arguments.split(' '))
            .current_dir(home.path())
            .env("HOME", home.path())
            .env("KUBECACHEDIR", home.path().join("cache"))
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(Duration::from_secs(120), command).await??;
        anyhow::ensure!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        anyhow::Ok(String::from_utf8(output.stdout)?)
    };
    // Others of this run may do the same at the same time: twice is as good as once.
    let apply = match place.is_real() {
        true => "apply --server-side --force-conflicts -f crd.yaml",
        // The embedded server has no server-side apply.
        false => "apply -f crd.yaml",
    };
    for _ in 0..2 {
        let said = run(apply).await?;
        assert!(said.contains("elastiservices.elasti.truefoundry.com"), "{said}");
    }
    run("wait --for=condition=Established --timeout=60s crd/elastiservices.elasti.truefoundry.com").await?;
    place.define_elasti().await?;
    // The form that stands in the documents of KubeElasti.
    let manifest = "apiVersion: elasti.truefoundry.com/v1alpha1\nkind: ElastiService\nmetadata:\n  name: web\nspec:\n  \
        minTargetReplicas: 1\n  service: web\n  cooldownPeriod: 5\n  scaleTargetRef:\n    apiVersion: apps/v1\n    \
        kind: deployments\n    name: web\n  triggers:\n  - type: prometheus\n    metadata:\n      query: up\n      \
        serverAddress: http://prometheus:9090\n      threshold: 0.01\n  autoscaler:\n    name: web\n    type: keda\n";
    std::fs::write(home.path().join("web.yaml"), manifest)?;
    run("apply -f web.yaml").await?;
    let said = run("get elasti -o wide").await?;
    let header: Vec<&str> = said.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(header, ["NAME", "MODE", "TARGET", "KIND", "SERVICE", "REPLICAS", "AGE"]);
    let kept = place.get(&place.path(&format!("{OBJECTS}/web"))).await?;
    assert_eq!(kept["spec"]["triggers"][0]["metadata"]["threshold"], 0.01);
    // What is misspelt is said at once.
    std::fs::write(home.path().join("wrong.yaml"), manifest.replace("cooldownPeriod", "coolDownPeriod"))?;
    let wrong = run("apply -f wrong.yaml").await.unwrap_err().to_string();
    assert!(wrong.contains("coolDownPeriod"), "{wrong}");
    Ok(())
}

/// The definition that people have, as far as it says something: it has no defaults but one, and lists kinds.
fn old_definition() -> Value {
    let text = || json!({ "type": "string" });
    let one_of = |values: &[&str]| json!({ "type": "string", "enum": values });
    let spec = json!({
        "type": "object", "required": ["scaleTargetRef", "service"],
        "properties": {
            "scaleTargetRef": {
                "type": "object", "required": ["apiVersion", "kind", "name"],
                "properties": {
                    "apiVersion": one_of(&["apps/v1", "argoproj.io/v1alpha1"]),
                    "kind": one_of(&["deployments", "rollouts", "Deployment", "StatefulSet", "Rollout"]),
                    "name": text(),
                },
            },
            "service": text(),
            "minTargetReplicas": { "type": "integer", "format": "int32", "minimum": 1 },
            "cooldownPeriod": { "type": "integer", "format": "int32", "minimum": 0, "maximum": 604_800, "default": 900 },
            "triggers": { "type": "array", "items": {
                "type": "object", "required": ["type"],
                "properties": { "type": one_of(&["prometheus"]), "metadata": { "x-kubernetes-preserve-unknown-fields": true } },
            } },
            "autoscaler": {
                "type": "object", "required": ["name", "type"],
                "properties": { "name": text(), "type": one_of(&["hpa", "keda"]) },
            },
            "enabledPeriod": { "type": "object", "properties": {
                "schedule": { "type": "string", "default": "0 0 * * *" }, "duration": { "type": "string", "default": "24h" },
            } },
        },
    });
    let time = || json!({ "type": "string", "format": "date-time" });
    let status = json!({ "type": "object", "properties": {
        "lastReconciledTime": time(), "lastScaledUpTime": time(), "mode": text(),
    } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": crd::NAME },
        "spec": {
            "group": "elasti.truefoundry.com", "scope": "Namespaced",
            "names": { "kind": "ElastiService", "listKind": "ElastiServiceList", "plural": "elastiservices", "singular": "elastiservice" },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec, "status": status } } },
            }],
        },
    })
}

/// Not on a server that tests share: the definition has one name.
mod alone {
    use kube_informer_testbed::cluster::Cluster;
    use kube_informer_testbed::control_plane::Options;
    use kube_informer_testbed::require;

    use crate::harness::Place;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn it_takes_the_place_of_the_old_one_while_objects_exist_embedded() -> anyhow::Result<()> {
        super::it_takes_the_place_of_the_old_one_while_objects_exist(Place::embedded().await?).await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn it_takes_the_place_of_the_old_one_while_objects_exist_real() {
        let own = require!(Cluster::own(Options::new()).await);
        let place = Place::real((*own).clone(), "old").await.unwrap();
        super::it_takes_the_place_of_the_old_one_while_objects_exist(place).await.unwrap();
    }
}

async fn it_takes_the_place_of_the_old_one_while_objects_exist(place: Place) -> Result<()> {
    place.define(&old_definition()).await?;
    let mut sent = Vec::new();
    for (name, spec) in specs() {
        let object = json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService",
            "metadata": { "name": name }, "spec": spec,
        });
        // Kinds that it did not have are new.
        if place.endpoint.post(&place.path(OBJECTS), &object).await?.status.is_success() {
            sent.push((name, spec));
        }
    }
    assert_eq!(sent.len(), specs().len() - 1);
    let status = json!({ "status": { "mode": "serve", "lastReconciledTime": "2026-01-02T03:04:05Z" } });
    place.merge(&place.path(&format!("{OBJECTS}/everything/status")), &status).await?;
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", crd::NAME);
    let mut new = from_yaml(crd::manifest())?;
    new["metadata"]["resourceVersion"] = place.get(&path).await?["metadata"]["resourceVersion"].clone();
    place.endpoint.put(&path, &new).await?.success()?;
    let accepted = async || {
        let object = json!({
            "apiVersion": "elasti.truefoundry.com/v1alpha1", "kind": "ElastiService", "metadata": { "name": "new" },
            "spec": { "scaleTargetRef": target("example.com/v1", "Thing"), "service": "web" },
        });
        let answer = place.endpoint.post(&place.path(OBJECTS), &object).await.ok()?;
        answer.status.is_success().then_some(())
    };
    kube_informer_testbed::eventually::eventually("the new definition counts", SOON, accepted).await;
    for (name, spec) in sent {
        let path = place.path(&format!("{OBJECTS}/{name}"));
        assert_kept(&spec, &place.get(&path).await?["spec"], name);
        // And it can be written as it is.
        let patch = json!({ "metadata": { "finalizers": ["elasti.truefoundry.com/finalizer"] } });
        assert_kept(&spec, &place.merge(&path, &patch).await?["spec"], name);
    }
    // Who was written before has the defaults from now on: nobody sleeps for want of a number.
    let plural = place.get(&place.path(&format!("{OBJECTS}/plural"))).await?;
    assert_eq!(plural["spec"]["minTargetReplicas"], 1);
    let kept = place.get(&place.path(&format!("{OBJECTS}/everything"))).await?;
    assert_kept(&status["status"], &kept["status"], "status");
    Ok(())
}
