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
