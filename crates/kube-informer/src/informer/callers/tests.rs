use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Weak, mpsc};
use std::thread::ThreadId;

use futures_util::task::AtomicWaker;

use super::*;

mod hammer;
mod schedules;

const LONG: Duration = Duration::from_secs(3600);
const PATIENT: Limits = Limits { slow: LONG, slice: LONG, stuck: LONG, idle: LONG };

/// What a closure is called with: so many times, until it is closed.
#[derive(Default)]
struct Bell {
    rings: AtomicUsize,
    closed: AtomicBool,
    waker: AtomicWaker,
}

impl Bell {
    fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        self.waker.wake();
    }

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.waker.wake();
    }
}

struct Ringing<F>(Arc<Bell>, F);

impl<F: FnMut() + Send + 'static> Work for Ringing<F> {
    fn step(&mut self, context: &mut Context<'_>) -> Step {
        self.0.waker.register(context.waker());
        let one_less = |rings: usize| rings.checked_sub(1);
        if self.0.rings.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
            let begun = std::time::Instant::now();
            (self.1)();
            return Step::Called(begun.elapsed());
        }
        if self.0.closed.load(Ordering::SeqCst) { Step::Ended } else { Step::Waits }
    }
}

fn add(callers: &Callers, call: impl FnMut() + Send + 'static) -> Arc<Bell> {
    let bell = Arc::<Bell>::default();
    callers.add(Ringing(Arc::clone(&bell), call));
    bell
}

/// Some closures that tell the same channel something.
fn add_some<T: Send + 'static>(
    callers: &Callers,
    count: usize,
    told: &mpsc::Sender<T>,
    what: fn() -> T,
) -> Vec<Arc<Bell>> {
    let one = |_| {
        let told = told.clone();
        add(callers, move || told.send(what()).unwrap())
    };
    (0..count).map(one).collect()
}

#[tokio::test]
async fn closures_that_return_at_once_share_a_thread() {
    let callers = Callers::within(PATIENT, Handle::current());
    let (told, hear) = mpsc::channel::<ThreadId>();
    let bells = add_some(&callers, 10, &told, || std::thread::current().id());
    let mut threads = HashSet::new();
    for _ in 0..100 {
        bells.iter().for_each(|bell| bell.ring());
        threads.extend(hear.iter().take(bells.len()));
    }
    // The first, and the one that watched it when it was the first's turn to be idle.
    assert!(threads.len() <= 2, "{threads:?}");
    bells.iter().for_each(|bell| bell.close());
}

#[tokio::test]
async fn those_who_are_woken_together_are_ready_together() {
    let callers = Callers::within(PATIENT, Handle::current());
    let (told, hear) = mpsc::channel();
    let added = (0..10).map(|_| {
        let (told, shared, bell) = (told.clone(), Arc::clone(&callers.shared), Arc::<Bell>::default());
        let call = move || told.send(shared.lock().ready.len()).unwrap();
        (callers.add(Ringing(Arc::clone(&bell), call)), bell)
    });
    let (added, bells): (Vec<_>, Vec<_>) = added.unzip();
    for _ in 0..100 {
        // All wait, and have left a waker: it is not that which wakes them.
        while added.iter().any(|caller| !caller.turns.is_waiting()) {
            std::thread::yield_now();
        }
        for bell in &bells {
            bell.rings.fetch_add(1, Ordering::SeqCst);
        }
        wake_together(added.clone());
        // Whoever comes for one finds all that are behind it: never is one still to come.
        let behind: Vec<usize> = hear.iter().take(bells.len()).collect();
        assert_eq!(behind, (0..bells.len()).rev().collect::<Vec<_>>());
    }
    bells.iter().for_each(|bell| bell.close());
}

#[tokio::test]
async fn one_that_blocks_holds_up_nobody() {
    let callers = Callers::within(Limits { stuck: Duration::from_millis(1), ..PATIENT }, Handle::current());
    let (told, hear) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let stuck = {
        let told = told.clone();
        add(&callers, move || {
            told.send("in").unwrap();
            gate.recv().unwrap();
        })
    };
    let others = add_some(&callers, 5, &told, || "other");
    stuck.ring();
    assert_eq!(hear.recv().unwrap(), "in");
    for _ in 0..3 {
        others.iter().for_each(|bell| bell.ring());
        assert!(hear.iter().take(others.len()).all(|word| word == "other"));
    }
    go.send(()).unwrap();
    stuck.close();
    others.iter().for_each(|bell| bell.close());
}

#[tokio::test]
async fn nobody_waits_to_see_whether_a_slow_one_blocks() {
    // Nothing ever looks stuck, and everything is slow.
    let callers = Callers::within(Limits { slow: Duration::ZERO, ..PATIENT }, Handle::current());
    let (told, hear) = mpsc::channel();
    let blocked: Vec<_> = (0..4)
        .map(|number| {
            let (told, (go, gate)) = (told.clone(), mpsc::channel::<()>());
            let mut calls = 0;
            let bell = add(&callers, move || {
                calls += 1;
                told.send(number).unwrap();
                if calls > 1 {
                    gate.recv().unwrap();
                }
            });
            // It takes some time, so that it is known to do so.
            bell.ring();
            assert_eq!(hear.recv().unwrap(), number);
            (bell, go)
        })
        .collect();
    blocked.iter().for_each(|(bell, _)| bell.ring());
    let seen: HashSet<_> = hear.iter().take(blocked.len()).collect();
    assert_eq!(seen.len(), blocked.len(), "all of them are in a call at the same time");
    for (bell, go) in &blocked {
        bell.close();
        go.send(()).unwrap();
    }
}

#[tokio::test]
async fn a_closure_is_called_once_for_each_event_and_never_by_two_threads_at_once() {
    const RINGERS: usize = 4;
    const RINGS: usize = 2000;
    let limits = Limits {
        slow: Duration::from_nanos(200),
        slice: Duration::from_micros(1),
        stuck: Duration::from_micros(1),
        idle: Duration::from_micros(50),
    };
    let callers = Callers::within(limits, Handle::current());
    let (told, hear) = mpsc::channel();
    let bells: Vec<_> = (0..3)
        .map(|number| {
            let (inside, told) = (AtomicBool::new(false), told.clone());
            add(&callers, move || {
                assert!(!inside.swap(true, Ordering::SeqCst), "it is being called already");
                std::hint::spin_loop();
                inside.store(false, Ordering::SeqCst);
                told.send(number).unwrap();
            })
        })
        .collect();
    drop(told);
    std::thread::scope(|scope| {
        for _ in 0..RINGERS {
            scope.spawn(|| (0..RINGS).for_each(|_| bells.iter().for_each(|bell| bell.ring())));
        }
    });
    bells.iter().for_each(|bell| bell.close());
    let mut counts = [0; 3];
    hear.iter().for_each(|number: usize| counts[number] += 1);
    assert_eq!(counts, [RINGERS * RINGS; 3]);
}

#[tokio::test]
async fn closures_are_called_after_all_threads_were_idle_and_ended() {
    let (idle, stuck) = (Duration::from_micros(20), Duration::from_micros(100));
    let limits = Limits { idle, stuck, ..PATIENT };
    let callers = Callers::within(limits, Handle::current());
    let (told, hear) = mpsc::channel();
    let bells = add_some(&callers, 3, &told, || ());
    for _ in 0..300 {
        for bell in &bells {
            bell.ring();
            std::thread::yield_now();
        }
        assert_eq!(hear.iter().take(bells.len()).count(), bells.len());
        // Mostly some of them are about to begin or to end when the next round begins; every fourth time all have ended.
        if fastrand::u8(..4) == 0 {
            while callers.shared.lock().threads > 0 {
                std::thread::yield_now();
            }
        }
    }
    bells.iter().for_each(|bell| bell.close());
}

#[tokio::test]
async fn slow_ones_do_not_wait_for_each_other_while_a_quick_one_hangs() {
    let callers = Callers::within(Limits { stuck: Duration::from_millis(1), ..LIMITS }, Handle::current());
    let (told, hear) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let hung = {
        let told = told.clone();
        add(&callers, move || {
            told.send(9).unwrap();
            gate.recv().unwrap();
        })
    };
    // Each of them waits for the other one: they must be called at the same time.
    let meet = Arc::new(std::sync::Barrier::new(2));
    let pair: Vec<_> = (0..2)
        .map(|number| {
            let (meet, told) = (Arc::clone(&meet), told.clone());
            add(&callers, move || {
                meet.wait();
                told.send(number).unwrap();
            })
        })
        .collect();
    hung.ring();
    assert_eq!(hear.recv().unwrap(), 9);
    for _ in 0..20 {
        pair.iter().for_each(|bell| bell.ring());
        assert_eq!(hear.iter().take(2).sum::<usize>(), 1);
    }
    go.send(()).unwrap();
    hung.close();
    pair.iter().for_each(|bell| bell.close());
}

#[tokio::test]
async fn no_thread_is_left_without_a_closure() {
    let callers = Callers::within(PATIENT, Handle::current());
    let (told, hear) = mpsc::channel();
    let bells = add_some(&callers, 3, &told, || ());
    drop(told);
    bells.iter().for_each(|bell| bell.ring());
    assert_eq!(hear.iter().take(3).count(), 3);
    bells.iter().for_each(|bell| bell.close());
    assert!(hear.recv().is_err(), "closures are dropped at their end");
    let shared: Weak<Shared> = Arc::downgrade(&callers.shared);
    drop((callers, bells));
    while shared.upgrade().is_some() {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn one_that_cannot_go_on_ends_and_the_others_do_not() {
    struct Broken(#[expect(dead_code, reason = "it is dropped with it")] mpsc::Sender<()>);
    impl Work for Broken {
        fn step(&mut self, _: &mut Context<'_>) -> Step {
            panic!("the runtime is gone");
        }
    }
    let callers = Callers::within(PATIENT, Handle::current());
    let (held, dropped) = mpsc::channel();
    callers.add(Broken(held));
    assert!(dropped.recv().is_err());
    let (told, hear) = mpsc::channel();
    let bell = add(&callers, move || told.send(()).unwrap());
    bell.ring();
    hear.recv().unwrap();
    bell.close();
}
