//! Code of strangers that does what it likes: wakers that act at once, panics that panic again.

use std::panic::panic_any;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};

use futures_core::Stream;

use super::super::*;
use super::SOON;
use super::hand::{Hand, short};

/// Reads a stream, or drops it, where it is woken, and begins another one.
struct Hasty {
    informer: Informer,
    events: Mutex<Option<Events<serde_json::Value>>>,
    drops: bool,
    done: mpsc::Sender<()>,
}

impl Hasty {
    fn begin(informer: &Informer, drops: bool) -> mpsc::Receiver<()> {
        let (done, is_done) = mpsc::channel();
        let events = Mutex::new(Some(informer.events()));
        Arc::new(Self { informer: informer.clone(), events, drops, done }).read();
        is_done
    }

    fn read(self: &Arc<Self>) {
        let waker = Waker::from(Arc::clone(self));
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(events) = events.as_mut() {
            let mut context = Context::from_waker(&waker);
            while let Poll::Ready(Some(_)) = Pin::new(&mut *events).poll_next(&mut context) {}
        }
    }
}

impl Wake for Hasty {
    fn wake(self: Arc<Self>) {
        if self.drops {
            drop(self.events.lock().unwrap_or_else(PoisonError::into_inner).take());
        } else {
            self.read();
        }
        let mut other = self.informer.events();
        let _ = Pin::new(&mut other).poll_next(&mut Context::from_waker(Waker::noop()));
        let _ = self.done.send(());
    }
}

#[tokio::test]
async fn promise_10_who_is_woken_may_read_or_drop_its_stream_at_once() {
    // What cannot go on would hang: it is given another thread, and up for lost.
    type Act = fn(&mut Hand);
    let acts: [(&str, Act); 3] = [
        ("told", |hand| hand.put("a", 2)),
        ("synced", |hand| hand.list(&[], 3)),
        ("closed", |hand| hand.stop()),
    ];
    for (what, act) in acts {
        for drops in [false, true] {
            let mut hand = Hand::new(Scope::All);
            let informer = hand.informer();
            if what != "synced" {
                hand.list(&[("a", 1)], 1);
            }
            let is_done = Hasty::begin(&informer, drops);
            std::thread::spawn(move || act(&mut hand));
            let done = tokio::task::spawn_blocking(move || is_done.recv_timeout(SOON)).await.unwrap();
            assert!(done.is_ok(), "{what}, drops: {drops}");
        }
    }
}

/// Looks for the object of each event, where it is woken.
struct Looks {
    informer: Informer,
    events: Mutex<Events<serde_json::Value>>,
    /// Each event, and the version that was found.
    found: mpsc::Sender<(String, Option<String>)>,
}

impl Wake for Looks {
    fn wake(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut events = self.events.lock().unwrap();
        while let Poll::Ready(Some(event)) =
            Pin::new(&mut *events).poll_next(&mut Context::from_waker(&waker))
        {
            let object = event.object().unwrap();
            let found = self.informer.get(object.namespace(), object.name());
            let _ = self.found.send((short(&event), found.map(|found| found.version().to_string())));
        }
    }
}

#[tokio::test]
async fn promise_08_who_is_woken_finds_in_the_cache_what_it_is_told() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let (found, finds) = mpsc::channel();
    let events = Mutex::new(informer.events());
    Arc::new(Looks { informer, events, found }).wake();
    // It is woken before each of these returns.
    let mut after = |act: fn(&mut Hand)| {
        act(&mut hand);
        finds.try_iter().collect::<Vec<_>>()
    };
    let event = |event: &str, version: &str| (event.to_owned(), Some(version.to_owned()));
    assert_eq!(after(|hand| hand.list(&[("a", 1), ("b", 2)], 2)), [event("+a@1!", "1"), event("+b@2!", "2")]);
    assert_eq!(after(|hand| hand.put("a", 3)), [event("~a@1→3", "3")]);
    assert_eq!(after(|hand| hand.put("c", 4)), [event("+c@4", "4")]);
    assert_eq!(after(|hand| hand.remove("a", 5)), [("-a@5".to_owned(), None)]);
    assert_eq!(after(|hand| hand.list(&[("b", 6)], 6)), [("-c@4?".to_owned(), None), event("~b@2→6", "6")]);
}

#[tokio::test]
async fn promise_10_a_waker_that_panics_keeps_nobody_from_being_woken() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("in a waker");
        }
    }
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let (mut first, mut second) = (informer.events(), informer.events());
    let poll = |events: &mut Events<serde_json::Value>, waker: &Waker| {
        Pin::new(events).poll_next(&mut Context::from_waker(waker)).is_ready()
    };
    assert!(!poll(&mut first, &Waker::from(Arc::new(Panics))));
    let woken = tokio::spawn(async move { second.next().await.is_some() });
    // So that it waits.
    tokio::task::yield_now().await;
    hand.list(&[("a", 1)], 1);
    assert!(woken.await.unwrap());
    assert!(poll(&mut first, Waker::noop()));
}

/// Panics when it is dropped.
struct Twice;

impl Drop for Twice {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("once more");
        }
    }
}

#[tokio::test]
async fn promise_10_a_panic_that_panics_again_ends_no_handler() {
    struct Nervous;
    impl Handler<serde_json::Value> for Nervous {
        async fn added(&mut self, _: Object, _: bool) {
            panic_any(Twice);
        }
    }
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    let registrations = [informer.handler(Nervous), informer.on(|_| panic_any(Twice))];
    hand.list(&[("a", 1), ("b", 2)], 3);
    for registration in registrations {
        registration.synced(SOON).await.unwrap();
        assert_eq!((registration.stats().panics, registration.stats().handled), (2, 2));
    }
}
