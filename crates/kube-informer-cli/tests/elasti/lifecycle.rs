//! How the operator begins and ends, and what it does in between.

use kube_informer_elasti::names;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::kubeconfig::Access;
use kube_informer_testbed::process::Launch;
use kube_informer_testbed::proxy::{Config, Match};
use serde_json::json;

use crate::support::{ELASTI, Operator, SOON, World, on_both};

on_both!(
    a_service_sleeps_wakes_and_serves,
    a_restart_in_each_mode_goes_on_from_there,
    sigterm_ends_it_in_order,
    ctrl_c_ends_it_in_order_and_the_code_says_so,
    what_it_writes_says_who_wrote_it
);

/// Scaled to zero, it is answered by the resolver; the resolver's call wakes it; with a ready pod it answers itself.
async fn a_service_sleeps_wakes_and_serves(world: World) {
    let operator = Operator::start(&world, &[]).await;
    a_cycle(&world, &operator).await;
    let metrics = operator.metrics.get("/metrics").await.unwrap().text().into_owned();
    let mode = format!("elasti_operator_mode{{namespace=\"{}\",crd_name=\"web\"}} 0", world.namespace);
    for line in [
        r#"elasti_operator_scale_counter{error="success"} 1"#,
        r#"elasti_operator_scale_counter{error="unknown_service"} 1"#,
        r#"elasti_operator_informer_count{informer_name="deployments.apps"} 1"#,
        r#"elasti_operator_informer_count{informer_name="services"} 1"#,
        // However often it was looked at, each was begun once.
        r#"elasti_operator_informer_counter{action="add",error="success"} 2"#,
        &mode,
    ] {
        assert!(metrics.lines().any(|found| found == line), "{metrics}\nlacks {line}");
    }
    for name in [
        "controller_runtime_reconcile_total{",
        "workqueue_adds_total{",
        "kube_informer_objects{",
        "kube_informer_manager_watches{",
        r#"elasti_operator_informer_handler_counter{error="success"}"#,
        r#"elasti_operator_CRD_update_counter{mode="proxy",error="success"}"#,
    ] {
        assert!(metrics.contains(name), "{metrics}\nlacks {name}");
    }
    let mut families: Vec<_> = metrics.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let count = families.len();
    families.sort_unstable();
    families.dedup();
    assert_eq!(count, families.len(), "{metrics}\nhas a metric twice");
    // KubeElasti's chart scrapes the port that the resolver calls.
    let metrics = operator.wake.get("/metrics").await.unwrap();
    assert!(metrics.status.is_success() && metrics.text().contains("elasti_operator_reconcile"));
    assert!(operator.probes.get("/healthz").await.unwrap().status.is_success());
    world.delete_elasti("web").await;
    world.forgotten("web").await;
    let metrics = operator.metrics.get("/metrics").await.unwrap().text().into_owned();
    let finalized = r#"elasti_operator_CRD_finalizer_counter{error="success"}"#;
    assert!(metrics.contains(finalized), "{metrics}\nlacks {finalized}");
}

/// The main scenario, which ends with a service that is awake.
pub(crate) async fn a_cycle(world: &World, operator: &Operator) {
    world.service("web", 0).await;
    world.sleeps("web").await;
    operator.ready().await;
    let unknown = operator.call(&world.namespace, "nobody").await;
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let woken = operator.call(&world.namespace, "web").await;
    assert_eq!(woken.status, 200, "{woken:?}");
    assert_eq!(world.replicas("web").await, 1, "200 means that it was scaled");
    world.serves("web").await;
}

async fn a_restart_in_each_mode_goes_on_from_there(world: World) {
    let operator = Operator::start(&world, &[]).await;
    world.service("web", 1).await;
    world.serves("web").await;
    operator.stop().await;

    // While nobody looks, it is put to sleep.
    world.scale("web", 0).await;
    let operator = Operator::start(&world, &[]).await;
    world.sleeps("web").await;
    operator.stop().await;

    // What is there stays: a client that is routed by it notices nothing of the restart.
    let slice =
        world.path("discovery.k8s.io/v1", &format!("endpointslices/{}", names::resolver_slice("web")));
    let uid = async || world.endpoint.get_json(&slice).await.unwrap()["metadata"]["uid"].clone();
    let before = uid().await;
    let operator = Operator::start(&world, &[]).await;
    operator.ready().await;
    assert_eq!(operator.call(&world.namespace, "web").await.status, 200);
    assert_eq!(before, uid().await);
    world.serves("web").await;
    world.scale("web", 0).await;
    world.sleeps("web").await;
    operator.stop().await;

    // While nobody looks, it wakes.
    world.scale("web", 2).await;
    let operator = Operator::start(&world, &[]).await;
    world.serves("web").await;
    operator.stop().await;

    // While nobody looks, it is taken back.
    world.delete_elasti("web").await;
    let _operator = Operator::start(&world, &[]).await;
    world.forgotten("web").await;
    assert_eq!(world.replicas("web").await, 2);
}

async fn ctrl_c_ends_it_in_order_and_the_code_says_so(world: World) {
    let operator = Operator::start(&world, &["--leader-elect"]).await;
    operator.ready().await;
    let (status, said) = operator.interrupt().await;
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(!said.contains("error:") && !said.contains("ERROR"), "{said}");
}

async fn sigterm_ends_it_in_order(world: World) {
    world.service("web", 0).await;
    let operator = Operator::start(&world, &["--leader-elect"]).await;
    world.sleeps("web").await;
    let (status, said) = operator.stop().await;
    assert_eq!(status.code(), Some(0), "{said}");
    assert!(!said.contains("error:") && !said.contains("ERROR"), "{said}");
    // The lease was given back: the next one need not wait for its end.
    let lease = world.path("coordination.k8s.io/v1", "leases/acf50383.truefoundry.io");
    let lease = world.endpoint.get_json(&lease).await.unwrap();
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    assert_eq!(holder, "", "{lease}");
}

async fn what_it_writes_says_who_wrote_it(world: World) {
    world.service("web", 0).await;
    let operator = Operator::start(&world, &["--leader-elect"]).await;
    world.sleeps("web").await;
    let managers = async |version: &str, rest: &str| -> Vec<String> {
        let object = world.endpoint.get_json(&world.path(version, rest)).await.unwrap();
        let fields = object["metadata"]["managedFields"].as_array().unwrap().iter();
        fields.map(|entry| entry["manager"].as_str().unwrap().to_owned()).collect()
    };
    let own = "kube-informer-elasti".to_owned();
    for (version, rest) in [
        ("coordination.k8s.io/v1", "leases/acf50383.truefoundry.io".to_owned()),
        ("discovery.k8s.io/v1", format!("endpointslices/{}", names::resolver_slice("web"))),
        ("v1", format!("services/{}", names::private_service("web"))),
    ] {
        let managers = managers(version, &rest).await;
        assert!(
            !managers.is_empty() && managers.iter().all(|manager| *manager == own),
            "{rest}: {managers:?}"
        );
    }
    // Somebody else has made it.
    let managers = managers(ELASTI, "elastiservices/web").await;
    assert!(managers.contains(&own), "{managers:?}");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_in_order_though_the_cluster_is_away() {
    let world = World::embedded("the_cluster_is_away").await;
    let nobody = Access::anonymous("http://127.0.0.1:1");
    for more in [&[][..], &["--leader-elect"]] {
        let operator = Operator::as_somebody(&world, &nobody, more).await;
        let answer = operator.probes.get("/readyz").await.unwrap();
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(operator.probes.get("/healthz").await.unwrap().status.is_success());
        // It is not known what there is: nothing is unknown yet.
        assert_eq!(operator.call("shop", "web").await.status, 503);
        let (status, said) = operator.stop().await;
        assert_eq!(status.code(), Some(0), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_in_order_though_the_server_falls_silent_in_the_middle_of_everything() {
    let world = World::embedded("the_server_falls_silent").await;
    world.service("web", 0).await;
    world.service("shop", 1).await;
    let proxy = Config::new(&world.admin()).add_credentials().start().await.unwrap();
    let access = Access::anonymous(proxy.url());
    let operator = Operator::as_somebody(&world, &access, &["--leader-elect"]).await;
    world.sleeps("web").await;
    world.serves("shop").await;
    operator.ready().await;
    // Of a switch, the first write hangs, and so does a call; then everything does, the lease included.
    let hangs = proxy.on(Match::write().when(|request| !request.path.contains("/leases"))).stall();
    world.scale("shop", 0).await;
    let call = json!({ "count": 1, "svc": "web", "namespace": world.namespace });
    let wake = operator.wake.clone();
    let called = tokio::spawn(async move { wake.post("/informer/incoming-request", &call).await });
    hangs.wait_applied(2).await;
    proxy.on_all(Match::any()).stall();
    let (status, said) = operator.stop().await;
    assert_eq!(status.code(), Some(0), "{said}");
    // Nobody was told that something was done that was not.
    assert!(called.await.unwrap().map_or(true, |answer| answer.status == 503), "{said}");
    assert_eq!(world.replicas("web").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_it_at_once() {
    let world = World::embedded("a_second_signal").await;
    world.service("web", 1).await;
    let proxy = Config::new(&world.admin()).add_credentials().start().await.unwrap();
    let mut operator = Operator::as_somebody(&world, &Access::anonymous(proxy.url()), &[]).await;
    world.serves("web").await;
    operator.ready().await;
    // Of a switch, the first write hangs: its end is waited for.
    let hangs = proxy.on(Match::write().when(|request| !request.path.contains("/events"))).stall();
    world.scale("web", 0).await;
    hangs.wait_applied(1).await;
    operator.signal("-TERM");
    eventually("it has begun to end", SOON, async || {
        operator.process.logged().contains("run: ending").then_some(())
    })
    .await;
    operator.signal("-TERM");
    let (status, said) = operator.ended().await;
    assert_eq!(status.code(), Some(130), "it did not end in order: {said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_definition_it_waits_until_that_is_there() {
    let world = World::bare("without_the_definition").await;
    let operator = Operator::start(&world, &[]).await;
    eventually("it says what is missing", SOON, async || {
        operator.readiness().await.contains("elastiservices").then_some(())
    })
    .await;
    let world = world.furnished().await;
    operator.ready().await;
    world.service("web", 0).await;
    world.sleeps("web").await;
}

#[test]
fn what_keeps_it_from_starting_is_one_line() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let kubeconfig = folder.join(format!("one-line-{}", std::process::id()));
    Access::anonymous("http://127.0.0.1:1").write(&kubeconfig).unwrap();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let free =
        ["--wake-bind-address=127.0.0.1:0", "--metrics-bind-address=0", "--health-probe-bind-address=0"];
    for (number, (args, variable, parts)) in [
        (&["--kubeconfig", "/nowhere/at/all"][..], None, &["/nowhere/at/all"][..]),
        (
            &["--kubeconfig", kubeconfig, "--context", "none"],
            None,
            &["none", "give --kubeconfig FILE, and --context NAME"],
        ),
        (
            &["--kubeconfig", kubeconfig, "--metrics-bind-address", &taken],
            None,
            &[&*taken, "--metrics-bind-address"],
        ),
        (
            &["--kubeconfig", kubeconfig],
            Some(("ELASTI_RESOLVER_PROXY_PORT", "many")),
            &["ELASTI_RESOLVER_PROXY_PORT", "many", "--resolver-proxy-port"],
        ),
        (
            &["--kubeconfig", kubeconfig, "--leader-elect", "--leader-elect-renew-deadline=20s"],
            None,
            &["renew"],
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let log = folder.join(format!("one-line-{}-{number}.log", std::process::id()));
        let launch = Launch::new("operator", env!("CARGO_BIN_EXE_kube-informer"), &log).args(["elasti"]);
        // Of two, the last counts.
        let mut launch = launch.args(
            free.iter().filter(|free| !args.contains(&free.split('=').next().unwrap_or_default())).copied(),
        );
        if let Some((name, value)) = variable {
            launch = launch.env(name, value);
        }
        let mut process = launch.args(args.iter().copied()).env("RUST_LOG", "warn").spawn().unwrap();
        let status = process.wait().unwrap();
        let said = process.logged();
        assert_eq!(status.code(), Some(1), "{args:?}: {said}");
        assert!(said.starts_with("error: ") && said.lines().count() == 1, "{args:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{args:?}: {said} lacks {part}");
        }
        std::fs::remove_file(&log).unwrap();
    }
    std::fs::remove_file(kubeconfig).unwrap();
}
