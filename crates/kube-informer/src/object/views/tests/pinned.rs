//! Views that are looked at again and again: they stay, and do not take all of the budget.

use super::super::cell::{OFTEN, whole_weight};
use super::*;

/// Looks at what is kept, as often as it takes to be pinned.
fn look_often(views: &Views, slot: &Slot) {
    for _ in 0..OFTEN {
        look(views, slot);
    }
}

/// Looks once; where the view is.
fn look(views: &Views, slot: &Slot) -> Option<*const u64> {
    pinned(slot).or_else(|| views.lend::<u64>(slot).map(|held| std::ptr::from_ref(&*held)))
}

fn pinned(slot: &Slot) -> Option<*const u64> {
    slot.pinned::<u64>().map(std::ptr::from_ref)
}

fn is_pinned(slot: &Slot) -> bool {
    pinned(slot).is_some()
}

/// Drives out what can be driven out.
fn decode_many(views: &Views) {
    let others = slots(200);
    for _ in 0..2 {
        others.iter().for_each(|slot| drop(view(views, slot, 0)));
    }
}

#[test]
fn what_is_looked_at_often_stays_and_is_lent_without_a_trace() {
    let (views, slots) = (recent(10), slots(2));
    let there = slots.iter().map(|slot| std::ptr::from_ref(&*view(&views, slot, 7))).collect::<Vec<_>>();
    for _ in 1..OFTEN {
        look(&views, &slots[0]);
    }
    assert!(!is_pinned(&slots[0]), "not often enough");
    let before = views.stats();
    assert_eq!(look(&views, &slots[0]), Some(there[0]), "who looks when it is pinned sees it");
    assert_eq!(pinned(&slots[0]), Some(there[0]));
    assert_eq!(views.stats(), before, "it was kept, and still is");
    decode_many(&views);
    assert!(is_pinned(&slots[0]) && !is_there(&views, &slots[1]));
    assert_eq!(std::ptr::from_ref(&*view(&views, &slots[0], 8)), there[0]);
}

#[test]
fn looks_are_counted_from_the_last_decode_on() {
    let (views, slot) = (recent(10), Slot::default());
    view(&views, &slot, 1);
    for _ in 1..OFTEN {
        look(&views, &slot);
    }
    decode_many(&views);
    assert!(!is_there(&views, &slot));
    view(&views, &slot, 2);
    look(&views, &slot);
    assert!(!is_pinned(&slot));
}

#[test]
fn not_more_than_half_of_the_budget_is_pinned() {
    let (views, mut slots) = (recent(9), slots(9));
    slots.iter().for_each(|slot| drop(view(&views, slot, 0)));
    slots.iter().for_each(|slot| look_often(&views, slot));
    assert_eq!(slots.iter().filter(|slot| is_pinned(slot)).count(), 4);
    assert_eq!(views.counters.pinned_bytes(), 4 * whole_weight(WEIGHT));
    assert_eq!(views.stats().kept_views, 9);
    // Where one goes, there is room for another at its next look.
    slots.remove(0);
    look(&views, &slots[5]);
    assert!(is_pinned(&slots[5]));
    look(&views, &slots[6]);
    assert!(!is_pinned(&slots[6]));
}

#[test]
fn what_is_pinned_goes_with_its_slot_and_gives_its_weight_back() {
    let (views, slot) = (recent(2), Slot::default());
    let weak = Arc::downgrade(&view(&views, &slot, 1));
    look_often(&views, &slot);
    assert!(is_pinned(&slot));
    assert_eq!(views.stats().kept_bytes, whole_weight(WEIGHT));
    drop(slot);
    assert!(weak.upgrade().is_none(), "at once, though the ring may have its place");
    assert_eq!((views.stats().kept_views, views.stats().kept_bytes), (0, 0));
    assert_eq!(views.counters.pinned_bytes(), 0);
}

#[test]
fn beside_what_is_pinned_no_more_is_kept_than_the_budget() {
    let (views, hot, limit) = (recent(4), slots(2), 4 * whole_weight(WEIGHT));
    for slot in &hot {
        view(&views, slot, 0);
        look_often(&views, slot);
    }
    assert!(hot.iter().all(is_pinned));
    for slot in &slots(10) {
        view(&views, slot, 0);
        assert!(views.stats().kept_bytes <= limit);
    }
    // It would fit, if nothing were pinned.
    let (heavy, light) = (Slot::default(), Slot::default());
    view(&views, &light, 0);
    let held = views.get_or_decode(&heavy, |_| 3 * WEIGHT, || Ok::<u64, Infallible>(7)).unwrap();
    assert!(views.stats().kept_bytes <= limit);
    assert!(Arc::ptr_eq(&held, &view(&views, &heavy, 8)), "shared as long as it is held");
    assert!(is_there(&views, &light), "nothing had to go for it");
    drop(held);
    assert!(!is_there(&views, &heavy));
}

#[test]
fn a_view_heavier_than_half_of_the_budget_is_not_pinned() {
    let (views, slot) = (recent(1), Slot::default());
    view(&views, &slot, 0);
    look_often(&views, &slot);
    assert!(!is_pinned(&slot) && is_there(&views, &slot));
}

#[test]
fn whether_there_is_room_is_asked_once_more_under_the_lock() {
    let (views, slots) = (recent(2), slots(2));
    slots.iter().for_each(|slot| drop(view(&views, slot, 0)));
    // As if both had seen that there is room for one.
    slots.iter().for_each(|slot| views.promote(slot, slot.find::<u64>().unwrap()));
    assert_eq!((is_pinned(&slots[0]), is_pinned(&slots[1])), (true, false));
}

#[test]
fn a_view_is_there_all_the_time_while_it_is_pinned() {
    let (views, slots, together) = (recent(4_000), slots(1_000), Barrier::new(4));
    slots.iter().for_each(|slot| drop(view(&views, slot, 0)));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for slot in &slots {
                    together.wait();
                    while !is_pinned(slot) {
                        look(&views, slot);
                        view(&views, slot, 1);
                    }
                }
            });
        }
    });
    assert_eq!(views.stats().decodes, 1_000);
}

#[test]
fn places_of_what_was_pinned_are_given_back() {
    let views = recent(10_000);
    let hot = slots(4_000);
    for slot in &hot {
        view(&views, slot, 0);
        look_often(&views, slot);
    }
    assert!(hot.iter().all(is_pinned));
    let places = views.ring.lock().unwrap().places();
    assert!(places <= 128, "{places}");
}

#[test]
fn who_looks_does_not_wait_for_the_lock() {
    let (views, slot) = (recent(10), Slot::default());
    view(&views, &slot, 0);
    let ring = views.ring.lock().unwrap();
    look_often(&views, &slot);
    assert!(look(&views, &slot).is_some() && !is_pinned(&slot));
    drop(ring);
    look(&views, &slot);
    assert!(is_pinned(&slot), "by the next who looks");
}

#[test]
fn what_is_held_while_it_is_pinned_is_one_and_the_same() {
    let (views, slot) = (recent(10), Slot::default());
    let shared = view(&views, &slot, 1);
    let held: Held<u64> = views.lend(&slot).unwrap();
    look_often(&views, &slot);
    let there = pinned(&slot).unwrap();
    assert!(std::ptr::eq(there, &*shared) && std::ptr::eq(there, &*held));
    decode_many(&views);
    drop(shared);
    assert!(std::ptr::eq(&*view(&views, &slot, 2), &*held.clone()));
}

#[test]
fn under_stress_a_view_that_someone_has_is_everyones_and_the_budget_holds() {
    const SLOTS: usize = 60;
    for _ in 0..4 {
        let (views, slots) = (recent(20), slots(SLOTS));
        let (limit, together) = (20 * whole_weight(WEIGHT), Barrier::new(4));
        thread::scope(|scope| {
            for thread in 0..4_usize {
                let (views, slots, together) = (&views, &slots, &together);
                scope.spawn(move || {
                    together.wait();
                    for round in 0..20_000_usize {
                        let at = round.wrapping_mul(thread + 7) % SLOTS;
                        let at = if round % 3 == 0 { at } else { at % 16 };
                        let slot = &slots[at];
                        let shared = view(views, slot, at as u64);
                        assert_eq!(*shared, at as u64);
                        // One that goes and is held is lent no more, and shared all the same.
                        let looked = look(views, slot);
                        assert!(looked.is_none_or(|looked| std::ptr::eq(looked, &*shared)));
                        assert!(Arc::ptr_eq(&shared, &view(views, slot, 1_000)));
                        if round % 16 == 0 {
                            let short = Slot::default();
                            view(views, &short, 1);
                            look_often(views, &short);
                        }
                        assert!(views.stats().kept_bytes <= limit);
                        assert!(views.counters.pinned_bytes() <= limit / 2);
                    }
                });
            }
        });
        assert!(slots.iter().any(is_pinned));
        let stats = views.stats();
        assert_eq!(stats.kept_bytes, stats.kept_views * whole_weight(WEIGHT));
        drop(slots);
        assert_eq!((views.stats().kept_views, views.stats().kept_bytes), (0, 0));
        assert_eq!(views.counters.pinned_bytes(), 0);
    }
}

#[test]
fn pinned_views_of_several_types_are_told_apart() {
    let (views, slot) = (Views::new(ViewBudget::All), Slot::default());
    let decode = |text: &str| {
        let text = text.to_owned();
        views.get_or_decode(&slot, |_| WEIGHT, || Ok::<_, ()>(text)).unwrap()
    };
    assert_eq!((pinned(&slot), slot.pinned::<String>()), (None, None));
    let number = view(&views, &slot, 7);
    let text = decode("seven");
    assert_eq!(pinned(&slot), Some(std::ptr::from_ref(&*number)));
    assert_eq!(slot.pinned::<String>().map(std::ptr::from_ref), Some(std::ptr::from_ref(&*text)));
    assert_eq!(slot.pinned::<u8>(), None);
    drop(slot);
    assert_eq!(
        (Arc::strong_count(&number), Arc::strong_count(&text)),
        (1, 1),
        "a slot lets go of all it has"
    );
}
