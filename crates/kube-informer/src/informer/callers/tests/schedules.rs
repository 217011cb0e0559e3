//! Whoever wakes a closure, and whoever calls it, in every order that a scheduler thinks of: at each step of the closure's
//! state, it chooses who goes on.
//!
//! The threads are the scheduler's, so nothing of the real ones is played here: they are always about to begin.

use shuttle::sync::atomic::{AtomicBool, AtomicUsize};
use shuttle::thread;

use super::*;
use crate::sync::in_many_schedules;

/// What a closure is called with, and how often it was.
#[derive(Default)]
struct Letters {
    waiting: AtomicUsize,
    called: AtomicUsize,
    waker: AtomicWaker,
}

/// Each call takes so long.
struct Reads(Arc<Letters>, Duration);

impl Work for Reads {
    fn step(&mut self, context: &mut Context<'_>) -> Step {
        self.0.waker.register(context.waker());
        let one_less = |waiting: usize| waiting.checked_sub(1);
        if self.0.waiting.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_err() {
            return Step::Waits;
        }
        self.0.called.fetch_add(1, Ordering::SeqCst);
        Step::Called(self.1)
    }
}

struct World {
    shared: Arc<Shared>,
    letters: Arc<Letters>,
    caller: Arc<Caller>,
    /// Whether the closure is with a thread.
    taken: std::sync::atomic::AtomicBool,
    /// Whether no letter comes any more.
    over: AtomicBool,
}

impl World {
    fn new(takes: Duration) -> Arc<Self> {
        let queue = Mutex::new(Queue { callers: 1, beginning: 1, ..Queue::default() });
        let (work, alarm) = (Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { runtime: Handle::current(), limits: LIMITS, queue, work, alarm });
        let letters = Arc::<Letters>::default();
        let work: Box<dyn Work> = Box::new(Reads(Arc::clone(&letters), takes));
        let caller = Arc::new(Caller {
            shared: Arc::clone(&shared),
            turns: Turns::default(),
            calls: Mean::default(),
            work: Mutex::new(Some(work)),
        });
        let (taken, over) = (std::sync::atomic::AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self { shared, letters, caller, taken, over })
    }

    fn send(&self) {
        self.letters.waiting.fetch_add(1, Ordering::SeqCst);
        self.letters.waker.wake();
    }

    /// Calls whoever is ready, until nobody is and nothing comes.
    fn serve(&self, quick: bool) {
        loop {
            let is_over = self.over.load(Ordering::SeqCst);
            let ready = self.shared.lock().ready.pop_front();
            let Some(caller) = ready else {
                if is_over {
                    return;
                }
                thread::yield_now();
                continue;
            };
            // The scheduler chooses before each step of a state, so nobody comes between the last one and this.
            assert!(!self.taken.swap(true, Ordering::SeqCst), "with two threads");
            caller.run(quick);
            self.taken.store(false, Ordering::SeqCst);
        }
    }
}

const SENDERS: usize = 2;
const LETTERS: usize = 2;

fn play(takes: Duration, quick: bool) {
    let world = World::new(takes);
    // As it is added: whoever looks first tells who is to be woken.
    Arc::clone(&world.caller).wake();
    let spawn = |run: fn(&World, bool)| {
        let world = Arc::clone(&world);
        thread::spawn(move || run(&world, quick))
    };
    let threads = [(); 2].map(|()| spawn(World::serve));
    let senders = [(); SENDERS].map(|()| spawn(|world, _| (0..LETTERS).for_each(|_| world.send())));
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    world.over.store(true, Ordering::SeqCst);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(world.letters.called.load(Ordering::SeqCst), SENDERS * LETTERS, "a letter is slept over");
    assert!(world.caller.turns.wake(), "it waits");
}

#[test]
fn in_no_schedule_is_a_closure_left_asleep_with_something_to_be_called_with_or_with_two_threads() {
    in_many_schedules(|| play(Duration::ZERO, true));
}

#[test]
fn in_no_schedule_is_one_lost_that_lets_others_have_their_turn() {
    // Each call takes a whole slice, or shows that it is slow.
    in_many_schedules(|| play(LIMITS.slice, false));
    in_many_schedules(|| play(LIMITS.slice / 2, true));
}
