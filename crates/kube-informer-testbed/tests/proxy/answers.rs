//! Without a fault nothing is changed; with one the proxy answers itself.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Method};
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::{Answer, End, Format, Match, Proxy};

use crate::upstream::{FORMATS, PODS, Upstream, WATCH, list};
use crate::watching::{get, soon, watch};

#[tokio::test]
async fn without_a_fault_everything_passes_as_it_is() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    for (format, accept) in
        FORMATS.into_iter().zip(["application/json", "application/vnd.kubernetes.protobuf"])
    {
        let mut answer = get(&client, "/api/v1/pods?limit=5", accept).await.unwrap();
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.unwrap() {
            body.extend_from_slice(&chunk);
        }
        assert_eq!((answer.status.as_u16(), answer.headers["content-type"].to_str().unwrap()), (200, accept));
        assert_eq!(body, list(format));
    }
    let headers = HeaderMap::from_iter([("x-mine".parse().unwrap(), HeaderValue::from_static("kept"))]);
    let echoed = client.request(Method::PUT, "/echo?a=%20b", headers, "x".repeat(300_000)).await.unwrap();
    assert_eq!((echoed.status.as_u16(), echoed.body.len()), (201, 300_000));

    let seen = upstream.seen();
    let last = seen.last().unwrap();
    assert_eq!((last.method.as_str(), last.uri.as_str()), ("PUT", "/echo?a=%20b"));
    assert_eq!(last.headers["x-mine"], "kept");
    assert_eq!(last.headers["authorization"], "Bearer secret");
    assert!(!last.headers.contains_key("accept-encoding"), "nobody asked for that");
    assert!(proxy.requests().all().iter().all(|request| request.faults.is_empty()));
}

#[tokio::test]
async fn credentials_are_added_only_where_that_is_asked_for_and_none_came() {
    let upstream = Upstream::start().await;
    let access = upstream.access.clone().with_token("of-the-proxy");
    for (add, token, expected) in [
        (false, None, None),
        (false, Some("mine"), Some("Bearer mine")),
        (true, None, Some("Bearer of-the-proxy")),
        (true, Some("mine"), Some("Bearer mine")),
    ] {
        let config = kube_informer_testbed::proxy::Config::new(&access);
        let proxy = if add { config.add_credentials() } else { config }.start().await.unwrap();
        let mut client = Access::anonymous(proxy.url());
        if let Some(token) = token {
            client = client.with_token(token);
        }
        Endpoint::new(client).unwrap().get(PODS).await.unwrap().success().unwrap();
        let seen = upstream.seen();
        let got = seen.last().unwrap().headers.get("authorization").map(|value| value.to_str().unwrap());
        assert_eq!(got, expected);
    }
}

#[tokio::test]
async fn the_next_matching_requests_are_answered_and_no_others() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    let fault = proxy.on(Match::list().path(PODS)).skip(1).times(2).answer(Answer::unavailable());
    let mut codes = Vec::new();
    for _ in 0..5 {
        client.get("/version").await.unwrap().success().unwrap();
        codes.push(client.get(PODS).await.unwrap().status.as_u16());
    }
    assert_eq!(codes, [200, 503, 503, 200, 200]);
    assert_eq!(fault.applied(), 2);
    assert_eq!(upstream.seen().len(), 8, "what the proxy answers, the server never sees");
}

#[tokio::test]
async fn a_fault_without_a_number_acts_until_it_is_removed_and_healing_removes_all() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    let fault = proxy.on(Match::any()).answer(Answer::unavailable());
    let code = async || client.get(PODS).await.unwrap().status.as_u16();
    assert_eq!([code().await, code().await, code().await], [503, 503, 503]);
    fault.remove();
    assert_eq!(code().await, 200);
    proxy.on(Match::any()).answer(Answer::unauthorized());
    assert_eq!(code().await, 401);
    proxy.heal();
    assert_eq!(code().await, 200);
}

#[tokio::test]
async fn errors_are_what_an_api_server_says() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    for (answer, code, reason) in [
        (Answer::unauthorized(), 401, "Unauthorized"),
        (Answer::forbidden(), 403, "Forbidden"),
        (Answer::not_found(), 404, "NotFound"),
        (Answer::gone(), 410, "Expired"),
        (Answer::continue_expired(), 410, "Expired"),
        (Answer::no_streaming_lists(), 422, "Invalid"),
        (Answer::too_many_requests(3), 429, "TooManyRequests"),
        (Answer::internal_error(), 500, "InternalError"),
        (Answer::unavailable(), 503, "ServiceUnavailable"),
        (Answer::too_large_version(), 504, "Timeout"),
    ] {
        proxy.on(Match::any()).once().answer(answer);
        let response = client.get(PODS).await.unwrap();
        let status = response.json().unwrap();
        assert_eq!(response.status.as_u16(), code);
        assert_eq!(response.headers["content-type"], "application/json");
        assert_eq!((&status["kind"], &status["status"]), (&"Status".into(), &"Failure".into()));
        assert_eq!((&status["code"], &status["reason"]), (&code.into(), &reason.into()));
        assert!(!status["message"].as_str().unwrap().is_empty());
        let retry = response.headers.get("retry-after").map(|value| value.to_str().unwrap());
        assert_eq!(retry, (code == 429).then_some("3"));
    }
}

#[tokio::test]
async fn errors_come_in_the_encoding_that_the_request_accepts() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    proxy.on(Match::any()).answer(Answer::gone());
    let accept = "application/vnd.kubernetes.protobuf,application/json";
    let mut answer = get(&client, PODS, accept).await.unwrap();
    assert_eq!(answer.headers["content-type"], "application/vnd.kubernetes.protobuf");
    let body = answer.chunk().await.unwrap().unwrap();
    assert!(body.starts_with(b"k8s\0"));
    let text = String::from_utf8_lossy(&body);
    assert!(text.contains("Expired") && text.contains("too old resource version") && text.contains("Status"));
}

#[tokio::test]
async fn some_errors_are_no_status() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    for (answer, code, media, text) in [
        (Answer::not_served(), 404, "text/plain; charset=utf-8", "404 page not found\n"),
        (
            Answer::overloaded(1),
            429,
            "text/plain; charset=utf-8",
            "Too many requests, please try again later.\n",
        ),
        (Answer::html(502), 502, "text/html; charset=utf-8", "<!DOCTYPE html>"),
        (Answer::raw(200, "application/json", "{\"half\":"), 200, "application/json", "{\"half\":"),
    ] {
        proxy.on(Match::any()).once().answer(answer);
        let response = client.get(PODS).await.unwrap();
        assert_eq!(
            (response.status.as_u16(), response.headers["content-type"].to_str().unwrap()),
            (code, media)
        );
        assert!(response.text().starts_with(text));
    }
}

#[tokio::test]
async fn an_error_is_said_inside_a_watch_in_its_format() {
    for format in FORMATS {
        let (upstream, proxy, client) = Upstream::proxied().await;
        // A watch that is open, in the middle of being idle.
        let mut open = watch(&client, WATCH, format).await;
        upstream.send("ADDED", "a");
        assert_eq!(open.event().await.name(), "a");
        proxy.on_open(Match::watch()).error_event(Answer::gone());
        let error = open.event().await;
        assert_eq!(error.kind(), "ERROR");
        assert!(String::from_utf8_lossy(error.object()).contains("too old resource version"));
        assert!(open.next().await.unwrap().is_none(), "then it ends cleanly");
        upstream.wait_watches_gone(1).await;

        // A watch that comes.
        proxy.on(Match::watch()).once().error_event(Answer::gone());
        let mut coming = watch(&client, WATCH, format).await;
        assert_eq!(coming.event().await.kind(), "ERROR");
        assert!(coming.next().await.unwrap().is_none());
        assert_eq!(upstream.seen().len(), 1, "the server never saw it");
        if format == Format::Json {
            let error: serde_json::Value = serde_json::from_slice(error.object()).unwrap();
            assert_eq!(error["code"], 410);
        }
    }
}

#[tokio::test]
async fn a_server_can_pretend_to_be_of_another_version() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    let fault = proxy.on(Match::any()).pretend_version(1, 33);
    let version = client.get_json("/version").await.unwrap();
    assert_eq!((&version["minor"], &version["gitVersion"]), (&"33".into(), &"v1.33.0".into()));
    assert_eq!(client.get_json(PODS).await.unwrap()["kind"], "PodList", "nothing else pretends");
    fault.remove();
    assert_eq!(client.get_json("/version").await.unwrap()["minor"], "37");
}

#[tokio::test]
async fn the_content_type_can_be_another_than_the_content() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    proxy.on(Match::list()).content_type("text/html");
    let response = client.get(PODS).await.unwrap();
    assert_eq!(response.headers["content-type"], "text/html");
    assert_eq!(response.body, list(Format::Json));
}

#[tokio::test]
async fn a_delayed_request_reaches_the_server_no_earlier() {
    let (upstream, proxy, client) = Upstream::proxied().await;
    let delay = Duration::from_millis(150);
    proxy.on(Match::list()).delay(delay);
    proxy.on(Match::list()).once().answer(Answer::unavailable());
    for expected in [503, 200] {
        let start = Instant::now();
        let response = client.get(PODS).await.unwrap();
        assert_eq!(response.status.as_u16(), expected);
        assert!(start.elapsed() >= delay, "an answer of the proxy's own is delayed too");
    }
    assert_eq!(upstream.seen().len(), 1);
}

#[tokio::test]
async fn requests_are_matched_by_all_that_tells_them_apart() {
    let (_upstream, proxy, client) = Upstream::proxied().await;
    let only = |matcher: Match, code: u16| {
        proxy.heal();
        proxy.on(matcher).answer(Answer::status(code, "Test", "test"));
    };
    let hit = async |path: &str| client.get(path).await.unwrap().status.as_u16() == 418;

    only(Match::list().path_prefix("/api/v1/"), 418);
    assert!(hit("/api/v1/pods").await && !hit("/version").await);
    only(Match::any().path_contains("/namespaces/a/"), 418);
    assert!(hit("/api/v1/namespaces/a/pods").await && !hit("/api/v1/namespaces/b/pods").await);
    only(Match::list().resource_version("0"), 418);
    assert!(hit("/api/v1/pods?resourceVersion=0").await && !hit("/api/v1/pods?resourceVersion=01").await);
    only(Match::list().label_selector("app=web"), 418);
    assert!(hit("/api/v1/pods?labelSelector=app%3Dweb").await && !hit("/api/v1/pods").await);
    only(Match::list().field_selector("metadata.name=x"), 418);
    assert!(hit("/api/v1/pods?fieldSelector=metadata.name%3Dx").await && !hit("/api/v1/pods").await);
    only(Match::any().send_initial_events(true), 418);
    assert!(hit("/api/v1/pods?watch=1&sendInitialEvents=true").await && !hit("/api/v1/pods").await);
    only(Match::list().without_param("limit"), 418);
    assert!(hit("/api/v1/pods").await && !hit("/api/v1/pods?limit=1").await);
    only(Match::any().method(Method::DELETE), 418);
    assert!(!hit("/api/v1/pods").await);
    assert_eq!(client.delete("/api/v1/pods").await.unwrap().status, 418);
    only(Match::write(), 418);
    assert!(!hit("/api/v1/pods").await);
    assert_eq!(client.post("/api/v1/pods", &serde_json::json!({})).await.unwrap().status, 418);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_answered_for() {
    // Bound and not listening: refuses, and nobody else gets the port meanwhile.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let nobody = Access::anonymous(format!("http://{}", socket.local_addr().unwrap()));
    let proxy = Proxy::start(&nobody).await.unwrap();
    let response = soon(proxy.endpoint("secret").unwrap().get(PODS)).await.unwrap();
    assert_eq!(response.status, 502);
    assert_eq!(response.headers["content-type"], "text/plain; charset=utf-8");
    assert!(response.text().contains("cannot be reached"));
    let record = proxy.requests().wait_for(|request| request.status == Some(502)).await.unwrap();
    assert!(matches!(record.end, Some(End::Upstream(_))), "{record}");
}

#[tokio::test]
async fn a_kubeconfig_leads_to_the_proxy() {
    let (upstream, proxy, _client) = Upstream::proxied().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, proxy.kubeconfig("a-token")).unwrap();
    let client = Endpoint::from_kubeconfig(&path).await.unwrap();
    client.get(PODS).await.unwrap().success().unwrap();
    assert_eq!(upstream.seen()[0].headers["authorization"], "Bearer a-token");
}
