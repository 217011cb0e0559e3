//! The examples of the embedded server, run as people run them. They are tested here because the server's own tests know
//! nothing of the testbed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::examples::example;
use kube_informer_testbed::http::Endpoint;
use kube_informer_testbed::kubeconfig::Access;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const SOON: Duration = Duration::from_secs(60);

/// An example that runs, and the server that its first line names.
async fn run(name: &str, arguments: &[&str]) -> (Child, Endpoint) {
    let program = tokio::task::block_in_place(|| example("kube-informer-apiserver", name)).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).stdout(std::process::Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let line = BufReader::new(child.stdout.take().unwrap()).lines().next_line().await.unwrap().unwrap();
    let (_, rest) = line.split_once("--server ").expect("it says how to call it");
    let url = rest.split(' ').next().unwrap();
    (child, Endpoint::new(Access::anonymous(url)).unwrap())
}

async fn ends_with_ctrl_c(mut child: Child) {
    let id = i32::try_from(child.id().unwrap()).unwrap();
    // It may have been called before it listens to anything.
    eventually("it listens to Ctrl-C", SOON, async || catches(id, Signal::INT).then_some(())).await;
    kill_process(Pid::from_raw(id).unwrap(), Signal::INT).unwrap();
    let status = tokio::time::timeout(SOON, child.wait()).await.expect("it ends").unwrap();
    assert!(status.success(), "{status}");
}

/// Whether the process has a handler for a signal, by what the kernel says of it.
fn catches(id: i32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & (1 << (signal.as_raw() - 1)) != 0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_answers_until_ctrl_c() {
    let (child, server) = run("serve", &[]).await;
    let namespaces = server.get("/api/v1/namespaces").await.unwrap().success().unwrap();
    assert!(namespaces.text().contains("\"default\""));
    ends_with_ctrl_c(child).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simulate_has_a_shop_whose_pods_become_ready() {
    let (child, server) = run("simulate", &["20"]).await;
    eventually("a pod of the shop is ready", SOON, async || {
        let pods = server.get("/api/v1/namespaces/shop/pods").await.ok()?.success().ok()?.json().ok()?;
        let is_ready = |pod: &serde_json::Value| {
            let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|each| each["type"] == "Ready" && each["status"] == "True")
        };
        pods["items"].as_array()?.iter().any(is_ready).then_some(())
    })
    .await;
    ends_with_ctrl_c(child).await;
}
