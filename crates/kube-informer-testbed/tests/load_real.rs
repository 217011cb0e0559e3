//! The load generator against a real kube-apiserver.

#![allow(clippy::unwrap_used, reason = "a panic in what a test calls is the failure report, too")]

use std::collections::HashSet;

use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::load::{
    self, Kind, Pace, Steady, custom_resources, install_custom_resources, pods, write_all,
};
use kube_informer_testbed::proxy::{Answer, Config, Format, Match};
use kube_informer_testbed::require;
use serde_json::Value;

#[path = "support/watching.rs"]
mod watching;

use watching::{soon, watch};

const SEED: u64 = 42;

fn managers(object: &Value) -> HashSet<String> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    entries.iter().map(|entry| entry["manager"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn two_hundred_pods_are_written_as_large_and_as_managed_as_real_ones() {
    let cluster = require!(Cluster::shared().await);
    let namespace = cluster.namespace("pods").await.unwrap();
    let written = write_all(cluster.endpoint(), namespace.name(), pods(SEED, 200), 8).await.unwrap();
    assert_eq!((written.objects, written.requests), (200, 600));

    let list = cluster.endpoint().get_json(&Kind::Pod.path(namespace.name())).await.unwrap();
    let items = list["items"].as_array().unwrap();
    let names: HashSet<&str> = items.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap()).collect();
    let made: Vec<load::Object> = pods(SEED, 200).collect();
    assert_eq!(names, made.iter().map(load::Object::name).collect());
    for pod in items {
        let (size, managed) = (pod.to_string().len(), pod["metadata"]["managedFields"].to_string().len());
        assert!((10_000..14_000).contains(&size), "a pod of {size} bytes");
        assert!(managed * 2 > size, "{managed} of {size} bytes are managed fields");
        let managers = managers(pod);
        for manager in ["kube-controller-manager", "kube-scheduler", "kubelet"] {
            assert!(managers.contains(manager), "{managers:?}");
        }
        assert_eq!(pod["status"]["phase"], "Running");
        assert_eq!(pod["status"]["conditions"].as_array().unwrap().len(), 5);
        assert_eq!(pod["status"]["containerStatuses"].as_array().unwrap().len(), 2);
        assert_eq!(pod["status"]["podIP"], pod["status"]["podIPs"][0]["ip"]);
    }
}

#[tokio::test]
async fn two_hundred_custom_resources_are_written_through_their_definition() {
    let cluster = require!(Cluster::shared().await);
    let namespace = cluster.namespace("gadgets").await.unwrap();
    install_custom_resources(cluster.endpoint()).await.unwrap();
    install_custom_resources(cluster.endpoint()).await.unwrap();
    let written =
        write_all(cluster.endpoint(), namespace.name(), custom_resources(SEED, 200), 8).await.unwrap();
    assert_eq!((written.objects, written.requests), (200, 400));
    let list = cluster.endpoint().get_json(&Kind::Gadget.path(namespace.name())).await.unwrap();
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 200);
    for gadget in items {
        let size = gadget.to_string().len();
        assert!((2_500..3_500).contains(&size), "a custom resource of {size} bytes");
        assert_eq!(managers(gadget).len(), 2);
        let made =
            custom_resources(SEED, 200).find(|made| made.name() == gadget["metadata"]["name"]).unwrap();
        assert_eq!(gadget["spec"], made.manifest()["spec"], "the definition knows every field");
        assert_eq!(gadget["status"]["parts"].as_array().unwrap().len(), 3);
    }
}

#[tokio::test]
async fn steady_updates_arrive_at_the_server_at_their_rate() {
    let cluster = require!(Cluster::shared().await);
    let namespace = cluster.namespace("steady").await.unwrap();
    install_custom_resources(cluster.endpoint()).await.unwrap();
    let pace = Pace { seed: SEED, per_second: 50.0, parallelism: 4 };
    for kind in [Kind::Pod, Kind::Gadget] {
        let objects: Vec<load::Object> = match kind {
            Kind::Pod => pods(SEED, 10).collect(),
            Kind::Gadget => custom_resources(SEED, 10).collect(),
        };
        write_all(cluster.endpoint(), namespace.name(), objects.clone(), 8).await.unwrap();
        let path = kind.path(namespace.name());
        let list = cluster.endpoint().get_json(&format!("{path}?limit=1")).await.unwrap();
        let version = list["metadata"]["resourceVersion"].as_str().unwrap();
        let mut events =
            watch(cluster.endpoint(), &format!("{path}?watch=1&resourceVersion={version}"), Format::Json)
                .await;

        let steady = Steady::start(cluster.endpoint(), namespace.name(), objects, pace);
        soon(steady.wait(25)).await;
        let updated = soon(steady.stop()).await;
        assert_eq!((updated.failed, updated.failures.len()), (0, 0), "{updated:?}");
        assert!(updated.written >= 25);
        let due = updated.elapsed.as_secs_f64() * pace.per_second + 1.0;
        assert!(updated.written as f64 <= due, "{updated:?} is too fast");
        let mut changed = HashSet::new();
        for _ in 0..updated.written {
            let event = events.event().await;
            assert_eq!(event.kind(), "MODIFIED");
            changed.insert(event.name());
        }
        assert!(changed.len() > 3, "{changed:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_written_is_named_with_the_servers_reason() {
    let cluster = require!(Cluster::shared().await);
    let namespace = cluster.namespace("failing").await.unwrap();
    let twice = pods(SEED, 3).chain(pods(SEED, 1));
    let failed = write_all(cluster.endpoint(), namespace.name(), twice, 1).await.unwrap_err();
    assert_eq!((failed.written.objects, failed.failures.len()), (3, 1));
    let failure = &failed.failures[0];
    let name = pods(SEED, 1).next().unwrap().name().to_owned();
    assert_eq!((failure.key.as_str(), failure.status), (&*format!("{}/{name}", namespace.name()), Some(409)));
    assert!(failure.message.starts_with(&format!("pods \"{name}\" already exists")), "{failure}");
    assert!(failed.to_string().contains(&name), "{failed}");

    let steady = Steady::start(
        cluster.endpoint(),
        namespace.name(),
        pods(SEED + 1, 1),
        Pace { seed: SEED, per_second: 200.0, parallelism: 2 },
    );
    soon(steady.wait(3)).await;
    let updated = soon(steady.stop()).await;
    assert!(updated.written == 0 && updated.failed >= 3, "{updated:?}");
    assert!(updated.failures[0].message.ends_with("not found"), "{updated:?}");
}

#[tokio::test]
async fn a_server_that_asks_to_wait_is_waited_for() {
    let cluster = require!(Cluster::shared().await);
    let namespace = cluster.namespace("throttled").await.unwrap();
    let proxy = Config::new(cluster.admin()).add_credentials().start().await.unwrap();
    proxy.on(Match::write()).times(2).answer(Answer::too_many_requests(1));
    let endpoint = Endpoint::new(Access::anonymous(proxy.url())).unwrap();
    let written = soon(write_all(&endpoint, namespace.name(), pods(SEED, 2), 2)).await.unwrap();
    assert_eq!((written.objects, written.throttled, written.requests), (2, 2, 8));
    assert!(written.elapsed.as_secs_f64() >= 1.0, "{written:?}");
}
