//! Handlers that never return, while objects change as often as the server takes it: the process does not grow.

use std::sync::mpsc;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::factory::Factory;
use kube_informer::informer::{Delivery, Event, Informer, Scope};
use kube_informer_testbed::eventually::eventually;

use crate::apart::{Orders, SOON, alone, resident};

const OBJECTS: usize = 20;
const BYTES: usize = 16_000;

/// Updates until everything has been allocated that is needed at all, and those that must not take any more.
const FIRST: usize = 2_000;
const MORE: usize = 3_000;

/// What the later ones would take, if they were kept. Noise of letters and digits can be packed to three quarters.
const ALL: usize = MORE * BYTES * 3 / 4;

#[test]
fn promise_10_memory_stays_flat_while_handlers_are_stuck_for_ever() -> Result<()> {
    alone("stuck::promise_10_memory_stays_flat_while_handlers_are_stuck_for_ever", stuck)
}

/// Waits until so many updates have come, all in all.
async fn until(informer: &Informer<ConfigMap>, updates: usize) {
    let come = async || (informer.stats().updated >= updates as u64).then_some(());
    eventually("all updates have come", SOON, come).await;
}

async fn stuck(factory: Factory, orders: &mut Orders) -> Result<()> {
    let informer = factory.informer::<ConfigMap>(Scope::namespace("default"));
    let (entered, entries) = mpsc::channel();
    let (open, gates): (Vec<_>, Vec<_>) = [0, 1].map(|_| mpsc::channel::<()>()).into_iter().unzip();
    let mut handlers = gates.into_iter().map(|gate| {
        let entered = entered.clone();
        move |_: Event<ConfigMap>| {
            _ = entered.send(());
            _ = gate.recv();
        }
    });
    let latest = informer.subscribe().delivery(Delivery::Latest).on(handlers.next().unwrap());
    let every = informer.subscribe().delivery(Delivery::Every(100)).on(handlers.next().unwrap());
    let mut unread = informer.events();
    factory.start();
    factory.synced(SOON).await?;
    orders.fill(OBJECTS, BYTES)?;
    for _ in 0..2 {
        entries.recv_timeout(SOON)?;
    }
    // Whoever has not begun to read a stream is told everything when he does, and nothing waits for him until then.
    assert!(unread.next().await.is_some());

    orders.update(OBJECTS, BYTES, FIRST)?;
    until(&informer, FIRST).await;
    let before = resident();
    orders.update(OBJECTS, BYTES, MORE)?;
    until(&informer, FIRST + MORE).await;
    let after = resident();
    assert!(after < before + ALL / 3, "{before} bytes became {after}; all updates would take {ALL}");
    // They are stuck, and what waits for them is bounded.
    assert_eq!((latest.stats().handled, every.stats().handled), (0, 0));
    for stats in [latest.stats(), unread.stats()] {
        assert!((OBJECTS - 1..FIRST).contains(&stats.backlog), "{stats:?}");
    }

    // It would have been seen: what waits for one who wants to be told that much takes it.
    let mut kept = informer.subscribe().delivery(Delivery::Every(10 * MORE)).events();
    assert!(kept.next().await.is_some());
    orders.update(OBJECTS, BYTES, MORE)?;
    until(&informer, FIRST + 2 * MORE).await;
    let most = resident();
    assert!(most > after + ALL / 2, "{after} bytes became {most}; all updates take {ALL}");
    assert!(kept.stats().backlog >= MORE, "{:?}", kept.stats());
    // Of all that was dropped, its number is left.
    drop(open);
    let told = async || (every.stats().gaps == 1).then_some(());
    eventually("the gap is told", SOON, told).await;
    assert!(every.stats().missed >= (FIRST + 2 * MORE - 100) as u64, "{:?}", every.stats());
    Ok(())
}
