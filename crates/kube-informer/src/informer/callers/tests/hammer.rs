//! Many who come and go while much changes.

use std::collections::BTreeMap;

use kube_informer_testbed::eventually::eventually;

use super::*;
use crate::informer::tests::hand::Hand;
use crate::informer::{Delivery, Event, Handler, Informer, Scope};
use crate::object::Object;

const SOON: Duration = Duration::from_secs(60);
const WORKERS: usize = 100;
const CHANGES: u64 = 10_000;
const NAMES: u64 = 100;

/// Shows who is still there: each closure and each handler has one.
type Token = Arc<()>;

struct Nothing(#[expect(dead_code, reason = "it goes with the handler")] Token);

impl Handler<serde_json::Value> for Nothing {
    async fn added(&mut self, _: Object, _: bool) {
        tokio::task::yield_now().await;
    }
}

/// The ways to register.
const WAYS: usize = 3;

/// Registers in each of the ways and leaves, again and again; how often.
async fn come_and_go(informer: Informer, number: usize, token: Token, over: Arc<AtomicBool>) -> usize {
    let mut times = 0;
    while times < 2 * WAYS || !over.load(Ordering::SeqCst) {
        let token = Arc::clone(&token);
        let delivery = if times % 2 == 0 { Delivery::Latest } else { Delivery::Every(4) };
        let subscription = informer.subscribe().delivery(delivery);
        match (number + times) % WAYS {
            0 => subscription.on(move |_| drop(Arc::clone(&token))).remove(SOON).await.unwrap(),
            1 => subscription.handler(Nothing(token)).remove(SOON).await.unwrap(),
            _ => {
                let mut events = subscription.events();
                for _ in 0..3 {
                    events.next().await.unwrap();
                }
            }
        }
        times += 1;
        tokio::task::yield_now().await;
    }
    times
}

type View = BTreeMap<String, String>;

/// What somebody who is told makes of it.
fn replay(view: &mut View, event: &Event) {
    let Some(object) = event.object() else { return view.clear() };
    let (name, version) = (object.name().to_owned(), object.version().to_string());
    match event {
        Event::Deleted { .. } => assert!(view.remove(&name).is_some(), "{event:?}"),
        Event::Added { .. } => assert_eq!(view.insert(name, version), None, "{event:?}"),
        _ => assert!(view.insert(name, version).is_some(), "{event:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn promise_12_many_who_come_and_go_while_much_changes_leave_nothing_behind() {
    let mut hand = Hand::new(Scope::All);
    let informer = hand.informer();
    hand.list(&[("0", 1), ("1", 1), ("2", 1)], 1);
    let over = Arc::new(AtomicBool::new(false));
    let token = Token::default();
    let worker = |number| come_and_go(informer.clone(), number, Arc::clone(&token), Arc::clone(&over));
    let workers: Vec<_> = (0..WORKERS).map(|number| tokio::spawn(worker(number))).collect();
    let view = Arc::new(Mutex::new(View::new()));
    let mut last = None;
    for version in 2..2 + CHANGES {
        let name = (version % NAMES).to_string();
        // Three of them are always there: whoever looks finds something.
        if version % 7 == 0 && version % NAMES > 2 {
            hand.remove(&name, version);
        } else {
            hand.put(&name, version);
        }
        if version == CHANGES / 2 {
            let view = Arc::clone(&view);
            last = Some(informer.on(move |event| replay(&mut view.lock().unwrap(), &event)));
        }
    }
    over.store(true, Ordering::SeqCst);
    for worker in workers {
        assert!(worker.await.unwrap() >= 2 * WAYS);
    }
    let last = last.unwrap();
    assert_eq!(informer.core().hub().mailboxes().len(), 1);
    let cache: View = informer
        .list()
        .into_iter()
        .map(|each| (each.name().to_owned(), each.version().to_string()))
        .collect();
    eventually("all that happened is told", SOON, async || (*view.lock().unwrap() == cache).then_some(()))
        .await;
    last.remove(SOON).await.unwrap();

    assert_eq!(informer.core().hub().mailboxes().len(), 0);
    let callers = informer.core().callers();
    eventually("no thread is left", SOON, async || {
        let queue = callers.shared.lock();
        (queue.threads == 0 && queue.callers == 0 && queue.ready.is_empty()).then_some(())
    })
    .await;
    eventually("nobody holds a handler", SOON, async || (Arc::strong_count(&token) == 1).then_some(())).await;
    let tasks = Handle::current().metrics();
    eventually("no task is left", SOON, async || (tasks.num_alive_tasks() == 0).then_some(())).await;
}
