//! Requests that the server does not take.

use super::script::{Answer, Piece, Play, list, raw_bookmark, status};
use super::{pod, streaming, then};

#[tokio::test(start_paused = true)]
async fn a_version_that_the_server_does_not_take_is_given_up() {
    let odd = pod("a", 0).replace(r#""resourceVersion":"0""#, r#""resourceVersion":"odd""#);
    for code in [400, 500] {
        let events = [Piece::event("MODIFIED", odd.clone()), Piece::error(code, "Invalid")];
        let mut answers =
            vec![Answer::Watch(then(streaming(&[("a", 1)], 5), events)), status(code, "Invalid")];
        if code == 400 {
            // It may be that streaming lists are not known.
            answers.push(status(code, "Invalid"));
        }
        let last = match code {
            400 => Answer::Body(list(&[], 9)),
            _ => Answer::Watch(vec![raw_bookmark("9", true), Piece::Hang]),
        };
        let seen = Play::new(answers.into_iter().chain([last])).run().await;
        assert_eq!(seen.deltas.last().map(String::as_str), Some("replace 9:"), "{:?}", seen.deltas);
        assert!(seen.requests[1].contains("resourceVersion=odd"), "{:?}", seen.requests);
        let newest = &seen.requests[if code == 400 { 3 } else { 2 }];
        assert!(!newest.contains("odd"), "{:?}", seen.requests);
    }
    // A version that is one of the server's is kept, whatever fails.
    let failed = Piece::error(500, "InternalError");
    let seen = Play::new([
        Answer::Watch(then(streaming(&[("a", 1)], 5), [failed])),
        status(500, "InternalError"),
        Answer::Body(list(&[], 9)),
    ])
    .run()
    .await;
    assert!(seen.requests[2].contains("resourceVersion=5"), "{:?}", seen.requests);
}
