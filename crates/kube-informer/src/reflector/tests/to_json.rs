//! Protobuf that holds what the table does not know, and what would be wrong in any encoding.

use super::script::{Seen, message};
use super::*;
use crate::encoding::protobuf::MAGIC;
use crate::encoding::protobuf::reader::put_bytes;

const PROTOBUF: Encoding = Encoding::Protobuf;
const JSON: Encoding = Encoding::Json;

/// Fields of a message, by their numbers.
type Fields<'a> = Vec<(u32, &'a [u8])>;

/// The metadata of a pod.
fn known<'a>(name: &'a str, version: &'a str) -> Fields<'a> {
    let metadata: [(u32, &[u8]); 4] = [(1, name.as_bytes()), (3, b"d"), (5, b"u"), (6, version.as_bytes())];
    metadata.into()
}

/// The same, of a server that is newer than the table.
fn unknown<'a>(name: &'a str, version: &'a str) -> Fields<'a> {
    let mut metadata = known(name, version);
    metadata.push((99, b"new"));
    metadata
}

/// A list of pods with these metadata.
fn list_of(pods: &[Fields<'_>], version: &str) -> Piece {
    let mut list = message(&[(1, &message(&[(2, version.as_bytes())]))]);
    for metadata in pods {
        put_bytes(&mut list, 2, &message(&[(1, &message(metadata))]));
    }
    let kinds = message(&[(1, b"v1"), (2, b"PodList")]);
    Piece::Bytes([MAGIC, &message(&[(1, &kinds), (2, &list)])].concat())
}

/// In which encodings it was asked, one time after the other. Why that changed was told.
fn asked(seen: &Seen) -> Vec<Encoding> {
    let told: Vec<&Report> = seen
        .reports
        .iter()
        .filter(|report| matches!(report, Report::Listing(_) | Report::TurnedToJson { .. }))
        .collect();
    let [Report::Listing(Why::First), Report::TurnedToJson { error }, Report::Listing(Why::Encoding)] =
        told[..]
    else {
        panic!("{told:?}")
    };
    assert!(error.starts_with("d/b: unknown field 99 of "), "{error}");
    assert!(seen.unreadable.is_empty(), "{:?}", seen.unreadable);
    let encoding =
        |accept: &&str| [PROTOBUF, JSON].into_iter().find(|encoding| encoding.accept() == *accept).unwrap();
    seen.accepts.iter().map(encoding).collect()
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_an_unknown_field_is_followed_by_a_list_in_json_and_nothing_is_lost() {
    for (change, listed, replaced) in [
        ("ADDED", &[("a", 6), ("b", 7)][..], "replace 9: a@6 b@7"),
        ("MODIFIED", &[("a", 6), ("b", 7)][..], "replace 9: a@6 b@7"),
        ("DELETED", &[("a", 6)][..], "replace 9: a@6"),
    ] {
        let events = vec![
            Piece::protobuf("ADDED", &known("a", "1")),
            script::saying_protobuf("5", "true"),
            Piece::protobuf("MODIFIED", &known("a", "6")),
            Piece::protobuf(change, &unknown("b", "7")),
            // Nobody reads any more.
            Piece::protobuf("DELETED", &known("a", "8")),
            Piece::Hang,
        ];
        let seen = Play::new([
            Answer::Protobuf(events),
            Answer::Watch(then(streaming(listed, 9), [Piece::event("MODIFIED", pod("a", 10))])),
            Answer::Watch(vec![Piece::Hang]),
        ])
        .protobuf()
        .run()
        .await;
        assert_eq!(seen.deltas, ["replace 5: a@1", "put a@6", replaced, "put a@10"]);
        // At once, not older than what was told, and in JSON from then on.
        assert_eq!(asked(&seen), [PROTOBUF, JSON, JSON]);
        assert_eq!(seen.pauses[1], Duration::ZERO);
        assert!(
            seen.requests[1]
                .ends_with("sendInitialEvents=true resourceVersionMatch=NotOlderThan resourceVersion=6"),
            "{:?}",
            seen.requests
        );
        assert_eq!(seen.requests[2], "watch=1 allowWatchBookmarks=true resourceVersion=10");
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_with_an_unknown_field_is_read_again_in_json() {
    let events = vec![
        Piece::protobuf("ADDED", &known("a", "1")),
        Piece::protobuf("ADDED", &unknown("b", "2")),
        script::saying_protobuf("5", "true"),
        Piece::Hang,
    ];
    let again = then(streaming(&[("a", 1), ("b", 2)], 6), [Piece::Hang]);
    let seen = Play::new([Answer::Protobuf(events), Answer::Watch(again)]).protobuf().run().await;
    assert_eq!(seen.deltas, ["replace 6: a@1 b@2"]);
    assert_eq!(asked(&seen), [PROTOBUF, JSON]);
    assert_eq!((&seen.requests[1], seen.pauses[1]), (&seen.requests[0], Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_plain_list_with_an_unknown_field_is_read_again_in_json() {
    let seen = Play::new([
        status(UNSUPPORTED, "Invalid"),
        Answer::Protobuf(vec![list_of(&[known("a", "1"), unknown("b", "2")], "5")]),
        Answer::Body(list(&[("a", 1), ("b", 2)], 6)),
        Answer::Watch(vec![Piece::Hang]),
    ])
    .protobuf()
    .run()
    .await;
    assert_eq!(seen.deltas, ["replace 6: a@1 b@2"]);
    assert_eq!(asked(&seen), [PROTOBUF, PROTOBUF, JSON, JSON]);
    assert_eq!(seen.requests[1..3], ["limit=500 resourceVersion=0"; 2]);
    assert_eq!(seen.pauses[2], Duration::ZERO);
}

/// The spec is a number, whatever the table knows.
#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_in_protobuf_is_kept_reported_and_listed_once_and_not_in_json() {
    let broken = |kind: &str| Piece::protobuf_and(kind, &known("a", "7"), &[2 << 3, 7]);
    let events = vec![
        Piece::protobuf("ADDED", &known("a", "1")),
        script::saying_protobuf("5", "true"),
        broken("MODIFIED"),
        // Nobody reads any more.
        Piece::protobuf("DELETED", &known("a", "8")),
    ];
    let listed = vec![
        broken("ADDED"),
        script::saying_protobuf("8", "true"),
        // It is known by now that another list does not help.
        broken("MODIFIED"),
        Piece::protobuf("MODIFIED", &known("b", "9")),
        Piece::Hang,
    ];
    let seen = Play::new([Answer::Protobuf(events), Answer::Protobuf(listed)]).protobuf().run().await;
    assert_eq!(seen.deltas, ["replace 5: a@1", "replace 8: (kept d/a)", "put b@9"]);
    assert!(seen.pauses[1] >= Duration::from_millis(400));
    assert_eq!(seen.unreadable, ["d/a", "d/a", "d/a"]);
    assert_eq!(seen.accepts, [PROTOBUF.accept(); 2]);
    let said = seen.reports.iter().find_map(|report| match report {
        Report::Unreadable { error, .. } => Some(error.as_str()),
        _ => None,
    });
    assert!(said.is_some_and(|said| said.starts_with("d/a: ") && said.contains("expected")), "{said:?}");
}
