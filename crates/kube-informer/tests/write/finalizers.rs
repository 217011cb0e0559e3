//! Finalizers on objects, with others who write to the same.

use std::cell::Cell;
use std::io;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube_informer::factory::Factory;
use kube_informer::informer::{Informer, Scope};
use kube_informer::object::Object;
use kube_informer::write::{Finalized, Finalizer, FinalizerError, WriteError};
use kube_informer_testbed::proxy::{Answer, Match};
use serde_json::{Value, json};

use crate::harness::{Place, SOON, cached, on_both, through};

on_both! {
    a_finalizer_is_on_the_object_before_anything_is_made,
    an_object_goes_after_its_cleanup_and_not_before,
    finalizers_of_others_stay,
    an_old_cache_does_no_harm,
    an_object_that_goes_gets_no_finalizer,
    what_the_server_refuses_is_told,
    a_lost_answer_is_made_good,
    objects_may_have_odd_names_and_no_namespace,
}

const NAME: &str = "example.com/cleanup";
const OTHER: &str = "example.org/theirs";

fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

impl Place {
    async fn map(&self, finalizers: &[&str]) -> Result<Value> {
        let map = json!({ "metadata": { "name": "it", "finalizers": finalizers }, "data": { "a": "1" } });
        self.post(&self.path("configmaps"), &map).await
    }

    async fn is_there(&self) -> Result<bool> {
        Ok(self.endpoint.get(&self.path("configmaps/it")).await?.status.is_success())
    }

    async fn it(&self) -> Result<Value> {
        self.get(&self.path("configmaps/it")).await
    }

    async fn known(
        &self,
        informer: &Informer<ConfigMap>,
        like: impl Fn(&Object<ConfigMap>) -> bool,
    ) -> Object<ConfigMap> {
        cached(informer, &self.namespace, "it", like).await
    }

    async fn finalizer(&self) -> Result<Finalizer> {
        Ok(Finalizer::of::<ConfigMap>(self.client().await?, NAME))
    }
}

async fn nothing() -> Result<(), io::Error> {
    Ok(())
}

async fn never() -> Result<(), io::Error> {
    panic!("not to be called")
}

async fn a_finalizer_is_on_the_object_before_anything_is_made(place: Place) -> Result<()> {
    place.map(&[OTHER]).await?;
    let (factory, maps) = place.informer::<ConfigMap>().await?;
    let object = place.known(&maps, |_| true).await;
    let finalizer = place.finalizer().await?;
    let apply = async || {
        let now = place.it().await.map_err(io::Error::other)?;
        assert_eq!(finalizers(&now), [OTHER, NAME]);
        Ok::<_, io::Error>("made")
    };
    let done = finalizer.reconcile(&object, apply, never).await?;
    let written = done.written().cloned().expect("it was put on now");
    assert_eq!(done, Finalized::Applied { value: "made", written: Some(written.clone()) });
    maps.caught_up(&written, SOON).await?;
    // The cache has it: nothing more is written.
    let object = maps.get(&place.namespace, "it").unwrap();
    assert!(finalizer.has(&object)?);
    let before = place.it().await?;
    let done = finalizer.reconcile(&object, nothing, never).await?;
    assert_eq!(done.written(), None);
    assert_eq!(place.it().await?, before);
    // What fails says so, and that something was written is not lost.
    let fresh = json!({ "metadata": { "finalizers": [OTHER] } });
    place.merge(&place.path("configmaps/it"), &fresh).await?;
    let object = place.known(&maps, |object| !finalizer.has(object).unwrap()).await;
    let fail = async || Err::<(), _>(io::Error::other("no bucket"));
    let error = finalizer.reconcile(&object, fail, never).await.unwrap_err();
    assert!(
        matches!(&error, FinalizerError::Apply { source, .. } if source.to_string() == "no bucket"),
        "{error}"
    );
    assert!(error.written().is_some() && error.to_string().contains("it was not reconciled"), "{error}");
    place.merge(&place.path("configmaps/it"), &json!({ "metadata": { "finalizers": null } })).await?;
    factory.shutdown().await;
    Ok(())
}

async fn an_object_goes_after_its_cleanup_and_not_before(place: Place) -> Result<()> {
    place.map(&[NAME]).await?;
    let (factory, maps) = place.informer::<ConfigMap>().await?;
    place.delete(&place.path("configmaps/it")).await?;
    let object = place.known(&maps, |object| object.deletion().is_some()).await;
    let finalizer = place.finalizer().await?;
    let calls = Cell::new(0);
    let cleanup = async || {
        calls.set(calls.get() + 1);
        if calls.get() < 3 { Err(io::Error::other("busy")) } else { Ok(()) }
    };
    for _ in 0..2 {
        let error = finalizer.reconcile(&object, never, cleanup).await.unwrap_err();
        assert!(error.to_string().contains("keeps its finalizer"), "{error}");
        assert_eq!(finalizers(&place.it().await?), [NAME], "it stays until it is cleaned up after");
    }
    let done = finalizer.reconcile(&object, never, cleanup).await?;
    assert!(matches!(done, Finalized::CleanedUp { written: Some(_) }), "{done:?}");
    assert!(!place.is_there().await?);
    // Once more, from a cache that does not know: fine.
    let done = finalizer.reconcile(&object, never, nothing).await?;
    assert_eq!(done, Finalized::CleanedUp { written: None });
    factory.shutdown().await;
    Ok(())
}

async fn finalizers_of_others_stay(place: Place) -> Result<()> {
    place.map(&[OTHER, NAME, "example.org/more"]).await?;
    let (factory, maps) = place.informer::<ConfigMap>().await?;
    place.delete(&place.path("configmaps/it")).await?;
    let object = place.known(&maps, |object| object.deletion().is_some()).await;
    // They change behind the cache's back.
    place
        .merge(&place.path("configmaps/it"), &json!({ "metadata": { "finalizers": [OTHER, NAME] } }))
        .await?;
    let finalizer = place.finalizer().await?;
    let written = match finalizer.reconcile(&object, never, nothing).await? {
        Finalized::CleanedUp { written: Some(written) } => written,
        other => panic!("{other:?}"),
    };
    assert_eq!(finalizers(&place.it().await?), [OTHER]);
    maps.caught_up(&written, SOON).await?;
    let object = maps.get(&place.namespace, "it").unwrap();
    assert_eq!(finalizer.reconcile(&object, never, never).await?, Finalized::Going, "the others hold it");
    place.merge(&place.path("configmaps/it"), &json!({ "metadata": { "finalizers": null } })).await?;
    assert!(!place.is_there().await?);
    factory.shutdown().await;
    Ok(())
}

async fn an_old_cache_does_no_harm(place: Place) -> Result<()> {
    place.map(&[]).await?;
    let (factory, maps) = place.informer::<ConfigMap>().await?;
    let object = place.known(&maps, |_| true).await;
    let finalizer = place.finalizer().await?;
    assert!(finalizer.add(&object).await?.is_some());
    assert_eq!(finalizer.add(&object).await?, None, "it has it");
    // Something else of it changes all the time.
    for value in 0..3 {
        let data = json!({ "data": { "a": value.to_string() }, "metadata": { "finalizers": [OTHER] } });
        place.merge(&place.path("configmaps/it"), &data).await?;
        assert!(finalizer.add(&object).await?.is_some());
        assert_eq!(finalizers(&place.it().await?), [OTHER, NAME]);
    }
    assert!(finalizer.remove(&object).await?.is_none(), "as the cache has it, it has none");
    // Another object of the same name is left alone.
    place.merge(&place.path("configmaps/it"), &json!({ "metadata": { "finalizers": null } })).await?;
    place.delete(&place.path("configmaps/it")).await?;
    let error = finalizer.add(&object).await.unwrap_err();
    assert!(error.is_gone(), "{error}");
    place.map(&[]).await?;
    let error = finalizer.add(&object).await.unwrap_err();
    assert!(error.is_gone() && error.to_string().contains("another one of its name"), "{error}");
    assert!(finalizers(&place.it().await?).is_empty());
    factory.shutdown().await;
    Ok(())
}

async fn an_object_that_goes_gets_no_finalizer(place: Place) -> Result<()> {
    place.map(&[OTHER]).await?;
    let (factory, maps) = place.informer::<ConfigMap>().await?;
    let before = place.known(&maps, |_| true).await;
    place.delete(&place.path("configmaps/it")).await?;
    let object = place.known(&maps, |object| object.deletion().is_some()).await;
    let finalizer = place.finalizer().await?;
    // Neither from a cache that knows that it goes, nor from one that does not.
    for object in [&object, &before] {
        assert_eq!(finalizer.reconcile(object, never, never).await?, Finalized::Going);
        assert_eq!(finalizer.add(object).await?, None);
        assert_eq!(finalizers(&place.it().await?), [OTHER]);
    }
    place.merge(&place.path("configmaps/it"), &json!({ "metadata": { "finalizers": null } })).await?;
    factory.shutdown().await;
    Ok(())
}

async fn what_the_server_refuses_is_told(place: Place) -> Result<()> {
    place.map(&[]).await?;
    let (factory, maps) = place.informer::<ConfigMap>().await?;
    let object = place.known(&maps, |_| true).await;
    let bad = Finalizer::of::<ConfigMap>(place.client().await?, "not a name");
    let error = bad.add(&object).await.unwrap_err().to_string();
    assert!(
        error.starts_with("put the finalizer not a name on configmaps ") && error.contains("422"),
        "{error}"
    );
    let proxy = place.proxy().await?;
    let finalizer = Finalizer::of::<ConfigMap>(through(&proxy).await?, NAME);
    proxy.on(Match::write()).answer(Answer::forbidden());
    let error = finalizer.reconcile(&object, never, never).await.unwrap_err().to_string();
    assert!(error.contains("403"), "{error}");
    proxy.heal();
    // An object that always changes is given up, for now.
    let conflict = Answer::status(409, "Conflict", "the object has been modified");
    let fault = proxy.on(Match::write()).answer(conflict);
    let error = finalizer.add(&object).await.unwrap_err().to_string();
    assert!(error.contains("5 times; try again"), "{error}");
    assert_eq!(fault.applied(), 5);
    proxy.go_down().await;
    // Refused, or closed where a connection was kept.
    let error = finalizer.add(&object).await.unwrap_err();
    assert!(matches!(error, WriteError::Failed { .. }), "{error}");
    assert!(error.to_string().starts_with("put the finalizer example.com/cleanup on configmaps "), "{error}");
    factory.shutdown().await;
    Ok(())
}

async fn a_lost_answer_is_made_good(place: Place) -> Result<()> {
    place.map(&[]).await?;
    let (factory, maps) = place.informer::<ConfigMap>().await?;
    let object = place.known(&maps, |_| true).await;
    let proxy = place.proxy().await?;
    let finalizer = Finalizer::of::<ConfigMap>(through(&proxy).await?, NAME);
    // The server does it, and nobody hears of it.
    proxy.on(Match::write()).once().cut_after_bytes(1);
    finalizer.reconcile(&object, never, never).await.unwrap_err();
    assert_eq!(finalizers(&place.it().await?), [NAME]);
    let done = finalizer.reconcile(&object, nothing, never).await?;
    assert_eq!(done, Finalized::Applied { value: (), written: None });
    place.merge(&place.path("configmaps/it"), &json!({ "metadata": { "finalizers": null } })).await?;
    factory.shutdown().await;
    Ok(())
}

async fn objects_may_have_odd_names_and_no_namespace(place: Place) -> Result<()> {
    let name = format!("odd: {} ?#", place.namespace);
    let role = json!({ "metadata": { "name": name }, "rules": [] });
    place.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await?;
    let factory = Factory::from_config(place.config().await?).await?;
    let roles = factory.informer::<ClusterRole>(Scope::All);
    factory.start();
    factory.synced(SOON).await?;
    let finalizer = Finalizer::of::<ClusterRole>(place.client().await?, NAME);
    let object = cached(&roles, "", &name, |_| true).await;
    let written = finalizer.add(&object).await?.expect("it is new");
    roles.caught_up(&written, SOON).await?;
    let object = roles.get("", &name).unwrap();
    assert!(finalizer.has(&object)?);
    assert!(finalizer.remove(&object).await?.is_some());
    let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/odd:%20{}%20%3F%23", place.namespace);
    place.delete(&path).await?;
    factory.shutdown().await;
    Ok(())
}
