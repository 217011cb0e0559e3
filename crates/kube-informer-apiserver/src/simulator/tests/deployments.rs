//! Deployments and their ReplicaSets.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn revision(object: &Value) -> &str {
    object["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available() {
    let world = World::start(Simulation::default());
    world.create(Kind::Deployment, deployment("web", 3));
    world.deployed("web").await;
    world.quiet().await;

    let web = world.get(Kind::Deployment, "web");
    assert_eq!(revision(&web), "1");
    assert_eq!(reason(&web, "Available"), "MinimumReplicasAvailable");
    assert_eq!(reason(&web, "Progressing"), "NewReplicaSetAvailable");
    assert_eq!(web["status"]["readyReplicas"], 3);
    assert_eq!(web["status"]["unavailableReplicas"], Value::Null);

    let sets = world.list(Kind::ReplicaSet);
    assert_eq!(sets.len(), 1);
    let (set, hash) = (&sets[0], text(&sets[0], "/metadata/labels/pod-template-hash"));
    assert_eq!(name(set), format!("web-{hash}"));
    assert_eq!(set["spec"]["selector"]["matchLabels"]["pod-template-hash"], hash);
    assert_eq!(set["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"], "3");
    assert_eq!(set["metadata"]["annotations"]["deployment.kubernetes.io/max-replicas"], "4");
    assert_eq!(set["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(set["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);

    for pod in world.list(Kind::Pod) {
        assert!(name(&pod).starts_with(&format!("web-{hash}-")), "{}", name(&pod));
        assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], set["metadata"]["uid"]);
        assert!(is_ready(&pod));
    }
}

/// At every version there are at most `replicas + surge` active pods and, once available, at least
/// `replicas - unavailable` ready ones.
fn check_bounds(world: &World, replicas: usize, surge: usize, unavailable: usize) {
    let mut was_available = false;
    world.replay_pods(|revision, pods| {
        let active = pods.values().filter(|p| is_active(p)).count();
        let ready = pods.values().filter(|p| is_active(p) && is_ready(p)).count();
        assert!(active <= replicas + surge, "at {revision}: {active} pods");
        was_available |= ready == replicas;
        assert!(!was_available || ready + unavailable >= replicas, "at {revision}: only {ready} ready");
    });
    assert!(was_available);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_keeps_within_surge_and_unavailable_at_every_version() {
    let cases = [
        (10, json!(3), json!(2), 3, 2),
        (10, json!("25%"), json!("25%"), 3, 2),
        (4, json!(0), json!(1), 0, 1),
        (3, json!(1), json!(0), 1, 0),
        (1, json!("25%"), json!("25%"), 1, 0),
        (5, json!("100%"), json!("100%"), 5, 5),
        (7, json!("0%"), json!("10%"), 0, 1),
    ];
    for (replicas, surge, unavailable, surge_pods, unavailable_pods) in cases {
        let world = World::start(Simulation::default().with_seed(3));
        let mut web = deployment("web", u32::try_from(replicas).unwrap());
        web["spec"]["strategy"] = json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable } });
        world.create(Kind::Deployment, web);
        world.deployed("web").await;
        for image in ["example.com/main:2", "example.com/main:3"] {
            world.edit(Kind::Deployment, "web", |web| set_image(web, image));
            world.deployed("web").await;
            let images: Vec<Value> =
                world.live_pods().iter().map(|p| p["spec"]["containers"][0]["image"].clone()).collect();
            assert_eq!(images, vec![json!(image); replicas]);
        }
        world.quiet().await;
        check_bounds(&world, replicas, surge_pods, unavailable_pods);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollout_says_how_it_goes() {
    let world = World::start(Simulation::default());
    world.create(Kind::Deployment, deployment("web", 2));
    world.deployed("web").await;
    world.edit(Kind::Deployment, "web", |web| set_image(web, "example.com/main:2"));
    world.deployed("web").await;
    world.quiet().await;
    let mut reasons: Vec<String> = Vec::new();
    for change in world.history(Kind::Deployment) {
        let reason = reason(&change.new.value(), "Progressing");
        if !reason.is_empty() && reasons.last() != Some(&reason) {
            reasons.push(reason);
        }
    }
    let rollout = ["NewReplicaSetCreated", "ReplicaSetUpdated", "NewReplicaSetAvailable"];
    assert_eq!(reasons, [rollout, rollout].concat());
}

#[tokio::test(start_paused = true)]
async fn undoing_a_rollout_takes_the_old_replica_set_up_again() {
    let world = World::start(Simulation::default());
    world.create(Kind::Deployment, deployment("web", 2));
    world.deployed("web").await;
    let first = name(&world.list(Kind::ReplicaSet)[0]).to_owned();
    world.edit(Kind::Deployment, "web", |web| set_image(web, "example.com/main:2"));
    world.deployed("web").await;
    // `kubectl rollout undo` writes the template of the old ReplicaSet.
    world.edit(Kind::Deployment, "web", |web| set_image(web, "example.com/main:1"));
    world.deployed("web").await;
    world.quiet().await;

    assert_eq!(revision(&world.get(Kind::Deployment, "web")), "3");
    let sets: BTreeMap<String, (String, i64)> = world
        .list(Kind::ReplicaSet)
        .iter()
        .map(|s| (name(s).to_owned(), (revision(s).to_owned(), s["spec"]["replicas"].as_i64().unwrap())))
        .collect();
    assert_eq!(sets.len(), 2);
    assert_eq!(sets[&first], ("3".to_owned(), 2));
    assert!(sets.values().any(|(revision, replicas)| revision == "2" && *replicas == 0));
    let history = &world.get(Kind::ReplicaSet, &first)["metadata"]["annotations"];
    assert_eq!(history["deployment.kubernetes.io/revision-history"], "1");
}

#[tokio::test(start_paused = true)]
async fn history_beyond_its_limit_goes() {
    let world = World::start(Simulation::default());
    let mut web = deployment("web", 1);
    web["spec"]["revisionHistoryLimit"] = 2.into();
    world.create(Kind::Deployment, web);
    for image in 2..8 {
        world.deployed("web").await;
        world.edit(Kind::Deployment, "web", |web| set_image(web, &format!("example.com/main:{image}")));
    }
    world.deployed("web").await;
    world.quiet().await;
    let mut revisions: Vec<String> =
        world.list(Kind::ReplicaSet).iter().map(|s| revision(s).to_owned()).collect();
    revisions.sort();
    assert_eq!(revisions, ["5", "6", "7"]);
}

#[tokio::test(start_paused = true)]
async fn a_deployment_follows_its_number_of_replicas() {
    let world = World::start(Simulation::default());
    world.create(Kind::Deployment, deployment("web", 2));
    for replicas in [5, 1, 0, 3] {
        world.edit(Kind::Deployment, "web", |web| web["spec"]["replicas"] = replicas.into());
        world.deployed("web").await;
        world.quiet().await;
        assert_eq!(world.list(Kind::Pod).len(), replicas);
        let sets = world.list(Kind::ReplicaSet);
        assert_eq!(sets.len(), 1, "scaling makes no new set");
    }
}

#[tokio::test(start_paused = true)]
async fn scaling_during_a_rollout_keeps_proportions_and_ends_well() {
    let world = World::start(Simulation::default());
    world.create(Kind::Deployment, deployment("web", 10));
    world.deployed("web").await;
    world.edit(Kind::Deployment, "web", |web| set_image(web, "example.com/main:2"));
    world.until("the rollout has begun", |w| w.list(Kind::ReplicaSet).len() == 2).await;
    world.edit(Kind::Deployment, "web", |web| web["spec"]["replicas"] = 20.into());
    world.deployed("web").await;
    world.quiet().await;
    let images = world
        .list(Kind::Pod)
        .iter()
        .filter(|p| p["spec"]["containers"][0]["image"] == "example.com/main:2")
        .count();
    assert_eq!((images, world.list(Kind::Pod).len()), (20, 20));
}

#[tokio::test(start_paused = true)]
async fn recreate_never_runs_old_and_new_together() {
    let world = World::start(Simulation::default());
    let mut web = deployment("web", 3);
    web["spec"]["strategy"] = json!({ "type": "Recreate" });
    world.create(Kind::Deployment, web);
    world.deployed("web").await;
    world.edit(Kind::Deployment, "web", |web| set_image(web, "example.com/main:2"));
    world.deployed("web").await;
    world.quiet().await;
    world.replay_pods(|revision, pods| {
        let images: std::collections::BTreeSet<&str> =
            pods.values().map(|p| text(p, "/spec/containers/0/image")).collect();
        assert!(images.len() <= 1, "at {revision}: {images:?}");
    });
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_scales_but_does_not_roll_out() {
    let world = World::start(Simulation::default());
    world.create(Kind::Deployment, deployment("web", 2));
    world.deployed("web").await;
    world.edit(Kind::Deployment, "web", |web| {
        web["spec"]["paused"] = true.into();
        set_image(web, "example.com/main:2");
    });
    world.edit(Kind::Deployment, "web", |web| web["spec"]["replicas"] = 3.into());
    world.quiet().await;
    assert_eq!(world.list(Kind::ReplicaSet).len(), 1);
    assert_eq!(world.list(Kind::Pod).len(), 3);
    assert_eq!(reason(&world.get(Kind::Deployment, "web"), "Progressing"), "DeploymentPaused");
    world.edit(Kind::Deployment, "web", |web| web["spec"]["paused"] = false.into());
    world.deployed("web").await;
    assert_eq!(world.list(Kind::ReplicaSet).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rollout_that_gets_nowhere_times_out() {
    let world = World::start(Simulation::default());
    let mut web = deployment("web", 2);
    web["spec"]["progressDeadlineSeconds"] = 60.into();
    world.create(Kind::Deployment, web);
    world.deployed("web").await;
    world.edit(Kind::Deployment, "web", |web| {
        web["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "golden" });
    });
    let stuck =
        |w: &World| reason(&w.get(Kind::Deployment, "web"), "Progressing") == "ProgressDeadlineExceeded";
    world.until("the rollout times out", stuck).await;
    assert_eq!(reason(&world.get(Kind::Deployment, "web"), "Available"), "MinimumReplicasAvailable");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_replaced() {
    let world = World::start(Simulation::default());
    world.create(Kind::Deployment, deployment("web", 2));
    world.deployed("web").await;
    let victim = name(&world.list(Kind::Pod)[0]).to_owned();
    world.delete(Kind::Pod, &victim);
    world.quiet().await;
    assert_eq!(world.list(Kind::Pod).len(), 2);
    assert!(world.try_get(Kind::Pod, &victim).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_deployment_takes_everything_with_it() {
    let world = World::start(Simulation::default());
    world.create(Kind::Deployment, deployment("web", 3));
    world.deployed("web").await;
    world.delete(Kind::Deployment, "web");
    world.quiet().await;
    assert_eq!((world.list(Kind::ReplicaSet).len(), world.list(Kind::Pod).len()), (0, 0));
}

/// What somebody does to a Deployment.
#[derive(Debug, Clone)]
enum Deed {
    Scale(u8),
    Image(u8),
    DeletePod(u8),
    Compact,
    Wait(u8),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        (0..8_u8).prop_map(Deed::Scale),
        (0..4_u8).prop_map(Deed::Image),
        any::<u8>().prop_map(Deed::DeletePod),
        Just(Deed::Compact),
        (0..30_u8).prop_map(Deed::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_the_wanted_state_comes(deeds in proptest::collection::vec(deed(), 0..12), seed in any::<u64>()) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let simulation = Simulation::default().with_seed(seed).with_crash_rate(0.1);
            let world = World::start(simulation);
            world.create(Kind::Deployment, deployment("web", 3));
            for deed in &deeds {
                match deed {
                    Deed::Scale(to) => world.edit(Kind::Deployment, "web", |web| web["spec"]["replicas"] = (*to).into()),
                    Deed::Image(tag) => world.edit(Kind::Deployment, "web", |web| set_image(web, &format!("example.com/main:{tag}"))),
                    Deed::DeletePod(which) => {
                        let pods = world.live_pods();
                        if let Some(pod) = pods.get(usize::from(*which) % pods.len().max(1)) {
                            world.delete(Kind::Pod, name(pod));
                        }
                    }
                    Deed::Compact => world.api.store.compact(),
                    // tidy: allow-sleep the clock is paused: simulated time passes, no real time
                    Deed::Wait(seconds) => tokio::time::sleep(Duration::from_secs(u64::from(*seconds))).await,
                }
            }
            world.quiet().await;
            let web = world.get(Kind::Deployment, "web");
            assert!(is_deployed(&web), "{web:#}");
            let pods = world.list(Kind::Pod);
            assert_eq!(pods.len() as i64, web["spec"]["replicas"].as_i64().unwrap());
            for pod in pods {
                assert!(is_ready(&pod));
                assert_eq!(
                    pod["spec"]["containers"][0]["image"],
                    web["spec"]["template"]["spec"]["containers"][0]["image"]
                );
            }
            let revisions: std::collections::BTreeSet<String> =
                world.list(Kind::ReplicaSet).iter().map(|s| revision(s).to_owned()).collect();
            assert_eq!(revisions.len(), world.list(Kind::ReplicaSet).len(), "every set has its own revision");
        });
    }
}
