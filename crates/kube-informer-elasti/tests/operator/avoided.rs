//! What KubeElasti did wrong: nothing comes back after its end, nothing sleeps for want of a number, nothing of a Service's
//! place in the cluster is copied.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube_informer_elasti::{crd, names};
use kube_informer_testbed::eventually::eventually;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::harness::{SOON, Stage, on_both, spec};
use crate::support::follow::{Told, follow};
use crate::support::kubelet::text;

on_both! {
    whatever_happens_while_it_ends_nothing_comes_back,
    a_service_that_somebody_owns_is_copied_without_its_owner,
    what_waits_for_its_end_follows_the_resolver,
}

/// What is made for a Service, as it is written: to be asked for before something happens.
pub(crate) struct Story {
    slices: mpsc::Receiver<Told>,
    services: mpsc::Receiver<Told>,
}

impl Story {
    /// Begins with what there is: whatever goes from now on is told.
    pub(crate) async fn follow(stage: &Stage) -> Result<Self> {
        let begun = async |path: &str| {
            let mut told = follow(stage.endpoint.clone(), stage.path(path));
            match tokio::time::timeout(SOON, told.recv()).await.context("nothing is told")? {
                Some(Told::Anew(_)) => Ok(told),
                _ => bail!("it does not begin with what there is"),
            }
        };
        let slices = begun("discovery.k8s.io/v1/endpointslices").await?;
        Ok(Self { slices, services: begun("services").await? })
    }

    /// What was made for a Service has not come back after it went, until the same was made for another one. Tells whether
    /// its slice and its private Service went.
    pub(crate) async fn nothing_comes_back(mut self, service: &str, last: &str) -> Result<[bool; 2]> {
        let (name, end) = (names::resolver_slice(service), names::resolver_slice(last));
        let slice = told_until(&mut self.slices, &name, &end).await?;
        let (name, end) = (names::private_service(service), names::private_service(last));
        let private = told_until(&mut self.services, &name, &end).await?;
        for (what, told) in [("slice", &slice), ("private Service", &private)] {
            let after = told.iter().skip_while(|each| **each != "gone").skip(1).count();
            ensure!(after == 0, "the {what} came back: {told:?}");
        }
        Ok([&slice, &private].map(|told| told.contains(&"gone")))
    }
}

/// Everything that is written to one object, until something is written to another one.
async fn told_until(told: &mut mpsc::Receiver<Told>, name: &str, last: &str) -> Result<Vec<&'static str>> {
    let mut all = Vec::new();
    loop {
        let next = tokio::time::timeout(SOON, told.recv()).await.context("nothing is told")?;
        let (what, object) = match next.context("nothing is told any more")? {
            Told::Anew(_) => continue,
            Told::Put(object) => ("put", object),
            Told::Gone(object) => ("gone", object),
        };
        let written = text(&object["metadata"]["name"]);
        if written == name {
            all.push(what);
        }
        if written == last {
            return Ok(all);
        }
    }
}

async fn whatever_happens_while_it_ends_nothing_comes_back(mut stage: Stage) -> Result<()> {
    stage.app("web", 0).await?;
    stage.mode("web", "proxy").await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    let story = Story::follow(&stage).await?;
    stage.kubelet.delay(Duration::from_millis(500));
    stage.delete(&stage.elasti_path("web")).await?;
    // Whatever a reconcile would follow from happens, again and again: before the redirect has ended, and after it.
    let mut round = 0;
    eventually("it is gone", SOON, async || {
        round += 1;
        stage.resolver.scale(1 + round % 2).await.unwrap();
        let touch = json!({ "metadata": { "annotations": { "touched": format!("{round}") } } });
        for path in [stage.path("services/web"), stage.path("apps/v1/deployments/web")] {
            stage.merge(&path, &touch).await.unwrap();
        }
        // These may be gone by now.
        drop(stage.merge(&stage.elasti_path("web"), &touch).await);
        if stage.find(&stage.slice_path("web")).await.is_none() {
            drop(stage.delete(&stage.private_path("web")).await);
        }
        stage.find(&stage.elasti_path("web")).await.is_none().then_some(())
    })
    .await;
    stage.resolver.scale(1).await?;
    // Whatever was still to be done for it has been done by now.
    stage.app("barrier", 0).await?;
    stage.mode("barrier", "proxy").await;
    let [slice, private] = story.nothing_comes_back("web", "barrier").await?;
    assert!(slice && private, "went: slice {slice}, private Service {private}");
    stage.gone(&stage.slice_path("web")).await;
    stage.gone(&stage.private_path("web")).await;
    stage.replicas("deployments/web", 1).await;
    stage.close().await
}

/// Its pods are awake, and its Service does not lead to them: its redirect stays, and is good for something.
async fn what_waits_for_its_end_follows_the_resolver(mut stage: Stage) -> Result<()> {
    stage.deployment("web", 0).await?;
    stage.service("web", json!({ "app": "wbe" })).await?;
    stage.elasti("web", "web", ("apps/v1", "Deployment", "web")).await?;
    stage.mode("web", "proxy").await;
    stage.redirected("web", &stage.resolver.addresses()).await;
    stage.delete(&stage.elasti_path("web")).await?;
    stage.replicas("deployments/web", 1).await;
    for count in [2, 1] {
        stage.resolver.scale(count).await?;
        stage.redirected("web", &stage.resolver.addresses()).await;
    }
    stage.merge(&stage.path("services/web"), &json!({ "spec": { "selector": { "app": "web" } } })).await?;
    stage.gone(&stage.elasti_path("web")).await;
    stage.gone(&stage.slice_path("web")).await;
    stage.close().await
}

/// As one that another operator makes: with a controller, a load balancer, labels.
async fn a_service_that_somebody_owns_is_copied_without_its_owner(stage: Stage) -> Result<()> {
    stage.deployment("web", 1).await?;
    let owner = stage.get(&stage.path("apps/v1/deployments/web")).await?["metadata"]["uid"].clone();
    let owner = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner,
        "controller": true, "blockOwnerDeletion": true });
    let public = json!({
        "metadata": { "name": "web", "labels": { "team": "shop" }, "ownerReferences": [owner] },
        "spec": { "type": "LoadBalancer", "selector": { "app": "web" },
            "ports": [{ "name": "http", "port": 80, "targetPort": 8080 }] },
    });
    stage.post(&stage.path("services"), &public).await?;
    stage.elasti("web", "web", ("apps/v1", "Deployment", "web")).await?;
    stage.mode("web", "serve").await;
    stage.scale("deployments/web", 0).await?;
    stage.mode("web", "proxy").await;
    stage.condition("web", "Ready", "True", "Reconciled").await;
    let elasti = stage.get(&stage.elasti_path("web")).await?["metadata"]["uid"].clone();
    for path in [stage.private_path("web"), stage.slice_path("web")] {
        let made = stage.get(&path).await?;
        let owners = made["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let owners: Vec<_> = owners.iter().map(|owner| (&owner["uid"], &owner["controller"])).collect();
        assert_eq!(owners, [(&elasti, &json!(true))], "{made:#}");
        assert!(made["metadata"]["labels"]["team"].is_null(), "{made:#}");
        assert!(made["spec"]["type"].is_null() || made["spec"]["type"] == "ClusterIP", "{made:#}");
    }
    assert_eq!(stage.ask("web").await?.status, 200);
    // The public one is as it was.
    let after = stage.get(&stage.path("services/web")).await?;
    assert_eq!(after["spec"]["type"], "LoadBalancer");
    assert_eq!(after["metadata"]["ownerReferences"][0]["kind"], "Deployment");
    stage.close().await
}

/// On a server of its own: the definition is everybody's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_number_is_said_it_is_woken_to_one_and_never_put_to_sleep() -> Result<()> {
    let stage = Stage::embedded().await?;
    // A definition as KubeElasti's: nothing is filled in, and nothing refused.
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", crd::NAME);
    let mut definition = stage.get(&path).await?;
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/minTargetReplicas";
    let field = definition.pointer_mut(field).context("the definition has no such field")?;
    *field = json!({ "type": "integer", "format": "int32" });
    stage.endpoint.put(&path, &definition).await?.success()?;
    for (name, number) in [("none", Value::Null), ("zero", json!(0)), ("negative", json!(-1))] {
        stage.deployment(name, 0).await?;
        stage.service(name, json!({ "app": name })).await?;
        let mut without = spec(name, ("apps/v1", "Deployment", name));
        let fields = without.as_object_mut().context("an object")?;
        fields.remove("minTargetReplicas");
        if !number.is_null() {
            fields.insert("minTargetReplicas".to_owned(), number.clone());
        }
        stage.elasti_of(name, &without).await?;
        let elasti = stage.mode(name, "proxy").await;
        assert_eq!(elasti["spec"]["minTargetReplicas"], number, "{elasti:#}");
        assert_eq!(stage.ask(name).await?.status, 200);
        let workload = format!("deployments/{name}");
        stage.replicas(&workload, 1).await;
        // One that is awake stays so, with all that it has.
        stage.scale(&workload, 3).await?;
        let woken = stage.operator().wake(&stage.namespace, name).await?;
        assert_eq!((woken.scaled.before, woken.scaled.now), (3, 3), "{name}");
        stage.replicas(&workload, 3).await;
        // At its end, too, it is woken.
        stage.scale(&workload, 0).await?;
        stage.mode(name, "proxy").await;
        stage.delete(&stage.elasti_path(name)).await?;
        stage.gone(&stage.elasti_path(name)).await;
        stage.replicas(&workload, 1).await;
    }
    stage.close().await
}
