use axum::routing::get;
use futures_util::FutureExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::*;

async fn serving(router: Router, limits: Limits) -> Serving {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    Serving::start(listener, router, limits).unwrap()
}

fn limits(connections: u32, millis: u64) -> Limits {
    let time = Duration::from_millis(millis);
    Limits { connections, request: time, answer: time }
}

/// What comes back, until the connection is closed.
async fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer)).await;
    // A connection that is reset is closed as well.
    assert!(closed.is_ok(), "the connection is still open");
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn who_says_nothing_is_dropped_and_its_place_is_free() {
    let serving = serving(Router::new().route("/", get(async || "ok")), limits(1, 500)).await;
    let silent = TcpStream::connect(serving.address()).await.unwrap();
    let mut waits = TcpStream::connect(serving.address()).await.unwrap();
    waits.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    assert_eq!(rest(silent).await, "");
    assert!(rest(waits).await.ends_with("ok"));
}

#[tokio::test]
async fn a_connection_has_one_request() {
    let serving = serving(Router::new().route("/", get(async || "ok")), Limits::default()).await;
    let mut stream = TcpStream::connect(serving.address()).await.unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(&request.repeat(2)).await.unwrap();
    let answer = rest(stream).await;
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 1, "{answer}");
    assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn at_the_end_answers_come_to_their_end_and_what_is_stuck_is_cut() {
    let (begun, go_on) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let (said, told) = (Arc::clone(&begun), Arc::clone(&go_on));
    let slow = get(async move || {
        said.notify_one();
        told.notified().await;
        "done"
    });
    let stuck = get(async || std::future::pending::<()>().await);
    let router = Router::new().route("/slow", slow).route("/stuck", stuck);
    let serving = serving(router, limits(8, 60_000)).await;
    let ask = async |path: &str| {
        let mut stream = TcpStream::connect(serving.address()).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
        stream
    };
    let (slow, stuck) = (ask("/slow").await, ask("/stuck").await);
    begun.notified().await;
    let address = serving.address();
    let mut end = Box::pin(serving.shutdown(Duration::from_millis(200)));
    assert!((&mut end).now_or_never().is_none());
    go_on.notify_one();
    end.await;
    assert!(rest(slow).await.ends_with("done"));
    assert_eq!(rest(stuck).await, "");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}
