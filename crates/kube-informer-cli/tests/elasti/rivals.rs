//! One of several works; another takes over wherever it was.

use std::time::Duration;

use kube_informer_testbed::eventually::eventually;

use crate::support::{Operator, SOON, World, on_both};

on_both!(another_takes_over_in_each_mode, who_does_not_lead_wakes_too);

/// An election that does not take long.
const QUICK: [&str; 4] = [
    "--leader-elect",
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=200ms",
];

/// The one of two that leads, and the other one.
async fn order(one: Operator, other: Operator) -> (Operator, Operator) {
    one.ready().await;
    other.ready().await;
    let standby = "another one leads";
    let leads = eventually("one of them leads", SOON, async || {
        match (one.readiness().await.contains(standby), other.readiness().await.contains(standby)) {
            (false, true) => Some(true),
            (true, false) => Some(false),
            _ => None,
        }
    });
    if leads.await { (one, other) } else { (other, one) }
}

async fn another_takes_over_in_each_mode(world: World) {
    world.service("web", 1).await;
    let (one, other) = (Operator::start(&world, &QUICK).await, Operator::start(&world, &QUICK).await);
    let (leader, other) = order(one, other).await;
    world.serves("web").await;
    // SIGKILL while it serves; while nobody leads, it is put to sleep.
    leader.kill();
    world.scale("web", 0).await;
    world.sleeps("web").await;

    let (leader, other) = order(other, Operator::start(&world, &QUICK).await).await;
    // SIGKILL while it sleeps; while nobody leads, it wakes.
    leader.kill();
    world.scale("web", 1).await;
    world.serves("web").await;

    let (leader, other) = order(other, Operator::start(&world, &QUICK).await).await;
    // SIGKILL before it is taken back.
    leader.kill();
    world.delete_elasti("web").await;
    world.forgotten("web").await;
    assert_eq!(other.stop().await.0.code(), Some(0));
}

async fn who_does_not_lead_wakes_too(world: World) {
    world.service("web", 0).await;
    let (one, other) = (Operator::start(&world, &QUICK).await, Operator::start(&world, &QUICK).await);
    let (leader, standby) = order(one, other).await;
    world.sleeps("web").await;
    // What it knows comes from its own caches, which have it in their own time.
    eventually("the other one knows the service", SOON, async || {
        let answer = standby.call(&world.namespace, "web").await;
        assert!([200, 404].contains(&answer.status.as_u16()), "{answer:?}");
        (answer.status == 200).then_some(())
    })
    .await;
    assert!(world.replicas("web").await >= 1);
    // It is the leader who sees that it serves.
    world.serves("web").await;
    assert!(standby.readiness().await.contains("another one leads"));
    // A leader that is stopped gives its place away at once.
    assert_eq!(leader.stop().await.0.code(), Some(0));
    let took_over = eventually("the other one leads", Duration::from_secs(60), async || {
        (!standby.readiness().await.contains("another one leads")).then_some(())
    });
    took_over.await;
    world.scale("web", 0).await;
    world.sleeps("web").await;
}
