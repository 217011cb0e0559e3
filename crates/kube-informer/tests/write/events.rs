//! Events about objects.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Node, ObjectReference};
use kube_informer::write::{About, Recorder};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match};
use serde_json::{Value, json};

use crate::harness::{Place, SOON, cached, on_both, through};

on_both! {
    an_event_is_there_for_people,
    what_is_said_again_is_a_series,
    what_is_too_long_or_too_much_is_cut,
    events_about_what_has_no_namespace_are_in_default,
    nobody_waits_for_a_server_that_does_not_answer,
    what_the_server_refuses_is_given_up,
}

impl Place {
    async fn events(&self, namespace: &str, name: &str) -> Result<Vec<Value>> {
        let all = self.get(&format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events")).await?;
        let about = |event: &Value| event["regarding"]["name"] == name;
        Ok(all["items"].as_array().into_iter().flatten().filter(|event| about(event)).cloned().collect())
    }

    fn about(&self, name: &str) -> About {
        let mut map = ConfigMap::default();
        map.metadata.namespace = Some(self.namespace.clone());
        map.metadata.name = Some(name.to_owned());
        About::object(&map)
    }
}

async fn an_event_is_there_for_people(place: Place) -> Result<()> {
    let map = json!({ "metadata": { "name": "it" } });
    let map = place.post(&place.path("configmaps"), &map).await?;
    let (factory, maps) = place.informer::<ConfigMap>().await?;
    let object = cached(&maps, &place.namespace, "it", |_| true).await;
    let recorder = Recorder::new(place.client().await?, "example.com/tester");
    recorder.normal(&object, "Created", "Create", "it was created");
    recorder.warning(&object, "Failed", "Delete", "it cannot be deleted");
    let stats = recorder.shutdown(SOON).await;
    assert_eq!((stats.created, stats.counted, stats.dropped, stats.failed), (2, 0, 0, 0));
    let mut events = place.events(&place.namespace, "it").await?;
    events.sort_by_key(|event| event["type"].as_str().map(str::to_owned));
    let said = |event: &Value| {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        [text("type"), text("reason"), text("action"), text("note")].join(", ")
    };
    assert_eq!(
        events.iter().map(said).collect::<Vec<_>>(),
        ["Normal, Created, Create, it was created", "Warning, Failed, Delete, it cannot be deleted"]
    );
    let event = &events[0];
    assert_eq!(event["regarding"]["uid"], map["metadata"]["uid"]);
    assert_eq!(event["regarding"]["resourceVersion"], map["metadata"]["resourceVersion"]);
    assert_eq!(
        (&event["regarding"]["kind"], &event["regarding"]["apiVersion"]),
        (&json!("ConfigMap"), &json!("v1"))
    );
    assert_eq!(event["reportingController"], "example.com/tester");
    assert!(event["reportingInstance"].as_str().is_some_and(|name| name.starts_with("tester-")));
    assert!(event["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("it.")));
    assert!(event["eventTime"].is_string());
    // After its end, nothing is said any more.
    recorder.normal(&object, "Late", "Late", "late");
    assert_eq!(recorder.stats().dropped, 1);
    factory.shutdown().await;
    Ok(())
}

async fn what_is_said_again_is_a_series(place: Place) -> Result<()> {
    let recorder = Recorder::new(place.client().await?, "tester");
    let mut registry = prometheus_client::registry::Registry::default();
    recorder.register_metrics(&mut registry);
    for _ in 0..5 {
        recorder.normal(place.about("again"), "Same", "Same", "the same");
    }
    for at in 0..13 {
        recorder.normal(place.about("alike"), "Try", "Try", format!("try {at}"));
    }
    for at in 0..40 {
        recorder.normal(place.about("flood"), format!("Reason{at}").as_str(), "Flood", "much");
    }
    let stats = recorder.shutdown(SOON).await;
    assert_eq!((stats.created, stats.counted, stats.limited), (1 + 11 + 25, 4 + 2, 15), "{stats:?}");
    let again = place.events(&place.namespace, "again").await?;
    let [event] = &again[..] else { panic!("{again:#?}") };
    assert_eq!(event["series"]["count"], 5);
    assert!(event["series"]["lastObservedTime"].as_str() > event["eventTime"].as_str());
    let alike = place.events(&place.namespace, "alike").await?;
    assert_eq!(alike.len(), 11);
    let is_combined =
        |event: &&Value| event["note"].as_str().is_some_and(|note| note.starts_with("(combined"));
    let combined: Vec<_> = alike.iter().filter(is_combined).collect();
    assert_eq!((combined.len(), &combined[0]["series"]["count"]), (1, &json!(3)));
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry)?;
    assert!(page.contains("kube_informer_recorded_events_total{result=\"limited\"} 15\n"), "{page}");
    // Events do not last: what was counted on and is gone begins anew.
    let recorder = Recorder::new(place.client().await?, "tester");
    recorder.normal(place.about("gone"), "Same", "Same", "the same");
    let there = async || place.events(&place.namespace, "gone").await.ok()?.pop();
    let event = eventually("it is there", SOON, there).await;
    let name = event["metadata"]["name"].as_str().unwrap().to_owned();
    place.delete(&place.path(&format!("events.k8s.io/v1/events/{name}"))).await?;
    recorder.normal(place.about("gone"), "Same", "Same", "the same");
    let stats = recorder.shutdown(SOON).await;
    assert_eq!((stats.created, stats.failed), (2, 0), "{stats:?}");
    Ok(())
}

async fn what_is_too_long_or_too_much_is_cut(place: Place) -> Result<()> {
    let recorder = Recorder::new(place.client().await?, "Not A Name/at all!");
    recorder.normal(place.about("long"), &"R".repeat(500), &"A".repeat(500), "ü".repeat(100_000));
    recorder.normal(place.about("empty"), "", "", "");
    recorder.normal(place.about(&"x".repeat(253)), "Long", "Long", "a long name");
    let stats = recorder.shutdown(SOON).await;
    assert_eq!((stats.created, stats.failed), (3, 0), "{stats:?}");
    let event = place.events(&place.namespace, "long").await?.pop().unwrap();
    assert_eq!(event["note"].as_str().map(|note| note.len() <= 1024 && note.ends_with('…')), Some(true));
    assert_eq!(event["reason"].as_str().map(str::len), Some(128));
    Ok(())
}

async fn events_about_what_has_no_namespace_are_in_default(place: Place) -> Result<()> {
    let recorder = Recorder::new(place.client().await?, "tester");
    let name = format!("node-of-{}", place.namespace);
    let mut node = Node::default();
    node.metadata.name = Some(name.clone());
    recorder.warning(About::object(&node), "Lost", "Look", "it is not there");
    let odd = format!("system:{}", place.namespace);
    let role = ObjectReference {
        kind: Some("ClusterRole".to_owned()),
        api_version: Some("rbac.authorization.k8s.io/v1".to_owned()),
        name: Some(odd.clone()),
        ..ObjectReference::default()
    };
    recorder.warning(role, "Odd", "Look", "a name that is no domain");
    let stats = recorder.shutdown(SOON).await;
    assert_eq!((stats.created, stats.failed), (2, 0), "{stats:?}");
    for name in [name, odd] {
        let events = place.events("default", &name).await?;
        let [event] = &events[..] else { panic!("{events:#?}") };
        let path = format!(
            "/apis/events.k8s.io/v1/namespaces/default/events/{}",
            event["metadata"]["name"].as_str().unwrap()
        );
        place.delete(&path).await?;
    }
    Ok(())
}

async fn nobody_waits_for_a_server_that_does_not_answer(place: Place) -> Result<()> {
    let proxy = place.proxy().await?;
    let stall = proxy.on(Match::write()).stall();
    let recorder = Recorder::new(through(&proxy).await?, "tester");
    recorder.normal(place.about("first"), "Stuck", "Stuck", "stuck");
    stall.wait_applied(1).await;
    for at in 0..Recorder::QUEUE + 10 {
        recorder.normal(place.about(&format!("object-{at}")), "Stuck", "Stuck", "stuck");
    }
    assert_eq!(recorder.stats().dropped, 10);
    // The end does not wait either.
    let stats = recorder.shutdown(Duration::ZERO).await;
    assert_eq!((stats.dropped, stats.created), (Recorder::QUEUE as u64 + 10, 0), "{stats:?}");
    stall.remove();
    // Dropped, it ends by itself, with what is queued.
    let recorder = Recorder::new(through(&proxy).await?, "tester");
    recorder.normal(place.about("dropped"), "Last", "Last", "the last one");
    drop(recorder);
    let there = async || place.events(&place.namespace, "dropped").await.ok()?.pop();
    eventually("it is written all the same", SOON, there).await;
    assert!(proxy.wait_connections(0, SOON).await, "the client went with the task");
    Ok(())
}

async fn what_the_server_refuses_is_given_up(place: Place) -> Result<()> {
    let proxy = place.proxy().await?;
    let recorder = Recorder::new(through(&proxy).await?, "tester");
    let fault = proxy.on(Match::write()).answer(Answer::forbidden());
    recorder.normal(place.about("refused"), "No", "No", "no");
    let failed = async || (recorder.stats().failed == 1).then_some(());
    eventually("it is given up", SOON, failed).await;
    assert_eq!(fault.applied(), 1, "it will not be better the next time");
    fault.remove();
    recorder.normal(place.about("well"), "Yes", "Yes", "yes");
    assert_eq!(recorder.shutdown(SOON).await.created, 1);
    Ok(())
}
