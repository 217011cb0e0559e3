use std::time::Duration;

use kube_informer::encoding::Encoding::{Json, Protobuf};
use kube_informer::wire::Status;

use crate::bodies::{JSON_STATUS, envelope, field, number, protobuf_status};

#[test]
fn a_status_is_the_same_in_both_encodings() {
    let json = Status::read(Json, JSON_STATUS.as_bytes());
    let protobuf = Status::read(Protobuf, &envelope("v1", "Status", protobuf_status()));
    assert_eq!(json, protobuf);
    assert_eq!((json.status.as_str(), json.reason.as_str(), json.code), ("Failure", "Timeout", 504));
    assert_eq!(json.message, "Timeout: Too large resource version: 9, current: 5");
    let details = &json.details;
    assert_eq!((details.name.as_str(), details.group.as_str()), ("web", "apps"));
    assert_eq!((details.kind.as_str(), details.uid.as_str()), ("deployments", "u-1"));
    assert_eq!((details.causes.len(), details.causes[0].field.as_str()), (1, "x"));
    assert!(json.is_too_large_resource_version() && !json.is_expired());
    assert_eq!(json.retry_after(), Some(Duration::from_secs(3)));
    assert_eq!(
        json.to_string(),
        "504 Timeout: Timeout: Too large resource version: 9, current: 5 (try again in 3 s)"
    );
}

#[test]
fn an_expired_version_is_known_by_its_code_or_its_reason() {
    for body in [r#"{"code":410}"#, r#"{"reason":"Expired"}"#, r#"{"reason":"Gone"}"#] {
        assert!(Status::read(Json, body.as_bytes()).is_expired(), "{body}");
    }
    assert!(!Status::read(Json, br#"{"code":404,"reason":"NotFound"}"#).is_expired());
}

#[test]
fn a_version_that_is_too_large_is_known_by_the_words_of_old_servers_too() {
    for body in [
        r#"{"reason":"Timeout","message":"Too large resource version: 9"}"#,
        r#"{"reason":"Timeout","details":{"causes":[{"message":"Too large resource version"}]}}"#,
        r#"{"code":504,"details":{"causes":[{"message":"Too large resource version"}]}}"#,
    ] {
        assert!(Status::read(Json, body.as_bytes()).is_too_large_resource_version(), "{body}");
    }
    for body in [
        r#"{"reason":"Timeout","message":"too slow"}"#,
        r#"{"reason":"Timeout","details":{"causes":[{"message":"too slow"}]}}"#,
        r#"{"reason":"Invalid","details":{"causes":[{"message":"Too large resource version"}]}}"#,
    ] {
        assert!(!Status::read(Json, body.as_bytes()).is_too_large_resource_version(), "{body}");
    }
}

#[test]
fn a_status_that_is_cut_anywhere_says_what_could_be_read() {
    let protobuf = envelope("v1", "Status", protobuf_status());
    for (encoding, body) in [(Json, JSON_STATUS.as_bytes()), (Protobuf, &protobuf[..])] {
        let complete = Status::read(encoding, body);
        for end in 0..body.len() {
            let status = Status::read(encoding, &body[..end]);
            assert!(complete.status.starts_with(&status.status));
            assert!(complete.reason.starts_with(&status.reason));
            assert!([0, 504].contains(&status.code));
        }
        // Everything before the details is there when the details are cut.
        let status = Status::read(encoding, &body[..body.len() - 40]);
        assert_eq!((status.reason, status.message), (complete.reason, complete.message));
    }
}

#[test]
fn what_has_the_wrong_type_is_left_empty() {
    let body = br#"{"status":1,"reason":null,"message":"kept","code":"410","details":[{"causes":7}]}"#;
    let status = Status::read(Json, body);
    assert_eq!(status.to_string(), "kept");
    assert_eq!((status.code, status.retry_after()), (0, None));
    let huge = Status::read(Json, br#"{"code":99999999,"details":{"retryAfterSeconds":-5}}"#);
    assert_eq!((huge.code, huge.retry_after()), (0, None));
    let wrong = [number(2, 1), field(6, "410"), field(3, b"\xffkept")].concat();
    let status = Status::read(Protobuf, &envelope("v1", "Status", wrong));
    assert_eq!((status.message.as_str(), status.code), ("\u{fffd}kept", 0));
}

#[test]
fn text_in_place_of_a_status_becomes_its_message() {
    for encoding in [Json, Protobuf] {
        let status = Status::read(encoding, b"  upstream connect error\r\n\tor \x1b[31mdisconnect ");
        assert_eq!(status.message, "upstream connect error or [31mdisconnect");
        assert!(Status::read(encoding, &b"x ".repeat(10_000)).message.len() < 300);
    }
}

#[test]
fn a_status_says_something_however_little_it_has() {
    for (body, expected) in [
        (&b""[..], "an empty status"),
        (br#"{"status":"Failure"}"#, "Failure"),
        (br#"{"code":500}"#, "500"),
        (br#"{"status":"Failure","code":500,"message":"m"}"#, "500: m"),
        (br#"{"reason":"R","message":"m"}"#, "R: m"),
    ] {
        assert_eq!(Status::read(Json, body).to_string(), expected);
    }
}
