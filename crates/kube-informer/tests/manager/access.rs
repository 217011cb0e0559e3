//! Who may see only single objects, on the real server: RBAC with `resourceNames`.

use anyhow::Result;
use kube_informer::connect::Source;
use kube_informer::factory::Factory;
use kube_informer::manager::{AddError, RequestWatch};
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::require;
use serde_json::json;

use crate::harness::{Place, SOON, Told, config_maps, quick, short};

/// Allows a user to see config maps of the test's namespace: all, or those of these names.
async fn allow(place: &Place, user: &str, role: &str, names: &[&str]) -> Result<()> {
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", place.namespace);
    let mut rule =
        json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"] });
    if !names.is_empty() {
        rule["resourceNames"] = json!(names);
    }
    place.post(&format!("{rbac}/roles"), &json!({ "metadata": { "name": role }, "rules": [rule] })).await?;
    let binding = json!({
        "metadata": { "name": role },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    });
    place.post(&format!("{rbac}/rolebindings"), &binding).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_20_who_may_see_single_objects_only_watches_them_by_their_names() -> Result<()> {
    let cluster = require!(Cluster::shared().await, else Ok(()));
    let place = Place::real(cluster.clone(), "resource names").await?;
    let user = format!("user-{}", place.namespace);
    let names = ["a", "b", "c", "d", "e"];
    for name in names.iter().chain(&["hidden"]) {
        place.make(name, "1").await?;
    }
    allow(&place, &user, "some", &names).await?;
    let kubeconfig = cluster.kubeconfig_for_user(&user, &[]).await?;
    let factory = Factory::from_source(Source::file(&kubeconfig)).await?.timings(short());
    let manager = quick(&factory).probe(std::time::Duration::from_millis(500));
    let mut told = Vec::new();
    for name in names {
        let (watch, hears) = Told::of(place.watch(name));
        eventually("the role is known", SOON, async || manager.add(watch.clone()).await.ok()).await;
        told.push(hears);
    }
    assert!(manager.list().iter().all(|watch| !watch.shared));
    let error = manager.add(place.watch("hidden")).await.unwrap_err();
    assert!(matches!(error, AddError::Forbidden { .. }), "{error}");
    for part in [&*user, "hidden", "kubectl auth can-i"] {
        assert!(error.to_string().contains(part), "{part:?} is missing: {error}");
    }
    assert_eq!(manager.list().len(), names.len());
    for name in names {
        place.change(name, "2").await?;
    }
    for told in &told {
        told.knows(Some("2")).await;
    }
    // When more is allowed, that is found out.
    allow(&place, &user, "all", &[]).await?;
    eventually("one informer is for all", SOON, async || {
        (factory.stats().len() == 1 && manager.list().iter().all(|watch| watch.shared)).then_some(())
    })
    .await;
    let other = RequestWatch::new(place.owner("x"), config_maps(), &*place.namespace, "hidden");
    manager.add(other).await?;
    place.remove("a").await?;
    told[0].knows(None).await;
    assert_eq!(told[0].all(), ["+1!", "~2", "-2"]);
    manager.shutdown(SOON).await;
    assert!(factory.stats().is_empty());
    Ok(())
}
