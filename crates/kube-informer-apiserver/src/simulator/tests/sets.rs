//! StatefulSets, DaemonSets, Jobs.

use super::*;

fn set(replicas: u32) -> Value {
    workload("StatefulSet", "db", json!({ "replicas": replicas, "serviceName": "db" }))
}

async fn set_rolled_out(world: &World) {
    world
        .until("the set is rolled out", |w| {
            let set = w.get(Kind::StatefulSet, "db");
            let (status, wanted) = (&set["status"], &set["spec"]["replicas"]);
            status["observedGeneration"] == set["metadata"]["generation"]
                && status["currentRevision"] == status["updateRevision"]
                && status["updatedReplicas"] == *wanted
                && status["readyReplicas"] == *wanted
                && status["replicas"] == *wanted
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_stateful_set_come_in_order_and_go_in_reverse() {
    let world = World::start(Simulation::default());
    world.create(Kind::StatefulSet, set(4));
    set_rolled_out(&world).await;
    world.edit(Kind::StatefulSet, "db", |set| set["spec"]["replicas"] = 1.into());
    set_rolled_out(&world).await;
    world.quiet().await;
    let mut gone = Vec::new();
    for change in world.history(Kind::Pod) {
        if change.kind == ChangeKind::Deleted {
            gone.push(change.new.name.clone());
        }
    }
    assert_eq!(gone, ["db-3", "db-2", "db-1"]);
    world.replay_pods(|revision, pods| {
        let waiting: Vec<&Value> = pods.values().filter(|p| !is_ready(p) || is_deleting(p)).collect();
        assert!(waiting.len() <= 1, "at {revision}: more than one is not ready");
        let last = pods.values().last().map(name);
        assert!(waiting.iter().all(|p| Some(name(p)) == last), "at {revision}: not the last one");
    });
    let pod = world.get(Kind::Pod, "db-0");
    assert_eq!(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "0");
    assert_eq!((&pod["spec"]["hostname"], &pod["spec"]["subdomain"]), (&json!("db-0"), &json!("db")));
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_is_updated_from_the_top_one_at_a_time() {
    let world = World::start(Simulation::default());
    world.create(Kind::StatefulSet, set(3));
    set_rolled_out(&world).await;
    let before = world.api.store.revision();
    world.edit(Kind::StatefulSet, "db", |set| set_image(set, "example.com/main:2"));
    set_rolled_out(&world).await;
    let gone: Vec<String> = world
        .history(Kind::Pod)
        .iter()
        .filter(|c| c.revision > before && c.kind == ChangeKind::Deleted)
        .map(|c| c.new.name.clone())
        .collect();
    assert_eq!(gone, ["db-2", "db-1", "db-0"]);
    assert_eq!(world.list(Kind::ControllerRevision).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_partition_keeps_the_lower_pods_as_they_are() {
    let world = World::start(Simulation::default());
    world.create(Kind::StatefulSet, set(3));
    set_rolled_out(&world).await;
    world.edit(Kind::StatefulSet, "db", |set| {
        set["spec"]["updateStrategy"] =
            json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 2 } });
        set_image(set, "example.com/main:2");
    });
    world.quiet().await;
    let image = |name: &str| world.get(Kind::Pod, name)["spec"]["containers"][0]["image"].clone();
    assert_eq!(
        [image("db-0"), image("db-1"), image("db-2")],
        ["example.com/main:1", "example.com/main:1", "example.com/main:2"]
    );
    // A pod below the partition comes back as it was.
    world.delete(Kind::Pod, "db-0");
    world.quiet().await;
    assert_eq!(image("db-0"), "example.com/main:1");
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_has_a_pod_on_every_node() {
    let world = World::start(Simulation::default().with_nodes(4));
    world.create(Kind::DaemonSet, workload("DaemonSet", "agent", json!({})));
    world
        .until("all daemons run", |w| w.get(Kind::DaemonSet, "agent")["status"]["numberAvailable"] == 4)
        .await;
    let mut nodes: Vec<String> =
        world.list(Kind::Pod).iter().map(|p| text(p, "/spec/nodeName").to_owned()).collect();
    nodes.sort();
    assert_eq!(nodes, ["node-1", "node-2", "node-3", "node-4"]);

    let old: Vec<String> = world.list(Kind::Pod).iter().map(|p| name(p).to_owned()).collect();
    world.edit(Kind::DaemonSet, "agent", |set| set_image(set, "example.com/main:2"));
    world.quiet().await;
    let status = world.get(Kind::DaemonSet, "agent")["status"].clone();
    assert_eq!((&status["updatedNumberScheduled"], &status["numberAvailable"]), (&json!(4), &json!(4)));
    assert!(world.list(Kind::Pod).iter().all(|p| !old.contains(&name(p).to_owned())));

    world.delete(Kind::Node, "node-2");
    world.quiet().await;
    assert_eq!(world.list(Kind::Pod).len(), 3);
    assert_eq!(world.get(Kind::DaemonSet, "agent")["status"]["desiredNumberScheduled"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_to_its_completions() {
    let world = World::start(Simulation::default());
    let mut job = workload("Job", "report", json!({ "completions": 5, "parallelism": 2 }));
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    world.create(Kind::Job, job);
    world
        .until("the job is complete", |w| {
            reason(&w.get(Kind::Job, "report"), "Complete") == "CompletionsReached"
        })
        .await;
    world.quiet().await;
    let report = world.get(Kind::Job, "report");
    assert_eq!(report["status"]["succeeded"], 5);
    assert_ne!(report["status"]["completionTime"], Value::Null);
    world.replay_pods(|revision, pods| {
        let active = pods.values().filter(|p| is_active(p)).count();
        assert!(active <= 2, "at {revision}: {active} at once");
    });
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_pods_fail_gives_up() {
    let world = World::start(Simulation::default().with_crash_rate(1.0));
    let mut job = workload("Job", "report", json!({ "backoffLimit": 2 }));
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    world.create(Kind::Job, job);
    world
        .until("the job fails", |w| reason(&w.get(Kind::Job, "report"), "Failed") == "BackoffLimitExceeded")
        .await;
    world.quiet().await;
    assert_eq!(world.get(Kind::Job, "report")["status"]["failed"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_goes_after_its_time_to_live() {
    let world = World::start(Simulation::default());
    let mut job = workload("Job", "report", json!({ "ttlSecondsAfterFinished": 30 }));
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    world.create(Kind::Job, job);
    world.quiet().await;
    assert!(world.try_get(Kind::Job, "report").is_none());
    assert!(world.list(Kind::Pod).is_empty());
}

/// What is said about an object, by reason.
fn said(world: &World, reason: &str) -> Vec<(String, i64)> {
    let events = world.list(Kind::Event).into_iter().filter(|event| event["reason"] == reason);
    events
        .map(|event| (text(&event, "/message").to_owned(), event["count"].as_i64().unwrap_or_default()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn there_are_no_more_pods_than_the_simulation_may_have() {
    let huge = i64::from(i32::MAX);
    for (kind, spec) in [
        ("Deployment", json!({ "replicas": huge })),
        ("StatefulSet", json!({ "replicas": huge, "podManagementPolicy": "Parallel" })),
        ("StatefulSet", json!({ "replicas": huge })),
        ("Job", json!({ "parallelism": huge, "completions": huge })),
    ] {
        let world = World::start(Simulation::default().with_pods(150));
        let mut object = workload(kind, "huge", spec);
        if kind == "Job" {
            object["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
        }
        let kind = match kind {
            "Deployment" => Kind::Deployment,
            "StatefulSet" => Kind::StatefulSet,
            _ => Kind::Job,
        };
        world.create(kind, object);
        world.until("there are many", |w| w.list(Kind::Pod).len() == 150).await;
        world.quiet().await;
        world.replay_pods(|revision, pods| assert!(pods.len() <= 150, "at {revision}: {}", pods.len()));
        let failed = said(&world, "FailedCreate");
        assert_eq!(failed.len(), 1, "{kind:?}: {failed:?}");
        let (message, count) = &failed[0];
        assert!(message.contains("the simulation has no more than 150 pods"), "{message}");
        assert!(*count < 10, "{kind:?}: said {count} times");
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_was_held_back_goes_on_when_pods_go() {
    let world = World::start(Simulation::default().with_pods(5));
    world.create(Kind::Deployment, deployment("first", 4));
    world.deployed("first").await;
    world.create(Kind::Deployment, deployment("second", 3));
    world.quiet().await;
    let live = |w: &World, app: &str| {
        w.live_pods().iter().filter(|pod| text(pod, "/metadata/labels/app") == app).count()
    };
    assert_eq!((live(&world, "first"), live(&world, "second")), (4, 1));
    let second = world.get(Kind::Deployment, "second");
    assert_eq!(second["status"]["unavailableReplicas"], 2, "{second}");
    world.edit(Kind::Deployment, "first", |first| first["spec"]["replicas"] = 2.into());
    world.deployed("second").await;
    world.quiet().await;
    assert_eq!((live(&world, "first"), live(&world, "second")), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn a_rollout_goes_through_with_as_many_pods_as_there_may_be() {
    let world = World::start(Simulation::default().with_pods(4));
    world.create(Kind::Deployment, deployment("web", 4));
    world.deployed("web").await;
    world.edit(Kind::Deployment, "web", |web| set_image(web, "example.com/main:2"));
    world.deployed("web").await;
    world.replay_pods(|revision, pods| assert!(pods.len() <= 4, "at {revision}"));
}
