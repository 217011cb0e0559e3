//! Coming back: cursors, the journal, bookmarks, and the end of the server.

use std::time::Duration;

use anyhow::Result;
use kube_informer_feed::journal::Bounds;
use kube_informer_feed::message::{Message, close};
use kube_informer_feed::server::Server;
use serde_json::json;

use crate::client::{Client, Read, Replay};
use crate::harness::{Place, SOON, on_both};

on_both! {
    who_comes_back_is_told_exactly_what_was_missed,
    at_shutdown_everyone_is_told_from_where_to_go_on,
}

async fn who_comes_back_is_told_exactly_what_was_missed(place: Place) -> Result<()> {
    place.add("a", "web", "0").await?;
    let feed = place.feed().await?;
    let mut client = feed.client().await?;
    client.sub("s", json!({ "labels": "app=web" })).await?;
    client.snapshot("s").await?;
    feed.place.change("a", "1").await?;
    let cursor = client.change().await?.cursor;
    drop(client);

    feed.place.change("a", "2").await?;
    feed.place.add("b", "web", "0").await?;
    feed.place.add("c", "api", "0").await?;
    feed.place.remove("b").await?;
    // Somebody else has seen it all.
    let mut other = feed.client().await?;
    other.sub("t", json!({ "labels": "app", "since": cursor })).await?;
    for (name, what) in [("a", "MODIFIED"), ("b", "ADDED"), ("c", "ADDED"), ("b", "DELETED")] {
        let change = other.change().await?.change;
        assert_eq!((change.obj.name.as_str(), json!(change.what)), (name, json!(what)));
    }

    let mut client = feed.client().await?;
    client.sub("s", json!({ "labels": "app=web", "since": cursor })).await?;
    let mut told = Vec::new();
    let end = loop {
        match client.message().await? {
            Message::Change(change) => told.push((change.change.obj.name.clone(), json!(change.change.what))),
            Message::Bookmark(bookmark) => break bookmark.cursor,
            Message::Status(_) => {}
            other => panic!("{other:?}"),
        }
    };
    let expected = [("a", "MODIFIED"), ("b", "ADDED"), ("b", "DELETED")];
    assert_eq!(told, expected.map(|(name, what)| (name.to_owned(), json!(what))));
    assert!(end.seq >= cursor.seq + 4);
    feed.place.change("a", "3").await?;
    assert!(client.change().await?.cursor.seq > end.seq);
    Ok(())
}

#[tokio::test]
async fn a_cursor_that_is_not_known_is_answered_with_410_and_a_snapshot() -> Result<()> {
    let place = Place::embedded().await?;
    place.add("a", "web", "0").await?;
    let feed =
        place.feed_with(|hub| hub.journal(Bounds { entries: 3, bytes: 1 << 20 }), |server| server).await?;
    let mut client = feed.client().await?;
    client.sub("s", json!({ "labels": "app" })).await?;
    let (_, first) = client.snapshot("s").await?;
    for value in 1..=5 {
        feed.place.change("a", &format!("{value}")).await?;
        client.change().await?;
    }
    let epoch = client.hello.epoch.clone();
    let cursors = [
        (first.to_string(), "too old"),
        ("1:7".to_owned(), "another start"),
        (format!("{epoch}:1000000"), "in the future"),
    ];
    for (at, (cursor, why)) in cursors.into_iter().enumerate() {
        let id = format!("again-{at}");
        // A snapshot comes even to those who wanted none: it is the only way to go on.
        client.sub(&id, json!({ "labels": "app", "since": cursor, "snapshot": false })).await?;
        let (code, sub, message) = client.err().await?;
        assert_eq!((code, sub), (410, Some(id.clone())));
        assert!(message.contains(why), "{message}");
        let (names, _) = client.snapshot(&id).await?;
        assert!(names.contains("a"));
    }
    Ok(())
}

#[tokio::test]
async fn bookmarks_say_where_the_server_is() -> Result<()> {
    let place = Place::embedded().await?;
    let feed = place.feed_with(|hub| hub, |server| server.bookmark(Duration::from_millis(20))).await?;
    let mut client = feed.client().await?;
    client.sub("s", json!({ "labels": "app=web" })).await?;
    let (_, begun) = client.snapshot("s").await?;
    // Of this it is told nothing; but that it happened can be seen.
    feed.place.add("a", "api", "0").await?;
    let cursor = client
        .find(|message| match message {
            Message::Bookmark(bookmark) if bookmark.cursor.seq > begun.seq => Some(bookmark.cursor),
            Message::Change(change) => panic!("{change:?}"),
            _ => None,
        })
        .await?;
    assert_eq!(cursor, feed.hub.cursor());
    Ok(())
}

#[tokio::test]
async fn a_client_that_does_not_answer_a_goodbye_does_not_hold_up_a_shutdown() -> Result<()> {
    let long = SOON * 60;
    let feed = Place::embedded().await?.feed_with(|hub| hub, |server| server.goodbye(long)).await?;
    let silent = feed.client().await?;
    let ended = feed.server.shutdown(Duration::from_millis(200));
    let all_answered = tokio::time::timeout(SOON, ended).await?;
    assert!(!all_answered);
    drop(silent);
    Ok(())
}

async fn at_shutdown_everyone_is_told_from_where_to_go_on(place: Place) -> Result<()> {
    place.add("a", "web", "0").await?;
    let feed = place.feed().await?;
    let mut client = feed.client().await?;
    client.sub("s", json!({ "labels": "app", "mode": "full" })).await?;
    let mut replay = Replay::default();
    while replay.cursor.is_none() {
        replay.take(&client.message().await?, false)?;
    }
    let ended = tokio::spawn(feed.server.shutdown(SOON));
    let bye = client
        .find(|message| match message {
            Message::Bye(bye) => Some(bye),
            _ => None,
        })
        .await?;
    assert_eq!((bye.code, bye.resume), (close::GOING_AWAY, replay.cursor));
    assert!(matches!(client.read().await?, Read::End(Some(close::GOING_AWAY))));
    drop(client);
    assert!(ended.await?, "all had their goodbyes");

    // The hub goes on, and so does who comes back to another server on it.
    feed.place.change("a", "1").await?;
    let server = Server::builder(feed.hub.clone()).start().await?;
    let mut client = Client::speaking(&server.url()).await?;
    client.sub("s", json!({ "labels": "app", "mode": "full", "since": bye.resume })).await?;
    while replay.values()["a"] != "1" {
        replay.take(&client.message().await?, true)?;
    }
    Ok(())
}
