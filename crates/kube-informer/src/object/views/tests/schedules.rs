//! Those who read, look at, pin and drive out views, and those who drop slots, in every order that a scheduler thinks of: at each
//! step of a cell, a place, the ring's lock and the counters, it chooses who goes on.

use std::collections::HashMap;
use std::sync::Mutex;

use shuttle::thread;

use super::super::cell::{Counters, Released, whole_weight};
use super::*;
use crate::sync::in_many_schedules;

/// What a view is decoded to: it knows its slot, and is counted as long as it is there.
struct Decoded {
    slot: usize,
    alive: Arc<AtomicUsize>,
}

impl Drop for Decoded {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What all threads know beside the views. Nothing here is a step: what is asked and noted together stays together.
struct World {
    views: Views,
    limit: usize,
    /// Views in memory.
    alive: Arc<AtomicUsize>,
    /// By slot: which view those have who have one, and how many they are.
    had: Mutex<HashMap<usize, (usize, usize)>>,
}

/// A view that somebody has.
enum Had {
    Shared(Arc<Decoded>),
    Lent(Held<Decoded>),
}

impl World {
    /// There is room for so many views, or for all.
    fn new(room: Option<usize>) -> Arc<Self> {
        let limit = room.map_or(usize::MAX, |room| room * whole_weight(WEIGHT));
        let budget = if room.is_some() { ViewBudget::Recent(limit) } else { ViewBudget::All };
        let (alive, had) = (Arc::default(), Mutex::default());
        Arc::new(Self { views: Views::new(budget), limit, alive, had })
    }

    fn read(&self, number: usize, slot: &Slot) -> Had {
        let decode = || {
            self.alive.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(Decoded { slot: number, alive: Arc::clone(&self.alive) })
        };
        let view = self.views.get_or_decode(slot, |_| WEIGHT, decode).unwrap();
        self.have(number, Had::Shared(view))
    }

    /// As objects do it, but for what is pinned: that is had by its slot.
    fn look(&self, number: usize, slot: &Slot) -> Had {
        match self.views.lend(slot) {
            Some(held) => self.have(number, Had::Lent(held)),
            None => self.read(number, slot),
        }
    }

    /// Whoever has a view of a slot has the one that all others have.
    fn have(&self, number: usize, had: Had) -> Had {
        let view: &Decoded = match &had {
            Had::Shared(view) => view,
            Had::Lent(view) => view,
        };
        assert_eq!(view.slot, number);
        let at = std::ptr::from_ref(view).addr();
        let mut all = self.had.lock().unwrap();
        let (same, count) = all.entry(number).or_insert((at, 0));
        assert_eq!(*same, at, "two views of one object at the same time");
        *count += 1;
        had
    }

    fn let_go(&self, number: usize, had: Had) {
        let mut all = self.had.lock().unwrap();
        let (_, count) = all.get_mut(&number).unwrap();
        *count -= 1;
        if *count == 0 {
            all.remove(&number);
        }
        drop(all);
        drop(had);
    }

    fn keeps_to_its_limits(&self) {
        let (kept, pinned) = (self.views.stats().kept_bytes, self.views.counters.pinned_bytes());
        assert!(kept <= self.limit, "{kept} bytes are kept");
        assert!(self.limit == usize::MAX || pinned <= self.limit / 2, "{pinned} bytes are pinned");
    }

    /// All is quiet: what is counted is what is there, and nobody else has any of it.
    fn is_as_counted(&self, slots: &[&Slot]) {
        let count = |is: fn(&Slot) -> bool| slots.iter().filter(|slot| is(slot)).count();
        let pinned = count(|slot| slot.pinned::<Decoded>().is_some());
        let kept = pinned + count(|slot| slot.find::<Decoded>().is_some_and(|place| place.cell().keeps()));
        let stats = self.views.stats();
        assert_eq!((stats.kept_views, stats.kept_bytes), (kept, kept * whole_weight(WEIGHT)));
        assert_eq!(self.views.counters.pinned_bytes(), pinned * whole_weight(WEIGHT));
        assert_eq!(self.alive.load(Ordering::Relaxed), kept, "views that nobody has are gone");
    }

    fn spawn(self: &Arc<Self>, run: impl FnOnce(&Self) + Send + 'static) -> thread::JoinHandle<()> {
        let world = Arc::clone(self);
        thread::spawn(move || run(&world))
    }
}

fn join<const N: usize>(threads: [thread::JoinHandle<()>; N]) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn in_no_schedule_is_a_view_not_found_while_it_is_pinned() {
    in_many_schedules(|| {
        let (world, slot) = (World::new(Some(2)), Arc::new(Slot::default()));
        world.let_go(0, world.read(0, &slot));
        let there = world.views.lend::<Decoded>(&slot).map(|held| std::ptr::from_ref(&*held).addr());
        let pin = |slot: &Arc<Slot>| {
            let slot = Arc::clone(slot);
            world.spawn(move |world| world.views.promote(&slot, slot.find::<Decoded>().unwrap()))
        };
        let read = |slot: &Arc<Slot>, looks: bool| {
            let slot = Arc::clone(slot);
            world.spawn(move |world| {
                for _ in 0..2 {
                    let had = if looks { world.look(0, &slot) } else { world.read(0, &slot) };
                    let pinned = slot.pinned::<Decoded>().map(|view| std::ptr::from_ref(view).addr());
                    assert!(pinned.is_none() || pinned == there);
                    world.let_go(0, had);
                }
            })
        };
        // One who pins may find the lock taken by the other one, and by nobody else.
        join([pin(&slot), pin(&slot), read(&slot, false), read(&slot, true)]);
        assert_eq!(world.views.stats().decodes, 1, "it was there all the time");
        assert_eq!(slot.pinned::<Decoded>().map(|view| std::ptr::from_ref(view).addr()), there);
        world.is_as_counted(&[&slot]);
        drop(slot);
        world.is_as_counted(&[]);
    });
}

/// Two objects, and three who read or look at them while what they have is driven out by others, or pinned.
fn drive_out(room: usize, pins: bool) {
    let (world, slots) = (World::new(Some(room)), [(); 2].map(|()| Arc::new(Slot::default())));
    let go = |numbers: [usize; 3], looks: bool| {
        let slots = slots.clone();
        world.spawn(move |world| {
            let mut last = None;
            for number in numbers {
                let slot = &slots[number];
                let had = if looks { world.look(number, slot) } else { world.read(number, slot) };
                if looks && pins {
                    world.views.promote(slot, slot.find::<Decoded>().unwrap());
                }
                world.keeps_to_its_limits();
                // The last one is had while the next one is read, which may drive it out.
                if let Some((number, had)) = last.replace((number, had)) {
                    world.let_go(number, had);
                }
            }
            let (number, had) = last.unwrap();
            world.let_go(number, had);
        })
    };
    join([go([0, 1, 0], false), go([0, 0, 1], true), go([1, 0, 1], false)]);
    world.is_as_counted(&slots.each_ref().map(|slot| &**slot));
    drop(slots);
    world.is_as_counted(&[]);
}

#[test]
fn in_no_schedule_does_anyone_get_another_view_than_those_who_have_one() {
    in_many_schedules(|| drive_out(1, false));
    in_many_schedules(|| drive_out(2, true));
}

/// Reads a view that fits where nothing is pinned, and all others go.
fn read_heavy(world: &World, slot: &Slot) {
    let weight = world.limit - whole_weight(0);
    let decode = || Ok::<_, Infallible>(String::from("heavy"));
    world.views.get_or_decode(slot, |_: &String| weight, decode).unwrap();
    world.keeps_to_its_limits();
}

#[test]
fn in_no_schedule_is_more_kept_than_the_budget_while_slots_come_and_go() {
    in_many_schedules(|| {
        let (world, other) = (World::new(Some(2)), Arc::new(Slot::default()));
        let short = |number: usize| {
            world.spawn(move |world| {
                let slot = Slot::default();
                world.let_go(number, world.read(number, &slot));
                world.views.promote(&slot, slot.find::<Decoded>().unwrap());
                world.keeps_to_its_limits();
                drop(slot);
                world.keeps_to_its_limits();
            })
        };
        let heavy = {
            let slot = Arc::clone(&other);
            world.spawn(move |world| (0..2).for_each(|_| read_heavy(world, &slot)))
        };
        join([short(0), short(1), heavy]);
        assert_eq!(world.views.counters.pinned_bytes(), 0);
        drop(other);
        world.is_as_counted(&[]);
    });
}

#[test]
fn in_no_schedule_is_there_room_for_another_before_what_is_pinned_is_gone() {
    in_many_schedules(|| {
        let (world, slot) = (World::new(Some(2)), Slot::default());
        world.let_go(0, world.read(0, &slot));
        world.views.promote(&slot, slot.find::<Decoded>().unwrap());
        assert!(slot.pinned::<Decoded>().is_some());
        join([world.spawn(move |_| drop(slot)), world.spawn(|world| read_heavy(world, &Slot::default()))]);
        world.is_as_counted(&[]);
    });
}

#[test]
fn in_no_schedule_are_there_two_views_where_all_are_kept() {
    in_many_schedules(|| {
        let (world, slot) = (World::new(None), Arc::new(Slot::default()));
        let read = |slot: &Arc<Slot>| {
            let slot = Arc::clone(slot);
            world.spawn(move |world| {
                let had = world.read(0, &slot);
                let pinned = slot.pinned::<Decoded>().unwrap();
                assert!(matches!(&had, Had::Shared(view) if std::ptr::eq(&**view, pinned)));
                // Of another type, with a place of its own behind.
                let decode = || Ok::<_, Infallible>(String::from("a"));
                world.views.get_or_decode(&slot, |_| WEIGHT, decode).unwrap();
                world.let_go(0, had);
            })
        };
        join([read(&slot), read(&slot), read(&slot)]);
        let stats = world.views.stats();
        assert_eq!((stats.kept_views, stats.kept_bytes), (2, 2 * whole_weight(WEIGHT)));
        assert_eq!(world.alive.load(Ordering::Relaxed), 1);
        drop(slot);
        world.is_as_counted(&[]);
    });
}

#[test]
fn in_no_schedule_is_a_view_gone_that_someone_has() {
    in_many_schedules(|| {
        let (slot, counters) = (Arc::new(Slot::default()), Arc::<Counters>::default());
        let view = Arc::new(7_u64);
        let there = Arc::as_ptr(&view).addr();
        let cell = Arc::clone(slot.place::<u64>(&counters).cell());
        drop(cell.keep_or_get(view, WEIGHT));
        let find = |is_lent: bool| {
            let slot = Arc::clone(&slot);
            thread::spawn(move || {
                let place = slot.find::<u64>().unwrap();
                let at = if is_lent {
                    place.held::<u64>().map(|held| {
                        let found = place.get::<u64>().expect("it is held");
                        assert!(std::ptr::eq(&*held, &*found));
                        Arc::as_ptr(&found).addr()
                    })
                } else {
                    place.get::<u64>().map(|view| {
                        assert!(Arc::ptr_eq(&view, &place.get().expect("it is shared")));
                        Arc::as_ptr(&view).addr()
                    })
                };
                assert!(at.is_none() || at == Some(there));
            })
        };
        // As the ring does it.
        let release = || {
            let (slot, cell) = (Arc::clone(&slot), Arc::clone(&cell));
            thread::spawn(move || match cell.release() {
                Released::Gone(view) => {
                    assert!(slot.find::<u64>().unwrap().get::<u64>().is_none(), "nobody gets it any more");
                    assert!(!cell.is_lent());
                    assert_eq!(Arc::strong_count(&view), 1, "somebody has what is gone");
                }
                Released::Lent(view) => {
                    // As long as this is not dropped, it is one of those who have it.
                    let found = slot.find::<u64>().unwrap().get::<u64>();
                    assert!(found.is_none_or(|found| Arc::as_ptr(&found).addr() == there));
                    drop(view);
                }
                Released::Nothing => {}
            })
        };
        join([find(false), find(true), release()]);
        assert_eq!((counters.kept_bytes(), counters.stats().kept_views), (0, 0));
        assert!(!cell.is_lent() && !cell.keeps());
    });
}
