//! What the proxy remembers.

use std::time::Duration;

use kube_informer_testbed::proxy::{Answer, End, Format, Match, Request, Verb};

use crate::upstream::{PODS, Upstream, WATCH, event, list};
use crate::watching::{soon, watch};

#[tokio::test]
async fn a_record_tells_the_request_the_answer_and_the_end() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    client.get("/api/v1/pods?limit=2&labelSelector=a%3Db").await.unwrap();
    proxy.on(Match::list()).once().answer(Answer::too_many_requests(7));
    client.get(PODS).await.unwrap();

    let all = proxy.requests().all();
    assert_eq!(all.len(), 2);
    let (first, second) = (&all[0], &all[1]);
    assert_eq!((first.id, first.method.as_str(), first.path.as_str()), (1, "GET", PODS));
    assert_eq!((first.verb(), first.param("labelSelector").as_deref()), (Verb::List, Some("a=b")));
    assert_eq!((first.status, first.content_type.as_str()), (Some(200), "application/json"));
    assert_eq!((first.bytes, first.end.as_ref()), (list(Format::Json).len() as u64, Some(&End::Complete)));
    assert_eq!(first.authorization.as_deref(), Some("Bearer secret"));
    assert!(first.ended_at.unwrap() >= first.at && second.at >= first.ended_at.unwrap());
    assert_eq!(
        (second.status, second.faults.as_slice()),
        (Some(429), &["answer 429 retry-after 7".to_owned()][..])
    );
    assert_eq!(second.connection, first.connection, "the connection was kept");
}

#[tokio::test]
async fn a_watch_is_open_until_it_ends_and_its_events_are_counted() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    let requests = proxy.requests();
    for format in [Format::Json, Format::Protobuf] {
        let last = requests.last_id();
        let mut events = watch(&client, WATCH, format).await;
        assert_eq!((requests.open().len(), proxy.connections()), (1, 1));
        let mut bytes = 0;
        for name in ["a", "b", "c"] {
            upstream.send("ADDED", name);
            bytes += event(format, "ADDED", name).encode().len() as u64;
        }
        let record = requests.wait_for(|request| request.id > last && request.events == 3).await.unwrap();
        assert_eq!((record.verb(), record.bytes, record.end), (Verb::Watch, bytes, None));
        upstream.end_watches();
        events.names(3).await;
        assert!(events.next().await.unwrap().is_none());
        let record = requests.wait_for(|request| request.id > last && !request.is_open()).await.unwrap();
        assert_eq!(record.end, Some(End::Complete));
    }
    assert_eq!(requests.open().len(), 0);
}

#[tokio::test]
async fn a_client_that_goes_away_is_told_from_a_cut() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    drop(watch(&client, WATCH, Format::Json).await);
    let record = proxy.requests().wait_for(|request| request.end.is_some()).await.unwrap();
    assert_eq!(record.end, Some(End::ClientGone));
    upstream.wait_watches_gone(1).await;
    assert!(proxy.wait_connections(0, Duration::from_secs(10)).await);
}

#[tokio::test]
async fn a_server_that_breaks_off_is_told_and_the_client_sees_a_break() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    let mut events = watch(&client, WATCH, Format::Json).await;
    upstream.send("ADDED", "a");
    assert_eq!(events.names(1).await, ["a"]);
    upstream.stop().await;
    assert!(events.next().await.is_err());
    let record = proxy.requests().wait_for(|request| request.end.is_some()).await.unwrap();
    assert!(matches!(record.end, Some(End::Upstream(_))), "{record}");
}

#[tokio::test]
async fn the_transcript_is_bounded() {
    let (_upstream, proxy, client) = Upstream::proxied_with(|config| config.transcript(3)).await;
    let _open = watch(&client, WATCH, Format::Json).await;
    for _ in 0..5 {
        client.get("/version").await.unwrap();
    }
    let kept: Vec<u64> = proxy.requests().all().iter().map(|request| request.id).collect();
    assert_eq!((kept, proxy.requests().forgotten()), (vec![1, 5, 6], 3));
}

#[tokio::test]
async fn requests_are_awaited_by_number() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    let requests = proxy.requests();
    let waiting = tokio::spawn(async move { requests.wait_for_count(3, Request::is_list).await });
    for _ in 0..3 {
        client.get(PODS).await.unwrap();
        client.get("/version").await.unwrap();
    }
    assert_eq!(soon(waiting).await.unwrap().unwrap().len(), 3);
}
