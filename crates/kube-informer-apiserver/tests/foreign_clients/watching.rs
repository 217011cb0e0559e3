//! Watches, reflectors and waiting.

use std::collections::BTreeMap;

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube_client::{Api, Client};
use kube_core::params::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube_core::{PartialObjectMeta, ResourceExt, WatchEvent};
use kube_runtime::wait::{await_condition, conditions, delete::delete_and_finalize};
use kube_runtime::watcher::{self, Event, watcher};
use kube_runtime::{WatchStreamExt, reflector};
use serde_json::json;

use crate::verbs::pod;
use crate::{WAYS, config_map, in_process, soon, start};

async fn fill(client: &Client, count: usize) -> Api<ConfigMap> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for at in 0..count {
        let mut map = config_map(&format!("map-{at:03}"), &[("at", &at.to_string())]);
        map.metadata.labels = Some(BTreeMap::from([("even".to_owned(), (at % 2 == 0).to_string())]));
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    maps
}

/// Reads a watcher up to the end of its initial list.
async fn initial<K: ResourceExt>(
    stream: &mut (impl futures_util::Stream<Item = watcher::Result<Event<K>>> + Unpin),
) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        match soon("initial", stream.try_next()).await.unwrap().unwrap() {
            Event::Init => names.clear(),
            Event::InitApply(object) => names.push(object.name_any()),
            Event::InitDone => return names,
            other => panic!("{:?} is not initial", std::mem::discriminant(&other)),
        }
    }
}

#[tokio::test]
async fn a_watcher_starts_with_a_streamed_or_paged_list_and_goes_on() {
    let configs = [
        watcher::Config::default(),
        watcher::Config::default().page_size(3),
        watcher::Config::default().any_semantic(),
        watcher::Config::default().streaming_lists(),
    ];
    for way in WAYS {
        let (_server, client) = start(way).await;
        let maps = fill(&client, 10).await;
        let names: Vec<String> = (0..10).map(|at| format!("map-{at:03}")).collect();
        for (round, config) in configs.iter().enumerate() {
            let mut stream = Box::pin(watcher(maps.clone(), config.clone()));
            assert_eq!(initial(&mut stream).await, names, "{way:?} {config:?}");
            let name = format!("late-{round}");
            maps.create(&PostParams::default(), &config_map(&name, &[])).await.unwrap();
            match soon("added", stream.try_next()).await.unwrap().unwrap() {
                Event::Apply(map) => assert_eq!(map.name_any(), name),
                other => panic!("{way:?} {config:?}: {other:?}"),
            }
            maps.delete(&name, &DeleteParams::default()).await.unwrap();
            match soon("deleted", stream.try_next()).await.unwrap().unwrap() {
                Event::Delete(map) => assert_eq!(map.name_any(), name),
                other => panic!("{way:?} {config:?}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_watcher_sees_only_what_its_selectors_say() {
    let (_server, client) = in_process().await;
    let maps = fill(&client, 4).await;
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let mut even = Box::pin(watcher(maps.clone(), config.clone().labels("even=true")));
        assert_eq!(initial(&mut even).await, ["map-000", "map-002"]);
        let mut one = Box::pin(watcher(maps.clone(), config.fields("metadata.name=map-001")));
        assert_eq!(initial(&mut one).await, ["map-001"]);
        for value in ["false", "true"] {
            let patch = Patch::Merge(json!({ "metadata": { "labels": { "even": value } } }));
            maps.patch("map-000", &PatchParams::default(), &patch).await.unwrap();
        }
        // It leaves the selection and comes back.
        assert!(
            matches!(soon("left", even.try_next()).await.unwrap().unwrap(), Event::Delete(map) if map.name_any() == "map-000")
        );
        assert!(
            matches!(soon("back", even.try_next()).await.unwrap().unwrap(), Event::Apply(map) if map.name_any() == "map-000")
        );
    }
}

#[tokio::test]
async fn a_metadata_watcher_gets_metadata_alone() {
    for way in WAYS {
        let (_server, client) = start(way).await;
        let maps = fill(&client, 3).await;
        let metadata: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client);
        for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
            let mut stream = Box::pin(watcher(metadata.clone(), config));
            assert_eq!(initial(&mut stream).await, ["map-000", "map-001", "map-002"], "{way:?}");
            let patch = Patch::Merge(json!({ "metadata": { "annotations": { "way": format!("{way:?}") } } }));
            maps.patch("map-001", &PatchParams::default(), &patch).await.unwrap();
            let Event::Apply(map) = soon("applied", stream.try_next()).await.unwrap().unwrap() else {
                panic!("not applied")
            };
            assert_eq!(map.annotations()["way"], format!("{way:?}"));
            assert_eq!(map.types.unwrap().kind, "PartialObjectMetadata");
            let patch = Patch::Merge(json!({ "metadata": { "annotations": null } }));
            maps.patch("map-001", &PatchParams::default(), &patch).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_reflector_store_follows_the_server() {
    let (server, client) = in_process().await;
    let maps = fill(&client, 5).await;
    let (reader, writer) = reflector::store();
    let stream = reflector(writer, watcher(maps.clone(), watcher::Config::default().streaming_lists()))
        .default_backoff()
        .touched_objects();
    let task = tokio::spawn(stream.for_each(|_| async {}));
    soon("ready", reader.wait_until_ready()).await.unwrap();
    assert_eq!(reader.state().len(), 5);
    maps.delete("map-002", &DeleteParams::default()).await.unwrap();
    maps.create(&PostParams::default(), &config_map("other", &[])).await.unwrap();
    let wanted = ["map-000", "map-001", "map-003", "map-004", "other"];
    let names = || {
        let mut names: Vec<String> = reader.state().iter().map(|map| map.name_any()).collect();
        names.sort();
        names
    };
    soon("the same", async {
        while names() != wanted {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // Forgetting the past does not disturb who is up to date.
    server.compact();
    maps.delete("other", &DeleteParams::default()).await.unwrap();
    soon("the same again", async {
        while names() != wanted[..4] {
            tokio::task::yield_now().await;
        }
    })
    .await;
    task.abort();
}

#[tokio::test]
async fn a_raw_watch_gets_changes_and_bookmarks_after_its_version() {
    for way in WAYS {
        let (_server, client) = start(way).await;
        let maps = fill(&client, 2).await;
        let version = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
        let mut stream = maps.watch(&WatchParams::default(), &version).await.unwrap().boxed();
        maps.delete("map-001", &DeleteParams::default()).await.unwrap();
        let deleted = match soon("deleted", stream.try_next()).await.unwrap().unwrap() {
            WatchEvent::Deleted(map) => map,
            other => panic!("{way:?}: {other:?}"),
        };
        let number = |version: &str| version.parse::<u64>().unwrap();
        let at = number(&deleted.resource_version().unwrap());
        assert!(at > number(&version), "a deletion has a version of its own");
        match soon("bookmark", stream.try_next()).await.unwrap().unwrap() {
            WatchEvent::Bookmark(bookmark) => {
                assert!(number(&bookmark.metadata.resource_version) >= at);
                assert_eq!(bookmark.types.kind, "ConfigMap");
            }
            other => panic!("{way:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_watch_from_a_forgotten_version_is_told_so() {
    let (server, client) = in_process().await;
    let maps = fill(&client, 2).await;
    server.compact();
    let mut stream = maps.watch(&WatchParams::default(), "1").await.unwrap().boxed();
    match soon("error", stream.try_next()).await.unwrap().unwrap() {
        WatchEvent::Error(status) => assert_eq!((status.code, status.reason.as_str()), (410, "Expired")),
        other => panic!("{other:?}"),
    }
    assert!(soon("end", stream.try_next()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_watch_ends_at_its_timeout() {
    let (_server, client) = in_process().await;
    let maps = fill(&client, 1).await;
    let mut stream = maps.watch(&WatchParams::default().timeout(1), "0").await.unwrap().boxed();
    let events: Vec<_> = soon("end", async {
        let mut events = Vec::new();
        while let Some(event) = stream.try_next().await.unwrap() {
            events.push(event);
        }
        events
    })
    .await;
    assert!(matches!(&events[0], WatchEvent::Added(_)), "{events:?}");
}

#[tokio::test]
async fn conditions_can_be_waited_for() {
    let (_server, client) = in_process().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let running = tokio::spawn(await_condition(pods.clone(), "web", conditions::is_pod_running()));
    let made = pods.create(&PostParams::default(), &pod("web")).await.unwrap();
    assert!(!running.is_finished());
    let patch = Patch::Merge(json!({ "status": { "phase": "Running" } }));
    pods.patch_status("web", &PatchParams::default(), &patch).await.unwrap();
    let ran = soon("running", running).await.unwrap().unwrap().unwrap();
    assert_eq!(ran.uid(), made.uid());

    let maps = fill(&client, 1).await;
    soon("deleted", delete_and_finalize(maps.clone(), "map-000", &DeleteParams::default())).await.unwrap();
    assert!(maps.get_opt("map-000").await.unwrap().is_none());
}

#[tokio::test]
async fn a_deleted_namespace_takes_its_content_along() {
    let (_server, client) = in_process().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": "team" } })).unwrap();
    let made = namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "team");
    maps.create(&PostParams::default(), &config_map("one", &[])).await.unwrap();
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    let uid = made.uid().unwrap();
    soon("gone", await_condition(namespaces, "team", conditions::is_deleted(&uid))).await.unwrap();
    assert!(maps.list(&ListParams::default()).await.unwrap().items.is_empty());
}
