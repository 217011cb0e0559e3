//! A resource that is not served.

use super::*;
use crate::reflector::transport::Absence;

fn not_proven() -> Absence {
    Absence::NotProven("a proxy answers".to_owned())
}

fn not_served() -> Answer {
    status(404, "NotFound")
}

/// Objects, then nothing is served any more.
fn listed_then(more: impl IntoIterator<Item = Answer>) -> Play {
    let first = then(streaming(&[("a", 1)], 5), [Piece::bookmark(6, false)]);
    Play::new([Answer::Watch(first)].into_iter().chain(more))
}

#[tokio::test(start_paused = true)]
async fn promise_04_only_a_proof_deletes_and_it_does_so_once() {
    let play = listed_then([not_served(), not_served(), not_served(), not_served()]);
    let seen = play.absence([not_proven(), not_proven(), Absence::Proven]).run().await;
    // The watch was of version 6: what may come back is not older.
    assert_eq!(seen.deltas, ["replace 5: a@1", "progress 6", "replace 6:"]);
    assert_eq!(seen.proofs, 3);
    let absent = seen.reports.iter().filter(|report| **report == Report::Absent).count();
    let why = Report::NotProvenAbsent { why: "a proxy answers".to_owned() };
    assert_eq!((absent, seen.reports.iter().filter(|report| **report == why).count()), (1, 2));
    assert!(seen.pauses[2..].iter().all(|pause| *pause >= Duration::from_secs(30)), "{:?}", seen.pauses);
}

#[tokio::test(start_paused = true)]
async fn promise_04_a_resource_that_appears_later_is_picked_up_and_may_go_again() {
    let again = then(streaming(&[("b", 8)], 9), [Piece::bookmark(9, false)]);
    let play = listed_then([not_served(), Answer::Watch(again), not_served(), not_served()]);
    let seen = play.absence([Absence::Proven, Absence::Proven]).run().await;
    assert_eq!(
        seen.deltas,
        ["replace 5: a@1", "progress 6", "replace 6:", "replace 9: b@8", "progress 9", "replace 9:"]
    );
    // Not older than what was seen of it.
    assert!(seen.requests[2].ends_with("resourceVersion=6"), "{:?}", seen.requests);
}

#[tokio::test(start_paused = true)]
async fn promise_04_of_what_was_never_seen_nothing_is_told_and_nothing_proven() {
    let seen = Play::new([not_served(), not_served()]).absence([Absence::Proven]).run().await;
    assert!(seen.deltas.is_empty());
    assert_eq!(seen.proofs, 0);
}
