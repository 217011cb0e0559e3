//! Clients that do not read.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube_informer_feed::message::{Message, close};
use serde_json::json;
use tokio::io::AsyncReadExt;

use crate::client::{Client, Read, Replay};
use crate::harness::{Feed, Place, SOON, on_both};

on_both! {
    a_slow_client_is_told_less_and_harms_nobody,
    a_client_that_is_too_slow_is_told_of_a_gap_and_can_go_on_from_there,
}

/// Large enough to fill what lies between, soon.
fn value(number: usize) -> String {
    format!("{number}:{}", "x".repeat(40_000))
}

/// A client that is subscribed and knows what there is.
async fn subscribed(mut client: Client, slow: &str) -> Result<(Client, Replay)> {
    client.sub("s", json!({ "labels": "app=web", "mode": "full", "slow": slow })).await?;
    let mut replay = Replay::default();
    while replay.cursor.is_none() {
        replay.take(&client.message().await?, false)?;
    }
    Ok((client, replay))
}

/// Somebody who reads all the time: gives how many changes it was told, and what it knows at the end.
fn quick(mut client: Client, mut replay: Replay) -> tokio::task::JoinHandle<Result<Replay>> {
    tokio::spawn(async move {
        while replay.values()["a"] != "end" {
            replay.take(&client.message().await?, false)?;
        }
        Ok(replay)
    })
}

/// Changes objects until something was counted; how often that was.
async fn change_until(feed: &Feed, metric: &str, names: &[&str]) -> Result<usize> {
    for number in 1..5_000 {
        let name = names[number % names.len()];
        feed.place.change(name, &value(number)).await?;
        if number % 10 == 0 && feed.metric(metric).await.is_ok_and(|count| count > 0.0) {
            return Ok(number);
        }
    }
    panic!("{metric} stays at zero");
}

async fn a_slow_client_is_told_less_and_harms_nobody(place: Place) -> Result<()> {
    place.add("a", "web", "0").await?;
    let feed = place.feed_with(|hub| hub, |server| server.outbox(2 << 20)).await?;
    let quick = {
        let (client, replay) = subscribed(feed.client().await?, "close").await?;
        quick(client, replay)
    };
    let (mut client, mut replay) = subscribed(Client::narrow(&feed.server).await?, "coalesce").await?;
    let written = change_until(&feed, "kube_informer_feed_coalesced_total", &["a"]).await?;
    feed.place.change("a", "end").await?;
    assert_eq!(quick.await??.changes, u32::try_from(written + 1)?, "somebody else was told every change");
    let mut messages = 0;
    while replay.values()["a"] != "end" {
        let message = client.message().await?;
        messages += usize::from(matches!(message, Message::Change(_)));
        replay.take(&message, false)?;
    }
    assert_eq!(
        (replay.changes, replay.gaps),
        (u32::try_from(written + 1)?, 0),
        "every change is part of one"
    );
    assert!(messages < written, "{messages} messages of {written} changes");
    Ok(())
}

async fn a_client_that_is_too_slow_is_told_of_a_gap_and_can_go_on_from_there(place: Place) -> Result<()> {
    for name in ["a", "b", "c"] {
        place.add(name, "web", "0").await?;
    }
    let feed = place.feed_with(|hub| hub, |server| server.outbox(1 << 20).goodbye(SOON)).await?;
    let quick = {
        let (client, replay) = subscribed(feed.client().await?, "coalesce").await?;
        quick(client, replay)
    };
    let (mut client, mut replay) = subscribed(Client::narrow(&feed.server).await?, "close").await?;
    change_until(&feed, "kube_informer_feed_gaps_total{reason=\"slow\"}", &["a", "b", "c"]).await?;
    feed.place.change("a", "end").await?;
    let quick = quick.await??;
    assert_eq!(quick.gaps, 0);

    let bye = loop {
        match client.message().await? {
            Message::Bye(bye) => break bye,
            message => replay.take(&message, false)?,
        }
    };
    assert_eq!((bye.code, bye.resume, replay.gaps), (close::SLOW, replay.cursor, 1));
    assert!(matches!(client.read().await?, Read::End(Some(close::SLOW))));
    assert_ne!(replay.values(), quick.values());

    let mut client = feed.client().await?;
    client.sub("s", json!({ "labels": "app=web", "mode": "full", "since": bye.resume })).await?;
    while replay.values() != quick.values() {
        replay.take(&client.message().await?, true)?;
    }
    Ok(())
}

/// A resource that is large and changes all the time, and a client that reads it slowly: each time that it reads one message,
/// two objects are others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_client_has_its_snapshot_however_much_changes_meanwhile() -> Result<()> {
    const OBJECTS: usize = 600;
    // Less than what waits in the end, so that it has to be patient. More than what comes while the client reads what the kernel
    // has of its snapshot, which is some megabytes at most: meanwhile nothing is taken out.
    const OUTBOX: usize = 256 << 10;
    let place = Place::embedded().await?;
    let name = |at: usize| format!("m{:03}", at % OBJECTS);
    for at in 0..OBJECTS {
        place.add(&name(at), "web", &"x".repeat(20_000)).await?;
    }
    let feed = place.feed_with(|hub| hub, |server| server.outbox(OUTBOX)).await?;
    let mut client = Client::narrow(&feed.server).await?;
    client.sub("s", json!({ "labels": "app=web", "mode": "diff" })).await?;
    let (mut values, mut turn) = (std::collections::BTreeMap::new(), 0);
    let mut changes = 0;
    let mut has_begun = false;
    let end = loop {
        match client.message().await? {
            Message::SnapBegin(_) => has_begun = true,
            Message::SnapItem(item) => {
                let value = item.object.unwrap()["data"]["key"].as_str().unwrap().to_owned();
                assert!(values.insert(item.obj.name, value).is_none());
            }
            Message::SnapEnd(end) => break end,
            Message::Status(_) | Message::Bookmark(_) => {}
            other => panic!("{other:?}"),
        }
        if has_begun {
            for _ in 0..2 {
                turn += 1;
                feed.place.change(&name(turn * 37), &format!("{turn}:{}", "y".repeat(20_000))).await?;
            }
        }
    };
    assert_eq!((end.count, values.len()), (OBJECTS, OBJECTS));
    // Then it is told what became of those that it was sent early: in the end it knows what there is.
    feed.place.change(&name(0), "end").await?;
    let mut known = values;
    while known["m000"] != "end" {
        let Message::Change(message) = client.message().await? else { continue };
        changes += 1;
        let change = message.change.changes.iter().find(|change| change.path == "/data/key");
        let new = change.and_then(|change| change.new.as_ref()).and_then(|new| new.as_str());
        known.insert(message.change.obj.name, new.unwrap_or_default().to_owned());
    }
    assert!(changes > 1 && changes <= OBJECTS + 1, "each at most once, and the last: {changes}");
    // Long values are cut: by their beginnings.
    let list = feed.place.get(&format!("{}?labelSelector=app%3Dweb", feed.place.path("configmaps"))).await?;
    for item in list["items"].as_array().unwrap() {
        let number = |value: &str| value.split(':').next().unwrap_or_default().to_owned();
        let (name, value) =
            (item["metadata"]["name"].as_str().unwrap(), item["data"]["key"].as_str().unwrap());
        assert_eq!(number(&known[name]), number(value), "{name}");
    }
    assert_eq!(feed.metric("kube_informer_feed_connections").await?, 1.0);
    Ok(())
}

/// Somebody who reads steadily, and so slowly that it does not come to a ping in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_is_not_silent_however_late_it_comes_to_a_ping() -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let place = Place::embedded().await?;
    for at in 0..200 {
        place.add(&format!("m{at}"), "web", &"x".repeat(60_000)).await?;
    }
    let server = |server: kube_informer_feed::server::Builder| {
        server.ping(Duration::from_millis(50), PATIENCE).goodbye(Duration::from_millis(50))
    };
    let feed = place.feed_with(|hub| hub, server).await?;
    let mut client = Client::narrow(&feed.server).await?;
    client.sub("s", json!({})).await?;
    // From now on it only reads bytes: nobody there would answer a ping.
    let stream = client.socket.get_mut();
    let (mut buffer, mut read, begun) = (vec![0; 16 << 10], 0, Instant::now());
    while begun.elapsed() < 2 * PATIENCE {
        let count = stream.read(&mut buffer).await?;
        ensure!(count > 0, "closed after {read} bytes and {:?}", begun.elapsed());
        read += count;
        // tidy: allow-sleep nothing is waited for: it reads slowly
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(feed.server.connections(), 1);
    // It stops: that is silence.
    feed.connections(0).await;
    assert_eq!(feed.metric("kube_informer_feed_closes_total{reason=\"silent\"}").await?, 1.0);
    Ok(())
}
