//! Whatever is sent, the embedded server answers, in form, and goes on.
//!
//! A fixed seed makes random requests straight into its service: valid ones with mutations, and nonsense.
//! `KUBE_INFORMER_FULL` makes the run ten times as long.

use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tower_service::Service;

use crate::harness::{config_map, deployment, pod, service};

#[tokio::test]
async fn nothing_that_a_client_sends_panics_the_server() {
    let rounds = if std::env::var_os("KUBE_INFORMER_FULL").is_some() { 40_000 } else { 4_000 };
    let server = Server::builder().seed(1).start().await.unwrap();
    let mut random = Random(0x5eed);
    for round in 0..rounds {
        let (head, body) = random.request();
        let shown = format!("{} {} {:?}", head.method(), head.uri(), String::from_utf8_lossy(&body));
        let shown: String = shown.chars().take(2000).collect();
        let mut service = server.service();
        let request = head.clone().map(|()| Full::new(body));
        let answer = AssertUnwindSafe(service.call(request)).catch_unwind().await;
        let Ok(Ok(answer)) = answer else { panic!("round {round}: a panic at {shown}") };
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
    if body == b"404 page not found\n" {
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

/// A small generator whose numbers follow from its seed (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap_or_default()
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    fn request(&mut self) -> (Request<()>, Bytes) {
        let methods = [
            "GET", "POST", "POST", "POST", "PUT", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS",
            "BREW",
        ];
        let method = Method::from_bytes(self.of(&methods.map(str::as_bytes).each_ref().map(|m| *m))).unwrap();
        let uri = loop {
            let text = format!("{}{}", self.path(), self.query());
            if let Ok(uri) = text.parse::<Uri>() {
                break uri;
            }
        };
        let (media, body) = self.body();
        let mut request = Request::builder().method(method).uri(uri);
        if self.chance(90) {
            request = request.header("content-type", media);
        }
        if self.chance(30) {
            let accepts = [
                "application/json",
                "application/json;as=Table;g=meta.k8s.io;v=v1",
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                "*/*",
                ";;;",
                "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2",
                "text/html",
                "application/vnd.kubernetes.protobuf",
            ];
            request = request.header("accept", self.of(&accepts));
        }
        if self.chance(5) {
            let value: Vec<u8> =
                (0..self.below(20)).map(|_| u8::try_from(self.below(128) + 128).unwrap()).collect();
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                request = request.header(
                    self.of(&["accept", "content-type", "user-agent", "authorization", "accept-encoding"]),
                    value,
                );
            }
        }
        (request.body(()).unwrap(), body)
    }

    fn path(&mut self) -> String {
        let paths = [
            "/api/v1/namespaces/default/configmaps",
            "/api/v1/namespaces/default/configmaps/a",
            "/api/v1/namespaces/default/pods",
            "/api/v1/namespaces/default/pods/a",
            "/api/v1/namespaces/default/pods/a/status",
            "/api/v1/namespaces/default/pods/a/binding",
            "/api/v1/namespaces/default/pods/a/eviction",
            "/api/v1/namespaces/default/services",
            "/api/v1/namespaces/default/services/a",
            "/apis/apps/v1/namespaces/default/deployments",
            "/apis/apps/v1/namespaces/default/deployments/a",
            "/apis/apps/v1/namespaces/default/deployments/a/scale",
            "/apis/apps/v1/namespaces/default/deployments/a/status",
            "/api/v1/namespaces",
            "/api/v1/namespaces/x",
            "/api/v1/namespaces/x/finalize",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ws.f.example.com",
            "/apis/f.example.com/v1/namespaces/default/ws",
            "/apis/f.example.com/v1/namespaces/default/ws/a",
            "/apis/f.example.com/v1/namespaces/default/ws/a/scale",
            "/apis/coordination.k8s.io/v1/namespaces/default/leases/a",
            "/api/v1/events",
            "/apis/events.k8s.io/v1/namespaces/default/events",
            "/api",
            "/apis",
            "/apis/apps",
            "/openapi/v3/api/v1",
            "/version",
            "/healthz",
            "/api/v1/watch/namespaces/default/pods",
            "/apis/authentication.k8s.io/v1/tokenreviews",
            "/api/v1/namespaces/default/serviceaccounts/a/token",
        ];
        let mut path = self.of(&paths).to_owned();
        if self.chance(25) {
            let pieces = [
                "/",
                "//",
                "%2F",
                "%00",
                "%ff",
                "..",
                "a",
                "A",
                "%F0%9F%92%A9",
                "~",
                "status",
                "scale",
                ":",
                "namespaces/",
                "%",
            ];
            let at = self.below(path.len()) + 1;
            let piece = self.of(&pieces);
            if path.is_char_boundary(at) {
                path.insert_str(at, piece);
            }
        }
        if self.chance(5) {
            path.truncate(self.below(path.len()) + 1);
        }
        path
    }

    fn query(&mut self) -> String {
        if self.chance(50) {
            return String::new();
        }
        let keys = [
            "labelSelector",
            "fieldSelector",
            "limit",
            "continue",
            "resourceVersion",
            "resourceVersionMatch",
            "dryRun",
            "fieldValidation",
            "fieldManager",
            "gracePeriodSeconds",
            "propagationPolicy",
            "orphanDependents",
            "timeoutSeconds",
            "sendInitialEvents",
            "allowWatchBookmarks",
            "includeObject",
            "pretty",
        ];
        let values = [
            "",
            "a",
            "a=b",
            "a%20in%20(b,c)",
            "!",
            "0",
            "1",
            "-1",
            "99999999999999999999",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615",
            "All",
            "Exact",
            "NotOlderThan",
            "Strict",
            "Foreground",
            "true",
            "%00",
            "%ff",
            "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
            "metadata.name=a",
            "status.phase!=x",
            "Object",
        ];
        let mut query = String::from("?");
        for _ in 0..=self.below(3) {
            query.push_str(&format!("{}={}&", self.of(&keys), self.of(&values)));
        }
        if self.chance(3) {
            query.push_str("watch=1");
        }
        query
    }

    fn body(&mut self) -> (&'static str, Bytes) {
        let media = self.of(&[
            "application/json",
            "application/json",
            "application/json",
            "application/merge-patch+json",
            "application/json-patch+json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml",
            "application/vnd.kubernetes.protobuf",
            "text/plain",
            "application/yaml",
        ]);
        if self.chance(10) {
            let length = self.below(200);
            return (media, (0..length).map(|_| self.next().to_le_bytes()[0]).collect::<Vec<u8>>().into());
        }
        if self.chance(2) {
            let depth = self.below(50_000);
            return (
                media,
                format!("{{\"metadata\":{}{}", "[{\"a\":".repeat(depth), "}]".repeat(depth)).into(),
            );
        }
        if media == "application/json-patch+json" && self.chance(70) {
            return (media, self.operations().to_string().into());
        }
        let mut object = self.object();
        for _ in 0..self.below(6) {
            self.mutate(&mut object);
        }
        let mut text = object.to_string();
        if self.chance(10) {
            let at = self.below(text.len());
            if text.is_char_boundary(at) {
                text.insert_str(
                    at,
                    self.of(&["{", "}", "\"", ",", "\\u0000", "\\ud800", "1e999", "\u{1}", "null"]),
                );
            }
        }
        let mut bytes = text.into_bytes();
        if self.chance(5) && !bytes.is_empty() {
            let at = self.below(bytes.len());
            bytes[at] = 0xff;
        }
        (media, bytes.into())
    }

    fn object(&mut self) -> Value {
        match self.below(10) {
            0 => config_map("a"),
            1 => pod("a"),
            2 => service("a"),
            3 => deployment("a"),
            4 => {
                json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "ws.f.example.com" },
                "spec": { "group": "f.example.com", "scope": "Namespaced", "names": { "plural": "ws", "singular": "w", "kind": "W", "listKind": "WList" },
                    "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {}, "scale": { "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n" } },
                        "additionalPrinterColumns": [{ "name": "N", "type": "integer", "jsonPath": ".spec.n" }],
                        "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "n": { "type": "integer", "default": 1, "maximum": 9 }, "s": { "type": "string", "pattern": "^a+$" } } }, "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } } } }] } })
            }
            5 => {
                json!({ "apiVersion": "f.example.com/v1", "kind": "W", "metadata": { "name": "a" }, "spec": { "n": 3, "s": "aaa", "x": [1, { "y": null }] } })
            }
            6 => {
                json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "a" }, "spec": { "renewTime": "2001-01-01T00:00:00.000000Z" } })
            }
            7 => {
                json!({ "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground", "preconditions": { "uid": "x" } })
            }
            8 => {
                json!({ "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": { "name": "a" }, "spec": { "replicas": 2 } })
            }
            _ => {
                json!({ "spec": { "template": { "spec": { "containers": [{ "name": "main", "$patch": "delete" }], "$setElementOrder/containers": [{ "name": "x" }] } }, "$retainKeys": ["x"] }, "$patch": "merge" })
            }
        }
    }

    fn operations(&mut self) -> Value {
        let paths = [
            "",
            "/",
            "/metadata/name",
            "/metadata/labels",
            "/spec",
            "/spec/containers/0",
            "/spec/containers/-",
            "/spec/containers/99999999999",
            "/data/~1",
            "/data/~2",
            "x",
            "/metadata/managedFields/0/fieldsV1",
        ];
        let operations: Vec<Value> = (0..self.below(4))
            .map(|_| {
                let mut value = json!({ "a": [1] });
                self.mutate(&mut value);
                json!({ "op": self.of(&["add", "remove", "replace", "move", "copy", "test", "x"]), "path": self.of(&paths), "from": self.of(&paths), "value": value })
            })
            .collect();
        operations.into()
    }

    /// Changes one place of a document to something else.
    fn mutate(&mut self, value: &mut Value) {
        let deeper = self.chance(75);
        match value {
            Value::Object(map) if deeper && !map.is_empty() => {
                let at = self.below(map.len());
                if let Some((_, inner)) = map.iter_mut().nth(at) {
                    return self.mutate(inner);
                }
            }
            Value::Array(all) if deeper && !all.is_empty() => {
                let at = self.below(all.len());
                return self.mutate(&mut all[at]);
            }
            _ => {}
        }
        *value = match self.below(14) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(-1),
            3 => json!(u64::MAX),
            4 => json!(i64::MIN),
            5 => json!(1e308),
            6 => json!(""),
            7 => json!("x".repeat(300)),
            8 => json!("\u{0}\u{1f4a9}\u{202e}"),
            9 => json!([]),
            10 => json!({}),
            11 => json!([[[[{ "a": null }]]]]),
            12 => json!({ "name": { "name": [] }, "": "", "$patch": "replace" }),
            _ => json!("99999999999999999999Ei"),
        };
    }
}
