//! Any resource, named on the command line as for `kubectl` (`pods` without): one function for all that happens.
//!
//! It takes the cluster that it runs in, and where it runs in none, the kubeconfig.

use std::time::Duration;

use anyhow::Result;
use kube_informer::connect::Source;
use kube_informer::factory::Factory;
use kube_informer::informer::{Event, Scope};

#[tokio::main]
async fn main() -> Result<()> {
    let resource = std::env::args().nth(1).unwrap_or_else(|| "pods".to_owned());
    let factory = Factory::from_source(Source::in_cluster_first()).await?.resync(Duration::from_secs(30));
    let informer = factory.resource(&resource, Scope::All).await?;
    informer.on(handle_event);
    factory.start();
    factory.synced(Duration::from_secs(30)).await?;
    println!("{} objects of {} are in the cache", informer.list().count(), informer.resource());
    tokio::signal::ctrl_c().await?;
    factory.shutdown().await;
    Ok(())
}

fn handle_event(event: Event) {
    let what = match &event {
        Event::Added { .. } => "added",
        Event::Updated { resync: true, .. } => "said again",
        Event::Updated { .. } => "updated",
        Event::Deleted { .. } => "deleted",
        _ => "missed",
    };
    if let Some(object) = event.object() {
        println!("{what}: {} {} at version {}", object.kind(), object.key(), object.version());
    }
}
