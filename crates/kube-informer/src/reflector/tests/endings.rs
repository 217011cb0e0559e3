//! How watches end, and what comes then.

use super::*;

const WATCH_5: &str = "watch=1 allowWatchBookmarks=true resourceVersion=5";

fn wait(seconds: u64) -> Piece {
    Piece::Wait(Duration::from_secs(seconds))
}

/// A list of version 5, whose watch goes on so.
fn listed(more: impl IntoIterator<Item = Piece>) -> Answer {
    Answer::Watch(then(streaming(&[("a", 1)], 5), more))
}

/// The server's version is 5.
fn probed() -> Answer {
    Answer::Body(list(&[], 5))
}

fn listed_again() -> Answer {
    Answer::Watch(then(streaming(&[("b", 9)], 9), [Piece::Hang]))
}

/// Whether it was waited as long as was said. Timers count in milliseconds.
fn as_said(pause: Duration, said: Duration) -> bool {
    (said..said + Duration::from_millis(2)).contains(&pause)
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_told_and_paused_after_and_everything_is_listed_in_the_end() {
    let at_once = || [Answer::Watch(vec![]), probed()];
    let answers = [listed([wait(60)]), probed()].into_iter().chain(at_once()).chain(at_once());
    let seen = Play::new(answers.chain([Answer::Watch(vec![]), listed_again()])).run().await;
    assert_eq!(seen.requests[1..7], ["limit=1", WATCH_5, "limit=1", WATCH_5, "limit=1", WATCH_5]);
    assert!(seen.requests[7].contains("sendInitialEvents"), "{:?}", seen.requests);
    assert_eq!(seen.deltas, ["replace 5: a@1", "replace 9: b@9"]);
    // Each is waited after, longer each time, and it is said how long.
    let pauses = [seen.pauses[3], seen.pauses[5], seen.pauses[7]];
    for (pause, seconds) in pauses.iter().zip([0.8, 1.6, 3.2]) {
        assert!((seconds / 2.0..=seconds).contains(&pause.as_secs_f64()), "{pauses:?}");
    }
    let failures = seen.failures();
    assert_eq!(failures.len(), 3);
    for ((fault, said), pause) in failures.into_iter().zip(pauses) {
        assert!(
            *fault == Fault::Short(Duration::ZERO) && as_said(pause, said),
            "{fault}: {pause:?} {said:?}"
        );
    }
    // The list's own watch, and the first one after it: that the others were opened means nothing.
    assert_eq!(seen.watches(), 2);
}

#[tokio::test(start_paused = true)]
async fn as_long_as_no_watch_works_everything_is_listed_each_time() {
    let at_once = || Answer::Watch(vec![]);
    let plain = || [Answer::Body(list(&[], 5)), at_once()];
    let answers = [script::no_streaming_lists()].into_iter().chain(plain());
    let answers = answers.chain([probed(), at_once(), probed(), at_once()]).chain(plain()).chain(plain());
    let seen = Play::new(answers).run().await;
    let list = "resourceVersion=5 resourceVersionMatch=NotOlderThan";
    assert_eq!(seen.requests[7..], [list, WATCH_5, list, WATCH_5], "{:?}", seen.requests);
    assert_eq!(seen.watches(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_some_that_did_not_work_a_watch_works_when_it_has_said_something_or_lasted() {
    let change = Piece::event("MODIFIED", pod("a", 6));
    for works in [vec![change], vec![wait(5)]] {
        let seen = Play::new([
            listed([wait(60)]),
            probed(),
            Answer::Watch(vec![]),
            probed(),
            Answer::Watch(then(works, [Piece::Hang])),
        ])
        .run()
        .await;
        assert_eq!((seen.watches(), seen.failures().len()), (3, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_watch_with_events_is_paused_after_and_is_no_reason_to_list() {
    let bookmark = || Answer::Watch(vec![Piece::bookmark(5, false)]);
    let answers = [listed([wait(60), Piece::bookmark(5, false)])].into_iter();
    let seen = Play::new(answers.chain((0..8).map(|_| bookmark()))).run().await;
    assert_eq!(seen.requests[1..], [WATCH_5; 8]);
    assert_eq!(seen.pauses[1], Duration::from_secs(60));
    assert!(seen.pauses[2..9].iter().all(|pause| *pause >= Duration::from_millis(400)), "{:?}", seen.pauses);
}

#[tokio::test(start_paused = true)]
async fn promise_02_a_connection_that_breaks_is_no_reason_to_list() {
    let half = || Piece::Text(r#"{"type":"MODIFIED","obj"#.to_owned());
    for end in [vec![Piece::Broken], vec![half(), Piece::Broken], vec![half()]] {
        let change = Piece::event("MODIFIED", pod("a", 5));
        let seen = Play::new([
            listed(then(vec![wait(100), change], end)),
            probed(),
            Answer::Lost,
            probed(),
            Answer::Watch(vec![Piece::Hang]),
        ])
        .run()
        .await;
        assert_eq!(seen.requests[1..], ["limit=1", WATCH_5, "limit=1", WATCH_5]);
        assert_eq!(seen.deltas, ["replace 5: a@1", "put a@5"]);
        let failures = seen.failures();
        assert!(
            matches!(failures[..], [(Fault::Connection(_), _), (Fault::Connection(_), _)]),
            "{failures:?}"
        );
        assert!(as_said(seen.pauses[1], failures[0].1 + Duration::from_secs(100)), "{:?}", seen.pauses);
        assert!(as_said(seen.pauses[3], failures[1].1), "{:?}", seen.pauses);
    }
}

#[tokio::test(start_paused = true)]
async fn watches_that_are_cut_within_their_first_event_are_followed_by_a_list() {
    let half = || Answer::Watch(vec![wait(60), Piece::Text(r#"{"type":"MODIFIED","obj"#.to_owned())]);
    let seen =
        Play::new([listed([wait(60)]), probed(), half(), probed(), half(), probed(), half(), listed_again()])
            .run()
            .await;
    assert_eq!(seen.deltas, ["replace 5: a@1", "replace 9: b@9"]);
    assert!(matches!(seen.failures()[..], [(Fault::Connection(_), _), _, _]));
}

#[tokio::test(start_paused = true)]
async fn idle_watches_that_are_cut_every_minute_are_resumed_at_once_and_never_listed() {
    let cut = || [probed(), Answer::Watch(vec![wait(60), Piece::Broken])];
    let answers = (0..20).flat_map(|_| cut());
    let seen = Play::new([listed([wait(60), Piece::Broken])].into_iter().chain(answers)).run().await;
    assert_eq!(seen.deltas, ["replace 5: a@1"]);
    assert!(seen.failures().iter().all(|(_, again)| *again <= Duration::from_millis(800)));
    assert_eq!(seen.failures().len(), 21);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_for_long_is_watched_again_without_a_list() {
    let lost = (0..20).map(|_| Answer::Lost);
    let seen = Play::new(
        [listed([wait(60), Piece::Broken])]
            .into_iter()
            .chain(lost)
            .chain([probed(), Answer::Watch(vec![Piece::Hang])]),
    )
    .run()
    .await;
    assert_eq!(seen.deltas, ["replace 5: a@1"]);
    assert_eq!(seen.requests.len(), 23);
}

#[tokio::test(start_paused = true)]
async fn watches_that_get_no_answer_where_lists_do_are_followed_by_a_list() {
    let seen = Play::new([
        listed([wait(60)]),
        probed(),
        Answer::Lost,
        probed(),
        Answer::Lost,
        probed(),
        Answer::Lost,
        listed_again(),
    ])
    .run()
    .await;
    assert_eq!(seen.deltas, ["replace 5: a@1", "replace 9: b@9"]);
}

#[tokio::test(start_paused = true)]
async fn promise_05_watches_that_are_dead_each_time_are_told_and_followed_by_a_list() {
    let dead = || Answer::Watch(vec![Piece::Hang]);
    let seen =
        Play::new([listed([Piece::Hang]), probed(), dead(), probed(), dead(), listed_again()]).run().await;
    assert_eq!(seen.deltas, ["replace 5: a@1", "replace 9: b@9"]);
    let failures = seen.failures();
    assert!(failures.iter().all(|(fault, _)| matches!(fault, Fault::Stalled(_))), "{failures:?}");
    assert_eq!(failures.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn promise_06_a_server_that_comes_back_with_an_older_state_is_found_out_at_once() {
    for gone in [vec![], vec![Answer::Refused, Answer::Refused]] {
        let back = [Answer::Body(list(&[], 3)), Answer::Watch(then(streaming(&[], 3), [Piece::Hang]))];
        let answers = [listed([wait(60), Piece::Broken])].into_iter().chain(gone).chain(back);
        let seen = Play::new(answers).run().await;
        assert_eq!(seen.deltas, ["replace 5: a@1", "replace 3: (went back)"], "{:?}", seen.requests);
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_watch_and_not_list_goes_on_watching() {
    for answer in
        [status(403, "Forbidden"), status(500, "InternalError"), status(404, "NotFound"), Answer::Html]
    {
        let seen = Play::new([
            listed([wait(300)]),
            answer.clone(),
            Answer::Watch(vec![wait(300)]),
            answer,
            Answer::Watch(vec![Piece::Hang]),
        ])
        .run()
        .await;
        assert_eq!(seen.requests[1..], ["limit=1", WATCH_5, "limit=1", WATCH_5]);
        assert_eq!((seen.deltas.len(), seen.failures().len()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_told_before_it_is_waited() {
    let seen =
        Play::new([listed([Piece::raw(r#"{"type":"MOVED","object":{}}"#)]), listed_again()]).run().await;
    let [(Fault::Unreadable(_), again)] = seen.failures()[..] else { panic!("{:?}", seen.reports) };
    assert!(as_said(seen.pauses[1], again), "{:?}", seen.pauses);
}
