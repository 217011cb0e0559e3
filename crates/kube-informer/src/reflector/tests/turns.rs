//! Who lists when.

use super::script::page;
use super::*;

fn slow_list() -> Answer {
    let seconds = |seconds| Piece::Wait(Duration::from_secs(seconds));
    Answer::Watch(vec![seconds(20), Piece::bookmark(5, true), seconds(200), Piece::Hang])
}

#[tokio::test(start_paused = true)]
async fn promise_16_only_some_list_at_a_time() {
    let server = Arc::new(Server::new(2));
    let play = || Play::new([slow_list()]).server(&server).run();
    let (a, b, c, d) = tokio::join!(play(), play(), play(), play());
    let mut waited: Vec<u64> = [a, b, c, d].iter().map(|seen| seen.pauses[0].as_secs()).collect();
    waited.sort_unstable();
    // A watch that goes on after its list holds nobody up.
    assert_eq!(waited, [0, 0, 20, 20]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_turn_has_said_so() {
    let server = Arc::new(Server::new(1));
    let turn = Arc::clone(&server.lists).acquire_owned().await;
    let waits = Play::new([slow_list()]).server(&server);
    let reports = waits.reports();
    tokio::select! {
        _ = waits.run() => panic!("there is no turn"),
        () = tokio::time::sleep(Duration::from_secs(60)) => {} // tidy: allow-sleep paused time
    }
    assert_eq!(reports(), [Report::Listing(Why::First)]);
    drop(turn);
}

#[tokio::test(start_paused = true)]
async fn promise_16_who_waits_after_a_failure_does_not_have_the_turn() {
    let server = Arc::new(Server::new(1));
    let failing =
        Play::new([script::retry_after(503, 100), Answer::Watch(then(streaming(&[], 5), [Piece::Hang]))]);
    let other = Play::new([slow_list()]);
    let (failing, other) = tokio::join!(failing.server(&server).run(), other.server(&server).run());
    assert_eq!(other.pauses[0], Duration::ZERO);
    assert_eq!(failing.pauses[1], Duration::from_secs(100));
}

#[tokio::test(start_paused = true)]
async fn promise_16_the_turn_lasts_through_the_pages_of_a_list() {
    let server = Arc::new(Server::new(1));
    let pages = Play::new([
        script::no_streaming_lists(),
        Answer::Body(page(&[("a", 1)], 5, "next")),
        Answer::Watch(vec![Piece::Wait(Duration::from_secs(20)), Piece::raw(&list(&[("b", 2)], 5))]),
        Answer::Watch(vec![Piece::Hang]),
    ]);
    let other = Play::new([Answer::Body(list(&[], 5)), Answer::Watch(vec![Piece::Hang])]);
    let (pages, other) = tokio::join!(pages.server(&server).run(), other.server(&server).run());
    assert_eq!(pages.deltas, ["replace 5: a@1 b@2"]);
    assert_eq!(other.pauses[0], Duration::from_secs(20));
}
