//! What there is, told while it changes, to those who read slowly or not at all.

use super::*;

#[test]
fn who_is_closed_before_a_snapshot_is_complete_has_to_begin_anew() {
    let mut teller = Teller::new();
    (0..10).for_each(|at| _ = teller.put(at, "web", "0"));
    let mut session = teller.session(8_000, teller.snapshot(), "", Slow::Close);
    let mut replay = Replay::default();
    replay.read(&mut session, 4);
    for value in 0..100 {
        let news = teller.put(0, "web", &value.to_string());
        session.news(&news);
    }
    replay.read(&mut session, 100);
    assert_eq!(replay.bye.unwrap().resume, None);
}

#[test]
fn who_is_closed_while_another_snapshot_is_not_complete_has_to_begin_anew() {
    let mut teller = Teller::new();
    (0..10).for_each(|at| _ = teller.put(at, "web", "0"));
    let mut session = teller.session(8_000, teller.snapshot(), "", Slow::Close);
    Replay::default().read(&mut session, 100);
    session.subscribe(Subscription::new(
        "t".to_owned(),
        TOPIC,
        Filter::default(),
        Mode::Full,
        Slow::Close,
        true,
    ));
    session.begin("t", GVR, teller.snapshot(), teller.journal.last());
    let mut replay = Replay::default();
    replay.read(&mut session, 4);
    session.outbox.close(close::GOING_AWAY, "the server ends", None);
    replay.read(&mut session, 100);
    assert_eq!(replay.bye.unwrap().resume, None);
}

#[test]
fn a_snapshot_does_not_count_however_large() {
    let mut teller = Teller::new();
    (0..1_000).for_each(|at| _ = teller.put(at, "web", "0"));
    let mut session = teller.session(8_000, teller.snapshot(), "", Slow::Close);
    let mut replay = Replay::default();
    replay.read(&mut session, 10_000);
    assert_eq!(replay.values, teller.values(""));
}

#[test]
fn what_happens_before_its_turn_in_a_snapshot_is_part_of_it() {
    let mut teller = Teller::new();
    (0..6).for_each(|at| _ = teller.put(at, "web", "0"));
    let mut session = teller.session(1 << 20, teller.snapshot(), "app=web", Slow::Close);
    let mut replay = Replay::default();
    // The beginning, m0 and m1.
    replay.read(&mut session, 3);
    let acts: [(usize, &str, bool); 9] = [
        (2, "web", true),
        (3, "web", false),
        // It leaves what is selected, another one comes into it, one comes and goes, one is made again.
        (4, "api", true),
        (7, "api", true),
        (7, "web", true),
        (8, "web", true),
        (8, "web", false),
        (5, "web", false),
        (5, "web", true),
    ];
    for (at, app, stays) in acts {
        let news = if stays { Some(teller.put(at, app, "1")) } else { teller.remove(at) };
        session.news(&news.unwrap());
    }
    assert_eq!(session.outbox.waiting_changes(), 0, "nothing of it has to be told");
    replay.read(&mut session, 4);
    assert_eq!((&replay.values, replay.cursor), (&teller.values("app=web"), Some(teller.journal.last())));

    // Those whose turn has come are told as changes.
    let news = teller.put(0, "web", "2");
    session.news(&news);
    replay.read(&mut session, 1);
    assert_eq!(replay.values, teller.values("app=web"));
}

#[test]
fn what_happened_to_those_that_were_sent_follows_the_snapshot() {
    let mut teller = Teller::new();
    (0..4).for_each(|at| _ = teller.put(at, "web", "0"));
    let begun = teller.journal.last();
    let mut session = teller.session(1 << 20, teller.snapshot(), "", Slow::Close);
    let mut replay = Replay::default();
    replay.read(&mut session, 3);
    for at in [3, 0, 2, 1] {
        let news = teller.put(at, "web", "1");
        session.news(&news);
    }
    // It stands before the first that is still to be told, and not before what is in it.
    replay.read(&mut session, 3);
    assert_eq!(replay.cursor.map(|cursor| cursor.seq), Some(begun.seq + 1));
    replay.read(&mut session, usize::MAX);
    assert_eq!((&replay.values, replay.cursor), (&teller.values(""), Some(teller.journal.last())));
}

/// Of very much that changes faster than somebody reads.
#[test]
fn who_reads_a_snapshot_slowly_has_it_in_the_end() {
    const OBJECTS: usize = 400;
    const BUDGET: usize = 60_000;
    let mut teller = Teller::new();
    (0..OBJECTS).for_each(|at| _ = teller.put(at, "web", "0"));
    let mut session = teller.session(BUDGET, teller.snapshot(), "", Slow::Coalesce);
    let (mut replay, mut most) = (Replay::default(), 0);
    let mut turn = 0;
    while replay.cursor.is_none() {
        replay.read(&mut session, 1);
        for _ in 0..2 {
            turn += 1;
            let news = teller.put(turn * 37 % OBJECTS, "web", &turn.to_string());
            session.news(&news);
            fold(&mut session);
            assert_eq!(session.outbox.closing(), None, "{turn}");
        }
        most = most.max(session.outbox.bytes());
    }
    assert!(most > BUDGET && most <= 4 * BUDGET, "{most}");
    replay.read(&mut session, usize::MAX);
    assert_eq!((&replay.values, replay.gaps), (&teller.values(""), 0));
    // After that, it is as with everyone.
    for value in 0.. {
        let news = teller.put(value % OBJECTS, "web", "again");
        session.news(&news);
        assert!(session.outbox.bytes() <= BUDGET);
        if session.outbox.closing().is_some() {
            break;
        }
    }
}

#[test]
fn who_does_not_read_a_snapshot_is_closed_as_ever() {
    const BUDGET: usize = 20_000;
    let mut teller = Teller::new();
    (0..100).for_each(|at| _ = teller.put(at, "web", "0"));
    let mut session = teller.session(BUDGET, teller.snapshot(), "", Slow::Close);
    Replay::default().read(&mut session, 50);
    for value in 0..1_000 {
        let news = teller.put(0, "web", &value.to_string());
        session.news(&news);
        if session.outbox.closing().is_some() {
            return;
        }
        assert!(session.outbox.bytes() <= 2 * BUDGET);
    }
    panic!("it is not closed");
}

#[test]
fn what_is_not_selected_is_passed_over_a_little_at_a_time() {
    let mut teller = Teller::new();
    // The last of all, by its key, is the only one.
    (0..999).for_each(|at| _ = teller.put(at, "api", "0"));
    teller.put(999, "web", "1");
    let all = teller.journal.since(teller.journal.oldest()).unwrap().cloned().collect();
    for beginning in [teller.snapshot(), Beginning::Replay(all)] {
        let is_snapshot = matches!(beginning, Beginning::Snapshot(_));
        let mut session = teller.session(1 << 20, beginning, "app=web", Slow::Close);
        let mut replay = Replay { again: true, ..Replay::default() };
        replay.read(&mut session, usize::from(is_snapshot));
        let turns = std::iter::from_fn(|| (!session.advance()).then_some(())).count();
        assert_eq!(turns, 3);
        // Nothing was passed over that is selected.
        replay.read(&mut session, 1);
        assert_eq!(replay.values, teller.values("app=web"));
        assert!(session.advance());
        replay.read(&mut session, 10);
        assert_eq!(replay.cursor, Some(teller.journal.last()));
    }
}
