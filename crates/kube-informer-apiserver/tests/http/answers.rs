//! Compression, HEAD, limits, and clients that do not finish what they say.

use std::io::Read;

use http::Method;
use kube_informer_apiserver::Server;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Connection, Protocol, Watch, raw_health_checks, request, soon};
use crate::{MAPS, map};

const GZIP: (&str, &str) = ("accept-encoding", "gzip");

async fn with_maps(count: usize, size: usize) -> (Server, Connection) {
    let server = Server::builder().start().await.unwrap();
    let mut connection = Connection::open(server.address(), Protocol::Http1).await;
    for at in 0..count {
        let (status, _) = connection.ask(Method::POST, MAPS, Some(&map(&format!("map-{at}"), size))).await;
        assert_eq!(status, 201);
    }
    (server, connection)
}

#[tokio::test]
async fn big_answers_are_compressed_for_who_asks() {
    // 200 KB of text.
    let (_server, mut connection) = with_maps(4, 50_000).await;
    let (answer, plain) = connection.ask_with(Method::GET, MAPS, &[], None).await;
    assert!(answer.headers().get("content-encoding").is_none());
    assert!(plain.len() > 200_000);
    let (answer, packed) = connection.ask_with(Method::GET, MAPS, &[GZIP], None).await;
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    assert_eq!(answer.headers()["vary"], "Accept-Encoding");
    assert!(packed.len() < 20_000);
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&*packed).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain);
}

#[tokio::test]
async fn small_answers_refusals_and_watches_are_not_compressed() {
    let (_server, mut connection) = with_maps(4, 50_000).await;
    let (answer, body) = connection.ask_with(Method::GET, &format!("{MAPS}/map-1"), &[GZIP], None).await;
    assert!(answer.headers().get("content-encoding").is_none());
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["metadata"]["name"], "map-1");
    // A list's size is not known beforehand; a short one is not worth it either.
    let short = "/api/v1/namespaces";
    let (answer, body) = connection.ask_with(Method::GET, short, &[GZIP], None).await;
    assert!(answer.headers().get("content-encoding").is_none(), "{} bytes", body.len());
    let (answer, _) = connection.ask_with(Method::GET, "/api/v1/nowhere", &[GZIP], None).await;
    assert_eq!((answer.status().as_u16(), answer.headers().get("content-encoding")), (404, None));
    let watch = request(Method::GET, &format!("{MAPS}?watch=true"), &[GZIP], None);
    let answer = connection.send(watch).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers().get("content-encoding")), (200, None));
}

#[tokio::test]
async fn head_answers_with_headers_alone() {
    let (_server, mut connection) = with_maps(1, 10).await;
    for (path, status) in [("/readyz", 200), ("/apis", 200), ("/", 200), ("/version", 405), (MAPS, 405)] {
        let (answer, body) = connection.ask_with(Method::HEAD, path, &[], None).await;
        assert_eq!((answer.status().as_u16(), body.len()), (status, 0), "{path}");
        assert!(answer.headers().contains_key("content-type"));
    }
    assert_eq!(connection.get(MAPS).await.0, 200, "the connection can still be used");
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_nothing_is_stored() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let server = Server::builder().body_limit(10_000).start().await.unwrap();
        let before = server.stats();
        // Little over the limit, and so much that it fills all buffers on the way.
        for size in [10_000, 4_000_000] {
            let mut connection = Connection::open(server.address(), protocol).await;
            let (status, answer) = connection.ask(Method::POST, MAPS, Some(&map("big", size))).await;
            assert_eq!(status, 413, "{protocol:?} {size}");
            assert_eq!(answer["reason"], "RequestEntityTooLarge");
            assert_eq!(answer["message"], "Request entity too large: limit is 10000");
        }
        assert_eq!(server.stats(), before);
        let mut connection = Connection::open(server.address(), protocol).await;
        assert_eq!(connection.ask(Method::POST, MAPS, Some(&map("small", 5_000))).await.0, 201);
    }
}

#[tokio::test]
async fn clients_that_do_not_finish_hold_up_nobody() {
    let server = Server::builder().start().await.unwrap();
    let before = server.stats();
    let mut unfinished = Vec::new();
    let starts = [
        "",
        "GET /re",
        "GET /readyz HTTP/1.1\r\nhost: x\r\nx-slow",
        "POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{\"kind\":",
        "POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"kin",
        "PRI * HTTP/2.0\r\n\r\nSM",
    ];
    for start in starts.iter().cycle().take(60) {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        unfinished.push(stream);
    }
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    assert_eq!(raw_health_checks(&mut stream, 3).await, 3);
    // Half a body and then nothing more: not a request.
    drop(unfinished);
    assert_eq!(raw_health_checks(&mut stream, 3).await, 3);
    assert_eq!(server.stats(), before);
}

#[tokio::test]
async fn nonsense_is_answered_or_dropped_and_the_server_goes_on() {
    let server = Server::builder().start().await.unwrap();
    let nonsense: [&[u8]; 5] = [
        b"\0\0\0\0\xff\xfe\r\n\r\n",
        b"GET  HTTP/1.1\r\n\r\n",
        b"NONSENSE /api HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        b"GET /api/v1/%ff%00%zz/../..//?watch=%ff&limit=- HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        b"POST /api/v1/namespaces HTTP/1.1\r\nhost: x\r\ncontent-length: nan\r\n\r\n",
    ];
    for bytes in nonsense {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        soon("the end", stream.read_to_end(&mut answer)).await.unwrap();
        let text = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || text.starts_with("HTTP/1.1 4"), "{text}");
    }
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    assert_eq!(raw_health_checks(&mut stream, 1).await, 1);
}

#[tokio::test]
async fn a_watcher_that_does_not_read_holds_up_nobody() {
    let (server, mut connection) = with_maps(1, 10).await;
    let mut stuck = Connection::open(server.address(), Protocol::Http1).await;
    let watch = request(Method::GET, &format!("{MAPS}?watch=true"), &[], None);
    let unread = stuck.send(watch).await.unwrap();
    let mut reader = Connection::open(server.address(), Protocol::Http1).await;
    let mut watch = Watch::open(&mut reader, &format!("{MAPS}?watch=true")).await;
    watch.next().await.unwrap().unwrap();
    // More than the buffers between here and there take.
    for at in 0..60 {
        let (status, _) = connection.ask(Method::POST, MAPS, Some(&map(&format!("big-{at}"), 200_000))).await;
        assert_eq!(status, 201);
        let event = watch.next().await.unwrap().unwrap();
        assert_eq!(event["object"]["metadata"]["name"], format!("big-{at}"));
    }
    drop(unread);
}
