//! JSON that no client of ours would write, and that the server stores and sends.
//!
//! In a value without a schema it keeps the text as it came. What is not such a text as we read is refused in
//! either encoding, with the object's key; nothing is read differently.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use kube_informer::encoding::{Codec, Encoding, ManagedFields, Rules};
use kube_informer_testbed::require;

use crate::compare::differences;
use crate::read::{Form, get};
use crate::world::World;

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is read the same in both encodings.
    Read,
    /// It is refused in both encodings.
    Refused,
}

/// Puts an object in this text on the server, reads it back in both encodings and says what came of that.
async fn fate(
    world: &World,
    collection: &str,
    kind: (&str, &str),
    name: &str,
    text: Vec<u8>,
) -> Result<Fate, String> {
    let endpoint = world.endpoint();
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let created = endpoint.request(Method::POST, collection, headers, text).await.unwrap();
    created.success().map_err(|error| error.to_string())?;
    let path = format!("{collection}/{name}");
    let protobuf = get(&endpoint, Encoding::Protobuf, &path, Form::Whole).await;
    let json = get(&endpoint, Encoding::Json, &path, Form::Whole).await;
    let refusal = |encoding, document: &Bytes| {
        let rules = Rules::default().managed_fields(ManagedFields::Cut);
        let codec = Codec::new(encoding, kind.0, kind.1, rules).unwrap();
        let error = codec.ingest(document, &mut Vec::new()).err()?;
        assert_eq!(error.key.as_ref().map(|key| &*key.name), Some(name), "{error}");
        Some(error.to_string())
    };
    match (refusal(Encoding::Protobuf, &protobuf), refusal(Encoding::Json, &json)) {
        (None, None) => match differences(kind, &path, &protobuf, &json) {
            wrong if wrong.is_empty() => Ok(Fate::Read),
            wrong => Err(wrong.join("\n")),
        },
        (Some(protobuf), Some(json)) => {
            println!("{name}: {protobuf}\n{name}: {json}");
            Ok(Fate::Refused)
        }
        one => Err(format!("refused in one encoding only (protobuf, JSON): {one:?}")),
    }
}

#[tokio::test]
async fn odd_json_is_read_the_same_or_refused_in_both_encodings() {
    let world = require!(World::shared().await);
    let deep = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    let mut wrong = Vec::new();
    let cases: [(&str, &[u8], Fate); 10] = [
        ("spaces", b" { \"a\" : [ 1.0 , -0 ] } ", Fate::Read),
        ("order", br#"{"z":1,"a":2}"#, Fate::Read),
        ("escapes", br#"{"\u0061":"\ud83d\ude80\/\u2028\u003c"}"#, Fate::Read),
        ("integer", br#"{"a":[123456789012345678901234567890,-9223372036854775809]}"#, Fate::Read),
        ("decimals", br#"{"a":[123456789.123456789,0.1000000000000000055511151231257827,1E+2]}"#, Fate::Read),
        ("invalid-utf8", b"{\"a\":\"\xff\"}", Fate::Refused),
        ("duplicate", br#"{"a":1,"a":2}"#, Fate::Refused),
        ("lone", br#"{"a":"\ud800"}"#, Fate::Refused),
        ("deepest", deep(126).leak().as_bytes(), Fate::Read),
        ("too-deep", deep(127).leak().as_bytes(), Fate::Refused),
    ];
    for (name, data, expected) in cases {
        let mut text = format!(r#"{{"metadata":{{"name":"{name}"}},"revision":1,"data":"#).into_bytes();
        text.extend_from_slice(data);
        text.push(b'}');
        let collection = "/apis/apps/v1/namespaces/default/controllerrevisions";
        let fate = fate(world, collection, ("apps/v1", "ControllerRevision"), name, text).await;
        if fate != Ok(expected) {
            wrong.push(format!("{name}: {fate:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where there is a schema, the server has made strings of it that are valid.
#[tokio::test]
async fn text_that_is_not_unicode_is_read_the_same_in_both_encodings() {
    let world = require!(World::shared().await);
    let text =
        b"{\"metadata\":{\"name\":\"not-unicode\",\"annotations\":{\"a\":\"\\udfff\\ud800 \xff\xc0\x80\"}},\
        \"data\":{\"a\":\"\\ud800 \xff \xed\xa0\x80 \\udfff\\ud83d\"}}";
    let collection = "/api/v1/namespaces/default/configmaps";
    let fate = fate(world, collection, ("v1", "ConfigMap"), "not-unicode", text.to_vec()).await;
    assert_eq!(fate, Ok(Fate::Read));
}

/// The time of a writer is the client's to choose, and the last that the server takes is beyond the range of
/// many libraries.
#[tokio::test]
async fn a_writer_of_the_last_second_is_read_the_same_in_both_encodings() {
    let world = require!(World::shared().await);
    let text = br#"{"metadata":{"name":"last-second","managedFields":[{"manager":"m","operation":"Update",
        "apiVersion":"v1","time":"9999-12-31T23:59:59Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]}}"#;
    let collection = "/api/v1/namespaces/default/configmaps";
    let fate = fate(world, collection, ("v1", "ConfigMap"), "last-second", text.to_vec()).await;
    assert_eq!(fate, Ok(Fate::Read));
}
