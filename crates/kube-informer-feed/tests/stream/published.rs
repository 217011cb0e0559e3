//! What a controller tells through a publisher: what a client knows is what was told, and in the end what there is.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};

use anyhow::{Context, Result};
use kube_informer::factory::Factory;
use kube_informer::informer::{Informer, Scope};
use kube_informer_feed::deployments::{DeploymentController, Ended, Reported};
use kube_informer_feed::hub::Hub;
use kube_informer_feed::server::Server;
use kube_informer_testbed::eventually::eventually;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::{Client, Replay};
use crate::harness::{Place, SOON, on_both};

on_both! {
    nobody_begins_with_what_was_not_told,
}

/// A controller whose changes are published, and the server of them.
struct Published {
    factory: Factory,
    informer: Informer<k8s_openapi::api::apps::v1::Deployment>,
    server: Server,
    run: JoinHandle<Ended>,
}

impl Published {
    /// `before` is called before each change is told.
    async fn start(place: &Place, before: impl Fn(&Reported) + Send + Sync + 'static) -> Result<Self> {
        let factory = place.factory().await?;
        let controller = DeploymentController::new(&factory, Scope::namespace(&place.namespace)).workers(2);
        let hub = Hub::builder(factory.clone()).start().await?;
        let publisher = hub.publisher(controller.informer());
        let server = Server::builder(hub).start().await?;
        let (informer, controller) = (controller.informer().clone(), controller.begin_with(&publisher));
        let sink = move |reported: Reported| {
            before(&reported);
            publisher.publish(reported.change, reported.old.as_ref(), reported.new.as_ref());
        };
        let run = tokio::spawn(controller.run(sink, std::future::pending()));
        Ok(Self { factory, informer, server, run })
    }

    /// A client that was told what there is.
    async fn client(&self) -> Result<(Client, Replay)> {
        let mut client = Client::speaking(&self.server.url()).await?;
        client.sub("s", json!({ "gvr": "apps/v1/deployments", "mode": "full" })).await?;
        let mut replay = Replay::default();
        while replay.cursor.is_none() {
            replay.take(&client.message().await?, false)?;
        }
        Ok((client, replay))
    }

    async fn end(self) {
        self.run.abort();
        self.factory.shutdown().await;
    }
}

fn path(place: &Place, name: &str) -> String {
    place.path(&format!("apps/v1/deployments{name}"))
}

async fn create(place: &Place, name: &str) -> Result<()> {
    let labels = json!({ "app": name });
    let deployment = json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": 0, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "web", "image": "web:1" }] } },
        },
    });
    place.post(&path(place, ""), &deployment).await?;
    Ok(())
}

async fn scale(place: &Place, name: &str, replicas: usize) -> Result<()> {
    let patch = json!({ "spec": { "replicas": replicas } });
    place.merge(&path(place, &format!("/{name}")), &patch).await?;
    Ok(())
}

async fn delete(place: &Place, name: &str) -> Result<()> {
    place.delete(&path(place, &format!("/{name}"))).await
}

/// Name and replicas of each, by UID.
fn view<'a>(objects: impl IntoIterator<Item = &'a Value>) -> BTreeMap<String, (String, u64)> {
    let of = |object: &Value| {
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        (text("uid"), (text("name"), object["spec"]["replicas"].as_u64().unwrap_or_default()))
    };
    objects.into_iter().map(of).collect()
}

async fn there_is(place: &Place) -> Result<BTreeMap<String, (String, u64)>> {
    let list = place.get(&path(place, "")).await?;
    Ok(view(list["items"].as_array().context("no items")?))
}

/// Reads until a client knows what there is.
async fn follow(
    client: &mut Client,
    replay: &mut Replay,
    wanted: &BTreeMap<String, (String, u64)>,
) -> Result<()> {
    let read = async {
        while view(replay.objects.values()) != *wanted {
            replay.take(&client.message().await?, false)?;
        }
        anyhow::Ok(())
    };
    let read = timeout(SOON, read).await;
    read.unwrap_or_else(|_| panic!("{:?} is known, and {wanted:?} is there", view(replay.objects.values())))
}

/// Holds up whoever passes while it is closed.
#[derive(Default)]
struct Gate {
    is_closed: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, is_closed: bool) {
        *self.is_closed.lock().unwrap() = is_closed;
        self.changed.notify_all();
    }

    fn pass(&self) {
        tokio::task::block_in_place(|| {
            drop(self.changed.wait_while(self.is_closed.lock().unwrap(), |is_closed| *is_closed).unwrap());
        });
    }
}

/// Opens a gate at the end of a test, also of one that fails: nothing ends while somebody is held up.
struct Opens(Arc<Gate>);

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// The informer is ahead of what is told; what it has meanwhile is never told, and nobody may begin with it.
async fn nobody_begins_with_what_was_not_told(place: Place) -> Result<()> {
    for name in ["a", "b"] {
        create(&place, name).await?;
    }
    let gate = Arc::new(Gate::default());
    let passed = Arc::clone(&gate);
    let published = Published::start(&place, move |_| passed.pass()).await?;
    let (mut early, mut known) = published.client().await?;
    let informer = &published.informer;
    let has = async |name: &str| {
        eventually("it is read", SOON, async || informer.get(&place.namespace, name)).await;
    };

    gate.set(true);
    let _opens = Opens(Arc::clone(&gate));
    // Both workers have something to tell.
    scale(&place, "a", 1).await?;
    scale(&place, "b", 1).await?;
    create(&place, "short").await?;
    create(&place, "stays").await?;
    has("short").await;
    has("stays").await;
    let (mut late, mut replay) = published.client().await?;
    let names: Vec<String> = view(replay.objects.values()).into_values().map(|(name, _)| name).collect();
    assert!(names.iter().all(|name| name == "a" || name == "b"), "{names:?}");
    delete(&place, "short").await?;
    eventually("it is gone", SOON, async || informer.get(&place.namespace, "short").is_none().then_some(()))
        .await;
    scale(&place, "stays", 2).await?;
    gate.set(false);

    let wanted = there_is(&place).await?;
    assert_eq!(wanted.len(), 3);
    follow(&mut early, &mut known, &wanted).await?;
    follow(&mut late, &mut replay, &wanted).await?;
    published.end().await;
    Ok(())
}
