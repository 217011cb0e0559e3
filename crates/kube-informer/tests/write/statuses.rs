//! The status of objects, written only where it changes.

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube_informer::informer::Informer;
use kube_informer::object::Object;
use kube_informer::write::{Status, conditions};
use serde_json::{Value, json};

use crate::harness::{Place, SOON, cached, on_both};

on_both! {
    a_status_that_says_the_same_is_not_written,
    a_status_is_applied_if_asked_for,
    a_status_of_another_one_is_left_alone,
    promise_14_what_was_written_can_be_waited_for,
    conditions_keep_their_times,
}

const IT: &str = "apps/v1/deployments/it";

impl Place {
    async fn deployment(&self) -> Result<Value> {
        let deployment = json!({
            "metadata": { "name": "it" },
            "spec": {
                "selector": { "matchLabels": { "app": "it" } },
                "template": {
                    "metadata": { "labels": { "app": "it" } },
                    "spec": { "containers": [{ "name": "main", "image": "nginx:1" }] }
                }
            }
        });
        self.post(&self.path("apps/v1/deployments"), &deployment).await
    }

    async fn version(&self) -> Result<Value> {
        Ok(self.get(&self.path(IT)).await?["metadata"]["resourceVersion"].clone())
    }

    async fn of_cache(&self, informer: &Informer<Deployment>) -> Object<Deployment> {
        cached(informer, &self.namespace, "it", |_| true).await
    }
}

async fn a_status_that_says_the_same_is_not_written(place: Place) -> Result<()> {
    place.deployment().await?;
    let (factory, deployments) = place.informer::<Deployment>().await?;
    let object = place.of_cache(&deployments).await;
    let status = Status::of::<Deployment>(place.client().await?).manager("test");
    let wanted = json!({ "replicas": 3, "observedGeneration": 1 });
    let written = status.patch(&object, &wanted).await?.expect("it is new");
    deployments.caught_up(&written, SOON).await?;
    let object = deployments.get(&place.namespace, "it").unwrap();
    let version = place.version().await?;
    assert_eq!(status.patch(&object, &wanted).await?, None);
    assert_eq!(status.patch(&object, &json!({ "replicas": 3, "readyReplicas": null })).await?, None);
    assert_eq!(place.version().await?, version);
    // A field more, a field less; the spec is not touched.
    let other = json!({ "observedGeneration": null, "updatedReplicas": 1 });
    assert!(status.patch(&object, &other).await?.is_some());
    let now = place.get(&place.path(IT)).await?;
    assert_eq!(now["status"], json!({ "replicas": 3, "updatedReplicas": 1 }));
    assert_eq!(now["metadata"]["generation"], 1);
    let error = status.patch(&object, &json!([1])).await.unwrap_err().to_string();
    assert!(
        error.contains("patch the status of deployments.v1.apps") && error.contains("JSON object"),
        "{error}"
    );
    let error = status.patch(&object, &json!({ "replicas": "many" })).await.unwrap_err().to_string();
    assert!(error.contains("(4"), "{error}");
    factory.shutdown().await;
    Ok(())
}

async fn a_status_is_applied_if_asked_for(place: Place) -> Result<()> {
    place.deployment().await?;
    let (factory, deployments) = place.informer::<Deployment>().await?;
    let object = place.of_cache(&deployments).await;
    let status = Status::of::<Deployment>(place.client().await?).manager("applier").apply();
    let first = status.patch(&object, &json!({ "replicas": 3, "updatedReplicas": 2 })).await;
    if !place.is_real() {
        // The embedded server does not know it, and says so.
        let error = first.unwrap_err().to_string();
        assert!(error.contains("server-side apply is not supported") && error.contains("(415"), "{error}");
        factory.shutdown().await;
        return Ok(());
    }
    assert!(first?.is_some());
    let written = status.patch(&object, &json!({ "replicas": 3 })).await?.expect("less than before");
    let now = place.get(&place.path(IT)).await?;
    assert_eq!(now["status"]["replicas"], 3);
    assert_eq!(now["status"]["updatedReplicas"], Value::Null, "what is not named any more goes");
    let managers = now["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let is_it = |entry: &Value| entry["manager"] == "applier" && entry["operation"] == "Apply";
    assert!(managers.iter().any(is_it), "{managers:?}");
    deployments.caught_up(&written, SOON).await?;
    let object = deployments.get(&place.namespace, "it").unwrap();
    let all: Value = object.pointer("/status")?.unwrap();
    assert_eq!(status.patch(&object, &all).await?, None);
    factory.shutdown().await;
    Ok(())
}

async fn a_status_of_another_one_is_left_alone(place: Place) -> Result<()> {
    place.deployment().await?;
    let (factory, deployments) = place.informer::<Deployment>().await?;
    let object = place.of_cache(&deployments).await;
    let client = place.client().await?;
    let status = Status::of::<Deployment>(client.clone());
    // The version that is known is not the last one.
    place.merge(&place.path(IT), &json!({ "metadata": { "labels": { "new": "yes" } } })).await?;
    let careful = Status::of::<Deployment>(client).if_unchanged();
    let error = careful.patch(&object, &json!({ "replicas": 7 })).await.unwrap_err().to_string();
    assert!(error.contains("(409 Conflict)"), "{error}");
    assert!(status.patch(&object, &json!({ "replicas": 7 })).await?.is_some());
    place.delete(&place.path(IT)).await?;
    let error = status.patch(&object, &json!({ "replicas": 8 })).await.unwrap_err();
    assert!(error.is_gone() && error.to_string().contains("no status to write to"), "{error}");
    place.deployment().await?;
    let apply = place.is_real().then(|| status.clone().apply());
    for status in [status].into_iter().chain(apply) {
        let error = status.patch(&object, &json!({ "replicas": 9 })).await.unwrap_err().to_string();
        assert!(error.contains("(409") || error.contains("(422"), "{error}");
    }
    let now = place.get(&place.path(IT)).await?;
    assert_eq!(now["status"]["replicas"], Value::Null);
    factory.shutdown().await;
    Ok(())
}

async fn promise_14_what_was_written_can_be_waited_for(place: Place) -> Result<()> {
    place.deployment().await?;
    let (factory, deployments) = place.informer::<Deployment>().await?;
    let status = Status::for_resource(factory.client(), deployments.resource().clone());
    for replicas in 1..20 {
        let object = deployments.get(&place.namespace, "it").unwrap();
        let written = status.patch(&object, &json!({ "replicas": replicas })).await?.expect("another number");
        deployments.caught_up(&written, SOON).await?;
        let known: Option<i32> =
            deployments.get(&place.namespace, "it").unwrap().pointer("/status/replicas")?;
        assert_eq!(known, Some(replicas));
    }
    factory.shutdown().await;
    Ok(())
}

async fn conditions_keep_their_times(place: Place) -> Result<()> {
    // A kind whose conditions have exactly that form.
    let budget = json!({ "metadata": { "name": "it" }, "spec": { "minAvailable": 1,
        "selector": { "matchLabels": { "app": "it" } } } });
    place.post(&place.path("policy/v1/poddisruptionbudgets"), &budget).await?;
    let (factory, budgets) = place.informer::<k8s_openapi::api::policy::v1::PodDisruptionBudget>().await?;
    let status = Status::of::<k8s_openapi::api::policy::v1::PodDisruptionBudget>(place.client().await?);
    let numbers =
        json!({ "currentHealthy": 0, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1 });
    let mut all: Vec<Condition> = Vec::new();
    let mut seen = None;
    for (message, is_new) in [("first", true), ("first", false), ("second", true)] {
        let object = cached(&budgets, &place.namespace, "it", |_| true).await;
        let known: Option<Vec<Condition>> = object.pointer("/status/conditions")?;
        all = known.unwrap_or(all);
        let proposal = conditions::Proposal::new("DisruptionAllowed", false, "InsufficientPods");
        conditions::set(&mut all, proposal.message(message).observed(object.generation()));
        let mut new = numbers.clone();
        new["conditions"] = serde_json::to_value(&all)?;
        let written = status.patch(&object, &new).await?;
        assert_eq!(written.is_some(), is_new, "{message}");
        if let Some(written) = written {
            budgets.caught_up(&written, SOON).await?;
        }
        let time = all[0].last_transition_time.clone();
        assert_eq!(*seen.get_or_insert(time.clone()), time);
    }
    factory.shutdown().await;
    Ok(())
}
