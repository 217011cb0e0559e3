//! After many objects have come and gone, the process has the memory back that it had before.
//!
//! By itself, because the memory is the process's. The server is in another one, and so is whoever writes: what is written,
//! and what is answered, takes memory, too, and is not the informer's.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_informer::factory::Factory;
use kube_informer::informer::Scope;
use kube_informer_apiserver::Server;
use kube_informer_testbed::eventually::eventually;
use kube_informer_testbed::http::Endpoint;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const SOON: Duration = Duration::from_secs(60);

/// In the environment of the process that is the server: where its kubeconfig goes.
const SERVER: &str = "KUBE_INFORMER_TEST_SERVER";

const OBJECTS: usize = 3_000;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn memory_is_given_back_after_a_burst() -> Result<()> {
    let runtime = Runtime::new()?;
    if let Some(file) = std::env::var_os(SERVER) {
        return runtime.block_on(serve(Path::new(&file)));
    }
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("kubeconfig");
    // It does what it is told, and ends when this process does: its stdin is closed then.
    let mut server = Command::new(std::env::current_exe()?)
        .args(["memory_is_given_back_after_a_burst", "--exact"])
        .env(SERVER, &file)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let mut orders = server.stdin.take().unwrap();
    let outcome = runtime.block_on(burst(&file, &mut orders));
    drop(orders);
    server.wait()?;
    outcome
}

/// What the server's process is told to do, by a line each.
const FILL: &str = "fill";
const CLEAR: &str = "clear";

async fn serve(file: &Path) -> Result<()> {
    let server = Server::builder().tls(false).start().await?;
    let made = file.with_extension("made");
    server.write_kubeconfig(&made)?;
    let endpoint = Endpoint::from_kubeconfig(&made).await?;
    std::fs::rename(made, file)?;
    let (order, mut orders) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().map_while(Result::ok).try_for_each(|line| order.send(line))
    });
    while let Some(order) = orders.recv().await {
        if order == FILL {
            fill(&endpoint).await?;
        } else {
            endpoint.delete(CONFIG_MAPS).await?.success()?;
        }
    }
    server.shutdown().await;
    Ok(())
}

async fn fill(endpoint: &Endpoint) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(5);
    let mut writes = JoinSet::new();
    for number in 0..OBJECTS {
        let noise: String = (0..8_000).map(|_| random.alphanumeric()).collect();
        let object = json!({ "metadata": { "name": format!("c-{number}") }, "data": { "noise": noise } });
        let endpoint = endpoint.clone();
        writes.spawn(async move { endpoint.post(CONFIG_MAPS, &object).await?.success() });
        if writes.len() >= 16 {
            writes.join_next().await.unwrap()??;
        }
    }
    while let Some(written) = writes.join_next().await {
        written??;
    }
    Ok(())
}

async fn burst(kubeconfig: &Path, orders: &mut ChildStdin) -> Result<()> {
    let there = async || kubeconfig.exists().then_some(());
    eventually("the server is up", SOON, there).await;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &options).await?;
    let factory = Factory::from_config(config).await?;
    let objects = factory.informer::<ConfigMap>(Scope::All);
    factory.start();
    factory.synced(SOON).await?;
    let count = async |wanted: usize| {
        let reached = async || (objects.list().count() == wanted).then_some(());
        eventually("the cache has what the server has", SOON, reached).await;
    };

    let (few, before) = (objects.list().count(), resident());
    writeln!(orders, "{FILL}")?;
    count(few + OBJECTS).await;
    let most = resident();
    assert!(most - before > OBJECTS * 4_000, "it holds them: {before} bytes became {most}");

    writeln!(orders, "{CLEAR}")?;
    count(0).await;
    let given_back = async || (resident() < before + (most - before) / 2).then_some(());
    eventually("most of the memory is given back", SOON, given_back).await;
    factory.shutdown().await;
    Ok(())
}

/// What the process has in memory, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}
