//! Five hundred ElastiServices.

use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::proxy::Config;

use crate::support::{Operator, SOON, World};

/// How many there are.
const MANY: usize = 500;

/// How many of them are asked for.
const WOKEN: usize = 50;

/// More connections than the operator may have open: some watches, and some for writes.
const CONNECTIONS: usize = 60;

/// More memory than it may take, in KiB.
const MEMORY: u64 = 200 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_services_sleep_and_wake_over_a_few_connections() {
    let world = World::embedded("five_hundred_services").await;
    let proxy = Config::new(&world.admin()).add_credentials().transcript(1_000_000).start().await.unwrap();
    let operator = Operator::as_somebody(&world, &Access::anonymous(proxy.url()), &["--workers=16"]).await;
    let created = stream::iter(0..MANY).for_each_concurrent(16, |number| {
        let world = &world;
        async move { world.service(&name(number), 0).await }
    });
    created.await;
    all_sleep(&world).await;
    let connections = proxy.connections();
    assert!(connections < CONNECTIONS, "{connections} connections are open");
    let watches = proxy.requests().open().iter().filter(|request| request.is_watch()).count();
    assert!(watches < 20, "{watches} watches are open");
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
    let connections = proxy.connections();
    assert!(connections < CONNECTIONS, "{connections} connections are open");
    let memory = memory(operator.process.id());
    assert!(memory < MEMORY, "{memory} KiB");
    assert_eq!(operator.stop().await.0.code(), Some(0));
}

fn name(number: usize) -> String {
    format!("web-{number}")
}

/// Waits until all of them sleep.
async fn all_sleep(world: &World) {
    let path = world.path("elasti.truefoundry.com/v1alpha1", "elastiservices");
    eventually("all services sleep", SOON * 4, async || {
        let list = world.endpoint.get_json(&path).await.unwrap();
        let items = list["items"].as_array().unwrap();
        let asleep = items.iter().filter(|item| item["status"]["mode"] == "proxy").count();
        (asleep == MANY).then_some(())
    })
    .await;
}

/// What a process has in memory, in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
