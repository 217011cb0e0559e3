//! Both ways to tell clients, played with few of them on the embedded server.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use kube_informer_apiserver::Server;
use kube_informer_bench_sync::program::Program;
use kube_informer_testbed::http::Endpoint;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const FEED: &str = env!("CARGO_BIN_EXE_bench-fan-out-server");
const CLIENTS: &str = env!("CARGO_BIN_EXE_bench-fan-out-clients");

const NAMESPACE: &str = "default";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

const COUNT: u64 = 5;
const CHANGES: u64 = 20;

/// An embedded server with one Deployment, and the way there.
struct Ground {
    runtime: Runtime,
    _server: Server,
    endpoint: Endpoint,
    kubeconfig: PathBuf,
    replicas: u64,
}

impl Ground {
    fn new(name: &str) -> Result<Self> {
        let runtime = Runtime::new()?;
        let kubeconfig = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let (server, endpoint) = runtime.block_on(async {
            let server = Server::builder().tls(false).start().await?;
            server.write_kubeconfig(&kubeconfig)?;
            let endpoint = Endpoint::from_kubeconfig(&kubeconfig).await?;
            let labels = json!({ "app": "web" });
            let deployment = json!({
                "metadata": { "name": "web" },
                "spec": {
                    "replicas": 0, "selector": { "matchLabels": labels },
                    "template": {
                        "metadata": { "labels": labels },
                        "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
                    },
                },
            });
            endpoint.post(DEPLOYMENTS, &deployment).await?.success()?;
            anyhow::Ok((server, endpoint))
        })?;
        Ok(Self { runtime, _server: server, endpoint, kubeconfig, replicas: 0 })
    }

    fn program(&self, program: &str, arguments: &[&str]) -> Result<Program> {
        Program::start(program, arguments, &self.kubeconfig)
    }

    /// A feed, and its address.
    fn feed(&self, way: &str) -> Result<(Program, String)> {
        let kubeconfig = self.kubeconfig.to_str().context("not UTF-8")?;
        let mut feed = self.program(FEED, &[kubeconfig, NAMESPACE, way, &COUNT.to_string()])?;
        let said = feed.said()?;
        let url = said["url"].as_str().with_context(|| format!("no address in {said}"))?;
        Ok((feed, url.to_owned()))
    }

    /// So many clients, who know what there is, and wait until the changes that follow are over.
    fn clients(&self, url: &str, count: u64) -> Result<Program> {
        let last = self.replicas + CHANGES;
        let mut clients = self.program(CLIENTS, &[url, &count.to_string(), &last.to_string()])?;
        assert_eq!(clients.said()?, json!({ "connected": count }));
        Ok(clients)
    }

    fn change(&mut self) -> Result<()> {
        self.runtime.block_on(async {
            for _ in 0..CHANGES {
                self.replicas += 1;
                let patch = json!({ "spec": { "replicas": self.replicas } });
                self.endpoint.merge_patch(&format!("{DEPLOYMENTS}/web"), &patch).await?.success()?;
            }
            Ok(())
        })
    }
}

/// How many messages all clients together were told of the changes.
fn messages(ground: &mut Ground, url: &str, count: u64) -> Result<u64> {
    let mut clients = ground.clients(url, count)?;
    ground.change()?;
    let told = clients.said()?;
    clients.end()?;
    told["messages"].as_u64().with_context(|| format!("no messages in {told}"))
}

#[test]
fn the_hub_tells_every_client_every_change() -> Result<()> {
    let mut ground = Ground::new("hub.kubeconfig")?;
    let (feed, url) = ground.feed("hub")?;
    for count in [1, COUNT] {
        assert_eq!(messages(&mut ground, &url, count)?, count * CHANGES);
    }
    feed.end()
}

#[test]
fn the_controller_tells_every_client_the_same_and_the_last_change() -> Result<()> {
    let mut ground = Ground::new("controller.kubeconfig")?;
    let (feed, url) = ground.feed("controller")?;
    for count in [1, COUNT] {
        // Changes that come faster than it works become one.
        let told = messages(&mut ground, &url, count)?;
        assert!((count..=count * CHANGES).contains(&told) && told % count == 0, "{told} for {count} clients");
    }
    feed.end()
}

#[test]
fn a_feed_says_what_it_has_used() -> Result<()> {
    let ground = Ground::new("usage.kubeconfig")?;
    for way in ["hub", "controller"] {
        let (mut feed, _) = ground.feed(way)?;
        let [before, after] = [feed.told("usage")?, feed.told("usage")?];
        for number in ["wall_ns", "cpu_ns", "rss_bytes", "peak_bytes"] {
            assert!(before[number].as_u64() > Some(0), "{way}: {number}: {before}");
        }
        let spent = |usage: &Value| usage["cpu_ns"].as_u64();
        assert!(spent(&before) <= spent(&after), "{way}: {before} {after}");
        feed.end()?;
    }
    Ok(())
}

#[test]
fn what_is_neither_way_is_refused() -> Result<()> {
    let output = Command::new(FEED).args(["kubeconfig", NAMESPACE, "shouting", "1"]).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("neither hub nor controller"), "{errors}");
    Ok(())
}
