//! Threads in every order that a scheduler thinks of: at each lock that is taken or let go, it chooses who goes on. A
//! schedule in which somebody waits for ever is a failure, and is printed so that it can be played again.
//!
//! The clock stands still: what it does to those who wait is tested by `interleavings`, in steps.

use shuttle::sync::atomic::{AtomicBool, AtomicU64};
use shuttle::{future::block_on, thread};

use super::*;
use crate::sync::in_many_schedules;

const KEYS: usize = 2;

/// What is known of a key beside the queue.
#[derive(Default)]
struct Seen {
    /// The number of its last add, stored before the key is added.
    stored: AtomicU64,
    /// The highest number that a worker found.
    found: AtomicU64,
    busy: AtomicBool,
}

#[derive(Clone)]
struct World {
    queue: WorkQueue<usize>,
    keys: Arc<[Seen; KEYS]>,
    number: Arc<AtomicU64>,
}

impl World {
    fn new() -> Self {
        let limiter = Exponential::new(Duration::ZERO, Duration::ZERO);
        let queue = WorkQueue::new(Settings::default().limiter(limiter));
        Self { queue, keys: Arc::default(), number: Arc::default() }
    }

    fn store(&self, key: usize) {
        let number = self.number.fetch_add(1, SeqCst) + 1;
        self.keys[key].stored.fetch_max(number, SeqCst);
    }

    fn add(&self, key: usize) {
        self.store(key);
        self.queue.add(key);
    }

    /// Works until the queue has ended; some of its runs fail.
    fn work(&self, fails: impl Fn(u32) -> bool) {
        let mut runs = 0;
        while let Some(item) = block_on(self.queue.get()) {
            runs += 1;
            self.run(&item);
            if fails(runs) {
                item.retry();
            } else {
                item.forget();
            }
        }
    }

    fn run(&self, item: &Item<usize>) {
        let seen = &self.keys[*item.key()];
        assert!(!seen.busy.swap(true, SeqCst), "with two workers");
        let number = seen.stored.load(SeqCst);
        seen.found.fetch_max(number, SeqCst);
        assert!(seen.busy.swap(false, SeqCst));
    }

    /// Whoever ran a key after an add found the number of that add.
    fn nothing_is_lost(&self) {
        for (key, seen) in self.keys.iter().enumerate() {
            assert_eq!(seen.found.load(SeqCst), seen.stored.load(SeqCst), "the last add of {key}");
        }
    }

    /// Nobody is left, and nothing is.
    fn is_over(&self) {
        let inner = self.queue.shared.lock();
        assert_eq!((inner.waiting, inner.watched, inner.state.depth()), (0, false, 0));
        assert!(inner.state.is_over() && inner.state.is_idle());
    }

    fn spawn<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> thread::JoinHandle<T> {
        let world = self.clone();
        thread::spawn(move || run(&world))
    }
}

#[test]
fn in_no_schedule_is_an_add_lost_or_a_key_with_two_workers_and_a_drain_ends() {
    in_many_schedules(|| {
        let world = World::new();
        let workers = [0, 1].map(|_| world.spawn(|world| world.work(|_| false)));
        let adders = [[0, 1, 0], [0, 0, 1]]
            .map(|keys| world.spawn(move |world| keys.into_iter().for_each(|key| world.add(key))));
        adders.into_iter().for_each(|adder| adder.join().unwrap());
        assert!(block_on(world.queue.drain()));
        world.nothing_is_lost();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        world.is_over();
    });
}

#[test]
fn in_no_schedule_is_a_retry_lost_or_a_worker_left_asleep_by_one_that_gives_up() {
    in_many_schedules(|| {
        let world = World::new();
        // The first time that a worker has something, that fails.
        let workers = [0, 1].map(|_| world.spawn(|world| world.work(|run| run == 1)));
        // Asked once, a getter may be the one that was woken when it leaves.
        let impatient = world.spawn(|world| {
            for _ in 0..2 {
                let mut get = ByHand::new(world.queue.get());
                let mut got = get.poll();
                if got.is_pending() {
                    thread::yield_now();
                    got = get.poll();
                }
                if let Poll::Ready(Some(item)) = got {
                    world.run(&item);
                }
            }
        });
        world.add(0);
        world.queue.at(Priority::Low).add(1);
        world.add(0);
        impatient.join().unwrap();
        assert!(block_on(world.queue.drain()));
        world.nothing_is_lost();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        world.is_over();
    });
}

#[test]
fn in_no_schedule_is_a_key_lost_that_was_delayed_and_is_wanted_at_once() {
    const LONG: Duration = Duration::from_secs(24 * 60 * 60);
    in_many_schedules(|| {
        let world = World::new();
        let workers = [0, 1].map(|_| world.spawn(|world| world.work(|_| false)));
        let adders = [[0, 1], [1, 0]].map(|keys| {
            world.spawn(move |world| {
                for key in keys {
                    // Later and earlier deadlines: whoever watches the clock is woken, and may leave with a key.
                    world.queue.add_after(key, LONG / (1 + key as u32));
                    world.add(key);
                }
            })
        });
        adders.into_iter().for_each(|adder| adder.join().unwrap());
        // Before the end: the end itself would wake everyone.
        let found = world.spawn(|world| {
            for seen in world.keys.iter() {
                while seen.found.load(SeqCst) < seen.stored.load(SeqCst) {
                    thread::yield_now();
                }
            }
        });
        found.join().unwrap();
        world.queue.shut_down();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        world.nothing_is_lost();
        world.is_over();
    });
}

#[test]
fn in_every_schedule_a_drain_ends_that_is_cut_short_or_done_twice() {
    in_many_schedules(|| {
        let world = World::new();
        let worker = world.spawn(|world| world.work(|run| run == 1));
        world.add(0);
        let drains = [0, 1].map(|_| world.spawn(|world| block_on(world.queue.drain())));
        let cut = world.spawn(|world| world.queue.shut_down());
        world.queue.add(1);
        let drained = drains.map(|drain| drain.join().unwrap());
        if drained.contains(&true) {
            assert_eq!(world.queue.len(), 0);
        }
        cut.join().unwrap();
        worker.join().unwrap();
        world.is_over();
    });
}

/// Whoever has a key keeps it until all have one: somebody who is not woken would be waited for in vain.
#[test]
fn in_every_schedule_as_many_work_at_once_as_there_are_keys() {
    in_many_schedules(|| {
        let queue = WorkQueue::<usize>::new(Settings::default());
        let together = Arc::new(shuttle::sync::Barrier::new(3));
        let workers = [0, 1, 2].map(|_| {
            let (queue, together) = (queue.clone(), Arc::clone(&together));
            thread::spawn(move || {
                let item = block_on(queue.get()).unwrap();
                together.wait();
                *item.key()
            })
        });
        let adder = {
            let queue = queue.clone();
            thread::spawn(move || queue.add(2))
        };
        queue.add(0);
        queue.add(1);
        adder.join().unwrap();
        let mut keys = workers.map(|worker| worker.join().unwrap());
        keys.sort_unstable();
        assert_eq!(keys, [0, 1, 2]);
    });
}

/// Nobody who worked comes back for more.
#[test]
fn in_every_schedule_what_a_worker_leaves_behind_is_for_another() {
    in_many_schedules(|| {
        let world = World::new();
        let runs = Arc::new(AtomicU64::new(0));
        let workers = [0, 1, 2].map(|_| {
            let runs = Arc::clone(&runs);
            world.spawn(move |world| {
                let item = block_on(world.queue.get()).unwrap();
                // The same key, while it is here: the next one has to be told when it is not.
                if runs.fetch_add(1, SeqCst) < 2 {
                    world.add(0);
                }
                world.run(&item);
            })
        });
        world.add(0);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        world.nothing_is_lost();
        world.queue.shut_down();
        world.is_over();
    });
}
