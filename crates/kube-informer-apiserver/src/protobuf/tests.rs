//! Against Kubernetes' own samples, where Go is at hand, and against whatever bytes there are.

mod arbitrary;
mod samples;

use serde_json::{Value, json};

use super::*;

/// Builds messages.
#[derive(Default, Clone)]
struct Message(Vec<u8>);

impl Message {
    fn varint(mut self, number: u32, value: u64) -> Self {
        self.raw_varint(u64::from(number) << 3);
        self.raw_varint(value);
        self
    }

    fn bytes(mut self, number: u32, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.raw_varint(u64::from(number) << 3 | 2);
        self.raw_varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn message(self, number: u32, message: Self) -> Self {
        self.bytes(number, message.0)
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

fn new() -> Message {
    Message::default()
}

fn envelope(api_version: &str, kind: &str, object: Message) -> Vec<u8> {
    let meta = new().bytes(1, api_version).bytes(2, kind);
    new().raw(MAGIC).message(1, meta).message(2, object).0
}

/// What the server says of a body, without the beginning that all refusals share.
fn refusal(body: &[u8]) -> String {
    let error = read(body).unwrap_err();
    assert_eq!((error.code, error.reason), (400, "BadRequest"), "{}", error.message);
    let start = "the object provided is unrecognized (protobuf): ";
    error.message.strip_prefix(start).unwrap_or(&error.message).to_owned()
}

/// A Pod with lists, maps, quantities, ports, times and negative numbers.
fn pod() -> Message {
    let created = new().varint(1, 1_700_000_000);
    let metadata = new()
        .bytes(1, "web")
        .message(8, created)
        .message(11, new().bytes(1, "app").bytes(2, "web"))
        .message(11, new().bytes(1, "empty"));
    let probe =
        new().message(1, new().message(2, new().bytes(1, "/").message(2, new().varint(1, 0).varint(2, 80))));
    let container = new()
        .bytes(1, "main")
        .bytes(2, "nginx")
        .message(6, new().varint(3, 8080))
        .message(8, new().message(2, new().bytes(1, "cpu").message(2, new().bytes(1, "100m"))))
        .message(10, probe);
    let toleration = new().bytes(1, "key").varint(5, -1i64 as u64);
    let spec = new().message(2, container).bytes(3, "Never").message(22, toleration);
    new().message(1, metadata).message(2, spec)
}

#[test]
fn an_object_is_read_with_its_envelope() {
    let read = read(&envelope("v1", "Pod", pod())).unwrap();
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "creationTimestamp": "2023-11-14T22:13:20Z",
            "labels": { "app": "web", "empty": "" },
        },
        "spec": {
            "containers": [{
                "name": "main",
                "image": "nginx",
                "ports": [{ "containerPort": 8080 }],
                "resources": { "requests": { "cpu": "100m" } },
                "livenessProbe": { "httpGet": { "path": "/", "port": 80 } },
            }],
            "restartPolicy": "Never",
            "tolerations": [{ "key": "key", "tolerationSeconds": -1 }],
        },
    });
    assert_eq!(read, expected);
}

#[test]
fn options_may_carry_the_version_of_any_group() {
    let options = new().varint(1, 0).bytes(4, "Foreground").bytes(5, "All");
    let read = read(&envelope("apps/v1", "DeleteOptions", options)).unwrap();
    assert_eq!(read["propagationPolicy"], "Foreground");
    assert_eq!(read["gracePeriodSeconds"], 0);
    assert_eq!(read["dryRun"], json!(["All"]));
}

#[test]
fn numbers_may_come_packed_or_one_by_one() {
    let groups = |security: Message| {
        let body = envelope("v1", "Pod", new().message(2, new().message(14, security)));
        read(&body).unwrap()["spec"]["securityContext"]["supplementalGroups"].clone()
    };
    assert_eq!(groups(new().varint(4, 1).varint(4, 300)), json!([1, 300]));
    assert_eq!(groups(new().bytes(4, [1, 0xac, 0x02])), json!([1, 300]));
}

#[test]
fn unknown_fields_are_skipped() {
    let pod = pod().varint(99, 1).bytes(98, "?").raw(&[97 << 3 & 0x7f | 0x80 | 5, 6, 1, 2, 3, 4]);
    let read = read(&envelope("v1", "Pod", pod)).unwrap();
    assert_eq!(read["metadata"]["name"], "web");
}

#[test]
fn embedded_objects_are_json_or_protobuf() {
    let revision = |raw: &[u8]| {
        let revision = new().message(2, new().bytes(1, raw)).varint(3, 1);
        read(&envelope("apps/v1", "ControllerRevision", revision))
    };
    let data = |raw: &[u8]| revision(raw).unwrap()["data"].clone();
    assert_eq!(data(br#"{"spec":{}}"#), json!({ "spec": {} }));
    assert_eq!(data(b""), Value::Null);
    let inner = envelope("v1", "ConfigMap", new().message(2, new().bytes(1, "key").bytes(2, "value")));
    assert_eq!(data(&inner)["data"], json!({ "key": "value" }));
    assert!(revision(b"{").is_err());
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    assert_eq!(refusal(b""), "provided data does not appear to be a protobuf message");
    assert_eq!(refusal(br#"{"kind":"Pod"}"#), "provided data does not appear to be a protobuf message");
    assert_eq!(refusal(&envelope("v1", "Pot", new())), r#"no kind "Pot" is registered for version "v1""#);
    let of_pod = |pod: Message| refusal(&envelope("v1", "Pod", pod));
    // A group that starts, a group that ends, and two types that nobody has thought of yet.
    for wire in [3, 4, 6, 7] {
        assert_eq!(of_pod(new().raw(&[1 << 3 | wire])), format!("field 1 has the unknown wire type {wire}"));
    }
    assert_eq!(of_pod(new().raw(&[0])), "a field with an illegal number");
    assert_eq!(of_pod(new().varint(1, 1)), WRONG);
    let name = new().varint(1, 1);
    assert_eq!(of_pod(new().message(1, name)), WRONG);
    let generation = new().bytes(7, "1");
    assert_eq!(of_pod(new().message(1, generation)), WRONG);
    // Eleven bytes, where ten hold any number; a length beyond the end; a number without its end.
    assert_eq!(
        of_pod(new().raw(&[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1])),
        "a number with more than ten bytes"
    );
    assert_eq!(of_pod(new().raw(&[10, 100])), "unexpected end of the message");
    assert_eq!(
        of_pod(new().raw(&[10, 255, 255, 255, 255, 255, 255, 255, 255, 127])),
        "unexpected end of the message"
    );
    assert_eq!(of_pod(new().raw(&[8, 0x80])), "unexpected end of the message");
}

#[test]
fn nesting_has_an_end() {
    // A schema within `not` within `not` …
    let nested = |levels| {
        let schema = (0..levels).fold(new().bytes(5, "object"), |inner, _| new().message(28, inner));
        let version = new().bytes(1, "v1").message(4, new().message(1, schema));
        envelope(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            new().message(2, new().message(7, version)),
        )
    };
    let mut read = read(&nested(50)).unwrap();
    let mut schema = read["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take();
    for _ in 0..50 {
        schema = schema["not"].take();
    }
    assert_eq!(schema["type"], "object");
    assert_eq!(refusal(&nested(10_000)), "nested deeper than 100 levels");

    // An object within an object within an object …
    let revision =
        |inner: Vec<u8>| envelope("apps/v1", "ControllerRevision", new().message(2, new().bytes(1, inner)));
    let matryoshka = (0..200).fold(b"{}".to_vec(), |inner, _| revision(inner));
    assert_eq!(refusal(&matryoshka), "nested deeper than 100 levels");
}
