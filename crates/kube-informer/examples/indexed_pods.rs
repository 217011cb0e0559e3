//! Pods by node: an index by a JSON pointer, which needs no decoding, and one by a function of a view.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::cache::Index;
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;

#[tokio::main]
async fn main() -> Result<()> {
    let factory = Factory::try_default().await?;
    let pods = factory.informer::<Pod>(Scope::All);
    pods.add_index(Index::pointer("/spec/nodeName")?.named("node"))?;
    pods.add_index(Index::view("image", |pod: &Pod| {
        // A function may fail: its object is in the cache all the same, only not in this index.
        let spec = pod.spec.as_ref().ok_or("a pod without a spec")?;
        Ok::<_, &str>(spec.containers.iter().filter_map(|container| container.image.clone()).collect())
    }))?;
    factory.start();
    factory.synced(Duration::from_secs(30)).await?;

    // One state of the cache, whatever happens meanwhile.
    let snapshot = pods.snapshot();
    for (node, count) in snapshot.index_values("node")? {
        println!("node {node}: {count} pods");
        for pod in snapshot.list().index("node", &node)? {
            println!("  {}", pod.key());
        }
    }
    for (image, count) in snapshot.index_values("image")? {
        println!("image {image}: {count} pods");
    }
    factory.shutdown().await;
    Ok(())
}
