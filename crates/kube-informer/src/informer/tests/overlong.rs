//! That a call does not return is said: once, with what to do about it.

use tokio::sync::Semaphore;
use tracing::Instrument;

use super::super::overlong;
use super::*;
use crate::said::Lines;

const LONG: Duration = Duration::from_secs(30);

/// Each call takes as long as nobody lets it go.
struct Held(Arc<Semaphore>);

impl Handler<serde_json::Value> for Held {
    async fn added(&mut self, _: Object, _: bool) {
        self.0.acquire().await.unwrap().forget();
    }

    async fn updated(&mut self, _: Object, _: Object, _: bool) {
        self.0.acquire().await.unwrap().forget();
    }
}

/// Lets time pass, of which the test is about. The clock is paused.
async fn pass(time: Duration) {
    // tidy: allow-sleep the clock is paused
    tokio::time::sleep(time).await;
}

/// Looks after the handlers.
fn watch(hand: &Hand) {
    let (core, _) = hand.parts();
    let span = core.span(None);
    tokio::spawn(async move { overlong::run(&core, LONG).await }.instrument(span));
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_handler_that_does_not_return_is_said_once_and_so_is_the_next_one() {
    let (lines, _said) = Lines::of("informer");
    let mut hand = Hand::new(Scope::All);
    watch(&hand);
    // There is nobody yet to look at.
    pass(LONG).await;
    let gate = Arc::new(Semaphore::new(0));
    let informer = hand.informer();
    let stuck = informer.subscribe().name("stuck").handler(Held(Arc::clone(&gate)));
    let quick = informer.subscribe().name("quick").handler(Held(Arc::new(Semaphore::new(100))));
    hand.list(&[("a", 1), ("b", 1)], 2);
    pass(LONG - Duration::from_secs(1)).await;
    assert_eq!(lines.all(), [""; 0], "not yet");
    pass(LONG).await;
    let [line] = &lines.all()[..] else { panic!("{:?}", lines.all()) };
    for part in ["resource=pods", "handler=stuck", "waiting=1", "30s", "look what it waits for", "become one"]
    {
        assert!(line.contains(part), "{part}: {line}");
    }
    pass(10 * LONG).await;
    assert_eq!(lines.all().len(), 1, "it was said");

    // It returns, and the next call does not.
    gate.add_permits(1);
    pass(2 * LONG).await;
    assert_eq!(lines.all().len(), 2, "{:?}", lines.all());
    // Then it has nothing to do for long, which is no fault, and many calls that are short together take long.
    gate.add_permits(1);
    pass(4 * LONG).await;
    for version in 3..100 {
        hand.put("a", version);
        pass(LONG / 6).await;
        gate.add_permits(1);
        pass(LONG / 6).await;
    }
    assert_eq!((stuck.stats().handled, quick.stats().handled), (99, 99));
    assert_eq!(lines.all().len(), 2, "{:?}", lines.all());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_only_says_an_object_again_is_said_as_well() {
    let (lines, _said) = Lines::of("informer");
    let mut hand = Hand::new(Scope::All);
    watch(&hand);
    let gate = Arc::new(Semaphore::new(1));
    let subscription = hand.informer().subscribe().resync(LONG).delivery(Delivery::Every(7));
    let _stuck = subscription.name("again").handler(Held(gate));
    hand.list(&[("a", 1)], 2);
    pass(4 * LONG).await;
    let [line] = &lines.all()[..] else { panic!("{:?}", lines.all()) };
    assert!(line.contains("handler=again") && line.contains("past 7 are dropped"), "{line}");
}
