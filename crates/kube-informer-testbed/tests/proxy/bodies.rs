//! Bodies that are cut, stalled and slowed.

use std::time::{Duration, Instant};

use kube_informer_testbed::proxy::{Answer, End, Format, Match};

use crate::upstream::{FORMATS, PODS, Upstream, WATCH, event, list};
use crate::watching::{get, soon, watch};

/// Reads to the end: what came, and whether it ended well.
async fn read(mut stream: kube_informer_testbed::http::Streaming) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        match soon(stream.chunk()).await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return (body, true),
            Err(_) => return (body, false),
        }
    }
}

#[tokio::test]
async fn a_cut_without_an_answer_closes_the_connection() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    proxy.on(Match::list()).once().cut();
    assert!(client.get(PODS).await.is_err());
    let record = proxy.requests().wait_for(|request| request.end.is_some()).await.unwrap();
    assert_eq!((record.status, record.end.as_ref()), (None, Some(&End::Cut)), "{record}");
    assert_eq!(upstream.seen().len(), 0);
    client.get(PODS).await.unwrap().success().unwrap();
}

#[tokio::test]
async fn a_body_is_cut_after_just_so_many_bytes() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    let whole = list(Format::Json);
    for bytes in [0, 1, 1000, whole.len() as u64 - 1] {
        proxy.on(Match::list()).once().cut_after_bytes(bytes);
        let (body, well) = read(get(&client, PODS, "application/json").await.unwrap()).await;
        assert_eq!((body.as_slice(), well), (&whole[..bytes as usize], false));
        let record = proxy.requests().all().pop().unwrap();
        assert_eq!((record.bytes, record.end.as_ref()), (bytes, Some(&End::Cut)), "{record}");
        assert!(record.had(&format!("cut after {bytes} bytes")), "{record}");
    }
}

#[tokio::test]
async fn a_list_is_cut_inside_the_item_after_so_many_whole_ones() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    for (format, accept) in
        FORMATS.into_iter().zip(["application/json", "application/vnd.kubernetes.protobuf"])
    {
        let whole = list(format);
        let at = |name: &str| whole.windows(name.len()).position(|window| window == name.as_bytes()).unwrap();
        for (count, from, to) in [(0, 0, at("two")), (1, at("one"), at("three")), (2, at("two"), whole.len())]
        {
            proxy.on(Match::list()).once().cut_inside_object(count);
            let (body, well) = read(get(&client, PODS, accept).await.unwrap()).await;
            assert!(
                !well && body.len() > from && body.len() < to,
                "{format:?} {count}: {} bytes",
                body.len()
            );
            assert_eq!(body, whole[..body.len()]);
        }
    }
}

#[tokio::test]
async fn a_watch_is_cut_inside_the_event_after_so_many_whole_ones() {
    for format in FORMATS {
        let (upstream, proxy, client) = Upstream::proxied().await;
        proxy.on(Match::watch()).once().cut_inside_object(2);
        let mut events = watch(&client, WATCH, format).await;
        for name in ["a", "b", "c", "d"] {
            upstream.send("ADDED", name);
        }
        assert_eq!(events.names(2).await, ["a", "b"]);
        assert!(events.next().await.is_err());
        let frame = event(format, "ADDED", "c").encode();
        assert_eq!(events.unfinished(), &frame[..frame.len() / 2], "half of the third");
        upstream.wait_watches_gone(1).await;
        let record = proxy.requests().all().pop().unwrap();
        assert_eq!((record.events, record.end.as_ref()), (2, Some(&End::Cut)), "{record}");
    }
}

#[tokio::test]
async fn an_open_watch_is_cut_inside_its_next_event_even_from_the_middle_of_one() {
    for format in FORMATS {
        let (upstream, proxy, client) = Upstream::proxied().await;
        let mut events = watch(&client, WATCH, format).await;
        upstream.send("ADDED", "a");
        assert_eq!(events.names(1).await, ["a"]);
        let second = event(format, "ADDED", "b").encode();
        let (half, rest) = second.split_at(700);
        upstream.send_raw(half);
        let bytes = event(format, "ADDED", "a").encode().len() as u64 + 700;
        proxy.requests().wait_for(|request| request.bytes == bytes).await.unwrap();
        proxy.on_open(Match::watch()).cut_inside_object(1);
        upstream.send_raw(&[rest, &event(format, "ADDED", "c").encode()[..]].concat());
        assert_eq!(events.names(1).await, ["b"]);
        assert!(events.next().await.is_err());
        assert!(events.unfinished().len() > 500);
    }
}

#[tokio::test]
async fn open_watches_are_cut_now_and_others_left_alone() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    let mut pods = watch(&client, WATCH, Format::Json).await;
    let mut nodes = watch(&client, "/api/v1/nodes?watch=true", Format::Protobuf).await;
    let cut = soon(proxy.cut_open(Match::watch().path(PODS))).await;
    assert_eq!(cut, 1);
    assert!(pods.next().await.is_err());
    upstream.wait_watches_gone(1).await;
    upstream.send("ADDED", "a");
    assert_eq!(nodes.names(1).await, ["a"]);
    let open = proxy.requests().open();
    assert_eq!((open.len(), open[0].path.as_str(), proxy.connections()), (1, "/api/v1/nodes", 1));
}

#[tokio::test]
async fn a_request_that_waits_for_its_answer_is_cut_too() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    let stall = proxy.on(Match::list()).stall();
    let waiting = tokio::spawn(async move { client.get(PODS).await.is_err() });
    soon(stall.wait_applied(1)).await;
    assert_eq!(soon(proxy.cut_open(Match::any())).await, 1);
    assert!(soon(waiting).await.unwrap());
    assert_eq!(proxy.requests().all()[0].end, Some(End::Cut));
}

#[tokio::test]
async fn a_stalled_answer_comes_when_it_is_released() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    let stall = proxy.on(Match::list()).stall();
    let mut waiting = tokio::spawn(async move { client.get(PODS).await.unwrap() });
    soon(stall.wait_applied(1)).await;
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut waiting).await.is_err());
    assert_eq!((proxy.requests().open().len(), upstream.seen().len()), (1, 0));
    stall.release();
    assert_eq!(soon(waiting).await.unwrap().body, list(Format::Json));
}

#[tokio::test]
async fn a_body_that_stalls_after_some_bytes_stays_open_and_goes_on_when_released() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    for free in [kube_informer_testbed::proxy::Fault::release, kube_informer_testbed::proxy::Fault::remove] {
        let stall = proxy.on(Match::list()).once().stall_after_bytes(1000);
        let mut stream = get(&client, PODS, "application/json").await.unwrap();
        let mut body = Vec::new();
        while body.len() < 1000 {
            body.extend_from_slice(&soon(stream.chunk()).await.unwrap().unwrap());
        }
        soon(stall.wait_applied(1)).await;
        let more = tokio::time::timeout(Duration::from_millis(50), stream.chunk()).await;
        assert!(more.is_err() && body.len() == 1000, "{} bytes", body.len());
        free(&stall);
        let (rest, well) = read(stream).await;
        assert!(well);
        assert_eq!([body, rest].concat(), list(Format::Json));
    }
}

#[tokio::test]
async fn an_open_watch_stalls_between_or_inside_events_and_loses_nothing() {
    for format in FORMATS {
        let (upstream, proxy, client) = Upstream::proxied().await;
        let mut events = watch(&client, WATCH, format).await;
        upstream.send("ADDED", "a");
        assert_eq!(events.names(1).await, ["a"]);
        let stall = proxy.on_open(Match::watch()).stall_after_events(1);
        let inside = proxy.on_open(Match::watch()).stall_inside_object(2);
        for name in ["b", "c", "d"] {
            upstream.send("MODIFIED", name);
        }
        soon(stall.wait_applied(1)).await;
        assert_eq!(events.names(1).await, ["b"]);
        assert_eq!(proxy.requests().all()[0].events, 2);
        assert_eq!(inside.applied(), 0);
        stall.release();
        soon(inside.wait_applied(1)).await;
        assert_eq!(events.names(1).await, ["c"]);
        let half = event(format, "MODIFIED", "d").encode().len() as u64 / 2;
        let before: u64 = [("ADDED", "a"), ("MODIFIED", "b"), ("MODIFIED", "c")]
            .map(|(kind, name)| event(format, kind, name).encode().len() as u64)
            .iter()
            .sum();
        assert_eq!(proxy.requests().all()[0].bytes, before + half);
        inside.release();
        assert_eq!(events.names(1).await, ["d"]);
    }
}

#[tokio::test]
async fn a_stalled_watch_hides_the_servers_end_and_can_be_cut() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    let mut first = watch(&client, WATCH, Format::Json).await;
    let stall = proxy.on_open(Match::watch()).stall();
    soon(stall.wait_applied(1)).await;
    upstream.end_watches();
    let silent = tokio::time::timeout(Duration::from_millis(50), first.next()).await;
    assert!(silent.is_err() && proxy.requests().open().len() == 1);
    proxy.on_open(Match::watch()).cut();
    assert!(first.next().await.is_err());
    assert_eq!(proxy.requests().all()[0].end, Some(End::Cut));
}

#[tokio::test]
async fn a_client_that_leaves_a_stalled_body_is_noticed() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    let stall = proxy.on(Match::watch()).stall_after_bytes(0);
    let events = watch(&client, WATCH, Format::Json).await;
    soon(stall.wait_applied(1)).await;
    drop(events);
    let record = proxy.requests().wait_for(|request| request.end.is_some()).await.unwrap();
    assert_eq!(record.end, Some(End::ClientGone));
    upstream.wait_watches_gone(1).await;
}

#[tokio::test]
async fn a_throttled_body_comes_whole_and_no_faster() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    let whole = list(Format::Json);
    let fault = proxy.on(Match::list()).throttle(4 * whole.len() as u64);
    let start = Instant::now();
    let (body, well) = read(get(&client, PODS, "application/json").await.unwrap()).await;
    assert!(well && body == whole);
    assert!(start.elapsed() >= Duration::from_millis(240), "{:?}", start.elapsed());
    assert!(proxy.requests().all()[0].had("throttle"));
    fault.remove();
}

#[tokio::test]
async fn an_answer_takes_the_request_and_leaves_other_faults_unused() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    let cut = proxy.on(Match::list()).once().cut_after_bytes(10);
    proxy.on(Match::list()).once().answer(Answer::unavailable());
    assert_eq!(client.get(PODS).await.unwrap().status, 503);
    assert_eq!(cut.applied(), 0);
    assert!(client.get(PODS).await.is_err());
    assert_eq!(cut.applied(), 1);
}
