//! `controller deployments`, as people use it: a cluster, the command, and any WebSocket client.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt;
use kube_informer_apiserver::Server;
use kube_informer_testbed::cluster::Cluster;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::running::{Running, kube_informer, run, text};

/// Long enough for anything on a busy machine; no test waits for it to pass.
const SOON: Duration = Duration::from_secs(60);

/// A kubeconfig that goes away with the test.
struct Kubeconfig(PathBuf);

impl Kubeconfig {
    fn of(access: &Access, test: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        access.write(&path).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // It is in a folder for such things.
        let _ = std::fs::remove_file(&self.0);
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The next message of which this is so.
async fn message(socket: &mut Socket, wanted: impl Fn(&Value) -> bool) -> Value {
    let found = async {
        loop {
            let message = socket.next().await.expect("the connection is open").unwrap();
            if let Message::Text(text) = message {
                let message: Value = serde_json::from_str(&text).unwrap();
                if wanted(&message) {
                    return message;
                }
            }
        }
    };
    tokio::time::timeout(SOON, found).await.expect("the message comes in time")
}

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
async fn a_client_hears_what_changes(cluster: &Endpoint, namespace: &str, test: &str) {
    created(cluster, namespace).await;
    let kubeconfig = Kubeconfig::of(cluster.access(), test);
    let args = ["controller", "deployments", "--kubeconfig", kubeconfig.path(), "-n", namespace];
    let (mut controller, url) = tokio::task::block_in_place(|| {
        let mut controller = Running::start(&args);
        let line = controller.line("ws://127.0.0.1:");
        let url = line.split_whitespace().find(|word| word.starts_with("ws://")).unwrap().to_owned();
        (controller, url)
    });
    tokio::task::block_in_place(|| controller.line("Deployments that are there: 1; what changes follows"));
    let (mut socket, _) = connect_async(&url).await.unwrap();
    // What there is, and then what changes.
    let item = message(&mut socket, |message| message["op"] == "snap.item").await;
    assert_eq!((&item["obj"]["name"], &item["object"]["spec"]["replicas"]), (&json!("web"), &json!(3)));
    message(&mut socket, |message| message["op"] == "snap.end").await;
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/web");
    let answer = cluster.merge_patch(&path, &json!({ "spec": { "replicas": 5 } })).await.unwrap();
    assert!(answer.status.is_success(), "{answer:?}");
    let change = message(&mut socket, |message| message["op"] == "change").await;
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
    let bye = message(&mut socket, |message| message["op"] == "bye").await;
    assert_eq!(bye["code"], 1001, "{bye}");
    while socket.next().await.is_some_and(|message| message.is_ok()) {}
    assert_eq!(ended.await.unwrap(), Some(130));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_websocket_client_hears_what_changes_on_the_embedded_server() {
    let server = Server::builder().start().await.unwrap();
    let cluster = Endpoint::new(Access::anonymous(server.url())).unwrap();
    let test = "any_websocket_client_embedded";
    let namespace = json!({ "metadata": { "name": "shop" } });
    cluster.post("/api/v1/namespaces", &namespace).await.unwrap();
    a_client_hears_what_changes(&cluster, "shop", test).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_websocket_client_hears_what_changes_on_the_real_server() {
    let cluster = kube_informer_testbed::require!(Cluster::shared().await);
    let test = "any_websocket_client_real";
    let namespace = cluster.namespace(test).await.unwrap();
    a_client_hears_what_changes(cluster.endpoint(), namespace.name(), test).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_without_the_token_is_refused() {
    let server = Server::builder().start().await.unwrap();
    let test = "a_client_without_the_token";
    let kubeconfig = Kubeconfig::of(&Access::anonymous(server.url()), test);
    let token =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-token-{}", std::process::id()));
    std::fs::write(&token, "a-token-that-nobody-guesses\n").unwrap();
    let file = token.to_str().unwrap();
    let args = ["controller", "deployments", "--kubeconfig", kubeconfig.path(), "--token-file", file];
    let (controller, url) = tokio::task::block_in_place(|| {
        let mut controller = Running::start(&args);
        let line = controller.line("ws://127.0.0.1:");
        (controller, line.split_whitespace().find(|word| word.starts_with("ws://")).unwrap().to_owned())
    });
    let refused = connect_async(&url).await.unwrap_err().to_string();
    assert!(refused.contains("401"), "{refused}");
    let mut request = url.into_client_request().unwrap();
    let bearer = "Bearer a-token-that-nobody-guesses".parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    let (mut socket, _) = connect_async(request).await.unwrap();
    message(&mut socket, |message| message["op"] == "snap.end").await;
    assert_eq!(tokio::task::spawn_blocking(|| controller.terminate()).await.unwrap(), Some(130));
    std::fs::remove_file(&token).unwrap();
}

#[test]
fn the_controller_says_in_one_line_why_it_does_not_start() {
    let kubeconfig = Kubeconfig::of(&Access::anonymous("http://127.0.0.1:1"), "why_it_does_not_start");
    let path = kubeconfig.path();
    for (args, expected) in [
        (&["--kubeconfig", "/nowhere/at/all"][..], "/nowhere/at/all"),
        (&["--kubeconfig", path, "--context", "none"], "none"),
        (&["--kubeconfig", path, "--listen", "0.0.0.0:0"], "token"),
        (&["--kubeconfig", path, "--token-file", "/nowhere/at/all"], "/nowhere/at/all"),
    ] {
        let output = run(&[&["controller", "deployments"], args].concat());
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = text(&output.stderr);
        assert!(said.starts_with("error: ") && said.contains(expected), "{args:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert_eq!(said.matches("No such file").count().max(1), 1, "it says nothing twice: {said}");
    }
}

#[test]
fn the_controller_ends_at_sigterm_though_the_cluster_is_away_and_its_output_is_stuck() {
    let kubeconfig = Kubeconfig::of(&Access::anonymous("http://127.0.0.1:1"), "the_cluster_is_away");
    let (reader, mut writer) = std::io::pipe().unwrap();
    // As much as a pipe holds: its first word waits for a reader, who never comes.
    std::io::Write::write_all(&mut writer, &vec![b'.'; 65536]).unwrap();
    let mut command = kube_informer(&["controller", "deployments", "--kubeconfig", kubeconfig.path()]);
    let mut controller = Running { child: command.stdout(writer).spawn().unwrap(), lines: None };
    // It tries, and says what is wrong: so it runs.
    let mut stderr = std::io::BufReader::new(controller.child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("refused") {
        line.clear();
        assert_ne!(std::io::BufRead::read_line(&mut stderr, &mut line).unwrap(), 0, "it has ended");
    }
    assert!(!line.contains('\x1b'), "colors are for terminals: {line:?}");
    assert_eq!(controller.terminate(), Some(130));
    drop(reader);
}
