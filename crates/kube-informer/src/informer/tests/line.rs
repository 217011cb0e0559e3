//! Asynchronous handlers that are told something together: called by one task, as long as nobody is held up by that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use kube_informer_testbed::eventually::eventually;
use tokio::sync::{mpsc as channel, oneshot};
use tokio::task::{Id, try_id};

use super::super::*;
use super::SOON;
use super::hand::Hand;

/// What is done with each update, by its version.
struct Does<F>(F);

impl<F: AsyncFnMutSend> Handler<serde_json::Value> for Does<F> {
    async fn updated(&mut self, _: Object, new: Object, _: bool) {
        let version = new.version().to_string().parse().unwrap();
        self.0.call(version).await;
    }
}

/// An asynchronous closure whose future can be sent.
trait AsyncFnMutSend: Send + 'static {
    fn call(&mut self, version: u64) -> impl Future<Output = ()> + Send;
}

impl<F: FnMut(u64) -> R + Send + 'static, R: Future<Output = ()> + Send> AsyncFnMutSend for F {
    fn call(&mut self, version: u64) -> impl Future<Output = ()> + Send {
        self(version)
    }
}

fn handle<R: Future<Output = ()> + Send + 'static>(
    informer: &Informer,
    name: &str,
    act: impl FnMut(u64) -> R + Send + 'static,
) -> Registration {
    informer.subscribe().name(name).delivery(Delivery::Every(1 << 20)).handler(Does(act))
}

type Told = channel::UnboundedReceiver<(usize, u64, Option<Id>)>;

/// Handlers that say who they are, which version they were told, and in which task.
fn tellers(informer: &Informer, count: usize) -> (Vec<Registration>, Told) {
    let (told, hear) = channel::unbounded_channel();
    let one = |number| {
        let told = told.clone();
        handle(informer, &format!("teller-{number}"), move |version| {
            // Nobody may listen any more.
            let _ = told.send((number, version, try_id()));
            std::future::ready(())
        })
    };
    ((0..count).map(one).collect(), hear)
}

async fn begin(hand: &mut Hand, registrations: impl IntoIterator<Item = &Registration>) {
    hand.list(&[("a", 1)], 1);
    for registration in registrations {
        registration.synced(SOON).await.unwrap();
    }
}

/// The tasks in which so many were told this version.
async fn tasks(hear: &mut Told, count: usize, version: u64) -> BTreeMap<usize, Id> {
    let mut all = BTreeMap::new();
    while all.len() < count {
        let (number, told, task) = hear.recv().await.unwrap();
        assert_eq!((told, all.insert(number, task.unwrap())), (version, None));
    }
    all
}

#[tokio::test]
async fn ten_handlers_are_called_in_one_task() {
    let mut hand = Hand::new(Scope::All);
    let (tellers, mut hear) = tellers(&hand.informer(), 10);
    begin(&mut hand, &tellers).await;
    for version in 2..5 {
        hand.put("a", version);
        let tasks = tasks(&mut hear, 10, version).await;
        assert_eq!(BTreeSet::from_iter(tasks.values()).len(), 1, "{tasks:?}");
    }
}

#[tokio::test]
async fn one_that_takes_long_is_called_in_its_own_task_and_the_others_are_not() {
    let mut hand = Hand::new(Scope::All);
    let (tellers, mut hear) = tellers(&hand.informer(), 10);
    begin(&mut hand, &tellers).await;
    let mailboxes = hand.informer().core().hub().mailboxes();
    let slow = mailboxes.iter().find(|mailbox| *mailbox.name == *"teller-3").unwrap();
    slow.calls.add(Duration::from_secs(1));
    let mut own = BTreeSet::new();
    for version in 2..5 {
        hand.put("a", version);
        let mut tasks = tasks(&mut hear, 10, version).await;
        own.extend(tasks.remove(&3));
        let others = BTreeSet::from_iter(tasks.into_values());
        assert_eq!((others.len(), own.len()), (1, 1));
        assert!(others.is_disjoint(&own));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_09_each_of_many_handlers_is_told_every_change_in_order() {
    const HANDLERS: usize = 12;
    const LAST: u64 = 1500;
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let (told, mut hear) = channel::unbounded_channel();
    let one = |number: usize| {
        let told = told.clone();
        handle(&informer, "each", move |version| {
            let told = told.clone();
            async move {
                // Some go on by themselves, some wait for something else, some take their time.
                match (number % 4, version % 7) {
                    (1, 0) => tokio::task::yield_now().await,
                    // tidy: allow-sleep a timer that wakes a handler
                    (2, 0) => tokio::time::sleep(Duration::from_micros(50)).await,
                    (3, 0) => (0..2000).for_each(|_| std::hint::spin_loop()),
                    _ => {}
                }
                told.send((number, version)).unwrap();
            }
        })
    };
    let registrations: Vec<_> = (0..HANDLERS).map(one).collect();
    begin(&mut hand, &registrations).await;
    let writer = tokio::spawn(async move {
        for version in 2..=LAST {
            hand.put("a", version);
            if version % 3 == 0 {
                tokio::task::yield_now().await;
            }
        }
        hand
    });
    let mut last = [1; HANDLERS];
    while last != [LAST; HANDLERS] {
        let (number, version) = timeout(SOON, hear.recv()).await.unwrap().unwrap();
        assert_eq!(version, last[number] + 1, "{number}");
        last[number] = version;
    }
    writer.await.unwrap();
    assert_eq!(informer.core().stop(SOON).await, [""; 0]);
}

#[tokio::test]
async fn promise_10_a_handler_that_waits_for_something_holds_up_no_other() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let (said, mut hear_waiting) = channel::unbounded_channel();
    let (go, gate) = oneshot::channel::<()>();
    let mut gate = Some(gate);
    let waits = handle(&informer, "waits", move |version| {
        let (gate, said) = (gate.take(), said.clone());
        async move {
            if let Some(gate) = gate {
                gate.await.unwrap();
            }
            said.send(version).unwrap();
        }
    });
    let (tellers, mut hear) = tellers(&informer, 3);
    begin(&mut hand, tellers.iter().chain([&waits])).await;
    for version in 2..5 {
        hand.put("a", version);
        assert_eq!(tasks(&mut hear, 3, version).await.len(), 3);
    }
    assert!(hear_waiting.try_recv().is_err());
    go.send(()).unwrap();
    for version in 2..5 {
        assert_eq!(hear_waiting.recv().await, Some(version));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promise_10_a_handler_that_blocks_its_thread_lets_others_go_on() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    // One before it, which waits for something else when it blocks; and some behind it.
    let (go, gate) = oneshot::channel::<()>();
    let (said, went_on) = oneshot::channel();
    let mut both = Some((gate, said));
    let waits = handle(&informer, "waits", move |_| {
        let both = both.take();
        async move {
            if let Some((gate, said)) = both {
                gate.await.unwrap();
                said.send(()).unwrap();
            }
        }
    });
    let (entered, is_in) = oneshot::channel();
    let (release, blocked) = mpsc::channel::<()>();
    let mut once = Some((entered, blocked));
    let blocks = handle(&informer, "blocks", move |_| {
        let once = once.take();
        async move {
            if let Some((entered, blocked)) = once {
                entered.send(()).unwrap();
                blocked.recv().unwrap();
            }
        }
    });
    let (tellers, mut hear) = tellers(&informer, 3);
    begin(&mut hand, tellers.iter().chain([&waits, &blocks])).await;
    hand.put("a", 2);
    is_in.await.unwrap();
    for version in 2..6 {
        let all = timeout(SOON, tasks(&mut hear, 3, version)).await.unwrap();
        assert_eq!(all.len(), 3);
        hand.put("a", version + 1);
    }
    go.send(()).unwrap();
    timeout(SOON, went_on).await.unwrap().unwrap();
    release.send(()).unwrap();
    blocks.remove(SOON).await.unwrap();
    assert_eq!(informer.core().stop(SOON).await, [""; 0]);
}

#[tokio::test]
async fn promise_12_one_handler_may_remove_the_next_and_itself() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let (said, mut hear_end) = channel::unbounded_channel();
    let victims = Arc::new(Mutex::new(Vec::new()));
    let removes = {
        let victims = Arc::clone(&victims);
        handle(&informer, "removes", move |_| {
            let (victims, said) = (std::mem::take(&mut *victims.lock().unwrap()), said.clone());
            async move {
                for victim in victims {
                    let victim: Registration = victim;
                    let name = victim.name().to_owned();
                    said.send((name, victim.remove(SOON * 10).await)).unwrap();
                }
            }
        })
    };
    let (mut tellers, mut hear) = tellers(&informer, 4);
    begin(&mut hand, tellers.iter().chain([&removes])).await;
    victims.lock().unwrap().extend([tellers.remove(1), removes]);
    hand.put("a", 2);
    let (name, end) = timeout(SOON, hear_end.recv()).await.unwrap().unwrap();
    assert_eq!((name.as_str(), end), ("teller-1", Ok(())));
    // Whoever cannot wait for itself is told so at once.
    let (name, end) = timeout(SOON, hear_end.recv()).await.unwrap().unwrap();
    assert_eq!(name, "removes");
    assert!(matches!(end, Err(RegistrationError::Busy { .. })), "{end:?}");
    assert!(hear_end.recv().await.is_none(), "it is gone");
    let told: BTreeSet<_> = tasks(&mut hear, 3, 2).await.into_keys().collect();
    assert_eq!(told, BTreeSet::from([0, 2, 3]), "the one that was removed is not told");
    hand.put("a", 3);
    assert_eq!(tasks(&mut hear, 3, 3).await.len(), 3);
    assert_eq!(informer.core().hub().mailboxes().len(), 3);
}

#[test]
fn promise_12_no_task_and_no_thread_is_left_of_handlers_in_a_line() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut hand = Hand::new(Scope::All);
        let informer = hand.informer();
        let (tellers, mut hear) = tellers(&informer, 4);
        begin(&mut hand, &tellers).await;
        (2..50).for_each(|version| hand.put("a", version));
        assert!(hear.recv().await.is_some());
        assert_eq!(informer.core().stop(SOON).await, [""; 0]);
        let metrics = runtime.metrics();
        eventually("no task is left", SOON, async || (metrics.num_alive_tasks() == 0).then_some(())).await;
        let hub = informer.core().hub();
        // Not only because there was nothing to do for a while.
        eventually("no thread is left", SOON / 4, async || (!hub.is_watched()).then_some(())).await;
    });
}

#[tokio::test]
async fn a_runtime_that_ends_takes_handlers_in_a_line_with_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut hand, registrations, mut hear) = {
        let _entered = runtime.enter();
        let hand = Hand::new(Scope::All);
        let (registrations, hear) = tellers(&hand.informer(), 4);
        (hand, registrations, hear)
    };
    let (mut hand, registrations) = std::thread::spawn(move || {
        runtime.block_on(begin(&mut hand, &registrations));
        // They stand in the line, and nobody comes.
        hand.put("a", 2);
        drop(runtime);
        (hand, registrations)
    })
    .join()
    .unwrap();
    assert!(hear.recv().await.is_none(), "all are dropped");
    hand.put("a", 3);
    for registration in registrations {
        registration.remove(SOON).await.unwrap();
    }
}
