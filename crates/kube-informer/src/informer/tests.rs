//! The promises about handlers, with a cache that is written by hand.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use tokio::time::{Instant, timeout};

use self::hand::{Hand, seen};
use super::*;
use crate::reflector::{Delta, Sink};

mod delivery;
pub(crate) mod hand;
mod health;
mod line;
mod overlong;
mod strangers;

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn promise_08_a_handler_finds_the_cache_at_its_event_or_later() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let (told, hear) = mpsc::channel();
    let looks = informer.clone();
    let registration = informer.on(move |event| {
        let object = event.object().unwrap().clone();
        let found = looks.get(object.namespace(), object.name());
        let is_there = match event {
            Event::Deleted { .. } => found.is_none_or(|found| found.version() > object.version()),
            // That one may be gone by now; nothing else is ever removed.
            _ => found.map_or(object.name() == "a", |found| found.version() >= object.version()),
        };
        told.send((object.name().to_owned(), is_there)).unwrap();
    });
    hand.list(&[("a", 1)], 1);
    for version in 2..200 {
        hand.put("a", version);
        hand.put("b", version + 1000);
    }
    hand.remove("a", 5000);
    registration.synced(SOON).await.unwrap();
    registration.remove(SOON).await.unwrap();
    let all: Vec<(String, bool)> = hear.iter().collect();
    assert!(!all.is_empty() && all.iter().all(|(_, is_there)| *is_there), "{all:?}");
}

#[tokio::test]
async fn promise_09_initial_objects_come_first_then_changes_with_their_old_objects() {
    let mut hand = Hand::new(Scope::All);
    let mut events = hand.informer().events();
    hand.list(&[("a", 1), ("b", 2)], 3);
    hand.put("a", 4);
    hand.remove("b", 5);
    hand.put("c", 6);
    // Nothing was taken yet: what is over already is not told.
    assert_eq!(seen(&mut events), ["+a@4!", "+c@6!"]);
    hand.put("a", 7);
    hand.remove("c", 8);
    assert_eq!(seen(&mut events), ["~a@4→7", "-c@8"]);
}

#[tokio::test]
async fn promise_09_a_late_registration_gets_the_whole_cache_first() {
    let mut hand = Hand::new(Scope::All);
    let mut early = hand.informer().events();
    assert_eq!(seen(&mut early), [""; 0]);
    hand.list(&[("a", 1), ("b", 2)], 3);
    assert_eq!(seen(&mut early), ["+a@1!", "+b@2!"]);
    hand.put("a", 4);
    let mut late = hand.informer().events();
    assert_eq!(seen(&mut late), ["+a@4!", "+b@2!"]);
    assert_eq!(seen(&mut early), ["~a@1→4"]);
    hand.put("b", 5);
    assert_eq!(seen(&mut late), ["~b@2→5"]);
    assert_eq!(seen(&mut early), ["~b@2→5"]);
}

#[tokio::test]
async fn promise_09_a_registration_is_synced_when_it_has_handled_the_initial_objects() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let (go, gate) = mpsc::channel::<()>();
    let registration = informer.on(move |_| gate.recv().unwrap());
    hand.list(&[("a", 1), ("b", 2)], 3);
    informer.synced(SOON).await.unwrap();
    assert!(informer.is_synced() && !registration.is_synced());
    go.send(()).unwrap();
    let error = registration.synced(Duration::from_millis(1)).await.unwrap_err();
    assert!(matches!(error, RegistrationError::NotSynced { .. }), "{error}");
    go.send(()).unwrap();
    registration.synced(SOON).await.unwrap();
    registration.remove(SOON).await.unwrap();
}

#[tokio::test]
async fn promise_09_a_registration_of_an_empty_list_is_synced() {
    let mut hand = Hand::new(Scope::All);
    let registration = hand.informer().on(|_| {});
    hand.list(&[], 3);
    registration.synced(SOON).await.unwrap();
}

#[tokio::test]
async fn promise_10_a_stuck_handler_holds_up_nobody() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let (go, gate) = mpsc::channel::<()>();
    let stuck = informer.on(move |_| {
        let _ = gate.recv();
    });
    hand.list(&[("a", 1)], 1);
    let mut other = informer.subscribe().delivery(Delivery::Every(10_000)).events();
    assert_eq!(seen(&mut other), ["+a@1!"]);
    for version in 2..5000 {
        hand.put("a", version);
    }
    assert_eq!(seen(&mut other).len(), 4998);
    assert_eq!(informer.get("d", "a").unwrap().version().to_string(), "4999");
    // One event per object waits for it, not five thousand.
    assert!(stuck.stats().backlog <= 1025, "{:?}", stuck.stats());
    drop(go);
    stuck.remove(SOON).await.unwrap();
}

#[tokio::test]
async fn promise_10_a_handler_that_panics_is_told_the_next_event() {
    struct Nervous(mpsc::Sender<String>);
    impl Handler<serde_json::Value> for Nervous {
        async fn added(&mut self, new: Object, _: bool) {
            assert!(new.name() != "a", "this is a");
            self.0.send(new.name().to_owned()).unwrap();
        }
    }
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let (told, hear) = mpsc::channel();
    let closure = told.clone();
    let registrations = [
        informer.handler(Nervous(told)),
        informer.on(move |event| {
            let name = event.object().unwrap().name().to_owned();
            assert!(name != "a", "this is a");
            closure.send(name).unwrap();
        }),
    ];
    hand.list(&[("a", 1), ("b", 2)], 3);
    for registration in registrations {
        registration.synced(SOON).await.unwrap();
        let stats = registration.stats();
        assert_eq!((stats.panics, stats.handled), (1, 2));
        registration.remove(SOON).await.unwrap();
    }
    assert_eq!(hear.iter().collect::<Vec<_>>(), ["b", "b"]);
}

#[tokio::test(start_paused = true)]
async fn promise_11_everything_is_said_again_at_each_registrations_own_period() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let every = |seconds| informer.subscribe().resync(Duration::from_secs(seconds)).events();
    let (mut never, mut two, mut three) = (every(0), every(2), every(3));
    hand.list(&[("a", 1), ("b", 2)], 3);
    for events in [&mut never, &mut two, &mut three] {
        assert_eq!(seen(events), ["+a@1!", "+b@2!"]);
    }
    tokio::time::advance(Duration::from_millis(2100)).await;
    assert_eq!(seen(&mut two), ["=a@1", "=b@2"]);
    assert_eq!((seen(&mut never).len(), seen(&mut three).len()), (0, 0));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(seen(&mut three), ["=a@1", "=b@2"]);
    assert_eq!((seen(&mut never).len(), seen(&mut two).len()), (0, 0));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(seen(&mut two), ["=a@1", "=b@2"]);
}

#[tokio::test(start_paused = true)]
async fn promise_11_what_has_changed_is_not_said_again_with_its_old_state() {
    let mut hand = Hand::new(Scope::All);
    let mut events = hand.informer().subscribe().resync(Duration::from_secs(2)).events();
    hand.list(&[("a", 1), ("b", 2), ("c", 3)], 3);
    assert_eq!(seen(&mut events).len(), 3);
    tokio::time::advance(Duration::from_millis(2100)).await;
    assert_eq!(hand::one(&mut events), Some("=a@1".to_owned()));
    hand.put("b", 4);
    hand.remove("c", 5);
    assert_eq!(seen(&mut events), ["~b@2→4", "-c@5"]);
}

#[tokio::test]
async fn promise_12_nothing_is_called_after_a_removal() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let (go, gate) = mpsc::channel::<()>();
    let (told, hear) = mpsc::channel();
    let registration = informer.on(move |_| {
        told.send(()).unwrap();
        gate.recv().unwrap();
    });
    hand.list(&[("a", 1), ("b", 2)], 3);
    hear.recv().unwrap();
    let error = registration.remove(Duration::from_millis(1)).await.unwrap_err();
    assert!(matches!(error, RegistrationError::Busy { .. }), "{error}");
    go.send(()).unwrap();
    // The thread ends, and what it told with.
    assert!(hear.recv().is_err());
}

#[tokio::test]
async fn promise_12_a_handler_that_panics_while_its_end_is_awaited_has_ended() {
    struct Nervous(mpsc::Sender<()>, Option<tokio::sync::oneshot::Receiver<()>>);
    impl Handler<serde_json::Value> for Nervous {
        async fn added(&mut self, _: Object, _: bool) {
            self.0.send(()).unwrap();
            self.1.take().unwrap().await.unwrap();
            panic!("at the end");
        }
    }
    for is_closure in [true, false] {
        let mut hand = Hand::new(Scope::All);
        let (told, hear) = mpsc::channel();
        let (go, gate) = tokio::sync::oneshot::channel();
        let registration = if is_closure {
            let mut gate = Some(gate);
            hand.informer().on(move |_| {
                told.send(()).unwrap();
                gate.take().unwrap().blocking_recv().unwrap();
                panic!("at the end");
            })
        } else {
            hand.informer().handler(Nervous(told, Some(gate)))
        };
        hand.list(&[("a", 1), ("b", 2)], 3);
        while hear.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
        let mut removal = std::pin::pin!(registration.remove(SOON));
        assert!(futures_util::FutureExt::now_or_never(removal.as_mut()).is_none(), "it is in a call");
        go.send(()).unwrap();
        removal.await.unwrap();
        // It was called once, and is gone.
        assert_eq!(hear.try_recv(), Err(mpsc::TryRecvError::Disconnected));
        assert_eq!(hand.informer().core().hub().mailboxes().len(), 0);
    }
}

#[tokio::test]
async fn promise_12_an_asynchronous_handler_that_is_stuck_is_dropped() {
    struct Stuck(#[expect(dead_code, reason = "it is dropped with the handler")] mpsc::Sender<()>);
    impl Handler<serde_json::Value> for Stuck {
        async fn added(&mut self, _: Object, _: bool) {
            std::future::pending::<()>().await;
        }
    }
    let mut hand = Hand::new(Scope::All);
    let (told, hear) = mpsc::channel();
    let registration = hand.informer().handler(Stuck(told));
    hand.list(&[("a", 1)], 3);
    registration.remove(Duration::from_millis(1)).await.unwrap();
    assert!(hear.recv().is_err());
}

#[tokio::test]
async fn promise_12_a_stopped_informer_ends_streams_and_handlers() {
    let mut hand = Hand::new(Scope::namespaces(["d", "e"]));
    let informer = hand.informer();
    let mut events = informer.events();
    let registration = informer.on(|_| {});
    // Of one namespace of two: nobody can be synced.
    hand.list(&[("a", 1)], 3);
    assert_eq!(informer.core().stop(SOON).await, [""; 0]);
    assert!(events.next().await.is_none());
    let error = registration.synced(SOON).await.unwrap_err();
    assert!(matches!(error, RegistrationError::Ended { .. }), "{error}");
    assert_eq!(informer.health().state, State::Stopped);
    // What was known can still be read.
    assert_eq!(informer.list().count(), 1);
}

#[tokio::test]
async fn promise_12_who_registers_with_a_stopped_informer_is_told_nothing_and_ends() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    hand.list(&[("a", 1)], 3);
    assert_eq!(informer.core().stop(Duration::MAX).await, [""; 0]);
    let (told, hear) = mpsc::channel();
    let registration = informer.on(move |_| told.send(()).unwrap());
    assert!(hear.recv().is_err());
    assert!(informer.events().next().await.is_none());
    registration.remove(Duration::MAX).await.unwrap();
}

#[tokio::test]
async fn promise_12_whoever_gave_up_waiting_for_an_end_can_wait_again() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let (go, gate) = mpsc::channel::<()>();
    let (told, hear) = mpsc::channel();
    informer.subscribe().name("stuck").on(move |_| {
        told.send(()).unwrap();
        let _ = gate.recv();
    });
    hand.list(&[("a", 1)], 3);
    hear.recv().unwrap();
    for _ in 0..2 {
        assert_eq!(informer.core().stop(Duration::from_millis(1)).await, ["stuck"]);
    }
    drop(go);
    assert_eq!(informer.core().stop(SOON).await, [""; 0]);
}

#[tokio::test]
async fn promise_12_a_handler_that_ends_itself_does_not_wait_for_itself() {
    struct Last(Informer, tokio::sync::mpsc::UnboundedSender<Vec<String>>);
    impl Handler<serde_json::Value> for Last {
        async fn added(&mut self, _: Object, _: bool) {
            self.1.send(self.0.core().stop(SOON).await).unwrap();
        }
    }
    for is_closure in [true, false] {
        let (told, mut hear) = tokio::sync::mpsc::unbounded_channel();
        let mut hand = Hand::new(Scope::All);
        let informer = hand.informer();
        let subscription = informer.subscribe().name("last");
        if is_closure {
            let (informer, runtime) = (informer.clone(), tokio::runtime::Handle::current());
            subscription.on(move |_| told.send(runtime.block_on(informer.core().stop(SOON))).unwrap());
        } else {
            subscription.handler(Last(informer.clone(), told));
        }
        hand.list(&[("a", 1)], 3);
        assert_eq!(timeout(SOON / 2, hear.recv()).await.unwrap().unwrap(), ["last"]);
        // It is told nothing more, and ends.
        assert_eq!(hear.recv().await, None);
    }
}

#[tokio::test]
async fn promise_12_a_dropped_stream_ends_its_registration_and_a_dropped_registration_goes_on() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let events = informer.events();
    let (told, hear) = mpsc::channel();
    drop(informer.on(move |_| told.send(()).unwrap()));
    assert_eq!(informer.core().hub().mailboxes().len(), 2);
    drop(events);
    assert_eq!(informer.core().hub().mailboxes().len(), 1);
    hand.list(&[("a", 1)], 3);
    hear.recv().unwrap();
}

#[tokio::test(start_paused = true)]
async fn promise_14_what_was_written_can_be_waited_for() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let pods = || Resource::of::<Pod>();
    let written = |version: &str| Written::new(pods(), "d", version);
    hand.list(&[("a", 1)], 3);
    informer.caught_up(&written("3"), Duration::ZERO).await.unwrap();
    let waiting = {
        let informer = informer.clone();
        tokio::spawn(
            async move { informer.caught_up(&Written::new(Resource::of::<Pod>(), "d", "7"), SOON).await },
        )
    };
    tokio::task::yield_now().await;
    hand.progress(8);
    waiting.await.unwrap().unwrap();
    let error = informer.caught_up(&written("9"), SOON).await.unwrap_err();
    assert!(matches!(error, CaughtUpError::Deadline { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn promise_14_what_never_arrives_is_an_error_at_once() {
    let mut hand = Hand::new(Scope::namespace("d"));
    let informer = hand.informer();
    hand.list(&[("a", 1)], 3);
    let begun = Instant::now();
    for (resource, namespace, version) in [
        (Resource::of::<ConfigMap>(), "d", "9"),
        (Resource::of::<Pod>(), "elsewhere", "9"),
        (Resource::of::<Pod>(), "d", "not-a-number"),
        (Resource::of::<Pod>(), "d", ""),
    ] {
        let error = informer.caught_up(&Written::new(resource, namespace, version), SOON).await.unwrap_err();
        assert!(!matches!(error, CaughtUpError::Deadline { .. }), "{error}");
    }
    let mut pod = Pod::default();
    pod.metadata.namespace = Some("d".to_owned());
    pod.metadata.resource_version = Some("3".to_owned());
    informer.caught_up(&Written::of(&pod), SOON).await.unwrap();

    // Of one object, no version of another one is ever seen.
    let mut hand = Hand::new(Scope::object("d", "a"));
    let informer = hand.informer();
    hand.list(&[("a", 1)], 3);
    let of = |name: &str, version: &str| Written::new(Resource::of::<Pod>(), "d", version).named(name);
    for version in ["2", "9"] {
        let error = informer.caught_up(&of("b", version), SOON).await.unwrap_err();
        assert!(matches!(error, CaughtUpError::OtherObject { .. }), "{error}");
        assert!(error.to_string().contains("\"b\"") && error.to_string().contains("d/a"), "{error}");
    }
    informer.caught_up(&of("a", "3"), SOON).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn what_is_on_its_way_to_the_cache_is_counted() {
    let spec = spec::Spec::new(Resource::of::<Pod>(), Scope::All);
    let callers = callers::Callers::new(tokio::runtime::Handle::current());
    let core = Core::new("pods".into(), spec, Default::default(), Duration::ZERO, callers);
    let (sender, pump) = core.take_queue().unwrap();
    let applier = pump.applier();
    let mut sink = pump::ScopeSink::new(Arc::clone(&core), 0, None, applier, sender);
    let on_the_way = || (core.stats().queue_length, core.stats().queue_bytes);
    assert_eq!(on_the_way(), (0, 0));
    // A list, and what comes while that waits.
    let list = Delta::Replace {
        objects: Vec::new(),
        unreadable: Vec::new(),
        complete: true,
        version: "3".into(),
        went_back: false,
    };
    sink.deliver(list).await.unwrap();
    let (length, bytes) = on_the_way();
    assert!(length == 1 && bytes > 0, "{length}, {bytes}");
    sink.deliver(Delta::Progress("4".into())).await.unwrap();
    sink.flush().await.unwrap();
    assert_eq!(on_the_way(), (2, 2 * bytes));
    drop(sink);
    pump.run(&core).await;
    assert_eq!(on_the_way(), (0, 0));
    assert_eq!(core.stats().versions, [(String::new(), "4".to_owned())]);
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_said_at_once() {
    for (scope, says) in [
        (Scope::Namespaces([].into()), "no namespace"),
        (Scope::namespace("a/b"), "not a name"),
        (Scope::object("d", ""), "not a name"),
        (Scope::object("", "x"), "name that of"),
    ] {
        let spec = spec::Spec::new(Resource::of::<Pod>(), scope);
        assert!(spec.problem().unwrap().contains(says), "{spec:?}");
    }
    let nodes = || Resource::of::<k8s_openapi::api::core::v1::Node>();
    assert!(spec::Spec::new(nodes(), Scope::namespace("a")).problem().unwrap().contains("Scope::All"));
    assert!(spec::Spec::new(nodes(), Scope::object("a", "b")).problem().unwrap().contains("leave out"));
    assert_eq!(spec::Spec::new(nodes(), Scope::object("", "b")).problem(), None);
}

#[tokio::test]
async fn closures_may_block_and_spawn() {
    let mut hand = Hand::new(Scope::All);
    let (told, hear) = mpsc::channel();
    let runtime = tokio::runtime::Handle::current();
    let registration = hand.informer().on(move |_| {
        let told = told.clone();
        let spawned = tokio::spawn(async move { told.send(()).unwrap() });
        runtime.block_on(spawned).unwrap();
    });
    hand.list(&[("a", 1)], 3);
    timeout(SOON, registration.synced(SOON)).await.unwrap().unwrap();
    hear.recv().unwrap();
}

#[test]
fn informers_are_cheap_to_share() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Informer<Pod>>();
    shared::<Informer>();
    let _: fn(&Informer) -> Arc<Core> = |informer| Arc::clone(informer.core());
}
