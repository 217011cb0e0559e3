//! Who is told: handlers, and controllers.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube_informer::controller::{Action, Context, Controller, Request};
use kube_informer::informer::Scope;
use kube_informer::manager::{RequestWatch, WatchEvent};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::on_both;
use serde_json::json;

use crate::harness::{Place, SOON, Told, config_maps};

on_both! {
    a_handler_that_fails_is_called_again_until_it_succeeds,
    promise_20_owners_are_reconciled_when_what_is_watched_for_them_changes,
}

async fn a_handler_that_fails_is_called_again_until_it_succeeds(place: Place) -> Result<()> {
    place.make("a", "1").await?;
    let manager = place.manager().await?;
    let calls = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&calls);
    let (fails, hears) = Told::of(place.watch("b").wait_for_target());
    let watch = place.watch("a").on(move |_: WatchEvent| {
        let call = counts.fetch_add(1, Ordering::Relaxed);
        async move { if call < 5 { Err(format!("failure {call}")) } else { Ok(()) } }
    });
    manager.add(watch).await?;
    manager.add(fails).await?;
    eventually("it was called again", SOON, async || (calls.load(Ordering::Relaxed) >= 6).then_some(()))
        .await;
    place.make("b", "1").await?;
    hears.knows(Some("1")).await;
    eventually("no failure is left", SOON, async || (manager.list()[0].failures == 0).then_some(())).await;
    assert_eq!(calls.load(Ordering::Relaxed), 6, "and no more often than that");
    manager.shutdown(SOON).await;
    Ok(())
}

async fn promise_20_owners_are_reconciled_when_what_is_watched_for_them_changes(place: Place) -> Result<()> {
    let factory = place.factory().await?;
    let manager = crate::harness::quick(&factory);
    let secret = |name: &str| json!({ "metadata": { "name": name } });
    for name in ["one", "two"] {
        place.post(&place.path("secrets"), &secret(name)).await?;
        place.make(name, "1").await?;
    }
    let reconciled = Arc::new(Mutex::new(Vec::<Request>::new()));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let controller = {
        let (manager, reconciled, namespace) =
            (manager.clone(), Arc::clone(&reconciled), place.namespace.clone());
        let requests = manager.requests();
        let reconcile = move |context: Context<Secret>| {
            let (manager, reconciled, namespace) =
                (manager.clone(), Arc::clone(&reconciled), namespace.clone());
            async move {
                let owner = context.request();
                // Every reconcile asks for it: it is there once.
                let watch = RequestWatch::new(owner, config_maps(), namespace, owner.name());
                manager.add(watch.wait_for_target()).await?;
                reconciled.lock().unwrap().push(owner.clone());
                anyhow::Ok(Action::done())
            }
        };
        let controller = Controller::new(&factory)
            .for_informer(&factory.informer::<Secret>(Scope::namespace(&*place.namespace)))
            .external(requests);
        tokio::spawn(async move { controller.run(reconcile, async { drop(stopped.await) }).await })
    };
    let names = || {
        let seen = reconciled.lock().unwrap();
        seen.iter().map(|request| request.name().to_owned()).collect::<BTreeSet<_>>()
    };
    eventually("both are reconciled", SOON, async || (names().len() == 2).then_some(())).await;
    eventually("both are watched", SOON, async || {
        let list = manager.list();
        (list.len() == 2 && list.iter().all(|watch| watch.state.as_str() == "live")).then_some(())
    })
    .await;
    // What comes of the beginning is over when each was reconciled for its watch, too.
    eventually("each twice", SOON, async || {
        let seen = reconciled.lock().unwrap();
        ["one", "two"]
            .iter()
            .all(|name| seen.iter().filter(|each| each.name() == *name).count() >= 2)
            .then_some(())
    })
    .await;
    reconciled.lock().unwrap().clear();
    place.change("two", "2").await?;
    eventually("the owner is reconciled", SOON, async || names().contains("two").then_some(())).await;
    assert!(!names().contains("one"), "and nobody else");
    place.remove("one").await?;
    eventually("of a deletion, too", SOON, async || names().contains("one").then_some(())).await;
    assert_eq!(manager.stop_for_owner(&place.owner("one")).await, 1);
    drop(stop);
    controller.await??;
    manager.shutdown(SOON).await;
    Ok(())
}
