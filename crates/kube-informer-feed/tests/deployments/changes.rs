//! What is told: each kind of change, with the state before and after.

use anyhow::Result;
use kube_informer_feed::change::{Class, What};
use serde_json::json;

use crate::harness::{Place, Running, on_both, web};

on_both! {
    scaling_is_told_with_the_number_before_and_after,
    images_of_all_containers_are_told,
    containers_that_come_and_go_are_told,
    what_comes_and_goes_is_told_with_its_state,
    what_is_there_at_the_beginning_is_no_change,
    one_that_is_created_again_is_a_deletion_and_an_addition,
    who_did_it_is_told,
    what_is_not_tracked_is_told_and_marked,
}

async fn scaling_is_told_with_the_number_before_and_after(place: Place) -> Result<()> {
    place.create("web", web("1.4")).await?;
    let mut controller = Running::start(&place).await?;
    place.scale("web", 5).await?;
    let reported = controller.next().await;
    assert_eq!((reported.change.what, &*reported.change.classes), (What::Modified, &[Class::Scale][..]));
    assert_eq!(reported.change.summary, "replicas 1→5");
    let replicas = |object: Option<kube_informer::object::Object<_>>| {
        let object: kube_informer::object::Object<k8s_openapi::api::apps::v1::Deployment> = object.unwrap();
        object.view().unwrap().spec.replicas
    };
    assert_eq!((replicas(reported.old), replicas(reported.new)), (Some(1), Some(5)));
    place.scale("web", 0).await?;
    assert_eq!(controller.line().await, "replicas 5→0");
    // Absent is one, and the server says so.
    place.merge("web", &json!({ "spec": { "replicas": null } })).await?;
    assert_eq!(controller.line().await, "replicas 0→1");
    // Both at once are one change.
    let both = json!({ "spec": { "replicas": 3, "template": { "spec": { "containers": web("1.5") } } } });
    place.merge("web", &both).await?;
    assert_eq!(controller.line().await, "replicas 1→3; image web 1.4→1.5");
    assert_eq!(controller.end().await?.1.reported, 4);
    Ok(())
}

async fn images_of_all_containers_are_told(place: Place) -> Result<()> {
    let two = |tag: &str| json!([{ "name": "web", "image": "shop/web:1" }, { "name": "proxy", "image": format!("envoy:{tag}") }]);
    place.create("web", two("1")).await?;
    let mut controller = Running::start(&place).await?;
    place.containers("web", two("2")).await?;
    assert_eq!(controller.line().await, "image proxy 1→2");
    let init = |image: &str| {
        let container = json!([{ "name": "migrate", "image": image }]);
        json!({ "spec": { "template": { "spec": { "initContainers": container } } } })
    };
    place.merge("web", &init("shop/migrate:1")).await?;
    assert_eq!(controller.line().await, "init container migrate added (shop/migrate:1)");
    place.merge("web", &init("shop/migrate:2")).await?;
    let reported = controller.next().await;
    assert_eq!(reported.change.summary, "image migrate (init) 1→2");
    let change = &reported.change.changes[0];
    assert_eq!(change.path, "/spec/template/spec/initContainers/migrate/image");
    assert_eq!(change.old, Some("shop/migrate:1".into()));
    assert_eq!(change.new, Some("shop/migrate:2".into()));
    place.merge("web", &init("other/migrate:2")).await?;
    assert_eq!(controller.line().await, "image migrate (init) shop/migrate:2→other/migrate:2");
    controller.end().await?;
    Ok(())
}

async fn containers_that_come_and_go_are_told(place: Place) -> Result<()> {
    place.create("web", web("1")).await?;
    let mut controller = Running::start(&place).await?;
    // Before the one that is there: that has moved, and not changed.
    let both = json!([{ "name": "sidecar", "image": "envoy:1.2" }, { "name": "web", "image": "shop/web:1" }]);
    place.containers("web", both).await?;
    assert_eq!(controller.line().await, "container sidecar added (envoy:1.2)");
    place.containers("web", web("2")).await?;
    assert_eq!(controller.line().await, "container sidecar removed (envoy:1.2); image web 1→2");
    controller.end().await?;
    Ok(())
}

async fn what_comes_and_goes_is_told_with_its_state(place: Place) -> Result<()> {
    let mut controller = Running::start(&place).await?;
    let created = place.create("web", web("1.4")).await?;
    let reported = controller.next().await;
    assert_eq!(reported.change.summary, "created; replicas 1; image web shop/web:1.4");
    assert!(reported.old.is_none());
    assert_eq!(created["metadata"]["uid"], reported.change.obj.uid);
    place.scale("web", 2).await?;
    assert_eq!(controller.line().await, "replicas 1→2");
    place.delete("web").await?;
    let reported = controller.next().await;
    assert_eq!((reported.change.what, reported.change.reason), (What::Deleted, None));
    assert_eq!(reported.change.summary, "deleted; replicas 2; image web shop/web:1.4");
    assert!(reported.new.is_none());
    assert_eq!(reported.old.unwrap().view()?.spec.replicas, Some(2));
    assert_eq!(controller.end().await?.1.reported, 3);
    Ok(())
}

async fn what_is_there_at_the_beginning_is_no_change(place: Place) -> Result<()> {
    place.create("first", web("1")).await?;
    place.create("second", web("1")).await?;
    let mut controller = Running::start(&place).await?;
    place.create("third", web("1")).await?;
    let reported = controller.next().await;
    assert_eq!((reported.change.what, reported.change.obj.name.as_str()), (What::Added, "third"));
    // Those of the beginning are known: their changes lead on from there.
    place.scale("first", 2).await?;
    assert_eq!(controller.line().await, "replicas 1→2");
    let (rest, ended) = controller.end().await?;
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!((ended.reported, ended.left), (2, 0));
    Ok(())
}

async fn one_that_is_created_again_is_a_deletion_and_an_addition(place: Place) -> Result<()> {
    let first = place.create("web", web("1")).await?;
    let mut controller = Running::start(&place).await?;
    place.delete("web").await?;
    let second = place.create("web", web("2")).await?;
    let (gone, came) = (controller.next().await, controller.next().await);
    assert_eq!(gone.change.summary, "deleted; replicas 1; image web shop/web:1");
    assert_eq!(first["metadata"]["uid"], gone.change.obj.uid);
    assert_eq!(came.change.summary, "created; replicas 1; image web shop/web:2");
    assert_eq!(second["metadata"]["uid"], came.change.obj.uid);
    controller.end().await?;
    Ok(())
}

async fn who_did_it_is_told(place: Place) -> Result<()> {
    place.create("web", web("1")).await?;
    let mut controller = Running::start(&place).await?;
    let path = format!("{}?fieldManager=somebody", place.path("web"));
    let answer = place.endpoint.merge_patch(&path, &json!({ "spec": { "replicas": 2 } })).await?;
    assert!(answer.status.is_success(), "{answer:?}");
    let actor = controller.next().await.change.actor.unwrap();
    assert_eq!((actor.manager.as_str(), actor.op.as_str()), ("somebody", "Update"));
    controller.end().await?;
    Ok(())
}

async fn what_is_not_tracked_is_told_and_marked(place: Place) -> Result<()> {
    place.create("web", web("1")).await?;
    let mut controller = Running::start(&place).await?;
    place.merge("web", &json!({ "metadata": { "labels": { "tier": "front" } } })).await?;
    let reported = loop {
        let reported = controller.told.recv().await.unwrap();
        if reported.change.classes == [Class::Metadata] {
            break reported;
        }
    };
    assert!(!reported.is_tracked());
    assert_eq!(reported.change.summary, "label tier none→front");
    controller.end().await?;
    Ok(())
}
