//! Code of strangers that does what it likes: wakers that act at once, panics that panic again.

use std::panic::panic_any;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};

use futures_core::Stream;

use super::super::*;
use super::SOON;
use super::hand::Hand;

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
