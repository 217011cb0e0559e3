//! The one who writes, and one who begins to listen meanwhile, in every order that a scheduler thinks of: at each state that is
//! taken or published, and whenever a turn begins or ends, it chooses who goes on. A schedule in which somebody waits for ever is a
//! failure, and is printed so that it can be played again.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;

use futures_core::Stream;
use shuttle::{future::block_on, thread};

use super::*;
use crate::informer::tests::hand::{Hand, short};
use crate::informer::{Event, Informer, Scope};
use crate::object::Version;
use crate::sync::in_many_schedules;

/// Listens until it has heard of the last object. What it hears fits to what it heard before, and the cache has it.
fn listen(informer: &Informer) {
    let mut events = informer.subscribe().delivery(Delivery::Every(100)).events();
    let mut known = HashMap::<String, Version>::new();
    while !known.contains_key("last") {
        let event = block_on(poll_fn(|cx| Pin::new(&mut events).poll_next(cx))).unwrap();
        let is_next = match &event {
            Event::Added { new, .. } => known.insert(new.name().into(), new.version().clone()).is_none(),
            Event::Updated { old, new, .. } => {
                known.insert(new.name().into(), new.version().clone()).as_ref() == Some(old.version())
            }
            Event::Deleted { last, .. } => known.remove(last.name()).is_some(),
            Event::Gap { .. } => false,
        };
        assert!(is_next, "{} after {known:?}", short(&event));
        let object = event.object().unwrap();
        let seen = informer.snapshot().reached("d", object.version()).unwrap();
        assert!(seen, "{} is told before it is there", short(&event));
    }
    assert_eq!(known.len(), 2, "{known:?}");
    assert_eq!(known["a"].to_string(), "5");
}

#[test]
fn in_no_schedule_does_one_who_begins_late_miss_something_or_hear_it_twice() {
    in_many_schedules(|| {
        let mut hand = Hand::new(Scope::All);
        let listeners = [(); 2].map(|()| {
            let informer = hand.informer();
            thread::spawn(move || listen(&informer))
        });
        hand.list(&[("a", 1), ("b", 1)], 1);
        hand.put("a", 3);
        hand.remove("b", 4);
        hand.put("a", 5);
        hand.put("last", 6);
        listeners.into_iter().for_each(|listener| listener.join().unwrap());
    });
}
