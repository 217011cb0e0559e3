//! How views are made: strings are lent, what is skipped is not looked into, errors say where.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::build::{codec, message, object};
use crate::encoding::Pointer;

fn is_inside(part: &str, whole: &[u8]) -> bool {
    let (part, whole) = (part.as_bytes().as_ptr_range(), whole.as_ptr_range());
    whole.start <= part.start && part.end <= whole.end
}

#[test]
fn strings_are_lent_from_the_stored_bytes() {
    #[derive(Deserialize)]
    struct Narrow<'a> {
        #[serde(borrow)]
        metadata: BTreeMap<&'a str, &'a str>,
        #[serde(borrow)]
        data: BTreeMap<&'a str, &'a str>,
    }
    let codec = codec("v1", "ConfigMap");
    let stored = codec.store(object().pair(2, "key", "välue").done()).unwrap();
    let view: Narrow<'_> = codec.view(&stored).unwrap();
    let (key, value) = view.data.first_key_value().unwrap();
    assert_eq!((*key, *value), ("key", "välue"));
    for text in [view.metadata["name"], view.metadata["namespace"], key, value] {
        assert!(is_inside(text, &stored), "{text}");
    }
}

#[test]
fn metadata_is_lent_from_what_arrived() {
    let codec = codec("v1", "ConfigMap");
    let arrived = message().message(1, message().bytes(1, "a").bytes(3, "b").pair(11, "k", "v")).done();
    let mut stored = Vec::new();
    let metadata = codec.ingest(&arrived, &mut stored).unwrap();
    for text in [&metadata.name, &metadata.namespace, &metadata.labels[0].0, &metadata.labels[0].1] {
        assert!(is_inside(text, &arrived), "{text}");
    }
}

#[test]
fn what_a_type_does_not_name_is_not_looked_into() {
    #[derive(Deserialize)]
    struct Narrow {
        spec: Spec,
    }
    #[derive(Deserialize)]
    struct Spec {
        replicas: i32,
    }
    // Such bytes are never stored; they show what a view looks at.
    let garbage = [0xff; 9];
    let bytes = message()
        .bytes(1, garbage)
        .message(2, message().varint(1, 7).bytes(2, garbage).bytes(3, garbage))
        .bytes(3, garbage)
        .done();
    let codec = codec("apps/v1", "Deployment");
    assert_eq!(codec.view::<Narrow>(&bytes).unwrap().spec.replicas, 7);
    let pointer = Pointer::parse("/spec/replicas").unwrap();
    assert_eq!(codec.pointer::<i32>(&bytes, &pointer).unwrap(), Some(7));
    assert!(codec.view::<Value>(&bytes).is_err());
    assert!(codec.store(bytes).is_err());
}

#[test]
fn an_error_says_where_in_the_object_and_what_was_wanted() {
    let codec = codec("apps/v1", "Deployment");
    let template = message().message(2, message().message(2, message().bytes(1, "c")));
    let spec = message().varint(1, 3).message(2, message().pair(1, "a/b", "v")).message(3, template);
    let stored = codec.store(object().message(2, spec).done()).unwrap();

    #[derive(Deserialize, Debug)]
    #[expect(dead_code, reason = "only the errors matter")]
    struct Wrong<T, S, U> {
        spec: Spec<T, S, U>,
    }
    #[derive(Deserialize, Debug)]
    #[expect(dead_code, reason = "only the errors matter")]
    struct Spec<T, S, U> {
        replicas: T,
        selector: Option<S>,
        template: Option<U>,
    }
    type Any = serde::de::IgnoredAny;
    type Map<T> = BTreeMap<String, T>;
    let error = codec.view::<Wrong<String, Any, Any>>(&stored).unwrap_err();
    assert_eq!(error.pointer(), "/spec/replicas");
    assert!(error.to_string().starts_with("/spec/replicas: invalid type: integer `3`"), "{error}");
    let error = codec.view::<Wrong<u8, Map<Map<u8>>, Any>>(&stored).unwrap_err();
    assert_eq!(error.pointer(), "/spec/selector/matchLabels/a~1b");
    let error = codec.view::<Wrong<u8, Any, Map<Map<Vec<Map<u8>>>>>>(&stored).unwrap_err();
    assert_eq!(error.pointer(), "/spec/template/spec/containers/0/name");
}

#[test]
fn an_error_in_a_list_says_which_item() {
    #[derive(Deserialize, Debug)]
    #[expect(dead_code, reason = "only the errors matter")]
    struct Narrow {
        spec: BTreeMap<String, Vec<BTreeMap<String, String>>>,
    }
    let containers =
        message().message(2, message().bytes(1, "a").bytes(2, "i")).message(2, message().bytes(1, "b"));
    let codec = codec("v1", "Pod");
    let stored = codec.store(object().message(2, containers).done()).unwrap();
    let error = codec.view::<Narrow>(&stored).unwrap_err();
    // `resources` is an object.
    assert_eq!(error.pointer(), "/spec/containers/0/resources");
    let pointer = Pointer::parse("/spec/containers/1").unwrap();
    let error = codec.pointer::<BTreeMap<String, String>>(&stored, &pointer).unwrap_err();
    assert_eq!(error.pointer(), "/spec/containers/1/resources");
}

#[test]
fn an_error_inside_of_raw_json_says_where() {
    #[derive(Deserialize, Debug)]
    #[expect(dead_code, reason = "only the errors matter")]
    struct Narrow {
        data: BTreeMap<String, Vec<u8>>,
    }
    let codec = codec("apps/v1", "ControllerRevision");
    let stored = codec.store(object().message(2, message().bytes(1, r#"{"x":[1,"y"]}"#)).done()).unwrap();
    assert_eq!(codec.view::<Narrow>(&stored).unwrap_err().pointer(), "/data/x/1");
}

#[test]
fn an_object_that_does_not_fit_a_type_is_seen_by_others() {
    let codec = codec("v1", "ConfigMap");
    let stored = codec.store(object().pair(2, "k", "v").done()).unwrap();
    #[derive(Deserialize, Debug)]
    #[expect(dead_code, reason = "only the errors matter")]
    struct Wrong {
        data: u8,
    }
    let error = codec.view::<Wrong>(&stored).unwrap_err();
    assert!(error.to_string().starts_with("/data: invalid type: map"), "{error}");
    assert_eq!(codec.view::<Value>(&stored).unwrap()["data"]["k"], "v");
}

#[test]
fn text_that_is_no_utf_8_cannot_be_lent() {
    #[derive(Deserialize, Debug)]
    struct Lent<'a> {
        #[serde(borrow)]
        data: BTreeMap<String, &'a str>,
    }
    #[derive(Deserialize)]
    struct Owned {
        data: BTreeMap<String, String>,
    }
    let codec = codec("v1", "ConfigMap");
    let stored = codec.store(object().message(2, message().bytes(1, "k").bytes(2, [0xff])).done()).unwrap();
    assert_eq!(codec.view::<Lent<'_>>(&stored).unwrap_err().pointer(), "/data/k");
    assert_eq!(codec.view::<Owned>(&stored).unwrap().data["k"], "\u{fffd}");
    let stored = codec.store(object().pair(2, "k", "v").done()).unwrap();
    assert_eq!(codec.view::<Lent<'_>>(&stored).unwrap().data["k"], "v");
}

#[test]
fn a_typed_view_and_the_json_of_an_object_agree() {
    let codec = codec("apps/v1", "Deployment");
    let selector = message().pair(1, "app", "web");
    let container = message().bytes(1, "c").bytes(2, "image");
    let template = message().message(2, message().message(2, container));
    let spec = message().varint(1, 0).message(2, selector).message(3, template);
    let stored = codec.store(object().message(2, spec).done()).unwrap();
    let typed: Deployment = codec.view(&stored).unwrap();
    assert_eq!(typed, serde_json::from_str(&codec.json(&stored).unwrap()).unwrap());
    assert_eq!(typed.spec.replicas, Some(0));
}

#[test]
fn keys_and_values_are_enums_numbers_and_chars_where_a_type_wants_them() {
    #[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Web,
        Other,
    }
    #[derive(Deserialize)]
    struct Narrow {
        data: BTreeMap<u64, Word>,
    }
    let codec = codec("v1", "ConfigMap");
    let stored = codec.store(object().pair(2, "1", "web").pair(2, "2", "other").done()).unwrap();
    let view: Narrow = codec.view(&stored).unwrap();
    assert_eq!(view.data, BTreeMap::from([(1, Word::Web), (2, Word::Other)]));
    let pointer = Pointer::parse("/metadata/name").unwrap();
    assert_eq!(codec.pointer::<char>(&stored, &pointer).unwrap(), Some('a'));
    let stored = codec.store(object().pair(2, "x", "web").done()).unwrap();
    assert!(codec.view::<Narrow>(&stored).is_err());
}

#[test]
fn a_list_takes_the_room_of_its_items_and_no_more() {
    #[derive(Deserialize)]
    struct Narrow {
        metadata: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        finalizers: Vec<String>,
    }
    let codec = codec("v1", "ConfigMap");
    for count in 1..40 {
        let metadata = (0..count).fold(message().bytes(1, "a"), |metadata, _| metadata.bytes(14, "f"));
        let stored = codec.store(message().message(1, metadata).done()).unwrap();
        let finalizers = codec.view::<Narrow>(&stored).unwrap().metadata.finalizers;
        assert_eq!((finalizers.len(), finalizers.capacity()), (count, count));
    }
}

#[test]
fn an_error_behind_a_key_that_cannot_be_lent_says_where() {
    #[derive(Deserialize, Debug)]
    struct Narrow {
        #[serde(rename = "data")]
        _data: BTreeMap<String, bool>,
    }
    let codec = codec("v1", "ConfigMap");
    let pair = message().bytes(1, [b'k', 0xff]).bytes(2, "v");
    let stored = codec.store(object().message(2, pair).done()).unwrap();
    assert_eq!(codec.view::<Narrow>(&stored).unwrap_err().pointer(), "/data/k\u{fffd}");
}

#[test]
fn a_view_of_what_was_never_stored_says_what_is_wrong() {
    let deployment = codec("apps/v1", "Deployment");
    let view = |bytes: Vec<u8>| deployment.view::<Value>(&bytes).unwrap_err().to_string();
    // Numbers that no field has: between others, behind them, and too large for the table.
    for number in [8, 10, 2_047, 2_048, 65_534, 65_535, 65_536, 65_537, 70_000] {
        let error = view(object().message(2, message().varint(1, 3).varint(number, 1)).done());
        assert!(error.contains(&number.to_string()) && error.contains("DeploymentSpec"), "{error}");
    }
    // Fields before their time, and fields again.
    let order = "the fields of the message are not in order";
    for spec in [message().varint(5, 1).varint(1, 3), message().varint(1, 3).varint(1, 3)] {
        let error = view(object().message(2, spec).done());
        assert!(error.contains(order), "{error}");
    }
    // Behind a message in a message that are both flat in it.
    let named = message().message(2, message().message(2, message().bytes(3, "pods"))).varint(3, 1);
    let policy = object().message(2, message().message(2, message().message(3, named)));
    let codec = codec("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy");
    let error = codec.view::<Value>(&policy.done()).unwrap_err().to_string();
    assert!(error.contains("unknown field 3 of admissionregistration/v1.NamedRule"), "{error}");
    // Bytes that end too early, wherever that is.
    let whole = object().message(2, message().varint(1, 3).varint(6, 1 << 40).bytes(70_000, "")).done();
    for end in 1..whole.len() {
        assert!(deployment.view::<Value>(&whole[..end]).is_err() || end == object().done().len(), "{end}");
    }
}

#[test]
fn a_value_is_given_behind_its_key_alone() {
    #[derive(Debug)]
    struct Hasty;
    impl<'de> Deserialize<'de> for Hasty {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Self)
        }
    }
    impl<'de> Visitor<'de> for Hasty {
        type Value = Self;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
            map.next_value::<Option<String>>().map(|_| self)
        }
    }
    let codec = codec("v1", "ConfigMap");
    let error = codec.view::<Hasty>(&object().done()).unwrap_err();
    assert_eq!(error.to_string(), "a value was asked for before its key");
}
