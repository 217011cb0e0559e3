//! One object, watched for as long as it is of interest, whether it is there or not: `manager deployments shop web`.

use std::time::Duration;

use anyhow::{Context, Result};
use kube_informer::controller::Request;
use kube_informer::factory::Factory;
use kube_informer::manager::{Manager, RequestWatch, WatchEvent};

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [resource, namespace, name] = &arguments[..] else {
        anyhow::bail!("usage: manager RESOURCE NAMESPACE NAME, as in: manager deployments default web");
    };
    let factory = Factory::try_default().await?;
    let resource = factory.resolve(resource).await.context("which resource")?;
    let manager = Manager::new(&factory);
    manager.start();

    // Whom it is watched for. Controllers take such keys from `manager.requests()`.
    let owner = Request::new(namespace, "example");
    let request = RequestWatch::new(&owner, resource, namespace, name).wait_for_target().on(async |event| {
        match event {
            WatchEvent::Added { new, .. } => println!("added: {} at version {}", new.key(), new.version()),
            WatchEvent::Updated { old, new, resync: false } => {
                println!("updated: {} from version {} to {}", new.key(), old.version(), new.version());
            }
            WatchEvent::Deleted { last, .. } => println!("deleted: {}", last.key()),
            _ => {}
        }
        Ok::<_, anyhow::Error>(()) // an error is tried again, later each time
    });
    let watch = manager.add(request).await?;
    println!("{} is {}", watch.key(), watch.state());

    tokio::signal::ctrl_c().await?;
    println!("stopped {} watches", manager.stop_for_owner(&owner).await);
    manager.shutdown(Duration::from_secs(5)).await;
    factory.shutdown().await;
    Ok(())
}
