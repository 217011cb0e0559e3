//! Scheduler, kubelet, EndpointSlices.

use super::*;

fn service(port: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": "web", "labels": { "team": "shop" } },
        "spec": { "selector": { "app": "web" }, "ports": [{ "name": "http", "port": 80, "targetPort": port }] },
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "example.com/main:1" }] },
    })
}

#[tokio::test(start_paused = true)]
async fn a_pod_passes_through_its_conditions_in_order() {
    let world = World::start(Simulation::default());
    world.create(Kind::Pod, pod("one"));
    world.quiet().await;
    let mut seen: Vec<String> = Vec::new();
    for change in world.history(Kind::Pod) {
        for kind in ["PodScheduled", "Initialized", "ContainersReady", "Ready"] {
            if super::super::condition::is_true(&change.new.value()["status"], kind)
                && !seen.contains(&kind.to_owned())
            {
                seen.push(kind.to_owned());
            }
        }
    }
    assert_eq!(seen, ["PodScheduled", "Initialized", "ContainersReady", "Ready"]);
    let status = &world.get(Kind::Pod, "one")["status"];
    assert_eq!(status["phase"], "Running");
    for field in ["podIP", "hostIP", "startTime"] {
        assert!(status[field].is_string(), "{field}");
    }
    let container = &status["containerStatuses"][0];
    assert_eq!(
        (&container["started"], &container["ready"], &container["restartCount"]),
        (&json!(true), &json!(true), &json!(0))
    );
    assert!(text(container, "/imageID").starts_with("example.com/main@sha256:"));
    assert!(text(container, "/containerID").starts_with("containerd://"));
}

#[tokio::test(start_paused = true)]
async fn pods_are_spread_over_the_nodes() {
    let world = World::start(Simulation::default().with_nodes(3));
    world.create(Kind::Deployment, deployment("web", 9));
    world.deployed("web").await;
    for node in ["node-1", "node-2", "node-3"] {
        let there = world.list(Kind::Pod).iter().filter(|p| text(p, "/spec/nodeName") == node).count();
        assert_eq!(there, 3, "{node}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_fits_no_node_says_so_and_waits() {
    let world = World::start(Simulation::default());
    let mut picky = pod("picky");
    picky["spec"]["nodeSelector"] = json!({ "disk": "golden" });
    world.create(Kind::Pod, picky);
    world.quiet().await;
    let waiting = world.get(Kind::Pod, "picky");
    assert_eq!(reason(&waiting, "PodScheduled"), "Unschedulable");
    assert_eq!(waiting["status"]["phase"], "Pending");
    world.edit(Kind::Node, "node-2", |node| node["metadata"]["labels"]["disk"] = "golden".into());
    world.until("it runs", |w| is_ready(&w.get(Kind::Pod, "picky"))).await;
    assert_eq!(world.get(Kind::Pod, "picky")["spec"]["nodeName"], "node-2");
}

#[tokio::test(start_paused = true)]
async fn a_full_cluster_takes_no_more_pods_until_some_go() {
    let world = World::start(Simulation::default().with_nodes(2).with_pods_per_node(2));
    world.create(Kind::Deployment, deployment("web", 6));
    world.quiet().await;
    let unscheduled =
        |w: &World| w.list(Kind::Pod).iter().filter(|p| text(p, "/spec/nodeName").is_empty()).count();
    assert_eq!(unscheduled(&world), 2);
    world.edit(Kind::Deployment, "web", |web| web["spec"]["replicas"] = 4.into());
    world.quiet().await;
    assert_eq!((unscheduled(&world), world.list(Kind::Pod).len()), (0, 4), "the unscheduled go first");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_ends_gracefully() {
    let world = World::start(Simulation::default());
    world.create(Kind::Pod, pod("one"));
    world.until("it runs", |w| is_ready(&w.get(Kind::Pod, "one"))).await;
    let before = tokio::time::Instant::now();
    world.delete(Kind::Pod, "one");
    assert!(is_deleting(&world.get(Kind::Pod, "one")), "it stays for a while");
    world.until("it is gone", |w| w.try_get(Kind::Pod, "one").is_none()).await;
    let took = before.elapsed();
    assert!(took > Duration::from_millis(100) && took < Duration::from_secs(30), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_backs_off_twice_as_long_each_time() {
    let world = World::start(Simulation::default().with_crash_rate(1.0));
    world.create(Kind::Pod, pod("one"));
    world
        .until("it has restarted often", |w| {
            w.get(Kind::Pod, "one")["status"]["containerStatuses"][0]["restartCount"].as_i64() >= Some(8)
        })
        .await;
    let mut pauses: Vec<String> = Vec::new();
    for change in world.history(Kind::Pod) {
        let value = change.new.value();
        let waiting = value.pointer("/status/containerStatuses/0/state/waiting").cloned().unwrap_or_default();
        if waiting["reason"] == "CrashLoopBackOff" {
            assert!(!is_ready(&value));
            assert_eq!(value["status"]["phase"], "Running");
            let pause = text(&waiting, "/message").split(' ').nth(1).unwrap_or_default().to_owned();
            if pauses.last() != Some(&pause) {
                pauses.push(pause);
            }
        }
    }
    assert_eq!(pauses, ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s"]);
    let last =
        world.get(Kind::Pod, "one")["status"]["containerStatuses"][0]["lastState"]["terminated"].clone();
    assert_eq!((&last["exitCode"], &last["reason"]), (&json!(1), &json!("Error")));
}

#[tokio::test(start_paused = true)]
async fn with_a_moderate_crash_rate_pods_come_back_for_good() {
    let world = World::start(Simulation::default().with_crash_rate(0.5));
    world.create(Kind::Deployment, deployment("web", 20));
    world.quiet().await;
    let pods = world.list(Kind::Pod);
    assert!(pods.iter().all(is_ready));
    assert!(pods.iter().any(|p| p["status"]["containerStatuses"][0]["restartCount"] != 0));
}

#[tokio::test(start_paused = true)]
async fn endpoint_slices_follow_the_ready_pods() {
    let world = World::start(Simulation::default());
    world.create(Kind::Service, service(json!("http")));
    world.quiet().await;
    let slices = world.list(Kind::EndpointSlice);
    assert_eq!(slices.len(), 1, "an empty one");

    world.create(Kind::Deployment, deployment("web", 3));
    world.quiet().await;
    let slices = world.list(Kind::EndpointSlice);
    assert_eq!(slices.len(), 1);
    let slice = &slices[0];
    assert_eq!(slice["ports"][0]["port"], 8080, "the name stands for the container's port");
    assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "web");
    assert_eq!(
        slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"],
        "endpointslice-controller.k8s.io"
    );
    assert_eq!(slice["metadata"]["labels"]["team"], "shop");
    let endpoints = slice["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 3);
    for endpoint in endpoints {
        assert_eq!(endpoint["conditions"], json!({ "ready": true, "serving": true, "terminating": false }));
        let pod = world.get(Kind::Pod, text(endpoint, "/targetRef/name"));
        assert_eq!(endpoint["addresses"], json!([pod["status"]["podIP"]]));
    }

    let victim = name(&world.list(Kind::Pod)[0]).to_owned();
    world.delete(Kind::Pod, &victim);
    let terminating = |w: &World| {
        let slices = w.list(Kind::EndpointSlice);
        let mut all = slices[0]["endpoints"].as_array().into_iter().flatten();
        all.any(|e| {
            e["targetRef"]["name"] == *victim
                && e["conditions"]["terminating"] == true
                && e["conditions"]["ready"] == false
        })
    };
    world.until("the slice says that it goes", terminating).await;
    world.edit(Kind::Deployment, "web", |web| web["spec"]["replicas"] = 0.into());
    world.quiet().await;
    let slices = world.list(Kind::EndpointSlice);
    assert_eq!(slices.len(), 1);
    assert!(slices[0]["endpoints"].as_array().is_none_or(Vec::is_empty));

    world.delete(Kind::Service, "web");
    world.quiet().await;
    assert!(world.list(Kind::EndpointSlice).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_slice_holds_at_most_a_hundred_endpoints() {
    let world = World::start(Simulation::default().with_nodes(5));
    world.create(Kind::Service, service(json!(8080)));
    world.create(Kind::Deployment, deployment("web", 150));
    world.quiet().await;
    let mut sizes: Vec<usize> =
        world.list(Kind::EndpointSlice).iter().map(|s| s["endpoints"].as_array().unwrap().len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes.iter().sum::<usize>(), 150);
    assert!(sizes.iter().all(|size| *size <= 100), "{sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn every_namespace_has_its_service_account() {
    let world = World::start(Simulation::default());
    world.quiet().await;
    assert!(world.try_get(Kind::ServiceAccount, "default").is_some());
    assert!(world.try_get(Kind::ConfigMap, "kube-root-ca.crt").is_some());
    world.delete(Kind::ServiceAccount, "default");
    world.quiet().await;
    assert!(world.try_get(Kind::ServiceAccount, "default").is_some());
}

#[tokio::test(start_paused = true)]
async fn no_more_events_are_kept_than_asked_for() {
    let world = World::start(Simulation::default().with_events(7));
    world.create(Kind::Deployment, deployment("web", 5));
    world.quiet().await;
    let all = world.api.store.list(&Kind::Event.bucket(), "").objects;
    assert_eq!(all.len(), 7);
}

#[tokio::test(start_paused = true)]
async fn nodes_renew_their_leases() {
    let world = World::start(Simulation::default().with_heartbeat(Duration::from_secs(10)));
    // tidy: allow-sleep the clock is paused: simulated time passes, no real time
    tokio::time::sleep(Duration::from_secs(35)).await;
    let beats = world.history(Kind::Lease).iter().filter(|c| c.new.name == "node-1").count();
    assert_eq!(beats, 4);
}
