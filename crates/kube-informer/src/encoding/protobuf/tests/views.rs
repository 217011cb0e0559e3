//! How views are made: strings are lent, what is skipped is not looked into, errors say where.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use serde::Deserialize;
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
