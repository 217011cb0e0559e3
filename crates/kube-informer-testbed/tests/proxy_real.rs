//! The fault proxy before a real kube-apiserver: its watches in both formats,
//! its errors, its bookmarks.

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use kube_informer_testbed::cluster::{Cluster, Namespace};
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::{Answer, Config, End, Events, Format, Match, Proxy, Request, WatchEvent};
use kube_informer_testbed::require;
use serde_json::{Value, json};

#[path = "support/watching.rs"]
mod watching;

use watching::{DEADLINE, Watch, get, soon, watch};

const FORMATS: [Format; 2] = [Format::Json, Format::Protobuf];

/// A proxy before the cluster, a client of it, and a place for config maps.
struct Stage {
    cluster: Cluster,
    proxy: Proxy,
    client: Endpoint,
    namespace: Namespace,
}

impl Stage {
    async fn set(cluster: Cluster, test: &str) -> Self {
        let proxy = Config::new(cluster.admin()).add_credentials().start().await.unwrap();
        let client = Endpoint::new(Access::anonymous(proxy.url())).unwrap();
        let namespace = cluster.namespace(test).await.unwrap();
        Self { cluster, proxy, client, namespace }
    }

    fn maps(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace.name())
    }

    /// Past the proxy; returns the object's version.
    async fn create(&self, name: &str) -> String {
        let map = json!({ "metadata": { "name": name }, "data": { "text": "x".repeat(500) } });
        version(
            &self
                .cluster
                .endpoint()
                .post(&self.maps(), &map)
                .await
                .unwrap()
                .success()
                .unwrap()
                .json()
                .unwrap(),
        )
    }

    async fn modify(&self, name: &str, text: &str) {
        let path = format!("{}/{name}", self.maps());
        let change = json!({ "data": { "text": text } });
        self.cluster.endpoint().merge_patch(&path, &change).await.unwrap().success().unwrap();
    }

    async fn delete(&self, name: &str) {
        self.cluster.endpoint().delete(&format!("{}/{name}", self.maps())).await.unwrap().success().unwrap();
    }

    /// A watch through the proxy, from now on, of what the test makes.
    async fn watch(&self, format: Format) -> Watch {
        let list = self.cluster.endpoint().get_json(&self.maps()).await.unwrap();
        let path = format!("{}?watch=1&resourceVersion={}", self.maps(), version(&list));
        watch(&self.client, &path, format).await
    }
}

fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_real_watch_passes_untouched_where_no_fault_is() {
    let stage = Stage::set(require!(Cluster::shared().await), "untouched").await;
    for format in FORMATS {
        let mut events = stage.watch(format).await;
        let created = stage.create("map").await;
        stage.modify("map", "changed").await;
        stage.delete("map").await;
        let event = events.event().await;
        assert_eq!((event.kind(), event.name(), event.resource_version()), ("ADDED", "map".into(), created));
        assert_eq!(event.namespace(), stage.namespace.name());
        let kinds = [events.event().await, events.event().await].map(|event| event.kind().to_owned());
        assert_eq!(kinds, ["MODIFIED", "DELETED"]);
    }
    for record in stage.proxy.requests().matching(Request::is_watch) {
        assert_eq!((record.status, record.events), (Some(200), 3), "{record}");
    }
}

#[tokio::test]
async fn events_of_a_real_watch_are_dropped_doubled_and_edited() {
    let stage = Stage::set(require!(Cluster::shared().await), "edited").await;
    for format in FORMATS {
        stage.proxy.heal();
        let lost = stage.proxy.on(Match::watch()).drop_events(Events::modified().named("lost"));
        stage.proxy.on(Match::watch()).duplicate_events(Events::added().named("twice"));
        stage.proxy.on(Match::watch()).edit_events(Events::deleted().named("alive"), |event| {
            event.set_kind("MODIFIED");
            assert_eq!(event.overwrite("gone", "here"), 1);
        });
        let mut events = stage.watch(format).await;
        for name in ["lost", "twice", "alive"] {
            stage.create(name).await;
        }
        stage.modify("lost", "unseen").await;
        stage.modify("alive", "gone").await;
        for name in ["alive", "lost", "twice"] {
            stage.delete(name).await;
        }
        let mut got = Vec::new();
        for _ in 0..8 {
            got.push(events.event().await);
        }
        let told: Vec<String> =
            got.iter().map(|event| format!("{} {}", event.kind(), event.name())).collect();
        assert_eq!(
            told,
            [
                "ADDED lost",
                "ADDED twice",
                "ADDED twice",
                "ADDED alive",
                "MODIFIED alive",
                "MODIFIED alive",
                "DELETED lost",
                "DELETED twice",
            ]
        );
        let text = |event: &WatchEvent, part: &str| String::from_utf8_lossy(event.object()).contains(part);
        assert!(text(&got[4], "gone") && text(&got[5], "here") && !text(&got[5], "gone"));
        assert_eq!(lost.events(), 1);
    }
}

#[tokio::test]
async fn events_of_a_real_watch_that_is_open_are_dropped_and_moved() {
    let stage = Stage::set(require!(Cluster::shared().await), "open").await;
    for format in FORMATS {
        let mut events = stage.watch(format).await;
        stage.create("a").await;
        assert_eq!(events.names(1).await, ["a"]);
        let moved = stage.proxy.on_open(Match::watch()).reorder_events(Events::added().named("b"));
        stage.proxy.on_open(Match::watch()).drop_events(Events::deleted().at_most(1));
        for name in ["b", "c"] {
            stage.create(name).await;
        }
        for name in ["a", "b", "c"] {
            stage.delete(name).await;
        }
        assert_eq!(events.names(4).await, ["c", "b", "b", "c"]);
        assert_eq!(moved.events(), 1);
        drop(events);
        let open = |request: &Request| request.is_watch() && request.is_open();
        stage.proxy.requests().wait_until(|all| !all.iter().any(open)).await.unwrap();
    }
}

#[tokio::test]
async fn the_bookmark_that_ends_a_real_streaming_list_is_swallowed() {
    let stage = Stage::set(require!(Cluster::shared().await), "bookmark").await;
    stage.create("first").await;
    let path = format!(
        "{}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan",
        stage.maps()
    );
    for format in FORMATS {
        let mut events = watch(&stage.client, &path, format).await;
        let initial = [events.event().await, events.event().await];
        assert_eq!((initial[0].kind(), initial[0].name()), ("ADDED", "first".into()));
        assert!(initial[1].is_initial_events_end(), "{initial:?}");
        drop(events);

        let fault = stage.proxy.on(Match::watch().send_initial_events(true)).swallow_initial_events_end();
        let mut events = watch(&stage.client, &path, format).await;
        assert_eq!(events.names(1).await, ["first"]);
        soon(fault.wait_events(1)).await;
        stage.create("second").await;
        let next = events.event().await;
        assert_eq!((next.kind(), next.name()), ("ADDED", "second".into()), "and no bookmark before");
        fault.remove();
        stage.delete("second").await;
    }
}

#[tokio::test]
async fn a_real_watch_and_a_real_list_are_cut_inside_an_object() {
    let stage = Stage::set(require!(Cluster::shared().await), "cut").await;
    for format in FORMATS {
        stage.proxy.on(Match::watch()).once().cut_inside_object(1);
        let mut events = stage.watch(format).await;
        stage.create("a").await;
        stage.create("b").await;
        assert_eq!(events.names(1).await, ["a"]);
        assert!(events.next().await.is_err());
        assert!(events.unfinished().len() > 200, "{}", events.unfinished().len());
        let record = stage.proxy.requests().all().pop().unwrap();
        assert_eq!((record.events, record.end.as_ref()), (1, Some(&End::Cut)), "{record}");

        let accept = match format {
            Format::Json => "application/json",
            Format::Protobuf => "application/vnd.kubernetes.protobuf",
        };
        stage.proxy.on(Match::list().path(stage.maps())).once().cut_inside_object(1);
        let mut stream = get(&stage.client, &stage.maps(), accept).await.unwrap();
        let mut body = Vec::new();
        let broken = loop {
            match soon(stream.chunk()).await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                other => break other.is_err(),
            }
        };
        assert!(broken, "the list of {} bytes did not break off", body.len());
        // The text of the first is whole, that of the second is not.
        let texts = body.windows(500).filter(|window| window.iter().all(|byte| *byte == b'x')).count();
        assert_eq!(texts, 1, "in {} bytes", body.len());
        for name in ["a", "b"] {
            stage.delete(name).await;
        }
    }
}

#[tokio::test]
async fn a_real_watch_meets_410_as_an_answer_and_as_an_event() {
    let stage = Stage::set(require!(Cluster::shared().await), "gone").await;
    stage.proxy.on(Match::watch()).once().answer(Answer::gone());
    let path = format!("{}?watch=1&resourceVersion=1", stage.maps());
    let refused = stage.client.get(&path).await.unwrap();
    assert_eq!((refused.status.as_u16(), &refused.json().unwrap()["reason"]), (410, &json!("Expired")));
    for format in FORMATS {
        let mut events = stage.watch(format).await;
        stage.create("a").await;
        assert_eq!(events.names(1).await, ["a"]);
        stage.proxy.on_open(Match::watch()).error_event(Answer::gone());
        assert_eq!(events.event().await.kind(), "ERROR");
        assert!(events.next().await.unwrap().is_none());
        stage.delete("a").await;
    }
}

/// What the server itself says, field by field where it is not about one
/// object, must be what the proxy says in its place.
#[tokio::test]
async fn the_proxys_errors_are_shaped_as_the_servers() {
    let stage = Stage::set(require!(Cluster::shared().await), "shapes").await;
    let missing = format!("{}/missing", stage.maps());
    let accepts = [
        ("application/json", "application/json"),
        ("application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf"),
        ("application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"),
    ];
    for (accept, media) in accepts {
        let headers = || HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
        let real = stage.client.request(Method::GET, &missing, headers(), "").await.unwrap();
        let answer = Answer::status(404, "NotFound", "configmaps \"missing\" not found")
            .details(json!({ "name": "missing", "kind": "configmaps" }));
        stage.proxy.on(Match::get()).once().answer(answer);
        let ours = stage.client.request(Method::GET, &missing, headers(), "").await.unwrap();
        assert_eq!((real.status, ours.status), (http::StatusCode::NOT_FOUND, http::StatusCode::NOT_FOUND));
        assert_eq!([&real.headers[CONTENT_TYPE], &ours.headers[CONTENT_TYPE]], [media, media]);
        match accept {
            "application/json" => assert_eq!(real.json().unwrap(), ours.json().unwrap()),
            _ => assert_eq!(real.body, ours.body),
        }
    }

    let real = stage.client.get("/apis/none.example/v1/nothings").await.unwrap();
    stage.proxy.on(Match::list()).once().answer(Answer::not_served());
    let ours = stage.client.get("/apis/none.example/v1/nothings").await.unwrap();
    assert_eq!((real.status, &real.body), (ours.status, &ours.body));
    assert_eq!(real.headers[CONTENT_TYPE], ours.headers[CONTENT_TYPE]);

    let real = stage.client.clone().with_timeout(DEADLINE);
    let real = real.get("/api/v1/nodes?resourceVersion=999999999999&timeoutSeconds=1").await.unwrap();
    let (said, made) = (real.json().unwrap(), Answer::too_large_version());
    assert_eq!(
        (real.status.as_u16(), said["details"]["causes"][0]["reason"].as_str()),
        (made.code(), Some("ResourceVersionTooLarge"))
    );
}

#[tokio::test]
async fn a_client_without_credentials_stays_nobody_unless_the_proxy_adds_them() {
    let cluster = require!(Cluster::shared().await);
    let proxy = Proxy::start(cluster.admin()).await.unwrap();
    let nobody = Endpoint::new(Access::anonymous(proxy.url())).unwrap();
    let answer = nobody.get("/api/v1/secrets").await.unwrap();
    assert!(matches!(answer.status.as_u16(), 401 | 403), "{}", answer.status);
    let wrong = proxy.endpoint("not-a-token").unwrap().get("/api/v1/secrets").await.unwrap();
    assert_eq!(wrong.status, 401);
    assert_eq!(wrong.json().unwrap()["reason"], "Unauthorized");
}
