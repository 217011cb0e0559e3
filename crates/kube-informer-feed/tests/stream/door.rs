//! Who may come in, and how many.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use kube_informer_feed::message::SUBPROTOCOL;
use kube_informer_feed::server::{Builder, Server, ServerError, bearer_subprotocol};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::{Answer, Match};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::client_async;

use crate::client::{Client, refusal, request};
use crate::harness::{Feed, Place, SOON};

const TOKEN: &str = "correct-horse-battery";

#[tokio::test]
async fn an_address_that_others_reach_needs_a_token() -> Result<()> {
    let feed = Place::embedded().await?.feed().await?;
    let everywhere: SocketAddr = "0.0.0.0:0".parse()?;
    let start = async |builder: Builder| builder.listen(everywhere).start().await;
    let error = start(Server::builder(feed.hub.clone())).await.unwrap_err();
    assert!(
        matches!(error, ServerError::TokenWanted { .. }) && error.to_string().contains("give a token"),
        "{error}"
    );
    let error = start(Server::builder(feed.hub.clone()).token("guess")).await.unwrap_err();
    assert!(error.to_string().contains("too short"), "{error}");
    let error = start(Server::builder(feed.hub.clone()).token_file("no/such/file")).await.unwrap_err();
    assert!(error.to_string().contains("no/such/file"), "{error}");

    let file =
        std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("token-{}", std::process::id()));
    std::fs::write(&file, format!("{TOKEN}\n"))?;
    let server = start(Server::builder(feed.hub.clone()).token_file(&file)).await?;
    std::fs::remove_file(&file)?;
    let url = format!("ws://127.0.0.1:{}/v1/stream", server.address().port());
    let mut client = Client::with(&url, &[("authorization", &format!("Bearer {TOKEN}"))]).await?;
    client.snapshot("v1/configmaps").await?;
    Ok(())
}

#[tokio::test]
async fn without_the_token_nobody_comes_in() -> Result<()> {
    let feed = Place::embedded().await?.feed_with(|hub| hub, |server| server.token(TOKEN)).await?;
    let url = feed.server.url();
    for headers in [
        vec![],
        vec![("authorization", "Bearer wrong-horse-battery")],
        vec![("sec-websocket-protocol", SUBPROTOCOL)],
    ] {
        let (status, text) = refusal(&url, &headers).await?;
        assert_eq!(status, 401, "{text}");
        assert!(!text.contains(TOKEN));
    }
    // Never in an address.
    assert_eq!(refusal(&format!("{url}?token={TOKEN}"), &[]).await?.0, 401);
    let protocols = format!("{}, {SUBPROTOCOL}", bearer_subprotocol(TOKEN));
    Client::with(&url, &[("sec-websocket-protocol", &protocols)]).await?;
    assert_eq!(
        (feed.get("/metrics").await?.0, feed.get("/healthz").await?.0, feed.get("/readyz").await?.0),
        (401, 200, 200)
    );
    Ok(())
}

#[tokio::test]
async fn other_subprotocols_other_sites_and_other_names_are_refused() -> Result<()> {
    let feed = Place::embedded().await?.feed().await?;
    let url = feed.server.url();
    let (status, text) =
        refusal(&url, &[("sec-websocket-protocol", "graphql-ws, kube-informer.v9.json")]).await?;
    assert!(status == 400 && text.contains(SUBPROTOCOL) && text.contains("graphql-ws"), "{status} {text}");
    let (status, text) = refusal(&url, &[("origin", "http://evil.example.com")]).await?;
    assert!(status == 403 && text.contains("evil.example.com"), "{status} {text}");
    let (status, text) = refusal(&url, &[("host", "rebound.example.com")]).await?;
    assert!(status == 403 && text.contains("rebound.example.com"), "{status} {text}");
    Client::with(&url, &[("origin", &format!("http://{}", feed.server.address()))]).await?;
    assert!(feed.metric("kube_informer_feed_refused_total{reason=\"origin\"}").await? >= 1.0);
    Ok(())
}

#[tokio::test]
async fn what_is_no_websocket_is_answered_in_words() -> Result<()> {
    let feed = Place::embedded().await?.feed().await?;
    assert_eq!(feed.get("/healthz").await?, (200, "ok\n".to_owned()));
    assert_eq!(feed.get("/readyz").await?, (200, "v1/configmaps live\n".to_owned()));
    let (status, text) = feed.get("/v1/stream").await?;
    assert!((400..500).contains(&status) && text.contains("WebSocket"), "{status} {text}");
    let (status, text) = feed.get("/").await?;
    assert!(status == 404 && text.contains("/v1/stream"), "{status} {text}");
    let (status, page) = feed.get("/metrics").await?;
    assert_eq!(status, 200);
    for name in
        ["kube_informer_feed_connections", "kube_informer_feed_journal_bytes", "kube_informer_objects"]
    {
        assert!(page.contains(name), "{name} in\n{page}");
    }
    Ok(())
}

#[tokio::test]
async fn more_connections_than_allowed_are_told_so() -> Result<()> {
    let feed = Place::embedded().await?.feed_with(|hub| hub, |server| server.connections(2)).await?;
    let first = feed.client().await?;
    let _second = feed.client().await?;
    let (status, text) = refusal(&feed.server.url(), &[]).await?;
    assert!(status == 503 && text.contains("2 connections"), "{status} {text}");
    drop(first);
    feed.connections(1).await;
    feed.client().await?;
    Ok(())
}

/// A client that comes from an address of this machine.
async fn from(address: &str, feed: &Feed) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(format!("{address}:0").parse()?)?;
    Ok(socket.connect(feed.server.address()).await?)
}

#[tokio::test]
async fn one_address_does_not_take_the_places_of_others() -> Result<()> {
    let limits = |server: Builder| server.connections(8).per_address(2);
    let feed = Place::embedded().await?.feed_with(|hub| hub, limits).await?;
    let url = feed.server.url();
    let first = feed.client().await?;
    let _second = feed.client().await?;
    let (status, text) = refusal(&url, &[]).await?;
    assert!(status == 429 && text.contains("2 connections of one address"), "{status} {text}");
    let other = from("127.0.0.2", &feed).await?;
    let (_other, _) = client_async(request(&url, &[])?, other).await?;
    feed.connections(3).await;
    drop(first);
    feed.connections(2).await;
    feed.client().await?;
    assert!(feed.metric("kube_informer_feed_refused_total{reason=\"address\"}").await? >= 1.0);
    Ok(())
}

/// Nobody's patience ends in this test: who says nothing is let wait, and only so many of one address are.
#[tokio::test]
async fn silent_sockets_of_one_address_do_not_fill_the_door() -> Result<()> {
    let limits = |server: Builder| server.pending(8).per_address(100).handshake(60 * SOON);
    let feed = Place::embedded().await?.feed_with(|hub| hub, limits).await?;
    let mut silent = Vec::new();
    for at in 0..40 {
        let mut stream = from("127.0.0.2", &feed).await?;
        // Some begin a request, and never end it. Those that are closed already cannot.
        if at % 2 == 0 {
            let _ = stream.write_all(b"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n").await;
        }
        silent.push(stream);
    }
    let mut client = timeout(SOON, feed.client()).await??;
    client.sub("s", serde_json::json!({})).await?;
    client.snapshot("s").await?;
    // All but two were closed at once.
    eventually("the others are closed", SOON, async || {
        let refused = feed.metric("kube_informer_feed_refused_total{reason=\"address\"}").await.ok()?;
        (refused == 38.0).then_some(())
    })
    .await;
    drop(silent);
    Ok(())
}

#[tokio::test]
async fn a_request_that_comes_byte_by_byte_is_given_up() -> Result<()> {
    let patience = Duration::from_millis(300);
    let feed = Place::embedded().await?.feed_with(|hub| hub, |server| server.handshake(patience)).await?;
    let (mut read, mut write) = TcpStream::connect(feed.server.address()).await?.into_split();
    let slowly = tokio::spawn(async move {
        // Longer than anyone waits: it ends with the connection.
        loop {
            if write.write_all(b"X-Header: value\r\n").await.is_err() {
                return;
            }
            // tidy: allow-sleep nothing is waited for: it speaks slowly
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let mut said = Vec::new();
    // Reset or closed: it is over.
    let _ = timeout(SOON, read.read_to_end(&mut said)).await?;
    timeout(SOON, slowly).await??;
    Ok(())
}

#[tokio::test]
async fn what_is_wrong_is_said_to_those_who_know_the_token() -> Result<()> {
    let feed = Place::embedded().await?.feed_with(|hub| hub, |server| server.token(TOKEN)).await?;
    let access = Access::anonymous(format!("http://{}", feed.server.address())).with_token(TOKEN);
    let knows = Endpoint::new(access)?;
    let told = async || -> Result<(u16, String)> {
        let answer = knows.get("/readyz").await?;
        Ok((answer.status.as_u16(), answer.text().into_owned()))
    };
    assert_eq!(feed.get("/readyz").await?, (200, "ready\n".to_owned()));
    assert_eq!(told().await?, (200, "v1/configmaps live\n".to_owned()));
    let _outage = feed.place.proxy.on(Match::any()).answer(Answer::internal_error());
    feed.place.proxy.cut_open(Match::watch()).await;
    eventually("it is stale", SOON, async || (feed.get("/readyz").await.ok()?.0 == 503).then_some(())).await;
    assert_eq!(feed.get("/readyz").await?, (503, "not ready\n".to_owned()));
    let (status, text) = told().await?;
    assert!(status == 503 && text.starts_with("v1/configmaps stale: "), "{status} {text}");
    Ok(())
}

#[tokio::test]
async fn who_says_nothing_does_not_keep_others_out() -> Result<()> {
    let patience = Duration::from_millis(200);
    let feed =
        Place::embedded().await?.feed_with(|hub| hub, |server| server.pending(2).handshake(patience)).await?;
    let mut silent = Vec::new();
    for _ in 0..6 {
        let mut stream = TcpStream::connect(feed.server.address()).await?;
        // Some begin a request, and never end it.
        if silent.len() % 2 == 0 {
            stream.write_all(b"GET /v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n").await?;
        }
        silent.push(stream);
    }
    let mut client = eventually("a place is free", SOON, async || feed.client().await.ok()).await;
    for mut stream in silent {
        // The server has closed it; what it says before does not matter.
        let mut said = Vec::new();
        timeout(SOON, stream.read_to_end(&mut said)).await?.ok();
    }
    // A WebSocket outlives that patience.
    client.sub("s", serde_json::json!({})).await?;
    client.snapshot("s").await?;
    Ok(())
}
