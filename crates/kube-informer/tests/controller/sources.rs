use std::time::Duration;

use anyhow::Result;
use futures_util::stream;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube_informer::controller::{Request, RunError, predicate};
use kube_informer_testbed::proxy::{Answer, Match};
use serde_json::json;
use tokio::sync::mpsc;

use crate::harness::{Place, on_both};
use crate::play::{Owned, Play, Running, Seen, owners, watching};
use crate::stage::short;

on_both! {
    promise_18_keys_come_from_the_kind_what_it_owns_what_it_watches_and_elsewhere,
    the_old_and_the_new_owner_are_reconciled,
    predicates_say_what_matters,
    promise_18_nothing_is_reconciled_before_every_required_source_is_there,
    promise_18_an_optional_source_may_come_later,
    a_required_source_that_is_missing_is_named_with_the_reason,
    no_key_is_lost_in_an_outage,
}

async fn promise_18_keys_come_from_the_kind_what_it_owns_what_it_watches_and_elsewhere(
    place: Place,
) -> Result<()> {
    let play = Play::at(place, short()).await?;
    let one = play.make("one").await?;
    let namespace = play.stage.place.namespace.clone();
    let (elsewhere, keys) = mpsc::unbounded_channel();
    let keys = stream::unfold(keys, async |mut keys: mpsc::UnboundedReceiver<Request>| {
        Some((keys.recv().await?, keys))
    });
    let controller = play
        .controller()
        .owns::<Owned>()
        .watches::<ServiceAccount>(move |account| {
            let names = account.labels().get("for").map(|name| Request::new(&namespace, name));
            names.into_iter().collect()
        })
        .external(keys)
        .workers(4);
    let seen = Seen::default();
    let running = Running::start(controller, watching(&seen));
    // What there was.
    seen.value("one", Some("0")).await;
    // What changes.
    play.change("one", "1").await?;
    seen.value("one", Some("1")).await;
    play.make("two").await?;
    seen.value("two", Some("0")).await;
    // What belongs to it: new, changed, gone.
    let before = seen.count("one");
    play.owned("child", &one).await?;
    let before = seen.more("one", before).await;
    let child = play.stage.place.path("secrets/child");
    play.stage.place.merge(&child, &json!({ "metadata": { "labels": { "a": "b" } } })).await?;
    let before = seen.more("one", before).await;
    play.stage.place.delete(&child).await?;
    let before = seen.more("one", before).await;
    // What is watched.
    let account = json!({ "metadata": { "name": "watched", "labels": { "for": "one" } } });
    play.stage.place.post(&play.stage.place.path("serviceaccounts"), &account).await?;
    let before = seen.more("one", before).await;
    // From elsewhere, also for what there is not.
    elsewhere.send(Request::new(&play.stage.place.namespace, "one"))?;
    seen.more("one", before).await;
    elsewhere.send(Request::new(&play.stage.place.namespace, "nobody"))?;
    seen.value("nobody", None).await;
    // What goes.
    play.stage.remove("one").await?;
    seen.value("one", None).await;
    assert_eq!(running.stop().await?.busy, []);
    play.factory.shutdown().await;
    Ok(())
}

async fn the_old_and_the_new_owner_are_reconciled(place: Place) -> Result<()> {
    let play = Play::at(place, short()).await?;
    let (old, new) = (play.make("old").await?, play.make("new").await?);
    play.owned("child", &old).await?;
    let seen = Seen::default();
    let running = Running::start(play.controller().owns::<Owned>(), watching(&seen));
    let before = (seen.more("old", 0).await, seen.more("new", 0).await);
    let patch = json!({ "metadata": { "ownerReferences": owners(&new) } });
    play.stage.place.merge(&play.stage.place.path("secrets/child"), &patch).await?;
    seen.more("old", before.0).await;
    seen.more("new", before.1).await;
    running.stop().await?;
    play.factory.shutdown().await;
    Ok(())
}

async fn predicates_say_what_matters(place: Place) -> Result<()> {
    let play = Play::at(place, short()).await?;
    play.make("one").await?;
    let seen = Seen::default();
    let running = Running::start(play.controller().when(predicate::labels()), watching(&seen));
    seen.value("one", Some("0")).await;
    play.change("one", "1").await?;
    // What comes later comes after it.
    play.make("two").await?;
    seen.value("two", Some("0")).await;
    assert_eq!(seen.count("one"), 1, "its data does not matter");
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    play.stage.place.merge(&play.stage.place.path("configmaps/one"), &patch).await?;
    seen.value("one", Some("1")).await;
    running.stop().await?;
    play.factory.shutdown().await;
    Ok(())
}

async fn promise_18_nothing_is_reconciled_before_every_required_source_is_there(place: Place) -> Result<()> {
    let play = Play::at(place, short()).await?;
    play.make("one").await?;
    let secrets =
        play.stage.proxy.on(Match::any().path_contains("/secrets")).answer(Answer::internal_error());
    let seen = Seen::default();
    let running = Running::start(play.controller().owns::<Owned>(), watching(&seen));
    play.config_maps().synced(crate::harness::SOON).await?;
    // It was refused several times, and still is.
    secrets.wait_applied(5).await;
    assert_eq!(seen.count("one"), 0);
    secrets.remove();
    seen.value("one", Some("0")).await;
    running.stop().await?;
    play.factory.shutdown().await;
    Ok(())
}

async fn promise_18_an_optional_source_may_come_later(place: Place) -> Result<()> {
    let play = Play::at(place, short()).await?;
    let one = play.make("one").await?;
    let secrets =
        play.stage.proxy.on(Match::any().path_contains("/secrets")).answer(Answer::internal_error());
    let seen = Seen::default();
    let running = Running::start(play.controller().owns::<Owned>().optional(), watching(&seen));
    let before = seen.more("one", 0).await;
    play.owned("child", &one).await?;
    secrets.remove();
    seen.more("one", before).await;
    running.stop().await?;
    play.factory.shutdown().await;
    Ok(())
}

async fn a_required_source_that_is_missing_is_named_with_the_reason(place: Place) -> Result<()> {
    let play = Play::at(place, short()).await?;
    let secrets =
        play.stage.proxy.on(Match::any().path_contains("/secrets")).answer(Answer::internal_error());
    let seen = Seen::default();
    let controller = play.controller().name("pairs").owns::<Owned>();
    let running = Running::start(controller.sync_deadline(Duration::from_secs(2)), watching(&seen));
    let error = running.end().await;
    assert!(matches!(&error, RunError::NotSynced { missing, .. } if missing.len() == 1), "{error}");
    let text = error.to_string();
    for part in ["\"pairs\"", "secrets", "stale since", "etcdserver: request timed out"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(secrets.applied() > 0);
    play.factory.shutdown().await;
    Ok(())
}

async fn no_key_is_lost_in_an_outage(place: Place) -> Result<()> {
    let play = Play::at(place, short()).await?;
    for name in ["changes", "goes", "again", "stays"] {
        play.make(name).await?;
    }
    let (old, new) = (play.make("old").await?, play.make("new").await?);
    play.owned("moves", &old).await?;
    play.owned("ends", &old).await?;
    let seen = Seen::default();
    let running = Running::start(play.controller().owns::<Owned>().workers(2), watching(&seen));
    for name in ["changes", "goes", "again", "stays", "old", "new"] {
        seen.value(name, Some("0")).await;
    }
    let (stays, before, other) = (seen.count("stays"), seen.count("old"), seen.count("new"));
    play.stage.proxy.go_down().await;
    play.change("changes", "1").await?;
    play.stage.remove("goes").await?;
    play.stage.remove("again").await?;
    let again =
        json!({ "metadata": { "name": "again", "labels": { "made": "here" } }, "data": { "key": "2" } });
    let place = &play.stage.place;
    place.post(&place.path("configmaps"), &again).await?;
    let patch = json!({ "metadata": { "ownerReferences": owners(&new) } });
    place.merge(&place.path("secrets/moves"), &patch).await?;
    place.delete(&place.path("secrets/ends")).await?;
    // The versions of before are too old: everything is listed anew.
    play.stage.proxy.on(Match::watch()).times(2).answer(Answer::gone());
    play.stage.proxy.accept_connections().await;
    seen.value("changes", Some("1")).await;
    seen.value("goes", None).await;
    seen.value("again", Some("2")).await;
    seen.more("old", before).await;
    seen.more("new", other).await;
    assert_eq!(seen.count("stays"), stays, "nothing happened to it");
    running.stop().await?;
    play.factory.shutdown().await;
    Ok(())
}
