//! One of several works; another takes over wherever it was.

use std::time::Duration;

use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::proxy::{Match, Verb};
use serde_json::json;

use crate::support::{Held, Operator, SOON, Watched, World, on_both};

on_both!(
    another_takes_over_in_each_mode,
    who_does_not_lead_wakes_too,
    killed_in_the_middle_of_a_switch_another_finishes_it,
    who_cannot_renew_stops_before_another_begins,
);

/// An election that does not take long.
const QUICK: [&str; 4] = [
    "--leader-elect",
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=200ms",
];

/// What one that does not lead says of itself.
const STANDBY: &str = "another one leads";

/// A candidate, watched or not.
trait Candidate {
    fn operator(&self) -> &Operator;
}

impl Candidate for Operator {
    fn operator(&self) -> &Operator {
        self
    }
}

impl Candidate for Watched {
    fn operator(&self) -> &Operator {
        &self.operator
    }
}

/// The one of two that leads, and the other one.
async fn order<C: Candidate>(one: C, other: C) -> (C, C) {
    one.operator().ready().await;
    other.operator().ready().await;
    let stands_by = async |candidate: &C| candidate.operator().readiness().await.contains(STANDBY);
    let leads = eventually("one of them leads", SOON, async || {
        match (stands_by(&one).await, stands_by(&other).await) {
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
    world.given_back("web", 1).await;
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
    assert!(standby.readiness().await.contains(STANDBY));
    // A leader that is stopped gives its place away at once.
    assert_eq!(leader.stop().await.0.code(), Some(0));
    let took_over = eventually("the other one leads", Duration::from_secs(60), async || {
        (!standby.readiness().await.contains(STANDBY)).then_some(())
    });
    took_over.await;
    world.scale("web", 0).await;
    world.sleeps("web").await;
}

/// SIGKILL while a write of a switch is on its way, with another one that waits for its turn.
async fn killed_in_the_middle_of_a_switch_another_finishes_it(world: World) {
    world.service("web", 1).await;
    let mut other = Watched::start(&world, &QUICK).await;
    for (replicas, held) in [(0, Held::Before), (1, Held::Before), (0, Held::After), (1, Held::After)] {
        let (leader, standby) = order(other, Watched::start(&world, &QUICK).await).await;
        settled(&world, 1 - replicas).await;
        let fault = leader.hold(0, held);
        world.scale("web", replicas).await;
        fault.wait_applied(1).await;
        let deeds = standby.deeds();
        assert_eq!(deeds.writes(), 0, "two worked at once");
        let before = leader.deeds();
        leader.kill().await;
        settled(&world, replicas).await;
        // Whatever was not done was done by the other one, and after it.
        assert!(deeds.first().unwrap() >= before.last().unwrap());
        other = standby;
    }

    // The same in the middle of a wake: the resolver is not told that it was done, and asks again.
    world.scale("web", 0).await;
    world.sleeps("web").await;
    let (leader, standby) = order(other, Watched::start(&world, &QUICK).await).await;
    let fault = leader.proxy.on(Match::any().verb(Verb::Update).path_contains("/web/scale")).once().stall();
    let call = json!({ "count": 1, "svc": "web", "namespace": world.namespace });
    let wake = leader.operator.wake.clone();
    let called = tokio::spawn(async move { wake.post("/informer/incoming-request", &call).await });
    fault.wait_applied(1).await;
    leader.kill().await;
    assert!(called.await.unwrap().is_err(), "who was killed has answered");
    assert_eq!(world.replicas("web").await, 0);
    let answer = standby.operator.call(&world.namespace, "web").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    world.serves("web").await;
    assert_eq!(standby.operator.stop().await.0.code(), Some(0));
}

async fn settled(world: &World, replicas: u32) {
    match replicas {
        0 => world.sleeps("web").await,
        _ => world.serves("web").await,
    }
}

/// It lives, and can write everything but its lease.
async fn who_cannot_renew_stops_before_another_begins(world: World) {
    world.service("web", 1).await;
    world.service("other", 1).await;
    let (one, other) = (Watched::start(&world, &QUICK).await, Watched::start(&world, &QUICK).await);
    let (mut leader, standby) = order(one, other).await;
    world.serves("web").await;
    world.serves("other").await;
    leader.proxy.on_all(Match::any().path_contains("/leases")).stall();
    // There is something to do all the time.
    let mut turn = 0;
    eventually("the other one leads", SOON, async || {
        turn += 1;
        world.scale("web", turn % 2).await;
        world.scale("other", (turn + 1) % 2).await;
        (!standby.operator.readiness().await.contains(STANDBY)).then_some(())
    })
    .await;
    let status = leader.operator.process.ended().await.unwrap();
    assert_eq!(status.code(), Some(1), "{}", leader.operator.process.logged());
    for name in ["web", "other"] {
        world.scale(name, 0).await;
        world.sleeps(name).await;
    }
    let (before, after) = (leader.deeds(), standby.deeds());
    assert!(before.writes() > 0 && after.writes() > 0);
    assert!(before.last().unwrap() < after.first().unwrap(), "two worked at once");
    assert_eq!(standby.operator.stop().await.0.code(), Some(0));
}
