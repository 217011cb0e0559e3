use std::cell::Cell;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use super::{Held, Slot, ViewBudget, ViewStats, Views};

const WEIGHT: usize = 1000;

/// The view of a slot; its weight is [`WEIGHT`] and a little more.
fn view(views: &Views, slot: &Slot, value: u64) -> Arc<u64> {
    views.get_or_decode(slot, |_| WEIGHT, || Ok::<_, Infallible>(value)).unwrap()
}

fn slots(count: usize) -> Vec<Slot> {
    (0..count).map(|_| Slot::default()).collect()
}

/// Whether the view is there without decoding.
fn is_there(views: &Views, slot: &Slot) -> bool {
    views.get_or_decode(slot, |_: &u64| 0, || Err(())).is_ok()
}

/// A budget for so many views.
fn recent(views: usize) -> Views {
    Views::new(ViewBudget::Recent(views * super::cell::whole_weight(WEIGHT)))
}

#[test]
fn a_view_that_someone_holds_is_handed_out_again_whatever_the_budget() {
    for budget in [ViewBudget::None, ViewBudget::Recent(0), ViewBudget::default(), ViewBudget::All] {
        let (views, slot) = (Views::new(budget), Slot::default());
        let first = view(&views, &slot, 1);
        assert!(Arc::ptr_eq(&first, &view(&views, &slot, 2)), "{budget:?}");
        let ViewStats { hits, decodes, .. } = views.stats();
        assert_eq!((hits, decodes), (1, 1));
    }
}

#[test]
fn with_no_budget_a_view_lives_as_long_as_its_holders() {
    let (views, slot) = (Views::new(ViewBudget::None), Slot::default());
    let held = Arc::downgrade(&view(&views, &slot, 1));
    assert!(held.upgrade().is_none());
    assert_eq!(*view(&views, &slot, 2), 2);
    assert_eq!(views.stats(), ViewStats { decodes: 2, ..ViewStats::default() });
}

#[test]
fn within_the_budget_views_are_kept() {
    let (views, slots) = (recent(3), slots(3));
    for (value, slot) in (0..).zip(&slots) {
        view(&views, slot, value);
    }
    assert!(slots.iter().all(|slot| is_there(&views, slot)));
    assert_eq!(views.stats().kept_views, 3);
    assert_eq!(views.stats().kept_bytes, 3 * super::cell::whole_weight(WEIGHT));
}

#[test]
fn beyond_the_budget_the_oldest_that_was_not_read_goes() {
    let (views, slots) = (recent(3), slots(4));
    for slot in &slots[..3] {
        view(&views, slot, 0);
    }
    view(&views, &slots[0], 0);
    view(&views, &slots[3], 0);
    let there: Vec<_> = slots.iter().map(|slot| is_there(&views, slot)).collect();
    assert_eq!(there, [true, false, true, true]);
    assert_eq!(views.stats().kept_views, 3);
}

#[test]
fn where_all_were_read_the_oldest_goes() {
    let (views, slots) = (recent(3), slots(4));
    for slot in slots[..3].iter().chain(&slots[..3]) {
        view(&views, slot, 0);
    }
    view(&views, &slots[3], 0);
    let there: Vec<_> = slots.iter().map(|slot| is_there(&views, slot)).collect();
    assert_eq!(there, [false, true, true, true]);
}

#[test]
fn what_is_decoded_once_drives_out_only_a_few() {
    let (views, slots) = (recent(100), slots(1000));
    for slot in &slots {
        view(&views, slot, 0);
    }
    assert_eq!(views.stats().kept_views, 100);
    let there: Vec<_> = (0..1000).filter(|at| is_there(&views, &slots[*at])).collect();
    // The first had to make room for the few; of all others, only the last are there.
    assert_eq!(there, (16..100).chain(984..1000).collect::<Vec<_>>());
    // What is decoded again stays.
    view(&views, &slots[500], 0);
    let others = self::slots(100);
    for slot in &others {
        view(&views, slot, 0);
        assert!(is_there(&views, slot), "for a moment");
    }
    assert!(is_there(&views, &slots[500]));
    assert!(!is_there(&views, &others[0]));
    // Places of those that are gone are used again.
    drop((slots, others));
    assert!(views.ring.lock().unwrap().places() <= 256);
    let more = self::slots(100);
    more.iter().for_each(|slot| drop(view(&views, slot, 0)));
    assert!(more.iter().all(|slot| is_there(&views, slot)));
}

#[test]
fn what_is_decoded_once_does_not_drive_out_what_is_read_where_few_fit() {
    let (views, hot, cold) = (recent(10), slots(5), slots(200));
    hot.iter().for_each(|slot| drop(view(&views, slot, 0)));
    for slot in &cold {
        assert!(hot.iter().all(|slot| is_there(&views, slot)));
        view(&views, slot, 0);
    }
    assert_eq!(views.stats().kept_views, 10);
}

#[test]
fn a_view_heavier_than_the_whole_budget_is_handed_out_and_not_kept() {
    let (views, slots) = (recent(2), slots(3));
    view(&views, &slots[0], 0);
    let heavy = |_: &u64| usize::MAX;
    let held = views.get_or_decode(&slots[1], heavy, || Ok::<_, Infallible>(7)).unwrap();
    assert!(Arc::ptr_eq(&held, &view(&views, &slots[1], 8)));
    assert!(is_there(&views, &slots[0]), "nothing had to go for it");
    assert_eq!(views.stats().kept_views, 1);
    drop(held);
    assert!(!is_there(&views, &slots[1]));
}

#[test]
fn a_view_that_had_to_go_is_shared_as_long_as_it_is_held() {
    let (views, slots) = (recent(1), slots(2));
    let held = view(&views, &slots[0], 1);
    view(&views, &slots[1], 2);
    assert_eq!(views.stats().kept_views, 1);
    assert!(Arc::ptr_eq(&held, &view(&views, &slots[0], 3)));
    drop(held);
    assert!(!is_there(&views, &slots[0]));
    assert_eq!(*view(&views, &slots[0], 4), 4);
}

#[test]
fn with_all_every_view_is_kept_as_long_as_its_slot() {
    let (views, mut slots) = (Views::new(ViewBudget::All), slots(1000));
    for slot in &slots {
        view(&views, slot, 0);
    }
    assert!(slots.iter().all(|slot| is_there(&views, slot)));
    assert_eq!(views.stats().kept_views, 1000);
    slots.truncate(10);
    assert_eq!(views.stats().kept_views, 10);
}

#[test]
fn what_is_kept_is_lent() {
    for budget in [ViewBudget::None, ViewBudget::default(), ViewBudget::All] {
        let (views, slot) = (Views::new(budget), Slot::default());
        assert!(views.lend::<u64>(&slot).is_none() && slot.pinned::<u64>().is_none());
        let shared = view(&views, &slot, 7);
        let for_a_while = views.lend::<u64>(&slot).map(|lent| std::ptr::from_ref(&*lent));
        let for_good = slot.pinned::<u64>().map(std::ptr::from_ref);
        let there = std::ptr::from_ref(&*shared);
        assert_eq!(for_a_while, (budget == ViewBudget::default()).then_some(there));
        assert_eq!(for_good, (budget == ViewBudget::All).then_some(there));
        let other = views.lend::<String>(&slot).is_some() || slot.pinned::<String>().is_some();
        assert!(!other, "of another type there is none");
    }
}

#[test]
fn what_is_looked_at_is_not_dropped_and_is_the_view_of_all() {
    let (views, slots) = (recent(1), slots(2));
    view(&views, &slots[0], 1);
    let held: Held<u64> = views.lend(&slots[0]).unwrap();
    // It has to go.
    view(&views, &slots[1], 2);
    assert_eq!(views.stats().kept_views, 1);
    let again = view(&views, &slots[0], 3);
    assert!(std::ptr::eq(&*again, &*held), "as long as somebody looks at it, it is there");
    let copy = held.clone();
    drop((again, held));
    assert_eq!(*copy, 1);
    drop(copy);
    assert!(!is_there(&views, &slots[0]));
}

#[test]
fn a_dropped_slot_lets_go_of_its_views_at_once() {
    for budget in [ViewBudget::default(), ViewBudget::All] {
        let (views, slot) = (Views::new(budget), Slot::default());
        let number = Arc::downgrade(&view(&views, &slot, 1));
        let text = views.get_or_decode(&slot, |_| 10, || Ok::<_, Infallible>(String::from("a"))).unwrap();
        drop(slot);
        assert!(number.upgrade().is_none());
        assert_eq!(*text, "a", "what someone holds stays");
        assert_eq!((views.stats().kept_views, views.stats().kept_bytes), (0, 0));
    }
}

#[test]
fn places_of_dropped_slots_are_given_back() {
    let views = recent(10_000);
    let _held = slots(100).into_iter().inspect(|slot| drop(view(&views, slot, 0))).collect::<Vec<_>>();
    for value in 0..10_000 {
        view(&views, &Slot::default(), value);
    }
    let places = views.ring.lock().unwrap().places();
    assert!(places <= 512, "{places}");
}

#[test]
fn allocations_of_views_that_nobody_has_any_more_are_given_back() {
    struct Large(#[expect(dead_code, reason = "only its size matters")] [u8; 4096]);
    for budget in [ViewBudget::None, recent(1).budget] {
        let (views, slots) = (Views::new(budget), slots(5000));
        for slot in &slots {
            views.get_or_decode(slot, |_| WEIGHT, || Ok::<_, Infallible>(Large([0; 4096]))).unwrap();
        }
        let pinned = slots.iter().filter(|slot| slot.pins_memory()).count();
        assert!(pinned <= 130, "{pinned}");
        let places = views.ring.lock().unwrap().places();
        assert!(places <= 130, "{places}");
    }
}

#[test]
fn one_object_has_views_of_several_types() {
    let (views, slot) = (Views::new(ViewBudget::default()), Slot::default());
    let number = view(&views, &slot, 1);
    let text = || views.get_or_decode(&slot, |_| 10, || Ok::<_, Infallible>(String::from("a"))).unwrap();
    let flag = || views.get_or_decode(&slot, |_| 10, || Ok::<_, Infallible>(true)).unwrap();
    let (first_text, first_flag) = (text(), flag());
    assert!(Arc::ptr_eq(&first_text, &text()) && Arc::ptr_eq(&first_flag, &flag()));
    assert!(Arc::ptr_eq(&number, &view(&views, &slot, 2)));
    assert_eq!(views.stats().kept_views, 3);
}

#[test]
fn an_error_is_given_back_and_not_remembered() {
    let (views, slot) = (Views::new(ViewBudget::All), Slot::default());
    let failed = views.get_or_decode(&slot, |_: &u64| WEIGHT, || Err("does not fit"));
    assert_eq!(failed, Err("does not fit"));
    assert_eq!(views.stats(), ViewStats::default());
    assert_eq!(*view(&views, &slot, 1), 1);
}

#[test]
fn a_panic_while_decoding_or_weighing_leaves_everything_as_it_was() {
    let (views, slot) = (recent(2), Slot::default());
    let decoding = || views.get_or_decode::<u64, ()>(&slot, |_| WEIGHT, || panic!("decoding"));
    assert!(catch_unwind(AssertUnwindSafe(decoding)).is_err());
    let weighing = || views.get_or_decode::<u64, ()>(&slot, |_| panic!("weighing"), || Ok(1));
    assert!(catch_unwind(AssertUnwindSafe(weighing)).is_err());
    assert_eq!(views.stats().kept_views, 0);
    assert_eq!(*view(&views, &slot, 2), 2);
    assert!(is_there(&views, &slot));
}

#[test]
fn decoding_may_read_other_views_and_even_the_same_one() {
    let (views, slots) = (recent(2), slots(2));
    let outer = views
        .get_or_decode(
            &slots[0],
            |_| WEIGHT,
            || {
                let other = view(&views, &slots[1], 20);
                let same = view(&views, &slots[0], 1);
                Ok::<_, Infallible>(*other + *same)
            },
        )
        .unwrap();
    assert_eq!(*outer, 1, "the one that was finished first");
    assert!(Arc::ptr_eq(&outer, &view(&views, &slots[0], 3)));
}

#[test]
fn dropping_a_view_that_had_to_go_may_read_views() {
    struct Reads(Arc<Views>, Slot, Arc<AtomicUsize>);
    impl Drop for Reads {
        fn drop(&mut self) {
            view(&self.0, &self.1, 0);
            self.2.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (views, slots, dropped) = (Arc::new(recent(1)), slots(2), Arc::default());
    let reads = || Reads(Arc::clone(&views), Slot::default(), Arc::clone(&dropped));
    for slot in &slots {
        views.get_or_decode(slot, |_| WEIGHT, || Ok::<_, Infallible>(reads())).unwrap();
    }
    assert!(dropped.load(Ordering::Relaxed) >= 1);
}

#[test]
fn two_threads_that_decode_at_once_get_one_view() {
    for budget in [ViewBudget::None, ViewBudget::default(), ViewBudget::All] {
        let (views, slot, both) = (Views::new(budget), Slot::default(), Barrier::new(2));
        let decode = |value| {
            let decode = || {
                both.wait();
                Ok::<u64, Infallible>(value)
            };
            let view = views.get_or_decode(&slot, |_| WEIGHT, decode).unwrap();
            both.wait();
            view
        };
        let (a, b) = thread::scope(|scope| {
            let other = scope.spawn(|| decode(1));
            (decode(2), other.join().unwrap())
        });
        assert!(Arc::ptr_eq(&a, &b), "{budget:?}");
        assert_eq!(views.stats().decodes, 2);
        assert!(views.stats().kept_views <= 1);
    }
}

#[test]
fn under_stress_the_budget_holds_and_every_view_is_the_right_one() {
    const SLOTS: u64 = 200;
    for seed in 0..4_u64 {
        let (views, slots) = (recent(20), slots(SLOTS as usize));
        let limit = 20 * super::cell::whole_weight(WEIGHT);
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (views, slots) = (&views, &slots);
                scope.spawn(move || {
                    let state = Cell::new(seed * 4 + thread + 1);
                    let next = |below: u64| {
                        let mixed = state.get().wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                        state.set(mixed);
                        (mixed >> 33) % below
                    };
                    let mut held = Vec::new();
                    for _ in 0..5000 {
                        // Some objects are read far more often than others.
                        let at = next(SLOTS).min(next(SLOTS));
                        let found = view(views, &slots[at as usize], at);
                        assert_eq!(*found, at);
                        match next(8) {
                            0 => held.push((at, found)),
                            1 => drop(held.pop()),
                            2 => {
                                let short = Slot::default();
                                assert_eq!(*view(views, &short, 1_000 + at), 1_000 + at);
                            }
                            _ => {}
                        }
                        assert!(views.stats().kept_bytes <= limit);
                        if let Some((at, view)) = held.last() {
                            assert!(Arc::ptr_eq(view, &self::view(views, &slots[*at as usize], *at)));
                        }
                    }
                });
            }
        });
        let stats = views.stats();
        assert_eq!(stats.kept_bytes, stats.kept_views * super::cell::whole_weight(WEIGHT));
        assert!(stats.kept_views <= 20);
        drop(slots);
        assert_eq!((views.stats().kept_views, views.stats().kept_bytes), (0, 0));
    }
}

#[test]
fn slots_and_views_can_be_printed() {
    assert!(format!("{:?} {:?}", Slot::default(), Views::new(ViewBudget::None)).contains("Slot"));
}

mod pinned;
mod schedules;
