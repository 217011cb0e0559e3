//! Lists that a server gives out page by page.

use std::time::Duration;

use super::UNSUPPORTED;
use super::script::{Answer, Piece, Play, list, page, status};

#[tokio::test(start_paused = true)]
async fn promise_01_pages_are_one_list() {
    let seen = Play::new([
        status(UNSUPPORTED, "Invalid"),
        Answer::Body(page(&[("a", 1)], 5, "next")),
        Answer::Body(page(&[("b", 2)], 5, "")),
        Answer::Watch(vec![Piece::Hang]),
    ])
    .run()
    .await;
    assert_eq!(seen.deltas, ["replace 5: a@1 b@2"]);
    assert_eq!(seen.requests[1..3], ["limit=500 resourceVersion=0", "limit=500 continue=next"]);
}

/// Pods `a` to `h`, and each one's version.
const EIGHT: [(&str, u64); 8] =
    [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("f", 6), ("g", 7), ("h", 8)];

/// What is told of them.
fn all(version: u64) -> String {
    let objects: String = EIGHT.iter().map(|(name, version)| format!(" {name}@{version}")).collect();
    format!("replace {version}:{objects}")
}

/// The first page of a list of them, and that the second one is too old.
fn half(version: u64) -> [Answer; 2] {
    [Answer::Body(page(&EIGHT[..4], version, "next")), status(410, "Expired")]
}

#[tokio::test(start_paused = true)]
async fn promise_01_a_page_that_expired_is_followed_by_the_same_list_all_at_once() {
    // Of the first list.
    let begin = [status(UNSUPPORTED, "Invalid")];
    let rest = [Answer::Body(list(&EIGHT, 7)), Answer::Watch(vec![Piece::Hang])];
    let seen = Play::new(begin.into_iter().chain(half(5)).chain(rest)).run().await;
    assert_eq!(seen.deltas, [all(7)]);
    assert_eq!(
        seen.requests[1..],
        [
            "limit=500 resourceVersion=0",
            "limit=500 continue=next",
            "resourceVersion=0",
            "watch=1 allowWatchBookmarks=true resourceVersion=7",
        ]
    );

    // Of a later one: by a server that pages, which its first list has shown.
    let begin = [
        status(UNSUPPORTED, "Invalid"),
        Answer::Body(page(&EIGHT[..2], 10, "more")),
        Answer::Body(page(&EIGHT[2..4], 10, "")),
        Answer::Watch(vec![Piece::error(410, "Expired")]),
    ];
    let rest = [Answer::Body(list(&EIGHT, 12)), Answer::Watch(vec![Piece::Hang])];
    let seen = Play::new(begin.into_iter().chain(half(11)).chain(rest)).run().await;
    // Nothing of the half is told.
    assert_eq!(seen.deltas, ["replace 10: a@1 b@2 c@3 d@4".to_owned(), all(12)]);
    assert_eq!(
        seen.requests[1..],
        [
            "limit=500 resourceVersion=0",
            "limit=500 continue=more",
            "watch=1 allowWatchBookmarks=true resourceVersion=10",
            "limit=500 resourceVersion=10 resourceVersionMatch=NotOlderThan",
            "limit=500 continue=next",
            "resourceVersion=10 resourceVersionMatch=NotOlderThan",
            "watch=1 allowWatchBookmarks=true resourceVersion=12",
        ]
    );
    // Another way is taken at once, and nobody is told of trouble.
    assert_eq!(seen.pauses[5..8], [Duration::ZERO; 3]);
    assert_eq!(seen.failures().len(), 2, "that there are no streaming lists, and that the watch expired");
}

#[tokio::test(start_paused = true)]
async fn promise_01_a_list_whose_pages_and_version_both_expired_is_read_as_the_newest_and_does_not_loop() {
    let begin = [
        status(UNSUPPORTED, "Invalid"),
        Answer::Body(page(&EIGHT[..2], 10, "more")),
        Answer::Body(page(&EIGHT[2..4], 10, "")),
        Answer::Watch(vec![Piece::error(410, "Expired")]),
    ];
    let expired = [status(410, "Expired")];
    let rest = [Answer::Body(list(&EIGHT, 13)), Answer::Watch(vec![Piece::Hang])];
    let answers = begin.into_iter().chain(half(11)).chain(expired).chain(half(12)).chain(rest);
    let seen = Play::new(answers).run().await;
    assert_eq!(seen.deltas, ["replace 10: a@1 b@2 c@3 d@4".to_owned(), all(13)]);
    assert_eq!(
        seen.requests[4..],
        [
            "limit=500 resourceVersion=10 resourceVersionMatch=NotOlderThan",
            "limit=500 continue=next",
            "resourceVersion=10 resourceVersionMatch=NotOlderThan",
            "limit=500",
            "limit=500 continue=next",
            "",
            "watch=1 allowWatchBookmarks=true resourceVersion=13",
        ]
    );
}

/// Some that are no kube-apiservers do.
#[tokio::test(start_paused = true)]
async fn promise_01_a_server_that_pages_what_was_asked_for_all_at_once_is_asked_for_the_newest_and_does_not_loop()
 {
    let begin = [status(UNSUPPORTED, "Invalid")];
    let rest = [Answer::Body(list(&EIGHT, 7)), Answer::Watch(vec![Piece::Hang])];
    let answers = begin.into_iter().chain(half(5)).chain(half(6)).chain(rest);
    let seen = Play::new(answers).run().await;
    assert_eq!(seen.deltas, [all(7)]);
    assert_eq!(
        seen.requests[1..6],
        [
            "limit=500 resourceVersion=0",
            "limit=500 continue=next",
            "resourceVersion=0",
            "limit=500 continue=next",
            "limit=500",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn promise_01_a_server_that_pages_a_list_of_any_version_is_asked_for_pages_from_then_on() {
    let again = |first: String, rest: Option<String>| {
        let answers = [status(UNSUPPORTED, "Invalid"), Answer::Body(first)].into_iter();
        let answers = answers.chain(rest.map(Answer::Body));
        let expired = Answer::Watch(vec![Piece::error(410, "Expired")]);
        Play::new(answers.chain([expired, Answer::Body(list(&[("a", 1)], 9))])).run()
    };
    let not_older = "resourceVersion=5 resourceVersionMatch=NotOlderThan";
    // It has no watch cache: all at once would be all out of the store at once.
    let seen = again(page(&[("a", 1)], 5, "next"), Some(page(&[("b", 2)], 5, ""))).await;
    assert_eq!(seen.requests[1..3], ["limit=500 resourceVersion=0", "limit=500 continue=next"]);
    assert_eq!(seen.requests.last(), Some(&format!("limit=500 {not_older}")), "{:?}", seen.requests);
    // One that has does not page, and would read a list with a limit out of the store.
    let seen = again(list(&[("a", 1)], 5), None).await;
    assert_eq!(seen.requests.last().map(String::as_str), Some(not_older), "{:?}", seen.requests);
}
