//! Who may come in, and how many.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use kube_informer_feed::message::SUBPROTOCOL;
use kube_informer_feed::server::{Server, ServerError, bearer_subprotocol};
use kube_informer_testbed::eventually::eventually;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Client, refusal};
use crate::harness::{Place, SOON};

const TOKEN: &str = "correct-horse-battery";

#[tokio::test]
async fn an_address_that_others_reach_needs_a_token() -> Result<()> {
    let feed = Place::embedded().await?.feed().await?;
    let everywhere: SocketAddr = "0.0.0.0:0".parse()?;
    let start = async |builder: kube_informer_feed::server::Builder| builder.listen(everywhere).start().await;
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
        tokio::time::timeout(SOON, stream.read_to_end(&mut said)).await?.ok();
    }
    // A WebSocket outlives that patience.
    client.sub("s", serde_json::json!({})).await?;
    client.snapshot("s").await?;
    Ok(())
}
