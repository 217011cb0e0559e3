//! How targets are woken and put to sleep: through `/scale`, by what is wanted, never to zero by accident.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, ReplicationController};
use kube_client::Client;
use kube_informer::factory::Factory;
use kube_informer::resource::Resource;
use kube_informer_elasti::scale::{ScaleError, Scaler};
use kube_informer_testbed::proxy::{Answer, Match};
use serde_json::{Value, json};

use crate::harness::{Place, SOON, definition, on_both, pod_spec, through};

on_both! {
    a_target_that_sleeps_is_woken_and_put_to_sleep,
    waking_never_takes_replicas_away,
    waking_to_nothing_is_refused,
    what_is_wanted_counts_and_not_what_is_there,
    all_kinds_of_workloads_are_scaled,
    odd_paths_are_written_where_they_lead,
    what_says_nothing_of_replicas_has_one,
    of_many_who_wake_at_once_the_highest_counts,
    a_conflict_is_tried_again_and_not_for_ever,
    what_others_write_in_between_is_not_undone,
    what_is_not_there_or_cannot_be_scaled_says_so,
    what_is_not_allowed_says_what_to_allow,
    what_the_server_says_is_told,
    a_server_that_is_silent_is_not_waited_for_long,
    a_name_that_leads_elsewhere_leads_nowhere,
}

async fn wanted(place: &Place, path: &str) -> Result<Value> {
    Ok(place.get(&place.path(path)).await?["spec"]["replicas"].clone())
}

async fn a_target_that_sleeps_is_woken_and_put_to_sleep(place: Place) -> Result<()> {
    place.workload("deployments", "web", 0, 0).await?;
    let deployments = Resource::of::<Deployment>();
    let factory = Factory::new(place.client().await?);
    for scaler in [Scaler::new(place.client().await?), Scaler::of(&factory)] {
        let scaled = scaler.up(&deployments, &place.namespace, "web", 2).await?;
        assert_eq!((scaled.before, scaled.now, scaled.written.is_some()), (0, 2, true));
        assert_eq!(wanted(&place, "apps/v1/deployments/web").await?, 2);
        let version =
            place.get(&place.path("apps/v1/deployments/web")).await?["metadata"]["resourceVersion"].clone();
        let again = scaler.up(&deployments, &place.namespace, "web", 2).await?;
        assert_eq!((again.before, again.now, again.written), (2, 2, None));
        let now =
            place.get(&place.path("apps/v1/deployments/web")).await?["metadata"]["resourceVersion"].clone();
        assert_eq!(version, now, "nothing was written");
        let asleep = scaler.down_to_zero(&deployments, &place.namespace, "web").await?;
        assert_eq!((asleep.before, asleep.now, asleep.written.is_some()), (2, 0, true));
        assert_eq!(wanted(&place, "apps/v1/deployments/web").await?, 0);
        let again = scaler.down_to_zero(&deployments, &place.namespace, "web").await?;
        assert_eq!((again.before, again.now, again.written), (0, 0, None));
    }
    Ok(())
}

async fn waking_never_takes_replicas_away(place: Place) -> Result<()> {
    place.workload("deployments", "web", 5, 5).await?;
    let scaler = Scaler::new(place.client().await?);
    let scaled = scaler.up(&Resource::of::<Deployment>(), &place.namespace, "web", 2).await?;
    assert_eq!((scaled.before, scaled.now, scaled.written), (5, 5, None));
    assert_eq!(wanted(&place, "apps/v1/deployments/web").await?, 5);
    Ok(())
}

async fn waking_to_nothing_is_refused(place: Place) -> Result<()> {
    place.workload("deployments", "web", 3, 3).await?;
    let scaler = Scaler::new(place.client().await?);
    for to in [0, -1, i32::MIN] {
        let error = scaler.up(&Resource::of::<Deployment>(), &place.namespace, "web", to).await.unwrap_err();
        assert!(matches!(error, ScaleError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("minTargetReplicas"), "{error}");
    }
    assert_eq!(wanted(&place, "apps/v1/deployments/web").await?, 3);
    Ok(())
}

async fn what_is_wanted_counts_and_not_what_is_there(place: Place) -> Result<()> {
    let scaler = Scaler::new(place.client().await?);
    let deployments = Resource::of::<Deployment>();
    // Put to sleep, and its pods are still there: it is woken all the same.
    place.workload("deployments", "going", 0, 2).await?;
    assert_eq!(scaler.up(&deployments, &place.namespace, "going", 1).await?.now, 1);
    assert_eq!(wanted(&place, "apps/v1/deployments/going").await?, 1);
    // Woken, and nothing is there yet: it is put to sleep all the same.
    place.workload("deployments", "coming", 1, 0).await?;
    assert_eq!(scaler.down_to_zero(&deployments, &place.namespace, "coming").await?.before, 1);
    assert_eq!(wanted(&place, "apps/v1/deployments/coming").await?, 0);
    Ok(())
}

async fn all_kinds_of_workloads_are_scaled(place: Place) -> Result<()> {
    let scaler = Scaler::new(place.client().await?);
    for (plural, resource) in [
        ("deployments", Resource::of::<Deployment>()),
        ("statefulsets", Resource::of::<StatefulSet>()),
        ("replicasets", Resource::of::<ReplicaSet>()),
    ] {
        place.workload(plural, "web", 0, 0).await?;
        assert_eq!(scaler.up(&resource, &place.namespace, "web", 3).await?.now, 3, "{plural}");
        assert_eq!(wanted(&place, &format!("apps/v1/{plural}/web")).await?, 3);
        assert_eq!(scaler.down_to_zero(&resource, &place.namespace, "web").await?.now, 0, "{plural}");
    }
    let labels = json!({ "app": "old" });
    let old = json!({
        "apiVersion": "v1", "kind": "ReplicationController", "metadata": { "name": "old" },
        "spec": { "replicas": 0, "selector": labels, "template": { "metadata": { "labels": labels }, "spec": pod_spec() } },
    });
    place.post(&place.path("replicationcontrollers"), &old).await?;
    let controllers = Resource::of::<ReplicationController>();
    assert_eq!(scaler.up(&controllers, &place.namespace, "old", 1).await?.now, 1);
    Ok(())
}

/// A kind whose replicas are elsewhere.
async fn odd(place: &Place) -> Result<Resource> {
    let scale = json!({
        "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.current",
        "labelSelectorPath": ".status.selectorText",
    });
    place.define(&definition(&place.group(), "oddities", "Oddity", &scale)).await?;
    Ok(Resource {
        group: place.group(),
        version: "v1alpha1".to_owned(),
        plural: "oddities".to_owned(),
        kind: "Oddity".to_owned(),
        namespaced: true,
    })
}

async fn odd_paths_are_written_where_they_lead(place: Place) -> Result<()> {
    let oddities = odd(&place).await?;
    let path = oddities.path(Some(&place.namespace));
    let object = json!({
        "apiVersion": oddities.api_version(), "kind": "Oddity", "metadata": { "name": "it" },
        "spec": { "size": 0, "replicas": 7 },
    });
    place.post(&path, &object).await?;
    let scaler = Scaler::new(place.client().await?);
    let scaled = scaler.up(&oddities, &place.namespace, "it", 2).await?;
    assert_eq!((scaled.before, scaled.now), (0, 2));
    assert_eq!(place.get(&format!("{path}/it")).await?["spec"], json!({ "size": 2, "replicas": 7 }));
    assert_eq!(scaler.down_to_zero(&oddities, &place.namespace, "it").await?.before, 2);
    assert_eq!(place.get(&format!("{path}/it")).await?["spec"], json!({ "size": 0, "replicas": 7 }));
    Ok(())
}

async fn what_says_nothing_of_replicas_has_one(place: Place) -> Result<()> {
    let oddities = odd(&place).await?;
    let path = oddities.path(Some(&place.namespace));
    let object = json!({ "apiVersion": oddities.api_version(), "kind": "Oddity", "metadata": { "name": "it" }, "spec": {} });
    place.post(&path, &object).await?;
    let scaler = Scaler::new(place.client().await?);
    let scaled = scaler.up(&oddities, &place.namespace, "it", 1).await?;
    assert_eq!((scaled.before, scaled.now, scaled.written), (1, 1, None));
    for result in [
        scaler.up(&oddities, &place.namespace, "it", 2).await,
        scaler.down_to_zero(&oddities, &place.namespace, "it").await,
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.reason(), "ReplicasUnset", "{error}");
    }
    Ok(())
}

async fn of_many_who_wake_at_once_the_highest_counts(place: Place) -> Result<()> {
    place.workload("deployments", "web", 0, 0).await?;
    let scaler = Scaler::new(place.client().await?);
    let deployments = Resource::of::<Deployment>();
    let wakes = (1..=5).map(|to| scaler.up(&deployments, &place.namespace, "web", to));
    for woken in futures_util::future::join_all(wakes).await {
        woken?;
    }
    assert_eq!(wanted(&place, "apps/v1/deployments/web").await?, 5);
    Ok(())
}

async fn a_conflict_is_tried_again_and_not_for_ever(place: Place) -> Result<()> {
    place.workload("deployments", "web", 0, 0).await?;
    let proxy = place.proxy().await?;
    let scaler = Scaler::new(Client::try_from(through(&proxy).await?)?);
    let deployments = Resource::of::<Deployment>();
    let conflict = || Answer::status(409, "Conflict", "the object has been modified");
    let writes = || Match::write().path_contains("/scale");
    let fault = proxy.on(writes()).times(3).answer(conflict());
    assert_eq!(scaler.up(&deployments, &place.namespace, "web", 1).await?.now, 1);
    assert_eq!(fault.applied(), 3);
    let fault = proxy.on(writes()).answer(conflict());
    let error = scaler.up(&deployments, &place.namespace, "web", 2).await.unwrap_err();
    assert!(matches!(error, ScaleError::Contended { times: 6, .. }) && error.is_transient(), "{error}");
    assert_eq!(fault.applied(), 6);
    Ok(())
}

async fn what_others_write_in_between_is_not_undone(place: Place) -> Result<()> {
    place.workload("deployments", "web", 0, 0).await?;
    let proxy = place.proxy().await?;
    let scaler = Scaler::new(Client::try_from(through(&proxy).await?)?);
    // Somebody else scales it higher between our read and our write.
    let held = proxy.on(Match::write().path_contains("/scale")).once().stall();
    let deployments = Resource::of::<Deployment>();
    let waking = {
        let (scaler, namespace) = (scaler.clone(), place.namespace.clone());
        tokio::spawn(async move { scaler.up(&deployments, &namespace, "web", 2).await })
    };
    held.wait_applied(1).await;
    place.merge(&place.path("apps/v1/deployments/web"), &json!({ "spec": { "replicas": 9 } })).await?;
    held.release();
    let scaled = waking.await??;
    assert_eq!(wanted(&place, "apps/v1/deployments/web").await?, 9, "{scaled:?}");
    assert_eq!((scaled.before, scaled.now, scaled.written), (9, 9, None));
    Ok(())
}

async fn what_is_not_there_or_cannot_be_scaled_says_so(place: Place) -> Result<()> {
    let scaler = Scaler::new(place.client().await?);
    let error = scaler.up(&Resource::of::<Deployment>(), &place.namespace, "nobody", 1).await.unwrap_err();
    assert_eq!((error.reason(), error.is_transient()), ("TargetNotFound", false), "{error}");
    for words in ["scale up to 1 deployments.v1.apps", "/nobody", "spec.scaleTargetRef"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "it" } });
    place.post(&place.path("configmaps"), &map).await?;
    let error = scaler.down_to_zero(&Resource::of::<ConfigMap>(), &place.namespace, "it").await.unwrap_err();
    assert_eq!(error.reason(), "NotScalable", "{error}");
    // A definition without a scale subresource.
    place.define(&definition(&place.group(), "plains", "Plain", &Value::Null)).await?;
    let plains = Resource {
        group: place.group(),
        version: "v1alpha1".to_owned(),
        plural: "plains".to_owned(),
        kind: "Plain".to_owned(),
        namespaced: true,
    };
    let object = json!({ "apiVersion": plains.api_version(), "kind": "Plain", "metadata": { "name": "it" } });
    place.post(&plains.path(Some(&place.namespace)), &object).await?;
    let error = scaler.up(&plains, &place.namespace, "it", 1).await.unwrap_err();
    assert_eq!(error.reason(), "NotScalable", "{error}");
    let error = scaler.up(&plains, &place.namespace, "nobody", 1).await.unwrap_err();
    assert_eq!(error.reason(), "TargetNotFound", "{error}");
    Ok(())
}

async fn what_is_not_allowed_says_what_to_allow(place: Place) -> Result<()> {
    place.workload("deployments", "web", 0, 0).await?;
    let proxy = place.proxy().await?;
    let scaler = Scaler::new(Client::try_from(through(&proxy).await?)?);
    for requests in [Match::get(), Match::write()] {
        let fault = proxy.on(requests.path_contains("/scale")).answer(Answer::forbidden());
        let error = scaler.up(&Resource::of::<Deployment>(), &place.namespace, "web", 1).await.unwrap_err();
        assert_eq!((error.reason(), error.is_transient()), ("Forbidden", false), "{error}");
        assert!(error.to_string().contains("deployments/scale in the group \"apps\""), "{error}");
        fault.remove();
    }
    Ok(())
}

async fn what_the_server_says_is_told(place: Place) -> Result<()> {
    place.workload("deployments", "web", 0, 0).await?;
    let proxy = place.proxy().await?;
    let scaler = Scaler::new(Client::try_from(through(&proxy).await?)?);
    let deployments = Resource::of::<Deployment>();
    let denied = Answer::status(422, "Invalid", "admission webhook says: at most none");
    for (answer, reason, words) in [
        (Answer::internal_error(), "Failed", "try again"),
        (Answer::html(502), "Failed", "try again"),
        (denied, "Rejected", "at most none"),
    ] {
        let fault = proxy.on(Match::write().path_contains("/scale")).answer(answer);
        let error = scaler.up(&deployments, &place.namespace, "web", 1).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        fault.remove();
    }
    proxy.go_down().await;
    let error = scaler.up(&deployments, &place.namespace, "web", 1).await.unwrap_err();
    assert_eq!((error.reason(), error.is_transient()), ("Failed", true), "{error}");
    proxy.accept_connections().await;
    assert_eq!(scaler.up(&deployments, &place.namespace, "web", 1).await?.now, 1);
    Ok(())
}

async fn a_server_that_is_silent_is_not_waited_for_long(place: Place) -> Result<()> {
    place.workload("deployments", "web", 0, 0).await?;
    let proxy = place.proxy().await?;
    let scaler = Scaler::new(Client::try_from(through(&proxy).await?)?).patience(Duration::from_millis(200));
    for requests in [Match::get(), Match::write()] {
        let held = proxy.on(requests.path_contains("/scale")).stall();
        let error = scaler.up(&Resource::of::<Deployment>(), &place.namespace, "web", 1).await.unwrap_err();
        assert_eq!((error.reason(), error.is_transient()), ("NoAnswer", true), "{error}");
        held.remove();
    }
    let scaler = scaler.patience(SOON);
    assert_eq!(scaler.up(&Resource::of::<Deployment>(), &place.namespace, "web", 1).await?.now, 1);
    Ok(())
}

async fn a_name_that_leads_elsewhere_leads_nowhere(place: Place) -> Result<()> {
    place.workload("deployments", "web", 0, 0).await?;
    place.workload("statefulsets", "web", 0, 0).await?;
    let scaler = Scaler::new(place.client().await?);
    for name in ["../statefulsets/web", "..", ".", "", "web/scale", "web?dryRun=All", "we b", "%77eb"] {
        let result = scaler.up(&Resource::of::<Deployment>(), &place.namespace, name, 1).await;
        assert!(result.is_err(), "{name:?}: {result:?}");
    }
    for path in ["apps/v1/deployments/web", "apps/v1/statefulsets/web"] {
        assert_eq!(wanted(&place, path).await?, 0);
    }
    Ok(())
}
