//! The faults of the embedded server: the same as the proxy's, without a proxy, with a socket and without.
//! What each fault does to bytes is tested with the proxy; here it is shown that they reach this server.

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

#[allow(dead_code, reason = "shared with the tests on the wire")]
#[path = "http/client.rs"]
mod client;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use client::{Connection, Protocol, soon};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use kube_informer_apiserver::faults::{Answer, End, Events, HangUp, Match, Verb};
use kube_informer_apiserver::{Body, Server, Service};
use serde_json::{Value, json};
use tower_service::Service as _;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true&allowWatchBookmarks=true";

async fn server() -> Server {
    Server::builder().bookmark_interval(Duration::from_millis(20)).start().await.unwrap()
}

async fn call(
    service: &Service,
    method: Method,
    uri: &str,
    body: Value,
) -> Result<(StatusCode, Body), HangUp> {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let request = Request::builder().method(method).uri(uri).body(Full::new(body)).unwrap();
    let response = soon("an answer", service.clone().call(request)).await?;
    Ok((response.status(), response.into_body()))
}

async fn get(service: &Service, uri: &str) -> (StatusCode, Value) {
    let (status, body) = call(service, Method::GET, uri, Value::Null).await.unwrap();
    let bytes = soon("a body", body.collect()).await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn create(service: &Service, name: &str) {
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
    assert_eq!(call(service, Method::POST, MAPS, object).await.unwrap().0, 201);
}

/// The frames of a watch, without bookmarks unless wanted.
struct Frames {
    body: Body,
    buffer: BytesMut,
    bookmarks: bool,
}

impl Frames {
    async fn open(service: &Service, uri: &str) -> Self {
        let (status, body) = call(service, Method::GET, uri, Value::Null).await.unwrap();
        assert_eq!(status, 200);
        Self { body, buffer: BytesMut::new(), bookmarks: false }
    }

    /// The next event, or how the watch ended: `Ok(None)` cleanly, `Err` cut.
    async fn next(&mut self) -> Result<Option<Value>, HangUp> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                let event: Value = serde_json::from_slice(&line).unwrap();
                if self.bookmarks || event["type"] != "BOOKMARK" {
                    return Ok(Some(event));
                }
                continue;
            }
            match soon("a frame", self.body.frame()).await {
                None => return Ok(None),
                Some(frame) => self.buffer.extend_from_slice(&frame?.into_data().unwrap()),
            }
        }
    }

    async fn name(&mut self) -> String {
        let event = self.next().await.unwrap().unwrap();
        event["object"]["metadata"]["name"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn answers_in_the_servers_place_come_as_often_as_said() {
    let server = server().await;
    let (service, faults) = (server.service(), server.faults());
    faults.on(Match::list().path(MAPS)).times(2).answer(Answer::too_many_requests(7));
    for _ in 0..2 {
        let (status, body) = get(&service, MAPS).await;
        assert_eq!((status.as_u16(), body["reason"].as_str()), (429, Some("TooManyRequests")));
        assert_eq!(body["details"]["retryAfterSeconds"], 7);
    }
    assert_eq!(get(&service, MAPS).await.0, 200);
    faults.on(Match::any()).once().answer(Answer::html(503));
    assert_eq!(get(&service, MAPS).await, (StatusCode::SERVICE_UNAVAILABLE, Value::Null));
    faults.on(Match::get().path("/version")).once().pretend_version(1, 33);
    assert_eq!(get(&service, "/version").await.1["minor"], "33");
    assert_ne!(get(&service, "/version").await.1["minor"], "33");
}

#[tokio::test]
async fn events_are_dropped_doubled_edited_and_bookmarks_swallowed() {
    let server = server().await;
    let (service, faults) = (server.service(), server.faults());
    faults.on(Match::watch()).drop_events(Events::added().named("a"));
    faults.on(Match::watch()).duplicate_events(Events::added().named("b"));
    let edit = |event: &mut kube_informer_apiserver::faults::WatchEvent| {
        event.edit_json(|object| object["metadata"]["name"] = "edited".into());
    };
    faults.on(Match::watch()).edit_events(Events::added().named("c"), edit);
    let bookmarks = faults.on(Match::watch()).swallow_bookmarks();
    let mut frames = Frames::open(&service, WATCH).await;
    frames.bookmarks = true;
    for name in ["a", "b", "c", "d"] {
        create(&service, name).await;
    }
    for expected in ["b", "b", "edited", "d"] {
        assert_eq!(frames.name().await, expected);
    }
    // A body is made while it is read.
    tokio::select! {
        () = bookmarks.wait_events(1) => {}
        event = frames.next() => panic!("{event:?} came through"),
    }
    bookmarks.remove();
    assert_eq!(frames.next().await.unwrap().unwrap()["type"], "BOOKMARK");
}

#[tokio::test]
async fn an_open_watch_stalls_without_closing_and_goes_on_when_released() {
    let server = server().await;
    let (service, faults) = (server.service(), server.faults());
    let mut frames = Frames::open(&service, WATCH).await;
    create(&service, "before").await;
    assert_eq!(frames.name().await, "before");
    let stall = faults.on_open(Match::watch()).stall();
    create(&service, "during").await;
    let waited = tokio::time::timeout(Duration::from_millis(100), frames.body.frame()).await;
    assert!(waited.is_err(), "nothing comes through, and nothing ends");
    stall.release();
    assert_eq!(frames.name().await, "during");
}

#[tokio::test]
async fn a_watch_is_cut_inside_an_object_and_the_transcript_says_so() {
    let server = server().await;
    let (service, faults) = (server.service(), server.faults());
    faults.on(Match::watch()).once().cut_inside_object(1);
    let mut frames = Frames::open(&service, WATCH).await;
    for name in ["whole", "half"] {
        create(&service, name).await;
    }
    assert_eq!(frames.name().await, "whole");
    assert_eq!(frames.next().await, Err(HangUp));
    assert!(!frames.buffer.is_empty(), "half of an object came through");
    let watch = faults.requests().wait_for(|r| r.is_watch() && r.end.is_some()).await.unwrap();
    assert_eq!((watch.verb(), watch.end), (Verb::Watch, Some(End::Cut)));
}

#[tokio::test]
async fn every_open_watch_is_cut_now_with_a_connection_and_without() {
    let server = server().await;
    let faults = server.faults();
    let mut inside = Frames::open(&server.service(), WATCH).await;
    let mut outside = Connection::open(server.address(), Protocol::Http1).await;
    let request = Request::get(WATCH).header("host", "localhost").body(Full::default()).unwrap();
    let mut body = outside.send(request).await.unwrap().into_body();
    faults.requests().wait_for_count(2, |r| r.is_watch() && r.is_open()).await.unwrap();
    assert_eq!(faults.cut_open(&Match::watch()).len(), 2);
    assert_eq!(inside.next().await, Err(HangUp));
    loop {
        // Bookmarks may have been on their way.
        match soon("the end", body.frame()).await {
            Some(Ok(_)) => {}
            Some(Err(_)) => break,
            None => panic!("a cut watch looks like one that ended"),
        }
    }
}

#[tokio::test]
async fn faults_reach_http_2_and_a_stream_that_is_cut_is_an_error() {
    let server = server().await;
    let faults = server.faults();
    faults.on(Match::list().path(MAPS)).once().cut_after_bytes(10);
    let mut connection = Connection::open(server.address(), Protocol::Http2).await;
    let uri = format!("http://{}{MAPS}", server.address());
    let request = Request::get(uri).body(Full::default()).unwrap();
    let mut body = connection.send(request).await.unwrap().into_body();
    let mut bytes = 0;
    loop {
        match soon("the cut", body.frame()).await {
            Some(Ok(frame)) => bytes += frame.into_data().unwrap().len(),
            Some(Err(_)) => break,
            None => panic!("a cut list looks whole"),
        }
    }
    assert!(bytes <= 10, "{bytes}");
}

#[tokio::test]
async fn a_request_can_be_hung_up_on_delayed_and_healed() {
    let server = server().await;
    let (service, faults) = (server.service(), server.faults());
    faults.on(Match::get().path("/version")).cut();
    assert_eq!(call(&service, Method::GET, "/version", Value::Null).await.unwrap_err(), HangUp);
    faults.heal();
    let delay = faults.on(Match::get()).once().delay(Duration::from_millis(5));
    assert_eq!(get(&service, "/version").await.0, 200);
    assert_eq!(delay.applied(), 1);
}

#[tokio::test]
async fn a_server_whose_faults_nobody_asked_for_keeps_no_transcript() {
    let server = server().await;
    let service = server.service();
    assert_eq!(get(&service, MAPS).await.0, 200);
    assert!(server.faults().requests().all().is_empty());
    assert_eq!(get(&service, MAPS).await.0, 200);
    assert_eq!(server.faults().requests().all().len(), 1);
}
