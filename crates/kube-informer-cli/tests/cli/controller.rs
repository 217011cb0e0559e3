//! `controller deployments`, as people use it: a cluster, the command, and any WebSocket client.

use kube_informer_apiserver::Server;
use kube_informer_apiserver::faults::{Answer, Match};
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::json;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use crate::bad_input::one_line;
use crate::client::{File, NO_CONTEXT, closed, op, taken_address, word};
use crate::harness::Place;
use crate::running::{Running, kube_informer, run, stuck_pipe, text};

async fn created(cluster: &Endpoint, namespace: &str) {
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "shop/web:1.4" }] },
            },
        },
    });
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let answer = cluster.post(&path, &deployment).await.unwrap();
    assert!(answer.status.is_success(), "{answer:?}");
}

/// Starts the command, connects without any ado, scales a Deployment, and hears of it.
async fn a_client_hears_what_changes(cluster: &Endpoint, namespace: &str) {
    created(cluster, namespace).await;
    let kubeconfig = File::kubeconfig(cluster.access());
    let args = ["controller", "deployments", "--kubeconfig", kubeconfig.path(), "-n", namespace];
    let (mut controller, url) = tokio::task::block_in_place(|| {
        let mut controller = Running::start(&args);
        let line = controller.line("ws://127.0.0.1:");
        (controller, word(&line, "ws://").to_owned())
    });
    tokio::task::block_in_place(|| controller.line("Deployments that are there: 1; what changes follows"));
    let (mut socket, _) = connect_async(&url).await.unwrap();
    // What there is, and then what changes.
    let item = op(&mut socket, "snap.item").await;
    assert_eq!((&item["obj"]["name"], &item["object"]["spec"]["replicas"]), (&json!("web"), &json!(3)));
    op(&mut socket, "snap.end").await;
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/web");
    let answer = cluster.merge_patch(&path, &json!({ "spec": { "replicas": 5 } })).await.unwrap();
    assert!(answer.status.is_success(), "{answer:?}");
    let change = op(&mut socket, "change").await;
    assert_eq!((&change["type"], &change["summary"]), (&json!("MODIFIED"), &json!("replicas 3→5")));
    assert_eq!(change["changes"], json!([{ "path": "/spec/replicas", "old": 3, "new": 5 }]));
    assert_eq!(change["class"], json!(["scale"]));
    assert_eq!((&change["obj"]["ns"], &change["obj"]["name"]), (&json!(namespace), &json!("web")));
    tokio::task::block_in_place(|| {
        let line = controller.line("replicas 3→5");
        assert!(line.contains(&format!("~ Deployment {namespace}/web replicas 3→5")), "{line}");
    });
    let http = url.replace("ws://", "http://").replace("/v1/stream", "");
    let metrics = Endpoint::new(Access::anonymous(http)).unwrap().get("/metrics").await.unwrap();
    let metrics = metrics.text().into_owned();
    for name in [
        "workqueue_adds_total{name=\"deployments\"}",
        "workqueue_depth{name=\"deployments\"}",
        "controller_runtime_reconcile_total{controller=\"deployments\",result=\"success\"}",
        "controller_runtime_reconcile_time_seconds_count{controller=\"deployments\"}",
        "controller_runtime_active_workers{controller=\"deployments\"}",
    ] {
        assert!(metrics.contains(name), "{name} in\n{metrics}");
    }
    // It ends as asked to, and says goodbye.
    let ended = tokio::task::spawn_blocking(|| controller.terminate());
    let bye = op(&mut socket, "bye").await;
    assert_eq!(bye["code"], 1001, "{bye}");
    closed(socket).await;
    assert_eq!(ended.await.unwrap(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_websocket_client_hears_what_changes_on_the_embedded_server() {
    let server = Server::builder().start().await.unwrap();
    let cluster = Endpoint::new(Access::anonymous(server.url())).unwrap();
    let namespace = json!({ "metadata": { "name": "shop" } });
    cluster.post("/api/v1/namespaces", &namespace).await.unwrap();
    a_client_hears_what_changes(&cluster, "shop").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_websocket_client_hears_what_changes_on_the_real_server() {
    let cluster = kube_informer_testbed::require!(Cluster::shared().await);
    let namespace = cluster.namespace("any_websocket_client_real").await.unwrap();
    a_client_hears_what_changes(cluster.endpoint(), namespace.name()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_the_token_is_refused() {
    let server = Server::builder().start().await.unwrap();
    let kubeconfig = File::kubeconfig(&Access::anonymous(server.url()));
    let token = File::token("a-token-that-nobody-guesses\n");
    let args = ["controller", "deployments", "--kubeconfig", kubeconfig.path(), "--token-file", token.path()];
    let (controller, url) = tokio::task::block_in_place(|| {
        let mut controller = Running::start(&args);
        let line = controller.line("ws://127.0.0.1:");
        (controller, word(&line, "ws://").to_owned())
    });
    let refused = connect_async(&url).await.unwrap_err().to_string();
    assert!(refused.contains("401"), "{refused}");
    let mut request = url.into_client_request().unwrap();
    let bearer = "Bearer a-token-that-nobody-guesses".parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    let (mut socket, _) = connect_async(request).await.unwrap();
    op(&mut socket, "snap.end").await;
    assert_eq!(tokio::task::spawn_blocking(|| controller.terminate()).await.unwrap(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_controller_goes_on_when_nobody_reads_what_it_prints() {
    let server = Server::builder().start().await.unwrap();
    let cluster = Endpoint::new(Access::anonymous(server.url())).unwrap();
    let kubeconfig = File::kubeconfig(cluster.access());
    let args = ["controller", "deployments", "--kubeconfig", kubeconfig.path()];
    let (mut controller, url) = tokio::task::block_in_place(|| {
        let mut controller = Running::start(&args);
        let url = word(&controller.line("ws://127.0.0.1:"), "ws://").to_owned();
        controller.line("Deployments that are there: 0; what changes follows");
        (controller, url)
    });
    controller.close_stdout();
    let (mut socket, _) = connect_async(&url).await.unwrap();
    op(&mut socket, "snap.end").await;
    // It has something to print each time, and tells those who are connected all the same.
    created(&cluster, "default").await;
    assert_eq!(op(&mut socket, "change").await["type"], "ADDED");
    let path = "/apis/apps/v1/namespaces/default/deployments/web";
    for replicas in [5, 7] {
        let answer = cluster.merge_patch(path, &json!({ "spec": { "replicas": replicas } })).await.unwrap();
        assert!(answer.status.is_success(), "{answer:?}");
        let change = op(&mut socket, "change").await;
        assert_eq!(change["changes"][0]["new"], json!(replicas), "{change}");
    }
    drop(socket);
    controller.signal("-TERM");
    tokio::task::block_in_place(|| {
        assert_eq!(controller.code(), Some(0));
        assert_eq!(controller.said(), "");
    });
}

#[test]
fn the_controller_says_in_one_line_why_it_does_not_start() {
    let kubeconfig = File::kubeconfig(&Access::anonymous("http://127.0.0.1:1"));
    let path = kubeconfig.path();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (args, code, expected) in [
        (&["--kubeconfig", "/nowhere/at/all"][..], 1, "/nowhere/at/all"),
        (&["--kubeconfig", path, "--context", "none"], 1, NO_CONTEXT),
        (&["--kubeconfig", path, "--listen", "0.0.0.0:0"], 2, "give --token-file FILE"),
        // Before anybody else is asked for anything.
        (&["--kubeconfig", "/nowhere/at/all", "--listen", ":0"], 2, "give --token-file FILE"),
        (&["--kubeconfig", path, "--listen", &address], 1, &taken_address(&address)),
        (&["--kubeconfig", path, "--token-file", "/nowhere/at/all"], 1, "/nowhere/at/all"),
    ] {
        let output = run(&[&["controller", "deployments"], args].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        let said = text(&output.stderr);
        assert!(said.starts_with("error: ") && said.contains(expected), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(said.matches("No such file").count().max(1), 1, "it says nothing twice: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_read_deployments_is_told_so_with_exit_code_1() {
    for (answer, expected) in [(Answer::unauthorized(), "log in anew"), (Answer::forbidden(), "auth can-i")] {
        let place = Place::embedded().await.unwrap();
        let (proxy, kubeconfig) = place.proxy().await.unwrap();
        proxy.on(Match::any().path_contains("/deployments")).answer(answer);
        let args = ["controller", "deployments", "--kubeconfig", &kubeconfig];
        let output = tokio::task::block_in_place(|| run(&args));
        assert_eq!(output.status.code(), Some(1));
        one_line(&output.stderr, &["deployments.v1.apps cannot be read: ", expected]);
    }
}

#[test]
fn a_cluster_that_is_away_is_waited_for_and_that_is_said() {
    let kubeconfig = File::kubeconfig(&Access::anonymous("http://127.0.0.1:1"));
    let mut controller = Running::start(&["controller", "deployments", "--kubeconfig", kubeconfig.path()]);
    let line = controller.line("waiting until Deployments can be read: ");
    assert!(line.contains("refused") && line.contains("check that the API server runs"), "{line}");
    assert_eq!(controller.terminate(), Some(0));
}

#[test]
fn ctrl_c_ends_the_controller_with_130() {
    let kubeconfig = File::kubeconfig(&Access::anonymous("http://127.0.0.1:1"));
    let mut controller = Running::start(&["controller", "deployments", "--kubeconfig", kubeconfig.path()]);
    controller.line("Ctrl-C ends it");
    controller.signal("-INT");
    assert_eq!(controller.code(), Some(130));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_the_controller_at_once() {
    let server = Server::builder().start().await.unwrap();
    let kubeconfig = File::kubeconfig(&Access::anonymous(server.url()));
    let args = ["controller", "deployments", "--kubeconfig", kubeconfig.path(), "-v"];
    let (mut controller, url) = tokio::task::block_in_place(|| {
        let mut controller = Running::start(&args);
        let url = word(&controller.line("ws://127.0.0.1:"), "ws://").to_owned();
        controller.line("what changes follows");
        (controller, url)
    });
    // Somebody who never answers a goodbye, and is waited for.
    let (silent, _) = connect_async(&url).await.unwrap();
    controller.signal("-TERM");
    tokio::task::block_in_place(|| {
        controller.note("the controller has ended");
        controller.signal("-TERM");
        assert_eq!(controller.code(), Some(130), "it did not end in order");
    });
    drop(silent);
}

#[test]
fn the_controller_ends_at_sigterm_though_the_cluster_is_away_and_its_output_is_stuck() {
    let kubeconfig = File::kubeconfig(&Access::anonymous("http://127.0.0.1:1"));
    let (reader, writer) = stuck_pipe(0);
    let mut command = kube_informer(&["controller", "deployments", "--kubeconfig", kubeconfig.path()]);
    command.stdout(writer);
    let mut controller = Running::of(command);
    // It tries, and says what is wrong: so it runs.
    let line = controller.note("refused");
    assert!(!line.contains('\x1b'), "colors are for terminals: {line:?}");
    assert_eq!(controller.terminate(), Some(0));
    drop(reader);
}
