//! Nesting is bounded: nothing that is sent can overflow the stack of a thread, not even in a debug build.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use super::build::{Message, codec, envelope, message, object};
use crate::encoding::protobuf::reader::put_varint;
use crate::encoding::protobuf::{MAX_DEPTH, canonical};
use crate::encoding::schema::{self, Absent, Kind, Shape};
use crate::encoding::{Codec, Fault, Pointer, decode_protobuf};

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "CustomResourceDefinition";

/// Objects and arrays in JSON down to the outermost schema: the object, its spec, the versions, one of them,
/// the validation, the schema.
const AROUND: usize = 6;

/// How a schema stands in another.
#[derive(Clone, Copy, Debug)]
enum Way {
    Not,
    Properties,
    Additional,
    Items,
    Dependencies,
}

impl Way {
    /// How many levels one step is in JSON: maps and lists are levels, too.
    fn levels(self) -> usize {
        match self {
            Self::Not | Self::Additional => 1,
            Self::Properties | Self::Items | Self::Dependencies => 2,
        }
    }

    /// As many steps as the limit allows.
    fn most(self) -> usize {
        (MAX_DEPTH - AROUND) / self.levels()
    }
}

const WAYS: [Way; 5] = [Way::Not, Way::Properties, Way::Additional, Way::Items, Way::Dependencies];

/// A definition with a schema in a schema, so many steps deep. Built from the inside, so that it stands in
/// reverse first.
fn definition(way: Way, steps: usize) -> Vec<u8> {
    let mut backwards: Vec<u8> = Vec::new();
    let mut wrap = |number: u32| {
        let mut head = Vec::new();
        put_varint(&mut head, u64::from(number) << 3 | 2);
        put_varint(&mut head, backwards.len() as u64);
        backwards.extend(head.iter().rev());
    };
    for _ in 0..steps {
        match way {
            Way::Not => wrap(28),
            Way::Properties => {
                wrap(2);
                wrap(29);
            }
            Way::Additional => {
                wrap(2);
                wrap(30);
            }
            Way::Items => {
                wrap(2);
                wrap(24);
            }
            Way::Dependencies => {
                wrap(1);
                wrap(2);
                wrap(32);
            }
        }
    }
    [1, 4, 7, 2].into_iter().for_each(&mut wrap);
    backwards.reverse();
    [object().done(), backwards].concat()
}

/// The same, out of order at its end.
fn disordered(way: Way, steps: usize) -> Vec<u8> {
    let mut bytes = definition(way, steps);
    bytes.extend_from_slice(&message().message(1, message().bytes(1, "a")).done());
    bytes
}

/// Runs on a thread as small as the runtime's workers.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(test).unwrap().join().unwrap();
}

fn pointer(way: Way, steps: usize) -> Pointer {
    let step = match way {
        Way::Not => "/not",
        Way::Properties => "/properties/",
        Way::Additional => "/additionalProperties",
        Way::Items => "/items/0",
        Way::Dependencies => "/dependencies/",
    };
    let path = format!("/spec/versions/0/schema/openAPIV3Schema{}", step.repeat(steps));
    Pointer::parse(&path).unwrap()
}

/// Every way to look at stored bytes.
fn look(codec: &Codec, stored: &[u8], way: Way, steps: usize) {
    let json = codec.json(stored).unwrap();
    let value: Value = codec.view(stored).unwrap();
    // Any reader of JSON can read it again.
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value);
    codec.view::<CustomResourceDefinition>(stored).unwrap();
    codec.metadata(stored).unwrap();
    let innermost: Option<Value> = codec.pointer(stored, &pointer(way, steps)).unwrap();
    assert_eq!(innermost, Some(Value::Object(serde_json::Map::new())), "{way:?} {steps}");
}

#[test]
fn as_deep_as_the_limit_everything_can_be_read() {
    on_a_small_stack(|| {
        let codec = codec(API_VERSION, KIND);
        for way in WAYS {
            for steps in [1, way.most() - 1, way.most()] {
                let stored = codec.store(definition(way, steps)).unwrap();
                look(&codec, &stored, way, steps);
                assert_eq!(codec.store(disordered(way, steps)).unwrap(), stored, "{way:?} {steps}");
                let document = envelope(API_VERSION, KIND, &disordered(way, steps));
                decode_protobuf::<Value>(&document).unwrap();
            }
        }
    });
}

#[test]
fn deeper_than_the_limit_is_refused() {
    on_a_small_stack(|| {
        let codec = codec(API_VERSION, KIND);
        for way in WAYS {
            for steps in [way.most() + 1, 127, 128, 129, 1_000, 100_000] {
                for bytes in [definition(way, steps), disordered(way, steps)] {
                    let error = codec.store(&bytes).unwrap_err();
                    assert_eq!(error.fault, Fault::TooDeep { limit: MAX_DEPTH }, "{way:?} {steps}");
                    assert_eq!(error.key.unwrap().to_string(), "b/a");
                    let document = envelope(API_VERSION, KIND, &bytes);
                    let error = decode_protobuf::<Value>(&document).unwrap_err().to_string();
                    assert!(error.contains("nested deeper than 127 levels"), "{error}");
                }
            }
        }
    });
}

/// Such bytes are never stored; but a view of them must not end the process either.
#[test]
fn views_of_what_was_never_checked_are_bounded_too() {
    on_a_small_stack(|| {
        let codec = codec(API_VERSION, KIND);
        let root = schema::root(API_VERSION, KIND).unwrap();
        for way in WAYS {
            for steps in [way.most() + 10, 140, 100_000] {
                let bytes = definition(way, steps);
                let says = |error: String| assert!(error.contains("nested deeper"), "{way:?}: {error}");
                says(codec.view::<Value>(&bytes).unwrap_err().to_string());
                says(codec.view::<CustomResourceDefinition>(&bytes).unwrap_err().to_string());
                says(codec.json(&bytes).unwrap_err().to_string());
                let innermost = pointer(way, steps.min(1_000));
                says(codec.pointer::<Value>(&bytes, &innermost).unwrap_err().to_string());
                if steps > MAX_DEPTH {
                    says(canonical::canonical(root.message, &bytes).unwrap_err().to_string());
                }
            }
        }
    });
}

#[test]
fn a_list_of_text_is_a_level() {
    // `required` of a schema that is as deep as can be, and of the one around it.
    let required = |steps: usize| {
        let mut schema = message().bytes(23, "x");
        for _ in 0..steps {
            schema = message().message(28, schema);
        }
        let version = message().message(4, message().message(1, schema));
        codec(API_VERSION, KIND).store(object().message(2, message().message(7, version)).done())
    };
    let most = Way::Not.most();
    codec(API_VERSION, KIND).json(&required(most - 1).unwrap()).unwrap();
    assert_eq!(required(most).unwrap_err().fault, Fault::TooDeep { limit: MAX_DEPTH });
}

/// A raw document in a raw document, and so on.
fn nested(levels: usize) -> Message {
    let revision = |data: Message| object().message(2, data).varint(3, 1);
    (1..levels).fold(revision(message()), |inner, _| {
        revision(message().bytes(1, envelope("apps/v1", "ControllerRevision", &inner.done())))
    })
}

#[test]
fn documents_in_documents_are_levels_too() {
    on_a_small_stack(|| {
        let codec = codec("apps/v1", "ControllerRevision");
        // The innermost has metadata, one level more.
        let stored = codec.store(nested(MAX_DEPTH - 1).done()).unwrap();
        codec.view::<Value>(&stored).unwrap();
        serde_json::from_str::<Value>(&codec.json(&stored).unwrap()).unwrap();
        assert_eq!(codec.refuse(nested(MAX_DEPTH)).fault, Fault::TooDeep { limit: MAX_DEPTH });
        assert!(codec.view::<Value>(&nested(MAX_DEPTH + 10).done()).is_err());
    });
}

/// Structs that are not there show what they require: levels that the bytes do not have.
#[test]
fn what_is_absent_at_the_limit_is_shown() {
    on_a_small_stack(|| {
        let revision = |data: Message| object().message(2, data).varint(3, 1);
        let innermost = envelope("apps/v1", "Deployment", &[]);
        let documents = (2..MAX_DEPTH).fold(innermost, |inner, _| {
            envelope("apps/v1", "ControllerRevision", &revision(message().bytes(1, inner)).done())
        });
        let codec = codec("apps/v1", "ControllerRevision");
        let stored = codec.store(revision(message().bytes(1, documents)).done()).unwrap();
        let shown = codec.json(&stored).unwrap();
        assert!(shown.contains(r#""template":{"metadata":{},"spec":{"containers":null}}"#));
        codec.view::<Value>(&stored).unwrap();
    });
}

/// The longest chain of structs that show each other though none is there.
#[test]
fn no_struct_of_the_table_shows_more_levels_than_views_allow() {
    fn levels(id: schema::MessageId) -> usize {
        let shown = |field: &&schema::Field| {
            field.shape == Shape::Embedded || (field.shape == Shape::One && field.absent == Absent::Zero)
        };
        let below = schema::message(id).fields().iter().filter(shown).map(|field| match field.kind {
            Kind::Message(id) => levels(id),
            _ => 0,
        });
        1 + below.max().unwrap_or_default()
    }
    let most = schema::roots().iter().map(|root| levels(root.message)).max().unwrap();
    assert!((4..=8).contains(&most), "{most}");
}

#[test]
fn json_in_messages_is_as_deep_as_both_together() {
    let default = |steps: usize, levels: usize| {
        let json = [b"[".repeat(levels), b"]".repeat(levels)].concat();
        let mut schema = message().message(8, message().bytes(1, json));
        for _ in 0..steps {
            schema = message().message(28, schema);
        }
        let version = message().message(4, message().message(1, schema));
        object().message(2, message().message(7, version)).done()
    };
    on_a_small_stack(move || {
        let codec = codec(API_VERSION, KIND);
        for steps in [0, 60, 100] {
            let most = MAX_DEPTH - AROUND - steps;
            let stored = codec.store(default(steps, most)).unwrap();
            let value: Value = codec.view(&stored).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&codec.json(&stored).unwrap()).unwrap(), value);
            codec.view::<CustomResourceDefinition>(&stored).unwrap();
            let error = codec.store(default(steps, most + 1)).unwrap_err();
            assert_eq!(error.fault, Fault::TooDeep { limit: MAX_DEPTH });
        }
    });
}
