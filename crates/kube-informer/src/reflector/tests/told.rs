//! What the sink hears besides changes.

use super::*;

#[tokio::test(start_paused = true)]
async fn bytes_objects_and_bookmarks_are_counted_each_once() {
    let events = then(
        streaming(&[("a", 1), ("b", 2)], 5),
        [
            Piece::bookmark(6, false),
            Piece::event("MODIFIED", pod("a", 7)),
            Piece::raw(r#"{"type":"MOVED","object":{}}"#),
            Piece::Hang,
        ],
    );
    let bytes = |pieces: &[Piece]| -> usize {
        let size = |piece: &Piece| if let Piece::Text(text) = piece { text.len() } else { 0 };
        pieces.iter().map(size).sum()
    };
    let again = then(streaming(&[("a", 7)], 8), [Piece::Hang]);
    let sent = bytes(&events) + bytes(&again);
    let seen = Play::new([Answer::Watch(events), Answer::Watch(again)]).run().await;
    let traffic = seen.traffic();
    assert_eq!(traffic.bytes, sent as u64);
    // Four objects, and what was none.
    assert_eq!((traffic.objects, traffic.bookmarks), (5, 3));
}

#[tokio::test(start_paused = true)]
async fn what_came_is_told_when_nothing_more_is_there_not_at_the_end() {
    let events = then(streaming(&[("a", 1)], 5), [Piece::event("MODIFIED", pod("a", 6)), Piece::Hang]);
    let seen = Play::new([Answer::Watch(events)]).run().await;
    assert_eq!(seen.traffic().objects, 2, "{:?}", seen.reports);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_begun_anew_is_told_where_something_of_it_had_come() {
    let some = || Piece::event("ADDED", pod("a", 1));
    let no_streams = || status(UNSUPPORTED, "Invalid");
    let page = Answer::Body(script::page(&[("a", 1)], 5, "next"));
    for (begin, begun_anew) in [
        (vec![no_streams()], 0),
        (vec![Answer::Watch(vec![])], 0),
        (vec![Answer::Watch(vec![some()])], 1),
        (vec![Answer::Watch(vec![some(), Piece::Hang])], 1),
        (vec![Answer::Watch(vec![some(), Piece::Broken])], 1),
        (vec![no_streams(), page, status(410, "Expired")], 1),
        // It was complete, and there is another one.
        (
            vec![
                no_streams(),
                Answer::Body(list(&[("a", 1)], 4)),
                Answer::Watch(vec![Piece::error(410, "Expired")]),
            ],
            0,
        ),
    ] {
        let end = [Answer::Body(list(&[("a", 1)], 5)), Answer::Watch(vec![Piece::Hang])];
        let seen = Play::new(begin.into_iter().chain(end)).run().await;
        assert_eq!(seen.traffic().begun_anew, begun_anew);
    }
}

#[tokio::test(start_paused = true)]
async fn lists_and_watches_are_told_with_their_encoding_and_their_reason() {
    let seen = Play::new([
        status(UNSUPPORTED, "Invalid"),
        Answer::Body(list(&[("a", 1), ("b", 2)], 5)),
        Answer::Watch(vec![Piece::bookmark(6, false)]),
        status(410, "Expired"),
        Answer::Body(list(&[("a", 1)], 9)),
        Answer::Watch(vec![Piece::Hang]),
    ])
    .run()
    .await;
    let told: Vec<Report> = seen
        .reports
        .into_iter()
        .filter(|report| !matches!(report, Report::Received(_) | Report::Failing { .. }))
        .collect();
    let encoding = Encoding::Json;
    let listed = |objects, version: &str| Report::Listed {
        objects,
        encoding,
        streaming: false,
        version: version.into(),
    };
    assert_eq!(
        told,
        [
            Report::Listing(Why::First),
            listed(2, "5"),
            Report::Watching { encoding },
            Report::Listing(Why::Expired),
            listed(1, "9"),
            Report::Watching { encoding },
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn what_went_wrong_is_told_with_what_was_asked() {
    let seen = Play::new([
        status(UNSUPPORTED, "Invalid"),
        status(500, "InternalError"),
        Answer::Body(list(&[], 5)),
        status(429, "TooManyRequests"),
        Answer::Watch(vec![Piece::Hang]),
    ])
    .run()
    .await;
    let asked: Vec<&str> = seen
        .reports
        .iter()
        .filter_map(|report| match report {
            Report::Failing { request, .. } => Some(request.as_str()),
            _ => None,
        })
        .collect();
    let [streaming, list, watch] = asked[..] else { panic!("{asked:?}") };
    assert!(
        streaming.starts_with("WATCH /api/v1/pods?watch=1&") && streaming.contains("&sendInitialEvents=true")
    );
    assert_eq!(list, "LIST /api/v1/pods?limit=500&resourceVersion=0");
    assert!(
        watch.starts_with("WATCH /api/v1/pods?watch=1&") && watch.ends_with("&resourceVersion=5"),
        "{watch}"
    );
}
