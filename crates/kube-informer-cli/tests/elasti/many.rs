//! Five hundred ElastiServices.

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::control_plane::Options;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::{Config, Proxy};
use serde_json::Value;

use crate::support::{ELASTI, Operator, SOON, World};

/// How many there are.
const MANY: usize = 500;

/// How many of them are asked for.
const WOKEN: usize = 50;

/// More watches than it may have open, however many it looks after.
const WATCHES: usize = 20;

/// How many are looked at by it at the same time.
const WORKERS: usize = 16;

/// More connections than it may have open: for watches, for each that is looked at, for the 32 that are woken at the same
/// time, and some for events and the like.
const CONNECTIONS: usize = WATCHES + WORKERS + 32 + 12;

/// More memory than it may take, in KiB.
const MEMORY: u64 = 200 << 10;

async fn five_hundred_services_sleep_wake_and_go_over_a_few_connections(world: World) {
    let proxy = Config::new(&world.access()).add_credentials().transcript(1_000_000).start().await.unwrap();
    let workers = format!("--workers={WORKERS}");
    let operator = Operator::as_somebody(&world, &Access::anonymous(proxy.url()), &[&workers]).await;
    let created = stream::iter(0..MANY).for_each_concurrent(16, |number| {
        let world = &world;
        async move { world.service(&name(number), 0).await }
    });
    created.await;
    all_sleep(&world).await;
    bounded(&proxy, &operator);
    // Many of them are asked for at once.
    operator.ready().await;
    let some: Vec<String> = (0..MANY).step_by(MANY / WOKEN).map(name).collect();
    let calls = some.iter().map(|name| operator.call(&world.namespace, name));
    for answer in join_all(calls).await {
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    for name in &some {
        world.serves(name).await;
    }
    bounded(&proxy, &operator);
    // All of them end, one right after the other.
    let deleted = stream::iter(0..MANY).for_each_concurrent(16, |number| {
        let world = &world;
        async move { world.delete_elasti(&name(number)).await }
    });
    deleted.await;
    all_are_given_back(&world).await;
    bounded(&proxy, &operator);
    assert_eq!(operator.stop().await.0.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_services_over_a_few_connections_on_the_embedded_server() {
    let world = World::embedded("five_hundred_services").await;
    five_hundred_services_sleep_wake_and_go_over_a_few_connections(world).await;
}

/// On servers of its own: others have addresses for some hundred Services.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_services_over_a_few_connections_on_the_real_server() {
    let options = Options::new()
        .controller_manager(true)
        .apiserver_flag("--service-cluster-ip-range=10.0.0.0/20")
        // They are made faster than its controllers would look at them otherwise.
        .controller_manager_flag("--concurrent-deployment-syncs=20")
        .controller_manager_flag("--concurrent-service-endpoint-syncs=20");
    let cluster = kube_informer_testbed::require!(Cluster::own(options).await);
    let world = World::real(&cluster, "five_hundred_services").await;
    five_hundred_services_sleep_wake_and_go_over_a_few_connections(world).await;
}

fn name(number: usize) -> String {
    format!("web-{number}")
}

/// However many there are, it needs no more than this.
fn bounded(proxy: &Proxy, operator: &Operator) {
    let connections = proxy.connections();
    assert!(connections < CONNECTIONS, "{connections} connections are open");
    let watches = proxy.requests().open().iter().filter(|request| request.is_watch()).count();
    assert!(watches < WATCHES, "{watches} watches are open");
    let memory = memory(operator.process.id());
    assert!(memory < MEMORY, "{memory} KiB");
}

/// The objects of a collection.
async fn items(world: &World, version: &str, plural: &str) -> Vec<Value> {
    let list = world.endpoint.get_json(&world.path(version, plural)).await.unwrap();
    list["items"].as_array().unwrap().clone()
}

/// Waits until all of them sleep.
async fn all_sleep(world: &World) {
    eventually("all services sleep", SOON * 4, async || {
        let items = items(world, ELASTI, "elastiservices").await;
        let asleep = items.iter().filter(|item| item["status"]["mode"] == "proxy").count();
        (asleep == MANY).then_some(())
    })
    .await;
}

/// Waits until all of them are gone, and nothing is left of what was made for them. Whatever slept is awake.
async fn all_are_given_back(world: &World) {
    eventually("all are gone", SOON * 4, async || {
        items(world, ELASTI, "elastiservices").await.is_empty().then_some(())
    })
    .await;
    let is_ours = |object: &Value| {
        let labels = &object["metadata"]["labels"];
        ["app.kubernetes.io/managed-by", "endpointslice.kubernetes.io/managed-by"]
            .iter()
            .any(|label| labels[*label] == "kube-informer-elasti")
    };
    for (version, plural) in [("v1", "services"), ("discovery.k8s.io/v1", "endpointslices")] {
        let left = items(world, version, plural).await.into_iter().filter(is_ours).count();
        assert_eq!(left, 0, "of {plural}");
    }
    let asleep = items(world, "apps/v1", "deployments").await;
    let asleep: Vec<_> = asleep.iter().filter(|object| object["spec"]["replicas"] == 0).collect();
    assert!(asleep.is_empty(), "{} sleep for ever", asleep.len());
}

/// What a process has in memory, in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
