//! What clients send wrongly is said to them, and to nobody else.

use std::time::Duration;

use anyhow::Result;
use futures_util::SinkExt;
use kube_informer_feed::message::{Message, close};
use kube_informer_testbed::proxy::Match;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::client::{Client, Read};
use crate::harness::{Feed, Place, on_both};

on_both! {
    a_request_that_is_wrong_is_refused_and_the_connection_stays,
}

async fn a_request_that_is_wrong_is_refused_and_the_connection_stays(place: Place) -> Result<()> {
    place.add("a", "web", "0").await?;
    let feed = place.feed_with(|hub| hub, |server| server.subscriptions(3)).await?;
    let mut other = feed.client().await?;
    other.sub("o", json!({ "labels": "app=web" })).await?;
    other.snapshot("o").await?;
    let mut client = feed.client().await?;
    client.sub("taken", json!({ "labels": "app=web" })).await?;
    client.snapshot("taken").await?;

    for (text, code, said) in [
        ("{", 400, "not JSON"),
        ("", 400, "not JSON"),
        ("\u{0}\u{7f}ÿ", 400, "not JSON"),
        (r#"{"op":"explode"}"#, 400, "unknown op"),
        (r#"{"op":"sub","id":"x","gvr":"v1/configmaps","namespace":"a"}"#, 400, "unknown field `namespace`"),
        (r#"{"op":"sub","id":"x","gvr":"a/b/c/d"}"#, 400, "names no resource"),
        (r#"{"op":"sub","id":"x","gvr":"../../secrets"}"#, 400, "names no resource"),
        (r#"{"op":"sub","id":"x","gvr":"apps/v1/deploymets"}"#, 403, "started for v1/configmaps"),
        (r#"{"op":"sub","id":"x","gvr":"deploymets"}"#, 403, "started for v1/configmaps"),
        (r#"{"op":"sub","id":"x","gvr":"secrets"}"#, 403, "started for v1/configmaps"),
        (r#"{"op":"sub","id":"x","gvr":"configmaps","labels":"app in web"}"#, 400, "label selector"),
        (r#"{"op":"sub","id":"taken","gvr":"configmaps"}"#, 409, "there is a subscription"),
        (r#"{"op":"unsub","id":"x"}"#, 404, "no subscription"),
    ] {
        client.text(text).await?;
        let (was, _, message) = client.err().await?;
        assert!(was == code && message.contains(said), "{text}: {was} {message}");
    }
    client.socket.send(Frame::binary(vec![0u8, 159, 146, 150])).await?;
    assert!(client.err().await?.2.contains("binary"));
    for id in ["two", "three"] {
        client.sub(id, json!({ "labels": "app=none" })).await?;
        client.snapshot(id).await?;
    }
    client.sub("four", json!({})).await?;
    assert_eq!(client.err().await?.0, 429);

    // Both are told, still.
    feed.place.change("a", "1").await?;
    assert_eq!(client.change().await?.subs, ["taken"]);
    assert_eq!(other.change().await?.subs, ["o"]);
    Ok(())
}

/// What the server says to a frame that cannot be read, and how it closes the connection. Another client stays.
async fn closed(
    feed: &Feed,
    break_it: impl AsyncFnOnce(&mut Client) -> Result<()>,
) -> Result<(u16, Option<u16>, u16)> {
    let mut other = feed.client().await?;
    let mut client = feed.client().await?;
    break_it(&mut client).await?;
    let mut code = 0;
    let mut bye = 0;
    let end = loop {
        match client.read().await? {
            Read::Message(message) => match *message {
                Message::Err(err) => code = err.code,
                Message::Bye(said) => bye = said.code,
                _ => {}
            },
            Read::End(end) => break end,
        }
    };
    other.sub("o", json!({})).await?;
    other.snapshot("o").await?;
    Ok((code, end, bye))
}

#[tokio::test]
async fn a_frame_that_is_too_large_is_refused_and_the_connection_closed() -> Result<()> {
    let feed = Place::embedded().await?.feed_with(|hub| hub, |server| server.frame(1_000)).await?;
    let large = "x".repeat(5_000);
    let said = closed(&feed, async |client| client.text(&large).await).await?;
    assert_eq!(said, (413, Some(close::TOO_LARGE), close::TOO_LARGE));
    assert!(feed.metric("kube_informer_feed_closes_total{reason=\"too_large\"}").await? >= 1.0);
    Ok(())
}

#[tokio::test]
async fn a_frame_that_cannot_be_read_closes_the_connection() -> Result<()> {
    let feed = Place::embedded().await?.feed().await?;
    let not_text = tokio_tungstenite::tungstenite::protocol::frame::Frame::message(
        vec![0xff, 0xfe],
        OpCode::Data(Data::Text),
        true,
    );
    let said = closed(&feed, async |client| Ok(client.socket.send(Frame::Frame(not_text)).await?)).await?;
    assert_eq!(said, (400, Some(close::NOT_TEXT), close::NOT_TEXT));
    // Not masked, as frames of clients must be, with bits that mean nothing.
    let said =
        closed(&feed, async |client| Ok(client.socket.get_mut().write_all(&[0xff; 64]).await?)).await?;
    assert_eq!(said, (400, Some(close::PROTOCOL), close::PROTOCOL));
    Ok(())
}

#[tokio::test]
async fn a_client_that_does_not_answer_pings_is_closed() -> Result<()> {
    let (ping, patience) = (Duration::from_millis(100), Duration::from_secs(2));
    let server = |server: kube_informer_feed::server::Builder| server.ping(ping, patience).goodbye(ping);
    let feed = Place::embedded().await?.feed_with(|hub| hub, server).await?;
    // It does not read: so it does not answer. One that reads stays.
    let half_open = feed.client().await?;
    let mut alive = feed.client().await?;
    let answering = tokio::spawn(async move { alive.end().await });
    feed.connections(1).await;
    assert!(feed.metric("kube_informer_feed_closes_total{reason=\"silent\"}").await? >= 1.0);
    assert!(!answering.is_finished());
    drop(half_open);
    answering.abort();
    Ok(())
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_nothing_behind() -> Result<()> {
    let feed = Place::embedded().await?.feed().await?;
    for polite in [true, false] {
        let mut client = feed.client().await?;
        client.sub("s", json!({})).await?;
        client.snapshot("s").await?;
        assert_eq!(feed.metric("kube_informer_feed_subscriptions").await?, 1.0);
        if polite {
            client.socket.close(None).await?;
            assert_eq!(client.end().await?, None);
        }
        drop(client);
        feed.connections(0).await;
        assert_eq!(feed.metric("kube_informer_feed_subscriptions").await?, 0.0);
        assert_eq!(feed.hub.topics()[0].links, 0);
    }
    // With a word or without, it was the client who went, and nothing was wrong.
    assert_eq!(feed.metric("kube_informer_feed_closes_total{reason=\"client\"}").await?, 2.0);
    assert_eq!(feed.metric("kube_informer_feed_errors_total").await?, 0.0);
    Ok(())
}

#[tokio::test]
async fn requests_that_wait_are_bounded_in_bytes_too() -> Result<()> {
    let feed = Place::embedded().await?.feed_with(|hub| hub.any_resource(true), |server| server).await?;
    let mut client = feed.client().await?;
    let stalled = feed.place.proxy.on(Match::any().path_contains("/api")).stall();
    client.sub("first", json!({ "gvr": "v1/secrets" })).await?;
    stalled.wait_applied(1).await;
    // Four of them are just within what may wait.
    let names: Vec<String> = (0..900).map(|at| format!("namespace-{at:060}")).collect();
    for id in ["a", "b", "c", "d"] {
        client.sub(id, json!({ "ns": &names[..800] })).await?;
    }
    client.sub("e", json!({ "ns": &names[..800] })).await?;
    let (code, _, message) = client.err().await?;
    assert!(
        code == 429 && message.contains("4 requests of") && message.contains("bytes"),
        "{code} {message}"
    );
    // Small ones still have room, and all that wait are done when their turn comes.
    client.send(&json!({ "op": "unsub", "id": "nothing" })).await?;
    stalled.release();
    stalled.remove();
    client.snapshot("d").await?;
    assert_eq!(client.err().await?.0, 404);
    Ok(())
}
