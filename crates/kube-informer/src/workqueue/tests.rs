//! What the queue promises, one test for each promise. Time is paused.

use super::rate_limit::{Exponential, Remembered};
use super::*;

mod interleavings;
mod metrics;
mod model;
mod schedules;
mod speed;
mod stress;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};

use tokio::time::{Instant, advance};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Counts how often it was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Woken {
    fn times(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// A future that is polled by hand.
struct ByHand<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
    woken: Arc<Woken>,
}

impl<'a, T> ByHand<'a, T> {
    fn new(future: impl Future<Output = T> + 'a) -> Self {
        // A budget of polls is the concern of tasks.
        Self { future: Box::pin(tokio::task::unconstrained(future)), woken: Arc::default() }
    }

    fn poll(&mut self) -> Poll<T> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new(Settings::default())
}

/// The next item, if there is one now.
fn got<K: Key>(queue: &WorkQueue<K>) -> Option<Item<K>> {
    match ByHand::new(queue.get()).poll() {
        Poll::Ready(item) => item,
        Poll::Pending => None,
    }
}

/// The keys that can be got now. Each is done before the next is got.
fn all<K: Key>(queue: &WorkQueue<K>) -> Vec<K> {
    std::iter::from_fn(|| got(queue).map(|item| item.key().clone())).collect()
}

#[test]
fn promise_17_keys_come_out_once_each_in_the_order_in_which_they_were_added() {
    let queue = queue();
    ["b", "a", "b", "c", "a"].into_iter().for_each(|key| queue.add(key));
    assert_eq!((queue.len(), queue.is_empty()), (3, false));
    assert_eq!(all(&queue), ["b", "a", "c"]);
    assert_eq!((queue.len(), queue.is_empty()), (0, true));
}

#[test]
fn promise_17_a_key_that_a_worker_has_is_for_nobody_else_and_runs_once_more() {
    let queue = queue();
    queue.add("a");
    let item = got(&queue).unwrap();
    ["a", "b", "a"].into_iter().for_each(|key| queue.add(key));
    assert_eq!(queue.len(), 1);
    assert_eq!(all(&queue), ["b"]);
    drop(item);
    assert_eq!(all(&queue), ["a"]);
    assert_eq!(queue.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn promise_17_of_several_delays_the_earliest_wins() {
    let queue = queue();
    queue.add_after("a", 3 * SECOND);
    queue.add_after("a", SECOND);
    queue.add_after("a", 2 * SECOND);
    assert_eq!((queue.len(), all(&queue)), (0, vec![]));
    let began = Instant::now();
    assert_eq!(queue.get().await.unwrap().key(), &"a");
    assert_eq!(began.elapsed(), SECOND);
    advance(MINUTE).await;
    assert_eq!(all(&queue), [""; 0], "and no other is left");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_added_without_a_delay_waits_no_more_and_runs_once() {
    let queue = queue();
    queue.add_after("a", MINUTE);
    queue.add("a");
    queue.add_after("a", SECOND);
    assert_eq!(all(&queue), ["a"]);
    advance(2 * MINUTE).await;
    assert_eq!(queue.len(), 0);
    queue.add_after("b", Duration::ZERO);
    assert_eq!(all(&queue), ["b"], "no delay is none");
}

#[tokio::test(start_paused = true)]
async fn a_delay_that_ends_while_a_worker_has_the_key_counts_afterwards() {
    let queue = queue();
    queue.add("a");
    let item = got(&queue).unwrap();
    queue.add_after("a", SECOND);
    advance(MINUTE).await;
    assert_eq!(all(&queue), [""; 0]);
    drop(item);
    assert_eq!(all(&queue), ["a"]);

    queue.add("a");
    let item = got(&queue).unwrap();
    queue.add_after("a", SECOND);
    drop(item);
    assert_eq!(all(&queue), [""; 0], "not before its time");
    advance(SECOND).await;
    assert_eq!(all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_come_in_the_order_of_their_deadlines() {
    let queue = queue();
    for (key, seconds) in [("d", 4), ("b", 2), ("c", 3), ("a", 1), ("e", 4)] {
        queue.add_after(key, seconds * SECOND);
    }
    let began = Instant::now();
    let mut seen = Vec::new();
    for _ in 0..5 {
        let item = queue.get().await.unwrap();
        seen.push((*item.key(), began.elapsed().as_secs()));
    }
    assert_eq!(seen, [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 4)]);
}

#[tokio::test(start_paused = true)]
async fn no_delay_is_too_long() {
    let queue = queue();
    queue.add_after("a", Duration::MAX);
    assert!(ByHand::new(queue.get()).poll().is_pending());
    queue.add("a");
    assert_eq!(all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn more_keys_than_are_made_ready_at_once_are_due_at_once() {
    let queue = WorkQueue::new(Settings::default());
    (0..5000).for_each(|key| queue.add_after(key, Duration::from_micros(5000 - key)));
    advance(SECOND).await;
    assert_eq!(queue.len(), 5000);
    assert!(all(&queue).into_iter().eq((0..5000).rev()));
    (0..5000).for_each(|key| queue.add_after(key, SECOND));
    advance(SECOND).await;
    assert_eq!(all(&queue).len(), 5000);
}

#[test]
fn higher_priorities_go_first_and_each_in_order() {
    let queue = queue();
    for (key, priority) in [
        ("l1", Priority::Low),
        ("n1", Priority::Normal),
        ("h1", Priority::High),
        ("l2", Priority::Low),
        ("n2", Priority::Normal),
        ("h2", Priority::High),
    ] {
        queue.at(priority).add(key);
    }
    assert_eq!(all(&queue), ["h1", "h2", "n1", "n2", "l1", "l2"]);
}

#[test]
fn a_key_whose_priority_is_raised_goes_to_the_end_of_its_new_line() {
    let queue = queue();
    ["l1", "l2", "l3"].into_iter().for_each(|key| queue.at(Priority::Low).add(key));
    ["n1", "n2"].into_iter().for_each(|key| queue.add(key));
    queue.add("l2");
    queue.at(Priority::Low).add("n1");
    let item = got(&queue).unwrap();
    assert_eq!((*item.key(), item.priority()), ("n1", Priority::Normal), "none is lowered");
    drop(item);
    assert_eq!(all(&queue), ["n2", "l2", "l1", "l3"]);
}

#[tokio::test(start_paused = true)]
async fn the_highest_priority_counts_for_delayed_and_running_keys_too() {
    let queue = queue();
    queue.at(Priority::High).add_after("a", SECOND);
    queue.at(Priority::Low).add("a");
    queue.add("b");
    let item = got(&queue).unwrap();
    assert_eq!((*item.key(), item.priority()), ("a", Priority::High));
    queue.at(Priority::Low).add("a");
    queue.at(Priority::High).add_after("a", MINUTE);
    queue.at(Priority::Normal).add("a");
    drop(item);
    assert_eq!(all(&queue), ["a", "b"]);

    queue.at(Priority::High).add("a");
    drop(got(&queue));
    queue.at(Priority::Low).add("a");
    assert_eq!(got(&queue).unwrap().priority(), Priority::Low, "what was is forgotten");
}

#[test]
fn promise_17_a_stream_of_urgent_keys_does_not_starve_the_others() {
    let queue = WorkQueue::new(Settings::default().patience(4));
    (0..100).for_each(|key| queue.at(Priority::Low).add(key));
    let mut low = 0;
    for urgent in 1000..1500 {
        queue.add(urgent);
        low += usize::from(got(&queue).unwrap().priority() == Priority::Low);
    }
    assert_eq!(low, 100);
    let queue = WorkQueue::new(Settings::default());
    (0..100).for_each(|key| queue.at(Priority::Low).add(key));
    (1000..1100).for_each(|key| queue.add(key));
    let first = |queue: &WorkQueue<u32>| (0..100).filter(|_| *got(queue).unwrap().key() >= 1000).count();
    assert_eq!(first(&queue), 90, "nine of ten");
}

#[tokio::test(start_paused = true)]
async fn promise_17_retries_wait_longer_each_time_until_the_key_is_forgotten() {
    let queue = WorkQueue::new(Settings::default().limiter(Exponential::default()));
    queue.add("a");
    let began = Instant::now();
    let mut waits = Vec::new();
    for tries in 0..5 {
        let item = queue.get().await.unwrap();
        waits.push(began.elapsed().as_millis());
        assert_eq!(queue.failures(item.key()), tries);
        item.retry();
    }
    assert_eq!(waits, [0, 5, 15, 35, 75]);
    queue.get().await.unwrap().forget();
    assert_eq!(queue.failures(&"a"), 0);
    assert_eq!(queue.add_rate_limited("a"), Duration::from_millis(5));
    queue.forget(&"a");
    assert_eq!(queue.len(), 0, "it runs all the same");
    advance(SECOND).await;
    assert_eq!(all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_its_priority() {
    let queue = queue();
    queue.at(Priority::Low).add("a");
    got(&queue).unwrap().retry_after(SECOND);
    queue.at(Priority::High).add("b");
    got(&queue).unwrap().retry();
    advance(SECOND).await;
    let priorities: Vec<_> =
        std::iter::from_fn(|| got(&queue).map(|item| (*item.key(), item.priority()))).collect();
    assert_eq!(priorities, [("b", Priority::High), ("a", Priority::Low)]);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_dropped_by_a_panic_is_done() {
    let queue = queue();
    queue.add("a");
    let worker = queue.clone();
    let panicked = tokio::spawn(async move {
        let _item = worker.get().await;
        worker.add("a");
        panic!("a worker's mistake");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    assert_eq!(all(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn promise_17_after_the_end_workers_get_what_is_ready_and_then_nothing() {
    let queue = queue();
    queue.add("a");
    queue.add_after("due", SECOND);
    queue.add_after("late", MINUTE);
    queue.add("running");
    advance(SECOND).await;
    assert_eq!(got(&queue).unwrap().key(), &"a");
    let running = got(&queue).unwrap();
    queue.add_after("running", SECOND);
    assert!(!queue.is_shut_down());
    queue.shut_down();
    assert!(queue.is_shut_down());
    queue.add("b");
    queue.add_after("c", SECOND);
    queue.add_rate_limited("d");
    assert_eq!(queue.get().await.unwrap().key(), &"due");
    assert!(queue.get().await.is_none());
    drop(running);
    advance(MINUTE).await;
    assert!(queue.get().await.is_none(), "what was not due is let go");
    queue.shut_down();
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_are_told_of_the_end() {
    let queue = queue();
    queue.add_after("a", MINUTE);
    let mut gets: Vec<_> = (0..3).map(|_| ByHand::new(queue.get())).collect();
    assert!(gets.iter_mut().all(|get| get.poll().is_pending()));
    queue.shut_down();
    for get in &mut gets {
        assert!(get.woken.times() > 0);
        assert!(matches!(get.poll(), Poll::Ready(None)));
    }
}

#[tokio::test(start_paused = true)]
async fn promise_17_a_drain_waits_until_everything_is_done_also_what_was_added_meanwhile() {
    let queue = queue();
    ["a", "b"].into_iter().for_each(|key| queue.add(key));
    queue.add_after("late", MINUTE);
    let first = got(&queue).unwrap();
    queue.add("a");
    let mut drain = ByHand::new(queue.drain());
    assert!(drain.poll().is_pending());
    queue.add("c");
    let second = got(&queue).unwrap();
    assert_eq!(second.key(), &"b");
    // There will be one more: who asks now waits for it.
    let mut get = ByHand::new(queue.get());
    let mut other = ByHand::new(queue.get());
    assert!(get.poll().is_pending() && other.poll().is_pending());
    drop(second);
    assert!(drain.poll().is_pending());
    drop(first);
    assert!(drain.poll().is_pending(), "it runs once more");
    let Poll::Ready(Some(again)) = get.poll() else { panic!("nothing was got") };
    assert_eq!(again.key(), &"a");
    assert!(other.woken.times() > 0 && matches!(other.poll(), Poll::Ready(None)));
    assert!(drain.poll().is_pending(), "it is not done yet");
    drop(again);
    assert!(drain.woken.times() > 0);
    assert_eq!(drain.poll(), Poll::Ready(true));
    assert!(queue.drain().await, "and once more, at once");
}

#[test]
fn a_drain_is_cut_short_by_a_shut_down() {
    let queue = queue();
    queue.add("a");
    let item = got(&queue).unwrap();
    let (mut one, mut two) = (ByHand::new(queue.drain()), ByHand::new(queue.drain()));
    assert!(one.poll().is_pending() && two.poll().is_pending());
    queue.shut_down();
    assert!(one.woken.times() > 0 && two.woken.times() > 0);
    assert_eq!((one.poll(), two.poll()), (Poll::Ready(false), Poll::Ready(false)));
    let mut drain = ByHand::new(queue.drain());
    assert!(drain.poll().is_pending(), "it can still be waited for");
    drop(item);
    assert_eq!(drain.poll(), Poll::Ready(true));
}

#[tokio::test]
async fn a_worker_that_always_finds_a_key_lets_others_run() {
    let queue = queue();
    queue.add("a");
    let other = tokio::spawn(async {});
    let mut gets = 0;
    while !other.is_finished() && gets < 10_000 {
        drop(queue.get().await);
        queue.add("a");
        gets += 1;
    }
    assert!(other.is_finished());
}

#[tokio::test(start_paused = true)]
async fn one_key_wakes_one_of_those_who_wait() {
    let queue = queue();
    let mut gets: Vec<_> = (0..10).map(|_| ByHand::new(queue.get())).collect();
    assert!(gets.iter_mut().all(|get| get.poll().is_pending()));
    queue.add("a");
    queue.add("a");
    let times = |gets: &[ByHand<'_, _>]| gets.iter().map(|get| get.woken.times()).sum::<usize>();
    assert_eq!(times(&gets), 1);
    let woken = gets.iter_mut().find(|get| get.woken.times() == 1).unwrap();
    assert!(woken.poll().is_ready());
    assert_eq!(times(&gets), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_wakes_one_and_nobody_is_woken_before_it() {
    let queue = queue();
    let mut gets: Vec<_> = (0..10).map(|_| ByHand::new(queue.get())).collect();
    assert!(gets.iter_mut().all(|get| get.poll().is_pending()));
    let times = |gets: &[ByHand<'_, _>]| gets.iter().map(|get| get.woken.times()).sum::<usize>();
    // The first deadline wakes one, to watch the clock; an earlier one wakes the same.
    queue.add_after("a", MINUTE);
    assert_eq!(times(&gets), 1);
    let watcher = gets.iter().position(|get| get.woken.times() == 1).unwrap();
    assert!(gets[watcher].poll().is_pending());
    queue.add_after("b", 30 * SECOND);
    queue.add_after("c", 45 * SECOND);
    assert_eq!((times(&gets), gets[watcher].woken.times()), (2, 2));
    assert!(gets[watcher].poll().is_pending());
    advance(29 * SECOND).await;
    assert_eq!(times(&gets), 2);
    advance(SECOND).await;
    assert_eq!((times(&gets), gets[watcher].woken.times()), (3, 3));
    let Poll::Ready(Some(item)) = gets[watcher].poll() else { panic!("nothing was got") };
    assert_eq!(item.key(), &"b");
    assert_eq!(times(&gets), 4, "another one watches the clock now");
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_waiting_leaves_the_clock_to_another() {
    let queue = queue();
    queue.add_after("a", SECOND);
    let mut watcher = ByHand::new(queue.get());
    let mut other = ByHand::new(queue.get());
    assert!(watcher.poll().is_pending() && other.poll().is_pending());
    drop(watcher);
    assert_eq!(other.woken.times(), 1);
    assert!(other.poll().is_pending());
    advance(SECOND).await;
    assert!(matches!(other.poll(), Poll::Ready(Some(_))));
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_after_being_woken_leaves_the_key_to_another() {
    let queue = queue();
    let mut gets: Vec<_> = (0..2).map(|_| ByHand::new(queue.get())).collect();
    assert!(gets.iter_mut().all(|get| get.poll().is_pending()));
    queue.add("a");
    let woken = gets.iter().position(|get| get.woken.times() == 1).unwrap();
    drop(gets.swap_remove(woken));
    assert_eq!(gets[0].woken.times(), 1);
    assert!(matches!(gets[0].poll(), Poll::Ready(Some(_))));
}

#[test]
fn an_empty_queue_gives_its_room_back() {
    let queue = WorkQueue::new(Settings::default());
    (0..10_000).for_each(|key| queue.add(key));
    assert_eq!(all(&queue).len(), 10_000);
    assert_eq!(queue.shared.lock().state.room(), 0);
    queue.add(1);
    assert_eq!(all(&queue), [1]);
}

#[test]
fn failures_are_remembered_of_a_bounded_number_of_keys() {
    let queue = WorkQueue::new(Settings::default().limiter(Exponential::default().failing_keys(10)));
    for key in 0..100 {
        queue.add_rate_limited(key);
    }
    assert_eq!(queue.shared.limiter().remembered(), Remembered { keys: 10, let_go: 90 });
    assert_eq!((queue.failures(&0), queue.failures(&99)), (0, 1));
}

#[test]
fn handles_and_futures_can_be_sent_to_other_threads() {
    fn sent<T: Send>(_: &T) {}
    fn shared<T: Send + Sync>(_: &T) {}
    let queue = queue();
    shared(&queue);
    sent(&queue.get());
    sent(&queue.drain());
    queue.add("a");
    sent(&got(&queue));
}
