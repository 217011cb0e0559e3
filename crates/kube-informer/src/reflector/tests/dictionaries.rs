//! Objects that were made before there was a dictionary.

use super::*;

/// An object with much in it that others have, too.
fn large(name: &str, version: u64) -> String {
    let mut words = String::new();
    for word in 0..60 {
        words += &format!(r#""a-setting-with-a-long-name-{word}":"{name} {}","#, word * 7);
    }
    let metadata =
        format!(r#"{{"name":"{name}","namespace":"d","uid":"u-{name}","resourceVersion":"{version}"}}"#);
    format!(r#"{{"metadata":{metadata},"spec":{{{words}"last":"{name}"}}}}"#)
}

/// How many objects were exchanged, each time.
fn exchanges(deltas: &[String]) -> Vec<usize> {
    deltas.iter().filter_map(|delta| delta.strip_prefix("exchange ")?.parse().ok()).collect()
}

fn event(kind: &str, number: u64, version: u64) -> Piece {
    Piece::event(kind, large(&format!("p{number}"), version))
}

#[tokio::test(start_paused = true)]
async fn what_was_listed_before_there_was_a_dictionary_is_exchanged_after_it_was_told() {
    let mut events: Vec<Piece> = (0..200).map(|number| event("ADDED", number, number + 1)).collect();
    events.extend([Piece::bookmark(900, true), Piece::Hang]);
    let seen = Play::new([Answer::Watch(events)]).run_until_quiet().await;
    // The dictionary was made out of the first of them; that the others are smaller is not to be improved.
    assert!(seen.deltas[0].starts_with("replace 900:"));
    let exchanged: usize = exchanges(&seen.deltas[1..]).iter().sum();
    assert!((64..200).contains(&exchanged), "{exchanged}");
    assert_eq!(exchanges(&seen.deltas).len() + 1, seen.deltas.len(), "nothing else happens");
}

#[tokio::test(start_paused = true)]
async fn what_the_watch_has_to_say_comes_before_what_may_be_exchanged() {
    // All objects come before the list is settled, which is when their dictionary is made.
    let mut events: Vec<Piece> = (0..100).map(|number| event("ADDED", number, number + 1)).collect();
    events.push(Piece::bookmark(900, true));
    events.extend((0..10).map(|number| event("MODIFIED", number, 901 + number)));
    events.push(Piece::Hang);
    let seen = Play::new([Answer::Watch(events)]).run_until_quiet().await;
    let kinds: Vec<&str> = seen.deltas.iter().map(|delta| delta.split(' ').next().unwrap()).collect();
    assert_eq!(kinds[0], "replace");
    assert_eq!(kinds[1..11], ["put"; 10]);
    assert!(kinds.len() > 11 && kinds[11..].iter().all(|kind| *kind == "exchange"), "{kinds:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_never_pauses_does_not_keep_it_from_happening() {
    let mut events: Vec<Piece> = (0..100).map(|number| event("ADDED", number, number + 1)).collect();
    events.push(Piece::bookmark(900, true));
    events.extend((0..200).map(|number| event("MODIFIED", 100 + number, 901 + number)));
    events.push(Piece::Hang);
    let seen = Play::new([Answer::Watch(events)]).run_until_quiet().await;
    let at = seen.deltas.iter().position(|delta| delta.starts_with("exchange"));
    assert!(at.is_some_and(|at| (64..=67).contains(&at)), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dictionary_that_comes_with_the_watch_is_for_all_that_is_held() {
    // Too few for a dictionary, until there are enough.
    let mut events: Vec<Piece> = (0..10).map(|number| event("ADDED", number, number + 1)).collect();
    events.push(Piece::bookmark(900, true));
    events.extend((10..300).map(|number| event("ADDED", number, 900 + number)));
    events.push(Piece::Hang);
    let seen = Play::new([Answer::Watch(events)]).run_until_quiet().await;
    let exchanged: usize = exchanges(&seen.deltas).iter().sum();
    assert!(exchanged >= 100, "{exchanged}");
}

/// A watch of so many events about so many objects in turn, after a list of a hundred.
fn many(events: u64, objects: u64) -> Play {
    let mut pieces: Vec<Piece> = (0..100).map(|number| event("ADDED", number, number + 1)).collect();
    pieces.extend([Piece::bookmark(900, true), Piece::bookmark(901, false)]);
    pieces.extend((0..events).map(|number| event("MODIFIED", number % objects, 1_000 + number)));
    pieces.push(Piece::Hang);
    Play::new([Answer::Watch(pieces)])
}

/// How many objects were exchanged then.
async fn exchanged_after(events: u64, objects: u64) -> usize {
    exchanges(&many(events, objects).run_until_quiet().await.deltas).iter().sum()
}

#[tokio::test(start_paused = true)]
async fn what_came_with_a_watch_is_packed_when_much_of_it_has_lasted() {
    let (listed, few, many) =
        (exchanged_after(0, 1).await, exchanged_after(900, 3).await, exchanged_after(900, 900).await);
    // What was replaced before its time is not packed. (What is plain may be packed with what was listed.)
    assert!(few <= listed + 3, "{few} of {listed}");
    assert!(many > listed + 400 && many < 900 + listed, "{many} of {listed}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_has_more_to_say_waits_for_few_to_be_packed() {
    let deltas = many(3_000, 3_000).run_until_quiet().await.deltas;
    let last = deltas.iter().rposition(|delta| delta.starts_with("put")).unwrap();
    let (meanwhile, after) = deltas.split_at(last);
    let packed = exchanges(meanwhile);
    assert!(packed.len() > 10 && packed.iter().all(|packed| *packed <= 64), "{packed:?}");
    let pairs = meanwhile.windows(2);
    assert_eq!(pairs.filter(|pair| pair.iter().all(|delta| delta.starts_with("exchange"))).count(), 0);
    assert!(exchanges(after).iter().sum::<usize>() < 300, "most of it was packed meanwhile");
}

#[tokio::test(start_paused = true)]
async fn what_was_told_and_is_not_applied_yet_is_packed_as_well() {
    let packed = exchanges(&many(900, 900).lagging().run_until_quiet().await.deltas).iter().sum::<usize>();
    assert!(packed > 400, "{packed}");
}

#[tokio::test(start_paused = true)]
async fn what_came_before_the_server_went_back_is_not_packed_after_it() {
    let list = |last: u64| {
        let objects = (0..100).map(|number| event("ADDED", number, number + 1));
        objects.chain([Piece::bookmark(last, true)]).collect::<Vec<_>>()
    };
    // In some of these, some of what came is set apart and not packed yet when the watch ends.
    for events in (250..450).step_by(25) {
        let mut before = list(900);
        before.extend((0..events).map(|number| event("MODIFIED", 100 + number, 1_000 + number)));
        before.push(Piece::error(410, "Expired"));
        let mut after = list(500);
        after.push(Piece::Hang);
        let play = Play::new([Answer::Watch(before), Answer::Watch(after)]).lagging();
        let deltas = play.run_until_quiet().await.deltas;
        let back = deltas.iter().position(|delta| delta.starts_with("replace 500:")).unwrap();
        assert_eq!(exchanges(&deltas[back..]), [0; 0], "{events}: what was listed needs nothing");
    }
}
