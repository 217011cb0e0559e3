//! Snapshots, changes, modes and selectors.

use std::collections::BTreeSet;

use anyhow::Result;
use kube_informer_feed::change::{Change, Class, Reason, What};
use kube_informer_feed::message::{Message, StatusState};
use serde_json::json;

use crate::client::{Client, Replay};
use crate::harness::{Place, on_both};

on_both! {
    a_client_gets_what_there_is_and_then_what_changes,
    a_client_that_names_no_subprotocol_is_told_of_everything,
    whoever_selects_is_told_what_enters_and_leaves,
    nobody_is_said_to_have_deleted_a_pod_or_given_it_its_node,
    nothing_is_missed_or_doubled_between_snapshot_and_changes,
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Namespaces of the real server have a config map of their own.
const OURS: &str = "app in (web,api)";

async fn a_client_gets_what_there_is_and_then_what_changes(place: Place) -> Result<()> {
    place.add("a", "web", "1").await?;
    let feed = place.feed().await?;
    let mut client = feed.client().await?;
    assert_eq!(client.hello.resources, ["v1/configmaps"]);
    client.sub("s1", json!({ "labels": OURS })).await?;
    let (found, cursor) = client.snapshot("s1").await?;
    assert_eq!(found, names(&["a"]));

    feed.place.change("a", "2").await?;
    let changed = client.change().await?;
    assert_eq!(
        (changed.change.what, changed.subs.as_slice()),
        (What::Modified, ["s1".to_owned()].as_slice())
    );
    assert_eq!(changed.change.classes, [Class::Config]);
    let field = &changed.change.changes[0];
    assert_eq!(
        (field.path.as_str(), &field.old, &field.new),
        ("/data/key", &Some(json!("1")), &Some(json!("2")))
    );
    assert!(changed.cursor.seq > cursor.seq && changed.object.is_none());

    feed.place.add("b", "web", "1").await?;
    assert_eq!(client.change().await?.change.what, What::Added);
    feed.place.remove("a").await?;
    let deleted = client.change().await?;
    assert_eq!(
        (deleted.change.what, deleted.change.obj.name.as_str(), deleted.change.reason),
        (What::Deleted, "a", None)
    );

    // It ends when it is asked to.
    client.send(&json!({ "op": "unsub", "id": "s1" })).await?;
    client.send(&json!({ "op": "unsub", "id": "s1" })).await?;
    assert_eq!(client.err().await?.0, 404);
    feed.place.change("b", "2").await?;
    client.sub("s2", json!({ "labels": OURS, "mode": "notify" })).await?;
    assert_eq!(client.snapshot("s2").await?.0, names(&["b"]));
    feed.place.change("b", "3").await?;
    let changed = client.change().await?;
    assert_eq!((changed.subs.as_slice(), changed.change.changes.len()), (["s2".to_owned()].as_slice(), 0));
    Ok(())
}

async fn a_client_that_names_no_subprotocol_is_told_of_everything(place: Place) -> Result<()> {
    place.add("a", "web", "1").await?;
    let feed = place.feed().await?;
    let mut client = Client::plain(&feed.server.url()).await?;
    let (found, _) = client.snapshot("v1/configmaps").await?;
    assert!(found.contains("a"));
    feed.place.change("a", "2").await?;
    let changed = client.change().await?;
    assert_eq!(changed.change.obj.name, "a");
    assert!(changed.change.summary.contains("key"), "{}", changed.change.summary);
    Ok(())
}

async fn whoever_selects_is_told_what_enters_and_leaves(place: Place) -> Result<()> {
    place.add("a", "web", "1").await?;
    place.add("b", "api", "1").await?;
    let feed = place.feed().await?;
    let mut client = feed.client().await?;
    client.sub("web", json!({ "labels": "app=web", "mode": "full" })).await?;
    assert_eq!(client.snapshot("web").await?.0, names(&["a"]));
    let mut all = feed.client().await?;
    all.sub("all", json!({ "labels": OURS })).await?;
    all.snapshot("all").await?;

    // Who labels it is who brings it in, and not who made it.
    let label = async |name: &str, app: &str, manager: &str| {
        let path = feed.place.path(&format!("configmaps/{name}?fieldManager={manager}"));
        feed.place.merge(&path, &json!({ "metadata": { "labels": { "app": app } } })).await
    };
    let by = |change: &Change| change.actor.as_ref().map(|actor| actor.manager.clone());
    label("b", "web", "bringer").await?;
    let entered = client.change().await?;
    assert_eq!((entered.change.what, entered.change.reason), (What::Added, Some(Reason::EnteredSelector)));
    assert_eq!(by(&entered.change).as_deref(), Some("bringer"));
    assert_eq!(entered.object.unwrap()["data"]["key"], "1");
    label("a", "api", "taker").await?;
    let left = client.change().await?;
    assert_eq!((left.change.what, left.change.reason), (What::Deleted, Some(Reason::LeftSelector)));
    assert_eq!(by(&left.change).as_deref(), Some("taker"));
    assert_eq!(left.change.obj.name, "a");
    // What is outside is not told: the next is of the one inside.
    feed.place.change("a", "2").await?;
    feed.place.change("b", "2").await?;
    let changed = client.change().await?;
    assert_eq!((changed.change.obj.name.as_str(), changed.change.what), ("b", What::Modified));
    // Whoever selects more sees each as what it is.
    let mut times = Vec::new();
    for name in ["b", "a", "a", "b"] {
        let change = all.change().await?.change;
        assert_eq!((change.obj.name.as_str(), change.what, change.reason), (name, What::Modified, None));
        times.push(change.time);
    }
    assert_eq!(times[..2], [entered.change.time, left.change.time], "one change has one time");
    // Other namespaces are not selected.
    client.sub("other", json!({ "ns": ["elsewhere"] })).await?;
    assert_eq!(client.snapshot("other").await?.0, names(&[]));
    Ok(())
}

async fn nobody_is_said_to_have_deleted_a_pod_or_given_it_its_node(place: Place) -> Result<()> {
    let feed = place.feed_with(|hub| hub.resource("v1/pods"), |server| server).await?;
    feed.live("v1/pods").await;
    let mut client = feed.client().await?;
    client.sub("s", json!({ "gvr": "v1/pods" })).await?;
    client.snapshot("s").await?;
    let pod = json!({ "metadata": { "name": "web" }, "spec": { "containers": [{ "name": "web", "image": "web" }] } });
    feed.place.post(&feed.place.path("pods?fieldManager=maker"), &pod).await?;
    let made = client.change().await?.change;
    assert_eq!(made.actor.map(|actor| actor.manager).as_deref(), Some("maker"));
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "web" },
        "target": { "apiVersion": "v1", "kind": "Node", "name": "n1" },
    });
    feed.place.post(&feed.place.path("pods/web/binding"), &binding).await?;
    let bound = client.change().await?.change;
    assert!(bound.changes.iter().any(|each| each.path == "/spec/nodeName"), "{bound:?}");
    assert_eq!(bound.actor, None);
    feed.place.delete(&feed.place.path("pods/web")).await?;
    let terminating = client.change().await?.change;
    assert_eq!((terminating.what, terminating.classes.as_slice()), (What::Modified, &[Class::Delete][..]));
    assert_eq!(terminating.actor, None);
    // There is no kubelet that would end it.
    feed.place.delete(&feed.place.path("pods/web?gracePeriodSeconds=0")).await?;
    Ok(())
}

async fn nothing_is_missed_or_doubled_between_snapshot_and_changes(place: Place) -> Result<()> {
    const OBJECTS: usize = 8;
    const ROUNDS: usize = 25;
    for at in 0..OBJECTS {
        place.add(&format!("m{at}"), "web", "0").await?;
    }
    let feed = place.feed().await?;
    let writes = async {
        for round in 1..=ROUNDS {
            for at in 0..OBJECTS {
                feed.place.change(&format!("m{at}"), &round.to_string()).await?;
            }
        }
        anyhow::Ok(())
    };
    let readers = async {
        // One after the other, so that they come at any moment.
        let mut clients = Vec::new();
        for _ in 0..12 {
            let mut client = feed.client().await?;
            client.sub("s", json!({ "labels": "app=web", "mode": "full" })).await?;
            let mut replay = Replay::default();
            while replay.cursor.is_none() {
                replay.take(&client.message().await?, false)?;
            }
            clients.push((client, replay));
        }
        anyhow::Ok(clients)
    };
    let (written, clients) = tokio::join!(writes, readers);
    written?;
    for (mut client, mut replay) in clients? {
        while replay.values().values().any(|value| *value != ROUNDS.to_string()) {
            let message = client.message().await?;
            // Each change follows from the one before: what was old is what was known.
            if let Message::Change(change) = &message {
                let known = &replay.objects[&change.change.obj.uid]["data"]["key"];
                assert_eq!(change.change.changes[0].old.as_ref(), Some(known), "{change:?}");
                assert_eq!(change.change.coalesced, 1);
            }
            replay.take(&message, false)?;
        }
        assert_eq!(replay.objects.len(), OBJECTS);
    }
    Ok(())
}

#[tokio::test]
async fn a_resource_that_is_not_read_yet_is_syncing_and_its_snapshot_comes_later() -> Result<()> {
    let place = Place::embedded().await?;
    place.add("a", "web", "1").await?;
    let factory = place.factory().await?;
    let hub = kube_informer_feed::hub::Hub::builder(factory.clone()).resource("cm").start().await?;
    let server = kube_informer_feed::server::Server::builder(hub.clone()).start().await?;
    let mut client = Client::speaking(&server.url()).await?;
    client.sub("s", json!({ "gvr": "configmaps" })).await?;
    let Message::Status(status) = client.message().await? else { panic!("no status") };
    assert_eq!(
        (status.state, status.gvr.as_str(), status.subs),
        (StatusState::Syncing, "v1/configmaps", vec!["s".to_owned()])
    );
    factory.start();
    let (mut is_live, mut names) = (false, Vec::new());
    client
        .find(|message| {
            match message {
                Message::Status(status) => is_live |= status.state == StatusState::Live,
                Message::SnapItem(item) => names.push(item.obj.name),
                _ => {}
            }
            (is_live && names.iter().any(|name| name == "a")).then_some(())
        })
        .await
}
