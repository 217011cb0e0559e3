//! The well-known sample controller: a `Foo` names a Deployment, which is made and kept at so many replicas; how many are
//! available is written into the status of the `Foo`. A Deployment of that name that belongs to someone else is left alone.
//!
//! `kubectl apply -f sample_controller.crd.json` tells the server what a `Foo` is.

use std::borrow::Cow;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_client::api::{Patch, PatchParams, PostParams};
use kube_client::{Api, Resource};
use kube_informer::controller::{Action, Context, Controller, terminal};
use kube_informer::factory::Factory;
use kube_informer::informer::Written;
use kube_informer::runner::Runner;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Foo {
    metadata: ObjectMeta,
    spec: FooSpec,
    status: Option<FooStatus>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FooSpec {
    #[serde(default)]
    deployment_name: String,
    replicas: Option<i32>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FooStatus {
    available_replicas: i32,
}

impl Resource for Foo {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        "Foo".into()
    }

    fn group(_: &()) -> Cow<'_, str> {
        "samplecontroller.k8s.io".into()
    }

    fn version(_: &()) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural(_: &()) -> Cow<'_, str> {
        "foos".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let factory = Factory::try_default().await?;
    let foos = Controller::new(&factory).for_kind::<Foo>().owns::<Deployment>().workers(2);
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let stop = async { tokio::select!(_ = interrupt.recv() => {}, _ = terminate.recv() => {}) };
    let report = Runner::new(&factory).controller(foos, reconcile).run(stop).await?;
    report.busy().for_each(|key| println!("cut off: {key}"));
    Ok(())
}

async fn reconcile(context: Context<Foo>) -> Result<Action> {
    let (key, namespace) = (context.request().clone(), context.request().namespace());
    let Some(object) = context.object() else {
        println!("{key} is gone"); // and its Deployment with it: the server sees to that
        return Ok(Action::done());
    };
    let wants = object.view()?;
    let name = &wants.spec.deployment_name;
    if name.is_empty() {
        println!("{key} names no Deployment");
        bail!(terminal("spec.deploymentName is empty")); // trying again does not help
    }

    let deployments: Api<Deployment> = Api::namespaced(context.client(), namespace);
    let deployment = match context.source::<Deployment>()?.get(namespace, name) {
        None => {
            let made = deployments.create(&PostParams::default(), &wanted(&wants)?).await?;
            println!("{key}: made Deployment {name}");
            context.wrote(&Written::of(&made)); // so that it is not made twice
            made
        }
        Some(found) if found.controller().is_none_or(|owner| *object.uid() != *owner.uid) => {
            println!("warning: {key}: Deployment {name} exists and is not managed by it");
            bail!("Deployment {name} is not managed by {key}"); // it may go: tried again, later each time
        }
        Some(found) => {
            let found = found.view()?;
            let replicas = found.spec.replicas;
            if wants.spec.replicas.is_none() || wants.spec.replicas == replicas {
                (*found).clone()
            } else {
                let patch = Patch::Merge(json!({ "spec": { "replicas": wants.spec.replicas } }));
                let scaled = deployments.patch(name, &PatchParams::default(), &patch).await?;
                println!("{key}: scaled Deployment {name} from {replicas:?} to {:?}", wants.spec.replicas);
                context.wrote(&Written::of(&scaled));
                scaled
            }
        }
    };

    let available = deployment.status.and_then(|status| status.available_replicas).unwrap_or_default();
    if wants.status.as_ref().is_none_or(|status| status.available_replicas != available) {
        let foos: Api<Foo> = Api::namespaced(context.client(), namespace);
        let patch = Patch::Merge(json!({ "status": FooStatus { available_replicas: available } }));
        let written = foos.patch_status(context.request().name(), &PatchParams::default(), &patch).await?;
        println!("{key}: {available} available");
        context.wrote(&Written::of(&written));
    }
    Ok(Action::done())
}

/// The Deployment that a Foo wants. It belongs to the Foo.
fn wanted(owner: &Foo) -> Result<Deployment> {
    let labels = json!({ "app": "nginx", "controller": owner.metadata.name });
    let deployment = json!({
        "metadata": { "name": owner.spec.deployment_name, "ownerReferences": [owner.controller_owner_ref(&())] },
        "spec": {
            "replicas": owner.spec.replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "nginx", "image": "nginx:latest" }] },
            },
        },
    });
    serde_json::from_value(deployment).context("a Deployment")
}
