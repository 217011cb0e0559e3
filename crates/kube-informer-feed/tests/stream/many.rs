//! Many clients on one informer.

use anyhow::Result;
use kube_informer_feed::hub::Hub;
use kube_informer_feed::server::Server;
use serde_json::json;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::harness::{Place, SOON};

/// A thousand where there is time for it.
fn clients() -> usize {
    if std::env::var_os("KUBE_INFORMER_FULL").is_some() { 1_000 } else { 200 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_one_of_many_clients_is_told_every_change() -> Result<()> {
    const CHANGES: usize = 30;
    let place = Place::embedded().await?;
    let path = "/apis/apps/v1/namespaces/test/deployments";
    let labels = json!({ "app": "web" });
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 0, "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "web", "image": "web:1" }] } },
        },
    });
    place.post(path, &deployment).await?;
    let factory = place.factory().await?;
    let hub = Hub::builder(factory.clone()).resource("deployments").start().await?;
    factory.start();
    let server = Server::builder(hub).start().await?;

    let mut readers = JoinSet::new();
    for _ in 0..clients() {
        let mut client = Client::plain(&server.url()).await?;
        let (names, _) = client.snapshot("apps/v1/deployments").await?;
        assert_eq!(names.len(), 1);
        readers.spawn(async move {
            for replicas in 1..=CHANGES {
                let change = client.change().await?;
                let summary = format!("replicas {}→{replicas}", replicas - 1);
                anyhow::ensure!(
                    change.change.summary == summary,
                    "{} and not {summary}",
                    change.change.summary
                );
            }
            anyhow::Ok(())
        });
    }
    assert_eq!(server.connections(), clients());
    for replicas in 1..=CHANGES {
        place.merge(&format!("{path}/web"), &json!({ "spec": { "replicas": replicas } })).await?;
    }
    while let Some(read) = readers.join_next().await {
        read??;
    }
    assert_eq!(place.open_watches("deployments"), 1);
    assert!(server.shutdown(SOON).await);
    Ok(())
}
