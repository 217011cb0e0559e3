//! How long it is waited: for a server that is not there, and by the server before it ends a watch.

use super::*;

/// Twice as long each time, and then no longer.
const GROWING: [f64; 9] = [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0];

fn assert_growing(pauses: &[Duration]) {
    assert_eq!(pauses.len(), GROWING.len(), "{pauses:?}");
    for (pause, seconds) in pauses.iter().zip(GROWING) {
        // Timers count in milliseconds.
        assert!((seconds / 2.0..=seconds + 0.002).contains(&pause.as_secs_f64()), "{pauses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_03_refused_lists_are_tried_less_and_less_often_and_then_as_often() {
    let seen = Play::new((0..GROWING.len()).map(|_| Answer::Refused)).run().await;
    assert_eq!(seen.pauses[0], Duration::ZERO);
    assert_growing(&seen.pauses[1..]);
    assert!(seen.failures().iter().all(|(fault, _)| matches!(fault, Fault::Refused(_))), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn promise_03_refused_watches_are_tried_less_and_less_often_and_then_as_often() {
    // Before each watch but the first, somebody is to say of which state the server is; nobody does.
    let refused = (0..2 * GROWING.len()).map(|_| Answer::Refused);
    let first = Answer::Watch(then(streaming(&[("a", 1)], 5), [Piece::bookmark(6, false)]));
    let seen = Play::new([first].into_iter().chain(refused)).run().await;
    let watch = "watch=1 allowWatchBookmarks=true resourceVersion=6";
    let asked: Vec<&str> = seen.requests[1..].iter().map(String::as_str).collect();
    assert!(asked.chunks(2).all(|two| two == [watch, "limit=1"]), "{asked:?}");
    // The first watch ended as soon as it was open, and is waited after, too.
    let (waits, at_once): (Vec<Duration>, Vec<Duration>) =
        seen.pauses[1..].iter().partition(|pause| **pause > Duration::ZERO);
    assert_growing(&waits[..GROWING.len()]);
    assert!(at_once.len() >= GROWING.len(), "{:?}", seen.pauses);
    assert_eq!(seen.deltas, ["replace 5: a@1", "progress 6"], "nothing is listed");
}

#[tokio::test(start_paused = true)]
async fn watches_are_to_end_between_five_minutes_and_ten_and_not_all_at_once() {
    let short = (0..40).map(|_| Answer::Watch(vec![Piece::bookmark(5, false)]));
    let seen = Play::new(
        [Answer::Watch(then(streaming(&[], 5), [Piece::bookmark(5, false)]))].into_iter().chain(short),
    )
    .run()
    .await;
    assert_eq!(seen.timeouts.len(), 41, "{:?}", seen.requests);
    assert!(seen.timeouts.iter().all(|seconds| (300..=600).contains(seconds)), "{:?}", seen.timeouts);
    let mut different = seen.timeouts.clone();
    different.sort_unstable();
    different.dedup();
    assert!(different.len() > 10, "{different:?}");
}
