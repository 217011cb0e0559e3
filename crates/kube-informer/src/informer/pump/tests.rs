use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use super::*;
use crate::informer::tests::hand::{Hand, seen};
use crate::informer::{Delivery, Scope};
use crate::queue;

mod schedules;

/// What a reflector tells, and a pump that runs when it is polled.
fn stage(hand: &Hand) -> (ScopeSink, Pump) {
    let (core, applier) = hand.parts();
    let (sender, receiver) = queue::queue(1 << 30);
    let sink = ScopeSink::new(core, 0, None, Arc::clone(&applier), sender);
    (sink, Pump { applier, receiver })
}

/// Polls until it waits for somebody else, or has ended. What a pump has to do takes no more than two turns here.
fn go_on(mut run: Pin<&mut impl Future<Output = ()>>) -> Poll<()> {
    let mut cx = Context::from_waker(Waker::noop());
    let _ = run.as_mut().poll(&mut cx);
    run.as_mut().poll(&mut cx)
}

fn replace(objects: Vec<Object>, version: &str) -> Delta {
    Delta::Replace {
        objects,
        unreadable: Vec::new(),
        complete: true,
        version: version.into(),
        went_back: false,
    }
}

#[tokio::test]
async fn what_comes_while_something_waits_is_applied_after_it() {
    let mut hand = Hand::new(Scope::All);
    let (core, applier) = hand.parts();
    let (mut sink, pump) = stage(&hand);
    let mut events = hand.informer().subscribe().delivery(Delivery::Every(100)).events();
    assert_eq!(seen(&mut events), [""; 0]);

    let (list, changes) =
        (vec![hand.object("a", "a", 1)], [hand.object("a", "a", 5), hand.object("b", "b", 6)]);
    sink.deliver(replace(list, "2")).await.unwrap();
    for object in changes {
        sink.deliver(Delta::Put(object)).await.unwrap();
    }
    sink.flush().await.unwrap();
    // Nobody has taken the list out of the queue.
    assert_eq!(core.cache().list().count(), 0);
    assert!(!applier.is_idle());
    assert_eq!(seen(&mut events), [""; 0]);

    let mut run = pin!(pump.run(&core));
    assert!(go_on(run.as_mut()).is_pending());
    assert_eq!(seen(&mut events), ["+a@1!", "~a@1→5", "+b@6"]);
    assert!(applier.is_idle());

    // Nothing waits any more: what comes now needs nobody else.
    sink.deliver(Delta::Remove(hand.object("b", "b", 7))).await.unwrap();
    assert_eq!(seen(&mut events), [""; 0], "more may come with it");
    sink.flush().await.unwrap();
    assert_eq!(seen(&mut events), ["-b@7"]);

    // A list waits for what came before it, which is on no other way.
    sink.deliver(Delta::Put(hand.object("c", "c", 8))).await.unwrap();
    sink.deliver(replace(vec![hand.object("c", "c", 9)], "10")).await.unwrap();
    assert_eq!(seen(&mut events), ["+c@8"]);
    drop(sink);
    assert!(go_on(run.as_mut()).is_ready());
    assert_eq!(seen(&mut events), ["-a@5?", "~c@8→9"]);
}

#[tokio::test]
async fn what_is_taken_out_of_the_queue_is_waited_for_until_it_is_applied() {
    let mut hand = Hand::new(Scope::All);
    let (core, applier) = hand.parts();
    let (mut sink, mut pump) = stage(&hand);
    sink.deliver(replace(vec![hand.object("a", "a", 1)], "2")).await.unwrap();
    // As the pump does it, but for what it does then.
    let batch = pump.receiver.batch(MOST).await;
    assert_eq!((batch.len(), applier.is_idle()), (1, false));
    sink.deliver(Delta::Put(hand.object("a", "a", 5))).await.unwrap();
    sink.flush().await.unwrap();
    assert_eq!(core.cache().list().count(), 0);
    applier.apply(&core, batch);
    applier.queued.fetch_sub(1, Ordering::Release);
    drop(sink);
    pump.run(&core).await;
    assert_eq!(core.cache().get("d", "a").unwrap().version().to_string(), "5");
}

#[tokio::test]
async fn single_changes_are_applied_64_at_a_time() {
    let mut hand = Hand::new(Scope::All);
    hand.list(&[], 1);
    let (core, _) = hand.parts();
    let (mut sink, _pump) = stage(&hand);
    let turns = core.hub().turns();
    let before = *turns.borrow();
    for number in 1..=150 {
        sink.deliver(Delta::Put(hand.object(&number.to_string(), "u", 1 + number))).await.unwrap();
        let applied = usize::try_from(number).unwrap() / 64 * 64;
        assert_eq!(core.cache().list().count(), applied);
    }
    assert_eq!(*turns.borrow() - before, 2);
    sink.flush().await.unwrap();
    assert_eq!((core.cache().list().count(), *turns.borrow() - before), (150, 3));
    // There is nothing left.
    sink.flush().await.unwrap();
    assert_eq!(*turns.borrow() - before, 3);
}

#[tokio::test]
async fn single_changes_are_applied_when_they_are_a_mebibyte() {
    let mut hand = Hand::new(Scope::All);
    hand.list(&[], 1);
    let (core, _) = hand.parts();
    let (mut sink, _pump) = stage(&hand);
    let mut random = fastrand::Rng::with_seed(7);
    let (mut waiting, mut applied) = (0, 0);
    for number in 1..=20 {
        // Nothing in it is there twice, so that packing helps little.
        let text: String = (0..200_000).map(|_| random.alphanumeric()).collect();
        let more = format!(r#""annotations":{{"text":"{text}"}}"#);
        let object = hand.pod(&number.to_string(), 1 + number, &more);
        waiting += object.size().0 + 256;
        sink.deliver(Delta::Put(object)).await.unwrap();
        if waiting >= 1 << 20 {
            (waiting, applied) = (0, number);
        }
        assert_eq!(core.cache().list().count() as u64, applied);
    }
    assert!((2..20).contains(&applied), "{applied}");
}
