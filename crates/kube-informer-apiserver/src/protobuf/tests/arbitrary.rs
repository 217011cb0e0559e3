//! Whatever the bytes: an object or an error.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// How a valid message is spoilt.
#[derive(Debug, Clone)]
enum Harm {
    Set(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Cut(Index),
    Repeat(Index, Index),
}

fn harm() -> impl Strategy<Value = Harm> {
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Harm::Set(at, byte)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Harm::Insert(at, byte)),
        at().prop_map(Harm::Remove),
        at().prop_map(Harm::Cut),
        (at(), at()).prop_map(|(from, to)| Harm::Repeat(from, to)),
    ]
}

fn harmed(mut bytes: Vec<u8>, harms: &[Harm]) -> Vec<u8> {
    for harm in harms {
        let length = bytes.len();
        if length == 0 {
            break;
        }
        match harm {
            Harm::Set(at, byte) => bytes[at.index(length)] = *byte,
            Harm::Insert(at, byte) => bytes.insert(at.index(length), *byte),
            Harm::Remove(at) => drop(bytes.remove(at.index(length))),
            Harm::Cut(at) => bytes.truncate(at.index(length)),
            Harm::Repeat(from, to) => {
                let (from, to) = (from.index(length), to.index(length));
                let part = bytes[from.min(to)..from.max(to)].to_vec();
                bytes.splice(from..from, part);
            }
        }
    }
    bytes
}

fn sample() -> impl Strategy<Value = Vec<u8>> {
    let pod = envelope("v1", "Pod", pod());
    let revision = new().message(2, new().bytes(1, &pod));
    let schema = new().bytes(5, "object").message(30, new().varint(1, 1)).message(28, new());
    let version = new().bytes(1, "v1").message(4, new().message(1, schema));
    let definition = new().message(2, new().message(7, version));
    prop_oneof![
        Just(pod),
        Just(envelope("apps/v1", "ControllerRevision", revision)),
        Just(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition)),
    ]
}

/// The answer is an object, or an error of the client's; and an object can be decoded or refused in turn.
fn is_answered(body: &[u8]) {
    match read(body) {
        Ok(object) => {
            assert!(object.is_object());
            let (api_version, kind) =
                (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            if let Some(schema) = kinds::kind(group, version, kind)
                && let Ok((mut object, _)) = schema.decode_slice(object.to_string().as_bytes())
            {
                schema.normalise(&mut object);
            }
        }
        Err(error) => assert_eq!(error.code, 400),
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered(body in vec(any::<u8>(), 0..200)) {
        is_answered(&body);
        is_answered(&[MAGIC, &body].concat());
    }

    #[test]
    fn any_bytes_as_an_object_are_answered(body in vec(any::<u8>(), 0..200)) {
        for kind in ["Pod", "ConfigMap", "DeleteOptions"] {
            is_answered(&envelope("v1", kind, new().raw(&body)));
        }
        is_answered(&envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", new().raw(&body)));
    }

    #[test]
    fn a_spoilt_message_is_answered(body in sample(), harms in vec(harm(), 1..6)) {
        is_answered(&harmed(body, &harms));
    }

    #[test]
    fn a_number_is_read_as_it_was_written(number: u64) {
        let mut message = new();
        message.raw_varint(number);
        prop_assert_eq!(Fields(&message.0).varint(), Ok(number));
    }
}

#[test]
fn a_message_that_ends_early_is_answered_wherever_it_ends() {
    let body = envelope("v1", "Pod", pod());
    for end in 0..body.len() {
        is_answered(&body[..end]);
    }
}
