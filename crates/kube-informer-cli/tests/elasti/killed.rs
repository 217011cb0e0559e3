//! SIGKILL at every write of every switch: whoever comes next finishes it.

use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::{Config, Fault, Match, Proxy};

use crate::support::{Operator, World, on_both};

on_both!(
    killed_at_any_write_of_going_to_sleep_it_sleeps,
    killed_at_any_write_of_waking_it_serves,
    killed_at_any_write_of_beginning_it_sleeps,
);

/// More writes than any switch has.
const MOST: u64 = 30;

/// Where a write is held when its process is killed.
#[derive(Debug, Clone, Copy)]
enum Held {
    /// The server has not seen it.
    Before,
    /// The server has done it, and its answer is on the way.
    After,
}

/// An operator behind a proxy.
struct Watched {
    proxy: Proxy,
    operator: Operator,
}

impl Watched {
    async fn start(world: &World) -> Self {
        let proxy = Config::new(&world.admin()).add_credentials().start().await.unwrap();
        let operator = Operator::as_somebody(world, &Access::anonymous(proxy.url()), &[]).await;
        Self { proxy, operator }
    }

    /// Holds the n-th write from now on, counted from 0.
    fn hold(&self, n: u64, held: Held) -> Fault {
        // Events are for people: nothing depends on them.
        let writes = Match::write().when(|request| !request.path.contains("/events"));
        let on = self.proxy.on(writes).skip(n).once();
        match held {
            Held::Before => on.stall(),
            Held::After => on.stall_after_bytes(0),
        }
    }

    /// Waits until the write is held, and kills it; or until everything is done without. Tells whether it was killed.
    async fn killed(self, fault: &Fault, done: impl Future<Output = ()>) -> bool {
        let is_held = tokio::select! {
            () = fault.wait_applied(1) => true,
            () = done => false,
        };
        self.operator.kill();
        // What it has sent and nobody has passed on is lost.
        self.proxy.shut_down().await;
        is_held
    }
}

/// For each write of a switch: begins with `before`, makes `change`, holds that write, kills the process, starts another,
/// which has to come to `after`, and then undoes the change.
async fn at_each_write(
    world: &World,
    change: impl AsyncFn(u64),
    after: impl AsyncFn(u64),
    before: impl AsyncFn(u64),
) {
    let mut writes = 0;
    for n in 0..MOST {
        let mut was_held = true;
        for (turn, held) in [Held::Before, Held::After].into_iter().enumerate() {
            let number = 2 * n + turn as u64;
            let watched = Watched::start(world).await;
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
    assert!((1..MOST).contains(&writes), "there were {writes} writes");
}

async fn killed_at_any_write_of_going_to_sleep_it_sleeps(world: World) {
    world.service("web", 1).await;
    let before = async |_| {
        world.scale("web", 1).await;
        world.serves("web").await;
    };
    at_each_write(&world, async |_| world.scale("web", 0).await, async |_| world.sleeps("web").await, before)
        .await;
}

async fn killed_at_any_write_of_waking_it_serves(world: World) {
    world.service("web", 0).await;
    let before = async |_| {
        world.scale("web", 0).await;
        world.sleeps("web").await;
    };
    at_each_write(&world, async |_| world.scale("web", 1).await, async |_| world.serves("web").await, before)
        .await;
}

async fn killed_at_any_write_of_beginning_it_sleeps(world: World) {
    let begin = async |n| world.service(&format!("web-{n}"), 0).await;
    let sleeps = async |n| world.sleeps(&format!("web-{n}")).await;
    at_each_write(&world, begin, sleeps, async |_| ()).await;
}

/// What the resolver keeps still goes through the private Service for a while: each of these takes long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_write_of_being_taken_back_it_is_forgotten() {
    let world = World::embedded("killed_at_any_write_of_being_taken_back").await;
    let name = |n| format!("web-{n}");
    let before = async |n| {
        world.service(&name(n), 0).await;
        world.sleeps(&name(n)).await;
    };
    let after = async |n| world.forgotten(&name(n)).await;
    at_each_write(&world, async |n| world.delete_elasti(&name(n)).await, after, before).await;
}
