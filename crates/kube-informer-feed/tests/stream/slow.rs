//! Clients that do not read.

use anyhow::Result;
use kube_informer_feed::message::{Message, close};
use serde_json::json;

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
