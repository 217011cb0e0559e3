//! `apiserver`: what it serves, what it says, and how it ends.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use anyhow::Result;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use serde_json::json;

use crate::client::{taken_address, word};
use crate::harness::{blocking, output};
use crate::running::{Running, kube_informer, run, stuck_pipe, text};

/// The command, and the URL that it names.
fn start(args: &[&str]) -> (Running, String) {
    let mut server = Running::start(&[&["apiserver"], args].concat());
    let url = word(&server.line("Kubernetes API on"), "http").to_owned();
    server.line("Ctrl-C ends it");
    (server, url)
}

#[test]
fn the_embedded_server_goes_on_when_nobody_reads_what_it_prints() {
    let folder = std::env::temp_dir().join(format!("kube-informer-unread-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = kube_informer(&["apiserver", "--write-kubeconfig", file.to_str().unwrap()]);
    command.stdout(writer);
    let mut server = Running::of(command);
    server.until_it_is("the kubeconfig is written", || {
        std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with("}\n"))
    });
    server.signal("-TERM");
    assert_eq!(server.code(), Some(130));
    assert_eq!(server.said(), "");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_embedded_server_ends_at_sigterm_though_its_output_is_stuck() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let (reader, writer) = stuck_pipe(0);
    let mut command = kube_informer(&["apiserver", "--write-kubeconfig", file.to_str().unwrap()]);
    command.stdout(writer);
    let mut server = Running::of(command);
    server.until_it_is("the kubeconfig is written", || {
        std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with("}\n"))
    });
    assert_eq!(server.terminate(), Some(130));
    drop(reader);
}

#[test]
fn the_embedded_server_writes_a_kubeconfig_and_ends_at_sigterm_with_130() {
    let folder = std::env::temp_dir().join(format!("kube-informer-cli-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("config");
    let file = file.to_str().unwrap();
    let mut server = Running::start(&["apiserver", "--write-kubeconfig", file, "--tls", "--token", "secret"]);
    server.line("Kubernetes API on https://127.0.0.1:");
    server.line(file);
    let kubeconfig = std::fs::read_to_string(file).unwrap();
    assert!(kubeconfig.contains("certificate-authority-data") && kubeconfig.contains("secret"));
    assert_eq!(server.terminate(), Some(130));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_taken_port_is_one_line_that_names_it_and_says_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["apiserver", "--listen", &address]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert_eq!(said, format!("error: the embedded API server did not start: {}", taken_address(&address)));
}

#[test]
fn a_port_alone_is_every_address_of_this_machine() {
    let (server, url) = start(&["--listen", ":0"]);
    let (_, port) = url.rsplit_once(':').unwrap();
    TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    assert_eq!(server.terminate(), Some(130));
}

#[test]
fn a_kubeconfig_that_cannot_be_written_is_named() {
    let output = run(&["apiserver", "--write-kubeconfig", "/nowhere/at/all"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("/nowhere/at/all: No such file") && said.contains("give --write-kubeconfig"),
        "{said}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workloads_come_alive_where_that_is_simulated() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("config");
    let file = file.to_str().unwrap();
    let args = ["--simulate", "--speed", "20", "--write-kubeconfig", file];
    let (server, url) = blocking(|| start(&args));
    let deployment = json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "main", "image": "nginx:1" }] },
            },
        },
    });
    let endpoint = Endpoint::new(Access::anonymous(url))?;
    endpoint.post("/apis/apps/v1/namespaces/default/deployments", &deployment).await?.success()?;
    let wait = ["wait", "deploy/web", "--for", "jsonpath={.status.readyReplicas}=2", "--timeout", "100s"];
    let waited = output(kube_informer(&[&wait[..], &["--kubeconfig", file]].concat())).await;
    assert_eq!(text(&waited.stdout), "deployment.apps/web condition met\n", "{}", text(&waited.stderr));
    let get = ["get", "pods", "-l", "app=web", "-o", "name", "--kubeconfig", file];
    let pods = text(&output(kube_informer(&get)).await.stdout);
    assert_eq!(pods.lines().filter(|line| line.starts_with("pod/web-")).count(), 2, "{pods}");
    assert_eq!(blocking(|| server.terminate()), Some(130));
    Ok(())
}

#[test]
fn a_second_signal_ends_it_at_once() {
    // Somebody in the middle of a request, who is waited for.
    let busy = |url: &str| {
        let address: SocketAddr = url.strip_prefix("http://").unwrap().parse().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let head = "POST /api/v1/namespaces HTTP/1.1\r\nhost: here\r\ncontent-type: application/json\r\n\
                    content-length: 100\r\nexpect: 100-continue\r\n\r\n";
        client.write_all(head.as_bytes()).unwrap();
        // It has begun to read what does not come.
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(&client), &mut line).unwrap();
        assert!(line.contains("100 Continue"), "{line}");
        (client, address)
    };
    let ((mut patient, patient_url), (mut hasty, hasty_url)) = (start(&[]), start(&[]));
    let (waits, (waits_too, address)) = (busy(&patient_url), busy(&hasty_url));
    patient.signal("-INT");
    hasty.signal("-INT");
    hasty.until_it_is("it takes no more connections", || TcpStream::connect(address).is_err());
    hasty.signal("-INT");
    assert_eq!(hasty.code(), Some(130));
    assert!(patient.child.try_wait().unwrap().is_none(), "who was asked once, and before, waits still");
    assert_eq!(patient.code(), Some(130));
    drop((waits, waits_too));
}
