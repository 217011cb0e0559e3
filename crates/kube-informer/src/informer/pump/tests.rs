use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Wake, Waker};

use futures_core::Stream;

use super::*;
use crate::encoding::Encoding;
use crate::informer::tests::hand::{Hand, seen};
use crate::informer::{Delivery, Events, Scope};
use crate::queue;
use crate::reflector::Why;

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

/// Somebody who waits, and notes what health says of each scope when there is something to take.
struct Waiting {
    core: Arc<Core>,
    health: std::sync::Mutex<Vec<Vec<&'static str>>>,
}

impl Waiting {
    fn for_events(core: &Arc<Core>, events: &mut Events<serde_json::Value>) -> Arc<Self> {
        let waiting = Arc::new(Self { core: Arc::clone(core), health: std::sync::Mutex::default() });
        let waker = Waker::from(Arc::clone(&waiting));
        assert!(Pin::new(events).poll_next(&mut Context::from_waker(&waker)).is_pending());
        waiting
    }

    fn health(&self) -> Vec<Vec<&'static str>> {
        self.health.lock().unwrap().clone()
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.health.lock().unwrap().push(states(&self.core));
    }
}

fn states(core: &Core) -> Vec<&'static str> {
    core.board().health().scopes.iter().map(|(_, state)| state.as_str()).collect()
}

/// What a reflector says that has listed, and watches.
fn listed(sink: &ScopeSink) {
    let encoding = Encoding::Json;
    sink.report(Report::Listed { objects: 1, encoding, streaming: true, version: "9".into() });
    sink.report(Report::Watching { encoding });
}

#[tokio::test]
async fn promise_10_lists_and_what_comes_with_them_are_told_in_one_turn_and_are_no_gap() {
    let mut hand = Hand::new(Scope::All);
    let (core, _) = hand.parts();
    let (mut sink, pump) = stage(&hand);
    hand.list(&[("a", 1), ("b", 2), ("c", 3)], 3);
    listed(&sink);
    assert_eq!(states(&core), ["live"]);
    let mut events = hand.informer().subscribe().delivery(Delivery::Every(1)).events();
    assert_eq!(seen(&mut events).len(), 3);
    let waiting = Waiting::for_events(&core, &mut events);
    let turns = core.hub().turns();
    let before = *turns.borrow();

    let mut objects = |all: &[(&str, u64)]| -> Vec<Object> {
        all.iter().map(|(name, version)| hand.object(name, name, *version)).collect()
    };
    for (list, version, then) in [
        (objects(&[("a", 4), ("b", 2)]), "10", objects(&[("a", 11), ("d", 12)])),
        (objects(&[("a", 13), ("d", 12), ("e", 13)]), "14", objects(&[("e", 15)])),
    ] {
        sink.report(Report::Listing(Why::Expired));
        sink.deliver(replace(list, version)).await.unwrap();
        listed(&sink);
        for object in then {
            sink.deliver(Delta::Put(object)).await.unwrap();
        }
        sink.flush().await.unwrap();
    }
    // Nobody has taken anything out of the queue.
    assert_eq!((*turns.borrow(), states(&core)), (before, vec!["stale"]));

    let mut run = pin!(pump.run(&core));
    assert!(go_on(run.as_mut()).is_pending());
    assert_eq!(*turns.borrow() - before, 1);
    // Whoever is told finds the cache as it is, of which health did not speak too early.
    assert_eq!((waiting.health(), states(&core)), (vec![vec!["stale"]], vec!["live"]));
    assert_eq!(
        seen(&mut events),
        ["-c@3?", "~a@1→4", "~a@4→11", "+d@12", "-b@2?", "~a@11→13", "+e@13", "~e@13→15"]
    );
    assert_eq!((events.stats().gaps, events.stats().missed), (0, 0));
    drop(sink);
    run.await;
}

#[tokio::test]
async fn promise_10_lists_of_two_scopes_that_wait_together_are_told_in_one_turn_and_each_is_current_then() {
    let mut hand = Hand::new(Scope::namespaces(["d", "e"]));
    let (core, applier) = hand.parts();
    let (sender, receiver) = queue::queue(1 << 30);
    let mut sinks = ["d", "e"].map(|namespace| {
        let scope = usize::from(namespace == "e");
        let namespace = Some(Arc::from(namespace));
        ScopeSink::new(Arc::clone(&core), scope, namespace, Arc::clone(&applier), sender.clone())
    });
    drop(sender);
    let informer = hand.informer();
    let mut object = |name: &str, namespace: &str, version: u64| {
        hand.read(&format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}","uid":"{name}","resourceVersion":"{version}"}}}}"#
        ))
    };
    let mut events = informer.subscribe().delivery(Delivery::Every(1)).events();
    let pump = Pump { applier, receiver };
    let mut run = pin!(pump.run(&core));
    for (sink, (name, namespace)) in sinks.iter_mut().zip([("a", "d"), ("x", "e")]) {
        sink.deliver(replace(vec![object(name, namespace, 1)], "2")).await.unwrap();
        listed(sink);
    }
    assert!(go_on(run.as_mut()).is_pending());
    assert_eq!(states(&core), ["live", "live"]);
    assert_eq!(seen(&mut events).len(), 2);
    let waiting = Waiting::for_events(&core, &mut events);
    let turns = core.hub().turns();
    let before = *turns.borrow();

    for (sink, (name, namespace)) in sinks.iter_mut().zip([("a", "d"), ("x", "e")]) {
        sink.report(Report::Listing(Why::Expired));
        sink.deliver(replace(vec![object(name, namespace, 3)], "4")).await.unwrap();
        listed(sink);
        sink.deliver(Delta::Put(object(name, namespace, 5))).await.unwrap();
        sink.flush().await.unwrap();
    }
    assert_eq!((*turns.borrow(), states(&core)), (before, vec!["stale", "stale"]));
    assert!(go_on(run.as_mut()).is_pending());
    assert_eq!(*turns.borrow() - before, 1);
    assert_eq!((waiting.health(), states(&core)), (vec![vec!["stale", "stale"]], vec!["live", "live"]));
    assert_eq!(seen(&mut events), ["~a@1→3", "~a@3→5", "~x@1→3", "~x@3→5"]);
    assert_eq!(events.stats().gaps, 0);
    let snapshot = core.cache().snapshot();
    assert_eq!(["d", "e"].map(|namespace| snapshot.version(namespace).unwrap().to_string()), ["5", "5"]);
    drop(sinks);
    run.await;
}
