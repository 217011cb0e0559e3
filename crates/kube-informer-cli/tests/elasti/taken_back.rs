//! SIGKILL at every write of the end of an ElastiService that sleeps: its target is awake in the end, its pods answer, and
//! nothing is left of it.
//!
//! What the resolver keeps goes through the private Service for a while, so that each end takes long: several go on at once,
//! each in a namespace with an operator of its own.

use futures_util::{StreamExt as _, stream};
use kube_informer_testbed::cluster::{Cluster, own_servers};
use kube_informer_testbed::require;
use serde_json::json;

use crate::support::{Held, Operator, Watched, World};

/// What there is to write, at least: the target is woken; the slice, the private Service and the finalizer go.
const LEAST: u64 = 4;

/// To how many replicas it is woken: all at once, or a kill leaves it half awake.
const REPLICAS: u64 = 3;

/// So many at once.
const AT_ONCE: usize = 5;

async fn killed_at_any_write(cluster: Option<&Cluster>) {
    let kills = (0..=LEAST).flat_map(|n| [(n, Held::Before), (n, Held::After)]);
    let all = stream::iter(kills).map(|(n, held)| async move {
        let name = format!("taken-back-{n}-{held:?}").to_lowercase();
        let world = match cluster {
            Some(cluster) => World::real(cluster, &name).await,
            None => World::embedded(&name).await,
        };
        (n, held, killed_at(&world, n, held).await)
    });
    let all: Vec<_> = all.buffer_unordered(AT_ONCE).collect().await;
    for (n, held, was_killed) in all {
        assert!(was_killed || n >= LEAST, "there is no write {n} to be held ({held:?})");
    }
}

async fn killed_at(world: &World, n: u64, held: Held) -> bool {
    world.service("web", 0).await;
    world.edit_elasti("web", &json!({ "spec": { "minTargetReplicas": REPLICAS } })).await;
    let watched = Watched::start(world, &[]).await;
    world.sleeps("web").await;
    let fault = watched.hold(n, held);
    world.delete_elasti("web").await;
    let was_killed = watched.killed(&fault, world.given_back("web", REPLICAS)).await;
    let operator = Operator::start(world, &[]).await;
    world.given_back("web", REPLICAS).await;
    assert_eq!(operator.stop().await.0.code(), Some(0));
    was_killed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_write_of_being_taken_back_it_is_given_back_on_the_embedded_server() {
    killed_at_any_write(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_write_of_being_taken_back_it_is_given_back_on_the_real_server() {
    require!(own_servers().await);
    let cluster = require!(Cluster::shared_with_controllers().await);
    killed_at_any_write(Some(&cluster)).await;
}
