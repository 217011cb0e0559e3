//! What the server says that is no object: failures, documents about itself, and in which encoding it says it.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use kube_informer::encoding::{Codec, CodecError, Encoding, Fault, Rules};
use kube_informer::wire::{Change, ListItems, Status, WatchFrame, WireError};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::{Endpoint, Response};
use kube_informer_testbed::require;
use serde_json::{Value, json};

use crate::compare::{difference, differences};
use crate::read::{Form, Watch, ask, content_type, list, media_type, value};
use crate::world::World;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const EITHER: &str = "application/vnd.kubernetes.protobuf,application/json";

/// A request whose answer is asked for in one encoding.
async fn send(endpoint: &Endpoint, method: &Method, path: &str, body: &str, accept: &str) -> Response {
    let headers = HeaderMap::from_iter([
        (ACCEPT, HeaderValue::try_from(accept).unwrap()),
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
    ]);
    endpoint.request(method.clone(), path, headers, body.to_owned()).await.unwrap()
}

/// Where the answers to one request differ between the encodings.
async fn difference_of(
    endpoint: &Endpoint,
    method: Method,
    path: &str,
    body: &str,
) -> (Option<String>, StatusCode) {
    let protobuf = send(endpoint, &method, path, body, PROTOBUF).await;
    let json = send(endpoint, &method, path, body, "application/json").await;
    assert_eq!(protobuf.status, json.status, "{path}");
    assert_eq!(content_type(&protobuf.headers), PROTOBUF, "{path}");
    let at = difference("", &value(Encoding::Protobuf, &protobuf.body), &value(Encoding::Json, &json.body));
    if !json.status.is_success() {
        let status = Status::read(Encoding::Protobuf, &protobuf.body);
        assert_eq!(status, Status::read(Encoding::Json, &json.body), "{path}");
        assert_eq!(status.code, json.status.as_u16(), "{path}");
        assert!(!status.message.is_empty(), "{path}");
    }
    (at.map(|at| format!("{method} {path}: {at}")), json.status)
}

#[tokio::test]
async fn a_failure_is_the_same_in_both_encodings() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    let maps = "/api/v1/namespaces/default/configmaps";
    let mut wrong = Vec::new();
    for (method, path, body, expected) in [
        (Method::GET, "/api/v1/namespaces/default/pods/none", "", 404),
        (Method::GET, "/api/v1/nothing", "", 404),
        (Method::GET, "/api/v1/namespaces/default/configmaps?limit=x", "", 400),
        (Method::GET, "/api/v1/namespaces/default/configmaps?continue=x", "", 400),
        (Method::GET, "/api/v1/namespaces/default/configmaps?labelSelector=%3C%26%3E", "", 400),
        (Method::GET, "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=x", "", 500),
        (Method::POST, maps, "{", 400),
        (Method::POST, maps, r#"{"metadata":{"name":"<&> ü"}}"#, 422),
        (Method::POST, maps, r#"{"metadata":{"name":"a","namespace":"other"}}"#, 400),
        (Method::POST, "/api/v1/namespaces/default/pods", r#"{"metadata":{"name":"A"},"spec":{}}"#, 422),
        (Method::POST, "/api/v1/namespaces/none/configmaps", r#"{"metadata":{"name":"a"}}"#, 404),
        (Method::POST, "/api/v1/namespaces", r#"{"metadata":{"name":"default"}}"#, 409),
        (Method::PUT, maps, "{}", 405),
    ] {
        let (at, status) = difference_of(&endpoint, method, path, body).await;
        assert_eq!(status, expected, "{path}");
        wrong.extend(at);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Their messages tell the server's version of the moment, or differ in what they count.
#[tokio::test]
async fn failures_with_a_changing_message_are_the_same_otherwise() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    let future = "/api/v1/configmaps?resourceVersion=999999999";
    let [protobuf, json] = [
        (Encoding::Protobuf, ask(&endpoint, future, PROTOBUF).await),
        (Encoding::Json, ask(&endpoint, future, "application/json").await),
    ]
    .map(|(encoding, answer)| {
        let mut document = value(encoding, &answer.body);
        assert!(document["message"].take().is_string());
        let mut status = Status::read(encoding, &answer.body);
        assert!(status.is_too_large_resource_version(), "{status}");
        assert_eq!(status.retry_after().map(|after| after.as_secs()), Some(1));
        status.message.clear();
        (document, status)
    });
    assert_eq!(protobuf, json);
}

#[tokio::test]
async fn a_refusal_and_a_success_are_the_same_in_both_encodings() {
    let world = require!(World::shared().await);
    // Nobody's credentials.
    let stranger = Endpoint::new(world.endpoint().access().clone().with_token("nobody")).unwrap();
    let (at, status) = difference_of(&stranger, Method::GET, "/api/v1/pods", "").await;
    assert_eq!((at, status), (None, StatusCode::UNAUTHORIZED));
    let nobody = Endpoint::new(world.endpoint().access().clone().acting_as("<nobody>", &["none"])).unwrap();
    let (at, status) = difference_of(&nobody, Method::GET, "/api/v1/namespaces/default/pods", "").await;
    assert_eq!((at, status), (None, StatusCode::FORBIDDEN));

    let endpoint = world.endpoint();
    let maps = "/api/v1/namespaces/default/configmaps";
    let mut answers = Vec::new();
    for encoding in [Encoding::Protobuf, Encoding::Json] {
        let body = json!({ "metadata": { "name": "deleted" } });
        endpoint.post(maps, &body).await.unwrap().success().unwrap();
        let path = format!("{maps}/deleted");
        let answer = send(&endpoint, &Method::DELETE, &path, "", media_type(encoding)).await;
        let mut answer = value(encoding, &answer.success().unwrap().body);
        assert!(answer["details"]["uid"].take().is_string());
        answers.push(answer);
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0]["status"], "Success");
}

#[tokio::test]
async fn what_the_server_says_of_itself_is_the_same_in_both_encodings() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    let review = r#"{"spec":{"resourceAttributes":{"verb":"get","resource":"pods","namespace":"<&>"}}}"#;
    let mut wrong = Vec::new();
    for (method, path, body) in [
        (Method::GET, "/apis", ""),
        (Method::GET, "/apis/apps", ""),
        (Method::GET, "/apis/apps/v1", ""),
        // One of them: the server lists them in no order.
        (Method::GET, "/api/v1/componentstatuses/scheduler", ""),
        (Method::GET, "/apis/apps/v1/namespaces/parity/deployments/deployments-2/scale", ""),
        (Method::POST, "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}"),
        (Method::POST, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review),
    ] {
        let (at, status) = difference_of(&endpoint, method, path, body).await;
        assert!(status.is_success(), "{path}: {status}");
        wrong.extend(at);
    }
    let aggregated = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let protobuf = ask(&endpoint, "/api", &format!("{PROTOBUF}{aggregated}")).await.success().unwrap();
    let json = ask(&endpoint, "/api", &format!("application/json{aggregated}")).await.success().unwrap();
    let protobuf = value(Encoding::Protobuf, &protobuf.body);
    wrong.extend(difference("aggregated", &protobuf, &value(Encoding::Json, &json.body)));
    assert_eq!(protobuf["kind"], "APIGroupDiscoveryList");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_watch_fails_the_same_way_in_both_encodings() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    let query = "resourceVersion=999999999&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
        &allowWatchBookmarks=true";
    let mut statuses = Vec::new();
    for encoding in [Encoding::Protobuf, Encoding::Json] {
        let mut watch = Watch::begin(&endpoint, encoding, "/api/v1/namespaces", query, Form::Whole).await;
        match watch.next().await {
            WatchFrame::Error(mut status) => {
                assert!(status.is_too_large_resource_version(), "{status}");
                // It tells the server's version of the moment.
                assert!(!std::mem::take(&mut status.message).is_empty());
                statuses.push(status);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(statuses[0], statuses[1]);
}

#[tokio::test]
async fn a_change_that_is_watched_is_the_same_in_both_encodings() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    let maps = "/api/v1/namespaces/default/configmaps";
    let (_, _, end) = list(&endpoint, Encoding::Json, maps, Form::Whole).await;
    let query = format!("resourceVersion={}&fieldSelector=metadata.name%3Dchanging", end.resource_version);
    let mut watches = Vec::new();
    for encoding in [Encoding::Protobuf, Encoding::Json] {
        watches.push(Watch::begin(&endpoint, encoding, maps, &query, Form::Whole).await);
    }
    let path = format!("{maps}/changing");
    let body = json!({ "metadata": { "name": "changing" }, "data": { "a": "<&>\u{2028}" } });
    endpoint.post(maps, &body).await.unwrap().success().unwrap();
    endpoint.merge_patch(&path, &json!({ "data": { "a": null } })).await.unwrap().success().unwrap();
    endpoint.delete(&path).await.unwrap().success().unwrap();
    for expected in [Change::Added, Change::Modified, Change::Deleted] {
        let mut objects = Vec::new();
        for watch in &mut watches {
            match watch.next().await {
                WatchFrame::Object { change, object } if change == expected => objects.push(object),
                other => panic!("{expected:?}: {other:?}"),
            }
        }
        let wrong = differences(("v1", "ConfigMap"), &format!("{expected:?}"), &objects[0], &objects[1]);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Custom resources are JSON only. Whoever asks for protobuf alone is refused, and whoever takes both learns
/// from the content type what came.
#[tokio::test]
async fn what_has_no_protobuf_says_so_in_its_content_type() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    let things = "/apis/parity.example.com/v1/namespaces/default/things";
    let body = json!({ "apiVersion": "parity.example.com/v1", "kind": "Thing", "metadata": { "name": "thing" },
        "spec": { "float": 123_456_789.123_456_79, "large": i64::MAX, "text": "<&>\u{2028}" } });
    let created = eventually("the definition is served", Duration::from_secs(60), async || {
        endpoint.post(things, &body).await.ok().filter(|answer| answer.status == StatusCode::CREATED)
    });
    created.await;

    let codec = Codec::new(Encoding::Protobuf, "parity.example.com/v1", "Thing", Rules::default());
    assert!(matches!(codec, Err(CodecError::UnknownKind { .. })), "{codec:?}");
    let codec = Codec::new(Encoding::Json, "parity.example.com/v1", "Thing", Rules::default()).unwrap();
    let config_maps = Codec::new(Encoding::Protobuf, "v1", "ConfigMap", Rules::default()).unwrap();
    for path in
        [format!("{things}/thing"), things.to_owned(), format!("{things}?watch=true&timeoutSeconds=1")]
    {
        let refused = ask(&endpoint, &path, PROTOBUF).await;
        assert_eq!(refused.status, StatusCode::NOT_ACCEPTABLE, "{path}");
        assert_eq!(content_type(&refused.headers), PROTOBUF, "{path}");
        assert_eq!(Status::read(Encoding::Protobuf, &refused.body).reason, "NotAcceptable", "{path}");

        let answer = ask(&endpoint, &path, EITHER).await.success().unwrap();
        assert_eq!(content_type(&answer.headers), "application/json", "{path}");
        // Whoever does not look finds out, too.
        let error = config_maps.ingest(&answer.body, &mut Vec::new()).unwrap_err();
        assert_eq!(error.fault, Fault::NotAnApi, "{path}");
        let mut items = ListItems::new(Encoding::Protobuf, 1 << 20);
        items.push(answer.body.clone());
        assert!(matches!(items.next_item(), Some(Err(WireError::NotAnApi { .. }))), "{path}");
    }
    let answer = ask(&endpoint, &format!("{things}/thing"), EITHER).await;
    let mut stored = Vec::new();
    codec.ingest(&answer.body, &mut stored).unwrap();
    assert_eq!(codec.view::<Value>(&stored).unwrap()["spec"], body["spec"]);

    // Their metadata can be had in protobuf all the same.
    let query = format!("{things}?limit=500");
    let (_, protobuf, _) = list(&endpoint, Encoding::Protobuf, &query, Form::Metadata).await;
    let (_, json, _) = list(&endpoint, Encoding::Json, &query, Form::Metadata).await;
    assert_eq!((protobuf.len(), json.len()), (1, 1));
    let wrong = differences(("meta.k8s.io/v1", "PartialObjectMetadata"), "thing", &protobuf[0], &json[0]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn what_is_asked_for_in_either_encoding_comes_in_the_first_that_there_is() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    for (path, accept, status, expected) in [
        ("/api/v1/configmaps?limit=1", EITHER, 200, PROTOBUF),
        (
            "/api/v1/configmaps?limit=1",
            "application/json,application/vnd.kubernetes.protobuf",
            200,
            "application/json",
        ),
        ("/version", EITHER, 200, "application/json"),
        // No API: neither encoding.
        ("/apis/none.example.com/v1/things", PROTOBUF, 404, "text/plain; charset=utf-8"),
        ("/nowhere", EITHER, 404, "text/plain; charset=utf-8"),
    ] {
        let answer = ask(&endpoint, path, accept).await;
        assert_eq!(
            (answer.status.as_u16(), content_type(&answer.headers)),
            (status, expected),
            "{path} {accept}"
        );
    }
    // Tables are JSON only, and then even the refusal is.
    let table = ";as=Table;g=meta.k8s.io;v=v1";
    let answer = ask(&endpoint, "/api/v1/configmaps", &format!("{PROTOBUF}{table}")).await;
    assert_eq!(answer.status, StatusCode::NOT_ACCEPTABLE);
    assert_eq!(content_type(&answer.headers), "application/json");
    assert_eq!(Status::read(Encoding::Json, &answer.body).reason, "NotAcceptable");
    let answer = ask(&endpoint, "/nowhere", PROTOBUF).await;
    assert_eq!(Status::read(Encoding::Protobuf, &answer.body).message, "404 page not found");
    assert_eq!(answer.body, Bytes::from_static(b"404 page not found\n"));
}

#[tokio::test]
async fn a_page_of_a_list_ends_the_same_in_both_encodings() {
    let world = require!(World::shared().await);
    let endpoint = world.endpoint();
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=3";
    let (_, _, first) = list(&endpoint, Encoding::Json, path, Form::Whole).await;
    assert!(!first.continue_token.is_empty() && first.remaining_item_count > Some(0), "{first:?}");
    for form in [Form::Whole, Form::Metadata] {
        // The rest of what there was then.
        let next = format!("{path}&continue={}", first.continue_token);
        let (_, protobuf, end) = list(&endpoint, Encoding::Protobuf, &next, form).await;
        let (_, json, json_end) = list(&endpoint, Encoding::Json, &next, form).await;
        assert_eq!((protobuf.len(), end), (json.len(), json_end));
    }
}
