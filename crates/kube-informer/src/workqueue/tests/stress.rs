//! Many threads at once.

use std::sync::atomic::{AtomicBool, AtomicU64};

use super::*;

const KEYS: usize = 50;
const ADDERS: u64 = 4;
const WORKERS: u64 = 8;
const ADDS: u64 = 5_000;

/// What is known of a key beside the queue.
#[derive(Default)]
struct Seen {
    /// The number of its last add, stored before the key is added.
    stored: AtomicU64,
    /// The highest number that a worker found.
    found: AtomicU64,
    busy: AtomicBool,
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap()
}

/// Whoever runs a key after an add finds the number of that add: in the end, the last number of each key was found, and no
/// key was ever with two.
#[test]
fn no_add_is_lost_and_no_key_is_with_two_workers_on_many_threads() {
    let limiter = Exponential::new(Duration::ZERO, Duration::ZERO);
    let queue = WorkQueue::<usize>::new(Settings::default().limiter(limiter));
    let keys: Arc<Vec<Seen>> = Arc::new((0..KEYS).map(|_| Seen::default()).collect());
    let number = Arc::new(AtomicU64::new(0));
    runtime().block_on(async {
        let worker = |worker| tokio::spawn(work(queue.clone(), Arc::clone(&keys), worker));
        let workers: Vec<_> = (0..WORKERS).map(worker).collect();
        let adder = |seed| tokio::spawn(add(queue.clone(), Arc::clone(&keys), Arc::clone(&number), seed));
        let adders: Vec<_> = (1..=ADDERS).map(adder).collect();
        for adder in adders {
            adder.await.unwrap();
        }
        assert!(queue.drain().await);
        for worker in workers {
            worker.await.unwrap();
        }
    });
    for (key, seen) in keys.iter().enumerate() {
        assert_eq!(seen.found.load(SeqCst), seen.stored.load(SeqCst), "the last add of {key}");
    }
    let inner = queue.shared.lock();
    assert_eq!((inner.waiting, inner.watched, inner.state.depth()), (0, false, 0));
}

async fn work(queue: WorkQueue<usize>, keys: Arc<Vec<Seen>>, worker: u64) {
    for run in worker.. {
        let mut next = Poll::Pending;
        // Now and then, some give up if they have to wait.
        if run.is_multiple_of(7) {
            next = ByHand::new(queue.get()).poll();
        }
        let next = if let Poll::Ready(next) = next { next } else { queue.get().await };
        let Some(item) = next else { return };
        let seen = &keys[*item.key()];
        assert!(!seen.busy.swap(true, SeqCst), "with two workers");
        let number = seen.stored.load(SeqCst);
        if run.is_multiple_of(3) {
            tokio::task::yield_now().await;
        }
        seen.found.fetch_max(number, SeqCst);
        assert!(seen.busy.swap(false, SeqCst));
        if run.is_multiple_of(11) {
            item.retry();
        }
    }
}

async fn add(queue: WorkQueue<usize>, keys: Arc<Vec<Seen>>, number: Arc<AtomicU64>, seed: u64) {
    let mut random = seed;
    for _ in 0..ADDS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = (random >> 33) as usize % KEYS;
        if random >> 61 == 0 {
            queue.add_after(key, Duration::from_micros(random >> 50 & 0x3ff));
        }
        if random >> 61 == 1 {
            tokio::task::yield_now().await;
        }
        keys[key].stored.fetch_max(number.fetch_add(1, SeqCst) + 1, SeqCst);
        queue.at(if random >> 62 == 3 { Priority::Low } else { Priority::Normal }).add(key);
    }
}

/// All keys have deadlines, and nobody adds anything any more: only the clock wakes workers.
#[test]
fn deadlines_alone_wake_as_many_workers_as_there_is_work_for() {
    const DELAYED: u64 = 2_000;
    let queue = WorkQueue::<u64>::new(Settings::default());
    let left = Arc::new(AtomicU64::new(DELAYED));
    runtime().block_on(async {
        let worker = |_| {
            let (queue, left) = (queue.clone(), Arc::clone(&left));
            tokio::spawn(async move {
                while let Some(_item) = queue.get().await {
                    if left.fetch_sub(1, SeqCst) == 1 {
                        queue.shut_down();
                    }
                }
            })
        };
        let workers: Vec<_> = (0..WORKERS).map(worker).collect();
        (0..DELAYED).for_each(|key| queue.add_after(key, Duration::from_micros(key * 37 % 20_000 + 1)));
        for worker in workers {
            worker.await.unwrap();
        }
    });
    assert_eq!(left.load(SeqCst), 0);
}
