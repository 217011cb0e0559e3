//! Many who come and go while a server is busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use kube_informer::factory::Factory;
use kube_informer::informer::{Delivery, Handler, Informer, Scope};
use kube_informer::object::Object;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::load::{self, Pace, Steady};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::harness::{Place, SOON, on_both};
use crate::replay::Replay;
use crate::stage::{Stage, live, ready, short};

on_both! {
    promise_12_a_hundred_who_come_and_go_leave_no_task_and_no_registration,
}

const WORKERS: usize = 100;
const OBJECTS: usize = 20;
const UPDATES: u64 = 3_000;

/// The ways to register.
const WAYS: usize = 3;

struct Nothing(#[expect(dead_code, reason = "it goes with the handler")] Arc<()>);

impl Handler<Value> for Nothing {
    async fn updated(&mut self, _: Object<Value>, _: Object<Value>, _: bool) {
        tokio::task::yield_now().await;
    }
}

/// Registers in each of the ways, waits for the initial objects, and leaves, again and again.
async fn come_and_go(informer: Informer, number: usize, token: Arc<()>, over: Arc<AtomicBool>) -> Result<()> {
    let mut times = 0;
    while times < 2 * WAYS || !over.load(Ordering::SeqCst) {
        let token = Arc::clone(&token);
        let delivery = if times % 2 == 0 { Delivery::Latest } else { Delivery::Every(50) };
        let subscription = informer.subscribe().delivery(delivery);
        let registration = match (number + times) % WAYS {
            0 => subscription.on(move |_| drop(Arc::clone(&token))),
            1 => subscription.handler(Nothing(token)),
            _ => {
                let mut events = subscription.events();
                for _ in 0..OBJECTS {
                    assert!(events.next().await.is_some());
                }
                times += 1;
                continue;
            }
        };
        registration.synced(SOON).await?;
        registration.remove(SOON).await?;
        times += 1;
    }
    Ok(())
}

/// A runtime that can be dropped in another one, where a test fails.
struct Inner(Option<Runtime>);

impl Inner {
    fn get(&self) -> &Runtime {
        self.0.as_ref().unwrap()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.0.take().unwrap().shutdown_background();
    }
}

async fn promise_12_a_hundred_who_come_and_go_leave_no_task_and_no_registration(place: Place) -> Result<()> {
    let (stage, inner) = (Stage::before(place).await?, Inner(Some(Runtime::new()?)));
    let runtime = inner.get();
    let (endpoint, namespace) = (&stage.place.endpoint, &stage.place.namespace);
    load::install_custom_resources(endpoint).await?;
    load::write_all(endpoint, namespace, load::custom_resources(1, OBJECTS), 8).await?;
    // In a runtime of its own, so that everything in it can be counted.
    let (config, scope) = (stage.config().await?, Scope::namespace(namespace));
    let begin = async move {
        let factory = Factory::from_config(config).await?.timings(short());
        let informer = factory.resource("gadgets.load.kube-informer.dev", scope).await?;
        let told = Replay::both(&informer);
        factory.start();
        ready(&factory, &told).await?;
        live(&informer).await;
        anyhow::Ok((factory, informer, told))
    };
    let (factory, informer, told) = runtime.spawn(begin).await??;

    let pace = Pace { seed: 1, per_second: 1_000.0, parallelism: 16 };
    let steady = Steady::start(endpoint, namespace, load::custom_resources(1, OBJECTS), pace);
    let (over, token) = (Arc::new(AtomicBool::new(false)), Arc::new(()));
    let worker = |number| come_and_go(informer.clone(), number, Arc::clone(&token), Arc::clone(&over));
    let workers: Vec<_> = (0..WORKERS).map(|number| runtime.spawn(worker(number))).collect();
    steady.wait(UPDATES).await;
    over.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await??;
    }
    let updated = steady.stop().await;
    assert_eq!(updated.failed, 0, "{:?}", updated.failures);

    // Those who stayed were told everything, over one watch.
    stage.settled(&informer, "", &[&told[0], &told[1]]).await;
    let health = live(&informer).await;
    assert_eq!((health.watches, health.relists.first), (1, 1));
    // Of the others, nothing is left.
    let names: Vec<_> = informer.stats().handlers.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["replay".into(), "replay-2".into()]);
    eventually("nobody holds a handler", SOON, async || (Arc::strong_count(&token) == 1).then_some(())).await;
    let end = async move { factory.shutdown().await };
    assert_eq!(runtime.spawn(end).await?.busy, [""; 0]);
    drop((informer, told));
    let tasks = runtime.metrics();
    eventually("no task is left", SOON, async || (tasks.num_alive_tasks() == 0).then_some(())).await;
    assert!(stage.proxy.wait_connections(0, SOON).await, "{:?}", stage.proxy.requests().open());
    Ok(())
}
