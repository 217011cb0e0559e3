//! Whoever wakes a handler, its task, one that leads a line, and whoever drops its task, in every order that a scheduler thinks
//! of: at each step of the handler's state, it chooses who goes on.

use shuttle::sync::atomic::{AtomicBool, AtomicUsize};
use shuttle::thread;

use super::*;
use crate::sync::in_many_schedules;

/// What a handler is called with, and how often it was.
#[derive(Default)]
struct Letters {
    waiting: AtomicUsize,
    called: AtomicUsize,
    waker: AtomicWaker,
    is_called: AtomicBool,
    is_dropped: AtomicBool,
}

struct Reads(Arc<Letters>);

impl Future for Reads {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let letters = &self.0;
        assert!(!letters.is_called.swap(true, Ordering::SeqCst), "with two at once");
        letters.waker.register(context.waker());
        let read = letters.waiting.swap(0, Ordering::SeqCst);
        letters.called.fetch_add(read, Ordering::SeqCst);
        letters.is_called.store(false, Ordering::SeqCst);
        Poll::Pending
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        assert!(!self.0.is_called.load(Ordering::SeqCst), "dropped while it is called");
        assert!(!self.0.is_dropped.swap(true, Ordering::SeqCst), "dropped twice");
    }
}

/// Its task is to be polled.
#[derive(Default)]
struct Notified(AtomicBool);

impl Wake for Notified {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

struct World {
    letters: Arc<Letters>,
    seat: Arc<Seat>,
    /// So many times it stands in the line.
    line: AtomicUsize,
    /// Whether no letter comes any more.
    over: AtomicBool,
}

impl World {
    fn send(&self, in_line: bool) {
        self.letters.waiting.fetch_add(1, Ordering::SeqCst);
        if !in_line {
            self.letters.waker.wake();
        } else if self.seat.is_ready_now() {
            self.line.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Serves the line until there is none and nothing comes.
    fn lead(&self, drops: bool) {
        loop {
            let is_over = self.over.load(Ordering::SeqCst);
            let one_less = |line: usize| line.checked_sub(1);
            if self.line.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
                if self.seat.poll() == Turn::Again {
                    // Once more in the line, or in its task: which may be gone.
                    if drops || self.letters.called.load(Ordering::SeqCst).is_multiple_of(2) {
                        self.seat.call_task();
                    } else {
                        self.line.fetch_add(1, Ordering::SeqCst);
                    }
                }
            } else if is_over {
                return;
            } else {
                thread::yield_now();
            }
        }
    }

    /// Polls its task when it is woken, until nothing comes, and then drops it or goes on as long as there is something.
    fn run(&self, mut keeper: Keeper, drops: bool) -> Option<Keeper> {
        let notified = Arc::new(Notified(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&notified));
        let mut polls = 0;
        loop {
            let is_over = self.over.load(Ordering::SeqCst) && self.line.load(Ordering::SeqCst) == 0;
            if notified.0.swap(false, Ordering::SeqCst) {
                assert!(Pin::new(&mut keeper).poll(&mut Context::from_waker(&waker)).is_pending());
                polls += 1;
                if drops && polls == 2 {
                    return None;
                }
            } else if is_over {
                return (!drops).then_some(keeper);
            } else {
                thread::yield_now();
            }
        }
    }
}

const LETTERS: usize = 2;

fn play(drops: bool) {
    let letters = Arc::<Letters>::default();
    let mailbox = Arc::new(Mailbox::new("one".into(), Delivery::Latest));
    let keeper = take(&mailbox, Reads(Arc::clone(&letters)), watch::channel(()).0);
    let seat = Arc::clone(&keeper.seat);
    let (line, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let world = Arc::new(World { letters, seat, line, over });
    let senders = [false, true].map(|in_line| {
        let world = Arc::clone(&world);
        thread::spawn(move || (0..LETTERS).for_each(|_| world.send(in_line)))
    });
    let leaders = [(); 2].map(|()| {
        let world = Arc::clone(&world);
        thread::spawn(move || world.lead(drops))
    });
    let task = {
        let world = Arc::clone(&world);
        thread::spawn(move || world.run(keeper, drops))
    };
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    world.over.store(true, Ordering::SeqCst);
    leaders.into_iter().for_each(|leader| leader.join().unwrap());
    let mut keeper = task.join().unwrap();
    if let Some(keeper) = &mut keeper {
        // What the last of those who led left to its task, after that had looked for the last time.
        let _ = Pin::new(keeper).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(world.letters.called.load(Ordering::SeqCst), 2 * LETTERS, "a letter is slept over");
    }
    assert_eq!(world.letters.is_dropped.load(Ordering::SeqCst), drops);
    drop(keeper);
    assert!(world.letters.is_dropped.load(Ordering::SeqCst));
}

#[test]
fn in_no_schedule_is_a_handler_left_asleep_or_with_two_at_once() {
    in_many_schedules(|| play(false));
}

#[test]
fn in_no_schedule_is_one_left_behind_whose_task_is_dropped() {
    in_many_schedules(|| play(true));
}
