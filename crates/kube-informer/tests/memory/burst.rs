//! After many objects have come and gone, the process has the memory back that it had before.

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;
use kube_informer_testbed::eventually::eventually;

use crate::apart::{Orders, SOON, alone, resident};

const OBJECTS: usize = 3_000;
const BYTES: usize = 8_000;

#[test]
fn memory_is_given_back_after_a_burst() -> Result<()> {
    alone("burst::memory_is_given_back_after_a_burst", burst)
}

async fn burst(factory: Factory, orders: &mut Orders) -> Result<()> {
    let objects = factory.informer::<ConfigMap>(Scope::All);
    factory.start();
    factory.synced(SOON).await?;
    let count = async |wanted: usize| {
        let reached = async || (objects.list().count() == wanted).then_some(());
        eventually("the cache has what the server has", SOON, reached).await;
    };

    let (few, before) = (objects.list().count(), resident());
    orders.fill(OBJECTS, BYTES)?;
    count(few + OBJECTS).await;
    let most = resident();
    assert!(most - before > OBJECTS * 4_000, "it holds them: {before} bytes became {most}");

    orders.clear()?;
    count(0).await;
    let given_back = async || (resident() < before + (most - before) / 2).then_some(());
    eventually("most of the memory is given back", SOON, given_back).await;
    Ok(())
}
