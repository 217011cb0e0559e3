//! The program of the project's first page.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::cache::Index;
use kube_informer::factory::Factory;
use kube_informer::informer::{Event, Scope};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let factory = Factory::try_default().await?; // kubeconfig or in-cluster
    let pods = factory.informer::<Pod>(Scope::All); // shared: asking again gives the same one
    pods.add_index(Index::pointer("/spec/nodeName")?.named("node"))?;
    pods.on(|event: Event<Pod>| match event {
        Event::Added { new, .. } => println!("+ {}", new.key()),
        Event::Updated { old, new, .. } => println!("~ {} {}→{}", new.key(), old.version(), new.version()),
        Event::Deleted { last, .. } => println!("- {}", last.key()),
        _ => {}
    });
    factory.start();
    factory.synced(Duration::from_secs(30)).await?; // the error names what is missing, and why
    for pod in pods.list().index("node", "node-1")? {
        println!("{} {:?}", pod.key(), pod.view()?.status); // only view() decodes
    }
    factory.shutdown().await; // nothing runs afterwards
    Ok(())
}
