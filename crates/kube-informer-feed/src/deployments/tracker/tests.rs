use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Name, which one of that name, version.
type Thing = (u8, u32, u32);

impl Tracked for Thing {
    fn key(&self) -> ObjectKey {
        key(self.0)
    }

    fn uid(&self) -> Uid {
        Uid::from(self.1.to_string().as_str())
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}

fn key(name: u8) -> ObjectKey {
    ObjectKey { namespace: "test".to_owned(), name: name.to_string() }
}

fn take(tracker: &mut Tracker<Thing>, name: u8) -> Vec<Step<Thing>> {
    tracker.take(&key(name)).0
}

#[test]
fn what_is_there_at_the_beginning_is_not_told() {
    let mut tracker = Tracker::default();
    tracker.begin((1, 1, 1));
    assert_eq!(take(&mut tracker, 1), []);
    tracker.is((1, 1, 2));
    assert_eq!(take(&mut tracker, 1), [Step::Update { old: (1, 1, 1), new: (1, 1, 2) }]);
}

#[test]
fn many_changes_are_one_from_the_oldest_to_the_newest() {
    let mut tracker = Tracker::default();
    tracker.is((1, 1, 1));
    assert_eq!(tracker.take(&key(1)), (vec![Step::Add { new: (1, 1, 1) }], 1));
    tracker.done(&key(1));
    (2..=9).for_each(|version| tracker.is((1, 1, version)));
    assert_eq!(tracker.pending(), 1);
    assert_eq!(tracker.take(&key(1)), (vec![Step::Update { old: (1, 1, 1), new: (1, 1, 9) }], 8));
    assert_eq!(tracker.pending(), 1, "it is in hand");
    tracker.done(&key(1));
    assert_eq!(tracker.pending(), 0);
}

#[test]
fn an_end_is_told_with_the_last_known_state() {
    let mut tracker = Tracker::default();
    tracker.begin((1, 1, 1));
    tracker.is((1, 1, 2));
    tracker.was((1, 1, 3), false);
    assert_eq!(take(&mut tracker, 1), [Step::Delete { last: (1, 1, 3), certain: false }]);
    assert!(tracker.entries.is_empty());
}

#[test]
fn one_that_was_created_again_is_an_end_and_a_beginning() {
    let mut tracker = Tracker::default();
    tracker.begin((1, 1, 1));
    tracker.was((1, 1, 2), true);
    tracker.is((1, 2, 3));
    tracker.was((1, 2, 4), true);
    tracker.is((1, 3, 5));
    let steps = take(&mut tracker, 1);
    assert_eq!(steps, [Step::Delete { last: (1, 1, 2), certain: true }, Step::Add { new: (1, 3, 5) }]);
    // Nobody said that it ended, but there is another one.
    tracker.is((1, 4, 6));
    let steps = take(&mut tracker, 1);
    assert_eq!(steps, [Step::Delete { last: (1, 3, 5), certain: false }, Step::Add { new: (1, 4, 6) }]);
}

#[test]
fn what_came_and_went_is_not_told_and_not_kept() {
    let mut tracker = Tracker::default();
    tracker.is((1, 1, 1));
    tracker.was((1, 1, 2), true);
    assert!(tracker.entries.is_empty());
    assert_eq!(take(&mut tracker, 1), []);
    tracker.was((2, 1, 2), true);
    assert!(tracker.entries.is_empty());
}

/// What happens: to which name, and what.
fn happenings() -> impl Strategy<Value = Vec<(u8, u8)>> {
    proptest::collection::vec((0..3u8, 0..4u8), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn steps_lead_to_what_is_whenever_they_are_taken(happenings in happenings()) {
        let mut tracker = Tracker::default();
        let (mut server, mut told) = (BTreeMap::<u8, Thing>::new(), BTreeMap::<u8, Thing>::new());
        let mut next = 0;
        let names: Vec<u8> = vec![0, 1, 2];
        let drain = names.iter().map(|name| (*name, 3));
        for (name, what) in happenings.into_iter().chain(drain) {
            next += 1;
            match (what, server.get(&name).copied()) {
                (0, None) => {
                    server.insert(name, (name, next, next));
                    tracker.is((name, next, next));
                }
                (0 | 1, Some((_, uid, _))) => {
                    server.insert(name, (name, uid, next));
                    tracker.is((name, uid, next));
                }
                (2, Some(last)) => {
                    server.remove(&name);
                    tracker.was(last, true);
                }
                (3, _) => {
                    for step in tracker.take(&key(name)).0 {
                        match step {
                            Step::Add { new } => prop_assert_eq!(told.insert(name, new), None),
                            Step::Update { old, new } => {
                                prop_assert!(old.1 == new.1 && old != new);
                                prop_assert_eq!(told.insert(name, new), Some(old));
                            }
                            Step::Delete { last, .. } => {
                                let known = told.remove(&name);
                                prop_assert_eq!(known.map(|known| known.1), Some(last.1));
                            }
                        }
                    }
                    tracker.done(&key(name));
                    prop_assert_eq!(told.get(&name), server.get(&name));
                }
                _ => {}
            }
            let alive: std::collections::BTreeSet<&u8> = server.keys().chain(told.keys()).collect();
            prop_assert!(tracker.entries.len() <= alive.len());
        }
        prop_assert_eq!(told, server);
        prop_assert_eq!(tracker.pending(), 0);
    }
}
