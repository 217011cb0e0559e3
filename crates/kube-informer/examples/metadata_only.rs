//! Only the metadata of objects: names, labels, owners. The server sends nothing else, and nothing else is kept.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;

#[tokio::main]
async fn main() -> Result<()> {
    let factory = Factory::try_default().await?;
    // Who secrets belong to, without ever seeing what is in them.
    let secrets = factory.configure::<Secret>(Scope::All).metadata_only().informer();
    factory.start();
    factory.synced(Duration::from_secs(30)).await?;
    for secret in secrets.list() {
        let owner = secret.controller().map(|owner| format!(", owned by {} {}", owner.kind, owner.name));
        println!("{} ({} labels{})", secret.key(), secret.labels().iter().count(), owner.unwrap_or_default());
    }
    let stats = secrets.stats();
    println!("{} secrets take {} bytes", stats.cache.objects, stats.cache.kept_bytes);
    factory.shutdown().await;
    Ok(())
}
