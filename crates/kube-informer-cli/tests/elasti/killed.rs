//! SIGKILL at every write of every switch: whoever comes next finishes it.

use kube_informer_testbed::eventually::eventually;
use serde_json::json;

use crate::support::{Held, Operator, SOON, Watched, World, objects, on_both};

on_both!(
    killed_at_any_write_of_going_to_sleep_it_sleeps,
    killed_at_any_write_of_waking_it_serves,
    killed_at_any_write_of_beginning_it_sleeps,
    killed_at_any_write_of_an_edit_nothing_is_left_of_before,
);

/// More writes than any switch has.
const MOST: u64 = 30;

/// For each write of a switch: begins with `before`, makes `change`, holds that write, kills the process, starts another,
/// which has to come to `after`. There are at least so many writes: with fewer, something of it is not done any more, or not
/// seen here.
async fn at_each_write(
    world: &World,
    least: u64,
    change: impl AsyncFn(u64),
    after: impl AsyncFn(u64),
    before: impl AsyncFn(u64),
) {
    let mut writes = 0;
    for n in 0..MOST {
        let mut was_held = true;
        for (turn, held) in [Held::Before, Held::After].into_iter().enumerate() {
            let number = 2 * n + turn as u64;
            let watched = Watched::start(world, &[]).await;
            before(number).await;
            let fault = watched.hold(n, held);
            change(number).await;
            was_held &= watched.killed(&fault, after(number)).await;
            let operator = Operator::start(world, &[]).await;
            after(number).await;
            assert_eq!(operator.stop().await.0.code(), Some(0));
        }
        if !was_held {
            break;
        }
        writes = n + 1;
    }
    assert!((least..MOST).contains(&writes), "there were {writes} writes, and {least} are needed");
}

async fn killed_at_any_write_of_going_to_sleep_it_sleeps(world: World) {
    world.service("web", 1).await;
    let before = async |_| {
        world.scale("web", 1).await;
        world.serves("web").await;
    };
    let change = async |_| world.scale("web", 0).await;
    // The slice is made, and the status says so.
    at_each_write(&world, 2, change, async |_| world.sleeps("web").await, before).await;
}

async fn killed_at_any_write_of_waking_it_serves(world: World) {
    world.service("web", 0).await;
    let before = async |_| {
        world.scale("web", 0).await;
        world.sleeps("web").await;
    };
    let change = async |_| world.scale("web", 1).await;
    // The slice goes, and the status says so.
    at_each_write(&world, 2, change, async |_| world.serves("web").await, before).await;
}

async fn killed_at_any_write_of_beginning_it_sleeps(world: World) {
    let begin = async |n| world.service(&format!("web-{n}"), 0).await;
    let sleeps = async |n| world.sleeps(&format!("web-{n}")).await;
    // The finalizer, the private Service, the slice, the status.
    at_each_write(&world, 4, begin, sleeps, async |_| ()).await;
}

/// The spec names another Service, and another target.
async fn killed_at_any_write_of_an_edit_nothing_is_left_of_before(world: World) {
    let (web, next) = (|n: u64| format!("web-{n}"), |n: u64| format!("next-{n}"));
    let before = async |n| {
        world.create("apps/v1", "deployments", &objects::deployment(&next(n), 0)).await;
        world.create("v1", "services", &objects::service(&next(n), &next(n), 80)).await;
        world.service(&web(n), 0).await;
        world.sleeps(&web(n)).await;
    };
    let edit = async |n| {
        let spec = json!({ "spec": { "service": next(n), "scaleTargetRef": { "name": next(n) } } });
        world.edit_elasti(&web(n), &spec).await;
    };
    let after = async |n| {
        eventually("nothing is left of before", SOON, async || {
            let (kept, answered) = world.endpoints(&web(n)).await;
            assert!(!kept.is_empty() || !answered.is_empty(), "the redirect went before anybody answered");
            world.is_unredirected(&web(n)).await.then_some(())
        })
        .await;
        world.becomes(&web(n), &next(n), "proxy").await;
        assert_eq!(world.replicas(&web(n)).await, 1, "nobody else would wake it");
        assert_eq!(world.replicas(&next(n)).await, 0);
    };
    // The former target is woken; private Service and slice are made anew, and the former ones go; the status says so.
    at_each_write(&world, 6, edit, after, before).await;
}
