use std::sync::mpsc;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::encoding::Encoding;
use kube_informer::informer::{Delivery, Event, Scope, State, Written};
use serde_json::json;

use crate::harness::{Place, SOON, config_map, on_both};

on_both! { what_changes_is_told_and_can_be_read }

async fn what_changes_is_told_and_can_be_read(place: Place) -> Result<()> {
    place.post(&place.path("configmaps"), &config_map("first", "1")).await?;
    let factory = place.factory().await?;
    let informer =
        factory.configure::<ConfigMap>(Scope::namespace(&place.namespace)).labels("made=here")?.informer();
    let (told, hear) = mpsc::channel();
    let registration = informer.subscribe().delivery(Delivery::Every(100)).on(move |event| {
        let text = match &event {
            Event::Added { new, initial } => format!("+{} {initial}", new.name()),
            Event::Updated { old, new, .. } => format!(
                "~{} {}→{}",
                new.name(),
                old.pointer::<String>("/data/key").unwrap().unwrap(),
                new.view().unwrap().data.as_ref().unwrap()["key"]
            ),
            Event::Deleted { last, certain } => format!("-{} {certain}", last.name()),
            other => format!("{other:?}"),
        };
        told.send(text).unwrap();
    });
    factory.start();
    factory.synced(SOON).await?;
    registration.synced(SOON).await?;
    let written = place.post(&place.path("configmaps"), &config_map("second", "1")).await?;
    let version = written["metadata"]["resourceVersion"].as_str().unwrap();
    let written = Written::new(informer.resource().clone(), &*place.namespace, version);
    informer.caught_up(&written, SOON).await?;
    assert_eq!(informer.list().count(), 2);
    assert_eq!(informer.health().state, State::Live);
    let encoding = if place.is_real() { Encoding::Protobuf } else { Encoding::Json };
    assert_eq!(informer.get(&place.namespace, "second").unwrap().encoding(), encoding);
    place.merge(&place.path("configmaps/first"), &json!({ "data": { "key": "2" } })).await?;
    place.delete(&place.path("configmaps/second")).await?;
    let told: Vec<String> = (0..4).map(|_| hear.recv_timeout(SOON).unwrap()).collect();
    assert_eq!(told, ["+first true", "+second false", "~first 1→2", "-second true"]);
    assert_eq!(factory.shutdown().await.busy, [""; 0]);
    Ok(())
}
