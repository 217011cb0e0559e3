//! Scripts of a server's behaviour, played on paused time.

use std::time::Duration;

use super::request::Target;
use super::*;

mod absence;
mod dictionaries;
mod endings;
mod pages;
mod refused;
mod script;
mod streams;
mod to_json;
mod told;
mod turns;
mod waits;

use script::{Answer, Piece, Play, list, pod, status};

/// An answer to a streaming list: objects, and the bookmark that ends them.
fn streaming(objects: &[(&str, u64)], version: u64) -> Vec<Piece> {
    let mut pieces: Vec<Piece> =
        objects.iter().map(|(name, version)| Piece::event("ADDED", pod(name, *version))).collect();
    pieces.push(Piece::bookmark(version, true));
    pieces
}

fn then(mut pieces: Vec<Piece>, more: impl IntoIterator<Item = Piece>) -> Vec<Piece> {
    pieces.extend(more);
    pieces
}

const UNSUPPORTED: u16 = 422;

#[tokio::test(start_paused = true)]
async fn promise_01_a_streaming_list_is_committed_as_a_whole_and_goes_on_as_the_watch() {
    let events = then(
        streaming(&[("a", 1), ("b", 2)], 5),
        [Piece::event("MODIFIED", pod("a", 6)), Piece::event("DELETED", pod("b", 7)), Piece::Hang],
    );
    let seen = Play::new([Answer::Watch(events)]).run().await;
    assert_eq!(seen.deltas, ["replace 5: a@1 b@2", "put a@6", "remove b@7"]);
    assert_eq!(
        seen.requests,
        ["watch=1 allowWatchBookmarks=true sendInitialEvents=true resourceVersionMatch=NotOlderThan"]
    );
}

#[tokio::test(start_paused = true)]
async fn promise_01_what_changes_while_the_list_streams_is_in_it() {
    let events = vec![
        Piece::event("ADDED", pod("a", 1)),
        Piece::event("ADDED", pod("b", 2)),
        Piece::event("MODIFIED", pod("a", 3)),
        Piece::event("DELETED", pod("b", 4)),
        Piece::bookmark(4, false),
        Piece::bookmark(5, true),
        Piece::Hang,
    ];
    let seen = Play::new([Answer::Watch(events)]).run().await;
    assert_eq!(seen.deltas, ["replace 5: a@3"]);
}

#[tokio::test(start_paused = true)]
async fn promise_01_a_server_without_streaming_lists_is_asked_for_a_list_and_not_again_for_a_stream() {
    let seen = Play::new([
        status(UNSUPPORTED, "Invalid"),
        Answer::Body(list(&[("a", 1)], 5)),
        Answer::Watch(vec![Piece::error(410, "Expired")]),
        Answer::Body(list(&[("a", 1)], 9)),
        Answer::Watch(vec![Piece::Hang]),
    ])
    .run()
    .await;
    assert_eq!(seen.deltas, ["replace 5: a@1", "replace 9: a@1"]);
    assert_eq!(
        seen.requests[1..],
        [
            "limit=500 resourceVersion=0",
            "watch=1 allowWatchBookmarks=true resourceVersion=5",
            "resourceVersion=5 resourceVersionMatch=NotOlderThan",
            "watch=1 allowWatchBookmarks=true resourceVersion=9",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn promise_01_the_deadline_is_on_silence_not_on_the_whole() {
    // A list that takes ten minutes, an object every 20 s.
    let mut events = Vec::new();
    for number in 0..30 {
        events.push(Piece::Wait(Duration::from_secs(20)));
        events.push(Piece::event("ADDED", pod(&format!("p{number}"), number + 1)));
    }
    events.extend([Piece::bookmark(99, true), Piece::Hang]);
    let seen = Play::new([Answer::Watch(events)]).run().await;
    assert_eq!((seen.deltas.len(), seen.requests.len()), (1, 1));

    // The bookmark never comes.
    let silent = vec![Piece::event("ADDED", pod("a", 1)), Piece::Hang];
    let seen = Play::new([
        Answer::Watch(silent),
        Answer::Body(list(&[("a", 1)], 5)),
        Answer::Watch(vec![Piece::Hang]),
    ])
    .run()
    .await;
    assert_eq!(seen.deltas, ["replace 5: a@1"]);
    assert_eq!(seen.requests[1], "limit=500 resourceVersion=0");
}

#[tokio::test(start_paused = true)]
async fn promise_01_a_version_that_is_too_large_or_expired_falls_back_to_the_newest_and_does_not_loop() {
    for reason in [status(410, "Expired")].into_iter().chain(script::too_large()) {
        let seen = Play::new([
            status(UNSUPPORTED, "Invalid"),
            Answer::Body(list(&[], 5)),
            status(500, "InternalError"),
            reason.clone(),
            reason.clone(),
            Answer::Body(list(&[("a", 1)], 3)),
            Answer::Watch(vec![Piece::Hang]),
        ])
        .run()
        .await;
        assert_eq!(seen.deltas, ["replace 5:", "replace 3: a@1 (went back)"]);
        assert_eq!(
            seen.requests[3..6],
            ["resourceVersion=5 resourceVersionMatch=NotOlderThan", "limit=500", "limit=500"]
        );
        // The first fallback is at once, the second is not.
        assert!(
            seen.pauses[4] < Duration::from_millis(1) && seen.pauses[5] > Duration::from_millis(400),
            "{seen:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn promise_01_after_a_fallback_lists_are_again_not_older_than_what_was_seen() {
    for reason in [status(410, "Expired")].into_iter().chain(script::too_large()) {
        let again =
            |version| [status(500, "InternalError"), reason.clone(), Answer::Body(list(&[], version))];
        let begin = [status(UNSUPPORTED, "Invalid"), Answer::Body(list(&[], 20))];
        let answers =
            begin.into_iter().chain(again(30)).chain(again(40)).chain([Answer::Watch(vec![Piece::Hang])]);
        let seen = Play::new(answers).run().await;
        assert_eq!(seen.deltas, ["replace 20:", "replace 30:", "replace 40:"]);
        let lists: Vec<&String> =
            seen.requests.iter().filter(|request| !request.contains("watch=1")).collect();
        assert_eq!(
            lists,
            [
                "limit=500 resourceVersion=0",
                "resourceVersion=20 resourceVersionMatch=NotOlderThan",
                "limit=500",
                "resourceVersion=30 resourceVersionMatch=NotOlderThan",
                "limit=500",
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn promise_02_a_clean_end_is_followed_by_a_watch_of_the_last_version() {
    let seen = Play::new([
        Answer::Watch(then(streaming(&[("a", 1)], 5), [Piece::event("MODIFIED", pod("a", 6))])),
        Answer::Watch(vec![Piece::bookmark(8, false)]),
        Answer::Watch(vec![Piece::Hang]),
    ])
    .run()
    .await;
    assert_eq!(seen.deltas, ["replace 5: a@1", "put a@6", "progress 8"]);
    assert_eq!(
        seen.requests[1..],
        [
            "watch=1 allowWatchBookmarks=true resourceVersion=6",
            "watch=1 allowWatchBookmarks=true resourceVersion=8"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn promise_02_an_expired_version_at_the_start_or_inside_of_a_watch_is_followed_by_a_list() {
    for expired in [status(410, "Expired"), Answer::Watch(vec![Piece::error(410, "Expired")])] {
        let seen = Play::new([
            Answer::Watch(then(streaming(&[("a", 1)], 5), [Piece::event("MODIFIED", pod("a", 6))])),
            expired,
            Answer::Watch(then(streaming(&[], 9), [Piece::Hang])),
        ])
        .run()
        .await;
        assert_eq!(seen.deltas, ["replace 5: a@1", "put a@6", "replace 9:"]);
        assert!(
            seen.requests[2]
                .ends_with("sendInitialEvents=true resourceVersionMatch=NotOlderThan resourceVersion=6")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn promise_02_refused_connections_and_429_are_no_reason_to_list() {
    let seen = Play::new([
        Answer::Watch(then(streaming(&[("a", 1)], 5), [Piece::bookmark(6, false)])),
        Answer::Refused,
        // Who was not there may have lost something.
        Answer::Body(list(&[], 6)),
        script::retry_after(429, 7),
        Answer::Watch(vec![Piece::error(429, "TooManyRequests")]),
        Answer::Watch(vec![Piece::Hang]),
    ])
    .run()
    .await;
    let watch = "watch=1 allowWatchBookmarks=true resourceVersion=6";
    assert_eq!(seen.requests[1..], [watch, "limit=1", watch, watch, watch]);
    assert!(seen.pauses[2] >= Duration::from_millis(400));
    // What the server asks for is honoured; where it asks for nothing, it is waited longer each time all the same.
    assert_eq!(seen.pauses[4], Duration::from_secs(7));
    assert!((3.2..=6.402).contains(&seen.pauses[5].as_secs_f64()), "{:?}", seen.pauses);
}

#[tokio::test(start_paused = true)]
async fn promise_02_any_other_error_of_the_server_is_followed_by_a_list() {
    for answer in [
        status(500, "InternalError"),
        status(503, "ServiceUnavailable"),
        Answer::Html,
        Answer::Watch(vec![Piece::error(500, "InternalError")]),
    ] {
        let seen = Play::new([
            Answer::Watch(then(streaming(&[("a", 1)], 5), [Piece::bookmark(6, false)])),
            answer,
            Answer::Watch(then(streaming(&[("a", 1)], 7), [Piece::Hang])),
        ])
        .run()
        .await;
        assert_eq!(seen.deltas, ["replace 5: a@1", "progress 6", "replace 7: a@1"], "{seen:?}");
        assert!(seen.pauses[2] >= Duration::from_millis(400));
    }
}

#[tokio::test(start_paused = true)]
async fn promise_02_an_error_inside_of_a_watch_is_followed_by_a_list_that_tells_what_is_gone() {
    let seen = Play::new([
        Answer::Watch(then(streaming(&[("a", 1), ("b", 2)], 5), [Piece::error(500, "InternalError")])),
        Answer::Watch(then(streaming(&[("a", 1)], 7), [Piece::Hang])),
    ])
    .run()
    .await;
    // One whole list, and nothing of the objects in between: what is not in it is gone, and nothing else.
    assert_eq!(seen.deltas, ["replace 5: a@1 b@2", "replace 7: a@1"]);
    assert!(seen.requests[1].ends_with("resourceVersion=5"), "{:?}", seen.requests);
}

#[tokio::test(start_paused = true)]
async fn promise_03_lists_that_fail_are_tried_less_and_less_often() {
    let failures = (0..10).map(|_| status(503, "ServiceUnavailable"));
    let seen = Play::new(failures).run().await;
    let expected = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0];
    for (pause, seconds) in seen.pauses[1..].iter().zip(expected) {
        assert!((seconds / 2.0..=seconds).contains(&pause.as_secs_f64()), "{:?}", seen.pauses);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_03_credentials_are_read_anew_and_tried_at_once_one_time_and_with_each_wait_then() {
    let unauthorized = || status(401, "Unauthorized");
    let seen = Play::new([unauthorized(), unauthorized(), unauthorized()]).run().await;
    assert_eq!(seen.reloads, 3);
    assert_eq!(seen.pauses[1], Duration::ZERO);
    assert!(
        seen.pauses[2] >= Duration::from_millis(400) && seen.pauses[3] >= Duration::from_millis(800),
        "{seen:?}"
    );

    // Accepted once, they are tried at once again.
    let seen = Play::new([
        unauthorized(),
        Answer::Watch(streaming(&[], 5)),
        unauthorized(),
        Answer::Watch(vec![Piece::Hang]),
    ])
    .run()
    .await;
    assert_eq!((seen.reloads, seen.pauses[3]), (2, Duration::ZERO));
}

/// Not within a request: that has a deadline, and a program that logs somebody in may take longer.
#[tokio::test(start_paused = true)]
async fn promise_03_authorities_are_read_anew_with_each_wait_where_the_server_is_not_trusted() {
    let seen = Play::new([
        Answer::Untrusted,
        Answer::Untrusted,
        Answer::Watch(streaming(&[], 5)),
        Answer::Untrusted,
        Answer::Untrusted,
    ])
    .run()
    .await;
    // The last one is of the probe that follows a watch that could not be opened.
    assert_eq!(seen.reloads, 3, "{seen:?}");
    let failures = seen.failures().into_iter();
    assert_eq!(failures.filter(|(fault, _)| matches!(fault, Fault::Untrusted(_))).count(), 3, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn promise_04_what_is_not_served_or_forbidden_keeps_its_objects_and_is_asked_for_slowly() {
    for answer in [status(404, "NotFound"), status(403, "Forbidden")] {
        let seen = Play::new([
            Answer::Watch(then(streaming(&[("a", 1)], 5), [Piece::bookmark(6, false)])),
            answer.clone(),
            answer.clone(),
            answer,
        ])
        .run()
        .await;
        assert_eq!(seen.deltas, ["replace 5: a@1", "progress 6"]);
        assert!(seen.pauses[2..].iter().all(|pause| *pause >= Duration::from_secs(30)), "{:?}", seen.pauses);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_05_silence_where_bookmarks_came_is_looked_into() {
    let minute = || Piece::Wait(Duration::from_secs(60));
    let bookmarks = [minute(), Piece::bookmark(6, false), minute(), Piece::bookmark(7, false), Piece::Hang];
    let seen = Play::new([
        Answer::Watch(then(streaming(&[], 5), bookmarks)),
        Answer::Body(list(&[], 7)),
        Answer::Watch(vec![Piece::Hang]),
    ])
    .run()
    .await;
    assert_eq!(seen.requests[1..], ["limit=1", "watch=1 allowWatchBookmarks=true resourceVersion=7"]);
    // Two minutes of bookmarks, three intervals of silence.
    assert_eq!(seen.pauses[1], Duration::from_secs(120 + 180));
}

#[tokio::test(start_paused = true)]
async fn promise_05_an_idle_watch_without_bookmarks_is_left_alone_until_the_server_should_have_ended_it() {
    let seen = Play::new([Answer::Watch(then(streaming(&[], 5), [Piece::Hang])), Answer::Body(list(&[], 5))])
        .run()
        .await;
    assert_eq!(seen.requests[1], "limit=1");
    assert!(
        (Duration::from_secs(330)..=Duration::from_secs(630)).contains(&seen.pauses[1]),
        "{:?}",
        seen.pauses
    );
}

#[tokio::test(start_paused = true)]
async fn promise_06_versions_that_went_back_are_found_and_everything_is_listed_anew() {
    // By a bookmark.
    let again = || Answer::Watch(then(streaming(&[("a", 1)], 3), [Piece::Hang]));
    let newest = "watch=1 allowWatchBookmarks=true sendInitialEvents=true resourceVersionMatch=NotOlderThan";
    let first = then(streaming(&[("a", 1), ("b", 4)], 50), [Piece::bookmark(3, false), Piece::Hang]);
    let seen = Play::new([Answer::Watch(first), again()]).run().await;
    assert_eq!(seen.deltas, ["replace 50: a@1 b@4", "replace 3: a@1 (went back)"]);
    assert_eq!(seen.requests[1], newest);

    // By a look at the server after silence.
    let first = then(streaming(&[("a", 1), ("b", 4)], 50), [Piece::Wait(Duration::from_secs(300))]);
    let seen = Play::new([
        Answer::Watch(first),
        Answer::Body(list(&[], 50)),
        Answer::Watch(vec![Piece::Wait(Duration::from_secs(300))]),
        Answer::Body(list(&[], 3)),
        again(),
    ])
    .run()
    .await;
    assert_eq!(seen.deltas, ["replace 50: a@1 b@4", "replace 3: a@1 (went back)"], "{seen:?}");
    assert_eq!(seen.requests[3..], ["limit=1", newest]);

    // By the time of the list, it may be where it was before.
    let first = then(streaming(&[("a", 1), ("b", 4)], 50), [Piece::bookmark(3, false), Piece::Hang]);
    let later = then(streaming(&[("a", 1)], 60), [Piece::error(410, "Expired")]);
    let seen = Play::new([Answer::Watch(first), Answer::Lost, Answer::Watch(later), again()]).run().await;
    assert_eq!(seen.deltas[..2], ["replace 50: a@1 b@4", "replace 60: a@1 (went back)"]);
}

#[tokio::test(start_paused = true)]
async fn promise_06_versions_that_are_no_numbers_never_go_back_and_are_resumed_as_they_are() {
    let events = [
        Piece::event("MODIFIED", pod("x", 7).replace("\"7\"", "\"zz\"")),
        script::raw_bookmark("a", false),
        Piece::Wait(Duration::from_secs(300)),
    ];
    let seen = Play::new([
        Answer::Watch(then(vec![script::raw_bookmark("b", true)], events)),
        // Nothing happens, and a look at the server shows a version that nobody has seen.
        Answer::Watch(vec![Piece::Wait(Duration::from_secs(300))]),
        Answer::Body(r#"{"kind":"PodList","metadata":{"resourceVersion":"0-9"},"items":[]}"#.to_owned()),
        Answer::Watch(vec![Piece::Hang]),
    ])
    .run()
    .await;
    assert_eq!(seen.deltas, ["replace b:", "put x@zz", "progress a"]);
    let resumed = "watch=1 allowWatchBookmarks=true resourceVersion=a";
    assert_eq!(seen.requests[1..], [resumed, "limit=1", resumed]);
    assert!(seen.failures().is_empty() && seen.unreadable.is_empty(), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_kept_reported_and_listed_once() {
    let broken = || {
        Piece::raw(
            r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"d"},"spec":{"x":1,"x":2}}}"#,
        )
    };
    let listed = vec![
        Piece::raw(
            r#"{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"d"},"spec":{"x":1,"x":2}}}"#,
        ),
        Piece::bookmark(8, true),
        // It is known by now that another list does not help.
        broken(),
        Piece::event("MODIFIED", pod("b", 9)),
        Piece::Hang,
    ];
    let seen = Play::new([Answer::Watch(then(streaming(&[("a", 1)], 5), [broken()])), Answer::Watch(listed)])
        .run()
        .await;
    assert_eq!(seen.deltas, ["replace 5: a@1", "replace 8: (kept d/a)", "put b@9"]);
    assert!(seen.pauses[1] >= Duration::from_millis(400));
    assert_eq!(seen.unreadable, ["d/a", "d/a", "d/a"]);
}

/// Events of an object that are none as a whole: broken off within the object, and above the limit.
fn lost(kind: &str) -> [Piece; 2] {
    let begin = |spec: &str| {
        format!(r#"{{"type":"{kind}","object":{{"metadata":{{"name":"a","namespace":"d"}},"spec":{spec}"#)
    };
    let large = "x".repeat(script::LIMIT);
    [Piece::raw(&begin("{]")), Piece::raw(&begin(&format!(r#"{{"x":"{large}"}}}}}}"#)))]
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_events_are_none_is_kept_reported_and_listed_once() {
    for (again, first) in lost("MODIFIED").into_iter().zip(lost("ADDED")) {
        let listed = vec![
            first,
            Piece::bookmark(8, true),
            // It is known by now that another list does not help.
            again.clone(),
            again.clone(),
            Piece::event("MODIFIED", pod("b", 9)),
            Piece::Hang,
        ];
        let seen =
            Play::new([Answer::Watch(then(streaming(&[("a", 1)], 5), [again])), Answer::Watch(listed)])
                .run()
                .await;
        assert_eq!(seen.deltas, ["replace 5: a@1", "replace 8: (kept d/a)", "put b@9"]);
        assert_eq!(seen.unreadable, ["d/a"; 4]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_cannot_be_read_is_told_by_its_key() {
    let deleted = Piece::raw(
        r#"{"type":"DELETED","object":{"metadata":{"name":"a","namespace":"d"},"spec":{"x":1,"x":2}}}"#,
    );
    for deleted in [deleted].into_iter().chain(lost("DELETED")) {
        let events = then(streaming(&[("a", 1)], 5), [deleted.clone(), Piece::Hang]);
        let seen = Play::new([Answer::Watch(events)]).run().await;
        assert_eq!(seen.deltas, ["replace 5: a@1", "remove d/a by its key"]);
        // While a list streams, it is not in the list.
        let events = vec![Piece::event("ADDED", pod("a", 1)), deleted, Piece::bookmark(5, true), Piece::Hang];
        let seen = Play::new([Answer::Watch(events)]).run().await;
        assert_eq!(seen.deltas, ["replace 5:"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_item_without_a_name_makes_a_list_that_proves_no_absence() {
    let seen = Play::new([
        status(UNSUPPORTED, "Invalid"),
        Answer::Body(r#"{"items":[{"metadata":{}}],"metadata":{"resourceVersion":"5"}}"#.to_owned()),
        Answer::Watch(vec![Piece::Hang]),
    ])
    .run()
    .await;
    assert_eq!(seen.deltas, ["replace 5: (incomplete)"]);
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_of_another_kind_is_no_progress() {
    let other =
        Piece::raw(r#"{"type":"BOOKMARK","object":{"kind":"Node","metadata":{"resourceVersion":"77"}}}"#);
    let seen = Play::new([Answer::Watch(then(streaming(&[], 5), [other])), Answer::Watch(vec![Piece::Hang])])
        .run()
        .await;
    assert_eq!(seen.requests[1], "watch=1 allowWatchBookmarks=true resourceVersion=5");
}
