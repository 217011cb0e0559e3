//! Streaming lists that do not work, and when they are asked for again.

use super::script::Seen;
use super::*;

const SECONDS_10: Duration = Duration::from_secs(10);

fn is_stream(request: &str) -> bool {
    request.contains("sendInitialEvents")
}

/// Which of the requests were streaming lists, and which plain ones.
fn lists(seen: &Seen) -> Vec<&'static str> {
    let kind = |request: &String| match request {
        request if is_stream(request) => Some("stream"),
        request if !request.contains("watch=1") && request != "limit=1" => Some("list"),
        _ => None,
    };
    seen.requests.iter().filter_map(kind).collect()
}

#[tokio::test(start_paused = true)]
async fn promise_01_what_came_last_about_an_object_is_in_the_list() {
    let events = ["ADDED", "DELETED"].into_iter().cycle().zip(1..);
    let mut pieces: Vec<Piece> =
        events.take(4).map(|(kind, version)| Piece::event(kind, pod("ghost", version))).collect();
    pieces.extend([
        Piece::event("ADDED", pod("a", 1)),
        Piece::event("DELETED", pod("a", 2)),
        Piece::event("ADDED", pod("a", 3)),
        Piece::event("MODIFIED", pod("a", 4)),
        Piece::event("ADDED", pod("b", 5)),
        Piece::bookmark(9, true),
        Piece::Hang,
    ]);
    let seen = Play::new([Answer::Watch(pieces)]).run().await;
    assert_eq!(seen.deltas, ["replace 9: a@4 b@5"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_listed_does_not_wait_and_what_changes_may() {
    let gathers = async |answers: Vec<Answer>| Play::new(answers).run().await.gathers;
    let added = || Piece::event("ADDED", pod("a", 1));
    let stream = |pieces: Vec<Piece>| Answer::Watch([vec![added()], pieces, vec![Piece::Hang]].concat());
    assert_eq!(gathers(vec![stream(vec![])]).await, 0, "a list that goes on");
    assert_eq!(gathers(vec![stream(vec![Piece::bookmark(9, true)])]).await, 1);
    let not_streamed = Answer::Status { code: 422, body: String::new(), retry_after: None };
    let listed = Answer::Body(list(&[("a", 2)], 5));
    assert_eq!(gathers(vec![not_streamed.clone(), listed.clone()]).await, 0, "a list that is one body");
    assert_eq!(gathers(vec![not_streamed, listed, Answer::Watch(vec![Piece::Hang])]).await, 1);
}

#[tokio::test(start_paused = true)]
async fn promise_01_changes_are_no_progress_of_a_list() {
    // The end of the list is lost, and others are at work.
    for kind in ["MODIFIED", "ADDED"] {
        let mut pieces = vec![Piece::event("ADDED", pod("a", 1)), Piece::event("MODIFIED", pod("a", 2))];
        for version in 3..100 {
            pieces.extend([Piece::Wait(SECONDS_10), Piece::event(kind, pod("z", version))]);
        }
        let seen = Play::new([
            Answer::Watch(pieces),
            Answer::Body(list(&[("a", 2)], 5)),
            Answer::Watch(vec![Piece::Hang]),
        ])
        .run()
        .await;
        assert_eq!(seen.deltas, ["replace 5: a@2"]);
        assert_eq!(seen.pauses[1], SECONDS_10 * 4);
        assert_eq!(seen.failures(), [(&Fault::Stalled(Duration::from_secs(30)), Duration::ZERO)]);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_01_only_a_bookmark_that_says_true_ends_a_streaming_list() {
    // What follows is of the list, and no change.
    let both = ["replace 5: a@1 b@2"];
    for other in ["false", "", "True", "1"] {
        let added = |name, version| Piece::event("ADDED", pod(name, version));
        let (not_yet, end) = (script::saying("4", Some(other)), script::saying("5", Some("true")));
        let events = vec![added("a", 1), not_yet, added("b", 2), end, Piece::Hang];
        let seen = Play::new([Answer::Watch(events)]).run().await;
        assert_eq!(seen.deltas, both, "{other:?} in JSON");

        let added = |name: &str, version: &str| {
            let fields: [(u32, &[u8]); 4] =
                [(1, name.as_bytes()), (3, b"d"), (5, b"u"), (6, version.as_bytes())];
            Piece::protobuf("ADDED", &fields)
        };
        let (not_yet, end) = (script::saying_protobuf("4", other), script::saying_protobuf("5", "true"));
        let events = vec![added("a", "1"), not_yet, added("b", "2"), end, Piece::Hang];
        let seen = Play::new([Answer::Protobuf(events)]).protobuf().run().await;
        assert_eq!(seen.deltas, both, "{other:?} in protobuf");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_01_a_stream_that_ends_early_is_followed_by_plain_lists_for_an_hour() {
    for end in [vec![], vec![Piece::Broken], vec![Piece::raw(r#"{"type":"#), Piece::Broken]] {
        let expired = || Answer::Watch(vec![Piece::error(410, "Expired")]);
        let mut answers = vec![
            Answer::Watch(then(vec![Piece::event("ADDED", pod("a", 1))], end)),
            Answer::Body(list(&[("a", 1)], 5)),
            expired(),
            Answer::Body(list(&[("a", 1)], 6)),
        ];
        let minutes_5 = || Piece::Wait(Duration::from_secs(300));
        answers.extend((0..12).map(|_| Answer::Watch(vec![minutes_5(), Piece::bookmark(7, false)])));
        answers.extend([expired(), Answer::Watch(then(streaming(&[("a", 1)], 8), [Piece::Hang]))]);
        let seen = Play::new(answers).run().await;
        assert_eq!(lists(&seen), ["stream", "list", "list", "stream"], "{:?}", seen.requests);
        assert_eq!(seen.pauses[1], Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_server_that_says_so_is_believed_to_know_no_streams_at_all() {
    let hour = Duration::from_secs(3_600);
    let stalls = || Answer::Watch(vec![Piece::Wait(hour)]);
    for (answer, shared) in [
        (script::no_streaming_lists(), true),
        (status(422, "Invalid"), false),
        (status(400, "BadRequest"), false),
        (status(405, "MethodNotAllowed"), false),
        (stalls(), false),
    ] {
        let server = Arc::new(Server::default());
        let listed = || [Answer::Body(list(&[], 5)), Answer::Watch(vec![Piece::Hang])];
        let first = Play::new([answer].into_iter().chain(listed())).server(&server).run().await;
        assert_eq!(lists(&first), ["stream", "list"]);
        let streams = || Answer::Watch(then(streaming(&[], 5), [Piece::Hang]));
        let second = || Play::new(if shared { Vec::from(listed()) } else { vec![streams()] }).server(&server);
        assert_eq!(lists(&second().run().await), [if shared { "list" } else { "stream" }]);
        // A server may have been upgraded.
        tokio::time::advance(hour).await;
        let third = Play::new([streams()]).server(&server).run().await;
        assert_eq!(lists(&third), ["stream"]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_server_does_not_accept_is_told_and_asked_for_less_and_less_often() {
    let seen = Play::new((0..6).map(|_| status(400, "BadRequest"))).run().await;
    assert_eq!(lists(&seen), ["stream", "list", "list", "list", "list", "list"]);
    let waits: Vec<Duration> = seen.failures().into_iter().skip(1).map(|(_, again)| again).collect();
    assert_eq!(waits.len(), 5);
    for (wait, seconds) in waits.iter().zip([0.8, 1.6, 3.2, 6.4, 12.8]) {
        assert!((seconds / 2.0..=seconds).contains(&wait.as_secs_f64()), "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_in_a_large_piece_does_not_wait_for_the_next() {
    for bytes in [1_000, 70_000, 300_000] {
        let metadata = r#"{"name":"large","namespace":"d","uid":"u","resourceVersion":"901"}"#;
        let large = format!(r#"{{"metadata":{metadata},"spec":{{"text":"{}"}}}}"#, "a".repeat(bytes));
        let pieces = vec![Piece::bookmark(900, true), Piece::event("ADDED", large), Piece::Hang];
        let seen = Play::new([Answer::Watch(pieces)]).run().await;
        assert_eq!(seen.deltas.last().map(String::as_str), Some("put large@901"));
        assert_eq!(seen.waiting, 0, "{bytes}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_that_are_written_in_another_way_than_they_seem_to_be_are_read_and_counted_once() {
    // The last braces of each line are not the object's and the event's.
    let event = |kind: &str, object: String| {
        Piece::raw(&format!(r#"{{"type":"{kind}","object":{object},"other":{{}}}}"#))
    };
    let pieces = vec![
        event("ADDED", pod("a", 1)),
        event("ADDED", pod("b", 2)),
        Piece::bookmark(5, true),
        event("MODIFIED", pod("a", 6)),
        event("DELETED", pod("b", 7)),
        Piece::Hang,
    ];
    let seen = Play::new([Answer::Watch(pieces)]).run().await;
    assert_eq!(seen.deltas, ["replace 5: a@1 b@2", "put a@6", "remove b@7"]);
    assert!(seen.unreadable.is_empty(), "{:?}", seen.unreadable);
    let received = seen.reports.iter().filter_map(|report| match report {
        Report::Received(traffic) => Some(traffic.objects),
        _ => None,
    });
    assert_eq!(received.sum::<u64>(), 4);
}

#[tokio::test(start_paused = true)]
async fn promise_01_a_stream_that_fails_twice_is_followed_by_a_list() {
    let page = || Answer::Watch(vec![Piece::raw("<html>")]);
    for odd in [status(500, "InternalError"), status(501, ""), status(503, "ServiceUnavailable"), page()] {
        let seen = Play::new([
            odd.clone(),
            odd.clone(),
            Answer::Body(list(&[("a", 1)], 5)),
            Answer::Watch(vec![Piece::event("MODIFIED", pod("a", 6)), Piece::error(410, "Expired")]),
            // It is tried again each time, and not waited for more than once.
            odd,
            Answer::Body(list(&[("a", 6)], 9)),
            Answer::Watch(vec![Piece::error(410, "Expired")]),
            Answer::Watch(then(streaming(&[("a", 6)], 9), [Piece::Hang])),
        ])
        .run()
        .await;
        let once = ["replace 5: a@1", "put a@6", "replace 9: a@6", "replace 9: a@6"];
        assert_eq!(seen.deltas, once);
        assert_eq!(lists(&seen), ["stream", "stream", "list", "stream", "list", "stream"]);
        assert_eq!(seen.failures().iter().filter(|(_, pause)| pause.is_zero()).count(), 1, "the first 410");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_01_versions_that_are_always_too_old_are_not_listed_in_a_tight_loop() {
    let gone = || Answer::Watch(vec![Piece::error(410, "Expired")]);
    let mut answers = vec![status(UNSUPPORTED, "Invalid")];
    for round in 0..6 {
        answers.extend([
            Answer::Body(list(&[("a", 1)], 5)),
            match round % 3 {
                0 => gone(),
                1 => status(410, "Gone"),
                // That something comes before it does not make it better.
                _ => Answer::Watch(vec![Piece::bookmark(6, false), Piece::error(410, "Expired")]),
            },
        ]);
    }
    // Then it works for a while, and the next time is the first one again.
    answers.push(Answer::Body(list(&[("a", 1)], 5)));
    let works = vec![Piece::Wait(Duration::from_secs(1)), Piece::error(410, "Expired")];
    answers.extend([
        Answer::Watch(works),
        Answer::Body(list(&[("a", 1)], 7)),
        Answer::Watch(vec![Piece::Hang]),
    ]);
    let seen = Play::new(answers).run().await;
    let pauses: Vec<Duration> = seen.failures().iter().skip(1).map(|(_, pause)| *pause).collect();
    let (first, others) = pauses.split_first().unwrap();
    let (last, others) = others.split_last().unwrap();
    assert!(first.is_zero() && last.is_zero(), "{pauses:?}");
    let mut least = Duration::from_millis(400);
    for pause in others {
        assert!(*pause >= least, "{pauses:?}");
        least *= 2;
    }
    assert_eq!(others.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn promise_05_idle_watches_whose_version_is_too_old_afterwards_are_nothing_unusual() {
    let idle = || Answer::Watch(vec![Piece::Wait(Duration::from_secs(300))]);
    let mut answers = vec![status(UNSUPPORTED, "Invalid")];
    for _ in 0..4 {
        // The server's own version is looked at before it is asked for the old one again.
        let probe = Answer::Body(list(&[("a", 1)], 9));
        answers.extend([Answer::Body(list(&[("a", 1)], 5)), idle(), probe, status(410, "Expired")]);
    }
    answers.extend([Answer::Body(list(&[("a", 1)], 5)), Answer::Watch(vec![Piece::Hang])]);
    let seen = Play::new(answers).run().await;
    let pauses: Vec<Duration> = seen.failures().iter().map(|(_, pause)| *pause).collect();
    assert_eq!(
        pauses,
        [Duration::ZERO; 5],
        "that there are no streaming lists, and that versions are too old"
    );
}

#[tokio::test(start_paused = true)]
async fn promise_03_credentials_that_expire_in_an_idle_watch_are_read_anew_at_once_each_time() {
    let expires = || vec![Piece::Wait(Duration::from_secs(240)), Piece::error(401, "Unauthorized")];
    let first = then(streaming(&[("a", 1)], 5), expires());
    let answers = [Answer::Watch(first), Answer::Watch(expires()), Answer::Watch(vec![Piece::Hang])];
    let seen = Play::new(answers).run().await;
    assert_eq!((seen.reloads, seen.failures().len()), (2, 0), "{:?}", seen.failures());
}

#[tokio::test(start_paused = true)]
async fn promise_01_where_even_the_newest_is_too_new_for_a_stream_it_is_listed() {
    for lags in script::too_large() {
        let listed = Answer::Body(list(&[("a", 1)], 5));
        let watched = Answer::Watch(vec![Piece::Hang]);
        let seen = Play::new([lags.clone(), lags.clone(), lags, listed, watched]).run().await;
        assert_eq!(seen.deltas, ["replace 5: a@1"]);
        assert_eq!(lists(&seen), ["stream", "stream", "stream", "list"]);
    }
}

#[tokio::test(start_paused = true)]
async fn promise_01_that_nothing_answers_is_not_held_against_streams() {
    let mut answers = vec![Answer::Lost; 6];
    answers.push(Answer::Watch(then(streaming(&[("a", 1)], 5), [Piece::Hang])));
    let seen = Play::new(answers).run().await;
    assert_eq!(lists(&seen), ["stream"; 7]);
    // Nor is it where a list does not fare better.
    let mut answers = vec![status(503, "ServiceUnavailable"); 6];
    answers.push(Answer::Watch(then(streaming(&[("a", 1)], 5), [Piece::Hang])));
    let seen = Play::new(answers).run().await;
    assert_eq!(lists(&seen), ["stream", "stream", "list", "stream", "stream", "list", "stream"]);
}

#[tokio::test(start_paused = true)]
async fn promise_03_credentials_that_are_refused_within_a_watch_are_not_read_anew_in_a_tight_loop() {
    let refused = || Answer::Watch(vec![Piece::error(401, "Unauthorized")]);
    let first = then(streaming(&[("a", 1)], 5), [Piece::error(401, "Unauthorized")]);
    let seen =
        Play::new([Answer::Watch(first), refused(), refused(), refused(), Answer::Watch(vec![Piece::Hang])])
            .run()
            .await;
    let pauses: Vec<Duration> = seen.failures().iter().map(|(_, pause)| *pause).collect();
    assert_eq!(pauses.len(), 3, "{pauses:?}");
    assert!(pauses.iter().all(|pause| !pause.is_zero()), "{pauses:?}");
}
