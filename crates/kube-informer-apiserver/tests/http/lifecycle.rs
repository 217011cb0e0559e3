//! Start, stop, and the port in between.

use std::net::SocketAddr;
use std::time::Duration;

use http::Method;
use http_body_util::BodyExt;
use kube_informer_apiserver::{Server, ServerError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower_service::Service;

use crate::client::{Connection, Protocol, Watch, request, soon};
use crate::{MAPS, map};

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Tasks of the client end a moment after their connections.
async fn back_to(tasks: usize) {
    soon("all tasks end", async {
        while alive_tasks() > tasks {
            // tidy: allow-sleep polls a count that nothing announces
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// Watches of all kinds, with a first event seen.
async fn open_watches(server: &Server) -> Vec<(Connection, Watch)> {
    let mut watches = Vec::new();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut connection = match server.ca_pem() {
            Some(ca) => Connection::open_tls(server.address(), ca, protocol).await,
            None => Connection::open(server.address(), protocol).await,
        };
        let mut watch = Watch::open(&mut connection, "/api/v1/namespaces?watch=true").await;
        for _ in 0..4 {
            watch.next().await.unwrap().unwrap();
        }
        watches.push((connection, watch));
    }
    watches
}

async fn is_refused(address: SocketAddr) -> bool {
    matches!(TcpStream::connect(address).await, Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused)
}

#[tokio::test]
async fn shutdown_ends_watches_cleanly_frees_the_port_and_leaves_nothing_behind() {
    for secure in [false, true] {
        let tasks = alive_tasks();
        let server = Server::builder().tls(secure).start().await.unwrap();
        let address = server.address();
        let watches = open_watches(&server).await;
        let idle = TcpStream::connect(address).await.unwrap();
        let mut half = TcpStream::connect(address).await.unwrap();
        half.write_all(b"GET /rea").await.unwrap();
        let mut service = server.service();
        let watch = request(Method::GET, "/api/v1/namespaces?watch=true&resourceVersion=100", &[], None);
        let in_process = service.call(watch).await.unwrap().into_body();
        soon("shutdown", server.shutdown()).await;
        assert_eq!(soon("its end", in_process.collect()).await.unwrap().to_bytes().len(), 0);
        for (connection, mut watch) in watches {
            assert!(watch.next().await.is_none(), "no error, the end");
            connection.ended().await;
        }
        assert!(is_refused(address).await);
        drop((idle, half));
        // Exactly as many as before: nothing of the server is left.
        back_to(tasks).await;
        drop(TcpListener::bind(address).await.unwrap());
    }
}

#[tokio::test]
async fn a_request_in_flight_is_answered_before_the_server_stops() {
    let server = Server::builder().start().await.unwrap();
    let body = map("one", 1_000).to_string();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let length = body.len();
    let head = format!(
        "POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\nexpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server says so when it has begun to read the body.
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        assert!(soon("a word", stream.read_buf(&mut answer)).await.unwrap() > 0);
    }
    assert!(answer.starts_with(b"HTTP/1.1 100"), "{}", String::from_utf8_lossy(&answer));
    let shutdown = tokio::spawn(server.shutdown());
    tokio::task::yield_now().await;
    stream.write_all(body.as_bytes()).await.unwrap();
    answer.clear();
    soon("the answer and the end", stream.read_to_end(&mut answer)).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 201"), "{}", String::from_utf8_lossy(&answer));
    soon("shutdown", shutdown).await.unwrap();
}

#[tokio::test]
async fn dropping_the_server_ends_everything_too() {
    for secure in [false, true] {
        let tasks = alive_tasks();
        let server = Server::builder().tls(secure).start().await.unwrap();
        let address = server.address();
        let watches = open_watches(&server).await;
        let mut service = server.service();
        drop(server);
        for (connection, mut watch) in watches {
            // Cut or ended: it is over.
            while let Some(Ok(_)) = watch.next().await {}
            connection.ended().await;
        }
        back_to(tasks).await;
        assert!(is_refused(address).await);
        // A service that was taken before gives no endless watches any more.
        let watch = request(Method::GET, "/api/v1/namespaces?watch=true", &[], None);
        let body = service.call(watch).await.unwrap().into_body();
        soon("the end of a watch", body.collect()).await.unwrap();
    }
}

#[tokio::test]
async fn a_closed_port_refuses_cuts_watches_and_opens_again_with_the_same_content() {
    let server = Server::builder().start().await.unwrap();
    let address = server.address();
    let mut connection = Connection::open(address, Protocol::Http1).await;
    connection.ask(Method::POST, MAPS, Some(&map("one", 10))).await;
    for _ in 0..3 {
        let watches = open_watches(&server).await;
        server.refuse_connections().await;
        assert!(is_refused(address).await);
        for (connection, mut watch) in watches {
            match watch.next().await {
                Some(Ok(event)) => panic!("{event}"),
                Some(Err(_)) | None => connection.ended().await,
            }
        }
        server.refuse_connections().await;
        assert!(is_refused(address).await, "twice is once");
        server.accept_connections().await;
        server.accept_connections().await;
        let mut connection = Connection::open(address, Protocol::Http2).await;
        assert_eq!(connection.get(&format!("{MAPS}/one")).await.0, 200);
    }
    // In process it was there all the time; and a closed server can be stopped.
    server.refuse_connections().await;
    let answer = server.service().call(request(Method::GET, MAPS, &[], None)).await.unwrap();
    assert_eq!(answer.status(), 200);
    soon("shutdown", server.shutdown()).await;
}

#[tokio::test]
async fn a_port_in_use_is_named_in_the_error() {
    let holder = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = holder.local_addr().unwrap();
    let error = Server::builder().listen(address).start().await.unwrap_err();
    assert!(matches!(&error, ServerError::Listen { address: at, .. } if *at == address));
    assert_eq!(error.to_string(), format!("cannot listen on {address}"));
    assert!(std::error::Error::source(&error).is_some(), "the cause is kept");
    drop(holder);
    assert!(Server::builder().listen(address).start().await.is_ok());
}

#[tokio::test]
async fn two_servers_share_nothing() {
    let one = Server::builder().start().await.unwrap();
    let two = Server::builder().start().await.unwrap();
    let mut connection = Connection::open(one.address(), Protocol::Http1).await;
    assert_eq!(connection.ask(Method::POST, MAPS, Some(&map("one", 1))).await.0, 201);
    let mut connection = Connection::open(two.address(), Protocol::Http1).await;
    assert_eq!(connection.get(&format!("{MAPS}/one")).await.0, 404);
}
