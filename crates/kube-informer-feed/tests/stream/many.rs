//! Many clients on one informer, by both ways that a change takes: what the hub reads by itself, and what a controller tells.

use anyhow::{Result, ensure};
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;
use kube_informer_feed::deployments::{DeploymentController, Reported};
use kube_informer_feed::hub::Hub;
use kube_informer_feed::message::ChangeMessage;
use kube_informer_feed::server::Server;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::harness::{Place, SOON, on_both};

on_both! {
    every_one_of_many_clients_is_told_every_change,
    every_one_of_many_clients_is_told_what_a_controller_finds,
}

/// A thousand where there is time for it.
fn clients() -> usize {
    if std::env::var_os("KUBE_INFORMER_FULL").is_some() { 1_000 } else { 200 }
}

const CHANGES: u64 = 30;

/// So many connections are open in one test at a time: a process may have only so many.
static TURN: Mutex<()> = Mutex::const_new(());

async fn every_one_of_many_clients_is_told_every_change(place: Place) -> Result<()> {
    let _turn = TURN.lock().await;
    make(&place).await?;
    let factory = place.factory().await?;
    let scope = Scope::namespace(&place.namespace);
    let hub = Hub::builder(factory.clone()).resource("deployments").scope(scope).start().await?;
    factory.start();
    let told = are_told(&place, &factory, Server::builder(hub).start().await?).await?;
    assert!(told.into_iter().all(|messages| messages == CHANGES), "each change by itself");
    Ok(())
}

async fn every_one_of_many_clients_is_told_what_a_controller_finds(place: Place) -> Result<()> {
    let _turn = TURN.lock().await;
    make(&place).await?;
    let factory = place.factory().await?;
    let controller = DeploymentController::new(&factory, Scope::namespace(&place.namespace));
    let hub = Hub::builder(factory.clone()).start().await?;
    let publisher = hub.publisher(controller.informer());
    let server = Server::builder(hub).start().await?;
    let controller = controller.begin_with(&publisher);
    let sink = move |reported: Reported| {
        publisher.publish(reported.change, reported.old.as_ref(), reported.new.as_ref());
    };
    let run = tokio::spawn(controller.run(sink, std::future::pending()));
    let told = are_told(&place, &factory, server).await?;
    // Those that come faster than they are told become one; all are told the same.
    assert!(told.iter().all(|messages| *messages == told[0] && *messages <= CHANGES), "{told:?}");
    run.abort();
    Ok(())
}

/// A Deployment that nobody else does anything about.
async fn make(place: &Place) -> Result<()> {
    let labels = json!({ "app": "web" });
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 0, "paused": true, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "web", "image": "web:1" }] } },
        },
    });
    place.post(&place.path("apps/v1/deployments"), &deployment).await?;
    Ok(())
}

/// Its replicas are changed, and each of many clients has been told every change, one after the other. Gives
/// in how many messages.
async fn are_told(place: &Place, factory: &Factory, server: Server) -> Result<Vec<u64>> {
    let mut readers = JoinSet::new();
    for _ in 0..clients() {
        let mut client = Client::plain(&server.url()).await?;
        let (names, _) = client.snapshot("apps/v1/deployments").await?;
        ensure!(names.len() == 1, "{names:?}");
        readers.spawn(async move {
            let (mut replicas, mut messages) = (0, 0);
            while replicas < CHANGES {
                let ChangeMessage { change, .. } = client.change().await?;
                // Where there are controllers, the status changes, too.
                let scaled = change.changes.into_iter().find(|change| change.path == "/spec/replicas");
                let Some(scaled) = scaled else { continue };
                let number = |value: Option<serde_json::Value>| value.and_then(|value| value.as_u64());
                let (old, new) = (number(scaled.old), number(scaled.new));
                ensure!(old == Some(replicas) && new > old, "{old:?} to {new:?} after {replicas}");
                (replicas, messages) = (new.unwrap_or_default(), messages + 1);
            }
            anyhow::Ok(messages)
        });
    }
    assert_eq!(server.connections(), clients());
    for replicas in 1..=CHANGES {
        place
            .merge(&place.path("apps/v1/deployments/web"), &json!({ "spec": { "replicas": replicas } }))
            .await?;
    }
    let mut told = Vec::new();
    while let Some(read) = readers.join_next().await {
        told.push(read??);
    }
    assert_eq!(place.open_watches("deployments"), 1);
    assert!(server.shutdown(SOON).await);
    factory.shutdown().await;
    Ok(told)
}
