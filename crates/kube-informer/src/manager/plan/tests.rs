use proptest::prelude::*;

use super::*;

fn name(name: &str) -> Arc<str> {
    name.into()
}

fn one(name: &str) -> FeedKey {
    FeedKey::One(name.into())
}

fn actions(open: &[FeedKey], close: &[FeedKey]) -> Actions {
    Actions { open: open.to_vec(), close: close.to_vec() }
}

/// A plan of so many objects, each seen by its name.
fn with(share_from: usize, names: &[&str]) -> Plan {
    let mut plan = Plan::new(share_from, false);
    for each in names {
        plan.join(&name(each));
        plan.ready(&name(each), &one(each));
    }
    plan
}

#[test]
fn few_objects_are_watched_by_their_names() {
    let mut plan = Plan::new(3, false);
    assert_eq!(plan.join(&name("a")), actions(&[one("a")], &[]));
    assert_eq!(plan.join(&name("a")), actions(&[], &[]), "once, however many watch it");
    assert_eq!(plan.join(&name("b")), actions(&[one("b")], &[]));
    plan.ready(&name("a"), &one("a"));
    assert_eq!(plan.leave(&name("a")), actions(&[], &[one("a")]));
    assert_eq!(plan.leave(&name("b")), actions(&[], &[one("b")]), "also one that is not there yet");
}

#[test]
fn from_so_many_on_one_informer_takes_their_place_and_each_moves_when_it_can() {
    let mut plan = with(3, &["a", "b"]);
    assert_eq!(plan.join(&name("c")), actions(&[FeedKey::Whole], &[]));
    assert_eq!(plan.join(&name("d")), actions(&[], &[]));
    assert_eq!(plan.place("a").unwrap().from, Some(one("a")), "it is seen through the old one until then");
    assert_eq!(plan.ready(&name("c"), &FeedKey::Whole), actions(&[], &[]));
    assert_eq!(plan.ready(&name("a"), &FeedKey::Whole), actions(&[], &[one("a")]));
    assert_eq!(plan.ready(&name("b"), &FeedKey::Whole), actions(&[], &[one("b")]));
    assert_eq!(plan.moving().len(), 1);
    plan.ready(&name("d"), &FeedKey::Whole);
    assert_eq!(plan.seen_through(&FeedKey::Whole).len(), 4);
}

#[test]
fn a_number_that_goes_up_and_down_moves_nothing() {
    let mut plan = with(4, &["a", "b", "c"]);
    plan.join(&name("d"));
    for each in ["a", "b", "c", "d"] {
        plan.ready(&name(each), &FeedKey::Whole);
    }
    for _ in 0..3 {
        assert_eq!(plan.leave(&name("d")), actions(&[], &[]));
        assert_eq!(plan.join(&name("d")), actions(&[], &[]));
        plan.ready(&name("d"), &FeedKey::Whole);
    }
    assert_eq!(plan.leave(&name("d")), actions(&[], &[]));
    assert_eq!(plan.leave(&name("c")), actions(&[], &[]));
    assert_eq!(plan.leave(&name("b")), actions(&[one("a")], &[]), "the last is seen by its name again");
    assert_eq!(plan.ready(&name("a"), &one("a")), actions(&[], &[FeedKey::Whole]));
}

#[test]
fn where_the_whole_is_refused_each_is_watched_by_its_name() {
    let mut plan = with(3, &["a", "b"]);
    plan.join(&name("c"));
    assert_eq!(plan.refused(), actions(&[one("c")], &[FeedKey::Whole]));
    assert_eq!(plan.join(&name("d")), actions(&[one("d")], &[]));
    for each in ["c", "d"] {
        plan.ready(&name(each), &one(each));
    }
    assert_eq!(plan.probe(), actions(&[FeedKey::Whole], &[]), "nothing is given up for a try");
    assert_eq!(plan.refused(), actions(&[], &[FeedKey::Whole]));
    assert!(Plan::new(1, true).join(&name("a")).open == [one("a")], "what was known before counts");
}

#[test]
fn what_is_refused_later_is_left_only_when_there_is_something_better() {
    let mut plan = Plan::new(1, false);
    plan.join(&name("a"));
    plan.ready(&name("a"), &FeedKey::Whole);
    assert_eq!(plan.refused(), actions(&[one("a")], &[]));
    assert_eq!(plan.ready(&name("a"), &one("a")), actions(&[], &[FeedKey::Whole]));
}

#[derive(Debug, Clone)]
enum Step {
    Join(u8),
    Leave(u8),
    /// The informer that one of the moving ones is to be seen through is ready.
    Ready(usize),
    Refused,
    Probe,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..12_u8).prop_map(Step::Join),
        3 => (0..12_u8).prop_map(Step::Leave),
        6 => (0..12_usize).prop_map(Step::Ready),
        1 => Just(Step::Refused),
        1 => Just(Step::Probe),
    ]
}

proptest! {
    #[test]
    fn what_is_open_is_what_is_used_and_everything_comes_to_rest(
        share_from in 1..8_usize,
        steps in proptest::collection::vec(step(), 0..80),
    ) {
        let mut plan = Plan::new(share_from, false);
        let mut open = BTreeSet::new();
        let mut check = |plan: &Plan, actions: Actions| -> Result<(), TestCaseError> {
            for feed in actions.open {
                prop_assert!(open.insert(feed.clone()), "{:?} is open already", feed);
            }
            for feed in actions.close {
                prop_assert!(open.remove(&feed), "{:?} is not open", feed);
            }
            let used: BTreeSet<FeedKey> =
                plan.places.values().flat_map(|place| [&place.from, &place.to]).flatten().cloned().collect();
            prop_assert_eq!(&open, &used);
            // Everybody is seen, or is on the way to be.
            prop_assert!(plan.places.values().all(|place| place.from.is_some() || place.to.is_some()));
            Ok(())
        };
        let at_rest = |plan: &mut Plan| {
            let next = plan.moving().first().cloned()?;
            let to = plan.place(&next)?.to.clone()?;
            Some(plan.ready(&next, &to))
        };
        for step in steps {
            let key = |number: u8| name(&number.to_string());
            let actions = match step {
                Step::Join(number) => plan.join(&key(number)),
                Step::Leave(number) => plan.leave(&key(number)),
                Step::Ready(at) => {
                    let Some(next) = plan.moving().iter().nth(at).cloned() else { continue };
                    let to = plan.place(&next).unwrap().to.clone().unwrap();
                    plan.ready(&next, &to)
                }
                Step::Refused => plan.refused(),
                Step::Probe => plan.probe(),
            };
            check(&plan, actions)?;
        }
        while let Some(actions) = at_rest(&mut plan) {
            check(&plan, actions)?;
        }
        let count = plan.places.len();
        let feeds = open_of(&plan);
        if !plan.is_refused() && count >= share_from {
            prop_assert_eq!(feeds, 1.min(count), "one for all");
        }
        prop_assert!(feeds <= count);
    }
}

fn open_of(plan: &Plan) -> usize {
    plan.uses.len()
}
