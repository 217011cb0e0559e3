//! Where the requests come from.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri};
use serde_json::{Value, json};

/// What no table can be made with.
const UNFIT: &str = "includeObject=Nonsense";

/// A small generator whose numbers follow from its seed (xorshift).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap_or_default()
    }

    pub(super) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub(super) fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// The head and the body of a request.
    pub(super) fn request(&mut self) -> (Request<()>, Bytes) {
        let (method, uri, media, body) = if self.chance(75) { self.sensible() } else { self.nonsense() };
        let unfit = uri.query() == Some(UNFIT);
        let mut request = Request::builder().method(method).uri(uri);
        if self.chance(95) {
            request = request.header("content-type", media);
        }
        if unfit {
            // Found out late by a server that does not look first.
            request = request.header("accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
        } else if self.chance(20) {
            let accepts = [
                "application/json",
                "application/json;as=Table;g=meta.k8s.io;v=v1",
                "application/json;as=Table;g=meta.k8s.io;v=v1beta1",
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
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

    /// A request that the server may well take.
    fn sensible(&mut self) -> (Method, Uri, &'static str, Bytes) {
        let asked = self.sense();
        let mut body = asked.body;
        if self.chance(40) {
            for _ in 0..=self.below(3) {
                self.mutate(&mut body);
            }
        }
        let query = match self.below(100) {
            0..25 => self.query(),
            25..30 => format!("?{UNFIT}"),
            _ => String::new(),
        };
        let uri = format!("{}{query}", asked.path).parse().unwrap_or_else(|_| Uri::from_static("/"));
        (asked.method, uri, asked.media, body.to_string().into())
    }

    /// Parts that have nothing to do with each other.
    fn nonsense(&mut self) -> (Method, Uri, &'static str, Bytes) {
        let methods = ["GET", "POST", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"];
        let method = Method::from_bytes(self.of(&methods).as_bytes()).unwrap();
        let uri = loop {
            let text = format!("{}{}", self.path(), self.query());
            if let Ok(uri) = text.parse::<Uri>() {
                break uri;
            }
        };
        let (media, body) = self.body();
        (method, uri, media, body)
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
            "/api/v1/namespaces//configmaps",
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets/a/status",
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
        let mut object = self.thing().1;
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

    /// A JSON patch.
    pub(super) fn operations(&mut self) -> Value {
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
