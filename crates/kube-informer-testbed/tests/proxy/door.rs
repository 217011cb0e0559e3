//! Connections that are refused, and a port that comes back.

use std::time::Duration;

use kube_informer_testbed::proxy::{End, Format, Match};
use tokio::net::TcpStream;

use crate::upstream::{PODS, Upstream, WATCH};
use crate::watching::{soon, watch};

#[tokio::test]
async fn refused_connections_are_really_refused_and_the_same_port_opens_again() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    client.get(PODS).await.unwrap();
    let mut open = watch(&client, WATCH, Format::Json).await;
    let port = proxy.port();
    for _ in 0..3 {
        soon(proxy.refuse_connections()).await;
        let refused = TcpStream::connect(("127.0.0.1", port)).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        assert!(client.get(PODS).await.is_err(), "an idle connection is no way around");
        soon(proxy.accept_connections()).await;
        client.get(PODS).await.unwrap().success().unwrap();
    }
    upstream.send("ADDED", "a");
    assert_eq!(open.names(1).await, ["a"], "what was in flight goes on");
}

#[tokio::test]
async fn a_connection_in_use_when_the_door_shuts_takes_no_further_request() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    let stall = proxy.on(Match::list()).once().stall();
    let again = client.clone();
    let waiting = tokio::spawn(async move { client.get(PODS).await });
    soon(stall.wait_applied(1)).await;
    soon(proxy.refuse_connections()).await;
    stall.release();
    soon(waiting).await.unwrap().unwrap().success().unwrap();
    assert!(proxy.wait_connections(0, Duration::from_secs(10)).await);
    assert!(again.get(PODS).await.is_err());
}

#[tokio::test]
async fn a_proxy_that_goes_down_takes_everything_with_it() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    let mut open = watch(&client, WATCH, Format::Protobuf).await;
    assert_eq!(soon(proxy.go_down()).await, 1);
    assert!(open.next().await.is_err());
    assert!(client.get(PODS).await.is_err());
    assert_eq!((proxy.connections(), proxy.requests().open().len()), (0, 0));
    assert_eq!(proxy.requests().all()[0].end, Some(End::Cut));
    upstream.wait_watches_gone(1).await;
    soon(proxy.accept_connections()).await;
    client.get(PODS).await.unwrap().success().unwrap();
}

#[tokio::test]
async fn a_proxy_that_is_shut_down_leaves_nothing_open() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    let mut open = watch(&client, WATCH, Format::Json).await;
    let requests = proxy.requests();
    soon(proxy.shut_down()).await;
    assert!(open.next().await.is_err());
    // Another test may get the port; what comes there does not come here.
    let _ = client.get(PODS).await;
    assert_eq!((requests.open().len(), requests.all().len()), (0, 1));
    upstream.wait_watches_gone(1).await;
}

#[tokio::test]
async fn connections_are_counted_and_can_be_awaited() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    let first = watch(&client, WATCH, Format::Json).await;
    let _second = watch(&client, WATCH, Format::Json).await;
    assert!(proxy.wait_connections(2, Duration::from_secs(10)).await);
    drop(first);
    assert!(proxy.wait_connections(1, Duration::from_secs(10)).await);
    assert!(!proxy.wait_connections(0, Duration::from_millis(20)).await);
    assert_eq!(soon(proxy.cut_open(Match::watch())).await, 1);
    assert_eq!(proxy.connections(), 0);
}

/// Watched from another thread: where threads wait for each other, no deadline of theirs is looked at.
#[test]
fn who_waits_for_connections_to_go_does_not_stop_those_that_come_and_go() {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
        runtime.unwrap().block_on(async {
            let (_upstream, proxy, client) = Upstream::proxied().await;
            let port = proxy.port();
            let mut comers = tokio::task::JoinSet::new();
            for _ in 0..4 {
                comers.spawn(async move {
                    loop {
                        drop(TcpStream::connect(("127.0.0.1", port)).await);
                    }
                });
            }
            for _ in 0..300 {
                let _open = watch(&client, WATCH, Format::Json).await;
                proxy.cut_open(Match::watch()).await;
            }
            comers.shutdown().await;
        });
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(60)).expect("everyone waits for someone");
}
