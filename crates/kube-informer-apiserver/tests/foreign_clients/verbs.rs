//! Verbs, patches, subresources and discovery.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::api::entry::CommitError;
use kube_client::api::{EvictParams, LogParams};
use kube_client::core::{DynamicObject, GroupVersionKind};
use kube_client::discovery::{self, Discovery, Scope, verbs};
use kube_client::{Api, Client};
use kube_core::ResourceExt;
use kube_core::params::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::json;

use crate::widget::{self, Widget};
use crate::{WAYS, config_map, in_process, refusal, start};

pub(crate) fn pod(name: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "registry.k8s.io/pause:3.10" }] },
    }))
    .unwrap()
}

fn deployment(name: &str) -> Deployment {
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "registry.k8s.io/pause:3.10" }] },
            },
        },
    }))
    .unwrap()
}

fn post() -> PostParams {
    PostParams::default()
}

#[tokio::test]
async fn objects_are_created_read_listed_replaced_and_deleted_every_way() {
    for way in WAYS {
        let (_server, client) = start(way).await;
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let made = maps.create(&post(), &config_map("one", &[("a", "1")])).await.unwrap();
        assert!(made.uid().is_some() && made.creation_timestamp().is_some());
        assert_eq!(maps.get("one").await.unwrap(), made);
        assert_eq!(maps.get_metadata("one").await.unwrap().uid(), made.uid());
        let twice = maps.create(&post(), &config_map("one", &[])).await;
        assert_eq!(refusal(twice), (409, "AlreadyExists".into()));
        let list = maps.list(&ListParams::default()).await.unwrap();
        assert_eq!(list.items, std::slice::from_ref(&made));
        assert_eq!(maps.list_metadata(&ListParams::default()).await.unwrap().items.len(), 1);
        let mut new = made.clone();
        new.data.as_mut().unwrap().insert("b".into(), "2".into());
        let replaced = maps.replace("one", &post(), &new).await.unwrap();
        assert_eq!(replaced.data, new.data);
        // It still carries the first version.
        assert_eq!(refusal(maps.replace("one", &post(), &new).await), (409, "Conflict".into()));
        let deleted = maps.delete("one", &DeleteParams::default()).await.unwrap();
        assert!(deleted.right().unwrap().is_success());
        assert_eq!(refusal(maps.get("one").await), (404, "NotFound".into()));
        assert!(maps.get_opt("one").await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let (server, client) = in_process().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let before = server.stats().version;
    let dry = PostParams { dry_run: true, ..post() };
    assert!(maps.create(&dry, &config_map("one", &[])).await.unwrap().uid().is_some());
    assert!(maps.get_opt("one").await.unwrap().is_none());
    assert_eq!(server.stats().version, before);
}

#[tokio::test]
async fn pages_make_up_the_whole_and_stay_at_one_version() {
    let (_server, client) = in_process().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    for at in 0..25 {
        maps.create(&post(), &config_map(&format!("map-{at:02}"), &[])).await.unwrap();
    }
    let mut names = Vec::new();
    let mut versions = Vec::new();
    let mut params = ListParams::default().limit(10);
    loop {
        let page = maps.list(&params).await.unwrap();
        versions.push(page.metadata.resource_version.clone().unwrap());
        names.extend(page.items.iter().map(ResourceExt::name_any));
        let left = page.metadata.remaining_item_count;
        assert_eq!(left, Some(25 - names.len() as i64).filter(|left| *left > 0));
        // What happens meanwhile does not show.
        let name = format!("map-{:02}x", names.len());
        maps.create(&post(), &config_map(&name, &[])).await.unwrap();
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, (0..25).map(|at| format!("map-{at:02}")).collect::<Vec<_>>());
    versions.dedup();
    assert_eq!(versions.len(), 1);
}

#[tokio::test]
async fn an_expired_page_says_so() {
    let (server, client) = in_process().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    for at in 0..4 {
        maps.create(&post(), &config_map(&format!("map-{at}"), &[])).await.unwrap();
    }
    let page = maps.list(&ListParams::default().limit(2)).await.unwrap();
    maps.delete("map-3", &DeleteParams::default()).await.unwrap();
    server.compact();
    let token = page.metadata.continue_.unwrap();
    let next = maps.list(&ListParams::default().limit(2).continue_token(&token)).await;
    let Err(kube_client::Error::Api(status)) = next else { panic!("{next:?}") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    // The refusal carries a token with which the rest can be had, as it is now.
    let token = status.metadata.clone().unwrap().continue_.unwrap();
    let rest = maps.list(&ListParams::default().limit(2).continue_token(&token)).await.unwrap();
    assert_eq!(rest.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["map-2"]);
}

#[tokio::test]
async fn an_entry_is_made_changed_and_conflicts() {
    let (_server, client) = in_process().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let set = |map: &mut ConfigMap, value: &str| {
        map.data.get_or_insert_default().insert("key".into(), value.into());
    };
    let mut made = maps.entry("one").await.unwrap().or_insert(|| config_map("one", &[]));
    made = made.and_modify(|map| set(map, "first"));
    made.commit(&post()).await.unwrap();
    let mut slow = maps.entry("one").await.unwrap().or_insert(|| unreachable!("it exists"));
    made.and_modify(|map| set(map, "second")).commit(&post()).await.unwrap();
    slow = slow.and_modify(|map| set(map, "lost"));
    match slow.commit(&post()).await {
        Err(CommitError::Save(kube_client::Error::Api(status))) => assert_eq!(status.code, 409),
        other => panic!("{other:?}"),
    }
    assert_eq!(maps.get("one").await.unwrap().data.unwrap()["key"], "second");
}

#[tokio::test]
async fn patches_of_three_kinds_work_and_server_side_apply_is_refused_in_words() {
    let (_server, client) = in_process().await;
    let deployments: Api<Deployment> = Api::default_namespaced(client);
    deployments.create(&post(), &deployment("web")).await.unwrap();
    let params = PatchParams::default();
    let merge = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    let merged = deployments.patch("web", &params, &merge).await.unwrap();
    assert_eq!(merged.spec.replicas, Some(3));
    let strategic = Patch::Strategic(json!({ "spec": { "template": { "spec": { "containers": [
        { "name": "side", "image": "registry.k8s.io/pause:3.9" },
    ] } } } }));
    let both = deployments.patch("web", &params, &strategic).await.unwrap();
    let containers = both.spec.template.spec.unwrap().containers;
    assert_eq!(containers.len(), 2, "containers are merged by their name");
    let operations = serde_json::from_value(json!([
        { "op": "test", "path": "/spec/replicas", "value": 3 },
        { "op": "replace", "path": "/spec/replicas", "value": 5 },
    ]));
    let json_patch: Patch<()> = Patch::Json(operations.unwrap());
    let patched = deployments.patch("web", &params, &json_patch).await.unwrap();
    assert_eq!(patched.spec.replicas, Some(5));
    let again = deployments.patch("web", &params, &json_patch).await;
    assert_eq!(refusal(again).0, 422, "its test no longer holds");
    let apply = Patch::Apply(deployment("web"));
    let applied = deployments.patch("web", &PatchParams::apply("me").force(), &apply).await;
    let Err(kube_client::Error::Api(status)) = applied else { panic!("{applied:?}") };
    assert_eq!(status.code, 415);
    assert!(status.message.contains("server-side apply is not supported"), "{}", status.message);
}

#[tokio::test]
async fn subresources_answer() {
    let (_server, client) = in_process().await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&post(), &deployment("web")).await.unwrap();
    let mut scale = deployments.get_scale("web").await.unwrap();
    scale.spec.as_mut().unwrap().replicas = Some(4);
    deployments.replace_scale("web", &post(), &scale).await.unwrap();
    let patch = Patch::Merge(json!({ "spec": { "replicas": 6 } }));
    let scale = deployments.patch_scale("web", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(6));
    let status = json!({ "status": { "replicas": 6 }, "spec": { "replicas": 9 } });
    let params = PatchParams::default();
    let set = deployments.patch_status("web", &params, &Patch::Merge(status)).await.unwrap();
    assert_eq!(set.status.unwrap().replicas, Some(6));
    assert_eq!(set.spec.replicas, Some(6), "the status subresource leaves the spec alone");

    let pods: Api<Pod> = Api::default_namespaced(client);
    pods.create(&post(), &pod("one")).await.unwrap();
    assert!(pods.evict("one", &EvictParams::default()).await.unwrap().is_success());
    assert!(pods.get_opt("one").await.unwrap().is_none(), "an unscheduled pod is evicted at once");
    assert_eq!(refusal(pods.evict("one", &EvictParams::default()).await).0, 404);
    pods.create(&post(), &pod("two")).await.unwrap();
    let logs = pods.logs("two", &LogParams::default()).await;
    assert!(matches!(logs, Err(kube_client::Error::Api(_))), "nothing runs, nothing logs: {logs:?}");
}

#[tokio::test]
async fn deletion_heeds_preconditions_and_selectors() {
    let (_server, client) = in_process().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    for at in 0..4 {
        let mut map = config_map(&format!("map-{at}"), &[]);
        map.labels_mut().insert("even".into(), (at % 2 == 0).to_string());
        maps.create(&post(), &map).await.unwrap();
    }
    let of_another = Preconditions { uid: Some("another".into()), ..Default::default() };
    let delete = DeleteParams::default().preconditions(of_another);
    assert_eq!(refusal(maps.delete("map-0", &delete).await), (409, "Conflict".into()));
    let even = ListParams::default().labels("even=true");
    let deleted = maps.delete_collection(&DeleteParams::default(), &even).await.unwrap();
    assert_eq!(deleted.left().unwrap().items.len(), 2);
    let left = maps.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(left.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["map-1", "map-3"]);
}

#[tokio::test]
async fn custom_objects_are_checked_and_have_a_status() {
    let (_server, client) = in_process().await;
    let widgets = widget::define(&client).await;
    assert_eq!(refusal(widgets.create(&post(), &Widget::new("small", -1)).await), (422, "Invalid".into()));
    let made = widgets.create(&post(), &Widget::new("small", 1)).await.unwrap();
    assert_eq!((made.metadata.generation, made.status), (Some(1), None));
    let mut new = widgets.get("small").await.unwrap();
    new.status = Some(widget::WidgetStatus { observed_generation: 1, phase: "Ready".into() });
    let replaced = widgets.replace_status("small", &post(), &new).await.unwrap();
    assert_eq!(replaced.status, new.status);
    assert_eq!(replaced.metadata.generation, Some(1), "a status is no new generation");
    let strategic = Patch::Strategic(json!({ "spec": { "size": 2 } }));
    assert_eq!(refusal(widgets.patch("small", &PatchParams::default(), &strategic).await).0, 415);
}

async fn discover(client: &Client) -> [Discovery; 2] {
    [
        Discovery::new(client.clone()).run().await.unwrap(),
        Discovery::new(client.clone()).run_aggregated().await.unwrap(),
    ]
}

#[tokio::test]
async fn discovery_finds_built_in_and_custom_kinds_in_both_forms() {
    for way in WAYS {
        let (_server, client) = start(way).await;
        widget::define(&client).await;
        for found in discover(&client).await {
            for (group, version, kind, plural, scope) in [
                ("", "v1", "Pod", "pods", Scope::Namespaced),
                ("", "v1", "Namespace", "namespaces", Scope::Cluster),
                ("apps", "v1", "Deployment", "deployments", Scope::Namespaced),
                ("example.com", "v1", "Widget", "widgets", Scope::Namespaced),
            ] {
                let (resource, can) =
                    found.resolve_gvk(&GroupVersionKind::gvk(group, version, kind)).unwrap();
                assert_eq!((resource.plural.as_str(), &can.scope), (plural, &scope), "{way:?}");
                assert!(can.supports_operation(verbs::WATCH));
            }
            assert_eq!(found.get("autoscaling").unwrap().preferred_version(), Some("v2"));
        }
        let [plain, aggregated] = discover(&client).await.map(|found| {
            let mut all = Vec::new();
            for group in found.groups_alphabetical() {
                for version in group.versions() {
                    for (resource, can) in group.versioned_resources(version) {
                        let mut operations = can.operations;
                        operations.sort();
                        all.push((resource.api_version, resource.plural, resource.kind, operations));
                    }
                }
            }
            all.sort();
            all
        });
        assert_eq!(plain, aggregated, "{way:?}: both forms say the same");
    }
}

#[tokio::test]
async fn a_kind_known_only_by_name_can_be_used() {
    let (_server, client) = in_process().await;
    widget::define(&client).await;
    let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let (resource, _) = discovery::pinned_kind(&client, &kind).await.unwrap();
    let api: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let object = DynamicObject::new("one", &resource).data(json!({ "spec": { "size": 1 } }));
    let made = api.create(&post(), &object).await.unwrap();
    assert_eq!(made.data["spec"]["size"], 1);
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn an_object_without_a_namespace_is_in_that_of_the_request() {
    let (_server, client) = in_process().await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&post(), &config_map("one", &[])).await.unwrap();
    let replaced = maps.replace("one", &post(), &config_map("one", &[("a", "1")])).await.unwrap();
    assert_eq!(replaced.namespace().as_deref(), Some("default"));
    let mut elsewhere = config_map("one", &[]);
    elsewhere.metadata.namespace = Some("kube-system".into());
    assert_eq!(refusal(maps.replace("one", &post(), &elsewhere).await), (400, "BadRequest".into()));
    assert_eq!(refusal(maps.replace("one", &post(), &config_map("two", &[])).await).0, 400);
}
