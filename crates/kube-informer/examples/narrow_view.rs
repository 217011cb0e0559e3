//! A struct that names two fields: everything else of the object is skipped, not decoded. The same cache serves typed
//! readers at the same time.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;
use serde::Deserialize;

#[derive(Deserialize)]
struct Narrow {
    spec: Spec,
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    phase: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let factory = Factory::try_default().await?;
    let typed = factory.informer::<Pod>(Scope::All);
    let narrow = typed.cast::<Narrow>();
    factory.start();
    factory.synced(Duration::from_secs(30)).await?;

    let mut phases: BTreeMap<(String, String), usize> = BTreeMap::new();
    for pod in narrow.list() {
        let view = pod.view()?;
        let text = |field: &Option<String>| field.clone().unwrap_or_else(|| "-".to_owned());
        *phases.entry((text(&view.spec.node_name), text(&view.status.phase))).or_default() += 1;
    }
    for ((node, phase), count) in phases {
        println!("{node} {phase}: {count}");
    }
    let containers =
        typed.list().into_iter().map(|pod| Ok(pod.view()?.spec.as_ref().map_or(0, |s| s.containers.len())));
    println!("{} containers", containers.sum::<Result<usize>>()?);
    factory.shutdown().await;
    Ok(())
}
