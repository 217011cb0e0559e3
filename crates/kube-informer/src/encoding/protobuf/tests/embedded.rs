//! What is checked at ingest, of which no server's data is an example.

use serde_json::Value;

use crate::encoding::{Codec, Encoding, Fault, Rules};

/// A controller revision with this text as its data.
fn revision(data: &[u8]) -> Vec<u8> {
    let field = |number: u8, content: &[u8]| {
        let mut field = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        field.extend_from_slice(content);
        field
    };
    [field(1, &field(1, b"a")), field(2, &field(1, data))].concat()
}

#[test]
fn embedded_json_is_checked_as_json_is() {
    let codec = Codec::new(Encoding::Protobuf, "apps/v1", "ControllerRevision", Rules::default()).unwrap();
    let mut stored = Vec::new();
    for (data, fault) in [
        (&br#"{"a":"\ud83d\ude80","b":[1e2,null]}"#[..], None),
        (b" 1.5 ", None),
        (br#"{"a":1,"a":2}"#, Some(Fault::DuplicateKey { key: "a".to_owned() })),
        (b"{\"a\":\"\xff\"}", Some(Fault::InvalidUtf8)),
        (b"[1e999]", Some(Fault::NumberOutOfRange)),
        (br#"{"a":1"#, Some(Fault::Truncated)),
        (br#"["\ud800"]"#, Some(Fault::Unexpected { found: "a string".to_owned() })),
        (b"{} {}", Some(Fault::Unexpected { found: "an object".to_owned() })),
    ] {
        let text = String::from_utf8_lossy(data);
        match codec.ingest(&revision(data), &mut stored) {
            Ok(_) => {
                assert_eq!(fault, None, "{text}");
                let view: Value = codec.view(&stored).unwrap();
                assert_eq!(view["data"], serde_json::from_slice::<Value>(data).unwrap());
            }
            Err(error) => {
                assert_eq!(Some(&error.fault), fault.as_ref(), "{text}");
                assert_eq!(error.key.unwrap().name, "a");
            }
        }
    }
}
