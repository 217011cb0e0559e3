//! Whatever is sent, the embedded server answers, in form, and goes on; what it refuses changes nothing.
//!
//! A fixed seed makes random requests straight into its service: sensible ones, with and without mutations, and
//! nonsense.
//! `KUBE_INFORMER_FULL` makes the run ten times as long.

mod random;
mod sense;

use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tower_service::Service;

use self::random::Random;

/// The version of the store once the server's own controllers have nothing more to do. They run on this
/// thread, and only while it waits.
async fn settled(server: &Server) -> u64 {
    loop {
        let before = server.stats().version;
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
        if server.stats().version == before {
            return before;
        }
    }
}

#[tokio::test]
async fn nothing_that_a_client_sends_panics_the_server_and_what_is_refused_changes_nothing() {
    let rounds = if std::env::var_os("KUBE_INFORMER_FULL").is_some() { 40_000 } else { 4_000 };
    let server = Server::builder().seed(1).start().await.unwrap();
    let mut random = Random::new(0x5eed);
    let (mut taken, mut refused) = (0, 0);
    for round in 0..rounds {
        let (head, body) = random.request();
        let shown = format!("{} {} {:?}", head.method(), head.uri(), String::from_utf8_lossy(&body));
        let shown: String = shown.chars().take(2000).collect();
        let mut service = server.service();
        let before = settled(&server).await;
        let request = head.clone().map(|()| Full::new(body));
        let answer = AssertUnwindSafe(service.call(request)).catch_unwind().await;
        let Ok(Ok(answer)) = answer else { panic!("round {round}: a panic at {shown}") };
        let after = server.stats().version;
        match answer.status().as_u16() {
            ..400 if after > before => taken += 1,
            400.. => {
                refused += 1;
                assert_eq!(before, after, "round {round}: {} changed something: {shown}", answer.status());
            }
            _ => {}
        }
        let (status, watch) = (answer.status(), head.uri().query().is_some_and(|q| q.contains("watch")));
        let watch = watch || head.uri().path().contains("/watch/");
        if watch && status == 200 {
            // What there is to say at once, not the end.
            let first = AssertUnwindSafe(answer.into_body().frame()).catch_unwind().now_or_never();
            assert!(!matches!(first, Some(Err(_))), "round {round}: a panic in the watch {shown}");
            continue;
        }
        let body = AssertUnwindSafe(answer.into_body().collect()).catch_unwind().await;
        let Ok(Ok(body)) = body else { panic!("round {round}: a panic in the answer to {shown}") };
        let body = body.to_bytes();
        // The real server answers some nonsense with 500 and no reason; nothing may go wrong inside.
        let text = String::from_utf8_lossy(&body);
        assert!(status != 500 || !text.contains("\"reason\""), "round {round}: {shown}: {text}");
        if status.as_u16() >= 400 && head.method() != Method::HEAD {
            check_refusal(status.as_u16(), &body, &shown);
        }
    }
    // A run without either would show nothing.
    assert!(taken > rounds / 20 && refused > rounds / 10, "{taken} were taken, {refused} refused");
    for path in [
        "/api/v1/pods",
        "/api/v1/configmaps",
        "/api/v1/services",
        "/apis/apps/v1/deployments",
        "/api/v1/namespaces",
        "/apis",
    ] {
        let request = Request::get(path).body(Full::new(Bytes::new())).unwrap();
        let answer = server.service().call(request).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let list: Value = serde_json::from_slice(&body).unwrap();
        assert!(list["items"].is_array() || list["groups"].is_array(), "{list}");
    }
}

/// A refusal is a `Status`, or one of the few plain texts.
fn check_refusal(code: u16, body: &[u8], asked: &str) {
    let plain = match code {
        404 => body.is_empty() || body == b"404 page not found\n",
        500 => body.starts_with(b"Internal Server Error: "),
        _ => false,
    };
    if plain {
        return;
    }
    let status: Value = serde_json::from_slice(body)
        .unwrap_or_else(|error| panic!("{asked}: {error}: {}", String::from_utf8_lossy(body)));
    assert_eq!(
        (&status["kind"], &status["status"], &status["code"]),
        (&json!("Status"), &json!("Failure"), &json!(code)),
        "{asked}: {status}"
    );
    assert!(status["message"].is_string(), "{asked}: {status}");
}
