//! Clients that open a connection and do not go on.

use std::time::Duration;

use kube_informer_apiserver::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// As long as a server that works never needs.
const PATIENCE: Duration = Duration::from_secs(20);

async fn impatient() -> Server {
    Server::builder().header_timeout(Duration::from_millis(50)).start().await.unwrap()
}

async fn connect(server: &Server, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// Waits for the end of a connection, and returns what came before it.
async fn ended(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    // A reset is an end, too.
    let _: std::io::Result<usize> = read.expect("the connection is still open");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_headers_loses_its_connection() {
    let server = impatient().await;
    let halves = [
        "",
        "G",
        "GET /version HTTP/1.1\r\nHost: a",
        "GET /version HTTP/1.1\r\nHost: a\r\n",
        "PRI * HTTP/2.0\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ];
    for head in halves {
        let answer = ended(connect(&server, head).await).await;
        assert!(!answer.starts_with("HTTP/1.1 200"), "{head}: {answer}");
    }
    let again = "GET /version HTTP/1.1\r\nHost: a\r\n\r\nGET /version HTTP/1.1\r\nHost";
    let answer = ended(connect(&server, again).await).await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "{answer}");
    server.shutdown().await;
}

#[tokio::test]
async fn a_request_may_take_longer_than_its_headers() {
    let server = impatient().await;
    let watch = "GET /api/v1/namespaces?watch=true HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut watch = connect(&server, watch).await;
    // By the end of these the patience of the first connection has long ended.
    for _ in 0..3 {
        ended(connect(&server, "GET").await).await;
    }
    let body = r#"{"metadata":{"name":"late"}}"#;
    let post = format!(
        "POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = ended(connect(&server, &post).await).await;
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let mut seen = String::new();
    while !seen.contains(r#""name":"late""#) {
        let mut chunk = vec![0; 64 * 1024];
        let read = tokio::time::timeout(PATIENCE, watch.read(&mut chunk)).await.expect("an event").unwrap();
        assert!(read > 0, "the watch ended: {seen}");
        seen.push_str(&String::from_utf8_lossy(&chunk[..read]));
    }
    server.shutdown().await;
}
