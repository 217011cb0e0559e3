//! Reflectors of several scopes and the pump, in every order that a scheduler thinks of: at each look whether something is queued,
//! and at each lock on the way to the cache, it chooses who goes on. A schedule in which somebody waits for ever is a failure, and
//! is printed so that it can be played again.
//!
//! The queue between them is the real one: to put something in, or to take out what there is, is one step here.

use k8s_openapi::api::core::v1::Pod;
use shuttle::{future::block_on, thread};

use super::*;
use crate::encoding::Encoding;
use crate::informer::spec::Spec;
use crate::object::Intake;
use crate::resource::Resource;
use crate::sync::{in_many_schedules, unscheduled};

const SCOPES: [&str; 2] = ["d", "e"];

/// What a reflector does, one after the other.
enum Step {
    Deliver(Delta),
    /// Nothing else has come.
    Flush,
}

/// Lists, single changes and words that nothing happened; those that come together, and those that come alone.
fn steps(namespace: &str) -> Vec<Step> {
    let spec = Spec::new(Resource::of::<Pod>(), Scope::All);
    let mut intake = Intake::new(spec.codec(Encoding::Json).unwrap());
    let mut object = |name: &str, version: u64| {
        let name = format!("{namespace}{name}");
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}","uid":"{name}","resourceVersion":"{version}"}}}}"#
        );
        intake.object(text.as_bytes()).unwrap()
    };
    vec![
        Step::Deliver(replace(vec![object("a", 1)], "2")),
        Step::Deliver(Delta::Put(object("a", 3))),
        Step::Flush,
        Step::Deliver(Delta::Put(object("b", 4))),
        Step::Deliver(Delta::Progress("5".into())),
        Step::Flush,
        // What comes before a list is on no other way.
        Step::Deliver(Delta::Put(object("a", 6))),
        Step::Deliver(replace(vec![object("b", 7)], "8")),
        Step::Deliver(Delta::Progress("9".into())),
        Step::Flush,
        Step::Deliver(Delta::Remove(object("b", 10))),
        Step::Flush,
    ]
}

/// What there is to be seen of one scope, each once and in order.
fn expected(namespace: &str) -> Vec<String> {
    let all = ["+na@1!", "~na@1→3", "+nb@4", "~na@3→6", "-na@6?", "~nb@4→7", "-nb@10"];
    all.map(|event| event.replace('n', namespace)).into()
}

const BOOKMARKS: u64 = 2;

const LISTS: u64 = 2;

async fn run(mut sink: ScopeSink, steps: Vec<Step>) {
    for step in steps {
        match step {
            Step::Deliver(delta) => sink.deliver(delta).await.unwrap(),
            Step::Flush => sink.flush().await.unwrap(),
        }
    }
}

/// The queue has so much room.
fn play(room: usize) {
    let hand = Hand::new(Scope::namespaces(SCOPES));
    let (core, applier) = hand.parts();
    let mut events = hand.informer().subscribe().delivery(Delivery::Every(100)).events();
    assert_eq!(seen(&mut events), [""; 0]);

    let (sender, receiver) = queue::queue(room);
    let reflectors = [0, 1].map(|scope| {
        let namespace = Some(Arc::from(SCOPES[scope]));
        let sink = ScopeSink::new(Arc::clone(&core), scope, namespace, Arc::clone(&applier), sender.clone());
        let steps = unscheduled(|| steps(SCOPES[scope]));
        thread::spawn(move || block_on(run(sink, steps)))
    });
    drop(sender);
    let pump = Pump { applier: Arc::clone(&applier), receiver };
    let pumps = {
        let core = Arc::clone(&core);
        thread::spawn(move || block_on(pump.run(&core)))
    };
    reflectors.into_iter().for_each(|reflector| reflector.join().unwrap());
    pumps.join().unwrap();

    let all = seen(&mut events);
    for namespace in SCOPES {
        let seen: Vec<String> =
            all.iter().filter(|event| event[1..].starts_with(namespace)).cloned().collect();
        assert_eq!(seen, expected(namespace));
        assert_eq!(core.cache().snapshot().version(namespace).unwrap().to_string(), "10");
    }
    assert_eq!(core.cache().stats().ignored_stale, 0, "nothing is overtaken");
    let bookmarks = core.traffic().bookmarks.load(Ordering::Relaxed);
    assert_eq!(bookmarks, BOOKMARKS * SCOPES.len() as u64, "each once");
    assert_eq!(applier.queued.load(Ordering::Relaxed), 0, "nothing is left");
    let mut synced = applier.turn().synced.clone();
    synced.sort_unstable();
    assert_eq!(synced, [0, 1]);
    assert!(core.hub().is_synced());
    assert_eq!(*core.board().changes.borrow(), LISTS * SCOPES.len() as u64, "each list is told once");
}

#[test]
fn in_no_schedule_is_something_overtaken_lost_or_applied_twice() {
    in_many_schedules(|| play(1 << 20));
}

#[test]
fn in_no_schedule_is_the_order_broken_where_the_queue_has_room_for_one_at_a_time() {
    in_many_schedules(|| play(1));
}
