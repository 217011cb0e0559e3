//! What the cluster does: one watch for all, outages, what is forbidden, resources that come and go.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::factory::Factory;
use kube_informer::informer::{Informer, Scope};
use kube_informer::object::Object;
use kube_informer_feed::change::{Change, Reason, What};
use kube_informer_feed::hub::{Hub, Publisher};
use kube_informer_feed::message::{Message, Status, StatusState};
use kube_informer_feed::server::Server;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Answer, Match};
use serde_json::{Value, json};

use crate::client::{Client, Replay};
use crate::harness::{Place, SOON, on_both};

on_both! {
    many_clients_share_one_watch,
    an_outage_is_told_and_what_was_missed_is_told_as_its_result,
    values_of_secrets_are_hidden,
}

async fn many_clients_share_one_watch(place: Place) -> Result<()> {
    place.add("a", "web", "0").await?;
    let feed = place.feed().await?;
    let mut clients = Vec::new();
    for at in 0..10 {
        let mut client = feed.client().await?;
        // However they name and select it.
        let gvr = ["v1/configmaps", "configmaps", "cm"][at % 3];
        client.sub("s", json!({ "gvr": gvr, "labels": "app=web" })).await?;
        client.snapshot("s").await?;
        clients.push(client);
    }
    feed.place.change("a", "1").await?;
    for client in &mut clients {
        assert_eq!(client.change().await?.change.obj.name, "a");
    }
    assert_eq!(feed.place.open_watches("configmaps"), 1);
    assert_eq!(feed.hub.topics()[0].links, 10);
    Ok(())
}

async fn status(client: &mut Client, state: StatusState) -> Result<Status> {
    client
        .find(|message| match message {
            Message::Status(status) if status.state == state => Some(status),
            _ => None,
        })
        .await
}

async fn an_outage_is_told_and_what_was_missed_is_told_as_its_result(place: Place) -> Result<()> {
    place.add("a", "web", "0").await?;
    place.add("b", "web", "0").await?;
    let feed = place.feed().await?;
    let mut client = feed.client().await?;
    client.sub("s", json!({ "labels": "app=web", "mode": "full" })).await?;
    let mut replay = Replay::default();
    while replay.cursor.is_none() {
        replay.take(&client.message().await?, false)?;
    }
    let before = replay.cursor;

    let outage = feed.place.proxy.on(Match::any()).answer(Answer::internal_error());
    feed.place.proxy.cut_open(Match::watch()).await;
    let stale = status(&mut client, StatusState::Stale).await?;
    // A watch that only breaks is resumed, and nothing is missed.
    feed.place.proxy.requests().wait_for(|request| request.is_watch() && request.status == Some(500)).await?;
    assert!(stale.why.is_some_and(|why| why.contains("configmaps")));
    let (code, text) = feed.get("/readyz").await?;
    assert!(code == 503 && text.starts_with("v1/configmaps stale: "), "{code} {text}");
    feed.place.change("a", "1").await?;
    feed.place.change("a", "2").await?;
    feed.place.remove("b").await?;
    outage.remove();

    let mut told = Vec::new();
    let mut gap = None;
    while gap.is_none() || told.len() < 2 {
        let message = client.message().await?;
        replay.take(&message, false)?;
        match message {
            Message::Change(change) => {
                told.push((change.change.obj.name.clone(), change.change.what, change.change.reason));
            }
            Message::Gap(said) => gap = Some(said),
            _ => {}
        }
    }
    told.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(told[0], ("a".to_owned(), What::Modified, None));
    assert_eq!(told[1], ("b".to_owned(), What::Deleted, Some(Reason::FoundMissing)));
    let gap = gap.unwrap();
    assert_eq!((gap.subs.as_slice(), gap.from), (["s".to_owned()].as_slice(), before));
    assert_eq!(replay.values(), [("a".to_owned(), "2".to_owned())].into());
    feed.live("v1/configmaps").await;
    assert_eq!(feed.get("/readyz").await?.0, 200);
    // Who comes back over it is told of it, too.
    let mut late = feed.client().await?;
    late.sub("late", json!({ "labels": "app=web", "since": before })).await?;
    late.find(|message| matches!(message, Message::Gap(gap) if gap.subs == ["late"]).then_some(())).await
}

async fn values_of_secrets_are_hidden(place: Place) -> Result<()> {
    let secret = json!({
        "metadata": { "name": "s", "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "cGFzc3dvcmQ=" } },
        "data": { "key": "cGFzc3dvcmQ=" },
    });
    place.post(&place.path("secrets"), &secret).await?;
    let feed = place.feed_with(|hub| hub.resource("v1/secrets"), |server| server).await?;
    feed.live("v1/secrets").await;
    let mut client = feed.client().await?;
    client.sub("s", json!({ "gvr": "v1/secrets", "mode": "full" })).await?;
    let mut said = Vec::new();
    let mut end = |message: Message| {
        said.push(serde_json::to_string(&message).unwrap());
        matches!(message, Message::SnapEnd(_)).then_some(())
    };
    client.find(&mut end).await?;
    let path = feed.place.path("secrets/s");
    feed.place.merge(&path, &json!({ "data": { "key": "Z2VoZWlt" } })).await?;
    let changed = client.change().await?;
    assert_eq!(changed.change.changes[0].path, "/data/key");
    said.push(serde_json::to_string(&changed)?);
    let said = said.join("\n");
    assert!(
        said.contains("<hidden>") && !said.contains("cGFzc3dvcmQ") && !said.contains("Z2VoZWlt"),
        "{said}"
    );
    Ok(())
}

#[tokio::test]
async fn what_is_forbidden_says_so_and_comes_when_it_is_allowed() -> Result<()> {
    let place = Place::embedded().await?;
    let denied = place.proxy.on(Match::any().path_contains("/secrets")).answer(Answer::forbidden());
    let feed = place.feed_with(|hub| hub.any_resource(true), |server| server).await?;
    let mut client = feed.client().await?;
    assert!(client.hello.any);
    client.sub("s", json!({ "gvr": "secrets" })).await?;
    let forbidden = status(&mut client, StatusState::Forbidden).await?;
    assert!(
        forbidden.gvr == "v1/secrets"
            && forbidden.why.is_some_and(|why| why.contains("403") || why.contains("orbidden"))
    );
    denied.remove();
    client.snapshot("s").await?;
    feed.live("v1/secrets").await;
    Ok(())
}

#[tokio::test]
async fn a_resource_that_nobody_is_told_of_any_more_is_not_watched() -> Result<()> {
    let place = Place::embedded().await?;
    let idle = Duration::from_millis(50);
    let feed =
        place.feed_with(|hub| hub.any_resource(true).idle(idle).other_resources(1), |server| server).await?;
    let mut client = feed.client().await?;
    client.sub("s", json!({ "gvr": "apps/v1/deployments" })).await?;
    let (_, cursor) = client.snapshot("s").await?;
    assert_eq!(feed.place.open_watches("deployments"), 1);
    // So many, and not more.
    client.sub("t", json!({ "gvr": "v1/pods" })).await?;
    assert_eq!(client.err().await?.0, 429);

    client.send(&json!({ "op": "unsub", "id": "s" })).await?;
    eventually("it is not watched", SOON, async || {
        (feed.place.open_watches("deployments") == 0).then_some(())
    })
    .await;
    assert_eq!(feed.hub.topics().len(), 1);
    // Somebody else is told of it again. What happened meanwhile is not known.
    let mut other = feed.client().await?;
    other.sub("o", json!({ "gvr": "deploy" })).await?;
    other.snapshot("o").await?;
    client.sub("s", json!({ "gvr": "deploy", "since": cursor })).await?;
    let (code, _, message) = client.err().await?;
    assert!(code == 410 && message.contains("not followed"), "{message}");
    client.snapshot("s").await?;
    assert_eq!(feed.place.open_watches("configmaps"), 1);
    Ok(())
}

#[tokio::test]
async fn a_resource_that_is_not_there_keeps_a_hub_from_starting() -> Result<()> {
    let place = Place::embedded().await?;
    let error = Hub::builder(place.factory().await?).resource("deploymets").start().await.unwrap_err();
    assert!(error.to_string().contains("deploymets"), "{error}");
    Ok(())
}

/// A config map `a` of which somebody else tells, on the embedded server.
struct Published {
    place: Place,
    informer: Informer<ConfigMap>,
    publisher: Publisher,
    server: Server,
    /// What is known of `a`.
    first: Object<ConfigMap>,
    /// For as long as it is read.
    _factory: Factory,
}

impl Published {
    async fn start() -> Result<Self> {
        let place = Place::embedded().await?;
        place.add("a", "web", "1").await?;
        let factory = place.factory().await?;
        let hub = Hub::builder(factory.clone()).start().await?;
        let informer = factory.informer::<ConfigMap>(Scope::namespace("test"));
        let publisher = hub.publisher(&informer);
        let server = Server::builder(hub).start().await?;
        factory.start();
        factory.synced(SOON).await?;
        let first = informer.get("test", "a").unwrap();
        publisher.known(&first);
        publisher.begun();
        Ok(Self { place, informer, publisher, server, first, _factory: factory })
    }
}

/// What `a` is when it is another than it was.
async fn another(informer: &Informer<ConfigMap>, first: &Object<ConfigMap>) -> Object<ConfigMap> {
    let other = async || informer.get("test", "a").filter(|object| object.version() != first.version());
    eventually("the cache has it", SOON, other).await
}

#[tokio::test]
async fn a_publisher_tells_what_it_computed_and_snapshots_are_what_it_told() -> Result<()> {
    let Published { place, informer, publisher, server, first, _factory } = Published::start().await?;

    let mut client = Client::plain(&server.url()).await?;
    assert_eq!(client.hello.resources, ["v1/configmaps"]);
    client.snapshot("v1/configmaps").await?;
    // The cache is ahead of what was told: those who come see what was told.
    place.change("a", "2").await?;
    let second = another(&informer, &first).await;
    let mut late = Client::speaking(&server.url()).await?;
    late.sub("s", json!({ "mode": "full" })).await?;
    let mut value = Value::Null;
    late.find(|message| {
        if let Message::SnapItem(item) = &message
            && item.obj.name == "a"
        {
            value = item.object.clone().unwrap()["data"]["key"].clone();
        }
        matches!(message, Message::SnapEnd(_)).then_some(())
    })
    .await?;
    assert_eq!(value, "1");
    let mut change = Change::modified(&first, &second)?;
    change.summary = "as somebody else says it".to_owned();
    let cursor = publisher.publish(change, Some(&first), Some(&second));
    for client in [&mut client, &mut late] {
        let told = client.change().await?;
        assert_eq!((told.cursor, told.change.summary.as_str()), (cursor, "as somebody else says it"));
    }
    Ok(())
}

#[tokio::test]
async fn a_deletion_is_told_to_those_who_were_told_of_the_object_whatever_its_last_labels() -> Result<()> {
    let Published { place, informer, publisher, server, first, _factory } = Published::start().await?;
    let mut web = Client::speaking(&server.url()).await?;
    web.sub("web", json!({ "labels": "app=web" })).await?;
    web.snapshot("web").await?;
    let mut api = Client::speaking(&server.url()).await?;
    api.sub("api", json!({ "labels": "app=api" })).await?;
    api.snapshot("api").await?;

    // Another label, and the end: only the end is told.
    place.label("a", "api").await?;
    let last = another(&informer, &first).await;
    place.remove("a").await?;
    place.add("b", "api", "1").await?;
    let other = eventually("the cache has it", SOON, async || informer.get("test", "b")).await;
    publisher.publish(Change::deleted(&last, true)?, Some(&last), None);
    publisher.publish(Change::added(&other)?, None, Some(&other));
    // Bookmarks come all the time: they are not waited for.
    let told = tokio::time::timeout(SOON, web.change()).await??.change;
    assert_eq!((told.what, told.obj.name.as_str()), (What::Deleted, "a"));
    let told = api.change().await?.change;
    assert_eq!((told.what, told.obj.name.as_str()), (What::Added, "b"));
    Ok(())
}

#[tokio::test]
async fn a_change_that_does_not_show_is_not_told_and_known_all_the_same() -> Result<()> {
    let Published { place, informer, publisher, server, first, _factory } = Published::start().await?;
    let mut client = Client::speaking(&server.url()).await?;
    client.sub("s", json!({})).await?;
    client.snapshot("s").await?;
    // There and back again.
    place.change("a", "2").await?;
    place.change("a", "1").await?;
    let there = async || {
        let object = informer.get("test", "a").filter(|object| object.version() != first.version())?;
        (object.pointer::<String>("/data/key").ok()?.as_deref() == Some("1")).then_some(object)
    };
    let back = eventually("the cache has it", SOON, there).await;
    publisher.publish(Change::modified(&first, &back)?, Some(&first), Some(&back));
    place.change("a", "3").await?;
    let third = another(&informer, &back).await;
    publisher.publish(Change::modified(&back, &third)?, Some(&back), Some(&third));
    let told = client.change().await?.change;
    assert_eq!(
        (told.changes[0].old.as_ref(), told.changes[0].new.as_ref()),
        (Some(&json!("1")), Some(&json!("3")))
    );
    Ok(())
}

#[tokio::test]
async fn who_was_told_by_the_hub_comes_again_when_a_publisher_takes_over() -> Result<()> {
    let feed = Place::embedded().await?.feed().await?;
    let mut client = feed.client().await?;
    client.sub("s", json!({})).await?;
    client.snapshot("s").await?;
    let informer = feed.hub.factory().informer::<ConfigMap>(Scope::namespace("test"));
    let publisher = feed.hub.publisher(&informer);
    assert_eq!(client.end().await?, Some(1001));
    publisher.begun();
    feed.live("v1/configmaps").await;
    let mut client = feed.client().await?;
    client.sub("s", json!({})).await?;
    client.snapshot("s").await?;
    // What the hub would have told by itself is not told.
    feed.place.add("a", "web", "0").await?;
    let object = eventually("the cache has it", SOON, async || informer.get("test", "a")).await;
    let cursor = publisher.publish(Change::added(&object)?, None, Some(&object));
    assert_eq!(client.change().await?.cursor, cursor);
    Ok(())
}
